//! Decimal arithmetic that saturates, and its numbers for people.

use rust_decimal::prelude::ToPrimitive as _;
use rust_decimal::{Decimal, RoundingStrategy};

/// The decimal that a measured number is written as; none: it has no end (the open end of an interval).
pub fn decimal(x: f64) -> Option<Decimal> {
    // Its shortest text: what a person would copy from a report is what is reckoned with.
    x.is_finite().then(|| x.to_string().parse().ok()).flatten()
}

/// For a summary. Rounding comes once, at the end.
pub fn amount(x: Decimal) -> f64 {
    x.to_f64().unwrap_or(f64::INFINITY)
}

/// Not above what a decimal holds.
pub fn mul(a: Decimal, b: Decimal) -> Decimal {
    a.checked_mul(b).unwrap_or(Decimal::MAX)
}

/// Not above what a decimal holds.
pub fn add(a: Decimal, b: Decimal) -> Decimal {
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

/// For people: `12.35 USD`, `0.001235 USD`: cents, or four digits of less than one. Rounded up.
pub fn money_text(x: Decimal, currency: &str) -> String {
    let up = RoundingStrategy::AwayFromZero;
    let short = if x.abs() >= Decimal::ONE {
        x.round_dp_with_strategy(2, up)
    } else {
        x.round_sf_with_strategy(4, up).unwrap_or(x)
    };
    format!("{} {currency}", short.normalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_short_and_never_less_than_it_is() {
        for (exact, text) in [
            ("12.3411", "12.35"),
            ("0.00123401", "0.001235"),
            ("0", "0"),
            ("3", "3"),
            ("1234567.001", "1234567.01"),
        ] {
            assert_eq!(money_text(exact.parse().unwrap(), "USD"), format!("{text} USD"));
        }
    }
}
