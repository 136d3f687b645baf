//! The Q checks: the result stands, with a remark.

use plimsoll_model::{Finding, Level};

use super::Facts;
use super::invalid::{found, percent};

fn remark(f: &Facts, code: &str, name: &str, measured: f64, limit: f64, text: String) -> Option<Finding> {
    Some(found(f, code, name, Level::Qualified, text).measured(measured, limit))
}

pub fn q01_horizon(f: &Facts) -> Option<Finding> {
    let (seen, goal) = (f.horizon_s?, f.goal_s?);
    if seen >= goal {
        return None;
    }
    let text = format!(
        "The load was measured for {seen:.0} s, and the goal is {goal:.0} s: a later cliff is not excluded. Run for \
         {goal:.0} s."
    );
    remark(f, "Q01", "horizon", seen, goal, text)
}

pub fn q02_repeats(f: &Facts) -> Option<Finding> {
    let k = f.repeats.len();
    if !f.repeats_expected || k >= 3 {
        return None;
    }
    let runs = if k == 1 { "1 run".to_owned() } else { format!("{k} runs") };
    let text = format!("Only {runs}: the run-to-run variation is not known. Repeat at least 3 times.");
    remark(f, "Q02", "few_repeats", k as f64, 3.0, text)
}

/// From how many times the duration on the square root of time is no forecast (guess).
const MOST_TIMES: f64 = 20.0;

pub fn q03_wide_interval(f: &Facts) -> Option<Finding> {
    let w = f.relative_half_width.filter(|w| *w > 0.10)?;
    let shown = if w.is_finite() { percent(w) } else { "unbounded".into() };
    // The half width falls with the square root of the time.
    let longer = (w / 0.10).powi(2);
    let text = if f.repeats.len() > 1 {
        format!(
            "The confidence interval over repeats is ±{shown} (at most 10 % is acceptable). Repeat more often."
        )
    } else if longer.is_finite() && longer < MOST_TIMES {
        format!(
            "The confidence interval is ±{shown} (at most 10 % is acceptable). Run about {} times as long.",
            crate::words::about(longer, 2)
        )
    } else {
        format!(
            "The confidence interval is ±{shown} (at most 10 % is acceptable), and a longer run is unlikely to fix \
             that. Find out what disturbs it."
        )
    };
    remark(f, "Q03", "wide_interval", if w.is_finite() { w } else { f64::MAX }, 0.10, text)
}

pub fn q04_misfit(f: &Facts) -> Option<Finding> {
    let p = f.misfit_p.filter(|p| *p < 0.01)?;
    let at = f.misfit_cell.as_ref().map(|c| format!(", most at {c}")).unwrap_or_default();
    let text = format!(
        "The limit model does not fit the measurements within their noise{at}: treat its limits as approximate."
    );
    remark(f, "Q04", "misfit", p, 0.01, text)
}

pub fn q05_one_client(f: &Facts) -> Option<Finding> {
    let n = f.client_hosts.filter(|n| *n == 1)?;
    let text =
        "There was one client host: it is not known whether a limit applies per client or to all of them.";
    remark(f, "Q05", "one_client", f64::from(n), 2.0, text.into())
}

pub fn q06_initial_fill(f: &Facts) -> Option<Finding> {
    if f.initial_fill_unknown != Some(true) {
        return None;
    }
    let text = "It is not known how full the bucket was at the start, so its capacity is a lower bound. Before the \
                run, rest for as long as the bucket takes to fill.";
    Some(found(f, "Q06", "initial_fill", Level::Qualified, text.into()))
}

pub fn q07_transport(f: &Facts) -> Option<Finding> {
    if f.transport_differs.is_empty() {
        return None;
    }
    let text =
        format!("The transport differs from the one that will be used: {}.", f.transport_differs.join("; "));
    remark(f, "Q07", "transport", f.transport_differs.len() as f64, 0.0, text)
}

pub fn q08_other_tenants(f: &Facts) -> Option<Finding> {
    if f.shared_infrastructure != Some(true) {
        return None;
    }
    let text =
        "The infrastructure is shared, and the load of others is not known. Repeat at other times of day.";
    Some(found(f, "Q08", "other_tenants", Level::Qualified, text.into()))
}

pub fn q09_loopback(f: &Facts) -> Option<Finding> {
    if f.loopback != Some(true) {
        return None;
    }
    let text = "Client and storage run on the same machine: they compete for CPU and memory, and there is no network \
                between them.";
    Some(found(f, "Q09", "same_host", Level::Qualified, text.into()))
}

pub fn q10_cold_start(f: &Facts) -> Option<Finding> {
    if f.cold_start_included != Some(true) {
        return None;
    }
    let text = "The cold start (connections, caches, first accesses) is inside the window. Use a warm-up.";
    Some(found(f, "Q10", "cold_start", Level::Qualified, text.into()))
}
