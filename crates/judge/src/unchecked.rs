//! Checks that were asked for and had nothing to check: these have not passed. What could not be checked is counted, said, and makes the
//! answer invalid, for it is not known to be what was asked for.

use plimsoll_model::plan::{TargetSpec, Workload};
use plimsoll_model::{Finding, Level, OpKind};
use plimsoll_store::{RunData, StageData};

use super::asked::reads;

/// Of one stage.
pub fn findings(data: &RunData, stage: &StageData) -> Vec<Finding> {
    let mut out: Vec<Finding> =
        [bodies(stage), uploads(stage), crossed(stage)].into_iter().flatten().collect();
    out.extend(stage.spec.workloads.iter().enumerate().filter_map(|(i, w)| nothing_read(data, stage, i, w)));
    out
}

/// Downloads without a checksum to hold them against.
fn bodies(stage: &StageData) -> Option<Finding> {
    let n = stage.report.unchecked_bodies;
    if n == 0 {
        return None;
    }
    let mut readers = stage.spec.workloads.iter().filter(|w| kinds(w).any(reads)).peekable();
    // Their bytes were compared, so that what they are is known; what was asked of the server did not come.
    if readers.peek().is_some() && readers.all(|w| w.verify) {
        let text = format!(
            "{n} bodies arrived without a checksum to verify. --verify compared every byte with what was written; it \
             is not known whether the server stores checksums."
        );
        return Some(Finding::new("F62", "unchecked", Level::Qualified, text).measured(n as f64, 0.0));
    }
    let text = format!(
        "{n} bodies arrived without a checksum for --checksum to verify (no server sends one for a part of an \
         object), so it is not known whether they are what was stored. Omit --checksum for such reads from this \
         server, or use --verify, which does not depend on the server."
    );
    Some(Finding::new("F62", "unchecked", Level::Invalid, text).measured(n as f64, 0.0))
}

/// Uploads whose checksum the server says nothing of.
fn uploads(stage: &StageData) -> Option<Finding> {
    let n = stage.report.unconfirmed_uploads;
    let text = format!(
        "{n} uploads carried a checksum that the server did not acknowledge: most likely it ignored the header, so \
         the rate is that of uploads without checksums. Omit --checksum for this server, or use a server that \
         verifies checksums."
    );
    (n > 0).then(|| Finding::new("F62", "unchecked_uploads", Level::Invalid, text).measured(n as f64, 0.0))
}

/// Verified reads of which most show nothing, for writes crossed them.
fn crossed(stage: &StageData) -> Option<Finding> {
    let n = stage.report.crossed_reads;
    let is_verified = |w: u16| stage.spec.workloads.get(usize::from(w)).is_some_and(|w| w.verify);
    let verified = stage.series.iter().filter(|(id, _)| reads(id.kind) && is_verified(id.workload));
    let all: u64 = verified.flat_map(|(_, points)| points).map(|p| p.counts.ok()).sum();
    shown_nothing(n, all)
}

/// `n` of `all` verified reads show nothing.
fn shown_nothing(n: u64, all: u64) -> Option<Finding> {
    if n == 0 || all == 0 {
        return None;
    }
    let share = n as f64 / all as f64;
    let (level, then) = if share >= MOST {
        (
            Level::Invalid,
            "--verify proved nothing about most of what was read. Use a larger --size, or fewer in flight.",
        )
    } else {
        (Level::Info, "The others were compared with what was written.")
    };
    let text = format!(
        "{n} of {all} verified reads show neither intact nor damaged data, because a write to the same block \
         overlapped them. {then}"
    );
    Some(Finding::new("F64", "verify_crossed", level, text).measured(share, MOST))
}

/// Share of reads from which on those that show nothing are most (guess).
const MOST: f64 = 0.5;

/// A workload that was to be verified, and of which nothing was read.
fn nothing_read(data: &RunData, stage: &StageData, index: usize, w: &Workload) -> Option<Finding> {
    if !w.verify {
        return None;
    }
    let mine = stage.series.iter().filter(|(id, _)| usize::from(id.workload) == index && reads(id.kind));
    let read: u64 = mine.flat_map(|(_, points)| points).map(|p| p.counts.ok() + p.counts.failed()).sum();
    if read > 0 {
        return None;
    }
    let (target, spec) = data.plan.target_of(w).ok()?;
    let reads_it = |o: &Workload| {
        o.verify && kinds(o).any(reads) && data.plan.target_of(o).is_ok_and(|(t, _)| t == target)
    };
    let (level, text) = match spec {
        _ if kinds(w).any(reads) => (
            Level::Invalid,
            "No read completed, so --verify checked nothing, and it is not known whether the data is intact. Run \
             longer.",
        ),
        _ if data.plan.stages.iter().flat_map(|s| &s.workloads).any(reads_it) => return None,
        // What is written so can be verified by a later run: the record of it is kept.
        TargetSpec::Block(_) | TargetSpec::Files(_) => (
            Level::Info,
            "Only writes were requested. They are stamped and recorded, but nothing was read back, so nothing is \
             verified yet. Read with --verify, using the same runs directory.",
        ),
        _ => (
            Level::Invalid,
            "Nothing in this mix reads, so --verify checked nothing, and it is not known whether the data is intact. \
             Add get to the mix.",
        ),
    };
    Some(Finding::new("F64", "nothing_verified", level, text.to_owned()).on(w.name.clone()))
}

fn kinds(w: &Workload) -> impl Iterator<Item = OpKind> + '_ {
    w.mix.iter().filter(|(_, weight)| **weight > 0).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_show_nothing_are_counted_and_most_of_them_void_the_answer() {
        assert_eq!((shown_nothing(0, 10), shown_nothing(0, 0)), (None, None));
        let level = |n| shown_nothing(n, 100).map(|f| (f.level, f.measured));
        assert_eq!(level(1), Some((Level::Info, Some(0.01))));
        assert_eq!(level(50), Some((Level::Invalid, Some(0.5))));
    }
}
