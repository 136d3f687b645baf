//! When op n is intended. Pure: the same pacer and n always give the same time.

/// Intended start of the ops of one workload, nanoseconds after the stage's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacer {
    /// No intended time: an op starts when a slot is free.
    Closed,
    /// Op n at n / rate.
    Constant { per_s: f64 },
    /// Poisson arrivals of this mean rate; `seed` fixes them.
    Poisson { per_s: f64, seed: u64 },
    /// From rate `from_per_s` to `to_per_s`, linear over `over_s`, then constant.
    Ramp { from_per_s: f64, to_per_s: f64, over_s: f64 },
}

/// Arrivals in one block of a Poisson process share one anchor, so that op n is found without summing
/// n gaps.
const BLOCK: u64 = 1024;

impl Pacer {
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// Intended time of op `n`, nanoseconds after the stage's start; 0 in a closed loop.
    pub fn intended_ns(&self, n: u64) -> u64 {
        match *self {
            Self::Closed => 0,
            Self::Constant { per_s } => (n as f64 / per_s * 1e9) as u64,
            Self::Poisson { per_s, seed } => poisson_ns(per_s, seed, n),
            Self::Ramp { from_per_s, to_per_s, over_s } => ramp_ns(from_per_s, to_per_s, over_s, n),
        }
    }
}

/// Given its number of arrivals, a Poisson process is a set of independent uniform times. Each block
/// holds exactly `BLOCK` arrivals in `BLOCK / rate` seconds, sorted uniforms made by normalised
/// exponential gaps: locally Poisson, and the rate holds exactly over every block.
fn poisson_ns(per_s: f64, seed: u64, n: u64) -> u64 {
    let (block, within) = (n / BLOCK, n % BLOCK);
    let gap = |i: u64| -unit(mix(seed ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i << 1 ^ 1)).ln();
    let (mut before, mut total) = (0.0, 0.0);
    for i in 0..=BLOCK {
        let g = gap(i);
        total += g;
        if i <= within {
            before += g;
        }
    }
    let span_s = BLOCK as f64 / per_s;
    ((block as f64 + before / total) * span_s * 1e9) as u64
}

/// Ops done by time t in the ramp are `from t + (to - from) t^2 / (2 over)`; this is its inverse.
fn ramp_ns(from: f64, to: f64, over_s: f64, n: u64) -> u64 {
    let n = n as f64;
    let in_ramp = (from + to) / 2.0 * over_s;
    let t = if n >= in_ramp {
        over_s + (n - in_ramp) / to
    } else {
        let a = (to - from) / (2.0 * over_s);
        if a.abs() < 1e-12 { n / from } else { ((from * from + 4.0 * a * n).sqrt() - from) / (2.0 * a) }
    };
    (t * 1e9) as u64
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a good 64-bit hash.
pub(crate) fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A uniform number in (0, 1].
pub(crate) fn unit(x: u64) -> f64 {
    ((x >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Walks a pacer over ascending op numbers; keeps one Poisson block, so that a step is O(1).
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pacer: Pacer,
    block: u64,
    times_ns: Vec<u64>,
}

impl Walk {
    pub(crate) fn new(pacer: Pacer) -> Self {
        let times_ns =
            if matches!(pacer, Pacer::Poisson { .. }) { vec![0; BLOCK as usize] } else { Vec::new() };
        Self { pacer, block: u64::MAX, times_ns }
    }

    #[inline]
    pub(crate) fn intended_ns(&mut self, n: u64) -> u64 {
        let Pacer::Poisson { per_s, seed } = self.pacer else { return self.pacer.intended_ns(n) };
        if n / BLOCK != self.block {
            self.block = n / BLOCK;
            self.fill(per_s, seed);
        }
        self.times_ns[(n % BLOCK) as usize]
    }

    fn fill(&mut self, per_s: f64, seed: u64) {
        let key = seed ^ self.block.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let gap = |i: u64| -unit(mix(key ^ i << 1 ^ 1)).ln();
        let total: f64 = (0..=BLOCK).map(gap).sum();
        let span_s = BLOCK as f64 / per_s;
        let mut before = 0.0;
        for i in 0..BLOCK {
            before += gap(i);
            self.times_ns[i as usize] = ((self.block as f64 + before / total) * span_s * 1e9) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pacers() -> impl Strategy<Value = Pacer> {
        let rate = 0.5..1e6f64;
        prop_oneof![
            rate.clone().prop_map(|per_s| Pacer::Constant { per_s }),
            (rate.clone(), any::<u64>()).prop_map(|(per_s, seed)| Pacer::Poisson { per_s, seed }),
            (rate.clone(), rate, 0.1..100f64).prop_map(|(from_per_s, to_per_s, over_s)| Pacer::Ramp {
                from_per_s,
                to_per_s,
                over_s
            }),
        ]
    }

    proptest! {
        #[test]
        fn time_never_runs_back(p in pacers(), n in 0u64..100_000) {
            prop_assert!(p.intended_ns(n) <= p.intended_ns(n + 1));
        }

        #[test]
        fn walking_is_asking(p in pacers(), start in 0u64..5000, step in 1u64..7) {
            let mut walk = Walk::new(p);
            for i in 0..50 {
                let n = start + i * step;
                let (a, b) = (walk.intended_ns(n) as i64, p.intended_ns(n) as i64);
                prop_assert!((a - b).abs() <= 1 + b / 1_000_000_000, "{a} {b}");
            }
        }
    }

    #[test]
    fn rates_hold() {
        assert_eq!(Pacer::Constant { per_s: 800.0 }.intended_ns(800), 1_000_000_000);
        let p = Pacer::Poisson { per_s: 1000.0, seed: 3 };
        let t = p.intended_ns(10 * BLOCK) as f64 / 1e9;
        assert!((t - 10.24).abs() < 0.05, "{t}");
        let r = Pacer::Ramp { from_per_s: 100.0, to_per_s: 300.0, over_s: 10.0 };
        assert!((r.intended_ns(2000) as i64 - 10_000_000_000).abs() < 10);
        assert_eq!(r.intended_ns(2300), 11_000_000_000);
    }
}
