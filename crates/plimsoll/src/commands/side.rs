//! What the servers did in the runs of one side, or of one size: processor time, traffic and the limiting resource.

use std::collections::BTreeMap;

use plimsoll_judge::alike::{Member, limit, window};
use plimsoll_model::analysis::{Scaling, ServerComparison};
use plimsoll_model::summary::RunSummary;
use plimsoll_model::summary::servers::{ServersLimit, ceiling_words};
use plimsoll_stats::compare;

fn cpu(s: &RunSummary) -> Option<f64> {
    window(s)?.daemons.iter().filter_map(|d| d.cpu_s_per_gib).reduce(|a, b| a + b)
}

fn bytes(s: &RunSummary, what: &str) -> Option<f64> {
    window(s)?.traffic.iter().find(|t| t.what == what)?.per_byte
}

type ServerMeasure = (&'static str, &'static str, fn(&RunSummary) -> Option<f64>);
const MEASURES: [ServerMeasure; 4] = [
    ("servers' CPU", "s/GiB", cpu),
    ("bytes to drives", "B/B", |s| bytes(s, "written to drives")),
    ("bytes from drives", "B/B", |s| bytes(s, "read from drives")),
    ("bytes between servers", "B/B", |s| bytes(s, "between servers")),
];

/// What servers used, where all runs of both sides tell of it.
pub fn servers(a: &[Member], b: &[Member], in_turn: bool) -> Vec<ServerComparison> {
    let all = |side: &[Member], of: fn(&RunSummary) -> Option<f64>| {
        side.iter().map(|m| of(&m.summary)).collect::<Option<Vec<f64>>>()
    };
    let row = |(measure, unit, of): &ServerMeasure| {
        let (a, b) = (all(a, *of)?, all(b, *of)?);
        let ratio = compare::compare(&a, &b, in_turn).known().map(|c| c.ratio);
        Some(ServerComparison { measure: (*measure).into(), unit: (*unit).into(), a, b, ratio })
    };
    MEASURES.iter().filter_map(row).collect()
}

/// Which resource bound at each size, and what it would let through: linear up to there is all that can be had.
pub fn with_ceilings(s: &mut Scaling, by_nodes: &BTreeMap<u32, Vec<Member>>, what: &str) {
    let mut told = Vec::new();
    for p in &mut s.points {
        let Some(runs) = by_nodes.get(&p.nodes) else { continue };
        let limits: Vec<&ServersLimit> =
            runs.iter().filter_map(limit).filter(|l| l.verdict == "one").collect();
        // More than half of the runs have to agree.
        let kind = limits
            .iter()
            .map(|l| &l.resource)
            .max_by_key(|r| limits.iter().filter(|l| l.resource == **r).count());
        let Some(kind) = kind.cloned() else { continue };
        let own: Vec<&&ServersLimit> = limits.iter().filter(|l| l.resource == kind).collect();
        if own.len() * 2 <= runs.len() {
            continue;
        }
        let share = own.iter().map(|l| l.share).sum::<f64>() / own.len() as f64;
        if share > 0.0 {
            p.ceiling_per_s = Some(p.per_s.value / share);
            told.push(format!(
                "{what}={}: {} at {:.0} % of {}",
                p.nodes,
                kind,
                100.0 * share,
                all_of(own[0])
            ));
        }
        p.limited_by = Some(kind);
    }
    if !told.is_empty() {
        s.verdict = format!("{} What bound: {}.", s.verdict, told.join("; "));
    }
}

