//! The limiter in front of one connection: whether a request may go, when, and what it was charged.

use super::conn::Cx;
use super::request::Head;
use super::response::Kind;
use crate::limiter::{Caller, OpClass, Ticket, Verdict};

/// What the limiter said about the request in hand.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub ticket: Ticket,
    /// The answer may not begin before this.
    pub go_at_ns: u64,
    /// Body bytes that are charged and may leave.
    pub paid_out: u64,
    pub latency_ns: u64,
    /// The client's address and the number of this connection, as limits may be per client or per connection.
    pub client: String,
    pub connection: u64,
}

impl Limits {
    /// Asks the limiter; a refusal is (status, seconds to wait).
    pub fn admit(&mut self, head: &Head<'_>, kind: Kind, cx: &Cx<'_>) -> Option<(u16, u64)> {
        let gate = cx.shared.gate.as_ref()?;
        (self.ticket, self.go_at_ns, self.paid_out, self.latency_ns) = (Ticket::default(), 0, 0, 0);
        let class = class_of(kind)?;
        let bucket = head.path.get(1..).unwrap_or_default().split(|&b| b == b'/').next().unwrap_or_default();
        let text = |b| std::str::from_utf8(b).unwrap_or_default();
        let caller = Caller {
            class,
            access_key: text(head.access_key),
            bucket: text(bucket),
            client: &self.client,
            connection: self.connection,
        };
        match gate.admit(&caller) {
            Verdict::Reject { status, retry_after_s, .. } => Some((status, retry_after_s)),
            Verdict::Go { at_ns, ticket } => {
                let bytes =
                    if class == OpClass::Get { cx.shared.options.body_bytes } else { head.content_length };
                (self.ticket, self.go_at_ns) = (ticket, at_ns);
                self.latency_ns = gate.latency_ns(class, bytes);
                None
            }
        }
    }
}

/// `/__stats` is nobody's operation.
fn class_of(kind: Kind) -> Option<OpClass> {
    Some(match kind {
        Kind::Get => OpClass::Get,
        Kind::Head => OpClass::Head,
        Kind::Put | Kind::Part => OpClass::Put,
        Kind::Copy => OpClass::Copy,
        Kind::Multipart => OpClass::Multipart,
        Kind::Delete | Kind::DeleteMany => OpClass::Delete,
        Kind::List => OpClass::List,
        Kind::Bucket => OpClass::Bucket,
        Kind::Stats => return None,
    })
}
