//! fio's `json` and `json+`, 2.x and 3.x.
//!
//! Before 3.0 `io_bytes` was KiB, `bw` alone gave the bandwidth (KiB/s), and latencies were microseconds in `slat`, `clat` and `lat`.
//! Since 3.0 `io_bytes` is bytes, `bw_bytes` B/s, and latencies are nanoseconds in `slat_ns`, `clat_ns` and `lat_ns`.

mod direction;
mod options;

use std::collections::BTreeMap;
use std::io::Read;

use plimsoll_model::finding::Level;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, OpKind};
use serde::{Deserialize, Deserializer};

use self::direction::{Direction, Units};
use self::options::Options;
use crate::checks;
use crate::document::{JsonFile, at_most};
use crate::error::ImportError;
use crate::line::{line, point, word};
use crate::source::ImportedRun;

/// What fio calls the sum over its hosts in client mode.
const ALL_CLIENTS: &str = "All clients";

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(default)]
    timestamp: i64,
    #[serde(default, rename = "global options")]
    global: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "jobs")]
    jobs: Vec<Job>,
    #[serde(default, deserialize_with = "jobs")]
    client_stats: Vec<Job>,
}

/// No more than fio itself can start.
fn jobs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Job>, D::Error> {
    at_most::<10_000, D, Job>(from)
}

#[derive(Debug, Deserialize)]
struct Job {
    #[serde(default)]
    jobname: String,
    #[serde(default)]
    groupid: i64,
    #[serde(default)]
    error: i64,
    #[serde(default)]
    hostname: Option<String>,
    #[serde(default)]
    port: u32,
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
}

impl Job {
    fn directions(&self) -> [(OpKind, &Direction); 3] {
        [(OpKind::Read, &self.read), (OpKind::Write, &self.write), (OpKind::Trim, &self.trim)]
    }

    /// One fio of several that a client drove.
    fn host(&self) -> Option<&str> {
        self.hostname.as_deref().filter(|_| self.jobname != ALL_CLIENTS)
    }
}

/// Each document of a file is a run.
pub(crate) fn read(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    JsonFile::read(reader)?.all::<Document>()?.iter().map(run).collect()
}

fn run(d: &Document) -> Result<ImportedRun, ImportError> {
    let (version, units) = units(&d.version)?;
    let mut out = ImportedRun {
        tool_version: version.to_owned(),
        form: "json".into(),
        started_at: jiff::Timestamp::from_second(d.timestamp)
            .ok()
            .filter(|_| d.timestamp > 0)
            .map(|t| t.to_string())
            .unwrap_or_default(),
        ..ImportedRun::default()
    };
    let jobs: Vec<&Job> = d.jobs.iter().chain(&d.client_stats).collect();
    if jobs.iter().any(|j| j.directions().iter().any(|(_, x)| x.has_bins())) {
        out.form = "json+".into();
    }
    let hosts = jobs.iter().filter(|j| j.host().is_some()).count();
    for job in &jobs {
        add_job(&mut out, job, &d.global, units, hosts);
    }
    if hosts > 0 {
        out.facts.insert("fio hosts".into(), hosts.to_string());
        sums_of_hosts(&mut out, &jobs, units);
    } else {
        together(&mut out, &jobs, &d.global, units);
    }
    let cpu: Vec<String> = jobs
        .iter()
        .filter(|j| j.jobname != ALL_CLIENTS)
        .take(16)
        .map(|j| format!("{} {:.0} %", word(&j.jobname), j.usr_cpu + j.sys_cpu))
        .collect();
    out.facts.insert("CPU of a thread, by job".into(), cpu.join(", "));
    out.title = title(&jobs);
    Ok(out)
}

/// `fio-3.33`: versions whose units are known.
fn units(version: &str) -> Result<(&str, Units), ImportError> {
    let bare = version.strip_prefix("fio-").unwrap_or(version);
    match bare.split('.').next() {
        Some("2") => Ok((bare, Units::Two)),
        Some("3") => Ok((bare, Units::Three)),
        _ => Err(ImportError::version(&format!("fio '{}'", word(bare)), "those of fio 2 and 3")),
    }
}

