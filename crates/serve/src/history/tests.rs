//! What is made of a history: lists, pivots, comparisons, trends.

use super::support::{Made, history};
use super::*;

#[path = "../../../index/examples/support/mod.rs"]
mod runs;

fn query(text: &str) -> HistoryQuery {
    HistoryQuery::parse(text).unwrap()
}

fn made(label: &'static str, rate: f64) -> Made {
    Made { label, rate, ..Made::default() }
}

#[test]
fn a_list_is_of_what_is_wanted_the_newest_first() {
    let h = history(&[
        made("gold", 1.0),
        made("tin", 2.0),
        Made { op: "put", valid: false, ..made("gold", 3.0) },
    ]);
    let ids = |text: &str| list(&h, &query(text)).runs.into_iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(ids(""), ["r2", "r1", "r0"]);
    assert_eq!(ids("label=tier%3Dgold"), ["r2", "r0"]);
    assert_eq!(ids("label=tier%3Dgold&op=get"), ["r0"]);
    assert_eq!(ids("validity=invalid"), ["r2"]);
    assert_eq!(ids("since=2026-11-01T08:30:00Z&until=2026-11-01T09:30:00Z"), ["r1"]);
    assert_eq!((ids("target=example").len(), ids("target=elsewhere").len()), (3, 0));
    let answer = list(&h, &query("label=tier%3Dtin&skip=1"));
    assert_eq!((answer.all, answer.found, answer.runs.len()), (3, 1, 0));
    assert_eq!(answer.labels["tier"], ["gold", "tin"]);
    assert_eq!(answer.ops, ["get", "put"]);
}

/// Of several lines it is said which.
#[test]
fn a_run_in_a_list_has_the_course_of_its_rate() {
    let mut h = history(&[made("gold", 1.0), made("tin", 2.0), made("tin", 3.0)]);
    let course = RunCourse { line: 0, seconds: 8.0, ops_per_s: vec![410.0, 120.0, 395.0] };
    h.draw(HashMap::from([("r0".to_owned(), course.clone()), ("r2".to_owned(), course)]));
    // Newest first: r1's line is one of r2's, too.
    h.runs[0].lines = 1..3;
    h.lines[1].line = 1;
    let answer = list(&h, &query(""));
    let of =
        |i: usize| answer.runs[i].course.as_ref().map(|c| (c.of.as_deref(), c.seconds, &c.ops_per_s[..]));
    let rates = &[410.0, 120.0, 395.0][..];
    assert_eq!(of(0), Some((Some("get 4 KiB, 16 in flight"), 8.0, rates)));
    assert_eq!((of(1), of(2)), (None, Some((None, 8.0, rates))));
    let text = serde_json::to_value(&answer).unwrap();
    assert!(
        text["runs"][1]["course"].is_null() && text["runs"][0]["course"]["ops_per_s"][1] == 120.0,
        "{text}"
    );
    // It stays when the rest is read again.
    assert_eq!(list(&h.again(), &query("")).runs, answer.runs);
}

#[test]
fn a_cell_is_of_one_load_and_void_lines_are_in_no_figure() {
    let h = history(&[
        made("gold", 100.0),
        made("gold", 110.0),
        Made { valid: false, ..made("gold", 9000.0) },
        made("tin", 50.0),
        Made { size: 65536, ..made("tin", 20.0) },
    ]);
    let answer = pivot(&h, &query("rows=label:tier&columns=op"));
    assert_eq!(
        (&answer.rows[..], &answer.columns[..]),
        (&["gold".to_owned(), "tin".into()][..], &["get".to_owned()][..])
    );
    let gold = answer.cells[0][0].as_ref().unwrap();
    assert!((gold.figure.unwrap().value - 110f64.mul_add(100.0, 0.0).sqrt()).abs() < 1e-9);
    assert_eq!((gold.lines, gold.left_out, &gold.runs[..]), (2, 1, &["r1".to_owned(), "r0".into()][..]));
    // Two sizes have no common rate.
    let tin = answer.cells[1][0].as_ref().unwrap();
    assert_eq!((tin.figure, tin.said.as_str()), (None, "no figure over 2 sizes"));
    let by_size = pivot(&h, &query("rows=size&columns=label:tier&label=tier%3Dtin"));
    assert_eq!(by_size.rows, ["4 KiB", "64 KiB"]);
    assert_eq!(by_size.cells[1][0].as_ref().unwrap().figure.unwrap().value, 20.0);
    let p99 = pivot(&h, &query("rows=label:tier&columns=size&figure=p99_ns"));
    assert!(p99.cells[0][0].as_ref().unwrap().said.starts_with("median of 2 lines"));
    assert_eq!(p99.cells[0][1], None);
}

