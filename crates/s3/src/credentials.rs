//! Where credentials and region come from, in the order of the AWS tools. The outside world (environment, files, programs, servers, the
//! clock) is injected, so that each way can be tested.
//!
//! Keys: an explicitly named profile and nothing else; else the environment's; else a web identity of the environment; else the profile
//! that AWS_PROFILE names, or `default`; else those of the container (ECS, EKS); else those of the instance (EC2).
//! A profile is a role to be assumed (`assume.rs`), a session of SSO, keys (in the credentials file, then the configuration file), or a
//! program (`credential_process`). Region and endpoint: the environment first, also before an explicitly named profile.
//! A file that is not there is an empty one, wherever its name came from. Sources: AWS CLI, "Configuration and
//! credential file settings"; AWS SDKs and Tools Reference Guide, "Standardized credential providers" and "Service-specific endpoints".

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use crate::sign::Credentials;

mod answers;
mod assume;
mod container;
mod files;
mod ini;
mod instance;
mod profile;
mod sso;
mod web;

pub use answers::date_of;
pub use web::{WEB_MOST_BYTES, WebAnswer, WebRequest, WebTrouble};

use files::{Files, Service, Settings, endpoint_of};

/// The outside world.
pub trait Sources {
    /// An environment variable; `None` when it is unset or empty.
    fn env(&self, name: &str) -> Option<String>;
    /// A whole file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Runs a command line and gives its standard output.
    fn run(&self, command: &str) -> io::Result<Vec<u8>>;
    /// Asks a server, once: no proxy, no redirect, an answer of at most [`WEB_MOST_BYTES`].
    fn web(&self, request: &WebRequest) -> Result<WebAnswer, WebTrouble>;
    /// All addresses of a name.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
    /// The clock, Unix seconds.
    fn now_unix_s(&self) -> u64;
    /// Waits before something is tried again.
    fn pause(&self, time: Duration);
}

/// Whether there will be other keys when these have expired, by asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renewal {
    /// These are all: they were put where they are by somebody.
    #[default]
    Never,
    /// Whoever gave them gives new ones.
    Always,
    /// So far: what they are asked with expires itself then, Unix seconds.
    Until(u64),
}

/// What was found, and where (for provenance; never the secret).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What requests are signed with.
    pub credentials: Credentials,
    /// `environment`, `profile NAME (PATH)`, `role NAME by web identity`: in words.
    pub source: String,
    /// From AWS_REGION, AWS_DEFAULT_REGION or the profile.
    pub region: Option<String>,
    /// From AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the `[services]` section that the profile names, or its endpoint_url.
    pub endpoint_url: Option<String>,
    /// When the keys are refused from, Unix seconds; none: nobody said that they expire.
    pub expires_unix_s: Option<u64>,
    /// What comes after that.
    pub renewal: Renewal,
}

/// Why there are no usable keys, with the remedy in it or to be added (see [`Self::problem_and_remedy`]).
#[allow(missing_docs, reason = "each message says what is the matter, and has all fields in it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    #[error(
        "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add them under [{profile}] in {path}"
    )]
    Missing { profile: String, path: String },
    #[error("{set} is set but {unset} is not: set both")]
    Half { set: &'static str, unset: &'static str },
    #[error(
        "there is no profile '{profile}' in {credentials} or {config}: choose another with --profile, or add it"
    )]
    NoProfile { profile: String, credentials: String, config: String },
    #[error("{path}, line {line}: {problem}")]
    Syntax { path: String, line: usize, problem: String },
    #[error("cannot read {path}: {problem}")]
    Read { path: String, problem: String },
    /// It would not be one header line on the wire.
    #[error(
        "the {what} (from {origin}) contains a space, a line end or another character that cannot be sent: correct it"
    )]
    Unprintable { what: &'static str, origin: String },
    #[error("profile '{profile}': {problem}")]
    Profile { profile: String, problem: String },
    /// Somebody was asked for keys, or was to be asked; the remedy is empty where there is none.
    #[error("{what}")]
    Asked { what: String, remedy: String },
}

impl CredentialsError {
    /// What is the matter, and what to do about it (empty: nothing better than what is said). No full stop at the end of either.
    pub fn problem_and_remedy(&self) -> (String, String) {
        let text = self.to_string();
        match self {
            Self::Asked { what, remedy } => (what.clone(), remedy.clone()),
            Self::Missing { .. } | Self::Half { .. } | Self::NoProfile { .. } | Self::Unprintable { .. } => {
                let (problem, remedy) = text.split_once(": ").unwrap_or((&text, ""));
                (problem.to_owned(), remedy.to_owned())
            }
            _ => (text, String::new()),
        }
    }

    fn asked(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Asked { what: what.into(), remedy: remedy.into() }
    }
}

/// Keys, and until when they are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Keys {
    credentials: Credentials,
    expires_unix_s: Option<u64>,
}

/// Keys, with where they are from and what comes after them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundKeys {
    keys: Keys,
    source: String,
    renewal: Renewal,
}

/// What all ways to keys look at.
struct Chain<'a> {
    sources: &'a dyn Sources,
    files: &'a Files,
    /// Of the environment or of the profile that was chosen: for STS.
    region: Option<String>,
    /// Settings of the profile that was chosen.
    settings: &'a Settings,
}

