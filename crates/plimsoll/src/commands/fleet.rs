//! `plimsoll fleet ...`: brings up what many machines need to measure together, and takes it down again.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::units::Span;

use crate::args::OutputArgs;

pub const FLEET_EXAMPLES: &str = "\
Examples:
  plimsoll fleet up
  plimsoll fleet up --name lab --listen 10.0.0.7:4222 --token-for 30min
  plimsoll fleet status
  plimsoll fleet token --for 1h
  plimsoll fleet collect last
  plimsoll fleet down

`fleet up` prints the line with which other machines join: they connect to this \
one, and need no open port. It needs nats-server (apt-get install nats-server).";

#[derive(Debug, Clone, Subcommand)]
pub enum FleetCommand {
    /// Start a fleet on this machine, and print the line with which others join
    Up(UpArgs),
    /// Show who is in the fleet, and who uses it
    Status(StatusArgs),
    /// Fetch what agents kept of a run that lost them, or its conductor, and judge it
    Collect(CollectArgs),
    /// Print the token with which machines join, or make a new one
    Token(TokenArgs),
    /// End the fleet; nothing of it stays on this machine
    Down(DownArgs),
    /// For tests: what an agent's own record has, or a run, slice by slice
    #[command(hide = true)]
    Tally(TallyArgs),
    /// What `up` leaves in the background
    #[command(hide = true)]
    Keep(KeepArgs),
}

/// Which fleet of this user on this machine.
#[derive(Debug, Clone, Args)]
pub struct NameArgs {
    /// Name of the fleet
    #[arg(long, value_name = "NAME", default_value = "default", env = "PLIMSOLL_FLEET")]
    pub name: String,
}

#[derive(Debug, Clone, Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Address that machines connect to; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:0")]
    pub listen: SocketAddr,
    /// Host name or address under which others reach this machine; may be repeated [default: all of its own]
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// How long machines can join with the token
    #[arg(long, value_name = "TIME", default_value = "12h")]
    pub token_for: Span,
}

#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CollectArgs {
    /// The run: its id, its directory, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(flatten)]
    pub fleet: NameArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
pub struct TallyArgs {
    /// A run's directory, or an agent's own record of one
    pub dir: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Make a new token that holds this long; the old one opens nothing any more, and who is in stays in
    #[arg(long = "for", value_name = "TIME")]
    pub token_for: Option<Span>,
}

#[derive(Debug, Clone, Args)]
pub struct DownArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// End it even while a command uses it
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Args)]
pub struct KeepArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    #[arg(long)]
    pub listen: SocketAddr,
    #[arg(long = "host")]
    pub hosts: Vec<String>,
    /// Seconds since 1970
    #[arg(long)]
    pub token_until: u64,
}
