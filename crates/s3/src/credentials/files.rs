//! The two files of the AWS tools: profiles, their settings, and which endpoint a service has by them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{CredentialsError, Sources, ini};

/// Settings of one profile, from both files, or of one section.
pub(super) type Settings = BTreeMap<String, String>;

/// Both files, read. Those that are not there are empty.
#[derive(Default)]
pub(super) struct Files {
    pub credentials_path: PathBuf,
    pub config_path: PathBuf,
    credentials: ini::Sections,
    config: ini::Sections,
}

/// The endpoint of all services in the environment.
pub(super) const GENERAL: &str = "AWS_ENDPOINT_URL";

/// Which of the services of AWS an endpoint is for: what its name is in variables, and in sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    S3,
    Sts,
    Sso,
}

impl Service {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::S3 => ("AWS_ENDPOINT_URL_S3", "s3.endpoint_url"),
            Self::Sts => ("AWS_ENDPOINT_URL_STS", "sts.endpoint_url"),
            Self::Sso => ("AWS_ENDPOINT_URL_SSO", "sso.endpoint_url"),
        }
    }
}

/// The service's own endpoint before the general one, and the environment before the files. The general one is taken for S3 alone: it is
/// set for a storage that speaks for AWS, and a token that is meant for AWS must not go to whoever keeps that.
pub(super) fn endpoint_of(
    service: Service,
    sources: &dyn Sources,
    files: Option<&Files>,
    settings: &Settings,
) -> Option<String> {
    let ignored = |v: Option<String>| v.is_some_and(|v| v.eq_ignore_ascii_case("true"));
    if ignored(sources.env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
        || ignored(settings.get("ignore_configured_endpoint_urls").cloned())
    {
        return None;
    }
    let (variable, setting) = service.names();
    let of_service = || {
        let section = files?.config.get(&format!("services {}", settings.get("services")?))?;
        section.get(setting).cloned()
    };
    let is_storage = service == Service::S3;
    sources
        .env(variable)
        .or_else(|| sources.env(GENERAL).filter(|_| is_storage))
        .or_else(of_service)
        .or_else(|| settings.get("endpoint_url").filter(|_| is_storage).cloned())
        .filter(|url| !url.is_empty())
}

impl Files {
    /// Reads them.
    pub(super) fn read(sources: &dyn Sources) -> Result<Self, CredentialsError> {
        let place = |variable: &str, file: &str| -> PathBuf {
            match sources.env(variable) {
                Some(p) => path_of(sources, &p),
                None => home(sources).join(".aws").join(file),
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
        Ok(Self {
            credentials: load(&credentials_at)?,
            config: load(&config_at)?,
            credentials_path: credentials_at,
            config_path: config_at,
        })
    }

    fn config_section(&self, profile: &str) -> Option<&Settings> {
        // In the configuration file profiles are `[profile NAME]`, but for `[default]`.
        self.config
            .get(&format!("profile {profile}"))
            .or_else(|| if profile == "default" { self.config.get("default") } else { None })
    }

    pub(super) fn knows(&self, profile: &str) -> bool {
        self.credentials.contains_key(profile) || self.config_section(profile).is_some()
    }

    pub(super) fn no_profile(&self, profile: &str) -> CredentialsError {
        CredentialsError::NoProfile {
            profile: profile.to_owned(),
            credentials: self.credentials_path.display().to_string(),
            config: self.config_path.display().to_string(),
        }
    }

    /// The profile's settings; those of the credentials file win.
    pub(super) fn settings(&self, profile: &str) -> Settings {
        let mut s = self.config_section(profile).cloned().unwrap_or_default();
        s.extend(self.credentials.get(profile).cloned().unwrap_or_default());
        s
    }

    /// The file in which a profile's keys are.
    pub(super) fn keys_at(&self, profile: &str) -> &Path {
        let has = |s: Option<&Settings>| s.is_some_and(|s| s.contains_key("aws_access_key_id"));
        if has(self.credentials.get(profile)) { &self.credentials_path } else { &self.config_path }
    }

    /// The settings of a session of SSO that profiles share.
    pub(super) fn sso_session(&self, name: &str) -> Option<&Settings> {
        self.config.get(&format!("sso-session {name}"))
    }
}

/// Where the AWS tools keep what is a user's.
pub(super) fn home(sources: &dyn Sources) -> PathBuf {
    PathBuf::from(sources.env("HOME").unwrap_or_else(|| "/".into()))
}

/// A path of a setting, in which `~/` is the user's home.
pub(super) fn path_of(sources: &dyn Sources, path: &str) -> PathBuf {
    path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home(sources).join(rest))
}
