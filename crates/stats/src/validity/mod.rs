//! Every validity check (V: the result is invalid) and qualification (Q: the result needs a remark), as pure
//! functions over [`Facts`]. A fact that is not known leaves its check
//! unevaluated: nothing is assumed.
//!
//! Each finding carries the measured value, the threshold, and what to change. Sources: SNIA PTS, SPC-1,
//! SPECstorage 2020, MLPerf Storage, IO500 (see METHODOLOGY.md, table of anchors).

use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, Level, RunStatus, RunSummary};

mod cpu_quota;
mod cpu_wait;
mod facts;
mod invalid;
mod qualified;
mod table;

pub use cpu_quota::{NAME as CPU_QUOTA, holds_back};
pub use cpu_wait::{Turns, cpu_wait};
pub use facts::{CpuWait, Durability, Facts, LittlesLawFact, QuotaUse, SteadyFact};
pub use invalid::MOSTLY_HELD;
pub(crate) use invalid::percent;
pub use invalid::{held_back, limiter_sets_the_rate};
pub use table::table;

type Check = fn(&Facts) -> Option<Finding>;

/// All checks, in the order in which they are reported.
const CHECKS: &[(&str, Check)] = &[
    ("V01", invalid::v01_error_rate),
    ("V02", invalid::v02_payload),
    ("V03", invalid::v03_bytes_acknowledged),
    ("V04", invalid::v04_steady_window),
    ("V05", invalid::v05_offered_rate),
    ("V06", invalid::v06_schedule_lag),
    ("V07", invalid::v07_client_bound),
    ("V08", invalid::v08_working_set),
    ("V09", invalid::v09_payload_entropy),
    ("V10", invalid::v10_driver_skew),
    ("V11", invalid::v11_ended_early),
    ("V12", invalid::v12_durability),
    ("V13", invalid::v13_littles_law),
    ("V14", invalid::v14_level_change),
    ("V15", invalid::v15_order_trend),
    ("V16", invalid::v16_configuration),
    ("V17", invalid::v17_fill),
    ("V18", invalid::v18_background),
    ("V19", invalid::v19_limiter_state),
    ("V20", invalid::v20_retries),
    ("V21", invalid::v21_thin_tail),
    ("V22", invalid::v22_clock_and_steal),
    ("V23", invalid::v23_hash),
    ("Q01", qualified::q01_horizon),
    ("Q02", qualified::q02_repeats),
    ("Q03", qualified::q03_wide_interval),
    ("Q04", qualified::q04_misfit),
    ("Q05", qualified::q05_one_client),
    ("Q06", qualified::q06_initial_fill),
    ("Q07", qualified::q07_transport),
    ("Q08", qualified::q08_other_tenants),
    ("Q09", qualified::q09_loopback),
    ("Q10", qualified::q10_cold_start),
];

/// Everything that the facts show to be wrong or in need of a remark, V before Q, in order of code.
/// A fact that is no number is one that is not known: its check is left out.
pub fn check_all(facts: &Facts) -> Vec<Finding> {
    found_by(CHECKS.iter(), facts)
}

fn found_by<'a>(checks: impl Iterator<Item = &'a (&'static str, Check)>, facts: &Facts) -> Vec<Finding> {
    let is_known = |f: &Finding| ![f.measured, f.threshold].iter().flatten().any(|v| v.is_nan());
    checks.filter_map(|(_, check)| check(facts)).filter(is_known).collect()
}

/// Checks of the client: of several agents each is held against them by itself.
const OF_CLIENT: [&str; 3] = ["V06", "V07", "V22"];

/// What the facts show to be wrong with one agent of several.
pub(crate) fn check_agent(facts: &Facts) -> Vec<Finding> {
    found_by(CHECKS.iter().filter(|(code, _)| OF_CLIENT.contains(code)), facts)
}

/// The codes that exist.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(code, _)| *code)
}

/// The mark inside a result line, as IO500 prints it: `[INVALID V07 V13]`, or nothing.
pub fn mark(findings: &[Finding]) -> String {
    let mut codes: Vec<&str> =
        findings.iter().filter(|f| f.level == Level::Invalid).map(|f| f.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    if codes.is_empty() { String::new() } else { format!("[INVALID {}]", codes.join(" ")) }
}

/// Whether nothing makes the result invalid.
pub fn is_valid(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.level != Level::Invalid)
}

/// Whether a run of many cells is valid: what is wrong with one cell voids that cell, and with all of them the run.
/// `cells`: the labels of their lines (`CELL/OP`); a finding names a line, or a cell with all of its lines; `needed`: a run that
/// is nothing but its cells is void without them.
pub fn is_run_valid(findings: &[Finding], cells: &[String], needed: bool) -> bool {
    let bad = || findings.iter().filter(|f| f.level == Level::Invalid);
    let is_of = |f: &Finding, cell: &String| {
        let on = f.workload.as_deref();
        on.is_some_and(|on| {
            cell.strip_prefix(on).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let confined = |f: &Finding| cells.iter().any(|cell| is_of(f, cell));
    let spoilt = |cell: &String| bad().any(|f| is_of(f, cell));
    bad().all(confined) && !(needed && !cells.is_empty() && cells.iter().all(spoilt))
}

/// Whether a line may be used: nothing is wrong with it, nor with the run, but for what is wrong with other lines.
/// Holds once the summary is settled (`RunSummary::settle`).
pub fn is_line_valid(s: &RunSummary, w: &WorkloadSummary) -> bool {
    s.status != RunStatus::None && w.valid
}

#[cfg(test)]
mod tests;
