//! `plimsoll fleet ...`: brings up what many machines need to measure together, and takes it down again.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::units::{Size, Span};

use crate::args::OutputArgs;

pub const FLEET_EXAMPLES: &str = "\
Examples:
  plimsoll fleet up
  plimsoll fleet up --name lab --listen 10.0.0.7:4222 --token-for 30min
  plimsoll fleet up --ssh 'me@node{1...8}' --allow-dir /mnt/test
  plimsoll fleet up --nats tls://broker.example.net --creds bench.creds
  plimsoll fleet status
  plimsoll fleet wait 8
  plimsoll watch object --fleet --detach --for 12h \\
      --endpoint https://s3.example.net --bucket bench
  plimsoll fleet wait
  plimsoll fleet stop
  plimsoll fleet token --for 1h
  plimsoll fleet collect last
  plimsoll fleet slurm --nodes 8 -- file /scratch --size 1TiB > job.sh
  plimsoll fleet manifest --agents 8 --image plimsoll:0.1.0 > fleet.yaml
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
    /// Wait until so many agents are there and free, or for the result of what goes on in the background (--detach)
    Wait(WaitArgs),
    /// End what goes on in the background (--detach), in order: its result is written
    Stop(StopArgs),
    /// Print a batch script for Slurm: an agent on each node, of which the first one conducts
    Slurm(SlurmArgs),
    /// Print a manifest for Kubernetes: an agent on each of so many nodes
    Manifest(ManifestArgs),
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
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = of_use)]
    pub token_for: Span,
    /// Use a NATS broker that is there already, and start none; several addresses of it after commas
    #[arg(long, value_name = "URL", conflicts_with_all = ["listen", "hosts", "keys"], help_heading = EXISTING)]
    pub nats: Option<String>,
    /// Credentials for it [default: NATS_CREDS, NATS_NKEY, or NATS_USER and NATS_PASSWORD]
    #[arg(long, value_name = "FILE", requires = "nats", help_heading = EXISTING)]
    pub creds: Option<PathBuf>,
    /// Certificate that it shows, its own or its authority's, in PEM [default: the authorities that each machine trusts]
    #[arg(long, value_name = "FILE", requires = "nats", help_heading = EXISTING)]
    pub ca: Option<PathBuf>,
    /// Keys that `fleet manifest --conduct` made, with which agents join already
    #[arg(long, value_name = "FILE", hide = true)]
    pub keys: Option<PathBuf>,
    /// Start an agent on each of these hosts over ssh, and end it with the fleet, or after 12 h without work; {1...8} counts, commas separate
    #[arg(long, value_name = "HOSTS", help_heading = OVER_SSH)]
    pub ssh: Vec<String>,
    /// Configuration file for ssh [default: ssh's own]
    #[arg(long, value_name = "FILE", requires = "ssh", help_heading = OVER_SSH)]
    pub ssh_config: Option<PathBuf>,
    #[command(flatten)]
    pub agents: AgentBounds,
}

const EXISTING: &str = "An existing broker";
const OVER_SSH: &str = "Over ssh";

/// What agents that a launcher starts let be done on their machines.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentBounds {
    /// Device that runs may read and write on the machines of these agents; may be repeated [default: none]
    #[arg(long, value_name = "PATH", help_heading = "Agents")]
    pub allow_device: Vec<PathBuf>,
    /// Directory that runs may make files in; may be repeated [default: none]
    #[arg(long, value_name = "DIR", help_heading = "Agents")]
    pub allow_dir: Vec<PathBuf>,
    /// Endpoint that runs may use, * for any text; may be repeated [default: all]
    #[arg(long, value_name = "URL", help_heading = "Agents")]
    pub allow_endpoint: Vec<String>,
}

impl AgentBounds {
    /// As flags of `plimsoll agent`.
    pub fn flags(&self) -> Vec<String> {
        let path = |p: &PathBuf| p.display().to_string();
        let devices = self.allow_device.iter().map(|p| ("--allow-device", path(p)));
        let dirs = self.allow_dir.iter().map(|p| ("--allow-dir", path(p)));
        let endpoints = self.allow_endpoint.iter().map(|e| ("--allow-endpoint", e.clone()));
        devices.chain(dirs).chain(endpoints).flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Number of agents; without it, a measurement with --detach is waited for: its result is printed, and its exit code given
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// How long to wait [default: 5min for agents, until its end for a measurement]
    #[arg(long, value_name = "TIME")]
    pub within: Option<Span>,
}

#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// The run that is meant, by its id; another one is not stopped
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct SlurmArgs {
    /// Number of nodes, with an agent each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: u32,
    /// After which Slurm ends the job
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub time: Span,
    /// Partition to run in [default: the site's]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    #[command(flatten)]
    pub agents: AgentBounds,
    /// What to measure: a command of plimsoll, after --
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ManifestArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Image that has plimsoll in it (see the Dockerfile)
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// Namespace [default: the one that kubectl uses]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Conduct in the cluster, too: run COMMAND there, with a fleet made for it
    #[arg(long, requires = "command")]
    pub conduct: bool,
    /// Give each agent a claim of its own, of this storage class and size, at /data
    #[arg(long, value_name = "CLASS,SIZE")]
    pub pvc: Option<ClaimWish>,
    /// Make that claim a device, at /dev/plimsoll
    #[arg(long, requires = "pvc")]
    pub block: bool,
    /// Use the nodes' own network (not allowed where PodSecurity is `restricted`)
    #[arg(long)]
    pub host_network: bool,
    /// Secret of the namespace that has AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
    #[arg(long, value_name = "NAME")]
    pub credentials: Option<String>,
    /// CPUs of each agent
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
    /// Memory of each agent
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub memory: Size,
    /// How long agents can join
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = of_use)]
    pub token_for: Span,
    /// What to measure, with --conduct: a command of plimsoll, after --
    #[arg(value_name = "COMMAND", last = true, requires = "conduct")]
    pub command: Vec<String>,
}

/// A storage class and a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWish {
    pub class: String,
    pub size: Size,
}

impl std::str::FromStr for ClaimWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (class, size) =
            text.split_once(',').ok_or("give a storage class and a size, such as fast,100GiB")?;
        let size: Size = size.parse().map_err(|e: plimsoll_model::units::UnitError| e.to_string())?;
        if class.is_empty() || size.0 == 0 {
            return Err("give a storage class and a size, such as fast,100GiB".into());
        }
        Ok(Self { class: class.to_owned(), size })
    }
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

/// A time in which somebody can join.
fn of_use(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(span) if span.0.is_zero() => Err("a token for no time lets nobody join; for example 30min".into()),
        span => span.map_err(|e| e.to_string()),
    }
}

#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// Make a new token that holds this long; the old one opens nothing any more, and who is in stays in (not on a broker of others)
    #[arg(long = "for", value_name = "TIME", value_parser = of_use)]
    pub token_for: Option<Span>,
}

#[derive(Debug, Clone, Args)]
pub struct DownArgs {
    #[command(flatten)]
    pub fleet: NameArgs,
    /// End it even while a command uses it, and forget agents on hosts that do not answer to ssh
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
    #[arg(long)]
    pub keys: Option<PathBuf>,
}
