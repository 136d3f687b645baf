//! warp's own figures (`json.zst`): rates of its whole measurement, and times merged from its clients.

use std::collections::BTreeMap;
use std::io::Read;

use plimsoll_model::Finding;
use plimsoll_model::finding::Level;
use plimsoll_model::summary::WorkloadSummary;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::survey::without_keys;
use crate::checks;
use crate::document::JsonFile;
use crate::error::ImportError;
use crate::line::{latency, line, point, word};
use crate::source::ImportedRun;

/// Of its format. The first one has the same names.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=2;

/// Kinds of ops: warp has a dozen.
const MOST_KINDS: usize = 1000;

#[derive(Debug, Deserialize)]
struct Document {
    v: u32,
    #[serde(default)]
    commandline: String,
    #[serde(default)]
    r#final: bool,
    #[serde(default)]
    warp_version: String,
    #[serde(default, deserialize_with = "kinds")]
    by_op_type: BTreeMap<String, Aggregate>,
}

/// By kind of op, of which there are few.
fn kinds<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Aggregate>, D::Error> {
    struct Kinds;

    impl<'de> Visitor<'de> for Kinds {
        type Value = BTreeMap<String, Aggregate>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("figures by kind of op")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = BTreeMap::new();
            while let Some((kind, of)) = map.next_entry()? {
                out.insert(kind, of);
                if out.len() > MOST_KINDS {
                    return Err(A::Error::custom(format!("more than {MOST_KINDS} kinds of ops")));
                }
            }
            Ok(out)
        }
    }
    from.deserialize_map(Kinds)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Aggregate {
    total_requests: u64,
    total_errors: u64,
    concurrency: u32,
    start_time: String,
    throughput: Throughput,
    throughput_by_host: BTreeMap<String, Throughput>,
    requests_by_client: Clients,
    first_errors: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Throughput {
    measure_duration_millis: f64,
    bytes: f64,
    objects: f64,
    ops: f64,
}

/// The segments of all clients that say something of their times.
#[derive(Debug, Default)]
struct Clients(Vec<Requests>);

impl<'de> Deserialize<'de> for Clients {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut out = Vec::new();
        from.deserialize_map(OfClients(&mut out))?;
        Ok(Self(out))
    }
}

/// Reads the lists of clients, or one of them, into one: what says nothing is not kept, however much there is of it.
struct OfClients<'a>(&'a mut Vec<Requests>);

