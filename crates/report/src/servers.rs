//! What the servers did meanwhile: tables of their resources by how full they were, of their daemons, and of their counts beside ours.

use plimsoll_model::RunSummary;
use plimsoll_model::summary::servers::{
    BackgroundSpan, PoolUse, ResourceUse, ServersSummary, ServersWindow, SourceSummary, ceiling_words,
};
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
    let is_seen = |w: &&ServersWindow| !w.resources.is_empty();
    let shown = servers.windows.iter().filter(is_seen).count();
    for w in &servers.windows {
        let of = if several { format!(" of stage {}", w.stage + 1) } else { String::new() };
        // What was not observed is so in all of them.
        let not_observed = if shown == 1 { &servers.not_observed[..] } else { &[] };
        out.extend(is_seen(&w).then(|| resources(&of, w, not_observed)));
        out.push(traffic(&of, w));
        out.push(daemons(&of, w));
        out.push(requests(&of, w));
    }
    out.push(pools(&servers.pools));
    out.push(background(&servers.background));
    out.push(sources(&servers.sources));
    // Beside resources that were seen they are rows of their table.
    if !servers.not_observed.is_empty() && shown != 1 {
        let mut t = Table::new("Not observed", 1, &["of these nothing is said"]);
        servers.not_observed.iter().for_each(|n| t.push(vec![n.clone()]));
        out.push(t);
    }
    out.retain(|t| !t.rows.is_empty());
    out
}

/// Those that were seen in order of percent, then what was not: a table that ends with the fullest would hide what was not looked at.
fn resources(of: &str, w: &ServersWindow, not_observed: &[String]) -> Table {
    let all = w.resources.len();
    let more = if all > MOST_ROWS { format!(", the fullest {MOST_ROWS} of {all}") } else { String::new() };
    let title = format!("Servers' resources{of}{more}");
    let heads = [
        "resource",
        "host",
        "device or daemon",
        ">reached",
        ">ceiling",
        ">percent",
        ">time above",
        "verdict",
        "ceiling by",
    ];
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
            r.ceiling_of.clone(),
        ]);
    }
    let missing = || number::MISSING.to_owned();
    // Of those without a known ceiling there are rows above.
    for what in not_observed.iter().filter(|n| !n.contains(" (")) {
        let nothing = String::new;
        t.push(vec![
            what.clone(),
            nothing(),
            nothing(),
            missing(),
            missing(),
            missing(),
            missing(),
            "not observed".into(),
            nothing(),
        ]);
    }
    t.without_empty_columns()
}

/// What all that lies in a pool takes of the drives, measured beside expected.
fn pools(all: &[PoolUse]) -> Table {
    let heads = ["pool", "kept as", ">stored GiB", ">on drives GiB", ">for each byte", ">expected"];
    let more = if all.len() > MOST_ROWS {
        format!(", the fullest {MOST_ROWS} of {}", all.len())
    } else {
        String::new()
    };
    let mut t = Table::new(&format!("Pools{more}"), 2, &heads);
    let ratio = |v: Option<f64>| v.map_or_else(|| number::MISSING.into(), |v| significant(v, 3));
    let gib = |v: f64| significant(v / (1024.0 * MIB), 3);
    for p in all.iter().take(MOST_ROWS) {
        t.push(vec![
            p.name.clone(),
            p.redundancy.clone(),
            gib(p.stored_bytes),
            gib(p.used_bytes),
            ratio(p.per_byte),
            ratio(p.expected),
        ]);
    }
    t
}

/// What the servers did of their own accord.
fn background(all: &[BackgroundSpan]) -> Table {
    let mut t =
        Table::new("Work in the background", 1, &["what", ">from s", ">to s", "in a measured window"]);
    for s in all.iter().take(MOST_ROWS) {
        let place = if s.in_window { "yes" } else { "no" };
        t.push(vec![s.what.clone(), significant(s.start_s, 4), significant(s.end_s, 4), place.into()]);
    }
    t
}

/// Of each kind the fullest, in a line: `network in 96 %   cpu 31 %   drive not observed`. `None`: there is no window, or several, of which no
/// figure is of all.
pub(crate) fn in_a_line(s: &RunSummary) -> Option<String> {
    let servers = s.servers.as_ref()?;
    let [w] = &servers.windows[..] else { return None };
    // In order of percent already.
    let mut kinds: Vec<&str> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for r in &w.resources {
        let Some(share) = r.share.filter(|_| !kinds.contains(&r.resource.as_str())) else { continue };
        kinds.push(&r.resource);
        let at = if r.verdict == "at its ceiling" { " (at its ceiling)" } else { "" };
        parts.push(format!("{} {}{at}", r.resource, number::percent(share)));
    }
    (!parts.is_empty()).then(|| {
        let unseen = unseen(servers);
        parts.extend((!unseen.is_empty()).then(|| format!("not observed: {}", unseen.join(", "))));
        parts.join("   ")
    })
}

