//! `plimsoll import`: results of other tools as runs.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputArgs;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  plimsoll import fio.json
  plimsoll import warp-get-2026-11-23.csv.zst --label cfg=before
  plimsoll import before-*.json --label cfg=before
  plimsoll compare cfg=before -- cfg=after

Files are recognised by their content:
  fio         --output-format=json or json+, fio 2 and 3
  warp        .csv.zst: every request, a full run; .json.zst: its summary
  elbencho    --csvfile, --jsonfile
  GoBonnieGo  -json
  iperf3      -J
  a packed run of ours: .plim, as from plimsoll runs pack

Figures that a tool printed have no interval unless the file has the data for one. A file that is damaged, or of a \
version that is not known, is refused, and nothing is stored (exit code 2). The exit code is that of `plimsoll analyze` \
of what was imported: 3 where the figures are invalid (fio ended with an error), of several \
files the worst.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportCommand {
    /// Result files of other tools, or packed runs
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Name of the runs [default: tool and jobs]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add a label to the runs, for example cfg=before; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,
    #[command(flatten)]
    pub output: OutputArgs,
}
