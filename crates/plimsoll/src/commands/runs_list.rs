//! `runs list`: what there is, newest first.

use plimsoll_index::IndexedRun;
use plimsoll_model::plan::suite;
use plimsoll_model::text::clean;
use plimsoll_report::Style;
use plimsoll_report::table::Table;
use plimsoll_store::RunState;

use super::runs::ListRunsArgs;
use super::{net_exec, runs_export};
use crate::fault::{Exit, Fault};
use crate::{output, runs_dir};

pub fn list(a: &ListRunsArgs) -> Result<Exit, Fault> {
    let root = runs_dir::root(a.filter.runs_dir.as_deref());
    let mut runs = a.filter.runs()?;
    runs.reverse();
    if a.json {
        let json = serde_json::to_string_pretty(&runs).expect("entries are plain data");
        output::print(&(json + "\n"))?;
        return Ok(Exit::Valid);
    }
    if a.csv {
        let table = runs_export::runs_table(&runs, &runs_export::labels_of(&runs));
        output::print(&(table.csv_heads() + &table.csv_rows()))?;
        return Ok(Exit::Valid);
    }
    // Network tests have none of what is filtered by.
    let with_tests = a.filter.is_all();
    if runs.is_empty() && (!with_tests || plimsoll_store::net::ids(&root).is_empty()) {
        let such = if with_tests { "no runs" } else { "no such runs" };
        output::tell(format_args!("plimsoll: {such} in {}", root.display()));
        return Ok(Exit::Valid);
    }
    if !runs.is_empty() {
        output::print(&table(&runs, Style::for_stdout().width))?;
    }
    if with_tests { net_exec::list(&root) } else { Ok(Exit::Valid) }
}

/// Of a width that what was measured and what came of it share: the least for each.
const LEAST: usize = 14;
/// From this width on the time has a column of its own; below, the run's name has it anyway.
const WITH_TIME: usize = 120;

/// A run's row, uncut: name, time, what, labels, result, status.
fn row(run: &IndexedRun) -> [String; 6] {
    let r = &run.entry;
    let labels = r
        .labels
        .iter()
        .filter(|(k, _)| !suite::is_own_label(&r.labels, k) && *k != super::import_exec::LABEL);
    let labels: String = labels.map(|(k, v)| format!(" {k}={v}")).collect();
    let mut status = match (r.state, run.mark.as_str()) {
        (RunState::Running, _) => "running".into(),
        (RunState::Unfinished, _) => "killed".into(),
        (RunState::Sealed, "") => "done".into(),
        (RunState::Sealed, mark) => mark.to_owned(),
    };
    if r.cleanup_due > 0 && r.state != RunState::Running {
        status += &format!(", {} to clean up", r.cleanup_due);
    }
    if run.imported.is_some() {
        status += ", imported";
    }
    // RFC 3339: date and minute.
    let started = r.started_at.get(..16).unwrap_or_default().replace('T', " ");
    [r.id.clone(), started, run.what.clone(), labels, run.result.clone(), status]
        .map(|text| clean(&text).into_owned())
}

fn table(runs: &[IndexedRun], width: usize) -> String {
    let rows: Vec<[String; 6]> = runs.iter().map(row).collect();
    let heads = [
        if width >= WITH_TIME { "run" } else { "run (UTC)" },
        "started (UTC)",
        "what",
        "",
        "result",
        "status",
    ];
    let widest = |column: usize| {
        let cells = rows.iter().map(|r| r[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let timed = width >= WITH_TIME;
    let taken = widest(0) + widest(5) + if timed { widest(1) + 8 } else { 6 };
    let shared = width.saturating_sub(taken).max(2 * LEAST);
    // What came of it is cut last: its figure stands first in it.
    let result = widest(4).min((shared / 2).max(LEAST));
    let what = shared - result;
    let shown: Vec<&str> = [0, 1, 2, 4, 5].iter().filter(|c| timed || **c != 1).map(|c| heads[*c]).collect();
    let mut t = Table::new("Runs", 1, &shown);
    for [id, started, title, labels, came, status] in rows {
        let mut cells = vec![id, titled(&title, &labels, what), shortened(&came, result), status];
        if timed {
            cells.insert(1, started);
        }
        t.push(cells);
    }
    t.plain(usize::MAX)
}

/// By its labels a run is picked: the title gives way to them.
fn titled(title: &str, labels: &str, most: usize) -> String {
    let for_title = most.saturating_sub(labels.chars().count());
    match for_title {
        0..6 => shortened(labels.trim_start(), most),
        n => shortened(title, n) + labels,
    }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_store::RunEntry;

    use super::*;

    fn entry(id: &str, labels: &[(&str, &str)]) -> IndexedRun {
        let what = "a benchmark of the object store with a very long name";
        let entry = RunEntry {
            id: id.into(),
            path: id.into(),
            name: Some(what.into()),
            started_at: "2026-11-23T08:04:35Z".into(),
            state: RunState::Sealed,
            labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            verdict: None,
            valid: None,
            status: None,
            cleanup_due: 0,
            bytes: 0,
            summary: None,
        };
        IndexedRun {
            entry,
            what: what.into(),
            result: String::new(),
            mark: String::new(),
            answered: None,
            standing: plimsoll_index::RunStanding::Unjudged,
            ops: Vec::new(),
            targets: Vec::new(),
            imported: None,
        }
    }

    /// A run is picked by its labels, on a screen of any width.
    #[test]
    fn the_list_fits_the_screen_and_keeps_the_labels() {
        let runs = [
            entry("20261123-080435-7403", &[("cfg", "before")]),
            entry("20261123-080535-7404", &[("cfg", "after")]),
        ];
        for width in [80, 100, 120] {
            let text = table(&runs, width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}: {text}");
            assert!(text.contains("cfg=before") && text.contains("cfg=after"), "{text}");
        }
        assert!(
            table(&runs, 120).contains("2026-11-23 08:04") && !table(&runs, 100).contains("2026-11-23 08:04")
        );
    }
}