/// A rate that was offered is no rate that was reached, and two loads of one run are no repeats of each other.
#[test]
fn a_cell_of_loads_that_are_not_the_same_has_no_figure() {
    let cell = |h: &History| pivot(h, &query("rows=size&columns=op")).cells[0][0].clone().unwrap();
    let offered = |rate| Made { offered: Some(rate), ..made("gold", rate) };
    let several = history(&[made("gold", 3460.0), offered(2000.0), offered(500.0)]);
    assert_eq!(
        (cell(&several).figure, cell(&several).said.as_str()),
        (None, "no figure over 3 offered rates")
    );
    let mut twice = history(&[made("gold", 100.0), made("gold", 110.0)]);
    twice.lines[1].run = "r0".into();
    assert_eq!(cell(&twice).said, "no figure over 2 lines of one run");
    let mut elsewhere = history(&[made("gold", 100.0), made("gold", 65.0)]);
    elsewhere.lines[1].target = "s3 other.example.net".into();
    assert_eq!(cell(&elsewhere).said, "no figure over 2 targets");
    // Whoever takes tiers together is told so.
    let tiers = history(&[made("gold", 100.0), made("tin", 90.0)]);
    assert_eq!(cell(&tiers).said, "95 % over 2 lines; tier differs");
    // Nor have they a trend.
    assert_eq!(trend(&several, &query("")).lines.len(), 3);
    assert_eq!(trend(&elsewhere, &query("")).lines.len(), 2);
    assert!(trend(&tiers, &query("")).said.contains("tier differs: filter by label"));
}

/// Two stages put the same load on, one at a rate that was offered: "no difference proved" was said of the first, and nothing of the other.
#[test]
fn each_of_a_runs_lines_is_compared_with_its_own() {
    let mut h = history(&[100.0, 50.0, 101.0, 25.0].map(|r| made("x", r)));
    // r0 and r1 are the lines of one run, r2 and r3 those of another.
    let names = [("r0", "first"), ("r0", "second"), ("r2", "first"), ("r2", "second")];
    for (l, (run, name)) in h.lines.iter_mut().zip(names) {
        (l.run, l.workload) = (run.into(), name.into());
    }
    h.runs.retain(|r| ["r0", "r2"].contains(&r.run.entry.id.as_str()));
    (h.runs[1].lines, h.runs[0].lines) = (0..2, 2..4);
    let answer = compare(&h, &query("a=r0&b=r2")).unwrap();
    let of = |line: &str| {
        let row = answer.rows.iter().find(|r| r.figure == "ops_per_s" && r.line.contains(line)).unwrap();
        row.each.iter().flatten().map(|e| e.figure.unwrap().value).collect::<Vec<_>>()
    };
    assert_eq!((of("(first)"), of("(second)")), (vec![100.0, 101.0], vec![50.0, 25.0]));
}

