//! Outages: false alarms on storage that was never away, of many kinds of unrest, and what is found of gaps of known length.

use plimsoll_model::claim::{Outage, OutageKind};
use plimsoll_stats::outage::{self, Seen};
use plimsoll_stats::rng::Rng;
use plimsoll_stats::simulate::events::ops_bucket;
use plimsoll_stats::simulate::{Load, System};

use super::Settings;
use super::passive::fluid;
use super::score::{Goal, ScoreRow};
use super::steadiness::noise;

const DT_S: f64 = 0.1;
/// A load without an outage, seconds: sixty of them are an hour.
const QUIET_S: f64 = 60.0;
const IN_FLIGHT: f64 = 64.0;

/// What ends in each slice.
struct Series {
    ok: Vec<f64>,
    throttled: Vec<f64>,
    failed: Vec<f64>,
    /// What one op takes.
    op_s: f64,
}

impl Series {
    fn find(&self) -> Vec<Outage> {
        let n = self.ok.len();
        let (in_flight, held_back) = (vec![IN_FLIGHT; n], vec![0.0; n]);
        outage::find(&Seen {
            at: "it",
            ok: &self.ok,
            throttled: &self.throttled,
            failed: &self.failed,
            in_flight: &in_flight,
            held_back: &held_back,
            dt_s: DT_S,
            op_s: self.op_s,
            ..Seen::default()
        })
    }

    /// Rates to whole ops.
    fn counted(g: &mut Rng, ok_per_s: &[f64], refused_per_s: &[f64], op_s: f64) -> Self {
        let ok: Vec<f64> = ok_per_s.iter().map(|r| poisson(g, r * DT_S)).collect();
        let throttled =
            (0..ok.len()).map(|i| refused_per_s.get(i).map_or(0.0, |r| (r * DT_S).round())).collect();
        Self { failed: vec![0.0; ok.len()], ok, throttled, op_s }
    }
}

fn poisson(g: &mut Rng, mean: f64) -> f64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * g.normal()).round().max(0.0);
    }
    let (limit, mut k, mut p) = ((-mean).exp(), 0.0, 1.0);
    loop {
        p *= g.uniform();
        if p <= limit {
            return k;
        }
        k += 1.0;
    }
}

/// Ops a second of the storage: 2 to 10,000.
fn speed(g: &mut Rng) -> f64 {
    g.log_between(2.0, 10_000.0)
}

/// Noise of 1 to 8 %, with stalls of 70 to 95 % for seconds.
fn unrest(seed: u64) -> Series {
    let mut g = Rng::new(seed);
    let rate = speed(&mut g);
    let mut s = fluid(seed ^ 0xabcd, rate);
    (s.cv, s.tau_s) = (g.between(0.01, 0.08), g.log_between(0.5, 10.0));
    (s.stall_rate, s.stall_depth, s.stall_s) = (0.05, g.between(0.7, 0.95), g.between(1.0, 3.0));
    let seen = s.run(&load());
    Series::counted(&mut g, &seen.ops_per_s, &[], IN_FLIGHT / rate)
}

/// A state that makes the storage slow by a factor, and comes and goes in seconds.
fn slow_state(seed: u64) -> Series {
    let mut g = Rng::new(seed);
    let (rate, sigma, tau_s) = (speed(&mut g), g.between(0.2, 1.0), g.log_between(0.5, 10.0));
    let z = noise(&mut g, (QUIET_S / DT_S) as usize, tau_s / DT_S);
    let x: Vec<f64> = z.iter().map(|z| rate * (sigma * z).exp()).collect();
    Series::counted(&mut g, &x, &[], IN_FLIGHT / rate)
}

/// A limiter that refuses: a bucket that empties, at rates from a hundredth of the storage's on.
fn refusing(seed: u64) -> Series {
    let mut g = Rng::new(seed);
    let rate = speed(&mut g);
    let granted = rate * g.log_between(0.01, 0.8);
    let mut s = fluid(seed ^ 0xabcd, rate);
    (s.cv, s.rejects) = (g.between(0.01, 0.05), true);
    s.buckets = vec![ops_bucket(granted, granted * g.log_between(0.5, 30.0))];
    let seen = s.run(&load());
    Series::counted(&mut g, &seen.ops_per_s, &seen.rejected_per_s, IN_FLIGHT / rate)
}

/// A quota per window of 1 to 10 s: refused for the rest of each.
fn quota(seed: u64) -> Series {
    let mut g = Rng::new(seed);
    let window_s = g.between(1.0, 10.0);
    quota_of(&mut g, window_s)
}

