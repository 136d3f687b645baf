//! The canned server over real sockets: answers, faults with exact counts, framing, delay.

use plimsoll_target::canned::{CannedFault, CannedHandle, CannedOptions, Continue, FaultScope, spawn};
use plimsoll_target::limiter::LimitSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

fn start(options: CannedOptions) -> CannedHandle {
    spawn(SocketAddr::from(([127, 0, 0, 1], 0)), options).unwrap()
}

fn connect(h: &CannedHandle) -> TcpStream {
    let s = TcpStream::connect(h.addr()).unwrap();
    s.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    s
}

/// Reads one answer: (status, head, body).
fn read_answer(s: &mut TcpStream, is_head: bool) -> (u16, String, Vec<u8>) {
    let mut buf = Vec::new();
    let end = loop {
        let mut b = [0u8; 1];
        assert_eq!(s.read(&mut b).unwrap(), 1, "closed after {:?}", String::from_utf8_lossy(&buf));
        buf.push(b[0]);
        if buf.ends_with(b"\r\n\r\n") {
            break buf.len();
        }
    };
    let head = String::from_utf8(buf[..end].to_vec()).unwrap();
    let status = head[9..12].parse().unwrap();
    let length =
        head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; if is_head { 0 } else { length }];
    s.read_exact(&mut body).unwrap();
    (status, head, body)
}

fn ask(s: &mut TcpStream, request: &str) -> (u16, String, Vec<u8>) {
    s.write_all(request.as_bytes()).unwrap();
    read_answer(s, request.starts_with("HEAD"))
}

