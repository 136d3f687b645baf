//! `plimsoll file`: the write, read and IOPS benchmark of a directory.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::units::{Size, Span};

use crate::args::{AboutArgs, OutputArgs};
use crate::values;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll file /mnt/data --runs 10
  plimsoll file /mnt/data --memory 512MiB --runs 10
  plimsoll file /mnt/data --size 32GiB --threads 8 --iops-duration 60s --json
  plimsoll file --dir /mnt/data --format gobonniego

Each run has three phases: write files that total twice the memory in 64 KiB blocks, read them, then read and \
write 512 bytes at random offsets (nine reads to one write). This is GoBonnieGo's benchmark. Where the original \
is misleading, plimsoll corrects it and says so; --original turns named corrections off.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct FileCommand {
    /// Directory to measure
    #[arg(value_name = "DIR", required_unless_present = "directory")]
    pub dir: Option<PathBuf>,
    /// Same as DIR
    #[arg(long = "dir", value_name = "DIR", conflicts_with = "dir")]
    pub directory: Option<PathBuf>,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Total size of all files, for example 32GiB; a number without a unit is in GiB, as in GoBonnieGo: 0.25
    /// [default: twice the memory]
    #[arg(long, value_name = "SIZE", value_parser = values::size_or_gib)]
    pub size: Option<Size>,
    /// Let this command use no more than this much memory, page cache included, so that files of twice the size are
    /// enough; needs root
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Number of files, each with its own thread [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Length of the IOPS phase
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub iops_duration: Span,
    /// Behave as the original: fsync (no fsync after the write phase), unique (repeat blocks), aligned (unaligned
    /// offsets), fresh (write the same data again), cache (read from the page cache without warning), or all
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', value_parser = ["fsync", "unique", "aligned", "fresh", "cache", "all"])]
    pub original: Vec<String>,
    /// Format of --json
    #[arg(long, value_name = "FORM", value_parser = ["plimsoll", "gobonniego"], default_value = "plimsoll")]
    pub format: String,
    /// Seed for data and offsets [default: a new one for each run]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would happen, and exit
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub about: AboutArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
