//! The command line as a whole.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

use crate::args::{AboutArgs, FleetArgs, IdentityArgs, OutputArgs};
use crate::commands::agent::{AGENT_EXAMPLES, AgentCommand};
use crate::commands::audit::AuditCommand;
use crate::commands::block::BlockCommand;
use crate::commands::calibrate::CalibrateCommand;
use crate::commands::campaign::{CAMPAIGN_EXAMPLES, CampaignCommand};
use crate::commands::check::CheckCommand;
use crate::commands::config::{CONFIG_EXAMPLES, ConfigCommand};
use crate::commands::cost::CostCommand;
use crate::commands::describe::DescribeCommand;
use crate::commands::drive::DriveCommand;
use crate::commands::file::FileCommand;
use crate::commands::fio::FioCommand;
use crate::commands::fleet::{FLEET_EXAMPLES, FleetCommand};
use crate::commands::help::HelpCommand;
use crate::commands::import::ImportCommand;
use crate::commands::mark::MarkCommand;
use crate::commands::net::{NET_EXAMPLES, NetCommand};
use crate::commands::object::ObjectCommand;
use crate::commands::plan_file::RunCommand;
use crate::commands::probe::{
    LIMITS_EXAMPLES, LimitsArgs, Probed, SPEEDTEST_EXAMPLES, SpeedtestArgs, WATCH_EXAMPLES, WatchArgs,
};
use crate::commands::publish::PublishCommand;
use crate::commands::replicate::ReplicateCommand;
use crate::commands::runs::{
    AnalyzeCommand, CleanupCommand, CompareCommand, RUNS_EXAMPLES, ReportCommand, RunsCommand, ScaleCommand,
};
use crate::commands::shell::{CompletionsCommand, ManCommand};
use crate::commands::target::TargetCommand;

/// Also a topic of `plimsoll help`.
macro_rules! exit_codes {
    () => {
        "  0    answered: valid, or partly valid (void lines are marked)
  1    a bug in plimsoll
  2    bad input or environment; nothing was measured
  3    measured, but the answer is invalid (or too many ops failed)
  4    an --expect was not met; check: the storage is slower, or ops fail;
       audit: there are remarks
  5    undetermined: the data does not support an answer
  6    valid, but something that the run created still exists (plimsoll
       cleanup), or its report could not be written (plimsoll report)
  7    corruption: the storage returned different data than was written
  8    stopped by a guard: --budget-cost was used up, or --abort-if held
  130  interrupted; the result so far was written

If several apply, the exit code is the first of 130, 7, 8, 3, 4, 5, 6.
Results go to stdout, everything else to stderr."
    };
}

pub const EXIT_CODES: &str = exit_codes!();

const HELP: &str = concat!(
    "\
Examples:
  plimsoll object put --endpoint embedded --size 4KiB --duration 10s
  plimsoll block /var/tmp/test.dat --size 1GiB --bs 4KiB --iodepth 16
  plimsoll report last -o report.html

The --help of each command has more examples.

Exit codes:
",
    exit_codes!()
);

