//! What a table says of its runs: proved limits on either side, intervals as wide as they are, who measured, and what was damaged.

use plimsoll_model::environment::ImportSource;
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Estimate, RunSummary};
use plimsoll_store::RunDir;

use crate::brought;
use crate::cells::{CampaignCell, expand};
use crate::figures::{CellFigure, CellRun};
use crate::file::CampaignFile;
use crate::ledger::LedgerEntry;
use crate::read::read_campaign;
use crate::result::{CampaignRow, IntervalOf, result};
use crate::state::CampaignState;

/// One subject (with instances of these names), one workload.
fn file(repeat: &str, instances: &[&str]) -> CampaignFile {
    let target = "target = { kind = \"null\" }\n";
    let subject: String = match instances {
        [] => target.into(),
        many => many.iter().map(|n| format!("[[subject.instance]]\nname = \"{n}\"\n{target}")).collect(),
    };
    let text = format!(
        "version = 1\nname = \"t\"\nrepeat = {repeat}\n[[subject]]\nname = \"s\"\n{subject}\
         [[workload]]\nname = \"put\"\nmix = {{ put = 1 }}\n"
    );
    CampaignFile::from_toml(&text).unwrap()
}

/// The only row of a campaign whose cells had these runs, and its state.
fn row(file: &CampaignFile, runs: &[Vec<CellRun>]) -> (CampaignRow, CampaignState) {
    let cells = expand(file).unwrap();
    let mut state = CampaignState::new(file, &cells);
    for (cell, runs) in cells.iter().zip(runs) {
        runs.iter().for_each(|r| state.apply(&done(cell, r)));
    }
    let mut rows = result(file, &cells, &state).rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    (rows.remove(0), state)
}

fn done(cell: &CampaignCell, run: &CellRun) -> LedgerEntry {
    LedgerEntry::Done {
        cell: cell.key.clone(),
        hash: cell.hash.clone(),
        run: Box::new(run.clone()),
        at: String::new(),
    }
}

fn run(value: f64, p50_ns: u64) -> CellRun {
    let figure = CellFigure {
        line: "put/put".into(),
        valid: true,
        ops_per_s: Some(Estimate::symmetric(value, 0.1, 30.0)),
        p50_ns: Some(p50_ns),
        p99_ns: Some(2 * p50_ns),
        ..CellFigure::default()
    };
    CellRun { run: format!("r{value}"), answered: true, figures: vec![figure], ..CellRun::default() }
}

fn void() -> CellRun {
    CellRun { run: "void".into(), exit: 3, void: vec!["V07".into()], ..run(0.0, 0) }
}

fn is_void(mut run: CellRun) -> CellRun {
    run.figures.iter_mut().for_each(|f| f.valid = false);
    run
}

/// What a probe found: a rate on operations and one on payload, each proved or only seen.
fn probed(ops: (f64, bool), bytes: (f64, bool), binding: &str) -> CellRun {
    of_probe(ops, bytes, binding, true)
}

fn of_probe(ops: (f64, bool), bytes: (f64, bool), binding: &str, answered: bool) -> CellRun {
    let bucket = |(value, proved): (f64, bool)| {
        Some(BucketSummary {
            sustained: Some(Estimate::symmetric(value, value / 100.0, 20.0)),
            proved,
            horizon_s: Some(value / 10.0),
            ..BucketSummary::default()
        })
    };
    let limit = LimitSummary {
        target: "t".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: bucket(ops),
        bytes_per_s: bucket(bytes),
        knee_bytes: None,
        binding: binding.into(),
        refused: None,
        evidence: Vec::new(),
    };
    let steps = (0..6).map(|i| WorkloadSummary { name: format!("step {i}"), ..WorkloadSummary::default() });
    let summary =
        RunSummary { answered, limits: vec![limit], workloads: steps.collect(), ..RunSummary::default() };
    CellRun::of_summary(&summary, 0, 0)
}

