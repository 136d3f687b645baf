//! What decides the next stage: a fixed list, a sweep, or a search that looks at what was seen so far.
//!
//! Pure: what a controller does follows from its plan and from what it was shown ([`Observation`]), wherever that was measured.

#![warn(missing_docs)]

mod adaptive;
mod controller;
mod error;
mod fixed;
mod limits;
mod saturation;
mod sweep;
mod watch;

pub use adaptive::Adaptive;
pub use controller::{
    Conclusion, ControlRemark, ControlStep, Controller, IN_VAIN, Observation, Slice, machines,
};
pub use error::ControlError;
pub use fixed::Fixed;
use limits::dimensions;
pub use limits::{Asked, Limits, NOTHING_ANSWERED};
pub use saturation::{SaturationController, Wish, load_point_of, rung_of, search_of};
pub use sweep::Sweep;
pub use watch::{RATE_DROPPED, Watch, drops_of};

use plimsoll_model::Plan;
use plimsoll_model::plan::ControllerSpec;

/// The controller that a plan asks for.
pub fn of_plan(plan: &Plan) -> Result<Box<dyn Controller>, ControlError> {
    match &plan.controller {
        None => Ok(Box::new(Fixed::new(plan.stages.clone()))),
        Some(ControllerSpec::Sweep { template, ops, sizes, concurrencies, repeat }) if sizes.is_empty() => {
            Ok(Box::new(Adaptive::new(template, ops, concurrencies, *repeat, plan.seed)))
        }
        Some(ControllerSpec::Sweep { template, ops, sizes, concurrencies, repeat }) => {
            Ok(Box::new(Sweep::new(template, ops, sizes, concurrencies, *repeat, plan.seed)))
        }
        Some(ControllerSpec::Watch { template, duration }) => {
            Ok(Box::new(Watch::new((**template).clone(), *duration, plan.options.grid)))
        }
        Some(
            spec @ ControllerSpec::Saturation {
                max_concurrency, p99_ceiling, drain, load_points, budget, ..
            },
        ) => {
            let wish = Wish {
                max_concurrency: *max_concurrency,
                p99_ceiling: *p99_ceiling,
                drain: *drain,
                load_points: load_points.clone(),
                budget: *budget,
                seed: plan.seed,
            };
            Ok(Box::new(SaturationController::new(spec.templates().cloned().collect(), &wish)))
        }
        Some(ControllerSpec::Limits { template, budget, probe_shared, probe_scope, scope_targets }) => {
            let scope = dimensions(probe_scope, scope_targets)?;
            let asked = Asked { shared: *probe_shared, scope, scope_targets: scope_targets.clone() };
            Ok(Box::new(Limits::new(plan, (**template).clone(), *budget, asked)?))
        }
    }
}
