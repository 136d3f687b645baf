//! The data of the charts, which the page draws, each also as CSV.

use std::collections::BTreeMap;

use plimsoll_campaign::{CampaignResult, CampaignRow};
use plimsoll_model::Estimate;
use plimsoll_model::cost::CostFigure;
use plimsoll_model::text::clean;
use plimsoll_report::number;
use serde::{Deserialize, Serialize};

use crate::gather::{PublishedRun, proved};
use crate::sheet::{line, number as plain};
use crate::tables::{costs_of, missing, proved_limits};

/// Schema of [`ChartData`].
pub const CHART_SCHEMA: &str = "plimsoll.charts/1";

/// All that the page draws from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChartData {
    /// [`CHART_SCHEMA`].
    pub schema: String,
    /// One for each workload.
    pub bars: Vec<BarChart>,
    /// Rate over size, one for each op.
    pub curves: Vec<CurveChart>,
    /// Latency against rate, one for each op and size.
    pub knees: Vec<LoadChart>,
    /// Rates that fell.
    pub cliffs: Vec<CliffChart>,
    /// Cost against rate.
    pub costs: Vec<CostPoint>,
    /// Unit of `costs`.
    pub cost_unit: String,
    /// Rows of the results that no chart has room for.
    pub left_out: usize,
}

/// Bars with intervals, grouped by a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarChart {
    /// The workload, and the op.
    pub name: String,
    /// `op/s`, `MiB/s`.
    pub unit: String,
    /// The label by which they are grouped; empty: by none.
    pub by: String,
    /// In the order of the file.
    pub bars: Vec<Bar>,
}

/// One subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Whose.
    pub subject: String,
    /// Value of the label.
    pub group: String,
    /// In the unit of the chart. Null: there is none.
    pub rate: Option<Estimate>,
    /// The same.
    pub promised: Option<f64>,
    /// Why there is no rate.
    pub void: Option<String>,
}

/// Rate over size, a line for each subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveChart {
    /// The op.
    pub name: String,
    /// In the order of the file.
    pub lines: Vec<CurveLine>,
}

/// One subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveLine {
    /// Whose.
    pub subject: String,
    /// Size and op/s.
    pub points: Vec<(u64, Estimate)>,
    /// Sizes without a valid figure, and why.
    pub void: Vec<(u64, String)>,
    /// Proved.
    pub ops_cap: Option<f64>,
    /// Proved, bytes a second.
    pub bytes_cap: Option<f64>,
    /// Where one limit hands over to the other: only where both are proved.
    pub knee_bytes: Option<f64>,
}

/// Latency against rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadChart {
    /// Op and size.
    pub name: String,
    /// Whose, which workload, op/s, median and 99th percentile in ns.
    pub points: Vec<LatencyPoint>,
}

/// One row of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Whose.
    pub subject: String,
    /// Of the file.
    pub workload: String,
    /// With its interval.
    pub rate: Estimate,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99 %.
    pub p99_ns: Option<u64>,
}

/// A rate over time that fell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CliffChart {
    /// Subject, workload and line.
    pub name: String,
    /// Seconds since the run's start.
    pub start_s: f64,
    /// Seconds.
    pub step_s: f64,
    /// Op/s; null: not measured.
    pub ops_per_s: Vec<Option<f64>>,
}

/// What a subject costs, and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostPoint {
    /// Whose.
    pub subject: String,
    /// Of the file.
    pub workload: String,
    /// Op/s.
    pub rate: Estimate,
    /// In the unit of the chart.
    pub cost: f64,
}

/// Rows that are drawn: the page stays small whatever the campaign.
const MOST_ROWS: usize = 1500;
/// A chart with more of them is unreadable.
const MOST_BARS: usize = 60;

fn text(s: &str) -> String {
    clean(s).into_owned()
}

