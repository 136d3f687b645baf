//! Good answers of all shapes, broken ones, and that no way of cutting the bytes changes what is read.

use proptest::prelude::*;

use super::*;

/// All that a caller can learn from an answer.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    continues: u32,
    status: u16,
    body: Vec<u8>,
    done: bool,
    used: usize,
    error: Option<Malformed>,
    reusable: bool,
    crc32c: Vec<u8>,
}

/// Feeds `bytes` in pieces that end at `cuts`, then closes if `close`.
fn read(bytes: &[u8], cuts: &[usize], head_request: bool, close: bool) -> Seen {
    let mut p = ResponseParser::new();
    p.begin(head_request);
    let mut s = Seen {
        continues: 0,
        status: 0,
        body: Vec::new(),
        done: false,
        used: 0,
        error: None,
        reusable: false,
        crc32c: Vec::new(),
    };
    let mut ends: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(bytes.len());
    for end in ends {
        // Only whole pieces are handed over; what was used moves on.
        while s.error.is_none() && !s.done {
            match p.step(&bytes[s.used..end.max(s.used)]) {
                Err(e) => s.error = Some(e),
                Ok((n, event)) => {
                    s.used += n;
                    match event {
                        ResponseEvent::NeedMore => break,
                        ResponseEvent::Continue => s.continues += 1,
                        ResponseEvent::Head => s.status = p.head().status,
                        ResponseEvent::Body { len } => s.body.extend_from_slice(&bytes[s.used - len..s.used]),
                        ResponseEvent::Done => s.done = true,
                    }
                }
            }
        }
    }
    if close && !s.done && s.error.is_none() {
        match p.closed() {
            Ok(()) => s.done = true,
            Err(e) => s.error = Some(e),
        }
    }
    if s.error.is_some() {
        // How far it came before the error is not told.
        s.used = 0;
    }
    s.reusable = p.reusable();
    s.crc32c = p.head().crc32c.as_bytes().to_vec();
    s
}

fn whole(text: &str) -> Seen {
    read(text.as_bytes(), &[], false, true)
}

#[test]
fn body_with_length() {
    let s = whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhelloHTTP/1.1 next");
    assert_eq!((s.status, s.body.as_slice(), s.done, s.reusable), (200, &b"hello"[..], true, true));
    assert_eq!(s.used, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhello".len());
}

#[test]
fn no_body_whatever_the_head_says() {
    let head = read(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", &[], true, false);
    assert!(head.done && head.reusable && head.body.is_empty());
    for status in [204, 304] {
        let s = whole(&format!("HTTP/1.1 {status} x\r\nContent-Length: 9\r\n\r\n"));
        assert!(s.done && s.body.is_empty() && s.reusable);
    }
}

#[test]
fn interim_answers() {
    let s = whole(
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!((s.continues, s.status, s.done), (1, 200, true));
    assert_eq!(whole("HTTP/1.1 101 Switching\r\n\r\n").error, Some(Malformed::Switching));
}

#[test]
fn chunks_extensions_trailers() {
    let s = whole(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0A \r\n0123456789\r\n0\r\nx-amz-checksum-crc32c: AAAAAA==\r\nother: y\r\n\r\nrest",
    );
    assert_eq!(s.body, b"hello0123456789");
    assert!(s.done && s.reusable);
    assert_eq!(s.crc32c, b"AAAAAA==");
    for bad in
        ["x\r\n", "\r\n", "5\r\nhelloX", "5\nhello", "fffffffffffffffff\r\n", "-1\r\n", "5;a\nx", "0\r\n\n"]
    {
        let s = whole(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{bad}"));
        assert_eq!(s.error, Some(Malformed::Chunk), "{bad:?}");
    }
}

#[test]
fn until_close() {
    let s = whole("HTTP/1.0 200 OK\r\nServer: old\r\n\r\nall of it");
    assert_eq!((s.body.as_slice(), s.done, s.reusable), (&b"all of it"[..], true, false));
    let s = whole("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx");
    assert!(s.reusable);
    let s = whole("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\nx");
    assert!(s.done && !s.reusable);
}

#[test]
fn broken_answers_have_names() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
    let long = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(MAX_HEAD_BYTES + 10));
    for (text, want) in [
        ("SSH-2.0-OpenSSH\r\n", Malformed::NotHttp("it does not begin with HTTP/1.0 or HTTP/1.1")),
        ("HTTP/2.0 200 OK\r\n\r\n", Malformed::NotHttp("it does not begin with HTTP/1.0 or HTTP/1.1")),
        ("HTTP/1.1 999 OK\r\n\r\n", Malformed::NotHttp("its status is not between 100 and 599")),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Malformed::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Malformed::ContentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Malformed::ContentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::TransferCoding),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::TransferCoding),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Malformed::Closed),
        ("HTTP/1.1 200 O", Malformed::Closed),
        ("", Malformed::Closed),
        (&many, Malformed::HeadTooLong),
        (&long, Malformed::HeadTooLong),
    ] {
        assert_eq!(whole(text).error, Some(want), "{:?}", &text[..text.len().min(60)]);
    }
}

