//! The controller on simulated systems, and on executors that misbehave.

use super::*;
use crate::simulate::events::Events;
use crate::simulate::fluid::Fluid;
use crate::simulate::{Bucket, Charges, Load, System, drive};

fn both(seed: u64) -> Fluid {
    let mut s = Fluid::new(seed, 3000.0, 600e6, 0.002, 30e6);
    s.buckets = vec![Bucket::new(Charges::Ops, 1000.0, 20_000.0), Bucket::new(Charges::Bytes, 200e6, 3e9)];
    s
}

fn measured(f: &Found) -> f64 {
    match f.capacity {
        Capacity::Measured(e) => e.value,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn both_buckets_are_found_and_measured() {
    let o = drive::probe(&mut both(1), ProbeOptions::default());
    assert!((o.ops.sustained.unwrap().value / 1000.0 - 1.0).abs() < 0.02, "{:?}", o.ops.sustained);
    assert!((o.bytes.sustained.unwrap().value / 200e6 - 1.0).abs() < 0.02);
    assert!((measured(&o.ops) / 20_000.0 - 1.0).abs() < 0.05);
    assert!((measured(&o.bytes) / 3e9 - 1.0).abs() < 0.05);
    assert!((o.ops.burst.unwrap().value / 3000.0 - 1.0).abs() < 0.1);
    assert!(o.ops.refill.is_none_or(|r| (r.value / 1000.0 - 1.0).abs() < 0.1));
    assert!(o.elapsed_s < 900.0);
    assert_eq!(o, drive::probe(&mut both(1), ProbeOptions::default()));
}

#[test]
fn no_limiter_is_no_bucket() {
    let o = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), ProbeOptions::default());
    assert!(!o.ops.is_bucket() && !o.bytes.is_bucket());
    assert!(
        o.ops.open[0].text.contains("not excluded") && o.ops.not_excluded(1000.0) > 2000.0 * 100.0,
        "{:?} {} {:?}",
        o.ops.sustained,
        o.ops.horizon_s,
        o.ops.open
    );
}

#[test]
fn whole_requests_and_429s() {
    let buckets =
        [Bucket::new(Charges::Ops, 200.0, 4000.0), Bucket::new(Charges::Bytes, 40e6, 800e6).filled(0.5)];
    let mut s = Events::new(4, &buckets, 1);
    (s.ops_cap, s.bytes_cap) = (600.0, 120e6);
    let o = drive::probe(&mut s, ProbeOptions { concurrency: 64, ..ProbeOptions::default() });
    assert!((o.ops.sustained.unwrap().value / 200.0 - 1.0).abs() < 0.01);
    assert!((measured(&o.ops) / 4000.0 - 1.0).abs() < 0.03);
    assert!((measured(&o.bytes) / 800e6 - 1.0).abs() < 0.03, "{:?}", o.bytes.capacity);
}

/// A disk with a limit on bytes only: small ops meet it, too, and it is one bucket.
#[test]
fn a_cap_on_bytes_is_found_under_both_loads() {
    let mut s = Fluid::new(5, 50_000.0, 1e9, 0.0002, 5e7);
    s.buckets = vec![Bucket::new(Charges::Bytes, 20e6, 40e6)];
    let o = drive::probe(
        &mut s,
        ProbeOptions { small_bytes: 4096, large_bytes: 512 << 10, ..ProbeOptions::default() },
    );
    assert_eq!((o.seen_twice(), o.binding()), (Some(Resource::Bytes), "bytes"), "{:?}", o.evidence());
    assert!((o.bytes.sustained.unwrap().value / 20e6 - 1.0).abs() < 0.02, "{:?}", o.bytes.sustained);
    assert!((measured(&o.bytes) / 40e6 - 1.0).abs() < 0.1, "{:?}", o.bytes.capacity);
    assert!(o.ops.drains.len() == 1 && o.findings().iter().all(|f| !f.text.contains("burst of ops")));
}