/// Out of results and runs.
pub fn charts(result: &CampaignResult, runs: &[PublishedRun]) -> ChartData {
    let rows = &result.rows[..result.rows.len().min(MOST_ROWS)];
    let (costs, cost_unit) = costs(rows, runs);
    ChartData {
        schema: CHART_SCHEMA.into(),
        bars: bars(rows),
        curves: curves(result, rows, runs),
        knees: knees(rows),
        cliffs: cliffs(result, runs),
        costs,
        cost_unit,
        left_out: result.rows.len() - rows.len(),
    }
}

/// The label that sorts subjects into groups: several values, but not one for each subject.
fn grouping(rows: &[CampaignRow]) -> String {
    let mut values: BTreeMap<&str, BTreeMap<&str, ()>> = BTreeMap::new();
    let mut subjects: BTreeMap<&str, ()> = BTreeMap::new();
    for r in rows {
        subjects.insert(&r.subject, ());
        r.labels.iter().for_each(|(k, v)| {
            values.entry(k).or_default().insert(v, ());
        });
    }
    let fits = values.iter().filter(|(_, v)| v.len() > 1 && v.len() < subjects.len());
    fits.min_by_key(|(_, v)| v.len()).map(|(k, _)| (*k).to_owned()).unwrap_or_default()
}

fn bars(rows: &[CampaignRow]) -> Vec<BarChart> {
    let by = grouping(rows);
    let mut out: Vec<BarChart> = Vec::new();
    let mut groups: Vec<((&str, &str), Vec<&CampaignRow>)> = Vec::new();
    for r in rows {
        let key = (r.workload.as_str(), r.line_name());
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, all)) => all.push(r),
            None => groups.push((key, vec![r])),
        }
    }
    for ((workload, op), all) in groups {
        let is_ops = all.iter().any(|r| r.ops_per_s.is_some()) || all.iter().all(|r| r.bytes_per_s.is_none());
        let scale = if is_ops { 1.0 } else { 1.0 / number::MIB };
        let bar = |r: &&CampaignRow| {
            let rate = if is_ops { r.ops_per_s } else { r.bytes_per_s };
            let promised =
                if is_ops { r.promised.ops_per_s.map(|p| p.0) } else { r.promised.bytes_per_s.map(|p| p.0) };
            Bar {
                subject: text(&r.subject),
                group: r.labels.get(&by).map(|v| text(v)).unwrap_or_default(),
                rate: rate.map(|e| e.scaled(scale)),
                promised: promised.map(|p| p * scale),
                void: if rate.is_none() { missing(r).or(Some("no figure".into())) } else { None },
            }
        };
        let name = if workload.contains(op) { workload.to_owned() } else { format!("{workload}, {op}") };
        let mut bars: Vec<Bar> = all.iter().take(MOST_BARS).map(bar).collect();
        // Stable: within a group in the order of the file.
        bars.sort_by(|a, b| a.group.cmp(&b.group));
        let unit = if is_ops { "op/s" } else { "MiB/s" };
        out.push(BarChart { name: text(&name), unit: unit.into(), by: text(&by), bars });
    }
    out
}

