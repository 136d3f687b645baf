//! What a run of a cell came to, in the few figures that a table has; and the table, with what the runs say together.

use std::collections::BTreeMap;

use plimsoll_model::claim::{BestConcurrency, ClaimKind};
use plimsoll_model::summary::{LimitSummary, WorkloadSummary};
use plimsoll_model::{Claim, Estimate, Level, RunSummary};
use serde::{Deserialize, Serialize};

use crate::cells::CampaignCell;
use crate::file::{CampaignFile, Promised, Repeats};
use crate::state::CampaignState;
use crate::stop::{mean_and_sd, over_runs};

/// One run of a cell, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CellRun {
    /// Name of the run; of one that was brought along its directory.
    pub run: String,
    /// From 0.
    pub repeat: u32,
    /// The run answered what it was asked: its figures may be used, but for those that say otherwise.
    pub answered: bool,
    /// The run's exit code.
    pub exit: u8,
    /// From the first step to the last, seconds: preparing and cleaning up included.
    pub took_s: f64,
    /// Payload that was moved, up and down, preparing included.
    pub bytes: u64,
    /// Ops, those that prepare and remove data included.
    pub requests: u64,
    /// One for each line of the run.
    pub figures: Vec<CellFigure>,
    /// What the run found to bind, by op.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<String, String>,
    /// Codes of what makes it void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
    /// What it made and could not remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// What one line of a run says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CellFigure {
    /// Tells it from the other lines of the run: `put/put`.
    pub line: String,
    /// `put`, ...; `total` of a mix.
    pub op: String,
    /// Nominal.
    pub size_bytes: u64,
    /// Its figures may be used.
    pub valid: bool,
    /// Ops that ended well, with the interval within the run.
    pub ops_per_s: Option<Estimate>,
    /// Their payload.
    pub bytes_per_s: Option<Estimate>,
    /// Median response.
    pub p50_ns: Option<u64>,
    /// The same at 99 %.
    pub p99_ns: Option<u64>,
    /// Share of attempts that were refused (429, 503), 0 to 1.
    #[serde(default)]
    pub refused: f64,
}

impl CellRun {
    /// Out of a run's summary. What it took (time, bytes, requests) is not in it.
    pub fn of_summary(summary: &RunSummary, repeat: u32, exit: u8) -> Self {
        let bound = summary.limits.iter().map(|l| (l.op_class.clone(), l.binding.clone())).collect();
        let void = summary.findings.iter().filter(|f| f.level == Level::Invalid).map(|f| f.code.clone());
        let mut void: Vec<String> = void.collect();
        void.sort();
        void.dedup();
        Self {
            run: summary.id.clone(),
            repeat,
            answered: summary.answered,
            exit,
            figures: figures(summary),
            bound,
            void,
            ..Self::default()
        }
    }
}

/// The answer of a search or a probe, where the run was one: the lines that it came from are of many loads. Else its lines.
fn figures(summary: &RunSummary) -> Vec<CellFigure> {
    let best = |c: &Claim| match &c.kind {
        ClaimKind::BestConcurrency(b) => Some(of_best(b, summary.answered)),
        _ => None,
    };
    let searched: Vec<CellFigure> = summary.claims.iter().filter_map(best).collect();
    if !searched.is_empty() {
        return searched;
    }
    let probed = |l: &&LimitSummary| [&l.ops_per_s, &l.bytes_per_s].into_iter().flatten().any(|b| b.proved);
    let limits: Vec<CellFigure> = summary.limits.iter().filter(probed).map(of_limit).collect();
    // A plain run of one load knows a cap, too; its line says more of it.
    if summary.workloads.len() > MOST_LINES && !limits.is_empty() {
        return limits;
    }
    summary.workloads.iter().map(|w| sustained(summary, w).unwrap_or_else(|| of_line(w))).collect()
}

