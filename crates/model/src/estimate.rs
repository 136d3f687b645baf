//! A number that never travels without its uncertainty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value with its 95 % interval and the effective number of independent observations behind it.
///
/// The unit is the unit of the field that holds it (names end in the unit: `ops_per_s`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The best single number; between `low` and `high`.
    pub value: f64,
    /// Lower end of the 95 % interval. Null in JSON: unbounded (of a single observation, for example).
    #[serde(deserialize_with = "null_is_minus_infinite")]
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// Upper end of the 95 % interval. Null in JSON: unbounded.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// Effective sample size: autocorrelated samples count for less than their number. Null in JSON: exact.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub n_eff: f64,
}

/// JSON has no infinity: it is written as null, and read back as what it was.
fn null_is_infinite<'de, D: serde::Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::INFINITY))
}

fn null_is_minus_infinite<'de, D: serde::Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::NEG_INFINITY))
}

impl Estimate {
    /// An estimate whose interval reaches `half_width` to both sides.
    pub fn symmetric(value: f64, half_width: f64, n_eff: f64) -> Self {
        Self { value, low: value - half_width, high: value + half_width, n_eff }
    }

    /// A value known exactly (a configured limit, a count).
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value, n_eff: f64::INFINITY }
    }

    /// Infinite where an end is; of a lopsided interval the mean of both sides.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half width relative to the value; infinite at zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 { f64::INFINITY } else { (self.half_width() / self.value).abs() }
    }

    /// Both ends included.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// The same estimate in another unit.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            n_eff: self.n_eff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_number_survives_json() {
        let of_one = Estimate::symmetric(161.0, f64::INFINITY, 1.0);
        for e in [Estimate::exact(800.0), of_one] {
            let text = serde_json::to_string(&e).unwrap();
            assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), e);
        }
    }
}
