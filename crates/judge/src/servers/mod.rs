//! What the servers did while they were measured: ceilings and percent of them, what was at its ceiling, background work, caches, counts
//! and costs. All of it from what sources said; of what nobody observed only that is said.

mod background;
mod counts;
mod findings;
mod limit;
mod lines;
mod pools;
mod resources;
mod rest;
#[cfg(test)]
mod tests;
mod traffic;
#[cfg(test)]
mod truths;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::analysis::Saturation;
use plimsoll_model::observed::ServerQuantity as Q;
use plimsoll_model::summary::servers::{ResourceUse, ServersSummary, ServersWindow, SourceSummary};
use plimsoll_model::{Cluster, Finding, Level, OpKind};
use plimsoll_stats::attribution::Observed;
use plimsoll_store::{ObservedSource, RunData, StageData, SubjectSteps, Totals, server_steps};

pub use findings::{drop_the_next_step_of_a_met_rate, drop_what_a_ceiling_explains};
use resources::SeenResource;
pub use rest::background_work;

/// A stage's window, with what was seen in it.
struct SeenWindow<'a> {
    stage: &'a StageData,
    from_ns: u64,
    to_ns: u64,
    subjects: Vec<SubjectSteps<'a>>,
    /// Those that are nodes of the described cluster, where some are not.
    nodes: Option<Vec<SubjectSteps<'a>>>,
    resources: Vec<SeenResource>,
}

impl<'a> SeenWindow<'a> {
    /// What sums of the cluster are made of: a balancer before it, or another machine, moves no bytes of its own.
    fn own(&self) -> &[SubjectSteps<'a>] {
        self.nodes.as_deref().unwrap_or(&self.subjects)
    }

    /// From the first reading to the last. `None`: no difference could be made.
    fn span(&self) -> Option<(u64, u64)> {
        let steps = || self.subjects.iter().flat_map(|s| &s.steps);
        Some((steps().map(|s| s.from_ns).min()?, steps().map(|s| s.to_ns).max()?))
    }
}

/// `None`: nobody was asked.
pub fn of_run(data: &RunData, totals: &[Totals]) -> Option<(ServersSummary, Vec<Finding>)> {
    if data.observed.is_empty() {
        return None;
    }
    let windows = windows(data, totals);
    let mut servers = ServersSummary {
        sources: data.observed.iter().map(source).collect(),
        windows: Vec::new(),
        not_observed: not_observed(&windows, data),
        background: Vec::new(),
        pools: pools::of_run(&data.observed),
    };
    let not_observed = servers.not_observed.clone();
    servers.background = background::spans(data, &windows);
    let measured: Vec<(u64, u64)> = windows.iter().map(|w| (w.from_ns, w.to_ns)).collect();
    let changed = lines::changes(&data.observed);
    servers.background.extend(lines::spans(&changed, &measured));
    let tellers = counts::tellers(data);
    servers.windows = windows.iter().filter_map(|w| summary_of(data, w, &not_observed, &tellers)).collect();
    let mut found = findings::of_sources(data, &windows);
    found.extend(rest::findings(data, &windows));
    let ended = |from_ns: u64, to_ns: u64| {
        let of = |s: &StageData| counts::Moved::between(data, s, from_ns, to_ns).ok;
        data.stages.iter().filter(|s| s.void.is_none()).map(of).sum()
    };
    found.extend(not_described(data));
    found.extend(lines::findings(&changed, &data.observed, &measured, ended));
    found.extend(findings::of_windows(&servers, &|name| changed.iter().any(|c| c.name() == name)));
    found.extend(findings::of_traffic(data, &servers));
    found.extend(findings::of_limits(&servers));
    Some((servers, found))
}

/// Of one window: a wide interval of a rate over two speeds of a line.
pub fn explain(findings: &mut [Finding], totals: &[Totals]) {
    if totals.len() == 1 {
        lines::explain(findings);
    }
}

/// Whether the speed of an observed line changed at about this time of the run.
pub fn line_changed_at(sources: &[ObservedSource], at_s: f64) -> bool {
    lines::changes(sources).iter().any(|c| c.is_at(at_s))
}

/// Servers' resources as candidates for the bottleneck: of each kind the fullest, by the names of all that are at their ceiling.
pub fn candidates(data: &RunData, totals: &[Totals]) -> Vec<Observed> {
    let all: Vec<SeenResource> = windows(data, totals).into_iter().flat_map(|w| w.resources).collect();
    resources::candidates(&all, is_here(data))
}

/// To each search of ops that move bytes what the servers let through, by what is known of them: nobody need have been observed.
pub fn with_ceilings(searches: &mut [Saturation], data: &RunData) {
    let Some(cluster) = cluster(data) else { return };
    let class = traffic::storage_class(data);
    for s in searches {
        let is_read = match OpKind::parse(&s.op_class) {
            Some(OpKind::Get | OpKind::GetRange) => true,
            Some(OpKind::Put | OpKind::Multipart) => false,
            // Of a mix neither law is that of all.
            _ => continue,
        };
        s.ceilings = cluster.payload_ceilings(class.as_deref(), is_read);
    }
}

