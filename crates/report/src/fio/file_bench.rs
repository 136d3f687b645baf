//! The file benchmark's result: a line a run, mean and spread over the runs, and whether later runs differ.

use std::fmt::Write;

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::significant;
use plimsoll_model::{Estimate, Finding, Level, RunSummary};
use plimsoll_stats::student;
use plimsoll_store::{RunDir, StoreError};
use serde::Serialize;

use super::judged::Judged;
use super::phase::{WholeStage, phases};
use crate::glance::{ALL, Body, Glance, GlanceFact, first_sentence};
use crate::number::{self, MB, MIB};
use crate::run::RunReport;
use crate::table::Table;
use crate::terminal::Style;

/// Of more runs than this the short table has the first and the last.
const SHOWN: usize = 3;

/// One pass of write, read and IOPS.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct FileRun {
    /// Payload.
    pub write_bytes: u64,
    /// From the stage's start to the end of its last op.
    pub write_seconds: f64,
    /// Payload.
    pub read_bytes: u64,
    /// From the stage's start to the end of its last op.
    pub read_seconds: f64,
    /// Of the third phase, those that ended well.
    pub io_operations: u64,
    /// Of the third phase.
    pub io_seconds: f64,
    /// RFC 3339.
    pub start_time: String,
    /// Of all three phases.
    pub failed_operations: u64,
}

impl FileRun {
    /// MB/s, as the original has it: 10^6 bytes.
    pub fn write_mb_per_s(&self) -> f64 {
        rate(self.write_bytes as f64 / 1e6, self.write_seconds)
    }

    /// MB/s, as the original has it: 10^6 bytes.
    pub fn read_mb_per_s(&self) -> f64 {
        rate(self.read_bytes as f64 / 1e6, self.read_seconds)
    }

    /// Ops per second; 0 without time.
    pub fn iops(&self) -> f64 {
        rate(self.io_operations as f64, self.io_seconds)
    }
}

/// One figure of the benchmark: that of the run's summary, so that all that shows it shows the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Figure {
    /// Each run's own, with the interval within it; of a single run none.
    pub each: Vec<Estimate>,
    /// Of all runs; `None` where the data carries none.
    pub over_all: Option<Estimate>,
    /// Codes of what makes it void in the run's summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

impl Figure {
    /// `per_op`: what of the figure's unit an op is.
    fn of(s: &RunSummary, line: Option<&WorkloadSummary>, over_all: Option<Estimate>, per_op: f64) -> Self {
        let each = line.map_or(&[][..], |w| &w.each_ops_per_s).iter().map(|e| e.scaled(per_op)).collect();
        let invalid = line.filter(|w| !w.valid).map_or_else(Vec::new, |w| s.codes_of(w));
        Self { each, over_all, invalid }
    }

    /// Run `i`, in a unit of so much; `value` where the summary has no figure of it.
    fn of_run(&self, i: usize, unit: f64, value: f64) -> String {
        if self.each.is_empty() && !self.invalid.is_empty() {
            return self.of_all(unit);
        }
        let own = self.each.get(i).or(self.over_all.as_ref().filter(|_| self.each.is_empty() && i == 0));
        own.map_or_else(
            || format!("{} (interval unknown)", significant(value / unit, 3)),
            |e| number::estimate(&e.scaled(1.0 / unit)),
        )
    }

    fn of_all(&self, unit: f64) -> String {
        if !self.invalid.is_empty() {
            return format!("void {}", self.invalid.join(" "));
        }
        number::estimate_or_missing(self.over_all.map(|e| e.scaled(1.0 / unit)).as_ref())
    }
}

/// Block size of the write and read phases.
const BLOCK_BYTES: f64 = 65_536.0;

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// What the file benchmark measured, in the original's terms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileBench {
    /// Of this program.
    pub version: String,
    /// RFC 3339.
    pub start_time: String,
    /// Where its files were.
    pub directory: String,
    /// Of each thread's file.
    pub file_bytes: u64,
    /// Each with a file of its own.
    pub threads: u32,
    /// Of this machine.
    pub physical_memory_bytes: u64,
    /// As it was asked for.
    pub iops_duration_s: f64,
    /// What is corrected against the original, by name.
    pub corrections: Vec<String>,
    /// `dropped`, `direct` or `cached`.
    pub cache: String,
    /// In order.
    pub runs: Vec<FileRun>,
    /// While files are written, one after the other.
    pub write_bytes_per_s: Figure,
    /// While they are read.
    pub read_bytes_per_s: Figure,
    /// Small ops at random places.
    pub iops: Figure,
    /// Of the figures over the runs; what the run as a whole was found to be is in `judged`.
    pub findings: Vec<Finding>,
    /// Absent where the run has no summary.
    pub judged: Option<Judged>,
}

