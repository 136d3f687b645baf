//! Distributions of sizes and of positions, each a pure function of a hash.

use plimsoll_model::plan::{KeyDist, SizeDist};

use crate::pacer::{mix, unit};

/// Sizes of objects or blocks, lowered so that drawing one is a few instructions.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    Fixed(u64),
    /// Multiples of `step` from `min` to `max`.
    Uniform {
        min: u64,
        max: u64,
        step: u64,
    },
    /// (cumulative weight, size), ascending; the last weight is the sum.
    Weighted(Vec<(u64, u64)>),
    LogNormal {
        mu: f64,
        sigma: f64,
        max: u64,
    },
}

impl Sizes {
    /// `step`: 1 for objects; for blocks the smallest block, as fio's bsrange has it.
    pub fn new(dist: &SizeDist, step: u64) -> Self {
        match dist {
            SizeDist::Fixed(s) => Self::Fixed(s.0),
            SizeDist::Uniform { min, max } => Self::Uniform { min: min.0, max: max.0, step: step.max(1) },
            SizeDist::Weighted(list) => {
                let mut sum = 0;
                let cumulative = list.iter().filter(|(_, w)| *w > 0).map(|(s, w)| {
                    sum += u64::from(*w);
                    (sum, s.0)
                });
                Self::Weighted(cumulative.collect())
            }
            SizeDist::LogNormal { median, sigma, max } => {
                Self::LogNormal { mu: (median.0.max(1) as f64).ln(), sigma: *sigma, max: max.0 }
            }
        }
    }

    /// The size that belongs to `hash`.
    #[inline]
    pub fn draw(&self, hash: u64) -> u64 {
        match self {
            Self::Fixed(s) => *s,
            Self::Uniform { min, max, step } => min + below(hash, (max - min) / step + 1) * step,
            Self::Weighted(list) => {
                let total = list.last().map_or(1, |l| l.0);
                let x = below(hash, total);
                list.iter().find(|(c, _)| x < *c).map_or(0, |l| l.1)
            }
            Self::LogNormal { mu, sigma, max } => {
                // Box and Muller (1958).
                let (u, v) = (unit(mix(hash)), unit(mix(hash ^ 0xA5A5)));
                let z = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                ((mu + sigma * z).exp().round() as u64).clamp(1, *max)
            }
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Self::Fixed(s) => *s,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => *max,
            Self::Weighted(list) => list.iter().map(|l| l.1).max().unwrap_or(0),
        }
    }

    pub fn smallest(&self) -> u64 {
        match self {
            Self::Fixed(s) => *s,
            Self::Uniform { min, .. } => *min,
            Self::LogNormal { .. } => 1,
            Self::Weighted(list) => list.iter().map(|l| l.1).min().unwrap_or(0),
        }
    }
}

/// A uniform whole number below `n`, without the bias of a remainder (Lemire 2019, no rejection: the
/// bias is below n / 2^64).
#[inline]
pub fn below(hash: u64, n: u64) -> u64 {
    ((u128::from(hash) * u128::from(n)) >> 64) as u64
}

/// A position among `n`.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    Uniform,
    Zipf(Zipf),
    Pareto { power: f64 },
    Sequential,
}

impl Positions {
    pub fn new(dist: KeyDist, n: u64) -> Self {
        match dist {
            KeyDist::Uniform => Self::Uniform,
            KeyDist::Sequential => Self::Sequential,
            KeyDist::Zipf(theta) => Self::Zipf(Zipf::new(theta, n)),
            // fio's pareto: rank = n * u^(log h / log (1 - h)).
            KeyDist::Pareto(h) => Self::Pareto { power: h.ln() / (1.0 - h).ln() },
        }
    }

    /// Position of draw number `i`. Popular ranks are spread over the space by a hash, as fio does.
    #[inline]
    pub fn draw(&self, i: u64, hash: u64, n: u64) -> u64 {
        match self {
            Self::Uniform => below(hash, n),
            Self::Sequential => i % n,
            Self::Zipf(z) => below(mix(z.rank(unit(hash))), n),
            Self::Pareto { power } => {
                let rank = (n as f64 * unit(hash).powf(*power)) as u64;
                below(mix(rank.min(n - 1)), n)
            }
        }
    }
}

