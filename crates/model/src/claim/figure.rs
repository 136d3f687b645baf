//! The check that every figure passes before it is stated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// Most that the ends of an interval may lie apart, as a ratio, for its value to be stated as a figure: ±60 %. Beyond that the
/// interval says as much as the value, and what can be said is a bound. (A choice, not a theorem.)
pub const SPREAD: f64 = 4.0;

/// Slack of "not above what was attempted": the rounding of windows to slices.
const ROUNDING: f64 = 1e-3;

/// The same arithmetic in another order: a rate that is one and the same in every slice has an interval of no width beside it.
const LAST_DIGITS: f64 = 1e-9;

/// Share of the value below which the lower end of an interval is no bound that says anything. (A choice.)
const LEAST_BOUND: f64 = 0.01;

/// Why a claim was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    /// `Err` of whatever was to be made: the reason follows a claim's name in a sentence.
    pub fn new<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self(why.into()))
    }
}

/// An estimate that may be stated: finite, its value within its interval, above zero, not wider than [`SPREAD`], and not
/// above the `most` that was offered.
pub fn figure(e: Estimate, most: Option<f64>) -> Result<Estimate, Refusal> {
    let Estimate { value, low, high, .. } = e;
    if !(value.is_finite() && low.is_finite() && high.is_finite() && high < f64::MAX) {
        return Refusal::new("its interval is unbounded: one observation says nothing about the next");
    }
    let slack = LAST_DIGITS * value.abs();
    if value < low - slack || value > high + slack {
        return Refusal::new("its value is outside of its interval");
    }
    if value == 0.0 {
        return Refusal::new("nothing came through");
    }
    if low <= 0.0 || high / low > SPREAD {
        return Refusal::new(
            "its interval is as wide as the value itself; a longer measurement, or one with less other load, would \
             settle it",
        );
    }
    if most.is_some_and(|m| value > m * (1.0 + ROUNDING)) {
        return Refusal::new("it is above what was offered");
    }
    Ok(e)
}

/// A number of tokens, or what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Known well enough to be stated.
    Measured(Estimate),
    /// A lower bound: how much more there is was not seen.
    AtLeast(f64),
}

impl Amount {
    /// A bound is an interval without an upper end; one that is too wide to state is a bound by its lower end.
    pub fn of(e: Estimate) -> Result<Self, Refusal> {
        if let Ok(e) = figure(e, None) {
            return Ok(Self::Measured(e));
        }
        if e.low.is_finite() && e.low > 0.0 && e.low >= LEAST_BOUND * e.value {
            return Ok(Self::AtLeast(e.low));
        }
        Refusal::new("its interval reaches down to zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 980 ops in slices of 20 each: "No rate: its value is outside of its interval".
    #[test]
    fn the_last_digit_of_a_rate_without_width_is_no_refusal() {
        let e = Estimate { value: 199.999_999_999_999_97, low: 200.0, high: 200.0, n_eff: 49.0 };
        assert_eq!(figure(e, None), Ok(e));
        assert!(figure(Estimate { value: 199.9, ..e }, None).is_err());
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        let e = |value: f64, low: f64, high: f64| Estimate { value, low, high, n_eff: 5.0 };
        assert!(figure(e(100.0, 95.0, 105.0), Some(100.0)).is_ok());
        for bad in [
            e(40e6, -20e6, 100e6),
            e(90.0, 0.0, 180.0),
            e(21.0, 8.85e-6, 49_934_203.0),
            e(1.0, 0.5, f64::INFINITY),
            e(1.0, 0.5, f64::MAX),
            e(f64::NAN, 0.0, 1.0),
            e(3.0, 1.0, 2.0),
        ] {
            assert!(figure(bad, None).is_err(), "{bad:?}");
        }
        assert!(figure(e(100.0, 95.0, 105.0), Some(98.0)).is_err());
        assert_eq!(Amount::of(e(51_234.0, 51_234.0, f64::MAX)), Ok(Amount::AtLeast(51_234.0)));
        assert!(Amount::of(e(5.0, -1.0, 11.0)).is_err());
        // "A bucket of at least 0.00000000000000000000000021 B" says nothing.
        assert!(Amount::of(e(60_000.0, 2.1e-25, 1e30)).is_err());
    }
}
