//! A run file that was cut or damaged anywhere is readable up to there, and never more, and never a panic.

mod common;

use common::{GRID_NS, append_record, new_run, slice, stage_start, write_stage};
use plimsoll_store::{LoadOptions, Record, RunDir, StreamReader, StreamWriter};
use proptest::prelude::*;

fn read_all(path: &std::path::Path) -> (Vec<Record>, bool) {
    let Ok(mut reader) = StreamReader::open(path) else { return (Vec::new(), true) };
    let mut records = Vec::new();
    while let Some(r) = reader.next().unwrap() {
        records.push(r);
    }
    (records, reader.damage().is_some())
}

fn sample_file(dir: &std::path::Path) -> (std::path::PathBuf, Vec<u8>, Vec<Record>) {
    let run = new_run(dir);
    write_stage(&run, 35);
    let path = run.interval_files().unwrap().remove(0);
    let bytes = std::fs::read(&path).unwrap();
    let (records, damaged) = read_all(&path);
    assert!(!damaged);
    (path, bytes, records)
}

#[test]
fn every_truncation_is_a_prefix() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes, whole) = sample_file(dir.path());
    let cut_file = path.with_file_name("cut");
    let mut longest = 0;
    for cut in (0..bytes.len()).step_by(7).chain(bytes.len() - 40..=bytes.len()) {
        std::fs::write(&cut_file, &bytes[..cut]).unwrap();
        let (records, damaged) = read_all(&cut_file);
        assert_eq!(records[..], whole[..records.len()]);
        // Nothing is lost in silence: fewer records than whole frames up to here means damage is named.
        assert!(records.len() == whole.len() || damaged || records.len() >= longest, "{cut}");
        longest = longest.max(records.len());
    }
    assert_eq!(longest, whole.len());
}

#[test]
fn a_cut_loses_at_most_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes, whole) = sample_file(dir.path());
    let intervals = |r: &[Record]| r.iter().filter(|r| matches!(r, Record::Interval { .. })).count();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (records, damaged) = read_all(&path);
    assert!(damaged);
    assert!(intervals(&whole) - intervals(&records) <= 10);
}

#[test]
fn a_resumed_file_goes_on_after_the_last_good_frame() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes, whole) = sample_file(dir.path());
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let (before, _) = read_all(&path);
    let mut w = StreamWriter::resume(&path).unwrap();
    w.mark(&stage_start(1, 99 * GRID_NS)).unwrap();
    w.interval(1, &slice(1, 99, 3, 3)).unwrap();
    w.finish().unwrap();
    let (after, damaged) = read_all(&path);
    assert!(!damaged);
    assert_eq!(after[..before.len()], whole[..before.len()]);
    assert_eq!(after.len(), before.len() + 2);
}

#[test]
fn a_cut_run_loads_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes, _) = sample_file(dir.path());
    std::fs::write(&path, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let run = RunDir::open(path.parent().unwrap().parent().unwrap()).unwrap();
    let data = run.load(&LoadOptions::default()).unwrap();
    assert_eq!(data.damage.len(), 1);
    assert!(data.end.is_none());
    let window = data.stages[0].window(GRID_NS).unwrap();
    let totals = run.totals(&[window], 1).unwrap();
    assert!(totals[0].series[0].ok() > 0);
}

#[test]
fn zstdcat_understands_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes, _) = sample_file(dir.path());
    let all = zstd::stream::decode_all(&bytes[..]).unwrap();
    assert!(
        all.windows(22).any(|w| w == b"plimsoll.intervals/1\"," || w.starts_with(b"plimsoll.intervals/1"))
    );
}

#[test]
fn what_a_newer_program_wrote_is_passed_over_and_said_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 35);
    let path = run.interval_files().unwrap().remove(0);
    append_record(&path, 2, br#"{"mark":"agent_joined","at_ns":7,"agent":"b"}"#);
    append_record(&path, 9, b"a kind of record to come");
    append_record(&path, 2, br#"{"mark":"stage_end","stage":0,"at_ns":"soon"}"#);
    append_record(&path, 1, &[0, 0, 0]);
    let mut w = StreamWriter::resume(&path).unwrap();
    w.mark(&stage_start(1, 40 * GRID_NS)).unwrap();
    w.interval(1, &slice(1, 41, 3, 3)).unwrap();
    w.finish().unwrap();
    let data = run.load(&LoadOptions::default()).unwrap();
    assert!(data.damage.is_empty(), "{:?}", data.damage);
    assert_eq!(data.stages.len(), 2, "what lies behind is read");
    assert_eq!(data.stages[0].client.len(), 35);
    assert_eq!(data.skipped.count(), 4);
    let said = data.skipped.to_string();
    for what in ["1 x mark 'agent_joined'", "1 x record of kind 9", "1 x mark 'stage_end'", "1 x slice ("] {
        assert!(said.contains(what), "{said}");
    }
    assert!(data.skipped.has_figures(), "a slice is missing");
}

#[test]
fn only_what_carries_figures_makes_them_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 9);
    append_record(&run.interval_files().unwrap()[0], 2, br#"{"mark":"\u001b[2Jagent","at_ns":7}"#);
    let data = run.load(&LoadOptions::default()).unwrap();
    assert_eq!(
        (data.skipped.to_string().as_str(), data.skipped.has_figures()),
        ("1 x mark '??2Jagent'", false)
    );
}

