//! What the servers did meanwhile: tables of their resources by how full they were, of their daemons, and of their counts beside ours.

use plimsoll_model::RunSummary;
use plimsoll_model::summary::servers::{ResourceUse, ServersWindow, SourceSummary};
use plimsoll_model::units::significant;

use crate::number::{self, MIB};
use crate::table::Table;

/// Rows of a table; of more the fullest are shown, and how many there are.
const MOST_ROWS: usize = 24;

/// Tables of all windows; without rows: nothing was observed.
pub(crate) fn tables(s: &RunSummary) -> Vec<Table> {
    let Some(servers) = &s.servers else { return Vec::new() };
    let several = servers.windows.len() > 1;
    let mut out: Vec<Table> = Vec::new();
    for w in &servers.windows {
        let of = if several { format!(" of stage {}", w.stage + 1) } else { String::new() };
        out.push(resources(&of, w));
        out.push(traffic(&of, w));
        out.push(daemons(&of, w));
        out.push(requests(&of, w));
    }
    out.push(sources(&servers.sources));
    if !servers.not_observed.is_empty() {
        let mut t = Table::new("Not observed", 1, &["of these nothing is said"]);
        servers.not_observed.iter().for_each(|n| t.push(vec![n.clone()]));
        out.push(t);
    }
    out.retain(|t| !t.rows.is_empty());
    out
}

fn resources(of: &str, w: &ServersWindow) -> Table {
    let all = w.resources.len();
    let more = if all > MOST_ROWS { format!(", the fullest {MOST_ROWS} of {all}") } else { String::new() };
    let title = format!("Servers' resources{of}{more}");
    let heads = ["resource", "host", "device", ">reached", ">ceiling", ">percent", ">time above", "verdict"];
    let mut t = Table::new(&title, 3, &heads);
    for r in w.resources.iter().take(MOST_ROWS) {
        t.push(vec![
            r.resource.clone(),
            r.host.clone(),
            r.device.clone(),
            amount(r, r.reached),
            r.ceiling.map_or_else(|| number::MISSING.into(), |c| amount(r, c)),
            r.share.map_or_else(|| number::MISSING.into(), number::percent),
            r.time_above.map_or_else(|| number::MISSING.into(), number::percent),
            r.verdict.clone(),
        ]);
    }
    t
}

fn amount(r: &ResourceUse, value: f64) -> String {
    match r.unit.as_str() {
        "B/s" if r.resource == "drive" => format!("{} MB/s", significant(value / 1e6, 3)),
        "B/s" => format!("{} Gbit/s", significant(value * 8.0 / 1e9, 3)),
        "busy" => number::percent(value),
        unit => format!("{} {unit}", significant(value, 3)),
    }
}

/// What redundancy makes of the clients' bytes, measured beside expected.
fn traffic(of: &str, w: &ServersWindow) -> Table {
    let heads = ["bytes", ">MB/s", ">for each of the clients'", ">expected", "counted by"];
    let mut t = Table::new(&format!("Traffic beside the clients'{of}"), 1, &heads);
    let ratio = |v: f64| significant(v, 3);
    for x in &w.traffic {
        let expected = match (x.expected, x.expected_least) {
            (Some(most), Some(least)) if least < most => format!("{} to {}", ratio(least), ratio(most)),
            (Some(e), _) => ratio(e),
            (None, _) => number::MISSING.into(),
        };
        t.push(vec![
            x.what.clone(),
            significant(x.per_s / 1e6, 3),
            x.per_byte.map_or_else(|| number::MISSING.into(), ratio),
            expected,
            x.counted_by.clone(),
        ]);
    }
    t
}

