//! Outages are found when they are there, to the slice, and nothing is called one that is not: noise, stalls, cliffs, quotas,
//! ops that end together, pauses.

use plimsoll_model::claim::{Outage, OutageKind as Kind};
use plimsoll_stats::outage::{Seen, ThrottledTimes, find, sentence, throttled};
use plimsoll_stats::rng::Rng;
use plimsoll_stats::simulate::fluid::Fluid;
use plimsoll_stats::simulate::{Load, System};

const DT_S: f64 = 0.1;

fn poisson(rng: &mut Rng, mean: f64) -> f64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * rng.normal()).round().max(0.0);
    }
    let (limit, mut k, mut p) = ((-mean).exp(), 0.0, 1.0);
    loop {
        p *= rng.uniform();
        if p <= limit {
            return k;
        }
        k += 1.0;
    }
}

struct Series {
    ok: Vec<f64>,
    throttled: Vec<f64>,
    failed: Vec<f64>,
    in_flight: Vec<f64>,
    held_back: Vec<f64>,
    refused_s: f64,
}

impl Series {
    fn of(ok: Vec<f64>) -> Self {
        let n = ok.len();
        let none = || vec![0.0; n];
        Self {
            ok,
            throttled: none(),
            failed: none(),
            in_flight: vec![16.0; n],
            held_back: none(),
            refused_s: 0.0,
        }
    }

    /// Ops per second in parts of (seconds, rate).
    fn parts(seed: u64, parts: &[(f64, f64)]) -> Self {
        let mut rng = Rng::new(seed);
        let slices = |s: f64| (s / DT_S).round() as usize;
        let all = parts.iter().flat_map(|&(s, rate)| std::iter::repeat_n(rate, slices(s)));
        Self::of(all.map(|rate| poisson(&mut rng, rate * DT_S)).collect())
    }

    fn seen(&self, op_s: f64) -> Seen<'_> {
        Seen {
            ok: &self.ok,
            throttled: &self.throttled,
            failed: &self.failed,
            in_flight: &self.in_flight,
            held_back: &self.held_back,
            dt_s: DT_S,
            op_s,
            refused_s: self.refused_s,
            at: "it",
            ..Seen::default()
        }
    }

    fn find(&self, op_s: f64) -> Vec<Outage> {
        find(&self.seen(op_s))
    }

    fn throttled(&self, op_s: f64) -> ThrottledTimes {
        throttled(&self.seen(op_s))
    }
}

fn near(a: f64, b: f64, by: f64) -> bool {
    (a - b).abs() <= by
}

#[test]
fn a_gap_is_found_to_the_slice() {
    for (seed, rate, gap_s) in
        [(1, 113.0, 7.0), (2, 1000.0, 0.5), (3, 5000.0, 1.7), (4, 20.0, 4.0), (5, 300.0, 20.0)]
    {
        let s = Series::parts(seed, &[(12.3, rate), (gap_s, 0.0), (20.0, rate)]);
        let found = s.find(0.016);
        let [o] = &found[..] else { panic!("{rate} {gap_s}: {found:?}") };
        let slack = 0.1 + 8.0 / rate;
        assert!(near(o.span.from_s, 12.3, slack), "{o:?}");
        assert!(near(o.span.to_s.unwrap(), 12.3 + gap_s, slack), "{o:?}");
        assert_eq!(o.kind, Kind::Silent);
        assert!(near(o.before_per_s.unwrap().value, rate, rate * 0.15), "{o:?}");
        assert!(near(o.after_per_s.unwrap().value, rate, rate * 0.15) && o.during_per_s == 0.0, "{o:?}");
        assert!(o.recover_s.unwrap() < 2.0 + slack, "{o:?}");
        let without = o.without_per_s.unwrap().value;
        assert!(near(without, rate, rate * 0.1), "{without} of {rate}");
        // Where much of the load was a gap its mean is too vague to be stated.
        assert!(o.with_per_s.is_none_or(|with| with.value < without), "{o:?}");
    }
}

