//! Redirects: S3 answers 307 when a bucket is served elsewhere for a while.
//!
//! A request carries a signature, and may carry a session token and a key of encryption: it goes to servers that the user
//! named and to no others (RFC 9110, 15.4 leaves it to the client), and never from TLS to a plain connection.

use super::machine::Machine;
use crate::target::s3::config::ResolvedEndpoint;

/// Redirects of one op.
const MAX_HOPS: u8 = 3;

/// Why a redirect is the op's answer, and not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Unnamed,
    /// Whoever it belongs to: a user name in front of a host that was named hides another host from the eye.
    WithUser,
    /// A path alone, or no URL of HTTP.
    NoServer,
    ToPlain,
    TooMany,
}

impl Refused {
    /// `shown`: the `Location` without what may be secret.
    pub fn words(self, shown: &str) -> String {
        match self {
            Self::Unnamed => {
                let only = "not followed: keys are sent only to servers you name";
                let Some(host) = shown.find("://").map(|at| at + 3) else { return only.into() };
                let end = shown[host..].find('/').map_or(shown.len(), |at| host + at);
                format!("{only}; allow this one with --redirect-to {}", &shown[..end])
            }
            Self::WithUser => {
                "not followed: it has a user name or a password in it, and --redirect-to allows none; have the server \
                 redirect without one"
                    .into()
            }
            Self::NoServer => {
                "not followed: it does not begin with http:// or https:// and a server; have the server name one".into()
            }
            Self::ToPlain => "not followed: it leads from https to http".into(),
            Self::TooMany => "not followed any further: it loops".into(),
        }
    }

    /// Why a `Location` that leads to no server that was named is not followed.
    fn of(location: &[u8]) -> Self {
        let begins = |scheme: &[u8]| {
            location
                .get(..scheme.len())
                .is_some_and(|l| l.eq_ignore_ascii_case(scheme))
                .then_some(scheme.len())
        };
        let Some(at) = begins(b"http://").or_else(|| begins(b"https://")) else { return Self::NoServer };
        let authority = location[at..].split(|c| matches!(c, b'/' | b'?' | b'#')).next().unwrap_or_default();
        match authority {
            [] => Self::NoServer,
            a if a.contains(&b'@') => Self::WithUser,
            _ => Self::Unnamed,
        }
    }
}

/// How a `Location` may begin that leads to each server.
#[derive(Debug)]
pub(super) struct Places(Vec<(usize, String)>);

impl Places {
    pub fn new(servers: &[ResolvedEndpoint], bucket: Option<&str>) -> Self {
        let mut list = Vec::new();
        for (i, s) in servers.iter().enumerate() {
            let scheme = if s.endpoint.tls { "https" } else { "http" };
            for bucket in [None, bucket] {
                let host = s.endpoint.host_header(bucket);
                let explicit = format!("{host}:{}", s.endpoint.port);
                list.push((i, format!("{scheme}://{host}")));
                list.push((i, format!("{scheme}://{explicit}")));
            }
        }
        Self(list)
    }

    /// The server that a `Location` names. Compared as text: nothing that is not exactly a server's name passes for it.
    fn find(&self, location: &[u8]) -> Option<usize> {
        let leads = |begin: &str| {
            location.get(..begin.len()).is_some_and(|l| l.eq_ignore_ascii_case(begin.as_bytes()))
                && matches!(location.get(begin.len()), None | Some(b'/' | b'?'))
        };
        self.0.iter().find(|(_, begin)| leads(begin)).map(|(i, _)| *i)
    }
}

impl Machine {
    /// Follows a 307 or 308 to a server that was named; true when the request is to be sent again. Other redirects stay the
    /// op's answer.
    pub(super) fn follow(&mut self, slot: u32, i: usize) -> bool {
        let Some(Ok(to)) = self.redirect(slot, i) else { return false };
        let s = &mut self.slots[slot as usize];
        self.redirected[s.server * self.servers.len() + to] += 1;
        s.hops += 1;
        s.server = to;
        true
    }

    /// Where an answer redirects to; `None` when it is no redirect.
    pub(super) fn redirect(&self, slot: u32, i: usize) -> Option<Result<usize, Refused>> {
        let head = self.lanes[i].parser.head();
        if !matches!(head.status, 307 | 308) {
            return None;
        }
        let s = &self.slots[slot as usize];
        let location = head.location.as_bytes();
        let Some(to) = self.places.find(location) else { return Some(Err(Refused::of(location))) };
        if self.servers[s.server].endpoint.tls && !self.servers[to].endpoint.tls {
            return Some(Err(Refused::ToPlain));
        }
        Some(if s.hops == MAX_HOPS { Err(Refused::TooMany) } else { Ok(to) })
    }

    /// What was followed: from, to, how often.
    pub(super) fn redirects(&self) -> impl Iterator<Item = (&ResolvedEndpoint, &ResolvedEndpoint, u64)> {
        let n = self.servers.len();
        let named = move |(i, count): (usize, &u64)| (&self.servers[i / n], &self.servers[i % n], *count);
        self.redirected.iter().enumerate().filter(|(_, count)| **count > 0).map(named)
    }
}