fn daemons(of: &str, w: &ServersWindow) -> Table {
    let heads = ["daemon", ">how many", ">cores", ">CPU s/GiB", ">CPU ms/op", ">most memory MiB"];
    let mut t = Table::new(&format!("Servers' daemons{of}"), 1, &heads);
    let known = |v: Option<f64>, factor: f64| v.map_or_else(String::new, |v| significant(v * factor, 3));
    for d in w.daemons.iter().take(MOST_ROWS) {
        t.push(vec![
            d.kind.clone(),
            d.daemons.to_string(),
            significant(d.cores, 3),
            known(d.cpu_s_per_gib, 1.0),
            known(d.cpu_s_per_op, 1000.0),
            known(d.rss_bytes, 1.0 / MIB),
        ]);
    }
    t.without_empty_columns()
}

fn requests(of: &str, w: &ServersWindow) -> Table {
    let heads = ["requests", ">servers counted", ">we made", ">uncertain by"];
    let mut t = Table::new(&format!("Requests{of}, by the servers' count and ours"), 1, &heads);
    for r in &w.requests {
        let count = |v: f64| number::count(v.max(0.0) as u64);
        t.push(vec![r.op.clone(), count(r.servers), count(r.ours), count(r.uncertain_by)]);
    }
    t
}

fn sources(all: &[SourceSummary]) -> Table {
    let heads =
        ["observed", ">asked", ">gaps", ">answer KB", ">took ms", ">client CPU s", ">counters' age s"];
    let mut t = Table::new("What observing cost", 1, &heads);
    for s in all.iter().take(MOST_ROWS) {
        let answers = s.asked.saturating_sub(s.gaps).max(1) as f64;
        t.push(vec![
            s.source.clone(),
            s.asked.to_string(),
            s.gaps.to_string(),
            significant(s.bytes as f64 / answers / 1000.0, 3),
            significant(s.took_s * 1000.0, 3),
            significant(s.client_cpu_s, 2),
            significant(s.resolution_s, 2),
        ]);
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::summary::servers::{DaemonUse, RequestCount, ServersSummary, TrafficUse};

    #[test]
    fn resources_stand_in_order_of_percent_with_their_ceilings() {
        let r = |resource: &str, unit: &str, reached: f64, ceiling: Option<f64>, verdict: &str| ResourceUse {
            resource: resource.into(),
            host: "s1".into(),
            unit: unit.into(),
            reached,
            ceiling,
            share: ceiling.map(|c| reached / c),
            time_above: ceiling.map(|_| 1.0),
            verdict: verdict.into(),
            ..ResourceUse::default()
        };
        let window = ServersWindow {
            resources: vec![
                r("network out", "B/s", 1.2e9, Some(1.25e9), "at its ceiling"),
                r("cpu", "cores", 1.5, Some(4.0), "below its ceiling"),
                r("network in", "B/s", 1e6, None, "ceiling not known"),
            ],
            daemons: vec![DaemonUse {
                kind: "minio".into(),
                daemons: 4,
                cores: 1.25,
                ..DaemonUse::default()
            }],
            traffic: vec![TrafficUse {
                what: "between servers".into(),
                per_s: 75e6,
                per_byte: Some(0.75),
                expected: Some(0.8),
                expected_least: Some(0.667),
                counted_by: "servers' own counters".into(),
            }],
            requests: vec![RequestCount {
                op: "get".into(),
                servers: 1000.0,
                ours: 990.0,
                uncertain_by: 16.0,
            }],
            ..ServersWindow::default()
        };
        let servers = ServersSummary {
            windows: vec![window],
            not_observed: vec!["the servers' drives".into()],
            ..ServersSummary::default()
        };
        let all = tables(&RunSummary { servers: Some(servers), ..RunSummary::default() });
        let text: String = all.iter().map(|t| t.plain(100)).collect::<Vec<_>>().join("\n");
        for part in [
            "9.60 Gbit/s",
            "10.0 Gbit/s",
            "96",
            "4.00 cores",
            "ceiling not known",
            "minio",
            "1.25",
            "0.667 to 0.800",
            "servers' own counters",
            "the servers' drives",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(tables(&RunSummary::default()).is_empty());
    }
}
