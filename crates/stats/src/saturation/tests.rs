//! Where a search ends, what it then says, and that it keeps its budget.

use super::*;

fn drive(
    o: SaturationOptions,
    seen: impl Fn(u32, SaturationPhase) -> SaturationObservation,
) -> (SaturationOutcome, Vec<u32>) {
    let mut s = SaturationSearch::new(o);
    let (mut last, mut asked) = (None, Vec::new());
    for _ in 0..200 {
        match s.next(last.as_ref()) {
            SaturationAction::Done => return (s.outcome(), asked),
            SaturationAction::Measure { concurrency, phase, .. } => {
                asked.push(concurrency);
                last = Some(seen(concurrency, phase));
            }
        }
    }
    panic!("it does not end: {asked:?}");
}

fn hard(c: u32) -> SaturationObservation {
    let x = (f64::from(c) * 50.0).min(1000.0);
    SaturationObservation {
        ops_per_s: x,
        mean_latency_s: f64::from(c) / x,
        ..SaturationObservation::default()
    }
}

#[test]
fn finds_the_plateau_of_a_hard_limit() {
    let (o, asked) = drive(SaturationOptions::default(), |c, _| hard(c));
    assert_eq!((o.ended, o.c95), (Ended::Saturated, Some(32)));
    assert!((o.plateau.unwrap() - 1000.0).abs() < 1.0 && o.changed.is_none());
    assert_eq!(o.knee, Some(16));
    assert!(asked.len() <= 16 && *asked.last().unwrap() == 4, "{asked:?}");
}

/// A limit that one in flight reaches: the first rung (4) was called the least that does.
#[test]
fn a_rate_that_is_flat_from_the_first_rung_on_is_followed_down() {
    let flat = |c: u32, _| SaturationObservation {
        ops_per_s: 150.0,
        mean_latency_s: f64::from(c) / 150.0,
        ..SaturationObservation::default()
    };
    let (o, asked) = drive(SaturationOptions::default(), flat);
    assert_eq!((o.ended, o.c95, o.changed), (Ended::Saturated, Some(1), None), "{asked:?}");
    let three = |c: u32, _| SaturationObservation {
        ops_per_s: 50.0 * f64::from(c.min(3)),
        ..SaturationObservation::default()
    };
    assert_eq!(drive(SaturationOptions::default(), three).0.c95, Some(4));
}

/// A plateau that a limiter makes with refusals is none of the storage, nor is a rate that still rises below its limit.
#[test]
fn a_curve_with_refusals_is_a_limiters() {
    let refusing = |share: f64| {
        move |c: u32, _| SaturationObservation { refused: if c >= 32 { share } else { 0.0 }, ..hard(c) }
    };
    let (o, _) = drive(SaturationOptions::default(), refusing(0.4));
    // What the refused rungs gave is no part of the plateau: 16 is the best of what was not refused.
    assert_eq!((o.ended, o.c95, o.refused_from), (Ended::Refused, Some(16), Some(32)));
    assert!((o.refused - 0.4).abs() < 1e-9, "{}", o.refused);
    assert_eq!(drive(SaturationOptions::default(), refusing(0.001)).0.ended, Ended::Saturated);
    let o = SaturationOptions { max: 32, ..SaturationOptions::default() };
    assert_eq!(drive(o, |c, _| SaturationObservation { refused: 0.1, ..hard(c) }).0.ended, Ended::Refused);
}

/// Eight at once, and the others are refused and back off: those are refused rarely, and what comes through the few gaps that eight
/// leave made more in flight the advice.
#[test]
fn a_limit_on_what_is_in_flight_is_the_most_that_is_recommended() {
    let limit = |most: u32| {
        move |c: u32, _| {
            let held_back = 1.0 - f64::from(most.min(c)) / f64::from(c);
            SaturationObservation {
                ops_per_s: 100.0 * f64::from(c.min(most)) * (1.0 + 0.3 * held_back),
                refused: 0.005 * held_back,
                held_back,
                ..SaturationObservation::default()
            }
        }
    };
    for (most, best) in [(8, 8), (15, 8), (16, 16), (3, 2), (2, 2), (1, 1)] {
        let (o, asked) = drive(SaturationOptions::default(), limit(most));
        assert_eq!(
            (&o.ended, o.c95, o.refused_from),
            (&Ended::Refused, Some(best), Some(2 * best)),
            "{asked:?}"
        );
        assert!(o.plateau.unwrap() < 100.0 * f64::from(most) * 1.01, "{o:?}");
        // Two refused rungs are enough, and what is refused is not tried again.
        assert!(asked.iter().all(|c| *c <= (4 * best).max(64)), "{asked:?}");
        assert!(most < 4 || asked.iter().filter(|c| **c > best).count() == 2, "{asked:?}");
    }
    // A rung that was refused once, below others that were not, is a hiccup.
    let (o, _) = drive(SaturationOptions::default(), |c, _| SaturationObservation {
        refused: if c == 8 { 0.02 } else { 0.0 },
        ..hard(c)
    });
    assert_eq!((o.c95, o.refused_from), (Some(32), None));
}

