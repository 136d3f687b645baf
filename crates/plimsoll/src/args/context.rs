//! What a command line is read against: the environment's variables and a fresh seed. Passed in, so that
//! flags to plan stays a pure function.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Variables of the AWS tools that say where, never secrets.
    variables: BTreeMap<String, String>,
    /// Seed of this run when none was given: a new one each time, so that no run writes what an earlier
    /// one wrote (storage that dedupes would be measured too fast).
    pub fresh_seed: u64,
}

/// Only these are read here; credentials are looked up where requests are signed.
const READ: [&str; 5] =
    ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"];

impl Context {
    pub fn of_process() -> Self {
        let variables = READ
            .into_iter()
            .filter_map(|k| std::env::var(k).ok().filter(|v| !v.is_empty()).map(|v| (k.to_owned(), v)))
            .collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // Short enough to type; the process id tells two runs of one nanosecond apart.
        let fresh_seed =
            (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(20)) % 1_000_000_000;
        Self { variables, fresh_seed }
    }

    /// The first of these variables that is set.
    pub fn variable(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|n| self.variables.get(*n)).map(String::as_str)
    }

    #[cfg(test)]
    pub fn with(variables: &[(&str, &str)], fresh_seed: u64) -> Self {
        let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { variables, fresh_seed }
    }
}