impl<'de> DeserializeSeed<'de> for OfClients<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OfClients<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("segments by client")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(OfClients(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(segment) = seq.next_element::<Segment>()? {
            // What warp merged are sums that it divides as it prints them.
            let says = |r: &Requests| !r.skipped && r.requests > 0 && r.merged_entries <= 1;
            self.0.extend(segment.single_sized_requests.filter(says));
        }
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Segment {
    single_sized_requests: Option<Requests>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requests {
    dur_percentiles_millis: Option<Vec<f64>>,
    dur_median_millis: f64,
    dur_90_millis: f64,
    dur_99_millis: f64,
    dur_avg_millis: f64,
    fastest_millis: f64,
    slowest_millis: f64,
    requests: u64,
    obj_size: u64,
    skipped: bool,
    merged_entries: u64,
}

/// A file is one run, with a line for each kind of op.
pub(crate) fn read(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    JsonFile::read(reader)?.all::<Document>()?.iter().map(run).collect()
}

fn run(d: &Document) -> Result<ImportedRun, ImportError> {
    if !VERSIONS.contains(&d.v) {
        let found = format!("version {} of warp's summary", d.v);
        return Err(ImportError::version(&found, "versions 1 and 2"));
    }
    let mut out = ImportedRun {
        tool_version: word(&d.warp_version),
        form: "json".into(),
        title: format!("warp: {}", d.by_op_type.keys().map(|k| word(k)).collect::<Vec<_>>().join(", ")),
        ..ImportedRun::default()
    };
    if !d.commandline.is_empty() {
        out.facts.insert("command of warp".into(), without_keys(&d.commandline));
    }
    let starts = d.by_op_type.values().filter_map(|a| a.start_time.parse::<jiff::Timestamp>().ok());
    out.started_at = starts.min().map(|t| t.to_string()).unwrap_or_default();
    for (op, a) in &d.by_op_type {
        add(&mut out, op, a);
    }
    out.findings.extend(distributed(d));
    out.findings.extend(same_data(&d.warp_version));
    if !d.r#final {
        let text = "warp wrote this before its test was over: its figures are of what came before.";
        out.findings.push(Finding::new("F89", "imported_not_final", Level::Qualified, text));
    }
    Ok(out)
}

/// Its average over several machines is of four seconds more than were measured.
fn distributed(d: &Document) -> Option<Finding> {
    let longest =
        d.by_op_type.values().map(|a| a.throughput.measure_duration_millis / 1000.0).fold(0.0, f64::max);
    if !d.commandline.contains("--warp-client") || longest <= 0.0 {
        return None;
    }
    let share = 100.0 * (DISTRIBUTED_S / longest).min(1.0);
    let text = format!(
        "The test was of several machines, and warp (up to 1.6.1 at least) divides the work of such a test by {DISTRIBUTED_S:.0} s \
         more than it took: its rates are low by about {share:.0} %. Import its .csv.zst (--full), which has every request."
    );
    Some(Finding::new("F93", "warp_distributed", Level::Qualified, text).measured(share, 0.0))
}

/// Seconds by which a distributed test is taken for longer than it was.
const DISTRIBUTED_S: f64 = 4.0;

/// Versions whose objects are alike: whatever stores or caches by content had little to do.
fn same_data(version: &str) -> Option<Finding> {
    let mut parts = version.trim_start_matches('v').split('.').map_while(|p| p.parse::<u32>().ok());
    let version_of = (parts.next()?, parts.next()?, parts.next()?);
    if !((1, 0, 8)..=(1, 4, 0)).contains(&version_of) {
        return None;
    }
    let text = format!(
        "warp {} wrote the same content to all objects of a thread: storage that compresses over objects, deduplicates, or caches by \
         content had less to do than it seems. Use warp 1.5 or later.",
        word(version)
    );
    Some(Finding::new("F94", "warp_same_data", Level::Qualified, text))
}

fn add(out: &mut ImportedRun, op: &str, a: &Aggregate) {
    let seconds = a.throughput.measure_duration_millis / 1000.0;
    if seconds <= 0.0 {
        return;
    }
    let all = &a.requests_by_client.0;
    let name = word(op).to_lowercase();
    let size = all.iter().map(|r| r.obj_size).max().unwrap_or(0);
    let mut w = line(&name, &name, size, a.concurrency, seconds);
    w.ops_per_s = point(a.throughput.objects / seconds);
    w.bytes_per_s = point(a.throughput.bytes / seconds).filter(|e| e.value > 0.0);
    w.attempts_per_s = a.throughput.ops / seconds;
    w.outcomes.insert("ok".into(), a.total_requests.saturating_sub(a.total_errors));
    if a.total_errors > 0 {
        w.outcomes.insert("protocol".into(), a.total_errors);
    }
    times(&mut w, all);
    w.notes.push("rates are warp's: of the time in which all of its threads were at work".into());
    findings(out, &w, a);
    out.lines.push(w);
}

/// Times of several segments or clients: the mean is weighted; percentiles of one only can be told.
fn times(w: &mut WorkloadSummary, all: &[Requests]) {
    let requests = all.iter().map(|r| r.requests).fold(0, u64::saturating_add);
    let mean = all.iter().map(|r| r.dur_avg_millis * r.requests as f64).sum::<f64>() / requests.max(1) as f64;
    let least = all.iter().map(|r| r.fastest_millis).fold(f64::INFINITY, f64::min);
    let most = all.iter().map(|r| r.slowest_millis).fold(0.0, f64::max);
    let single = match all {
        [one] => Some(one),
        _ => None,
    };
    let at = |q: f64| {
        let one = single?;
        let known = [(0.5, one.dur_median_millis), (0.9, one.dur_90_millis), (0.99, one.dur_99_millis)];
        let printed = known.into_iter().find(|(share, v)| *share == q && *v > 0.0).map(|(_, v)| v);
        let of_table = || one.dur_percentiles_millis.as_ref()?.get((q * 100.0).round() as usize).copied();
        printed.or_else(|| of_table().filter(|_| q <= 0.99)).map(|ms| ms * 1e6)
    };
    w.latency_ns.response = latency(requests, mean * 1e6, (least * 1e6, most * 1e6), at);
    w.latency_ns.service.clone_from(&w.latency_ns.response);
    if single.is_none() && requests > 0 {
        w.notes.push("no percentiles: those of several clients cannot be averaged".into());
    }
}

fn findings(out: &mut ImportedRun, w: &WorkloadSummary, a: &Aggregate) {
    // Rates of hosts are of the whole test, and that of all of its middle: only what was counted can be added up.
    let hosts: Vec<f64> = a.throughput_by_host.values().map(|t| t.ops).filter(|n| *n > 0.0).collect();
    let all = point(a.total_requests as f64);
    out.findings.extend(checks::sum("hosts", "requests", &hosts, all, &w.label()));
    if a.total_errors > 0 {
        let share = a.total_errors as f64 / a.total_requests.max(1) as f64;
        let said = a.first_errors.as_ref().and_then(|e| e.first()).map(|e| format!(" ({})", word(e)));
        let text = format!(
            "{} of {} requests failed{}, and warp counts the time of them, and their bytes, in its rates.",
            a.total_errors,
            a.total_requests,
            said.unwrap_or_default()
        );
        let level = if share > 0.001 { Level::Invalid } else { Level::Qualified };
        out.findings
            .push(Finding::new("V01", "imported_error", level, text).measured(share, 0.001).on(w.label()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str, version: &str) -> ImportedRun {
        let text = format!(
            r#"{{"v": 2, "commandline": "{command}", "final": true, "warp_version": "{version}", "total": {{}}, "by_op_type": {{"GET": {{
            "total_requests": 1000, "total_errors": 0, "concurrency": 8, "throughput": {{"measure_duration_millis": 16000,
            "bytes": 1048576000, "objects": 1000, "ops": 1000}}, "requests_by_client": {{
            "a": [{{"single_sized_requests": {{"requests": 900, "obj_size": 1048576, "dur_avg_millis": 10, "dur_median_millis": 9,
              "dur_90_millis": 20, "dur_99_millis": 30, "fastest_millis": 1, "slowest_millis": 40}}}}],
            "b": [{{"single_sized_requests": {{"requests": 100, "obj_size": 1048576, "dur_avg_millis": 110, "dur_median_millis": 99,
              "dur_90_millis": 200, "dur_99_millis": 300, "fastest_millis": 2, "slowest_millis": 400}}}}]}}}}}}}}"#
        );
        read(text.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn means_are_weighted_and_percentiles_of_clients_are_not_averaged() {
        let run = of("warp get", "1.6.1");
        let w = &run.lines[0];
        assert_eq!((w.ops_per_s.unwrap().value, w.size_bytes), (62.5, 1 << 20));
        let l = w.latency_ns.response.as_ref().unwrap();
        assert_eq!((l.mean, l.p50, l.min, l.max), (20e6, None, 1_000_000, 400_000_000));
        assert!(run.findings.is_empty(), "{:?}", run.findings);
    }

    #[test]
    fn counts_that_no_test_comes_to_are_refused_and_do_not_wrap() {
        let segment = format!(
            r#"{{"single_sized_requests": {{"requests": {}, "obj_size": 1, "dur_avg_millis": 10, "fastest_millis": 1, "slowest_millis": 40}}}}"#,
            u64::MAX
        );
        let of = |total: u64| {
            format!(
                r#"{{"v": 2, "commandline": "warp get", "final": true, "warp_version": "1.6.1", "total": {{}}, "by_op_type": {{"GET": {{
                "total_requests": {total}, "total_errors": 7, "concurrency": 8, "throughput": {{"measure_duration_millis": 16000,
                "bytes": 1000, "objects": 1000, "ops": 1000}}, "requests_by_client": {{"a": [{segment}], "b": [{segment}]}}}}}}}}"#
            )
        };
        let run = read(of(1000).as_bytes()).unwrap().remove(0);
        assert_eq!(run.lines[0].latency_ns.response.as_ref().unwrap().count, u64::MAX);
        for total in [1000, u64::MAX] {
            let e = crate::Source::open(of(total).as_bytes()).unwrap().lines().unwrap_err();
            assert!(e.problem.contains("more than any test"), "{e}");
        }
    }

    #[test]
    fn what_is_known_of_a_version_is_told() {
        let run = of("warp get --warp-client=a{1...2}", "v1.3.1");
        let codes: Vec<&str> = run.findings.iter().map(|f| f.code.as_str()).collect();
        assert_eq!(codes, ["F93", "F94"]);
        assert_eq!(run.findings[0].measured, Some(25.0));
        assert!(same_data("1.5.0").is_none() && same_data("(dev)").is_none());
    }
}