fn curves(result: &CampaignResult, rows: &[CampaignRow], runs: &[PublishedRun]) -> Vec<CurveChart> {
    let limits = proved_limits(result, runs);
    let mut out: Vec<CurveChart> = Vec::new();
    for r in rows.iter().filter(|r| r.size_bytes > 0) {
        let name = text(r.line_name());
        let at = match out.iter().position(|c| c.name == name) {
            Some(at) => at,
            None => {
                out.push(CurveChart { name, lines: Vec::new() });
                out.len() - 1
            }
        };
        let subject = text(&r.subject);
        let lines = &mut out[at].lines;
        let line = match lines.iter().position(|l| l.subject == subject) {
            Some(i) => &mut lines[i],
            None => {
                let mine = || limits.iter().filter(|(_, row, _)| row.subject == r.subject && row.op == r.op);
                let ops = mine().filter_map(|(_, _, l)| proved(l.ops_per_s.as_ref())).next();
                let bytes = mine().filter_map(|(_, _, l)| proved(l.bytes_per_s.as_ref())).next();
                let knee = ops.zip(bytes).map(|(o, b)| b.value / o.value).filter(|k| k.is_finite());
                lines.push(CurveLine {
                    subject,
                    points: Vec::new(),
                    void: Vec::new(),
                    ops_cap: ops.map(|e| e.value),
                    bytes_cap: bytes.map(|e| e.value),
                    knee_bytes: knee,
                });
                lines.last_mut().expect("it was just put there")
            }
        };
        // Of several loads of one size the one with most.
        match (r.ops_per_s, line.points.iter_mut().find(|(n, _)| *n == r.size_bytes)) {
            (Some(e), Some(p)) if e.value > p.1.value => p.1 = e,
            (Some(e), None) => line.points.push((r.size_bytes, e)),
            (None, _) => line.void.extend(missing(r).map(|why| (r.size_bytes, why))),
            _ => {}
        }
    }
    out.iter_mut().flat_map(|c| &mut c.lines).for_each(|l| l.points.sort_by_key(|(n, _)| *n));
    out.retain(|c| c.lines.iter().any(|l| l.points.len() > 1));
    out
}

fn knees(rows: &[CampaignRow]) -> Vec<LoadChart> {
    let mut out: Vec<LoadChart> = Vec::new();
    for r in rows.iter().filter(|r| r.p50_ns.is_some() || r.p99_ns.is_some()) {
        let Some(rate) = r.ops_per_s else { continue };
        let size = if r.size_bytes > 0 { format!(" {}", number::size(r.size_bytes)) } else { String::new() };
        let name = format!("{}{size}", text(r.line_name()));
        let point = LatencyPoint {
            subject: text(&r.subject),
            workload: text(&r.workload),
            rate,
            p50_ns: r.p50_ns,
            p99_ns: r.p99_ns,
        };
        match out.iter_mut().find(|c| c.name == name) {
            Some(c) => c.points.push(point),
            None => out.push(LoadChart { name, points: vec![point] }),
        }
    }
    // A rate against a latency is a curve only where one subject has several.
    out.retain(|c| c.points.iter().any(|p| c.points.iter().filter(|q| q.subject == p.subject).count() > 1));
    out
}

fn cliffs(result: &CampaignResult, runs: &[PublishedRun]) -> Vec<CliffChart> {
    let mut out = Vec::new();
    for run in runs.iter().filter(|r| !r.series.is_empty()) {
        let of = |r: &&CampaignRow| r.runs.contains(&run.run) || r.void.iter().any(|v| v.run == run.run);
        let Some(row) = result.rows.iter().find(of) else { continue };
        let repeat =
            if row.runs.len() + row.void.len() > 1 { format!(", run {}", run.run) } else { String::new() };
        for s in &run.series {
            let line = if run.series.len() > 1 { format!(", {}", s.label) } else { String::new() };
            out.push(CliffChart {
                name: text(&format!("{}, {}{line}{repeat}", row.subject, row.workload)),
                start_s: s.start_s,
                step_s: s.step_s,
                ops_per_s: s.ops_per_s.clone(),
            });
        }
    }
    out
}

/// A month of the subject, where its price is known.
const MONTH: [&str; 2] = ["month", "month_at_rate"];

fn costs(rows: &[CampaignRow], runs: &[PublishedRun]) -> (Vec<CostPoint>, String) {
    let mut out = Vec::new();
    let mut unit = String::new();
    // What is paid for the storage alone and what is paid for it under this load are no points of one chart; nor is what another line
    // of the same run would cost.
    let figure = |r: &CampaignRow, name: &str| {
        let is_its = |f: &&CostFigure| f.name == name && f.workload.as_ref().is_none_or(|w| *w == r.line);
        costs_of(r, runs)?.figures.iter().find(is_its)
    };
    let Some(name) = MONTH.into_iter().find(|name| rows.iter().any(|r| figure(r, name).is_some())) else {
        return (out, unit);
    };
    for r in rows {
        let (Some(rate), Some(f)) = (r.ops_per_s, figure(r, name)) else { continue };
        if !unit.is_empty() && f.unit != unit {
            continue;
        }
        unit.clone_from(&f.unit);
        out.push(CostPoint {
            subject: text(&r.subject),
            workload: text(&r.workload),
            rate,
            cost: f.amount.value,
        });
    }
    (out, unit)
}

