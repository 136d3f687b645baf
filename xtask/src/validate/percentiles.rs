//! Coverage of the 95 % intervals of percentiles: ops whose latencies follow a state of the storage that changes slowly.

use plimsoll_stats::percentile::{BLOCKS, Block, all_shares};
use plimsoll_stats::rng::Rng;
use plimsoll_stats::student::normal_quantile;

use super::Settings;
use super::score::{COVERAGE, Row};
use super::steadiness::noise;

/// Slices of 100 ms, as a run has them.
const SLICES_PER_S: f64 = 10.0;

struct Case {
    window_s: f64,
    /// Correlation time of the state.
    tau_s: f64,
    /// Share of the variance that is the state's; the rest is each op's own.
    state: f64,
    per_slice: usize,
}

pub fn rows(s: &Settings) -> Vec<Row> {
    let case = |window_s, tau_s, state, per_slice| Case { window_s, tau_s, state, per_slice };
    let cases = [
        ("independent ops, 1,000 in 10 s", case(10.0, 0.02, 0.0, 10)),
        ("independent ops, 60,000 in 60 s", case(60.0, 0.02, 0.0, 100)),
        ("a fifth is a state of 0.1 s, 28 s", case(28.0, 0.1, 0.2, 50)),
        ("half is a state of 1 s, 60 s", case(60.0, 1.0, 0.5, 50)),
        ("a fifth is a state of 3 s, 300 s", case(300.0, 3.0, 0.2, 20)),
    ];
    let mut out = Vec::new();
    for (i, (name, c)) in cases.iter().enumerate() {
        let n = s.systems(2000);
        let hits = s.each(80 + i as u64, n, |seed| cover(c, seed));
        for (k, q) in QUANTILES.into_iter().enumerate() {
            let of: Vec<bool> = hits.iter().filter_map(|h| h[k]).collect();
            // Where most runs are too short for an interval there is nothing to cover.
            if of.len() * 2 < hits.len() {
                continue;
            }
            let covered = of.iter().filter(|h| **h).count();
            out.push(Row::share(
                format!("p{} of {name}: interval covers", 100.0 * q),
                covered,
                of.len(),
                COVERAGE,
            ));
        }
    }
    out
}

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Whether the interval of each quantile holds the truth; `None` where there is no interval. An open end holds all.
fn cover(c: &Case, seed: u64) -> [Option<bool>; 4] {
    let mut g = Rng::new(seed);
    let slices = (c.window_s * SLICES_PER_S) as usize;
    let state = noise(&mut g, slices, c.tau_s * SLICES_PER_S);
    let (a, b) = (c.state.sqrt(), (1.0 - c.state).sqrt());
    // On the scale of the normal distribution: what is monotone in it (a log-normal latency) has the same ranks.
    let mut blocks: Vec<Vec<f64>> = vec![Vec::new(); BLOCKS];
    for (i, z) in state.iter().enumerate() {
        let block = &mut blocks[i * BLOCKS / slices];
        block.extend((0..c.per_slice).map(|_| a * z + b * g.normal()));
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
    for ((q, found), hit) in QUANTILES.into_iter().zip(found).zip(&mut out) {
        // A percentile with fewer ops beyond it is not told.
        let told = all.len() as f64 * (1.0 - q) >= 10.0 - 1e-6;
        let truth = normal_quantile(q);
        *hit = found.filter(|_| told).map(|s| at(s.low) <= truth && s.high.is_none_or(|h| truth <= at(h)));
    }
    out
}
