//! What a run of a cell came to, in the few figures that a table has; and the table, with what the runs say together.

use std::collections::BTreeMap;

use plimsoll_model::claim::{BestConcurrency, ClaimKind};
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Claim, Estimate, Level, RunSummary};
use serde::{Deserialize, Serialize};

use crate::cells::{CampaignCell, CellWork};
use crate::file::{CampaignFile, Promised};
use crate::spread;
use crate::state::CampaignState;

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
    /// The tool that measured it, with its version, where that was not this program: `fio 3.33`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
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
    /// Of a limit: seconds for which its rates were seen, where no burst above them was seen to end: they may be a longer burst's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for_s: Option<f64>,
    /// Of a benchmark that goes round several times in one run: op/s of each time, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
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
            tool: summary.environment.imported.as_ref().map(|from| from.who()),
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
    let limits: Vec<CellFigure> =
        summary.limits.iter().filter(probed).map(|l| of_limit(l, summary.answered)).collect();
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
    let after_burst = |b: &Option<BucketSummary>| cap_of(b.as_ref().filter(|b| b.burst.is_some()));
    let size = (w.size_bytes > 0).then_some(w.size_bytes as f64);
    let (ops, bytes) = match (after_burst(&limit.ops_per_s), after_burst(&limit.bytes_per_s)) {
        (Some(ops), _) => (Some(ops), size.map(|n| ops.scaled(n))),
        (None, Some(bytes)) => (size.map(|n| bytes.scaled(1.0 / n)), Some(bytes)),
        (None, None) => return None,
    };
    Some(CellFigure {
        line: format!("{} sustained", w.op),
        valid: true,
        ops_per_s: ops,
        bytes_per_s: bytes,
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
        held_for_s: None,
        each: Vec::new(),
    }
}

/// The rate of a plateau, where a limiter holds it. Any other is a speed that was seen, be it that of a burst.
fn cap_of(bucket: Option<&BucketSummary>) -> Option<Estimate> {
    bucket.filter(|b| b.proved)?.sustained
}