#[test]
fn bodies_of_all_sizes_arrive_whole_and_keep_the_connection() {
    for body_bytes in [0, 1, 4_096, 100_000, 9 << 20] {
        let h = start(CannedOptions { body_bytes, threads: 2, ..CannedOptions::default() });
        let mut s = connect(&h);
        let mut last = Vec::new();
        for _ in 0..3 {
            let (status, _, body) = ask(&mut s, "GET /b/k HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!((status, body.len() as u64), (200, body_bytes));
            assert!(last.is_empty() || last == body);
            last = body;
        }
        if body_bytes > 10 {
            let (status, _, part) = ask(&mut s, "GET /b/k HTTP/1.1\r\nRange: bytes=5-9\r\n\r\n");
            assert_eq!((status, &part[..]), (206, &last[5..10]));
        }
        assert_eq!(ask(&mut s, "HEAD /b/k HTTP/1.1\r\n\r\n").0, 200);
        let stats = h.stop();
        assert_eq!((stats.connections, stats.head), (1, 1));
    }
}

#[test]
fn put_bodies_are_discarded_to_the_byte() {
    let h = start(CannedOptions::default());
    let mut s = connect(&h);
    for n in [0usize, 1, 4_096, 20_000, 3 << 20] {
        s.write_all(format!("PUT /b/k HTTP/1.1\r\nContent-Length: {n}\r\n\r\n").as_bytes()).unwrap();
        s.write_all(&vec![b'x'; n]).unwrap();
        assert_eq!(read_answer(&mut s, false).0, 200, "{n}");
    }
    s.write_all(b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut s, false).0, 200);
    // Two requests in one segment are two answers.
    s.write_all(b"DELETE /b/k HTTP/1.1\r\n\r\nDELETE /b/k HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!((read_answer(&mut s, false).0, read_answer(&mut s, false).0), (204, 204));
    let stats = h.stats();
    assert_eq!((stats.put, stats.delete), (6, 2));
    assert_eq!(stats.bytes_in, 1 + 4_096 + 20_000 + (3 << 20) + 3);
}

#[test]
fn bodies_that_are_kept_come_back() {
    let h = start(CannedOptions { keep_bytes: 1 << 20, body_bytes: 7, ..CannedOptions::default() });
    let mut s = connect(&h);
    let body: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    s.write_all(format!("PUT /b/k HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
    s.write_all(&body).unwrap();
    assert_eq!(read_answer(&mut s, false).0, 200);
    assert_eq!(ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n").2, body);
    let (status, _, part) = ask(&mut s, "GET /b/k HTTP/1.1\r\nRange: bytes=250000-259999\r\n\r\n");
    assert_eq!((status, &part[..]), (206, &body[250_000..260_000]));
    assert!(ask(&mut s, "HEAD /b/k HTTP/1.1\r\n\r\n").1.contains("Content-Length: 300000\r\n"));
    assert_eq!(ask(&mut s, "GET /b/other HTTP/1.1\r\n\r\n").0, 404, "what was not PUT is not there");
    let (_, _, list) = ask(&mut s, "GET /b?list-type=2&prefix= HTTP/1.1\r\n\r\n");
    assert!(String::from_utf8_lossy(&list).contains("<Key>k</Key>"));
    assert_eq!(ask(&mut s, "DELETE /b/k HTTP/1.1\r\n\r\n").0, 204);
    assert_eq!(ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n").0, 404);
    // More than there is room for.
    s.write_all(format!("PUT /b/k HTTP/1.1\r\nContent-Length: {}\r\n\r\n", 2 << 20).as_bytes()).unwrap();
    s.write_all(&vec![b'x'; 2 << 20]).unwrap();
    assert_eq!(read_answer(&mut s, false).0, 507);
}

#[test]
fn expect_100_continue_is_answered_as_told() {
    let h = start(CannedOptions::default());
    let mut s = connect(&h);
    s.write_all(b"PUT /b/k HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut s, false).0, 100);
    s.write_all(b"abc").unwrap();
    assert_eq!(read_answer(&mut s, false).0, 200);
    let h = start(CannedOptions { expect_continue: Continue::Refuse, ..CannedOptions::default() });
    let mut s = connect(&h);
    s.write_all(b"PUT /b/k HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut s, false).0, 417);
}

#[test]
fn thirty_percent_of_503_are_exactly_that_and_counted() {
    let faults = vec!["503=30%".parse::<CannedFault>().unwrap()];
    let h = start(CannedOptions { faults, retry_after_s: Some(2), threads: 2, ..CannedOptions::default() });
    let (mut a, mut b) = (connect(&h), connect(&h));
    let mut refused = 0;
    for i in 0..200 {
        let s = if i % 2 == 0 { &mut a } else { &mut b };
        let (status, head, body) = ask(s, "GET /b/k HTTP/1.1\r\n\r\n");
        if status == 503 {
            refused += 1;
            assert!(
                head.contains("Retry-After: 2\r\n") && String::from_utf8_lossy(&body).contains("SlowDown")
            );
        }
        assert_eq!(ask(s, "HEAD /b HTTP/1.1\r\n\r\n").0, 200, "a bucket call is out of scope");
    }
    assert_eq!(refused, 60);
    let (_, _, json) = ask(&mut a, "GET /__stats HTTP/1.1\r\n\r\n");
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("\"in_fault_scope\":200") && json.contains("\"503\":60"), "{json}");
}

#[test]
fn broken_answers_are_broken_in_the_way_that_was_asked_for() {
    let get = "GET /b/k HTTP/1.1\r\n\r\n";
    let with = |fault: &str| {
        let faults = vec![format!("{fault}=100%").parse().unwrap()];
        start(CannedOptions {
            faults,
            body_bytes: 1_000,
            fault_scope: FaultScope::All,
            ..CannedOptions::default()
        })
    };
    let all = |h: &CannedHandle| {
        let mut s = connect(h);
        s.write_all(get.as_bytes()).unwrap();
        let mut text = Vec::new();
        let result = s.read_to_end(&mut text);
        (text, result.is_ok())
    };
    let body_of = |text: &[u8]| text.len() - (text.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4);

    let (text, clean) = all(&with("short"));
    assert!(clean && String::from_utf8_lossy(&text).contains("Content-Length: 1000\r\n"));
    assert_eq!(body_of(&text), 500);

    let (_, clean) = all(&with("reset"));
    assert!(!clean, "a reset is an error of the read");

    let (text, clean) = all(&with("garbage"));
    assert!(clean && !text.starts_with(b"HTTP"));

    let (text, clean) = all(&with("drop"));
    assert!(clean && !String::from_utf8_lossy(&text).contains("Connection: close"));
    assert_eq!(body_of(&text), 1_000);

    let (text, clean) = all(&with("close"));
    assert!(clean && String::from_utf8_lossy(&text).contains("Connection: close"));

    let h = with("chunked");
    let mut s = connect(&h);
    let (_, head, _) = ask(&mut s, get);
    assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"));
    let mut rest = vec![0; "3e8\r\n".len() + 1_000 + "\r\n0\r\n\r\n".len()];
    s.read_exact(&mut rest).unwrap();
    assert!(rest.starts_with(b"3e8\r\n") && rest.ends_with(b"\r\n0\r\n\r\n"));

    let h = with("redirect");
    let (status, head, _) = ask(&mut connect(&h), "GET /b/k?x=1 HTTP/1.1\r\n\r\n");
    assert!(status == 307 && head.contains("Location: http://127.0.0.1:9/b/k?x=1\r\n"), "{head}");

    let h = with("trickle");
    let (status, _, body) = ask(&mut connect(&h), get);
    assert_eq!((status, body.len()), (200, 1_000));
}

#[test]
fn close_after_counts_requests_of_a_connection() {
    let h = start(CannedOptions { close_after: Some(2), ..CannedOptions::default() });
    let mut s = connect(&h);
    assert!(!ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n").1.contains("close"));
    assert!(ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n").1.contains("Connection: close"));
    assert_eq!(s.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_delay_is_never_shorter_than_asked() {
    let delay = Duration::from_millis(3);
    let h = start(CannedOptions { delay, ..CannedOptions::default() });
    let mut s = connect(&h);
    for _ in 0..5 {
        let t = Instant::now();
        ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n");
        assert!(t.elapsed() >= delay);
    }
}

#[test]
fn an_oversized_head_and_nonsense_are_refused() {
    let h = start(CannedOptions::default());
    let mut s = connect(&h);
    s.write_all(format!("GET /b/k HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(20_000)).as_bytes()).unwrap();
    assert_eq!(read_answer(&mut s, false).0, 431);
    let mut s = connect(&h);
    s.write_all(b"hello\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut s, false).0, 400);
}

fn limited(limits: &str, body_bytes: u64) -> CannedHandle {
    let text = format!("name='t'\nkind='object'\n{limits}");
    let limits = Some(LimitSet::parse(&text, "test").unwrap());
    start(CannedOptions { limits, body_bytes, ..CannedOptions::default() })
}

#[test]
fn an_exhausted_bucket_answers_429_with_retry_after_and_counts_it() {
    let h = limited("[[limit]]\nunit='ops'\nrate_per_s=0.01\ncapacity=5\nscope='access-key'\n", 10);
    let mut s = connect(&h);
    let get = |key: &str| format!("GET /b/k HTTP/1.1\r\nAuthorization: AWS4 Credential={key}/x\r\n\r\n");
    let statuses: Vec<u16> = (0..8).map(|_| ask(&mut s, &get("A")).0).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    assert_eq!(ask(&mut s, &get("B")).0, 200, "another key has another bucket");
    assert!(ask(&mut s, &get("A")).1.contains("Retry-After: 100\r\n"));
    assert_eq!(h.stats().throttled, 4);
}

#[test]
fn a_bytes_limit_holds_bodies_back_in_both_directions() {
    let h = limited("[[limit]]\nunit='bytes'\nrate_per_s='10 MB'\ncapacity=0\n", 1_000_000);
    let mut s = connect(&h);
    let t = Instant::now();
    assert_eq!(ask(&mut s, "GET /b/k HTTP/1.1\r\n\r\n").2.len(), 1_000_000);
    s.write_all(b"PUT /b/k HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    s.write_all(&vec![0; 1_000_000]).unwrap();
    assert_eq!(read_answer(&mut s, false).0, 200);
    // 2 MB at 10 MB/s can't take less than 0.2 s.
    assert!(t.elapsed() >= Duration::from_millis(200), "{:?}", t.elapsed());
}

#[test]
fn tls_carries_bodies_both_ways_to_a_client_that_trusts_the_made_ca() {
    use plimsoll_target::tls::{TlsOptions, server_config};
    use rustls_pki_types::pem::PemObject;
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let tls = server_config(&TlsOptions::self_signed(ca.clone())).unwrap();
    let h = start(CannedOptions { body_bytes: 2 << 20, tls: Some(tls), ..CannedOptions::default() });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls_pki_types::CertificateDer::from_pem_file(&ca).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let client = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
        let mut s = rustls::StreamOwned::new(client, connect(&h));
        for _ in 0..3 {
            s.write_all(b"PUT /b/k HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n").unwrap();
            s.write_all(&vec![b'x'; 1_000_000]).unwrap();
            s.write_all(b"GET /b/k HTTP/1.1\r\n\r\n").unwrap();
            let mut text = Vec::new();
            while !text.ends_with(b"0\r\n\r\n") {
                let mut b = [0; 1];
                s.read_exact(&mut b).unwrap();
                text.push(b[0]);
            }
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut b = [0; 1];
                s.read_exact(&mut b).unwrap();
                head.push(b[0]);
            }
            assert!(String::from_utf8(head).unwrap().contains("Content-Length: 2097152\r\n"));
            let mut body = vec![0; 2 << 20];
            s.read_exact(&mut body).unwrap();
        }
    }
    assert_eq!(h.stats().bytes_in, 6_000_000);
    assert_eq!(h.stats().bytes_out, 6 * (2 << 20));
}
