//! Prices of a campaign: read, held against its budget, and what is said of money.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_campaign::{
    CampaignCell, CampaignPrices, Campaigned, CellState, CostKnownBy, CostToGo, LedgerEntry, affordable,
    forecast,
};
use plimsoll_cost::{decimal, money_text, mul};
use plimsoll_model::cost::Money;
use plimsoll_model::text::clean;

use super::campaign::CampaignArgs;
use crate::args::cost::read_prices;
use crate::fault::Fault;
use crate::output;

/// Reasons named in full; of more only how many there are.
const SHOWN: usize = 6;

/// Lays the flags over the file, and reads the prices that either names. `a`: none where nothing is to be measured.
pub fn lay_over(c: &mut Campaigned, a: Option<&CampaignArgs>, beside: &Path) -> Result<(), Fault> {
    // A command that only goes on must not spend what the one before it was not to; a budget of the file itself may have been edited since.
    let before = || given_before(&c.entries).filter(|_| c.file.budget.cost.is_none());
    c.budget_beside = a.and_then(|a| a.budget_cost.clone()).or_else(before);
    if let Some(budget) = &c.budget_beside {
        c.file.budget.cost = Some(budget.clone());
    }
    let named = c.file.prices.as_ref().map(|p| beside.join(p));
    let Some(path) = a.and_then(|a| a.prices.clone()).or(named) else { return Ok(()) };
    match prices_of(c, &path) {
        Ok(prices) => c.prices = Some(prices),
        // What is done is shown whatever became of the prices: only what is to come is not reckoned.
        Err(fault) if a.is_none() => {
            output::tell(format_args!("plimsoll: what is to go costs is not known: {}", fault.what));
        }
        Err(mut fault) => {
            if a.is_some_and(|a| a.prices.is_none()) {
                fault.remedy += " The campaign's file names them (`prices`); --prices FILE gives others.";
            }
            return Err(fault);
        }
    }
    Ok(())
}

/// The budget of money that the last session was given beside the file.
fn given_before(entries: &[LedgerEntry]) -> Option<Money> {
    entries.iter().rev().find_map(|e| match e {
        LedgerEntry::Opened { budget_cost, .. } => Some(budget_cost.clone()),
        _ => None,
    })?
}

fn prices_of(c: &Campaigned, path: &Path) -> Result<CampaignPrices, Fault> {
    let (list, sha256) = read_prices(path)?;
    Ok(CampaignPrices::of(&c.file, list, sha256)?)
}

/// What is to come can be paid for.
pub fn can_be_paid(c: &Campaigned) -> Result<(), Fault> {
    Ok(affordable(&c.file, &c.cells, &c.state, c.prices.as_ref())?)
}

/// Behind what a run of a cell takes; of what has no price nothing.
pub fn of_cell(c: &Campaigned, cell: &CampaignCell, state: &CellState) -> Option<String> {
    let prices = c.prices.as_ref()?;
    let run = prices.next_run(&c.file, cell, &state.runs).ok()??;
    Some(known(run.known_by, &money_text(run.amount, prices.currency())))
}

fn known(by: CostKnownBy, amount: &str) -> String {
    match by {
        CostKnownBy::Bound => format!("{amount} at most"),
        CostKnownBy::Runs => format!("{amount}, as its dearest run so far"),
        CostKnownBy::Promise => format!("about {amount}, by what is promised"),
        CostKnownBy::Part => format!("{amount} at least"),
    }
}

/// What all that is to come costs, as lines of the plan; with what is not in it.
pub fn plan(c: &Campaigned) -> String {
    let Some(prices) = &c.prices else { return String::new() };
    let mut out = String::new();
    // What cannot be reckoned is an error of its own, told after the plan.
    let Ok(all) = prices.to_go(&c.file, &c.cells, &c.state) else { return out };
    let currency = prices.currency();
    if let Some(weakest) = all.known_by.last() {
        let _ = writeln!(out, "  cost of these runs: {}", sum(&all, *weakest, currency));
        let _ = writeln!(out, "  prices: {}", named(c, prices));
    }
    for (why, (cell, n)) in all.open.iter().take(SHOWN) {
        let more = if *n > 1 { format!(" and {} more cells", n - 1) } else { String::new() };
        let _ = writeln!(out, "    not bounded, {}{more}: {}", clean(cell), clean(why));
    }
    if all.open.len() > SHOWN {
        let _ = writeln!(out, "    and {} more reasons", all.open.len() - SHOWN);
    }
    months(c, prices, &mut out);
    let without = prices.without(&c.file);
    if !without.is_empty() {
        let _ = writeln!(
            out,
            "  no price: {}: what runs on it cost is not known, and in no sum (price = \"NAME\" at the subject; the prices have {})",
            clean(&without.join(", ")),
            clean(&prices.names().join(", "))
        );
    }
    out
}

fn sum(all: &CostToGo, weakest: CostKnownBy, currency: &str) -> String {
    let (amount, once) = (money_text(all.amount, currency), money_text(all.once, currency));
    let amount = match weakest {
        CostKnownBy::Bound => format!("{amount} at most"),
        CostKnownBy::Runs | CostKnownBy::Promise => format!("about {amount}"),
        CostKnownBy::Part => format!("{amount} and what has no bound"),
    };
    format!("{amount} (each cell once: {once})")
}

/// Each subject with its prices, which say when and where they were true.
fn named(c: &Campaigned, prices: &CampaignPrices) -> String {
    let one = |s: &plimsoll_campaign::Subject| {
        let name = prices.name_of(&s.name)?;
        let options = prices.options(&s.name, None)?;
        let (_, p) = options.chosen().ok()?;
        Some(format!("{} as {name} ({}, {})", s.name, p.date, p.region))
    };
    clean(&c.file.measured().filter_map(one).collect::<Vec<_>>().join("; ")).into_owned()
}

/// What is paid by the month, whatever is measured: in no budget, and said with the campaign's part of it.
fn months(c: &Campaigned, prices: &CampaignPrices, out: &mut String) {
    let time_s = forecast::to_go(&c.file, &c.cells, &c.state).time_s;
    for s in c.file.measured() {
        let Some((_, amount, month)) = prices.month(&s.name) else { continue };
        let (currency, month_s) = (prices.currency(), month.0.as_secs_f64());
        let Some(share) = decimal(time_s / month_s) else { continue };
        let _ = writeln!(
            out,
            "    {}: {} a month whatever is measured, {} of it in the time of these runs: not in the cost above, nor in a budget",
            clean(&s.name),
            money_text(amount, currency),
            money_text(mul(amount, share), currency)
        );
    }
}

/// What was spent, for the line that says so; none: nothing had a price.
pub fn spent(c: &Campaigned) -> Option<String> {
    let money = &c.state.money;
    let mut parts: Vec<String> = money.amounts().map(|(currency, n)| money_text(n, currency)).collect();
    if parts.is_empty() {
        return None;
    }
    if money.unpriced > 0 {
        let runs = if money.unpriced == 1 { "a run" } else { "runs" };
        parts.push(format!("and what {} {runs} without prices cost", money.unpriced));
    }
    Some(parts.join(", ").replace(", and", " and"))
}

/// Of the budget of money.
pub fn budget(c: &Campaigned) -> Option<String> {
    let budget = c.file.budget.cost.as_ref()?;
    Some(format!("{} of {budget}", money_text(c.state.money.of(&budget.currency), &budget.currency)))
}
