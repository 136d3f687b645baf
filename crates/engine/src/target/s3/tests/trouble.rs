//! Servers on their bad days: closed, slow, broken, throttling, redirecting.

use plimsoll_model::plan::OnThrottle;
use plimsoll_model::{OpKind, Outcome};

use super::server::{Reply, Server, error, http};
use super::{Case, op};

#[test]
fn an_idle_connection_that_was_closed_is_no_error() {
    // Each connection carries two answers and is closed without a word.
    let server = Server::start(|r| {
        let reply = http("200 OK", "", b"hello");
        if r.on_connection == 1 { Reply::Close(reply) } else { Reply::Bytes(reply) }
    });
    let ops = vec![op(OpKind::Get, 1, 5); 7];
    Case::new(&[&server]).run_both(&ops, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 7], "{:?}", ran.log);
        assert_eq!(ran.log.reconnects, 3);
    });
}

#[test]
fn a_new_connection_that_is_closed_is_one() {
    let server = Server::start(|_| Reply::Close(Vec::new()));
    Case::new(&[&server])
        .run_both(&[op(OpKind::Get, 1, 5)], |ran| assert_eq!(ran.outcomes(), [Outcome::Reset]));
    assert!(server.requests().len() <= 2, "it was asked again");
}

#[test]
fn nobody_listens() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Case::at(&[format!("http://127.0.0.1:{port}")]).run_both(
        &[op(OpKind::Get, 1, 5), op(OpKind::Put, 1, 5)],
        |ran| {
            assert_eq!(ran.outcomes(), [Outcome::NoConnection; 2]);
            assert!(ran.done.iter().all(|d| d.hold_until_ns > 0), "it is tried again at a pace");
            assert!(ran.log.failures[0].2.contains("refused"), "{:?}", ran.log);
        },
    );
}

#[test]
fn answers_of_all_shapes() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    let old = "HTTP/1.0 200 OK\r\n\r\nhello";
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
    let other = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell";
    let endless =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", "5\r\nhello\r\n".repeat(3));
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!";
    let broken = "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n";
    let no_http = "220 smtp ready\r\n";
    let excess = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n";
    for (text, want) in [
        (chunked, Outcome::Ok),
        (old, Outcome::Ok),
        (closing, Outcome::Ok),
        (short, Outcome::ShortBody),
        (other, Outcome::ShortBody),
        (long, Outcome::Protocol),
        (endless.as_str(), Outcome::Protocol),
        (broken, Outcome::Protocol),
        (no_http, Outcome::Protocol),
        (excess, Outcome::Protocol),
    ] {
        let reply = text.as_bytes().to_vec();
        let server = Server::start(move |_| Reply::Close(reply.clone()));
        Case::new(&[&server]).run_both(&[op(OpKind::Get, 1, 5); 3], |ran| {
            assert_eq!(ran.outcomes(), [want; 3], "{text:?} {:?}", ran.log);
        });
    }
}

#[test]
fn a_body_without_an_end_is_not_waited_for() {
    // The server keeps the connection open and sends no more: only the length tells.
    for head in ["Transfer-Encoding: chunked\r\n\r\n6\r\nhello!\r\n", "Content-Length: 500000\r\n\r\nhello!"]
    {
        let server = Server::start(move |_| Reply::Bytes(format!("HTTP/1.1 200 OK\r\n{head}").into_bytes()));
        Case::new(&[&server]).run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            assert_eq!(ran.outcomes(), [Outcome::Protocol], "{head:?} {:?}", ran.log);
        });
    }
}

#[test]
fn an_error_under_status_200_is_no_put() {
    let text = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>no</Message></Error>";
    let server = Server::start(move |_| Reply::Bytes(http("200 OK", "", text.as_bytes())));
    Case::new(&[&server]).run_both(&[op(OpKind::Put, 1, 5), op(OpKind::Delete, 1, 0)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Http5xx; 2], "{:?}", ran.log);
    });
    let fine = Server::start(move |_| Reply::Bytes(http("200 OK", "", b"<PutObjectResult/>")));
    Case::new(&[&fine]).run_both(&[op(OpKind::Put, 1, 5)], |ran| assert_eq!(ran.outcomes(), [Outcome::Ok]));
}

