//! What a load is at most, said before it starts where it leaves this machine: whoever shares the storage and the network with it will
//! feel it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::plan::{ControllerSpec, Pacing, Stage, TargetSpec, Workload};
use plimsoll_model::units::significant;
use plimsoll_model::{HostFacts, Plan};

/// Words that stand for a server that we start ourselves, on this machine.
const OWN_SERVERS: [&str; 2] = ["embedded", "canned"];

/// One line, or none where nothing leaves the loopback. `reached`: endpoints by target, as far as they were found out; `machines`: where
/// the agents are, one each; `alone`: this process is the agent.
pub fn peak(
    plan: &Plan,
    reached: &BTreeMap<String, Vec<String>>,
    machines: &[&HostFacts],
    alone: bool,
) -> Option<String> {
    let far = far_targets(plan, reached);
    if far.is_empty() {
        return None;
    }
    let templates = plan.controller.iter().flat_map(ControllerSpec::templates);
    let of_stage = |stage: &Stage| Offered::of(plan, stage, &far);
    let offered = plan.stages.iter().chain(templates).filter_map(of_stage).reduce(Offered::or)?;
    let hosts: BTreeSet<&str> = far.values().flatten().map(String::as_str).collect();
    let from = match machines.len() {
        _ if alone => "this machine".to_owned(),
        1 => "1 agent".to_owned(),
        n => format!("{n} agents"),
    };
    let shown: Vec<&str> = hosts.iter().take(4).copied().collect();
    let more = if hosts.len() > 4 { format!(" and {} more", hosts.len() - 4) } else { String::new() };
    Some(format!(
        "load on {}{more} from {from}: {}; {}",
        shown.join(", "),
        offered.words(plan.controller.as_ref()),
        line_rate(machines, alone)
    ))
}

/// What the load of a stage asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Offered {
    in_flight: u64,
    /// Absent: something is not paced.
    ops_per_s: Option<f64>,
    bytes_per_s: f64,
}

impl Offered {
    /// Of the workloads that go far; none do: nothing.
    fn of(plan: &Plan, stage: &Stage, far: &BTreeMap<&str, Vec<String>>) -> Option<Self> {
        let goes_far = |w: &&Workload| plan.target_of(w).is_ok_and(|(name, _)| far.contains_key(name));
        let all: Vec<&Workload> = stage.workloads.iter().filter(goes_far).collect();
        let none = Self { in_flight: 0, ops_per_s: Some(0.0), bytes_per_s: 0.0 };
        let add = |sum: Self, w: &&Workload| {
            let (ops, bytes) = match &w.pacing {
                Pacing::Closed => (None, 0.0),
                Pacing::Constant(r) | Pacing::Capped(r) | Pacing::Poisson(r) => (Some(r.0), 0.0),
                Pacing::Bytes(r) => (Some(0.0), r.0),
                Pacing::Ramp { from, to, .. } => (Some(from.0.max(to.0)), 0.0),
            };
            Self {
                in_flight: sum.in_flight + u64::from(w.in_flight()),
                ops_per_s: sum.ops_per_s.zip(ops).map(|(a, b)| a + b),
                bytes_per_s: sum.bytes_per_s + bytes,
            }
        };
        (!all.is_empty()).then(|| all.iter().fold(none, add))
    }

    /// The more of both.
    fn or(self, other: Self) -> Self {
        Self {
            in_flight: self.in_flight.max(other.in_flight),
            ops_per_s: self.ops_per_s.zip(other.ops_per_s).map(|(a, b)| a.max(b)),
            bytes_per_s: self.bytes_per_s.max(other.bytes_per_s),
        }
    }

    fn words(self, controller: Option<&ControllerSpec>) -> String {
        let in_flight = |n: u64| format!("{} ops in flight", grouped(n));
        match controller {
            Some(ControllerSpec::Sweep { concurrencies, .. }) if !concurrencies.is_empty() => {
                let most = concurrencies.iter().max().map_or(self.in_flight, |n| u64::from(*n));
                return format!("at most {}, as fast as they are answered", in_flight(most));
            }
            Some(ControllerSpec::Saturation { max_concurrency: Some(most), .. }) => {
                return format!("at most {}, as fast as they are answered", in_flight(u64::from(*most)));
            }
            Some(ControllerSpec::Saturation { .. } | ControllerSpec::Limits { .. }) => {
                return "a search, as many ops in flight as bring more, as fast as they are answered".into();
            }
            _ => {}
        }
        let mut rates = Vec::new();
        if let Some(ops) = self.ops_per_s.filter(|r| *r > 0.0) {
            rates.push(format!("{} op/s", significant(ops, 4)));
        }
        if self.bytes_per_s > 0.0 {
            rates.push(format!("{} MB/s", significant(self.bytes_per_s / 1e6, 4)));
        }
        match self.ops_per_s {
            None => format!("at most {}, as fast as they are answered", in_flight(self.in_flight)),
            Some(_) => format!("at most {}, {}", rates.join(" and "), in_flight(self.in_flight)),
        }
    }
}