/// Benchmark storage and find what limits it
#[derive(Debug, Clone, Parser)]
#[command(name = "plimsoll", version, after_help = HELP, max_term_width = 110, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub identity: IdentityArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Measure an S3 bucket
    #[command(subcommand)]
    Object(Box<ObjectCommand>),
    /// Measure a block device, or a file used as one
    Block(Box<BlockCommand>),
    /// Run an fio job file
    Fio(Box<FioCommand>),
    /// Measure a directory: write, read and IOPS
    File(Box<FileCommand>),
    /// Measure drives, each alone and then all together
    Drive(DriveCommand),
    /// Run a plan from a file
    Run(RunCommand),
    /// Find unknown limits: sustained and burst rate, bucket capacity, refill
    #[command(subcommand, after_help = LIMITS_EXAMPLES)]
    Limits(Box<Probed<LimitsArgs>>),
    /// Find the best concurrency and the peak rate
    #[command(subcommand, after_help = SPEEDTEST_EXAMPLES)]
    Speedtest(Box<Probed<SpeedtestArgs>>),
    /// Run for a long time and report drops in the rate as they happen
    #[command(after_help = WATCH_EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Watch(WatchCommand),
    /// Check whether the storage is slower than it was: a small, read-only load against an earlier run
    Check(CheckCommand),
    /// Measure many subjects under many workloads from one file, resumably
    #[command(subcommand, after_help = CAMPAIGN_EXAMPLES)]
    Campaign(Box<CampaignCommand>),
    /// Publish a campaign: pages, tables, charts and data in a folder
    Publish(PublishCommand),
    /// Measure again what was published, and show both side by side
    Replicate(Box<ReplicateCommand>),
    /// Measure the most load that this machine can generate
    Calibrate(CalibrateCommand),
    /// Measure what the network between machines carries
    #[command(after_help = NET_EXAMPLES, args_conflicts_with_subcommands = true)]
    Net(NetCommand),
    /// Write a report on one or more runs
    Report(ReportCommand),
    /// Import results of fio, warp, elbencho, GoBonnieGo or iperf3
    Import(ImportCommand),
    /// List, show or remove runs
    #[command(subcommand, after_help = RUNS_EXAMPLES)]
    Runs(RunsCommand),
    /// Record an event on the time axis of a run, during the run or later
    Mark(MarkCommand),
    /// Remove what a run left in storage
    Cleanup(CleanupCommand),
    /// Judge stored runs again
    Analyze(AnalyzeCommand),
    /// Compare two configurations, run by run
    Compare(CompareCommand),
    /// What a run costs, by your own prices
    Cost(CostCommand),
    /// Measure how throughput scales with the number of nodes
    Scale(ScaleCommand),
    /// Check a table that someone else published for inconsistencies
    Audit(AuditCommand),
    /// Find out what a system is made of, for --cluster
    #[command(subcommand)]
    Describe(DescribeCommand),
    /// Start a server to measure against
    #[command(subcommand)]
    Target(TargetCommand),
    /// Let many machines measure together: start, show and end a fleet
    #[command(subcommand, after_help = FLEET_EXAMPLES)]
    Fleet(FleetCommand),
    /// Generate load on this machine when the fleet's conductor says so
    #[command(after_help = AGENT_EXAMPLES)]
    Agent(AgentCommand),
    /// Show the defaults of flags from your own file
    #[command(subcommand, after_help = CONFIG_EXAMPLES)]
    Config(ConfigCommand),
    /// Print what a shell needs to complete commands and flags
    Completions(CompletionsCommand),
    /// Print a man page, or write all of them
    Man(ManCommand),
    /// Explain a command, or a topic: verdicts, units, limiters, ...
    Help(HelpCommand),
}

#[derive(Debug, Clone, Args)]
pub struct WatchCommand {
    #[command(subcommand)]
    pub probed: Option<Box<Probed<WatchArgs>>>,
    #[command(flatten)]
    pub cycle: CycleArgs,
}

/// The command that these words name; in words, which of them is none.
pub fn find<'a>(root: &'a mut clap::Command, words: &[String]) -> Result<&'a mut clap::Command, String> {
    words.iter().try_fold(root, |command, word| {
        let whose = command.get_name().to_owned();
        command.find_subcommand_mut(word).ok_or_else(|| format!("'{whose}' has no command '{word}'"))
    })
}

/// A benchmark that is repeated for as long as the watch lasts.
#[derive(Debug, Clone, Args)]
pub struct CycleArgs {
    /// Directory to measure
    #[arg(value_name = "DIR", required = true)]
    pub dir: Option<PathBuf>,
    /// Benchmark to repeat
    #[arg(long, value_name = "WHAT", default_value = "file", value_parser = ["file"])]
    pub cycle: String,
    /// Total size of all files [default: twice the memory]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<plimsoll_model::units::Size>,
    /// Number of files, each with its own thread [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Length of the IOPS phase
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub iops_duration: plimsoll_model::units::Span,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub about: AboutArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
