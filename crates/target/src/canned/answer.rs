//! What a request is answered: the good answer, or the fault that was dealt to it, written into a buffer.

use super::conn::{After, Cx, env};
use super::fault::FaultKind;
use super::pool::Body;
use super::request::{Head, Method};
use super::response::{self, Env, Kind};

/// Writes the answer to one request into the connection's buffer, with its fault if it gets one.
pub(crate) struct AnswerWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The bytes of the object that is asked for.
    content: Body<'a>,
    stall: bool,
    trickle: bool,
}

/// Body after the head (offset, bytes), what follows, whether no answer comes at all, and whether it trickles.
pub(crate) type Prepared = ((u64, u64), After, bool, bool);

impl<'a> AnswerWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>, content: Body<'a>) -> AnswerWriter<'a> {
        AnswerWriter { out, content, stall: false, trickle: false }
    }

    pub fn prepare(mut self, head: &Head<'_>, kind: Kind, served: u64, cx: &Cx<'_>) -> Prepared {
        self.out.clear();
        let shared = cx.shared;
        let mut env = env(cx);
        if let Body::Kept(bytes) = self.content {
            env.body_bytes = bytes.len() as u64;
        }
        let mut after = if head.close { After::Close } else { After::Keep };
        if kind == Kind::Stats {
            response::json(self.out, &shared.stats().to_json(), &env);
            return ((0, 0), after, false, false);
        }
        let in_scope = shared.options.fault_scope == super::FaultScope::All || head.has_key();
        let fault = if in_scope && !shared.dealer.is_empty() { shared.dealer.next() } else { None };
        let mut body = match fault {
            None if env.keep.is_some()
                && matches!((kind, self.content), (Kind::Get | Kind::Head, Body::Pool(_))) =>
            {
                response::error(self.out, 404, "", kind == Kind::Head, &env);
                (0, 0)
            }
            None => response::good(self.out, head, kind, &env),
            Some(fault) => self.faulty(fault, head, kind, &env, &mut after, cx),
        };
        if shared.options.close_after.is_some_and(|n| served >= n) && after == After::Keep {
            after = After::Close;
            insert_header(self.out, "Connection: close\r\n");
        }
        if head.method == Method::Head {
            body = (0, 0);
        }
        (body, after, self.stall, self.trickle)
    }

    /// The limiter's refusal.
    pub fn refuse(self, head: &Head<'_>, status: u16, wait_s: u64, cx: &Cx<'_>) -> Prepared {
        self.out.clear();
        let extra = format!("Retry-After: {wait_s}\r\n");
        response::error(self.out, status, &extra, head.method == Method::Head, &env(cx));
        ((0, 0), if head.close { After::Close } else { After::Keep }, false, false)
    }

    fn faulty(
        &mut self,
        fault: &FaultKind,
        head: &Head<'_>,
        kind: Kind,
        env: &Env<'_>,
        after: &mut After,
        cx: &Cx<'_>,
    ) -> (u64, u64) {
        let o = &cx.shared.options;
        match fault {
            FaultKind::Status(status) => {
                let extra = match (o.retry_after_s, status) {
                    (Some(s), 429 | 503) => format!("Retry-After: {s}\r\n"),
                    _ => String::new(),
                };
                response::error(self.out, *status, &extra, head.method == Method::Head, env);
                return (0, 0);
            }
            FaultKind::Redirect => {
                let path = String::from_utf8_lossy(head.path);
                let query = String::from_utf8_lossy(head.query);
                let mark = if query.is_empty() { "" } else { "?" };
                let extra = format!("Location: {}{path}{mark}{query}\r\n", o.redirect_to);
                response::error(self.out, 307, &extra, head.method == Method::Head, env);
                return (0, 0);
            }
            FaultKind::Garbage => {
                self.out.extend_from_slice(b"\x16\x03\x01NOT HTTP AT ALL\x00\r\n\r\n");
                *after = After::Close;
                return (0, 0);
            }
            FaultKind::Stall => self.stall = true,
            FaultKind::Trickle => self.trickle = true,
            FaultKind::Drop => *after = After::Close,
            FaultKind::Close => *after = After::Close,
            FaultKind::Chunked | FaultKind::Short | FaultKind::Reset => {}
        }
        let body = response::good(self.out, head, kind, env);
        match fault {
            FaultKind::Close => insert_header(self.out, "Connection: close\r\n"),
            FaultKind::Chunked if head.method != Method::Head => return self.chunk(body),
            FaultKind::Short | FaultKind::Reset => {
                *after = if *fault == FaultKind::Short { After::Close } else { After::Reset };
                return self.cut(body);
            }
            _ => {}
        }
        body
    }

    /// Half of the body, inline or pool; an empty one becomes a promise of 64 bytes that never come.
    fn cut(&mut self, body: (u64, u64)) -> (u64, u64) {
        let end = head_end(self.out);
        if body.1 == 0 && end == self.out.len() {
            replace_length(self.out, 64);
        }
        let end = head_end(self.out);
        self.out.truncate(end + (self.out.len() - end) / 2);
        (body.0, body.1 / 2)
    }

    /// The same answer with its body in chunks of 16 KiB. The body is written out here: this is a test's path.
    fn chunk(&mut self, (mut offset, mut left): (u64, u64)) -> (u64, u64) {
        let end = head_end(self.out);
        let mut content = self.out.split_off(end);
        while left > 0 {
            let piece = self.content.slice(offset, left);
            content.extend_from_slice(piece);
            offset += piece.len() as u64;
            left -= piece.len() as u64;
        }
        remove_length(self.out);
        insert_header(self.out, "Transfer-Encoding: chunked\r\n");
        for piece in content.chunks(16 << 10) {
            self.out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            self.out.extend_from_slice(piece);
            self.out.extend_from_slice(b"\r\n");
        }
        self.out.extend_from_slice(b"0\r\n\r\n");
        (0, 0)
    }
}

/// Where the body starts in a written answer.
fn head_end(out: &[u8]) -> usize {
    out.windows(4).position(|w| w == b"\r\n\r\n").map_or(out.len(), |i| i + 4)
}

/// Adds a header line right after the status line.
fn insert_header(out: &mut Vec<u8>, line: &str) {
    if let Some(at) = out.windows(2).position(|w| w == b"\r\n") {
        out.splice(at + 2..at + 2, line.bytes());
    }
}

/// Takes the Content-Length line out; its place and length are those of our own writer.
fn remove_length(out: &mut Vec<u8>) {
    const NAME: &[u8] = b"Content-Length: ";
    if let Some(at) = out.windows(NAME.len()).position(|w| w == NAME) {
        let end = out[at..].iter().position(|&b| b == b'\n').map_or(out.len(), |i| at + i + 1);
        out.drain(at..end);
    }
}

fn replace_length(out: &mut Vec<u8>, n: u64) {
    remove_length(out);
    insert_header(out, &format!("Content-Length: {n}\r\n"));
}
