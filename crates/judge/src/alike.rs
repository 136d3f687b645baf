//! Whether runs that are held against each other are alike but for what is compared: their plans, their machines, the tools that measured them, and
//! what limited them. For whoever compares: a command, and a page.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::count::counted;
use plimsoll_model::observed::is_nic;
use plimsoll_model::summary::RunSummary;
use plimsoll_model::summary::servers::{ServersLimit, ServersWindow};
use plimsoll_model::{Environment, Finding, HostFacts, Level, Plan};

/// A run as it is compared: what it was asked to do, and what it gave.
#[derive(Debug, Clone)]
pub struct Member {
    /// What it gave.
    pub summary: RunSummary,
    /// Its plan as JSON without what may differ between repeats: name, seed, labels.
    pub plan: serde_json::Value,
}

impl Member {
    /// What may differ between repeats is left out of the plan.
    pub fn of(summary: RunSummary, mut plan: Plan) -> Self {
        // A cluster that a run brought along is asked for by its target; where it was is of that run alone.
        if plan.describes_its_own_cluster() {
            plan.options.cluster = None;
        }
        let mut plan = serde_json::to_value(plan).unwrap_or_default();
        if let Some(object) = plan.as_object_mut() {
            ["name", "seed", "labels", "expect"].iter().for_each(|k| drop(object.remove(*k)));
        }
        if summary.environment.imported.is_some() {
            without_ends(&mut plan);
        }
        Self { summary, plan }
    }
}

/// All that is found of two sides, each with its name. None of them is empty.
pub fn findings(a: (&[Member], &str), b: (&[Member], &str)) -> Vec<Finding> {
    let mut out: Vec<Finding> = [a, b].into_iter().filter_map(|(side, name)| within(side, name)).collect();
    out.extend(tools(a.0.iter().chain(b.0)));
    let (Some(one), Some(other)) = (a.0.first(), b.0.first()) else { return out };
    let factor = differences(&one.plan, &other.plan);
    let text = match factor.len() {
        0 => "Both plans are the same: the difference is not in them.".to_owned(),
        _ => format!("The plans differ in: {}.", factor.join("; ")),
    };
    out.push(Finding::new("F41", "factor", Level::Info, text));
    out.extend(environments(one, other));
    out.extend(limits(a, b));
    out
}

