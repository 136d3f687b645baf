//! What a report is made of: the summary, the analysis beside it, and the series over time, read once.

use plimsoll_model::text::clean;
use plimsoll_model::{Analysis, RunSummary};
use plimsoll_store::{LoadOptions, RunData, RunDir, RunRecords, Seal, StoreError, Window};
use serde::{Deserialize, Serialize};

use crate::lines::{self, Line};
use crate::outside::cleaned;
use crate::spectrum::{self, Spectrum};

/// Points over time per series when one run is shown alone.
const MAX_POINTS: u64 = 900;
const MAX_SAMPLES: usize = 600;
const SECOND_NS: u64 = 1_000_000_000;
/// Fewer points than this make a poor chart: the step is refined.
const MIN_POINTS: usize = 40;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run directory could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Plain data should always be JSON: our bug.
    #[error("the page data could not be written: {0}")]
    Json(#[from] serde_json::Error),
    /// What was given in place of a key.
    #[error("cannot group by '{0}': write size, op, concurrency, workload, run, or label:NAME")]
    Group(String),
    /// A column that the table of several runs has not.
    #[error("'{asked}' is not a column of the table of runs: it has {known}")]
    Column {
        /// As it was written.
        asked: String,
        /// All that there are.
        known: String,
    },
}

/// One run, ready to be shown.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// As it is on disk, cleaned.
    pub summary: RunSummary,
    /// Empty when there is none, or when it is of another version.
    pub analysis: Analysis,
    /// Absent when only the summary could be read; the report then has no charts over time.
    pub series: Option<RunSeries>,
    /// What is missing from this report, and why.
    pub gaps: Vec<String>,
    /// Of the raw data; absent when the run never ended in order.
    pub seal: Option<SealMark>,
}

/// What the seal says of the raw data, in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealMark {
    /// How many raw files it covers.
    pub files: usize,
    /// Bytes of them all.
    pub bytes: u64,
    /// XXH3-128 of the series, hexadecimal; of several agents, the first by name.
    pub xxh3: String,
}

impl SealMark {
    fn of(seal: &Seal) -> Self {
        let series = seal.files.iter().find(|(name, _)| name.starts_with("intervals"));
        Self {
            files: seal.files.len(),
            bytes: seal.files.values().map(|f| f.bytes).sum(),
            xxh3: series.or(seal.files.iter().next()).map_or(String::new(), |(_, f)| f.xxh3.clone()),
        }
    }
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
        Self { summary, analysis: Analysis::default(), series: None, gaps: Vec::new(), seal: None }
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
        Err(e) => report.gaps.push(format!("The analysis is not available: {e}.")),
    }
    Ok(with_series(dir, dir, report, runs))
}

/// The same of a run whose summary and analysis are not on disk: of one that goes on, or was killed.
pub fn read_as_judged(
    dir: &RunDir,
    records: &dyn RunRecords,
    summary: RunSummary,
    analysis: Analysis,
) -> RunReport {
    with_series(dir, records, RunReport { analysis, ..RunReport::of(summary) }, 1)
}

fn with_series(dir: &RunDir, records: &dyn RunRecords, mut report: RunReport, runs: usize) -> RunReport {
    match load(records, &report, runs) {
        Ok(series) => {
            // The last frame of a file that grows may be there in part.
            let files = series.data.damage.iter().filter(|_| !series.data.running);
            report.gaps.extend(files.map(|d| format!("A file could not be read completely: {d}.")));
            if !series.data.skipped.is_empty() {
                report.gaps.push(format!("Records unknown to this version: {}.", series.data.skipped));
            }
            report.series = Some(series);
        }
        Err(e) => report.gaps.push(format!("The time series could not be read: {e}.")),
    }
    match dir.sealed() {
        Ok(seal) => report.seal = seal.as_ref().map(SealMark::of),
        Err(e) => report.gaps.push(format!("The seal could not be read: {e}.")),
    }
    report.summary = cleaned(report.summary);
    report.analysis = cleaned(report.analysis);
    report.gaps.iter_mut().for_each(|gap| *gap = clean(gap).into_owned());
    report
}

fn load(records: &dyn RunRecords, report: &RunReport, runs: usize) -> Result<RunSeries, StoreError> {
    let max_points = (3 * MAX_POINTS / runs.max(3) as u64).max(120);
    let max_samples = (3 * MAX_SAMPLES / runs.max(3)).max(60);
    let options = |step_ns| LoadOptions { step_ns: Some(step_ns), max_points, max_samples };
    let mut data = records.load(&options(SECOND_NS))?;
    if data.stages.iter().map(|s| s.client.len()).sum::<usize>() < MIN_POINTS {
        data = records.load(&options(SECOND_NS / 5))?;
    }
    let lines = lines::of(&report.summary, &report.analysis, &data);
    let mut windows: Vec<Window> = lines.iter().filter_map(|l| l.window).collect();
    windows.sort_by_key(|w| (w.stage, w.from, w.to));
    windows.dedup();
    let totals = records.totals(&windows, 0)?;
    let spectra = spectrum::of(&report.summary, &lines, &totals);
    Ok(RunSeries { data, lines, spectra })
}
