//! What a report is made of: the summary, the analysis beside it, and the series over time, read once.

use plimsoll_model::text::clean;
use plimsoll_model::{Analysis, RunSummary};
use plimsoll_store::{LoadOptions, RunData, RunDir, StoreError, Window};

use crate::lines::{self, Line};
use crate::outside::cleaned;
use crate::spectrum::{self, Spectrum};

/// Points over time per series when one run is shown alone.
const MAX_POINTS: u64 = 900;
const MAX_SAMPLES: usize = 600;
const SECOND_NS: u64 = 1_000_000_000;
/// Fewer points than this make a poor chart: the step is refined.
const MIN_POINTS: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the page data could not be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("'{0}' is nothing to group by: write size, op, concurrency, workload, run, or label:NAME")]
    Group(String),
}

/// One run, ready to be shown.
#[derive(Debug, Clone)]
pub struct RunReport {
    pub summary: RunSummary,
    /// Empty when there is none, or when it is of another version.
    pub analysis: Analysis,
    /// Absent when only the summary could be read; the report then has no charts over time.
    pub series: Option<RunSeries>,
    /// What is missing from this report, and why.
    pub gaps: Vec<String>,
}

/// The raw data, reduced.
#[derive(Debug, Clone)]
pub struct RunSeries {
    pub data: RunData,
    /// Which series belongs to which line of the summary.
    pub lines: Vec<Line>,
    pub spectra: Vec<Spectrum>,
}

impl RunReport {
    /// A report of the summary alone.
    pub fn of(summary: RunSummary) -> Self {
        Self { summary, analysis: Analysis::default(), series: None, gaps: Vec::new() }
    }
}

/// Reads a run for a report that shows `runs` of them: the more runs, the fewer points of each.
///
/// The summary is needed; whatever else cannot be read is named in [`RunReport::gaps`].
pub fn read(dir: &RunDir, runs: usize) -> Result<RunReport, ReportError> {
    let summary = dir.summary()?;
    let mut report = RunReport::of(summary);
    match dir.analysis() {
        Ok(analysis) => report.analysis = analysis,
        Err(e) => report.gaps.push(format!("There is no analysis to show: {e}.")),
    }
    match load(dir, &report, runs) {
        Ok(series) => {
            let files = series.data.damage.iter();
            report.gaps.extend(files.map(|d| format!("A file could not be read to its end: {d}.")));
            if !series.data.skipped.is_empty() {
                report
                    .gaps
                    .push(format!("Records that this version does not know: {}.", series.data.skipped));
            }
            report.series = Some(series);
        }
        Err(e) => report.gaps.push(format!("The series over time could not be read: {e}.")),
    }
    report.summary = cleaned(report.summary);
    report.analysis = cleaned(report.analysis);
    report.gaps.iter_mut().for_each(|gap| *gap = clean(gap).into_owned());
    Ok(report)
}

fn load(dir: &RunDir, report: &RunReport, runs: usize) -> Result<RunSeries, StoreError> {
    let max_points = (3 * MAX_POINTS / runs.max(3) as u64).max(120);
    let max_samples = (3 * MAX_SAMPLES / runs.max(3)).max(60);
    let options = |step_ns| LoadOptions { step_ns: Some(step_ns), max_points, max_samples };
    let mut data = dir.load(&options(SECOND_NS))?;
    if data.stages.iter().map(|s| s.client.len()).sum::<usize>() < MIN_POINTS {
        data = dir.load(&options(SECOND_NS / 5))?;
    }
    let lines = lines::of(&report.summary, &report.analysis, &data);
    let mut windows: Vec<Window> = lines.iter().filter_map(|l| l.window).collect();
    windows.sort_by_key(|w| (w.stage, w.from, w.to));
    windows.dedup();
    let totals = dir.totals(&windows)?;
    let spectra = spectrum::of(&report.summary, &lines, &totals);
    Ok(RunSeries { data, lines, spectra })
}