impl ChartData {
    /// How many charts a reader sees.
    pub fn count(&self) -> usize {
        [
            self.bars.len(),
            self.curves.len(),
            self.knees.len(),
            self.cliffs.len(),
            usize::from(!self.costs.is_empty()),
        ]
        .iter()
        .filter(|n| **n > 0)
        .count()
    }

    /// Each with a name for its file.
    pub fn sheets(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![
            ("rates", self.rates()),
            ("rate-over-size", self.over_size()),
            ("latency-against-rate", self.against_rate()),
            ("rate-over-time", self.over_time()),
            ("cost-against-rate", self.cost_sheet()),
        ];
        // Only a head: there is no such chart.
        out.retain(|(_, text)| text.lines().count() > 1);
        out
    }

    fn rates(&self) -> String {
        let mut out = line(
            ["chart", "group", "subject", "unit", "value", "low", "high", "promised", "void"].into_iter(),
        );
        for (c, b) in self.bars.iter().flat_map(|c| c.bars.iter().map(move |b| (c, b))) {
            let [v, l, h] = three(b.rate);
            let promised = b.promised.map(plain).unwrap_or_default();
            let void = b.void.clone().unwrap_or_default();
            out += &line([&*c.name, &b.group, &b.subject, &c.unit, &v, &l, &h, &promised, &void].into_iter());
        }
        out
    }

    fn over_size(&self) -> String {
        let heads =
            ["op", "subject", "size_bytes", "ops_per_s", "low", "high", "ops_cap", "bytes_cap", "knee_bytes"];
        let mut out = line(heads.into_iter());
        for (c, l) in self.curves.iter().flat_map(|c| c.lines.iter().map(move |l| (c, l))) {
            let [ops, bytes, knee] =
                [l.ops_cap, l.bytes_cap, l.knee_bytes].map(|x| x.map(plain).unwrap_or_default());
            for (size, e) in &l.points {
                let [v, low, high] = three(Some(*e));
                out += &line(
                    [&*c.name, &l.subject, &size.to_string(), &v, &low, &high, &ops, &bytes, &knee]
                        .into_iter(),
                );
            }
        }
        out
    }

    fn against_rate(&self) -> String {
        let heads = ["chart", "subject", "workload", "ops_per_s", "low", "high", "p50_ns", "p99_ns"];
        let mut out = line(heads.into_iter());
        for (c, p) in self.knees.iter().flat_map(|c| c.points.iter().map(move |p| (c, p))) {
            let [v, low, high] = three(Some(p.rate));
            let [p50, p99] = [p.p50_ns, p.p99_ns].map(|n| n.map(|n| n.to_string()).unwrap_or_default());
            out += &line([&*c.name, &p.subject, &p.workload, &v, &low, &high, &p50, &p99].into_iter());
        }
        out
    }

    fn over_time(&self) -> String {
        let mut out = line(["series", "after_s", "ops_per_s"].into_iter());
        for c in &self.cliffs {
            for (i, v) in c.ops_per_s.iter().enumerate() {
                let at = plain(((c.start_s + i as f64 * c.step_s) * 1000.0).round() / 1000.0);
                out += &line([&*c.name, &at, &v.map(plain).unwrap_or_default()].into_iter());
            }
        }
        out
    }

