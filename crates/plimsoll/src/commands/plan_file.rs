//! `plimsoll run PLAN.toml`: a plan from a file, or the rest of a sweep that was killed.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::plan::Plan;

use crate::args::OutputArgs;
use crate::fault::Fault;
use crate::values;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll run plans/sim.toml
  plimsoll object put --endpoint http://127.0.0.1:9000 --bucket bench \\
      --dry-run > plan.toml && plimsoll run plan.toml
  plimsoll run --resume last";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunCommand {
    /// Plan in TOML; - reads standard input
    #[arg(value_name = "PLAN.toml", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,
    /// Go on with a run that was killed: its id, its directory, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "plan")]
    pub resume: Option<String>,
    /// Seed in place of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Mark the run, for example tier=standard; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,
    /// A promise to check, for example 'get.ops_per_s >= 800 +-1%'; may be repeated
    #[arg(long = "expect", value_name = "PROMISE")]
    pub expect: Vec<String>,
    /// Keep what the run created
    #[arg(long)]
    pub keep: bool,
    /// Print the plan and what would happen, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl RunCommand {
    /// The plan of `text`, with the flags laid over it.
    pub fn plan(&self, text: &str) -> Result<Plan, Fault> {
        let mut plan = Plan::from_toml(text)?;
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        plan.options.keep |= self.keep;
        plan.labels.extend(self.labels.iter().cloned());
        plan.expect.extend(self.expect.iter().cloned());
        Ok(plan)
    }

    pub fn read(&self) -> Result<String, Fault> {
        let path = self.plan.as_deref().expect("clap requires PLAN or --resume");
        read_text(path, "the plan")
    }
}

/// The text of a file, or of standard input for `-`.
pub fn read_text(path: &std::path::Path, what: &str) -> Result<String, Fault> {
    let read = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|e| {
        Fault::input(
            format!("{what} {} cannot be read: {e}", path.display()),
            "Check the path and its permissions.",
        )
    })
}
