//! Where credentials and region come from, in the order of the AWS tools. The outside world (environment, files,
//! programs) is injected, so that each way can be tested.
//!
//! Keys: an explicitly named profile; else the environment's; else the profile that AWS_PROFILE names, or `default`.
//! A profile is read from the credentials file, then from the configuration file, then by running its
//! `credential_process`. Region and endpoint: the environment first, also before an explicitly named profile.
//! A file that is not there is an empty one, wherever its name came from. Sources: AWS CLI, "Configuration and
//! credential file settings"; AWS SDKs and Tools, "Service-specific endpoints"; botocore's session and credentials.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::sign::Credentials;

mod ini;

/// The outside world.
pub trait Sources {
    /// An environment variable; `None` when it is unset or empty.
    fn env(&self, name: &str) -> Option<String>;
    /// A whole file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Runs a command line and gives its standard output.
    fn run(&self, command: &str) -> io::Result<Vec<u8>>;
}

/// What was found, and where (for provenance; never the secret).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What requests are signed with.
    pub credentials: Credentials,
    /// `environment`, `profile NAME (PATH)` or `credential_process of profile NAME`.
    pub source: String,
    /// From AWS_REGION, AWS_DEFAULT_REGION or the profile.
    pub region: Option<String>,
    /// From AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the `[services]` section that the profile names, or its endpoint_url.
    pub endpoint_url: Option<String>,
}

/// Why there are no usable keys, with the remedy in it or to be added (see [`Self::names_remedy`]).
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
}

impl CredentialsError {
    /// Its text is `problem: remedy`.
    pub fn names_remedy(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Half { .. } | Self::NoProfile { .. } | Self::Unprintable { .. }
        )
    }
}

/// Settings of one profile, from both files.
type Settings = BTreeMap<String, String>;

struct Files {
    credentials_path: PathBuf,
    config_path: PathBuf,
    credentials: ini::Sections,
    config: ini::Sections,
}

/// Finds credentials, region and endpoint. `profile`: the one that the user named explicitly.
pub fn resolve(sources: &dyn Sources, profile: Option<&str>) -> Result<Resolved, CredentialsError> {
    let explicit = profile.is_some();
    let name = profile_name(sources, profile);
    let from_env = if explicit { None } else { environment(sources)? };
    let files = read_files(sources);
    let files = match (files, &from_env) {
        // Keys of the environment do not need the files: a broken one must not stand in the way.
        (Err(_), Some(_)) => None,
        (Err(e), None) => return Err(e),
        (Ok(f), _) => Some(f),
    };
    let settings = files.as_ref().map(|f| f.settings(&name)).unwrap_or_default();
    let region = sources
        .env("AWS_REGION")
        .or_else(|| sources.env("AWS_DEFAULT_REGION"))
        .or_else(|| settings.get("region").cloned());
    let endpoint_url = endpoint_of(sources, files.as_ref(), &settings);
    let (credentials, source) = match (from_env, files) {
        (Some(c), _) => (c, "environment".to_owned()),
        (None, Some(f)) => f.credentials_of(sources, &name, explicit, &settings)?,
        (None, None) => unreachable!("without environment keys the files were read or their error returned"),
    };
    printable(&credentials, &source)?;
    Ok(Resolved { credentials, source, region, endpoint_url })
}

/// Keys and tokens are printable ASCII without spaces: a line end among them (of a file that was read whole) would be one on
/// the wire, where the next header begins.
fn printable(c: &Credentials, origin: &str) -> Result<(), CredentialsError> {
    let parts = [
        ("access key", Some(&c.access_key)),
        ("secret key", Some(&c.secret_key)),
        ("session token", c.session_token.as_ref()),
    ];
    match parts.iter().find(|(_, v)| v.is_some_and(|v| !v.bytes().all(|b| b.is_ascii_graphic()))) {
        Some(&(what, _)) => Err(CredentialsError::Unprintable { what, origin: origin.to_owned() }),
        None => Ok(()),
    }
}