#[test]
fn bytes_received_elsewhere() {
    let mut p = ResponseParser::new();
    p.begin(false);
    let (_, e) = p.step(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").unwrap();
    assert_eq!((e, p.body_left()), (ResponseEvent::Head, BodyLeft::Exactly(100)));
    p.skip_body(60);
    assert_eq!(p.body_left(), BodyLeft::Exactly(40));
    assert_eq!(p.step(&[0; 40]).unwrap(), (40, ResponseEvent::Body { len: 40 }));
    assert_eq!(p.step(b"").unwrap(), (0, ResponseEvent::Done));
    assert!(p.reusable());
    p.begin(false);
    p.step(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n").unwrap();
    p.skip_body(2);
    assert_eq!(p.step(b""), Err(Malformed::Excess));
}

#[test]
fn headers_that_matter() {
    let mut p = ResponseParser::new();
    p.step(
        b"HTTP/1.1 503 Slow Down\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\nserver: S\r\nx-amz-request-id: R\r\nlocation: http://other/\r\nx-amz-bucket-region: eu\r\ncontent-length: 0\r\n\r\n",
    )
    .unwrap();
    let h = p.head();
    assert_eq!(h.retry_after_s(), Some(3));
    assert_eq!(h.server.as_bytes(), b"S");
    assert_eq!(h.request_id.as_bytes(), b"R");
    assert_eq!(h.location.as_bytes(), b"http://other/");
    assert_eq!(h.bucket_region.as_bytes(), b"eu");
}

/// The header was as good as absent where the server had not said what time it has.
#[test]
fn a_date_to_wait_for_without_the_servers_own_counts_from_ours() {
    let asked = |at: &str| {
        let mut p = ResponseParser::new();
        let head = format!("HTTP/1.1 429 Too Many\r\nRetry-After: {at}\r\ncontent-length: 0\r\n\r\n");
        p.step(head.as_bytes()).unwrap();
        p.head().retry_after_s()
    };
    assert_eq!(asked("Sun, 06 Nov 1994 08:49:40 GMT"), Some(0), "it has passed");
    let far = asked("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
    assert!(far > 200_000_000_000, "{far}");
    assert_eq!(asked("soon"), None);
}

/// Answers in which each rule has its turn, some of them broken.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let interim =
        prop_oneof![Just(""), Just("HTTP/1.1 100 Continue\r\n\r\n"), Just("HTTP/1.1 103 E\r\na: b\r\n\r\n")];
    let status = prop_oneof![Just(200u16), Just(204), Just(206), Just(404), Just(503)];
    let header = prop_oneof![
        Just("Connection: close\r\n".to_string()),
        Just("Retry-After: 3\r\n".to_string()),
        "[a-z]{1,8}: [ -~]{0,20}\r\n",
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    let kind = 0u8..4;
    (interim, status, proptest::collection::vec(header, 0..4), body, kind, 1usize..50, 0usize..20).prop_map(
        |(interim, status, headers, body, kind, chunk, excess)| {
            let mut out = format!("{interim}HTTP/1.1 {status} X\r\n{}", headers.concat()).into_bytes();
            match kind {
                0 => {
                    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                    out.extend_from_slice(&body);
                }
                1 => {
                    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    for c in body.chunks(chunk) {
                        out.extend_from_slice(format!("{:x};e=1\r\n", c.len()).as_bytes());
                        out.extend_from_slice(c);
                        out.extend_from_slice(b"\r\n");
                    }
                    out.extend_from_slice(b"0\r\nx-amz-checksum-crc32c: AAAA\r\n\r\n");
                }
                2 => {
                    out.extend_from_slice(b"\r\n");
                    out.extend_from_slice(&body);
                }
                _ => {
                    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    out.extend_from_slice(&body);
                }
            }
            out.extend(std::iter::repeat_n(b'x', excess));
            out
        },
    )
}

proptest! {
    #[test]
    fn cuts_change_nothing(a in answer(), cuts in proptest::collection::vec(any::<usize>(), 0..12), head in any::<bool>()) {
        prop_assert_eq!(read(&a, &[], head, true), read(&a, &cuts, head, true));
        let every: Vec<usize> = (0..=a.len()).collect();
        prop_assert_eq!(read(&a, &[], head, true), read(&a, &every, head, true));
    }

    #[test]
    fn garbage_never_panics(a in proptest::collection::vec(any::<u8>(), 0..400), cuts in proptest::collection::vec(any::<usize>(), 0..6)) {
        read(&a, &cuts, false, true);
        let mut b = b"HTTP/1.1 200 OK\r\n".to_vec();
        b.extend_from_slice(&a);
        read(&b, &cuts, false, true);
        let mut b = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        b.extend_from_slice(&a);
        read(&b, &cuts, false, true);
    }
}
