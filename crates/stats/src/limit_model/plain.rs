//! Caps that a few sizes show by themselves: small ops all at one rate, large ones all at one number of bytes per second.
//!
//! The model needs six cells and more than one concurrency to know its parameters. Where two sizes or more are flat in operations
//! and two or more in bytes, no model is needed for what they come to; one resource with a cost per op and per byte (or the latency of
//! ops that wait for their bytes) cannot look like that, since it bends over two decades of sizes. What a single concurrency
//! cannot tell is a cap on operations from latency: what is said holds for that many in flight.

use plimsoll_model::Estimate;

use super::MeasuredCell;
use crate::math;
use crate::student;

/// Rates that differ by no more are one level (as for the levels of a series: the smallest step that is told is 8 %, and runs
/// differ by 3 %; guess).
const FLAT: f64 = 1.06;
/// A level spans so many times the size at the least, in two cells or more.
const LEAST_SPAN: f64 = 3.5;
/// The two levels lie no further apart in size: under one shared resource, flat ends of such a span lie more than 100 times apart
/// (computed: `1/(1 + s/k)` falls by 6 % within a span of 3.5 from s = k/40 on, on either side of k).
const FURTHEST: f64 = 40.0;
/// Spread of the runs of a cell that is assumed where there is one of each (as in the model).
const ASSUMED: f64 = 0.03;

/// What sizes at one concurrency come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plain {
    /// Ops per second of the small ones, and bytes per second of the large ones.
    pub ops_per_s: Estimate,
    /// Mean of the large ones.
    pub bytes_per_s: Estimate,
    /// The largest size of the first level, and the smallest of the second.
    pub ops_up_to: f64,
    /// The smallest size of the second level.
    pub bytes_from: f64,
    /// In flight, in all cells.
    pub concurrency: f64,
}

/// The two levels, where the cells are of one concurrency and show both. Cells between the levels may lie anywhere below both.
pub fn plain(cells: &[MeasuredCell]) -> Option<Plain> {
    let mut good: Vec<&MeasuredCell> = cells.iter().filter(|c| c.is_usable()).collect();
    good.sort_by(|a, b| a.size_bytes.total_cmp(&b.size_bytes));
    let first = good.first()?;
    let distinct = good.windows(2).all(|w| w[0].size_bytes < w[1].size_bytes);
    if !distinct || good.iter().any(|c| c.concurrency != first.concurrency) {
        return None;
    }
    let ops: Vec<f64> = good.iter().map(|c| log_mean(c)).collect();
    let bytes: Vec<f64> = ops.iter().zip(&good).map(|(y, c)| y + c.size_bytes.ln()).collect();
    let small = level(ops.iter().copied());
    let large = level(bytes.iter().rev().copied());
    let from = good.len().checked_sub(large)?;
    if small > from {
        return None;
    }
    let span =
        |c: &[&MeasuredCell]| c.len() >= 2 && c[c.len() - 1].size_bytes / c[0].size_bytes >= LEAST_SPAN;
    let apart = good[from.min(good.len() - 1)].size_bytes / good[small.max(1) - 1].size_bytes;
    if !span(&good[..small]) || !span(&good[from..]) || apart > FURTHEST {
        return None;
    }
    let (o, w) = (math::mean(&ops[..small]), math::mean(&bytes[from..]));
    // What lies between the levels, or belongs to the other one, lies below both caps.
    let below = |i: usize| ops[i] <= o.min(w - good[i].size_bytes.ln()) + FLAT.ln();
    if !(0..good.len()).all(below) {
        return None;
    }
    let (sd, df) = spread(&good, &ops[..small], &bytes[from..]);
    let estimate = |at: f64, n: usize| {
        let half = student::t95(df) * sd / (n as f64).sqrt();
        Estimate { value: at.exp(), low: (at - half).exp(), high: (at + half).exp(), n_eff: n as f64 }
    };
    Some(Plain {
        ops_per_s: estimate(o, small),
        bytes_per_s: estimate(w, large),
        ops_up_to: good[small - 1].size_bytes,
        bytes_from: good[from].size_bytes,
        concurrency: first.concurrency,
    })
}

fn log_mean(c: &MeasuredCell) -> f64 {
    math::mean(&c.ops_per_s.iter().map(|v| v.ln()).collect::<Vec<f64>>())
}

/// How many of the first values lie within one level.
fn level(values: impl Iterator<Item = f64>) -> usize {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    values
        .take_while(|v| {
            (low, high) = (low.min(*v), high.max(*v));
            high - low <= FLAT.ln()
        })
        .count()
}

