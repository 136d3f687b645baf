//! What a campaign costs: which prices each subject has, what a run may cost before it begins, and what was spent. Pure; the arithmetic
//! of prices is `crates/cost`'s.

use std::collections::BTreeMap;

use plimsoll_cost::{add, bound, money_text, mul};
use plimsoll_model::cost::{CostOptions, Money, PriceFile};
use plimsoll_model::count::counted;
use plimsoll_model::plan::{ControllerSpec, Pacing, Plan};
use plimsoll_model::units::{OpsRate, Span};
use rust_decimal::Decimal;

use crate::cells::CampaignCell;
use crate::check::{CampaignError, wrong};
use crate::figures::CellRun;
use crate::file::CampaignFile;
use crate::forecast;
use crate::state::CampaignState;

/// Of a plan that is made where its directory is.
const OF_FILES: &str =
    "the file benchmark: what of it reaches the disk is known once it was measured; the budget ends it";

/// The prices of a campaign, and which of them each of its subjects has.
#[derive(Debug, Clone)]
pub struct CampaignPrices {
    list: PriceFile,
    sha256: String,
    /// Name of the prices, by subject. Of what is not in it nobody knows what it costs.
    of: BTreeMap<String, String>,
}

/// What a run may cost, before it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCost {
    /// In the currency of the prices.
    pub amount: Decimal,
    /// What `amount` is.
    pub known_by: CostKnownBy,
    /// What has no bound before the run: why.
    pub open: Vec<String>,
}

/// What an amount is that was not spent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostKnownBy {
    /// The most that the plan can send.
    Bound,
    /// What the dearest run so far cost: the plan has no bound.
    Runs,
    /// The load by what the subject promises: the plan has no bound.
    Promise,
    /// What of it has a bound.
    Part,
}

/// What was spent, over all sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MoneySpent {
    by_currency: BTreeMap<String, Decimal>,
    /// Runs that count and had no prices: what they cost nobody knows.
    pub unpriced: u32,
}

impl MoneySpent {
    pub(crate) fn add(&mut self, money: &Money) {
        let sum = self.by_currency.entry(money.currency.clone()).or_default();
        *sum = add(*sum, money.amount.0);
    }

    /// In this currency.
    pub fn of(&self, currency: &str) -> Decimal {
        self.by_currency.get(currency).copied().unwrap_or_default()
    }

    /// All of it.
    pub fn amounts(&self) -> impl Iterator<Item = (&str, Decimal)> {
        self.by_currency.iter().map(|(c, n)| (c.as_str(), *n))
    }
}

/// All that is to come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostToGo {
    /// All runs, each at its [`RunCost::amount`].
    pub amount: Decimal,
    /// Every cell once.
    pub once: Decimal,
    /// The next run of each cell that has a price, by its key.
    pub runs: Vec<(String, Decimal)>,
    /// What the amounts are, the weakest last; empty: nothing is to come that has a price.
    pub known_by: Vec<CostKnownBy>,
    /// What has no bound, and the first cell of which that is so, with how many there are.
    pub open: BTreeMap<String, (String, u32)>,
}

impl CampaignPrices {
    /// `list`, for the subjects that are measured here: of each the prices that it names with `price`, else those of its own name. One
    /// subject and one price belong together without a name. `sha256`: of the list, in hex.
    pub fn of(file: &CampaignFile, list: PriceFile, sha256: String) -> Result<Self, CampaignError> {
        let has = |name: &str| list.subjects.contains_key(name);
        let only = match list.subjects.keys().next() {
            Some(name) if list.subjects.len() == 1 && file.measured().count() == 1 => Some(name),
            _ => None,
        };
        let mut of = BTreeMap::new();
        for s in file.measured() {
            let name = match &s.price {
                Some(name) if !has(name) => {
                    let names: Vec<&str> = list.subjects.keys().map(String::as_str).collect();
                    return Err(wrong(
                        format!("subject '{}'", s.name),
                        format!("price = \"{name}\": the prices have no such subject"),
                        format!("Name one of: {}.", names.join(", ")),
                    ));
                }
                Some(name) => Some(name),
                None if has(&s.name) => Some(&s.name),
                None => only,
            };
            of.extend(name.map(|name| (s.name.clone(), name.clone())));
        }
        Ok(Self { list, sha256, of })
    }

    /// Of all amounts.
    pub fn currency(&self) -> &str {
        &self.list.currency
    }

    /// Which prices a subject has.
    pub fn name_of(&self, subject: &str) -> Option<&str> {
        self.of.get(subject).map(String::as_str)
    }

    /// Names of all prices.
    pub fn names(&self) -> Vec<&str> {
        self.list.subjects.keys().map(String::as_str).collect()
    }

