//! Each kind of op against a server that behaves.

use plimsoll_model::plan::{Checksum, PayloadSigning};
use plimsoll_model::{Op, OpKind, Outcome};
use plimsoll_s3::sign::sha256_hex;

use super::server::{Reply, Server, error, http};
use super::{Case, op};
use crate::target::s3::config::ClientOptions;
use crate::target::s3::content::Layout;

const SIZES: [u64; 6] = [0, 1, 31, 4096, 65_537, 3_000_000];

#[test]
fn what_is_put_is_what_is_got() {
    let (server, store) = Server::storing();
    let mut case = Case::new(&[&server]);
    case.slots = 3;
    let puts: Vec<Op> = SIZES.iter().zip(0..).map(|(s, k)| op(OpKind::Put, k, *s)).collect();
    let gets: Vec<Op> = puts.iter().map(|o| Op { kind: OpKind::Get, ..*o }).collect();
    let total: u64 = SIZES.iter().sum();
    case.run_both(&puts, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 6]);
        assert_eq!((ran.moved, ran.done.iter().map(|d| d.bytes).sum()), (total, total));
        assert_eq!(ran.log.reconnects, 0);
    });
    case.run_both(&gets, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 6], "{:?}", ran.log);
        assert_eq!((ran.moved, ran.first_bytes), (total, 6));
        // Large bodies never reach user space, but for what came with their head.
        assert!(ran.discarded > 3_000_000, "{}", ran.discarded);
    });
    case.verify = true;
    case.run_both(&gets, |ran| {
        assert_eq!((ran.outcomes(), ran.moved, ran.discarded), (vec![Outcome::Ok; 6], total, 0));
    });
    let stats: Vec<Op> = puts.iter().map(|o| op(OpKind::Stat, o.key, 0)).collect();
    case.run_both(&stats, |ran| assert_eq!(ran.outcomes(), [Outcome::Ok; 6]));

    for object in store.lock().unwrap().values_mut().filter(|o| o.len() == 3_000_000) {
        object[2_000_001] ^= 0x40;
    }
    case.run_both(&gets[5..], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::VerifyMismatch]);
        let (key, d) = &ran.log.mismatches[0];
        assert_eq!((d.offset, d.expected[0] ^ d.found[0]), (2_000_001, 0x40));
        assert!(key.starts_with("run/"));
        assert_eq!(ran.done[0].bytes, 0);
    });
}

#[test]
fn ranges_are_verified_at_their_offset() {
    let (server, _) = Server::storing();
    let mut case = Case::new(&[&server]);
    case.run_both(&[op(OpKind::Put, 1, 400_000)], |ran| assert_eq!(ran.outcomes(), [Outcome::Ok]));
    case.verify = true;
    let ranges: Vec<Op> = [(0, 10), (65_530, 100), (131_072, 70_000), (399_999, 1)]
        .map(|(offset, length)| Op { kind: OpKind::GetRange, key: 1, offset, length })
        .to_vec();
    case.run_both(&ranges, |ran| assert_eq!(ran.outcomes(), [Outcome::Ok; 4], "{:?}", ran.log));
}

#[test]
fn deletes_and_what_is_not_there() {
    let (server, store) = Server::storing();
    let case = Case::new(&[&server]);
    let ops =
        [op(OpKind::Put, 1, 10), op(OpKind::Delete, 1, 0), op(OpKind::Get, 1, 10), op(OpKind::Stat, 1, 0)];
    case.run_both(&ops, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok, Outcome::Ok, Outcome::Http404, Outcome::Http404]);
        assert!(ran.log.failures[0].2.contains("NoSuchKey"));
        // One connection for all: errors do not cost it.
        assert_eq!(ran.log.reconnects, 0);
    });
    assert!(store.lock().unwrap().is_empty());
}