/// 1,234,567.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|c| std::str::from_utf8(c).unwrap_or_default()).collect();
    groups.join(",")
}

/// Targets whose endpoints are not this machine's own, with the hosts that are not.
fn far_targets<'a>(
    plan: &'a Plan,
    reached: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<&'a str, Vec<String>> {
    let mut far = BTreeMap::new();
    for (name, spec) in &plan.targets {
        let TargetSpec::S3(s3) = spec else { continue };
        let urls = reached.get(name).filter(|r| !r.is_empty()).unwrap_or(&s3.endpoints);
        if urls.iter().any(|e| OWN_SERVERS.contains(&e.as_str())) {
            continue;
        }
        let hosts: Vec<String> = urls.iter().map(|u| host_of(u).to_owned()).filter(|h| !is_here(h)).collect();
        if !hosts.is_empty() {
            far.insert(name.as_str(), hosts);
        }
    }
    far
}

/// Of a URL, without its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// What their interfaces carry together: nobody can offer more.
fn line_rate(machines: &[&HostFacts], alone: bool) -> String {
    let mut by_host: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for m in machines {
        let speeds = m.nics.iter().filter(|(name, _)| *name != "lo").filter_map(|(_, mbit)| *mbit);
        by_host.insert((&m.host, &m.boot_id), speeds.sum());
    }
    let whose = if alone { "its" } else { "their" };
    let unknown = by_host.values().filter(|mbit| **mbit == 0).count();
    let all: u64 = by_host.values().sum();
    match unknown {
        n if n == by_host.len() => format!("the speed of {whose} network is not known"),
        0 => format!("{whose} network carries {} Gbit/s at most", significant(all as f64 / 1e3, 3)),
        n => format!(
            "their network carries {} Gbit/s at most, {n} of unknown speed not counted",
            significant(all as f64 / 1e3, 3)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(endpoint: &str, rest: &str) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"{endpoint}\"]\nbucket = \"b\"\n{rest}"
        ))
        .unwrap()
    }

    const WORK: &str = "[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { get = 1 }\nconcurrency = 1200\n";

    fn machine(host: &str, mbit: Option<u64>) -> HostFacts {
        let nics = [("lo".to_owned(), Some(99)), ("eth0".to_owned(), mbit)].into();
        HostFacts { host: host.into(), nics, ..HostFacts::default() }
    }

    fn said(plan: &Plan, machines: &[HostFacts], alone: bool) -> Option<String> {
        peak(plan, &BTreeMap::new(), &machines.iter().collect::<Vec<_>>(), alone)
    }

    #[test]
    fn what_stays_on_this_machine_is_not_told() {
        let one = [machine("a", None)];
        for here in ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000", "embedded"] {
            assert_eq!(said(&plan(here, WORK), &one, true), None, "{here}");
        }
        let null = "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        assert_eq!(said(&Plan::from_toml(null).unwrap(), &one, true), None);
    }

    #[test]
    fn what_is_not_paced_is_bounded_by_what_is_in_flight_and_the_network() {
        let plan = plan("https://s3.example.net:9000", WORK);
        assert_eq!(
            said(&plan, &[machine("a", Some(10_000))], true).unwrap(),
            "load on s3.example.net from this machine: at most 1,200 ops in flight, as fast as they are answered; its network \
             carries 10.0 Gbit/s at most"
        );
        let two = [machine("a", Some(25_000)), machine("b", None)];
        let told = said(&plan, &two, false).unwrap();
        assert!(
            told.contains("from 2 agents") && told.contains("25.0 Gbit/s at most, 1 of unknown speed"),
            "{told}"
        );
        let same = [machine("a", Some(25_000)), machine("a", Some(25_000))];
        assert!(said(&plan, &same, false).unwrap().ends_with("their network carries 25.0 Gbit/s at most"));
    }

    #[test]
    fn a_rate_is_told_where_all_is_paced() {
        let paced = format!("{WORK}pacing = {{ constant = \"500/s\" }}\n");
        let told = said(&plan("http://10.0.0.7:9000", &paced), &[machine("a", None)], true).unwrap();
        assert_eq!(
            told,
            "load on 10.0.0.7 from this machine: at most 500.0 op/s, 1,200 ops in flight; the speed of its network is not known"
        );
        let search = WORK.replace("[[stage]]", "[controller]\nkind = \"saturation\"\n[controller.template]");
        let search = search
            .replace("[[stage.workload]]", "[[controller.template.workload]]")
            .replace("concurrency = 1200\n", "");
        let told = said(&plan("http://10.0.0.7:9000", &search), &[machine("a", None)], true).unwrap();
        assert!(told.contains("a search, as many ops in flight as bring more"), "{told}");
    }
}