/// Zipf by rejection-free inversion of Gray et al. (1994), "Quickly generating billion-record synthetic
/// databases"; theta in (0, 1) or above 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Zipf {
    n: f64,
    theta: f64,
    alpha: f64,
    zeta_n: f64,
    eta: f64,
    half_power: f64,
}

impl Zipf {
    pub fn new(theta: f64, n: u64) -> Self {
        // At 1 the formulae have a pole; a hair beside it the law is the same to six digits.
        let theta = if (theta - 1.0).abs() < 1e-6 { 1.0 + 1e-6 } else { theta };
        let n = n.max(1);
        let zeta_n = zeta(n, theta);
        let zeta_2 = zeta(2.min(n), theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta_n);
        Self { n: n as f64, theta, alpha: 1.0 / (1.0 - theta), zeta_n, eta, half_power: 0.5f64.powf(theta) }
    }

    /// Rank 0 is the most popular.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + self.half_power {
            return 1;
        }
        let base = self.eta * u - self.eta + 1.0;
        let rank = self.n * base.max(0.0).powf(self.alpha);
        (rank as u64).min(self.n as u64 - 1)
    }

    pub fn theta(&self) -> f64 {
        self.theta
    }
}

/// Sum of k^-theta, k from 1 to n: exact up to 100,000, then Euler and Maclaurin.
fn zeta(n: u64, theta: f64) -> f64 {
    let exact = n.min(100_000);
    let head: f64 = (1..=exact).map(|k| (k as f64).powf(-theta)).sum();
    if n == exact {
        return head;
    }
    let (a, b) = (exact as f64, n as f64);
    let tail = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
    head + tail + (b.powf(-theta) - a.powf(-theta)) / 2.0
}

/// A permutation of 0..n in constant memory: a Feistel network over the next power of four, walked until
/// it falls inside (Black and Rogaway 2002, "cycle walking").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    pub fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.max(2).saturating_sub(1).leading_zeros();
        Self { n: n.max(1), half_bits: bits.div_ceil(2).max(1), key }
    }

    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut l, mut r) = (x >> self.half_bits, x & mask);
            for round in 0..4u64 {
                let f = mix(r ^ self.key.rotate_left(round as u32 * 16) ^ round) & mask;
                (l, r) = (r, l ^ f);
            }
            x = l << self.half_bits | r;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_permutation_visits_all_once(n in 1u64..3000, key: u64) {
            let p = Permutation::new(n, key);
            let mut seen: Vec<u64> = (0..n).map(|i| p.at(i)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..n));
        }

        #[test]
        fn positions_are_inside(n in 1u64..1_000_000, hash: u64, i: u64, theta in 0.1..2.5f64, h in 0.05..0.95f64) {
            for d in [KeyDist::Uniform, KeyDist::Sequential, KeyDist::Zipf(theta), KeyDist::Pareto(h)] {
                prop_assert!(Positions::new(d, n).draw(i, hash, n) < n);
            }
        }
    }

    #[test]
    fn zipf_has_its_law() {
        let z = Zipf::new(0.99, 1000);
        let draws = 200_000u64;
        let first = (0..draws).filter(|i| z.rank(unit(mix(*i))) == 0).count() as f64 / draws as f64;
        let want = 1.0 / zeta(1000, 0.99);
        assert!((first / want - 1.0).abs() < 0.03, "{first} against {want}");
        assert!(
            (zeta(1_000_000, 1.2) - (1..=1_000_000).map(|k| f64::from(k).powf(-1.2)).sum::<f64>()).abs()
                < 1e-6
        );
    }

    #[test]
    fn log_normal_has_its_median() {
        use plimsoll_model::units::Size;
        let s = Sizes::new(&SizeDist::LogNormal { median: Size(65536), sigma: 1.0, max: Size(1 << 30) }, 1);
        let mut v: Vec<u64> = (0..20_001).map(|i| s.draw(mix(i))).collect();
        v.sort_unstable();
        assert!((v[10_000] as f64 / 65536.0 - 1.0).abs() < 0.03, "{}", v[10_000]);
    }
}
