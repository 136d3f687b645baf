//! GoBonnieGo's `-json`: sequential writes, sequential reads, and a mix of nine random reads to a write (its source says ten, and counts to nine).

use std::collections::BTreeMap;
use std::io::Read;

use plimsoll_model::finding::Level;
use plimsoll_model::{Estimate, Finding};
use serde::Deserialize;

use crate::document::{JsonFile, few};
use crate::error::ImportError;
use crate::line::{line, of_repeats, word};
use crate::source::ImportedRun;

/// Of sequential phases, and of the ops of the mix: constants of its source since 1.0.
const SEQUENTIAL: u64 = 64 << 10;
const RANDOM: u64 = 512;

#[derive(Debug, Deserialize)]
struct Document {
    version: String,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    disk_space_used_gib: f64,
    #[serde(default)]
    num_readers_and_writers: u32,
    #[serde(default)]
    physical_memory_bytes: u64,
    #[serde(default, deserialize_with = "few")]
    results: Vec<Phases>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Phases {
    write_megabytes_per_second: f64,
    read_megabytes_per_second: f64,
    iops: f64,
    write_bytes: u64,
    write_seconds: f64,
    read_bytes: u64,
    read_seconds: f64,
    io_operations: u64,
    io_seconds: f64,
}

pub(crate) fn read(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    JsonFile::read(reader)?.all::<Document>()?.iter().map(run).collect()
}

fn run(d: &Document) -> Result<ImportedRun, ImportError> {
    if !d.version.starts_with("1.0.") {
        let found = format!("GoBonnieGo '{}'", word(&d.version));
        return Err(ImportError::version(&found, "those of GoBonnieGo 1.0"));
    }
    let threads = d.num_readers_and_writers.max(1);
    let mut out = ImportedRun {
        tool_version: word(&d.version),
        form: "json".into(),
        title: format!("GoBonnieGo: {:.2} GiB, {threads} threads", d.disk_space_used_gib),
        started_at: word(&d.start_time).parse::<jiff::Timestamp>().map(|t| t.to_string()).unwrap_or_default(),
        ..ImportedRun::default()
    };
    out.facts.insert("files".into(), format!("{:.2} GiB", d.disk_space_used_gib));
    out.facts
        .insert("memory".into(), format!("{:.2} GiB", d.physical_memory_bytes as f64 / f64::from(1 << 30)));
    let all = |of: fn(&Phases) -> f64| d.results.iter().map(of).collect::<Vec<f64>>();
    sequential(&mut out, "write", threads, &all(|p| p.write_bytes as f64), &all(|p| p.write_seconds));
    sequential(&mut out, "read", threads, &all(|p| p.read_bytes as f64), &all(|p| p.read_seconds));
    random(&mut out, threads, &d.results);
    labels(&mut out, &d.results);
    let cached = d.disk_space_used_gib * f64::from(1 << 30) < 2.0 * d.physical_memory_bytes as f64;
    if cached && !out.lines.is_empty() {
        let text = "The files are smaller than twice the memory, and GoBonnieGo goes through the page cache: reads may be the \
                    memory's, and so may writes. Use files of twice the memory, or `plimsoll file` with direct I/O.";
        out.findings.push(Finding::new("F88", "imported_cached", Level::Qualified, text));
    }
    Ok(out)
}

/// Rates of those repeats that were finished.
fn rates(work: &[f64], seconds: &[f64]) -> (Vec<f64>, f64) {
    let done = || work.iter().zip(seconds).filter(|(w, s)| **w > 0.0 && **s > 0.0);
    (done().map(|(w, s)| w / s).collect(), done().map(|(_, s)| s).sum())
}

fn sequential(out: &mut ImportedRun, op: &str, threads: u32, bytes: &[f64], seconds: &[f64]) {
    let (rates, window_s) = rates(bytes, seconds);
    if rates.is_empty() {
        return;
    }
    let mut w = line(op, op, SEQUENTIAL, threads, window_s);
    w.bytes_per_s = of_repeats(&rates);
    w.ops_per_s = w.bytes_per_s.map(|e| e.scaled(1.0 / SEQUENTIAL as f64));
    repeats(&mut w, &rates, SEQUENTIAL as f64);
    let ops = bytes.iter().sum::<f64>() / SEQUENTIAL as f64;
    w.outcomes.insert("ok".into(), ops as u64);
    w.attempts_per_s = ops / window_s;
    w.notes.push("sequential, through the page cache; blocks of 64 KiB, as its source has them".into());
    if op == "write" {
        w.notes.push("without a sync at the end".into());
    }
    out.lines.push(w);
}

/// Its `iops`: the reads and the writes of the mix together.
fn random(out: &mut ImportedRun, threads: u32, all: &[Phases]) {
    let ops: Vec<f64> = all.iter().map(|p| p.io_operations as f64).collect();
    let seconds: Vec<f64> = all.iter().map(|p| p.io_seconds).collect();
    let (rates, window_s) = rates(&ops, &seconds);
    if rates.is_empty() {
        return;
    }
    let mut w = line("iops", "total", RANDOM, threads, window_s);
    w.load = "randrw".into();
    w.mix = BTreeMap::from([("read".to_owned(), 9.0), ("write".to_owned(), 1.0)]);
    w.ops_per_s = of_repeats(&rates);
    repeats(&mut w, &rates, 1.0);
    w.outcomes.insert("ok".into(), ops.iter().sum::<f64>() as u64);
    w.attempts_per_s = ops.iter().sum::<f64>() / window_s;
    w.notes.push("nine reads to a write, of 512 B each at random places, through the page cache".into());
    out.lines.push(w);
}

fn repeats(w: &mut plimsoll_model::summary::WorkloadSummary, rates: &[f64], per: f64) {
    w.repeats = rates.len() as u32;
    w.horizon_s = w.window_s / rates.len() as f64;
    if rates.len() > 1 {
        let one =
            |r: &f64| Estimate { value: r / per, low: f64::NEG_INFINITY, high: f64::INFINITY, n_eff: 1.0 };
        w.each_ops_per_s = rates.iter().map(one).collect();
    }
}

/// What it printed against the bytes and times beside it: its MB are 10^6.
fn labels(out: &mut ImportedRun, all: &[Phases]) {
    for (i, p) in all.iter().enumerate() {
        let printed = [
            ("write", p.write_megabytes_per_second * 1e6, p.write_bytes as f64 / p.write_seconds),
            ("read", p.read_megabytes_per_second * 1e6, p.read_bytes as f64 / p.read_seconds),
            ("iops/total", p.iops, p.io_operations as f64 / p.io_seconds),
        ];
        for (on, said, is) in printed {
            if said > 0.0 && is.is_finite() && (said - is).abs() > 0.02 * is {
                let text = format!(
                    "Run {}: the file says {said:.0} per second, and its amounts and times are {is:.0}: one of both is wrong.",
                    i + 1
                );
                out.findings.push(
                    Finding::new("F84", "imported_sum", Level::Qualified, text).measured(said, is).on(on),
                );
            }
        }
    }
}
