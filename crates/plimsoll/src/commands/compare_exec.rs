//! `compare` and `scale`: what several runs say together, in the same forms as a run.

use std::collections::BTreeMap;

use plimsoll_model::analysis::{Comparison, Scaling, ScalingPoint, ScalingPrediction};
use plimsoll_model::summary::{SCHEMA, WorkloadSummary};
use plimsoll_model::{Analysis, Environment, Estimate, RunSummary, Verdict};
use plimsoll_report::{RunReport, Style};
use plimsoll_stats::compare::Difference;
use plimsoll_stats::{compare, scale};

use super::runs::{CompareCommand, ScaleCommand};
use crate::args::OutputArgs;
use crate::fault::{Exit, Fault};
use crate::{output, runs_dir};

/// Which lines of different runs are the same thing: op, size, concurrency.
type Line = (String, u64, u32);

const BOOTSTRAPS: usize = 1000;

pub fn compare(c: &CompareCommand) -> Result<Exit, Fault> {
    let (a, b) = (summaries(&c.a, &c.output)?, summaries(&c.b, &c.output)?);
    let mut warnings = invalid(a.iter().chain(&b));
    let mut rows = Vec::new();
    for line in common_lines(a.iter().chain(&b)) {
        for (measure, unit, of) in MEASURES {
            let (va, vb) = (values(&a, &line, *of), values(&b, &line, *of));
            if va.len() == a.len() && vb.len() == b.len() {
                rows.push(comparison(&line, measure, unit, va, vb, (&c.a, &c.b)));
            }
        }
    }
    if rows.is_empty() {
        return Err(Fault::input(
            "these runs have no line in common (the same op, size and concurrency, measured in each)",
            "Compare runs of the same workload.",
        ));
    }
    let said = |r: &&Comparison| !r.verdict.starts_with("undetermined");
    let decided = rows.iter().filter(said).count();
    let first = &rows[0];
    warnings.insert(0, format!("{}: {}", first.name, first.verdict));
    let analysis = Analysis { comparisons: rows, ..Analysis::default() };
    print(&c.output, "compare", warnings.join(" "), analysis)?;
    Ok(if decided == 0 { Exit::Undetermined } else { Exit::Valid })
}

/// Name, unit and reading of each measure that is compared.
type Measure = (&'static str, &'static str, fn(&WorkloadSummary) -> Option<f64>);
const MEASURES: &[Measure] = &[
    ("rate", "op/s", |w| w.ops_per_s.map(|e| e.value)),
    ("mean response", "ns", |w| w.latency_ns.response.as_ref().map(|l| l.mean)),
    ("p99 response", "ns", |w| w.latency_ns.response.as_ref().and_then(|l| l.p99).map(|v| v as f64)),
];

fn comparison(
    line: &Line,
    measure: &str,
    unit: &str,
    a: Vec<f64>,
    b: Vec<f64>,
    names: (&[String], &[String]),
) -> Comparison {
    let paired = a.len() == b.len();
    let (ratio, detectable, verdict) = match compare::compare(&a, &b, paired) {
        Verdict::Known(c) => (Some(c.ratio), Some(c.minimal_detectable), told(&c, unit)),
        Verdict::Inconclusive(why) => (None, None, format!("undetermined: {why}")),
    };
    Comparison {
        name: format!("{} {measure}", line_name(line)),
        unit: unit.into(),
        a_name: names.0.join(" "),
        b_name: names.1.join(" "),
        a,
        b,
        paired,
        ratio,
        detectable,
        verdict,
    }
}

/// Faster and slower for a person: of a latency, less is better.
fn told(c: &compare::Comparison, unit: &str) -> String {
    let better = match (c.difference, unit) {
        (Difference::NoneSeen, _) => return c.text(),
        (Difference::Greater, "ns") | (Difference::Less, "op/s") => "A is slower",
        _ => "A is faster",
    };
    let mut text = format!("{better}: {}", c.text());
    if c.bimodal {
        text.push_str(" Runs fall into more than one group: look at each.");
    }
    text
}

pub fn scale(c: &ScaleCommand) -> Result<Exit, Fault> {
    let runs = summaries(&c.runs, &c.output)?;
    let mut warnings = invalid(runs.iter());
    let mut by_nodes: BTreeMap<u32, Vec<RunSummary>> = BTreeMap::new();
    for run in runs {
        let nodes = run.labels.get(&c.label).and_then(|v| v.parse().ok()).filter(|n| *n > 0);
        let nodes = nodes.ok_or_else(|| {
            Fault::input(
                format!("run {} has no number in its label '{}'", run.id, c.label),
                format!("Make runs with --label {}=4, or name another with --label.", c.label),
            )
        })?;
        by_nodes.entry(nodes).or_default().push(run);
    }
    let mut scalings = Vec::new();
    for line in common_lines(by_nodes.values().flatten()) {
        let sizes: Vec<(u32, Vec<Estimate>)> = by_nodes
            .iter()
            .map(|(n, runs)| (*n, estimates(runs, &line)))
            .filter(|(_, e)| !e.is_empty())
            .collect();
        scalings.push(scaling(&line, &sizes));
    }
    if scalings.is_empty() {
        return Err(Fault::input("these runs have no line in common", "Scale runs of the same workload."));
    }
    warnings.splice(0..0, scalings.iter().map(|s| format!("{}: {}", s.name, s.verdict)));
    let decided = scalings.iter().any(|s| s.points.iter().any(|p| p.efficiency.is_some()));
    print(&c.output, "scale", warnings.join(" "), Analysis { scalings, ..Analysis::default() })?;
    Ok(if decided { Exit::Valid } else { Exit::Undetermined })
}

