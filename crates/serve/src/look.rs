//! One look at a run directory: what it holds by now, judged as a finished run is, and made into the page's state.

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::{Analysis, Level, RunSummary};
use plimsoll_report::page::page;
use plimsoll_report::{Layout, RunReport, glance, read, read_as_judged};
use plimsoll_store::{GrowingRun, LoadOptions, RunData, RunDir, RunRecords, StoreError, Totals, Window};
use serde_json::{Value, json};

use crate::metrics::RunMetrics;
use crate::now::{LiveHints, LiveNow, slowest_first};

/// Stages whose counters are given out: the last. (A choice: a plan of a thousand cells would be as many series.)
const STAGES_COUNTED: usize = 20;

/// In the place of a status.
const NOT_YET: &str = "NOT YET";

/// A run as it is now.
#[derive(Debug)]
pub struct RunLook {
    /// `plimsoll.page/1`.
    pub page: Value,
    /// What it is called in the head of the page.
    pub title: String,
    /// For `/metrics`.
    pub metrics: RunMetrics,
    /// Nobody works on it any more, and this is its result.
    pub is_over: bool,
}

/// What is judged, and what it was judged by.
struct SoFar {
    summary: RunSummary,
    analysis: Analysis,
    data: RunData,
    /// Of the last stages, from their first op on.
    whole: Vec<Totals>,
    /// Of the measured part of the last stage, if it has one.
    measured: Option<Totals>,
}

/// Looks at a run. One that has ended and was judged is shown as it is on disk.
pub fn look(run: &GrowingRun, hints: &LiveHints) -> Result<RunLook, StoreError> {
    let dir = run.dir();
    let is_running = dir.is_running();
    if !is_running && has_result(dir) {
        let report = read(dir, 1)
            .map_err(|e| StoreError::Content { path: dir.path().to_owned(), problem: e.to_string() })?;
        let mut look = ended(&report);
        // Whoever scrapes each quarter of a minute is to see the last of it. What cannot be read again is in the report's own gaps.
        if let Ok(data) = dir.load(&LoadOptions::default())
            && let Ok(whole) = dir.totals(&last_stages(&data), 0)
        {
            look.metrics = RunMetrics::of(&report.summary, false, Some((&data, whole.as_slice())));
        }
        return Ok(look);
    }
    // What has ended is judged from its files.
    let records: &dyn RunRecords = if is_running { run } else { dir };
    let mut so_far = match so_far(dir, records) {
        Ok(so_far) => so_far,
        // There is no file of slices before the targets are ready.
        Err(_) if is_running => return Ok(before_the_first_slice(dir, hints)),
        Err(e) => return Err(e),
    };
    let metrics = RunMetrics::of(&so_far.summary, is_running, Some((&so_far.data, so_far.whole.as_slice())));
    if is_running && so_far.summary.workloads.is_empty() {
        // That there is no result yet speaks against nothing.
        so_far.summary.findings.retain(|f| f.level != Level::Invalid);
    }
    let others = is_running.then(|| slowest_first(&mut so_far.summary)).flatten();
    let now = LiveNow {
        other_agents: others,
        ..LiveNow::of(&so_far.data, so_far.measured.as_ref().or(so_far.whole.last()), hints)
    };
    let report = read_as_judged(dir, records, so_far.summary, so_far.analysis);
    let now = is_running.then_some(now);
    let title = title_of(&report, is_running);
    Ok(RunLook { page: state(&report, now), title, metrics, is_over: !is_running })
}

/// Whether it has a result that may be shown as it is: one that no seal vouches for may be anybody's, and is judged by its record.
pub fn has_result(dir: &RunDir) -> bool {
    dir.summary_is_there() && !matches!(dir.sealed(), Ok(None))
}

/// A run that was killed, or goes on: judged in memory, and nothing is written into its directory.
fn so_far(dir: &RunDir, records: &dyn RunRecords) -> Result<SoFar, StoreError> {
    let mut data = records.load(&LoadOptions::default())?;
    if data.running {
        // The last frame of a file that grows may be there in part.
        data.damage.clear();
    }
    let windows = windows_of(&data);
    let counted = last_stages(&data);
    let asked = [&windows.measured[..], &windows.whole[..], &counted[..]].concat();
    let mut totals = records.totals(&asked, windows.measured.len())?;
    let counted = totals.split_off(windows.measured.len() + windows.whole.len());
    let whole = totals.split_off(windows.measured.len());
    let (summary, analysis) = judge(&data, &totals, &whole, &dir.altered_files()?);
    let last = data.stages.last().map(|s| s.index);
    let measured = totals.into_iter().find(|t| Some(t.window.stage) == last);
    Ok(SoFar { summary, analysis, data, whole: counted, measured })
}