#[test]
fn a_large_body_cut_short_while_it_is_discarded() {
    let mut reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec();
    reply.extend_from_slice(&[0; 600_000]);
    let server = Server::start(move |_| Reply::Close(reply.clone()));
    Case::new(&[&server]).run_both(&[op(OpKind::Get, 1, 1_000_000)], |ran| {
        assert_eq!((ran.outcomes(), ran.done[0].bytes), (vec![Outcome::ShortBody], 0));
        assert_eq!(ran.moved, 600_000);
    });
}

#[test]
fn a_reset_in_mid_body_is_a_reset() {
    for body in [100_000, 1000] {
        let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n").into_bytes();
        reply.resize(reply.len() + body / 2, 0);
        let server = Server::start(move |_| Reply::Reset(reply.clone()));
        Case::new(&[&server]).run_both(&[op(OpKind::Get, 1, body as u64)], |ran| {
            assert_eq!(ran.outcomes(), [Outcome::Reset], "{:?}", ran.log);
        });
    }
}

#[test]
fn the_second_address_is_tried_when_the_first_refuses() {
    let (server, _) = Server::storing();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for keep_alive in [true, false] {
        let mut case = Case::new(&[&server]);
        case.target.keep_alive = keep_alive;
        case.slots = 2;
        case.first_address = Some(nobody);
        case.run_both(&[op(OpKind::Put, 1, 1000); 6], |ran| {
            assert_eq!(ran.outcomes(), [Outcome::Ok; 6], "{:?}", ran.log);
            let reconnects = if keep_alive { 0 } else { 4 };
            assert_eq!(ran.log.reconnects, reconnects, "an address that refuses is no connection");
        });
    }
    // None of both: one failure for each op, and each tries both again.
    let mut case = Case::at(&[format!("http://{nobody}")]);
    case.first_address = Some(nobody);
    case.run_both(&[op(OpKind::Get, 1, 5); 2], |ran| assert_eq!(ran.outcomes(), [Outcome::NoConnection; 2]));
}

#[test]
fn throttling_is_told_apart_and_obeyed() {
    for (reply, want, wait_s) in [
        (error("503 Slow Down", "SlowDown", "Retry-After: 7\r\n"), Outcome::Http503SlowDown, Some(7)),
        (error("429 Too Many Requests", "", ""), Outcome::Http429, None),
        (error("503 Service Unavailable", "ServiceUnavailable", ""), Outcome::Http5xx, Some(0)),
    ] {
        let server = Server::start(move |_| Reply::Bytes(reply.clone()));
        let mut case = Case::new(&[&server]);
        case.run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            assert_eq!((ran.outcomes(), ran.done[0].hold_until_ns), (vec![want], 0));
        });
        case.target.on_throttle = OnThrottle::Backoff;
        case.run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            let hold = ran.done[0].hold_until_ns;
            match wait_s {
                Some(0) => assert_eq!(hold, 0),
                Some(s) => assert!(hold >= s * 1_000_000_000, "{hold}"),
                None => assert!(hold > 0),
            }
        });
        case.target.on_throttle = OnThrottle::Pause;
        case.run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            assert_eq!(ran.done[0].hold_until_ns > 0, wait_s != Some(0));
        });
    }
}

/// `Retry-After: 0`, or a time that has passed, with every refusal: the same request was sent again at once, thousands of times a second.
#[test]
fn who_is_refused_again_and_again_without_a_pause_makes_one() {
    for asked in ["0", "Thu, 01 Jan 1970 00:00:10 GMT"] {
        let refusal = error("429 Too Many Requests", "", &format!("Retry-After: {asked}\r\n"));
        let server = Server::start(move |_| Reply::Bytes(refusal.clone()));
        let mut case = Case::new(&[&server]);
        case.target.on_throttle = OnThrottle::Backoff;
        case.run_both(&[op(OpKind::Get, 1, 5); 4], |ran| {
            let holds: Vec<u64> = ran.done.iter().map(|d| d.hold_until_ns).collect();
            assert_eq!(holds[0], 0, "once it is taken at its word");
            assert!(holds[1] > 0 && holds[2] > holds[1] && holds[3] > holds[2], "{holds:?}");
        });
    }
}

