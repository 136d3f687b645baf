//! Resources over time, from cumulative counters to shares and rates.

use std::collections::BTreeMap;

use plimsoll_model::Sample;
use plimsoll_model::observed::{BOX_LINK, ServerQuantity as Q};
use plimsoll_model::sample::Role;
use plimsoll_model::summary::servers::{ResourceUse, ServersSummary, ceiling_words};
use plimsoll_store::{RunData, ServerStep, SubjectSteps, server_steps};
use serde::{Deserialize, Serialize};

use crate::number::round4;

/// One resource of one host over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostResource {
    pub host: String,
    pub role: Role,
    /// `tool`, `cpu`, `memory`, `network` or `disk`.
    pub group: String,
    pub name: String,
    /// `%` (of 100), `cores`, `B/s`, `B`, `ops/s` or empty.
    pub unit: String,
    /// Above this it may be the bottleneck.
    pub threshold: Option<f64>,
    /// Seconds since the run's start, ascending.
    pub t: Vec<f64>,
    /// Null: nothing is known here (between stages).
    pub v: Vec<Option<f64>>,
}

/// Every resource that was seen doing something.
pub fn of(data: &RunData) -> Vec<HostResource> {
    let mut out = tool(data);
    for h in &data.hosts {
        out.extend(host(&h.samples));
    }
    out.extend(observed(data));
    // A strip of nothing but zeros tells nobody anything.
    out.retain(|r| r.v.iter().flatten().any(|v| *v > 0.0));
    out
}

/// The tool itself: how busy its workers were, and how many ops were in flight.
fn tool(data: &RunData) -> Vec<HostResource> {
    let name = data.environment.machine.host.clone();
    let make = |what: &str, unit: &str, threshold| HostResource {
        host: name.clone(),
        role: Role::Client,
        group: "tool".into(),
        name: what.into(),
        unit: unit.into(),
        threshold,
        t: Vec::new(),
        v: Vec::new(),
    };
    let mut busy = make("Workers busy", "%", Some(85.0));
    let mut flight = make("Ops in flight", "", None);
    for stage in data.stages.iter().filter(|s| s.void.is_none()) {
        for (i, c) in stage.client.iter().enumerate() {
            let Some(share) = c.busy_fraction() else { continue };
            let t = round4((stage.first_point as f64 + i as f64 + 0.5) * data.step_ns as f64 / 1e9);
            if busy.t.last().is_some_and(|last| *last >= t) {
                // The last step of the stage before holds the beginning of this one.
                continue;
            }
            busy.t.push(t);
            busy.v.push(Some(round4(100.0 * share)));
            flight.t.push(t);
            // The first and last step of a stage are rarely whole: divide by the time that the workers were there.
            let there = c.alive_ns as f64 / f64::from(stage.workers.max(1));
            flight.v.push(Some(round4(c.in_flight_ns as f64 / there)));
        }
        if let Some(last) = busy.t.last().copied() {
            for r in [&mut busy, &mut flight] {
                r.t.push(last + data.step_ns as f64 / 4e9);
                r.v.push(None);
            }
        }
    }
    vec![busy, flight]
}

/// A resource of a server in percent of its ceiling, over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerCourse {
    /// As in the summary's table.
    pub resource: String,
    pub host: String,
    pub device: String,
    /// In words: `25Gbit/s`; empty: of its time.
    pub ceiling: String,
    /// Seconds since the run's start, ascending: the ends of steps.
    pub t: Vec<f64>,
    /// Of the ceiling, between the reading before and this one. Null: nothing is known of it.
    pub percent: Vec<Option<f64>>,
}