/// Standard deviation of a cell's logarithm, with its degrees of freedom: how the cells of a level differ, and no less than their runs
/// say (or what is assumed of them).
fn spread(cells: &[&MeasuredCell], ops: &[f64], bytes: &[f64]) -> (f64, f64) {
    let squares = |v: &[f64]| v.len() as f64 * math::variance(v, 0);
    let df = (ops.len() + bytes.len() - 2) as f64;
    let seen = ((squares(ops) + squares(bytes)) / df).sqrt();
    let logs = |c: &&MeasuredCell| c.ops_per_s.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let runs: Vec<Vec<f64>> = cells.iter().map(logs).filter(|l| l.len() > 1).collect();
    let within = if runs.is_empty() {
        ASSUMED
    } else {
        let n = math::mean(&runs.iter().map(|l| l.len() as f64).collect::<Vec<f64>>());
        (math::mean(&runs.iter().map(|l| math::variance(l, 1)).collect::<Vec<f64>>()) / n).sqrt()
    };
    (seen.max(within), df)
}

#[cfg(test)]
mod tests {
    use super::super::Theta;
    use super::*;
    use crate::rng::Rng;

    const KIB: f64 = 1024.0;
    const SIZES: [f64; 5] = [4.0 * KIB, 16.0 * KIB, 64.0 * KIB, 256.0 * KIB, 1024.0 * KIB];

    fn cells(per_s: impl Fn(f64) -> f64) -> Vec<MeasuredCell> {
        let one = |s: f64| MeasuredCell { size_bytes: s, concurrency: 32.0, ops_per_s: vec![per_s(s)] };
        SIZES.iter().map(|s| one(*s)).collect()
    }

    /// A device with both caps as it was measured: 751, 740, 260, 143 and 36 IOPS from 4 KiB to 1 MiB.
    #[test]
    fn five_sizes_show_both_caps() {
        let seen = [751.0, 740.0, 260.0, 143.0, 36.0];
        let p = plain(&cells(|s| seen[SIZES.iter().position(|x| *x == s).unwrap()])).expect("two levels");
        assert!(p.ops_per_s.contains(750.0) && p.ops_per_s.relative_half_width() < 0.12, "{p:?}");
        assert!(p.bytes_per_s.contains(37.6e6) && p.bytes_per_s.relative_half_width() < 0.12, "{p:?}");
        assert_eq!((p.ops_up_to, p.bytes_from, p.concurrency), (16.0 * KIB, 256.0 * KIB, 32.0));
    }

    #[test]
    fn what_shows_one_level_shows_no_caps() {
        // No cap on bytes, none on operations; none that fits below both; a shared resource.
        assert_eq!(plain(&cells(|_| 700.0)), None);
        assert_eq!(plain(&cells(|s| 40e6 / s)), None);
        assert_eq!(plain(&cells(|s| if s > 200.0 * KIB { 40e6 / s } else { 100.0 })), None);
        assert_eq!(plain(&cells(|s| 1.0 / (1.0 / 750.0 + s / 37.6e6))), None);
        assert_eq!(plain(&cells(|s| 750f64.min(37.6e6 / s))[..3]), None);
        let mut two = cells(|s| 750f64.min(37.6e6 / s));
        two[0].concurrency = 1.0;
        assert_eq!(plain(&two), None);
        assert_eq!(plain(&[]), None);
    }

    /// Random systems: what is said are the caps that were set, or the rate that latency allows with so many in flight; and one
    /// resource, or latency that grows with the size, is never taken for two caps.
    #[test]
    fn no_cap_is_said_that_is_none() {
        let (mut said, mut covered, mut chances) = (0, 0, 0);
        for seed in 0..4000 {
            let mut g = Rng::new(seed);
            let (ops, knee) = (g.log_between(100.0, 20_000.0), g.log_between(2.0 * KIB, 2048.0 * KIB));
            let exponent = [1.0, 1.5, 2.0, 64.0][g.below(4)];
            // Latency over that at which it allows as many as the cap: above 1 it binds.
            let latency = if exponent > 2.0 { g.log_between(0.01, 3.0) } else { 0.01 };
            let truth = ops / latency.max(1.0);
            let theta = Theta([ops.ln(), (ops * knee).ln(), (latency * 32.0 / ops).ln(), 60.0]);
            let noise = g.between(0.0, 0.03);
            let mut c = cells(|s| theta.log_rate(s, 32.0, exponent).exp());
            c.iter_mut().for_each(|c| c.ops_per_s[0] *= (noise * g.normal()).exp());
            let found = plain(&c);
            chances +=
                usize::from(exponent > 2.0 && (20.0 * KIB..200.0 * KIB).contains(&(ops * knee / truth)));
            if let Some(p) = found {
                assert!(exponent > 1.0, "seed {seed}: {p:?} of one resource");
                said += 1;
                covered += usize::from(p.ops_per_s.contains(truth))
                    + usize::from(p.bytes_per_s.contains(ops * knee));
            }
        }
        assert!(said * 10 >= chances * 6, "{said} of {chances}");
        assert!(covered as f64 >= 0.95 * 2.0 * f64::from(said as u32), "{covered} of twice {said}");
    }
}
