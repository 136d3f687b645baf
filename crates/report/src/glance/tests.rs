use plimsoll_model::Finding;
use plimsoll_model::claim::{Attempted, Claim, Place};
use plimsoll_model::summary::{LimitSummary, WorkloadSummary};

use super::*;

fn run(kinds: impl IntoIterator<Item = ClaimKind>) -> RunReport {
    let claims = kinds.into_iter().map(|kind| Claim { subject: None, kind, text: String::new() });
    RunReport::of(RunSummary {
        id: "20260214-1011".into(),
        answered: true,
        status: RunStatus::Valid,
        claims: claims.collect(),
        ..RunSummary::default()
    })
}

fn rate(op: &str, size_bytes: u64, ops: f64) -> ClaimKind {
    let place = Place {
        op: op.into(),
        size_bytes,
        concurrency: 16,
        offered_per_s: None,
        jobs: 0,
        repeats: 2,
        window_s: 24.0,
    };
    let of = Attempted { ok: 9, per_s: 2.0 * ops };
    let bytes = Estimate::symmetric(ops * size_bytes as f64, 0.01 * ops * size_bytes as f64, 9.0);
    ClaimKind::Rate(
        Rate::new(RateWord::Measured, place, Estimate::symmetric(ops, 0.01 * ops, 9.0), Some(bytes), of)
            .unwrap(),
    )
}

#[test]
fn a_rate_says_how_much_of_what_and_for_how_long() {
    let r = run([rate("put", 4096, 320.0)]);
    assert_eq!(sentence(&r), "320 ± 4 op/s of 4KiB PUT, 1.311 ± 0.014 MB/s, seen for 12.0 s");
    assert_eq!(result(&r.summary), "320 ± 4 op/s of 4KiB PUT");
    let refusing = Refusing::new("put", 100, 98, None, 320.0).unwrap();
    let r = run([rate("put", 4096, 320.0), ClaimKind::Refusing(refusing)]);
    assert!(sentence(&r).ends_with("; a rate limiter refuses 98 % of PUT"), "{}", sentence(&r));
}

/// 3 of 2,000 passed, and "100 %" was said to be refused.
#[test]
fn what_is_not_all_is_not_said_to_be_all() {
    let said = |refused: u64| {
        let x = Refusing::new("put", 2000, refused, None, 0.3).unwrap();
        sentence(&probe([ClaimKind::Refusing(x)], limit("ops", refused as f64 / 2000.0, None)))
    };
    assert_eq!(said(1997), "a rate limiter refuses 99.85 % of PUT; about 0.30 op/s get through");
    assert!(said(2000).starts_with("all 2,000 attempts of PUT were refused (429 or 503);"), "{}", said(2000));
}

/// Told to wait for ten minutes, a client gets next to nothing of a limiter that lets 20 a second through.
#[test]
fn what_gets_through_a_load_that_held_back_is_told_as_that() {
    let said = |held: f64| {
        let x = Refusing::new("put", 100, 90, None, 1.1).unwrap().held_back(held);
        sentence(&probe([ClaimKind::Refusing(x)], limit("ops", 0.9, None)))
    };
    assert_eq!(
        said(0.99),
        "a rate limiter refuses 90 % of PUT; about 1.1 op/s get through (the load held back)"
    );
    assert!(said(0.0).ends_with("get through"));
}

/// A bucket of which a bound is known was "986 (interval unknown) ops".
#[test]
fn a_bound_of_a_bucket_is_told_as_one() {
    let mut l = limit("ops", 0.5, Some(20.0));
    let bound = |value: f64| Some(Estimate { value, low: value, high: f64::MAX, n_eff: 1.0 });
    l.ops_per_s.as_mut().unwrap().capacity = bound(986.0);
    l.bytes_per_s =
        l.ops_per_s.clone().map(|b| plimsoll_model::summary::BucketSummary { capacity: bound(38.7e6), ..b });
    let r = probe([], l);
    let said: Vec<String> = facts(&r).into_iter().map(|f| f.text).collect();
    assert!(
        said.contains(&"at least 986 ops".to_owned()) && said.contains(&"at least 38.7 MB".to_owned()),
        "{said:?}"
    );
}

/// A run whose limits were looked for.
fn probe(kinds: impl IntoIterator<Item = ClaimKind>, limit: LimitSummary) -> RunReport {
    let mut r = run(kinds);
    r.summary.limits = vec![limit];
    r
}

