//! Little's law as a check on our own accounting: mean ops in flight = rate x mean time in system (Little 1961).
//!
//! Both sides come from different counters (in flight: integrated by the workers; time: summed at completion),
//! so a difference means that one of them is wrong, or that the window is too short for ops this long.
//!
//! Every op is in both sides, however it ended. Ops that cross an edge of the window are accounted for: those that began
//! before it have a part of their time outside, and those that end after it have not brought theirs yet. How long the ops
//! in flight at an edge have been there follows from when ops were started, as if they ended in the order in which
//! they began. That matters when storage hangs: what is in flight at the end is then much older than an op is long.

use plimsoll_model::summary::LittlesLaw;

/// Relative difference that is shown, and that makes a result invalid.
pub const SHOWN: f64 = 0.02;
/// From here on the result is invalid (V13).
pub const INVALID: f64 = 0.05;

/// Sums over one measured window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Its length.
    pub window_s: f64,
    /// Op-seconds in flight, integrated over the window.
    pub in_flight_op_s: f64,
    /// Service times of the ops that ended in the window, seconds, in whatever way they ended.
    pub in_system_s: f64,
    /// Ops that ended in the window, in whatever way.
    pub ended: f64,
    /// Op-seconds that the ops in flight at the window's begin, and at its end, had been in flight by then.
    pub carried_in_op_s: f64,
    /// Of the ops that cross the window's end.
    pub carried_out_op_s: f64,
    /// The longest op.
    pub longest_s: f64,
}

impl Sums {
    /// Adds another window's.
    pub fn add(&mut self, other: &Self) {
        self.window_s += other.window_s;
        self.in_flight_op_s += other.in_flight_op_s;
        self.in_system_s += other.in_system_s;
        self.ended += other.ended;
        self.carried_in_op_s += other.carried_in_op_s;
        self.carried_out_op_s += other.carried_out_op_s;
        self.longest_s += other.longest_s;
    }
}

/// Op-seconds that `in_flight` ops had been in flight at the end of `started` (ops that began, per slice of `dt_s`), if they
/// are the ones that began last. What began before the first slice is taken to have begun with it.
pub fn age_of_in_flight(started: &[f64], in_flight: f64, dt_s: f64) -> f64 {
    let (mut left, mut age) = (in_flight.max(0.0), 0.0);
    for (back, n) in started.iter().rev().enumerate() {
        if left <= 0.0 {
            return age;
        }
        let n = n.max(0.0);
        // The last `taken` of `n` that began evenly over the slice.
        let taken = left.min(n);
        let within = if n > 0.0 { taken / n / 2.0 } else { 0.0 };
        age += taken * (back as f64 + within) * dt_s;
        left -= taken;
    }
    age + left.max(0.0) * started.len() as f64 * dt_s
}

/// The check, with the difference that the window's edges alone can make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LittlesLawCheck {
    /// Mean ops in flight: the left side of the law.
    pub in_flight: f64,
    /// Ops per second times their mean time in system: the right side.
    pub rate_times_time: f64,
    /// `|in_flight - rate_times_time| / in_flight`.
    pub error: f64,
    /// How long the ops that cross an edge were in flight is known about as well as `2 sqrt(c) L` op-seconds (c in flight,
    /// each for about L), and one of them may be the longest of all.
    pub edge: f64,
}

impl LittlesLawCheck {
    /// `None` when nothing was in flight or nothing ended: there is no law to check.
    pub fn of(s: &Sums) -> Option<Self> {
        let carried_s = s.carried_out_op_s - s.carried_in_op_s;
        let all = [s.window_s, s.in_flight_op_s, s.in_system_s, s.ended, carried_s, s.longest_s];
        if all.iter().any(|v| !v.is_finite())
            || s.window_s <= 0.0
            || s.in_flight_op_s <= 0.0
            || s.ended <= 0.0
        {
            return None;
        }
        let in_flight = s.in_flight_op_s / s.window_s;
        let rate_times_time = ((s.in_system_s + carried_s) / s.window_s).max(0.0);
        let mean_time_s = s.in_system_s / s.ended;
        let edge = (2.0 * in_flight.sqrt().max(1.0) * mean_time_s + s.longest_s) / s.in_flight_op_s;
        let error = (in_flight - rate_times_time).abs() / in_flight;
        Some(Self { in_flight, rate_times_time, error, edge })
    }

