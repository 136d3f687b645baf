//! Which operations draw on one bucket (`--probe-shared`): each is loaded alone and then together with the op whose limit
//! was found. Ops of one bucket share its tokens; ops of two do not notice each other.

/// Whether an op draws on the bucket of the op that was probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One bucket for both.
    Shared,
    /// Neither slows the other.
    Separate,
    /// It makes the other slower, but not as one bucket would: a resource that both use, or more buckets than one.
    Undetermined,
}

impl Sharing {
    /// For a sentence: `same bucket`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Shared => "same bucket",
            Self::Separate => "not the same bucket",
            Self::Undetermined => "undetermined",
        }
    }
}

/// Rates (ok ops per second) of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The op whose limit was found, by itself.
    pub first_alone: f64,
    /// The other by itself.
    pub other_alone: f64,
    /// Both at once.
    pub first: f64,
    /// The other, while the first runs.
    pub other: f64,
}

/// What belongs to one bucket adds up to it, within this.
const WITHIN: f64 = 0.08;

fn is_whole(x: f64) -> bool {
    (x - 1.0).abs() <= WITHIN
}

impl Pair {
    /// Share of its own rate that the first op keeps while the other runs.
    pub fn kept(&self) -> f64 {
        if self.first_alone > 0.0 { self.first / self.first_alone } else { f64::NAN }
    }

    /// Use of the bucket by both, if it is one; costs may differ between ops.
    pub fn together(&self) -> f64 {
        let other = if self.other_alone > 0.0 { self.other / self.other_alone } else { f64::NAN };
        self.kept() + other
    }

    /// Judges the pair. The first op's limit has to be proved: two ops that wait for one CPU add up like this, too.
    pub fn judge(&self) -> Sharing {
        let (kept, together) = (self.kept(), self.together());
        if !(kept.is_finite() && together.is_finite()) {
            return Sharing::Undetermined;
        }
        if kept >= 1.0 - WITHIN {
            // An op that got nothing through took no tokens either, and says nothing.
            return if self.other > 0.02 * self.other_alone {
                Sharing::Separate
            } else {
                Sharing::Undetermined
            };
        }
        // The same cost for both, or the other's own: in either case the whole is one bucket's worth.
        if is_whole(together) || is_whole(self.of_first()) { Sharing::Shared } else { Sharing::Undetermined }
    }

    /// Ops of both together, over those of the first alone.
    fn of_first(&self) -> f64 {
        (self.first + self.other) / self.first_alone
    }

    /// One bucket, of which an op of the one uses up another amount than one of the other.
    pub fn have_own_costs(&self) -> bool {
        self.judge() == Sharing::Shared && is_whole(self.together()) && !is_whole(self.of_first())
    }
}

/// The same of all kinds of a mix: each by itself, and all side by side, each with ops in flight of its own.
pub fn kinds_share(alone: &[f64], together: &[f64]) -> Sharing {
    let kept: Vec<f64> =
        alone.iter().zip(together).map(|(a, t)| if *a > 0.0 { t / a } else { f64::NAN }).collect();
    if kept.len() < 2 || alone.len() != together.len() || kept.iter().any(|k| !k.is_finite()) {
        return Sharing::Undetermined;
    }
    let whole = (kept.iter().sum::<f64>() - 1.0).abs() <= WITHIN;
    match () {
        () if kept.iter().all(|k| (k - 1.0).abs() <= WITHIN) => Sharing::Separate,
        () if whole => Sharing::Shared,
        () => Sharing::Undetermined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn pair(first_alone: f64, other_alone: f64, first: f64, other: f64) -> Sharing {
        Pair { first_alone, other_alone, first, other }.judge()
    }

    #[test]
    fn one_bucket_is_shared_whatever_the_costs() {
        assert_eq!(pair(800.0, 800.0, 400.0, 401.0), Sharing::Shared);
        // The other costs five tokens.
        assert_eq!(pair(800.0, 160.0, 400.0, 80.0), Sharing::Shared);
        let own = |a, b, c, d| Pair { first_alone: a, other_alone: b, first: c, other: d }.have_own_costs();
        assert!(
            own(800.0, 160.0, 400.0, 80.0)
                && !own(800.0, 800.0, 400.0, 401.0)
                && !own(800.0, 300.0, 799.0, 300.0)
        );
        // It gets a third of the tokens.
        assert_eq!(pair(800.0, 800.0, 530.0, 268.0), Sharing::Shared);
    }

    #[test]
    fn two_buckets_do_not_notice_each_other() {
        assert_eq!(pair(800.0, 300.0, 799.0, 300.0), Sharing::Separate);
        assert_eq!(pair(800.0, 20_000.0, 790.0, 15_000.0), Sharing::Separate);
    }

    #[test]
    fn kinds_of_a_mix_share_or_not() {
        assert_eq!(kinds_share(&[310.0, 130.0], &[309.0, 131.0]), Sharing::Separate);
        assert_eq!(kinds_share(&[500.0, 500.0], &[251.0, 250.0]), Sharing::Shared);
        assert_eq!(kinds_share(&[500.0, 100.0], &[250.0, 50.0]), Sharing::Shared);
        assert_eq!(kinds_share(&[20_000.0, 130.0], &[14_000.0, 130.0]), Sharing::Undetermined);
        assert_eq!(kinds_share(&[0.0, 130.0], &[0.0, 130.0]), Sharing::Undetermined);
        assert_eq!(kinds_share(&[130.0], &[130.0]), Sharing::Undetermined);
    }

    #[test]
    fn what_fits_neither_is_open() {
        // It uses a bucket of its own and this one.
        assert_eq!(pair(800.0, 300.0, 700.0, 280.0), Sharing::Undetermined);
        assert_eq!(pair(800.0, 300.0, 800.0, 0.0), Sharing::Undetermined);
        assert_eq!(pair(0.0, 300.0, 0.0, 1.0), Sharing::Undetermined);
        assert_eq!(pair(800.0, 0.0, 400.0, 0.0), Sharing::Undetermined);
    }

    /// Limiters with noise of 1 % in each figure, which is more than six seconds of a limiter show.
    #[test]
    fn noise_does_not_mislead() {
        let mut g = Rng::new(11);
        for _ in 0..2000 {
            let mut noisy = |x: f64| x * (1.0 + 0.01 * g.normal());
            let cost = 1.0 + 4.0 * (noisy(1.0) - 0.97).abs().min(1.0);
            let (a, b) = (noisy(1000.0), noisy(1000.0 / cost));
            let shared = pair(a, b, noisy(500.0), noisy(500.0 / cost));
            assert_ne!(shared, Sharing::Separate);
            let separate = pair(a, noisy(300.0), noisy(1000.0), noisy(300.0));
            assert_eq!(separate, Sharing::Separate);
        }
    }
}
