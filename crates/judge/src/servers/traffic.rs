//! Where the clients' bytes went beside: to drives, between servers. Measured beside what redundancy makes of them by arithmetic.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::Cluster;
use plimsoll_model::cluster::traffic::DataSpread;
use plimsoll_model::cluster::{ClientPlace, NicTraffic};
use plimsoll_model::observed::{FASTEST_LINE, ServerQuantity as Q, is_drive, is_nic};
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::summary::servers::{ServersWindow, TrafficUse};
use plimsoll_store::{RunData, ServerStep, SubjectSteps};

use super::SeenWindow;

/// Fewer bytes of payload a second make no ratio that is worth a name.
const LEAST_PER_S: f64 = 1e6;
/// Machines that were started within this are one, where they say the same of their drives too. The exporter says whole seconds.
const SAME_BOOT_S: f64 = 1.5;

/// Servers whose own count of what they send each other is below this part of what their interfaces show count not all of it: MinIO's is without the
/// shards of large objects (measured: 0.1 % of them).
const ALL_COUNTED: f64 = 0.8;

/// What is asked of all nodes, to be of the cluster as a whole.
struct Whole<'a> {
    subjects: &'a [SubjectSteps<'a>],
    cluster: Option<&'a Cluster>,
    /// Bytes a second that go between servers at the least, by the arithmetic. `None`: the redundancy is not known.
    least_between: Option<f64>,
}

/// All parts that were seen of a window.
pub fn of_window(data: &RunData, w: &SeenWindow<'_>, out: &ServersWindow) -> Vec<TrafficUse> {
    let cluster = data.plan.options.cluster.as_deref();
    let spread = cluster.and_then(|c| c.spread(storage_class(data).as_deref()));
    parts(w.own(), cluster, spread, (out.clients_read_per_s, out.clients_wrote_per_s))
}

/// Of clients that read and write so many bytes a second.
pub fn parts(
    subjects: &[SubjectSteps<'_>],
    cluster: Option<&Cluster>,
    spread: Option<DataSpread>,
    (read, wrote): (f64, f64),
) -> Vec<TrafficUse> {
    let least = |s: DataSpread| s.put().between_least * wrote + s.get().between_least * read;
    let all = Whole { subjects, cluster, least_between: spread.map(least) };
    [written(&all, spread, wrote), read_back(&all, spread, read), between(&all, spread, read, wrote)]
        .into_iter()
        .flatten()
        .chain(clients(&all, read, wrote))
        .collect()
}

/// What uploads ask for.
pub fn storage_class(data: &RunData) -> Option<String> {
    data.plan.targets.values().find_map(|t| match t {
        TargetSpec::S3(s) => s
            .put_headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case("x-amz-storage-class"))
            .map(|(_, v)| v.clone()),
        _ => None,
    })
}

fn per_byte(per_s: f64, payload: f64) -> Option<f64> {
    (payload >= LEAST_PER_S).then(|| per_s / payload)
}

fn written(all: &Whole<'_>, spread: Option<DataSpread>, wrote: f64) -> Option<TrafficUse> {
    let (per_s, counted_by, whole) = all.drives(Q::DiskWriteBytes, Q::ProcessWriteBytes)?;
    (wrote > 0.0).then(|| TrafficUse {
        what: "written to drives".into(),
        per_s,
        per_byte: per_byte(per_s, wrote).filter(|_| whole),
        expected: spread.filter(|_| whole).map(|s| s.put().drives),
        expected_least: None,
        counted_by: counted_by.into(),
    })
}

fn read_back(all: &Whole<'_>, spread: Option<DataSpread>, read: f64) -> Option<TrafficUse> {
    let (per_s, counted_by, whole) = all.drives(Q::DiskReadBytes, Q::ProcessReadBytes)?;
    (read > 0.0).then(|| TrafficUse {
        what: "read from drives".into(),
        per_s,
        per_byte: per_byte(per_s, read).filter(|_| whole),
        expected: spread.filter(|_| whole).map(|s| s.get().drives),
        // From caches nothing is read.
        expected_least: whole.then_some(0.0),
        counted_by: counted_by.into(),
    })
}

fn between(all: &Whole<'_>, spread: Option<DataSpread>, read: f64, wrote: f64) -> Option<TrafficUse> {
    // A part of the nodes tells nothing of what goes between all of them.
    let (per_s, counted_by, whole) =
        all.between(read).filter(|(.., whole)| *whole || all.cluster.is_none())?;
    let moved = read + wrote;
    let of = |put: f64, get: f64| (put * wrote + get * read) / moved;
    let (put, get) = (spread.map(|s| s.put()), spread.map(|s| s.get()));
    (moved > 0.0).then(|| TrafficUse {
        what: "between servers".into(),
        per_s,
        per_byte: per_byte(per_s, moved).filter(|_| whole),
        expected: put.zip(get).map(|(p, g)| of(p.between, g.between)),
        expected_least: put.zip(get).map(|(p, g)| of(p.between_least, g.between_least)),
        counted_by: counted_by.into(),
    })
}

