//! What goes into a stage, and how it ended.

use plimsoll_control::Observation;
use plimsoll_cost::MoneyMeter;
use plimsoll_crew::StageOrder;
use plimsoll_lower::Agent;
use plimsoll_model::Finding;
use plimsoll_model::event::Event;
use plimsoll_model::plan::AgentLoss;
use plimsoll_setup::Interrupt;

use crate::streams::Streams;
use crate::trace::{Names, TraceWriter};

/// What a stage is run with.
pub struct StageSetting<'a> {
    pub order: StageOrder<'a>,
    /// Who carries it out.
    pub roll: Vec<Agent>,
    /// Names of the endpoints, per workload.
    pub endpoints: Vec<Vec<String>>,
    /// What was found out while the targets were made ready.
    pub findings: Vec<Finding>,
    pub warmup_ns: u64,
    /// Planned length of the load, warm-up included.
    pub planned_ns: Option<u64>,
    /// How many stages there will be.
    pub of: Option<u32>,
    /// Stages of a killed run that count again: what is shown is the place among those that are kept.
    pub again: u32,
    pub on_agent_loss: AgentLoss,
}

/// Where a stage's data goes.
pub struct Sinks<'a> {
    pub streams: &'a mut Streams,
    pub trace: Option<(&'a mut TraceWriter, &'a dyn Names)>,
    pub events: &'a mut dyn FnMut(Event),
    pub interrupt: Interrupt,
    /// What was spent, where there is a budget of money.
    pub spent: Option<&'a mut MoneyMeter>,
}

/// How a stage ended.
#[derive(Debug)]
pub struct StageEnd {
    pub observation: Observation,
    pub interrupted: bool,
    /// An agent was lost, and the run is to end at that, or it was the last.
    pub ended_by_loss: bool,
    /// Nobody kept others away any more from what the load was on: the run ends, for this reason.
    pub unheld: Option<String>,
    /// What was sent came to the budget of money.
    pub ended_by_cost: bool,
    /// Of the last op, nanoseconds since the epoch.
    pub end_ns: u64,
    /// `Server` headers and other facts, name to value, as the workers found them.
    pub facts: Vec<(String, String)>,
    pub ring: String,
    /// Agents were lost in it.
    pub lost: bool,
}
