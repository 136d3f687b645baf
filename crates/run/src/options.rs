//! What a run is told beside its plan.

use std::path::PathBuf;

use plimsoll_setup::Interrupt;

/// Everything about a run that is not in its plan.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory in which the run's own directory is made.
    pub root: PathBuf,
    /// The run directory itself, where the user names it.
    pub run_dir: Option<PathBuf>,
    /// The command that repeats the run.
    pub rerun: String,
    /// Commit that the program was built from.
    pub commit: String,
    /// Our own program, which is also the embedded server's.
    pub exe: PathBuf,
    pub interrupt: Interrupt,
    /// No new cell (or stage without one) begins after this time: a plan of many cycles ends in order.
    pub stop_after: Option<std::time::Duration>,
    /// Ceilings of this machine, when it was calibrated: joined to the environment.
    pub ceiling: std::collections::BTreeMap<String, f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            root: plimsoll_store::rundir::DEFAULT_ROOT.into(),
            run_dir: None,
            rerun: String::new(),
            commit: option_env!("PLIMSOLL_COMMIT").unwrap_or_default().into(),
            exe: std::env::current_exe().unwrap_or_else(|_| "plimsoll".into()),
            interrupt: Interrupt::default(),
            stop_after: None,
            ceiling: crate::ceiling::ceiling(),
        }
    }
}