/// Reads a run of `plimsoll file`.
pub fn file_bench(dir: &RunDir) -> Result<FileBench, StoreError> {
    let (data, phases) = phases(dir)?;
    let label = |name: &str| data.plan.labels.get(name).cloned().unwrap_or_default();
    let start = data.environment.started_at.parse::<jiff::Timestamp>().unwrap_or_default();
    let target = data.plan.targets.values().find_map(|t| match t {
        TargetSpec::Files(f) => Some(f.clone()),
        _ => None,
    });
    let threads = data.plan.stages.first().and_then(|s| s.workloads.first()?.jobs).unwrap_or(1);
    let runs = runs_of(&phases, start, data.end.as_deref() == Some("interrupted"));
    let iops_stage = data.plan.stages.iter().find(|s| s.name.as_deref() == Some("iops"));
    let iops_duration = iops_stage.and_then(|s| s.workloads.first()?.stop.duration);
    let series = |f: fn(&FileRun) -> f64| runs.iter().map(f).collect::<Vec<f64>>();
    let (write, read, iops) =
        (series(FileRun::write_mb_per_s), series(FileRun::read_mb_per_s), series(FileRun::iops));
    let summary = dir.summary()?;
    let line = |name: &str, op: &str| summary.workloads.iter().find(|w| w.name == name && w.op == op);
    let bytes =
        |w: Option<&WorkloadSummary>| Figure::of(&summary, w, w.and_then(|w| w.bytes_per_s), BLOCK_BYTES);
    let (write_line, read_line, io_line) =
        (line("write", "write"), line("read", "read"), line("iops", "total"));
    let findings = [("write", &write), ("read", &read), ("iops", &iops)]
        .into_iter()
        .filter_map(|(name, x)| drift(name, x))
        .collect();
    let corrections = label("corrections");
    Ok(FileBench {
        version: data.environment.plimsoll_version.clone(),
        start_time: start.to_string(),
        directory: target.as_ref().map(|t| t.directory.clone()).unwrap_or_default(),
        file_bytes: target.as_ref().map_or(0, |t| t.file_size.0),
        threads,
        physical_memory_bytes: data.environment.machine.memory_bytes,
        iops_duration_s: iops_duration.map_or(0.0, |d| d.0.as_secs_f64()),
        corrections: corrections.split(',').filter(|c| !c.is_empty()).map(str::to_owned).collect(),
        cache: label("cache"),
        write_bytes_per_s: bytes(write_line),
        read_bytes_per_s: bytes(read_line),
        iops: Figure::of(&summary, io_line, io_line.and_then(|w| w.ops_per_s), 1.0),
        runs,
        findings,
        judged: Judged::read(dir),
    })
}

/// Only runs whose three phases are there and count. The one that was interrupted is none beside others.
fn runs_of(phases: &[WholeStage], start: jiff::Timestamp, interrupted: bool) -> Vec<FileRun> {
    let begun = phases.iter().map(|p| p.repeat).max().map_or(0, |r| r + 1);
    let whole = if interrupted && begun > 1 { begun - 1 } else { begun };
    (0..whole)
        .filter_map(|run| {
            let phase =
                |name: &str| phases.iter().find(|p| p.repeat == run && p.name == name && p.void.is_none());
            let (write, read, io) = (phase("write")?, phase("read")?, phase("iops")?);
            let at = jiff::SignedDuration::from_secs_f64(write.start_s);
            Some(FileRun {
                write_bytes: write.total().bytes,
                write_seconds: write.seconds,
                read_bytes: read.total().bytes,
                read_seconds: read.seconds,
                io_operations: io.total().ops,
                io_seconds: io.seconds,
                start_time: start.checked_add(at).unwrap_or(start).to_string(),
                failed_operations: write.total().failed + read.total().failed + io.total().failed,
            })
        })
        .collect()
}

/// The smallest change between runs that matters: method (b)'s.
const MIN_STEP: f64 = 0.08;
/// Chance of a step where there is none, over all places where it could be.
const P_LIMIT: f64 = 0.001;