#[test]
fn what_a_curve_without_a_plateau_shows_at_its_end() {
    let to = |max: u32| {
        drive(SaturationOptions { start: max.min(4), max, ..SaturationOptions::default() }, |c, _| hard(c))
            .0
            .still_rose
    };
    assert_eq!((to(1), to(8)), (None, Some(true)));
    let flat = |c: u32, _| SaturationObservation {
        ops_per_s: 150.0,
        mean_latency_s: f64::from(c),
        ..SaturationObservation::default()
    };
    assert_eq!(
        drive(SaturationOptions { max: 8, ..SaturationOptions::default() }, flat).0.still_rose,
        Some(false)
    );
}

#[test]
fn stops_where_it_must_and_says_why() {
    let bound = drive(SaturationOptions::default(), |c, _| SaturationObservation {
        client_bound: c >= 16,
        ..hard(c)
    })
    .0;
    assert_eq!(bound.ended, Ended::ClientBound);
    let o = SaturationOptions { p99_ceiling_s: Some(0.025), ..SaturationOptions::default() };
    let slow = drive(o, |c, _| SaturationObservation { p99_s: Some(hard(c).mean_latency_s), ..hard(c) }).0;
    assert_eq!((slow.ended, slow.c95), (Ended::LatencyCeiling, Some(16)));
    assert_eq!(
        drive(SaturationOptions::default(), |_, _| SaturationObservation::default()).0.ended,
        Ended::NoThroughput
    );
    assert_eq!(
        drive(SaturationOptions { max: 8, ..SaturationOptions::default() }, |c, _| hard(c)).0.ended,
        Ended::AtMaximum
    );
    let nan = SaturationObservation { ops_per_s: f64::NAN, ..SaturationObservation::default() };
    assert_eq!(drive(SaturationOptions::default(), |_, _| nan).0.c95, None);
}

/// A minute for two ops ended each with a fifth of its time unused, and its best concurrency without an interval.
#[test]
fn what_is_left_of_a_budget_repeats_what_was_found() {
    for budget_s in [20.0, 30.0, 45.0] {
        let (o, asked, took_s) = slow_ops(0.5, 12.0, budget_s);
        assert!(took_s <= budget_s, "{took_s} of {budget_s}");
        let best = o.c95.unwrap();
        let seen = o.curve.iter().find(|p| p.concurrency == best).unwrap().seen.len();
        assert!(
            seen >= 2 || took_s > 0.85 * budget_s,
            "{best} seen {seen} times in {took_s} of {budget_s} s: {asked:?}"
        );
    }
}

/// 6.5 of 6.92 a second, of 13 and of 9 ops that four slots kept in flight, was "the storage changed during the search".
#[test]
fn a_few_ops_more_or_less_are_no_change() {
    let of = |ops: u64, last: f64| {
        move |c: u32, phase| SaturationObservation {
            ops_per_s: if phase == SaturationPhase::Return { last } else { 6.92 },
            ops,
            latency_cv: 0.2,
            ..hard(c)
        }
    };
    let o = SaturationOptions { max: 4, ..SaturationOptions::default() };
    assert_eq!(drive(o, of(9, 6.5)).0.changed, None);
    assert!(drive(o, of(900, 6.5)).0.changed.is_some());
    assert!(drive(o, of(9, 2.0)).0.changed.is_some(), "a third of it is no matter of counting");
}

#[test]
fn a_storage_that_changed_meanwhile_is_noticed() {
    let seen = |c, phase| {
        if phase == SaturationPhase::Return {
            SaturationObservation { ops_per_s: 60.0, ..hard(c) }
        } else {
            hard(c)
        }
    };
    assert!((drive(SaturationOptions::default(), seen).0.changed.unwrap() + 0.7).abs() < 0.01);
}

