//! `plimsoll campaign`: a matrix of subjects and workloads from one file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::cost::Money;
use plimsoll_model::units::Span;

pub const CAMPAIGN_EXAMPLES: &str = "\
Examples:
  plimsoll campaign new object-tiers -o tiers.toml
  plimsoll campaign new object-tiers --embedded -o small.toml
  plimsoll campaign run small.toml --dry-run
  plimsoll campaign run tiers.toml --budget 2h
  plimsoll campaign run tiers.toml --prices prices.toml --budget-cost 20USD
  plimsoll campaign run disks.toml --wait-for-rest 10m
  plimsoll campaign status tiers.toml --by size
  plimsoll campaign resume tiers.toml
  plimsoll campaign resume tiers.toml --here

A campaign measures every workload of its file on every subject, cell by cell, and
repeats each cell. Each run is kept as any other, with the labels `campaign`,
`subject`, `workload` and `repeat`. What was done is in a ledger beside the runs
(campaigns/NAME): killed at any moment, `resume` goes on with the next run, over the
same fleet and with the runs in the same place, unless it is told otherwise.

Exit codes: 0 every cell has valid runs; 3 a cell has none; 5 cells are missing
(budget, or a subject that could not be measured); 2 nothing was measured.";

#[derive(Debug, Clone, Subcommand)]
pub enum CampaignCommand {
    /// Write a campaign file to start from
    New(NewCampaignArgs),
    /// Show what a campaign takes, then measure it
    Run(RunCampaignArgs),
    /// Show what is done, what is to go, and the table so far
    Status(StatusCampaignArgs),
    /// Go on with a campaign that was interrupted or killed
    Resume(ResumeCampaignArgs),
}

#[derive(Debug, Clone, Args)]
pub struct NewCampaignArgs {
    /// object-tiers, cluster-speed, gateway-cluster, block-tiers or disks
    #[arg(value_name = "TEMPLATE", value_parser = ["object-tiers", "cluster-speed", "gateway-cluster", "block-tiers", "disks"])]
    pub template: String,
    /// File to write; it must not exist [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A small one that runs on this machine, with plimsoll's own servers, simulated targets or files
    #[arg(long)]
    pub embedded: bool,
}

/// What `run` and `resume` have in common.
#[derive(Debug, Clone, Args)]
pub struct CampaignArgs {
    /// Run the commands, and let the data be destroyed, that the file names; without it they are only shown
    #[arg(long)]
    pub allow_hooks: bool,
    /// Time at work in all, in place of the file's `budget.time`
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Span>,
    /// Money in all, for example 20USD, in place of the file's `budget.cost`: no run is begun that may cost more than is left
    #[arg(long, value_name = "MONEY")]
    pub budget_cost: Option<Money>,
    /// Your prices (TOML, as prices/examples.toml), in place of the file's `prices`; `price` of a subject names which of them is its own
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Before each cell wait until the machine is at rest, this long at most, in place of the file's `rest.wait`
    #[arg(long, value_name = "TIME")]
    pub wait_for_rest: Option<Span>,
    #[command(flatten)]
    pub form: CampaignForm,
}

/// A table beside that of all cells.
#[derive(Debug, Clone, Args)]
pub struct AxisTable {
    /// Also a table with a column for each value of this axis of the file: size, concurrency, threads, or one that it names
    #[arg(long, value_name = "AXIS", conflicts_with = "json")]
    pub by: Option<String>,
}

/// What is printed at the end, and where it is kept.
#[derive(Debug, Clone, Args)]
pub struct CampaignForm {
    /// Print the table and all that is in it as JSON
    #[arg(long, group = "campaign_form")]
    pub json: bool,
    /// Print the table as Markdown
    #[arg(long, group = "campaign_form")]
    pub markdown: bool,
    /// Nothing on stderr but errors
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct RunCampaignArgs {
    /// Campaign file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show what would be done, and exit
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub with: CampaignArgs,
    #[command(flatten)]
    pub axis: AxisTable,
}

#[derive(Debug, Clone, Args)]
pub struct ResumeCampaignArgs {
    /// Campaign file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Take the file as it is now: what was measured of cells that it has otherwise is set aside, and they are measured again
    #[arg(long)]
    pub accept_changes: bool,
    /// On this machine alone, where the session before measured over a fleet (without it that fleet is used again)
    #[arg(long)]
    pub here: bool,
    #[command(flatten)]
    pub with: CampaignArgs,
    #[command(flatten)]
    pub axis: AxisTable,
}

#[derive(Debug, Clone, Args)]
pub struct StatusCampaignArgs {
    /// Campaign file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub form: CampaignForm,
    #[command(flatten)]
    pub axis: AxisTable,
}
