//! iperf3's `-J`: bits become bytes, and the second-by-second record gives an interval.

use std::io::Read;

use plimsoll_model::finding::Level;
use plimsoll_model::{Estimate, Finding};
use plimsoll_stats::rate;
use serde::Deserialize;

use crate::checks;
use crate::document::{JsonFile, few};
use crate::error::ImportError;
use crate::line::{line, point, word};
use crate::source::ImportedRun;

/// Its streams have had threads of their own since.
const THREADS_SINCE: u32 = 16;
/// More of what was sent did not arrive than the end of a test explains. (A choice.)
const LOST: f64 = 0.01;

#[derive(Debug, Deserialize)]
struct Document {
    start: Start,
    #[serde(default, deserialize_with = "few")]
    intervals: Vec<Second>,
    #[serde(default)]
    end: End,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Start {
    version: String,
    timestamp: Timestamp,
    test_start: TestStart,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Timestamp {
    timesecs: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TestStart {
    protocol: String,
    num_streams: u32,
    blksize: u64,
    omit: f64,
    reverse: u32,
    bidir: u32,
    target_bitrate: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Second {
    sum: Sum,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct End {
    #[serde(deserialize_with = "few")]
    streams: Vec<Stream>,
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    cpu_utilization_percent: Cpu,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stream {
    receiver: Option<Sum>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct Sum {
    seconds: f64,
    bytes: f64,
    bits_per_second: f64,
    retransmits: Option<u64>,
    lost_packets: Option<u64>,
    packets: Option<u64>,
    omitted: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cpu {
    host_total: f64,
    remote_total: f64,
}

/// One run: 3.16 and 3.17 printed the same document twice.
pub(crate) fn read(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    let mut all: Vec<Document> = JsonFile::read(reader)?.all()?;
    all.dedup_by(|b, a| {
        let same = |d: &Document| (d.start.timestamp.timesecs, d.end.streams.len(), d.intervals.len());
        same(a) == same(b)
    });
    all.iter().map(run).collect()
}

fn run(d: &Document) -> Result<ImportedRun, ImportError> {
    let version = d.start.version.strip_prefix("iperf ").unwrap_or(&d.start.version);
    let minor: Option<u32> = version
        .strip_prefix("3.")
        .map(|m| m.chars().take_while(char::is_ascii_digit).collect::<String>())
        .and_then(|m| m.parse().ok());
    let Some(minor) = minor else {
        return Err(ImportError::version(&format!("iperf '{}'", word(version)), "those of iperf 3"));
    };
    let received = d.end.sum_received.as_ref().filter(|s| s.bytes > 0.0);
    let sent = d.end.sum_sent.as_ref().or(d.end.sum.as_ref()).filter(|s| s.bytes > 0.0);
    let Some(arrived) = received.or(sent) else {
        let why = d
            .error
            .as_deref()
            .map_or_else(|| "it has no result".into(), |e| format!("iperf3 failed: {}", word(e)));
        return Err(ImportError::new(why, "Repeat the test: nothing was measured in this one."));
    };
    let t = &d.start.test_start;
    let op = if t.reverse > 0 { "receive" } else { "send" };
    let protocol = if t.protocol.is_empty() { "tcp".into() } else { word(&t.protocol).to_lowercase() };
    let mut w = line(&protocol, op, 0, t.num_streams.max(1), arrived.seconds);
    w.warmup_s = t.omit;
    w.bytes_per_s = interval(d, arrived);
    w.notes.push(format!("payload, in pieces of {}", plimsoll_model::units::Size(t.blksize)));
    if received.is_none() {
        w.notes.push("as sent: what arrived is not in the file".into());
    }
    if t.target_bitrate > 0 {
        w.notes.push(format!("paced: at most {} bit/s were asked for, of each stream", t.target_bitrate));
    }
    let mut out = ImportedRun {
        tool_version: word(version),
        form: "json".into(),
        title: format!("iperf3: {protocol}, {} streams", t.num_streams.max(1)),
        started_at: jiff::Timestamp::from_second(d.start.timestamp.timesecs)
            .ok()
            .filter(|_| d.start.timestamp.timesecs > 0)
            .map(|t| t.to_string())
            .unwrap_or_default(),
        ..ImportedRun::default()
    };
    facts(&mut out, d, sent);
    out.findings.extend(findings(d, minor, sent, received, &w.label()));
    out.lines.push(w);
    Ok(out)
}

fn facts(out: &mut ImportedRun, d: &Document, sent: Option<&Sum>) {
    let mut fact = |name: &str, value: String| drop(out.facts.insert(name.into(), value));
    if let Some(n) = sent.and_then(|s| s.retransmits) {
        fact("retransmits", n.to_string());
    }
    let cpu = &d.end.cpu_utilization_percent;
    if cpu.host_total > 0.0 {
        fact("CPU of the client", format!("{:.1} % of a core", cpu.host_total));
        fact("CPU of the server", format!("{:.1} % of a core", cpu.remote_total));
    }
    if let Some((lost, all)) = d.end.sum.as_ref().and_then(|s| Some((s.lost_packets?, s.packets?))) {
        fact("lost packets", format!("{lost} of {all}"));
    }
}

/// The rate with the interval of its seconds; a point where there are too few of them.
fn interval(d: &Document, arrived: &Sum) -> Option<Estimate> {
    let value = arrived.bits_per_second / 8.0;
    let seconds: Vec<&Sum> =
        d.intervals.iter().map(|i| &i.sum).filter(|s| !s.omitted && s.seconds > 0.0).collect();
    let Some(step) = seconds.first().map(|s| s.seconds) else { return point(value) };
    // The last one may be a stump.
    let even = |s: &&&Sum| (s.seconds / step - 1.0).abs() < 0.1;
    let counts: Vec<f64> = seconds.iter().filter(even).map(|s| s.bytes / s.seconds * step).collect();
    let estimate = rate::estimate(&counts, step);
    let Some(e) = estimate.known() else { return point(value) };
    // The seconds are the client's, and the value is of where the payload arrived.
    let moved = |x: f64| (value + x - e.value).max(0.0);
    Some(Estimate { value, low: moved(e.low), high: moved(e.high), n_eff: e.n_eff })
}

fn findings(d: &Document, minor: u32, sent: Option<&Sum>, received: Option<&Sum>, on: &str) -> Vec<Finding> {
    let mut out = Vec::new();
    if let Some(e) = &d.error {
        let text =
            format!("iperf3 ended with an error: {}. Its figures are of what came before it.", word(e));
        out.push(Finding::new("V01", "imported_error", Level::Invalid, text).on(on));
    }
    let streams: Vec<f64> =
        d.end.streams.iter().filter_map(|s| s.receiver.as_ref()).map(|s| s.bits_per_second).collect();
    out.extend(checks::sum(
        "streams",
        "bit/s",
        &streams,
        received.and_then(|r| point(r.bits_per_second)),
        on,
    ));
    let cpu = d.end.cpu_utilization_percent.host_total.max(d.end.cpu_utilization_percent.remote_total);
    if minor < THREADS_SINCE && cpu >= 90.0 {
        let text = format!(
            "iperf 3.{minor} has one thread for all of its streams, and it used {cpu:.0} % of a core: the rate may be that \
             core's. Use iperf 3.{THREADS_SINCE} or later, or plimsoll net."
        );
        out.push(
            Finding::new("F85", "imported_one_thread", Level::Qualified, text).measured(cpu, 90.0).on(on),
        );
    }
    if let (Some(s), Some(r)) = (sent, received)
        && s.bytes > 0.0
        && d.start.test_start.bidir == 0
        && (s.bytes - r.bytes) / s.bytes > LOST
    {
        let share = 100.0 * (s.bytes - r.bytes) / s.bytes;
        let text = format!(
            "{share:.1} % of what was sent did not arrive within the test; the figure is of what arrived."
        );
        out.push(
            Finding::new("F86", "imported_not_arrived", Level::Info, text)
                .measured(share, 100.0 * LOST)
                .on(on),
        );
    }
    if d.start.test_start.bidir > 0 {
        let text = "The test was in both directions at once; the figure is of one of them.";
        out.push(Finding::new("F87", "imported_one_direction", Level::Qualified, text).on(on));
    }
    out
}
