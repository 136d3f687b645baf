//! Worked by hand: what two sides say of each other.

use std::collections::BTreeMap;

use plimsoll_model::Estimate;
use plimsoll_model::units::{BytesRate, OpsRate};

use super::compare::Pairs;
use super::*;
use crate::file::Promised;
use crate::result::{CampaignRow, IntervalOf, VoidCellRun};

const MIB: f64 = 1_048_576.0;

fn promised(ops: f64, mib: f64) -> Promised {
    Promised { ops_per_s: Some(OpsRate(ops)), bytes_per_s: Some(BytesRate(mib * MIB)), ..Promised::default() }
}

fn row(
    subject: &str,
    op: &str,
    size_bytes: u64,
    rate: Option<(f64, f64)>,
    promised: Promised,
) -> CampaignRow {
    let ops = rate.map(|(value, half)| Estimate::symmetric(value, half, 3.0));
    CampaignRow {
        subject: subject.into(),
        labels: BTreeMap::new(),
        workload: format!("{} {}", op.to_uppercase(), size_bytes / 1000),
        line: format!("{op}/{op}"),
        op: op.into(),
        size_bytes,
        promised,
        ops_per_s: ops,
        bytes_per_s: ops.map(|o| o.scaled(size_bytes as f64)),
        interval_of: ops.map(|_| IntervalOf::Runs),
        ops_runs: 3,
        bytes_runs: 3,
        wider_than_asked: None,
        sd_within: None,
        sd_between: None,
        p50_ns: None,
        p99_ns: None,
        held_for_s: None,
        axes: Vec::new(),
        limit: None,
        best_at: None,
        falls: Vec::new(),
        remarks: Vec::new(),
        tools: Vec::new(),
        refused: 0.0,
        refused_ops: 0,
        bound: None,
        servers: None,
        runs: Vec::new(),
        void: Vec::new(),
        to_go: 0,
        instances: 1,
    }
}

fn result_of(rows: Vec<CampaignRow>) -> CampaignResult {
    CampaignResult {
        schema: RESULT_SCHEMA.into(),
        name: "ours".into(),
        question: None,
        until_wide: None,
        rows,
        by_time: Vec::new(),
        to_go: 0,
        failed: BTreeMap::new(),
    }
}

fn figure(subject: &str, workload: &str, ops: &str) -> PublishedFigure {
    PublishedFigure {
        subject: subject.into(),
        workload: workload.into(),
        ops_per_s: Some(ops.into()),
        ..PublishedFigure::default()
    }
}

/// Two tiers of seed figures, and a tenth of them here.
fn two_tiers() -> (Published, CampaignResult) {
    let published = Published {
        source: "s".into(),
        subjects: vec![
            PublishedSubject { name: "standard".into(), promised: promised(800.0, 600.0) },
            PublishedSubject { name: "premium".into(), promised: promised(1000.0, 800.0) },
        ],
        figures: vec![
            figure("standard", "PUT 4", "469.9"),
            figure("standard", "GET 4", "361.3"),
            figure("standard", "PUT 10000", "57.9"),
            figure("premium", "PUT 4", "560.5"),
            figure("premium", "GET 4", "613.7"),
        ],
        ..Published::default()
    };
    let (standard, premium) = (promised(80.0, 60.0), promised(100.0, 80.0));
    let ours = vec![
        row("standard", "put", 4000, Some((79.2, 0.8)), standard),
        row("standard", "get", 4000, Some((80.0, 0.4)), standard),
        row("standard", "put", 10_000_000, Some((6.2, 0.1)), standard),
        row("premium", "put", 4000, Some((99.0, 1.0)), premium),
        row("premium", "get", 4000, None, premium),
    ];
    (published, result_of(ours))
}

/// A campaign of which nothing was measured: its rows come from elsewhere.
fn nothing_done() -> CampaignState {
    let text = r#"
version = 1
name = "t"
[[subject]]
name = "a"
target = { kind = "null" }
[[workload]]
name = "put"
mix = { put = 1 }
sizes = ["4KiB"]
"#;
    CampaignState::new(&crate::file::CampaignFile::from_toml(text).unwrap(), &[])
}