fn limit(binding: &str, refused: f64, sustained: Option<f64>) -> LimitSummary {
    LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(plimsoll_model::summary::BucketSummary {
            sustained: sustained.map(|v| Estimate::symmetric(v, 1.0, 9.0)),
            ..Default::default()
        }),
        bytes_per_s: None,
        knee_bytes: None,
        binding: binding.into(),
        refused: Some(refused),
        evidence: Vec::new(),
    }
}

#[test]
fn a_limiter_that_was_found_is_never_not_found() {
    let refusing = Refusing::new("put", 1000, 912, None, 40.0).unwrap();
    let seen = Cap::new("put", Unit::Ops, false, Estimate::symmetric(40.0, 8.0, 9.0)).unwrap();
    let r =
        probe([ClaimKind::Refusing(refusing), ClaimKind::Cap(seen.clone())], limit("ops", 0.912, Some(40.0)));
    assert_eq!(sentence(&r), "a rate limiter refuses 91 % of PUT; about 40 op/s get through");
    assert!(facts(&r).iter().all(|f| !f.text.contains("no limit")), "{:?}", facts(&r));
    let mut r = probe(
        [ClaimKind::Binding(plimsoll_model::claim::Binding::new("put", "in_flight").unwrap())],
        limit("in_flight", 0.0, None),
    );
    let text =
        "The limit is on requests in flight (about 6), not on a rate. With 6 in flight nothing is refused.";
    r.summary.findings = vec![Finding::new("F66", "limit_at_once", Level::Info, text)];
    assert_eq!(sentence(&r), "The limit is on requests in flight (about 6), not on a rate");
    assert!(facts(&r).iter().all(|f| !f.text.contains("no limit")), "{:?}", facts(&r));
    let client = ClaimKind::Binding(plimsoll_model::claim::Binding::new("put", "client").unwrap());
    let r = probe([ClaimKind::Cap(seen), client], limit("client", 0.0, Some(40.0)));
    assert!(sentence(&r).ends_with("of PUT; the client limited the rate"), "{}", sentence(&r));
}

#[test]
fn a_probe_that_is_void_quotes_no_limit() {
    let cap = Cap::new("put", Unit::Ops, true, Estimate::symmetric(1004.0, 6.0, 9.0)).unwrap();
    let mut r = probe([ClaimKind::Cap(cap)], limit("ops", 0.5, Some(1004.0)));
    r.summary.answered = false;
    r.summary.findings =
        vec![Finding::new("V22", "steal", Level::Invalid, "The hypervisor took 9 % of the CPU.")];
    let g = Glance::of(&r);
    assert!(!format!("{g:?}").contains("1,004"), "{g:?}");
}

#[test]
fn a_promise_that_was_not_met_is_always_told() {
    let mut r = run([rate("put", 4096, 320.0)]);
    let promise = |text: &str, met| Expectation {
        text: text.into(),
        met,
        void: false,
        measured: None,
        reason: String::new(),
    };
    r.summary.expectations = (0..9).map(|i| promise(&format!("p{i}"), Some(true))).collect();
    r.summary.expectations.push(promise("the last", Some(false)));
    let g = Glance::of(&r);
    assert_eq!(g.facts.iter().filter(|f| f.name == "promise").count(), MOST_PROMISES);
    assert!(g.facts.iter().any(|f| f.text == "NOT met: the last"), "{g:?}");
    assert!(g.facts.len() <= MOST_FACTS, "{g:?}");
}

#[test]
fn lines_that_are_no_mix_are_not_called_one() {
    let mut r = run([rate("put", 4096, 320.0), rate("get", 4096, 900.0)]);
    let line = |op: &str, concurrency| WorkloadSummary {
        op: op.into(),
        concurrency,
        size_bytes: 4096,
        valid: true,
        ..Default::default()
    };
    r.summary.workloads = vec![line("put", 16), line("get", 16)];
    assert_eq!(title(&r), "GET and PUT");
    assert!(sentence(&r).starts_with("up to 900"), "{}", sentence(&r));
    r.summary.workloads = vec![line("get", 1), line("get", 4)];
    assert_eq!(title(&r), "GET at 2 concurrencies");
}

