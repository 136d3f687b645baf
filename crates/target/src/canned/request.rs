//! Request heads, as far as the canned responder has to understand them: one pass over the bytes, no allocation.

/// HTTP methods that S3 clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Put,
    Post,
    Delete,
    Other,
}

/// A parsed request head; slices point into the connection's input buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub method: Method,
    /// Path without the query, still percent-encoded, with its leading slash.
    pub path: &'a [u8],
    /// Query without the question mark; empty when there is none.
    pub query: &'a [u8],
    pub content_length: u64,
    pub chunked: bool,
    pub expect_continue: bool,
    pub close: bool,
    /// `bytes=A-B` (B inclusive), `bytes=A-` or `bytes=-N` as (A, B); see [`Head::range_of`].
    pub range: Option<(Option<u64>, Option<u64>)>,
    /// `x-amz-copy-source` is there.
    pub copy: bool,
    /// Access key of a SigV4 `Authorization` header, else empty.
    pub access_key: &'a [u8],
    /// Bytes that the head took, with its empty line.
    pub len: usize,
}

#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    Partial,
    Complete(Head<'a>),
    /// Not HTTP, or framing that cannot be trusted.
    Bad,
}

impl<'a> Head<'a> {
    /// Reads one head from the start of `buf`.
    pub fn parse(buf: &'a [u8]) -> Parsed<'a> {
        let Some((line, mut at)) = next_line(buf, 0) else { return Parsed::Partial };
        let Some(mut head) = request_line(line) else { return Parsed::Bad };
        loop {
            let Some((line, next)) = next_line(buf, at) else { return Parsed::Partial };
            at = next;
            if line.is_empty() {
                head.len = at;
                return Parsed::Complete(head);
            }
            if !head.field(line) {
                return Parsed::Bad;
            }
        }
    }

    /// Takes one header line; false when it is malformed in a way that would lose the framing.
    fn field(&mut self, line: &'a [u8]) -> bool {
        // The length of the name decides first: most headers of a signed request are of no interest here.
        let Some(colon) = line.iter().position(|&b| b == b':') else { return false };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match colon {
            5 if name.eq_ignore_ascii_case(b"range") => self.range = parse_range(value),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expect_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                if value.eq_ignore_ascii_case(b"close") {
                    self.close = true;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    self.close = false;
                }
            }
            13 if name.eq_ignore_ascii_case(b"authorization") => self.access_key = credential(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => match number(value) {
                Some(n) => self.content_length = n,
                None => return false,
            },
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = value.eq_ignore_ascii_case(b"chunked");
                return self.chunked;
            }
            17 if name.eq_ignore_ascii_case(b"x-amz-copy-source") => self.copy = true,
            _ => {}
        }
        true
    }

    /// Value of a query parameter: `Some(b"")` when it has none.
    pub fn query_value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.query.split(|&b| b == b'&').find_map(|pair| {
            let (n, v) = match pair.iter().position(|&b| b == b'=') {
                Some(i) => (&pair[..i], &pair[i + 1..]),
                None => (pair, &b""[..]),
            };
            (n == name).then_some(v)
        })
    }

    /// Whether the path names an object (`/bucket/key`) rather than a bucket or the service.
    pub fn has_key(&self) -> bool {
        let rest = self.path.get(1..).unwrap_or_default();
        rest.iter().position(|&b| b == b'/').is_some_and(|i| i + 1 < rest.len())
    }

    /// The part of a body of `size` bytes that the request asks for: (first, length, whether a range was applied).
    /// `None` when the range lies outside.
    pub fn range_of(&self, size: u64) -> Option<(u64, u64, bool)> {
        match self.range {
            None => Some((0, size, false)),
            Some((Some(first), last)) => {
                let end = last.map_or(size, |l| l.saturating_add(1).min(size));
                (first < size && first < end).then(|| (first, end - first, true))
            }
            Some((None, Some(suffix))) => {
                let n = suffix.min(size);
                (n > 0).then(|| (size - n, n, true))
            }
            Some((None, None)) => Some((0, size, false)),
        }
    }
}

/// The line that starts at `from`, without its line end, and where the next one starts.
fn next_line(buf: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = &buf[from..];
    let end = rest.iter().position(|&b| b == b'\n')?;
    let line = &rest[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), from + end + 1))
}

