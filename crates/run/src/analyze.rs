//! Judges what a run directory holds, now or at any later time, and writes the judgement beside it.

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::{Analysis, RunSummary};
use plimsoll_store::{LoadOptions, RunDir, StoreError};

/// Judges a run by what it recorded, and writes nothing.
pub fn judged_by_record(run: &RunDir) -> Result<RunSummary, StoreError> {
    Ok(by_record(run)?.0)
}

/// Judges a run and writes `analysis.json` and `summary.json` into its directory.
pub fn analyze(run: &RunDir) -> Result<RunSummary, StoreError> {
    let (summary, analysis) = by_record(run)?;
    run.write_analysis(&analysis)?;
    run.write_summary(&summary)?;
    Ok(summary)
}

fn by_record(run: &RunDir) -> Result<(RunSummary, Analysis), StoreError> {
    let data = run.load(&LoadOptions::default())?;
    let windows = windows_of(&data);
    // All in one pass over the files.
    let mut totals =
        run.totals(&[&windows.measured[..], &windows.whole[..]].concat(), windows.measured.len())?;
    let whole = totals.split_off(windows.measured.len());
    Ok(judge(&data, &totals, &whole, &run.altered_files()?))
}
