//! Prices, and what was or will be done, to money with its arithmetic.
//!
//! Pure: no files, no clocks. [`parse`] reads `prices.toml`, [`summary`] makes the figures of a run that was measured, [`bound`] says
//! what a plan costs at most before it starts, and [`MoneyMeter`] follows what was sent while it runs. No price is known here.

#![warn(missing_docs)]

mod bound;
mod figures;
mod fixed;
mod meter;
mod number;
mod parse;
mod usage;

pub use bound::{Bound, bound};
pub use figures::{RunSeen, summary};
pub use fixed::month;
pub use meter::MoneyMeter;
pub use number::{add, amount, decimal, money_text, mul};
pub use parse::{PricesError, parse};
pub use usage::{Sent, counted, size_of, used};

use rust_decimal::Decimal;

/// One part of a sum of money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostItem {
    /// What is paid for.
    pub what: String,
    /// Exact.
    pub amount: Decimal,
    /// Every number that goes in, without the result.
    pub formula: String,
}

/// Of several items.
pub fn total(items: &[CostItem]) -> Decimal {
    items.iter().fold(Decimal::ZERO, |sum, i| add(sum, i.amount))
}

/// `7.68 USD + 1.5 USD = 9.18 USD`, each with its own arithmetic.
pub fn written(items: &[CostItem], currency: &str) -> String {
    let each: Vec<String> = items.iter().map(|i| format!("{}: {}", i.what, i.formula)).collect();
    let sum = number::plain(total(items));
    match each.len() {
        0 => format!("nothing is priced = 0 {currency}"),
        _ => format!("{} = {sum} {currency}", each.join(" + ")),
    }
}