fn request_line(line: &[u8]) -> Option<Head<'_>> {
    let first = line.iter().position(|&b| b == b' ')?;
    let last = line.iter().rposition(|&b| b == b' ')?;
    let (method, target, version) = (&line[..first], line.get(first + 1..last)?, &line[last + 1..]);
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"PUT" => Method::Put,
        b"POST" => Method::Post,
        b"DELETE" => Method::Delete,
        _ => Method::Other,
    };
    if !version.starts_with(b"HTTP/1.") || target.is_empty() {
        return None;
    }
    let (path, query) = match target.iter().position(|&b| b == b'?') {
        Some(i) => (&target[..i], &target[i + 1..]),
        None => (target, &b""[..]),
    };
    Some(Head {
        method,
        path,
        query,
        content_length: 0,
        chunked: false,
        expect_continue: false,
        close: version == b"HTTP/1.0",
        range: None,
        copy: false,
        access_key: b"",
        len: 0,
    })
}

fn parse_range(value: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let spec = value.strip_prefix(b"bytes=")?;
    let dash = spec.iter().position(|&b| b == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    let part = |v: &[u8]| if v.is_empty() { Some(None) } else { number(v).map(Some) };
    match (part(first)?, part(last)?) {
        (None, None) => None,
        both => Some(both),
    }
}

/// `AWS4-HMAC-SHA256 Credential=AKID/date/...` gives `AKID`.
fn credential(value: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"Credential=";
    let Some(at) = value.windows(MARK.len()).position(|w| w == MARK) else { return b"" };
    let rest = &value[at + MARK.len()..];
    &rest[..rest.iter().position(|&b| b == b'/').unwrap_or(rest.len())]
}

pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &d| d.is_ascii_digit().then(|| n * 10 + u64::from(d - b'0')))
}

/// Finds the end of a chunked request body without keeping any of it (RFC 9112, section 7.1).
#[derive(Debug, Default)]
pub(crate) struct ChunkSkipper {
    state: ChunkState,
    /// Bytes of chunk data seen.
    pub data_bytes: u64,
}

#[derive(Debug, Default)]
enum ChunkState {
    #[default]
    SizeStart,
    Size(u64),
    /// Rest of the size line: extensions up to the line feed.
    SizeLine(u64),
    Data(u64),
    DataEnd,
    /// Trailer lines: whether the present line has bytes.
    Trailer(bool),
    Done,
}