#[test]
fn storage_that_never_comes_back_has_no_end() {
    let s = Series::parts(6, &[(13.2, 150.0), (46.8, 0.0)]);
    let found = s.find(0.1);
    assert_eq!(found.len(), 1);
    assert!(near(found[0].span.from_s, 13.2, 0.11) && found[0].span.to_s.is_none(), "{found:?}");
    assert!(found[0].after_per_s.is_none() && found[0].recover_s.is_none() && found[0].in_flight == 16.0);
}

#[test]
fn each_of_several_is_told_and_so_is_a_slow_recovery() {
    let s = Series::parts(
        7,
        &[(10.0, 400.0), (2.0, 0.0), (10.0, 400.0), (1.7, 0.0), (5.0, 120.0), (20.0, 400.0)],
    );
    let found = s.find(0.04);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        near(found[1].span.from_s, 22.0, 0.11) && near(found[1].recover_s.unwrap(), 4.5, 0.8),
        "{found:?}"
    );
}

#[test]
fn what_came_instead_names_it() {
    let mut s = Series::parts(8, &[(10.0, 200.0), (4.0, 0.0), (10.0, 200.0)]);
    s.failed[100..140].fill(30.0);
    assert_eq!(s.find(0.08)[0].kind, Kind::Failing);
    s.failed[100..140].fill(0.0);
    s.throttled[100..140].fill(900.0);
    assert_eq!(s.find(0.08), [], "who refuses has answered");
    assert_eq!(s.throttled(0.08), ThrottledTimes { stretches: vec![(100, 140)], each_s: None });
    // The sixteen that were in flight fail as it begins, and a try now and then comes through.
    s.throttled[100..140].fill(0.0);
    s.failed[100] = 16.0;
    s.ok[120] = 1.0;
    let found = s.find(0.08);
    assert_eq!((found.len(), found[0].kind), (1, Kind::Silent), "{found:?}");
}

/// What is not known is not named, and a straggler is not nothing.
#[test]
fn words_say_what_was_seen() {
    let mut s = Series::parts(8, &[(10.0, 200.0), (4.0, 0.0), (10.0, 200.0)]);
    assert!(sentence(&s.find(0.08)[0]).contains("it answered nothing, with 16 ops in flight"));
    s.failed[100..140].fill(30.0);
    let mut o = s.find(0.08).remove(0);
    let said = sentence(&o);
    assert!(said.contains("it answered nothing but errors (1200 attempts without success)**"), "{said}");
    o.outcome = Some("reset".into());
    assert!(sentence(&o).contains("1200 attempts without success, most of them reset"));
    s.failed[100..140].fill(0.0);
    s.ok[120] = 1.0;
    let said = sentence(&s.find(0.08)[0]);
    assert!(said.contains("answered almost nothing"), "{said}");
    // Times are on the run's axis.
    let ok = vec![10.0; 100].into_iter().chain(vec![0.0; 50]).collect::<Vec<f64>>();
    let none = vec![0.0; 150];
    let late = Seen {
        stage: 3,
        at: "dev",
        load_s: 40.0,
        start_s: 40.0,
        ok: &ok,
        throttled: &none,
        failed: &none,
        in_flight: &vec![1.0; 150],
        held_back: &none,
        dt_s: DT_S,
        op_s: 0.01,
        refused_s: 0.0,
    };
    let found = find(&late);
    let span = &found[0].span;
    assert_eq!((span.stage, span.at.as_str(), span.from_s, span.to_s), (3, "dev", 50.0, None));
    assert!(near(span.seen_until_s, 55.0, 1e-9), "{span:?}");
}

#[test]
fn nobody_asked_is_no_outage() {
    let mut s = Series::parts(9, &[(10.0, 200.0), (4.0, 0.0), (10.0, 200.0)]);
    s.in_flight[100..140].fill(0.0);
    assert_eq!(s.find(0.08), []);
}