#[test]
fn silence_ends_with_the_time_out_and_costs_the_connection() {
    let server = Server::start(|r| {
        if r.connection == 0 { Reply::Silence } else { Reply::Bytes(http("200 OK", "", b"hello")) }
    });
    let mut case = Case::new(&[&server]);
    case.cancel_after_ms = Some(30);
    let ran =
        case.run::<crate::ring::epoll::EpollRing>(&[op(OpKind::Get, 1, 5), op(OpKind::Get, 1, 5)]).unwrap();
    assert_eq!(ran.outcomes(), [Outcome::Timeout, Outcome::Ok]);
    assert_eq!(ran.log.reconnects, 1);
}

#[test]
fn redirects_lead_to_servers_that_were_named() {
    let (to, store) = Server::storing();
    let location = format!("Location: {}/b/elsewhere\r\n", to.url());
    let from = Server::start(move |_| Reply::Bytes(http("307 Temporary Redirect", &location, b"<x/>")));
    let ops = [op(OpKind::Put, 1, 1000), op(OpKind::Get, 1, 1000)];
    let mut case = Case::new(&[&from]);
    case.run_both(&ops, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Http3xx; 2], "{:?}", ran.log);
        assert!(ran.log.failures[0].2.contains("--redirect-to"), "{:?}", ran.log);
        assert!(ran.redirects.is_empty());
    });
    assert!(to.requests().is_empty(), "it was given a signature");
    case.target.redirects_to = vec![to.url()];
    case.run_both(&ops, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 2], "{:?}", ran.log);
        assert_eq!(ran.done[0].endpoint, 0);
        assert_eq!(ran.redirects, [(from.url(), to.url(), 2)]);
    });
    assert_eq!(store.lock().unwrap().len(), 1);
    // Round and round: the redirect itself is the answer in the end.
    let turning = Server::start(|r| {
        Reply::Bytes(http("307 R", &format!("Location: http://{}/\r\n", r.headers["host"]), b""))
    });
    Case::new(&[&turning])
        .run_both(&[op(OpKind::Get, 1, 5)], |ran| assert_eq!(ran.outcomes(), [Outcome::Http3xx]));
}

#[test]
fn what_only_looks_like_a_server_that_was_named_is_none() {
    let (named, evil) = (Server::storing().0, Server::start(|_| Reply::Bytes(http("200 OK", "", b"hello"))));
    let (to, port) = (named.url(), evil.port);
    for location in [
        format!("{to}@127.0.0.1:{port}/b/k"),
        format!("{to}{port}/b/k"),
        format!("{to}\\@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/?{to}/"),
        format!("//127.0.0.1:{port}/b/k"),
        "/b/elsewhere".to_owned(),
    ] {
        let head = format!("Location: {location}\r\n");
        let from = Server::start(move |_| Reply::Bytes(http("307 R", &head, b"")));
        let mut case = Case::new(&[&from]);
        case.target.redirects_to = vec![to.clone()];
        case.run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            assert_eq!(ran.outcomes(), [Outcome::Http3xx], "{location}");
        });
    }
    assert!(named.requests().is_empty() && evil.requests().is_empty());
}