/// A line in which a burst ended has no one rate (V04); what it fell to has, where a limit was proved.
fn sustained(summary: &RunSummary, w: &WorkloadSummary) -> Option<CellFigure> {
    let alone = summary.workloads.len() == 1 && !w.valid;
    let steps = summary.findings.iter().filter(|f| f.level == Level::Invalid).all(|f| f.code == "V04");
    let limit = summary.limits.iter().find(|l| alone && steps && l.op_class == w.op)?;
    let bucket = limit.ops_per_s.as_ref().filter(|b| b.proved && b.burst.is_some())?;
    let ops = bucket.sustained?;
    Some(CellFigure {
        line: format!("{} sustained", w.op),
        valid: true,
        ops_per_s: Some(ops),
        bytes_per_s: (w.size_bytes > 0).then(|| ops.scaled(w.size_bytes as f64)),
        // Of burst and rest together they would be of neither.
        p50_ns: None,
        p99_ns: None,
        ..of_line(w)
    })
}

/// A plain run has a line for each op, and one for their total; a probe has one for each of its steps.
const MOST_LINES: usize = 5;

fn of_best(b: &BestConcurrency, answered: bool) -> CellFigure {
    CellFigure {
        line: format!("{} best", b.op),
        op: b.op.clone(),
        size_bytes: b.size_bytes,
        valid: answered,
        ops_per_s: Some(b.ops_per_s),
        bytes_per_s: (b.size_bytes > 0).then(|| b.ops_per_s.scaled(b.size_bytes as f64)),
        p50_ns: b.p50_ns,
        p99_ns: b.p99_ns,
        refused: 0.0,
    }
}

fn of_limit(l: &LimitSummary) -> CellFigure {
    CellFigure {
        line: format!("{} limit", l.op_class),
        op: l.op_class.clone(),
        size_bytes: 0,
        valid: l.binding != "undetermined",
        ops_per_s: l.ops_per_s.as_ref().and_then(|b| b.sustained),
        bytes_per_s: l.bytes_per_s.as_ref().and_then(|b| b.sustained),
        refused: l.refused.unwrap_or_default(),
        ..CellFigure::default()
    }
}

fn of_line(w: &WorkloadSummary) -> CellFigure {
    let of = |name: &str| w.outcomes.get(name).copied().unwrap_or_default();
    let all: u64 = w.outcomes.values().sum();
    let response = w.latency_ns.response.as_ref();
    CellFigure {
        line: format!("{}/{}", w.name, w.op),
        op: w.op.clone(),
        size_bytes: w.size_bytes,
        valid: w.valid,
        ops_per_s: w.ops_per_s,
        bytes_per_s: w.bytes_per_s,
        p50_ns: response.and_then(|r| r.p50),
        p99_ns: response.and_then(|r| r.p99),
        refused: if all == 0 { 0.0 } else { (of("http_429") + of("http_503")) as f64 / all as f64 },
    }
}

/// What an interval of the table is of. The wider name holds the narrower spread in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalOf {
    /// Instances of the subject: it says what another one would do.
    Instances,
    /// Runs on one instance: it says what another run on the same would do.
    Runs,
    /// The time of a single run: it says nothing of another run.
    OneRun,
}

/// A row of the table: one subject, one workload, one line of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRow {
    /// Of the file.
    pub subject: String,
    /// Of the subject, and of the file as a whole.
    pub labels: BTreeMap<String, String>,
    /// With its values on those axes that have several.
    pub workload: String,
    /// Of the runs; a run of one line has one row.
    pub line: String,
    /// `put`, ...; `total` of a mix.
    pub op: String,
    /// Nominal.
    pub size_bytes: u64,
    /// What the subject is said to do.
    pub promised: Promised,
    /// Null: not one run of it is valid, or the data carries none.
    pub ops_per_s: Option<Estimate>,
    /// Their payload.
    pub bytes_per_s: Option<Estimate>,
    /// What both intervals are of.
    pub interval_of: IntervalOf,
    /// Standard deviation of op/s between runs of one instance, over all instances. Null: fewer than two runs each.
    pub sd_within: Option<f64>,
    /// Standard deviation of op/s between the means of instances. Null: fewer than two.
    pub sd_between: Option<f64>,
    /// Median over the runs.
    pub p50_ns: Option<u64>,
    /// Median over the runs.
    pub p99_ns: Option<u64>,
    /// The most of any run, 0 to 1.
    pub refused: f64,
    /// What the runs found to bind, where they agree; `mixed` where they do not. Null: none said.
    pub bound: Option<String>,
    /// Runs whose figures are in it.
    pub runs: Vec<String>,
    /// Runs that are void, and why.
    pub void: Vec<VoidCellRun>,
    /// Runs that are still to come.
    pub to_go: u32,
    /// Instances with at least one valid run.
    pub instances: u32,
}