/// A limiter was seen, and the run is void all the same (its client was what bound, for example).
#[test]
fn the_limit_of_a_run_that_did_not_answer_is_no_figure() {
    let limit = |value, answered| of_probe((value, true), (1e9, true), "ops", answered);
    let runs = vec![limit(500.0, true), limit(501.0, true), limit(900.0, false)];
    let (row, _) = row(&file("{ at_least = 3 }", &[]), &[runs]);
    assert_eq!((row.ops_runs, row.void.len()), (2, 1), "{row:?}");
    assert!((row.ops_per_s.unwrap().value - 500.5).abs() < 1e-9);
}

/// Above the promise: of a load of some length nobody knows whether it is a burst; after one, and of a limit seen to its end, everybody does.
#[test]
fn a_rate_above_the_promise_may_be_a_burst() {
    let text = "version = 1\nname = \"t\"\nrepeat = { at_least = 2 }\n[[subject]]\nname = \"s\"\ntarget = { kind = \"null\" }\n\
                promised = { ops_per_s = \"500/s\" }\n[[workload]]\nname = \"put\"\nmix = { put = 1 }\n";
    let file = CampaignFile::from_toml(text).unwrap();
    let of = |line: &str, value: f64, held_for_s: Option<f64>| {
        let mut runs = vec![run(value, 1), run(value + 0.1, 1)];
        for f in runs.iter_mut().flat_map(|r| &mut r.figures) {
            (f.line, f.held_for_s) = (line.into(), held_for_s);
        }
        row(&file, &[runs]).0.may_be_burst()
    };
    assert!(of("put/put", 750.0, None) && of("put best", 750.0, None) && of("put limit", 750.0, Some(20.0)));
    assert!(!of("put/put", 501.0, None) && !of("put/put", 400.0, None));
    assert!(!of("put sustained", 750.0, None) && !of("put limit", 750.0, None));
}

#[test]
fn a_proved_limit_on_payload_alone_is_a_figure() {
    for binding in ["bytes", "undetermined"] {
        let runs: Vec<CellRun> =
            [99e6, 100e6, 101e6].map(|b| probed((2200.0, false), (b, true), binding)).to_vec();
        let (row, _) = row(&file("{ at_least = 3 }", &[]), &[runs]);
        assert!(row.void.is_empty() && row.runs.len() == 3, "{row:?}");
        assert_eq!(row.ops_per_s, None, "no limit on operations is proved");
        let bytes = row.bytes_per_s.unwrap();
        assert!(bytes.contains(100e6) && bytes.half_width() > 1e6, "over the runs: {bytes:?}");
        assert_eq!((row.interval_of, row.ops_runs, row.bytes_runs), (Some(IntervalOf::Runs), 0, 3));
        assert!((row.sd_within.unwrap() - 1e6).abs() < 1.0, "{:?}", row.sd_within);
    }
}

#[test]
fn what_was_only_seen_is_no_limit_and_what_was_held_says_how_long() {
    let (one, _) = row(&file("{ at_least = 1 }", &[]), &[vec![probed((500.0, true), (150e6, false), "ops")]]);
    assert_eq!((one.line.as_str(), one.ops_per_s.unwrap().value), ("put limit", 500.0));
    assert_eq!((one.bytes_per_s, one.held_for_s), (None, Some(50.0)));
    let both = [probed((500.0, true), (1000.0, true), "both"), probed((490.0, true), (1000.0, true), "both")];
    let (row, _) = row(&file("{ at_least = 2 }", &[]), &[both.to_vec()]);
    assert_eq!(row.held_for_s, Some(49.0), "the shortest of them");
}

