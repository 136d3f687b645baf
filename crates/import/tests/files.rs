//! Files that the real tools wrote (fio 3.33, iperf 3.12, warp 1.3, GoBonnieGo 1.0.10, elbencho 3.1-9; names of hosts and paths replaced), and what
//! they say read by other means.

use std::path::PathBuf;

use plimsoll_import::{ImportError, ImportedRun, Source, SourceForm, warp};
use plimsoll_model::interval::SeriesCounts;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Histogram, OpKind};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn lines(name: &str) -> Vec<ImportedRun> {
    Source::open(&fixture(name)[..]).unwrap().lines().unwrap()
}

fn json(name: &str) -> serde_json::Value {
    let text = fixture(name);
    let from = text.windows(2).position(|w| w == b"{\n").unwrap();
    serde_json::from_slice(&text[from..]).unwrap()
}

fn codes(run: &ImportedRun) -> Vec<&str> {
    run.findings.iter().map(|f| f.code.as_str()).collect()
}

#[test]
fn fios_figures_are_fios() {
    let (run, truth) = (&lines("fio.json")[0], json("fio.json"));
    assert_eq!((run.tool_version.as_str(), run.form.as_str()), ("3.33", "json"));
    let labels: Vec<_> =
        run.lines.iter().map(|w| (w.name.as_str(), w.op.as_str(), w.load.as_str())).collect();
    assert_eq!(
        labels,
        [("randread", "read", "randread"), ("mixed", "read", "randrw"), ("mixed", "write", "randrw")]
    );
    let sizes: Vec<_> = run.lines.iter().map(|w| (w.size_bytes, w.concurrency)).collect();
    assert_eq!(sizes, [(4096, 4), (8192, 4), (8192, 4)]);
    for (w, at) in run.lines.iter().zip(["/jobs/0/read", "/jobs/1/read", "/jobs/1/write"]) {
        let t = truth.pointer(at).unwrap();
        let rate = w.ops_per_s.unwrap();
        assert_eq!(rate.value, t["iops"].as_f64().unwrap());
        assert!(
            rate.low == f64::NEG_INFINITY && rate.high == f64::INFINITY,
            "an interval that nobody measured"
        );
        assert_eq!(w.bytes_per_s.unwrap().value, t["bw_bytes"].as_f64().unwrap());
        assert_eq!(w.outcomes["ok"], t["total_ios"].as_u64().unwrap());
        let l = w.latency_ns.response.as_ref().unwrap();
        assert_eq!(l.p99, t.pointer("/clat_ns/percentile/99.000000").unwrap().as_u64());
        assert_eq!(l.mean, t.pointer("/clat_ns/mean").unwrap().as_f64().unwrap());
    }
    assert_eq!(codes(run), Vec::<&str>::new());
}

#[test]
fn percentiles_are_of_what_fio_made_them_of() {
    let (run, truth) = (&lines("fio-plus.json")[0], json("fio-plus.json"));
    assert_eq!(run.form, "json+");
    let l = run.lines[0].latency_ns.response.as_ref().unwrap();
    assert_eq!(l.p99, truth.pointer("/jobs/0/read/lat_ns/percentile/99.000000").unwrap().as_u64());
    assert!(run.lines[0].notes.iter().all(|n| !n.contains("clat")), "{:?}", run.lines[0].notes);
}

#[test]
fn hosts_of_fio_are_told_apart_and_their_sum_is_theirs() {
    let run = &lines("fio-client.json")[0];
    let names: Vec<&str> = run.lines.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["seq@127.0.0.1:8798", "seq@127.0.0.1:8799", "All clients"]);
    assert_eq!((run.lines[2].concurrency, run.lines[2].size_bytes), (2, 65536));
    assert_eq!(codes(run), Vec::<&str>::new());
}

#[test]
fn iperf3_is_bytes_with_the_interval_of_its_seconds() {
    let (run, truth) = (&lines("iperf3.json")[0], json("iperf3.json"));
    let w = &run.lines[0];
    assert_eq!((w.name.as_str(), w.op.as_str(), w.concurrency), ("tcp", "send", 2));
    let e = w.bytes_per_s.unwrap();
    assert_eq!(e.value, truth.pointer("/end/sum_received/bits_per_second").unwrap().as_f64().unwrap() / 8.0);
    assert!(e.low.is_finite() && e.low <= e.value && e.value <= e.high, "{e:?}");
    assert_eq!(w.ops_per_s, None);
    assert_eq!(run.facts["retransmits"], "0");
    let udp = &lines("iperf3-udp.json")[0];
    assert_eq!((udp.lines[0].name.as_str(), udp.facts["lost packets"].as_str()), ("udp", "1 of 1145"));
}

