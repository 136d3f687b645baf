//! A page of metrics as readings: who is meant by each series, what is missing, and how old its counters may be.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ReadSubject, ServerQuantity, ServerReading};

use crate::rules::{self, Rule, SeriesMeaning, Whose};
use crate::text::{self, MetricSeries, NotMetrics};

/// Who wrote a page: what is expected on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// node_exporter.
    Node,
    /// process-exporter.
    Process,
    /// MinIO, version 2 or 3 of its metrics.
    Minio,
    /// Ceph: the manager's module, or an exporter on a host.
    Ceph,
    /// Whatever is known of what is on it.
    Any,
}

impl Make {
    /// For a person.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node_exporter",
            Self::Process => "process-exporter",
            Self::Minio => "MinIO",
            Self::Ceph => "Ceph",
            Self::Any => "any make",
        }
    }

    /// Metrics without which such a page is not what it should be; of each row one is enough.
    fn needed(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Node => &[
                &["node_cpu_seconds_total"],
                &["node_memory_MemAvailable_bytes"],
                &["node_network_transmit_bytes_total"],
                &["node_disk_io_time_seconds_total"],
            ],
            Self::Process => &[&["namedprocess_namegroup_cpu_seconds_total"]],
            Self::Minio => {
                &[&["minio_system_process_cpu_total_seconds", "minio_node_process_cpu_total_seconds"]]
            }
            Self::Ceph => &[&["ceph_exporter_cpu_total", "ceph_health_status"]],
            Self::Any => &[],
        }
    }
}

/// What is read from one page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageReadings {
    /// Hosts, daemons and the cluster, by name.
    pub subjects: Vec<ReadSubject>,
    /// Needed metrics that are not there under any known name.
    pub missing: Vec<String>,
    /// Series beyond what is kept.
    pub left_out: u64,
    /// How old counters may be, seconds; 0: made for this answer.
    pub resolution_s: f64,
    /// The newest time that a series carries, seconds since 1970.
    pub made_s: Option<f64>,
    /// The time that the host's clock itself carries: where series are of different times, this one is its own.
    pub clock_made_s: Option<f64>,
}

/// On pages that have what there is and nothing else, by their own word: a cluster in a box has no processors of its own without a quota, nor drives
/// without a limit. What they lack is not missing.
pub const PARTIAL_PAGE: &str = "plimsoll_box_node_info";
/// Hosts and daemons of one page that are kept.
const MOST_SUBJECTS: usize = 5000;

/// Reads a page. `host`: whom the address names, for series that name nobody.
pub fn readings(make: Make, page: &str, host: &str) -> Result<PageReadings, NotMetrics> {
    let page = text::parse(page, |name| rules::of(name).is_some() || name == PARTIAL_PAGE)?;
    of_series(make, &page.series, page.left_out, |_| host.to_owned())
}

/// The same of series that come from elsewhere. `host_of`: whom a series that names nobody is of.
pub fn of_series(
    make: Make,
    series: &[MetricSeries],
    left_out: u64,
    host_of: impl Fn(&MetricSeries) -> String,
) -> Result<PageReadings, NotMetrics> {
    let mut subjects = Subjects::new();
    let mut out = PageReadings { left_out, ..PageReadings::default() };
    for s in series {
        let Some(rule) = rules::of(&s.name) else { continue };
        out.resolution_s = f64::max(out.resolution_s, rules::resolution_s(&s.name));
        out.made_s = newest(out.made_s, s.made_s);
        let Some((quantity, label)) = meant(rule.meaning, s) else { continue };
        if quantity == ServerQuantity::ClockUnixS {
            out.clock_made_s = newest(out.clock_made_s, s.made_s);
        }
        let subject = whose(rule.whose, make, s, &host_of);
        if subjects.len() >= MOST_SUBJECTS && !subjects.contains_key(&subject) {
            out.left_out += 1;
            continue;
        }
        // What several servers say of the cluster is one thing.
        let by = if rule.whose == Whose::Cluster { s.label("server") } else { "" };
        let said = subjects.entry(subject).or_default().entry((quantity, label)).or_default();
        let parts = said.entry(by.to_owned()).or_default();
        let value = s.value * rule.scale;
        // Each part once: two jobs or replicas of a Prometheus, and a page that repeats itself, tell of the same thing.
        parts.entry(part(rule, s)).and_modify(|v| *v = v.max(value)).or_insert(value);
    }
    if subjects.is_empty() {
        return Err(NotMetrics::NothingKnown(make.name()));
    }
    let there = |name: &&'static str| series.iter().any(|s| s.name == *name);
    let is_whole = !there(&PARTIAL_PAGE);
    let missing = make.needed().iter().filter(|row| is_whole && !row.iter().any(there));
    out.missing = missing.map(|row| row.join(" or ")).collect();
    out.subjects = subjects.into_iter().map(subject).collect();
    Ok(out)
}

