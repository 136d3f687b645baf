//! elbencho's `--csvfile` and `--jsonfile`. Both grow with each phase of each run: rows of one command are one run.
//!
//! Figures are those of "last done": all of the work over the time of the slowest thread. With `rwmix` the main columns are the
//! writes, and the reads have columns of their own.

use std::collections::BTreeMap;
use std::io::Read;

use plimsoll_model::summary::WorkloadSummary;
use serde_json::Value;

use crate::document::JsonFile;
use crate::error::ImportError;
use crate::line::{latency, line, point, word};
use crate::rows::Rows;
use crate::source::ImportedRun;

/// Rows that are read: a file of a year of tests has fewer.
const MOST_ROWS: usize = 100_000;
const MIB: f64 = 1048576.0;

/// A phase, whatever the form: value by name.
struct Phase {
    fields: BTreeMap<String, String>,
    /// Bytes per second, where the form has them exactly.
    exact_bytes: bool,
}

impl Phase {
    fn text(&self, names: &[&str]) -> &str {
        names.iter().find_map(|n| self.fields.get(*n)).map_or("", String::as_str)
    }

    fn number(&self, names: &[&str]) -> Option<f64> {
        self.text(names).trim().parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)
    }

    fn whole(&self, names: &[&str]) -> u32 {
        self.number(names).map_or(0, |v| v as u32)
    }
}

pub(crate) fn read_csv(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    let mut rows = Rows::open(reader, b',')?;
    for needed in ["operation", "time ms [last]", "IOPS [last]", "MiB/s [last]"] {
        rows.needed(needed)?;
    }
    let head = rows.head().to_vec();
    let mut phases = Vec::new();
    while rows.next()? {
        // The head again: a later version appended to the file.
        if rows.field(0) == head[0] {
            continue;
        }
        if phases.len() >= MOST_ROWS {
            return Err(ImportError::at(
                rows.place(),
                format!("there are more than {MOST_ROWS} phases"),
                "Split the file.",
            ));
        }
        let fields = head.iter().enumerate().map(|(i, h)| (h.clone(), rows.field(i).to_owned())).collect();
        phases.push(Phase { fields, exact_bytes: false });
    }
    runs(&phases, "csv")
}

pub(crate) fn read_json(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    let documents: Vec<Value> = JsonFile::read(reader)?.all()?;
    let phase = |d: &Value| {
        let mut fields = BTreeMap::new();
        flatten("", d, &mut fields);
        Phase { fields, exact_bytes: true }
    };
    runs(&documents.iter().map(phase).collect::<Vec<_>>(), "json")
}

/// `last_done.latency.IO.avg_us`; its writer makes a text of every number.
fn flatten(path: &str, v: &Value, out: &mut BTreeMap<String, String>) {
    match v {
        Value::Object(all) => {
            for (k, v) in all {
                flatten(&if path.is_empty() { k.clone() } else { format!("{path}.{k}") }, v, out);
            }
        }
        Value::String(s) => drop(out.insert(path.to_owned(), s.clone())),
        Value::Array(_) | Value::Null => {}
        other => drop(out.insert(path.to_owned(), other.to_string())),
    }
}

/// Phases of one command that follow each other, and do not repeat a phase, are one run.
fn runs(phases: &[Phase], form: &str) -> Result<Vec<ImportedRun>, ImportError> {
    let mut out: Vec<(String, Vec<String>, ImportedRun)> = Vec::new();
    for p in phases {
        let version = p.text(&["version", "config.version"]).trim_start_matches('v');
        if !version.starts_with("3.") {
            let found = format!("elbencho '{}'", word(version));
            return Err(ImportError::version(&found, "those of elbencho 3"));
        }
        let command = p.text(&["command", "config.command"]).to_owned();
        let name = p.text(&["operation", "phase_type"]).to_owned();
        let goes_on = out.last().is_some_and(|(c, names, _)| *c == command && !names.contains(&name));
        if !goes_on {
            let run = ImportedRun {
                tool_version: word(version),
                form: form.to_owned(),
                title: "elbencho".into(),
                started_at: started_at(p.text(&["ISO date", "iso_start_date"])),
                facts: BTreeMap::from([(
                    "command of elbencho".to_owned(),
                    super::warp::without_keys(&command.replace('"', "")),
                )]),
                ..ImportedRun::default()
            };
            out.push((command, Vec::new(), run));
        }
        if let Some((_, names, run)) = out.last_mut() {
            run.lines.extend(lines(p, &name));
            run.title = format!("elbencho: {}", [&names[..], &[word(&name)]].concat().join(", "));
            names.push(name);
        }
    }
    Ok(out.into_iter().map(|(_, _, run)| run).collect())
}

