//! `plimsoll publish`: a campaign, or single runs, as a folder of static pages, tables, charts and data.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_publish::RedactKind;

const EXAMPLES: &str = "\
Examples:
  plimsoll publish tiers.toml
  plimsoll publish tiers.toml -o site --title Tiers
  plimsoll publish tiers.toml -o site --redact hosts,endpoints,buckets,addresses
  plimsoll publish tiers.toml -o site --images
  plimsoll publish tiers.toml -o site --with-runs
  plimsoll publish last -o site
  plimsoll publish cfg=before cfg=after -o site

The folder stands by itself: index.html opens from a disk or any web server, and
asks the network for nothing. In it: the answer, tables with intervals (also as
Markdown and CSV in tables/), charts (data in charts/), the campaign's file (of
runs their plans) as it was measured, all figures (data/result.json), and each run with its SHA-256. Void
and missing cells are marked. What looks like a key or password is left out.

The folder must be new, empty, or a publication of plimsoll that nobody changed:
then it is replaced in one step. Nothing else is overwritten or removed.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct PublishCommand {
    /// A campaign's file; or runs: an id (or the start of it), a directory, `last`, or NAME=VALUE for all with that label
    #[arg(value_name = "FILE|RUN", required = true)]
    pub what: Vec<String>,
    /// Folder of the publication
    #[arg(long, short = 'o', value_name = "DIR", default_value = "site")]
    pub output: PathBuf,
    /// Title of the pages [default: the campaign's name, or what was done]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Names to leave out of all files, each replaced by one that says nothing
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub redact: Vec<RedactedNames>,
    /// Write the charts as SVG and PNG files, too; needs a Chromium in PATH
    #[arg(long)]
    pub images: bool,
    /// Copy the run directories into the folder, as they are (refused where one has what looks like a secret); without it only their hashes are in it
    #[arg(long, conflicts_with = "redact")]
    pub with_runs: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedactedNames {
    /// Of machines and agents
    Hosts,
    /// Of storage: hosts in URLs
    Endpoints,
    /// Of object storage
    Buckets,
    /// IP addresses, wherever they stand
    Addresses,
}

impl From<RedactedNames> for RedactKind {
    fn from(name: RedactedNames) -> Self {
        match name {
            RedactedNames::Hosts => Self::Hosts,
            RedactedNames::Endpoints => Self::Endpoints,
            RedactedNames::Buckets => Self::Buckets,
            RedactedNames::Addresses => Self::Addresses,
        }
    }
}
