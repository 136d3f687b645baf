//! `plimsoll replicate`: a publication measured again, side by side with what it says.

use std::path::PathBuf;

use clap::Args;

use super::campaign::CampaignArgs;

const REPLICATE_EXAMPLES: &str = "\
Examples:
  plimsoll replicate object-tiers --embedded
  plimsoll replicate disks --embedded --dry-run
  plimsoll replicate their-site/ --dry-run
  plimsoll replicate their-site/ --allow-hooks -o again.toml
  plimsoll replicate tiers.toml --published their-site/ --markdown

The campaign of WHAT is measured here, as `plimsoll campaign run` would; then what
was published, what was measured, and the difference with its 95 % interval stand
side by side. On other hardware only what has no dimension is compared: shares of
what is promised, ratios of tiers, of PUT and GET, knees, cliffs. Given again, the
command goes on where it was interrupted; once complete, it only compares.

Of a site, commands, devices whose data would be destroyed, and the use of your
credentials are shown, and taken only with --allow-hooks.

Exit codes: 0 compared, whatever the difference; 3 a cell has no valid run; 5 cells
are missing; 2 nothing was measured.";

#[derive(Debug, Clone, Args)]
#[command(after_help = REPLICATE_EXAMPLES)]
pub struct ReplicateCommand {
    /// A campaign's file, a folder made by `plimsoll publish`, or a template (object-tiers, cluster-speed, gateway-cluster,
    /// block-tiers, disks)
    #[arg(value_name = "WHAT")]
    pub what: String,
    /// Of a template the small one, which runs on this machine
    #[arg(long)]
    pub embedded: bool,
    /// Where our campaign's file is written, if WHAT is none [default: NAME.toml]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What was published: a TOML file of figures, or a folder made by `plimsoll publish` [default: what WHAT has]
    #[arg(long, value_name = "FILE|SITE")]
    pub published: Option<PathBuf>,
    /// It was measured on what is measured here: compare absolute figures, too
    #[arg(long)]
    pub same_hardware: bool,
    /// Show what would be measured, and exit
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub with: CampaignArgs,
}