/// A run that is in the record, and in no figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidCellRun {
    /// Name of the run.
    pub run: String,
    /// Codes of what makes it void.
    pub codes: Vec<String>,
}

/// The whole of a campaign, for whoever shows or publishes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignResult {
    /// `plimsoll.campaign/1`.
    pub schema: String,
    /// Of the file.
    pub name: String,
    /// Of the file.
    pub question: Option<String>,
    /// In the order of the file.
    pub rows: Vec<CampaignRow>,
    /// Runs that are still to come, of all cells.
    pub to_go: u32,
    /// Cells that could not be measured when they were tried last, and why.
    pub failed: BTreeMap<String, String>,
}

/// Of [`CampaignResult`].
pub const RESULT_SCHEMA: &str = "plimsoll.campaign/1";

/// What all that was measured says together.
pub fn result(file: &CampaignFile, cells: &[CampaignCell], state: &CampaignState) -> CampaignResult {
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (i, cell) in cells.iter().enumerate() {
        groups.entry((&cell.subject, &cell.workload)).or_default().push(i);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort();
    let rows = groups.iter().flat_map(|instances| rows_of(file, cells, state, instances)).collect();
    let failed = cells.iter().zip(&state.cells).filter_map(|(c, s)| Some((c.key.clone(), s.failed.clone()?)));
    CampaignResult {
        schema: RESULT_SCHEMA.into(),
        name: file.name.clone(),
        question: file.question.clone(),
        rows,
        to_go: state.to_go(),
        failed: failed.collect(),
    }
}

/// One for each line of the cell's runs; one without figures where there are none yet.
fn rows_of(
    file: &CampaignFile,
    cells: &[CampaignCell],
    state: &CampaignState,
    instances: &[usize],
) -> Vec<CampaignRow> {
    let mut lines: Vec<&CellFigure> = Vec::new();
    for figure in instances.iter().flat_map(|i| &state.cells[*i].runs).flat_map(|r| &r.figures) {
        if !lines.iter().any(|l| l.line == figure.line) {
            lines.push(figure);
        }
    }
    let nothing = CellFigure::default();
    if lines.is_empty() {
        lines.push(&nothing);
    }
    lines.into_iter().map(|line| row(file, cells, state, instances, line)).collect()
}

fn row(
    file: &CampaignFile,
    cells: &[CampaignCell],
    state: &CampaignState,
    instances: &[usize],
    line: &CellFigure,
) -> CampaignRow {
    let cell = &cells[instances[0]];
    let all = || instances.iter().flat_map(|i| &state.cells[*i].runs);
    let valid: Vec<Vec<(&CellRun, &CellFigure)>> = instances
        .iter()
        .map(|i| state.cells[*i].runs.iter().filter_map(|r| Some((r, usable(r, &line.line)?))).collect())
        .collect();
    let flat = || valid.iter().flatten();
    let ops: Vec<Vec<Estimate>> = series(&valid, |f| f.ops_per_s);
    let bytes: Vec<Vec<Estimate>> = series(&valid, |f| f.bytes_per_s);
    let interval_of = match (ops.iter().filter(|v| !v.is_empty()).count(), flat().count()) {
        (k, _) if k > 1 => IntervalOf::Instances,
        (_, n) if n > 1 => IntervalOf::Runs,
        _ => IntervalOf::OneRun,
    };
    let subject = file.subjects.iter().find(|s| s.name == cell.subject);
    let void = all().filter(|r| usable(r, &line.line).is_none());
    CampaignRow {
        subject: cell.subject.clone(),
        labels: cell.labels.clone(),
        workload: cell.workload.clone(),
        line: line.line.clone(),
        op: line.op.clone(),
        size_bytes: line.size_bytes,
        promised: subject.map(|s| s.promised).unwrap_or_default(),
        ops_per_s: together(&file.repeat, &ops),
        bytes_per_s: together(&file.repeat, &bytes),
        interval_of,
        sd_within: sd_within(&ops),
        sd_between: sd_between(&ops),
        p50_ns: median(flat().filter_map(|(_, f)| f.p50_ns)),
        p99_ns: median(flat().filter_map(|(_, f)| f.p99_ns)),
        refused: flat().map(|(_, f)| f.refused).fold(0.0, f64::max),
        bound: agreed(flat().filter_map(|(r, f)| r.bound.get(&f.op).map(String::as_str))),
        runs: flat().map(|(r, _)| r.run.clone()).collect(),
        void: void.map(|r| VoidCellRun { run: r.run.clone(), codes: r.void.clone() }).collect(),
        to_go: instances.iter().map(|i| state.cells[*i].to_go()).sum(),
        instances: valid.iter().filter(|v| !v.is_empty()).count() as u32,
    }
}

/// The figure of this line, where it may be used.
pub(crate) fn usable<'a>(run: &'a CellRun, line: &str) -> Option<&'a CellFigure> {
    run.figures.iter().find(|f| f.line == line && f.valid && run.exit != 7 && f.ops_per_s.is_some())
}

