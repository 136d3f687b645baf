//! Provenance: where and with what a run was made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    pub plimsoll_version: String,
    pub commit: String,
    pub kernel: String,
    pub host: String,
    pub cpu_model: String,
    pub cpu_count: u32,
    pub memory_bytes: u64,
    /// The least that the control groups of this process allow it of that; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The tightest CPU quota of its control groups, in cores; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota_cores: Option<f64>,
    /// Interfaces that are up, with speed in Mbit/s where the kernel knows it.
    pub nics: BTreeMap<String, Option<u64>>,
    pub boot_id: String,
    /// Wall-clock time of the run's start, RFC 3339.
    pub started_at: String,
    /// The same instant on the monotonic clock, nanoseconds since boot.
    pub started_monotonic_ns: u64,
    /// The ring used, and why.
    pub ring: String,
    pub seed: u64,
    /// `Server` header or device model, per target or endpoint.
    pub servers: BTreeMap<String, String>,
    /// How the payload was signed, whether bodies were discarded in the kernel, TLS version: by name.
    pub notes: BTreeMap<String, String>,
    /// What was found beside the measurement, of the run as a whole: the storage does not confirm what uploads ask
    /// for, the trace could not be written. A summary has them among its findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Ceiling of this machine as a load generator, when it was calibrated: name to value.
    pub ceiling: BTreeMap<String, f64>,
    /// Device under test: path, model, serial, size, file system, scheduler.
    pub devices: BTreeMap<String, BTreeMap<String, String>>,
}
