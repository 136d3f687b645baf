//! Which parts of a plan live on the simulated clock.

use plimsoll_model::Plan;
use plimsoll_model::plan::{Stage, TargetSpec};

use crate::error::RunError;

fn is_virtual(spec: &TargetSpec) -> bool {
    matches!(spec, TargetSpec::Sim(_))
}

/// Whether all of it does.
pub fn lives_by(plan: &Plan) -> bool {
    plan.targets.values().all(is_virtual)
}

/// Whether a stage does. All its workloads have to agree.
pub fn lives_by_stage(plan: &Plan, stage: &Stage) -> Result<bool, RunError> {
    let mut kinds = Vec::new();
    for w in &stage.workloads {
        kinds.push(is_virtual(plan.target_of(w)?.1));
    }
    if kinds.iter().any(|k| *k != kinds[0]) {
        return Err(RunError::input(
            "a stage has both a simulated and a real target",
            "Put them into separate stages: a stage has one clock, virtual or real",
        ));
    }
    Ok(kinds.first().copied().unwrap_or(false))
}