/// How full the resources of observed hosts were, over all of these readings: for whoever looks while a run goes on.
pub fn server_resources(sources: &[ObservedSource], cluster: Option<&Cluster>) -> Vec<ResourceUse> {
    let steps = server_steps(sources, 0, u64::MAX);
    resources::of_window(&steps, &resources::with_nics(sources), cluster)
        .into_iter()
        .map(|s| s.used)
        .collect()
}

/// What the run was told that the servers are made of.
fn cluster(data: &RunData) -> Option<&Cluster> {
    data.plan.options.cluster.as_deref()
}

/// The servers are on this machine.
fn is_here(data: &RunData) -> bool {
    data.plan.targets.values().any(super::seen::is_loopback)
}

fn windows<'a>(data: &'a RunData, totals: &[Totals]) -> Vec<SeenWindow<'a>> {
    let exported = resources::with_nics(&data.observed);
    let seen = |t: &Totals| {
        let stage = data.stages.iter().find(|s| s.index == t.window.stage && s.void.is_none())?;
        let (from_ns, to_ns) = (t.window.from * data.grid_ns, t.window.to * data.grid_ns);
        let subjects = server_steps(&data.observed, from_ns, to_ns);
        let resources = resources::of_window(&subjects, &exported, cluster(data));
        let is_own = |s: &&SubjectSteps<'_>| {
            s.host.is_empty() || cluster(data).is_some_and(|c| c.node_of(s.host).is_some())
        };
        let described = || subjects.iter().filter(is_own);
        // Where the file has none of them its names are others', and the sums are of all.
        let some = described().any(|s| !s.host.is_empty()) && described().count() < subjects.len();
        let nodes = some.then(|| described().cloned().collect());
        Some(SeenWindow { stage, from_ns, to_ns, subjects, nodes, resources })
    };
    totals.iter().filter_map(seen).collect()
}

fn summary_of(
    data: &RunData,
    w: &SeenWindow<'_>,
    not_observed: &[String],
    tellers: &BTreeMap<&'static str, counts::Daemons<'_>>,
) -> Option<ServersWindow> {
    let (from_ns, to_ns) = w.span()?;
    let seconds = to_ns.saturating_sub(from_ns) as f64 / 1e9;
    let moved = counts::Moved::between(data, w.stage, from_ns, to_ns);
    let limit = limit::of_window(&w.resources, is_here(data), not_observed);
    let mut resources: Vec<_> = w.resources.iter().map(|s| s.used.clone()).collect();
    resources.sort_by(|a, b| b.share.unwrap_or(-1.0).total_cmp(&a.share.unwrap_or(-1.0)));
    let mut out = ServersWindow {
        stage: w.stage.index,
        start_s: from_ns as f64 / 1e9,
        end_s: to_ns as f64 / 1e9,
        resources,
        daemons: counts::daemons(data, w),
        requests: counts::requests(data, w, tellers),
        clients_read_per_s: moved.read / seconds,
        clients_wrote_per_s: moved.written / seconds,
        drives_read_per_s: traffic::on_drives(w.own(), Q::DiskReadBytes),
        drives_wrote_per_s: traffic::on_drives(w.own(), Q::DiskWriteBytes),
        internode_per_s: counts::internode(w.own()),
        traffic: Vec::new(),
        others_per_s: traffic::of_others(w.own(), (moved.read + moved.written) / seconds),
        limit,
    };
    out.traffic = traffic::of_window(data, w, &out);
    Some(out)
}

fn source(s: &ObservedSource) -> SourceSummary {
    let answered = || s.scrapes.iter().filter(|x| x.gap.is_none());
    let n = answered().count().max(1) as f64;
    let mut ahead: Vec<f64> = answered().filter_map(|x| Some(x.clock_ahead_ns? as f64 / 1e9)).collect();
    ahead.sort_by(f64::total_cmp);
    let hosts: BTreeSet<&str> = answered().flat_map(|x| &x.subjects).map(|x| x.host.as_str()).collect();
    SourceSummary {
        source: s.observes.clone(),
        // Of a long run only every so many-th is read; the bytes of those stand for all.
        asked: s.scrapes.len() as u64 * s.every,
        gaps: s.scrapes.iter().filter(|x| x.gap.is_some()).count() as u64,
        resolution_s: answered().map(|x| x.resolution_ns).max().unwrap_or(0) as f64 / 1e9,
        took_s: answered().map(|x| x.took_ns as f64 / 1e9).sum::<f64>() / n,
        bytes: answered().map(|x| x.bytes).sum::<u64>() * s.every,
        client_cpu_s: s.scrapes.iter().map(|x| x.client_cpu_ns as f64 / 1e9).sum::<f64>() * s.every as f64,
        clock_ahead_s: ahead.get(ahead.len() / 2).copied(),
        hosts: hosts.into_iter().filter(|h| !h.is_empty()).take(1000).map(str::to_owned).collect(),
    }
}