fn title(jobs: &[&Job]) -> String {
    let mut names: Vec<String> =
        jobs.iter().filter(|j| j.jobname != ALL_CLIENTS).map(|j| word(&j.jobname)).collect();
    names.dedup();
    match &names[..] {
        [] => "fio".into(),
        few if few.len() <= 3 => format!("fio: {}", few.join(", ")),
        [first, ..] => format!("fio: {first} and {} more jobs", names.len() - 1),
    }
}

fn add_job(out: &mut ImportedRun, job: &Job, global: &BTreeMap<String, String>, units: Units, hosts: usize) {
    let options = Options::of(&job.options, global);
    let name = match job.host() {
        Some(host) => format!("{}@{}:{}", word(&job.jobname), word(host), job.port),
        None => word(&job.jobname),
    };
    let done = job.directions().into_iter().filter(|(_, x)| x.is_used());
    for (kind, x) in done {
        let mut concurrency = options.in_flight();
        if job.jobname == ALL_CLIENTS {
            concurrency = concurrency.saturating_mul(u32::try_from(hosts).unwrap_or(1));
        }
        // Of all clients fio writes no options.
        let is_sum = job.jobname == ALL_CLIENTS && job.options.is_empty();
        let block = if is_sum { x.mean_size(units) } else { size(x, kind, &options, units) };
        let mut w = line(&name, kind.name(), block, concurrency, x.seconds());
        figures(&mut w, x, units);
        if !is_sum {
            w.load = options.load(kind);
            w.notes.extend(options.notes());
        }
        if job.jobname == ALL_CLIENTS {
            w.together = u32::try_from(hosts).unwrap_or(0);
        }
        if job.error != 0 {
            let text = format!(
                "fio ended the job '{name}' with error {}: its figures are of what came before it. Look at fio's own output.",
                job.error
            );
            out.findings.push(Finding::new("V01", "imported_error", Level::Invalid, text).on(w.label()));
        }
        out.lines.push(w);
    }
}

/// The size of its ops: as the job has it, else the mean of what was done.
fn size(x: &Direction, kind: OpKind, options: &Options<'_>, units: Units) -> u64 {
    options.size(kind).unwrap_or_else(|| x.mean_size(units))
}

fn figures(w: &mut WorkloadSummary, x: &Direction, units: Units) {
    w.ops_per_s = point(x.iops);
    w.bytes_per_s = point(x.bytes_per_s(units));
    w.attempts_per_s = x.iops;
    w.outcomes.insert("ok".into(), x.ops(units));
    let times = x.times(units);
    w.latency_ns.response.clone_from(&times.response);
    w.latency_ns.service = times.response;
    w.latency_ns.submission = times.submission;
    w.notes.extend(times.note);
}

/// Jobs of one group ran at the same time: what they did together, as fio counts it: all of their work over the time of the longest.
fn together(out: &mut ImportedRun, jobs: &[&Job], global: &BTreeMap<String, String>, units: Units) {
    let mut groups: BTreeMap<(i64, OpKind), Vec<(&Job, &Direction)>> = BTreeMap::new();
    for job in jobs {
        for (kind, x) in job.directions().into_iter().filter(|(_, x)| x.is_used()) {
            groups.entry((job.groupid, kind)).or_default().push((job, x));
        }
    }
    for ((group, kind), of) in groups.into_iter().filter(|(_, of)| of.len() > 1) {
        let seconds = of.iter().map(|(_, x)| x.seconds()).fold(0.0, f64::max);
        let (ops, bytes) = of.iter().fold((0u64, 0u64), |(n, b), (_, x)| {
            (n.saturating_add(x.ops(units)), b.saturating_add(x.bytes(units)))
        });
        let all: Vec<Options<'_>> = of.iter().map(|(j, _)| Options::of(&j.options, global)).collect();
        let concurrency = all.iter().map(Options::in_flight).fold(0, u32::saturating_add);
        let size = bytes.checked_div(ops).unwrap_or(0);
        let mut w = line(&format!("group {group}"), kind.name(), size, concurrency, seconds);
        w.load = all[0].load(kind);
        w.together = of.len() as u32;
        w.ops_per_s = point(ops as f64 / seconds);
        w.bytes_per_s = point(bytes as f64 / seconds);
        w.attempts_per_s = ops as f64 / seconds;
        w.outcomes.insert("ok".into(), ops);
        w.notes.push("no percentiles: those of jobs cannot be averaged".into());
        out.lines.push(w);
    }
}