    /// Whether the difference is beyond `threshold` and beyond what the edges explain.
    pub fn exceeds(&self, threshold: f64) -> bool {
        self.error > threshold + self.edge
    }

    /// The part of it that the run summary has.
    pub fn summary(&self) -> LittlesLaw {
        LittlesLaw { in_flight: self.in_flight, rate_times_time: self.rate_times_time, error: self.error }
    }
}

/// Ops in flight that sustain `rate_per_s` when each takes `time_s`: the concurrency to ask for.
pub fn concurrency_for(rate_per_s: f64, time_s: f64) -> f64 {
    (rate_per_s * time_s).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_and_breaks() {
        let good = Sums {
            window_s: 28.0,
            in_flight_op_s: 448.0,
            in_system_s: 447.0,
            ended: 22_400.0,
            ..Sums::default()
        };
        let c = LittlesLawCheck::of(&good).unwrap();
        assert!((c.in_flight - 16.0).abs() < 1e-12 && !c.exceeds(SHOWN));
        let bad = LittlesLawCheck::of(&Sums { in_system_s: 400.0, ..good }).unwrap();
        assert!(bad.exceeds(INVALID) && (bad.error - 48.0 / 448.0).abs() < 1e-12);
    }

    #[test]
    fn long_ops_in_a_short_window_are_not_accused() {
        // Four ops of 4 s each in a window of 10 s: two or three end in it, whatever the accounting.
        let s =
            Sums { window_s: 10.0, in_flight_op_s: 40.0, in_system_s: 32.0, ended: 8.0, ..Sums::default() };
        let c = LittlesLawCheck::of(&s).unwrap();
        assert!(c.error > 0.15 && !c.exceeds(INVALID));
    }

    #[test]
    fn the_age_of_what_is_in_flight_follows_from_when_it_began() {
        // 100 a slice of 0.1 s, 4 in flight: each lives for 4 ms, and has lived for half of that.
        assert!((age_of_in_flight(&[100.0; 20], 4.0, 0.1) - 4.0 * 0.002).abs() < 1e-9);
        // Nothing began in the last second: each of the 16 is a second old and a little more.
        let mut hung = vec![100.0; 20];
        hung[10..].fill(0.0);
        assert!((age_of_in_flight(&hung, 16.0, 0.1) - 16.0 * 1.008).abs() < 1e-9);
        assert_eq!(age_of_in_flight(&[], 3.0, 0.1), 0.0);
        assert_eq!(age_of_in_flight(&[0.0; 10], 2.0, 0.1), 2.0);
    }

    /// Storage that hangs from the middle of the window on: what is in flight has brought no time yet.
    #[test]
    fn a_hang_at_the_end_is_no_error_of_the_accounts() {
        let s = Sums {
            window_s: 20.0,
            in_flight_op_s: 320.0,
            in_system_s: 160.0,
            ended: 8_000.0,
            ..Sums::default()
        };
        assert!(LittlesLawCheck::of(&s).unwrap().exceeds(INVALID));
        let told = Sums { carried_out_op_s: 159.0, ..s };
        assert!(!LittlesLawCheck::of(&told).unwrap().exceeds(SHOWN));
    }

    #[test]
    fn nothing_measured_is_no_law() {
        assert!(LittlesLawCheck::of(&Sums::default()).is_none());
        assert!(LittlesLawCheck::of(&Sums { window_s: f64::NAN, ..Sums::default() }).is_none());
    }
}
