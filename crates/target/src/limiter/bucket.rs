//! The arithmetic of rate limits: token buckets and fixed windows in integers, without a clock of their own.
//!
//! A level is kept in femtotokens (1e-15) and a rate in microtokens per second, so that a nanosecond of refill is the
//! product of two integers: no rounding, ever. Service over any interval t is at most capacity + rate * t, exactly.

/// Femtotokens in a microtoken.
const FEMTO_PER_MICRO: i128 = 1_000_000_000;
/// Microtokens in a token.
pub const MICRO: u64 = 1_000_000;

/// A token bucket that may be asked now, or booked ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate_micro_per_s: u64,
    capacity_femto: i128,
    /// Below zero: booked ahead.
    level_femto: i128,
    at_ns: u64,
}

impl TokenBucket {
    /// A bucket that holds `fill_micro` of at most `capacity_micro` at `now_ns`. A rate of 0 never refills.
    pub fn new(rate_micro_per_s: u64, capacity_micro: u64, fill_micro: u64, now_ns: u64) -> TokenBucket {
        let capacity_femto = i128::from(capacity_micro) * FEMTO_PER_MICRO;
        let level_femto = (i128::from(fill_micro) * FEMTO_PER_MICRO).min(capacity_femto);
        TokenBucket { rate_micro_per_s, capacity_femto, level_femto, at_ns: now_ns }
    }

    /// Time that runs backwards counts as standing still.
    fn refill(&mut self, now_ns: u64) {
        let dt = now_ns.saturating_sub(self.at_ns);
        if dt > 0 {
            let gained = i128::from(self.rate_micro_per_s) * i128::from(dt);
            self.level_femto = (self.level_femto + gained).min(self.capacity_femto);
            self.at_ns = now_ns;
        }
    }

    /// Whether `n_micro` could be taken at once.
    fn has(&mut self, now_ns: u64, n_micro: u64) -> bool {
        self.refill(now_ns);
        self.level_femto >= i128::from(n_micro) * FEMTO_PER_MICRO
    }

    /// Takes tokens whether they are there or not; the answer is when the debt will be paid.
    fn book(&mut self, now_ns: u64, n_micro: u64) -> u64 {
        self.refill(now_ns);
        self.level_femto -= i128::from(n_micro) * FEMTO_PER_MICRO;
        self.paid_at(now_ns, 0)
    }

    /// When the level reaches `n_micro`, should nothing more be taken; never (u64::MAX) without a refill.
    fn paid_at(&self, now_ns: u64, n_micro: u64) -> u64 {
        let missing = i128::from(n_micro) * FEMTO_PER_MICRO - self.level_femto;
        if missing <= 0 {
            return now_ns;
        }
        if self.rate_micro_per_s == 0 {
            return u64::MAX;
        }
        let rate = i128::from(self.rate_micro_per_s);
        let wait = (missing + rate - 1) / rate;
        now_ns.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// A refusal that costs what the request would have cost, down to an empty bucket.
    fn fine(&mut self, n_micro: u64) {
        let taken = self.level_femto - i128::from(n_micro) * FEMTO_PER_MICRO;
        self.level_femto = self.level_femto.min(taken.max(0));
    }
}

/// How tokens come: a bucket, perhaps with a second one that bounds the burst's rate, or a fixed window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    Tokens {
        sustained: TokenBucket,
        peak: Option<TokenBucket>,
    },
    /// So many per window on a fixed grid; what is left of a window is lost.
    Window {
        per_window_micro: u64,
        window_ns: u64,
        /// The window that `used_micro` counts; ahead of now when booked ahead.
        index: u64,
        used_micro: u64,
    },
}

impl Law {
    /// Whether `n_micro` fit now.
    pub fn has(&mut self, now_ns: u64, n_micro: u64) -> bool {
        match self {
            Law::Tokens { sustained, peak } => {
                sustained.has(now_ns, n_micro) && peak.as_mut().is_none_or(|p| p.has(now_ns, n_micro))
            }
            Law::Window { per_window_micro, window_ns, index, used_micro } => {
                roll(*window_ns, index, used_micro, now_ns);
                *index == now_ns / *window_ns && used_micro.saturating_add(n_micro) <= *per_window_micro
            }
        }
    }

    /// Whether anything is left, and nothing owed: the question of a bytes limit before a transfer.
    pub fn solvent(&mut self, now_ns: u64) -> bool {
        match self {
            Law::Tokens { sustained, .. } => sustained.has(now_ns, 1),
            Law::Window { .. } => self.has(now_ns, 1),
        }
    }

    /// Takes `n_micro`, from the future if need be; the answer is the time at which they are due.
    pub fn book(&mut self, now_ns: u64, n_micro: u64) -> u64 {
        match self {
            Law::Tokens { sustained, peak } => {
                let at = sustained.book(now_ns, n_micro);
                peak.as_mut().map_or(at, |p| p.book(now_ns, n_micro).max(at))
            }
            Law::Window { per_window_micro, window_ns, index, used_micro } => {
                roll(*window_ns, index, used_micro, now_ns);
                if *per_window_micro == 0 {
                    return u64::MAX;
                }
                let used = used_micro.saturating_add(n_micro);
                // A window that is exactly full is not yet the next one.
                let ahead = used.saturating_sub(1) / *per_window_micro;
                *index = index.saturating_add(ahead);
                *used_micro = used - ahead * *per_window_micro;
                now_ns.max(index.saturating_mul(*window_ns))
            }
        }
    }

