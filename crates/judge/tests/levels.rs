//! Rates over a run: levels that grow, teeth, and ops that outlast the slices that they are counted in. What a run consists of is
//! reported, and it is not void for it. So are times in which everything was refused.

mod support;

use plimsoll_control::ControlStep;
use plimsoll_model::{Level, Plan};
use support::{GRID_NS, SLOTS, Slice, finding, judged, judged_beside, judged_run, judged_slices, written_as};

/// Slices of levels: (ops in a slice, slices); one in `one_in` slices has a refusal more.
fn levels(all: &[(u64, usize)], one_in: u64) -> Vec<(u64, u64)> {
    let ok = all.iter().flat_map(|&(ops, n)| vec![ops; n]);
    (0..).zip(ok).map(|(i, ok)| (ok, u64::from(one_in > 0 && i % one_in.max(1) == 0))).collect()
}

/// 100, 200, 300, 400 op/s, each exactly: "INVALID: the interval is as wide as the rate".
#[test]
fn four_exact_levels_are_four_events_and_no_fault() {
    for one_in in [0, 2] {
        let (s, a) = judged(&levels(&[(10, 750), (20, 750), (30, 750), (40, 750)], one_in));
        assert!(s.answered && s.workloads[0].valid, "{:?}", s.findings);
        assert!(s.findings.iter().all(|f| f.level != Level::Invalid), "{:?}", s.findings);
        assert!(
            s.findings.iter().all(|f| !["F33", "F35", "F30"].contains(&f.code.as_str())),
            "{:?}",
            s.findings
        );
        let f = finding(&s, "F36");
        let what = if one_in == 0 { "rate" } else { "limit" };
        assert!(
            f.text.starts_with(&format!(
                "The {what} grew in 4 levels: 100.0 op/s for 75.0 s, then 200.0 op/s for 75.0 s, then 300.0 op/s for 75.0 s, then \
                 400.0 op/s for 75.0 s."
            )),
            "{}",
            f.text
        );
        assert!(f.text.contains("No sustained rate is known yet"), "{}", f.text);
        assert_eq!(f.evidence[3], ("level 4".to_owned(), "225 s to 300 s: 400.0 op/s".to_owned()));
        let [hold] = &a.holds[..] else { panic!("{:?}", a.holds) };
        assert_eq!((hold.verdict.as_str(), hold.levels.len()), ("growing", 4));
        assert!(s.verdict.contains("grew in 4 levels"), "{}", s.verdict);
        assert!(!s.verdict.contains("Measured"), "no mean over them is quoted: {}", s.verdict);
        assert!(
            a.advice[0]
                .starts_with("There is no sustained limit to configure yet: the last level (400 op/s)"),
            "{:?}",
            a.advice
        );
        assert!(a.advice.iter().all(|t| !t.contains("--rps-limit")), "{:?}", a.advice);
    }
}

/// Where the last level lasts for twice as long as any before, growth may be over.
#[test]
fn a_last_level_that_lasts_is_said_to() {
    let (s, a) = judged(&levels(&[(10, 300), (20, 300), (30, 300), (40, 1200)], 0));
    assert!(
        finding(&s, "F36").text.contains("has lasted for longer than any before (2 min)"),
        "{:?}",
        s.findings
    );
    assert!(a.advice.iter().all(|t| !t.contains("no sustained limit")), "{:?}", a.advice);
}

#[test]
fn a_ramp_and_a_dip_are_no_levels() {
    // 100 to 400 op/s within 300 s, in whole ops.
    let done = |i: u64| 10 * i + i * i / 200;
    let ramp: Vec<(u64, u64)> = (0..3000).map(|i| (done(i + 1) - done(i), 0)).collect();
    let dip = levels(&[(40, 1200), (10, 300), (40, 1200)], 0);
    for slices in [ramp, dip] {
        let (s, a) = judged(&slices);
        assert!(s.findings.iter().all(|f| !["F36", "F37"].contains(&f.code.as_str())), "{:?}", s.findings);
        assert!(a.holds.iter().all(|h| h.verdict != "growing" && h.verdict != "sawtooth"), "{:?}", a.holds);
    }
}

