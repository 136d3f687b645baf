//! Judges what a run directory holds, now or at any later time, and writes the judgement beside it.

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::RunSummary;
use plimsoll_store::{LoadOptions, RunDir, StoreError};

/// Judges a run and writes `analysis.json` and `summary.json` into its directory.
pub fn analyze(run: &RunDir) -> Result<RunSummary, StoreError> {
    let data = run.load(&LoadOptions::default())?;
    let windows = windows_of(&data);
    // All in one pass over the files.
    let mut totals = run.totals(&[&windows.measured[..], &windows.whole[..]].concat())?;
    let whole = totals.split_off(windows.measured.len());
    let (summary, analysis) = judge(&data, &totals, &whole, &run.altered_files()?);
    run.write_analysis(&analysis)?;
    run.write_summary(&summary)?;
    Ok(summary)
}
