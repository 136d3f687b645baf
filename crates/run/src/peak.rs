//! What a load is at most, said before it starts where it leaves this machine: whoever shares the storage and the network with it will
//! feel it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_lower::{self as lower, Agent};
use plimsoll_model::plan::{ControllerSpec, Pacing, Stage, TargetSpec, Workload};
use plimsoll_model::units::significant;
use plimsoll_model::{HostFacts, Plan};

/// Words that stand for a server that we start ourselves, on this machine.
const OWN_SERVERS: [&str; 2] = ["embedded", "canned"];
/// Of a load that is found out as it goes on nobody knows the bound.
const SEARCH: &str = "a search, as many ops in flight as bring more, as fast as they are answered";

/// Who puts the load on.
#[derive(Debug, Clone, Copy)]
pub struct Crowd<'a> {
    /// Where the agents are, one each.
    pub machines: &'a [&'a HostFacts],
    /// The agents.
    pub roll: &'a [Agent],
    /// This process is the agent.
    pub alone: bool,
}

/// One line, or none where nothing leaves the loopback. `first`: the stage that is about to be made ready; `reached`: endpoints by target, as
/// far as they were found out.
pub fn peak(
    plan: &Plan,
    first: &Stage,
    reached: &BTreeMap<String, Vec<String>>,
    crowd: Crowd<'_>,
) -> Option<String> {
    let Crowd { machines, alone, .. } = crowd;
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
    let before = written_before(plan, first, &far, crowd.roll);
    Some(format!(
        "load on {}{more} from {from}: {}{}; {}",
        shown.join(", "),
        offered.words(plan.controller.as_ref()),
        before.map_or(String::new(), |text| format!("; {text}")),
        line_rate(machines, alone)
    ))
}

/// What is put there for a stage to read or delete, before its load: nothing paces it. Part of it may be there already.
fn written_before(
    plan: &Plan,
    stage: &Stage,
    far: &BTreeMap<&str, Vec<String>>,
    roll: &[Agent],
) -> Option<String> {
    let (mut objects, mut most) = (0u64, 0u32);
    for (i, w) in (0u16..).zip(&stage.workloads) {
        let Ok((name, spec)) = plan.target_of(w) else { continue };
        if !far.contains_key(name) || w.existing().is_some() {
            continue;
        }
        let workers = lower::parts(plan, w, (name, spec), roll).len() as u32;
        let keys = lower::key_plan(w, 0, i, workers);
        for count in [keys.dataset, keys.victims].into_iter().filter(|n| *n > 0) {
            let parts = lower::fill_parts(plan, w, count, roll).ok()?;
            objects = objects.saturating_add(count);
            most = most.max(parts.iter().map(|p| p.slots).sum());
        }
    }
    let several = plan.controller.is_some() || plan.stages.len() > 1;
    let when = if several { "before the first stage" } else { "before that" };
    (objects > 0).then(|| {
        let s = if objects == 1 { "" } else { "s" };
        format!(
            "{when} up to {} object{s} are written, up to {} at a time",
            grouped(objects),
            grouped(most.into())
        )
    })
}

/// What the load of a stage asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Offered {
    in_flight: u64,
    /// How many workloads there are: a sweep sets the ops in flight of each.
    workloads: u64,
    /// Absent: something is not paced.
    ops_per_s: Option<f64>,
    bytes_per_s: f64,
}