fn compared(published: &Published, ours: &CampaignResult) -> Replication {
    let state = nothing_done();
    replication(&PublishedAs::Figures(Box::new(published.clone())), ours, (&[], &state), false)
}

fn of(r: &Replication, figure: ComparedFigure, subject: &str, workload: &str) -> ComparedFigures {
    let mut found =
        r.comparisons.iter().filter(|c| c.figure == figure && c.subject == subject && c.workload == workload);
    found.next().unwrap_or_else(|| panic!("{figure:?} of {subject}, {workload}")).clone()
}

fn near(e: Option<Estimate>, value: f64) -> bool {
    e.is_some_and(|e| (e.value - value).abs() < 2e-3 * value.abs())
}

#[test]
fn shares_of_what_is_promised_are_compared_and_absolute_figures_are_not() {
    let (published, ours) = two_tiers();
    let r = compared(&published, &ours);
    let absolute = of(&r, ComparedFigure::OpsPerS, "standard", "PUT 4");
    assert_eq!((absolute.verdict, absolute.difference), (ReplicaVerdict::NotComparable, None));
    assert_eq!(absolute.why.as_deref(), Some("other hardware"));
    // 469.9 / 800, 79.2 / 80; the half width is 0.8 / 80 beside that of the rounding, 0.05 / 800.
    let share = of(&r, ComparedFigure::ShareOfCap, "standard", "PUT 4");
    assert!(near(share.published, 0.587_375) && near(share.ours, 0.99), "{share:?}");
    assert!(near(share.difference, 0.402_625) && share.verdict == ReplicaVerdict::Higher);
    assert!((share.difference.unwrap().half_width() - 0.01).abs() < 1e-5);
    // At 10 MB it is payload that is promised: 600 MiB/s are 62.91 objects/s.
    let large = of(&r, ComparedFigure::ShareOfCap, "standard", "PUT 10000");
    assert!(near(large.published, 57.9 / 62.914_56) && near(large.ours, 6.2 / 6.291_456));
    let reached = of(&r, ComparedFigure::CapReached, "standard", "PUT 4");
    assert_eq!((reached.published_word.as_deref(), reached.our_word.as_deref()), (Some("none"), Some("ops")));
    assert_eq!(reached.verdict, ReplicaVerdict::Differs);
    assert_eq!(
        of(&r, ComparedFigure::CapReached, "standard", "PUT 10000").our_word.as_deref(),
        Some("bytes")
    );
}

#[test]
fn tiers_ops_sizes_and_knees_are_ratios_within_one_side() {
    let (published, ours) = two_tiers();
    let r = compared(&published, &ours);
    let tiers = of(&r, ComparedFigure::SubjectOverSubject, "premium", "PUT 4");
    assert!(near(tiers.promised.map(Estimate::exact), 1.25), "{tiers:?}");
    assert!(near(tiers.published, 560.5 / 469.9) && near(tiers.ours, 1.25));
    // (1 % and 1 %) are 1.4 % of 1.25.
    assert!((tiers.ours.unwrap().half_width() - 0.0179).abs() < 5e-4, "{tiers:?}");
    assert_eq!(tiers.verdict, ReplicaVerdict::Higher);
    let put_over_get = of(&r, ComparedFigure::WriteOverRead, "standard", "PUT 4");
    assert!(near(put_over_get.published, 469.9 / 361.3) && near(put_over_get.ours, 0.99));
    let largest = of(&r, ComparedFigure::OfLargestSize, "standard", "PUT 4");
    assert!(near(largest.published, 469.9 * 4000.0 / (57.9 * 1e7)), "{largest:?}");
    // 579 MB/s over 469.9 op/s are 1,232,177 bytes; promised are 786,432.
    let knee = of(&r, ComparedFigure::KneeOfPromised, "standard", "PUT 4 to PUT 10000");
    assert!(
        near(knee.published, 1_232_177.0 / 786_432.0) && near(knee.ours, 782_828.0 / 786_432.0),
        "{knee:?}"
    );
    assert_eq!(knee.verdict, ReplicaVerdict::Lower);
}