#[test]
fn two_sides_differ_by_what_compare_says() {
    let all: Vec<Made> = [100.0, 80.0, 101.0, 81.0, 99.5, 79.5].map(|r| made("x", r)).to_vec();
    let h = history(&all);
    let answer = compare(&h, &query("a=r0&a=r2&a=r4&b=r1&b=r3&b=r5")).unwrap();
    assert!(answer.paired, "made in turn");
    let rate = answer.rows.iter().find(|r| r.figure == "ops_per_s").unwrap();
    let said = plimsoll_stats::compare::compare(&[100.0, 101.0, 99.5], &[80.0, 81.0, 79.5], true);
    assert_eq!(rate.ratio, Some(said.known().unwrap().ratio));
    assert_eq!((rate.outcome, rate.holds_among_all), ("greater", Some(true)));
    assert_eq!(rate.each.len(), 6);
    assert!(!answer.rows.iter().any(|r| r.figure == "bytes_per_s"), "the same difference twice");
    // One run a side: beside each other, and nothing is claimed.
    let one = compare(&h, &query("a=r0&b=r1")).unwrap();
    assert_eq!((one.rows[0].outcome, one.rows[0].ratio), ("undetermined", None));
    assert!(one.rows[0].said.contains("run-to-run variation"), "{}", one.rows[0].said);
    assert!(compare(&h, &query("a=r0&b=r0")).is_err() && compare(&h, &query("a=r0&b=r9")).is_err());
}

/// A run of this label, with a plan that puts so many in flight.
fn stored(root: &std::path::Path, id: &str, in_flight: u32, kernel: &str) {
    use plimsoll_model::{Environment, Plan, RunStatus, RunSummary, summary::SCHEMA};
    let text = "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\nconcurrency = ";
    let dir = plimsoll_store::RunDir::create_at(&root.join(id)).unwrap();
    dir.write_plan(&Plan::from_toml(&format!("{text}{in_flight}\n")).unwrap()).unwrap();
    let mut environment = Environment::default();
    environment.machine.kernel = kernel.into();
    let summary = RunSummary {
        schema: SCHEMA.into(),
        id: id.into(),
        valid: true,
        status: RunStatus::Valid,
        environment,
        ..RunSummary::default()
    };
    dir.write_summary(&summary).unwrap();
    dir.seal("done").unwrap();
}

/// As `plimsoll compare` finds it, by the same code.
#[test]
fn plans_and_machines_that_differ_are_found() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r0", 1, "Linux 6.1");
    stored(dir.path(), "r1", 2, "Linux 6.1");
    stored(dir.path(), "r2", 1, "Linux <6.2>");
    let mut h = history(&[made("x", 100.0), made("x", 80.0), made("x", 90.0), made("x", 90.0)]);
    h.runs.iter_mut().for_each(|r| r.run.entry.path = dir.path().join(&r.run.entry.id));
    let codes = |a: &CompareAnswer| a.findings.iter().map(|f| f.code.clone()).collect::<Vec<_>>();
    let plans = compare(&h, &query("a=r0&b=r1")).unwrap();
    assert_eq!((codes(&plans), &plans.not_known), (vec!["F41".to_owned()], &None));
    assert_eq!(plans.findings[0].text, "The plans differ in: stage[0].workload[0].concurrency (1 and 2).");
    let machines = compare(&h, &query("a=r0&b=r2")).unwrap();
    assert_eq!(codes(&machines), ["F99", "F41"]);
    assert!(machines.findings[0].text.contains("kernel (Linux 6.1 and Linux <6.2>)"), "{machines:?}");
    // What is gone is said, and the figures are there all the same.
    let gone = compare(&h, &query("a=r0&b=r3")).unwrap();
    assert!(gone.findings.is_empty() && !gone.rows.is_empty());
    assert!(gone.not_known.as_ref().unwrap().starts_with("run r3 cannot be read"), "{gone:?}");
    assert_eq!(codes(&compare(&h, &query("a=r0")).unwrap()), [""; 0]);
}

#[test]
fn void_runs_are_beside_the_others_and_in_no_difference() {
    let h = history(&[
        made("x", 100.0),
        Made { valid: false, ..made("x", 1.0) },
        made("x", 50.0),
        made("x", 51.0),
    ]);
    let answer = compare(&h, &query("a=r0&a=r1&b=r2&b=r3")).unwrap();
    assert_eq!(
        (answer.rows[0].outcome, answer.rows[0].each[1].as_ref().unwrap().valid),
        ("undetermined", false)
    );
}

