//! The drive test's result: dperf's table with totals over the common time, dd's lines, and a ceiling record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use plimsoll_model::plan::{SizeDist, TargetSpec};
use plimsoll_model::summary::{Expectation, WorkloadSummary};
use plimsoll_model::{Estimate, Finding, Level, OpKind, RunStatus, RunSummary};
use plimsoll_stats::expect::Expect;
use plimsoll_store::{RunDir, StoreError};
use serde::{Deserialize, Serialize};

use super::phase::{WholeStage, phases};
use crate::tables;

/// Schema of the ceiling record.
pub const SCHEMA: &str = "plimsoll.ceiling/1";
const FAILED_LABEL: &str = "drive.failed.";

/// Bytes per second, written and read; absent where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// While it was written.
    pub write_bytes_per_s: Option<f64>,
    /// While it was read.
    pub read_bytes_per_s: Option<f64>,
}

/// One drive, or file, alone and beside the others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Drive {
    /// As it was named.
    pub path: String,
    /// Of the device below, where it is known.
    pub device: BTreeMap<String, String>,
    /// While no other ran.
    pub alone: Rates,
    /// Its share of the total while all ran.
    pub together: Rates,
    /// From the stage's start to the end of its last op.
    pub write_seconds: f64,
    /// From the stage's start to the end of its last op.
    pub read_seconds: f64,
    /// Payload of one of its stages.
    pub bytes: u64,
    /// Why it failed, or in part.
    pub error: Option<String>,
    /// What makes the lines of this drive invalid in the run (`runs show`): its figures here are bytes over time, which have no
    /// interval, and so they are not ticked off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

/// What these drives can do: later runs can be held against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// `plimsoll.ceiling/1`.
    pub schema: String,
    /// Id of the run that measured it.
    pub run: String,
    /// RFC 3339.
    pub started_at: String,
    /// Its name, as the system has it.
    pub host: String,
    /// Of one op.
    pub block_bytes: u64,
    /// Of each drive's file or region.
    pub file_bytes: u64,
    /// Of each drive, at the same time.
    pub streams: u32,
    /// In the order in which they were named.
    pub drives: Vec<Drive>,
    /// All drives at once: bytes over the time from the first start to the last end.
    pub total: Rates,
    /// The same while every stream still ran.
    pub total_while_all_ran: Rates,
    /// What is to be said of these figures, as the table has it below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Finding>,
    /// Promises, held against these figures: each drive alone, and beside the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
}

/// Reads a run of `plimsoll drive`.
pub fn ceiling(dir: &RunDir) -> Result<Ceiling, StoreError> {
    let (data, phases) = phases(dir)?;
    let first = data.plan.stages.first().and_then(|s| s.workloads.first());
    let mut drives: BTreeMap<String, Drive> = data
        .plan
        .targets
        .iter()
        .map(|(name, t)| {
            let directory = match t {
                TargetSpec::Files(f) => f.directory.clone(),
                _ => String::new(),
            };
            let devices = &data.environment.devices;
            let device = devices.get(name).or_else(|| devices.get(&directory)).cloned().unwrap_or_default();
            (name.clone(), Drive { path: name.clone(), device, ..Drive::default() })
        })
        .collect();
    let (mut total, mut all_ran) = (Rates::default(), Rates::default());
    for phase in &phases {
        let Some(stage) = data.stages.iter().find(|s| s.spec.name.as_deref() == Some(&phase.name)) else {
            continue;
        };
        let together = phase.name.starts_with(TOGETHER);
        for ((workload, kind), work) in &phase.work {
            let target = stage.spec.workloads.get(*workload).and_then(|w| w.target.clone());
            let Some(drive) = target.and_then(|t| drives.get_mut(&t)) else { continue };
            let seconds = if together { work.active_s } else { phase.seconds };
            let rate = over(work.bytes, seconds);
            set(if together { &mut drive.together } else { &mut drive.alone }, *kind, rate);
            if !together {
                match kind {
                    OpKind::Write => drive.write_seconds = phase.seconds,
                    _ => drive.read_seconds = phase.seconds,
                }
                drive.bytes = work.bytes;
            }
            if work.failed > 0 || work.ops == 0 {
                drive.error.get_or_insert_with(|| failure(phase, *kind, work.failed));
            }
        }
        if phase.void.is_some() {
            drives.values_mut().for_each(|d| {
                d.error.get_or_insert_with(|| {
                    format!("{}: {}", phase.name, phase.void.clone().unwrap_or_default())
                });
            });
        }
        if together || drives.len() == 1 {
            for kind in [OpKind::Read, OpKind::Write] {
                let works = || phase.work.iter().filter(|((_, k), _)| *k == kind).map(|(_, w)| w);
                if works().next().is_some() {
                    set(&mut total, kind, over(works().map(|w| w.bytes).sum(), phase.seconds));
                    set(&mut all_ran, kind, over(works().map(|w| w.common_bytes).sum(), phase.common_s));
                }
            }
        }
    }
    if let Ok(summary) = dir.summary() {
        drives.values_mut().for_each(|d| d.invalid = codes(&summary, &d.path));
    }
    let mut drives: Vec<Drive> = drives.into_values().collect();
    for (label, error) in &data.plan.labels {
        if let Some(path) = label.strip_prefix(FAILED_LABEL) {
            drives.push(Drive { path: path.into(), error: Some(error.clone()), ..Drive::default() });
        }
    }
    let file_bytes = data.plan.targets.values().find_map(|t| match t {
        TargetSpec::Files(f) => Some(f.file_size.0),
        _ => None,
    });
    let block_bytes = first.map_or(0, |w| if let SizeDist::Fixed(s) = &w.size { s.0 } else { 0 });
    let expectations = match dir.summary() {
        Ok(s) if !data.plan.expect.is_empty() => kept(&data.plan.expect, s, &drives, block_bytes),
        _ => Vec::new(),
    };
    Ok(Ceiling {
        schema: SCHEMA.into(),
        run: data.id.clone(),
        started_at: data.environment.started_at.clone(),
        host: data.environment.machine.host.clone(),
        block_bytes,
        file_bytes: file_bytes.unwrap_or(0),
        streams: first.and_then(|w| w.jobs).unwrap_or(1),
        drives,
        total,
        total_while_all_ran: all_ran,
        said: Vec::new(),
        expectations,
    })
}

