//! `plimsoll agent`: this machine generates load when a conductor says so.

use std::path::PathBuf;

use clap::Args;
use plimsoll_fleet::KeepRecords;
use plimsoll_model::units::Span;

use crate::values;

pub const AGENT_EXAMPLES: &str = "\
Examples:
  PLIMSOLL_JOIN=plimsoll-join-... plimsoll agent
  plimsoll agent --join @token --name lg-1 --label zone=a
  plimsoll fleet token | ssh lg-2 plimsoll agent --join - --allow-dir /mnt/test

`plimsoll fleet up` prints the token. Whoever reads it can join: what is given \
as `--join TOKEN` is seen by all users of the machine (ps). The agent connects to the fleet's machine, \
and needs no open port itself. Keys of the storage are taken from this machine: \
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile that the plan names. A conductor that \
is told to sends its own, sealed, unless --refuse-credentials is given. In a Slurm job the \
agent is called by its node, and has the labels job, node and index.";

const BOUNDS: &str = "Bounds";

#[derive(Debug, Clone, Args)]
pub struct AgentCommand {
    /// Token that `plimsoll fleet up` printed; @FILE reads it from a file, - from standard input
    #[arg(long, value_name = "TOKEN|@FILE|-", env = "PLIMSOLL_JOIN", hide_env_values = true)]
    pub join: String,
    /// Credentials for the broker, where the fleet uses one that was there before (`fleet up --nats`)
    /// [default: NATS_CREDS, NATS_NKEY, or NATS_USER and NATS_PASSWORD]
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// Name of this agent, which no other one of the fleet has [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add a label that runs can choose agents by, for example zone=a; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,
    /// End when no run has needed this agent for so long, for example 10min [default: wait until the fleet ends]
    #[arg(long, value_name = "TIME")]
    pub until_idle: Option<Span>,
    /// Take no storage credentials from the conductor (--send-credentials)
    #[arg(long, help_heading = BOUNDS)]
    pub refuse_credentials: bool,
    /// Device that runs may read and write; may be repeated [default: none]
    #[arg(long, value_name = "PATH", help_heading = BOUNDS)]
    pub allow_device: Vec<PathBuf>,
    /// Directory that runs may make files in; may be repeated [default: none]
    #[arg(long, value_name = "DIR", help_heading = BOUNDS)]
    pub allow_dir: Vec<PathBuf>,
    /// Endpoint that runs may use, * for any text; may be repeated [default: all]
    #[arg(long, value_name = "URL", help_heading = BOUNDS)]
    pub allow_endpoint: Vec<String>,
    /// Longest time of a run, from when it engages this agent; what lasts longer is ended [default: no limit]
    #[arg(long, value_name = "TIME", help_heading = BOUNDS)]
    pub max_duration: Option<Span>,
    /// Network or address that `plimsoll net` may use from here, or none; may be repeated [default: private addresses]
    #[arg(long, value_name = "NETWORK|none", help_heading = BOUNDS)]
    pub allow_net: Vec<String>,
    /// What this machine is: a client generates load; a server stores, and takes part in `plimsoll net` only
    #[arg(long, value_name = "ROLE", default_value = "client", value_parser = ["client", "server"])]
    pub role: String,
    /// Where this agent keeps its own records
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
    /// How much of its own records it keeps, as a number of runs or a size; the oldest go first [default: 4GiB]
    #[arg(long, value_name = "N|SIZE", default_value = "4GiB", hide_default_value = true)]
    pub keep_records: KeepRecords,
    /// For tests: what the agent's clock is ahead of this machine's, in nanoseconds
    #[arg(long, value_name = "NS", hide = true, default_value = "0", allow_negative_numbers = true)]
    pub clock_ahead: i64,
    /// For tests: what it is ahead by more, from some time after its start on
    #[arg(long, value_name = "NS", hide = true, allow_negative_numbers = true)]
    pub clock_jump: Option<i64>,
    #[arg(long, value_name = "TIME", hide = true)]
    pub clock_jump_after: Option<Span>,
}