fn quota_of(g: &mut Rng, window_s: f64) -> Series {
    let (rate, share) = (g.log_between(20.0, 10_000.0), g.between(0.1, 0.9));
    let begun_s = g.between(0.0, window_s);
    let open = |i: usize| (begun_s + i as f64 * DT_S) % window_s < share * window_s;
    let slices = 0..(QUIET_S / DT_S) as usize;
    let ok: Vec<f64> = slices.clone().map(|i| if open(i) { rate } else { 0.0 }).collect();
    let refused: Vec<f64> = slices.map(|i| if open(i) { 0.0 } else { 4.0 * rate }).collect();
    Series::counted(g, &ok, &refused, IN_FLIGHT / rate)
}

/// Storage behind such a quota that is away for several of its windows.
fn gap_under_quota(seed: u64) -> Gap {
    let mut g = Rng::new(seed);
    let window_s = g.between(1.0, 5.0);
    let mut series = quota_of(&mut g, window_s);
    let length_s = g.between(2.0, 4.0) * window_s;
    let from_s = g.between(5.0, QUIET_S - 5.0 - length_s);
    let inside = (from_s / DT_S).ceil() as usize..((from_s + length_s) / DT_S) as usize;
    series.ok[inside.clone()].fill(0.0);
    series.throttled[inside.clone()].fill(0.0);
    series.failed[inside].fill(IN_FLIGHT);
    Gap { found: series.find(), from_s, to_s: from_s + length_s, kind: OutageKind::Failing }
}

/// Long ops that end together: as many as are in flight, each time one has passed.
fn together(seed: u64) -> Series {
    let mut g = Rng::new(seed);
    let (op_s, jitter) = (g.log_between(0.2, 5.0), g.between(0.0, 0.2));
    let mut ok = vec![0.0; (QUIET_S / DT_S) as usize];
    let mut at_s = 0.0;
    while at_s < QUIET_S {
        at_s += op_s * (1.0 + jitter * g.normal()).max(0.5);
        for _ in 0..IN_FLIGHT as usize {
            let ends_s = at_s + 0.02 * op_s * g.normal().abs();
            if let Some(slice) = ok.get_mut((ends_s / DT_S) as usize) {
                *slice += 1.0;
            }
        }
    }
    Series { throttled: vec![0.0; ok.len()], failed: vec![0.0; ok.len()], ok, op_s }
}

fn load() -> Load {
    Load {
        size_bytes: 4096.0,
        concurrency: IN_FLIGHT as u32,
        duration_s: QUIET_S,
        dt_s: DT_S,
        offered_per_s: None,
    }
}

/// A gap in a minute of noise: its outages, its edges, and what was put into it.
#[derive(Clone)]
struct Gap {
    found: Vec<Outage>,
    from_s: f64,
    to_s: f64,
    kind: OutageKind,
}

impl Gap {
    /// Errors of both edges, in seconds, where it is found as the one that it is.
    fn edges(&self) -> Option<[f64; 2]> {
        let [o] = &self.found[..] else { return None };
        let to_s = o.span.to_s?;
        let overlaps = o.span.from_s < self.to_s && self.from_s < to_s;
        overlaps.then_some([o.span.from_s - self.from_s, to_s - self.to_s])
    }
}

/// `expected`: ops that would have ended in it at the storage's own rate; `in_flight`: of which so many at a time.
fn gap(seed: u64, length_s: f64, expected: (f64, f64), in_flight: f64) -> Gap {
    let mut g = Rng::new(seed);
    let rate = g.log_between(expected.0, expected.1) / length_s;
    let mut s = fluid(seed ^ 0xabcd, rate);
    (s.cv, s.tau_s) = (g.between(0.01, 0.08), g.log_between(0.5, 10.0));
    let mut x = s.run(&load()).ops_per_s;
    let from_s = g.between(5.0, QUIET_S - 5.0 - length_s);
    let to_s = from_s + length_s;
    // A slice at an edge has the part of its ops that lies outside.
    for (i, r) in x.iter_mut().enumerate() {
        let (a, b) = (i as f64 * DT_S, (i + 1) as f64 * DT_S);
        *r *= 1.0 - (b.min(to_s) - a.max(from_s)).max(0.0) / DT_S;
    }
    let mut series = Series::counted(&mut g, &x, &[], in_flight / rate);
    // What refuses has answered, and is no outage: a third of the gaps was of refusals while it was called one.
    let kind = [OutageKind::Silent, OutageKind::Failing][(g.uniform() * 2.0) as usize % 2];
    let inside = (from_s / DT_S).ceil() as usize..(to_s / DT_S) as usize;
    if kind == OutageKind::Failing {
        series.failed[inside].fill(IN_FLIGHT);
    }
    Gap { found: series.find(), from_s, to_s, kind }
}