/// In client mode: what the hosts did against what fio says of them all (it was wrong in 3.36).
fn sums_of_hosts(out: &mut ImportedRun, jobs: &[&Job], units: Units) {
    let Some(all) = jobs.iter().find(|j| j.jobname == ALL_CLIENTS) else { return };
    for (kind, whole) in all.directions().into_iter().filter(|(_, x)| x.is_used()) {
        let of = |j: &&&Job| j.host().is_some();
        let each: Vec<f64> = jobs
            .iter()
            .filter(of)
            .flat_map(|j| j.directions())
            .filter(|(k, x)| *k == kind && x.is_used())
            .map(|(_, x)| x.bytes_per_s(units))
            .collect();
        let on = format!("{ALL_CLIENTS}/{}", kind.name());
        out.findings.extend(checks::sum("hosts", "B/s", &each, point(whole.bytes_per_s(units)), &on));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<ImportedRun>, ImportError> {
        read(text.as_bytes())
    }

    /// From fio#430: 2552320 is 2.4 GiB.
    #[test]
    fn units_of_the_second_version_are_its_own() {
        let text = r#"{"fio version": "fio-2.21", "jobs": [{"jobname": "j", "groupid": 0, "error": 0,
          "job options": {"bs": "4k", "iodepth": "32", "ioengine": "libaio", "rw": "randread"},
          "read": {"io_bytes": 2552320, "bw": 42538, "iops": 10634.6, "runtime": 60000, "total_ios": 638080,
          "slat": {"min": 1, "max": 100, "mean": 3.5, "stddev": 1.0},
          "clat": {"min": 90, "max": 90000, "mean": 2900.5, "stddev": 10.0, "percentile":
            {"50.000000": 2800, "90.000000": 4000, "99.000000": 9000, "99.900000": 20000, "99.990000": 30000, "0.00": 0}},
          "lat": {"min": 95, "max": 90010, "mean": 2904.0, "stddev": 10.0}}}]}"#;
        let run = &of(text).unwrap()[0];
        let w = &run.lines[0];
        assert_eq!(
            (w.op.as_str(), w.load.as_str(), w.size_bytes, w.concurrency),
            ("read", "randread", 4096, 32)
        );
        assert_eq!(w.bytes_per_s.unwrap().value, 42538.0 * 1024.0);
        let l = w.latency_ns.response.as_ref().unwrap();
        assert_eq!(
            (l.mean, l.p50, l.p99, l.max),
            (2_900_500.0, Some(2_800_000), Some(9_000_000), 90_000_000)
        );
        assert_eq!(w.outcomes["ok"], 638_080);
        assert!(run.findings.is_empty(), "{:?}", run.findings);
    }

    #[test]
    fn a_version_that_nobody_has_looked_at_is_refused_by_name() {
        let e = of(r#"{"fio version": "fio-4.0", "jobs": []}"#).unwrap_err();
        assert!(e.to_string().contains("fio '4.0'"), "{e}");
        assert!(of(r#"{"fio version": "fio-1.59", "jobs": []}"#).is_err());
    }

    #[test]
    fn hosts_that_do_not_add_up_are_told() {
        let job = |name: &str, host: &str, bw: u64| {
            format!(
                r#"{{"jobname": "{name}", "hostname": "{host}", "port": 8765, "error": 0, "job options": {{"bs": "4k"}},
                "read": {{"io_bytes": {0}, "bw_bytes": {bw}, "iops": {1}, "runtime": 1000, "total_ios": {1}}}}}"#,
                bw,
                bw / 4096
            )
        };
        let document = |all: u64| {
            let jobs = [job("j", "a", 4_096_000), job("j", "b", 4_096_000), job(ALL_CLIENTS, "", all)];
            format!(r#"{{"fio version": "fio-3.36", "client_stats": [{}]}}"#, jobs.join(","))
        };
        let sound = &of(&document(8_192_000)).unwrap()[0];
        assert!(sound.findings.is_empty(), "{:?}", sound.findings);
        assert_eq!(sound.lines.last().unwrap().together, 2);
        let wrong = &of(&document(4_096_000)).unwrap()[0];
        assert_eq!(wrong.findings[0].code, "F84");
    }
}
