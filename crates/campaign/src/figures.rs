//! What a run of a cell came to, in the few figures that a table has: as the ledger keeps them.

use std::collections::BTreeMap;

use plimsoll_model::analysis::Analysis;
use plimsoll_model::claim::{BestConcurrency, ClaimKind};
use plimsoll_model::cost::Money;
use plimsoll_model::plan::suite;
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Claim, Estimate, Level, RunSummary};
use plimsoll_stats::cycles;
use serde::{Deserialize, Serialize};

use crate::burst::LimitFigures;
use crate::served::ServedFigures;

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
    /// What it cost by its prices, as a budget counts it. Absent: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// One for each line of the run.
    pub figures: Vec<CellFigure>,
    /// What the run found to bind, by op.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<String, String>,
    /// Codes of what makes it void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
    /// What is to be known of how it began: that the machine was not at rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Of a campaign with times of day the one that it is of: `14:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What it made and could not remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The tool that measured it, with its version, where that was not this program: `fio 3.33`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Falls of its lines, in order of time; of many the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub falls: Vec<SeenFall>,
    /// What its servers did meanwhile, where they were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServedFigures>,
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
    /// How many these were.
    #[serde(default)]
    pub refused_ops: u64,
    /// Of a limit: seconds for which its rates were seen, where no burst above them was seen to end: they may be a longer burst's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for_s: Option<f64>,
    /// Of a limit that was proved, and of what is left after a burst: what else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitFigures>,
    /// Of a search: the concurrency at which it had its rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Of a benchmark that goes round several times in one run: op/s of each time, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
    /// Seconds that its ops were counted over: one more or less of them nobody would have noticed. Absent: not known, or the work was
    /// given and its time measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<f64>,
}

impl CellFigure {
    /// What one op in the window would be, as a rate of ops and as one of payload.
    pub(crate) fn one_op(&self) -> Option<(f64, f64)> {
        let per_s = 1.0 / self.counted_s.filter(|s| *s > 0.0)?;
        let bytes = self.ops_per_s.zip(self.bytes_per_s).filter(|(ops, _)| ops.value > 0.0);
        Some((per_s, bytes.map_or(0.0, |(ops, b)| per_s * b.value / ops.value)))
    }
}

/// A rate that fell to another level while it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenFall {
    /// Of which line.
    pub line: String,
    /// `ops` or `bytes`: what the rates count.
    pub unit: String,
    /// Since the run's start, seconds.
    pub at_s: f64,
    /// Mean rate before it.
    pub from_per_s: f64,
    /// Mean rate after it.
    pub to_per_s: f64,
    /// What it is taken for: `throttle-proved`, `cliff, cause open`, ...
    pub verdict: String,
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
            servers: ServedFigures::of_summary(summary),
            ..Self::default()
        }
    }

    /// With the falls that its analysis dates.
    pub fn with_falls(mut self, summary: &RunSummary, analysis: &Analysis) -> Self {
        for hold in &analysis.holds {
            let Some(w) = summary.workloads.get(hold.line) else { continue };
            self.falls.extend(hold.cliffs.iter().map(|c| SeenFall {
                line: format!("{}/{}", w.name, w.op),
                unit: hold.unit.clone(),
                at_s: c.at_s,
                from_per_s: c.from_per_s,
                to_per_s: c.to_per_s,
                verdict: c.verdict.clone(),
            }));
        }
        self.falls.extend(of_rounds(summary, analysis));
        self.falls.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        self.falls.truncate(MOST_FALLS);
        self
    }
}

/// Falls between rounds of a benchmark that goes round several times: at the start of the first that is slower.
fn of_rounds<'a>(summary: &'a RunSummary, analysis: &'a Analysis) -> impl Iterator<Item = SeenFall> + 'a {
    summary.workloads.iter().enumerate().filter_map(|(i, w)| {
        let each: Vec<f64> = w.each_ops_per_s.iter().map(|e| e.value).collect();
        let fall = cycles::fall(&each)?;
        let span = analysis.spans.iter().find(|s| s.line == i && s.repeat as usize == fall.first_after)?;
        Some(SeenFall {
            line: format!("{}/{}", w.name, w.op),
            unit: "ops".into(),
            at_s: span.start_s,
            from_per_s: fall.before,
            to_per_s: fall.after,
            verdict: format!("from round {} of {} on", fall.first_after + 1, each.len()),
        })
    })
}

