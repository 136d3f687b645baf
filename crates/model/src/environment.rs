//! Provenance: where and with what a run was made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// Where and with what a run was made, captured before anything is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    /// Of the program that measured.
    pub plimsoll_version: String,
    /// That it was built from; empty: not known.
    pub commit: String,
    /// The machine that conducts.
    #[serde(flatten)]
    pub machine: HostFacts,
    /// Wall-clock time of the run's start, RFC 3339.
    pub started_at: String,
    /// The same instant on the monotonic clock, nanoseconds since boot.
    pub started_monotonic_ns: u64,
    /// The ring used, and why.
    pub ring: String,
    /// The plan's.
    pub seed: u64,
    /// `Server` header or device model, per target or endpoint.
    pub servers: BTreeMap<String, String>,
    /// How the payload was signed, whether bodies were discarded in the kernel, TLS version: by name.
    pub notes: BTreeMap<String, String>,
    /// What was found beside the measurement, of the run as a whole: the storage does not confirm what uploads ask
    /// for, the trace could not be written. A summary has them among its findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Device under test: path, model, serial, size, file system, scheduler.
    pub devices: BTreeMap<String, BTreeMap<String, String>>,
    /// Of a run with several agents: each of them, and the machine that it is on. Empty: one agent, on the machine
    /// that conducts; [`Self::agent_hosts`] has it in the same form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentHost>,
    /// The file of another tool that the run was imported from. Absent: we measured it ourselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportSource>,
}

/// The file of another tool that figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ImportSource {
    /// Who measured: `fio`, `warp`, `elbencho`, `GoBonnieGo`, `iperf3`.
    pub tool: String,
    /// Its version, as the file has it; empty: the file does not say.
    pub tool_version: String,
    /// What the file is: `json`, `json+`, `csv.zst`, ...
    pub form: String,
    /// Its name, without directories.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content as it lay there, hexadecimal, as `sha256sum` prints it.
    pub sha256: String,
}

impl ImportSource {
    /// Tool and version: `fio 3.33`.
    pub fn who(&self) -> String {
        format!("{} {}", self.tool, self.tool_version).trim_end().to_owned()
    }
}

/// The agent of a run that has one only.
pub const LOCAL_AGENT: &str = "local";

/// An agent, and the machine that it is on. What is judged of a client is judged of each of these by itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentHost {
    /// Its name, as in `intervals/AGENT.zst`; no other agent of the run has it.
    pub agent: String,
    /// Its number, from 0: the order in which work is divided.
    pub number: u32,
    /// The machine that it is on. `samples/HOST.zst` has its name: several agents may be on one machine, and two machines of one run
    /// have two names.
    #[serde(flatten)]
    pub machine: HostFacts,
    /// How its clock lies to the conductor's; absent: it is the conductor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<AgentClock>,
}

/// How an agent's monotonic clock lies to the conductor's: found out by asking for its time and back, before the load and while it is on.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentClock {
    /// The agent's reading less the conductor's at the same instant, nanoseconds.
    pub offset_ns: i64,
    /// The offset is off by this at the most: half of the shortest way there and back, of which nobody knows how it is divided, and
    /// what the drift added since.
    pub bound_ns: u64,
    /// What the offset grows by, nanoseconds a second; 0 until there are two times to tell it from.
    pub drift_ns_per_s: f64,
}

/// A machine, and what of it a process may use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostFacts {
    /// Name and release, as uname has them.
    pub kernel: String,
    /// Name of the machine.
    pub host: String,
    /// As /proc/cpuinfo names it; empty: it does not.
    pub cpu_model: String,
    /// CPUs that the process may use.
    pub cpu_count: u32,
    /// Of the machine.
    pub memory_bytes: u64,
    /// The least that the control groups of this process allow it of that; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The tightest CPU quota of its control groups, in cores; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota_cores: Option<f64>,
    /// Interfaces that are up, with speed in Mbit/s where the kernel knows it.
    pub nics: BTreeMap<String, Option<u64>>,
    /// Settings of the kernel that storage and network depend on, and the largest packet of each interface: by their own names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Whose machine it is, and which kind of theirs: `cloud`, `instance_type`, `region`, `zone`, `instance_id`, `maker`, `disk N`; no number of
    /// an account is among them. Empty: nobody asked, or nobody said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, String>,
    /// The kernel's, new at each boot: monotonic times of one boot can be compared.
    pub boot_id: String,
    /// Ceiling of this machine as a load generator, when it was calibrated: name to value.
    pub ceiling: BTreeMap<String, f64>,
}

impl Environment {
    /// The agents of any run: the table, or where there is none the one agent on this machine.
    pub fn agent_hosts(&self) -> Vec<AgentHost> {
        if self.agents.is_empty() { vec![self.local_agent()] } else { self.agents.clone() }
    }

    /// This machine as that of a run's only agent.
    fn local_agent(&self) -> AgentHost {
        AgentHost { agent: LOCAL_AGENT.into(), machine: self.machine.clone(), ..AgentHost::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_one_agent_has_no_table_and_is_read_as_if_it_had() {
        let ceiling: BTreeMap<String, f64> = [("null".to_owned(), 1e6)].into();
        let machine = HostFacts {
            host: "bench".into(),
            cpu_count: 8,
            ceiling: ceiling.clone(),
            ..HostFacts::default()
        };
        let alone = Environment { machine, ..Environment::default() };
        let text = serde_json::to_string(&alone).unwrap();
        assert!(!text.contains("agents"), "{text}");
        let [local] = &alone.agent_hosts()[..] else { panic!("one agent") };
        assert_eq!((local.agent.as_str(), local.number, local.machine.host.as_str()), ("local", 0, "bench"));
        assert_eq!((local.machine.cpu_count, &local.machine.ceiling), (8, &ceiling));
        let of = |agent: &str, number| AgentHost { agent: agent.into(), number, ..AgentHost::default() };
        let fleet = Environment { agents: vec![of("lg-1", 0), of("lg-2", 1)], ..alone };
        let back: Environment = serde_json::from_str(&serde_json::to_string(&fleet).unwrap()).unwrap();
        assert_eq!(back, fleet);
        assert_eq!(back.agent_hosts(), fleet.agents);
    }
}
