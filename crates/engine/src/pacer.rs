//! When op n is intended to start: a pure function of count, for open loops; nothing for closed ones.

use crate::rng;
use crate::source::Share;

const NS: f64 = 1e9;

/// The schedule of a whole workload. Times count from the worker's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacer {
    /// Closed loop: the next op starts when a slot is free.
    Closed,
    /// Op n at `n / per_s`.
    Constant {
        /// Ops per second of the whole workload.
        per_s: f64,
    },
    /// As `Constant`, but what is overdue when its turn comes is left out: after a stall the rate is not made up for, and no more is sent
    /// than so much.
    Capped {
        /// Ops per second of the whole workload, at the most.
        per_s: f64,
    },
    /// Exponential gaps with mean `1 / per_s`; the same arrivals for the same seed.
    Poisson {
        /// Ops per second of the whole workload, in the mean.
        per_s: f64,
        /// Of the arrivals.
        seed: u64,
    },
    /// Each op after as many bytes as came before it, at this rate. Each worker paces its own part.
    Bytes {
        /// Of this worker alone.
        bytes_per_s: f64,
    },
    /// From one rate to another in a straight line over `over_ns`, then on at the last.
    Ramp {
        /// At the start.
        from_per_s: f64,
        /// At the end of the ramp, and after it.
        to_per_s: f64,
        /// Length of the ramp.
        over_ns: u64,
    },
}

impl Pacer {
    /// Ops have intended starts, whether slots are free or not.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        let good = |rate: f64| rate.is_finite() && rate > 0.0;
        let ok = match *self {
            Self::Closed => true,
            Self::Constant { per_s } | Self::Capped { per_s } | Self::Poisson { per_s, .. } => good(per_s),
            Self::Bytes { bytes_per_s } => good(bytes_per_s),
            Self::Ramp { from_per_s, to_per_s, .. } => {
                from_per_s.is_finite() && from_per_s >= 0.0 && good(to_per_s)
            }
        };
        if ok { Ok(()) } else { Err(format!("a rate must be a number above zero, in {self:?}")) }
    }

    /// Intended start of op `n`, where it can be told from the count alone.
    pub fn at_ns(&self, n: u64) -> Option<u64> {
        match *self {
            Self::Constant { per_s } | Self::Capped { per_s } => Some(constant_ns(n, per_s)),
            Self::Ramp { from_per_s, to_per_s, over_ns } => Some(ramp_ns(n, from_per_s, to_per_s, over_ns)),
            _ => None,
        }
    }
}

fn constant_ns(n: u64, per_s: f64) -> u64 {
    // Whole seconds apart: the product of n and the gap would lose nanoseconds after 2^53.
    (n as f64 / per_s * NS).round() as u64
}

/// Inverts the count `a t + (b - a) t^2 / 2T`, then goes on at `b`.
fn ramp_ns(n: u64, a: f64, b: f64, over_ns: u64) -> u64 {
    let (n, t_end) = (n as f64, over_ns as f64 / NS);
    let in_ramp = (a + b) / 2.0 * t_end;
    let t = if n >= in_ramp || t_end == 0.0 {
        t_end + (n - in_ramp) / b
    } else {
        let slope = (b - a) / t_end;
        // The stable root: it has no cancellation, and holds for slope zero.
        2.0 * n / (a + (a * a + 2.0 * slope * n).max(0.0).sqrt())
    };
    (t.max(0.0) * NS).round() as u64
}

/// Walks the intended starts of one worker's ops: n = index, index + of, ...
#[derive(Debug, Clone)]
pub struct PaceCursor {
    pacer: Pacer,
    share: Share,
    /// Ops of this worker so far.
    taken: u64,
    /// Poisson: arrivals walked so far, and the time of the last, in nanoseconds.
    walked: u64,
    time: f64,
}

impl PaceCursor {
    /// Before the first op of its share.
    pub fn new(pacer: Pacer, share: Share) -> Self {
        Self { pacer, share, taken: 0, walked: 0, time: 0.0 }
    }

    /// Of a capped schedule: what this worker has not begun by now is left out.
    #[inline]
    pub fn leave_out_before(&mut self, now_ns: u64) {
        if let Pacer::Capped { per_s } = self.pacer {
            let due = (now_ns as f64 / NS * per_s).ceil() as u64;
            let of = u64::from(self.share.of);
            self.taken = self.taken.max(due.saturating_sub(u64::from(self.share.index)).div_ceil(of));
        }
    }