#[test]
fn a_tier_that_is_scaled_otherwise_is_not_held_against_another() {
    let (published, mut ours) = two_tiers();
    ours.rows[3].promised = promised(200.0, 160.0);
    let c = of(&compared(&published, &ours), ComparedFigure::SubjectOverSubject, "premium", "PUT 4");
    assert_eq!((c.verdict, c.difference), (ReplicaVerdict::NotComparable, None));
    assert!(c.why.unwrap().contains("promised are 1.250 there, and 2.500 here"));
}

#[test]
fn what_one_side_lacks_stays_empty_and_says_why() {
    let (mut published, mut ours) = two_tiers();
    ours.rows[4].void = vec![VoidCellRun { run: "r".into(), codes: vec!["V07".into()], exit: 3 }];
    published.figures.push(figure("standard", "PUT 64", "343.2"));
    published.figures.remove(0);
    let r = compared(&published, &ours);
    let void = of(&r, ComparedFigure::OpsPerS, "premium", "GET 4");
    assert_eq!(
        (void.verdict, void.why.as_deref(), void.ours),
        (ReplicaVerdict::OnlyPublished, Some("void V07"), None)
    );
    let none = of(&r, ComparedFigure::OpsPerS, "standard", "PUT 4");
    assert_eq!((none.verdict, none.published), (ReplicaVerdict::OnlyOurs, None));
    let stranger = of(&r, ComparedFigure::OpsPerS, "standard", "PUT 64");
    assert_eq!(stranger.why.as_deref(), Some("no cell of this campaign"));
    assert!(
        !r.comparisons
            .iter()
            .any(|c| c.figure == ComparedFigure::SubjectOverSubject && c.workload == "PUT 4")
    );
}

#[test]
fn one_run_and_intervals_without_an_end_carry_no_verdict() {
    let (published, mut ours) = two_tiers();
    ours.rows[0].interval_of = Some(IntervalOf::OneRun);
    ours.rows[1].ops_per_s = Some(Estimate::symmetric(80.0, f64::INFINITY, 1.0));
    let r = compared(&published, &ours);
    let one = of(&r, ComparedFigure::ShareOfCap, "standard", "PUT 4");
    assert_eq!(one.verdict, ReplicaVerdict::Inconclusive);
    assert!(one.why.unwrap().starts_with("a single run"));
    let open = of(&r, ComparedFigure::ShareOfCap, "standard", "GET 4");
    assert_eq!(
        (open.verdict, open.why.as_deref()),
        (ReplicaVerdict::Inconclusive, Some("its interval has no end"))
    );
    assert_eq!(of(&r, ComparedFigure::CapReached, "standard", "PUT 4").verdict, ReplicaVerdict::Inconclusive);
}

#[test]
fn a_rate_that_none_can_be_is_no_publication() {
    let with = |low: f64, value: f64, high: f64| {
        let mut theirs = result_of(vec![row("a", "put", 4000, Some((100.0, 3.0)), Promised::default())]);
        let e = theirs.rows[0].ops_per_s.as_mut().unwrap();
        (e.low, e.value, e.high) = (low, value, high);
        published_result(&serde_json::to_string(&theirs).unwrap())
    };
    assert!(with(97.0, 100.0, 103.0).is_ok());
    for (low, value, high) in
        [(900.0, 500.0, 100.0), (-500.0, -400.0, -300.0), (1e300, 1e300, 1e300), (1.0, 9.0, 8.0)]
    {
        assert!(with(low, value, high).unwrap_err().contains("not within its interval"));
    }
}

#[test]
fn a_publication_of_single_runs_has_no_verdict() {
    let of = |rate: f64| result_of(vec![row("a", "put", 4000, Some((rate, 1.0)), promised(100.0, 1.0))]);
    let mut theirs = of(80.0);
    theirs.rows[0].interval_of = Some(IntervalOf::OneRun);
    let r = replication(&PublishedAs::Campaign(Box::new(theirs)), &of(100.0), (&[], &nothing_done()), true);
    assert!(r.comparisons.iter().all(|c| c.verdict == ReplicaVerdict::Inconclusive), "{:?}", r.comparisons);
}

