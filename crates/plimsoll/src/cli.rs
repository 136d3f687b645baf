//! The command line as a whole.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

use crate::args::OutputArgs;
use crate::commands::block::BlockCommand;
use crate::commands::calibrate::CalibrateCommand;
use crate::commands::drive::DriveCommand;
use crate::commands::file::FileCommand;
use crate::commands::fio::FioCommand;
use crate::commands::mark::MarkCommand;
use crate::commands::object::ObjectCommand;
use crate::commands::plan_file::RunCommand;
use crate::commands::probe::{
    LIMITS_EXAMPLES, LimitsArgs, Probed, SPEEDTEST_EXAMPLES, SpeedtestArgs, WATCH_EXAMPLES, WatchArgs,
};
use crate::commands::runs::{
    AnalyzeCommand, CleanupCommand, CompareCommand, RUNS_EXAMPLES, ReportCommand, RunsCommand, ScaleCommand,
};
use crate::commands::target::TargetCommand;

const HELP: &str = "\
Examples:
  plimsoll object put --endpoint embedded --size 4KiB --duration 10s
  plimsoll block /var/tmp/test.dat --size 1GiB --bs 4KiB --iodepth 16
  plimsoll report last -o report.html

Each command has more in its own --help.

Exit codes:
  0    answered: valid, or partly (void lines are marked)
  1    a bug of plimsoll
  2    bad input or environment; nothing was measured
  3    measured, but what was asked for is invalid (or too many failures)
  4    an --expect was not met
  5    undetermined: the data does not carry an answer
  6    valid, but something of the run is still there (plimsoll cleanup),
       or its report could not be written (plimsoll report)
  7    damaged data: the storage returned other than what was written
  8    stopped by a guard (reserved: none stops a run yet)
  130  interrupted; the result so far is written

Of several, the first of 130, 7, 3, 4, 5, 6 is given.
Results go to stdout, all else to stderr.";

/// Measures what storage really delivers, and says what limits it.
#[derive(Debug, Clone, Parser)]
#[command(name = "plimsoll", version, after_help = HELP, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Measure an S3 bucket
    #[command(subcommand)]
    Object(Box<ObjectCommand>),
    /// Measure a block device, or one file used like one
    Block(Box<BlockCommand>),
    /// Run an fio job file
    Fio(Box<FioCommand>),
    /// Measure a directory: write, read, IOPS
    File(Box<FileCommand>),
    /// Measure drives, each alone and then all at once
    Drive(DriveCommand),
    /// Run a plan from a file
    Run(RunCommand),
    /// Find unknown limits: sustained and burst rate, capacity, refill
    #[command(subcommand, after_help = LIMITS_EXAMPLES)]
    Limits(Box<Probed<LimitsArgs>>),
    /// Find the best concurrency and the peak
    #[command(subcommand, after_help = SPEEDTEST_EXAMPLES)]
    Speedtest(Box<Probed<SpeedtestArgs>>),
    /// Run for long, and report cliffs as they come
    #[command(after_help = WATCH_EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Watch(WatchCommand),
    /// Measure this machine's own ceiling as a load generator
    Calibrate(CalibrateCommand),
    /// Write a report of one or several runs
    Report(ReportCommand),
    /// List, show or remove runs
    #[command(subcommand, after_help = RUNS_EXAMPLES)]
    Runs(RunsCommand),
    /// Note an event on a run's time axis, while it goes on or later
    Mark(MarkCommand),
    /// Remove what a run left in storage
    Cleanup(CleanupCommand),
    /// Judge runs again
    Analyze(AnalyzeCommand),
    /// Compare two configurations, run by run
    Compare(CompareCommand),
    /// Judge how throughput grows with nodes
    Scale(ScaleCommand),
    /// Start a server to measure
    #[command(subcommand)]
    Target(TargetCommand),
}

#[derive(Debug, Clone, Args)]
pub struct WatchCommand {
    #[command(subcommand)]
    pub probed: Option<Box<Probed<WatchArgs>>>,
    #[command(flatten)]
    pub cycle: CycleArgs,
}

/// A benchmark that is repeated for as long as the watch lasts.
#[derive(Debug, Clone, Args)]
pub struct CycleArgs {
    /// Directory to measure
    #[arg(value_name = "DIR", required = true)]
    pub dir: Option<PathBuf>,
    /// What is repeated
    #[arg(long, value_name = "WHAT", default_value = "file", value_parser = ["file"])]
    pub cycle: String,
    /// Bytes of all files together [default: twice the memory]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<plimsoll_model::units::Size>,
    /// Files, each with a thread of its own [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Length of the IOPS phase
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub iops_duration: plimsoll_model::units::Span,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
