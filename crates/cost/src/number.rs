//! Decimal arithmetic that saturates, and its numbers for people.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// The decimal that a measured number is written as; none: it has no end (the open end of an interval).
pub fn decimal(x: f64) -> Option<Decimal> {
    // Its shortest text: what a person would copy from a report is what is reckoned with.
    x.is_finite().then(|| x.to_string().parse().ok()).flatten()
}

/// For a summary. Rounding comes once, at the end.
pub fn amount(x: Decimal) -> f64 {
    x.to_f64().unwrap_or(f64::INFINITY)
}

pub(crate) fn mul(a: Decimal, b: Decimal) -> Decimal {
    a.checked_mul(b).unwrap_or(Decimal::MAX)
}

pub(crate) fn add(a: Decimal, b: Decimal) -> Decimal {
    a.checked_add(b).unwrap_or(Decimal::MAX)
}

/// `b` is above 0: prices were checked.
pub(crate) fn div(a: Decimal, b: Decimal) -> Decimal {
    a.checked_div(b).unwrap_or(Decimal::MAX)
}

/// Not below 0.
pub(crate) fn above(a: Decimal, included: Decimal) -> Decimal {
    (a - included).max(Decimal::ZERO)
}

/// Without zeros at the end; of what no price has that many digits of, ten behind the point.
pub(crate) fn plain(x: Decimal) -> String {
    x.round_dp(10).normalize().to_string()
}
