//! What a month of the subject costs, whatever is done with it: bytes, provisioned rates, machines.

use plimsoll_model::cost::{CapacityPrice, PriceSubject};
use plimsoll_model::units::{Size, Span};
use rust_decimal::Decimal;

use crate::CostItem;
use crate::number::{above, decimal, div, mul, plain};

/// The items of a month, or why they cannot be said.
pub fn month(s: &PriceSubject, month: Span, currency: &str) -> Result<Vec<CostItem>, String> {
    let mut items = Vec::new();
    if let Some(c) = &s.capacity {
        let size =
            s.size.ok_or("a month's capacity: the prices do not say how much of it there is (size)")?;
        items.push(capacity(c, size, currency)?);
    }
    if let Some(i) = &s.iops {
        let paid = above(i.provisioned.into(), i.included.into());
        items.push(CostItem {
            what: "IOPS".into(),
            amount: mul(paid, i.price.0),
            formula: format!("({} - {} included) x {} {currency}", i.provisioned, i.included, i.price),
        });
    }
    if let Some(t) = &s.throughput {
        let rate = |r: f64| decimal(r).unwrap_or(Decimal::MAX);
        let included = t.included.map_or(Decimal::ZERO, |r| rate(r.0));
        let units = div(above(rate(t.provisioned.0), included), rate(t.per.0));
        let less = t.included.map_or("0".to_owned(), |r| r.to_string());
        items.push(CostItem {
            what: "throughput".into(),
            amount: mul(units, t.price.0),
            formula: format!("({} - {less} included) / {} x {} {currency}", t.provisioned, t.per, t.price),
        });
    }
    for i in &s.instances {
        items.push(instances(i, hours(month.0.as_secs_f64()), currency));
    }
    Ok(items)
}

/// Hours of a number of seconds.
pub(crate) fn hours(seconds: f64) -> Decimal {
    div(decimal(seconds).unwrap_or(Decimal::MAX), Decimal::from(3600))
}

/// Machines, for so many hours.
pub(crate) fn instances(i: &plimsoll_model::cost::InstancePrice, hours: Decimal, currency: &str) -> CostItem {
    let paid = if i.round_up { hours.ceil() } else { hours };
    CostItem {
        what: i.name.clone(),
        amount: mul(mul(i.count.into(), paid), i.price.0),
        formula: format!("{} x {} h x {} {currency}", i.count, plain(paid.round_dp(4)), i.price),
    }
}

fn capacity(c: &CapacityPrice, size: Size, currency: &str) -> Result<CostItem, String> {
    let what = "capacity".to_owned();
    if !c.steps.is_empty() {
        let step = c.steps.iter().find(|step| step.up_to.0 >= size.0).ok_or_else(|| {
            let largest = c.steps.last().map_or(String::new(), |s| s.up_to.to_string());
            format!("a month's capacity: {size} is more than the largest step of the prices, {largest}")
        })?;
        let formula = format!("{size}, billed as {}, {} {currency}", step.up_to, step.price);
        return Ok(CostItem { what, amount: step.price.0, formula });
    }
    // Checked: either steps, or price and per.
    let (Some(price), Some(per)) = (c.price, c.per) else {
        return Err("a month's capacity: no price".into());
    };
    let units = div(size.0.into(), per.0.into());
    let (units, up) = if c.round_up { (units.ceil(), " (rounded up)") } else { (units, "") };
    let formula = format!("{size} / {per}{up} x {price} {currency}");
    Ok(CostItem { what, amount: mul(units, price.0), formula })
}
