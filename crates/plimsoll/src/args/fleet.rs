//! Whether a command measures over a fleet, and over which part of it. Given anywhere, understood by those that measure.

use clap::Args;
use plimsoll_fleet::Choice;
use plimsoll_model::units::Span;

const FLEET: &str = "Fleet";

/// Over many machines instead of this one.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArgs {
    /// Measure with the agents of the fleet that is up (`plimsoll fleet up`), of this name or the default one; all that is asked for is
    /// divided over them [env: PLIMSOLL_FLEET=]
    #[arg(long, value_name = "NAME", global = true, num_args = 0..=1, require_equals = true, default_missing_value = "default",
          help_heading = FLEET)]
    pub fleet: Option<String>,
    /// Use so many of them, or those that were started with this label [default: all]
    #[arg(long, value_name = "N|LABEL=VALUE", global = true, help_heading = FLEET)]
    pub agents: Option<Choice>,
    /// An agent that is silent for so long is lost, and one that hears nothing for so long ends by itself [default: 10s]
    #[arg(long, value_name = "TIME", global = true, help_heading = FLEET)]
    pub deadman: Option<Span>,
    /// Send this machine's credentials of the storage to the agents, sealed to each, for this run
    /// [default: each agent uses its own]
    #[arg(long, global = true, help_heading = FLEET)]
    pub send_credentials: bool,
}

impl FleetArgs {
    /// The first flag that was given.
    pub fn given(&self) -> Option<&'static str> {
        let fleet = self.fleet.is_some().then_some("--fleet");
        fleet
            .or(self.agents.is_some().then_some("--agents"))
            .or(self.deadman.is_some().then_some("--deadman"))
            .or(self.send_credentials.then_some("--send-credentials"))
    }
}
