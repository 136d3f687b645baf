//! Randomness as a pure function of seed and count: op n is the same whoever asks, in any order.

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection that scatters its input.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The `n`-th value of the stream `seed`: SplitMix64 at position `n`.
#[inline]
pub fn at(seed: u64, n: u64) -> u64 {
    mix(seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A seed for another purpose, independent of its parent.
#[inline]
pub fn derive(seed: u64, purpose: u64) -> u64 {
    mix(mix(seed ^ 0x5851_f42d_4c95_7f2d).wrapping_add(mix(purpose.wrapping_add(0x1405_7b7e_f767_814f))))
}

/// A number in `0..bound`, from 64 random bits; the bias is below `bound / 2^64`.
#[inline]
pub fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// A number in `[0, 1)` with 53 bits.
#[inline]
pub fn unit(random: u64) -> f64 {
    (random >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in `(0, 1]`: safe for a logarithm.
#[inline]
pub fn unit_open(random: u64) -> f64 {
    ((random >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A standard normal value from two independent words (Box and Muller 1958).
#[inline]
pub fn normal(a: u64, b: u64) -> f64 {
    (-2.0 * unit_open(a).ln()).sqrt() * (std::f64::consts::TAU * unit(b)).cos()
}

/// A fixed permutation of `0..domain` without memory: a four-round Feistel network over the next
/// power of four, walked until it lands inside (Black and Rogaway 2002, cycle walking).
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    domain: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of `0..domain`, without a table.
    pub fn new(domain: u64, seed: u64) -> Self {
        let bits = 64 - domain.saturating_sub(1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Self { domain, half_bits, keys: std::array::from_fn(|i| at(seed, i as u64)) }
    }

    /// Where `i` goes; `i` must be below the domain.
    #[inline]
    pub fn get(&self, i: u64) -> u64 {
        debug_assert!(i < self.domain);
        let mut x = self.round_trip(i);
        while x >= self.domain {
            x = self.round_trip(x);
        }
        x
    }

    #[inline]
    fn round_trip(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_visits_each_once() {
        for domain in [1u64, 2, 3, 5, 16, 17, 1000, 4097] {
            let p = Permutation::new(domain, 42);
            let mut seen = vec![false; domain as usize];
            for i in 0..domain {
                let j = p.get(i) as usize;
                assert!(!seen[j], "{domain}: {j} twice");
                seen[j] = true;
            }
        }
    }

    #[test]
    fn permutation_scatters() {
        let p = Permutation::new(1 << 20, 7);
        let q = Permutation::new(1 << 20, 8);
        let adjacent = (0..10_000).filter(|&i| p.get(i).abs_diff(p.get(i + 1)) < 16).count();
        assert!(adjacent < 20, "{adjacent}");
        assert!((0..10_000).filter(|&i| p.get(i) == q.get(i)).count() < 5);
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let n = 100_000u64;
        let mean = (0..n).map(|i| unit(at(1, i))).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let z: Vec<f64> = (0..n).map(|i| normal(at(2, 2 * i), at(2, 2 * i + 1))).collect();
        let m = z.iter().sum::<f64>() / n as f64;
        let v = z.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n as f64;
        assert!(m.abs() < 0.02 && (v - 1.0).abs() < 0.02, "{m} {v}");
    }
}
