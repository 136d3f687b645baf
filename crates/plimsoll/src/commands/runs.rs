//! Commands on runs that are over: `report`, `runs`, `cleanup`, `analyze`, `compare`, `scale`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::OutputArgs;

pub const REPORT_EXAMPLES: &str = "\
Examples:
  plimsoll report last -o report.html
  plimsoll report RUN1 RUN2 RUN3 --by size,op,label:tier --markdown

A run is named by its id (or the start of it), its directory, or `last`.";

#[derive(Debug, Clone, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportCommand {
    /// Runs: id, directory, or `last`
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Write one self-contained HTML file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub html_file: Option<PathBuf>,
    /// What to group lines by: size, op, concurrency, label:NAME
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',')]
    pub by: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first
    List(ListRunsArgs),
    /// Show one run
    Show(OneRunArgs),
    /// Remove runs; what they left in storage is cleaned up with `plimsoll cleanup` first
    Rm(RemoveRunsArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ListRunsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct OneRunArgs {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
pub struct RemoveRunsArgs {
    /// Runs: ids or directories
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct CleanupCommand {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Say what would be removed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct AnalyzeCommand {
    /// Runs: id, directory, or `last`
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub const COMPARE_EXAMPLES: &str = "\
Examples:
  plimsoll compare A1 A2 A3 -- B1 B2 B3

Runs are paired in the order given: A1 with B1, A2 with B2. Make them in turn (A, B, A, B), so that
drift of the machine meets both alike.";

#[derive(Debug, Clone, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareCommand {
    /// Runs of the first configuration
    #[arg(value_name = "A", required = true)]
    pub a: Vec<String>,
    /// Runs of the second configuration
    #[arg(value_name = "B", last = true, required = true)]
    pub b: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ScaleCommand {
    /// Runs, one or more per number of nodes
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub runs: Vec<String>,
    /// Label that holds the number of nodes
    #[arg(long, value_name = "NAME", default_value = "nodes")]
    pub label: String,
    #[command(flatten)]
    pub output: OutputArgs,
}
