//! How positions are chosen: in order, alike, or by popularity, in constant memory.

use crate::rng;
use crate::source::Passes;

/// The distribution of keys or offsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dist {
    /// Never the same twice: position n. For new objects.
    Fresh,
    /// In order, then from the start again.
    Sequential,
    /// All alike, repeats included.
    Uniform,
    /// In random order, each once before any comes again.
    Once,
    /// Popularity of rank k falls as `k^-s`; ranks are scattered over the positions.
    Zipf(f64),
    /// fio's pareto: `h` is the share of accesses that is *not* in the first `h` of positions (0.2 is
    /// the 80/20 rule); scattered like zipf.
    Pareto(f64),
}

impl Dist {
    pub(crate) fn check(&self) -> Result<(), String> {
        match *self {
            Self::Zipf(s) if !(s.is_finite() && s > 0.0) => {
                Err(format!("the exponent of zipf must be above zero, not {s}"))
            }
            Self::Pareto(h) if !(h > 0.0 && h < 1.0) => {
                Err(format!("the index of pareto must lie between 0 and 1, not {h}"))
            }
            _ => Ok(()),
        }
    }
}

/// Picks positions out of `0..count`.
#[derive(Debug, Clone)]
pub(crate) struct Picker {
    count: u64,
    seed: u64,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    Fresh,
    Sequential,
    Uniform,
    Once(Passes),
    Zipf { law: Zipf, scatter: rng::Permutation },
    Pareto { power: f64, scatter: rng::Permutation },
}

impl Picker {
    pub(crate) fn new(dist: Dist, count: u64, seed: u64) -> Self {
        let scatter = || rng::Permutation::new(count, rng::derive(seed, 99));
        let how = match dist {
            Dist::Fresh => How::Fresh,
            Dist::Sequential => How::Sequential,
            Dist::Uniform => How::Uniform,
            Dist::Once => How::Once(Passes::new(count, seed)),
            Dist::Zipf(s) => How::Zipf { law: Zipf::new(count, s), scatter: scatter() },
            // The share of accesses below position x is x^(1/power), so that h of the places get 1 - h.
            Dist::Pareto(h) => How::Pareto { power: h.ln() / (1.0 - h).ln(), scatter: scatter() },
        };
        Self { count, seed, how }
    }

    /// Position of op `n`, the `j`-th of its kind.
    #[inline]
    pub(crate) fn pick(&mut self, n: u64, j: u64) -> u64 {
        match &mut self.how {
            How::Fresh => j,
            How::Sequential => j % self.count,
            How::Uniform => rng::below(rng::at(self.seed, n), self.count),
            How::Once(passes) => passes.get(j),
            How::Zipf { law, scatter } => scatter.get(law.rank(rng::at(self.seed, n)) - 1),
            How::Pareto { power, scatter } => {
                let x = rng::unit(rng::at(self.seed, n)).powf(*power);
                scatter.get(((x * self.count as f64) as u64).min(self.count - 1))
            }
        }
    }
}

/// Zipf's law over ranks 1..=n by rejection-inversion (Hoermann and Derflinger 1996): exact, no tables,
/// any exponent above zero.
#[derive(Debug, Clone, Copy)]
struct Zipf {
    n: f64,
    s: f64,
    h_x1: f64,
    h_n: f64,
    cut: f64,
}

impl Zipf {
    fn new(n: u64, s: f64) -> Self {
        let mut z = Self { n: n as f64, s, h_x1: 0.0, h_n: 0.0, cut: 0.0 };
        z.h_x1 = z.integral(1.5) - 1.0;
        z.h_n = z.integral(z.n + 0.5);
        z.cut = 2.0 - z.integral_inverse(z.integral(2.5) - z.density(2.0));
        z
    }

    fn density(&self, x: f64) -> f64 {
        (-self.s * x.ln()).exp()
    }

    /// Integral of the density, continuous in s at 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over((1.0 - self.s) * log) * log
    }

    fn integral_inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.s)).max(-1.0);
        (ln1p_over(t) * y).exp()
    }

    fn rank(&self, mut random: u64) -> u64 {
        loop {
            let u = self.h_n + rng::unit(random) * (self.h_x1 - self.h_n);
            let x = self.integral_inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.cut || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64;
            }
            random = rng::mix(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
    }
}

/// `(e^x - 1) / x`, smooth at zero.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`, smooth at zero.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_follows_its_law() {
        for s in [0.5, 1.0, 1.2, 2.0] {
            let law = Zipf::new(1000, s);
            let mut counts = vec![0u64; 1001];
            let draws = 200_000u64;
            for i in 0..draws {
                counts[law.rank(rng::at(5, i)) as usize] += 1;
            }
            let total: f64 = (1..=1000).map(|k| (k as f64).powf(-s)).sum();
            for k in [1usize, 2, 3, 10] {
                let expected = draws as f64 * (k as f64).powf(-s) / total;
                let sigma = expected.sqrt();
                assert!(
                    (counts[k] as f64 - expected).abs() < 5.0 * sigma,
                    "s {s} rank {k}: {} of {expected}",
                    counts[k]
                );
            }
        }
    }

    #[test]
    fn pareto_keeps_its_rule() {
        let mut picker = Picker::new(Dist::Pareto(0.2), 1000, 1);
        let mut counts = vec![0u64; 1000];
        for n in 0..100_000 {
            counts[picker.pick(n, n) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u64 = counts[..200].iter().sum();
        assert!((hot as f64 / 100_000.0 - 0.8).abs() < 0.02, "{hot}");
    }
}