#[test]
fn slices_far_apart_or_of_no_stage_take_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    for i in 0..60 {
        w.interval(0, &slice(0, i * 900_000, 1, 1)).unwrap();
    }
    w.interval(7, &slice(7, 3, 1, 1)).unwrap();
    w.interval(0, &slice(0, u64::MAX, 1, 1)).unwrap();
    w.finish().unwrap();
    let data = run.load(&LoadOptions::default()).unwrap();
    assert!(data.stages[0].client.len() <= 72_001);
    let work: u64 = data.stages[0].series.values().flatten().map(|p| p.counts.ok()).sum();
    assert_eq!(work, 60);
    assert_eq!(data.skipped.count(), 2, "{}", data.skipped);
}

fn old_run(name: &str) -> RunDir {
    let old = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old"));
    RunDir::open(&old.join(name)).unwrap()
}

/// Runs as they were written, each by the formats of its day: the first of all, and those of before there were agents (a simulated mix
/// in an open loop, with failures; the null target on a real clock, with samples). They stay readable for ever.
#[test]
fn old_runs_are_read() {
    for (name, truth) in [("run-1", &[2091, 5943][..]), ("run-2", &[136, 436]), ("run-3", &[380])] {
        let run = old_run(name);
        let data = run.load(&LoadOptions::default()).unwrap();
        assert!(data.damage.is_empty() && data.skipped.is_empty(), "{:?} {}", data.damage, data.skipped);
        let [stage] = &data.stages[..] else { panic!("{name}") };
        let totals = run.totals(&[stage.window(data.grid_ns).unwrap()], 1).unwrap();
        let ok: Vec<u64> = totals[0].series.iter().map(|s| s.ok()).collect();
        assert_eq!(ok, truth, "{name}");
        // All of them are of one agent, on the machine that the environment tells of.
        let [local] = &data.agents[..] else { panic!("{name}: {:?}", data.agents) };
        assert_eq!((local.host.agent.as_str(), local.listed, local.files), ("local", true, 1));
        assert_eq!((&local.host.machine, local.host.machine.cpu_count), (&data.environment.machine, 2));
        assert_eq!(totals[0].agents, []);
        let [own] = &stage.agents[..] else { panic!("{name}") };
        assert_eq!(
            (own.workers, own.start_ns, own.end_ns),
            (stage.workers, Some(stage.start_ns), stage.end_ns)
        );
        assert_eq!(stage.agent_points(own, data.step_ns, 0, u64::MAX), stage.client);
        assert_eq!(
            data.samples_of(local).map_or(0, |h| h.samples.len()),
            if name == "run-3" { 6 } else { 0 }
        );
    }
}

#[test]
fn what_was_said_of_an_old_run_is_read() {
    for (name, lines) in [("run-2", 3), ("run-3", 1)] {
        let run = old_run(name);
        assert_eq!((run.altered_files().unwrap(), run.altered_results().unwrap()), (vec![], vec![]));
        let (summary, analysis) = (run.summary().unwrap(), run.analysis().unwrap());
        assert_eq!((summary.workloads.len(), summary.agents.len()), (lines, 0));
        assert!(!analysis.checks.is_empty() && summary.findings.iter().all(|f| f.agent.is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bit_flip_is_noticed_and_never_panics(at: prop::sample::Index, bit in 0u8..8) {
        thread_local! {
            static FILE: (tempfile::TempDir, std::path::PathBuf, Vec<u8>, Vec<Record>) = {
                let dir = tempfile::tempdir().unwrap();
                let (path, bytes, records) = sample_file(dir.path());
                (dir, path, bytes, records)
            };
        }
        FILE.with(|(_, path, bytes, whole)| {
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] ^= 1 << bit;
            std::fs::write(path, &damaged).unwrap();
            let (records, named) = read_all(path);
            prop_assert!(named);
            prop_assert!(records.len() < whole.len());
            prop_assert_eq!(&records[..], &whole[..records.len()]);
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_at_all_never_panic(bytes: Vec<u8>, tag in 0u8..5) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.zst");
        // Bytes behind a good checksum are the harder case: they reach the record decoder.
        let header = plimsoll_store::stream::Header {
            format: plimsoll_store::stream::INTERVALS_FORMAT.into(), source: "a".into(), grid_ns: GRID_NS, observes: String::new() };
        drop(StreamWriter::create(&path, &header).unwrap());
        let mut record = vec![tag];
        plimsoll_store::varint::put_u64(&mut record, bytes.len() as u64);
        record.extend_from_slice(&bytes);
        plimsoll_store::frame::FrameWriter::resume(&path).unwrap().append(&record).unwrap();
        let _ = read_all(&path);
        std::fs::write(&path, &bytes).unwrap();
        let _ = read_all(&path);
    }
}