#[test]
fn on_the_same_hardware_a_figure_is_off_by_a_share_of_the_published_one() {
    let theirs = result_of(vec![row("a", "put", 4000, Some((100.0, 3.0)), Promised::default())]);
    let ours = result_of(vec![row("a", "put", 4000, Some((110.0, 3.3)), Promised::default())]);
    let state = nothing_done();
    let r = replication(&PublishedAs::Campaign(Box::new(theirs.clone())), &ours, (&[], &state), true);
    let c = of(&r, ComparedFigure::OpsPerS, "a", "PUT 4");
    assert!(
        near(c.difference, 0.1) && near(c.published, 100.0) && c.verdict == ReplicaVerdict::Higher,
        "{c:?}"
    );
    // 3 % and 3 % are 4.2 % of 1.1.
    assert!((c.difference.unwrap().half_width() - 0.0467).abs() < 1e-3, "{c:?}");
    let again = replication(&PublishedAs::Campaign(Box::new(theirs.clone())), &theirs, (&[], &state), true);
    assert_eq!(of(&again, ComparedFigure::OpsPerS, "a", "PUT 4").verdict, ReplicaVerdict::NoDifferenceSeen);
    assert!(Pairs::of(&[], &[]).cells(true).is_empty());
}

#[test]
fn a_result_of_an_unknown_version_is_refused_by_name() {
    let json = serde_json::to_string(&result_of(Vec::new())).unwrap();
    assert_eq!(published_result(&json).unwrap().name, "ours");
    let newer = json.replace("plimsoll.campaign/1", "plimsoll.campaign/9");
    assert!(published_result(&newer).unwrap_err().contains("'plimsoll.campaign/9'"));
    for broken in ["", "{}", "[]", "{\"schema\":\"plimsoll.campaign/1\"}"] {
        assert!(published_result(broken).is_err(), "{broken}");
    }
}