/// The one window of a run: of several there is no figure for all.
pub fn window(s: &RunSummary) -> Option<&ServersWindow> {
    match &s.servers.as_ref()?.windows[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// What is taken for repeats of one configuration has to be of one plan.
pub fn within(side: &[Member], name: &str) -> Option<Finding> {
    let mut all: Vec<String> =
        side.iter().skip(1).flat_map(|m| differences(&side[0].plan, &m.plan)).collect();
    all.dedup();
    (!all.is_empty()).then(|| {
        let text = format!(
            "The runs of {name} are not repeats of each other: {}. Use runs of the same plan.",
            all.join("; ")
        );
        Finding::new("V16", "configuration_differs", Level::Invalid, text)
    })
}

/// Paths at which two plans differ, with both values.
fn differences(a: &serde_json::Value, b: &serde_json::Value) -> Vec<String> {
    let mut out = Vec::new();
    walk("", a, b, &mut out);
    out
}

fn walk(path: &str, a: &serde_json::Value, b: &serde_json::Value, out: &mut Vec<String>) {
    use serde_json::Value;
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (a, b) {
        _ if a == b => {}
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
            keys.sort();
            keys.dedup();
            for k in keys {
                walk(&below(k), x.get(k).unwrap_or(&Value::Null), y.get(k).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (i, (x, y)) in x.iter().zip(y).enumerate() {
                walk(&format!("{path}[{i}]"), x, y, out);
            }
        }
        _ => out.push(format!("{path} ({} and {})", short(a), short(b))),
    }
}

fn short(v: &serde_json::Value) -> String {
    let text = match v {
        serde_json::Value::Null => "nothing".to_owned(),
        serde_json::Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    if text.chars().count() > 60 { text.chars().take(57).collect::<String>() + "..." } else { text }
}

/// When an imported run ended is what it did, not what was asked for.
fn without_ends(plan: &mut serde_json::Value) {
    match plan {
        serde_json::Value::Object(all) => {
            all.remove("stop");
            all.values_mut().for_each(without_ends);
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(without_ends),
        _ => {}
    }
}

/// Runs that different tools measured: what differs may be the tools.
fn tools<'a>(runs: impl Iterator<Item = &'a Member>) -> Option<Finding> {
    let who = |m: &Member| m.summary.environment.imported.as_ref().map_or("plimsoll".to_owned(), |i| i.who());
    let all: BTreeSet<String> = runs.map(who).collect();
    (all.len() > 1).then(|| {
        let text = format!(
            "The runs were measured by different tools ({}): a difference may be theirs, in what they count and time as well as in \
             what they cost. Measure both sides with one tool.",
            all.into_iter().collect::<Vec<_>>().join(", ")
        );
        Finding::new("F90", "tools_differ", Level::Qualified, text)
    })
}

/// What limited its servers.
pub fn limit(m: &Member) -> Option<&ServersLimit> {
    window(&m.summary)?.limit.as_ref()
}

/// What was the limit on each side, in how many of its runs.
pub fn limits(a: (&[Member], &str), b: (&[Member], &str)) -> Option<Finding> {
    let of = |(side, name): (&[Member], &str)| {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for l in side.iter().filter_map(limit) {
            let what = match l.verdict.as_str() {
                "none" if l.at_ceiling.is_empty() => "nothing that was observed".to_owned(),
                _ => l.at_ceiling.join(" and "),
            };
            *seen.entry(what).or_default() += 1;
        }
        let all = side.len();
        let each: Vec<String> =
            seen.iter().map(|(what, n)| format!("{what} ({n} of {})", counted(all, "run"))).collect();
        (!each.is_empty()).then(|| format!("{name} by {}", each.join(", or ")))
    };
    let told: Vec<String> = [of(a), of(b)].into_iter().flatten().collect();
    (!told.is_empty()).then(|| {
        let text = format!("As far as the servers were observed, limited was {}.", told.join("; "));
        Finding::new("F98", "limits_of_sides", Level::Info, text)
    })
}

/// What differs beside the plans: machines, kernels and their settings, versions, mounts.
fn environments(a: &Member, b: &Member) -> Option<Finding> {
    const MOST: usize = 12;
    let (a, b) = (facts(&a.summary.environment), facts(&b.summary.environment));
    let mut all = differences(&a, &b);
    if all.is_empty() {
        return None;
    }
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let text = format!(
        "Beside the plans these differ, and a difference of the results may be theirs: {}{more}.",
        all.join("; ")
    );
    Some(Finding::new("F99", "environment_differs", Level::Qualified, text))
}

/// What may change a result, and is no name or number of one run alone.
fn facts(e: &Environment) -> serde_json::Value {
    let of_machine = |h: &HostFacts| {
        let identity: BTreeMap<&String, &String> = h
            .identity
            .iter()
            .filter(|(k, _)| ["cloud", "instance_type", "region", "zone"].contains(&k.as_str()))
            .collect();
        // What comes and goes with containers is of no run.
        let nics: BTreeMap<&String, &Option<u64>> = h.nics.iter().filter(|(n, _)| is_nic(n)).collect();
        serde_json::json!({
            "kernel": h.kernel, "cpu_model": h.cpu_model, "cpu_count": h.cpu_count, "memory_bytes": h.memory_bytes,
            "memory_limit_bytes": h.memory_limit_bytes, "cpu_quota_cores": h.cpu_quota_cores, "nics": nics,
            "settings": h.settings, "identity": identity,
        })
    };
    // Places and serial numbers are of one device; what it is, and how it is mounted, is of its kind.
    let of_device = |d: &BTreeMap<String, String>| {
        let kept = [
            "model",
            "size_bytes",
            "scheduler",
            "rotational",
            "write_cache",
            "logical_block_bytes",
            "file_system",
        ];
        kept.iter().filter_map(|k| Some((*k, d.get(*k)?.clone()))).collect::<BTreeMap<_, _>>()
    };
    let mut devices: Vec<_> = e.devices.values().map(of_device).collect();
    devices.sort();
    devices.dedup();
    let mut servers: Vec<&String> = e.servers.values().collect();
    servers.sort();
    servers.dedup();
    let machines: BTreeMap<String, serde_json::Value> =
        e.agent_hosts().iter().map(|a| (a.agent.clone(), of_machine(&a.machine))).collect();
    serde_json::json!({
        "plimsoll": e.plimsoll_version, "commit": e.commit, "ring": e.ring, "servers": servers, "devices": devices, "client": machines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(id: &str) -> Member {
        let summary = RunSummary { id: id.into(), ..RunSummary::default() };
        Member { summary, plan: serde_json::Value::Null }
    }

    #[test]
    fn plans_differ_where_they_differ() {
        let a = json!({"targets": {"t": {"endpoint": "http://a", "put_headers": {}}}, "stage": [1, 2]});
        let b =
            json!({"targets": {"t": {"endpoint": "http://b", "put_headers": {"x": "EC"}}}, "stage": [1, 3]});
        assert_eq!(
            differences(&a, &b),
            [
                "stage[1] (2 and 3)",
                "targets.t.endpoint (http://a and http://b)",
                "targets.t.put_headers.x (nothing and EC)"
            ]
        );
        assert!(differences(&a, &a).is_empty());
    }

    #[test]
    fn what_differs_beside_the_plans() {
        let (mut a, mut b) = (run("a"), run("b"));
        a.summary.environment.machine.host = "m1".into();
        a.summary.environment.machine.boot_id = "x".into();
        assert_eq!(environments(&a, &b), None, "names are no difference");
        b.summary.environment.machine.settings.insert("mtu eth0".into(), "9000".into());
        b.summary.environment.servers.insert("s3".into(), "MinIO".into());
        let f = environments(&a, &b).unwrap();
        assert_eq!(f.level, Level::Qualified);
        assert!(
            f.text.contains("client.local.settings.mtu eth0 (nothing and 9000)")
                && f.text.contains("servers"),
            "{}",
            f.text
        );
    }

    #[test]
    fn the_same_kinds_of_devices_under_other_names_are_no_difference() {
        let with = |models: [&str; 3]| {
            let mut m = run("r");
            for (name, model) in ["sda", "sdb", "sdc"].into_iter().zip(models) {
                let facts = BTreeMap::from([("model".to_owned(), model.to_owned())]);
                m.summary.environment.devices.insert(name.into(), facts);
            }
            m
        };
        assert_eq!(environments(&with(["A", "B", "A"]), &with(["B", "A", "A"])), None);
        assert!(environments(&with(["A", "B", "A"]), &with(["C", "A", "A"])).is_some());
    }

    /// Whoever compares, a command or a page, is told the same.
    #[test]
    fn all_that_is_found_of_two_sides() {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\nconcurrency = ";
        let of =
            |id: &str, n: u32| Member::of(run(id).summary, Plan::from_toml(&format!("{text}{n}\n")).unwrap());
        let codes = |all: &[Finding]| all.iter().map(|f| f.code.clone()).collect::<Vec<_>>();
        let same = findings((&[of("a", 1)], "A"), (&[of("b", 1)], "B"));
        assert_eq!(codes(&same), ["F41"]);
        assert_eq!(same[0].text, "Both plans are the same: the difference is not in them.");
        let mut b = of("b", 2);
        b.summary.environment.machine.kernel = "Linux 6".into();
        let all = findings((&[of("a", 1), of("c", 2)], "A"), (&[b], "B"));
        assert_eq!(codes(&all), ["V16", "F41", "F99"]);
        assert!(all[0].text.starts_with("The runs of A are not repeats of each other"), "{}", all[0].text);
        assert_eq!(all[1].text, "The plans differ in: stage[0].workload[0].concurrency (1 and 2).");
    }

    #[test]
    fn where_a_run_had_its_own_cluster_is_no_difference() {
        let text = "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"embedded\"]\nbucket = \"b\"\n\
            embedded = { cluster = { nodes = 2, drives = 2 } }\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { put = 1 }\n";
        let at = |net: &str| {
            let mut plan = Plan::from_toml(text).unwrap();
            let hosts = [format!("{net}.1"), format!("{net}.2")];
            assert!(plan.describe_own_cluster(&hosts.each_ref().map(String::as_str)));
            Member::of(RunSummary::default(), plan)
        };
        assert!(differences(&at("10.213.0").plan, &at("10.213.1").plan).is_empty());
    }
}