#[test]
fn gobonniegos_repeats_give_an_interval() {
    let (run, truth) = (&lines("gobonniego.json")[0], json_of(&fixture("gobonniego.json")));
    let ops: Vec<&str> = run.lines.iter().map(|w| w.op.as_str()).collect();
    assert_eq!(ops, ["write", "read", "total"]);
    let iops: Vec<f64> =
        truth["results"].as_array().unwrap().iter().map(|r| r["iops"].as_f64().unwrap()).collect();
    let w = &run.lines[2];
    assert_eq!(w.repeats, 3);
    for (mine, theirs) in w.each_ops_per_s.iter().zip(&iops) {
        assert!((mine.value / theirs - 1.0).abs() < 1e-9);
    }
    let e = w.ops_per_s.unwrap();
    assert!(e.low.is_finite() && e.low < e.value && e.n_eff == 3.0, "{e:?}");
    assert_eq!(codes(run), ["F88"], "files smaller than the memory");
}

fn json_of(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap()
}

#[test]
fn warps_own_figures_are_warps() {
    let text = zstd::decode_all(&fixture("warp-summary.json.zst")[..]).unwrap();
    let (run, truth) = (&lines("warp-summary.json.zst")[0], json_of(&text));
    let t = &truth["by_op_type"]["GET"];
    let seconds = t.pointer("/throughput/measure_duration_millis").unwrap().as_f64().unwrap() / 1e3;
    let w = run.lines.iter().find(|w| w.op == "get").unwrap();
    assert_eq!(
        w.ops_per_s.unwrap().value,
        t.pointer("/throughput/objects").unwrap().as_f64().unwrap() / seconds
    );
    assert_eq!((w.size_bytes, w.concurrency), (65536, 4));
    assert!(run.facts["command of warp"].contains("--access-key=(left out)"), "{:?}", run.facts);
}

/// Of elbencho 3.1-9, built from its source without S3: a file written and read, a mix by share and one by threads, and small files.
#[test]
fn elbenchos_tables_are_read_by_name() {
    for name in ["elbencho.csv", "elbencho.json"] {
        let runs = lines(name);
        let titles: Vec<&str> = runs.iter().map(|r| r.title.trim_start_matches("elbencho: ")).collect();
        assert_eq!(
            titles,
            ["WRITE, READ", "RWMIX90", "MIX-T1", "MKDIRS, WRITE, STAT, READ and 2 more"],
            "{name}: a file grows with each command"
        );
        let run = &runs[0];
        let told = (run.tool_version.as_str(), run.started_at.as_str());
        assert_eq!(told, ("3.1-9", "2026-11-24T11:05:58.525Z"));
        let w = &run.lines[0];
        assert_eq!(
            (w.op.as_str(), w.load.as_str(), w.size_bytes, w.concurrency),
            ("write", "write", 65536, 2)
        );
        // As it printed them: 5756 IOPS, 359 MiB/s, latency 77 us to 9.08 ms, 296 us on average.
        assert_eq!(w.ops_per_s.unwrap().value, 5756.0);
        assert_eq!((w.bytes_per_s.unwrap().value / 1048576.0) as u64, 359);
        let l = w.latency_ns.response.as_ref().unwrap();
        assert_eq!((l.min, l.mean, l.max, l.p99), (77_000, 296_000.0, 9_081_000, None));
        assert!(w.notes.iter().all(|n| !n.contains("page cache")), "{:?}", w.notes);
        if name.ends_with("json") {
            assert_eq!(w.outcomes["ok"], (64 << 20) / 65536, "from its bytes: 177 ms are rounded");
        }

        let seen = |run: &ImportedRun| -> Vec<(String, String, f64)> {
            let of = |w: &WorkloadSummary| (w.op.clone(), w.load.clone(), w.ops_per_s.unwrap().value);
            run.lines.iter().map(of).collect()
        };
        let mix = |w: f64, r: f64, load: &str| {
            vec![("write".into(), load.into(), w), ("read".to_owned(), load.to_owned(), r)]
        };
        assert_eq!(seen(&runs[1]), mix(4259.0, 38686.0, "rw"), "the main columns of a mix are its writes");
        assert_eq!(seen(&runs[2]), mix(3083.0, 3083.0, "rw"), "threads that read beside those that write");
        let ops: Vec<_> = runs[3].lines.iter().map(|w| (w.op.as_str(), w.ops_per_s.unwrap().value)).collect();
        let small =
            [("null", 5979.0), ("write", 14940.0), ("stat", 49483.0), ("read", 29911.0), ("delete", 47619.0)];
        assert_eq!(ops[..5], small);
        assert_eq!(runs[3].lines[4].outcomes["ok"], 800, "by its entries, not by 16 ms");
        assert!(runs[3].lines[1].notes.iter().any(|n| n.contains("page cache")));
    }
}

