//! What is asked of a probe beside the limits, and what of its time that may take.

use std::collections::BTreeMap;

use plimsoll_model::plan::ScopeWish;
use plimsoll_stats::probe::scope::Dimension;

use crate::error::ControlError;

/// The probe itself keeps so much of the budget, whatever is asked beside it (guess): without a limit there is nothing to ask.
pub const PROBES_SHARE: f64 = 0.4;

/// What the user asked for beside the figures.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Whether other ops draw on the same bucket.
    pub shared: bool,
    /// What the limit is per: connection, prefix, bucket, key or client.
    pub scope: Vec<Dimension>,
    /// Targets that differ in one thing, by that thing.
    pub scope_targets: BTreeMap<String, String>,
}

/// What of a plan's wish can be tried: a second bucket or key only where there is a target with it. What is not known is refused.
pub fn dimensions(
    wish: &ScopeWish,
    targets: &BTreeMap<String, String>,
) -> Result<Vec<Dimension>, ControlError> {
    let has_target = |d: &Dimension| targets.contains_key(d.name());
    let on_one_machine = |d: &Dimension| matches!(d, Dimension::Connection | Dimension::Prefix);
    match wish {
        ScopeWish::All(false) => Ok(Vec::new()),
        ScopeWish::All(true) => {
            Ok(Dimension::ALL.into_iter().filter(|d| on_one_machine(d) || has_target(d)).collect())
        }
        ScopeWish::Only(names) => {
            let mut all = names.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
            all.sort();
            all.dedup();
            let lacks = |d: &&Dimension| !on_one_machine(d) && **d != Dimension::Client && !has_target(d);
            match all.iter().find(lacks) {
                None => Ok(all),
                Some(d) => Err(ControlError::input(
                    format!("--probe-scope: there is no second {} to try", d.name()),
                    format!("Name one with {}", d.needs()),
                )),
            }
        }
    }
}

fn named(name: &str) -> Result<Dimension, ControlError> {
    Dimension::parse(name).ok_or_else(|| {
        let known = Dimension::ALL.map(Dimension::name).join(", ");
        ControlError::input(format!("--probe-scope: '{name}' is none of {known}"), "Correct the list")
    })
}
