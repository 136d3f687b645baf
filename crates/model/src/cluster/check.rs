//! `cluster.toml` to a cluster: syntax, unknown keys, then what no syntax can say. Each error has a place and a remedy.

use std::collections::BTreeSet;

use super::{CLUSTER_VERSION, Cluster, ClusterDrive, ClusterNic, ClusterNode, Redundancy};
use crate::pattern::expand_ranges;
use crate::text::toml_problem;

/// Nodes of one file.
pub const MOST_NODES: usize = 4096;
/// Drives of a node, and its interfaces.
pub const MOST_PARTS: usize = 1024;
/// Characters of a name, a model, a source.
const MOST_CHARS: usize = 200;
/// More is a slip of the pen.
const MOST_CPUS: f64 = 65_536.0;
/// Bytes a second.
const MOST_RATE: f64 = 1e15;

/// Why a cluster file cannot be used.
#[allow(missing_docs, reason = "each message has all fields in it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The message has line and column.
    #[error("{0}")]
    Syntax(String),
    #[error("{place}: {problem}. {remedy}")]
    Invalid { place: String, problem: String, remedy: String },
}

fn wrong(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> ClusterError {
    ClusterError::Invalid { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

impl Cluster {
    /// Parses and checks.
    pub fn from_toml(text: &str) -> Result<Self, ClusterError> {
        let cluster: Self = toml::from_str(text).map_err(|e| ClusterError::Syntax(toml_problem(text, &e)))?;
        cluster.check()?;
        Ok(cluster)
    }

    /// Reads back as the same cluster; comments of its source are lost.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a cluster is always TOML")
    }

    /// What the types cannot say.
    pub fn check(&self) -> Result<(), ClusterError> {
        if self.version != CLUSTER_VERSION {
            return Err(wrong(
                "version",
                format!("{} is not a version of cluster files that this program reads", self.version),
                format!("Write version = {CLUSTER_VERSION}, or use a newer plimsoll."),
            ));
        }
        word("software", &self.software)?;
        let texts = [("name", &self.name), ("software_version", &self.software_version)];
        for (key, text) in texts.into_iter().chain([("failure_domain", &self.failure_domain)]) {
            text.as_ref().map_or(Ok(()), |t| word(key, t))?;
        }
        self.classes.keys().try_for_each(|name| word("classes", name))?;
        self.check_nodes()?;
        self.check_redundancy()
    }

    fn check_nodes(&self) -> Result<(), ClusterError> {
        let mut seen = BTreeSet::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let place = format!("node {}", i + 1);
            let names = names(&format!("{place}, name"), &node.name)?;
            for address in &node.addresses {
                let addresses = self::names(&format!("{place}, addresses"), address)?;
                if addresses.len() != names.len() {
                    return Err(wrong(
                        format!("{place}, addresses"),
                        format!(
                            "'{address}' stands for {} and '{}' for {}",
                            addresses.len(),
                            node.name,
                            names.len()
                        ),
                        "Write a pattern with as many, in order of the nodes.",
                    ));
                }
            }
            for name in names {
                if seen.len() >= MOST_NODES {
                    return Err(wrong(
                        &place,
                        format!("there are more than {MOST_NODES}"),
                        "Describe fewer.",
                    ));
                }
                if let Some(twice) = seen.replace(name) {
                    return Err(wrong(&place, format!("'{twice}' is there twice"), "Name each node once."));
                }
            }
            node.check(&place)?;
        }
        if seen.is_empty() {
            return Err(wrong("node", "there is none", "Add a table [[node]] with name = \"s{1...4}\"."));
        }
        Ok(())
    }

    /// Shards have to fit: an object's into its set, and a set into the drives that there are.
    fn check_redundancy(&self) -> Result<(), ClusterError> {
        let all = self.redundancy.iter().map(|r| ("redundancy".to_owned(), r));
        for (place, r) in all.chain(self.classes.iter().map(|(c, r)| (format!("classes.{c}"), r))) {
            let shards = r.shards();
            if let (Some(set), Redundancy::Erasure { .. }) = (self.set_size, r)
                && set != shards
                && self.software.eq_ignore_ascii_case("minio")
            {
                return Err(wrong(
                    place,
                    format!("{r} has {shards} shards, and a set has {set} drives"),
                    "In MinIO an object has a shard on each drive of its set: correct one of them.",
                ));
            }
            // Pools of no interest may be on drives that are not described.
            let drives = if place == "redundancy" { self.drive_count() } else { 0 };
            if drives > 0 && shards as usize > drives {
                return Err(wrong(
                    place,
                    format!("{r} needs {shards} drives, and the nodes have {drives}"),
                    "Correct the redundancy, or the drives of each [[node]] (count, or a pattern).",
                ));
            }
        }
        Ok(())
    }
}

impl ClusterNode {
    fn check(&self, place: &str) -> Result<(), ClusterError> {
        if self.cpus.is_some_and(|c| !(c > 0.0 && c <= MOST_CPUS)) {
            return Err(wrong(
                format!("{place}, cpus"),
                "is no number of CPUs",
                "Write a number above 0, for example 16.",
            ));
        }
        if self.drives.len() > MOST_PARTS || self.nics.len() > MOST_PARTS {
            return Err(wrong(
                place,
                format!("it has more than {MOST_PARTS} drives or interfaces"),
                "Use patterns.",
            ));
        }
        for (i, drive) in self.drives.iter().enumerate() {
            drive.check(&format!("{place}, drive {}", i + 1))?;
        }
        let mut seen = BTreeSet::new();
        for (i, nic) in self.nics.iter().enumerate() {
            let place = format!("{place}, nic {}", i + 1);
            nic.check(&place)?;
            match &nic.name {
                None if self.nics.len() > 1 => {
                    return Err(wrong(
                        place,
                        "it has no name, and the node has several",
                        "Name each: name = \"eth0\".",
                    ));
                }
                Some(name) if !seen.insert(name) => {
                    return Err(wrong(
                        place,
                        format!("'{name}' is there twice"),
                        "Name each interface once.",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl ClusterDrive {
    fn check(&self, place: &str) -> Result<(), ClusterError> {
        for (key, text) in [("device", &self.device), ("path", &self.path)] {
            if let Some(text) = text {
                names(&format!("{place}, {key}"), text)?;
            }
        }
        for (key, text) in [("model", &self.model), ("source", &self.source)] {
            text.as_ref().map_or(Ok(()), |t| word(&format!("{place}, {key}"), t))?;
        }
        if self.count.is_some_and(|n| !(1..=MOST_PARTS as u32).contains(&n)) {
            return Err(wrong(
                format!("{place}, count"),
                "is out of range",
                format!("Write 1 to {MOST_PARTS}."),
            ));
        }
        let pattern =
            [&self.device, &self.path].into_iter().flatten().map(|p| super::expanded(p).len()).max();
        if self.count.is_some_and(|n| pattern.is_some_and(|p| p > 1 && p != n as usize)) {
            return Err(wrong(
                format!("{place}, count"),
                "differs from what the pattern stands for",
                "Leave it out.",
            ));
        }
        [self.read, self.write].into_iter().flatten().try_for_each(|r| rate(place, r.0))
    }
}

impl ClusterNic {
    fn check(&self, place: &str) -> Result<(), ClusterError> {
        for (key, text) in [("name", &self.name), ("source", &self.source)] {
            text.as_ref().map_or(Ok(()), |t| word(&format!("{place}, {key}"), t))?;
        }
        [self.rate, self.receives, self.sends].into_iter().flatten().try_for_each(|r| rate(place, r.0))
    }
}

fn rate(place: &str, value: f64) -> Result<(), ClusterError> {
    if value > 0.0 && value <= MOST_RATE {
        return Ok(());
    }
    Err(wrong(place, "a rate is out of range", "Write at most 1000TB/s."))
}

fn names(place: &str, pattern: &str) -> Result<Vec<String>, ClusterError> {
    word(place, pattern)?;
    expand_ranges(pattern)
        .map_err(|problem| wrong(place, problem, "Write one name, or a pattern such as s{1...4}."))
}

/// A line that may stand on any terminal.
fn word(place: &str, text: &str) -> Result<(), ClusterError> {
    if text.trim().is_empty() {
        return Err(wrong(place, "is empty", "Write it, or leave it out."));
    }
    if text.chars().count() > MOST_CHARS || text.chars().any(crate::text::is_harmful) {
        return Err(wrong(
            place,
            format!("is no line of at most {MOST_CHARS} printable characters"),
            "Write it in plain characters.",
        ));
    }
    Ok(())
}
