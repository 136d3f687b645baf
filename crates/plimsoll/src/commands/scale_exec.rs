//! `scale`: what more nodes bring, from runs at several sizes of a system.

use std::collections::BTreeMap;

use plimsoll_judge::alike::{self, Member};
use plimsoll_model::analysis::{Scaling, ScalingPoint, ScalingPrediction};
use plimsoll_model::claim::figure;
use plimsoll_model::count::counted;
use plimsoll_model::finding::Level;
use plimsoll_model::{Analysis, Estimate, Finding, Verdict};
use plimsoll_stats::{compare, scale};

use super::runs::ScaleCommand;
use super::several::{self, JointReport, LineKey};
use super::side;
use crate::fault::{Exit, Fault};

const BOOTSTRAPS: usize = 1000;
/// From this size on people speak of bytes a second.
const LARGE: u64 = 256 << 10;
/// An efficiency that is less well known than this settles nothing.
const WIDE: f64 = 0.15;

pub fn scale(c: &ScaleCommand) -> Result<Exit, Fault> {
    let mut by_nodes: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    let (usable, left_out) = several::usable(several::read(&c.runs, &c.output)?, "")?;
    for run in usable {
        let nodes = run.summary.labels.get(&c.label).and_then(|v| v.parse().ok()).filter(|n| *n > 0);
        let nodes = nodes.ok_or_else(|| {
            Fault::input(
                format!("run {} has no number in its label '{}'", run.summary.id, c.label),
                format!("Make runs with --label {}=4, or choose another label with --label.", c.label),
            )
        })?;
        by_nodes.entry(nodes).or_default().push(run);
    }
    let all = || by_nodes.values().flatten();
    let scalings: Vec<Scaling> = several::common_lines(all())
        .iter()
        .map(|line| {
            let seen: Vec<(u32, Vec<Estimate>)> = by_nodes
                .iter()
                .map(|(n, runs)| (*n, estimates(runs, line)))
                .filter(|(_, e)| !e.is_empty())
                .collect();
            let mut s = scaling(line, &seen, &c.label);
            side::with_ceilings(&mut s, &by_nodes, &c.label);
            s
        })
        .collect();
    if scalings.is_empty() {
        return Err(Fault::input("these runs have no line in common", "Scale runs of the same workload."));
    }
    let stated = |p: &ScalingPoint| p.efficiency.is_some_and(|e| figure(e, None).is_ok());
    let decided = scalings.iter().any(|s| s.points.iter().skip(1).any(stated));
    let told = JointReport {
        what: "scale",
        title: format!("Scaling by {}", c.label),
        verdict: verdict(&scalings),
        findings: findings(&by_nodes, left_out, &c.label, &scalings),
        analysis: Analysis { scalings, ..Analysis::default() },
        runs: by_nodes
            .iter()
            .map(|(n, runs)| (n.to_string(), runs.iter().map(|m| m.summary.id.clone()).collect()))
            .collect(),
        rerun: format!("plimsoll scale {} --label {}", c.runs.join(" "), c.label),
    };
    told.print(&c.output, decided)
}

/// The first two; the tables have the others.
fn verdict(scalings: &[Scaling]) -> String {
    let mut out: Vec<String> =
        scalings.iter().take(2).map(|s| format!("{}: {}", s.name, s.verdict)).collect();
    if scalings.len() > 2 {
        out.push(format!("{} more in the tables.", scalings.len() - 2));
    }
    out.join(" ")
}

fn findings(
    by_nodes: &BTreeMap<u32, Vec<Member>>,
    mut out: Vec<Finding>,
    label: &str,
    scalings: &[Scaling],
) -> Vec<Finding> {
    out.extend(by_nodes.iter().filter_map(|(n, runs)| alike::within(runs, &format!("{label}={n}"))));
    let fewest = by_nodes.values().map(Vec::len).min().unwrap_or(0);
    if fewest < 5 {
        let more = if fewest < 3 { ", any prediction at least three" } else { "" };
        let text = format!(
            "{} at one number of {label}: a narrow interval needs at least five of each{more}.",
            counted(fewest as u64, "run")
        );
        out.push(Finding::new("Q02", "few_repeats", Level::Qualified, text).measured(fewest as f64, 5.0));
    }
    let wide = |p: &ScalingPoint| p.efficiency.is_some_and(|e| e.relative_half_width() > WIDE);
    for s in scalings.iter().filter(|s| s.points.iter().any(wide)) {
        let text = format!(
            "The efficiency is not known to within {:.0} %: make more or longer runs at each number of {label}.",
            100.0 * WIDE
        );
        out.push(Finding::new("Q03", "wide_interval", Level::Qualified, text).on(s.name.clone()));
    }
    out.sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(&b.code)));
    out
}