/// Two measurements of one point that differ much, and nothing else: one degree of freedom. Its interval had 118 digits.
#[test]
fn an_interval_that_bounds_nothing_is_none() {
    for factor in [1.0, 0.2, 0.02] {
        let n = std::cell::Cell::new(0);
        let o = SaturationOptions { start: 8, max: 8, ..SaturationOptions::default() };
        let (out, _) = drive(o, |c, _| {
            n.set(n.get() + 1);
            SaturationObservation {
                ops_per_s: if n.get() % 2 == 0 { factor } else { 1.0 } * hard(c).ops_per_s,
                ..hard(c)
            }
        });
        for e in out.rates.iter().chain(&out.rate) {
            assert!(e.value.is_finite() && e.low <= e.value && e.value <= e.high, "{e:?}");
            assert!(e.high == f64::INFINITY || e.high < 2.001 * e.value, "{e:?}");
        }
    }
    let once = SaturationSearch::new(SaturationOptions::default()).outcome();
    assert!(once.rates.is_empty() && once.rate.is_none());
}

/// Points that overlap wholly do not show that fewer fall short; steps that are clear do.
#[test]
fn fewer_fall_short_only_where_that_is_clear() {
    let clear = drive(SaturationOptions::default(), |c, _| hard(c)).0;
    assert!(clear.fewer_fall_short && clear.surely_short == Some(16), "{clear:?}");
    // Sixteen give 99 % of what more give: that they fall short is said by chance alone.
    let said = (0..200).filter(|seed| {
        let rng = std::cell::RefCell::new(Rng::new(*seed));
        let noisy = |c: u32, _| {
            let x = match c {
                ..16 => f64::from(c) * 50.0,
                16 => 990.0,
                _ => 1000.0,
            } * (0.06 * rng.borrow_mut().normal()).exp();
            SaturationObservation {
                ops_per_s: x,
                mean_latency_s: f64::from(c) / x,
                ..SaturationObservation::default()
            }
        };
        let o = drive(SaturationOptions { seed: *seed, ..SaturationOptions::default() }, noisy).0;
        o.fewer_fall_short && o.c95 > Some(16)
    });
    let n = said.count();
    assert!(n <= 14, "{n} of 200");
}

/// The budget is neither overrun nor given up while the answer is open.
#[test]
fn a_budget_is_kept_and_used() {
    for (seed, budget_s, spread) in
        (0..60).map(|i| (i, [25.0, 60.0, 200.0, 900.0][i as usize % 4], [0.002, 0.04][i as usize / 30]))
    {
        let o = SaturationOptions { budget_s: Some(budget_s), seed, ..SaturationOptions::default() }
            .within_budget();
        let (mut s, mut g, mut t, mut last) = (SaturationSearch::new(o), Rng::new(seed), 0.0, None);
        while let SaturationAction::Measure { concurrency, ramp_s, measure_s, .. } = s.next(last.as_ref()) {
            // What surrounds a step takes some time, too.
            t += ramp_s + measure_s + 0.02 * g.uniform();
            s.elapsed(t);
            let x = hard(concurrency).ops_per_s * (spread * g.normal()).exp();
            last = Some(SaturationObservation {
                ops_per_s: x,
                mean_latency_s: 0.01,
                ..SaturationObservation::default()
            });
        }
        assert!(t <= 1.05 * budget_s, "seed {seed}: {t} of {budget_s}");
        let out = s.outcome();
        let open = out.ended == Ended::Budget || !out.fewer_fall_short && out.c95 != Some(o.start);
        assert!(!open || t >= 0.85 * budget_s, "seed {seed}: given up after {t} of {budget_s}: {out:?}");
    }
}

#[test]
fn drains_first_when_asked() {
    let mut s =
        SaturationSearch::new(SaturationOptions { drain_s: Some(90.0), ..SaturationOptions::default() });
    let SaturationAction::Measure { measure_s, phase, .. } = s.next(None) else { panic!() };
    assert_eq!((measure_s, phase), (90.0, SaturationPhase::Drain));
    let SaturationAction::Measure { concurrency, phase, .. } = s.next(Some(&hard(64))) else { panic!() };
    assert_eq!((concurrency, phase), (4, SaturationPhase::Ladder));
}