    /// Subjects that are measured here, and of which nobody knows what they cost.
    pub fn without<'a>(&self, file: &'a CampaignFile) -> Vec<&'a str> {
        file.measured().map(|s| s.name.as_str()).filter(|name| !self.of.contains_key(*name)).collect()
    }

    /// What a run of a subject is told; `None`: it has no price.
    pub fn options(&self, subject: &str, budget: Option<Money>) -> Option<CostOptions> {
        let name = self.of.get(subject)?;
        Some(CostOptions::of(&self.list, &self.sha256, Some(name), budget))
    }

    /// What of a budget is left.
    pub fn left(&self, budget: &Money, spent: &MoneySpent) -> Money {
        let left = budget.amount.0 - spent.of(&budget.currency);
        Money::of(left.max(Decimal::ZERO), &budget.currency)
    }

    /// What a month of the subject costs, whatever is measured on it: the prices' name, the amount, and its month.
    pub fn month(&self, subject: &str) -> Option<(&str, Decimal, Span)> {
        let (name, prices) = self.list.subjects.get_key_value(self.of.get(subject)?)?;
        let items = plimsoll_cost::month(prices, self.list.month, self.currency()).ok()?;
        let sum = plimsoll_cost::total(&items);
        (sum > Decimal::ZERO).then_some((name, sum, self.list.month))
    }

    /// The next run of a cell; `None`: its subject has no price. An error: the prices do not know an op of it.
    pub fn next_run(
        &self,
        file: &CampaignFile,
        cell: &CampaignCell,
        runs: &[CellRun],
    ) -> Result<Option<RunCost>, CampaignError> {
        let Some(cost) = self.options(&cell.subject, None) else { return Ok(None) };
        let (bounded, open) = match cell.plan(0, 0) {
            Some(plan) => of_plan(cell, &plan, &cost)?,
            None => (Decimal::ZERO, vec![OF_FILES.to_owned()]),
        };
        if open.is_empty() {
            return Ok(Some(RunCost { amount: bounded, known_by: CostKnownBy::Bound, open }));
        }
        let same = runs.iter().filter_map(|r| r.cost.as_ref()).filter(|m| m.currency == self.currency());
        if let Some(dearest) = same.map(|m| m.amount.0).max() {
            let amount = dearest.max(bounded);
            return Ok(Some(RunCost { amount, known_by: CostKnownBy::Runs, open }));
        }
        let promised = promised_plan(file, cell).map(|plan| of_plan(cell, &plan, &cost)).transpose()?;
        Ok(Some(match promised {
            // The load was open, and is not by the promised rate.
            Some((amount, less)) if less.len() < open.len() => {
                RunCost { amount: amount.max(bounded), known_by: CostKnownBy::Promise, open }
            }
            _ => RunCost { amount: bounded, known_by: CostKnownBy::Part, open },
        }))
    }

    /// Why a run does not fit into what is left of a budget, in words; `None`: it does.
    pub fn beyond(&self, budget: &Money, spent: &MoneySpent, run: Option<&RunCost>) -> Option<String> {
        let left = self.left(budget, spent).amount.0;
        let more = run.map_or(Decimal::ZERO, |r| r.amount);
        if more <= left && left > Decimal::ZERO {
            return None;
        }
        let currency = &budget.currency;
        let next = match left.is_zero() {
            true => "nothing of it is left".to_owned(),
            false => format!(
                "{} are left, and the next run may cost {}",
                money_text(left, currency),
                money_text(more, currency)
            ),
        };
        Some(format!("cost: {budget}; {next}"))
    }

    /// What all runs that are to come may cost.
    pub fn to_go(
        &self,
        file: &CampaignFile,
        cells: &[CampaignCell],
        state: &CampaignState,
    ) -> Result<CostToGo, CampaignError> {
        let mut out = CostToGo::default();
        for (cell, s) in cells.iter().zip(&state.cells).filter(|(_, s)| s.to_go() > 0) {
            let Some(run) = self.next_run(file, cell, &s.runs)? else { continue };
            out.once = add(out.once, run.amount);
            out.runs.push((cell.key.clone(), run.amount));
            out.amount = add(out.amount, mul(run.amount, s.to_go().into()));
            out.known_by.push(run.known_by);
            for why in run.open {
                out.open.entry(why).or_insert_with(|| (cell.key.clone(), 0)).1 += 1;
            }
        }
        out.known_by.sort_unstable();
        out.known_by.dedup();
        Ok(out)
    }
}

