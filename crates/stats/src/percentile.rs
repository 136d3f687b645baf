//! Percentiles of latencies with 95 % intervals that autocorrelation does not fool.
//!
//! The window is cut into blocks of equal length. In each the ops that lie beyond the percentile are counted; how these counts vary
//! from block to block (with the correlation of neighbours, as for rates: [`crate::rate`]) against how independent ops would vary is
//! the design effect (Kish 1965), and n over it the effective number of ops. The interval is that of the order statistics of so many
//! independent ops: the shares beyond its ends are Jeffreys' (Brown, Cai and DasGupta 2001) for an effective size that Student's t for
//! the few blocks reduces further (Korn and Graubard 1998), read off the histogram of all ops (Woodruff 1952). It is deterministic,
//! and an end that no op was seen beyond is none.

use plimsoll_model::Estimate;
use statrs::function::beta::beta_reg;

use crate::{math, rate, student};

/// Blocks that a window is cut into, as many as the batches of a rate.
pub const BLOCKS: usize = 20;
/// Ops beyond the percentile that independent ops would have to be worth at the least; with fewer there is no interval (validated).
const LEAST_BEYOND: f64 = 4.0;
/// Slow ops come in bursts, and in a short window a rarer kind of burst may have been missed: the effect at a percentile further out is
/// taken to be this part of the effect at the one before, at the least (validated).
const INHERITED: f64 = 0.3;
/// Blocks can be more alike than independent ops: more trust than so many times the number of ops is not put in that (validated).
const LEAST_EFFECT: f64 = 0.8;

/// One block: its ops, and how many of them took longer than the percentile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Block {
    /// All that ended in it.
    pub ops: f64,
    /// Of these, those that took longer.
    pub beyond: f64,
}

/// Shares of all ops that lie beyond the two ends of the interval: `low` is beyond the lower end, and the larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailShares {
    /// 0 to 1.
    pub low: f64,
    /// Absent: the upper end lies beyond all that was seen.
    pub high: Option<f64>,
    /// Effective number of ops.
    pub n_eff: f64,
}

/// The intervals of several quantiles (0 to 1, ascending), each with the blocks of each run in order of time, as shares of ops beyond
/// them. From three runs on, runs are the unit. `None`: the data carries no interval.
pub fn all_shares<const N: usize>(wanted: [(f64, Vec<Vec<Block>>); N]) -> [Option<TailShares>; N] {
    let mut least = LEAST_EFFECT;
    wanted.map(|(q, runs)| {
        let (effect, found) = shares(q, &runs, least)?;
        least = LEAST_EFFECT.max(INHERITED * effect);
        found
    })
}

/// The design effect, at least `least`, and the interval, where there is one.
fn shares(q: f64, runs: &[Vec<Block>], least: f64) -> Option<(f64, Option<TailShares>)> {
    let sum = |blocks: &[Block]| {
        blocks.iter().fold(Block::default(), |a, b| Block { ops: a.ops + b.ops, beyond: a.beyond + b.beyond })
    };
    let per_run = runs.len() >= 3;
    let units: Vec<Block> = if per_run {
        runs.iter().map(|r| sum(r)).collect()
    } else {
        runs.iter().flatten().copied().collect()
    };
    let all = sum(&units);
    if units.len() < 3 || all.ops <= 0.0 || !(0.0..1.0).contains(&q) {
        return None;
    }
    let p = all.beyond / all.ops;
    let (effect, df) = effect(&units, &all, p, per_run);
    let effect = effect.max(least);
    let n_eff = all.ops / effect;
    // Few blocks tell the effect itself only roughly.
    let n = n_eff * (1.96 / student::t95(df)).powi(2);
    let beyond = n * (1.0 - q);
    if beyond < LEAST_BEYOND {
        return Some((effect, None));
    }
    let (a, b) = (beyond + 0.5, n - beyond + 0.5);
    let high = beta_quantile(0.025, a, b);
    let found =
        TailShares { low: beta_quantile(0.975, a, b), high: (high * all.ops >= 1.0).then_some(high), n_eff };
    Some((effect, Some(found)))
}

/// How much more the share beyond varies than among independent ops, and the degrees of freedom in that.
fn effect(units: &[Block], all: &Block, p: f64, independent: bool) -> (f64, f64) {
    let count = units.len() as f64;
    let residuals: Vec<f64> = units.iter().map(|b| b.beyond - p * b.ops).collect();
    let inflation = if independent { 1.0 } else { rate::inflation(&residuals) };
    let variance = count * math::variance(&residuals, 1) * inflation;
    // All ops alike: there is no spread to compare with.
    let of_independent = (all.ops * p * (1.0 - p)).max(f64::MIN_POSITIVE);
    let effect = if p <= 0.0 || p >= 1.0 { 1.0 } else { variance / of_independent };
    (effect, (count / inflation).max(2.0) - 1.0)
}