#[test]
fn of_a_redirect_only_the_server_and_the_path_are_told() {
    let query = "X-Amz-Security-Token=TOPSECRET&X-Amz-Credential=TOPSECRET&sig=TOPSECRET&token=TOP@SECRET";
    for (location, named, shown, why) in [
        (
            format!("http://127.0.0.1:1/b/k?{query}"),
            None,
            "'http://127.0.0.1:1/b/k'",
            "allow this one with --redirect-to http://127.0.0.1:1",
        ),
        (
            format!("http://u:hunter2@127.0.0.1:1/b/k?{query}"),
            Some("http://127.0.0.1:1"),
            "'http://127.0.0.1:1/b/k'",
            "has a user name",
        ),
        (
            format!("http://127.0.0.1:1/b/k%3F{query}"),
            None,
            "'http://127.0.0.1:1/b/k'",
            "--redirect-to http://127.0.0.1:1",
        ),
        (format!("/b/k?{query}"), None, "'/b/k'", "does not begin with http://"),
        (format!("http://u:hunter2{}@127.0.0.1:1/", "x".repeat(2000)), None, "too long", "not followed"),
    ] {
        let head = format!("Location: {location}\r\n");
        let from = Server::start(move |_| Reply::Bytes(http("307 R", &head, b"")));
        let mut case = Case::new(&[&from]);
        case.target.redirects_to = named.map(str::to_owned).into_iter().collect();
        case.run_both(&[op(OpKind::Get, 1, 5)], |ran| {
            let said = &ran.log.failures[0].2;
            assert!(said.contains(shown) && said.contains(why), "{said}");
            assert!(!said.contains("SECRET") && !said.contains("hunter2"), "{said}");
            assert!(named.is_none() || !said.contains("allow this one"), "{said}");
        });
    }
}

#[test]
fn bodies_wait_for_continue() {
    let (server, store) = Server::storing();
    let mut case = Case::new(&[&server]);
    case.target.expect_continue = true;
    case.run_both(&[op(OpKind::Put, 1, 200_000), op(OpKind::Put, 2, 0)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 2], "{:?}", ran.log);
    });
    assert_eq!(store.lock().unwrap().values().map(Vec::len).sum::<usize>(), 200_000);

    // A refusal instead: no byte of the body is sent.
    let server = Server::start(|_| Reply::Close(error("403 Forbidden", "AccessDenied", "")));
    let mut case = Case::new(&[&server]);
    case.target.expect_continue = true;
    case.run_both(&[op(OpKind::Put, 1, 200_000)], |ran| {
        assert_eq!((ran.outcomes(), ran.moved), (vec![Outcome::Http403], 0));
    });
}

#[test]
fn a_server_that_never_says_continue_gets_its_body_all_the_same() {
    let server = Server::start_deaf(|_| Reply::Bytes(http("200 OK", "", b"")));
    let mut case = Case::new(&[&server]);
    case.target.expect_continue = true;
    case.continue_ns = 5_000_000;
    case.slots = 2;
    case.run_both(&[op(OpKind::Put, 1, 200_000), op(OpKind::Put, 2, 10), op(OpKind::Put, 3, 10)], |ran| {
        assert_eq!((ran.outcomes(), ran.moved), (vec![Outcome::Ok; 3], 200_020), "{:?}", ran.log);
    });
}

#[test]
fn connections_are_closed_when_asked() {
    let (server, _) = Server::storing();
    let mut case = Case::new(&[&server]);
    case.target.keep_alive = false;
    case.run_both(&[op(OpKind::Put, 1, 5), op(OpKind::Stat, 1, 0)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 2]);
        assert_eq!(ran.log.reconnects, 1, "this server would keep it open");
    });
    assert!(server.requests().iter().all(|r| r.headers["connection"] == "close"));
}

#[test]
fn a_body_that_comes_in_pieces_is_discarded_all_the_same() {
    let server = Server::start(|_| {
        let mut pieces = vec![b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n".to_vec()];
        pieces.extend(vec![vec![7u8; 20_000]; 10]);
        Reply::Pieces(pieces)
    });
    Case::new(&[&server]).run_both(&[op(OpKind::Get, 1, 200_000); 3], |ran| {
        assert_eq!((ran.outcomes(), ran.moved), (vec![Outcome::Ok; 3], 600_000), "{:?}", ran.log);
        // A little may come with a head.
        assert!(ran.discarded >= 500_000 && ran.log.reconnects == 0, "{} {:?}", ran.discarded, ran.log);
    });
}