    /// Intended start of this worker's next op, `bytes` long. Zero in a closed loop.
    #[inline]
    pub fn next_ns(&mut self, bytes: u64) -> u64 {
        let n = u64::from(self.share.index) + self.taken * u64::from(self.share.of);
        self.taken += 1;
        match self.pacer {
            Pacer::Closed => 0,
            Pacer::Poisson { per_s, seed } => {
                while self.walked <= n {
                    self.time += -rng::unit_open(rng::at(seed, self.walked)).ln() * (NS / per_s);
                    self.walked += 1;
                }
                self.time as u64
            }
            Pacer::Bytes { bytes_per_s } => {
                let rate = bytes_per_s / f64::from(self.share.of) / NS;
                if self.taken == 1 {
                    // Workers start one after the other, so that their ops interleave evenly.
                    self.time = bytes as f64 / bytes_per_s * NS * f64::from(self.share.index);
                }
                let start = self.time;
                self.time += bytes as f64 / rate;
                start.round() as u64
            }
            open => open.at_ns(n).expect("constant and ramp are told from the count"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(pacer: Pacer, share: Share, count: usize) -> Vec<u64> {
        let mut c = PaceCursor::new(pacer, share);
        (0..count).map(|_| c.next_ns(1000)).collect()
    }

    #[test]
    fn constant_has_no_drift() {
        let p = Pacer::Constant { per_s: 3.0 };
        assert_eq!(p.at_ns(3_000_000_000), Some(1_000_000_000_000_000_000));
        assert_eq!(walk(Pacer::Constant { per_s: 800.0 }, Share::WHOLE, 3), [0, 1_250_000, 2_500_000]);
    }

    #[test]
    fn a_capped_schedule_is_not_made_up_for() {
        for of in 1..4 {
            let all: Vec<Vec<u64>> = (0..of)
                .map(|index| {
                    let mut c = PaceCursor::new(Pacer::Capped { per_s: 10.0 }, Share { index, of });
                    let first = c.next_ns(1);
                    assert_eq!(first, u64::from(index) * 100_000_000);
                    // Six seconds stand still.
                    c.leave_out_before(6_050_000_000);
                    (0..4).map(|_| c.next_ns(1)).collect()
                })
                .collect();
            let mut after: Vec<u64> = all.concat();
            after.sort_unstable();
            assert_eq!(
                after[..4],
                [6_100_000_000, 6_200_000_000, 6_300_000_000, 6_400_000_000],
                "{of} workers"
            );
        }
        let mut other = PaceCursor::new(Pacer::Constant { per_s: 10.0 }, Share::WHOLE);
        other.leave_out_before(6_000_000_000);
        assert_eq!(other.next_ns(1), 0, "what is offered stays offered");
    }

    #[test]
    fn ramp_meets_its_rates() {
        let p = Pacer::Ramp { from_per_s: 100.0, to_per_s: 300.0, over_ns: 10_000_000_000 };
        assert_eq!(p.at_ns(2000), Some(10_000_000_000));
        assert_eq!(p.at_ns(2300), Some(11_000_000_000));
        let half = p.at_ns(750).unwrap();
        assert_eq!(half, 5_000_000_000);
        let flat = Pacer::Ramp { from_per_s: 50.0, to_per_s: 50.0, over_ns: 1_000_000_000 };
        assert_eq!(flat.at_ns(25), Some(500_000_000));
        let down = Pacer::Ramp { from_per_s: 0.0, to_per_s: 10.0, over_ns: 1_000_000_000 };
        assert_eq!(down.at_ns(0), Some(0));
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Pacer::Constant { per_s: rate }.check().is_err(), "{rate}");
        }
    }

    proptest::proptest! {
        /// Workers together take exactly the arrivals of the whole, whatever their number.
        #[test]
        fn shares_partition_the_schedule(of in 1u32..7, seed: u64, rate in 1.0f64..1e6) {
            for pacer in [Pacer::Constant { per_s: rate }, Pacer::Poisson { per_s: rate, seed },
                Pacer::Ramp { from_per_s: rate / 2.0, to_per_s: rate, over_ns: 1_000_000 }] {
                let whole = walk(pacer, Share::WHOLE, 42 * of as usize);
                for index in 0..of {
                    let part = walk(pacer, Share { index, of }, 42);
                    let expected: Vec<u64> = whole.iter().copied().skip(index as usize).step_by(of as usize).collect();
                    proptest::prop_assert_eq!(part, expected);
                }
            }
        }

        #[test]
        fn intended_starts_never_go_back(seed: u64, a in 0.0f64..1e5, b in 1.0f64..1e5, over in 0u64..10_000_000_000) {
            for pacer in [Pacer::Poisson { per_s: b, seed }, Pacer::Bytes { bytes_per_s: b },
                Pacer::Ramp { from_per_s: a, to_per_s: b, over_ns: over }] {
                let times = walk(pacer, Share::WHOLE, 300);
                proptest::prop_assert!(times.windows(2).all(|w| w[0] <= w[1]), "{:?}", pacer);
            }
        }
    }

    #[test]
    fn poisson_has_its_rate_and_spread() {
        let times = walk(Pacer::Poisson { per_s: 1000.0, seed: 3 }, Share::WHOLE, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.015, "{mean}");
        assert!((var.sqrt() / mean - 1.0).abs() < 0.02, "an exponential's spread is its mean");
    }
}
