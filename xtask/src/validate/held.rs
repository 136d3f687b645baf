//! (d) what the active probe says of a plateau without a burst: held by a limiter, or the storage's own speed.

use plimsoll_stats::probe::{Cause, ProbeOptions, ProbeOutcome, Resource};
use plimsoll_stats::rng::Rng;
use plimsoll_stats::simulate::events::Events;
use plimsoll_stats::simulate::fluid::Fluid;
use plimsoll_stats::simulate::{Bucket, Charges, drive};

use super::Settings;
use super::score::{Goal, ScoreRow};

/// A probe as short as one that a user has to wait for: plateaus of half a minute to two.
fn options() -> ProbeOptions {
    ProbeOptions { budget_s: 300.0, horizon_s: 120.0, concurrency: 64, dt_s: 0.2, ..ProbeOptions::default() }
}

/// A system whose speed wanders, with or without limiters that let no burst through; and whether it stalls now and then.
fn fluid(seed: u64, limited: bool) -> (bool, ProbeOutcome) {
    let mut g = Rng::new(seed);
    let (p_o, knee) = (g.log_between(100.0, 20_000.0), g.log_between(32e3, 1.05e6));
    let p_b = p_o * knee;
    let mut s = Fluid::new(seed ^ 0xabcd, p_o, p_b, (64.0 / p_o / 2.0).min(0.004), p_b / 20.0);
    s.cv = g.between(0.01, 0.06);
    s.tau_s = g.log_between(0.2, 8.0);
    s.stall_rate = if g.uniform() < 0.4 { 0.005 } else { 0.0 };
    if limited {
        let (r_o, r_b) = (p_o / g.log_between(1.5, 8.0), p_b / g.log_between(1.5, 8.0));
        s.buckets.push(Bucket::new(Charges::Ops, r_o, r_o * g.log_between(0.01, 0.1)));
        s.buckets.push(Bucket::new(Charges::Bytes, r_b, r_b * g.log_between(0.01, 0.1)));
    }
    (s.stall_rate > 0.0, drive::probe(&mut s, options()))
}

/// Whole requests on a server whose service times vary by chance.
fn requests(seed: u64) -> ProbeOutcome {
    let mut g = Rng::new(seed);
    let mut s = Events::new(seed ^ 0xabcd, &[], 1);
    (s.ops_cap, s.bytes_cap) = (g.log_between(80.0, 2000.0), g.log_between(20e6, 400e6));
    (s.cv, s.spread) = (g.between(0.01, 0.06), g.between(0.05, 0.5));
    drive::probe(&mut s, options())
}

/// What was called limited and is not, for whoever improves the method: `VALIDATE_EXPLAIN=1`.
fn explain(all: &[ProbeOutcome]) {
    if std::env::var_os("VALIDATE_EXPLAIN").is_none() {
        return;
    }
    for (i, o) in all.iter().enumerate() {
        for r in [Resource::Ops, Resource::Bytes] {
            let cause = o.cause_of(r);
            if cause == Cause::None {
                continue;
            }
            let f = if r == Resource::Ops { &o.ops } else { &o.bytes };
            eprintln!("{i} {} {cause:?} {:?}, seen twice {:?}", r.name(), f.capacity, o.seen_twice());
            for (x, f) in [("ops", &o.ops), ("bytes", &o.bytes)] {
                for d in &f.drains {
                    let (a, b) = (d.steadiness, d.window);
                    eprintln!(
                        "    {x} {:?} rate {:.4} in flight {} rest {:.0} length {:.0} recovered {:?} {a:?} {b:?}",
                        d.kind, d.rate, f.concurrency, d.rest_s, d.length_s, d.recovered
                    );
                }
            }
        }
    }
}

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let of = |out: &[ProbeOutcome], what: &dyn Fn(Cause) -> bool| {
        let causes = out.iter().flat_map(|o| [Resource::Ops, Resource::Bytes].map(|r| o.cause_of(r)));
        causes.filter(|c| what(*c)).count()
    };
    let any = |c: Cause| c != Cause::None;
    let held = |c: Cause| c == Cause::Held;
    let free = s.each(43, s.systems(400), |x| fluid(x, false).1);
    let whole = s.each(44, s.systems(200), requests);
    explain(&whole);
    let limited = s.each(45, s.systems(200), |x| fluid(x, true));
    let goal = Goal::AtMost(0.02);
    let (stalls, none): (Vec<_>, Vec<_>) = limited.into_iter().partition(|(stalls, _)| *stalls);
    let of_limited = |name: &str, all: Vec<(bool, ProbeOutcome)>| {
        let all: Vec<ProbeOutcome> = all.into_iter().map(|(_, o)| o).collect();
        ScoreRow::share(name, of(&all, &any), 2 * all.len(), Goal::None)
    };
    vec![
        ScoreRow::share(
            "no limiter, speed that wanders: called held",
            of(&free, &held),
            2 * free.len(),
            goal,
        ),
        ScoreRow::share("– called limited for any cause", of(&free, &any), 2 * free.len(), goal),
        ScoreRow::share("no limiter, whole requests: called held", of(&whole, &held), 2 * whole.len(), goal),
        ScoreRow::share("– called limited for any cause", of(&whole, &any), 2 * whole.len(), goal),
        of_limited("limiter without a burst or refusals: called limited", none),
        of_limited(
            "– where the storage stalls for 1 to 3 s now and then, more than the bucket makes good",
            stalls,
        ),
    ]
}