/// Of one run, in the ledger.
const MOST_FALLS: usize = 20;

/// The answer of a search or a probe, where the run was one: the lines that it came from are of many loads. Else its lines.
fn figures(summary: &RunSummary) -> Vec<CellFigure> {
    let best = |c: &Claim| match &c.kind {
        ClaimKind::BestConcurrency(b) => Some(of_best(b, summary.answered)),
        _ => None,
    };
    let mut searched: Vec<CellFigure> = summary.claims.iter().filter_map(best).collect();
    if !searched.is_empty() {
        searched.extend(without_best(summary, &searched));
        return searched;
    }
    let probed = |l: &&LimitSummary| [&l.ops_per_s, &l.bytes_per_s].into_iter().flatten().any(|b| b.proved);
    let limits: Vec<CellFigure> =
        summary.limits.iter().filter(probed).map(|l| of_limit(l, summary.answered)).collect();
    // A plain run of one load knows a cap, too; its line says more of it.
    if summary.workloads.len() > MOST_LINES && !limits.is_empty() {
        return limits;
    }
    // The file benchmark measures how long a given work takes, to the end of its last op.
    let is_counted = summary.labels.get(suite::LABEL).is_none_or(|s| s != suite::FILE);
    let plain = |w| CellFigure { counted_s: counted_s(w).filter(|_| is_counted), ..of_line(w) };
    summary.workloads.iter().map(|w| sustained(summary, w).unwrap_or_else(|| plain(w))).collect()
}

/// The ops of a run of several searches that have no answer: they are void, and not left out.
fn without_best(summary: &RunSummary, searched: &[CellFigure]) -> Vec<CellFigure> {
    let has = |op: &str| searched.iter().any(|f| f.op == op);
    // A mix has one answer for all of its ops.
    if has("total") {
        return Vec::new();
    }
    let mut ops: Vec<&str> =
        summary.workloads.iter().filter(|w| !w.is_total()).map(|w| w.op.as_str()).collect();
    ops.sort_unstable();
    ops.dedup();
    let void =
        |op: &str| CellFigure { line: format!("{op} best"), op: op.to_owned(), ..CellFigure::default() };
    ops.into_iter().filter(|op| !has(op)).map(void).collect()
}

/// Where it was given at all: lines of other tools may lack it.
fn counted_s(w: &WorkloadSummary) -> Option<f64> {
    (w.window_s > 0.0 && w.window_s.is_finite()).then_some(w.window_s)
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
        limit: LimitFigures::of(limit),
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
        concurrency: Some(b.concurrency),
        ..CellFigure::default()
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
        limit: LimitFigures::of(l),
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
        refused_ops: of("http_429") + of("http_503"),
        each: w.each_ops_per_s.iter().map(|e| e.value).collect(),
        ..CellFigure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two searches one was void, and the publication said that all cells are valid.
    #[test]
    fn a_search_without_an_answer_is_void_and_not_left_out() {
        let line = |op: &str| WorkloadSummary {
            name: format!("{op}/c4"),
            op: op.into(),
            ..WorkloadSummary::default()
        };
        let rate = Estimate::symmetric(400.0, 8.0, 9.0);
        let best = |op| BestConcurrency::new((op, 4096), 8, rate, None, "saturated").unwrap();
        let claim = |kind| Claim { subject: Some("get".into()), kind, text: String::new() };
        let mut s = RunSummary {
            answered: true,
            workloads: vec![line("put"), line("get"), line("get")],
            claims: vec![claim(ClaimKind::BestConcurrency(best("get")))],
            ..RunSummary::default()
        };
        let of = |s: &RunSummary| figures(s).into_iter().map(|f| (f.line, f.valid)).collect::<Vec<_>>();
        assert_eq!(of(&s), [("get best".to_owned(), true), ("put best".to_owned(), false)]);
        s.claims = vec![claim(ClaimKind::BestConcurrency(best("total")))];
        assert_eq!(of(&s), [("total best".to_owned(), true)]);
    }
}