#[test]
fn signed_bodies_have_the_hash_that_the_head_says() {
    let (server, _) = Server::storing();
    for signing in [PayloadSigning::Full, PayloadSigning::Pool] {
        let mut case = Case::new(&[&server]);
        case.target.signing = signing;
        case.target.checksum = Checksum::Crc32c;
        case.sizes = vec![100_000];
        case.layout = if signing == PayloadSigning::Pool { Layout::Pool } else { Layout::Stamped };
        let puts: Vec<Op> = (0..5).map(|k| op(OpKind::Put, k, 100_000)).collect();
        case.run_both(&puts, |ran| assert_eq!(ran.outcomes(), [Outcome::Ok; 5]));
        case.verify = true;
        let gets: Vec<Op> = (0..5).map(|k| op(OpKind::Get, k, 100_000)).collect();
        case.run_both(&gets, |ran| assert_eq!(ran.outcomes(), [Outcome::Ok; 5], "{signing:?} {:?}", ran.log));
    }
    for r in server.requests().iter().filter(|r| r.method == "PUT") {
        assert_eq!(r.headers["x-amz-content-sha256"].as_bytes(), sha256_hex(&r.body));
        let crc = plimsoll_s3::checksum::crc_of(plimsoll_s3::CrcKind::Crc32c, &r.body);
        assert_eq!(r.headers["x-amz-checksum-crc32c"].as_bytes(), crc.as_bytes());
    }
}

#[test]
fn checksums_of_answers_are_checked() {
    let body = vec![7u8; 50_000];
    let good = plimsoll_s3::checksum::crc_of(plimsoll_s3::CrcKind::Crc64Nvme, &body);
    let good = String::from_utf8(good.as_bytes().to_vec()).unwrap();
    for (sum, want) in
        [(good.as_str(), Outcome::Ok), ("AAAAAAAAAAA=", Outcome::ChecksumMismatch), ("AAAA-3", Outcome::Ok)]
    {
        let reply = http("200 OK", &format!("x-amz-checksum-crc64nvme: {sum}\r\n"), &body);
        let server = Server::start(move |_| Reply::Bytes(reply.clone()));
        let mut case = Case::new(&[&server]);
        case.target.checksum = Checksum::Crc64nvme;
        case.run_both(&[op(OpKind::Get, 1, 50_000)], |ran| {
            assert_eq!((ran.outcomes(), ran.discarded), (vec![want], 0));
        });
    }
}

fn multipart_server(fail_part: Option<&'static str>) -> Server {
    Server::start(move |r| {
        let bytes = match (r.method.as_str(), r.query.as_str()) {
            ("POST", "uploads=") => http(
                "200 OK",
                "",
                b"<InitiateMultipartUploadResult><UploadId>id/1</UploadId></InitiateMultipartUploadResult>",
            ),
            ("PUT", q) if fail_part.is_some_and(|p| q.contains(p)) => error("500 Oops", "InternalError", ""),
            ("PUT", q) => http("200 OK", &format!("ETag: \"{}\"\r\n", q.split('&').next().unwrap()), b""),
            ("POST", _) => http(
                "200 OK",
                "",
                b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>",
            ),
            _ => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        };
        Reply::Bytes(bytes)
    })
}

fn multipart_case(server: &Server, part_bytes: u64, part_concurrency: u32) -> Case {
    let mut case = Case::new(&[server]);
    case.options = ClientOptions {
        part_bytes,
        part_concurrency,
        multipart: true,
        max_multipart_bytes: 1_000_000,
        ..ClientOptions::default()
    };
    case
}

#[test]
fn an_upload_in_parts_is_one_op() {
    let server = multipart_server(None);
    let case = multipart_case(&server, 300_000, 3);
    case.run_both(&[op(OpKind::Multipart, 4, 1_000_000), op(OpKind::Multipart, 5, 10)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok, Outcome::Ok], "{:?}", ran.log);
        assert_eq!((ran.done[0].bytes, ran.done[1].bytes, ran.moved), (1_000_000, 10, 1_000_010));
        assert_eq!(ran.log.parts.len(), 5);
        assert_eq!(ran.log.parts.iter().map(|p| p.1).sum::<u64>(), 1_000_010);
    });
    let requests = server.requests();
    let complete = requests.iter().find(|r| r.method == "POST" && r.query == "uploadId=id%2F1").unwrap();
    let text = String::from_utf8_lossy(&complete.body).into_owned();
    let numbers: Vec<_> = text.match_indices("<PartNumber>").map(|(i, _)| &text[i + 12..i + 13]).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    assert!(text.contains("&quot;partNumber=3&quot;"));
    // The parts, put together, are the object.
    let mut parts: Vec<_> = requests.iter().filter(|r| r.method == "PUT" && r.body.len() > 10).collect();
    parts.sort_by_key(|r| r.query.clone());
    parts.dedup_by_key(|r| r.query.clone());
    let whole: Vec<u8> = parts.iter().flat_map(|r| r.body.clone()).collect();
    let content = case.config().content;
    assert_eq!(whole.len(), 1_000_000);
    content.check(4, 0, 0, 1_000_000, &whole).unwrap();
}

