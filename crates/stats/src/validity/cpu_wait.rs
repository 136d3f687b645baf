//! Workers that were ready to run and had no CPU: how long, beyond what each waking costs, and what may be said of it.
//!
//! The kernel counts the wait from the moment in which a thread is ready until it runs. On an idle machine each
//! waking costs some microseconds of it. A wait that other work imposes is of another kind: a millisecond or more at
//! once, in some slices and not in others.

use plimsoll_model::{Finding, Level};

use super::invalid::{CLIENT_BUSY, busy_with_refusals, found, percent, set_by_a_limiter};
use super::{CpuWait, Facts};

/// What the workers waited in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Turns {
    /// Of all workers, in this slice.
    pub alive_s: f64,
    /// Ready to run, without a CPU.
    pub wait_s: f64,
    /// How often they got a CPU.
    pub turns: f64,
}

/// The most that one waking may cost and be no wait for others, seconds.
const WAKING_S: f64 = 10e-6;
/// Share of the workers' time from which it is told in any load.
const TOLD: f64 = 0.05;
/// In an open loop it is told from here: half of what lies above the 99.9th percentile.
const TOLD_OPEN: f64 = 0.0005;
/// Beyond this the 99th percentile is the client's.
const P99: f64 = 0.01;

/// The wait beyond the usual cost of a waking, which is that of the calmer slices (their first quartile).
/// `others_cpu` and `own_cpu`: shares of the machine's CPU time that other work, and this process, used.
pub fn cpu_wait(
    slices: &[Turns],
    workers: f64,
    others_cpu: Option<f64>,
    own_cpu: Option<f64>,
) -> Option<CpuWait> {
    let alive_s: f64 = slices.iter().map(|s| s.alive_s).sum();
    let mut per_turn: Vec<f64> =
        slices.iter().filter(|s| s.turns > 0.0).map(|s| s.wait_s / s.turns).collect();
    if alive_s <= 0.0 || per_turn.is_empty() {
        return None;
    }
    per_turn.sort_by(f64::total_cmp);
    let usual_s = per_turn[per_turn.len() / 4].min(WAKING_S);
    let total_s: f64 = slices.iter().map(|s| (s.wait_s - usual_s * s.turns).max(0.0)).sum();
    let for_others = others_cpu.zip(own_cpu).map(|(others, own)| {
        // A worker does not wait for itself.
        let siblings = own * (1.0 - 1.0 / workers.max(1.0));
        if others + siblings > 0.0 { (others / (others + siblings)).clamp(0.0, 1.0) } else { 1.0 }
    });
    Some(CpuWait { total_s, share: (total_s / alive_s).clamp(0.0, 1.0), for_others })
}

/// How long, as it is said.
pub(super) fn said(w: &CpuWait) -> String {
    let total = plimsoll_model::units::format_latency_ns(w.total_s * 1e9);
    format!(
        "the workers were ready to run but waited for a CPU for {total} in total, {} of their time",
        percent(w.share)
    )
}

/// Whether it is long enough to be told of any load.
pub(super) fn is_told(w: &CpuWait) -> bool {
    w.share >= TOLD
}

/// Whether most of the wait was for work that is not the client's.
pub(super) fn others_took_it(w: &CpuWait) -> bool {
    w.for_others.is_none_or(|o| o >= 0.5)
}

/// What to say when the client's CPU was taken: the result is the storage's no longer when hardly any time was left
/// for waiting on it, and no limiter set the rate; else it is a remark, or (open loop) which percentiles are the client's.
pub(super) fn taken(f: &Facts) -> Option<Finding> {
    let w = f.cpu_wait.filter(others_took_it)?;
    // A wait while the client's own quota had stopped it was for nobody.
    let stopped = f.cpu_quota.map_or(0.0, |q| q.throttled);
    let share = (w.share - stopped).max(0.0);
    let w = CpuWait { share, total_s: w.total_s * share / w.share.max(f64::MIN_POSITIVE), ..w };
    let open = f.late_share.is_some();
    let taken = w.share + f.steal.unwrap_or(0.0);
    let busy = f.client_busy.unwrap_or(0.0) + w.share;
    let on_this_machine = f.loopback == Some(true);
    let of = if on_this_machine { " (including the storage itself)" } else { "" };
    if let Some(refused) = set_by_a_limiter(f).filter(|_| w.share >= TOLD && busy >= CLIENT_BUSY) {
        let what = format!("other processes on this machine{of} took its CPU: {}", said(&w));
        return Some(busy_with_refusals(f, refused, &what, (busy, CLIENT_BUSY)));
    }
    let (level, measured, limit) = match () {
        () if w.share >= TOLD && busy >= CLIENT_BUSY => (Level::Invalid, busy, CLIENT_BUSY),
        // With the storage on the same machine that is said by Q09 for every run.
        () if on_this_machine => return None,
        () if w.share >= TOLD => (Level::Qualified, w.share, TOLD),
        () if open && taken >= P99 => (Level::Qualified, taken, P99),
        () if open && taken >= TOLD_OPEN => (Level::Info, taken, TOLD_OPEN),
        () => return None,
    };
    let mut text = format!("Other processes on this machine{of} took the client's CPU: {}", said(&w));
    if let Some(steal) = f.steal.filter(|s| *s >= TOLD_OPEN) {
        text.push_str(&format!("; in addition, the hypervisor took {} of the CPU time", percent(steal)));
    }
    text.push('.');
    match level {
        Level::Invalid => text.push_str(" This rate is the limit of the busy machine, not of the storage."),
        _ if open => text.push_str(&format!(
            " Response times above about p{} are due to this machine, not the storage.",
            kept(taken)
        )),
        _ => text.push_str(" This adds to latencies, and lowers the rate unless something else limited it."),
    }
    text.push_str(match on_this_machine {
        true => " Stop the other processes, or give client and storage dedicated cores.",
        false => " Stop the other processes, or give the client dedicated cores.",
    });
    Some(found(f, "V07", "cpu_taken", level, text).measured(measured, limit))
}

