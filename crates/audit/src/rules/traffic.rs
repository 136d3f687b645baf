//! What redundancy makes of the clients' bytes on links and drives, all services on the same nodes; headers come on top.

use plimsoll_model::cluster::traffic::{ClusterEngine, DataSpread};

use super::of_table;
use crate::AuditError;
use crate::facts::{AuditFacts, EngineFact, LimitFact, OpFact, TrafficFact, figure};
use crate::quantity::Quantity;
use crate::remark::{AuditReport, percent_off, short};
use crate::unit::Dimension;

/// A node's part, in bytes a second: the busier direction of each.
struct NodeTraffic {
    payload: f64,
    between: f64,
    /// Between nodes and with clients, in the direction in which both add up.
    together: f64,
    drives: f64,
}

const GBIT: f64 = 1.25e8;

pub(super) fn check(facts: &AuditFacts, report: &mut AuditReport) -> Result<(), AuditError> {
    for (i, fact) in facts.traffic.iter().enumerate() {
        of_cluster(fact, &format!("map, traffic {}", i + 1), report)?;
    }
    Ok(())
}

fn of_node(t: &TrafficFact, place: &str, rate: f64) -> Result<NodeTraffic, AuditError> {
    let n = t.nodes;
    let payload = rate / n;
    let sound = |v: Option<f64>| v.is_none_or(|v| v.is_finite() && v >= 1.0);
    if !(n >= 1.0 && n.is_finite() && sound(t.k) && sound(t.m) && sound(t.replicas)) {
        return Err(AuditError::new(place, "nodes, k, m and replicas are 1 or more", "Correct the number."));
    }
    let spread = |data: f64, parity: f64, is_copies: bool| {
        let engine = match t.engine {
            EngineFact::Minio => ClusterEngine::Minio,
            EngineFact::Ceph => ClusterEngine::Ceph,
        };
        let s = DataSpread { engine, nodes: n, data, parity, is_copies };
        if t.op == OpFact::Put { s.put() } else { s.get() }
    };
    let made = match (t.engine, t.k.zip(t.m), t.replicas) {
        (_, Some((k, m)), None) => spread(k, m, false),
        (EngineFact::Ceph, None, Some(r)) => spread(1.0, r - 1.0, true),
        _ => {
            return Err(AuditError::new(
                place,
                "the redundancy is not known",
                "Give k and m of the erasure code, or (for ceph) replicas; not both.",
            ));
        }
    };
    let (between, drives) = (payload * made.between, payload * made.drives);
    let clients = if t.clients_inside { 0.0 } else { payload };
    Ok(NodeTraffic { payload, between, together: between + clients, drives })
}

fn gbit(bytes: f64) -> String {
    format!("{} Gbit/s", short(bytes / GBIT))
}

fn of_cluster(t: &TrafficFact, place: &str, report: &mut AuditReport) -> Result<(), AuditError> {
    let rate = figure(place, &t.rate, Dimension::BYTES_PER_S)?;
    let link = figure(place, &t.link, Dimension::BYTES_PER_S)?.value;
    let node = of_node(t, place, rate.value)?;
    report.checked("traffic", 1);
    let crosses = if t.east_west_apart { node.between.max(node.payload) } else { node.together };
    if crosses > link * 1.005 {
        let what = if t.clients_inside { "between nodes" } else { "between nodes and with clients" };
        report.remarks.push(of_table(
            "traffic",
            &t.name,
            format!("{} over {} nodes with links of {}", t.rate, short(t.nodes), t.link),
            format!("{} a node {what}: {:.0} % of the link", gbit(crosses), 100.0 * crosses / link),
            "traffic between nodes has links of its own, or the links are faster than is said".into(),
        ));
    }
    if let Some(text) = &t.printed {
        printed_network(t, &node, text, figure(place, text, Dimension::BYTES_PER_S)?, report);
    }
    limit(t, place, &node, link, crosses, report)
}

/// The network figure that was published, against what it can be.
fn printed_network(
    t: &TrafficFact,
    node: &NodeTraffic,
    text: &str,
    printed: Quantity,
    report: &mut AuditReport,
) {
    report.checked("traffic", 1);
    let is = |v: f64| {
        (printed.value / v - 1.0).abs() <= 0.02 || printed.meets(Quantity::exact(v, printed.dimension))
    };
    let with_clients = node.between + node.payload;
    if is(with_clients) && !t.clients_inside {
        return;
    }
    let (expected, why) = if is(node.between) {
        (
            format!(
                "{} between nodes alone, {} with clients on the wire",
                gbit(node.between),
                gbit(with_clients)
            ),
            "the clients run in the servers and their bytes cross no wire: the rate says nothing of clients elsewhere",
        )
    } else {
        (
            format!(
                "{} between nodes ({}), {} with clients on the wire",
                gbit(node.between),
                percent_off(printed.value, node.between),
                gbit(with_clients)
            ),
            "fits neither: it was taken over another time than the rate, or counts something else",
        )
    };
    report.remarks.push(of_table(
        "traffic",
        &t.name,
        format!("{text} of network traffic a node"),
        expected,
        why.into(),
    ));
}

/// Which of both is nearer to its ceiling.
fn limit(
    t: &TrafficFact,
    place: &str,
    node: &NodeTraffic,
    link: f64,
    crosses: f64,
    report: &mut AuditReport,
) -> Result<(), AuditError> {
    let Some(said) = t.limit else { return Ok(()) };
    let network = crosses / link;
    let Some(text) = &t.drives else {
        let clients = node.payload / link;
        report.checked("traffic", 1);
        if said == LimitFact::Network && clients < 0.9 {
            report.remarks.push(of_table(
                "traffic",
                &t.name,
                format!("the network is the limit, by {} a node", gbit(node.payload)),
                format!("{:.0} % of the link is the clients' part; {:.0} % with what redundancy adds", 100.0 * clients, 100.0 * network),
                "the clients' bytes alone do not fill the link: the limit is the traffic between nodes, or is elsewhere".into(),
            ));
        }
        return Ok(());
    };
    let ceiling = figure(place, text, Dimension::BYTES_PER_S)?.value;
    let drives = node.drives / ceiling;
    report.checked("traffic", 1);
    let nearer = if drives > network { LimitFact::Drives } else { LimitFact::Network };
    if nearer != said {
        let word = |l| if l == LimitFact::Drives { "the drives" } else { "the network" };
        report.remarks.push(of_table(
            "traffic",
            &t.name,
            format!("{} as the limit", word(said)),
            format!(
                "drives {:.0} % of {text} a node ({} GiB/s in all), network {:.0} % of {}",
                100.0 * drives,
                short(node.drives * t.nodes / 1_073_741_824.0),
                100.0 * network,
                t.link
            ),
            format!("{} are nearer to their ceiling", word(nearer)),
        ));
    }
    Ok(())
}