fn scaling(line: &Line, seen: &[(u32, Vec<Estimate>)]) -> Scaling {
    let sizes: Vec<scale::Size> = seen
        .iter()
        .map(|(n, runs)| scale::Size { n: f64::from(*n), runs: runs.iter().map(|e| e.value).collect() })
        .collect();
    let largest = sizes.iter().map(|s| s.n).fold(1.0, f64::max);
    let predict = [1.25 * largest, 1.5 * largest, 2.0 * largest];
    let judged = scale::scaling(&sizes, &predict, BOOTSTRAPS, 1);
    let mut points = Vec::new();
    for (i, (nodes, runs)) in seen.iter().enumerate() {
        let efficiency = i.checked_sub(1).and_then(|i| judged.steps.get(i)?.efficiency.known().copied());
        points.push(ScalingPoint { nodes: *nodes, per_s: mean_of(runs), efficiency });
    }
    let mut told: Vec<String> = judged
        .steps
        .iter()
        .map(|s| match &s.efficiency {
            Verdict::Known(e) => format!(
                "from {} to {} nodes {:.0} % of the ideal gain was reached",
                s.from,
                s.to,
                e.value * 100.0
            ),
            Verdict::Inconclusive(why) => format!("from {} to {}: undetermined, {why}", s.from, s.to),
        })
        .collect();
    let predictions = match &judged.law {
        Verdict::Known(law) => law.predictions.iter().map(prediction).collect(),
        Verdict::Inconclusive(why) => {
            told.push(format!("no prediction: {why}"));
            Vec::new()
        }
    };
    Scaling {
        name: line_name(line),
        unit: "ops/s".into(),
        points,
        predictions,
        verdict: told.join("; ") + ".",
    }
}

fn prediction(p: &scale::Prediction) -> ScalingPrediction {
    ScalingPrediction {
        nodes: p.n.round() as u32,
        per_s: p.rate,
        efficiency: None,
        speculative: p.speculative,
    }
}

/// Mean of runs with the interval between them; of one run, the interval within it.
fn mean_of(runs: &[Estimate]) -> Estimate {
    if let [one] = runs {
        return *one;
    }
    let n = runs.len() as f64;
    let mean = runs.iter().map(|e| e.value).sum::<f64>() / n;
    let variance = runs.iter().map(|e| (e.value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Estimate::symmetric(mean, plimsoll_stats::student::t95(n - 1.0) * (variance / n).sqrt(), n)
}

fn estimates(runs: &[RunSummary], line: &Line) -> Vec<Estimate> {
    runs.iter().filter_map(|r| r.workloads.iter().find(|w| line_of(w) == *line)?.ops_per_s).collect()
}

fn summaries(names: &[String], output: &OutputArgs) -> Result<Vec<RunSummary>, Fault> {
    names.iter().map(|n| Ok(runs_dir::find(output.runs_dir.as_deref(), n)?.summary()?)).collect()
}

fn invalid<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Vec<String> {
    runs.filter(|r| !r.valid).map(|r| format!("Run {} is invalid: {}", r.id, r.verdict)).collect()
}

/// Lines that every run has, in the order of the first.
fn common_lines<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Vec<Line> {
    let all: Vec<Vec<Line>> = runs.map(|r| r.workloads.iter().map(line_of).collect()).collect();
    let Some(first) = all.first() else { return Vec::new() };
    first.iter().filter(|l| all.iter().all(|run| run.contains(l))).cloned().collect()
}

fn line_of(w: &WorkloadSummary) -> Line {
    (w.op.clone(), w.size_bytes, w.concurrency)
}

fn line_name((op, size, concurrency): &Line) -> String {
    format!("{op} {} x{concurrency}", plimsoll_model::units::format_size(*size))
}

fn values(runs: &[RunSummary], line: &Line, of: fn(&WorkloadSummary) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(|r| of(r.workloads.iter().find(|w| line_of(w) == *line)?)).collect()
}

fn print(o: &OutputArgs, what: &str, verdict: String, analysis: Analysis) -> Result<(), Fault> {
    let summary = RunSummary {
        schema: SCHEMA.into(),
        id: what.into(),
        valid: true,
        verdict,
        findings: Vec::new(),
        workloads: Vec::new(),
        limits: Vec::new(),
        expectations: Vec::new(),
        labels: BTreeMap::new(),
        rerun: String::new(),
        environment: Environment::default(),
    };
    if let Some(file) = &o.html {
        let report = RunReport { analysis: analysis.clone(), ..RunReport::of(summary.clone()) };
        output::write_html(std::path::Path::new(file), &[report], &[])?;
    }
    if o.json {
        let json = serde_json::json!({
            "schema": format!("plimsoll.{what}/1"), "verdict": summary.verdict,
            "comparisons": analysis.comparisons, "scalings": analysis.scalings,
        });
        return output::print(&format!("{json:#}\n"));
    }
    let tables = plimsoll_report::limits::tables(&summary, &analysis);
    let style = Style::for_stdout();
    let mut out = String::new();
    for t in &tables {
        out.push_str(&if o.markdown { t.markdown() } else { t.plain(style.width) });
        out.push('\n');
    }
    let head = plimsoll_report::table::wrap(&summary.verdict, style.width, "", "");
    output::print(&format!("{head}\n{out}"))
}