/// Whoever waits is told how many steps there are, and never of a step beyond the last.
#[test]
fn it_says_how_much_there_is_to_go() {
    for budget_s in [None, Some(120.0)] {
        let mut s = SaturationSearch::new(
            SaturationOptions { budget_s, ..SaturationOptions::default() }.within_budget(),
        );
        let (mut last, mut elapsed_s, mut seen) = (None, 0.0, Vec::new());
        while let SaturationAction::Measure { concurrency, ramp_s, measure_s, .. } = s.next(last.as_ref()) {
            let (step, all) = s.steps();
            assert_eq!(step as usize, seen.len() + 1);
            assert!(step <= all && all <= 40, "{step} of {all}");
            seen.push((step, all, s.left_s()));
            elapsed_s += ramp_s + measure_s;
            s.elapsed(elapsed_s);
            last = Some(hard(concurrency));
        }
        let (first, end) = (seen[0], seen[seen.len() - 1]);
        assert!(first.2 > 100.0 && end.2 < 0.3 * first.2, "{budget_s:?}: {seen:?}");
        assert_eq!(end.0, end.1, "the last step is the last: {seen:?}");
    }
}

/// A storage of slow ops behind a budget: what it was asked, how it ended, and the time of it all.
fn slow_ops(op_s: f64, per_s: f64, budget_s: f64) -> (SaturationOutcome, Vec<(u32, f64)>, f64) {
    let o = SaturationOptions { budget_s: Some(budget_s), ..SaturationOptions::default() }.within_budget();
    let mut s = SaturationSearch::new(o);
    let (mut last, mut asked, mut now_s) = (None, Vec::new(), 0.0);
    loop {
        match s.next(last.as_ref()) {
            SaturationAction::Done => return (s.outcome(), asked, now_s),
            SaturationAction::Measure { concurrency: c, ramp_s, measure_s, .. } => {
                asked.push((c, measure_s));
                now_s += ramp_s + measure_s;
                s.elapsed(now_s);
                // All workers begin together, and go in step: those whose ops end within the measurement count.
                let each_s = op_s.max(f64::from(c) / per_s);
                let rounds = ((ramp_s + measure_s) / each_s).floor() - (ramp_s / each_s).floor();
                last = Some(SaturationObservation {
                    ops_per_s: rounds * f64::from(c) / measure_s,
                    mean_latency_s: if rounds > 0.0 { each_s } else { 0.0 },
                    none_ended: rounds == 0.0,
                    ..SaturationObservation::default()
                });
            }
        }
    }
}

/// 32 in flight of 64 MiB at 1 GB/s: no op ended within a step of a second, and the storage was called out of order.
#[test]
fn steps_are_long_enough_for_their_ops() {
    let (o, asked, took_s) = slow_ops(0.1, 16.0, 120.0);
    assert_eq!(o.ended, Ended::Saturated, "{asked:?}");
    assert!(o.changed.is_none() && o.c95.is_some_and(|c| (2..=4).contains(&c)), "{o:?} {asked:?}");
    assert!((o.plateau.unwrap() / 16.0 - 1.0).abs() < 0.2, "{o:?}");
    assert!(took_s <= 120.0, "{took_s}: {asked:?}");
    for (c, measure_s) in asked.iter().skip(1) {
        assert!(measure_s / (f64::from(*c) / 16.0) > 1.9, "{asked:?}");
    }
}

/// One op takes longer than a whole step: the step is made again, longer; the budget is kept, and is what is to blame.
#[test]
fn a_step_in_which_nothing_ended_is_made_again() {
    let (o, asked, took_s) = slow_ops(2.5, 1e9, 40.0);
    assert_eq!(asked[0].0, asked[1].0);
    assert!(asked[1].1 > asked[0].1 && took_s <= 40.0, "{asked:?}");
    assert!(matches!(o.ended, Ended::Budget | Ended::TooShort { .. }) && o.changed.is_none(), "{o:?}");
    let (o, asked, _) = slow_ops(2.5, 100.0, 1_000.0);
    assert_eq!((o.ended, o.c95, o.changed), (Ended::Saturated, Some(256), None), "{asked:?}");
    // Nothing ever ends: the search does.
    let (o, asked, took_s) = slow_ops(1e6, 1e9, 40.0);
    assert!(matches!(o.ended, Ended::TooShort { concurrency: 4, .. }) && o.curve.is_empty(), "{o:?}");
    assert!(took_s <= 40.0 && asked.len() > 1, "{asked:?}");
    let mut s = SaturationSearch::new(SaturationOptions { fixed: true, ..SaturationOptions::default() });
    s.next(None);
    let none = SaturationObservation { none_ended: true, ..SaturationObservation::default() };
    assert_eq!(s.next(Some(&none)), SaturationAction::Done);
    assert_eq!(s.outcome().ended, Ended::TooShort { concurrency: 4, measure_s: 10.0 });
}
