use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::plan::{
    BlockOptions, BlockTarget, FioJob, KeyDist, PLAN_VERSION, RunOptions, SizeDist, Stage, TargetSpec,
    Workload,
};
use plimsoll_model::summary::SCHEMA;
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{Environment, Finding, Interval, Level, OpKind, Plan, RunSummary, Series, SeriesId};
use plimsoll_store::{EnvFile, Mark, RunDir, rundir::ENV_FORMAT};

use super::*;

const GRID_NS: u64 = 100_000_000;
const SLICES: u64 = 20;
const PER_SLICE: u64 = 50;

fn workload(name: &str, group: u32, merged: bool, write: bool) -> Workload {
    let kind = if write { OpKind::Write } else { OpKind::Read };
    Workload {
        name: name.into(),
        target: Some("t".into()),
        mix: BTreeMap::from([(kind, 1)]),
        size: SizeDist::Fixed(Size(4096)),
        keys: KeyDist::Uniform,
        concurrency: 4,
        jobs: Some(1),
        pacing: Default::default(),
        stop: Default::default(),
        verify: false,
        data: Default::default(),
        object: None,
        block: Some(BlockOptions {
            fio: Some(FioJob {
                job: "j".into(),
                group,
                group_reporting: merged,
                options: BTreeMap::from([("rw".into(), "randread".into()), ("iodepth".into(), "4".into())]),
                global_options: BTreeMap::from([
                    ("bs".into(), "4k".into()),
                    ("thread".into(), String::new()),
                ]),
                ..FioJob::default()
            }),
            ..BlockOptions::default()
        }),
        machines: None,
    }
}

/// A run with known counts: 50 reads of 4 KiB per slice and workload, each of 1 ms of which 100 us are submission.
fn run(dir: &std::path::Path, workloads: Vec<Workload>) -> RunDir {
    let stage = Stage { name: None, warmup: Span(Duration::ZERO), workloads: workloads.clone(), cell: None };
    let target = BlockTarget {
        also: Vec::new(),
        path: "/dev/x".into(),
        size: None,
        offset: None,
        buffered: false,
        destroy_data: None,
        layout: false,
        invalidate: true,
        existing: false,
        embedded: None,
    };
    let plan = Plan {
        version: PLAN_VERSION,
        name: None,
        seed: 1,
        options: RunOptions::default(),
        labels: BTreeMap::new(),
        expect: Vec::new(),
        targets: BTreeMap::from([("t".into(), TargetSpec::Block(target))]),
        stages: vec![stage.clone()],
        controller: None,
    };
    let run = RunDir::create_at(&dir.join("run")).unwrap();
    run.write_plan(&plan).unwrap();
    let environment = Environment {
        plimsoll_version: "0.1.0".into(),
        started_at: "2026-11-21T04:53:28Z".into(),
        ..Environment::default()
    };
    let env = EnvFile {
        format: ENV_FORMAT.into(),
        id: run.id(),
        environment,
        rerun: String::new(),
        clock_offsets_ns: BTreeMap::new(),
    };
    run.write_env(&env).unwrap();
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    let mark = Mark::StageStart {
        stage: 0,
        at_ns: 0,
        spec: Box::new(stage),
        endpoints: Vec::new(),
        workers: 1,
        ring: "io_uring".into(),
        slots: 0,
    };
    w.mark(&mark).unwrap();
    w.mark(&Mark::WarmupEnd { stage: 0, at_ns: 0 }).unwrap();
    let mut all = Vec::new();
    for index in 0..SLICES {
        let mut interval = Interval::empty(index);
        interval.client =
            ClientCounts { workers: 1, alive_ns: GRID_NS, cpu_ns: GRID_NS / 4, ..Default::default() };
        for (i, wl) in workloads.iter().enumerate() {
            let kind = *wl.mix.keys().next().unwrap();
            let id = SeriesId { stage: 0, workload: i as u16, kind };
            let shape = SeriesShape { submission: true, ..SeriesShape::default() };
            let mut s = Series::new(id, shape);
            for _ in 0..PER_SLICE {
                s.response.record(1_000_000);
                s.submission.as_mut().unwrap().record(100_000);
            }
            s.counts.outcomes[0] = PER_SLICE;
            s.counts.bytes_ok = PER_SLICE * 4096;
            s.counts.in_system_ns = u128::from(PER_SLICE) * 4_000_000;
            interval.series.push(s);
        }
        all.push(interval);
    }
    for i in &all {
        w.interval(0, i).unwrap();
    }
    let end = SLICES * GRID_NS;
    w.mark(&Mark::StopRequested { stage: 0, at_ns: end, reason: "duration".into() }).unwrap();
    w.mark(&Mark::StageEnd { stage: 0, at_ns: end }).unwrap();
    w.finish().unwrap();
    run
}

fn parsed(report: &FioReport) -> serde_json::Value {
    serde_json::from_str(&json(report, true)).unwrap()
}