type Quiet = (&'static str, fn(u64) -> Series);

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    let quiet: [Quiet; 5] = [
        ("noise of 1 to 8 %, stalls of 70 to 95 %", unrest),
        ("a slow state", slow_state),
        ("a limiter that refuses", refusing),
        ("a quota per window", quota),
        ("long ops that end together", together),
    ];
    let n = s.systems(6000);
    let hours = n as f64 * QUIET_S / 3600.0;
    for (i, (name, series)) in quiet.iter().enumerate() {
        let found: Vec<Option<Vec<Outage>>> = s.each(130 + i as u64, n, |seed| {
            let series = series(seed);
            series.ok.iter().any(|n| *n > 0.0).then(|| series.find())
        });
        // Of what lets nothing at all through, nobody can tell whether it is away: the claim names both.
        let nothing = found.iter().filter(|f| f.is_none()).count();
        let hours = hours - nothing as f64 * QUIET_S / 3600.0;
        let found: Vec<Vec<Outage>> = found.into_iter().flatten().collect();
        let alarms = found.iter().flatten().count();
        let open = found.iter().flatten().filter(|o| o.span.to_s.is_none()).count();
        let per_h = alarms as f64 / hours;
        let left_out = match nothing {
            0 => String::new(),
            k => format!("; {k} loads without a single success are not counted"),
        };
        let shown = format!(
            "{per_h:.2} per hour ({alarms} in {hours:.0} h, {open} of them without an end{left_out})"
        );
        out.push(ScoreRow {
            goal: format!("<= {MOST_ALARMS_PER_H:.2} per hour"),
            reached: Some(per_h <= MOST_ALARMS_PER_H),
            ..ScoreRow::shown(format!("outages, none there: {name}: false alarms"), shown)
        });
    }
    // An outage is longer than three ops, so that three times what is in flight is missing; and its edges fall between slices.
    let lengths = [0.6, 1.0, 2.0, 5.0, 20.0];
    for (i, length_s) in lengths.into_iter().enumerate() {
        let all =
            s.each(140 + i as u64, s.systems(1000), |seed| gap(seed, length_s, (250.0, 20_000.0), IN_FLIGHT));
        gaps(
            &format!("outages of {length_s} s, 64 in flight, 250 ops and more missing"),
            &all,
            true,
            &mut out,
        );
    }
    for (i, (expected, goal)) in [((40.0, 250.0), true), ((10.0, 40.0), false)].into_iter().enumerate() {
        let all = s.each(150 + i as u64, s.systems(1000), |seed| gap(seed, 2.0, expected, 1.0));
        let name = format!("outages of 2 s, 1 in flight, {} to {} ops missing", expected.0, expected.1);
        gaps(&name, &all, goal, &mut out);
    }
    let all = s.each(160, s.systems(1000), gap_under_quota);
    gaps("outages of 2 to 4 windows of a quota", &all, false, &mut out);
    out
}

/// A day of other loads shows none that is not there. (A choice.)
const MOST_ALARMS_PER_H: f64 = 0.05;

fn gaps(name: &str, all: &[Gap], has_goal: bool, out: &mut Vec<ScoreRow>) {
    let hits = all.iter().filter(|g| g.edges().is_some()).count();
    let goal = if has_goal { Goal::AtLeast(0.98) } else { Goal::None };
    out.push(ScoreRow::share(format!("{name}: found"), hits, all.len(), goal));
    let mut edges: Vec<f64> = all.iter().filter_map(Gap::edges).flatten().map(f64::abs).collect();
    edges.sort_by(f64::total_cmp);
    let at = |q: f64| plimsoll_stats::math::quantile(&edges, q);
    let shown = format!("p50 {:.2} s, p90 {:.2} s, max {:.2} s", at(0.5), at(0.9), at(1.0));
    out.push(ScoreRow::shown("– its edges", shown));
    let named = all.iter().filter(|g| g.edges().is_some() && g.found[0].kind == g.kind).count();
    out.push(ScoreRow::share("– named for what came instead", named, hits, Goal::None));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series that the method does not take as one finds nothing, and no false alarm either.
    #[test]
    fn a_gap_that_was_put_in_is_found() {
        let found = (0..20).filter(|seed| gap(*seed, 5.0, (1000.0, 20_000.0), IN_FLIGHT).edges().is_some());
        assert!(found.count() >= 19);
    }
}