/// Whether what is to come can be reckoned in these prices, and fits into the budget of money: every run by itself, and every cell once.
/// Said before anything is measured.
pub fn affordable(
    file: &CampaignFile,
    cells: &[CampaignCell],
    state: &CampaignState,
    prices: Option<&CampaignPrices>,
) -> Result<(), CampaignError> {
    let Some(prices) = prices else {
        return match &file.budget.cost {
            None => Ok(()),
            Some(budget) => Err(wrong(
                "budget.cost",
                format!("{budget} are of prices, and there are none"),
                "Give them: --prices FILE, or prices = \"FILE\" in the campaign's file (prices/examples.toml shows what to write).",
            )),
        };
    };
    let all = prices.to_go(file, cells, state)?;
    let Some(budget) = file.budget.cost.as_ref().filter(|_| state.to_go() > 0) else { return Ok(()) };
    known(file, budget, state, prices)?;
    let left = prices.left(budget, &state.money).amount.0;
    let text = |amount| money_text(amount, &budget.currency);
    let of_budget = match state.money.of(&budget.currency) {
        spent if spent.is_zero() => format!("the budget is {budget}"),
        spent => format!("of the budget of {budget} {} are spent", text(spent)),
    };
    let remedy = |need: Decimal| {
        format!(
            "Raise --budget-cost (or budget.cost) to {} at least, or send less: a pacing, shorter runs, smaller sizes, fewer cells.",
            text(add(need, state.money.of(&budget.currency)))
        )
    };
    if let Some((key, amount)) = all.runs.iter().find(|(_, amount)| *amount > left) {
        let over = text(*amount - left);
        return Err(wrong(
            format!("budget.cost: one run of '{key}'"),
            format!("it may cost {}, and {of_budget}: {over} too little", text(*amount)),
            remedy(*amount),
        ));
    }
    if all.once > left || left.is_zero() {
        let over = text(all.once - left);
        return Err(wrong(
            "budget.cost",
            format!(
                "{} once may cost {}, and {of_budget}: {over} too little",
                match state.cells.iter().filter(|s| s.to_go() > 0).count() {
                    1 => "the cell".to_owned(),
                    n => format!("each of {n} cells"),
                },
                text(all.once)
            ),
            remedy(all.once),
        ));
    }
    Ok(())
}

/// A budget holds what has a price, in its own currency.
fn known(
    file: &CampaignFile,
    budget: &Money,
    state: &CampaignState,
    prices: &CampaignPrices,
) -> Result<(), CampaignError> {
    if budget.currency != prices.currency() {
        return Err(wrong(
            "budget.cost",
            format!("the budget is in {}, the prices are in {}", budget.currency, prices.currency()),
            format!("Give the budget in {}: no rate of exchange is known here.", prices.currency()),
        ));
    }
    if let Some((other, n)) = state.money.amounts().find(|(c, n)| *c != budget.currency && !n.is_zero()) {
        return Err(wrong(
            "budget.cost",
            format!(
                "{} of this campaign were spent in another currency than the budget's",
                money_text(n, other)
            ),
            format!("Give prices and budget in {other}, as before: no rate of exchange is known here."),
        ));
    }
    if state.money.unpriced > 0 {
        return Err(wrong(
            "budget.cost",
            format!(
                "{} of this campaign {} measured without prices: what was spent is not known",
                counted(state.money.unpriced, "run"),
                if state.money.unpriced == 1 { "was" } else { "were" }
            ),
            "Go on without a budget of money, or measure under another name in the file.",
        ));
    }
    match &prices.without(file)[..] {
        [] => Ok(()),
        without => Err(wrong(
            "budget.cost",
            format!("no price is known of {}: a budget cannot hold what has none", without.join(", ")),
            format!(
                "Name one of the prices at the subject (price = \"NAME\"; there are {}), or add one, with price = 0 for what is free.",
                prices.names().join(", ")
            ),
        )),
    }
}

/// What of a plan has a bound, and what has none. An error: the prices do not know an op of it.
fn of_plan(
    cell: &CampaignCell,
    plan: &Plan,
    cost: &CostOptions,
) -> Result<(Decimal, Vec<String>), CampaignError> {
    let bound = bound(plan, cost, &plimsoll_lower::prepared_objects).map_err(|why| {
        wrong(
            format!("subject '{}', workload '{}'", cell.subject, cell.workload),
            why,
            "Complete the prices, or name others with `price` at the subject.",
        )
    })?;
    // Of a cell there is one stage, and in it one workload: which one need not be said.
    let short = |why: &String| why.split_once("': ").map_or(why.as_str(), |(_, short)| short).to_owned();
    Ok((bound.total(), bound.open.iter().map(short).collect()))
}

/// The plan with its closed loop at the rate that the subject promises, which nobody holds it to; `None`: there is no such rate.
fn promised_plan(file: &CampaignFile, cell: &CampaignCell) -> Option<Plan> {
    let promised = file.subject(&cell.subject)?.promised;
    let mut plan = cell.plan(0, 0)?;
    let stage = match &mut plan.controller {
        Some(ControllerSpec::Watch { template, .. }) => template.as_mut(),
        Some(_) => return None,
        None => plan.stages.first_mut()?,
    };
    let w = stage.workloads.first_mut().filter(|w| w.pacing == Pacing::Closed)?;
    w.pacing = Pacing::Constant(OpsRate(forecast::promised_rate(&promised, w)?));
    Some(plan)
}
