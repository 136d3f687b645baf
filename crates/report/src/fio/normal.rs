//! fio's normal output: the text that people know.

use std::fmt::Write;

use super::collect::{Disk, FioReport, Job};
use super::direction::{Direction, Latency, Spread};
use super::json::{LatencyShares, batch_level, depth_level, percentiles};
use super::judged::Judged;
use super::number::{binary_bytes, decimal_bytes, short};

/// The whole report.
pub fn normal(report: &FioReport) -> String {
    let mut out = String::new();
    for job in &report.jobs {
        header(&mut out, job);
    }
    let _ = writeln!(out, "{}\n", report.version);
    for j in &report.jobs {
        job(&mut out, j, &report.time);
    }
    let mut groups: Vec<u32> = report.jobs.iter().map(|j| j.group).collect();
    groups.dedup();
    for g in groups {
        group(&mut out, g, &report.jobs);
    }
    if !report.disks.is_empty() {
        out.push_str("\nDisk stats (read/write):\n");
        report.disks.iter().for_each(|d| disk(&mut out, d));
    }
    // Behind all that fio prints: who reads its lines by their form reads none of these.
    let said = report.judged.iter().flat_map(Judged::lines);
    for (i, line) in said.enumerate() {
        let head = if i == 0 { "\nplimsoll:\n" } else { "" };
        let _ = writeln!(out, "{head}  {line}");
    }
    out
}

fn header(out: &mut String, j: &Job) {
    let d = &j.description;
    let range = |(a, b): (u64, u64)| format!("{}-{}", binary_bytes(a as f64), binary_bytes(b as f64));
    let _ = writeln!(
        out,
        "{}: (g={}): rw={}, bs=(R) {}, (W) {}, ioengine={}, iodepth={}",
        j.name,
        j.group,
        d.rw,
        range(d.read_sizes),
        range(d.write_sizes),
        d.engine,
        j.max_depth
    );
    if j.jobs > 1 {
        out.push_str("...\n");
    }
}

fn job(out: &mut String, j: &Job, time: &str) {
    let _ =
        writeln!(out, "{}: (groupid={}, jobs={}): err={:2}: pid=0: {time}", j.name, j.group, j.jobs, j.error);
    direction(out, "read", &j.read, j);
    direction(out, "write", &j.write, j);
    if j.sync.n > 0 {
        out.push_str("  sync:\n");
        latency(out, "    ", "sync", &j.sync);
    }
    let shares = LatencyShares::of(j);
    const UNDER: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
    const MS: [&str; 12] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
    classes(out, "nsec", &UNDER, &shares.ns);
    classes(out, "usec", &UNDER, &shares.us);
    classes(out, "msec", &MS, &shares.ms);
    let c = &j.cpu;
    let _ = writeln!(
        out,
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}",
        c.user_percent, c.system_percent, c.context_switches, c.major_faults, c.minor_faults
    );
    levels(out, "  IO depths    ", &["1", "2", "4", "8", "16", "32", ">=64"], depth_level(j));
    let batch = ["0", "4", "8", "16", "32", "64", ">=64"];
    levels(out, "     submit    ", &batch, batch_level(j));
    levels(out, "     complete  ", &batch, batch_level(j));
    let _ = writeln!(
        out,
        "     issued rwts: total={},{},0,{} short={},{},0,0 dropped=0,0,0,0",
        j.read.total_ios, j.write.total_ios, j.sync.n, j.read.short_ios, j.write.short_ios
    );
    let _ = writeln!(out, "     latency   : target=0, window=0, percentile=100.00%, depth={}", j.max_depth);
    for note in &j.notes {
        let _ = writeln!(out, "     note      : {note}");
    }
}

fn direction(out: &mut String, name: &str, d: &Direction, j: &Job) {
    if d.total_ios == 0 {
        return;
    }
    let bw = d.bytes_per_s();
    let _ = writeln!(
        out,
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec)",
        short(d.iops(), 4, false, ""),
        binary_bytes(bw),
        decimal_bytes(bw),
        binary_bytes(d.io_bytes as f64),
        d.runtime_ms
    );
    for (label, l) in [("slat", &d.slat), ("clat", &d.clat), (" lat", &d.lat)] {
        if l.n > 0 {
            latency(out, "    ", label, l);
        }
    }
    percentile_table(out, &d.clat, &percentiles(j));
    let (rates, iops) = (d.bandwidth(), Spread::of(&d.op_rates));
    if rates.samples > 0 {
        bandwidth(out, &rates, bw / 1024.0);
        let _ = writeln!(
            out,
            "   iops        : min={:>5.0}, max={:>5.0}, avg={:.2}, stdev={:.2}, samples={}",
            iops.min, iops.max, iops.mean, iops.stddev, iops.samples
        );
    }
}

