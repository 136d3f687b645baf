//! One Run, from Plan to sealed run directory: stages, controllers, collector, sampler, cleanup, analysis.
//!
//! [`execute`] runs a plan, [`resume`] goes on with a killed run,
//! [`analyze()`] judges a stored run again.

#![warn(missing_docs)]

mod analyze;
pub mod ceiling;
mod environment;
mod error;
mod execute;
mod guard;
mod kept;
mod lost;
mod money;
mod options;
mod peak;
pub mod remark;
mod samples;
mod session;
mod stage;
mod streams;
mod trace;
mod virtual_time;
mod volumes;

pub use analyze::{analyze, judge_anew, judged_by_record};
pub use environment::machine;
pub use error::RunError;
pub use execute::{Finished, check, execute, resume};
pub use kept::{AgentCollected, AgentFetched, Ask, Collected, Lacking, LackingStage, StageFetched, collect};
pub use money::{cost_bound, money_spent};
pub use options::{CleanUpCrew, CrewChoice, Options, Recruit};
pub use plimsoll_crew::sample;
pub use plimsoll_lower::prepared_objects;

/// Whether this machine has the memory that the stages of a plan will take, as far as they are known before it runs.
pub fn check_memory(plan: &plimsoll_model::Plan) -> Result<(), RunError> {
    Ok(plimsoll_crew::check_memory(plan)?)
}
