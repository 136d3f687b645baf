//! The list of runs, as a page without a script.

use std::path::Path;

use plimsoll_model::text::{clean, printable};
use plimsoll_report::table::escape;
use plimsoll_report::{RunReport, glance, number};
use plimsoll_store::{RunDir, RunEntry, RunState, StoreError, rundir};

/// Runs on one page.
pub const RUNS_SHOWN: usize = 100;

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub id: String,
    pub started: String,
    /// What was measured, as its report is called.
    pub what: String,
    pub labels: String,
    /// Rate with its interval, of each of the first lines.
    pub rates: Vec<String>,
    /// `VALID`, `[INVALID V07]`, `running`, ...
    pub status: String,
    pub is_running: bool,
}

/// Where the list comes from: the newest runs first, after `skip` newer ones; and how many there are.
pub fn rows(root: &Path, skip: usize) -> Result<(Vec<RunRow>, usize), StoreError> {
    let (entries, all) = rundir::newest(root, skip, RUNS_SHOWN)?;
    Ok((entries.into_iter().map(row).collect(), all))
}

fn row(e: RunEntry) -> RunRow {
    let text = |t: &str| clean(t).into_owned();
    let labels = e.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    let is_running = e.state == RunState::Running;
    let report = e.summary.filter(|_| !is_running).map(|s| RunReport::of(plimsoll_report::cleaned(s)));
    let what = match (&e.name, &report) {
        (Some(name), _) => text(name),
        (None, Some(r)) => glance::title(r),
        (None, None) => asked(&e.path),
    };
    let rates = report.iter().flat_map(|r| &r.summary.workloads).filter(|w| w.together == 0);
    let rate = |w: &plimsoll_model::summary::WorkloadSummary| {
        let figure = number::estimate_or_missing(w.ops_per_s.as_ref());
        format!("{} {figure} op/s{}", w.op, if w.valid { "" } else { " (void)" })
    };
    let mut rates: Vec<String> = rates.map(rate).collect();
    if rates.len() > 3 {
        let more = rates.split_off(2).len();
        rates.push(format!("{more} more"));
    }
    let status = match (e.state, &report) {
        (RunState::Running, _) => "running".into(),
        (_, Some(r)) => glance::mark(&r.summary),
        (_, None) => "killed, not judged".into(),
    };
    RunRow {
        id: text(&e.id),
        started: second(&text(&e.started_at)),
        what,
        labels: text(&labels),
        rates,
        status,
        is_running,
    }
}

/// Of a run that has no result yet: the command that repeats it, cut to what fits.
fn asked(path: &Path) -> String {
    const MOST: usize = 80;
    let env = RunDir::open(path).and_then(|dir| dir.env());
    let Ok(env) = env else { return "-".into() };
    let command = clean(&env.rerun).into_owned();
    match command.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command,
    }
}

/// `2026-11-24 15:36:54 UTC`, of RFC 3339 with fractions; another form stays as it is.
fn second(rfc3339: &str) -> String {
    match (rfc3339.get(..19), rfc3339.ends_with('Z')) {
        (Some(whole), true) => format!("{} UTC", whole.replace('T', " ")),
        _ => rfc3339.to_owned(),
    }
}

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8886; padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top; }
td.rate { white-space: nowrap; }
.running { font-weight: 600; }
.muted { opacity: .75; font-size: .88rem; }
a:focus-visible { outline: 2px solid; outline-offset: 2px; }
@media (max-width: 45rem) {
  thead { display: none; }
  tr, td { display: block; border: 0; padding: 0; }
  tr { border-bottom: 1px solid #8886; padding: .5rem 0; }
}";

/// The page; `skip` newer runs are not on it.
pub fn page(root: &Path, skip: usize) -> Result<String, StoreError> {
    let (rows, all) = rows(root, skip)?;
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Runs - Plimsoll</title>\n",
    );
    out.push_str(&format!("<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n<h1>Runs</h1>\n"));
    let place = escape(&printable(&root.display().to_string(), false));
    out.push_str(&format!("<p class=\"muted\">{all} in {place}, the newest first.</p>\n"));
    if rows.is_empty() {
        out.push_str("<p>There are no runs here yet. Measure something: <code>plimsoll object put --endpoint embedded --size 4KiB --duration 10s</code></p>\n");
    } else {
        out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Started</th><th scope=\"col\">What</th><th scope=\"col\">Rate, 95 % interval</th><th scope=\"col\">Validity</th></tr></thead>\n<tbody>\n");
        rows.iter().for_each(|r| out.push_str(&tr(r)));
        out.push_str("</tbody>\n</table></div>\n");
    }
    out.push_str("<p class=\"muted\">");
    if skip > 0 {
        out.push_str(&format!("<a href=\"/?skip={}\">Newer</a> ", skip.saturating_sub(RUNS_SHOWN)));
    }
    if skip + rows.len() < all {
        out.push_str(&format!("<a href=\"/?skip={}\">Older</a>", skip + RUNS_SHOWN));
    }
    out.push_str("</p>\n</main>\n</body>\n</html>\n");
    Ok(printable(&out, false).into_owned())
}

fn tr(r: &RunRow) -> String {
    let rates = r.rates.iter().map(|t| escape(t)).collect::<Vec<_>>().join("<br>");
    let labels = if r.labels.is_empty() {
        String::new()
    } else {
        format!("<br><span class=\"muted\">{}</span>", escape(&r.labels))
    };
    format!(
        "<tr><th scope=\"row\"><a href=\"/runs/{id}\">{id}</a></th><td>{}</td><td>{}{labels}</td><td class=\"rate\">{rates}</td><td{}>{}</td></tr>\n",
        escape(&r.started),
        escape(&r.what),
        if r.is_running { " class=\"running\"" } else { "" },
        escape(&r.status),
        id = escape(&r.id),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_label_is_text() {
        let evil = "<script>alert(1)</script>\" onload=x";
        let row = RunRow {
            id: "r1".into(),
            started: evil.into(),
            what: evil.into(),
            labels: evil.into(),
            rates: vec![evil.into()],
            status: evil.into(),
            is_running: true,
        };
        let html = tr(&row);
        assert!(!html.contains("<script") && !html.contains("\" onload"), "{html}");
    }

    #[test]
    fn times_are_told_to_the_second() {
        assert_eq!(second("2026-11-24T15:36:54.1517074Z"), "2026-11-24 15:36:54 UTC");
        assert_eq!(second("yesterday"), "yesterday");
    }

    #[test]
    fn an_empty_place_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let html = page(&dir.path().join("none"), 0).unwrap();
        assert!(html.contains("no runs here yet") && html.contains("plimsoll object put"), "{html}");
    }
}