impl ChunkSkipper {
    /// Takes bytes; the answer is how many belonged to the body, and whether it is complete.
    pub fn take(&mut self, buf: &[u8]) -> Result<(usize, bool), &'static str> {
        let mut at = 0;
        while at < buf.len() {
            if let ChunkState::Data(left) = self.state {
                let n = left.min((buf.len() - at) as u64);
                at += n as usize;
                self.data_bytes += n;
                self.state = if n == left { ChunkState::DataEnd } else { ChunkState::Data(left - n) };
                continue;
            }
            self.state = self.step(buf[at])?;
            at += 1;
            if matches!(self.state, ChunkState::Done) {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    fn step(&self, byte: u8) -> Result<ChunkState, &'static str> {
        let after_size = |n| if n == 0 { ChunkState::Trailer(false) } else { ChunkState::Data(n) };
        Ok(match (&self.state, byte) {
            (ChunkState::SizeStart, b) => ChunkState::Size(hex(b)?),
            (&ChunkState::Size(n), b'\n') => after_size(n),
            (&ChunkState::Size(n), b'\r' | b';' | b' ') => ChunkState::SizeLine(n),
            (&ChunkState::Size(n), b) => ChunkState::Size(
                n.checked_mul(16).ok_or("chunk size")?.checked_add(hex(b)?).ok_or("chunk size")?,
            ),
            (&ChunkState::SizeLine(n), b'\n') => after_size(n),
            (&ChunkState::SizeLine(n), _) => ChunkState::SizeLine(n),
            (ChunkState::DataEnd, b'\r') => ChunkState::DataEnd,
            (ChunkState::DataEnd, b'\n') => ChunkState::SizeStart,
            (ChunkState::DataEnd, _) => return Err("chunk end"),
            (ChunkState::Trailer(false), b'\n') => ChunkState::Done,
            (ChunkState::Trailer(_), b'\n') => ChunkState::Trailer(false),
            (&ChunkState::Trailer(seen), b'\r') => ChunkState::Trailer(seen),
            (ChunkState::Trailer(_), _) => ChunkState::Trailer(true),
            (ChunkState::Data(_) | ChunkState::Done, _) => return Err("chunk state"),
        })
    }
}

fn hex(b: u8) -> Result<u64, &'static str> {
    (b as char).to_digit(16).map(u64::from).ok_or("chunk size")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(buf: &[u8]) -> Head<'_> {
        match Head::parse(buf) {
            Parsed::Complete(h) => h,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_signed_put_is_read_in_one_pass() {
        let raw = b"PUT /b/k%20x?partNumber=3&uploadId=u HTTP/1.1\r\nHost: h\r\nContent-Length: 4096\r\n\
            Expect: 100-continue\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKID/20260101/r/s3/aws4_request, x\r\n\
            Connection: close\r\n\r\nBODY";
        let h = complete(raw);
        assert_eq!((h.method, h.path, h.content_length), (Method::Put, &b"/b/k%20x"[..], 4096));
        assert!(h.expect_continue && h.close && h.has_key() && !h.chunked);
        assert_eq!(h.access_key, b"AKID");
        assert_eq!(h.query_value(b"uploadId"), Some(&b"u"[..]));
        assert_eq!(&raw[h.len..], b"BODY");
    }

    #[test]
    fn every_prefix_of_a_head_is_partial_and_never_a_panic() {
        let raw = b"GET /b/k HTTP/1.1\r\nRange: bytes=5-9\r\nHost: h\r\n\r\n";
        for n in 0..raw.len() {
            assert!(matches!(Head::parse(&raw[..n]), Parsed::Partial), "{n}");
        }
        assert_eq!(complete(raw).range_of(8), Some((5, 3, true)));
    }

    #[test]
    fn ranges_follow_the_http_rules() {
        let ranged = |r: &str, size| {
            let raw = format!("GET /b/k HTTP/1.1\r\nRange: {r}\r\n\r\n");
            complete(raw.as_bytes()).range_of(size)
        };
        assert_eq!(ranged("bytes=0-0", 10), Some((0, 1, true)));
        assert_eq!(ranged("bytes=2-", 10), Some((2, 8, true)));
        assert_eq!(ranged("bytes=-3", 10), Some((7, 3, true)));
        assert_eq!(ranged("bytes=10-", 10), None);
        assert_eq!(ranged("bytes=-0", 10), None);
        assert_eq!(ranged("items=1-2", 10), Some((0, 10, false)));
    }

    #[test]
    fn bad_heads_are_refused() {
        for raw in [
            "\r\n\r\n",
            "GET HTTP/1.1\r\n\r\n",
            "GET /x FTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nnocolon\r\n\r\n",
        ] {
            assert!(matches!(Head::parse(raw.as_bytes()), Parsed::Bad), "{raw:?}");
        }
        let raw = b"PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n";
        assert!(matches!(Head::parse(raw), Parsed::Bad));
    }

    #[test]
    fn chunked_bodies_end_where_they_end_however_they_are_cut() {
        let body = b"5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nNEXT";
        for cut in 1..body.len() {
            let mut skip = ChunkSkipper::default();
            let mut used = 0;
            let mut done = false;
            for piece in body.chunks(cut) {
                let (n, complete) = skip.take(piece).unwrap();
                used += n;
                if complete {
                    done = true;
                    break;
                }
            }
            assert!(done);
            assert_eq!(&body[used..], b"NEXT", "cut {cut}");
            assert_eq!(skip.data_bytes, 15);
        }
        assert!(ChunkSkipper::default().take(b"zz\r\n").is_err());
    }

    proptest::proptest! {
        /// Whatever a client sends: no panic, and a head never claims bytes that are not there.
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), cut in 0usize..62) {
            let mut raw = b"PUT /b/k?x=1 HTTP/1.1\r\nContent-Length: 5\r\nRange: bytes=1-\r\n\r\n"[..cut].to_vec();
            raw.extend(&bytes);
            raw.extend(b"\r\n\r\n");
            if let Parsed::Complete(h) = Head::parse(&raw) {
                proptest::prop_assert!(h.len <= raw.len());
                let _ = (h.range_of(10), h.has_key(), h.query_value(b"x"));
            }
            let mut skipper = ChunkSkipper::default();
            if let Ok((used, _)) = skipper.take(&bytes) {
                proptest::prop_assert!(used <= bytes.len() && skipper.data_bytes <= used as u64);
            }
        }
    }
}