impl Ceiling {
    /// The promises, and whether each was kept; empty without one.
    pub fn expectations(&self, width: usize) -> String {
        if self.expectations.is_empty() {
            String::new()
        } else {
            tables::expectations(&self.expectations).plain(width)
        }
    }
}

/// Holds promises against a given amount of work over the time that it took: such a rate has no interval, and needs none.
fn kept(promises: &[String], mut s: RunSummary, drives: &[Drive], block_bytes: u64) -> Vec<Expectation> {
    for w in &mut s.workloads {
        let Some(d) = drives.iter().find(|d| is_of(w, &d.path)) else { continue };
        let rates = if w.name.starts_with(TOGETHER) { d.together } else { d.alone };
        let rate =
            if w.op == OpKind::Write.name() { rates.write_bytes_per_s } else { rates.read_bytes_per_s };
        w.bytes_per_s = rate.map(Estimate::exact);
        w.ops_per_s = rate.filter(|_| block_bytes > 0).map(|r| Estimate::exact(r / block_bytes as f64));
        w.valid = d.error.is_none();
    }
    s.status = RunStatus::Valid;
    promises.iter().filter_map(|p| Some(p.parse::<Expect>().ok()?.check(&s))).collect()
}

/// What the stages begin with in which all drives run at once.
const TOGETHER: &str = "together";

/// A line is named after its path and direction.
fn is_of(w: &WorkloadSummary, path: &str) -> bool {
    let name = format!("{path} {}", w.op);
    w.name == name || w.name.strip_suffix(&name).is_some_and(|stage| stage.ends_with('/'))
}

/// Codes of what is wrong with the lines of a drive.
fn codes(s: &RunSummary, path: &str) -> Vec<String> {
    let mine = |w: &&WorkloadSummary| !w.valid && is_of(w, path);
    let found: BTreeSet<String> = s.workloads.iter().filter(mine).flat_map(|w| s.codes_of(w)).collect();
    found.into_iter().collect()
}

fn over(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0 && bytes > 0).then(|| bytes as f64 / seconds)
}

fn set(rates: &mut Rates, kind: OpKind, rate: Option<f64>) {
    match kind {
        OpKind::Write => rates.write_bytes_per_s = rate,
        OpKind::Read => rates.read_bytes_per_s = rate,
        _ => {}
    }
}

fn failure(phase: &WholeStage, kind: OpKind, failed: u64) -> String {
    let why = phase.failures.first().cloned().unwrap_or_else(|| "nothing was done".into());
    format!("{}: {failed} {kind} ops failed: {why}", phase.name)
}

impl Drive {
    const UNEVEN: &str = "!";

    /// Failed, invalid in the run, or neither.
    pub(super) fn mark(&self) -> &'static str {
        match (&self.error, self.invalid.is_empty()) {
            (Some(_), _) => "✗",
            (None, false) => Self::UNEVEN,
            (None, true) => "✓",
        }
    }
}

