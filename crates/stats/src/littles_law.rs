//! Little's law as a check on our own accounting: mean ops in flight = rate x mean time in system (Little 1961).
//!
//! Both sides come from different counters (in flight: integrated by the workers; time: summed at completion),
//! so a difference means that one of them is wrong, or that the window is too short for ops this long.

use plimsoll_model::summary::LittlesLaw;

/// Relative difference that is shown, and that makes a result invalid.
pub const SHOWN: f64 = 0.02;
pub const INVALID: f64 = 0.05;

/// Sums over one measured window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    pub window_s: f64,
    /// Op-seconds in flight, integrated over the window.
    pub in_flight_op_s: f64,
    /// Service times of the ops that ended in the window, seconds.
    pub in_system_s: f64,
    /// Ops that ended in the window.
    pub ended: f64,
}

/// The check, with the difference that the window's edges alone can make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    pub in_flight: f64,
    pub rate_times_time: f64,
    /// `|in_flight - rate_times_time| / in_flight`.
    pub error: f64,
    /// Ops that began before the window count whole, those that end after it not at all. In steady state
    /// these cancel but for about `2 sqrt(c) L` op-seconds (c in flight, each with about L left, at either edge).
    pub edge: f64,
}

impl Check {
    /// `None` when nothing was in flight or nothing ended: there is no law to check.
    pub fn of(s: &Sums) -> Option<Self> {
        let ok = [s.window_s, s.in_flight_op_s, s.in_system_s, s.ended].iter().all(|v| v.is_finite());
        if !ok || s.window_s <= 0.0 || s.in_flight_op_s <= 0.0 || s.ended <= 0.0 {
            return None;
        }
        let in_flight = s.in_flight_op_s / s.window_s;
        let rate_times_time = s.in_system_s / s.window_s;
        let mean_time_s = s.in_system_s / s.ended;
        let edge = 2.0 * in_flight.sqrt().max(1.0) * mean_time_s / s.in_flight_op_s;
        let error = (in_flight - rate_times_time).abs() / in_flight;
        Some(Self { in_flight, rate_times_time, error, edge })
    }

    /// Whether the difference is beyond `threshold` and beyond what the edges explain.
    pub fn exceeds(&self, threshold: f64) -> bool {
        self.error > threshold + self.edge
    }

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
        let good = Sums { window_s: 28.0, in_flight_op_s: 448.0, in_system_s: 447.0, ended: 22_400.0 };
        let c = Check::of(&good).unwrap();
        assert!((c.in_flight - 16.0).abs() < 1e-12 && !c.exceeds(SHOWN));
        let bad = Check::of(&Sums { in_system_s: 400.0, ..good }).unwrap();
        assert!(bad.exceeds(INVALID) && (bad.error - 48.0 / 448.0).abs() < 1e-12);
    }

    #[test]
    fn long_ops_in_a_short_window_are_not_accused() {
        // Four ops of 4 s each in a window of 10 s: two or three end in it, whatever the accounting.
        let s = Sums { window_s: 10.0, in_flight_op_s: 40.0, in_system_s: 32.0, ended: 8.0 };
        let c = Check::of(&s).unwrap();
        assert!(c.error > 0.15 && !c.exceeds(INVALID));
    }

    #[test]
    fn nothing_measured_is_no_law() {
        assert!(Check::of(&Sums::default()).is_none());
        assert!(Check::of(&Sums { window_s: f64::NAN, ..Sums::default() }).is_none());
    }
}
