//! What observed servers did while a cell was measured, in the few figures that a table has: what limited them, how full each kind of resource
//! was, and what their daemons took. No host is named: which one it was a run's own report says.

use std::collections::BTreeMap;

use plimsoll_model::RunSummary;
use plimsoll_model::summary::servers::{ServersLimit, ServersWindow};
use serde::{Deserialize, Serialize};

use crate::figures::{CellFigure, CellRun};

/// Of one run, as the ledger keeps it. Of a run with several windows (a search): of that in which clients moved most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServedFigures {
    /// Kinds of resources at their ceilings; empty: none of those that were observed.
    pub at_ceiling: Vec<String>,
    /// Of each kind the mean part of the ceiling of the fullest, 0 to 1.
    pub shares: BTreeMap<String, f64>,
    /// Of each kind of daemon.
    pub daemons: Vec<DaemonFigures>,
    /// Kinds of resources of which nothing was seen.
    pub not_observed: Vec<String>,
}

/// What the daemons of a kind took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DaemonFigures {
    /// `minio`, `rgw`, `osd`, ...
    pub kind: String,
    /// How many were seen.
    pub daemons: u64,
    /// Mean over the window, of one of them.
    pub cores_each: f64,
    /// CPU seconds of all, for each GiB that clients moved.
    pub cpu_s_per_gib: Option<f64>,
    /// The same for each op that succeeded.
    pub cpu_s_per_op: Option<f64>,
    /// The most that one of them had in memory.
    pub rss_bytes: Option<f64>,
}

impl ServedFigures {
    /// `None`: nobody was asked, or no difference of two readings lies in a measured window.
    pub fn of_summary(s: &RunSummary) -> Option<Self> {
        let servers = s.servers.as_ref()?;
        let moved = |w: &&ServersWindow| w.clients_read_per_s + w.clients_wrote_per_s;
        let window = servers.windows.iter().max_by(|a, b| moved(a).total_cmp(&moved(b)))?;
        let mut shares: BTreeMap<String, f64> = BTreeMap::new();
        for r in &window.resources {
            let Some(share) = r.share.filter(|s| s.is_finite()) else { continue };
            let most = shares.entry(r.resource.clone()).or_default();
            *most = most.max(share);
        }
        let daemons = window.daemons.iter().map(|d| DaemonFigures {
            kind: d.kind.clone(),
            daemons: d.daemons,
            cores_each: d.cores / d.daemons.max(1) as f64,
            cpu_s_per_gib: d.cpu_s_per_gib,
            cpu_s_per_op: d.cpu_s_per_op,
            rss_bytes: d.rss_bytes,
        });
        Some(Self {
            at_ceiling: window.limit.as_ref().map(kinds_at_ceiling).unwrap_or_default(),
            shares,
            daemons: daemons.collect(),
            not_observed: distinct(servers.not_observed.iter().map(|t| without_host(t))),
        })
    }
}

/// What nobody observed, without a host's name.
fn without_host(what: &str) -> String {
    if what.starts_with("host ") { "hosts of some endpoints".into() } else { what.to_owned() }
}

/// `network in: eth0 of s1 and 3 more` without whose it was.
fn kinds_at_ceiling(limit: &ServersLimit) -> Vec<String> {
    limit.at_ceiling.iter().map(|t| t.split(':').next().unwrap_or(t).to_owned()).collect()
}

/// A figure over the valid runs of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverRuns {
    /// Of the runs that have it.
    pub mean: f64,
    /// The least of any run.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// How many have it.
    pub runs: u32,
}

impl OverRuns {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let least = all.iter().copied().reduce(f64::min)?;
        let most = all.iter().copied().reduce(f64::max)?;
        Some(Self { mean: all.iter().sum::<f64>() / all.len() as f64, least, most, runs: all.len() as u32 })
    }

    /// In another unit.
    pub fn scaled(self, factor: f64) -> Self {
        let Self { mean, least, most, runs } = self;
        Self { mean: mean * factor, least: least * factor, most: most * factor, runs }
    }
}

/// What servers did in the valid runs of a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServedRow {
    /// What was at its ceiling, and in how many runs: `network in` 3; `none seen` where nothing was.
    pub limits: Vec<(String, u32)>,
    /// Runs in which servers were observed.
    pub runs: u32,
    /// Of each kind of resource the fullest, part of its ceiling.
    pub shares: BTreeMap<String, OverRuns>,
    /// Of each kind of daemon.
    pub daemons: Vec<ServedDaemon>,
    /// Kinds of resources of which some run saw nothing.
    pub not_observed: Vec<String>,
}

/// The daemons of a kind over the runs of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedDaemon {
    /// `minio`, `rgw`, `osd`, ...
    pub kind: String,
    /// How many were seen; of several runs the most.
    pub daemons: u64,
    /// Mean of one of them.
    pub cores_each: Option<OverRuns>,
    /// CPU seconds of all of them for each GiB that clients moved.
    pub cpu_s_per_gib: Option<OverRuns>,
    /// The same for each op.
    pub cpu_s_per_op: Option<OverRuns>,
    /// The most that one of them had in memory.
    pub rss_bytes: Option<OverRuns>,
}

/// Where nothing that was observed was at its ceiling.
pub const NONE_SEEN: &str = "none seen";