#[test]
fn a_trend_is_of_one_line_and_finds_its_step() {
    let rate = |i: usize| if i < 12 { 100.0 } else { 80.0 } + [0.0, 0.7, -0.4, 0.3, -0.6][i % 5];
    let mut all: Vec<Made> = (0..24).map(|i| made("x", rate(i))).collect();
    all.push(Made { valid: false, ..made("x", 1.0) });
    all.extend([Made { size: 65536, ..made("x", 7.0) }; 2]);
    let h = history(&all);
    let answer = trend(&h, &query(""));
    assert_eq!((answer.lines.len(), answer.points.len(), answer.left_out), (2, 24, 1));
    assert_eq!(answer.points[0].run, "r0");
    assert_eq!(answer.steps.iter().map(|s| (s.at, s.run.as_str())).collect::<Vec<_>>(), [(12, "r12")]);
    assert!(answer.steps[0].ratio.unwrap().contains(0.8), "{:?}", answer.steps);
    let other = trend(&h, &query(&format!("line={}", answer.lines[1].key.replace('|', "%7C"))));
    assert!(other.points.len() == 2 && other.said.starts_with("Undetermined: 2 runs"), "{}", other.said);
    assert!(trend(&h, &query("op=delete")).line.is_none());
}

/// A directory is read when somebody asks, and what is new is there the next time.
#[test]
fn what_is_new_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let known = RunHistory::new(dir.path().join("runs"), Some(dir.path().join("index.sqlite")));
    let HistoryState::Read(h) = known.look(Duration::from_secs(600)) else { panic!("it is not there") };
    assert!(h.runs.is_empty());
    std::fs::create_dir(dir.path().join("runs")).unwrap();
    let id = "20261101-080000-0001";
    plimsoll_store::RunDir::create_at(&dir.path().join("runs").join(id)).unwrap();
    let seen = || match known.look(Duration::from_secs(600)) {
        HistoryState::Read(h) => h.find(id).is_some(),
        _ => false,
    };
    while !seen() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The list is there first, and courses come to it.
#[test]
fn courses_come_to_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("runs");
    let ended = [40; 50];
    let id = "20261101-080000-0001";
    runs::make(&root, &runs::MadeRun { id, ended: &ended, ..runs::MadeRun::default() });
    let known = RunHistory::new(root, Some(dir.path().join("index.sqlite")));
    let seen = || match known.look(Duration::from_secs(600)) {
        HistoryState::Read(h) => list(&h, &query("")).runs.into_iter().find_map(|r| r.course),
        _ => None,
    };
    let course = loop {
        match seen() {
            Some(course) => break course,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!((course.of, course.seconds), (None, 5.0));
    assert_eq!(course.ops_per_s, [400.0; 32]);
}

/// `plimsoll runs list` reads what is new into the same index: what it found is no news to a server's own look, which has to show it.
#[test]
fn what_another_process_read_into_the_index_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (root, file) = (dir.path().join("runs"), dir.path().join("index.sqlite"));
    let ended = [40; 50];
    let [old, new] = ["20261101-080000-0001", "20261101-090000-0002"];
    runs::make(&root, &runs::MadeRun { id: old, ended: &ended, ..runs::MadeRun::default() });
    let known = RunHistory::new(root.clone(), Some(file.clone()));
    let shown = |id: &str| loop {
        match known.look(Duration::from_secs(600)) {
            HistoryState::Read(h) if h.find(id).is_some() => return h.runs.len(),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(shown(old), 1);
    std::fs::remove_dir_all(root.join(old)).unwrap();
    runs::make(&root, &runs::MadeRun { id: new, ended: &ended, ..runs::MadeRun::default() });
    let found = RunIndex::open_at(&root, &file).unwrap().refresh().unwrap();
    assert_eq!((found.read, found.gone), (1, 1));
    // One run before and one after it.
    assert_eq!(shown(new), 1);
}
