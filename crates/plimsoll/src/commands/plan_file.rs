//! `plimsoll run PLAN.toml`: a plan from a file, or the rest of a sweep that was killed.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use plimsoll_model::plan::Plan;

use crate::args::{AboutArgs, OutputArgs};
use crate::fault::Fault;

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
    /// Continue a run that was killed: its id, its directory, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "plan")]
    pub resume: Option<String>,
    /// Use this seed instead of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Keep what the run creates
    #[arg(long)]
    pub keep: bool,
    /// Print the plan and what would happen, and exit
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub about: AboutArgs,
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
        self.about.lay_over(&mut plan)?;
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
        read_bounded(std::io::stdin())
    } else {
        std::fs::File::open(path).and_then(read_bounded)
    };
    read.map_err(|e| {
        Fault::input(
            format!("{what} {} cannot be read: {e}", path.display()),
            "Check the path and its permissions.",
        )
    })
}

/// A device, or a pipe without an end, is no file of ours.
const MOST_TEXT: u64 = 16 << 20;

fn read_bounded(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    let length = from.take(MOST_TEXT + 1).read_to_string(&mut text)?;
    if length as u64 > MOST_TEXT {
        return Err(std::io::Error::other(format!("it is longer than {} MiB", MOST_TEXT >> 20)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_not_read_to_it() {
        assert_eq!(read_bounded(&b"version = 1"[..]).unwrap(), "version = 1");
        assert!(read_bounded(std::io::repeat(b'#')).unwrap_err().to_string().contains("longer than 16 MiB"));
        let fault = read_text(std::path::Path::new("/dev/zero"), "the campaign").unwrap_err();
        assert!(fault.to_string().contains("longer than 16 MiB"));
    }
}
