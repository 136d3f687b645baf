//! `plimsoll check`: what a person on call runs to see whether the storage is slower than it was.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::OpKind;
use plimsoll_model::plan::bounds::MAX_EXISTING;
use plimsoll_model::units::{Size, Span};

use crate::values;

const WHAT: &str = "What is read";
const OUTPUT: &str = "Output";

const EXAMPLES: &str = "\
Examples:
  plimsoll check --against last
  plimsoll check --against tier=gold --for 2m
  plimsoll check --against 20261122-031502-8c1f --bucket photos --prefix 2026/
  plimsoll check --against last --path /srv/db/data.1 --json

It prints one line, beginning with OK, SLOWER, FAILING or UNKNOWN, and ends with
exit code 0 (OK), 4 (SLOWER, FAILING), 5 (UNKNOWN) or 3 (UNKNOWN, because the
measurement is void: the line says why).

Nothing is written to the storage: it lists and reads objects that are there, or
reads a file or device that is there. Credentials that may list and read will do.

The check is kept as a run: a later `plimsoll check --against last` is held
against it at the same load, which tells more than a run under full load.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckCommand {
    /// What it is held against: a run (id, directory or `last`), or a label such as tier=gold (the newest run that has it and
    /// read). It also names the storage, the op and the size
    #[arg(long, value_name = "RUN|NAME=VALUE")]
    pub against: String,
    /// Length of the check
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub time: Span,
    /// Share of the baseline's ops and bytes per second that is never exceeded [default: 5%, or that of an earlier check]
    #[arg(long, value_name = "SHARE", value_parser = load_share)]
    pub max_load: Option<f64>,

    /// Bucket to read from [default: the baseline's]
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    pub bucket: Option<String>,
    /// Read objects whose keys begin with this [default: where the baseline read or wrote by wish, or the whole bucket]
    #[arg(long, value_name = "PREFIX", help_heading = WHAT)]
    pub prefix: Option<String>,
    /// File or device to read [default: the baseline's]
    #[arg(long, value_name = "FILE|DEVICE", help_heading = WHAT)]
    pub path: Option<PathBuf>,
    /// Which of the baseline's ops: get, get-range, stat or read [default: the first that it has]
    #[arg(long, value_name = "OP", value_parser = values::op_kind, help_heading = WHAT)]
    pub op: Option<OpKind>,
    /// Which of the baseline's sizes [default: the first that it has]
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub size: Option<Size>,
    /// Objects that are read at the most; the listing ends when so many are found
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = WHAT,
          value_parser = clap::value_parser!(u64).range(1..=MAX_EXISTING))]
    pub objects: u64,

    /// Print the verdict as JSON, with its figures and the path of the run's summary
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Nothing on stderr but errors
    #[arg(long, short = 'q', help_heading = OUTPUT)]
    pub quiet: bool,
    /// Mark the run of the check, for example check=gold; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label, help_heading = OUTPUT)]
    pub labels: Vec<(String, String)>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS", help_heading = OUTPUT)]
    pub runs_dir: Option<PathBuf>,
}

/// `5%` or `0.05`: above zero, and no more than the baseline's own load.
fn load_share(s: &str) -> Result<f64, String> {
    values::share(s)
        .ok()
        .filter(|v| *v > 0.0)
        .ok_or_else(|| format!("'{s}' is no share of a load: write 5% or 0.05, above 0 and up to 100%"))
}