/// At the servers' interfaces, less what they say to each other.
fn clients(all: &Whole<'_>, read: f64, wrote: f64) -> Option<TrafficUse> {
    let (bytes_in, bytes_out) = (all.nics(Q::NicRxBytes, None)?, all.nics(Q::NicTxBytes, None)?);
    if all.cluster.is_some() && !all.has_all_hosts() {
        return None;
    }
    let apart = all.cluster.is_some_and(Cluster::is_east_west_apart);
    let (per_s, counted_by) = if apart {
        let of = |q| all.nics(q, Some(NicTraffic::Clients));
        (of(Q::NicRxBytes)? + of(Q::NicTxBytes)?, "interfaces of the clients' network")
    } else {
        let (sent, ..) = all.between(read)?;
        ((bytes_in + bytes_out - 2.0 * sent).max(0.0), "interfaces, less what is between servers")
    };
    let moved = read + wrote;
    (moved > 0.0).then(|| TrafficUse {
        what: "with clients".into(),
        per_s,
        per_byte: per_byte(per_s, moved).filter(|_| all.has_all_hosts()),
        expected: all.cluster.map(|c| if c.clients == ClientPlace::InServers { 0.0 } else { 1.0 }),
        expected_least: None,
        counted_by: counted_by.into(),
    })
}

impl Whole<'_> {
    fn hosts(&self) -> impl Iterator<Item = &SubjectSteps<'_>> {
        hosts(self.subjects)
    }

    /// Whether interfaces of all nodes were seen.
    fn has_all_hosts(&self) -> bool {
        let seen = self.hosts().filter(|s| self.of_host(s, Q::NicTxBytes, None).is_some()).count();
        self.cluster.is_some_and(|c| seen >= c.node_count())
    }

    /// Of a host's interfaces, or of those of one network; one that is described counts, whatever it is called.
    fn of_host(&self, s: &SubjectSteps<'_>, quantity: Q, network: Option<NicTraffic>) -> Option<f64> {
        let node = self.cluster.and_then(|c| c.node_of(s.host));
        let counts = |nic: &str| {
            let described = node.and_then(|n| n.nic(nic));
            match network {
                Some(wanted) => described.is_some_and(|n| n.network == wanted),
                None => described.is_some() || is_nic(nic),
            }
        };
        rate(s, |x| sum_of(x, quantity, &counts))
    }

    /// Of all drives: bytes a second, who counted, and whether that is of all nodes.
    fn drives(&self, quantity: Q, of_process: Q) -> Option<(f64, &'static str, bool)> {
        let machines = machines(self.subjects);
        let on_drives: Vec<f64> = machines.iter().filter_map(|s| of_machine(s, quantity)).collect();
        let nodes = self.cluster.map(Cluster::node_count);
        // Nodes that are not described are taken to be those that were observed.
        let whole = nodes.map_or(self.hosts().count() == machines.len(), |n| on_drives.len() == n);
        if !on_drives.is_empty() && whole {
            return Some((on_drives.iter().sum(), "drives", true));
        }
        let of_daemons: Vec<f64> =
            self.keeping().filter_map(|s| rate(s, |x| x.delta(of_process, ""))).collect();
        if !of_daemons.is_empty() && nodes.is_some_and(|n| of_daemons.len() >= n) {
            return Some((of_daemons.iter().sum(), "daemons", true));
        }
        (!on_drives.is_empty()).then(|| (on_drives.iter().sum(), "drives", false))
    }

    /// Daemons that keep data.
    fn keeping(&self) -> impl Iterator<Item = &SubjectSteps<'_>> {
        self.subjects.iter().filter(|s| s.daemon.starts_with("minio") || s.daemon.starts_with("osd"))
    }

    /// What servers sent each other, who counted, and whether that is of all nodes.
    fn between(&self, read: f64) -> Option<(f64, &'static str, bool)> {
        let nodes = self.cluster.map(Cluster::node_count);
        let by_nics = self.between_by_nics(read);
        let Some(sent) = self.daemons(Q::InternodeSentBytes) else { return by_nics };
        match by_nics.filter(|(.., whole)| *whole) {
            Some(more) if sent < ALL_COUNTED * more.0 => return Some(more),
            Some(_) => {}
            // No interface tells whether its count has all of it: then the arithmetic has to.
            None if self.counts_small_ones_only()
                && self.least_between.is_none_or(|least| sent < ALL_COUNTED * least) =>
            {
                return None;
            }
            None => {}
        }
        let told = self.subjects.iter().filter(|s| rate(s, |x| x.total(Q::InternodeSentBytes)).is_some());
        let seen = told.count();
        Some((sent, "servers' own counters", nodes.is_none_or(|n| seen >= n)))
    }

    /// The same by the interfaces of all hosts.
    fn between_by_nics(&self, read: f64) -> Option<(f64, &'static str, bool)> {
        let cluster = self.cluster?;
        if cluster.is_east_west_apart() {
            let sent = self.nics(Q::NicTxBytes, Some(NicTraffic::Servers))?;
            return Some((sent, "interfaces of their own network", self.has_all_hosts()));
        }
        // What goes out is theirs or the clients'.
        let to_clients = read.max(self.daemons(Q::SentBytes).unwrap_or(0.0));
        let with_clients = if cluster.clients == ClientPlace::InServers { 0.0 } else { to_clients };
        let sent = self.nics(Q::NicTxBytes, None)? - with_clients;
        Some((sent.max(0.0), "interfaces, less payload", self.has_all_hosts()))
    }

    /// MinIO's own count of what its nodes send each other is without the shards of large objects.
    fn counts_small_ones_only(&self) -> bool {
        self.subjects.iter().any(|s| s.daemon.starts_with("minio"))
    }

    fn daemons(&self, quantity: Q) -> Option<f64> {
        let daemons = self.subjects.iter().filter(|s| !s.daemon.is_empty());
        daemons.filter_map(|s| rate(s, |x| x.total(quantity))).reduce(|a, b| a + b)
    }

    /// The same of all hosts together.
    fn nics(&self, quantity: Q, network: Option<NicTraffic>) -> Option<f64> {
        self.hosts().filter_map(|s| self.of_host(s, quantity, network)).reduce(|a, b| a + b)
    }
}