/// A load that took half a second to make ready left the bucket that much more rest.
#[test]
fn a_load_that_begins_late_is_more_rest() {
    let mut p = Probe::new(ProbeOptions::default());
    p.state = State::Drained(Draining {
        of: Resource::Ops,
        first: false,
        idle_s: Some(4.0),
        rest_s: 4.0,
        taken_per_s: 9.0,
        limit_s: 60.0,
        start_s: 100.0,
        t: 0.0,
        chunk_s: CHUNK_S,
        seen: Plateau::default(),
    });
    p.began(100.5);
    p.began(99.0);
    let State::Drained(d) = &p.state else { panic!("{:?}", p.state) };
    assert_eq!((d.start_s, d.idle_s, d.rest_s, d.taken_per_s), (100.5, Some(4.5), 4.5, 8.0));
}

#[test]
fn an_executor_that_sees_nothing_ends_with_reasons() {
    for seen in [
        None,
        Some(RatesSeen { dt_s: 0.25, ..RatesSeen::default() }),
        Some(RatesSeen {
            dt_s: 0.25,
            ops_per_s: vec![0.0; 20],
            bytes_per_s: vec![0.0; 20],
            ..RatesSeen::default()
        }),
    ] {
        let mut p = Probe::new(ProbeOptions::default());
        let mut now = 0.0;
        let mut last = ProbeObservation::default();
        for _ in 0..2000 {
            last = match p.next(&last) {
                ProbeAction::Done => break,
                ProbeAction::Load { duration_s, .. } => {
                    now += duration_s;
                    ProbeObservation { now_s: now, seen: seen.clone() }
                }
                ProbeAction::Idle { seconds } => {
                    now += seconds;
                    ProbeObservation { now_s: now, seen: None }
                }
                ProbeAction::Stop => ProbeObservation { now_s: now, seen: None },
            };
        }
        assert_eq!(p.next(&last), ProbeAction::Done);
        let o = p.outcome();
        assert!(!o.ops.is_bucket() && !o.ops.open.is_empty(), "{:?}", o.ops);
    }
}

/// Sums of times round: a rest can end an ulp before what was asked for, and was then asked for again for ever.
#[test]
fn a_clock_that_rounds_keeps_no_probe_from_its_end() {
    let options = ProbeOptions { questions: true, budget_s: 1200.0, ..ProbeOptions::default() };
    for i in 0..12 {
        let mut s = both(1);
        let mut p = Probe::new(options);
        let mut now = 1.0 / f64::from(2 * i + 3) + 1000.0 * f64::from(i);
        let (mut last, mut rests) = (ProbeObservation { now_s: now, seen: None }, 0);
        let actions = (0..2000).find(|_| {
            let seen = match p.next(&last) {
                ProbeAction::Done => return true,
                ProbeAction::Stop => None,
                ProbeAction::Idle { seconds } => {
                    rests += 1;
                    assert!(seconds > 1e-3, "a rest of {seconds} s is none");
                    s.idle(seconds);
                    // Less than was asked for, as a rounded sum is; in the last cases by much, as an interrupted sleep is.
                    now += seconds * if i < 8 { 1.0 - 1e-15 } else { 0.5 };
                    None
                }
                ProbeAction::Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s, .. } => {
                    now += duration_s;
                    let size_bytes = size_bytes as f64;
                    Some(s.run(&Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s }))
                }
            };
            last = ProbeObservation { now_s: now, seen };
            false
        });
        assert!(actions.is_some(), "case {i}: no end after {rests} rests");
        let tokens = p.outcome().answers.burst.iter().flatten().any(|(l, _)| *l == BurstLaw::Tokens);
        assert!(tokens || i >= 8, "case {i}: {:?}", p.outcome().answers);
    }
}

