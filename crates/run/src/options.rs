//! What a run is told beside its plan.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_crew::{Crew, CrewError, LocalCrew, SimCrew, SimNetwork};
use plimsoll_model::{Event, Plan};
use plimsoll_setup::s3::{ClaimBy, Errands};
use plimsoll_setup::{Interrupt, SetupError};
use plimsoll_store::{Journal, RunDir};

use crate::kept::{AgentFetched, Ask};

/// Who carries a run out.
#[derive(Debug, Clone, Default)]
pub enum CrewChoice {
    /// This process.
    #[default]
    Local,
    /// Agents on the virtual clock, and the network between them: for plans whose targets are all simulated.
    Simulated(SimNetwork),
    /// Agents that wait elsewhere to be asked.
    Fleet(Arc<dyn Recruit>),
}

/// Finds agents for a run. Who they are and how they are spoken to is not the run's to know.
pub trait Recruit: std::fmt::Debug + Send + Sync {
    /// Those that the run is to have: asked, willing, and on a common clock. `run` is the run's name. An error says who is missing.
    fn recruit(
        &self,
        run: &str,
        plan: &Plan,
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<Box<dyn Crew>, CrewError>;

    /// Asks agents for what they kept of a run that they worked for. Nobody: who recruits has none that keep anything.
    fn fetch_kept(&self, ask: Ask<'_>) -> Result<Vec<AgentFetched>, CrewError> {
        let _ = ask;
        Ok(Vec::new())
    }

    /// Those who clean up in buckets, for a run that is over, where its conductor does not reach the storage. Nobody: it has to.
    fn clean_up_crew(
        &self,
        run: &str,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> Result<Option<Box<dyn CleanUpCrew>>, SetupError> {
        let _ = (run, plan, interrupt);
        Ok(None)
    }
}

/// Agents who ask the storage for a run that is over.
pub trait CleanUpCrew: std::fmt::Debug {
    /// For the run of this mark.
    fn errands(&self, mark: &str) -> Box<dyn Errands>;

    /// Lets them go, and waits until they can be asked for other work.
    fn let_go(self: Box<Self>);
}

impl CrewChoice {
    pub(crate) fn crew(
        &self,
        run: &RunDir,
        plan: &Plan,
        journal: &Arc<Mutex<Journal>>,
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<Box<dyn Crew>, CrewError> {
        Ok(match self {
            Self::Local => {
                let runs = run.path().parent().unwrap_or(Path::new("."));
                Box::new(LocalCrew::new(plan, runs, Arc::clone(journal), interrupt.clone()))
            }
            Self::Simulated(network) => Box::new(SimCrew::new(plan, network.clone())),
            Self::Fleet(recruit) => recruit.recruit(&run.id(), plan, interrupt, events)?,
        })
    }
}

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
    /// Asked between any two steps; whoever holds a clone of it can end the run.
    pub interrupt: Interrupt,
    /// Who carries it out.
    pub crew: CrewChoice,
    /// Who asks the storage beside the load.
    pub claim_by: ClaimBy,
    /// No new cell (or stage without one) begins after this time: a plan of many cycles ends in order.
    pub stop_after: Option<std::time::Duration>,
    /// Ceilings of this machine, when it was calibrated: joined to the environment.
    pub ceiling: std::collections::BTreeMap<String, f64>,
    /// Find out whose machine this is: of its own tables, then of the provider (a second at the most).
    pub identity: bool,
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
            crew: CrewChoice::default(),
            claim_by: ClaimBy::default(),
            stop_after: None,
            ceiling: crate::ceiling::ceiling(),
            identity: false,
        }
    }
}
