//! The table of a campaign: what the runs of its cells say together.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::Estimate;
use serde::{Deserialize, Serialize};

use crate::burst::{self, LimitFigures};
use crate::cells::{CampaignCell, CellWork};
use crate::figures::{CellFigure, CellRun, SeenFall};
use crate::file::{CampaignFile, Promised};
use crate::schedule::TIME_AXIS;
use crate::served::ServedRow;
use crate::spread;
use crate::state::CampaignState;

/// What an interval of the table is of. The wider name holds the narrower spread in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalOf {
    /// Instances of the subject: it says what another one would do.
    Instances,
    /// Runs on one instance: it says what another run on the same would do.
    Runs,
    /// Rounds of a benchmark that one run makes in succession: it says what the next one would do.
    Rounds,
    /// The time of a single run: it says nothing of another run.
    OneRun,
}

impl IntervalOf {
    /// Whether it is of several measurements, and not of the time within a single one.
    pub fn is_repeated(self) -> bool {
        match self {
            Self::Instances | Self::Runs | Self::Rounds => true,
            Self::OneRun => false,
        }
    }
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
    /// Its values on all axes, those of its subject first: (axis, value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<(String, String)>,
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
    /// Of limits, and of what is left after a burst: knee, burst, its length and how it comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitFigures>,
    /// Of searches: the least and the most concurrency at which a run had its best rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_at: Option<(u32, u32)>,
    /// Falls of this line, with the run in which each was; void runs included, for which a fall is the cause more often than not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub falls: Vec<(String, SeenFall)>,
    /// Runs of it that began otherwise than was asked, with what was remarked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<(String, String)>,
    /// Who measured it, where that was not this program alone: `fio 3.33`, `plimsoll`.
    pub tools: Vec<String>,
    /// The most of any run, 0 to 1.
    pub refused: f64,
    /// How many attempts were refused, over all runs that figures are of. A probe's are not counted: to be refused is its work.
    #[serde(default)]
    pub refused_ops: u64,
    /// What the runs found to bind, where they agree; `mixed` where they do not. Null: none said.
    pub bound: Option<String>,
    /// What servers did in its valid runs, where they were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServedRow>,
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
    /// `put sustained`; `put`, where the line is simply its rate.
    pub fn line_name(&self) -> &str {
        line_name(&self.line, &self.op)
    }

    /// It has a rate: of ops, or of payload alone.
    pub fn rate(&self) -> Option<Estimate> {
        self.ops_per_s.or(self.bytes_per_s)
    }

    /// Codes of its void runs, each once.
    pub fn codes(&self) -> Vec<&str> {
        let all: BTreeSet<&str> = self.void.iter().flat_map(|v| &v.codes).map(String::as_str).collect();
        all.into_iter().collect()
    }

    /// Why it has no figure, as tables have it: `void V04`, or `none` where no run was made; `None`: it has one.
    pub fn missing(&self, none: &str) -> Option<String> {
        match (self.rate(), self.void.is_empty()) {
            (Some(_), _) => None,
            (None, true) => Some(none.to_owned()),
            (None, false) => Some(format!("void {}", self.codes().join(" ")).trim_end().to_owned()),
        }
    }

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

/// The op; with what the figure is of it, where it is not simply its rate.
pub fn line_name<'a>(line: &'a str, op: &'a str) -> &'a str {
    let is_more = [" best", " limit", " sustained"].iter().any(|end| line.ends_with(end));
    if is_more { line } else { op }
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
    /// Of a campaign with times of day: each row once for each of them, of its runs of that time alone, with the time as an axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_time: Vec<CampaignRow>,
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
    let rows = |state: &CampaignState| -> Vec<CampaignRow> {
        groups.iter().flat_map(|instances| rows_of(file, cells, state, instances)).collect()
    };
    let by_time = file.times_of_day().map_or_else(Vec::new, |t| {
        t.names().flat_map(|time| rows(&state.of_time(time)).into_iter().map(|r| of_time(r, time))).collect()
    });
    let failed = cells.iter().zip(&state.cells).filter_map(|(c, s)| Some((c.key.clone(), s.failed.clone()?)));
    CampaignResult {
        schema: RESULT_SCHEMA.into(),
        name: file.name.clone(),
        question: file.question.clone(),
        until_wide: file.repeat.until_wide,
        rows: rows(state),
        by_time,
        to_go: state.to_go(),
        failed: failed.collect(),
    }
}

/// A row of the runs of one time of day: what of it is to go, and how narrow it was to be, is said of all times together.
fn of_time(mut row: CampaignRow, time: &str) -> CampaignRow {
    row.axes.push((TIME_AXIS.to_owned(), time.to_owned()));
    CampaignRow { to_go: 0, wider_than_asked: None, ..row }
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
    let (one_op, its_bytes) = spread::one_op(flat().map(|(_, f)| *f));
    let ops_per_s = spread::together(&file.repeat, &ops).map(|e| spread::counted(e, one_op));
    let bytes_per_s = spread::together(&file.repeat, &bytes).map(|e| spread::counted(e, its_bytes));
    // A limit may be proved on payload alone.
    let (main, rate) = if ops_per_s.is_some() { (&ops, ops_per_s) } else { (&bytes, bytes_per_s) };
    let rounds = flat().map(|(_, f)| f.each.len()).min().unwrap_or(0);
    let interval_of = spread::interval_of(main, rate, rounds);
    let instances_used = valid.iter().filter(|v| !v.is_empty()).count() as u32;
    let median_of = |of: fn(&CellFigure) -> Option<u64>| {
        spread::median(flat().filter_map(|(_, f)| of(f))).filter(|_| instances_used == 1)
    };
    let to_go: u32 = instances.iter().map(|i| state.cells[*i].to_go()).sum();
    let asked = file.repeat.until_wide.filter(|_| to_go == 0 && cell.target.is_some());
    let subject = file.subject(&cell.subject);
    let void = all().filter(|r| usable(r, &line.line).is_none());
    CampaignRow {
        subject: cell.subject.clone(),
        labels: cell.labels.clone(),
        workload: cell.workload.clone(),
        axes: cell.axes.clone(),
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
        limit: burst::together(&file.repeat, &valid),
        best_at: flat()
            .filter_map(|(_, f)| f.concurrency.map(|n| (n, n)))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
        falls: all().flat_map(|r| falls_of(r, &line.line)).collect(),
        remarks: all().filter_map(|r| Some((r.run.clone(), r.remark.clone()?))).collect(),
        tools: tools(all()),
        refused: flat().map(|(_, f)| f.refused).fold(0.0, f64::max),
        refused_ops: flat().map(|(_, f)| f.refused_ops).sum(),
        bound: agreed(flat().filter_map(|(r, f)| r.bound.get(&f.op).map(String::as_str))),
        servers: ServedRow::of(flat()),
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
    let all = all.of_op(line.rsplit('/').next().unwrap_or(line));
    match work {
        CellWork::Files(_) if is_iops => Promised { bytes_per_s: None, ..all },
        CellWork::Files(_) => Promised { ops_per_s: None, ..all },
        CellWork::Stage(_) | CellWork::Controller(_) | CellWork::Elsewhere => all,
    }
}

/// Those of a line; of what is left after a burst those of its op.
fn falls_of<'a>(run: &'a CellRun, line: &'a str) -> impl Iterator<Item = (String, SeenFall)> + 'a {
    let op = line.strip_suffix(" sustained");
    let is_of =
        move |f: &&SeenFall| f.line == line || op.is_some_and(|op| f.line.rsplit('/').next() == Some(op));
    run.falls.iter().filter(is_of).map(|f| (run.run.clone(), f.clone()))
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