/// Of each resource with a ceiling in a measured window how full it was over the whole run, the fullest first.
pub fn courses(data: &RunData, servers: &ServersSummary) -> Vec<ServerCourse> {
    let subjects = server_steps(&data.observed, 0, u64::MAX);
    let mut out: Vec<ServerCourse> = Vec::new();
    for u in servers.windows.iter().flat_map(|w| &w.resources) {
        let same = |c: &ServerCourse| (&c.resource, &c.host, &c.device) == (&u.resource, &u.host, &u.device);
        let Some(ceiling) = u.ceiling.filter(|c| *c > 0.0) else { continue };
        if out.len() == MOST_OBSERVED || out.iter().any(same) {
            continue;
        }
        let of_daemon = |s: &SubjectSteps<'_>| s.daemon == u.device && !u.device.is_empty();
        let of_host = |s: &SubjectSteps<'_>| s.daemon.is_empty();
        let Some(subject) = subjects
            .iter()
            .find(|s| s.host == u.host && of_daemon(s))
            .or_else(|| subjects.iter().find(|s| s.host == u.host && of_host(s)))
        else {
            continue;
        };
        let steps = subject.steps.iter().filter(|x| x.seconds() > 0.0);
        let (t, percent) = steps
            .map(|x| {
                let share = used(u, x, !subject.daemon.is_empty()).map(|v| round4(100.0 * v / ceiling));
                (round4(x.to_ns as f64 / 1e9), share.filter(|v| v.is_finite()))
            })
            .unzip();
        out.push(ServerCourse {
            resource: u.resource.clone(),
            host: u.host.clone(),
            device: u.device.clone(),
            ceiling: ceiling_words(&u.resource, &u.unit, ceiling).unwrap_or_default(),
            t,
            percent,
        });
    }
    out
}

/// What was used of it in a step, in its unit.
fn used(u: &ResourceUse, x: &ServerStep<'_>, is_daemon: bool) -> Option<f64> {
    let of = |q: Q| x.deltas(q).find(|(label, _)| *label == u.device).map(|(_, v)| v);
    let per_s = |v: f64| v / x.seconds();
    match (u.resource.as_str(), u.unit.as_str(), is_daemon) {
        ("cpu", _, true) => x.delta(Q::ProcessCpuS, "").map(per_s),
        ("cpu", ..) => {
            let sum = |of: &[Q]| of.iter().filter_map(|q| x.total(*q)).sum::<f64>();
            let busy = sum(&[Q::CpuUserS, Q::CpuSystemS, Q::CpuIrqS, Q::CpuStealS]);
            let all = busy + sum(&[Q::CpuIdleS, Q::CpuIowaitS]);
            (all > 0.0).then(|| busy / all * x.labels(Q::CpuIdleS).count() as f64)
        }
        ("network in", _, true) => {
            Some(per_s(x.total(Q::InternodeReceivedBytes)? + x.total(Q::ReceivedBytes)?))
        }
        ("network out", _, true) => Some(per_s(x.total(Q::InternodeSentBytes)? + x.total(Q::SentBytes)?)),
        ("network in", ..) => of(Q::NicRxBytes).map(per_s),
        ("network out", ..) => of(Q::NicTxBytes).map(per_s),
        ("drive", "busy", _) => of(Q::DiskBusyS).map(per_s).map(|v| v.min(1.0)),
        ("drive", ..) => Some(per_s(of(Q::DiskReadBytes)? + of(Q::DiskWriteBytes)?)),
        _ => None,
    }
}

/// What sources said of servers and their daemons, between each two readings.
fn observed(data: &RunData) -> Vec<HostResource> {
    let mut all: BTreeMap<(String, &str, String, &str, u64), HostResource> = BTreeMap::new();
    let subjects = server_steps(&data.observed, 0, u64::MAX);
    for s in subjects.iter().filter(|s| !s.host.is_empty()) {
        for step in s.steps.iter().filter(|x| x.seconds() > 0.0) {
            let t = round4(step.to_ns as f64 / 1e9);
            for (group, name, unit, threshold, value) in of_step(s.daemon, step) {
                let key = (s.host.to_owned(), group, name.clone(), unit, threshold.unwrap_or(0.0) as u64);
                let r = all.entry(key).or_insert_with(|| HostResource {
                    host: s.host.to_owned(),
                    role: Role::Server,
                    group: group.into(),
                    name,
                    unit: unit.into(),
                    threshold,
                    t: Vec::new(),
                    v: Vec::new(),
                });
                r.t.push(t);
                r.v.push(Some(round4(value)).filter(|v| v.is_finite()));
            }
        }
    }
    all.into_values().take(MOST_OBSERVED).collect()
}