/// The percentile up to which a share of spoilt ops does not reach, as it is written: 99.5, 98.
fn kept(share: f64) -> String {
    let p = 100.0 * (1.0 - share);
    let step = if share >= 0.1 {
        1.0
    } else if share >= 0.001 {
        0.1
    } else {
        0.01
    };
    let floor = (p / step + 1e-9).floor() * step;
    let digits = if step >= 1.0 {
        0
    } else if step >= 0.1 {
        1
    } else {
        2
    };
    let text = format!("{floor:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(wait_s: &[f64], turns: f64) -> Vec<Turns> {
        wait_s.iter().map(|w| Turns { alive_s: 0.1, wait_s: *w, turns }).collect()
    }

    #[test]
    fn what_a_waking_costs_is_no_wait() {
        // 500 wakings of 4 us each in every slice: an idle machine under load.
        let w = cpu_wait(&slices(&[0.002; 20], 500.0), 1.0, Some(0.0), Some(0.1)).unwrap();
        assert_eq!((w.total_s, w.share), (0.0, 0.0));
        // Two stalls of 4 ms among them.
        let mut x = [0.002; 20];
        (x[3], x[9]) = (0.006, 0.006);
        let w = cpu_wait(&slices(&x, 500.0), 1.0, Some(0.02), Some(0.1)).unwrap();
        assert!((w.total_s - 0.008).abs() < 1e-9 && (w.share - 0.004).abs() < 1e-9, "{w:?}");
        assert_eq!(w.for_others, Some(1.0));
        assert_eq!(cpu_wait(&[], 1.0, None, None), None);
        assert_eq!(cpu_wait(&slices(&[0.0; 5], 0.0), 1.0, None, None), None);
    }

    #[test]
    fn a_machine_that_is_full_all_the_time_is_no_waking_cost() {
        // A CPU shared with a process that never rests: 3 ms per turn, in every slice.
        let w = cpu_wait(&slices(&[0.05; 20], 16.0), 1.0, Some(0.25), Some(0.2)).unwrap();
        assert!((w.share - 0.4984).abs() < 1e-3, "{w:?}");
    }

    #[test]
    fn workers_that_wait_for_each_other_blame_nobody_else() {
        let w = cpu_wait(&slices(&[0.05; 20], 16.0), 16.0, Some(0.05), Some(0.95)).unwrap();
        assert!(!others_took_it(&w), "{w:?}");
        assert!(taken(&Facts { cpu_wait: Some(w), ..Facts::default() }).is_none());
    }

    fn with(share: f64, late: Option<f64>) -> Facts {
        let w = CpuWait { total_s: share * 10.0, share, for_others: Some(1.0) };
        Facts { cpu_wait: Some(w), late_share: late, client_busy: Some(0.3), ..Facts::default() }
    }

    #[test]
    fn the_level_follows_what_is_spoilt() {
        assert!(taken(&with(0.02, None)).is_none());
        let f = taken(&with(0.2, None)).unwrap();
        assert_eq!(f.level, Level::Qualified);
        assert!(f.text.contains("20.0 % of their time"), "{}", f.text);
        let f = taken(&with(0.6, None)).unwrap();
        assert_eq!((f.level, f.name.as_str()), (Level::Invalid, "cpu_taken"));
        let f = taken(&with(0.004, Some(0.0))).unwrap();
        assert_eq!(f.level, Level::Info);
        assert!(f.text.contains("40.0 ms") && f.text.contains("above about p99.6 "), "{}", f.text);
        assert_eq!(taken(&with(0.02, Some(0.0))).unwrap().level, Level::Qualified);
        assert!(taken(&with(0.0001, Some(0.0))).is_none());
        // A core that others filled is not the client's limit.
        let full = Facts { client_core: Some(0.99), ..with(0.2, None) };
        assert_eq!(super::super::invalid::v07_client_bound(&full).unwrap().name, "cpu_taken");
        let full = Facts { client_core: Some(0.99), ..with(0.001, None) };
        assert_eq!(super::super::invalid::v07_client_bound(&full).unwrap().name, "client_bound");
        let here = Facts { loopback: Some(true), ..with(0.2, None) };
        assert!(taken(&here).is_none());
    }

    #[test]
    fn percentiles_are_written_short() {
        let all: Vec<String> = [0.2, 0.05, 0.0123, 0.005, 0.0006].into_iter().map(kept).collect();
        assert_eq!(all, ["80", "95", "98.7", "99.5", "99.94"]);
    }
}
