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
/// Of a network test: between which hosts, and in what pattern, it has the rate of reads.
pub const READ_BETWEEN_LABEL: &str = "ceiling.read_between";
/// The same of writes.
pub const WRITE_BETWEEN_LABEL: &str = "ceiling.write_between";
/// The machines' own names of those hosts, with [`SEPARATOR`] between them.
pub const MACHINES_LABEL: &str = "ceiling.machines";
/// What qualifies that test.
pub const QUALIFIED_LABEL: &str = "ceiling.qualified";
/// Between names.
pub const SEPARATOR: &str = ", ";

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

/// The record that a run is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    /// Its name.
    name: String,
    /// Of what it has the ceiling, in words.
    of: String,
    is_network: bool,
    /// Why a share of it says less than it seems to, in sentences.
    but: String,
}

impl Record {
    /// In one direction, for a run on these machines.
    fn of(labels: &BTreeMap<String, String>, word: &str, machines: &[String]) -> Self {
        let name = labels.get(RUN_LABEL).cloned().unwrap_or_else(|| "the record".into());
        if labels.get(OF_LABEL).is_none_or(|of| of != NETWORK) {
            return Self { name, of: "the ceiling".into(), is_network: false, but: String::new() };
        }
        let between = labels.get(if word == "read" { READ_BETWEEN_LABEL } else { WRITE_BETWEEN_LABEL });
        let between = between.map_or(String::new(), |b| format!(" between {b}"));
        let measured: Vec<&str> =
            labels.get(MACHINES_LABEL).map_or(Vec::new(), |m| m.split(SEPARATOR).collect());
        let mut others: Vec<&str> = machines.iter().map(String::as_str).collect();
        others.retain(|m| !measured.contains(m));
        others.sort_unstable();
        others.dedup();
        let mut but = String::new();
        if !others.is_empty() {
            but = format!(
                " The run was on {}, which the network test did not measure: what their network carries is not known.",
                others.join(SEPARATOR)
            );
        }
        if let Some(why) = labels.get(QUALIFIED_LABEL) {
            but.push_str(&format!(" The network test itself is qualified: {why}."));
        }
        Self { name, of: format!("what the network carries{between}, its ceiling"), is_network: true, but }
    }
}

/// What part of the ceiling each stage reached, its lines of one direction together. `machines`: the names of those that the run was on.
pub fn findings(
    labels: &BTreeMap<String, String>,
    machines: &[String],
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
        Some(finding(word, rate, ceiling, &Record::of(labels, word, machines), &names))
    };
    sums.into_iter().filter_map(held).collect()
}

fn finding(word: &str, rate: f64, ceiling: f64, record: &Record, names: &[String]) -> Finding {
    let share = rate / ceiling;
    let (level, more) = if share > ABOVE {
        (
            Level::Qualified,
            if record.is_network {
                " This is more than the network carried then: not all of it crossed that network, or the ceiling was \
                 measured too low."
            } else {
                " This is more than the storage gave then: a cache, compression or deduplication is involved, or the \
                 ceiling was measured too low."
            },
        )
    } else if record.but.is_empty() {
        (Level::Info, "")
    } else {
        (Level::Qualified, "")
    };
    let text = format!(
        "{} ({word}): {}, {:.0} % of {} of {} (record {}).{more}{}",
        names.join(" and "),
        mb_per_s(rate),
        share * 100.0,
        record.of,
        mb_per_s(ceiling),
        record.name,
        record.but
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
        let r = |of: &[(&str, &str)]| {
            let labels = of.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Record::of(&labels, "read", &["m1".to_owned(), "m2".to_owned()])
        };
        let storage = r(&[(RUN_LABEL, "r")]);
        let f = finding("read", 50e6, 100e6, &storage, &["a".to_owned()]);
        assert!(f.level == Level::Info && f.text.contains("50 % of the ceiling") && f.measured == Some(0.5));
        let f = finding("write", 150e6, 100e6, &storage, &["a".to_owned(), "b".to_owned()]);
        assert!(f.level == Level::Qualified && f.text.contains("cache"), "{}", f.text);
        let network =
            [(OF_LABEL, NETWORK), (READ_BETWEEN_LABEL, "a, b (pairs)"), (MACHINES_LABEL, "m0, m1, m2")];
        let f = finding("read", 87e6, 100e6, &r(&network), &["a".to_owned()]);
        assert_eq!(f.level, Level::Info);
        assert!(
            f.text.contains("87 % of what the network carries between a, b (pairs), its ceiling"),
            "{}",
            f.text
        );
        let elsewhere = [(OF_LABEL, NETWORK), (MACHINES_LABEL, "m1, m3")];
        let f = finding("read", 87e6, 100e6, &r(&elsewhere), &["a".to_owned()]);
        assert!(
            f.level == Level::Qualified && f.text.contains("was on m2, which the network test"),
            "{}",
            f.text
        );
        let stolen = [(OF_LABEL, NETWORK), (MACHINES_LABEL, "m1, m2"), (QUALIFIED_LABEL, "N03 cpu_stolen")];
        let f = finding("read", 87e6, 100e6, &r(&stolen), &["a".to_owned()]);
        assert!(f.level == Level::Qualified && f.text.contains("qualified: N03 cpu_stolen."), "{}", f.text);
    }
}
