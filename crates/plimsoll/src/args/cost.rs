//! What a run costs: prices, and a budget of money.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use clap::Args;
use plimsoll_model::cost::{CostOptions, Money, PriceFile};

use crate::commands::plan_file::read_text;
use crate::fault::Fault;

const HEADING: &str = "Cost";

/// Of every command that measures.
#[derive(Debug, Clone, Default, Args)]
pub struct CostArgs {
    /// Your prices (TOML, as prices/examples.toml): the result has figures in money, and --dry-run says what the run costs
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub prices: Option<PathBuf>,
    /// Which of the subjects in --prices is measured [default: the only one]
    #[arg(long, value_name = "NAME", requires = "prices", help_heading = HEADING)]
    pub subject: Option<String>,
    /// Refuse to start if the run may cost more than this, for example 20USD, and end it when what was sent comes to it
    /// (exit code 8)
    #[arg(long, value_name = "MONEY", requires = "prices", help_heading = HEADING)]
    pub budget_cost: Option<Money>,
}

impl CostArgs {
    /// What was given; none: no prices. The file is read.
    pub fn options(&self) -> Result<Option<CostOptions>, Fault> {
        let Some(path) = &self.prices else { return Ok(None) };
        let (file, hash) = read_prices(path)?;
        let options = CostOptions::of(&file, &hash, self.subject.as_deref(), self.budget_cost.clone());
        options.check().map_err(|e| Fault::input(e.problem, e.remedy))?;
        Ok(Some(options))
    }
}

/// A file of prices, with its SHA-256 in hex.
pub fn read_prices(path: &Path) -> Result<(PriceFile, String), Fault> {
    let text = read_text(path, "the prices")?;
    let file = plimsoll_cost::parse(&text).map_err(|e| {
        Fault::input(
            format!("the prices in {} cannot be used: {e}", path.display()),
            "Compare with prices/examples.toml: unknown keys are errors, so that no price is left out by a typo.",
        )
    })?;
    let hash = digest(&SHA256, text.as_bytes());
    Ok((file, hash.as_ref().iter().map(|b| format!("{b:02x}")).collect()))
}