/// The clearest step between earlier and later runs, if there is one: on the logarithm, at least 8 %, four times
/// the spread within the sides, and significant for all places that were tried (method (b), with runs for samples).
fn drift(what: &str, x: &[f64]) -> Option<Finding> {
    let n = x.len();
    if n < 4 || x.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let y: Vec<f64> = x.iter().map(|v| v.ln()).collect();
    let mean = |s: &[f64]| s.iter().sum::<f64>() / s.len() as f64;
    let squares = |s: &[f64]| s.iter().map(|v| (v - mean(s)).powi(2)).sum::<f64>();
    let (split, spread) =
        (1..n).map(|i| (i, squares(&y[..i]) + squares(&y[i..]))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (before, after) = (&y[..split], &y[split..]);
    let df = (n - 2) as f64;
    // Timers and rounding leave a spread of this size in any case.
    let sd = (spread / df).sqrt().max(1e-3);
    let step = mean(after) - mean(before);
    let t = step.abs() / (sd * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt());
    let p = student::two_sided(t, df) * (n - 1) as f64;
    if step.abs() < MIN_STEP.ln_1p() || step.abs() < 4.0 * sd || p > P_LIMIT {
        return None;
    }
    let change = step.exp() - 1.0;
    let text = format!(
        "The {what} figure changes by {:+.0} % from run {} on. The mean over all runs describes neither part: {}",
        change * 100.0,
        split + 1,
        if change < 0.0 {
            "this looks like burst credits running out. Let the storage rest, and see whether the rate comes back."
        } else {
            "something warmed up (a cache, a volume that scales). Use only the later runs."
        }
    );
    Some(Finding::new("Q07", "drift_over_runs", Level::Qualified, text).measured(change, MIN_STEP).on(what))
}

impl FileBench {
    /// The original's JSON (version 1.0.10), with our corrections under a key of ours.
    pub fn gobonniego(&self) -> String {
        let results: Vec<serde_json::Value> = self
            .runs
            .iter()
            .map(|r| {
                serde_json::json!({
                    "write_megabytes_per_second": r.write_mb_per_s(),
                    "read_megabytes_per_second": r.read_mb_per_s(),
                    "iops": r.iops(),
                    "write_seconds": r.write_seconds,
                    "read_seconds": r.read_seconds,
                    "io_seconds": r.io_seconds,
                    "start_time": r.start_time,
                    "write_bytes": r.write_bytes,
                    "read_bytes": r.read_bytes,
                    "io_operations": r.io_operations,
                })
            })
            .collect();
        let judged = self.judged.as_ref();
        let findings: Vec<&Finding> = judged.iter().flat_map(|j| &j.findings).chain(&self.findings).collect();
        let all = serde_json::json!({
            "version": "1.0.10",
            "start_time": self.start_time,
            "gobonniego_directory": self.directory,
            "disk_space_used_gib": self.file_bytes as f64 * f64::from(self.threads) / f64::from(1 << 30),
            "num_readers_and_writers": self.threads,
            "physical_memory_bytes": self.physical_memory_bytes,
            "iops_duration_seconds": self.iops_duration_s,
            "results": results,
            "plimsoll": {
                "version": self.version,
                "corrections": self.corrections,
                "cache": self.cache,
                "status": judged.map(|j| j.status),
                "valid": judged.map(|j| j.valid),
                "answered": judged.map(|j| j.answered),
                "findings": findings,
            },
        });
        let mut text = serde_json::to_string_pretty(&all).expect("plain data is always JSON");
        text.push('\n');
        text
    }

    /// For people, a line a run; what stands above and below it is what the original says, too.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let size = self.file_bytes * u64::from(self.threads);
        let _ = writeln!(
            out,
            "{}: {} files, {:.2} GiB in total, 64 KiB blocks;\nIOPS with 512 bytes, nine reads per write\n",
            self.directory,
            self.threads,
            size as f64 / f64::from(1 << 30)
        );
        out.push_str(&self.rows(true).plain(100));
        out.push('\n');
        if !self.corrections.is_empty() {
            let _ = writeln!(out, "Corrections to the original: {}.", self.corrections.join(", "));
        }
        if let Some(said) = self.cache_words() {
            let _ = writeln!(out, "{said}.");
        }
        for f in &self.findings {
            let _ = writeln!(out, "{}", f.text);
        }
        out
    }

    /// The run at a glance, with the first and last runs of the benchmark and the figures over all of them.
    pub fn short(&self, r: &RunReport, style: Style) -> String {
        let mut glance = Glance::of(r);
        let told = self.findings.iter().map(|f| (format!("! {}", f.code), first_sentence(&f.text)));
        let cache = (self.cache == "cached").then(|| self.cache_words()).flatten();
        let own = told.chain(cache.map(|text| ("! cache".into(), text.into())));
        glance.facts.splice(0..0, own.map(|(name, text)| GlanceFact { name, text }));
        glance.with_body(r, Some(Body::Table(self.rows(false))), style)
    }

    fn cache_words(&self) -> Option<&'static str> {
        match self.cache.as_str() {
            "cached" => Some("The read and IOPS figures are those of the cache, which could not be dropped"),
            "direct" => Some("The cache could not be dropped; reads use direct I/O"),
            _ => None,
        }
    }

    /// A row a run, and one over all of them: of many runs the first and the last ones, unless `every` one is asked for.
    fn rows(&self, every: bool) -> Table {
        let mut t = Table::new("The file benchmark", 1, &[">run", ">write MiB/s", ">read MiB/s", ">IOPS"]);
        let count = self.runs.len();
        let left_out = if every || count <= SHOWN { 0..0 } else { 1..count - 1 };
        for (i, r) in self.runs.iter().enumerate() {
            if left_out.contains(&i) {
                if i == left_out.start {
                    let more = format!("{} more: -v", left_out.len());
                    t.push(vec!["...".into(), more, String::new(), String::new()]);
                }
                continue;
            }
            t.push(vec![
                (i + 1).to_string(),
                self.write_bytes_per_s.of_run(i, MIB, r.write_mb_per_s() * MB),
                self.read_bytes_per_s.of_run(i, MIB, r.read_mb_per_s() * MB),
                self.iops.of_run(i, 1.0, r.iops()),
            ]);
        }
        if self.runs.len() > 1 {
            t.push(vec![
                ALL.into(),
                self.write_bytes_per_s.of_all(MIB),
                self.read_bytes_per_s.of_all(MIB),
                self.iops.of_all(1.0),
            ]);
        }
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_after_some_runs_is_found() {
        // The seed's 20 GiB volume: four good runs, then the credits are gone.
        let f = drift("iops", &[302.0, 298.0, 305.0, 299.0, 81.0, 80.0, 79.5, 80.2, 81.0, 80.0]).unwrap();
        assert!(f.text.contains("from run 5 on"), "{}", f.text);
        assert!((f.measured.unwrap() + 0.73).abs() < 0.02, "{:?}", f.measured);
        assert!(drift("iops", &[300.0, 301.0, 299.0, 300.5, 80.0]).unwrap().text.contains("run 5"));
    }

    #[test]
    fn noise_is_no_drift() {
        assert_eq!(drift("w", &[100.0, 105.0, 97.0, 101.0, 99.0, 103.0, 96.0, 102.0, 100.0, 98.0]), None);
        assert_eq!(drift("w", &[100.0, 50.0, 100.0]), None, "three runs carry no claim");
        assert_eq!(drift("w", &[100.0, 103.0, 103.1, 103.2, 103.0]), None, "3 % does not matter");
        assert_eq!(drift("w", &[0.0; 10]), None);
    }

    /// Random series without a step: the claim is wrong in at most a few of a thousand.
    #[test]
    fn false_alarms_are_rare() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let mut alarms = 0;
        for _ in 0..2000 {
            let x: Vec<f64> =
                (0..10).map(|_| 100.0 * (1.0 + 0.1 * ((0..12).map(|_| next()).sum::<f64>() - 6.0))).collect();
            alarms += usize::from(drift("w", &x).is_some());
        }
        assert!(alarms <= 10, "{alarms} of 2000");
    }

    #[test]
    fn a_run_without_an_interval_says_so() {
        let own = Estimate::symmetric(2.0 * MIB, 0.1 * MIB, 9.0);
        let one = Figure { each: Vec::new(), over_all: Some(own), ..Figure::default() };
        assert_eq!(
            (one.of_run(0, MIB, 0.0), one.of_run(1, MIB, 3.0 * MIB)),
            ("2.00 ± 0.10".into(), "3.00 (interval unknown)".into())
        );
        let two = Figure { each: vec![own, own.scaled(2.0)], over_all: None, ..Figure::default() };
        assert_eq!((two.of_run(1, MIB, 0.0), two.of_all(MIB)), ("4.00 ± 0.20".into(), "n/a".into()));
    }
}