impl Offered {
    /// Of the workloads that go far; none do: nothing.
    fn of(plan: &Plan, stage: &Stage, far: &BTreeMap<&str, Vec<String>>) -> Option<Self> {
        let goes_far = |w: &&Workload| plan.target_of(w).is_ok_and(|(name, _)| far.contains_key(name));
        let all: Vec<&Workload> = stage.workloads.iter().filter(goes_far).collect();
        let none = Self { in_flight: 0, workloads: 0, ops_per_s: Some(0.0), bytes_per_s: 0.0 };
        let add = |sum: Self, w: &&Workload| {
            let (ops, bytes) = match &w.pacing {
                Pacing::Closed => (None, 0.0),
                Pacing::Constant(r) | Pacing::Capped(r) | Pacing::Poisson(r) => (Some(r.0), 0.0),
                Pacing::Bytes(r) => (Some(0.0), r.0),
                Pacing::Ramp { from, to, .. } => (Some(from.0.max(to.0)), 0.0),
            };
            Self {
                in_flight: sum.in_flight + u64::from(w.in_flight()),
                workloads: sum.workloads + 1,
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
            workloads: self.workloads.max(other.workloads),
            ops_per_s: self.ops_per_s.zip(other.ops_per_s).map(|(a, b)| a.max(b)),
            bytes_per_s: self.bytes_per_s.max(other.bytes_per_s),
        }
    }

    fn words(self, controller: Option<&ControllerSpec>) -> String {
        let in_flight = |n: u64| format!("{} ops in flight", grouped(n));
        match controller {
            Some(ControllerSpec::Sweep { concurrencies, .. }) if !concurrencies.is_empty() => {
                let most =
                    concurrencies.iter().max().map_or(self.in_flight, |n| u64::from(*n) * self.workloads);
                return format!("at most {}, as fast as they are answered", in_flight(most));
            }
            Some(ControllerSpec::Saturation { max_concurrency: Some(most), .. }) => {
                return format!("at most {}, as fast as they are answered", in_flight(u64::from(*most)));
            }
            Some(ControllerSpec::Sweep { sizes, .. }) if sizes.is_empty() => {
                return SEARCH.into();
            }
            Some(ControllerSpec::Saturation { .. } | ControllerSpec::Limits { .. }) => {
                return SEARCH.into();
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

/// What their interfaces carry together: nobody can offer more, where the speed of each is known. Of a network card whose speed is not, what is
/// known of the others is the least.
fn line_rate(machines: &[&HostFacts], alone: bool) -> String {
    let mut by_host: BTreeMap<(&str, &str), (u64, usize)> = BTreeMap::new();
    for m in machines {
        let speeds = m.nics.iter().filter(|(name, _)| *name != "lo").map(|(_, mbit)| mbit.filter(|n| *n > 0));
        let (known, unknown): (Vec<Option<u64>>, Vec<_>) = speeds.partition(Option::is_some);
        // A machine that tells of none has one.
        let unknown = unknown.len() + usize::from(known.is_empty() && unknown.is_empty());
        by_host.insert((&m.host, &m.boot_id), (known.into_iter().flatten().sum(), unknown));
    }
    let whose = if alone { "its" } else { "their" };
    let (all, unknown) = by_host.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let gbit = significant(all as f64 / 1e3, 3);
    match (all, unknown) {
        (0, _) => format!("the speed of {whose} network is not known"),
        (_, 0) => format!("{whose} network carries {gbit} Gbit/s at most"),
        (_, n) => {
            let s = if n == 1 { "" } else { "s" };
            format!(
                "{whose} network carries {gbit} Gbit/s at least ({n} interface{s} of unknown speed beside)"
            )
        }
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

    const WORK: &str = "[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { put = 1 }\nconcurrency = 1200\n";

    fn machine(host: &str, mbit: Option<u64>) -> HostFacts {
        let nics = [("lo".to_owned(), Some(99)), ("eth0".to_owned(), mbit)].into();
        HostFacts { host: host.into(), nics, ..HostFacts::default() }
    }

    fn said(plan: &Plan, machines: &[HostFacts], alone: bool) -> Option<String> {
        let first = plan.stages.first().or_else(|| plan.controller.as_ref()?.templates().next()).unwrap();
        let of = |(n, m): (usize, &HostFacts)| Agent {
            name: format!("lg-{n}"),
            host: m.host.clone(),
            cores: 4,
            beside: BTreeSet::new(),
        };
        let roll: Vec<Agent> = machines.iter().enumerate().map(of).collect();
        let machines: Vec<&HostFacts> = machines.iter().collect();
        peak(plan, first, &BTreeMap::new(), Crowd { machines: &machines, roll: &roll, alone })
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
            told.contains("from 2 agents")
                && told.contains("25.0 Gbit/s at least (1 interface of unknown speed beside)"),
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

    /// Of what is known of one network card nothing follows for the other.
    #[test]
    fn one_network_card_of_unknown_speed_leaves_no_bound() {
        let mut one = machine("a", Some(10_000));
        one.nics.insert("ib0".into(), None);
        let told = said(&plan("http://10.0.0.7:9000", WORK), &[one], true).unwrap();
        assert!(
            told.ends_with("carries 10.0 Gbit/s at least (1 interface of unknown speed beside)"),
            "{told}"
        );
    }

    #[test]
    fn what_is_written_before_the_load_is_told_with_it() {
        let two = [machine("a", Some(25_000)), machine("b", Some(25_000))];
        let reads = WORK.replace("put = 1", "get = 1").replace("1200", "4");
        let reads = format!("{reads}[stage.workload.object]\nobjects = 5000\n");
        let told = said(&plan("http://10.0.0.7:9000", &reads), &two, false).unwrap();
        assert!(
            told.contains(": at most 4 ops in flight, as fast as they are answered; before that up to 5,000 objects are written, up to 16 at a time; their"),
            "{told}"
        );
        // What is there already is written by nobody.
        assert!(!said(&plan("http://10.0.0.7:9000", WORK), &two, false).unwrap().contains("written"));
    }

    #[test]
    fn in_a_sweep_each_workload_has_its_ops_in_flight() {
        let sweep = "[controller]\nkind = \"sweep\"\nops = [\"put\"]\nsizes = [\"4KiB\"]\nconcurrencies = [8, 64]\n[controller.template]\n";
        let w = "[[controller.template.workload]]\nname = \"NAME\"\nmix = { put = 1 }\n";
        let both = format!("{sweep}{}{}", w.replace("NAME", "a"), w.replace("NAME", "b"));
        let told = said(&plan("http://10.0.0.7:9000", &both), &[machine("a", None)], true).unwrap();
        assert!(told.contains("at most 128 ops in flight"), "{told}");
        let found = both.replace("sizes = [\"4KiB\"]\nconcurrencies = [8, 64]", "sizes = []");
        let told = said(&plan("http://10.0.0.7:9000", &found), &[machine("a", None)], true).unwrap();
        assert!(told.contains("a search, as many"), "{told}");
    }
}