/// A burst that ended in a plain run voids its line (V04): what it fell to is a figure, whichever side it was proved on.
#[test]
fn what_a_burst_on_payload_fell_to_is_a_figure() {
    let bucket = BucketSummary {
        sustained: Some(Estimate::symmetric(100e6, 1e6, 20.0)),
        burst: Some(Estimate::exact(150e6)),
        proved: true,
        ..BucketSummary::default()
    };
    let limit = LimitSummary {
        target: "t".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: None,
        bytes_per_s: Some(bucket),
        knee_bytes: None,
        binding: "bytes".into(),
        refused: None,
        evidence: Vec::new(),
    };
    let line = WorkloadSummary {
        name: "put".into(),
        op: "put".into(),
        size_bytes: 1_000_000,
        ..WorkloadSummary::default()
    };
    let summary = RunSummary { limits: vec![limit], workloads: vec![line], ..RunSummary::default() };
    let run = CellRun::of_summary(&summary, 0, 3);
    let f = &run.figures[0];
    assert_eq!((f.line.as_str(), f.valid), ("put sustained", true));
    assert_eq!((f.ops_per_s.unwrap().value, f.bytes_per_s.unwrap().value), (100.0, 100e6));
}

#[test]
fn an_interval_that_is_wider_than_asked_says_how_wide() {
    let f = file("{ at_least = 3, at_most = 4, until_wide = 0.01 }", &[]);
    let (wide, state) = row(&f, &[[100.0, 110.0, 90.0, 100.0].map(|v| run(v, 1)).to_vec()]);
    assert_eq!(state.to_go(), 0);
    let e = wide.ops_per_s.unwrap();
    assert!((wide.wider_than_asked.unwrap() - 2.0 * e.half_width() / e.value).abs() < 1e-9, "{wide:?}");
    let (narrow, _) = row(&f, &[[100.0, 100.01, 99.99].map(|v| run(v, 1)).to_vec()]);
    assert_eq!(narrow.wider_than_asked, None);
    // While more is to come nobody knows; and without a wish nothing is too wide.
    let (early, state) = row(&f, &[[100.0, 110.0, 90.0].map(|v| run(v, 1)).to_vec()]);
    assert_eq!((early.wider_than_asked, state.to_go()), (None, 1));
    let (free, _) = row(&file("{ at_least = 2 }", &[]), &[[100.0, 200.0].map(|v| run(v, 1)).to_vec()]);
    assert_eq!(free.wider_than_asked, None);
    // Each instance is as narrow as asked; what is between them is not.
    let f = file("{ at_least = 3, at_most = 4, until_wide = 0.03 }", &["1", "2"]);
    let runs = [[100.0, 100.1, 99.9], [190.0, 190.1, 189.9]].map(|v| v.map(|v| run(v, 1)).to_vec());
    let (between, _) = row(&f, &runs);
    assert_eq!(between.interval_of, Some(IntervalOf::Instances));
    assert!(between.wider_than_asked.unwrap() > 1.0, "{between:?}");
}

#[test]
fn a_median_over_runs_is_of_the_middle_and_of_several_instances_there_is_none() {
    let f = file("{ at_least = 4 }", &[]);
    let (even, _) =
        row(&f, &[[(1.0, 900), (2.0, 100), (3.0, 200), (4.0, 400)].map(|(v, p)| run(v, p)).to_vec()]);
    assert_eq!((even.p50_ns, even.p99_ns), (Some(300), Some(600)), "between 200 and 400");
    let (odd, _) = row(&f, &[[(1.0, 900), (2.0, 100), (3.0, 200)].map(|(v, p)| run(v, p)).to_vec()]);
    assert_eq!(odd.p50_ns, Some(200));
    let f = file("{ at_least = 1 }", &["1", "2"]);
    let (two, _) = row(&f, &[vec![run(1.0, 100)], vec![run(2.0, 900)]]);
    assert_eq!((two.p50_ns, two.p99_ns), (None, None), "one figure would be of neither");
    // Of two instances one alone has a valid run: it is that one's.
    let (alone, _) = row(&f, &[vec![run(1.0, 100)], vec![is_void(void())]]);
    assert_eq!((alone.p50_ns, alone.instances), (Some(100), 1));
}

