//! `plimsoll file`: the write, read and IOPS benchmark of a directory.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::units::{Size, Span};

use crate::args::OutputArgs;
use crate::values;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll file /mnt/data --runs 10
  plimsoll file /mnt/data --size 32GiB --threads 8 --iops-duration 60s --json
  plimsoll file --dir /mnt/data --format gobonniego

Three phases a run: write files of twice the memory in 64 KiB blocks, read them, then 512-byte reads and \
writes (nine to one) at random places. Where the original misleads, this corrects it and says so; \
--original switches corrections off by name.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct FileCommand {
    /// Directory to measure
    #[arg(value_name = "DIR", required_unless_present = "directory")]
    pub dir: Option<PathBuf>,
    /// The same, as a flag
    #[arg(long = "dir", value_name = "DIR", conflicts_with = "dir")]
    pub directory: Option<PathBuf>,
    /// Times to run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Bytes of all files together, for example 32GiB; a number alone is in GiB, as with GoBonnieGo: 0.25
    /// [default: twice the memory]
    #[arg(long, value_name = "SIZE", value_parser = values::size_or_gib)]
    pub size: Option<Size>,
    /// Files, each with a thread of its own [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Length of the IOPS phase
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub iops_duration: Span,
    /// Do as the original does: fsync (none at the end of write), unique (repeating blocks), aligned (offsets
    /// anywhere), fresh (the same data written again), cache (read from it without a word), or all
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', value_parser = ["fsync", "unique", "aligned", "fresh", "cache", "all"])]
    pub original: Vec<String>,
    /// Form of --json
    #[arg(long, value_name = "FORM", value_parser = ["plimsoll", "gobonniego"], default_value = "plimsoll")]
    pub format: String,
    /// Seed of data and offsets [default: a new one]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Hold the run against a ceiling: a run of `plimsoll drive`, or the file of its --json
    #[arg(long, value_name = "RUN|FILE")]
    pub ceiling: Option<String>,
    /// Print what would happen, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