impl Ceiling {
    /// Drives that failed, wholly or in part.
    pub fn failed(&self) -> Vec<&Drive> {
        self.drives.iter().filter(|d| d.error.is_some()).collect()
    }

    /// One finding a failed drive: each makes the result invalid, and the exit code with it.
    pub fn findings(&self) -> Vec<Finding> {
        self.failed()
            .into_iter()
            .map(|d| {
                let text = format!("Drive {} failed: {}", d.path, d.error.clone().unwrap_or_default());
                Finding::new("V01", "drive_failed", Level::Invalid, text)
            })
            .collect()
    }

    /// Indented, with a line end.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data is always JSON");
        text.push('\n');
        text
    }

    /// dperf's two tables, with each drive alone beside its part of the whole.
    pub fn table(&self) -> String {
        // With --serial nothing ran at the same time: there is no total.
        let has_total = self.total != Rates::default();
        let several = self.drives.len() > 1 && has_total;
        let mut rows = vec![if several {
            ["PATH", "WRITE", "READ", "WRITE (ALL)", "READ (ALL)", ""].map(str::to_owned).to_vec()
        } else {
            ["PATH", "WRITE", "READ", ""].map(str::to_owned).to_vec()
        }];
        for d in &self.drives {
            let mut row = vec![d.path.clone(), mib(d.alone.write_bytes_per_s), mib(d.alone.read_bytes_per_s)];
            if several {
                row.extend([mib(d.together.write_bytes_per_s), mib(d.together.read_bytes_per_s)]);
            }
            row.push(d.mark().into());
            rows.push(row);
        }
        let mut out = boxed(&rows);
        let mark = if self.failed().is_empty() { "" } else { " *" };
        if has_total {
            out.push_str(&boxed(&[
                vec!["TotalWRITE".into(), "TotalREAD".into()],
                vec![
                    format!("{}{mark}", mib(self.total.write_bytes_per_s)),
                    format!("{}{mark}", mib(self.total.read_bytes_per_s)),
                ],
            ]));
        }
        if several {
            let w = mib(self.total_while_all_ran.write_bytes_per_s);
            let r = mib(self.total_while_all_ran.read_bytes_per_s);
            let _ = writeln!(
                out,
                "Totals are all bytes over the time from the first start to the last end. While all streams were \
                 running: write {w}, read {r}."
            );
        }
        for d in self.drives.iter().filter(|d| d.mark() == Drive::UNEVEN) {
            let _ = writeln!(
                out,
                "! {}: [INVALID {}] in the run: there is no rate with an interval, only total bytes over total time.",
                d.path,
                d.invalid.join(" ")
            );
        }
        for d in self.failed() {
            let why = d.error.as_deref().unwrap_or_default();
            let _ = if has_total {
                writeln!(out, "* without {}: {why}", d.path)
            } else {
                writeln!(out, "✗ {}: {why}", d.path)
            };
        }
        out
    }

    /// What dd prints, for one drive and one stream; `None` otherwise.
    pub fn dd(&self) -> Option<String> {
        let [d] = self.drives.as_slice() else { return None };
        if self.streams != 1 || self.block_bytes == 0 {
            return None;
        }
        let blocks = self.file_bytes / self.block_bytes;
        let part = |seconds: f64| {
            format!(
                "{blocks}+0 records in\n{blocks}+0 records out\n{} bytes ({}, {}) copied, {} s, {}/s\n",
                d.bytes,
                dd_size(d.bytes as f64, false),
                dd_size(d.bytes as f64, true),
                six(seconds),
                dd_size(d.bytes as f64 / seconds, false)
            )
        };
        let mut out = String::new();
        for seconds in [d.write_seconds, d.read_seconds].into_iter().filter(|s| *s > 0.0) {
            out.push_str(&part(seconds));
        }
        Some(out)
    }

    /// Write and read rates that a load on this path can reach: those of its drive alone, or of all drives at once
    /// where it is on none of them.
    pub fn rates_at(&self, path: Option<&std::path::Path>) -> Rates {
        let under = |d: &&Drive| path.is_some_and(|p| p.starts_with(&d.path));
        let nearest = self.drives.iter().filter(|d| d.error.is_none()).filter(under);
        nearest.max_by_key(|d| d.path.len()).map_or(self.total, |d| d.alone)
    }
}

fn mib(rate: Option<f64>) -> String {
    match rate {
        None => "-".into(),
        Some(r) if r >= 10.0 * 1024f64.powi(3) => format!("{:.1} GiB/s", r / 1024f64.powi(3)),
        Some(r) => format!("{:.0} MiB/s", r / 1024f64.powi(2)),
    }
}