/// Values by subject, by quantity and label, and by who says so.
type Subjects = BTreeMap<(String, String), Values>;
type Values = BTreeMap<(ServerQuantity, String), BTreeMap<String, Parts>>;
/// What adds up to one reading.
type Parts = BTreeMap<String, f64>;

fn newest(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

/// Which part of a reading a series is: modes of a CPU, sets of a pool. Of most there is one, and whatever else tells two series apart does
/// not make them two.
fn part(rule: &Rule, s: &MetricSeries) -> String {
    let mode = match rule.meaning {
        SeriesMeaning::Mode(label, _) | SeriesMeaning::ModeOfEach(label, ..) => s.label(label),
        // What came in and what went out; other names of one reading are its old one and its new one.
        SeriesMeaning::Each(ServerQuantity::NicDrops, _) => rule.name,
        _ => "",
    };
    let mut part = mode.to_owned();
    for label in rule.over {
        // Values are clean: no line ends are in them.
        part.extend(["\n", s.label(label)]);
    }
    part
}

fn subject(((host, daemon), values): ((String, String), Values)) -> ReadSubject {
    let reading = |((quantity, label), said): (_, BTreeMap<String, Parts>)| {
        let sums = said.into_values().map(|parts| parts.into_values().sum::<f64>());
        let value = sums.filter(|v| v.is_finite()).reduce(f64::max)?;
        Some(ServerReading { quantity, label, value })
    };
    ReadSubject { host, daemon, readings: values.into_iter().filter_map(reading).collect() }
}

/// The quantity of a series and its label; `None`: this one series means nothing to us (another mode, another kind of memory).
fn meant(meaning: SeriesMeaning, s: &MetricSeries) -> Option<(ServerQuantity, String)> {
    let by = |label: &str, table: &'static [(&'static str, ServerQuantity)]| {
        let value = s.label(label);
        table.iter().find(|(v, _)| *v == value).map(|(_, q)| *q)
    };
    Some(match meaning {
        SeriesMeaning::One(q) => (q, String::new()),
        SeriesMeaning::Each(q, label) => (q, s.label(label).to_owned()),
        SeriesMeaning::Named(q, name) => (q, name.to_owned()),
        SeriesMeaning::Where(q, label, value) => (s.label(label) == value).then_some((q, String::new()))?,
        SeriesMeaning::Mode(label, table) => (by(label, table)?, String::new()),
        SeriesMeaning::ModeOfEach(label, table, each) => (by(label, table)?, s.label(each).to_owned()),
        SeriesMeaning::Pool(q) => {
            (q, format!("{} {} {}", s.label("pool_id"), s.label("name"), s.label("description")))
        }
    })
}

fn whose(
    whose: Whose,
    make: Make,
    s: &MetricSeries,
    host_of: &impl Fn(&MetricSeries) -> String,
) -> (String, String) {
    match whose {
        Whose::Host => (host_of(s), String::new()),
        Whose::Cluster => (String::new(), String::new()),
        Whose::Daemon(label) => (host_of(s), s.label(label).to_owned()),
        Whose::Gateway => {
            let id = s.label("instance_id");
            (host_of(s), format!("rgw.{}", id.strip_prefix("rgw.").unwrap_or(id)))
        }
        Whose::Minio => match s.label("server") {
            "" => (host_of(s), "minio".into()),
            server => (host_part(server).to_owned(), format!("minio@{server}")),
        },
        Whose::Own => {
            let name = match make {
                Make::Node => "node_exporter",
                Make::Process => "process-exporter",
                Make::Minio => "minio",
                Make::Ceph => "ceph-exporter",
                Make::Any => "server",
            };
            (host_of(s), name.into())
        }
    }
}

/// `s1:9000` to `s1`, `[::1]:9000` to `::1`.
pub fn host_part(address: &str) -> &str {
    if let Some(inside) = address.strip_prefix('[') {
        return inside.split(']').next().unwrap_or(inside);
    }
    match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => address,
    }
}