/// What the rows of the file say, counted without any code of ours.
fn counted(text: &str) -> Vec<(String, u64, u64)> {
    text.lines()
        .skip(1)
        .filter(|l| !l.starts_with('#'))
        .map(|l| {
            let f: Vec<&str> = l.split('\t').collect();
            (f[2].to_owned(), f[5].parse().unwrap(), f[f.len() - 2].parse().unwrap())
        })
        .collect()
}

#[test]
fn every_request_of_warp_is_in_one_slice() {
    let file = fixture("warp-mixed.csv.zst");
    let rows = counted(&String::from_utf8(zstd::decode_all(&file[..]).unwrap()).unwrap());
    let source = Source::open(&file[..]).unwrap();
    assert_eq!(source.form(), SourceForm::WarpRequests);
    let survey = warp::survey(source.into_reader()).unwrap();
    assert_eq!(survey.requests, rows.len() as u64);
    assert_eq!((survey.threads, survey.clients, survey.failed), (2, 1, 0));
    assert_eq!(survey.endpoints, ["http://127.0.0.1:9871"]);
    let (mut last, mut in_flight) = (None, 0u128);
    let mut sums: Vec<(OpKind, SeriesCounts, Histogram)> = Vec::new();
    let again = Source::open(&file[..]).unwrap();
    warp::replay::<ImportError>(again.into_reader(), &survey, |what| {
        if let warp::Replayed::Slice(_, interval) = what {
            assert!(last.is_none_or(|l| l <= interval.index), "slices come in order");
            last = Some(interval.index);
            in_flight += interval.client.in_flight_ns;
            for s in &interval.series {
                match sums.iter_mut().find(|(k, ..)| *k == s.id.kind) {
                    Some((_, counts, h)) => {
                        counts.merge(&s.counts);
                        h.merge(&s.response);
                    }
                    None => sums.push((s.id.kind, s.counts, s.response.clone())),
                }
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(
        in_flight,
        rows.iter().map(|r| u128::from(r.2)).sum::<u128>(),
        "what was in flight is the sum of all times"
    );
    for (name, kind) in
        [("PUT", OpKind::Put), ("GET", OpKind::Get), ("STAT", OpKind::Stat), ("DELETE", OpKind::Delete)]
    {
        let of: Vec<_> = rows.iter().filter(|r| r.0 == name).collect();
        let (_, counts, h) = sums.iter().find(|(k, ..)| *k == kind).unwrap();
        assert_eq!((counts.ok(), counts.started), (of.len() as u64, of.len() as u64), "{name}");
        if kind.moves_bytes() {
            assert_eq!(counts.bytes_ok, of.iter().map(|r| r.1).sum::<u64>(), "{name}");
        }
        assert_eq!(
            (h.count(), h.sum_ns()),
            (of.len() as u64, of.iter().map(|r| u128::from(r.2)).sum()),
            "{name}"
        );
    }
}

#[test]
fn cut_anywhere_a_file_is_refused_or_read_and_never_a_panic() {
    for name in ["fio.json", "iperf3.json", "gobonniego.json", "elbencho.csv", "elbencho.json"] {
        let whole = fixture(name);
        for cut in (0..whole.len()).step_by(whole.len() / 97 + 1) {
            let read = Source::open(&whole[..cut]).and_then(Source::lines);
            if let Err(e) = read {
                assert!(
                    !e.to_string().is_empty() && e.remedy.ends_with('.') || e.remedy.ends_with(')'),
                    "{e:?}"
                );
            }
        }
    }
    let whole = fixture("warp-mixed.csv.zst");
    for cut in (5..whole.len() - 1).step_by(701) {
        let read = Source::open(&whole[..cut]).and_then(|s| warp::survey(s.into_reader()));
        assert!(read.is_err(), "a cut at {cut} went unnoticed");
    }
}

#[test]
fn a_newer_version_is_refused_by_name() {
    for (name, old, new) in [
        ("fio.json", "fio-3.33", "fio-5.1"),
        ("gobonniego.json", "\"1.0.10\"", "\"2.0.0\""),
        ("iperf3.json", "iperf 3.12", "iperf 4.0"),
    ] {
        let text = String::from_utf8(fixture(name)).unwrap().replace(old, new);
        let e = Source::open(text.as_bytes()).unwrap().lines().unwrap_err();
        let version = new.trim_matches('"').trim_start_matches("fio-").trim_start_matches("iperf ");
        assert!(e.to_string().contains(version), "{name}: {e}");
    }
    let text = zstd::decode_all(&fixture("warp-mixed.csv.zst")[..]).unwrap();
    let text = String::from_utf8(text).unwrap().replacen("duration_ns", "duration_ns\tqueue_ns", 1);
    let e = warp::survey(Source::open(text.as_bytes()).unwrap().into_reader()).unwrap_err();
    assert!(e.to_string().contains("queue_ns"), "{e}");
}
