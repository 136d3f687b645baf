//! What a command line is read against: the endpoint that is configured outside it, and a fresh seed. Passed in, so that
//! flags to plan stays a pure function.

use crate::fault::Fault;

#[derive(Debug, Clone)]
pub struct ArgsContext {
    endpoint: Configured,
    /// Seed of this run when none was given: a new one each time, so that no run writes what an earlier
    /// one wrote (storage that dedupes would be measured too fast).
    pub fresh_seed: u64,
}

/// Where an endpoint that is not on the command line comes from.
#[derive(Debug, Clone)]
enum Configured {
    /// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's files.
    ByAwsTools,
    #[cfg(test)]
    As(Option<String>),
}

impl ArgsContext {
    pub fn of_process() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // Short enough to type; the process id tells two runs of one nanosecond apart.
        let fresh_seed =
            (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(20)) % 1_000_000_000;
        Self { endpoint: Configured::ByAwsTools, fresh_seed }
    }

    /// The endpoint of the environment or of the profile (the explicitly named one, or the default).
    pub fn endpoint(&self, profile: Option<&str>) -> Result<Option<String>, Fault> {
        match &self.endpoint {
            Configured::ByAwsTools => Ok(plimsoll_setup::s3::configured_endpoint(profile)?),
            #[cfg(test)]
            Configured::As(url) => Ok(url.clone()),
        }
    }

    #[cfg(test)]
    pub fn with(endpoint: Option<&str>, fresh_seed: u64) -> Self {
        Self { endpoint: Configured::As(endpoint.map(str::to_owned)), fresh_seed }
    }
}
