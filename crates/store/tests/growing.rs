//! A run that goes on is read as if it were read from its beginning each time.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::{GRID_NS, new_run, slice, stage_start, write_stage};
use plimsoll_store::{GrowingRun, LoadOptions, Mark, RunDir, RunRecords, StreamWriter, Window};

const COARSE: LoadOptions = LoadOptions { step_ns: Some(3 * GRID_NS), max_points: 40, max_samples: 100 };

fn begin(run: &RunDir, agent: &str) -> StreamWriter {
    let mut w = run.create_intervals(agent, GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    w.mark(&Mark::WarmupEnd { stage: 0, at_ns: 5 * GRID_NS }).unwrap();
    w
}

/// What is read of it by either, window by window.
fn assert_same(growing: &GrowingRun, run: &RunDir, what: &str) {
    let data = growing.load(&LoadOptions::default()).unwrap();
    assert_eq!(data, run.load(&LoadOptions::default()).unwrap(), "{what}");
    let window = data.stages[0].window(GRID_NS).unwrap();
    let late = Window { from: window.from + 3, ..window };
    let asked = [window, late, Window { from: 0, ..window }];
    assert_eq!(growing.totals(&asked, 1).unwrap(), run.totals(&asked, 1).unwrap(), "{what}: {window:?}");
}

#[test]
fn agents_that_go_on_side_by_side() {
    agents_go_on(|run| run);
}

#[test]
fn what_is_too_much_at_once_is_read_side_by_side() {
    agents_go_on(|run| run.reading_at_once(0));
}

fn agents_go_on(how: impl Fn(GrowingRun) -> GrowingRun) {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let mut agents: Vec<StreamWriter> = (0..3).map(|n| begin(&run, &format!("lg-{n}"))).collect();
    let growing = how(GrowingRun::new(run.clone()));
    for step in 0..12u64 {
        for (n, w) in agents.iter_mut().enumerate() {
            for i in 10 * step..10 * (step + 1) {
                w.interval(0, &slice(0, i, 3 + i % 4, i + 1000 * n as u64)).unwrap();
            }
            w.flush().unwrap();
        }
        assert_same(&growing, &run, &format!("step {step}"));
        // All that is asked for between two looks is of one time, and a resolution that nobody asks for any more is forgotten.
        if step >= 2 && step % 4 != 2 {
            continue;
        }
        // Coarse points become coarser as it goes on: only doubled, where a run that has ended has no more than are asked for.
        let coarse = growing.load(&COARSE).unwrap();
        let points = coarse.stages[0].client.len();
        assert!(points <= 40 && (step < 4 || points > 20 / 3), "step {step}: {points}");
        let workers = |d: &plimsoll_store::RunData| d.stages[0].client.iter().map(|c| c.workers).sum::<u32>();
        assert_eq!(workers(&coarse), workers(&run.load(&COARSE).unwrap()));
    }
    // It is stopped: windows end, and what each agent did in them is read once more as it comes.
    for w in &mut agents {
        w.mark(&Mark::StopRequested { stage: 0, at_ns: 118 * GRID_NS, reason: "duration".into() }).unwrap();
    }
    assert_same(&growing, &run, "stopped");
    for (n, w) in agents.iter_mut().enumerate() {
        w.interval(0, &slice(0, 120, 1, n as u64)).unwrap();
        w.mark(&Mark::StageEnd { stage: 0, at_ns: 121 * GRID_NS }).unwrap();
    }
    assert_same(&growing, &run, "ended");
}

#[test]
fn an_agent_that_is_behind_is_waited_for_and_one_that_is_silent_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let (mut first, mut second) = (begin(&run, "a"), begin(&run, "b"));
    let growing = GrowingRun::new(run.clone());
    let write = |w: &mut StreamWriter, slices: std::ops::Range<u64>, seed: u64| {
        slices.for_each(|i| w.interval(0, &slice(0, i, 2, i + seed)).unwrap());
        w.flush().unwrap();
    };
    write(&mut first, 0..40, 0);
    write(&mut second, 0..20, 500);
    let last = |g: &GrowingRun| g.load(&LoadOptions::default()).unwrap().stages[0].last_ns / GRID_NS;
    assert_eq!(last(&growing), 20);
    write(&mut second, 20..40, 500);
    assert_same(&growing, &run, "it has come");
    // Five seconds behind: nothing more is waited for, and what comes late still counts.
    write(&mut first, 40..120, 0);
    assert_eq!(last(&growing), 120);
    write(&mut second, 40..120, 500);
    let (told, truth) =
        (growing.load(&LoadOptions::default()).unwrap(), run.load(&LoadOptions::default()).unwrap());
    assert_eq!(told.stages[0].client, truth.stages[0].client);
    let window = [truth.stages[0].window(GRID_NS).unwrap()];
    assert_eq!(growing.totals(&window, 1).unwrap(), run.totals(&window, 1).unwrap());
    // A third one comes.
    let mut third = begin(&run, "c");
    write(&mut third, 0..120, 900);
    assert_same(&growing, &run, "a third");
}

/// However much of a frame is there when it is looked at.
#[test]
fn a_file_that_is_cut_anywhere_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let whole = new_run(&dir.path().join("whole"));
    write_stage(&whole, 60);
    let path = &whole.interval_files().unwrap()[0];
    let bytes = std::fs::read(path).unwrap();
    let run = new_run(&dir.path().join("cut"));
    let copy = run.path().join("intervals").join(path.file_name().unwrap());
    let growing = GrowingRun::new(run.clone());
    let mut looks = 0;
    for end in (1..=bytes.len()).step_by(7).chain([bytes.len()]) {
        std::fs::write(&copy, &bytes[..end]).unwrap();
        let Ok(truth) = run.load(&LoadOptions::default()) else {
            assert!(growing.load(&LoadOptions::default()).is_err());
            continue;
        };
        assert_eq!(growing.load(&LoadOptions::default()).unwrap().stages, truth.stages, "{end}");
        if let Some(window) = truth.stages.first().and_then(|s| s.window(GRID_NS)) {
            looks += 1;
            assert_eq!(growing.totals(&[window], 1).unwrap(), run.totals(&[window], 1).unwrap(), "{end}");
        }
    }
    assert!(looks > 20, "{looks}");
}

/// Cells of a long run hold several slices: nothing of it is lost, and a window's edge is off by less than a cell.
#[test]
fn a_long_run_is_kept_in_wider_cells() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let mut w = begin(&run, "local");
    let growing = GrowingRun::new(run.clone());
    for i in 0..9_000u64 {
        w.interval(0, &slice(0, i, 1, i)).unwrap();
        if i % 1_000 == 999 {
            w.flush().unwrap();
            growing.load(&LoadOptions::default()).unwrap();
        }
    }
    let ops = |from: u64, to: u64| {
        let [totals] = &growing.totals(&[Window { stage: 0, from, to }], 0).unwrap()[..] else { panic!() };
        assert_eq!(totals.blocks.len(), 20);
        totals.series.iter().flat_map(|s| s.counts.outcomes).sum::<u64>()
            - totals.series.iter().map(|s| s.counts.throttled()).sum::<u64>()
    };
    assert_eq!(ops(0, 9_000), 9_000);
    assert!(ops(501, 8_003).abs_diff(7_502) <= 16, "{}", ops(501, 8_003));
}