impl ServedRow {
    /// `None`: in none of these runs were servers observed.
    pub(crate) fn of<'a, 'b: 'a>(
        runs: impl Iterator<Item = &'a (&'b CellRun, &'b CellFigure)>,
    ) -> Option<Self> {
        let all: Vec<&ServedFigures> = runs.filter_map(|(r, _)| r.servers.as_ref()).collect();
        if all.is_empty() {
            return None;
        }
        let mut limits: BTreeMap<String, u32> = BTreeMap::new();
        for s in &all {
            let what = if s.at_ceiling.is_empty() { NONE_SEEN.into() } else { s.at_ceiling.join(", ") };
            *limits.entry(what).or_default() += 1;
        }
        let mut limits: Vec<(String, u32)> = limits.into_iter().collect();
        limits.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let kinds = distinct(all.iter().flat_map(|s| s.shares.keys().cloned()));
        let share = |kind: &String| {
            Some((kind.clone(), OverRuns::of(all.iter().filter_map(|s| s.shares.get(kind).copied()))?))
        };
        let daemons = distinct(all.iter().flat_map(|s| &s.daemons).map(|d| d.kind.clone()));
        let daemon = |kind: &String| {
            let of = || all.iter().flat_map(|s| &s.daemons).filter(move |d| d.kind == *kind);
            ServedDaemon {
                kind: kind.clone(),
                daemons: of().map(|d| d.daemons).max().unwrap_or(0),
                cores_each: OverRuns::of(of().map(|d| d.cores_each)),
                cpu_s_per_gib: OverRuns::of(of().filter_map(|d| d.cpu_s_per_gib)),
                cpu_s_per_op: OverRuns::of(of().filter_map(|d| d.cpu_s_per_op)),
                rss_bytes: OverRuns::of(of().filter_map(|d| d.rss_bytes)),
            }
        };
        Some(Self {
            limits,
            runs: all.len() as u32,
            shares: kinds.iter().filter_map(share).collect(),
            daemons: daemons.iter().map(daemon).collect(),
            not_observed: distinct(all.iter().flat_map(|s| s.not_observed.iter().cloned())),
        })
    }

    /// `network in`; `network in (2 of 3), none seen (1 of 3)` where runs do not agree.
    pub fn limit_words(&self) -> String {
        match &self.limits[..] {
            [(one, _)] => one.clone(),
            many => {
                let each: Vec<String> =
                    many.iter().map(|(what, n)| format!("{what} ({n} of {})", self.runs)).collect();
                each.join("; ")
            }
        }
    }
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::summary::servers::{DaemonUse, ResourceUse, ServersSummary};

    fn run(put_mib: f64, share: f64, at_ceiling: bool) -> RunSummary {
        let resource = |host: &str, share| ResourceUse {
            resource: "network in".into(),
            host: host.into(),
            share: Some(share),
            ..ResourceUse::default()
        };
        let limit = ServersLimit {
            verdict: if at_ceiling { "one" } else { "none" }.into(),
            at_ceiling: at_ceiling.then(|| "network in: eth0 of s1: 1 of 2".to_owned()).into_iter().collect(),
            ..ServersLimit::default()
        };
        let window = ServersWindow {
            resources: vec![resource("s1", share), resource("s2", share / 2.0)],
            daemons: vec![DaemonUse {
                kind: "rgw".into(),
                daemons: 2,
                cores: 3.0,
                cpu_s_per_gib: Some(20.0 * share),
                rss_bytes: Some(200e6),
                ..DaemonUse::default()
            }],
            clients_wrote_per_s: put_mib,
            limit: Some(limit),
            ..ServersWindow::default()
        };
        // A search has a window for each step; the slow one is not what its answer is of.
        let slow = ServersWindow { clients_wrote_per_s: put_mib / 10.0, ..ServersWindow::default() };
        let servers = ServersSummary {
            windows: vec![window, slow],
            not_observed: vec!["the servers' drives".into(), "host s1".into(), "host s2".into()],
            ..ServersSummary::default()
        };
        RunSummary { servers: Some(servers), ..RunSummary::default() }
    }

    #[test]
    fn a_row_says_what_limited_its_runs_and_what_daemons_took() {
        let runs: Vec<CellRun> = [run(10.0, 0.96, true), run(11.0, 0.92, true), run(9.0, 0.5, false)]
            .iter()
            .map(|s| CellRun::of_summary(s, 0, 0))
            .collect();
        let figure = CellFigure::default();
        let pairs: Vec<(&CellRun, &CellFigure)> = runs.iter().map(|r| (r, &figure)).collect();
        let row = ServedRow::of(pairs.iter()).unwrap();
        assert_eq!(row.limit_words(), "network in (2 of 3); none seen (1 of 3)");
        let share = row.shares["network in"];
        assert_eq!((share.least, share.most, share.runs), (0.5, 0.96, 3));
        let d = &row.daemons[0];
        assert_eq!((d.kind.as_str(), d.daemons, d.cores_each.unwrap().mean), ("rgw", 2, 1.5));
        assert!((d.cpu_s_per_gib.unwrap().most - 19.2).abs() < 1e-9 && d.cpu_s_per_op.is_none());
        assert_eq!(row.not_observed, ["the servers' drives", "hosts of some endpoints"]);
        // No host leaves with it; and what the ledger keeps is what it gives back.
        let text = serde_json::to_string(&runs[0]).unwrap();
        assert!(!text.contains("s1") && serde_json::from_str::<CellRun>(&text).unwrap() == runs[0], "{text}");
    }

    #[test]
    fn of_runs_that_nobody_observed_nothing_is_said() {
        let bare = CellRun::of_summary(&RunSummary::default(), 0, 0);
        assert_eq!(bare.servers, None);
        let figure = CellFigure::default();
        assert_eq!(ServedRow::of([(&bare, &figure)].iter()), None);
    }
}