#[test]
fn a_sawtooth_is_one_and_no_fault() {
    let slices: Vec<(u64, u64)> =
        (0..3000).map(|i| (6 + 7 * (i % 400) / 400, u64::from(i % 400 > 300))).collect();
    let (s, a) = judged(&slices);
    assert!(s.answered && s.workloads[0].valid, "{:?}", s.findings);
    let f = finding(&s, "F37");
    assert!(f.text.contains("like a sawtooth: from") && f.text.contains("adaptive limit"), "{}", f.text);
    assert!(s.verdict.contains("sawtooth") && !s.verdict.contains("Measured"), "{}", s.verdict);
    assert_eq!(a.holds[0].verdict, "sawtooth");
    assert!(a.advice[0].starts_with("There is no constant rate to configure"), "{:?}", a.advice);
}

/// Each slot sends its next op when the last one has ended, until `n` slices have passed.
fn long_ops(n: usize, took: impl Fn(u64) -> u64) -> Vec<Slice> {
    let mut slices = vec![Slice::default(); 2 * n];
    let mut last = n;
    for slot in 0..SLOTS {
        let mut at = 0;
        while at < n {
            slices[at].started += 1;
            at += took(slot) as usize;
            slices[at].ok += 1;
            slices[at].in_system_ns += took(slot) * GRID_NS;
        }
        last = last.max(at + 1);
    }
    slices.truncate(last);
    slices
}

/// Sixteen in flight that take 15 s each end six times in 92 s: by what ended in a second the rate is 0 or 16 op/s.
#[test]
fn a_closed_loop_of_long_ops_has_the_rate_of_what_they_take() {
    let in_step = |_: u64| 150;
    let apart = |slot: u64| 120 + 4 * slot;
    let rate = |took: &dyn Fn(u64) -> u64| (0..SLOTS).map(|slot| 10.0 / took(slot) as f64).sum::<f64>();
    for (took, truth) in [(&in_step as &dyn Fn(u64) -> u64, rate(&in_step)), (&apart, rate(&apart))] {
        let (s, a) = judged_slices(&long_ops(920, took), 920);
        let w = &s.workloads[0];
        let e = w.ops_per_s.unwrap();
        assert!((e.value / truth - 1.0).abs() < 0.01, "{e:?}, {truth}");
        assert!(e.low <= truth * 1.001 && truth * 0.999 <= e.high && e.relative_half_width() < 0.05, "{e:?}");
        assert!((w.bytes_per_s.unwrap().value / e.value - 4096.0).abs() < 1.0);
        assert!(s.answered && w.valid, "{:?}", s.findings);
        assert!(
            s.findings.iter().all(|f| !["V04", "Q03", "F32", "F60"].contains(&f.code.as_str())),
            "{:?}",
            s.findings
        );
        assert_eq!(a.holds[0].verdict, "steady", "{:?}", a.holds[0]);
    }
}

/// Bytes go over the wire while ops go on: what they come to in a window is the rate, however few ops end in it.
#[test]
fn long_ops_of_objects_have_the_rate_of_their_bytes() {
    let mut slices = long_ops(920, |slot| 300 + 4 * slot);
    let ends: u64 = slices.iter().map(|s| s.ok).sum();
    // Twice as fast in the second half, and the drain: no op tells so by how long it took.
    let weight = |i: usize| if i < 460 { 1.0 } else { 2.0 };
    let all: f64 = (0..slices.len()).map(weight).sum();
    let total = ends as f64 * 4096.0;
    let until = |i: usize| (total * (0..i).map(weight).sum::<f64>() / all).round() as u64;
    for (i, s) in slices.iter_mut().enumerate() {
        s.moved = Some(until(i + 1) - until(i));
    }
    let (s, _) = judged_slices(&slices, 920);
    let truth = (20..920).map(weight).sum::<f64>() * ends as f64 / all / 90.0;
    let e = s.workloads[0].ops_per_s.unwrap();
    assert!((e.value / truth - 1.0).abs() < 1e-3 && e.low < truth && truth < e.high, "{e:?}, {truth}");
    // Ended by hand, with all slots in the middle of an op: until then they moved as they should.
    let mut by_hand: Vec<Slice> = slices[..920].to_vec();
    by_hand[919].cancelled = SLOTS;
    let (s, _) = judged_slices(&by_hand, 920);
    let e = s.workloads[0].ops_per_s.unwrap();
    assert!((e.value / truth - 1.0).abs() < 1e-3, "{e:?}, {truth}");
    // Bytes for nothing are no work: then by how long ops took, here too few to tell.
    slices[500].moved = Some(1 << 20);
    let (s, _) = judged_slices(&slices, 920);
    assert!((s.workloads[0].ops_per_s.unwrap().value / truth - 1.0).abs() > 0.01);
}