/// At the end of a burst all slots are refused once, and pause as they were told: nobody asks. A server that refuses them again and again
/// while they back off answers each time.
#[test]
fn a_load_that_holds_back_is_no_outage_and_refusals_that_go_on_are_none() {
    let mut s = Series::parts(10, &[(10.0, 1800.0), (0.9, 0.0), (20.0, 100.0)]);
    s.throttled[100] = 16.0;
    s.in_flight[100..109].fill(0.8);
    s.held_back[100..109].fill(15.2);
    assert_eq!(s.find(0.004), []);
    let mut s = Series::parts(11, &[(10.0, 1800.0), (9.0, 0.0), (20.0, 1800.0)]);
    for i in (100..190).step_by(10) {
        s.throttled[i] = 16.0;
    }
    s.in_flight[100..190].fill(0.8);
    s.held_back[100..190].fill(15.2);
    assert_eq!(s.find(0.004), []);
    assert_eq!(s.throttled(0.004).stretches, [(100, 190)]);
}

/// Refused for three seconds, and then silent for three: the silence is an outage, and the refusals are not.
#[test]
fn silence_beside_refusals_is_still_an_outage() {
    let mut s = Series::parts(12, &[(10.0, 200.0), (6.0, 0.0), (10.0, 200.0)]);
    s.throttled[100..130].fill(40.0);
    let found = s.find(0.08);
    let [o] = &found[..] else { panic!("{found:?}") };
    assert_eq!((o.kind, o.span.from_s, o.span.to_s), (Kind::Silent, 13.0, Some(16.0)));
    assert_eq!(s.throttled(0.08).stretches, [(100, 130)]);
    // So is what fails; a refusal among the failures changes nothing.
    s.failed[130..160].fill(50.0);
    s.throttled[140] = 1.0;
    let found = s.find(0.08);
    let [o] = &found[..] else { panic!("{found:?}") };
    assert_eq!((o.kind, o.span.from_s, o.span.to_s), (Kind::Failing, 10.0, Some(16.0)), "most of it failed");
}

/// A window of 10 s that lets a hundred ops through at once: the load insists, backs off, or is told how long to wait.
#[test]
fn a_window_that_is_used_up_is_throttled_in_its_rhythm() {
    for how in ["insists", "backs off", "waits"] {
        let mut s = Series::of((0..900).map(|i| if i % 100 < 31 { 100.0 / 31.0 } else { 0.0 }).collect());
        for i in (0..900).filter(|i| i % 100 >= 31) {
            (s.throttled[i], s.in_flight[i], s.held_back[i]) = match (how, i % 100) {
                ("insists", _) => (900.0, 16.0, 0.0),
                ("backs off", k) if k % 7 == 0 => (3.0, 0.1, 15.9),
                ("waits", 31) => (16.0, 0.1, 15.9),
                _ => (0.0, 0.0, 16.0),
            };
        }
        assert_eq!(s.find(0.004), [], "{how}");
        let found = s.throttled(0.004);
        assert_eq!(found.stretches.len(), 9, "{how}: {found:?}");
        let (length_s, apart_s) = found.each_s.unwrap();
        assert!(near(length_s, 6.9, 0.01) && near(apart_s, 10.0, 0.01), "{how}: {found:?}");
    }
    // Few ops, now and then one that is refused: a low rate, and nothing to tell.
    let mut s = Series::parts(3, &[(120.0, 2.0)]);
    s.throttled.fill(2.0);
    assert_eq!((s.find(0.01), s.throttled(0.01)), (Vec::new(), ThrottledTimes::default()));
}

#[test]
fn a_low_rate_and_long_ops_are_silent_by_themselves() {
    // Two a second: gaps of two seconds come by chance.
    for seed in 0..200 {
        assert_eq!(Series::parts(seed, &[(120.0, 2.0)]).find(1.0), [], "{seed}");
    }
    // Sixty-four ops that take 5 s each and end together.
    let ok: Vec<f64> = (0..600).map(|i| if i % 50 == 49 { 64.0 } else { 0.0 }).collect();
    assert_eq!(Series::of(ok).find(5.0), []);
}

#[test]
fn a_quota_per_window_is_a_rhythm() {
    for busy in [2, 5] {
        let ok: Vec<f64> = (0..600).map(|i| if i % 20 < busy { 100.0 } else { 0.0 }).collect();
        let mut s = Series::of(ok);
        for (t, ok) in s.throttled.iter_mut().zip(&s.ok) {
            *t = if *ok == 0.0 { 500.0 } else { 0.0 };
        }
        assert_eq!(s.find(0.01), [], "{busy}");
    }
}