#[test]
fn the_figures_are_those_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), vec![workload("j", 0, false, false)]);
    let v = parsed(&read(&run).unwrap());
    let r = &v["jobs"][0]["read"];
    assert_eq!(r["total_ios"], 1000);
    assert_eq!(r["io_bytes"], 4_096_000);
    assert_eq!(r["runtime"], 2000);
    assert_eq!(r["iops"], 500.0);
    assert_eq!(r["bw_bytes"], 2_048_000);
    assert_eq!(r["bw_samples"], 4);
    assert_eq!(r["bw_mean"], 2000.0);
    assert_eq!(r["lat_ns"]["mean"], 1_000_000.0);
    assert_eq!(r["slat_ns"]["mean"], 100_000.0);
    assert_eq!(r["clat_ns"]["mean"], 900_000.0);
    assert_eq!(
        r["clat_ns"]["bins"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>(),
        1000
    );
    assert_eq!(v["jobs"][0]["latency_us"]["1000"], 100.0);
    assert_eq!(v["jobs"][0]["iodepth_level"]["4"], 100.0, "a closed loop keeps its depth");
    assert_eq!(v["jobs"][0]["write"]["total_ios"], 0);
    assert_eq!(v["jobs"][0]["job options"]["iodepth"], "4");
    assert_eq!(v["global options"], serde_json::json!({"bs": "4k"}), "flags without a value are left out");
    assert_eq!(v["timestamp_ms"], 1_795_236_810_000_i64);
    assert!(v["fio version"].as_str().unwrap().starts_with("plimsoll-"));
}

#[test]
fn a_group_is_one_entry_with_the_sum() {
    let dir = tempfile::tempdir().unwrap();
    let apart = run(dir.path(), vec![workload("j.0", 0, false, false), workload("j.1", 0, false, false)]);
    assert_eq!(read(&apart).unwrap().jobs.len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let together = run(dir.path(), vec![workload("j.0", 0, true, false), workload("j.1", 0, true, false)]);
    let report = read(&together).unwrap();
    assert_eq!(report.jobs.len(), 1);
    let j = &report.jobs[0];
    assert_eq!((j.jobs, j.read.total_ios, j.runtime_ms), (2, 2000, 4000));
    assert_eq!(j.read.iops(), 1000.0);
    assert_eq!(j.read.op_rates, vec![1000.0; 4]);
}

#[test]
fn a_status_report_covers_what_was_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), vec![workload("j", 0, false, true)]);
    let half = read_until(&run, Some(1_000_000_000)).unwrap();
    assert_eq!((half.jobs[0].write.total_ios, half.jobs[0].write.runtime_ms), (500, 1000));
}

#[test]
fn the_normal_output_has_fio_s_lines() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), vec![workload("j", 0, false, true)]);
    let text = normal(&read(&run).unwrap());
    for line in [
        "j: (groupid=0, jobs=1): err= 0: pid=0:",
        "  write: IOPS=500, BW=2000KiB/s (2048kB/s)(4000KiB/2000msec)",
        "    clat (",
        "  1.00th=[",
        "  lat (usec)   : 1000=100.00%",
        "     issued rwts: total=0,1000,0,0 short=0,0,0,0 dropped=0,0,0,0",
        "Run status group 0 (all jobs):",
        "  WRITE: bw=2000KiB/s (2048kB/s), 2000KiB/s-2000KiB/s (2048kB/s-2048kB/s), io=4000KiB (4096kB), run=2000-2000msec",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

/// Who pipes the document sees what `runs show` says, and a run that still goes on says nothing yet.
#[test]
fn what_a_run_was_found_to_be_is_in_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), vec![workload("j", 0, false, false)]);
    assert_eq!(parsed(&read(&run).unwrap())["plimsoll"], serde_json::Value::Null);
    let void = Finding::new("V04", "no_rate", Level::Invalid, "No rate.").on("j/read");
    let mut s = RunSummary { schema: SCHEMA.into(), findings: vec![void], ..RunSummary::default() };
    s.settle(false, false);
    run.write_summary(&s).unwrap();
    let report = read(&run).unwrap();
    let ours = &parsed(&report)["plimsoll"];
    assert_eq!((&ours["status"], &ours["valid"]), (&"none".into(), &false.into()));
    assert_eq!(ours["findings"][0]["code"], "V04");
    let text = normal(&report);
    assert!(text.ends_with("\nplimsoll:\n  [INVALID V04] j/read: No rate.\n"), "{text}");
    assert_eq!(read_until(&run, Some(1_000_000_000)).unwrap().judged, None);
    let ours: serde_json::Value = serde_json::from_str(&file_bench(&run).unwrap().gobonniego()).unwrap();
    assert_eq!(ours["plimsoll"]["status"], "none");
    assert_eq!(ours["plimsoll"]["findings"][0]["code"], "V04");
}

#[test]
fn formats_are_read_as_fio_reads_them() {
    assert_eq!(Format::list("normal,json+"), Ok(vec![Format::Normal, Format::JsonPlus]));
    assert!(Format::list("terse").is_err());
}