fn hosts<'a, 'b>(subjects: &'b [SubjectSteps<'a>]) -> impl Iterator<Item = &'b SubjectSteps<'a>> {
    subjects.iter().filter(|s| s.daemon.is_empty() && !s.host.is_empty())
}

/// Hosts, those of one machine (in name spaces of their own, say) once.
fn machines<'a, 'b>(subjects: &'b [SubjectSteps<'a>]) -> Vec<&'b SubjectSteps<'a>> {
    let mut out: Vec<(&SubjectSteps<'_>, Option<f64>, BTreeSet<&str>)> = Vec::new();
    for s in hosts(subjects) {
        let last = s.steps.last();
        let boot = last.and_then(|x| x.gauge(Q::BootUnixS, ""));
        let drives: BTreeSet<&str> =
            last.iter().flat_map(|x| x.labels(Q::DiskBusyS)).map(|(d, _)| d).collect();
        let same = |(_, other, names): &(&SubjectSteps<'_>, Option<f64>, BTreeSet<&str>)| {
            other.zip(boot).is_some_and(|(a, b)| (a - b).abs() < SAME_BOOT_S) && *names == drives
        };
        if !out.iter().any(same) {
            out.push((s, boot, drives));
        }
    }
    out.into_iter().map(|(s, ..)| s).collect()
}

fn of_machine(s: &SubjectSteps<'_>, quantity: Q) -> Option<f64> {
    rate(s, |x| sum_of(x, quantity, &|d: &str| is_drive(d)))
}

/// What the drives of all observed machines read, or wrote, bytes a second: those of one machine once, however many of its name spaces tell
/// of them.
pub fn on_drives(subjects: &[SubjectSteps<'_>], quantity: Q) -> Option<f64> {
    machines(subjects).into_iter().filter_map(|s| of_machine(s, quantity)).reduce(|a, b| a + b)
}

/// The sum over some labels.
fn sum_of<'a>(x: &ServerStep<'a>, quantity: Q, wanted: &dyn Fn(&str) -> bool) -> Option<f64> {
    // More bytes than any line has are a page's fancy.
    let most = FASTEST_LINE * x.seconds();
    x.deltas(quantity).filter(|(label, v)| wanted(label) && *v <= most).map(|(_, v)| v).reduce(|a, b| a + b)
}

/// What grew in steps, over the time of those that tell.
pub fn rate<'a>(s: &SubjectSteps<'a>, of: impl Fn(&ServerStep<'a>) -> Option<f64>) -> Option<f64> {
    let all: Vec<(f64, f64)> = s.steps.iter().filter_map(|x| Some((x.seconds(), of(x)?))).collect();
    let seconds: f64 = all.iter().map(|(s, _)| s).sum();
    (seconds > 0.0).then(|| all.iter().map(|(_, b)| b).sum::<f64>() / seconds)
}

/// Bytes that gateways moved with clients, less what ours moved: of others. `None`: no gateway counts bytes, or the difference is no larger than what the
/// age of its counters makes of it, which are those of a stretch that is longer or shorter by as much.
pub fn of_others(subjects: &[SubjectSteps<'_>], moved_per_s: f64) -> Option<f64> {
    let gateways = subjects.iter().filter(|s| s.daemon.starts_with("minio") || s.daemon.starts_with("rgw"));
    let mut by_daemon: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    for s in gateways {
        let bytes = |x: &ServerStep<'_>| Some(x.total(Q::SentBytes)? + x.total(Q::ReceivedBytes)?);
        if let Some(rate) = rate(s, bytes) {
            let seconds: f64 = s.steps.iter().map(ServerStep::seconds).sum();
            by_daemon.insert((s.host, s.daemon), (rate, rate * s.age_ns as f64 / 1e9 / seconds));
        }
    }
    let (moved, uncertain) = by_daemon.values().fold((0.0, 0.0), |(m, u), (rate, by)| (m + rate, u + by));
    let others = moved - moved_per_s;
    (!by_daemon.is_empty() && (uncertain == 0.0 || others.abs() > uncertain)).then_some(others)
}