/// Sources that never answered: `node http://s1:9100 (--observe)`.
pub(crate) fn silent_in_a_line(s: &RunSummary) -> Option<String> {
    let sources = &s.servers.as_ref()?.sources;
    // Of whoever answered there are bytes.
    let silent = || sources.iter().filter(|x| x.gaps > 0 && x.bytes == 0);
    let more = match silent().count() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    Some(format!("{}{more} (--observe)", silent().next()?.source))
}

fn unseen(servers: &ServersSummary) -> Vec<String> {
    let short = |n: &String| n.strip_prefix("the servers' ").unwrap_or(n).to_owned();
    servers.not_observed.iter().map(short).collect()
}

/// Where the bytes went, in a line: `50 MB/s with clients   66.7 to drives (1.33 a byte; 1.33 expected)`.
pub(crate) fn bytes_in_a_line(s: &RunSummary) -> Option<String> {
    let [w] = &s.servers.as_ref()?.windows[..] else { return None };
    let mb = |v: f64| format!("{} MB/s", significant(v / 1e6, 3));
    let mut parts = Vec::new();
    for (rate, what) in [(w.clients_wrote_per_s, "written"), (w.clients_read_per_s, "read")] {
        if rate > 0.0 {
            parts.push(format!("{} {what}", mb(rate)));
        }
    }
    let beside = w.traffic.iter().filter(|t| t.what != "with clients");
    let told: Vec<String> = beside
        .map(|t| {
            let each = t.per_byte.map_or(String::new(), |r| {
                let expected =
                    t.expected.map_or(String::new(), |e| format!(", {} expected", significant(e, 3)));
                format!(" ({} a byte{expected})", significant(r, 3))
            });
            format!("{} {}{each}", mb(t.per_s), t.what)
        })
        .collect();
    (!told.is_empty() && !parts.is_empty()).then(|| {
        parts.extend(told);
        parts.join("   ")
    })
}