#[test]
fn a_limit_says_how_long_its_burst_lasts() {
    let cap = Cap::new("put", Unit::Ops, true, Estimate::symmetric(1000.0, 2.0, 9.0)).unwrap();
    let full = Estimate::symmetric(20_000.0, 100.0, 4.0);
    let burst = Burst::new(&cap, full, Some(Estimate::symmetric(3000.0, 9.0, 4.0)), None, None).unwrap();
    let of = |kinds: Vec<ClaimKind>| probe(kinds, limit("ops", 0.0, Some(1000.0)));
    let r = of(vec![ClaimKind::Cap(cap.clone()), ClaimKind::Burst(burst)]);
    assert_eq!(
        sentence(&r),
        "1,000.0 ± 2.0 op/s of PUT sustained; 3,000 ± 9 op/s for 10.0 s from a full bucket"
    );
    let bytes = Cap::new("put", Unit::Bytes, true, Estimate::symmetric(31.4e6, 2e5, 9.0)).unwrap();
    let both = [cap, bytes].map(|c| ClaimKind::Cap(c.held_for(Some(20.0))));
    assert_eq!(
        sentence(&of(both.to_vec())),
        "1,000.0 ± 2.0 op/s of PUT (held for 20.0 s), 31.40 ± 0.20 MB/s of PUT (held for 20.0 s)"
    );
    let seen = Cap::new("get", Unit::Ops, false, Estimate::symmetric(900.0, 2.0, 9.0)).unwrap();
    assert_eq!(sentence(&of(vec![ClaimKind::Cap(seen)])), "900.0 ± 2.0 op/s of GET; no limit found");
}

/// With the colons of k6's own settings; and they go before anything else does.
#[test]
fn what_to_set_is_told_in_the_units_of_both_kinds_of_tools() {
    let mut r = probe([rate("put", 4096, 98.0)], limit("ops", 0.0, Some(98.0)));
    r.analysis.advice = [
        "To stay below the limit with one client: warp --rps-limit 98, rclone --tpslimit 98.",
        "Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'.",
    ]
    .map(String::from)
    .into();
    let told = |r: &RunReport| {
        let of = |f: &GlanceFact| (f.name.clone(), f.text.clone());
        Glance::of(r).facts.iter().map(of).filter(|(name, _)| name != "ops").take(2).collect::<Vec<_>>()
    };
    let set = ("stay below".to_owned(), "warp --rps-limit 98, rclone --tpslimit 98".to_owned());
    let generators =
        ("generators".to_owned(), "vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'".to_owned());
    assert_eq!(told(&r), [set.clone(), generators]);
    r.summary.findings =
        ["F50", "F46", "F41", "F42"].map(|code| Finding::new(code, "asked", Level::Info, "Answered.")).into();
    let facts = told(&r);
    assert!(facts[0] == set && facts[1].0 != "generators", "{facts:?}");
}

#[test]
fn what_is_void_is_said_with_its_remedy_and_without_its_figures() {
    let mut r = run([rate("put", 4096, 320.0)]);
    r.summary.answered = false;
    let why = "The client was the limit. Use another one.";
    r.summary.findings = vec![Finding::new("V07", "client_bound", Level::Invalid, why)];
    let g = Glance::of(&r);
    assert_eq!(
        (g.mark.as_str(), g.sentence.as_str()),
        ("INVALID V07", "The client was the limit. Use another one")
    );
    assert!(g.reservations.is_empty() && !format!("{g:?}").contains("320"), "{g:?}");
}

#[test]
fn lines_are_cut_at_a_word() {
    assert_eq!(shortened("one two three", 13), "one two three");
    assert_eq!(shortened("one, two three", 11), "one, two …");
    assert_eq!(first_sentence("It took 1.5 s. That is long."), "It took 1.5 s");
}

/// A run of two lines, with what was found on the first.
fn of_two_lines(level: Level, on: &[usize]) -> RunReport {
    let mut r = run([rate("put", 4096, 320.0), rate("get", 4096, 900.0)]);
    let line = |op: &str| WorkloadSummary {
        name: format!("{op} 4KiB"),
        op: op.into(),
        size_bytes: 4096,
        valid: true,
        ..Default::default()
    };
    r.summary.workloads = vec![line("put"), line("get")];
    for i in on {
        let w = r.summary.workloads[*i].label();
        let text = format!("The interval is {} % wide. Run longer.", 33 + i);
        let f = Finding::new("Q03", "wide_interval", level, text).measured(0.33 + *i as f64, 0.1).on(&w);
        r.summary.findings.push(f);
    }
    r
}

