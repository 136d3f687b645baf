//! Runs of a suite at a glance: the file benchmark's three figures, or from which cycle on they fell.

use plimsoll_model::claim::{ClaimKind, Rate};
use plimsoll_model::plan::suite;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, OpKind, RunSummary};
use plimsoll_stats::words;

use crate::number::{self, MIB};
use crate::tables;

/// Workload and op of each phase; whether its bytes are what counts.
const PHASES: [(&str, &str, bool); 3] =
    [("write", "write", true), ("read", "read", true), ("iops", "total", false)];

pub(super) fn is(s: &RunSummary, name: &str) -> bool {
    s.labels.get(suite::LABEL).is_some_and(|l| l == name)
}

/// Where no plan gives a name: `File benchmark`, `Drives: read and write`.
pub(super) fn title(s: &RunSummary) -> Option<String> {
    if is(s, suite::FILE) {
        return Some("File benchmark".into());
    }
    let reads = s.workloads.iter().any(|w| w.op == OpKind::Read.name());
    is(s, suite::DRIVE).then(|| format!("Drives: {}", if reads { "read and write" } else { "write" }))
}

/// `write 1,400 ± 400 MiB/s, read 721 ± 7 MiB/s, 620,000 ± 3,000 IOPS, over 3 runs`.
pub(super) fn sentence(s: &RunSummary) -> Option<String> {
    if !is(s, suite::FILE) {
        return None;
    }
    let line = |(name, op, bytes): &(&str, &str, bool)| {
        let w = s.workloads.iter().find(|w| w.name == *name && w.op == *op)?;
        Some((w, phase(s, w, *bytes)))
    };
    let parts: Vec<(&WorkloadSummary, String)> = PHASES.iter().filter_map(line).collect();
    let runs = parts.iter().map(|(w, _)| w.each_ops_per_s.len()).max()?;
    let over = if runs > 1 { format!("; over {runs} runs") } else { String::new() };
    Some(parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ") + &over)
}

fn phase(s: &RunSummary, w: &WorkloadSummary, bytes: bool) -> String {
    let name = if bytes { w.name.as_str() } else { "IOPS" };
    if !w.valid {
        return format!("{name} void ({})", s.codes_of(w).join(" "));
    }
    if let Some(text) = s.findings.iter().find_map(|f| fell(f, w, bytes)) {
        return text;
    }
    let rate = s.claims.iter().find_map(|c| match &c.kind {
        ClaimKind::Rate(r) if c.subject.as_deref() == Some(&w.label()) => Some(r),
        _ => None,
    });
    match rate {
        None if kept_its_rate(w) => format!("{name} undetermined"),
        None => format!("{name} not measured"),
        Some(Rate { ops_per_s, .. }) if !bytes => format!("{} IOPS", number::estimate(ops_per_s)),
        Some(r) => match r.bytes_per_s.filter(|_| tables::moves_bytes(w)) {
            Some(b) => format!("{name} {} MiB/s", number::estimate(&b.scaled(1.0 / MIB))),
            None => format!("{name} {}", words::ops_rate(&r.ops_per_s)),
        },
    }
}

/// Something was done, whatever may be said of it.
fn kept_its_rate(w: &WorkloadSummary) -> bool {
    w.count(plimsoll_model::Outcome::is_ok) > 0
}

/// A mean over cycles before and after a fall describes neither.
fn fell(f: &Finding, w: &WorkloadSummary, bytes: bool) -> Option<String> {
    if f.name != "cliff" || f.workload.as_deref() != Some(&w.label()) {
        return None;
    }
    let told = |name: &str| f.evidence.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
    let per_s = |name: &str| {
        let ops = told(name)?.replace(',', "").parse::<f64>().ok()?;
        Some(words::about(if bytes { ops * w.size_bytes as f64 / MIB } else { ops }, 3))
    };
    let (name, unit) = if bytes { (w.name.as_str(), "MiB/s") } else { ("IOPS", "op/s") };
    let (cycle, before, after) = (told("cycle")?, per_s("before, op/s")?, per_s("after, op/s")?);
    Some(format!("{name} from {before} to {after} {unit} from cycle {cycle} on"))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Level;

    use super::*;
    use crate::support;

    #[test]
    fn a_phase_that_fell_has_no_mean_and_a_void_one_no_figure() {
        let (mut s, ..) = support::kinds::cycles();
        for f in &mut s.findings {
            f.workload = s.workloads.iter().find(|w| f.text.contains(&w.name)).map(WorkloadSummary::label);
            f.evidence
                .extend([("before, op/s".into(), "1,350".into()), ("after, op/s".into(), "130".into())]);
        }
        let said = sentence(&s).unwrap();
        assert!(said.starts_with("write from 1,350 to 130 MiB/s from cycle 6 on, read "), "{said}");
        assert!(said.ends_with("; over 12 runs"), "{said}");
        let mut f = Finding::new("V07", "cpu_taken", Level::Invalid, "x");
        f.workload = Some(s.workloads[0].label());
        s.findings.push(f);
        s.settle(true, false);
        let said = sentence(&s).unwrap();
        assert!(said.starts_with("write void (V07), read "), "{said}");
    }

    #[test]
    fn a_suite_has_words_for_a_title() {
        let (s, ..) = support::kinds::suite("drive");
        assert_eq!(title(&s).unwrap(), "Drives: read and write");
        assert_eq!(title(&support::kinds::suite("file").0).unwrap(), "File benchmark");
    }
}