/// Two digits, as dd has them: `1.1 GB`, `64 MiB`.
fn dd_size(v: f64, binary: bool) -> String {
    let (base, units) = if binary {
        (1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
    } else {
        (1000.0, ["B", "kB", "MB", "GB", "TB"])
    };
    let mut v = v;
    let mut i = 0;
    while v >= base && i + 1 < units.len() {
        v /= base;
        i += 1;
    }
    if v < 9.95 { format!("{v:.1} {}", units[i]) } else { format!("{v:.0} {}", units[i]) }
}

/// Six significant digits.
fn six(v: f64) -> String {
    let decimals = (5 - v.max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    format!("{v:.decimals$}")
}

fn boxed(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let rule = |left, middle, right| {
        let parts: Vec<String> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
        format!("{left}{}{right}\n", parts.join(middle))
    };
    let mut out = rule("┌", "┬", "┐");
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(s, w)| format!(" {s}{} ", " ".repeat(w - s.chars().count())))
            .collect();
        let _ = writeln!(out, "│{}│", cells.join("│"));
    }
    out + &rule("└", "┴", "┘")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn drive(path: &str, write: f64) -> Drive {
        Drive {
            path: path.into(),
            alone: Rates { write_bytes_per_s: Some(write), read_bytes_per_s: None },
            ..Drive::default()
        }
    }

    pub(in crate::fio) fn record(drives: Vec<Drive>, streams: u32) -> Ceiling {
        Ceiling {
            schema: SCHEMA.into(),
            run: "r".into(),
            started_at: String::new(),
            host: String::new(),
            block_bytes: 16 << 20,
            file_bytes: 1 << 30,
            streams,
            drives,
            total: Rates { write_bytes_per_s: Some(2e9), read_bytes_per_s: Some(4e9) },
            total_while_all_ran: Rates::default(),
            said: Vec::new(),
            expectations: Vec::new(),
        }
    }

    #[test]
    fn a_failed_drive_is_in_the_table_the_note_and_the_findings() {
        let bad = Drive { path: "/bad".into(), error: Some("no space".into()), ..Drive::default() };
        let c = record(vec![drive("/good", 1e9), bad], 4);
        let text = c.table();
        assert!(text.contains("✗") && text.contains("* without /bad: no space"), "{text}");
        assert!(text.contains("1907 MiB/s *"), "{text}");
        assert_eq!(c.findings().len(), 1);
        assert_eq!(c.findings()[0].level, Level::Invalid);
        assert_eq!(serde_json::from_str::<Ceiling>(&c.json()).unwrap(), c);
    }

    /// What `runs show` calls invalid gets no tick.
    #[test]
    fn a_drive_whose_lines_are_invalid_in_the_run_has_no_tick() {
        let line = |name: &str, valid: bool| WorkloadSummary {
            name: name.into(),
            op: "write".into(),
            valid,
            ..WorkloadSummary::default()
        };
        let on = |name: &str| Finding::new("V04", "no_rate", Level::Invalid, "x").on(format!("{name}/write"));
        let bad = "alone /b: write//b write";
        let s = RunSummary {
            workloads: vec![line("alone /a: write//a write", true), line(bad, false)],
            findings: vec![on(bad)],
            ..RunSummary::default()
        };
        assert_eq!((codes(&s, "/a"), codes(&s, "/b")), (vec![], vec!["V04".to_owned()]));
        let uneven = Drive { invalid: codes(&s, "/b"), ..drive("/b", 1e9) };
        let text = record(vec![drive("/a", 1e9), uneven], 4).table();
        assert_eq!(text.matches('✓').count(), 1, "{text}");
        assert!(text.contains("! /b: [INVALID V04] in the run"), "{text}");
    }

    #[test]
    fn one_stream_prints_the_lines_of_dd() {
        let d =
            Drive { bytes: 1 << 30, write_seconds: 1.03775, read_seconds: 0.466429, ..drive("/disk1", 1e9) };
        let text = record(vec![d], 1).dd().unwrap();
        assert_eq!(
            text,
            "64+0 records in\n64+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.03775 s, 1.0 GB/s\n\
             64+0 records in\n64+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.466429 s, 2.3 GB/s\n"
        );
        assert_eq!(record(vec![drive("/a", 1.0)], 4).dd(), None);
    }

    #[test]
    fn a_path_on_a_drive_has_that_drive_s_ceiling() {
        let c = record(vec![drive("/mnt/a", 1e9), drive("/mnt/ab", 3e9)], 4);
        let at = |p: &str| c.rates_at(Some(std::path::Path::new(p))).write_bytes_per_s;
        assert_eq!((at("/mnt/a/file"), at("/mnt/ab"), at("/other")), (Some(1e9), Some(3e9), Some(2e9)));
        assert_eq!(c.rates_at(None), c.total);
    }
}
