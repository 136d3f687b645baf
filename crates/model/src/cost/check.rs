//! What the types of prices cannot say.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::{CapacityPrice, PRICES_VERSION, PriceFile, PriceProblem, PriceSubject, is_currency};
use crate::OpKind;
use crate::units::Span;

pub(super) fn wrong(
    place: impl Into<String>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> PriceProblem {
    PriceProblem { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

impl PriceFile {
    /// What the types cannot say.
    pub fn check(&self) -> Result<(), PriceProblem> {
        if self.version != PRICES_VERSION {
            return Err(wrong(
                "version",
                format!("{} is not a version of prices that this program reads", self.version),
                format!("Write version = {PRICES_VERSION}, or use a newer plimsoll."),
            ));
        }
        check_all(&self.currency, self.month, &self.subjects)
    }
}

pub(super) fn check_all(
    currency: &str,
    month: Span,
    subjects: &BTreeMap<String, PriceSubject>,
) -> Result<(), PriceProblem> {
    if !is_currency(currency) {
        return Err(wrong(
            "currency",
            format!("'{currency}' is no currency"),
            "Write three capital letters, for example currency = \"USD\".",
        ));
    }
    let day_s = 86_400.0;
    if !(27.0 * day_s..=32.0 * day_s).contains(&month.0.as_secs_f64()) {
        return Err(wrong(
            "month",
            format!("{month} is no month"),
            "Write what the provider bills by, for example month = \"730h\" or \"30d\".",
        ));
    }
    if subjects.is_empty() {
        return Err(wrong("subjects", "there is none", "Add a table [subjects.NAME] with its prices."));
    }
    subjects.iter().try_for_each(|(name, s)| s.check(&format!("subjects.{name}")))
}

impl PriceSubject {
    /// What is paid for each byte that can be used.
    pub fn redundancy(&self) -> Decimal {
        self.redundancy.map_or(Decimal::ONE, |r| r.0)
    }

    fn check(&self, place: &str) -> Result<(), PriceProblem> {
        for (key, text) in [("date", &self.date), ("region", &self.region), ("source", &self.source)] {
            if text.trim().is_empty() {
                return Err(wrong(
                    format!("{place}.{key}"),
                    "is empty",
                    "A price without date, region and source cannot be checked by anybody: write it.",
                ));
            }
        }
        if !is_date(&self.date) {
            return Err(wrong(
                format!("{place}.date"),
                format!("'{}' is no date", self.date),
                "Write the day on which the prices were true, for example \"2018-07-01\".",
            ));
        }
        if self.redundancy() < Decimal::ONE {
            return Err(wrong(
                format!("{place}.redundancy"),
                "is below 1",
                "Write bytes paid for each byte that can be used: 3 for three copies, 1.5 for four data and two parity.",
            ));
        }
        if let Some(c) = &self.capacity {
            c.check(&format!("{place}.capacity"))?;
        }
        if self.throughput.as_ref().is_some_and(|t| t.per.0 <= 0.0) {
            return Err(wrong(format!("{place}.throughput.per"), "must not be 0", "Write per = \"1MiB/s\"."));
        }
        let transfers =
            [("egress", &self.egress), ("ingress", &self.ingress), ("retrieval", &self.retrieval)];
        for (key, t) in transfers {
            if t.as_ref().is_some_and(|t| t.per.0 == 0) {
                return Err(wrong(format!("{place}.{key}.per"), "must not be 0", "Write per = \"1GB\"."));
            }
        }
        self.check_requests(place)
    }

    fn check_requests(&self, place: &str) -> Result<(), PriceProblem> {
        let mut seen: BTreeMap<OpKind, &str> = BTreeMap::new();
        for r in &self.requests {
            let at = format!("{place}.requests '{}'", r.class);
            if r.ops.is_empty() || r.per == 0 || r.unit.is_some_and(|u| u.0 == 0) {
                return Err(wrong(
                    at,
                    "needs ops, and a per and unit above 0",
                    "Write for example ops = [\"put\", \"list\"] and per = 1000.",
                ));
            }
            for op in &r.ops {
                if let Some(other) = seen.insert(*op, &r.class) {
                    return Err(wrong(
                        at,
                        format!("{op} is in class '{other}', too"),
                        "Name each op in one class.",
                    ));
                }
            }
        }
        Ok(())
    }
}

impl CapacityPrice {
    fn check(&self, place: &str) -> Result<(), PriceProblem> {
        let by_price = self.price.is_some() && self.per.is_some_and(|p| p.0 > 0);
        let half = self.price.is_some() != self.per.is_some();
        if half || by_price != self.steps.is_empty() {
            return Err(wrong(
                place,
                "needs either price and per, or steps",
                "Write for example price = 0.045 and per = \"1GiB\"; or steps = [{ up_to = \"32GiB\", price = 1.54 }].",
            ));
        }
        match self.steps.is_sorted_by(|a, b| a.up_to.0 < b.up_to.0) {
            true => Ok(()),
            false => {
                Err(wrong(format!("{place}.steps"), "are not in order", "Sort them by up_to, each once."))
            }
        }
    }
}

/// `2018-07-01`
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let number = |t: &str, len: usize| {
        (t.len() == len && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse::<u32>().unwrap_or(0))
    };
    let (Some(y), Some(m), Some(d)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let days = match m {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_that_exist() {
        assert!(["2018-07-01", "2024-02-29"].into_iter().all(is_date));
        assert!(
            !["2018-7-1", "2023-02-29", "2018-13-01", "yesterday", "2018-07-00"].into_iter().any(is_date)
        );
    }
}
