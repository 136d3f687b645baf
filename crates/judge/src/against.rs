//! A run held against a ceiling: what `plimsoll drive` (or another run) saw the same storage give. The command line
//! resolves the record before the run and puts its rates into the plan's labels, so that the run keeps them.

use std::collections::BTreeMap;

use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, Level, OpKind};

use super::line::Line;

/// Label of the record's name: a run or a file, as it was given.
pub const LABEL: &str = "ceiling";
/// Labels of what was resolved: the record's run, and its rates.
pub const RUN_LABEL: &str = "ceiling.run";
/// Best rate of reads, bytes per second.
pub const READ_LABEL: &str = "ceiling.read_bytes_per_s";
/// Best rate of writes, bytes per second.
pub const WRITE_LABEL: &str = "ceiling.write_bytes_per_s";

/// Label of what the record is of, where it is not storage: `network`.
pub const OF_LABEL: &str = "ceiling.of";
/// Its value of a network test.
pub const NETWORK: &str = "network";

/// More than this above the ceiling: one of the two was not the storage.
const ABOVE: f64 = 1.1;

/// Bytes that an op brings from the storage, or to it.
fn direction(kind: OpKind) -> Option<(&'static str, &'static str)> {
    match kind {
        OpKind::Read | OpKind::Get | OpKind::GetRange => Some(("read", READ_LABEL)),
        OpKind::Write | OpKind::Put | OpKind::Multipart => Some(("write", WRITE_LABEL)),
        _ => None,
    }
}

/// What part of the ceiling each stage reached, its lines of one direction together.
pub fn findings(
    labels: &BTreeMap<String, String>,
    lines: &[Line<'_>],
    summaries: &[WorkloadSummary],
) -> Vec<Finding> {
    let mut sums: BTreeMap<(u32, &'static str), (f64, Vec<String>, &'static str)> = BTreeMap::new();
    for (line, summary) in lines.iter().zip(summaries).filter(|(l, _)| !l.together) {
        let Some((word, label)) = line.kind.and_then(direction) else { continue };
        let Some(rate) = summary.bytes_per_s.map(|e| e.value) else { continue };
        let stage = line.parts.first().map_or(0, |p| p.stage.index);
        let sum = sums.entry((stage, word)).or_insert((0.0, Vec::new(), label));
        sum.0 += rate;
        sum.1.push(line.label());
    }
    let held = |((_, word), (rate, names, label)): ((u32, &str), (f64, Vec<String>, &str))| {
        let ceiling = labels.get(label)?.parse::<f64>().ok().filter(|c| *c > 0.0)?;
        let record = labels.get(RUN_LABEL).map_or("the record", String::as_str);
        let is_network = labels.get(OF_LABEL).is_some_and(|of| of == NETWORK);
        Some(finding(word, rate, ceiling, (record, is_network), &names))
    };
    sums.into_iter().filter_map(held).collect()
}

fn finding(
    word: &str,
    rate: f64,
    ceiling: f64,
    (record, is_network): (&str, bool),
    names: &[String],
) -> Finding {
    let share = rate / ceiling;
    let (level, more) = if share > ABOVE {
        (
            Level::Qualified,
            if is_network {
                " This is more than the network carried then: not all of it crossed that network, or the ceiling was \
                 measured too low."
            } else {
                " This is more than the storage gave then: a cache, compression or deduplication is involved, or the \
                 ceiling was measured too low."
            },
        )
    } else {
        (Level::Info, "")
    };
    let text = format!(
        "{} ({word}): {}, {:.0} % of {} of {} (record {record}).{more}",
        names.join(" and "),
        mb_per_s(rate),
        share * 100.0,
        if is_network { "what the network carries, its ceiling" } else { "the ceiling" },
        mb_per_s(ceiling)
    );
    let f = Finding::new("F50", "held_against_ceiling", level, text).measured(share, ABOVE);
    match names {
        [one] => f.on(one.clone()),
        _ => f,
    }
}

fn mb_per_s(rate: f64) -> String {
    format!("{:.1} MB/s", rate / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_said_and_what_is_above_is_suspect() {
        let f = finding("read", 50e6, 100e6, ("r", false), &["a".to_owned()]);
        assert!(f.level == Level::Info && f.text.contains("50 % of the ceiling") && f.measured == Some(0.5));
        let f = finding("write", 150e6, 100e6, ("r", false), &["a".to_owned(), "b".to_owned()]);
        assert!(f.level == Level::Qualified && f.text.contains("cache"), "{}", f.text);
        let f = finding("read", 87e6, 100e6, ("r", true), &["a".to_owned()]);
        assert!(f.text.contains("87 % of what the network carries"), "{}", f.text);
    }
}
