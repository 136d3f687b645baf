//! What several runs say together (`compare`, `scale`): a verdict, tables and findings, with no line of a run's own.

use plimsoll_model::analysis::{Analysis, Comparison, Scaling};
use plimsoll_model::{Estimate, RunSummary};

use crate::markdown as md;
use crate::table::{escape_markdown, wrap};
use crate::terminal::{self, Style};

/// What several runs say together, for a terminal.
pub fn terminal(s: &RunSummary, a: &Analysis, style: Style) -> String {
    let mut out = String::new();
    let verdict = wrap(&s.verdict.replace("**", ""), style.width, "", "");
    for line in verdict.lines() {
        out.push_str(&style.paint(if s.valid { "1" } else { "1;31" }, line));
        out.push('\n');
    }
    out.push('\n');
    for t in crate::limits::tables(s, a) {
        out.push_str(&style.bold(&t.title));
        out.push('\n');
        out.push_str(&t.plain(style.width));
        out.push('\n');
    }
    terminal::findings(&mut out, &s.findings, style);
    out
}

/// The same as Markdown.
pub fn markdown(s: &RunSummary, a: &Analysis) -> String {
    let mut out = format!("{}\n\n", md::emphasised(&s.verdict));
    for t in crate::limits::tables(s, a) {
        out.push_str(&format!("### {}\n\n{}\n", escape_markdown(&t.title), t.markdown()));
    }
    md::findings(&mut out, &s.findings);
    out
}

/// RFC 4180, one row per comparison, or per size of a system. Numbers that are not known are empty.
pub fn csv(a: &Analysis) -> String {
    let mut out = String::new();
    if !a.comparisons.is_empty() {
        let heads = "name,op,size_bytes,concurrency,measure,unit,a,b,a_runs,b_runs,paired,ratio,ratio_low,ratio_high,\
                     detectable,outcome,holds_among_all";
        out.push_str(&crate::csv::row(heads.split(',').map(String::from).collect()));
        out.extend(a.comparisons.iter().map(|c| crate::csv::row(comparison(c))));
    }
    if !a.scalings.is_empty() {
        let heads =
            "name,nodes,unit,per_s,per_s_low,per_s_high,efficiency,efficiency_low,efficiency_high,status";
        out.push_str(&crate::csv::row(heads.split(',').map(String::from).collect()));
        out.extend(a.scalings.iter().flat_map(scaling).map(crate::csv::row));
    }
    out
}

fn comparison(c: &Comparison) -> Vec<String> {
    let list = |v: &[f64]| v.iter().map(|x| crate::csv::number(*x)).collect::<Vec<_>>().join(" ");
    let mut row = vec![
        c.name.clone(),
        c.op.clone(),
        c.size_bytes.to_string(),
        c.concurrency.to_string(),
        c.measure.clone(),
        c.unit.clone(),
        c.a_name.clone(),
        c.b_name.clone(),
        list(&c.a),
        list(&c.b),
        c.paired.to_string(),
    ];
    row.extend(estimate(c.ratio.as_ref()));
    row.push(c.detectable.map_or(String::new(), crate::csv::number));
    row.push(c.outcome.clone());
    row.push(c.holds_among_all.map_or(String::new(), |h| h.to_string()));
    row
}

fn scaling(s: &Scaling) -> Vec<Vec<String>> {
    let row = |nodes: u32, per_s: &Estimate, efficiency: Option<&Estimate>, status: &str| {
        let mut row = vec![s.name.clone(), nodes.to_string(), s.unit.clone()];
        row.extend(estimate(Some(per_s)));
        row.extend(estimate(efficiency));
        row.push(status.to_owned());
        row
    };
    let measured = s.points.iter().map(|p| row(p.nodes, &p.per_s, p.efficiency.as_ref(), "measured"));
    let predicted = s.predictions.iter().map(|p| {
        let status = if p.speculative { "predicted, speculative" } else { "predicted" };
        row(p.nodes, &p.per_s, p.efficiency.as_ref(), status)
    });
    measured.chain(predicted).collect()
}

fn estimate(e: Option<&Estimate>) -> [String; 3] {
    e.map_or([const { String::new() }; 3], |e| [e.value, e.low, e.high].map(crate::csv::number))
}