#[test]
fn a_fall_is_dated_within_run_and_phase() {
    let line = |line: &str, rates: [f64; 10]| cliff::RunSeries {
        subject: "d".into(),
        workload: "w".into(),
        line: line.into(),
        op: line.into(),
        rates: rates.map(Some).to_vec(),
    };
    let write = [135., 134., 136., 135., 135., 13., 13.1, 12.9, 13., 13.];
    let read = [98., 97., 99., 98., 6., 6.1, 5.9, 6., 6., 6.];
    let series = [line("write", write), line("read", read)];
    let cliff = |op: &str, after_run, before: &str, then: &str| PublishedCliff {
        subject: "d".into(),
        workload: "w".into(),
        op: Some(op.into()),
        after_run,
        before: before.into(),
        then: then.into(),
    };
    let published = Published {
        cliffs: vec![
            cliff("write", 5, "135", "13"),
            cliff("read", 3, "98 MB/s", "6 MB/s"),
            cliff("iops", 4, "300", "80"),
        ],
        ..Published::default()
    };
    let (lines, notes) = cliff::cliffs(&published, &series);
    let verdicts: Vec<_> = lines.iter().map(|c| (c.figure, c.verdict)).collect();
    use ComparedFigure::{CliffAfterRuns, CliffDrop};
    assert_eq!(verdicts[0], (CliffAfterRuns, ReplicaVerdict::Same));
    assert_eq!(verdicts[2], (CliffAfterRuns, ReplicaVerdict::Differs));
    assert_eq!(verdicts[5], (CliffDrop, ReplicaVerdict::Inconclusive));
    // 1 - 13 / 135 on both sides.
    assert!(near(lines[1].published, 0.9037) && near(lines[1].ours, 0.9037), "{:?}", lines[1]);
    assert_eq!(verdicts[1], (CliffDrop, ReplicaVerdict::NoDifferenceSeen));
    assert_eq!(notes, ["d, w: the fall is inside run 5: write of it are as before, read are not"]);
    // Two runs, each of ten rounds of its own: the later one falls elsewhere.
    let other = [135., 134., 136., 135., 13., 13.1, 12.9, 13., 13., 13.2];
    let both = [line("write", write), line("write", other), line("read", read)];
    let (lines, notes) = cliff::cliffs(&published, &both);
    assert_eq!(lines[0].our_word.as_deref(), Some("4 to 5"));
    assert_eq!(lines[0].verdict, ReplicaVerdict::Inconclusive);
    assert!(near(lines[1].ours, 0.9037), "{:?}", lines[1]);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn published_figures_that_are_none_have_a_place_and_a_remedy() {
    let head = "source = \"s\"\n";
    for (text, place, problem) in [
        ("[[figure]]\nsubject = \"a\"\nworkload = \"b\"\n", "figure 1", "no rate"),
        ("[[figure]]\nsubject = \"a\"\nworkload = \"b\"\nops_per_s = \"fast\"\n", "figure 1", "'fast'"),
        ("[[figure]]\nsubject = \"a\"\nworkload = \"b\"\nbytes_per_s = \"4\"\n", "figure 1", "'4'"),
        ("[[figure]]\nsubject = \"a\"\nwork = \"b\"\n", "line 4", "work"),
        (
            "[[cliff]]\nsubject = \"a\"\nworkload = \"b\"\nafter_run = 4\nbefore = \"80\"\nthen = \"300\"\n",
            "cliff 1",
            "no fall",
        ),
    ] {
        let e = Published::from_toml(&format!("{head}{text}")).unwrap_err();
        assert!(e.place.contains(place) && e.problem.contains(problem) && !e.remedy.is_empty(), "{e:?}");
    }
}

#[test]
fn a_burst_is_compared_by_its_ratio_and_unscaled_and_a_knee_by_what_is_promised() {
    use crate::burst::{BurstFigures, LimitFigures};
    let (there, here) = (promised(500.0, 100.0), promised(200.0, 40.0));
    let of = |value: f64, half: f64| Some(Estimate::symmetric(value, half, 3.0));
    let burst = BurstFigures { per_s: of(300.0, 3.0), lasts_s: of(12.0, 0.3), ..BurstFigures::default() };
    let found = LimitFigures {
        knee_bytes: of(here.bytes_per_s.unwrap().0 / 200.0, 100.0),
        ops: Some(burst),
        bytes: None,
    };
    let probe = CampaignRow {
        workload: "limits".into(),
        line: "read limit".into(),
        limit: Some(found),
        ..row("hdd", "read", 0, Some((200.0, 0.5)), here)
    };
    let limit = |subject: &str| PublishedLimit {
        subject: subject.into(),
        workload: "limits".into(),
        // Of 100 MiB/s, where 100 MB/s are said.
        knee: Some("220.0KB".into()),
        burst_over_sustained: Some("1.5".into()),
        burst_lasts_s: Some("60".into()),
        time_scale: 0.2,
    };
    let published = Published {
        subjects: vec![PublishedSubject { name: "hdd".into(), promised: there }],
        limits: vec![limit("hdd"), limit("nvme")],
        ..Published::default()
    };
    let lines = limits::limits(&published, &result_of(vec![probe]));
    let find =
        |subject: &str, figure| lines.iter().find(|l| l.subject == subject && l.figure == figure).unwrap();
    let knee = find("hdd", ComparedFigure::LimitKnee);
    // 220 of 209.7 KB.
    assert!((knee.published.unwrap().value - 1.049).abs() < 0.001, "{knee:?}");
    assert!(
        (knee.ours.unwrap().value - 1.0).abs() < 1e-9 && knee.verdict == ReplicaVerdict::Lower,
        "{knee:?}"
    );
    let over = find("hdd", ComparedFigure::BurstOverSustained);
    assert!(
        (over.ours.unwrap().value - 1.5).abs() < 1e-9 && over.verdict == ReplicaVerdict::NoDifferenceSeen,
        "{over:?}"
    );
    let lasts = find("hdd", ComparedFigure::BurstLasts);
    assert!(
        (lasts.ours.unwrap().value - 60.0).abs() < 1e-9 && lasts.verdict == ReplicaVerdict::NoDifferenceSeen,
        "{lasts:?}"
    );
    let missing = find("nvme", ComparedFigure::BurstLasts);
    assert_eq!((missing.verdict, missing.ours), (ReplicaVerdict::OnlyPublished, None));
    let mut wrong = Published { source: "s".into(), ..published };
    wrong.limits[0].time_scale = 0.0;
    assert!(wrong.check().unwrap_err().to_string().contains("published limit 1 (hdd, limits)"));
}