/// The endpoint that is configured, without a look at credentials. An explicitly named profile must exist.
pub fn endpoint_url(
    sources: &dyn Sources,
    profile: Option<&str>,
) -> Result<Option<String>, CredentialsError> {
    let from_env = endpoint_of(sources, None, &Settings::new());
    if from_env.is_some() {
        return Ok(from_env);
    }
    let name = profile_name(sources, profile);
    let files = read_files(sources)?;
    if profile.is_some() && !files.knows(&name) {
        return Err(files.no_profile(&name));
    }
    Ok(endpoint_of(sources, Some(&files), &files.settings(&name)))
}

fn profile_name(sources: &dyn Sources, explicit: Option<&str>) -> String {
    explicit
        .map(str::to_owned)
        .or_else(|| sources.env("AWS_PROFILE"))
        .or_else(|| sources.env("AWS_DEFAULT_PROFILE"))
        .unwrap_or_else(|| "default".into())
}

/// S3's own endpoint before the general one, and the environment before the files.
fn endpoint_of(sources: &dyn Sources, files: Option<&Files>, settings: &Settings) -> Option<String> {
    let ignored = |v: Option<String>| v.is_some_and(|v| v.eq_ignore_ascii_case("true"));
    if ignored(sources.env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
        || ignored(settings.get("ignore_configured_endpoint_urls").cloned())
    {
        return None;
    }
    let of_service = || {
        let section = files?.config.get(&format!("services {}", settings.get("services")?))?;
        section.get("s3.endpoint_url").cloned()
    };
    sources
        .env("AWS_ENDPOINT_URL_S3")
        .or_else(|| sources.env("AWS_ENDPOINT_URL"))
        .or_else(of_service)
        .or_else(|| settings.get("endpoint_url").cloned())
        .filter(|url| !url.is_empty())
}

fn environment(sources: &dyn Sources) -> Result<Option<Credentials>, CredentialsError> {
    const ID: &str = "AWS_ACCESS_KEY_ID";
    const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
    match (sources.env(ID), sources.env(SECRET)) {
        (Some(access_key), Some(secret_key)) => Ok(Some(Credentials {
            access_key,
            secret_key,
            session_token: sources.env("AWS_SESSION_TOKEN").or_else(|| sources.env("AWS_SECURITY_TOKEN")),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(CredentialsError::Half { set: ID, unset: SECRET }),
        (None, Some(_)) => Err(CredentialsError::Half { set: SECRET, unset: ID }),
    }
}

fn read_files(sources: &dyn Sources) -> Result<Files, CredentialsError> {
    let home = sources.env("HOME").unwrap_or_else(|| "/".into());
    let place = |variable: &str, file: &str| -> PathBuf {
        match sources.env(variable) {
            Some(p) => {
                let path = p.strip_prefix("~/").map(|rest| Path::new(&home).join(rest));
                path.unwrap_or_else(|| PathBuf::from(p))
            }
            None => Path::new(&home).join(".aws").join(file),
        }
    };
    let load = |path: &PathBuf| -> Result<ini::Sections, CredentialsError> {
        match sources.read(path) {
            Ok(text) => ini::parse(&text).map_err(|(line, problem)| CredentialsError::Syntax {
                path: path.display().to_string(),
                line,
                problem: problem.into(),
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(ini::Sections::new()),
            Err(e) => {
                Err(CredentialsError::Read { path: path.display().to_string(), problem: e.to_string() })
            }
        }
    };
    let credentials_at = place("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config_at = place("AWS_CONFIG_FILE", "config");
    Ok(Files {
        credentials: load(&credentials_at)?,
        config: load(&config_at)?,
        credentials_path: credentials_at,
        config_path: config_at,
    })
}

impl Files {
    fn config_section(&self, profile: &str) -> Option<&Settings> {
        // In the configuration file profiles are `[profile NAME]`, but for `[default]`.
        self.config
            .get(&format!("profile {profile}"))
            .or_else(|| if profile == "default" { self.config.get("default") } else { None })
    }

    fn knows(&self, profile: &str) -> bool {
        self.credentials.contains_key(profile) || self.config_section(profile).is_some()
    }

    fn no_profile(&self, profile: &str) -> CredentialsError {
        CredentialsError::NoProfile {
            profile: profile.to_owned(),
            credentials: self.credentials_path.display().to_string(),
            config: self.config_path.display().to_string(),
        }
    }

    /// The profile's settings; those of the credentials file win.
    fn settings(&self, profile: &str) -> Settings {
        let mut s = self.config_section(profile).cloned().unwrap_or_default();
        s.extend(self.credentials.get(profile).cloned().unwrap_or_default());
        s
    }

    fn credentials_of(
        &self,
        sources: &dyn Sources,
        profile: &str,
        explicit: bool,
        settings: &Settings,
    ) -> Result<(Credentials, String), CredentialsError> {
        let problem = |problem: String| CredentialsError::Profile { profile: profile.to_owned(), problem };
        let get = |k: &str| settings.get(k).filter(|v| !v.is_empty()).cloned();
        match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(access_key), Some(secret_key)) => {
                let c = Credentials { access_key, secret_key, session_token: get("aws_session_token") };
                let has = |s: Option<&Settings>| s.is_some_and(|s| s.contains_key("aws_access_key_id"));
                let path = if has(self.credentials.get(profile)) {
                    &self.credentials_path
                } else {
                    &self.config_path
                };
                return Ok((c, format!("profile {profile} ({})", path.display())));
            }
            (None, None) => {}
            (Some(_), None) => return Err(problem("aws_secret_access_key is missing".into())),
            (None, Some(_)) => return Err(problem("aws_access_key_id is missing".into())),
        }
        if let Some(command) = get("credential_process") {
            let output = sources
                .run(&command)
                .map_err(|e| problem(format!("credential_process could not be run: {e}")))?;
            let c = parse_process_output(&output).map_err(|p| problem(format!("credential_process {p}")))?;
            return Ok((c, format!("credential_process of profile {profile}")));
        }
        for unsupported in ["sso_session", "sso_start_url", "role_arn", "web_identity_token_file"] {
            if settings.contains_key(unsupported) {
                return Err(problem(format!(
                    "{unsupported} is not supported here; add the line 'credential_process = aws configure export-credentials --profile {profile}' to a profile of its own and use that"
                )));
            }
        }
        if !self.knows(profile) && (explicit || profile != "default") {
            return Err(self.no_profile(profile));
        }
        Err(CredentialsError::Missing {
            profile: profile.to_owned(),
            path: self.credentials_path.display().to_string(),
        })
    }
}

/// The JSON of a `credential_process`: version 1, key, secret, perhaps a token.
fn parse_process_output(output: &[u8]) -> Result<Credentials, String> {
    let v: serde_json::Value = serde_json::from_slice(output)
        .map_err(|e| format!("did not print JSON (line {}, column {})", e.line(), e.column()))?;
    if v["Version"].as_u64() != Some(1) {
        return Err("did not print Version 1".into());
    }
    let text = |name: &str| v[name].as_str().filter(|s| !s.is_empty()).map(str::to_owned);
    Ok(Credentials {
        access_key: text("AccessKeyId").ok_or("printed no AccessKeyId")?,
        secret_key: text("SecretAccessKey").ok_or("printed no SecretAccessKey")?,
        session_token: text("SessionToken"),
    })
}

/// The process's own environment and file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Sources for System {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|v| !v.is_empty())
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn run(&self, command: &str) -> io::Result<Vec<u8>> {
        let out = std::process::Command::new("sh")
            .args(["-c", command])
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::inherit())
            .output()?;
        if out.status.success() {
            Ok(out.stdout)
        } else {
            Err(io::Error::other(format!("it ended with {}", out.status)))
        }
    }
}

#[cfg(test)]
mod tests;
