//! How long a request takes in a tier when no limit binds: base, bytes, and a seeded log-normal spread.

use super::{LatencySpec, OpClass};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws times: the n-th is a pure function of the seed and n.
#[derive(Debug)]
pub struct Latency {
    base_us: f64,
    base_us_of: BTreeMap<OpClass, f64>,
    per_mib_us: f64,
    spread: f64,
    seed: u64,
    n: AtomicU64,
}

impl Latency {
    pub fn new(spec: &LatencySpec) -> Latency {
        Latency {
            base_us: spec.base_us,
            base_us_of: spec.base_us_of.clone(),
            per_mib_us: spec.per_mib_us,
            spread: spec.spread,
            seed: spec.seed,
            n: AtomicU64::new(0),
        }
    }

    /// Nanoseconds of the next request.
    pub fn next_ns(&self, class: OpClass, bytes: u64) -> u64 {
        self.at(self.n.fetch_add(1, Ordering::Relaxed), class, bytes)
    }

    /// Nanoseconds of the n-th request. The factor's mean is 1: exp(s z - s^2 / 2).
    pub fn at(&self, n: u64, class: OpClass, bytes: u64) -> u64 {
        let base = self.base_us_of.get(&class).copied().unwrap_or(self.base_us);
        let mean_us = base + self.per_mib_us * bytes as f64 / 1_048_576.0;
        let factor = if self.spread > 0.0 {
            (self.spread * normal(self.seed, n) - self.spread * self.spread / 2.0).exp()
        } else {
            1.0
        };
        (mean_us * factor * 1_000.0) as u64
    }
}

/// A standard normal number (Box and Muller) from two uniform ones.
fn normal(seed: u64, n: u64) -> f64 {
    let unit = |x: u64| (mix(x) >> 11) as f64 / (1u64 << 53) as f64;
    let (a, b) = (unit(seed ^ mix(2 * n)), unit(seed ^ mix(2 * n + 1)));
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread_are_those_asked_for_and_the_seed_repeats_them() {
        let spec = LatencySpec {
            base_us: 1_000.0,
            per_mib_us: 500.0,
            spread: 0.5,
            seed: 7,
            base_us_of: BTreeMap::from([(OpClass::Put, 3_000.0)]),
        };
        let (a, b) = (Latency::new(&spec), Latency::new(&spec));
        let draws: Vec<u64> = (0..40_000).map(|n| a.at(n, OpClass::Get, 2 << 20)).collect();
        assert!((0..100).all(|n| b.next_ns(OpClass::Get, 2 << 20) == draws[n]));
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean / 2_000_000.0 - 1.0).abs() < 0.01, "{mean}");
        let logs: Vec<f64> = draws.iter().map(|&d| (d as f64).ln()).collect();
        let m = logs.iter().sum::<f64>() / logs.len() as f64;
        let sd = (logs.iter().map(|l| (l - m).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!((sd - 0.5).abs() < 0.01, "{sd}");
        assert!(Latency::new(&LatencySpec { spread: 0.0, ..spec }).at(0, OpClass::Put, 0) == 3_000_000);
    }
}