/// Strips of servers on a page: more make it heavy, and nobody reads them. The summary has the figures of all.
const MOST_OBSERVED: usize = 400;

/// Group, name, unit, threshold and value.
type ServerPoint = (&'static str, String, &'static str, Option<f64>, f64);

fn of_step(daemon: &str, step: &ServerStep<'_>) -> Vec<ServerPoint> {
    let per_s = |v: f64| v / step.seconds();
    let mut out: Vec<ServerPoint> = Vec::new();
    if !daemon.is_empty() {
        let cores = step.delta(Q::ProcessCpuS, "").map(per_s);
        out.extend(cores.map(|v| ("cpu", format!("{daemon} CPU"), "cores", None, v)));
        let rss = step.gauge(Q::ProcessRssBytes, "");
        out.extend(rss.map(|v| ("memory", format!("{daemon} memory"), "B", None, v)));
        let requests = step.total(Q::Requests).map(per_s);
        out.extend(requests.map(|v| ("network", format!("{daemon} requests"), "ops/s", None, v)));
        return out;
    }
    let sum = |of: &[Q]| of.iter().filter_map(|q| step.total(*q)).sum::<f64>();
    let used = sum(&[Q::CpuUserS, Q::CpuSystemS, Q::CpuIrqS, Q::CpuStealS]);
    let all = used + sum(&[Q::CpuIdleS, Q::CpuIowaitS]);
    if all > 0.0 {
        out.push(("cpu", "CPU".into(), "%", Some(85.0), 100.0 * used / all));
    }
    for (quantity, what) in [(Q::NicRxBytes, "received"), (Q::NicTxBytes, "sent")] {
        let nics = step.deltas(quantity);
        out.extend(nics.map(|(nic, v)| ("network", format!("{nic} {what}"), "B/s", None, per_s(v))));
    }
    let busy = step.deltas(Q::DiskBusyS);
    out.extend(
        busy.map(|(d, v)| ("disk", format!("{d} busy"), "%", Some(95.0), (100.0 * per_s(v)).min(100.0))),
    );
    for (quantity, what) in [(Q::DiskReadBytes, "read"), (Q::DiskWriteBytes, "written")] {
        let disks = step.deltas(quantity);
        out.extend(disks.map(|(d, v)| ("disk", format!("{d} {what}"), "B/s", None, per_s(v))));
    }
    out
}

type Pick = Box<dyn Fn(&Sample, &Sample, f64) -> Option<f64>>;

struct Column {
    group: &'static str,
    name: String,
    unit: &'static str,
    threshold: Option<f64>,
    pick: Pick,
}

fn host(samples: &[Sample]) -> Vec<HostResource> {
    let Some(last) = samples.last() else { return Vec::new() };
    columns(last)
        .into_iter()
        .map(|c| {
            let (mut t, mut v) = (Vec::new(), Vec::new());
            for pair in samples.windows(2) {
                let (a, b) = (&pair[0], &pair[1]);
                let dt = b.at_ns.saturating_sub(a.at_ns) as f64 / 1e9;
                if dt <= 0.0 {
                    continue;
                }
                if let Some(x) = (c.pick)(a, b, dt).filter(|x| x.is_finite()) {
                    t.push(round4(b.at_ns as f64 / 1e9));
                    v.push(Some(round4(x.max(0.0))));
                }
            }
            HostResource {
                host: last.host.clone(),
                role: last.role,
                group: c.group.into(),
                name: c.name,
                unit: c.unit.into(),
                threshold: c.threshold,
                t,
                v,
            }
        })
        .collect()
}

fn delta(a: u64, b: u64) -> f64 {
    b.saturating_sub(a) as f64
}

/// Share of CPU time over all CPUs, percent, that `part` picks out of [user, system, iowait, irq, steal, idle].
fn cpu_share(a: &Sample, b: &Sample, part: impl Fn(&[f64; 6]) -> f64) -> Option<f64> {
    let mut sum = [0.0; 6];
    for (x, y) in a.cpus.iter().zip(&b.cpus) {
        for i in 0..6 {
            sum[i] += delta(x[i], y[i]);
        }
    }
    let total: f64 = sum.iter().sum();
    (total > 0.0).then(|| 100.0 * part(&sum) / total)
}

