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

/// Judges a run that no seal vouches for: what is stored beside its record is believed no more than that record says, and replaced where
/// it is another judgement. Whether it was.
pub fn judge_anew(run: &RunDir) -> Result<bool, StoreError> {
    let (summary, analysis) = by_record(run)?;
    // A run on a medium that is only read can be shown, too.
    if run.holds_results(&summary, &analysis)? {
        return Ok(false);
    }
    let was_there = run.summary_is_there();
    run.write_analysis(&analysis)?;
    run.write_summary(&summary)?;
    Ok(was_there)
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
