//! Commands on runs that are over: `report`, `runs`, `cleanup`, `analyze`, `compare`, `scale`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::runs_filter::FilterArgs;
use crate::args::OutputArgs;

pub const REPORT_EXAMPLES: &str = "\
Examples:
  plimsoll report last -o report.html
  plimsoll report RUN1 RUN2 RUN3 --by size,op,label:tier --markdown
  plimsoll report RUN1 RUN2 --title Tiers --columns op/s,p99 -o tiers.html

RUN is an id (or the start of one), a run directory, a packed run (.plim), or `last`.";

#[derive(Debug, Clone, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportCommand {
    /// Runs: id, directory, or `last`
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Write one self-contained HTML file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub html_file: Option<PathBuf>,
    /// Group lines by size, op, concurrency or label:NAME
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Title of the report [default: what was measured]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Columns of the table of several runs: op/s, MiB/s, p50, p99, Lines, Left out [default: all]
    #[arg(long, value_name = "HEAD,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub const RUNS_EXAMPLES: &str = "\
Examples:
  plimsoll runs list
  plimsoll runs list --label tier=standard --op get --since 7d
  plimsoll runs show last
  plimsoll runs export --what slices --format csv --label tier=standard
  plimsoll runs pack last -o run.plim
  plimsoll runs unpack run.plim
  plimsoll runs rm RUN";

#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first
    List(ListRunsArgs),
    /// Show one run
    Show(OneRunArgs),
    /// Write runs, lines, slices or latencies as tables for notebooks and databases, or points and metrics
    Export(ExportRunsArgs),
    /// Pack a run into one file (.plim) for somebody else
    Pack(PackRunArgs),
    /// Unpack a packed run; a run that is there is never overwritten
    Unpack(UnpackRunArgs),
    /// Remove stored runs; run `plimsoll cleanup` first to remove what they left in storage
    Rm(RemoveRunsArgs),
}

pub const LIST_EXAMPLES: &str = "\
Examples:
  plimsoll runs list
  plimsoll runs list --label tier=standard --op get,put --since 7d
  plimsoll runs list --validity valid,partly --target s3.example.net --csv

What each run says of itself is kept in an index in the user's cache directory, so that only what is new is read. It is \
remade whenever it is lost or damaged.";

#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListRunsArgs {
    /// Print JSON
    #[arg(long, group = "list_form")]
    pub json: bool,
    /// Print CSV
    #[arg(long, group = "list_form")]
    pub csv: bool,
    #[command(flatten)]
    pub filter: FilterArgs,
}

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  plimsoll runs export --what runs --format csv -o runs.csv
  plimsoll runs export --what lines --format jsonl --label tier=standard
  plimsoll runs export last --what slices -o slices.csv
  plimsoll runs export RUN1 RUN2 --what latency --format csv
  plimsoll runs export last --what agents --format csv
  plimsoll runs export last --format bmf -o bencher.json
  plimsoll runs export last --format influx -o points.lp