/// A run of another tool stands beside ours with its name, and has no interval unless its file had one.
#[test]
fn imported_runs_say_who_measured_and_have_no_interval_of_their_own() {
    let text = "version = 1\nname = \"t\"\n[[subject]]\nname = \"s\"\nruns = [\"x\"]\n[[workload]]\nname = \"put\"\n\
                mix = { put = 1 }\nsizes = [\"4KiB\"]\n";
    let f = CampaignFile::from_toml(text).unwrap();
    let cells = expand(&f).unwrap();
    let line = WorkloadSummary {
        name: "put".into(),
        op: "put".into(),
        valid: true,
        ops_per_s: Some(Estimate::symmetric(100.0, f64::INFINITY, 1.0)),
        ..WorkloadSummary::default()
    };
    let mut summary = RunSummary { answered: true, workloads: vec![line], ..RunSummary::default() };
    summary.labels.insert("workload".into(), cells[0].workload.clone());
    summary.environment.imported =
        Some(ImportSource { tool: "fio".into(), tool_version: "3.33".into(), ..ImportSource::default() });
    let (merged, strangers) = brought::merged(&cells, "s", &[("x".into(), summary, 0)]);
    assert!(strangers.is_empty());
    let mut state = CampaignState::new(&f, &cells);
    merged.into_iter().for_each(|(i, runs)| state.bring(i, runs));
    let row = result(&f, &cells, &state).rows.remove(0);
    assert_eq!(row.tools, ["fio 3.33"]);
    assert_eq!((row.ops_per_s.unwrap().value, row.interval_of), (100.0, None));
    // Ours need no name, unless another's stand in the same row.
    let state_of = |tool: Option<&str>| {
        let mut runs = vec![run(1.0, 1), run(2.0, 1)];
        runs[1].tool = tool.map(str::to_owned);
        runs
    };
    let own = file("{ at_least = 2 }", &[]);
    assert!(self::row(&own, &[state_of(None)]).0.tools.is_empty());
    assert_eq!(self::row(&own, &[state_of(Some("warp 1.0"))]).0.tools, ["plimsoll", "warp 1.0"]);
}

/// Of five runs one was void: the number is decided from the first five that are valid, once, and void ones are made up for.
#[test]
fn how_often_is_decided_once_from_valid_runs_alone() {
    let f = file("{ at_least = 3, at_most = 100, until_wide = 0.05 }", &[]);
    let cells = expand(&f).unwrap();
    let mut state = CampaignState::new(&f, &cells);
    let mut wanted = Vec::new();
    let values = [Some(100.0), None, Some(102.0), Some(98.0), None, Some(100.0), Some(160.0)];
    for value in values {
        let run = value.map_or_else(|| is_void(void()), |v| run(v, 1));
        state.apply(&done(&cells[0], &run));
        wanted.push(state.cells[0].wanted);
    }
    // (4.303 x 2 / 2.5)^2 = 11.8: 12 valid ones, and each that is void comes on top.
    assert_eq!(wanted, [3, 4, 4, 13, 14, 14, 14]);
    assert_eq!(state.to_go(), 7);
}

