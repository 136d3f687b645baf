//! `plimsoll mark`: what a person did, or saw, on the time axis of a run.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::units::Span;
use plimsoll_run::{analyze, remark};

use crate::fault::{Exit, Fault};
use crate::runs_dir;

const EXAMPLES: &str = "\
Examples:
  plimsoll mark last 'node 3 off'
  plimsoll mark RUN 'rebuild ended' --at 95s

The event is stored in the run directory and shown in its reports: terminal, JSON and the charts of the HTML page.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct MarkCommand {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What happened, in one line
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// When it happened, measured from the start of the run as in the charts [default: now]
    #[arg(long, value_name = "TIME")]
    pub at: Option<Span>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

pub fn mark(c: &MarkCommand) -> Result<Exit, Fault> {
    let text = c.text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Fault::input(
            "the text is empty or contains control characters",
            "Write one line of text.",
        ));
    }
    let run = runs_dir::find(c.runs_dir.as_deref(), &c.run)?;
    let going = run.is_running();
    let at_s = match c.at {
        Some(at) => at.0.as_secs_f64(),
        None if going => remark::now_s(&run)?.ok_or_else(|| {
            Fault::input(
                format!(
                    "run {} is in progress on another machine, whose clock cannot be read from here",
                    run.id()
                ),
                "Say when it happened, measured from the start of the run: --at 95s.",
            )
        })?,
        None => {
            return Err(Fault::input(
                format!("run {} has ended, so \"now\" is not on its time axis", run.id()),
                "Say when it happened, measured from the start of the run: --at 95s.",
            ));
        }
    };
    run.note(at_s, text)?;
    if !going && run.summary_is_there() {
        analyze(&run)?;
    }
    eprintln!("plimsoll: recorded in run {} at {at_s:.1} s: {text}", run.id());
    Ok(Exit::Valid)
}
