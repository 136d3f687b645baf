//! How the workers of a stage ended, in the words of the run directory.

use plimsoll_engine::target::s3::REDIRECTED;
use plimsoll_engine::{StopCause, WorkerEnd};
use plimsoll_store::mark::{LoadTimes, StageReport};

/// When the load began to fall off, and why: the first worker that took no more ops. `early`: why they were asked to stop, where that
/// was no interrupt.
pub fn stop_of(ends: &[WorkerEnd], early: Option<&'static str>) -> (u64, String) {
    let first = ends.iter().min_by_key(|e| e.stopped_ns);
    let reason = match first.map(|e| e.cause) {
        Some(StopCause::Deadline) => "duration",
        Some(StopCause::Ops) => "ops",
        Some(StopCause::Bytes) => "bytes",
        Some(StopCause::Asked) => early.unwrap_or("interrupted"),
        Some(StopCause::Aborted) => "interrupted",
        Some(StopCause::Failed) => "failed",
        None => "nothing was started",
    };
    (first.map_or(0, |e| e.stopped_ns), reason.to_owned())
}

pub fn of(ends: &[&WorkerEnd], workloads: usize) -> StageReport {
    let mut report = StageReport { notes: vec![Vec::new(); workloads], ..StageReport::default() };
    let mut crossed =
        vec![0; workloads.max(1 + ends.iter().map(|e| usize::from(e.workload)).max().unwrap_or(0))];
    // A worker that could not start began nothing.
    let began = ends.iter().filter(|e| e.began_ns > 0 || e.error.is_none());
    report.times = began
        .clone()
        .map(|e| e.began_ns)
        .min()
        .zip(began.map(|e| e.finished_ns).max())
        .map(|(began_ns, finished_ns)| LoadTimes { began_ns, finished_ns });
    for e in ends {
        if let (Some(ring), true) = (&e.ring, report.ring.is_empty()) {
            report.ring.clone_from(&ring.name);
            report.ring_reason = [ring.why.as_str(), ring.detail.as_str()].join("; ");
        }
        if let Some(notes) = report.notes.get_mut(usize::from(e.workload)) {
            let told = e.notes.iter().filter(|(name, _)| !name.starts_with(REDIRECTED));
            for note in told.map(|(name, value)| format!("{name}: {value}")) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        for f in &e.errors {
            let seen = (f.outcome.name().to_owned(), f.kind.name().to_owned(), f.text.clone());
            if !report.failures.iter().any(|g| (&g.0, &g.1) == (&seen.0, &seen.1)) {
                report.failures.push(seen);
            }
        }
        report.mismatches.extend(e.first_mismatches.iter().map(ToString::to_string));
        report.mismatch_count += e.mismatches;
        crossed[usize::from(e.workload)] += e.crossed_reads;
        report.ring_calls += e.ring_syscalls;
        report.ops += e.ops;
        report.unchecked_bodies += e.unchecked_bodies;
        report.unconfirmed_uploads += e.unconfirmed_uploads;
        report.crossed_reads += e.crossed_reads;
        report.abandoned += u64::from(e.abandoned);
    }
    for (notes, n) in report.notes.iter_mut().zip(crossed).filter(|(_, n)| *n > 0) {
        notes.push(format!(
            "verify: {n} reads prove nothing, because a write to the same block overlapped them"
        ));
    }
    report.mismatches.truncate(16);
    report
}

/// Facts of all workers, each once; redirects summed up.
pub fn facts(ends: &[WorkerEnd]) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    for fact in ends.iter().flat_map(|e| &e.notes) {
        let counted = |f: &&mut (String, String)| f.0 == fact.0 && fact.0.starts_with(REDIRECTED);
        if let Some((_, count)) = facts.iter_mut().find(counted) {
            *count = sum(count, &fact.1);
        } else if !facts.contains(fact) {
            facts.push(fact.clone());
        }
    }
    facts
}

fn sum(a: &str, b: &str) -> String {
    let number = |n: &str| n.parse::<u64>().unwrap_or(0);
    (number(a) + number(b)).to_string()
}