/// What stands behind the rate: `; the servers' network in was at its ceiling (4 of 4): 96 % of 25Gbit/s`. Where the verdict says it, too, and one
/// kind was.
pub(crate) fn bound(s: &RunSummary) -> Option<String> {
    let [w] = &s.servers.as_ref()?.windows[..] else { return None };
    let limit = w.limit.as_ref().filter(|l| l.verdict == "one")?;
    s.claims.iter().find(|c| c.text.replace("**", "").contains(&limit.text))?;
    let full: Vec<&ResourceUse> = w
        .resources
        .iter()
        .filter(|r| r.resource == limit.resource && r.verdict == "at its ceiling")
        .collect();
    let most = full.first()?;
    let share = number::percent(most.share?);
    let ceiling = ceiling_words(&most.resource, &most.unit, most.ceiling?);
    let of = ceiling.map_or_else(|| format!("busy {share} of the time"), |c| format!("{share} of {c}"));
    let kind = &limit.resource;
    Some(match full.len() {
        1 => format!("; {kind} of {} was at its ceiling: {of}", most.host),
        n => format!("; the servers' {kind} was at its ceiling ({n} of {}): {of}", limit.of),
    })
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
    use plimsoll_model::claim::{Claim, ClaimKind, Fact};
    use plimsoll_model::summary::servers::{
        DaemonUse, RequestCount, ServersLimit, ServersSummary, TrafficUse,
    };

    /// A run of which the servers' links were full, while a drive healed, and of which no source told of the drives.
    fn observed() -> RunSummary {
        let text = "Of the servers the network interface was at its ceiling.";
        let r =
            |resource: &str, host: &str, reached: f64, ceiling: f64, unit: &str, verdict: &str| ResourceUse {
                resource: resource.into(),
                host: host.into(),
                unit: unit.into(),
                reached,
                ceiling: Some(ceiling),
                share: Some(reached / ceiling),
                ceiling_of: "cluster.toml".into(),
                verdict: verdict.into(),
                ..ResourceUse::default()
            };
        let traffic = TrafficUse {
            what: "between servers".into(),
            per_s: 50e6,
            per_byte: Some(1.0),
            expected: Some(1.0),
            ..TrafficUse::default()
        };
        let window = ServersWindow {
            resources: vec![
                r("network in", "s1", 24e6, 25e6, "B/s", "at its ceiling"),
                r("network in", "s2", 24e6, 25e6, "B/s", "at its ceiling"),
                r("cpu", "=cmd()", 1.24, 4.0, "cores", "below its ceiling"),
            ],
            clients_wrote_per_s: 50e6,
            traffic: vec![traffic],
            limit: Some(ServersLimit {
                verdict: "one".into(),
                resource: "network in".into(),
                of: 4,
                text: text.into(),
                ..ServersLimit::default()
            }),
            ..ServersWindow::default()
        };
        let servers = ServersSummary {
            windows: vec![window],
            not_observed: vec!["the servers' drives".into()],
            background: vec![BackgroundSpan {
                what: "1 drive(s) healing".into(),
                start_s: 8.0,
                end_s: 13.0,
                in_window: true,
            }],
            pools: vec![PoolUse {
                name: "data".into(),
                redundancy: "ec:2+2".into(),
                stored_bytes: 1024.0 * MIB,
                used_bytes: 2252.8 * MIB,
                per_byte: Some(2.2),
                expected: Some(2.0),
            }],
            ..ServersSummary::default()
        };
        let kind = Fact::new(vec!["F95".into()], text).map(ClaimKind::Fact).unwrap();
        let claims = vec![Claim { subject: None, kind, text: text.into() }];
        RunSummary { servers: Some(servers), claims, answered: true, ..RunSummary::default() }
    }

    #[test]
    fn who_never_answered_is_named() {
        let source = |name: &str, bytes| SourceSummary {
            source: name.into(),
            asked: 4,
            gaps: 4 - u64::from(bytes > 0),
            bytes,
            ..SourceSummary::default()
        };
        let mut s = observed();
        assert_eq!(silent_in_a_line(&s), None);
        let sources = &mut s.servers.as_mut().unwrap().sources;
        *sources = vec![source("minio http://s1:9000", 512), source("node http://s1:9100", 0)];
        assert_eq!(silent_in_a_line(&s).unwrap(), "node http://s1:9100 (--observe)");
        s.servers.as_mut().unwrap().sources.push(source("node http://s2:9100", 0));
        assert_eq!(silent_in_a_line(&s).unwrap(), "node http://s1:9100 and 1 more (--observe)");
    }

    #[test]
    fn what_bound_and_what_the_servers_did_are_said_in_a_line() {
        let s = observed();
        assert_eq!(
            in_a_line(&s).unwrap(),
            "network in 96 % (at its ceiling)   cpu 31 %   not observed: drives"
        );
        assert_eq!(
            bytes_in_a_line(&s).unwrap(),
            "50.0 MB/s written   50.0 MB/s between servers (1.00 a byte, 1.00 expected)"
        );
        assert_eq!(
            bound(&s).unwrap(),
            "; the servers' network in was at its ceiling (2 of 4): 96 % of 200Mbit/s"
        );
        // Where the verdict does not say it (the client was at its own ceiling), nor is it said here.
        assert_eq!(bound(&RunSummary { claims: Vec::new(), ..s.clone() }), None);
        // Of several windows no figure is of all.
        let mut several = s;
        let servers = several.servers.as_mut().unwrap();
        servers.windows.push(servers.windows[0].clone());
        assert_eq!((in_a_line(&several), bytes_in_a_line(&several), bound(&several)), (None, None, None));
    }

    #[test]
    fn what_was_not_observed_stands_in_the_table_of_ceilings_and_in_the_export() {
        let s = observed();
        let text: String = tables(&s).iter().map(|t| t.plain(160)).collect::<Vec<_>>().join("\n");
        let row = text.lines().find(|l| l.contains("the servers' drives")).unwrap();
        assert!(row.contains("not observed") && text.contains("1 drive(s) healing"), "{text}");
        let pool: Vec<&str> =
            text.lines().find(|l| l.contains("ec:2+2")).unwrap().split_whitespace().collect();
        assert_eq!(pool, ["data", "ec:2+2", "1.00", "2.20", "2.20", "2.00"]);
        let table = crate::export::servers_table(&[crate::run::RunReport::of(s.clone())]);
        let csv = table.csv_heads() + &table.csv_rows();
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(rows.len(), 5, "{csv}");
        assert_eq!(
            rows[1],
            ",1,network in,s1,,24000000,25000000,B/s,0.96,,0,,at its ceiling,cluster.toml,0,0"
        );
        assert!(rows[3].contains(",'=cmd(),"), "a host's name is no formula: {}", rows[3]);
        assert!(
            rows[4].starts_with(",,the servers' drives,") && rows[4].contains(",not observed,"),
            "{}",
            rows[4]
        );
        let page = crate::html(&[crate::run::RunReport::of(s)], crate::Layout::default()).unwrap();
        assert!(page.contains("<td>not observed</td>"), "also without a script");
    }

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
