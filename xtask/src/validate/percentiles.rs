//! Coverage of the 95 % intervals of percentiles: ops whose latencies follow a state of the storage that changes slowly.

use plimsoll_stats::math;
use plimsoll_stats::percentile::{BLOCKS, Block, all_shares};
use plimsoll_stats::rng::Rng;
use plimsoll_stats::student::normal_quantile;

use super::Settings;
use super::score::{COVERAGE, ScoreRow};
use super::steadiness::noise;

/// Slices of 100 ms, as a run has them.
const SLICES_PER_S: f64 = 10.0;

struct Case {
    window_s: f64,
    /// Correlation time of the state.
    tau_s: f64,
    state: State,
    per_slice: usize,
}

#[derive(Clone, Copy)]
enum State {
    /// Wanders; this share of the variance is the state's, the rest is each op's own.
    Wanders(f64),
    /// Comes for this share of the time, for `tau_s` each time, and moves all ops by [`SLOWER`] standard deviations.
    Comes(f64),
}

/// By how much ops are slower in a state that comes and goes, in standard deviations of one op.
const SLOWER: f64 = 4.0;

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let case = |window_s, tau_s, state, per_slice| Case { window_s, tau_s, state, per_slice };
    let cases = [
        ("independent ops, 1,000 in 10 s", case(10.0, 0.02, State::Wanders(0.0), 10)),
        ("independent ops, 60,000 in 60 s", case(60.0, 0.02, State::Wanders(0.0), 100)),
        ("a fifth is a state of 0.1 s, 28 s", case(28.0, 0.1, State::Wanders(0.2), 50)),
        ("half is a state of 1 s, 60 s", case(60.0, 1.0, State::Wanders(0.5), 50)),
        ("half is a state of 3 s, 300 s", case(300.0, 3.0, State::Wanders(0.5), 20)),
        ("a fifth is a state of 3 s, 300 s", case(300.0, 3.0, State::Wanders(0.2), 20)),
        ("a slow state of 1 s, 3 % of the time, 300 s", case(300.0, 1.0, State::Comes(0.03), 20)),
    ];
    let mut out = Vec::new();
    for (i, (name, c)) in cases.iter().enumerate() {
        let n = s.systems(1000);
        let truths = QUANTILES.map(|q| truth(c, q));
        let hits = s.each(120 + i as u64, n, |seed| cover(c, truths, seed));
        for (k, q) in QUANTILES.into_iter().enumerate() {
            let of: Vec<Held> = hits.iter().filter_map(|h| h[k]).collect();
            // Where most runs are too short for an interval there is nothing to cover.
            if of.len() * 2 < hits.len() {
                continue;
            }
            let covered = of.iter().filter(|h| h.truth).count();
            out.push(ScoreRow::share(
                format!("p{} of {name}: interval covers", 100.0 * q),
                covered,
                of.len(),
                COVERAGE,
            ));
            let reach = |f: fn(&Held) -> f64| math::median(&of.iter().map(f).collect::<Vec<f64>>());
            let open = of.iter().filter(|h| h.reach[1].is_infinite()).count();
            let shown = format!(
                "-{:.2}/+{:.2} standard deviations of an op in the median; {open} without an upper end",
                reach(|h| h.reach[0]),
                reach(|h| h.reach[1])
            );
            out.push(ScoreRow::shown("– how far it reaches", shown));
        }
    }
    out
}

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// An interval against the truth.
#[derive(Clone, Copy)]
struct Held {
    truth: bool,
    /// Below and above the value.
    reach: [f64; 2],
}

/// The state in each slice, in standard deviations.
fn states(g: &mut Rng, c: &Case, slices: usize) -> Vec<f64> {
    match c.state {
        State::Wanders(share) => {
            noise(g, slices, c.tau_s * SLICES_PER_S).into_iter().map(|z| share.sqrt() * z).collect()
        }
        State::Comes(share) => {
            let leaves = 1.0 / (c.tau_s * SLICES_PER_S);
            let mut slow = g.uniform() < share;
            let mut next = || {
                let was = slow;
                let turns = if slow { leaves } else { leaves * share / (1.0 - share) };
                slow ^= g.uniform() < turns;
                if was { SLOWER } else { 0.0 }
            };
            (0..slices).map(|_| next()).collect()
        }
    }
}

/// The quantile that a window without end would show.
fn truth(c: &Case, q: f64) -> f64 {
    let State::Comes(share) = c.state else { return normal_quantile(q) };
    let below = |x: f64| (1.0 - share) * normal_share(x) + share * normal_share(x - SLOWER);
    let (mut low, mut high) = (-9.0, 9.0 + SLOWER);
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if below(mid) < q { low = mid } else { high = mid }
    }
    low
}

/// Share of a normal distribution below `x`.
fn normal_share(x: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if normal_quantile(mid) < x { low = mid } else { high = mid }
    }
    low
}

/// The interval of each quantile; `None` where there is none. An open end holds all.
fn cover(c: &Case, truths: [f64; 4], seed: u64) -> [Option<Held>; 4] {
    let mut g = Rng::new(seed);
    let slices = (c.window_s * SLICES_PER_S) as usize;
    let state = states(&mut g, c, slices);
    let own = if let State::Wanders(share) = c.state { (1.0 - share).sqrt() } else { 1.0 };
    // On the scale of the normal distribution: what is monotone in it (a log-normal latency) has the same ranks.
    let mut blocks: Vec<Vec<f64>> = vec![Vec::new(); BLOCKS];
    for (i, z) in state.iter().enumerate() {
        let block = &mut blocks[i * BLOCKS / slices];
        block.extend((0..c.per_slice).map(|_| z + own * g.normal()));
    }
    let mut all: Vec<f64> = blocks.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        all[((((1.0 - share) * all.len() as f64).ceil() as usize).max(1) - 1).min(all.len() - 1)]
    };
    let counted = |q: f64| {
        let x = at(1.0 - q);
        let count =
            |b: &Vec<f64>| Block { ops: b.len() as f64, beyond: b.iter().filter(|v| **v > x).count() as f64 };
        (q, vec![blocks.iter().map(count).collect::<Vec<_>>()])
    };
    let found = all_shares(QUANTILES.map(counted));
    let mut out = [None; 4];
    for (((q, truth), found), hit) in QUANTILES.into_iter().zip(truths).zip(found).zip(&mut out) {
        // A percentile with fewer ops beyond it is not told.
        let told = all.len() as f64 * (1.0 - q) >= 10.0 - 1e-6;
        *hit = found.filter(|_| told).map(|s| {
            let (low, high) = (at(s.low), s.high.map_or(f64::INFINITY, at));
            let value = at(1.0 - q);
            Held { truth: low <= truth && truth <= high, reach: [value - low, high - value] }
        });
    }
    out
}
