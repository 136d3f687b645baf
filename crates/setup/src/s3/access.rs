//! How an S3 target is reached: endpoints, credentials, region.

use std::sync::Arc;

use plimsoll_engine::target::s3::LiveKeys;
use plimsoll_model::plan::{S3Target, is_secret_header};
use plimsoll_model::text::keep_secret;
use plimsoll_s3::credentials::endpoint_url;
use plimsoll_s3::{Credentials, Endpoint};

use super::asked;
use super::held::HeldKeys;
use super::outside::ThisMachine;
use crate::error::SetupError;
use crate::server::ReadyLine;

/// Region where none is named anywhere: what servers other than AWS expect.
const DEFAULT_REGION: &str = "us-east-1";

/// How to reach a target, without having touched its bucket.
#[derive(Debug, Clone)]
pub struct Access {
    /// As they were named; requests go over them in turn.
    pub endpoints: Vec<Endpoint>,
    /// Where redirects may lead beside those.
    pub redirects: Vec<Endpoint>,
    /// For the endpoints and the redirects alike.
    pub keys: LiveKeys,
    /// Where these are from, and how long they last; none of a server of our own.
    pub held: Option<Arc<HeldKeys>>,
    /// What requests are signed for.
    pub region: String,
    /// As the plan has it, with the customer's key among its headers.
    pub target: S3Target,
}

impl Access {
    /// What a report says of the keys; none where they are such as do not expire.
    pub fn keys_in_words(&self) -> Option<String> {
        self.held.as_ref().filter(|h| h.expires_unix_s().is_some()).map(|h| h.in_words())
    }
}

/// Keys for a target that somebody sent, to be used instead of what this machine has.
#[derive(Debug, Clone)]
pub struct GivenKeys {
    credentials: Credentials,
    expires_unix_s: Option<u64>,
}

impl GivenKeys {
    /// Access key, secret key, and of temporary ones the token and when they expire (Unix seconds).
    pub fn new(
        access_key: &str,
        secret_key: &str,
        session_token: Option<&str>,
        expires_unix_s: Option<u64>,
    ) -> Self {
        let credentials = Credentials {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            session_token: session_token.map(str::to_owned),
        };
        Self { credentials, expires_unix_s }
    }

    /// What this machine would use for a target.
    pub fn of_here(target: &S3Target) -> Result<Self, SetupError> {
        let held = HeldKeys::found_here(target.profile.as_deref())?;
        Ok(Self { credentials: (*held.live().get()).clone(), expires_unix_s: held.expires_unix_s() })
    }

    /// As they were given to [`Self::new`].
    pub fn parts(&self) -> (&str, &str, Option<&str>, Option<u64>) {
        let c = &self.credentials;
        (&c.access_key, &c.secret_key, c.session_token.as_deref(), self.expires_unix_s)
    }
}

/// Credentials from the server that we started, else from where the AWS tools look.
pub fn access(target: &S3Target, server: Option<&ReadyLine>) -> Result<Access, SetupError> {
    access_with(target, server, None)
}

/// The same with keys that were sent, if some were.
pub fn access_with(
    target: &S3Target,
    server: Option<&ReadyLine>,
    given: Option<&GivenKeys>,
) -> Result<Access, SetupError> {
    let mut wire = asked::with_customer_key(target)?;
    if let Some(ready) = server {
        // The certificate that it made is trusted by its run, whatever else is.
        if ready.ca_file.is_some() {
            wire.tls.ca_file.clone_from(&ready.ca_file);
        }
        let endpoint = parse_endpoints(std::slice::from_ref(&ready.endpoint))?;
        let credentials = Credentials {
            access_key: ready.access_key.clone(),
            secret_key: ready.secret_key.clone(),
            session_token: None,
        };
        let region = target.region.clone().unwrap_or_else(|| DEFAULT_REGION.into());
        let keys = LiveKeys::from(credentials);
        let redirects = Vec::new();
        return Ok(Access { endpoints: endpoint, redirects, keys, held: None, region, target: wire });
    }
    wire.put_headers.iter().filter(|(n, _)| is_secret_header(n)).for_each(|(_, key)| keep_secret(key));
    let found = match given {
        Some(GivenKeys { credentials, expires_unix_s }) => {
            HeldKeys::given(credentials.clone(), *expires_unix_s)
        }
        None => HeldKeys::found_here(target.profile.as_deref())?,
    };
    let endpoints = match (&target.endpoints[..], &found.endpoint_url) {
        ([], Some(url)) => parse_endpoints(std::slice::from_ref(url))?,
        ([], None) => return Err(no_endpoint()),
        (list, _) => parse_endpoints(list)?,
    };
    let region =
        target.region.clone().or_else(|| found.region.clone()).unwrap_or_else(|| DEFAULT_REGION.into());
    let redirects = parse_endpoints(&target.redirects_to)?;
    let keys = found.live().clone();
    Ok(Access { endpoints, redirects, keys, held: Some(found), region, target: wire })
}

/// Where a target is, without the keys for it: of the plan, or else of the environment or profile.
pub(super) fn endpoints_without_keys(target: &S3Target) -> Result<Vec<Endpoint>, SetupError> {
    if !target.endpoints.is_empty() {
        return parse_endpoints(&target.endpoints);
    }
    match configured_endpoint(target.profile.as_deref())? {
        Some(url) => parse_endpoints(std::slice::from_ref(&url)),
        None => Err(no_endpoint()),
    }
}

fn no_endpoint() -> SetupError {
    SetupError::input("no endpoint is given", "Give one with --endpoint, or set AWS_ENDPOINT_URL")
}

/// A sentence's beginning.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// The endpoint where the command line names none: of the environment, or of the profile.
pub fn configured_endpoint(profile: Option<&str>) -> Result<Option<String>, SetupError> {
    endpoint_url(&ThisMachine, profile)
        .map_err(|e| SetupError::input(e.to_string(), "Correct it, or give the endpoint with --endpoint"))
}

pub(super) fn parse_endpoints(patterns: &[String]) -> Result<Vec<Endpoint>, SetupError> {
    let mut all = Vec::new();
    for p in patterns {
        all.extend(Endpoint::expand(p).map_err(|e| {
            SetupError::input(e.to_string(), "An endpoint is a URL such as http://127.0.0.1:9000")
        })?);
    }
    Ok(all)
}
