//! An S3 exchange over plain HTTP allocates nothing, whatever the op.

mod common;
mod counting;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use common::{run, stage, total, worker};
use counting::ALLOCATIONS;
use plimsoll_engine::ring::{Ring, RingSpec, uring::UringRing};
use plimsoll_engine::target::s3::{ClientOptions, Config, KeyNames, Layout, ObjectContent, Setup};
use plimsoll_engine::{Clock, Dist, KindSpec, OpPlace, SeriesSpec, SizeSpec, StopRule, TargetConfig};
use plimsoll_model::OpKind;
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{DataSpec, Plan, RingChoice, S3Target, TargetSpec};
use plimsoll_s3::{Credentials, Endpoint};

/// The answer to a request by its first words; bodies of requests are read and thrown away.
fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut body = vec![0; 1 << 20];
    let mut line = String::new();
    loop {
        let (mut first, mut length, mut range) = (String::new(), 0, 0);
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let text = line.trim_end().to_lowercase();
            if first.is_empty() {
                first = text;
            } else if text.is_empty() {
                break;
            } else if let Some(v) = text.strip_prefix("content-length:") {
                length = v.trim().parse().unwrap_or(0);
            } else if let Some(v) = text.strip_prefix("range:bytes=") {
                let (a, b) = v.split_once('-').unwrap_or(("0", "0"));
                range = b.parse::<usize>().unwrap_or(0) + 1 - a.parse::<usize>().unwrap_or(0);
            } else if text.starts_with("x-amz-copy-source:") {
                first = "copy".into();
            }
        }
        reader.read_exact(&mut body[..length])?;
        let empty = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_owned();
        let xml = |x: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{x}", x.len());
        let answer = if first == "copy" {
            xml("<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")
        } else if first.contains("uploads=") {
            xml("<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
        } else if first.starts_with("post") && first.contains("delete=") {
            xml("<DeleteResult></DeleteResult>")
        } else if first.starts_with("post") {
            xml("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
        } else if first.contains("list-type=2") {
            xml(&format!("<ListBucketResult>{}</ListBucketResult>", " ".repeat(50_000)))
        } else if first.starts_with("get") {
            let (status, n) = if range > 0 { ("206 Partial", range) } else { ("200 OK", GET_BYTES as usize) };
            format!("HTTP/1.1 {status}\r\nContent-Length: {n}\r\n\r\n{}", "x".repeat(n))
        } else if first.starts_with("delete") {
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
        } else {
            empty
        };
        out.write_all(answer.as_bytes())?;
    }
}

const GET_BYTES: u64 = 60_000;

fn start_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    url
}

/// A target as a plan has it, with its defaults.
fn target() -> S3Target {
    let text = "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"http://x\"]\nbucket = \"b\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\ntarget = \"t\"\nmix = { get = 1 }\n";
    let plan = Plan::from_toml(text).unwrap();
    match plan.targets.into_values().next() {
        Some(TargetSpec::S3(t)) => t,
        other => panic!("{other:?}"),
    }
}

fn config(url: &str) -> TargetConfig {
    let setup = Setup {
        endpoints: vec![Endpoint::parse(url).unwrap()],
        redirects: Vec::new(),
        keys_in_use: Credentials { access_key: "a".into(), secret_key: "s".into(), session_token: None }
            .into(),
        region: "us-east-1".into(),
        target: target(),
        keys: KeyNames { prefix: "p/".into(), prefixes: 3, dataset: None, existing: None },
        content: Arc::new(ObjectContent::new(1, DataSpec::default(), Layout::Stamped, &[])),
        object: ClientOptions {
            part_bytes: 20_000,
            part_concurrency: 2,
            multipart: true,
            max_multipart_bytes: GET_BYTES,
            delete_batch: 5,
            ..ClientOptions::default()
        },
    };
    TargetConfig::S3(Arc::new(Config::new(setup).unwrap()))
}

fn allocations(url: &str, kind: OpKind, ring: RingChoice, ops: u64) -> u64 {
    let mut w = worker(kind, config(url), 1 << 20, Dist::Uniform);
    let within = (kind == OpKind::GetRange).then_some(SizeSpec::Fixed(2 * GET_BYTES));
    w.source.kinds = vec![KindSpec {
        kind,
        weight: 1,
        size: SizeSpec::Fixed(GET_BYTES),
        place: OpPlace::Keys { first: 0, count: 1000, stride: 1, dist: Dist::Uniform, size_seed: 1, within },
    }];
    let part = SeriesSpec { kind: OpKind::UploadPart, shape: SeriesShape::default(), trace_series: 0 };
    w.series.push(part);
    w.ring = ring;
    w.stop = StopRule { ops: Some(ops), ..StopRule::default() };
    let before = ALLOCATIONS.load(Relaxed);
    let (slices, ends) = run(stage(Clock::Real, vec![w]));
    assert_eq!((&ends[0].error, ends[0].starved_slices), (&None, 0));
    assert_eq!(total(&slices, kind).ok(), ops, "{kind}: {:?}", ends[0].errors);
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn more_exchanges_allocate_no_more() {
    let url = start_server();
    let kinds = [
        OpKind::Put,
        OpKind::Get,
        OpKind::GetRange,
        OpKind::Stat,
        OpKind::List,
        OpKind::Delete,
        OpKind::DeleteBatch,
        OpKind::Copy,
        OpKind::Multipart,
    ];
    // A container may forbid io_uring; epoll is then what there is.
    let uring = UringRing::open(&RingSpec { entries: 8, ..RingSpec::default() });
    let rings = [RingChoice::Epoll, RingChoice::IoUring];
    for ring in &rings[..1 + usize::from(uring.is_ok())] {
        for kind in kinds {
            let few = allocations(&url, kind, *ring, 50);
            let many = allocations(&url, kind, *ring, 1000);
            assert!(few > 0, "the counter must see the worker's own set-up");
            assert_eq!(few, many, "{kind} on {ring:?}");
        }
    }
}