/// The interval around `value`: `beyond(share)` gives the lowest and the highest latency that may lie at a share of ops beyond.
pub fn interval(value: f64, s: &TailShares, beyond: impl Fn(f64) -> (f64, f64)) -> Estimate {
    let high = s.high.map_or(f64::INFINITY, |share| beyond(share).1);
    Estimate { value, low: beyond(s.low).0.min(value), high: high.max(value), n_eff: s.n_eff }
}

/// Quantile of the beta distribution, by bisection: its function is monotone, whatever its shape.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if beta_reg(a, b, mid) < p {
            low = mid;
        } else {
            high = mid;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn shares(q: f64, runs: &[Vec<Block>]) -> Option<TailShares> {
        all_shares([(q, runs.to_vec())])[0]
    }

    /// Blocks of a window whose ops are independent, of which a share of `1 - q` lies beyond.
    fn independent(seed: u64, q: f64, blocks: usize, ops: usize) -> Vec<Block> {
        let mut rng = Rng::new(seed);
        let block = |rng: &mut Rng| {
            let beyond = (0..ops).filter(|_| rng.uniform() > q).count() as f64;
            Block { ops: ops as f64, beyond }
        };
        (0..blocks).map(|_| block(&mut rng)).collect()
    }

    #[test]
    fn independent_ops_have_the_interval_of_their_order_statistics() {
        let s = shares(0.9, &[independent(1, 0.9, 20, 1000)]).unwrap();
        // Binomial: 10 % +- 0.42 %, somewhat wider for 20 blocks.
        assert!((s.low - 0.1046).abs() < 0.003 && (s.high.unwrap() - 0.0955).abs() < 0.003, "{s:?}");
        assert!((10_000.0..=25_000.0).contains(&s.n_eff), "{s:?}");
    }

    #[test]
    fn ops_that_are_alike_count_for_less() {
        // Whole blocks are slow or fast.
        let blocks: Vec<Block> =
            (0..20).map(|i| Block { ops: 1000.0, beyond: if i % 3 == 1 { 1000.0 } else { 0.0 } }).collect();
        let s = shares(0.65, &[blocks]).unwrap();
        assert!(s.n_eff < 40.0 && s.low > 0.5, "{s:?}");
    }

    #[test]
    fn an_end_beyond_all_that_was_seen_is_none() {
        let few = shares(0.999, &[independent(2, 0.999, 20, 150)]);
        assert!(few.is_none_or(|s| s.high.is_none()), "{few:?}");
        assert_eq!(shares(0.999, &[independent(3, 0.999, 20, 10)]), None);
        assert_eq!(shares(0.5, &[]), None);
        assert_eq!(
            shares(0.5, &[vec![Block { ops: 9.0, beyond: 4.0 }; 2]]),
            None,
            "two blocks tell no spread"
        );
        assert_eq!(shares(0.5, &[vec![Block::default(); 20]]), None);
    }

    #[test]
    fn a_tail_is_no_steadier_than_what_lies_below_it() {
        // Nine ops in ten follow a state of the block; the slowest one in a hundred happen to be spread evenly.
        let slow: Vec<Block> =
            (0..20).map(|i| Block { ops: 1000.0, beyond: if i < 7 { 1000.0 } else { 0.0 } }).collect();
        let tail = vec![Block { ops: 1000.0, beyond: 10.0 }; 20];
        let alone = shares(0.99, std::slice::from_ref(&tail)).unwrap();
        let [_, with] = all_shares([(0.65, vec![slow]), (0.99, vec![tail])]);
        assert!(with.is_none() && alone.n_eff > 10_000.0, "{with:?} {alone:?}");
    }

    #[test]
    fn of_several_runs_the_runs_are_the_unit() {
        let alike = shares(
            0.5,
            &[independent(4, 0.5, 20, 100), independent(5, 0.5, 20, 100), independent(6, 0.5, 20, 100)],
        );
        let apart = shares(
            0.5,
            &[independent(4, 0.3, 20, 100), independent(5, 0.5, 20, 100), independent(6, 0.7, 20, 100)],
        );
        let width = |s: Option<TailShares>| s.map_or(1.0, |s| s.low - s.high.unwrap_or(0.0));
        assert!(width(apart) > 5.0 * width(alike), "{alike:?} {apart:?}");
    }

    #[test]
    fn ops_of_one_latency_have_an_interval_of_no_width() {
        let s = shares(0.5, &[vec![Block { ops: 100.0, beyond: 0.0 }; 20]]).unwrap();
        let e = interval(7.0, &s, |_| (7.0, 7.0));
        assert_eq!((e.low, e.high), (7.0, 7.0));
    }
}
