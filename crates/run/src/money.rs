//! What a run costs: its bound before it starts, and the budget that ends it.

use plimsoll_cost::{Bound, MoneyMeter, bound};
use plimsoll_judge::COST_BUDGET_REACHED;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level, Plan};
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
    let cost = plan.options.cost.as_ref()?;
    let around = cost_bound(plan).ok().flatten().map_or(Decimal::ZERO, |b| b.around);
    let removes =
        !plan.options.keep && plan.targets.values().any(|target| matches!(target, TargetSpec::S3(_)));
    MoneyMeter::new(cost, around, removes)
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
