//! hyper reads the same answers: where both find an answer, it is the same one, and neither refuses a good one.

use std::pin::Pin;

use hyper::Request;
use hyper::body::Body as _;
use hyper_util::rt::TokioIo;
use plimsoll_s3::response::{ResponseEvent, ResponseParser};
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: Vec<u8>,
}

/// What our parser makes of bytes that are followed by the end of the connection.
fn ours(bytes: &[u8], head: bool) -> Option<Answer> {
    let mut parser = ResponseParser::new();
    parser.begin(head);
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let (used, event) = parser.step(&bytes[at..]).ok()?;
        at += used;
        match event {
            ResponseEvent::NeedMore => {
                parser.closed().ok()?;
                break;
            }
            ResponseEvent::Body { len } => body.extend_from_slice(&bytes[at - len..at]),
            ResponseEvent::Continue | ResponseEvent::Head => {}
            ResponseEvent::Done => break,
        }
    }
    Some(Answer { status: parser.head().status, body })
}

/// What hyper makes of them.
fn hypers(runtime: &tokio::runtime::Runtime, bytes: &[u8], head: bool) -> Option<Answer> {
    runtime.block_on(async {
        let (client, mut server) = tokio::io::duplex(1 << 20);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(client)).await.ok()?;
        tokio::spawn(connection);
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            // hyper refuses an answer that comes before the request.
            let mut buffer = [0; 256];
            let _ = tokio::io::AsyncReadExt::read(&mut server, &mut buffer).await;
            let _ = server.write_all(&bytes).await;
            let _ = server.shutdown().await;
        });
        let method = if head { "HEAD" } else { "GET" };
        let request = Request::builder().method(method).uri("/").body(String::new()).ok()?;
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let mut incoming = response.into_body();
        let mut body = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
            if let Ok(data) = frame.ok()?.into_data() {
                body.extend_from_slice(&data);
            }
        }
        Some(Answer { status, body })
    })
}

/// A good answer: interim ones before it, then a body of known length, in chunks, or until the end.
fn good() -> impl Strategy<Value = Vec<u8>> {
    let interim = prop_oneof![
        Just(""),
        Just("HTTP/1.1 100 Continue\r\n\r\n"),
        Just("HTTP/1.1 103 Early\r\na: b\r\n\r\n")
    ];
    let status = prop_oneof![Just(200u16), Just(204), Just(206), Just(304), Just(404), Just(503)];
    let header = prop_oneof![Just("Connection: close\r\n".to_string()), "x-[a-z]{1,8}: [!-~]{0,20}\r\n"];
    let body = proptest::collection::vec(any::<u8>(), 0..300);
    (interim, status, proptest::collection::vec(header, 0..4), body, 0u8..3, 1usize..60).prop_map(
        |(interim, status, headers, body, kind, chunk)| {
            let empty = matches!(status, 204 | 304);
            let body = if empty { Vec::new() } else { body };
            let mut out = format!("{interim}HTTP/1.1 {status} X\r\n{}", headers.concat()).into_bytes();
            match kind {
                0 => out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()),
                1 if !empty => {
                    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    for c in body.chunks(chunk) {
                        out.extend_from_slice(format!("{:X};e=1\r\n", c.len()).as_bytes());
                        out.extend_from_slice(c);
                        out.extend_from_slice(b"\r\n");
                    }
                    out.extend_from_slice(b"0\r\nx-t: 1\r\n\r\n");
                    return out;
                }
                _ => out.extend_from_slice(b"\r\n"),
            }
            out.extend_from_slice(&body);
            out
        },
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn good_answers_are_read_alike(bytes in good()) {
        let us = ours(&bytes, false);
        prop_assert!(us.is_some(), "{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(us, hypers(&runtime(), &bytes, false));
    }

    /// One byte changed, or the end cut off: who still finds an answer finds the same.
    #[test]
    fn damaged_answers_are_not_read_differently(bytes in good(), at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = bytes;
        let i = at.index(bytes.len());
        if cut { bytes.truncate(i) } else { bytes[i] = with }
        if let (Some(us), Some(they)) = (ours(&bytes, false), hypers(&runtime(), &bytes, false)) {
            prop_assert_eq!(us, they, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