/// Windows that are no whole number of slices, and an outage among them.
#[test]
fn a_quota_of_any_length_is_a_rhythm_and_hides_no_outage() {
    let series = |window_s: f64, away: std::ops::Range<usize>| {
        let open = |i: usize| (i as f64 * DT_S) % window_s < 0.6 * window_s && !away.contains(&i);
        Series::of((0..600).map(|i| if open(i) { 100.0 } else { 0.0 }).collect())
    };
    for window_s in [2.37, 4.61, 7.77, 9.13] {
        assert_eq!(series(window_s, 0..0).find(0.01), [], "{window_s}");
    }
    let found = series(2.37, 300..420).find(0.01);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        near(found[0].span.from_s, 30.0, 1.1) && near(found[0].span.to_s.unwrap(), 42.0, 1.1),
        "{found:?}"
    );
}

/// Refused for the rest of each window, whatever part of it is silent and wherever the load began in it: what a window's rest explains
/// by itself is still a part of the rhythm of the others.
#[test]
fn the_rest_of_a_window_that_is_refused_is_no_outage() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (window_s, share) = (1.0 + 9.0 * rng.uniform(), 0.1 + 0.8 * rng.uniform());
        let begun_s = window_s * rng.uniform();
        let open = |i: usize| (begun_s + i as f64 * DT_S) % window_s < share * window_s;
        let mut s =
            Series::of((0..600).map(|i| if open(i) { poisson(&mut rng, 30.0) } else { 0.0 }).collect());
        s.throttled = (0..600).map(|i| if open(i) { 0.0 } else { 120.0 }).collect();
        assert_eq!(s.find(0.2), [], "{seed}: {share} of {window_s} s");
    }
}

#[test]
fn a_cliff_and_a_thin_plateau_are_no_outage() {
    for seed in 0..100 {
        let s = Series::parts(seed, &[(30.0, 900.0), (90.0, 5.0)]);
        assert_eq!(s.find(0.02), [], "{seed}");
    }
}

/// The fluid model of the validation: noise, correlation times, stalls of 70 % for 1 to 3 s.
#[test]
fn ordinary_noise_and_stalls_are_no_outage() {
    let (mut alarms, mut stalls) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let rate = 10f64.powf(1.0 + 3.0 * rng.uniform());
        let mut f = Fluid::new(seed, rate, 1e12, 0.001, 1e9);
        f.cv = 0.01 + 0.07 * rng.uniform();
        f.stall_rate = 0.05;
        f.stall_depth = 0.7;
        f.stall_s = 1.0 + 2.0 * rng.uniform();
        let load =
            Load { size_bytes: 4096.0, concurrency: 64, duration_s: 60.0, dt_s: DT_S, offered_per_s: None };
        let seen = f.run(&load);
        let ok: Vec<f64> = seen.ops_per_s.iter().map(|r| poisson(&mut rng, r * DT_S)).collect();
        stalls += usize::from(ok.iter().any(|v| *v < 0.5 * rate * DT_S));
        alarms += Series::of(ok).find(64.0 / rate).len();
    }
    assert!(stalls > 100, "{stalls}");
    assert_eq!(alarms, 0);
}

#[test]
fn odd_input_is_no_outage() {
    assert_eq!(find(&Seen::default()), []);
    assert_eq!(Series::of(vec![]).find(0.0), []);
    assert_eq!(Series::of(vec![0.0; 5]).find(0.0), []);
    let dead = Series::of(vec![0.0; 100]).find(0.0);
    assert!(
        dead.len() == 1
            && dead[0].span.from_s == 0.0
            && dead[0].span.to_s.is_none()
            && dead[0].before_per_s.is_none()
    );
    assert_eq!(Series::of(vec![f64::NAN; 100]).find(0.0), []);
    // Where ops take 10 s elsewhere, one at a slow endpoint takes longer: that is none before twenty of them could have ended.
    assert_eq!(Series::of(vec![0.0; 100]).find(10.0), []);
    assert_eq!(Series::of(vec![0.0; 2100]).find(10.0).len(), 1);
}