/// Kinds of resources of which nothing was seen in any window, and hosts of the endpoints that no source tells of.
fn not_observed(windows: &[SeenWindow<'_>], data: &RunData) -> Vec<String> {
    let cluster = cluster(data);
    let mut out = Vec::new();
    // Whatever a source calls a host: by the name that `cluster.toml` has for its node, if any.
    let known_as = |host: &str| -> String {
        cluster.and_then(|c| c.name_of(host)).unwrap_or_else(|| host_of(host).to_owned())
    };
    let told: BTreeSet<String> = windows
        .iter()
        .flat_map(|w| &w.subjects)
        .map(|s| s.host)
        .filter(|h| !h.is_empty())
        .map(known_as)
        .collect();
    for (kind, words) in resources::KINDS {
        let of_kind = || windows.iter().flat_map(|w| &w.resources).filter(|s| s.used.resource == kind);
        let seen: BTreeSet<String> = of_kind().map(|s| known_as(&s.used.host)).collect();
        // Of some hosts and not of others: that none of them was full says nothing of these.
        let lack: Vec<&str> = told.iter().filter(|h| !seen.contains(*h)).map(String::as_str).collect();
        if !seen.is_empty() && !lack.is_empty() {
            out.push(format!("{words} of {}", named(&lack)));
        }
        match (of_kind().next().is_some(), of_kind().any(|s| s.used.share.is_some())) {
            (false, _) => out.push(words.to_owned()),
            (true, false) => out.push(format!("{words} (their line rates are not known)")),
            (true, true) => {}
        }
    }
    // Of several windows those of none count.
    let all = || windows.iter().flat_map(|w| &w.resources);
    let well: BTreeSet<String> = all().filter(|s| s.scarce_s.is_none()).map(|s| s.used.name()).collect();
    let scarce = all().filter(|s| s.scarce_s.is_some()).map(|s| s.used.name()).filter(|n| !well.contains(n));
    let scarce: BTreeSet<String> = scarce.map(|n| format!("{n} of most of the time")).collect();
    out.extend(scarce);
    let changed = windows.iter().flat_map(|w| &w.resources).filter(|s| s.used.verdict == resources::CHANGED);
    let changed: BTreeSet<String> =
        changed.map(|s| format!("{}{}", s.used.name(), limit::SPEED_CHANGED)).collect();
    out.extend(changed);
    // Who answered was observed; that it was so too rarely in a window is said by itself (F78).
    let hosts = answered(&data.observed);
    let told: BTreeSet<String> = hosts.iter().map(|h| known_as(h)).collect();
    let endpoints = windows.iter().flat_map(|w| &w.stage.endpoints).flatten().map(|e| host_of(e));
    let missing: BTreeSet<&str> =
        endpoints.filter(|h| !hosts.iter().any(|o| o == h || host_of(o) == *h)).collect();
    if !hosts.is_empty() {
        let nodes = cluster.map_or(&[][..], |c| c.nodes.as_slice()).iter().flat_map(|n| n.names());
        let is_missing = |h: &String| !told.contains(h);
        let missing = missing.into_iter().map(known_as);
        let all: BTreeSet<String> = missing.chain(nodes).filter(is_missing).collect();
        out.extend(all.into_iter().map(|h| format!("host {h}")));
    }
    out
}

/// Hosts of which a source told anything at any time.
fn answered(sources: &[ObservedSource]) -> BTreeSet<&str> {
    let told = sources.iter().flat_map(|s| &s.scrapes).flat_map(|s| &s.subjects);
    told.map(|s| s.host.as_str()).filter(|h| !h.is_empty()).collect()
}

/// Hosts that were observed and that the description does not have: they are no part of sums over the cluster.
fn not_described(data: &RunData) -> Option<Finding> {
    let cluster = cluster(data).filter(|c| !c.nodes.is_empty())?;
    let hosts = answered(&data.observed);
    let others: Vec<&str> = hosts.iter().copied().filter(|h| cluster.node_of(h).is_none()).collect();
    let has: Vec<String> = cluster.nodes.iter().flat_map(|n| n.names()).collect();
    let has: Vec<&str> = has.iter().map(String::as_str).collect();
    let (level, text) = match others.len() {
        0 => return None,
        n if n == hosts.len() => (
            Level::Qualified,
            format!(
                "No observed host ({}) is in cluster.toml, which has {}: nothing of the file was used for them. Give its nodes the names or \
                 addresses at which they are observed.",
                named(&others),
                named(&has)
            ),
        ),
        _ => (
            Level::Info,
            format!(
                "Observed and not in cluster.toml: {}. Their resources are shown, and they are no part of the cluster's traffic.",
                named(&others)
            ),
        ),
    };
    Some(Finding::new("F78", "not_described", level, text))
}

/// Hosts that are named at most; of more, how many.
const MOST_NAMED: usize = 3;

fn named(hosts: &[&str]) -> String {
    let first = hosts.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    match hosts.len().saturating_sub(MOST_NAMED) {
        0 => first,
        n => format!("{first} and {n} more"),
    }
}

/// `http://s1:9000` to `s1`.
fn host_of(endpoint: &str) -> &str {
    let at = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let at = at.split('/').next().unwrap_or(at);
    match at.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or(inside),
        None => at.rsplit_once(':').filter(|(h, _)| !h.contains(':')).map_or(at, |(h, _)| h),
    }
}
