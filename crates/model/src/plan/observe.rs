//! Who is asked what the servers do meanwhile (`--observe node=http://s{1...4}:9100/metrics`).

use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::check::{PlanError, invalid};
use super::secrets::{shown_url, url_problem};
use super::target::TlsSpec;
use crate::units::Span;

/// Where none is given, each source is asked this often.
pub const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// More often costs servers too much, and most of them make their counters no more often.
const LEAST_EVERY: Duration = Duration::from_secs(1);
/// More seldom leaves a usual run without two readings.
const MOST_EVERY: Duration = Duration::from_secs(600);
/// Entries of a plan; a pattern makes many addresses of one.
const MOST_ENTRIES: usize = 100;

/// What a source of metrics is, and so what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObserveMake {
    /// node_exporter: CPUs, memory, interfaces and drives of a host.
    Node,
    /// process-exporter: CPU time and memory of daemons.
    Process,
    /// MinIO's own metrics, version 3 or 2.
    Minio,
    /// Ceph: the manager's module, or ceph-exporter on a host.
    Ceph,
    /// Any page of metrics: what is known of it is read.
    Metrics,
    /// An existing Prometheus: what it has scraped. The URL's query is a selector.
    Prometheus,
    /// /proc of a host, over ssh: nothing is installed there. In place of a URL: `root@s{1...4}`.
    Ssh,
}

impl ObserveMake {
    /// As it is written before the URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Process => "process",
            Self::Minio => "minio",
            Self::Ceph => "ceph",
            Self::Metrics => "metrics",
            Self::Prometheus => "prometheus",
            Self::Ssh => "ssh",
        }
    }

    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Node, Self::Process, Self::Minio, Self::Ceph, Self::Metrics, Self::Prometheus, Self::Ssh];
}

/// A source of metrics, or several with one pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserveSpec {
    /// What it is.
    pub make: ObserveMake,
    /// `http://HOST:PORT/PATH`; `{1...4}` stands for four of them. Without a path, the make's usual one. Of ssh: `[USER@]HOST[:PORT]`.
    pub url: String,
    /// Environment variable with the bearer token. Absent: none, or for MinIO one that is made of the run's own keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// File with the bearer token, read at each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// Whom to trust for https. Absent: as for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// Of ssh: its configuration file, in place of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_config: Option<String>,
}

/// `node=http://s1:9100/metrics`.
impl FromStr for ObserveSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let makes = ObserveMake::ALL.map(ObserveMake::name).join(", ");
        let example = "write MAKE=URL, for example node=http://s{1...4}:9100";
        let (make, url) = text.split_once('=').ok_or_else(|| format!("it has no '=': {example}"))?;
        let make = ObserveMake::ALL.into_iter().find(|m| m.name() == make);
        let make = make.ok_or_else(|| format!("what stands before '=' is none of {makes}: {example}"))?;
        let spec = Self {
            make,
            url: url.to_owned(),
            token_env: None,
            token_file: None,
            tls: None,
            ssh_config: None,
        };
        spec.problem().map_or(Ok(spec), Err)
    }
}

impl ObserveSpec {
    /// The URL up to its query, and the selector behind it.
    pub fn parts(&self) -> (&str, &str) {
        self.url.split_once('?').unwrap_or((&self.url, ""))
    }

    /// What cannot be kept or sent.
    fn problem(&self) -> Option<String> {
        if self.make == ObserveMake::Ssh {
            return ssh_problem(&self.url);
        }
        let (base, selector) = self.parts();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Some("its URL begins with neither http:// nor https://".into());
        }
        let looked_at = if self.make == ObserveMake::Prometheus { base } else { &self.url };
        if let Some(problem) = url_problem(looked_at) {
            return Some(format!("the URL of {} {problem}, but plans are stored and shown", shown_url(base)));
        }
        if selector.len() > 2000 || selector.chars().any(char::is_control) {
            return Some("its selector is not one line of at most 2000 bytes".into());
        }
        (self.token_env.is_some() && self.token_file.is_some())
            .then(|| "it has token_env and token_file: one of them".to_owned())
    }
}

/// What ssh would take for something else than a host.
fn ssh_problem(host: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._@:{}".contains(c);
    let bad = host.is_empty()
        || host.len() > 300
        || host.starts_with('-')
        || host.contains("@-")
        || !host.chars().all(plain)
        || host.matches('@').count() > 1;
    if bad {
        return Some("behind ssh= stands no [USER@]HOST[:PORT], such as root@s{1...4}".into());
    }
    crate::pattern::expand_ranges(host).err()
}

impl Plan {
    /// How often each source is asked.
    pub fn observe_every(&self) -> Duration {
        self.options.observe_every.map_or(OBSERVE_EVERY, |s| s.0)
    }

    /// Refuses sources that cannot be asked.
    pub(super) fn check_observe(&self) -> Result<(), PlanError> {
        if self.options.observe.len() > MOST_ENTRIES {
            let problem = format!("has more than {MOST_ENTRIES} entries");
            return Err(invalid("options.observe", problem, "Use patterns such as http://s{1...64}:9100."));
        }
        for spec in &self.options.observe {
            if let Some(problem) = spec.problem() {
                let remedy = "Write http://HOST:PORT or https://HOST:PORT/PATH (of ssh [USER@]HOST[:PORT]); a token is named by token_env or token_file.";
                return Err(invalid("options.observe", problem, remedy));
            }
        }
        if self.options.observe_every.is_some_and(|s: Span| !(LEAST_EVERY..=MOST_EVERY).contains(&s.0)) {
            let remedy = "Write a time such as 5s.";
            return Err(invalid("options.observe_every", "is not between 1s and 10m", remedy));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_make_and_a_url() {
        let s: ObserveSpec = "prometheus=http://p:9090?instance=~\"s[1-4].*\"".parse().unwrap();
        assert_eq!(
            (s.make, s.parts()),
            (ObserveMake::Prometheus, ("http://p:9090", "instance=~\"s[1-4].*\""))
        );
        assert!("node=http://s{1...4}:9100/metrics".parse::<ObserveSpec>().is_ok());
        assert!("ssh=root@s{1...4}:2222".parse::<ObserveSpec>().is_ok());
        for (bad, why) in [
            ("node", "no '='"),
            ("disk=http://s1", "none of node"),
            ("node=s1:9100", "neither http://"),
            ("node=http://user:hunter2@s1", "user name or password"),
            ("minio=http://s1?token=hunter2", "has a query"),
            ("ssh=-oProxyCommand=x", "no [USER@]HOST"),
            ("ssh=root@-x", "no [USER@]HOST"),
            ("ssh=root@s1 id", "no [USER@]HOST"),
            ("ssh=root@s{4...1}", "backwards"),
        ] {
            let e = bad.parse::<ObserveSpec>().unwrap_err();
            assert!(e.contains(why) && !e.contains("hunter2"), "{bad}: {e}");
        }
    }
}