/// What the storage gave back is not what it was given (exit code 7): in no figure, though the run answered.
#[test]
fn a_brought_run_with_damage_is_in_no_figure() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create_at(&tmp.path().join("theirs")).unwrap();
    let line = WorkloadSummary {
        name: "put".into(),
        op: "put".into(),
        valid: true,
        ops_per_s: Some(Estimate::exact(100.0)),
        ..WorkloadSummary::default()
    };
    let mut summary = RunSummary {
        schema: plimsoll_model::summary::SCHEMA.into(),
        answered: true,
        workloads: vec![line],
        ..RunSummary::default()
    };
    summary.labels.insert("workload".into(), "put".into());
    dir.write_plan(&expand(&file("{}", &[])).unwrap()[0].plan(0, 1).unwrap()).unwrap();
    dir.write_summary(&summary).unwrap();
    let text = "version = 1\nname = \"t\"\n[[subject]]\nname = \"s\"\nruns = [\"theirs\"]\n[[workload]]\nname = \"put\"\n\
                mix = { put = 1 }\n";
    for (exit, is_used) in [(0, true), (7, false)] {
        let read = read_campaign(text, tmp.path(), tmp.path(), |s| {
            assert_eq!(s.workloads.len(), 1);
            exit
        });
        let row = read.unwrap().result().rows.remove(0);
        assert_eq!(row.ops_per_s.is_some(), is_used, "exit code {exit}: {row:?}");
        let exits: Vec<u8> = row.void.iter().map(|v| v.exit).collect();
        assert_eq!(exits, if is_used { vec![] } else { vec![7] });
    }
}

/// Of 4 MiB at 9.5 a second there are 28 ops in three seconds: repeats that all count 28 know it no better than to one of them.
#[test]
fn the_same_few_ops_in_each_run_are_known_to_one_of_them() {
    let of_count = |n: f64, window_s: f64| {
        let mut r = run(n / window_s, 1);
        r.figures[0].counted_s = Some(window_s);
        r.figures[0].bytes_per_s = r.figures[0].ops_per_s.map(|e| e.scaled(4_194_304.0));
        r
    };
    let of = |runs: Vec<CellRun>| {
        let n = runs.len();
        row(&file(&format!("{{ at_least = {n} }}"), &[]), &[runs]).0
    };
    let few = of(vec![of_count(28.0, 3.0), of_count(28.0, 3.0), of_count(28.0, 3.0)]);
    let (ops, bytes) = (few.ops_per_s.unwrap(), few.bytes_per_s.unwrap());
    assert!((ops.half_width() - 1.0 / 3.0).abs() < 1e-9, "{ops:?}");
    assert!((bytes.relative_half_width() - 1.0 / 28.0).abs() < 1e-9, "{bytes:?}");
    // The true rate was 28.4 ops in 3 s: no word of "lower" comes out of the digits.
    assert!(ops.contains(28.4 / 3.0));
    // The spread of counts stays what it was, and the one op comes on top: neither knows of the other.
    let spread = of(vec![of_count(27.0, 3.0), of_count(28.0, 3.0), of_count(29.0, 3.0)]);
    let over_runs = 4.302_653 / 3.0 / 3f64.sqrt();
    assert!((spread.ops_per_s.unwrap().half_width() - over_runs.hypot(1.0 / 3.0)).abs() < 1e-5);
    // Of many ops it is nothing, and a count near nothing does not go below it.
    let many = of(vec![of_count(120_000.0, 30.0), of_count(120_000.0, 30.0)]);
    assert!(many.ops_per_s.unwrap().relative_half_width() < 1e-5);
    let one = of(vec![of_count(1.0, 3.0), of_count(1.0, 3.0)]);
    assert!(one.ops_per_s.unwrap().low == 0.0);
    // Work that was given, and took its time, has no such thing.
    let given = of(vec![run(500.0, 1), run(500.0, 1)]);
    assert_eq!(given.ops_per_s.unwrap().half_width(), 0.0);
}

/// A run that goes round ten times is ten measurements, and its interval is over them.
#[test]
fn rounds_of_one_run_are_repeats() {
    let with_rounds = |n: usize| {
        let mut r = run(500.0, 1);
        r.figures[0].each = vec![500.0; n];
        row(&file("{ at_least = 1 }", &[]), &[vec![r]]).0.interval_of
    };
    assert_eq!(with_rounds(10), Some(IntervalOf::Rounds));
    assert_eq!(with_rounds(2), Some(IntervalOf::OneRun));
    assert_eq!(with_rounds(0), Some(IntervalOf::OneRun));
}