/// Those whose counters are given out, each from its first op on.
fn last_stages(data: &RunData) -> Vec<Window> {
    let from = data.stages.len().saturating_sub(STAGES_COUNTED);
    let extent = |s: &plimsoll_store::StageData| Window {
        stage: s.index,
        from: s.start_ns / data.grid_ns,
        to: s.last_ns.div_ceil(data.grid_ns).max(s.start_ns / data.grid_ns + 1),
    };
    data.stages[from..].iter().map(extent).collect()
}

fn ended(report: &RunReport) -> RunLook {
    let metrics = RunMetrics::of(&report.summary, false, None);
    RunLook { page: state(report, None), title: glance::title(report), metrics, is_over: true }
}

fn before_the_first_slice(dir: &RunDir, hints: &LiveHints) -> RunLook {
    let plan = dir.plan().ok();
    let summary = RunSummary {
        schema: plimsoll_model::summary::SCHEMA.into(),
        id: dir.id(),
        verdict: "No load yet.".into(),
        labels: plan.map(|p| p.labels).unwrap_or_default(),
        ..RunSummary::default()
    };
    let metrics = RunMetrics::of(&summary, true, None);
    let report = RunReport::of(plimsoll_report::cleaned(summary));
    let page = state(&report, Some(LiveNow::before(hints)));
    RunLook { page, title: title_of(&report, true), metrics, is_over: false }
}

/// What is called so is what was measured; of a run that has measured nothing yet there is its name.
fn title_of(report: &RunReport, is_running: bool) -> String {
    match is_running && report.summary.workloads.is_empty() {
        true => format!("Run {}", report.summary.id),
        false => glance::title(report),
    }
}

/// `now`: of a run that goes on.
fn state(report: &RunReport, now: Option<LiveNow>) -> Value {
    let page = page(std::slice::from_ref(report), Layout::default());
    let mut page = serde_json::to_value(page).expect("a page is plain data");
    if let Some(now) = now {
        let run = &mut page["runs"][0];
        run["live"] = json!(true);
        run["now"] = json!(now);
        if report.summary.workloads.is_empty() {
            // A run without a result is invalid, and one that goes on has none yet.
            (run["status"], run["verdict"]) = (json!(NOT_YET), json!("Nothing is measured yet."));
            run["glance"] = json!({
                "title": title_of(report, true), "mark": NOT_YET, "sentence": "Nothing is measured yet",
                "facts": [], "reservations": [], "more_reservations": 0,
            });
        }
    }
    page
}

/// The judgement of a run that has none on disk.
pub fn judged(dir: &RunDir) -> Result<(RunSummary, Analysis), StoreError> {
    so_far(dir, dir).map(|s| (s.summary, s.analysis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Environment, Plan};
    use plimsoll_store::EnvFile;
    use plimsoll_store::rundir::ENV_FORMAT;

    fn begun(root: &std::path::Path) -> RunDir {
        let dir = RunDir::create(root).unwrap();
        dir.write_plan(&Plan::from_toml(include_str!("../../../plans/sim-bucket.toml")).unwrap()).unwrap();
        let env = EnvFile {
            format: ENV_FORMAT.into(),
            id: dir.id(),
            environment: Environment::default(),
            rerun: "plimsoll run plan.toml".into(),
            clock_offsets_ns: Default::default(),
        };
        dir.write_env(&env).unwrap();
        dir
    }

    /// It is neither valid nor invalid, and was not killed.
    #[test]
    fn a_run_that_has_measured_nothing_yet_says_so() {
        let root = tempfile::tempdir().unwrap();
        let dir = begun(root.path());
        let held = dir.journal().unwrap();
        let hints = LiveHints { doing: Some("filling".into()), late: 0 };
        // Before there is a file of slices, and with an empty one.
        for with_file in [false, true] {
            let _file = with_file.then(|| dir.create_intervals("local", 100_000_000).unwrap());
            let seen = look(&GrowingRun::new(dir.clone()), &hints).unwrap();
            let run = &seen.page["runs"][0];
            assert!(!seen.is_over && run["live"] == true, "{run}");
            assert_eq!((&run["status"], &run["glance"]["mark"]), (&json!("NOT YET"), &json!("NOT YET")));
            assert_eq!(run["now"]["doing"], "filling");
            let levels: Vec<&Value> =
                run["summary"]["findings"].as_array().unwrap().iter().map(|f| &f["level"]).collect();
            assert!(!levels.contains(&&json!("invalid")), "{levels:?}");
            assert!(!run.to_string().contains("killed"), "{run}");
        }
        drop(held);
        let seen = look(&GrowingRun::new(dir.clone()), &hints).unwrap();
        assert!(seen.is_over && seen.page["runs"][0].get("live").is_none());
        assert!(seen.page.to_string().contains("killed before its end"));
        assert!(!dir.summary_is_there(), "nothing is written into the directory of another's run");
    }
}
