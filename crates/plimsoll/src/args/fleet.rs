//! Whether a command measures over a fleet, and over which part of it. Given anywhere, understood by those that measure.

use clap::{Args, FromArgMatches as _};
use plimsoll_fleet::Choice;
use plimsoll_model::plan::AgentLoss;
use plimsoll_model::units::Span;
use plimsoll_setup::s3::ClaimBy;

use crate::values;

const FLEET: &str = "Fleet";

/// Over many machines instead of this one.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArgs {
    /// Measure with the agents of the fleet that is up (`plimsoll fleet up`): of this name, of the one in PLIMSOLL_FLEET, or the default one;
    /// all that is asked for is divided over them [env: PLIMSOLL_FLEET=]
    #[arg(long, value_name = "NAME", global = true, num_args = 0..=1, require_equals = true, default_missing_value = "",
          help_heading = FLEET)]
    pub fleet: Option<String>,
    /// Use so many of them, or those that were started with this label [default: all]
    #[arg(long, value_name = "N|LABEL=VALUE", global = true, help_heading = FLEET)]
    pub agents: Option<Choice>,
    /// What is asked for (ops in flight, rates, objects, and the ops or bytes that end a load) is each agent's, not divided over them
    #[arg(long, global = true, help_heading = FLEET)]
    pub each: bool,
    /// Agents may share a device, an image or a directory: each writes in a range (a directory) of its own, and who only reads files reads
    /// what the next agent wrote
    #[arg(long, global = true, help_heading = FLEET)]
    pub shared: bool,
    /// An agent that is silent for so long is lost, and one that hears nothing for so long ends by itself [default: 10s]
    #[arg(long, value_name = "TIME", global = true, help_heading = FLEET)]
    pub deadman: Option<Span>,
    /// When an agent is lost: `invalid` (the others go on, and the result is invalid), `continue` (the others go on, and the result
    /// stands for the time in which all were there) or `stop` (the run ends there, and is invalid) [default: invalid]
    #[arg(long, value_name = "WHAT", global = true, help_heading = FLEET, hide_possible_values = true,
          value_parser = values::named::<AgentLoss>(["invalid", "continue", "stop"]))]
    pub on_agent_loss: Option<AgentLoss>,
    /// Once there is load, leave it to itself: it goes on without this command and its terminal (`plimsoll fleet wait`, `status`, `stop`)
    #[arg(long, global = true, help_heading = FLEET)]
    pub detach: bool,
    /// Send this machine's credentials of the storage to the agents, sealed to each, for this run
    /// [default: each agent uses its own]
    #[arg(long, global = true, help_heading = FLEET)]
    pub send_credentials: bool,
    /// Who puts markers, lists objects and cleans up in buckets: this machine, or an agent [default: this machine, and an agent where
    /// this machine does not reach the storage]
    #[arg(long, value_name = "WHO", global = true, help_heading = FLEET, value_parser = claim_by)]
    pub claim_by: Option<ClaimBy>,
}

/// What a result says of the machine.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct IdentityArgs {
    /// Do not find out whose machine this is and of which kind (by its DMI tables, and the metadata service of its cloud)
    #[arg(long, global = true, env = "PLIMSOLL_NO_IDENTITY", value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Global")]
    pub no_identity: bool,
}

fn claim_by(text: &str) -> Result<ClaimBy, String> {
    match text {
        "auto" => Ok(ClaimBy::Auto),
        "conductor" => Ok(ClaimBy::Conductor),
        "agents" => Ok(ClaimBy::Agents),
        _ => Err("it is auto, conductor (this machine) or agents".into()),
    }
}

impl FleetArgs {
    /// The flags that say over which fleet is measured, and how, to be given again by a command that goes on. Without consent to send
    /// credentials, which is of one command.
    pub fn words(&self) -> Vec<String> {
        let on_agent_loss = self.on_agent_loss.and_then(|on| serde_json::to_value(on).ok());
        let claim_by = self.claim_by.map(|by| match by {
            ClaimBy::Auto => "auto",
            ClaimBy::Conductor => "conductor",
            ClaimBy::Agents => "agents",
        });
        [
            self.fleet.as_ref().map(|name| format!("--fleet={name}")),
            self.agents.as_ref().map(|choice| format!("--agents={choice}")),
            self.each.then(|| "--each".to_owned()),
            self.shared.then(|| "--shared".to_owned()),
            self.deadman.map(|time| format!("--deadman={time}")),
            on_agent_loss.as_ref().and_then(|on| on.as_str()).map(|on| format!("--on-agent-loss={on}")),
            claim_by.map(|by| format!("--claim-by={by}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Of such words; `None`: they are not ours.
    pub fn of_words(words: &[String]) -> Option<Self> {
        let command = Self::augment_args(clap::Command::new("plimsoll").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words).ok()?).ok()
    }

    /// The first flag that was given.
    pub fn given(&self) -> Option<&'static str> {
        let fleet = self.fleet.is_some().then_some("--fleet");
        fleet
            .or(self.agents.is_some().then_some("--agents"))
            .or(self.each.then_some("--each"))
            .or(self.shared.then_some("--shared"))
            .or(self.deadman.is_some().then_some("--deadman"))
            .or(self.on_agent_loss.is_some().then_some("--on-agent-loss"))
            .or(self.detach.then_some("--detach"))
            .or(self.send_credentials.then_some("--send-credentials"))
            .or(self.claim_by.is_some().then_some("--claim-by"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_that_goes_on_is_given_again_is_what_was_typed() {
        let typed = [
            "--fleet=lab",
            "--agents=rack=2",
            "--each",
            "--deadman=5s",
            "--on-agent-loss=stop",
            "--claim-by=agents",
        ];
        let typed = typed.map(str::to_owned);
        let args = FleetArgs::of_words(&typed).unwrap();
        assert_eq!(args.words(), typed);
        assert_eq!(args.agents, Some(Choice::Labelled("rack".into(), "2".into())));
        assert!(FleetArgs::default().words().is_empty());
        let sends = FleetArgs { fleet: Some("lab".into()), send_credentials: true, ..FleetArgs::default() };
        assert_eq!(sends.words(), ["--fleet=lab"]);
        assert!(FleetArgs::of_words(&["--no-such".to_owned()]).is_none());
    }
}