    /// When `n_micro` will fit, should nobody else take them: for Retry-After.
    pub fn ready_at(&mut self, now_ns: u64, n_micro: u64) -> u64 {
        if self.has(now_ns, n_micro) {
            return now_ns;
        }
        match self {
            Law::Tokens { sustained, peak } => {
                let at = sustained.paid_at(now_ns, n_micro);
                peak.as_ref().map_or(at, |p| p.paid_at(now_ns, n_micro).max(at))
            }
            Law::Window { window_ns, index, .. } => index.saturating_add(1).saturating_mul(*window_ns),
        }
    }

    /// A refusal that costs tokens.
    pub fn fine(&mut self, now_ns: u64, n_micro: u64) {
        match self {
            Law::Tokens { sustained, .. } => {
                sustained.refill(now_ns);
                sustained.fine(n_micro);
            }
            // A window is spent already when it refuses.
            Law::Window { .. } => {}
        }
    }
}

/// Goes on to the window of `now_ns`, unless bookings are ahead of it.
fn roll(window_ns: u64, index: &mut u64, used_micro: &mut u64, now_ns: u64) {
    let current = now_ns / window_ns;
    if current > *index {
        *index = current;
        *used_micro = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn bucket(rate: u64, capacity: u64) -> Law {
        let b = TokenBucket::new(rate * MICRO, capacity * MICRO, capacity * MICRO, 0);
        Law::Tokens { sustained: b, peak: None }
    }

    #[test]
    fn the_law_of_a_burst_is_exact() {
        // 15,000 tokens at 750/s against a refill of 500/s last 60 s, to the nanosecond.
        let mut law = Law::Tokens {
            sustained: TokenBucket::new(500 * MICRO, 15_000 * MICRO, 15_000 * MICRO, 0),
            peak: Some(TokenBucket::new(750 * MICRO, MICRO, MICRO, 0)),
        };
        let due: Vec<u64> = (0..50_000).map(|_| law.book(0, MICRO)).collect();
        assert_eq!(due[44_999], 60 * S);
        assert_eq!(due[45_499] - due[44_999], S);
        assert_eq!(due[750], S);
    }

    #[test]
    fn a_fixed_window_starts_anew_on_its_grid() {
        let mut w = Law::Window { per_window_micro: 3 * MICRO, window_ns: S, index: 0, used_micro: 0 };
        let due: Vec<u64> = (0..8).map(|_| w.book(S / 2, MICRO)).collect();
        assert_eq!(due, [S / 2, S / 2, S / 2, S, S, S, 2 * S, 2 * S]);
        assert!(!w.has(2 * S, 2 * MICRO) && w.has(2 * S, MICRO) && w.has(3 * S, 3 * MICRO));
        assert_eq!(w.ready_at(3 * S, 4 * MICRO), 4 * S);
    }

    #[test]
    fn rejects_that_cost_tokens_starve_a_client_that_never_pauses() {
        let mut law = bucket(800, 800);
        let mut served = 0;
        for i in 0..100_000u64 {
            let now = i * 100_000; // 10,000 requests a second
            if law.has(now, MICRO) {
                law.book(now, MICRO);
                served += 1;
            } else {
                law.fine(now, MICRO);
            }
        }
        assert!((800..=900).contains(&served), "{served}");
        assert!(law.has(12 * S, MICRO), "after a pause it serves again");
    }

    proptest! {
        /// The promise of the module: over every interval, service <= capacity + rate * time, and a saturating
        /// client gets all of it.
        #[test]
        fn service_is_bounded_over_every_interval_and_nothing_is_lost(
            rate in 1u64..5_000,
            capacity in 0u64..500,
            arrivals in proptest::collection::vec((0u64..50_000_000, 1u64..20), 1..120),
        ) {
            let mut law = bucket(rate, capacity);
            let mut now = 0;
            let mut served: Vec<(u64, u64)> = Vec::new();
            for (gap, n) in arrivals {
                now += gap;
                let due = law.book(now, n * MICRO);
                prop_assert!(due >= now);
                prop_assert!(served.last().is_none_or(|l| l.0 <= due), "first come, first served");
                served.push((due, n));
            }
            for i in 0..served.len() {
                let mut sum = 0u128;
                for j in i..served.len() {
                    sum += u128::from(served[j].1) * u128::from(S);
                    let t = u128::from(served[j].0 - served[i].0);
                    // The interval is closed on both sides: one nanosecond of refill belongs to its rounding.
                    let most = u128::from(capacity) * u128::from(S) + u128::from(rate) * (t + 1)
                        + u128::from(served[i].1) * u128::from(S);
                    prop_assert!(sum <= most);
                }
            }
            // Conservation: booked all at once, the last token is due exactly when the arithmetic says.
            let mut law = bucket(rate, capacity);
            let due = law.book(0, (capacity + 7 * rate) * MICRO);
            prop_assert_eq!(due, 7 * S);
        }

        #[test]
        fn asking_and_taking_agree(rate in 1u64..2_000, capacity in 1u64..50, steps in proptest::collection::vec(0u64..5_000_000, 1..200)) {
            let mut law = bucket(rate, capacity);
            let (mut now, mut served) = (0u64, 0u128);
            for gap in steps {
                now += gap;
                if law.has(now, MICRO) {
                    prop_assert_eq!(law.book(now, MICRO), now);
                    served += 1;
                } else {
                    let at = law.ready_at(now, MICRO);
                    prop_assert!(at > now && law.clone().has(at, MICRO) && !law.clone().has(at - 1, MICRO));
                }
                prop_assert!(served * u128::from(S) <= u128::from(capacity) * u128::from(S) + u128::from(rate) * u128::from(now));
            }
        }
    }
}