#[test]
fn wrong_answers_from_the_first_to_the_last_are_no_outage() {
    let mut s = Series::of(vec![0.0; 100]);
    s.failed.fill(40.0);
    assert_eq!(s.find(0.01), []);
    // Nothing but refusals is told as what it is, once; a few of them before silence are not why it was silent.
    s.failed.fill(0.0);
    s.throttled.fill(40.0);
    assert_eq!(s.find(0.01), []);
    s.throttled.fill(0.0);
    s.throttled[0] = 16.0;
    assert_eq!(s.find(0.01)[0].kind, Kind::Silent);
}

/// A quota of 137 in a window of 1 s, kept by the count of the window before and of this one (as proxies do): the first window
/// lets its quota through at once, and refuses for the rest of the second; then the quota comes evenly.
fn windowed(seconds: usize) -> Series {
    let mut s = Series::of(vec![0.0; 10 * seconds]);
    for i in 0..s.ok.len() {
        s.ok[i] = match i {
            0 => 137.0,
            1..10 => 0.0,
            _ if i % 10 < 7 => 14.0,
            _ => 13.0,
        };
        s.throttled[i] = 200.0;
    }
    s
}

/// What a limiter refuses for the rest of its window is no outage: the burst beside it makes up for it.
#[test]
fn the_rest_of_a_limiters_window_is_no_outage() {
    assert_eq!(windowed(15).find(0.01), []);
    // The load begins in the middle of a window that was used up before.
    let mut s = windowed(15);
    s.ok.rotate_left(1);
    s.ok[0..9].fill(0.0);
    s.ok[9] = 137.0;
    assert_eq!(s.find(0.01), []);
}

/// Behind the same limiter the storage goes away for longer than any window, and nothing answers.
#[test]
fn an_outage_behind_a_limiter_is_still_found() {
    let mut s = windowed(60);
    s.ok[300..340].fill(0.0);
    s.throttled[300..340].fill(0.0);
    let found = s.find(0.01);
    let [o] = &found[..] else { panic!("{found:?}") };
    assert_eq!((o.kind, o.span.from_s, o.span.to_s), (Kind::Silent, 30.0, Some(34.0)));
    // With refusals, be they of a proxy, it answers.
    s.throttled[300..340].fill(200.0);
    assert_eq!(s.find(0.01), []);
    assert!(s.throttled(0.01).stretches.contains(&(300, 340)), "{:?}", s.throttled(0.01));
}

/// 429 that come 3 s late (a limiter that keeps them waiting): what is silent until then was an outage, and the run INVALID. Nor is it
/// throttled to nothing: all slots wait, and nobody asks.
#[test]
fn a_silence_that_ends_with_refusals_that_were_kept_waiting_is_no_outage() {
    // No rhythm of the load's.
    let mut all = Vec::new();
    let mut ends = Vec::new();
    for on_s in [2.0, 5.0, 3.0, 9.0, 2.5, 6.0, 4.0, 12.0] {
        all.extend([(on_s, 40.0), (3.0, 0.0)]);
        ends.push((all.iter().map(|(s, _)| s).sum::<f64>() / DT_S).round() as usize);
    }
    all.push((1.0, 40.0));
    let late = |with_the_next: usize, refused_s: f64| {
        let mut s = Series::parts(11, &all);
        for end in &ends {
            s.throttled[end - 1 + with_the_next] = 16.0;
        }
        s.refused_s = refused_s;
        (s.find(0.01).len(), s.throttled(0.01).stretches.len())
    };
    // In the last slice of the silence, or in the first in which something gets through again.
    assert_eq!(late(0, 3.0), (0, 0));
    assert_eq!(late(1, 3.0), (0, 0));
    // Refusals that are answered at once do not explain three seconds of silence.
    assert_eq!(late(0, 0.005).0, 8);
    assert_eq!(late(1, 0.005).0, 8);
}