fn started_at(text: &str) -> String {
    let plain = text.trim();
    let of = plain.parse::<jiff::Timestamp>();
    // "+0200" is no offset of RFC 3339.
    let zoned = || jiff::Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%z", plain);
    of.or_else(|_| zoned()).map(|t| t.to_string()).unwrap_or_default()
}

/// The line of a phase, and with rwmix one of its reads.
fn lines(p: &Phase, name: &str) -> Vec<WorkloadSummary> {
    let reads = side(p, name, "rwmix read ", ".rwmix_read");
    let mut main = side(p, name, "", "");
    if let (Some(w), Some(_)) = (&mut main, &reads) {
        w.load = "rw".into();
    }
    let mut out: Vec<WorkloadSummary> = main.into_iter().collect();
    out.extend(reads.map(|mut w| {
        (w.op, w.load) = ("read".into(), "rw".into());
        w
    }));
    out
}

/// `csv` goes before a column's name, and `json` behind the path of a subtree.
fn side(p: &Phase, name: &str, csv: &str, json: &str) -> Option<WorkloadSummary> {
    let find = |column: &str, of_done: &str| {
        p.number(&[&format!("{csv}{column} [last]"), &format!("last_done{json}.{of_done}")])
    };
    let seconds = p.number(&["time ms [last]", "last_done.elapsed_time_ms"])? / 1000.0;
    let (ios, entries) = (find("IOPS", "iops"), find("entries/s", "entries/s"));
    let bytes = match p.exact_bytes {
        true => find("-", "bytes/s"),
        false => find("MiB/s", "-").map(|v| v * MIB),
    };
    // A phase with I/O is counted by its I/O; others (deletion, stat) by their entries.
    let rate = ios.or(entries)?;
    let hosts = p.whole(&["hosts", "config.hosts"]).max(1);
    let threads = p.whole(&["threads", "config.threads"]).max(1);
    let depth = p.whole(&["IO depth", "io depth", "iodepth", "config.io_depth"]).max(1);
    let block = p.number(&["block size", "block size [bytes]", "config.block_size"]).unwrap_or(0.0) as u64;
    let size = if ios.is_some() { block } else { 0 };
    let in_flight = threads.saturating_mul(hosts).saturating_mul(if ios.is_some() { depth } else { 1 });
    let mut w = line(&word(name).to_lowercase(), op(name), size, in_flight, seconds);
    w.load = load(p, name);
    w.ops_per_s = point(rate);
    w.bytes_per_s = bytes.filter(|b| *b > 0.0).and_then(point);
    w.attempts_per_s = rate;
    let done = find("entries", "entries").filter(|_| ios.is_none()).unwrap_or(rate * seconds);
    w.outcomes.insert("ok".into(), done as u64);
    let kind = if ios.is_some() { ("IO", "IO") } else { ("Ent", "entries") };
    let time = |what: &str| {
        let us = p.number(&[
            &format!("{csv}{} lat us [{what}]", kind.0),
            &format!("last_done.latency.{}{json}.{what}_us", kind.1),
        ]);
        us.map(|us| us * 1000.0)
    };
    if let (Some(min), Some(avg), Some(max)) = (time("min"), time("avg"), time("max")) {
        w.latency_ns.response = latency((rate * seconds) as u64, avg, (min, max), |_| None);
        w.latency_ns.service.clone_from(&w.latency_ns.response);
    }
    if !p.exact_bytes {
        w.notes.push("elbencho writes whole MiB/s: small rates of bytes are rounded down".into());
    }
    if !is_direct(p) && ios.is_some() {
        w.notes.push("not direct I/O: the page cache may have answered".into());
    }
    Some(w)
}

fn is_direct(p: &Phase) -> bool {
    let said = p.text(&["direct IO", "directIO", "direct", "config.direct_io"]);
    ["1", "true"].contains(&said) || p.text(&["path type", "config.path_type"]).contains("s3")
}

fn op(phase: &str) -> &'static str {
    match phase.to_lowercase().as_str() {
        "write" => "write",
        "read" => "read",
        "rmfiles" | "rmobjects" | "rmobj" => "delete",
        "stat" | "headobj" | "statobj" => "stat",
        "trim" => "trim",
        _ => "null",
    }
}

fn load(p: &Phase, phase: &str) -> String {
    let random = ["1", "true"].contains(&p.text(&["random", "rand", "config.random_offsets"]));
    match (op(phase), random) {
        ("read", true) => "randread".into(),
        ("write", true) => "randwrite".into(),
        ("null", _) => word(phase).to_lowercase(),
        (op, _) => op.to_owned(),
    }
}
