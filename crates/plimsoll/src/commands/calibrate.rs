//! `plimsoll calibrate`: what this machine can drive at most, against targets that cost nothing.

use clap::Args;
use plimsoll_model::units::Span;

use crate::args::OutputArgs;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll calibrate
  plimsoll calibrate --duration 2s --json

The figures are kept, and later runs on this machine are held against them: a result near the ceiling is
the client's, not the storage's.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateCommand {
    /// Length of each measurement
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub duration: Span,
    #[command(flatten)]
    pub output: OutputArgs,
}
