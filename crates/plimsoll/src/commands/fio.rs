//! `plimsoll fio`: runs fio job files.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::units::Span;

use crate::args::RunArgs;
use crate::values;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll fio job.fio
  plimsoll fio job.fio --set size=4GiB --set runtime=30s --output-format json+
  plimsoll fio job.fio --ignore-unknown --dry-run

Each key means what it means to fio; the sequence of offsets differs. An unsupported key is an error that \
names its line, unless --ignore-unknown is given.

The jobs' files are kept, as fio keeps them (unlink=1 in the job removes them). plimsoll cleanup RUN --kept \
removes those that the run created.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct FioCommand {
    /// Job file; - reads standard input
    #[arg(value_name = "JOB.fio")]
    pub job: PathBuf,
    /// Override a key in every job, for example size=4GiB; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::label, help_heading = "Job")]
    pub set: Vec<(String, String)>,
    /// Run only these sections; may be repeated
    #[arg(long = "section", value_name = "NAME", help_heading = "Job")]
    pub sections: Vec<String>,
    /// Ignore unsupported keys, and list them
    #[arg(long, help_heading = "Job")]
    pub ignore_unknown: bool,
    /// Device whose data may be destroyed: its path, /dev/disk/by-id name, or serial number
    #[arg(long, value_name = "DEVICE", help_heading = "Job")]
    pub destroy_data: Option<String>,
    /// Format of the result: plimsoll's own, or a list of fio's normal, json, json+
    #[arg(long, value_name = "FORM", default_value = "plimsoll", help_heading = "Output")]
    pub output_format: String,
    /// Write the result to this file instead of stdout
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// When to show progress
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = ["always", "never", "auto"], help_heading = "Output")]
    pub eta: String,
    /// Print the result so far at this interval, in the format of --output-format
    #[arg(long, value_name = "TIME", help_heading = "Output")]
    pub status_interval: Option<Span>,
    #[command(flatten)]
    pub run: RunArgs,
}
