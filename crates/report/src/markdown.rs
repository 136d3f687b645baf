//! The same result as Markdown, for issues, wikis and pull requests.

use std::fmt::Write as _;

use plimsoll_model::Finding;
use plimsoll_model::finding::Level;

use crate::layout::Layout;
use crate::run::RunReport;
use crate::table::escape_markdown;
use crate::verdict::verdict;
use crate::{lines, tables, terminal};

/// One or several runs, as [`crate::terminal`] orders them.
pub fn markdown(runs: &[RunReport], layout: Layout<'_>) -> String {
    let mut out = String::new();
    if let Some(title) = layout.title {
        let _ = writeln!(out, "# {}\n", escape_markdown(title));
    }
    if runs.len() > 1 || !layout.by.is_empty() {
        let _ = writeln!(out, "## Runs side by side\n");
        out.push_str(&layout.side_by_side(runs).markdown());
        out.push('\n');
    }
    for r in runs {
        run(&mut out, r);
    }
    out
}

fn run(out: &mut String, r: &RunReport) {
    let s = &r.summary;
    let _ = writeln!(out, "## {}\n\n{}\n", escape_markdown(&s.id), emphasised(&verdict(s)));
    // Of a search the tables below say what it found; its steps are in JSON.
    if tables::is_search(r) {
        // Nothing here.
    } else if tables::is_sweep(s) {
        out.push_str(&tables::sweep(s).markdown());
    } else {
        out.push_str(&tables::overview(s).markdown());
        for w in &s.workloads {
            let t = tables::latencies(w);
            if !t.rows.is_empty() {
                let _ = writeln!(
                    out,
                    "\n{}: {}. Ops: {}.\n",
                    escape_markdown(&lines::label(w, &s.workloads)),
                    escape_markdown(&tables::conditions(w)),
                    escape_markdown(&tables::outcomes(w))
                );
                out.push_str(&t.markdown());
            }
            for note in &w.notes {
                let _ = writeln!(out, "\nNote: {}", escape_markdown(note));
            }
        }
    }
    out.push('\n');
    let mut more = crate::limits::tables(s, &r.analysis);
    let each = tables::each_run(s);
    if !each.rows.is_empty() {
        more.insert(0, each);
    }
    let expected = tables::expectations(&s.expectations);
    if !expected.rows.is_empty() {
        more.push(expected);
    }
    let agents = crate::agents::table(s);
    if !agents.rows.is_empty() {
        more.push(agents);
    }
    more.extend(crate::servers::tables(s));
    for t in more {
        let _ = writeln!(out, "### {}\n\n{}", escape_markdown(&t.title), t.markdown());
    }
    if let Some(c) = &s.cost {
        out.push_str(&(crate::cost::cost_markdown(c, false) + "\n"));
    }
    if !r.analysis.advice.is_empty() {
        out.push_str("### Advice\n\n");
        for line in &r.analysis.advice {
            let _ = writeln!(out, "- {}", escape_markdown(line));
        }
        out.push('\n');
    }
    findings(out, &s.findings);
    if !s.rerun.is_empty() {
        let _ = writeln!(out, "Again:\n\n    {}\n", s.rerun.replace('\n', " "));
    }
    let e = &s.environment;
    let _ = writeln!(
        out,
        "Plimsoll {} ({}), Linux {}, {} x {}, started {}.",
        escape_markdown(&e.plimsoll_version),
        escape_markdown(&e.commit),
        // Of itself it may begin with the name.
        escape_markdown(e.machine.kernel.trim_start_matches("Linux ")),
        e.machine.cpu_count,
        escape_markdown(&e.machine.cpu_model),
        escape_markdown(&e.started_at)
    );
}

pub fn findings(out: &mut String, all: &[Finding]) {
    if all.is_empty() {
        return;
    }
    out.push_str("### Findings\n\n");
    for (f, others) in terminal::grouped(all) {
        let level = match f.level {
            Level::Invalid => "**INVALID** ",
            Level::Qualified => "note ",
            Level::Info => "",
        };
        let more = if others > 0 { format!("; similar on {others} more") } else { String::new() };
        let on = f.workload.as_ref().map_or(String::new(), |w| format!(" (on {}{more})", escape_markdown(w)));
        let _ = writeln!(out, "- {level}{} {}{on}: {}", f.code, f.name, escape_markdown(&f.text));
    }
    out.push('\n');
}

/// The verdict's own emphasis stays, everything else is text.
pub fn emphasised(s: &str) -> String {
    s.split("**").map(escape_markdown).collect::<Vec<_>>().join("**")
}