/// `4 x 25Gbit/s`.
fn all_of(l: &ServersLimit) -> String {
    // A mean of lines has no digits that no line has.
    let is_line = l.unit == "B/s" && l.resource != "drive";
    let ceiling = if is_line { (l.ceiling / 125e3).round() * 125e3 } else { l.ceiling };
    match ceiling_words(&l.resource, &l.unit, ceiling) {
        None if l.of == 1 => "1 drive's time".to_owned(),
        None => format!("{} drives' time", l.of),
        Some(one) => format!("{} x {one}", l.of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_judge::alike::limits;
    use plimsoll_model::Estimate;
    use plimsoll_model::analysis::ScalingPoint;
    use plimsoll_model::summary::servers::ServersWindow;
    use plimsoll_model::summary::servers::{DaemonUse, ServersSummary, TrafficUse};

    /// A run on so many nodes, of which one kind of resource is used to this share.
    fn run(id: &str, cpu: f64, limit: Option<(&str, f64, u64)>) -> Member {
        let limit = limit.map(|(resource, share, of)| ServersLimit {
            verdict: "one".into(),
            at_ceiling: vec![format!("{resource}: eth0 of s1")],
            resource: resource.into(),
            share,
            of,
            ceiling: 12.5e9,
            unit: "B/s".into(),
            ..ServersLimit::default()
        });
        let window = ServersWindow {
            daemons: vec![DaemonUse {
                kind: "minio".into(),
                cpu_s_per_gib: Some(cpu),
                ..DaemonUse::default()
            }],
            traffic: vec![TrafficUse {
                what: "written to drives".into(),
                per_byte: Some(1.33),
                ..TrafficUse::default()
            }],
            limit,
            ..ServersWindow::default()
        };
        let servers = ServersSummary { windows: vec![window], ..ServersSummary::default() };
        let summary = RunSummary { id: id.into(), servers: Some(servers), ..RunSummary::default() };
        Member { summary, plan: serde_json::Value::Null }
    }

    #[test]
    fn each_side_has_its_cost_and_its_limit() {
        let a = [run("a1", 2.0, Some(("network in", 0.97, 4))), run("a2", 2.1, None), run("a3", 2.2, None)];
        let b = [run("b1", 4.0, Some(("cpu", 0.9, 4))), run("b2", 4.1, None), run("b3", 4.2, None)];
        let rows = servers(&a, &b, false);
        assert_eq!(
            rows.iter().map(|r| r.measure.as_str()).collect::<Vec<_>>(),
            ["servers' CPU", "bytes to drives"]
        );
        assert!((rows[0].ratio.unwrap().value - 0.51).abs() < 0.02, "{:?}", rows[0]);
        let f = limits((&a, "EC:2"), (&b, "EC:4")).unwrap();
        for part in ["EC:2 by network in: eth0 of s1 (1 of 3 runs)", "EC:4 by cpu"] {
            assert!(f.text.contains(part), "{}", f.text);
        }
        assert!(limits((&a[1..], "A"), (&b[1..], "B")).is_none());
        // Where one run does not tell, nothing is said.
        let silent = Member { summary: RunSummary::default(), plan: serde_json::Value::Null };
        assert!(servers(&[silent], &b, false).is_empty());
    }

    /// Rates by the law of the network: N links, of which the runs use this part.
    #[test]
    fn linear_up_to_what_the_binding_resource_lets_through() {
        let point = |nodes: u32, rate: f64| ScalingPoint {
            nodes,
            per_s: Estimate::exact(rate),
            efficiency: None,
            limited_by: None,
            ceiling_per_s: None,
        };
        let mut s = Scaling {
            name: String::new(),
            unit: "bytes/s".into(),
            points: vec![point(1, 12e9), point(2, 24e9), point(4, 30e9)],
            predictions: Vec::new(),
            peak_nodes: None,
            verdict: "said.".into(),
        };
        let full = |n: u64| run("r", 1.0, Some(("network out", 0.96, n)));
        let by_nodes = BTreeMap::from([
            (1, vec![full(1)]),
            (2, vec![full(2)]),
            // One of two is no more than half.
            (4, vec![full(4), run("r", 1.0, None)]),
        ]);
        with_ceilings(&mut s, &by_nodes, "nodes");
        assert_eq!(s.points[0].limited_by.as_deref(), Some("network out"));
        assert!((s.points[1].ceiling_per_s.unwrap() - 25e9).abs() < 1e6);
        assert_eq!((s.points[2].limited_by.clone(), s.points[2].ceiling_per_s), (None, None));
        assert!(
            s.verdict.contains("What bound: nodes=1: network out at 96 % of 1 x 100Gbit/s; nodes=2:"),
            "{}",
            s.verdict
        );
    }
}