    fn cost_sheet(&self) -> String {
        let mut out = line(["subject", "workload", "ops_per_s", "low", "high", "cost", "unit"].into_iter());
        for p in &self.costs {
            let [v, low, high] = three(Some(p.rate));
            out += &line(
                [&*p.subject, &p.workload, &v, &low, &high, &plain(p.cost), &self.cost_unit].into_iter(),
            );
        }
        out
    }
}

fn three(e: Option<Estimate>) -> [String; 3] {
    e.map_or_else(Default::default, |e| [e.value, e.low, e.high].map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::cost::CostSummary;
    use serde_json::json;

    fn row(subject: &str, line: &str, rate: f64, run: &str) -> CampaignRow {
        let of = json!({ "value": rate, "low": rate - 1.0, "high": rate + 1.0, "n_eff": 9.0 });
        serde_json::from_value(json!({
            "subject": subject, "labels": {}, "workload": "put 4KiB", "line": line, "op": "put", "size_bytes": 4096,
            "promised": {}, "ops_per_s": of, "ops_runs": 1, "bytes_runs": 0, "tools": [], "refused": 0.0, "runs": [run],
            "void": [], "to_go": 0, "instances": 1
        }))
        .unwrap()
    }

    fn run(name: &str, figures: &[(&str, Option<&str>, &str, f64)]) -> PublishedRun {
        let figure = |(name, line, unit, amount): &(&str, Option<&str>, &str, f64)| CostFigure {
            name: (*name).into(),
            workload: line.map(Into::into),
            unit: (*unit).into(),
            amount: Estimate::exact(*amount),
            formula: String::new(),
        };
        let cost = CostSummary {
            currency: "USD".into(),
            subject: String::new(),
            date: "2026-11-01".into(),
            region: String::new(),
            source: String::new(),
            sha256: String::new(),
            month_s: 2_592_000.0,
            counted: Vec::new(),
            figures: figures.iter().map(figure).collect(),
            open: Vec::new(),
        };
        PublishedRun { cost: Some(cost), ..PublishedRun::unread(name) }
    }

    #[test]
    fn costs_stand_against_the_rate_of_their_own_line_in_one_unit() {
        let month = |line, amount| ("month_at_rate", line, "USD/month", amount);
        let rows =
            [row("a", "w/put", 100.0, "1"), row("a", "w/get", 300.0, "1"), row("b", "w/put", 200.0, "2")];
        let runs = [
            run("1", &[month(Some("w/get"), 9.0), month(Some("w/put"), 5.0)]),
            run("2", &[month(Some("w/put"), 7.0)]),
        ];
        let (points, unit) = costs(&rows, &runs);
        let all: Vec<_> = points.iter().map(|p| (p.subject.as_str(), p.rate.value, p.cost)).collect();
        assert_eq!(all, [("a", 100.0, 5.0), ("a", 300.0, 9.0), ("b", 200.0, 7.0)]);
        assert_eq!(unit, "USD/month");
        // A price of the storage alone is no point beside one under load, and another currency is none beside this one.
        let runs = [run("1", &[("month", None, "USD/month", 3.0)]), run("2", &[month(Some("w/put"), 7.0)])];
        assert_eq!(costs(&rows, &runs).0.iter().map(|p| p.cost).collect::<Vec<_>>(), [3.0, 3.0]);
        let euros = ("month", None, "EUR/month", 3.0);
        let runs = [run("1", &[("month", None, "USD/month", 3.0)]), run("2", &[euros])];
        let (points, unit) = costs(&rows, &runs);
        assert_eq!((points.len(), unit.as_str()), (2, "USD/month"));
        let data = ChartData { costs: points, cost_unit: unit, ..ChartData::default() };
        let (name, sheet) = data.sheets().pop().unwrap();
        assert!(
            name == "cost-against-rate" && sheet.lines().count() == 3 && sheet.contains("USD/month"),
            "{sheet}"
        );
        assert_eq!((data.count(), costs(&rows, &[]).0.len()), (1, 0));
    }
}