/// The unit in which a distribution is shown, by fio's rule: coarser as soon as nothing is lost.
fn unit(min: f64, max: f64, spread: f64) -> (f64, &'static str) {
    let coarser = |f: f64| min / f > 2000.0 && max / f > 99_999.0 && spread / f > 1000.0;
    if !coarser(1.0) {
        (1.0, "nsec")
    } else if !coarser(1000.0) {
        (1e3, "usec")
    } else {
        (1e6, "msec")
    }
}

fn latency(out: &mut String, indent: &str, label: &str, l: &Latency) {
    let (f, name) = unit(l.min as f64, l.max as f64, l.stddev);
    let at = |v: u64| short(v as f64 / f, 6, false, "");
    let _ = writeln!(
        out,
        "{indent}{label} ({name}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        at(l.min),
        at(l.max),
        l.mean / f,
        l.stddev / f
    );
}

fn percentile_table(out: &mut String, l: &Latency, list: &[f64]) {
    if l.n == 0 || list.is_empty() {
        return;
    }
    let values: Vec<u64> = list.iter().map(|p| l.percentile(*p)).collect();
    let (low, high) = (values.iter().min().copied().unwrap_or(0), values.iter().max().copied().unwrap_or(0));
    let (f, name) = if low > 2_000_000 && high > 99_999_000 {
        (1_000_000, "msec")
    } else if low > 2000 && high > 99_999 {
        (1000, "usec")
    } else {
        (1, "nsec")
    };
    let _ = writeln!(out, "    clat percentiles ({name}):");
    let rows = list.len().div_ceil(4);
    for (i, (percents, at)) in list.chunks(4).zip(values.chunks(4)).enumerate() {
        let cells: Vec<String> =
            percents.iter().zip(at).map(|(p, v)| format!("{p:5.2}th=[{:5}]", v.div_ceil(f))).collect();
        let end = if i + 1 == rows { "" } else { "," };
        let _ = writeln!(out, "     | {}{end}", cells.join(", "));
    }
}

fn bandwidth(out: &mut String, s: &Spread, aggregate_kib: f64) {
    let (f, name) = if s.min > 99_999.0 * 10.0 { (1024.0, "MiB") } else { (1.0, "KiB") };
    let share = if aggregate_kib > 0.0 { (100.0 * s.mean / aggregate_kib).min(100.0) } else { 0.0 };
    let _ = writeln!(
        out,
        "   bw (  {name}/s): min={:>5.0}, max={:>5.0}, per={share:.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
        s.min / f,
        s.max / f,
        s.mean / f,
        s.stddev / f,
        s.samples
    );
}

/// Classes that are not empty, five a line.
fn classes(out: &mut String, unit: &str, names: &[&str], shares: &[f64]) {
    let cells: Vec<String> =
        names.iter().zip(shares).filter(|(_, s)| **s > 0.0).map(|(n, s)| format!("{n}={s:.2}%")).collect();
    for line in cells.chunks(5) {
        let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
    }
}

fn levels(out: &mut String, label: &str, names: &[&str; 7], at: Option<usize>) {
    let cell = |(i, n): (usize, &&str)| format!("{n}={:.1}%", if at == Some(i) { 100.0 } else { 0.0 });
    let cells: Vec<String> = names.iter().enumerate().map(cell).collect();
    let _ = writeln!(out, "{label}: {}", cells.join(", "));
}

fn group(out: &mut String, number: u32, jobs: &[Job]) {
    let _ = writeln!(out, "\nRun status group {number} (all jobs):");
    type Pick = fn(&Job) -> &Direction;
    for (name, pick) in [("   READ", (|j| &j.read) as Pick), ("  WRITE", |j| &j.write)] {
        let parts: Vec<&Direction> =
            jobs.iter().filter(|j| j.group == number).map(pick).filter(|d| d.total_ios > 0).collect();
        if parts.is_empty() {
            continue;
        }
        let bytes: u64 = parts.iter().map(|d| d.io_bytes).sum();
        let times = || parts.iter().map(|d| d.runtime_ms);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        // Bytes over the common time, as fio has it: never a sum of rates.
        let total = bytes as f64 * 1000.0 / (last as f64).max(1.0);
        let rates = || parts.iter().map(|d| d.bytes_per_s());
        let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
        let _ = writeln!(
            out,
            "{name}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={first}-{last}msec",
            binary_bytes(total),
            decimal_bytes(total),
            binary_bytes(low),
            binary_bytes(high),
            decimal_bytes(low),
            decimal_bytes(high),
            binary_bytes(bytes as f64),
            decimal_bytes(bytes as f64),
        );
    }
}

fn disk(out: &mut String, d: &Disk) {
    let _ = writeln!(
        out,
        "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%",
        d.name,
        d.read_ios,
        d.write_ios,
        d.read_merges,
        d.write_merges,
        d.read_ticks_ms,
        d.write_ticks_ms,
        d.in_queue_ms,
        d.util_percent
    );
}