/// `what`: the label whose number grows, `nodes` if nobody says otherwise.
fn scaling(line: &LineKey, seen: &[(u32, Vec<Estimate>)], what: &str) -> Scaling {
    let (unit, factor) =
        if line.size_bytes >= LARGE { ("bytes/s", line.size_bytes as f64) } else { ("ops/s", 1.0) };
    let sizes: Vec<scale::ScaleSize> = seen
        .iter()
        .map(|(n, runs)| scale::ScaleSize {
            n: f64::from(*n),
            runs: runs.iter().map(|e| e.value * factor).collect(),
        })
        .collect();
    let largest = sizes.iter().map(|s| s.n).fold(1.0, f64::max);
    let mut predict = vec![(1.25 * largest).ceil(), (1.5 * largest).floor(), 2.0 * largest];
    predict.retain(|n| *n > largest);
    predict.dedup();
    let judged = scale::scaling(&sizes, &predict, BOOTSTRAPS, 1);
    let points = seen.iter().zip(&sizes).map(|((nodes, runs), size)| ScalingPoint {
        nodes: *nodes,
        per_s: mean_of(runs).scaled(factor),
        efficiency: against(&sizes[0], size),
        limited_by: None,
        ceiling_per_s: None,
    });
    let points: Vec<ScalingPoint> = points.collect();
    let per_node = points[0].per_s.value / sizes[0].n;
    let mut told: Vec<String> = judged.steps.iter().map(|s| step(s, what)).collect();
    let mut peak_nodes = None;
    let predictions = match &judged.law {
        Verdict::Known(law) => {
            peak_nodes = law.peak;
            told.extend(law.peak.map(|n| {
                format!(
                    "more than about {n:.0} {what} would lower the rate (crosstalk, by the scalability law)"
                )
            }));
            told.extend(law.predictions.iter().find(|p| !p.speculative).map(|p| predicted(p, unit, what)));
            law.predictions.iter().map(|p| prediction(p, per_node)).collect()
        }
        Verdict::Inconclusive(why) => {
            told.push(format!("no prediction ({why})"));
            Vec::new()
        }
    };
    Scaling {
        name: several::line_name(line),
        unit: unit.into(),
        points,
        predictions,
        peak_nodes,
        verdict: told.join("; ") + ".",
    }
}

fn step(s: &scale::ScaleStep, what: &str) -> String {
    match &s.efficiency {
        Verdict::Known(e) if figure(*e, None).is_err() => format!(
            "from {} to {}: undetermined, the runs of one number of {what} differ too much among themselves (95 % CI: {:.0} to {:.0} % of \
             linear)",
            s.from,
            s.to,
            100.0 * e.low,
            100.0 * e.high
        ),
        Verdict::Known(e) => format!(
            "from {} to {} {what}, the rate grew {:.2} times, **{:.0} %** of linear (95 % CI: {:.0} to {:.0} %)",
            s.from,
            s.to,
            e.value * s.to / s.from,
            100.0 * e.value,
            100.0 * e.low,
            100.0 * e.high
        ),
        Verdict::Inconclusive(why) => format!("from {} to {}: undetermined, {why}", s.from, s.to),
    }
}

fn predicted(p: &scale::Prediction, unit: &str, what: &str) -> String {
    let rate = match unit {
        "bytes/s" => plimsoll_stats::words::bytes_rate(&p.rate),
        _ => plimsoll_stats::words::ops_rate(&p.rate),
    };
    format!("with {} {what}, expect {rate}", p.n)
}

/// Efficiency against the smallest size, whose own is 1 by definition.
fn against(first: &scale::ScaleSize, size: &scale::ScaleSize) -> Option<Estimate> {
    if size.n <= first.n {
        return Some(Estimate::exact(1.0));
    }
    let ratio = compare::compare(&size.runs, &first.runs, false).known()?.ratio;
    Some(ratio.scaled(first.n / size.n))
}

fn prediction(p: &scale::Prediction, per_node: f64) -> ScalingPrediction {
    ScalingPrediction {
        nodes: p.n.round() as u32,
        per_s: p.rate,
        efficiency: (per_node > 0.0).then(|| p.rate.scaled(1.0 / (p.n * per_node))),
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

fn estimates(runs: &[Member], line: &LineKey) -> Vec<Estimate> {
    runs.iter().filter_map(|r| several::line(&r.summary, line)?.ops_per_s).collect()
}