fn busiest_cpu(a: &Sample, b: &Sample) -> Option<f64> {
    let busy = |x: &[u64; 6], y: &[u64; 6]| {
        let d: Vec<f64> = x.iter().zip(y).map(|(x, y)| delta(*x, *y)).collect();
        let total: f64 = d.iter().sum();
        if total > 0.0 { 100.0 * (total - d[5] - d[2]) / total } else { 0.0 }
    };
    a.cpus.iter().zip(&b.cpus).map(|(x, y)| busy(x, y)).reduce(f64::max)
}

fn columns(last: &Sample) -> Vec<Column> {
    let mut out = Vec::new();
    let mut add = |group, name: &str, unit, threshold, pick: Pick| {
        out.push(Column { group, name: name.into(), unit, threshold, pick });
    };
    add("cpu", "CPU", "%", Some(85.0), Box::new(|a, b, _| cpu_share(a, b, |s| s[0] + s[1] + s[3] + s[4])));
    add("cpu", "Busiest core", "%", Some(90.0), Box::new(|a, b, _| busiest_cpu(a, b)));
    add("cpu", "Waiting for I/O", "%", None, Box::new(|a, b, _| cpu_share(a, b, |s| s[2])));
    add("cpu", "Stolen", "%", Some(5.0), Box::new(|a, b, _| cpu_share(a, b, |s| s[4])));
    let process: Pick = Box::new(|a, b, dt| Some(delta(a.process_cpu_ns, b.process_cpu_ns) / 1e9 / dt));
    add("cpu", "Plimsoll's CPU", "cores", None, process);
    add("memory", "Plimsoll's memory", "B", None, Box::new(|_, b, _| Some(b.process_rss_bytes as f64)));
    for (i, what) in ["CPU", "I/O", "memory"].iter().enumerate() {
        let pick: Pick = Box::new(move |a, b, dt| Some(delta(a.psi_ns[i], b.psi_ns[i]) / 1e7 / dt));
        add("cpu", &format!("Stalled on {what}"), "%", None, pick);
    }
    // The links of a cluster in a box are its nodes'.
    for nic in last.nics.keys().filter(|n| !n.starts_with(BOX_LINK)) {
        for (i, what) in ["received", "sent"].iter().enumerate() {
            let n = nic.clone();
            let pick: Pick =
                Box::new(move |a, b, dt| Some(delta(a.nics.get(&n)?[i], b.nics.get(&n)?[i]) / dt));
            add("network", &format!("{nic} {what}"), "B/s", None, pick);
        }
    }
    let retransmits: Pick = Box::new(|a, b, _| {
        let sent = delta(a.tcp_out, b.tcp_out);
        (sent > 0.0).then(|| 100.0 * delta(a.tcp_retransmits, b.tcp_retransmits) / sent)
    });
    add("network", "TCP retransmitted", "%", Some(0.1), retransmits);
    for disk in last.disks.keys() {
        add("disk", &format!("{disk} busy"), "%", Some(95.0), disk_rate(disk, |d| d.busy_ns, 1e-7));
        add("disk", &format!("{disk} queue"), "", None, disk_rate(disk, |d| d.queue_ns, 1e-9));
        add("disk", &format!("{disk} read"), "B/s", None, disk_rate(disk, |d| d.read_bytes, 1.0));
        add("disk", &format!("{disk} written"), "B/s", None, disk_rate(disk, |d| d.write_bytes, 1.0));
        add("disk", &format!("{disk} ops"), "ops/s", None, disk_rate(disk, |d| d.reads + d.writes, 1.0));
    }
    out
}

fn disk_rate(disk: &str, pick: fn(&plimsoll_model::sample::DiskCounters) -> u64, factor: f64) -> Pick {
    let name = disk.to_owned();
    Box::new(move |a, b, dt| Some(factor * delta(pick(a.disks.get(&name)?), pick(b.disks.get(&name)?)) / dt))
}