/// What a refused attempt took says nothing of what was done.
#[test]
fn long_ops_beside_refusals_are_counted_where_they_end() {
    let mut slices = long_ops(920, |slot| 120 + 4 * slot);
    (slices[500].refused, slices[500].started) = (1, slices[500].started + 1);
    let (s, _) = judged_slices(&slices, 920);
    let ended = slices[20..920].iter().map(|s| s.ok).sum::<u64>() as f64 / 90.0;
    let e = s.workloads[0].ops_per_s.unwrap();
    assert!((e.value - ended).abs() < 1e-9, "{e:?}, {ended}");
}

/// A rate that falls to a fifth, and is held there exactly: a bucket, unless somebody took the machine's processors when it fell.
#[test]
fn what_others_take_of_the_processors_is_no_buckets_end() {
    let slice = |ok: u64| Slice { ok, started: ok, in_system_ns: SLOTS * GRID_NS, ..Slice::default() };
    let slices: Vec<Slice> = [vec![slice(50); 600], vec![slice(10); 1200]].concat();
    let bucket = |others| {
        let (s, a) = judged_beside(&slices, slices.len(), Some(others));
        (a.buckets.len(), finding(&s, "F30").text.clone())
    };
    // Nobody else; and somebody whose coming has nothing to do with it.
    for others in [(60, 0.0), (60, 0.04), (0, 0.5)] {
        let (n, text) = bucket(others);
        assert_eq!(n, 1, "{others:?}: {text}");
    }
    let (n, text) = bucket((60, 0.9));
    assert!(n == 0 && text.contains("took this machine's CPU"), "{text}");
}

/// A step that is not clear of slow variation, or not sharp, was listed as a fall above evidence that denied it ("E2 no").
#[test]
fn a_fall_that_is_listed_is_not_denied_by_its_evidence() {
    let sharp = levels(&[(100, 600), (40, 900)], 0);
    let slow: Vec<(u64, u64)> =
        (0..1800u64).map(|i| (100 - 60 * i.saturating_sub(600).min(400) / 400, 0)).collect();
    let several = levels(&[(100, 400), (90, 30), (70, 40), (55, 50), (40, 900)], 2);
    for (slices, falls) in [(sharp, 1), (slow, 0), (several, 0)] {
        let (s, a) = judged(&slices);
        let cliffs = &a.holds[0].cliffs;
        assert!(cliffs.len() <= falls, "{cliffs:?}");
        assert_eq!(falls > 0, s.findings.iter().any(|f| f.code == "F30"), "{:?}", s.findings);
        let denied = |c: &plimsoll_model::analysis::Cliff| {
            c.evidence.iter().any(|e| e.weight == "needed" && e.holds != Some(true))
        };
        assert!(!cliffs.iter().any(denied), "{cliffs:?}");
    }
}