#[test]
fn the_summary_says_what_was_found_and_what_is_open() {
    let o = drive::probe(&mut both(1), ProbeOptions::default());
    let s = o.summary("s3", "put");
    assert_eq!((s.binding.as_str(), s.scope.as_str()), ("both", "unknown"));
    let knee = s.knee_bytes.unwrap();
    assert!((knee.value / 200e3 - 1.0).abs() < 0.03 && knee.contains(200e3), "{knee:?}");
    let drains = s.evidence.iter().filter(|(name, _)| name.contains(" drain ")).count();
    assert_eq!(drains, o.ops.drains.len() + o.bytes.drains.len());
    assert!(s.evidence.iter().any(|(name, text)| name == "ops: why a limit" && text.contains("burst")));
    assert!(s.ops_per_s.unwrap().capacity.is_some());
    let none = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), ProbeOptions::default());
    assert_eq!(none.summary("s3", "put").binding, "none");
    assert!(none.findings().iter().all(|f| f.text.ends_with('.') && f.name == "open_question"));
}

/// haproxy's sliding rate counts what it refuses: saturated, it grants next to nothing for ever. It is a limiter, with the rate
/// that passes when one does not insist; and whatever is left open, never "no limiter".
#[test]
fn a_limiter_that_counts_refusals_is_found() {
    for (period_s, quota, budget_s) in [(1.0, 137.0, 600.0), (10.0, 400.0, 900.0), (1.0, 137.0, 60.0)] {
        let mut s = Events::new(7, &[], 1);
        s.sliding = Some(crate::simulate::events::Sliding::new(period_s, quota));
        let options =
            ProbeOptions { concurrency: 64, budget_s, questions: true, dt_s: 0.2, ..ProbeOptions::default() };
        let o = drive::probe(&mut s, options);
        let text = o.findings().iter().map(|f| f.text.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!((o.binding(), o.ops.cause()), ("ops", Cause::Refusing), "{text}");
        assert!(o.ops.refused() > 0.98 && text.contains("the limiter refuses "), "{text}");
        assert!(!text.contains("n/a"), "{text}");
        assert!(!text.contains("fixed-window quota"), "{text}");
        assert!(o.elapsed_s <= 1.05 * budget_s, "{} of {budget_s}", o.elapsed_s);
        let rate = quota / period_s;
        if budget_s > 100.0 {
            let Some(Penalty::CostsTokens(e)) = o.answers.penalty else { panic!("{:?} {text}", o.answers) };
            assert!((e.value / rate - 1.0).abs() < 0.03, "{e:?} for {rate}");
            assert!(may_refuse_all(&o.findings()));
            assert!(o.is_proved(Resource::Ops) && o.limit_of_ops().is_some());
        } else {
            assert!(o.summary("s3", "put").ops_per_s.is_none_or(|b| !b.proved || b.sustained.is_some()));
        }
    }
}

/// Small ops over a burst of bytes that has not ended when they are done, and that they have emptied for the large ones.
#[test]
fn a_burst_of_bytes_that_small_ops_emptied_is_found() {
    // 37 MB/s, which is 9,033 op/s of 4 KiB; small ops alone would reach 9,900 op/s.
    let mut s = Fluid::new(5, 9_900.0, 400e6, 0.0002, 5e7);
    s.cv = 0.05;
    s.buckets = vec![Bucket::new(Charges::Bytes, 37e6, 700e6)];
    let options = ProbeOptions {
        small_bytes: 4096,
        large_bytes: 512 << 10,
        concurrency: 16,
        most: [256, 64],
        budget_s: 600.0,
        horizon_s: 120.0,
        dt_s: 0.2,
        ..ProbeOptions::default()
    };
    let o = drive::probe(&mut s, options);
    assert_eq!((o.seen_twice(), o.binding()), (Some(Resource::Bytes), "bytes"), "{:?}", o.evidence());
    assert!((o.bytes.sustained.unwrap().value / 37e6 - 1.0).abs() < 0.02, "{:?}", o.bytes.sustained);
    let summary = o.summary("disk", "read");
    assert!(summary.ops_per_s.is_none(), "no rate above the cap is called sustained: {summary:?}");
    assert!(o.bytes.is_bucket(), "{:?}", o.evidence());
}

/// A system with one or two limiters, or none; the load of others keeps it below them for a while.
fn any_system(seed: u64) -> (Fluid, [Option<(f64, f64)>; 2]) {
    let mut g = crate::rng::Rng::new(seed);
    let (p_o, knee) = (g.log_between(200.0, 5_000.0), g.log_between(32e3, 1.05e6));
    let mut s = Fluid::new(seed ^ 0xbeef, p_o, p_o * knee, 0.002, p_o * knee / 20.0);
    (s.cv, s.tau_s) = (g.between(0.01, 0.06), g.log_between(0.5, 8.0));
    s.stall_rate = if g.uniform() < 0.4 { 0.005 } else { 0.0 };
    s.rejects = g.uniform() < 0.5;
    let mut truth = [None, None];
    for (i, charges) in [Charges::Ops, Charges::Bytes].into_iter().enumerate() {
        if g.uniform() < 0.7 {
            let rate = if i == 0 { p_o } else { p_o * knee } / g.log_between(1.5, 6.0);
            let capacity = rate * g.log_between(0.05, 60.0);
            truth[i] = Some((rate, capacity));
            s.buckets.push(Bucket::new(charges, rate, capacity).filled(g.uniform()));
        }
    }
    (s, truth)
}

/// The budget is kept within 5 %, and nothing is left of it that would settle what the answer says it would.
#[test]
fn a_budget_is_kept_and_not_given_up() {
    for seed in 0..240 {
        let budget_s = [60.0, 120.0, 300.0, 600.0][seed as usize % 4];
        let (mut s, _) = any_system(seed);
        let options = ProbeOptions {
            budget_s,
            concurrency: 16,
            most: [256, 64],
            questions: seed % 3 != 0,
            horizon_s: 120.0,
            dt_s: 0.2,
            ..ProbeOptions::default()
        };
        let o = drive::probe(&mut s, options);
        assert!(o.elapsed_s <= 1.05 * budget_s, "seed {seed}: {} of {budget_s}", o.elapsed_s);
        let left_s = budget_s - o.elapsed_s;
        for q in o.ops.open.iter().chain(&o.bytes.open) {
            assert!(
                q.more_s.is_none_or(|m| m > left_s),
                "seed {seed}: {left_s:.0} s left: {q:?} {:?}",
                o.evidence()
            );
        }
    }
}

/// "At least" is true: a bound lies below the capacity, on a machine that is loaded, too.
#[test]
fn a_bound_is_below_the_truth() {
    let (mut bounds, mut above) = (0, Vec::new());
    for seed in 0..300 {
        let (mut s, truth) = any_system(seed + 10_000);
        // Others take the machine in the middle of the probe.
        s.drift_per_h = -2.0;
        let options = ProbeOptions { budget_s: 90.0, horizon_s: 120.0, dt_s: 0.2, ..ProbeOptions::default() };
        let o = drive::probe(&mut s, options);
        for (f, truth) in [(&o.ops, truth[0]), (&o.bytes, truth[1])] {
            let (Capacity::AtLeast(least), Some((_, capacity))) = (f.capacity, truth) else { continue };
            bounds += 1;
            if least > 1.02 * capacity {
                above.push((seed, least / capacity));
            }
        }
    }
    assert!(bounds >= 20 && above.len() * 20 <= bounds, "{above:?} of {bounds}");
}

/// What is not known is not quoted: no rate with an interval wider than 20 %, no knee of such, no negative end.
#[test]
fn nothing_is_quoted_that_is_not_known() {
    for seed in 0..200 {
        let (mut s, _) = any_system(seed + 20_000);
        s.cv = 0.25;
        let o = drive::probe(&mut s, ProbeOptions { budget_s: 60.0, dt_s: 0.2, ..ProbeOptions::default() });
        let l = o.summary("s", "put");
        let buckets = [&l.ops_per_s, &l.bytes_per_s].into_iter().flatten();
        for b in buckets.clone() {
            for e in [b.sustained, b.burst, b.refill, b.full_again_s].into_iter().flatten() {
                assert!(e.value.is_finite() && e.low <= e.value && e.value <= e.high, "{seed} {b:?}");
            }
            assert!(
                b.sustained.is_none_or(|e| e.relative_half_width() <= 0.2 && e.low >= 0.0),
                "{seed} {b:?}"
            );
            assert!(
                b.full_again_s.is_none() || b.capacity.is_some_and(|c| c.high < f64::MAX),
                "{seed} {b:?}"
            );
        }
        assert!(l.knee_bytes.is_none_or(|k| k.high / k.low < 1.8), "{seed} {:?}", l.knee_bytes);
        if l.binding == "none" {
            assert!(buckets.clone().all(|b| b.sustained.is_some()) && l.refused < Some(0.01), "{seed} {l:?}");
        }
    }
}

/// Behind a limiter that delays and whose bucket is empty, no load was below the limit: there is nothing to advise a number of
/// ops in flight from. With tokens left, the first ops take what the storage takes.
#[test]
fn latency_is_that_of_ops_which_wait_for_no_limit() {
    let probed = |filled: f64| {
        let mut s = Fluid::new(9, 3000.0, 600e6, 0.010, 30e6);
        s.buckets = vec![Bucket::new(Charges::Ops, 150.0, 30_000.0).filled(filled)];
        let o = ProbeOptions { concurrency: 4, most: [64, 16], ..ProbeOptions::default() };
        drive::probe(&mut s, o)
    };
    let empty = probed(0.0);
    assert!(empty.limit_of_ops().is_some(), "{:?}", empty.evidence());
    assert_eq!(empty.unloaded_latency_s(), None, "{:?}", empty.ops.first_look);
    let full = probed(1.0);
    let latency = full.unloaded_latency_s().unwrap();
    assert!((latency / 0.010 - 1.0).abs() < 0.2, "{latency} {:?}", full.ops.first_look);
}

/// As the tool probes objects: ladders from 16 in flight, and questions.
pub(super) fn as_the_tool_does(budget_s: f64) -> ProbeOptions {
    ProbeOptions {
        small_bytes: 4096,
        concurrency: 16,
        most: [256, 64],
        overhead_bytes: 2048,
        questions: true,
        dt_s: 0.2,
        budget_s,
        horizon_s: 120.0,
        ..ProbeOptions::default()
    }
}

pub(super) fn said(o: &ProbeOutcome) -> String {
    o.findings().iter().map(|f| f.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// A rate per connection (nginx's `limit_req` by connection, 40 ms each; a bandwidth for each): each step of the ladder doubles
/// it up to the top, at one latency. It is as even as latency is, and no cap: more in flight give more.
#[test]
fn a_rate_that_latency_sets_is_no_cap_however_even_it_is() {
    let exact = |ops_cap: f64| {
        let mut s = Fluid::new(3, ops_cap, 400e6, 0.040, 1e9);
        s.cv = 0.0;
        s
    };
    let o = drive::probe(&mut exact(1e9), as_the_tool_does(120.0));
    assert!(!o.is_proved(Resource::Ops) && o.limit_of_ops().is_none(), "{:?} {}", o.evidence(), said(&o));
    assert!(!said(&o).contains("Evidence for the limit on operations"), "{}", said(&o));
    assert!(said(&o).contains("256 in flight at 40.0 ms each"), "{}", said(&o));
    assert!(o.ops.known().is_some_and(|e| e.contains(6400.0)), "{:?}", o.ops.sustained);
    // Without bytes, that is all there is.
    let stat = ProbeOptions { moves_bytes: false, ..as_the_tool_does(60.0) };
    assert_eq!(drive::probe(&mut exact(1e9), stat).binding(), "latency");
    // 1 MB/s for each connection, and no other limit on bytes.
    let mut s = Fluid::new(3, 1e9, 1e12, 0.0002, 1e6);
    s.cv = 0.0;
    let o = drive::probe(&mut s, as_the_tool_does(120.0));
    assert!(!o.is_proved(Resource::Bytes) && o.binding() == "latency", "{:?} {}", o.binding(), said(&o));
    // True caps that the ladder's top step meets, or that it met long before, stay caps.
    for cap in [5000.0, 5700.0, 3500.0, 400.0] {
        let o = drive::probe(&mut exact(cap), as_the_tool_does(120.0));
        assert!(o.is_proved(Resource::Ops), "{cap}: {:?} {}", o.evidence(), said(&o));
        let limit = o.limit_of_ops().unwrap();
        assert!((limit / cap - 1.0).abs() < 0.01, "{limit} of {cap}");
    }
}

/// As many in flight as the ladder may have at most, by the user's own word: it is seen all the same whether the rate grows with them.
#[test]
fn many_in_flight_from_the_start_prove_no_cap() {
    let mut s = Fluid::new(3, 1e9, 400e6, 0.040, 1e9);
    s.cv = 0.0;
    let o = drive::probe(&mut s, ProbeOptions { concurrency: 512, ..as_the_tool_does(120.0) });
    assert!(!o.is_proved(Resource::Ops), "{:?} {}", o.evidence(), said(&o));
    assert_eq!(o.ops.concurrency, 512);
}

/// Eight requests at once, and no limit on any rate: what passes is this storage's own speed with 8 in flight.
fn eight_at_once(seed: u64) -> Events {
    let mut s = Events::new(seed, &[], 1);
    (s.ops_cap, s.bytes_cap, s.base_s, s.cv) = (20_000.0, 500e6, 0.006, 0.08);
    s.backoff = crate::simulate::events::Backoff::Constant(0.001);
    s.most_at_once = Some(8);
    s
}

#[test]
fn a_limit_on_requests_at_once_is_none_on_a_rate() {
    for (seed, budget_s) in [(1, 90.0), (2, 90.0), (3, 300.0)] {
        let o = drive::probe(&mut eight_at_once(seed), as_the_tool_does(budget_s));
        assert!(
            !o.is_proved(Resource::Ops) && !o.is_proved(Resource::Bytes),
            "{:?} {}",
            o.evidence(),
            said(&o)
        );
        assert!(o.limit_of_ops().is_none() && o.limit_of_bytes().is_none() && o.knee_bytes().is_none());
        assert_eq!(o.binding(), "in_flight", "{:?} {}", o.evidence(), said(&o));
        assert!(said(&o).contains("With 8 in flight nothing is refused"), "{}", said(&o));
        assert!(!said(&o).contains(": refusals"), "{}", said(&o));
        assert!(o.elapsed_s <= 1.05 * budget_s);
    }
    // Of ops without bytes it is told that it may be either.
    let o =
        drive::probe(&mut eight_at_once(4), ProbeOptions { moves_bytes: false, ..as_the_tool_does(90.0) });
    assert!(!o.is_proved(Resource::Ops) && o.binding() == "undetermined", "{} {}", o.binding(), said(&o));
}

/// Limiters on rates that refuse, whose storage is so slow that several in flight pass: they stay what they are.
#[test]
fn limits_on_rates_that_refuse_are_none_on_requests_at_once() {
    for seed in 0..6 {
        let (ops, bytes) = ([150.0, 400.0, 700.0][seed as usize % 3], 40e6);
        let buckets =
            [Bucket::new(Charges::Ops, ops, 0.2 * ops), Bucket::new(Charges::Bytes, bytes, 0.5 * bytes)];
        let mut s = Events::new(seed, &buckets, if seed < 3 { 1 } else { 4 });
        (s.ops_cap, s.bytes_cap, s.base_s) = (5000.0, 400e6, 0.020);
        let o = drive::probe(&mut s, as_the_tool_does(300.0));
        assert!(o.is_limited(Resource::Ops) && o.binding() == "both", "{seed}: {} {}", o.binding(), said(&o));
        if seed < 3 {
            assert!((o.limit_of_ops().unwrap() / ops - 1.0).abs() < 0.02, "{seed}: {:?}", o.ops.sustained);
        }
    }
}

/// What is said of a rate is said for as long as that rate was seen: in the drain before it nothing passed at all.
#[test]
fn the_rate_that_is_not_refused_was_seen_for_its_trial() {
    let mut s = Events::new(7, &[], 1);
    s.sliding = Some(crate::simulate::events::Sliding::new(1.0, 137.0));
    let o = drive::probe(&mut s, as_the_tool_does(300.0));
    assert!(o.limit_of_ops().is_some(), "{}", said(&o));
    assert_eq!(o.ops.horizon_s, 45.0, "{}", said(&o));
    assert!(!said(&o).contains("not constant"), "{}", said(&o));
    // Where the budget ends too soon, what is open is said with the bounds that there are.
    let mut s = Events::new(7, &[], 1);
    s.sliding = Some(crate::simulate::events::Sliding::new(1.0, 137.0));
    let o = drive::probe(&mut s, as_the_tool_does(40.0));
    assert!(
        o.limit_of_ops().is_none() && o.ops.open.iter().any(|q| q.text.contains("--budget")),
        "{}",
        said(&o)
    );
}

/// The client stood still in a trial: what was due then came at once, and was refused. The trial is made again.
struct StandsStill {
    system: Events,
    /// Trials from now on whose load does not begin for two seconds.
    trials: u32,
}

impl System for StandsStill {
    fn run(&mut self, load: &Load) -> RatesSeen {
        let Some(rate) = load.offered_per_s.filter(|_| self.trials > 0) else { return self.system.run(load) };
        self.trials -= 1;
        let mut seen = self.system.run(load);
        // What was due in the last two seconds comes in the last slice, and most of it is refused.
        let (n, k) = (seen.ops_per_s.len(), (2.0 / load.dt_s) as usize);
        for v in [&mut seen.ops_per_s, &mut seen.bytes_per_s, &mut seen.rejected_per_s] {
            v[n - 1 - k..n - 1].fill(0.0);
        }
        seen.rejected_per_s[n - 1] = rate * (k as f64);
        seen
    }

    fn quiesce(&mut self) {
        self.system.quiesce();
    }

    fn idle(&mut self, seconds: f64) {
        self.system.idle(seconds);
    }

    fn now_s(&self) -> f64 {
        self.system.now_s()
    }
}

#[test]
fn a_trial_that_stood_still_is_made_again() {
    let mut system = Events::new(7, &[], 1);
    system.sliding = Some(crate::simulate::events::Sliding::new(1.0, 137.0));
    for trials in [1, 2] {
        let mut s = StandsStill { system: system.clone(), trials };
        let o = drive::probe(&mut s, as_the_tool_does(300.0));
        let Some(Penalty::CostsTokens(e)) = o.answers.penalty else { panic!("{}", said(&o)) };
        assert!((e.value / 137.0 - 1.0).abs() < 0.03, "{trials}: {e:?} {:#?} {}", o.evidence(), said(&o));
    }
}

/// Words are of the load that they name, and figures that say nothing are left out.
#[test]
fn words_are_of_the_load_that_was_seen() {
    let mut s = Fluid::new(5, 50_000.0, 1e9, 0.0002, 5e7);
    s.buckets = vec![Bucket::new(Charges::Bytes, 20e6, 40e6)];
    let o =
        ProbeOptions { large_bytes: 512 << 10, concurrency: 8, most: [64, 16], ..as_the_tool_does(300.0) };
    let o = drive::probe(&mut s, o);
    assert_eq!(o.seen_twice(), Some(Resource::Bytes));
    let last = o.bytes.drains.last().unwrap();
    let latency = last.steadiness.unwrap().latency_s;
    // Little's law: what is said to be in flight is what the rate and the latency come to.
    let in_flight = last.rate / 4096.0 * latency;
    let named = o.ops.concurrency.min((in_flight + 0.5) as u32);
    assert!(said(&o).contains(&format!("with {named} in flight")), "{in_flight} {named} {}", said(&o));
    assert!(!said(&o).contains("within 0 ms"), "{}", said(&o));
}

/// A storage whose ops on bytes are delayed, one after the other, to `bytes_per_s` in all, and whose small ops are refused beyond
/// `ops_per_s`: whole ops end, and all that are in flight wait for each other.
fn delayed_bytes(options: ProbeOptions, ops_per_s: f64, bytes_per_s: f64) -> ProbeOutcome {
    let mut p = Probe::new(options);
    let (mut now_s, mut begun_s) = (0.0, 0.0);
    let mut last = ProbeObservation::default();
    loop {
        let seen = match p.next(&last) {
            ProbeAction::Done => return p.outcome(),
            ProbeAction::Stop => None,
            ProbeAction::Idle { seconds } => {
                now_s += seconds;
                None
            }
            ProbeAction::Load { size_bytes, concurrency, duration_s, dt_s, continues, .. } => {
                begun_s = if continues { begun_s } else { now_s };
                let size = size_bytes as f64;
                let small = size < bytes_per_s / ops_per_s;
                let rate = ops_per_s.min(bytes_per_s / size);
                let n = (duration_s / dt_s).round() as usize;
                let ended = |i: usize| ((now_s - begun_s + i as f64 * dt_s) * rate + 1e-6).floor();
                let ops: Vec<f64> = (0..n).map(|i| (ended(i + 1) - ended(i)) / dt_s).collect();
                now_s += n as f64 * dt_s;
                Some(RatesSeen {
                    dt_s,
                    bytes_per_s: ops.iter().map(|x| x * size).collect(),
                    ops_per_s: ops,
                    rejected_per_s: vec![if small { 40.0 * rate } else { 0.0 }; n],
                    latency_s: vec![if small { 0.02 } else { f64::from(concurrency) / rate }; n],
                })
            }
        };
        last = ProbeObservation { now_s, seen };
    }
}

/// 16 uploads in flight that wait for 0.6 s each: a look of 20 s is too short to tell that their rate is held, and a little more
/// does. It is not ended while the budget has it; where the budget has not, that is what the answer says.
#[test]
fn a_first_look_goes_on_until_it_can_tell() {
    let options = ProbeOptions {
        small_bytes: 4096,
        large_bytes: 1_175_552,
        keep_large: true,
        concurrency: 16,
        most: [64; 2],
        dt_s: 0.2,
        budget_s: 60.0,
        ..ProbeOptions::default()
    };
    let o = delayed_bytes(options, 40.0, 31_457_280.0);
    assert_eq!((o.cause_of(Resource::Bytes), o.binding()), (Cause::Held, "both"), "{:#?}", o.evidence());
    assert!(o.elapsed_s <= 60.0, "{}", o.elapsed_s);

    let o = delayed_bytes(ProbeOptions { budget_s: 36.0, ..options }, 40.0, 31_457_280.0);
    assert_eq!(o.cause_of(Resource::Bytes), Cause::None, "{:#?}", o.evidence());
    assert!(o.findings().iter().any(|f| f.text.contains("each op takes 598 ms")), "{:#?}", o.findings());
}
