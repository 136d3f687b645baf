//! What a run costs: its bound before it starts, and the budget that ends it.

use std::collections::BTreeSet;

use plimsoll_cost::{Bound, MoneyMeter, bound, decimal, mul};
use plimsoll_judge::COST_BUDGET_REACHED;
use plimsoll_model::cost::Money;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level, Plan};
use plimsoll_store::RunData;
use rust_decimal::Decimal;

use crate::error::RunError;

/// What the plan costs at most, as far as it can be said; none: it was given no prices.
pub fn cost_bound(plan: &Plan) -> Result<Option<Bound>, RunError> {
    let Some(cost) = &plan.options.cost else { return Ok(None) };
    let bound = bound(plan, cost, &plimsoll_lower::prepared_objects);
    bound.map(Some).map_err(|why| RunError::input(why, "Complete the prices"))
}

/// A run whose bound is above its budget does not begin.
pub(crate) fn affordable(plan: &Plan) -> Result<(), RunError> {
    let Some(bound) = cost_bound(plan)? else { return Ok(()) };
    let Some(budget) = plan.options.cost.as_ref().and_then(|c| c.budget.as_ref()) else { return Ok(()) };
    if bound.total() <= budget.amount.0 {
        return Ok(());
    }
    Err(RunError::input(
        format!("the run may cost {}, and its budget is {budget}", bound.said(&budget.currency)),
        "Raise --budget-cost, or send less; --dry-run without it shows what the money is for",
    ))
}

/// Of a run with a budget of money.
pub(crate) fn meter(plan: &Plan) -> Option<MoneyMeter> {
    MoneyMeter::new(plan.options.cost.as_ref()?, around(plan), removes(plan))
}

fn around(plan: &Plan) -> Decimal {
    cost_bound(plan).ok().flatten().map_or(Decimal::ZERO, |b| b.around)
}

fn removes(plan: &Plan) -> bool {
    !plan.options.keep && plan.targets.values().any(|target| matches!(target, TargetSpec::S3(_)))
}

/// What a run has cost by its record, whole or cut short, as its budget would have counted it: what its load sent, the machines
/// meanwhile, and what making data ready, marks and removal take at most. `None`: it was given no prices.
pub fn money_spent(data: &RunData) -> Option<Money> {
    let (plan, cost) = (&data.plan, data.plan.options.cost.as_ref()?);
    let mut meter = MoneyMeter::counting(cost, around(plan), removes(plan));
    let mut read_sets = BTreeSet::new();
    for w in data.stages.iter().flat_map(|s| &s.spec.workloads) {
        let on_bucket = matches!(plan.target_of(w), Ok((_, TargetSpec::S3(_))));
        if on_bucket && w.existing().is_none() {
            let (read, deleted) = plimsoll_lower::prepared_objects(w);
            // What is read is put there once, what is deleted for each stage.
            let read = if read_sets.insert((format!("{:?}", w.size), read)) { read } else { 0 };
            meter.made_ready(&w.size, read + deleted);
        }
    }
    let mut seen = plimsoll_judge::cost_seen(data, &[]);
    for sent in &mut seen.sent {
        // A killed run went on after its record ends.
        let kind = sent.kind;
        let more = decimal(1.0 + data.unrecorded_share(|k| k == kind)).unwrap_or(Decimal::ONE);
        (sent.ops, sent.bytes) = (mul(sent.ops, more), mul(sent.bytes, more));
    }
    meter.sent_before(&seen.sent);
    Some(Money::of(meter.spent(seen.seconds), &cost.currency))
}

/// Said of a run that its budget ended, with all that was sent.
pub(crate) fn reached(spent: &MoneyMeter, seconds: f64) -> Finding {
    let over = match spent.overshoot(seconds) {
        Some(more) => format!("{more} more than that was sent before the load had stopped"),
        None => "nothing was sent beyond it".into(),
    };
    let text = format!(
        "The run was ended by its budget (--budget-cost): {} were spent, by the prices it was given, with what is set aside to \
         prepare data and to remove it; {over}. The figures are of the time until then.",
        spent.said(spent.spent(seconds))
    );
    Finding::new("F28", COST_BUDGET_REACHED, Level::Qualified, text)
}