Units are in the names of the columns: _s, _ns, _bytes, _ops, _per_s. Cells that are not known are empty (CSV) or null. \
Percentiles of slices are of each slice alone and cannot be averaged; --what latency counts ops in buckets that can be \
added up.";

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportedWhat {
    /// A run
    Runs,
    /// A line of results: an op of a workload
    Lines,
    /// A slice of time of a series, 100 ms or longer
    Slices,
    /// A bucket of the latencies of a line
    Latency,
    /// An agent of a run over a fleet
    Agents,
    /// A resource of the servers that were observed
    Servers,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportForm {
    /// RFC 4180, with heads
    Csv,
    /// A JSON object in each line
    Jsonl,
    /// Bencher's Metric Format: valid lines as metrics
    Bmf,
    /// InfluxDB's line protocol: lines, slices and latencies as points
    Influx,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportRunsArgs {
    /// Runs: id, directory, packed run or `last` [default: all that the filters leave]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// What a row is about (csv and jsonl)
    #[arg(long, value_name = "WHAT", default_value = "lines")]
    pub what: ExportedWhat,
    /// How it is written
    #[arg(long, value_name = "FORM", default_value = "csv")]
    pub format: ExportForm,
    /// Write to this new file [default: stdout]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterArgs,
}

pub const PACK_EXAMPLES: &str = "\
Examples:
  plimsoll runs pack last
  plimsoll runs pack RUN -o run.plim

The file is the whole record, as it is: keys are never in it, but names of hosts, endpoints and buckets are, and nothing \
can be left out without breaking its seal. For results without such names: plimsoll publish --redact.";

#[derive(Debug, Clone, Args)]
#[command(after_help = PACK_EXAMPLES)]
pub struct PackRunArgs {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// File to write; it must not exist [default: RUN.plim]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

pub const UNPACK_EXAMPLES: &str = "\
Examples:
  plimsoll runs unpack run.plim
  plimsoll report run.plim

Hashes are checked; a file that holds anything but one whole run is refused, and nothing is left of it. `report`, \
`compare`, `scale` and `runs show` read a packed run without unpacking it for good.";

#[derive(Debug, Clone, Args)]
#[command(after_help = UNPACK_EXAMPLES)]
pub struct UnpackRunArgs {
    /// Packed runs
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
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

pub const CLEANUP_EXAMPLES: &str = "\
Examples:
  plimsoll cleanup last --dry-run
  plimsoll cleanup RUN

The run's journal lists what to remove. Nothing else is touched.";

#[derive(Debug, Clone, Args)]
#[command(after_help = CLEANUP_EXAMPLES)]
pub struct CleanupCommand {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Print what would be removed, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove what the run was told to keep (--keep)
    #[arg(long)]
    pub kept: bool,
    /// Confirm that this endpoint, from the plan of a run directory made elsewhere, is yours; may be repeated
    #[arg(long, value_name = "URL")]
    pub endpoint: Vec<String>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

pub const ANALYZE_EXAMPLES: &str = "\
Examples:
  plimsoll analyze last
  plimsoll analyze RUN1 RUN2 --json

The raw data of a run is not changed. A newer plimsoll judges an old run by its newer methods.";

#[derive(Debug, Clone, Args)]
#[command(after_help = ANALYZE_EXAMPLES)]
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
  plimsoll compare --names replica3,ec --html compare.html \\
      A1 A2 A3 A4 A5 -- B1 B2 B3 B4 B5

Alternate the runs (A, B, B, A) so that drift affects both alike. They are then compared in pairs, in the order \
given: A1 with B1, A2 with B2. Without --names, the sides are named by a label that differs between them.";

#[derive(Debug, Clone, Args)]
#[command(after_help = COMPARE_EXAMPLES, override_usage = "plimsoll compare [OPTIONS] <A>... -- <B>...")]
pub struct CompareCommand {
    /// Runs of the first configuration
    #[arg(value_name = "A", required = true)]
    pub a: Vec<String>,
    /// Runs of the second configuration
    // Not required here: without `--` the parser would only say that it is missing.
    #[arg(value_name = "B", last = true)]
    pub b: Vec<String>,
    /// Names of the two configurations
    #[arg(long, value_name = "A,B", value_parser = crate::values::two_names)]
    pub names: Option<(String, String)>,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub const SCALE_EXAMPLES: &str = "\
Examples:
  # repeat five times, then the same with 8 and with 12 nodes
  plimsoll object sweep ... --label nodes=4
  plimsoll scale RUN... --html scale.html

Efficiency is computed without a model. Predictions need at least three numbers of nodes with three runs each.";

#[derive(Debug, Clone, Args)]
#[command(after_help = SCALE_EXAMPLES)]
pub struct ScaleCommand {
    /// Runs, one or more for each number of nodes
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub runs: Vec<String>,
    /// Label that holds the number of nodes
    #[arg(long, value_name = "NAME", default_value = "nodes")]
    pub label: String,
    #[command(flatten)]
    pub output: OutputArgs,
}