/// Finds credentials, region and endpoint. `profile`: the one that the user named explicitly.
pub fn resolve(sources: &dyn Sources, profile: Option<&str>) -> Result<Resolved, CredentialsError> {
    let explicit = profile.is_some();
    let name = profile_name(sources, profile);
    let from_env = if explicit { None } else { environment(sources)? };
    let identity = if explicit || from_env.is_some() { None } else { assume::identity_of_env(sources)? };
    // What the environment has does not need the files: a broken one must not stand in the way.
    let files = match Files::read(sources) {
        Err(_) if from_env.is_some() || identity.is_some() => Files::default(),
        read => read?,
    };
    let settings = files.settings(&name);
    let region = sources
        .env("AWS_REGION")
        .or_else(|| sources.env("AWS_DEFAULT_REGION"))
        .or_else(|| settings.get("region").cloned());
    let endpoint_url = endpoint_of(Service::S3, sources, Some(&files), &settings);
    let chain = Chain { sources, files: &files, region: region.clone(), settings: &settings };
    let found = match (from_env, identity) {
        (Some(found), _) => found,
        (None, Some(identity)) => chain.by_web_identity(&identity)?,
        (None, None) => chain.after_environment(&name, explicit)?,
    };
    printable(&found.keys.credentials, &found.source)?;
    let FoundKeys { keys: Keys { credentials, expires_unix_s }, source, renewal } = found;
    if let Some(at) = expires_unix_s.filter(|at| *at <= sources.now_unix_s()) {
        let what = format!("the credentials (from {source}) expired at {}", date_of(at));
        return Err(CredentialsError::asked(what, "Get new ones, or check this machine's clock"));
    }
    Ok(Resolved { credentials, source, region, endpoint_url, expires_unix_s, renewal })
}

impl Chain<'_> {
    fn after_environment(&self, profile: &str, explicit: bool) -> Result<FoundKeys, CredentialsError> {
        let missing = || CredentialsError::Missing {
            profile: profile.to_owned(),
            path: self.files.credentials_path.display().to_string(),
        };
        if let Some(found) = self.by_profile(profile)? {
            return Ok(found);
        }
        if !self.files.knows(profile) && (explicit || profile != "default") {
            return Err(self.files.no_profile(profile));
        }
        if explicit {
            return Err(missing());
        }
        if let Some(found) = self.of_container()? {
            return Ok(found);
        }
        match self.of_instance(false) {
            Ok(found) => found.ok_or_else(missing),
            // Elsewhere something else may answer under that address: what is missing is keys, not a metadata service.
            Err(_) if !self.is_surely_of_ec2() => Err(missing()),
            Err(e) => Err(e),
        }
    }
}

/// Keys and tokens are printable ASCII without spaces: a line end among them (of a file that was read whole) would be one on
/// the wire, where the next header begins.
fn printable(c: &Credentials, origin: &str) -> Result<(), CredentialsError> {
    let parts = [
        ("access key", Some(&c.access_key)),
        ("secret key", Some(&c.secret_key)),
        ("session token", c.session_token.as_ref()),
    ];
    match parts.iter().find(|(_, v)| v.is_some_and(|v| !is_sendable(v))) {
        Some(&(what, _)) => Err(CredentialsError::Unprintable { what, origin: origin.to_owned() }),
        None => Ok(()),
    }
}

/// One header line on the wire.
fn is_sendable(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_graphic())
}

/// The endpoint that is configured, without a look at credentials. An explicitly named profile must exist.
pub fn endpoint_url(
    sources: &dyn Sources,
    profile: Option<&str>,
) -> Result<Option<String>, CredentialsError> {
    let from_env = endpoint_of(Service::S3, sources, None, &Settings::new());
    if from_env.is_some() {
        return Ok(from_env);
    }
    let name = profile_name(sources, profile);
    let files = Files::read(sources)?;
    if profile.is_some() && !files.knows(&name) {
        return Err(files.no_profile(&name));
    }
    Ok(endpoint_of(Service::S3, sources, Some(&files), &files.settings(&name)))
}

fn profile_name(sources: &dyn Sources, explicit: Option<&str>) -> String {
    explicit
        .map(str::to_owned)
        .or_else(|| sources.env("AWS_PROFILE"))
        .or_else(|| sources.env("AWS_DEFAULT_PROFILE"))
        .unwrap_or_else(|| "default".into())
}

/// Keys of the environment. `aws configure export-credentials --format env` says there when they expire, too.
fn environment(sources: &dyn Sources) -> Result<Option<FoundKeys>, CredentialsError> {
    const ID: &str = "AWS_ACCESS_KEY_ID";
    const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
    let credentials = match (sources.env(ID), sources.env(SECRET)) {
        (Some(access_key), Some(secret_key)) => Credentials {
            access_key,
            secret_key,
            session_token: sources.env("AWS_SESSION_TOKEN").or_else(|| sources.env("AWS_SECURITY_TOKEN")),
        },
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(CredentialsError::Half { set: ID, unset: SECRET }),
        (None, Some(_)) => return Err(CredentialsError::Half { set: SECRET, unset: ID }),
    };
    let expires_unix_s = sources.env("AWS_CREDENTIAL_EXPIRATION").and_then(|t| answers::unix_s(&t));
    let keys = Keys { credentials, expires_unix_s };
    Ok(Some(FoundKeys { keys, source: "environment".to_owned(), renewal: Renewal::Never }))
}

#[cfg(test)]
mod tests;