/// What ends while a limiter of 100 ops per 10 s is used up (6.9 s of each window), by what the load does when it is refused.
fn used_up(i: u64, insists: bool) -> Slice {
    match (i % 100 < 31, insists) {
        (true, _) => Slice { ok: 3, started: 3, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
        (false, true) => {
            Slice { refused: 400, started: 400, in_system_ns: SLOTS * GRID_NS, ..Slice::default() }
        }
        (false, false) if i.is_multiple_of(7) => {
            Slice { refused: 3, started: 3, in_system_ns: GRID_NS, paused: 15, ..Slice::default() }
        }
        (false, false) => Slice { paused: SLOTS, ..Slice::default() },
    }
}

/// "INVALID F60: outages took 69 % of the load's time": what answers with refusals is throttled, and not out.
#[test]
fn a_limiter_that_refuses_for_most_of_each_window_is_throttling_and_no_outage() {
    for (insists, is_503) in [(true, false), (false, false), (true, true)] {
        let slices: Vec<Slice> = (0..900).map(|i| Slice { is_503, ..used_up(i, insists) }).collect();
        let (s, a) = judged_slices(&slices, slices.len());
        assert!(a.outages.is_empty() && s.findings.iter().all(|f| f.code != "F60"), "{:?}", s.findings);
        assert!(s.answered && s.findings.iter().all(|f| f.level != Level::Invalid), "{:?}", s.findings);
        let f = finding(&s, "F38");
        let share = "9 times, 69 % of the load's time";
        assert!(
            f.text.starts_with(&format!("Throttled to nothing for 6.9 s of each 10.0 s ({share}): ")),
            "{}",
            f.text
        );
        assert!(s.verdict.contains(&f.text), "{}", s.verdict);
        // What a user gets is the mean over all of it.
        assert!(!s.verdict.contains("utage"), "{}", s.verdict);
        // Of 503 alone nobody knows whose it is, however often it comes.
        assert_eq!(s.verdict.contains("behind a proxy"), is_503, "{}", s.verdict);
        assert_eq!(s.verdict.contains("rate limiter refuses"), !is_503, "{}", s.verdict);
        assert_eq!(
            finding(&s, "F01").text.contains("or the storage was down behind a proxy"),
            is_503,
            "{:?}",
            s.findings
        );
        let e = s.workloads[0].ops_per_s.unwrap();
        assert!((e.value - 777.0 / 88.0).abs() < 0.01, "{e:?}");
        // What falls within a window is no fall of the rate: the quota is told.
        assert!(
            s.findings.iter().all(|f| f.code != "F30") && a.holds[0].cliffs.is_empty(),
            "{:?}",
            s.findings
        );
        assert!(finding(&s, "F32").text.contains("ops in each 10.00 s"), "{:?}", s.findings);
        assert_eq!(a.throttled.len(), 9);
        assert!(
            a.throttled.iter().all(|t| (t.length_s() - 6.9).abs() < 0.05 && t.may_be_down == is_503),
            "{:?}",
            a.throttled
        );
    }
}

/// Refused for the first 17 s, as a limiter does whose window was used up before; 503 may be a proxy's, and so both are named.
#[test]
fn one_time_of_refusals_is_told_with_its_times() {
    for (is_503, why) in
        [(false, "a limiter let nothing through."), (true, "or the storage was down behind a proxy.")]
    {
        let at = |i: u64| match i {
            1..170 => {
                Slice { refused: 30, started: 30, in_system_ns: SLOTS * GRID_NS, is_503, ..Slice::default() }
            }
            _ => Slice { ok: 1, started: 1, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
        };
        let slices: Vec<Slice> = (0..720).map(at).collect();
        let (s, a) = judged_slices(&slices, slices.len());
        assert!(a.outages.is_empty() && s.answered, "{:?}", s.findings);
        let f = finding(&s, "F38");
        assert!(
            f.text.starts_with("Throttled to nothing for 16.9 s, from 0.1 s to 17.0 s into the load (23 %"),
            "{}",
            f.text
        );
        assert!(f.text.contains(why) && f.text.contains("(5,070 attempts, http_"), "{}", f.text);
        assert_eq!(s.verdict.contains("rate limiter refuses"), !is_503, "{}", s.verdict);
        assert!(s.verdict.contains("nothing got through for a part of the time (F38)"), "{}", s.verdict);
        // The rate is what a user got, and why it is not better known is said.
        assert!(s.workloads[0].valid && s.workloads[0].ops_per_s.is_some(), "{:?}", s.findings);
        let wide =
            s.findings.iter().find(|f| ["no_rate", "wide_interval"].contains(&f.name.as_str())).unwrap();
        assert!(
            wide.level == Level::Qualified && wide.text.contains("everything was refused for 23 %"),
            "{wide:?}"
        );
    }
}

/// A bucket that runs dry, and a load that pauses for a second after each refusal, as it is told to: the cliff is the answer, and its pauses are no
/// windows of a limiter.
#[test]
fn pauses_of_a_load_that_does_as_it_is_told_are_no_throttling_to_nothing() {
    let at = |i: u64| match i {
        0..130 => Slice { ok: 150, started: 150, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
        _ if i % 11 < 2 => Slice {
            ok: 55,
            refused: 4,
            started: 59,
            in_system_ns: SLOTS * GRID_NS,
            is_503: true,
            ..Slice::default()
        },
        _ => Slice { paused: SLOTS, ..Slice::default() },
    };
    let slices: Vec<Slice> = (0..400).map(at).collect();
    let (s, a) = judged_slices(&slices, slices.len());
    assert!(a.outages.is_empty() && a.throttled.is_empty(), "{:?} {:?}", a.outages, a.throttled);
    let cliff = a.holds[0].cliffs.first().unwrap_or_else(|| panic!("{:?}", s.findings));
    assert!((12.0..14.5).contains(&cliff.at_s), "{cliff:?}");
    assert!(s.findings.iter().any(|f| f.code == "F30"), "{:?}", s.findings);
}

/// Large objects, 16 per second: ten seconds of silence before five of 503 were in no finding, and "throttle proved" was said of the fall.
#[test]
fn silence_before_refusals_is_an_outage_however_few_ops_there_are() {
    let at = |i: u64| match i {
        120..216 => Slice { in_system_ns: 4 * GRID_NS, ..Slice::default() },
        216..270 => {
            Slice { refused: 2, started: 2, in_system_ns: 4 * GRID_NS, is_503: true, ..Slice::default() }
        }
        // Four at once, in step.
        _ if i.is_multiple_of(3) => {
            Slice { ok: 4, started: 4, in_system_ns: 4 * GRID_NS, ..Slice::default() }
        }
        _ => Slice { in_system_ns: 4 * GRID_NS, ..Slice::default() },
    };
    let slices: Vec<Slice> = (0..310).map(at).collect();
    let (s, a) = judged_slices(&slices, slices.len());
    let [o] = &a.outages[..] else { panic!("{:?} {:?}", a.outages, s.findings) };
    assert_eq!((o.span.from_s, o.span.to_s), (11.8, Some(21.6)));
    assert!(finding(&s, "F38").text.contains("or the storage was down behind a proxy"), "{:?}", s.findings);
    assert!(!s.verdict.contains("rate limiter refuses"), "{}", s.verdict);
    // Nor is it proved by a fall into what may be a proxy's.
    assert!(a.holds[0].cliffs.iter().all(|c| c.verdict != "throttle proved"), "{:?}", a.holds[0].cliffs);
}

/// Silence with ops in flight is an outage, whatever was refused before it.
#[test]
fn silence_after_refusals_is_still_an_outage() {
    let at = |i: u64| match i {
        300..340 => Slice { refused: 30, started: 30, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
        340..420 => Slice::default(),
        _ => Slice { ok: 20, started: 20, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
    };
    let slices: Vec<Slice> = (0..720).map(at).collect();
    let (s, a) = judged_slices(&slices, slices.len());
    let [o] = &a.outages[..] else { panic!("{:?}", a.outages) };
    assert_eq!((o.span.from_s, o.span.to_s), (34.0, Some(42.0)));
    assert_eq!(finding(&s, "F60").level, Level::Invalid, "{:?}", s.findings);
    assert!(finding(&s, "F38").text.contains("for 4.0 s, from 30.0 s to 34.0 s"), "{:?}", s.findings);
    // Not "without outages": that is not what a user gets.
    assert!(
        s.verdict
            .contains("Outside of outages the rate was 190 ± 50 op/s, and over the whole load it was less."),
        "{}",
        s.verdict
    );
}

/// Servers that hang while the first stage of a probe drains: it was not fed to the probe again, and the run said that it needs more time.
#[test]
fn a_probe_that_ended_because_nothing_was_answered_says_so_from_its_record() {
    let text = "version = 1\n[targets.s3]\nkind = \"s3\"\nendpoints = [\"http://10.0.0.9:9000\"]\nbucket = \"bench\"\n[controller]\n\
                kind = \"limits\"\nbudget = \"2m\"\n[[controller.template.workload]]\nname = \"get\"\nmix = { get = 1 }\n\
                size = \"4KiB\"\nconcurrency = 16\n";
    let plan = Plan::from_toml(text).unwrap();
    let ControlStep::Run(spec) = plimsoll_control::of_plan(&plan).unwrap().next(&[]) else {
        panic!("a load")
    };
    let at = |i: u64| match i {
        0..12 => Slice { ok: 20, started: 20, in_system_ns: SLOTS * GRID_NS, ..Slice::default() },
        _ => Slice::default(),
    };
    let slices: Vec<Slice> = (0..650).map(at).collect();
    let dir = tempfile::tempdir().unwrap();
    let s = judged_run(&written_as(dir.path(), (&plan, *spec), &slices, 30, None)).0;
    assert!(finding(&s, "F59").text.contains("Nothing was answered for"), "{:?}", s.findings);
    assert!(finding(&s, "F57").text.contains("F59"), "{:?}", s.findings);
    assert!(s.findings.iter().all(|f| !f.text.contains("--budget")), "{:?}", s.findings);
}

/// What a window of 100 per 10 s makes of a load that asks `per_s` times a second, whatever it is answered. `phase`: slices of the first
/// window that were over before.
fn behind_a_window(per_s: u64, phase: usize, slices: usize) -> Vec<(u64, u64)> {
    let mut left = 100;
    let asked = |i: u64| (i + 1) * per_s / 10 - i * per_s / 10;
    (0..slices)
        .map(|i| {
            if (i + phase).is_multiple_of(100) {
                left = 100;
            }
            let ok = asked(i as u64).min(left);
            left -= ok;
            (ok, asked(i as u64) - ok)
        })
        .collect()
}

/// The least that passes over a few seconds is the silence of a window, and no rate to live with: 1 op/s was advised where 10 pass.
#[test]
fn no_rate_is_advised_that_a_window_does_not_give() {
    let (_, a) = judged(&behind_a_window(19, 49, 620));
    assert!(a.advice[0].starts_with("There is no constant rate to configure"), "{:?}", a.advice);
    assert_eq!(
        a.advice[1..],
        ["Which rate passes without refusals was not tried here: plimsoll limits tries it."]
    );
    for per_s in [15, 18, 19, 20, 25, 40, 100] {
        for phase in (0..100).step_by(7) {
            let (_, a) = judged(&behind_a_window(per_s, phase, 620));
            for (_, figure) in a.advice.iter().filter_map(|t| t.split_once("--rps-limit ")) {
                let figure: f64 = figure.split(',').next().unwrap().parse().unwrap();
                assert!((9.0..10.0).contains(&figure), "{per_s} asked, {phase}: {:?}", a.advice);
            }
        }
    }
    // Where the series shows the window, it is told as what it is.
    let (_, a) = judged(&behind_a_window(400, 0, 620));
    assert!(
        a.advice[0].starts_with("A quota of 100 requests per 10 s: at most 100 at once"),
        "{:?}",
        a.advice
    );
    assert!(a.advice[1].ends_with("warp --rps-limit 9.9, rclone --tpslimit 9.9."), "{:?}", a.advice);
}