#[test]
fn one_line_s_figure_is_not_said_of_all_lines() {
    let g = Glance::of(&of_two_lines(Level::Qualified, &[0]));
    assert_eq!(g.reservations[0].text, "put 4 KiB: The interval is 33 % wide");
    let g = Glance::of(&of_two_lines(Level::Qualified, &[0, 1]));
    assert_eq!(g.reservations[0].text, "get 4 KiB (and 1 more): The interval is 34 % wide");
    assert_eq!(g.reservations.len(), 1, "{g:?}");
    let mut void = of_two_lines(Level::Invalid, &[0]);
    void.summary.answered = false;
    assert_eq!(Glance::of(&void).sentence, "put 4KiB/put: The interval is 33 % wide. Run longer");
    let mut long = String::new();
    let both = of_two_lines(Level::Qualified, &[0, 1]).summary.findings;
    crate::terminal::findings(&mut long, &both, crate::terminal::Style::PLAIN);
    assert_eq!(
        long,
        "note Q03 wide_interval [get 4KiB/get; similar on 1 more]: The interval is 34 % wide. Run longer.\n\n"
    );
}

/// What the sentence says stands nowhere else.
#[test]
fn what_voids_a_search_is_told_once() {
    let why = "The hypervisor took 9 % of the CPU time. Use another machine.";
    let open = plimsoll_model::claim::Undetermined::new(
        "the best concurrency",
        format!("its search is void, by V22: {why}"),
    );
    let mut r = run([open.into()]);
    r.summary.findings = vec![
        Finding::new("V22", "steal", Level::Invalid, why),
        Finding::new(
            "V22",
            "steal",
            Level::Qualified,
            "The hypervisor took 3 % of the CPU time. Use another.",
        ),
        Finding::new("Q09", "same_host", Level::Qualified, "One machine. Use two."),
    ];
    let g = Glance::of(&r);
    assert!(g.sentence.contains("The hypervisor took 9 %"), "{g:?}");
    assert_eq!(g.reservations.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["Q09"], "{g:?}");
    assert_eq!(g.more_reservations, 1);
}

/// Whatever there is to be said, of whatever kind of run.
#[test]
fn every_kind_of_run_has_twelve_lines_at_most() {
    use crate::support::{self, kinds};
    let report =
        |(s, a): (RunSummary, plimsoll_model::Analysis)| RunReport { analysis: a, ..RunReport::of(s) };
    let pair = |(s, a, _): (RunSummary, plimsoll_model::Analysis, Vec<support::Script>)| report((s, a));
    let all = [
        report((support::sweep(), support::sweep_analysis())),
        report((support::mixed(), plimsoll_model::Analysis::default())),
        pair(kinds::object()),
        pair(kinds::limits()),
        pair(kinds::watch()),
        pair(kinds::cycles()),
        pair(kinds::search()),
        pair(kinds::block()),
        pair(kinds::suite("file")),
        pair(kinds::suite("drive")),
    ];
    for mut r in all {
        for (i, code) in ["Q01", "Q02", "Q03", "Q09", "V07"].iter().enumerate() {
            let text = format!("{} was not as it should be here. Do that.", "Something ".repeat(9));
            r.summary.findings.push(Finding::new(code, code, Level::Qualified, text).measured(i as f64, 1.0));
        }
        let text = Glance::of(&r).terminal(&r, crate::terminal::Style::PLAIN);
        assert!(text.lines().count() <= 12, "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(text.contains("more notes)"), "{text}");
    }
}

/// The writes of a mix are no writes alone: a pattern's figure goes by the pattern's name.
#[test]
fn a_pattern_s_figure_is_not_that_of_its_halves() {
    let line = |op: &str, load: &str| WorkloadSummary {
        name: format!("{load} 4KiB"),
        op: op.into(),
        load: load.into(),
        size_bytes: 4096,
        valid: true,
        ..Default::default()
    };
    let lines = [
        ("read", "randread", 500.0),
        ("read", "randrw", 400.0),
        ("write", "randrw", 450.0),
        ("total", "randrw", 850.0),
    ];
    let mut r = run(lines.map(|(op, _, per_s)| rate(op, 4096, per_s)));
    r.summary.workloads = lines.map(|(op, load, _)| line(op, load)).into();
    r.summary.workloads.push(WorkloadSummary { size_bytes: 65_536, ..line("read", "randread") });
    for (c, w) in r.summary.claims.iter_mut().zip(&r.summary.workloads) {
        c.subject = Some(w.label());
    }
    assert!(sentence(&r).starts_with("up to 850 ± 9 op/s (4KiB RANDRW), "), "{}", sentence(&r));
    r.summary.claims.pop();
    assert!(sentence(&r).starts_with("up to 500 ± 5 op/s (4KiB RANDREAD), "), "{}", sentence(&r));
}