fn series(
    valid: &[Vec<(&CellRun, &CellFigure)>],
    of: impl Fn(&CellFigure) -> Option<Estimate>,
) -> Vec<Vec<Estimate>> {
    valid.iter().map(|v| v.iter().filter_map(|(_, f)| of(f)).collect()).collect()
}

/// Of several instances the interval between them; else that over the runs; of a single run the one within it.
fn together(repeats: &Repeats, per_instance: &[Vec<Estimate>]) -> Option<Estimate> {
    let filled: Vec<Vec<f64>> =
        per_instance.iter().filter(|v| !v.is_empty()).map(|v| v.iter().map(|e| e.value).collect()).collect();
    match &filled[..] {
        [] => None,
        [one] if one.len() == 1 => per_instance.iter().flatten().next().copied(),
        [one] => over_runs(repeats, one),
        many => {
            let means: Vec<f64> = many.iter().map(|v| v.iter().sum::<f64>() / v.len() as f64).collect();
            // How many instances there are nobody decided from what was seen.
            over_runs(&Repeats { until_wide: None, ..*repeats }, &means)
        }
    }
}

/// Pooled over the instances.
fn sd_within(ops: &[Vec<Estimate>]) -> Option<f64> {
    let (mut squares, mut free) = (0.0, 0.0);
    for v in ops {
        let values: Vec<f64> = v.iter().map(|e| e.value).collect();
        if let Some((_, sd)) = mean_and_sd(&values) {
            let df = values.len() as f64 - 1.0;
            squares += sd * sd * df;
            free += df;
        }
    }
    (free > 0.0).then(|| (squares / free).sqrt())
}

fn sd_between(ops: &[Vec<Estimate>]) -> Option<f64> {
    let mean = |v: &Vec<Estimate>| v.iter().map(|e| e.value).sum::<f64>() / v.len() as f64;
    let means: Vec<f64> = ops.iter().filter(|v| !v.is_empty()).map(mean).collect();
    mean_and_sd(&means).map(|(_, sd)| sd)
}

/// The upper one of an even number.
fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<u64> = values.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

fn agreed<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    match &words[..] {
        [] => None,
        [one] => Some((*one).to_owned()),
        _ => Some("mixed".into()),
    }
}
