//! Servers that come to no end: whoever waits for them does so for a bounded time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::*;

/// Far beyond every limit below: who is not back by then never comes.
const NEVER: Duration = Duration::from_secs(20);

/// A server that does this with its one connection; its port.
fn server(body: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || body(listener.accept().unwrap().0));
    port
}

/// Announces a record of 16 KiB of this type, and gives a byte of it at a time until nobody is there any more.
fn trickle(mut tcp: TcpStream, content_type: u8) {
    let mut sent = tcp.write_all(&[content_type, 3, 3, 0x40, 0]);
    while sent.is_ok() {
        thread::sleep(Duration::from_millis(20));
        sent = tcp.write_all(&[0]);
    }
}

fn to(port: u16, timeout: Duration) -> Connection {
    let endpoint = Endpoint::parse(&format!("https://127.0.0.1:{port}")).unwrap();
    let tls = TlsSpec { insecure: true, ..TlsSpec::default() };
    Connection::to(&endpoint, None, &tls, (timeout, 1 << 20)).unwrap()
}

/// What became of one request.
fn asked(mut connection: Connection, body: Vec<u8>) -> Lost {
    let (done, come) = mpsc::channel();
    thread::spawn(move || {
        drop(done.send(connection.exchange(b"PUT / HTTP/1.1\r\nhost:x\r\n\r\n", &body, false)))
    });
    let result = come.recv_timeout(NEVER);
    result.expect("it is bounded").expect_err("there is no answer")
}

#[test]
fn a_handshake_that_trickles_is_given_up_at_the_limit() {
    let lost = asked(to(server(|tcp| trickle(tcp, 22)), Duration::from_millis(300)), Vec::new());
    assert!(lost.message.contains("within 300ms") && lost.connected, "{lost:?}");
    let lost = asked(
        to(
            server(|tcp| drop(tcp.peek(&mut [0; 9]).map(|_| thread::sleep(NEVER)))),
            Duration::from_millis(300),
        ),
        Vec::new(),
    );
    assert!(lost.message.contains("within 300ms"), "{lost:?}");
}

#[test]
fn nobody_waits_for_a_handshake_that_is_not_wanted_any_more() {
    let mut connection = to(server(|tcp| trickle(tcp, 22)), NEVER * 3);
    let enough = Arc::new(AtomicBool::new(false));
    connection.give_up = enough.clone().into();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        enough.store(true, Ordering::Release);
    });
    let lost = asked(connection, Vec::new());
    assert!(lost.message.starts_with("no longer waiting"), "{lost:?}");
}

/// A first Ctrl-C while a run cleaned up was obeyed after the whole time-out, or when the server's wish to wait was over.
#[test]
fn nobody_waits_longer_than_so_long_after_it_was_asked_for() {
    let silent = server(|tcp| drop(tcp.peek(&mut [0; 9]).map(|_| thread::sleep(NEVER))));
    let mut connection = to(silent, NEVER * 3);
    let asked_ns = Arc::new(AtomicU64::new(0));
    connection.give_up = GiveUp::default().or_after(Arc::clone(&asked_ns), Duration::from_millis(300));
    assert!(!connection.is_unwanted() && connection.give_up.left().is_none(), "nobody asked");
    let begun = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        asked_ns.store(crate::ring::monotonic_ns(), Ordering::Release);
    });
    connection.pause(NEVER * 3);
    assert!(connection.is_unwanted() && begun.elapsed() >= Duration::from_millis(500), "it has its time");
    let lost = asked(connection, Vec::new());
    assert!(lost.message.starts_with("no longer waiting") && begun.elapsed() < NEVER, "{lost:?}");
}

/// The server's side of a connection, after the handshake.
fn shaken(mut tcp: TcpStream) -> rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
    let key = rcgen::KeyPair::generate().unwrap();
    let cert =
        rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let mut conn = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    while conn.is_handshaking() {
        conn.complete_io(&mut tcp).unwrap();
    }
    rustls::StreamOwned::new(conn, tcp)
}

#[test]
fn a_whole_exchange_goes_both_ways_and_a_second_one_on_the_same_connection() {
    const LONG: usize = 300_000;
    let port = server(|tcp| {
        let mut tls = shaken(tcp);
        for _ in 0..2 {
            let mut request = vec![0; 27 + LONG];
            tls.read_exact(&mut request).unwrap();
            assert!(request.ends_with(&[7; LONG]));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n{}", "x".repeat(LONG));
            tls.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut connection = to(port, NEVER);
    for _ in 0..2 {
        let answer = connection.exchange(b"PUT / HTTP/1.1\r\nhost:xx\r\n\r\n", &[7; LONG], false).unwrap();
        assert_eq!((answer.head.status, answer.body.len()), (200, LONG));
    }
}

#[test]
fn a_record_of_an_answer_that_trickles_is_given_up_at_the_limit() {
    let port = server(|tcp| trickle(shaken(tcp).sock, 23));
    let lost = asked(to(port, Duration::from_secs(2)), Vec::new());
    assert!(lost.message.contains("within 2s") && lost.connected, "{lost:?}");
}

#[test]
fn a_request_that_is_taken_byte_by_byte_is_given_up() {
    let port = server(|tcp| {
        let mut tcp = shaken(tcp).sock;
        while tcp.read(&mut [0; 512]).is_ok_and(|n| n > 0) {
            thread::sleep(Duration::from_millis(20));
        }
    });
    // More than the buffers of two sockets hold.
    let lost = asked(to(port, Duration::from_secs(2)), vec![0; 64 << 20]);
    assert!(lost.connected, "{lost:?}");
}