fn of_limit(l: &LimitSummary, answered: bool) -> CellFigure {
    let (ops, bytes) = (cap_of(l.ops_per_s.as_ref()), cap_of(l.bytes_per_s.as_ref()));
    CellFigure {
        line: format!("{} limit", l.op_class),
        op: l.op_class.clone(),
        size_bytes: 0,
        // What is proved holds, also where it is open which of two limits binds; but not of a run that is void as a whole.
        valid: answered && (ops.is_some() || bytes.is_some()),
        ops_per_s: ops,
        bytes_per_s: bytes,
        refused: l.refused.unwrap_or_default(),
        held_for_s: l.held_for_s(),
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
        held_for_s: None,
        each: w.each_ops_per_s.iter().map(|e| e.value).collect(),
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
    /// What the interval of op/s is of; of payload where there are no op/s. Null: there is none.
    pub interval_of: Option<IntervalOf>,
    /// Runs that op/s are of; a limit that a run proves may be on payload alone.
    pub ops_runs: u32,
    /// Runs that the payload is of.
    pub bytes_runs: u32,
    /// Width of the interval over the value, where more repeats were to make it narrower than it is. Null: it is as narrow as asked.
    pub wider_than_asked: Option<f64>,
    /// Standard deviation of op/s (of payload where there are none) between runs of one instance, over all instances. Null: fewer than
    /// two runs each.
    pub sd_within: Option<f64>,
    /// Standard deviation of the same between the means of instances. Null: fewer than two.
    pub sd_between: Option<f64>,
    /// Median over the runs of one instance. Null of several: one figure would be of none of them.
    pub p50_ns: Option<u64>,
    /// The same at 99 %.
    pub p99_ns: Option<u64>,
    /// Of limits, the shortest of the runs: seconds for which the rates were seen, where no burst above them was seen to end.
    pub held_for_s: Option<f64>,
    /// Who measured it, where that was not this program alone: `fio 3.33`, `plimsoll`.
    pub tools: Vec<String>,
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

impl CampaignRow {
    /// A rate of it is above what the subject promises to keep up, and nothing of these runs says that it would last: not the rest that is
    /// left after a burst, nor a limit above which no more was seen.
    pub fn may_be_burst(&self) -> bool {
        let is_kept_up =
            self.line.ends_with(" sustained") || (self.line.ends_with(" limit") && self.held_for_s.is_none());
        let above = |rate: Option<Estimate>, promised: Option<f64>| {
            rate.zip(promised).is_some_and(|(e, most)| e.value.min(e.low.max(0.0)) > most * (1.0 + SAME))
        };
        !is_kept_up
            && (above(self.ops_per_s, self.promised.ops_per_s.map(|r| r.0))
                || above(self.bytes_per_s, self.promised.bytes_per_s.map(|r| r.0)))
    }
}

/// A limiter's rate and the promised one differ by as much in how they are counted.
const SAME: f64 = 0.02;

/// A run that is in the record, and in no figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidCellRun {
    /// Name of the run.
    pub run: String,
    /// Codes of what makes it void.
    pub codes: Vec<String>,
    /// Its exit code; 7: what the storage gave back is not what it was given.
    pub exit: u8,
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
    /// Of the file: how wide the interval of a cell may be, over its value.
    pub until_wide: Option<f64>,
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
        until_wide: file.repeat.until_wide,
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
    let (ops_per_s, bytes_per_s) =
        (spread::together(&file.repeat, &ops), spread::together(&file.repeat, &bytes));
    // A limit may be proved on payload alone.
    let (main, rate) = if ops_per_s.is_some() { (&ops, ops_per_s) } else { (&bytes, bytes_per_s) };
    let interval_of = spread::interval_of(main, rate);
    let instances_used = valid.iter().filter(|v| !v.is_empty()).count() as u32;
    let median_of = |of: fn(&CellFigure) -> Option<u64>| {
        spread::median(flat().filter_map(|(_, f)| of(f))).filter(|_| instances_used == 1)
    };
    let to_go: u32 = instances.iter().map(|i| state.cells[*i].to_go()).sum();
    let asked = file.repeat.until_wide.filter(|_| to_go == 0 && cell.target.is_some());
    let subject = file.subjects.iter().find(|s| s.name == cell.subject);
    let void = all().filter(|r| usable(r, &line.line).is_none());
    CampaignRow {
        subject: cell.subject.clone(),
        labels: cell.labels.clone(),
        workload: cell.workload.clone(),
        line: line.line.clone(),
        op: line.op.clone(),
        size_bytes: line.size_bytes,
        promised: subject.map(|s| promised_of(s.promised, &cell.work, &line.line)).unwrap_or_default(),
        ops_per_s,
        bytes_per_s,
        interval_of,
        ops_runs: spread::count(&ops),
        bytes_runs: spread::count(&bytes),
        wider_than_asked: asked.zip(rate).and_then(|(asked, e)| spread::wider(asked, e, interval_of)),
        sd_within: spread::sd_within(main),
        sd_between: spread::sd_between(main),
        p50_ns: median_of(|f| f.p50_ns),
        p99_ns: median_of(|f| f.p99_ns),
        held_for_s: flat().filter_map(|(_, f)| f.held_for_s).reduce(f64::min),
        tools: tools(all()),
        refused: flat().map(|(_, f)| f.refused).fold(0.0, f64::max),
        bound: agreed(flat().filter_map(|(r, f)| r.bound.get(&f.op).map(String::as_str))),
        runs: flat().map(|(r, _)| r.run.clone()).collect(),
        void: void.map(|r| VoidCellRun { run: r.run.clone(), codes: r.void.clone(), exit: r.exit }).collect(),
        to_go,
        instances: instances_used,
    }
}

/// What of a promise a line is held against. The file benchmark writes and reads through the page cache, which makes other requests of its
/// blocks: promised IOPS are those of its IOPS phase alone, and a promised payload is that of the other two.
pub(crate) fn promised_of(all: Promised, work: &CellWork, line: &str) -> Promised {
    let is_iops = line.split('/').next() == Some("iops");
    match work {
        CellWork::Files(_) if is_iops => Promised { bytes_per_s: None, ..all },
        CellWork::Files(_) => Promised { ops_per_s: None, ..all },
        CellWork::Stage(_) | CellWork::Controller(_) | CellWork::Elsewhere => all,
    }
}

/// The figure of this line, where it may be used.
pub(crate) fn usable<'a>(run: &'a CellRun, line: &str) -> Option<&'a CellFigure> {
    run.figures.iter().find(|f| f.line == line && f.valid && run.exit != DAMAGED && rate_of(f).is_some())
}

/// The exit code of a run whose storage gave back other data than it was given: nothing of it is a figure.
const DAMAGED: u8 = 7;

/// Op/s, or payload where a limit is proved on that alone.
fn rate_of(figure: &CellFigure) -> Option<Estimate> {
    figure.ops_per_s.or(figure.bytes_per_s)
}

/// What decides how often a cell is measured: for each of its lines the rate of each run, in order; `None` where it is void.
pub(crate) fn rates(runs: &[CellRun]) -> Vec<Vec<Option<f64>>> {
    let mut lines: Vec<&str> = runs.iter().flat_map(|r| &r.figures).map(|f| f.line.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    let of_line = |line: &str| {
        let used: Vec<Option<&CellFigure>> = runs.iter().map(|r| usable(r, line)).collect();
        // One or the other: op/s of one run and payload of the next are no series.
        let has_ops = used.iter().flatten().any(|f| f.ops_per_s.is_some());
        let value = |f: &CellFigure| if has_ops { f.ops_per_s } else { f.bytes_per_s }.map(|e| e.value);
        used.into_iter().map(|f| f.and_then(value)).collect()
    };
    lines.into_iter().map(of_line).collect()
}

/// Empty where all runs are ours.
fn tools<'a>(runs: impl Iterator<Item = &'a CellRun>) -> Vec<String> {
    let mut tools: Vec<&str> = runs.map(|r| r.tool.as_deref().unwrap_or(OURS)).collect();
    tools.sort_unstable();
    tools.dedup();
    if tools == [OURS] { Vec::new() } else { tools.into_iter().map(str::to_owned).collect() }
}

/// This program among the tools that measured.
pub const OURS: &str = "plimsoll";

fn series(
    valid: &[Vec<(&CellRun, &CellFigure)>],
    of: impl Fn(&CellFigure) -> Option<Estimate>,
) -> Vec<Vec<Estimate>> {
    valid.iter().map(|v| v.iter().filter_map(|(_, f)| of(f)).collect()).collect()
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