#[test]
fn an_upload_that_fails_is_taken_back() {
    let server = multipart_server(Some("partNumber=2&"));
    let case = multipart_case(&server, 100_000, 2);
    case.run_both(&[op(OpKind::Multipart, 4, 1_000_000), op(OpKind::Stat, 1, 0)], |ran| {
        assert_eq!(ran.outcomes()[0], Outcome::Http5xx);
        assert_eq!(ran.log.failures[0].1, OpKind::UploadPart);
    });
    assert!(server.requests().iter().any(|r| r.method == "DELETE" && r.query == "uploadId=id%2F1"));
}

#[test]
fn an_upload_that_is_cancelled_is_taken_back() {
    let server = Server::start(|r| match (r.method.as_str(), r.query.as_str()) {
        ("POST", "uploads=") => {
            let xml =
                b"<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>";
            Reply::Bytes(http("200 OK", "", xml))
        }
        ("PUT", _) => Reply::Silence,
        _ => Reply::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    });
    for why in [Outcome::Cancelled, Outcome::Timeout] {
        server.seen.lock().unwrap().clear();
        let mut case = multipart_case(&server, 300_000, 3);
        case.cancel_after_ms = Some(100);
        case.cancel_as = why;
        case.run_both(&[op(OpKind::Multipart, 4, 1_000_000)], |ran| {
            assert_eq!(ran.outcomes(), [why]);
            assert_eq!(
                ran.log.failures.is_empty(),
                why == Outcome::Cancelled,
                "a cancelled op is no failure"
            );
            let parts = ran.log.parts.iter().filter(|p| p.0 == why);
            assert_eq!(parts.count(), 3, "{:?}", ran.log.parts);
        });
        let aborted = server.requests().iter().any(|r| r.method == "DELETE" && r.query == "uploadId=id");
        assert!(aborted, "{why:?}");
    }
}

#[test]
fn success_that_is_none() {
    let copy_error = http("200 OK", "", b"<Error><Code>InternalError</Code></Error>");
    let copy_good = http("200 OK", "", b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>");
    let deleted = http("200 OK", "", b"<DeleteResult></DeleteResult>");
    let denied = http(
        "200 OK",
        "",
        b"<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>",
    );
    for (kind, reply, want) in [
        (OpKind::Copy, copy_error, Outcome::Http5xx),
        (OpKind::Copy, copy_good, Outcome::Ok),
        (OpKind::DeleteBatch, deleted, Outcome::Ok),
        (OpKind::DeleteBatch, denied, Outcome::Http403),
        (OpKind::List, http("200 OK", "", b"<ListBucketResult></ListBucketResult>"), Outcome::Ok),
        (OpKind::GetRange, http("200 OK", "", b"0123456789"), Outcome::Protocol),
    ] {
        let server = Server::start(move |_| Reply::Bytes(reply.clone()));
        let mut case = Case::new(&[&server]);
        case.options.delete_batch = 3;
        case.options.list_delimiter = Some("/".into());
        case.run_both(&[op(kind, 1, 10)], |ran| assert_eq!(ran.outcomes(), [want], "{kind} {:?}", ran.log));
        let r = &server.requests()[0];
        match kind {
            OpKind::DeleteBatch => assert_eq!(String::from_utf8_lossy(&r.body).matches("<Key>").count(), 3),
            OpKind::Copy => assert!(r.headers["x-amz-copy-source"].starts_with("/b/run/")),
            OpKind::List => assert!(r.query.contains("delimiter=%2F") && r.query.contains("prefix=run%2F")),
            _ => {}
        }
    }
}

#[test]
fn endpoints_take_turns() {
    let (a, _) = Server::storing();
    let (b, _) = Server::storing();
    let mut case = Case::new(&[&a, &b]);
    case.slots = 2;
    let puts: Vec<Op> = (0..10).map(|k| op(OpKind::Put, k, 100)).collect();
    case.run_both(&puts, |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok; 10]);
        assert_eq!(ran.done.iter().filter(|d| d.endpoint == 0).count(), 5);
    });
    assert_eq!(a.requests().len(), b.requests().len());
}
