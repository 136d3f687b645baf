//! `plimsoll cost`: a run that exists, in money.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::cost::CostOptions;
use plimsoll_report::{Style, cost_csv, cost_markdown, cost_terminal};
use plimsoll_store::LoadOptions;

use crate::args::CostArgs;
use crate::fault::{Exit, Fault};
use crate::{output, runs_dir};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll cost last --prices prices/examples.toml --subject aws-gp3-256
  plimsoll cost RUN --prices prices.toml --json

Prices are yours: a file with their date, region and source. prices/examples.toml shows what can be written in it. \
Without --prices the run's own are used, where it was given any.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CostCommand {
    /// Run: id, directory, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Your prices (TOML, as prices/examples.toml)
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Which of the subjects in --prices was measured [default: the only one]
    #[arg(long, value_name = "NAME", requires = "prices")]
    pub subject: Option<String>,
    /// Print JSON
    #[arg(long, group = "cost_form")]
    pub json: bool,
    /// Print Markdown
    #[arg(long, group = "cost_form")]
    pub markdown: bool,
    /// Print CSV
    #[arg(long, group = "cost_form")]
    pub csv: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

pub fn cost(c: &CostCommand) -> Result<Exit, Fault> {
    let dir = runs_dir::find(c.runs_dir.as_deref(), &c.run)?;
    runs_dir::judged(&dir)?;
    let options = prices(c, &dir)?;
    let summary = dir.summary()?;
    let data = dir.load(&LoadOptions::step(1_000_000_000))?;
    let seen = plimsoll_judge::cost_seen(&data, &summary.workloads);
    let figures = plimsoll_cost::summary(&options, &seen).map_err(|e| Fault::input(e.problem, e.remedy))?;
    let figures = plimsoll_report::cleaned(figures);
    output::print(&if c.json {
        serde_json::to_string_pretty(&figures).expect("figures are plain data") + "\n"
    } else if c.markdown {
        cost_markdown(&figures, true)
    } else if c.csv {
        cost_csv(&figures)
    } else {
        cost_terminal(&figures, true, Style::for_stdout())
    })?;
    Ok(if figures.figures.is_empty() { Exit::Undetermined } else { Exit::Valid })
}

/// Those that are given, else the run's own.
fn prices(c: &CostCommand, dir: &plimsoll_store::RunDir) -> Result<CostOptions, Fault> {
    let given =
        CostArgs { prices: c.prices.clone(), subject: c.subject.clone(), budget_cost: None }.options()?;
    let own = || Ok::<_, Fault>(dir.plan()?.options.cost);
    match given {
        Some(prices) => Ok(prices),
        None => own()?.ok_or_else(|| {
            Fault::input(
                format!("run {} was given no prices", dir.id()),
                "Give them: --prices FILE (prices/examples.toml shows what to write).",
            )
        }),
    }
}
