//! Where and with what a run is made: captured once, before anything is measured.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Environment, HostFacts, Plan};

use plimsoll_crew::sample::{ControlGroups, device_of, host_name};

/// The machine's part of the environment. What only the run knows (ring, servers, notes) is added as it is found out.
pub fn capture(plan: &Plan, commit: &str) -> Environment {
    Environment {
        plimsoll_version: env!("CARGO_PKG_VERSION").into(),
        commit: commit.into(),
        machine: machine(),
        started_at: jiff::Timestamp::now().to_string(),
        started_monotonic_ns: monotonic_ns(),
        seed: plan.seed,
        devices: devices(plan),
        ..Environment::default()
    }
}

/// This machine, as it is now; its ceiling is the caller's to know.
pub fn machine() -> HostFacts {
    let text = |path: &str| read_to_string(path).unwrap_or_default();
    let uname = rustix::system::uname();
    let groups = ControlGroups::of_self();
    HostFacts {
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        host: host_name(),
        cpu_model: cpu_model(&text("/proc/cpuinfo")),
        cpu_count: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: memory_total(&text("/proc/meminfo")),
        memory_limit_bytes: groups.memory_limit_bytes(),
        cpu_quota_cores: tightest(&groups),
        nics: nics(),
        settings: settings(),
        boot_id: text("/proc/sys/kernel/random/boot_id").trim().into(),
        identity: BTreeMap::new(),
        ceiling: BTreeMap::new(),
    }
}

/// The same machine, after this process has entered control groups for the run.
pub(crate) fn bounded(machine: &mut HostFacts) {
    let now = self::machine();
    machine.cpu_count = now.cpu_count;
    machine.memory_limit_bytes = now.memory_limit_bytes;
    machine.cpu_quota_cores = now.cpu_quota_cores;
}

fn tightest(groups: &ControlGroups) -> Option<f64> {
    groups.cpu_quotas().iter().map(|q| q.cores).reduce(f64::min)
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn cpu_model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name") || l.starts_with("Model"));
    line.and_then(|l| l.split_once(':')).map_or_else(String::new, |(_, v)| v.trim().to_owned())
}

fn memory_total(meminfo: &str) -> u64 {
    let kib =
        meminfo.lines().find(|l| l.starts_with("MemTotal:")).and_then(|l| l.split_ascii_whitespace().nth(1));
    kib.and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Interfaces that are up, with their speed in Mbit/s where the kernel knows it.
fn nics() -> BTreeMap<String, Option<u64>> {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else { return BTreeMap::new() };
    let mut nics = BTreeMap::new();
    for entry in entries.flatten() {
        let read = |file: &str| read_to_string(entry.path().join(file)).unwrap_or_default();
        if matches!(read("operstate").trim(), "up" | "unknown") {
            // -1: unknown, as virtual interfaces say.
            let speed = read("speed").trim().parse::<i64>().ok().and_then(|v| u64::try_from(v).ok());
            nics.insert(entry.file_name().to_string_lossy().into_owned(), speed);
        }
    }
    nics
}

/// Settings that change what storage and network give: runs that differ in one of them are told apart by it.
const SETTINGS: [&str; 9] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_congestion_control",
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/swappiness",
];

fn settings() -> BTreeMap<String, String> {
    let value = |path: &str| {
        let text = read_to_string(path).ok()?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        Some(plimsoll_model::text::clean(&words.join(" ")).into_owned()).filter(|t| !t.is_empty())
    };
    let sysctl = |name: &&str| Some((name.replace('/', "."), value(&format!("/proc/sys/{name}"))?));
    let mtu = |nic: &String| Some((format!("mtu {nic}"), value(&format!("/sys/class/net/{nic}/mtu"))?));
    let huge =
        value("/sys/kernel/mm/transparent_hugepage/enabled").map(|v| ("transparent_hugepage".to_owned(), v));
    let governor = value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let governor = governor.map(|v| ("cpu governor".to_owned(), v));
    let nics = nics();
    let own = nics.keys().filter(|n| plimsoll_model::observed::is_nic(n));
    SETTINGS.iter().filter_map(sysctl).chain(own.filter_map(mtu)).chain(huge).chain(governor).collect()
}

/// Block devices and files under test: model, serial, size, scheduler, file system.
fn devices(plan: &Plan) -> BTreeMap<String, BTreeMap<String, String>> {
    plan.targets
        .values()
        .filter_map(|t| match t {
            // What is not there yet is described once it is.
            TargetSpec::Block(b) => Some(b.path.as_str()).filter(|_| b.embedded.is_none()),
            TargetSpec::Files(f) => Some(f.directory.as_str()),
            TargetSpec::S3(_) | TargetSpec::Null | TargetSpec::Sim(_) => None,
        })
        .map(|path| (path.to_owned(), describe(Path::new(path))))
        .collect()
}

pub(crate) fn describe(path: &Path) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: String| {
        // Firmware and mounts say what they like.
        let value = plimsoll_model::text::clean(value.trim()).into_owned();
        if !value.is_empty() {
            facts.insert(name.to_owned(), value);
        }
    };
    if let Some(device) = device_of(path) {
        let sys = |file: &str| {
            read_to_string(format!("/sys/class/block/{}/{file}", device.name)).unwrap_or_default()
        };
        put("device", device.name.clone());
        put("model", sys("device/model"));
        put("serial", if sys("serial").is_empty() { sys("device/serial") } else { sys("serial") });
        if let Ok(sectors) = sys("size").trim().parse::<u64>() {
            put("size_bytes", (sectors * 512).to_string());
        }
        put("scheduler", sys("queue/scheduler"));
        put("rotational", sys("queue/rotational"));
        put("logical_block_bytes", sys("queue/logical_block_size"));
        put("write_cache", sys("queue/write_cache"));
    }
    put("file_system", file_system(path).unwrap_or_default());
    facts
}

/// Type and options of the mount that a path lies on.
fn file_system(path: &Path) -> Option<String> {
    let full = path.ancestors().find_map(|p| std::fs::canonicalize(p).ok())?;
    let mounts = read_to_string("/proc/self/mounts").ok()?;
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let f: Vec<&str> = line.split(' ').collect();
        let [_, point, kind, options, ..] = f[..] else { continue };
        if full.starts_with(point) && best.as_ref().is_none_or(|(len, _)| point.len() >= *len) {
            best = Some((point.len(), format!("{kind} ({options})")));
        }
    }
    best.map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let plan = Plan::from_toml(
            "version = 1\nseed = 9\n[targets.f]\nkind = \"files\"\ndirectory = \"/tmp\"\nfile_size = \"1MiB\"\n\
             [[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { read = 1 }\n",
        )
        .unwrap();
        let env = capture(&plan, "abc");
        assert_eq!(env.seed, 9);
        assert!(
            env.machine.cpu_count >= 1
                && env.machine.memory_bytes > 1 << 20
                && env.machine.kernel.starts_with("Linux")
        );
        assert!(env.machine.settings.contains_key("vm.swappiness"), "{:?}", env.machine.settings);
        assert!(env.devices["/tmp"].contains_key("file_system"));
        assert!(env.started_at.ends_with('Z'));
    }

    #[test]
    fn models_of_x86_and_arm() {
        assert_eq!(cpu_model("processor: 0\nmodel name\t: X 1\n"), "X 1");
        assert_eq!(cpu_model("processor: 0\nModel\t\t: Pi 5\n"), "Pi 5");
    }
}
