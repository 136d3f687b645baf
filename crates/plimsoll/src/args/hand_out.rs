//! Results for other programs, beside what is printed.

use std::path::PathBuf;

use clap::Args;

const OTHERS: &str = "For other programs";

/// Files and databases that get the result, too.
#[derive(Debug, Clone, Default, Args)]
pub struct HandOutArgs {
    /// Write the points of the run in InfluxDB's line protocol to this file, or post them to this address: http://HOST:8086/write?db=DB
    /// (InfluxDB 1), .../api/v2/write?org=ORG&bucket=BUCKET (2) or .../api/v3/write_lp?db=DB (3); a token is taken from INFLUX_TOKEN
    #[arg(long, value_name = "FILE|URL", help_heading = OTHERS)]
    pub influx: Option<String>,
    /// CA certificates (PEM) for --influx over https [default: those of this machine]
    #[arg(long, value_name = "FILE", requires = "influx", help_heading = OTHERS)]
    pub influx_ca_file: Option<String>,
    /// Write the valid lines in Bencher's Metric Format (JSON) to this file, for `bencher run --adapter json --file`
    #[arg(long, value_name = "FILE", help_heading = OTHERS)]
    pub bmf: Option<PathBuf>,
    /// Write a summary for pull requests and CI jobs in Markdown to this file
    #[arg(long, value_name = "FILE", help_heading = OTHERS)]
    pub summary_md: Option<PathBuf>,
    /// Add that summary to the page of the GitHub Actions job: to the file that GITHUB_STEP_SUMMARY names
    #[arg(long, help_heading = OTHERS)]
    pub step_summary: bool,
}
