//! Keys of an EC2 instance, from its metadata service, version 2: a token first, then the role's name, then its keys. Version 1, which
//! hands keys to whoever gets a GET through, only where it is asked for. Source: EC2 User Guide, "Use the Instance Metadata Service".

use std::path::Path;
use std::time::Duration;

use plimsoll_model::text::{clean, keep_secret};

use super::{Chain, CredentialsError, FoundKeys, Renewal, answers, is_sendable, web};
use crate::endpoint::Endpoint;

const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
const WHO: &str = "the instance metadata service";

/// What became of asking for a token.
enum Token {
    Given(String),
    /// Without one, as it was asked for.
    NotNeeded,
    NobodyThere,
}

impl Chain<'_> {
    /// `None`: there is no such service here, or it is not to be asked. `asked`: a profile names it, so it has to be here.
    pub(super) fn of_instance(&self, asked: bool) -> Result<Option<FoundKeys>, CredentialsError> {
        let is_true = |v: Option<String>| v.is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if is_true(self.sources.env("AWS_EC2_METADATA_DISABLED")) {
            return Ok(None);
        }
        let Some(endpoint) = self.metadata_endpoint(asked)? else { return Ok(None) };
        let token = match self.metadata_token(&endpoint)? {
            Token::NobodyThere => return Ok(None),
            Token::NotNeeded => None,
            Token::Given(token) => Some(token),
        };
        let get = |path: String| {
            let mut request = web::WebRequest::new("GET", &endpoint, path, self.metadata_limit());
            if let Some(token) = &token {
                request.headers.push(("x-aws-ec2-metadata-token", token.clone()));
            }
            let answer = web::ask(self.sources, &request).map_err(|t| silent(&endpoint, t))?;
            Ok::<_, CredentialsError>((request, answer))
        };
        let (request, answer) = get(ROLES.into())?;
        let role = String::from_utf8_lossy(&answer.body).lines().next().unwrap_or_default().trim().to_owned();
        match answer.status {
            200 if role.is_empty() => return Ok(None),
            // No role is attached to the instance.
            404 => return Ok(None),
            200 if is_sendable(&role) && !role.contains(['/', '?', '#']) && role.len() <= 128 => {}
            200 => return Err(garbage(&endpoint, "gave no name of a role".into())),
            _ => return Err(web::refusal(WHO, &request, &answer)),
        }
        let (request, answer) = get(format!("{ROLES}{role}"))?;
        if answer.status != 200 {
            return Err(web::refusal(WHO, &request, &answer));
        }
        let json = answers::json(&answer.body).map_err(|p| garbage(&endpoint, p))?;
        // It says so under 200.
        if let Some(code) = json["Code"].as_str().filter(|c| *c != "Success") {
            let what =
                format!("{WHO} at {endpoint} has no credentials for role {}: {}", clean(&role), clean(code));
            return Err(CredentialsError::asked(what, "Check the role that is attached to the instance"));
        }
        let names = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
        let keys = answers::of_json(&json, names).map_err(|p| garbage(&endpoint, p))?;
        let source = format!("instance (role {})", clean(&role));
        Ok(Some(FoundKeys { keys, source, renewal: Renewal::Always }))
    }

    /// Where it is; `None`: this machine says of itself that it is none of EC2's, so that nobody waits for an answer.
    fn metadata_endpoint(&self, asked: bool) -> Result<Option<Endpoint>, CredentialsError> {
        let set = |variable: &str, setting: &str| {
            self.sources
                .env(variable)
                .or_else(|| self.settings.get(setting).filter(|v| !v.is_empty()).cloned())
        };
        if let Some(url) = set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint") {
            let (endpoint, path) = web::place(&url).map_err(|p| {
                CredentialsError::asked(
                    format!("AWS_EC2_METADATA_SERVICE_ENDPOINT: {p}"),
                    "Correct it, or unset it",
                )
            })?;
            return match path.trim_matches('/') {
                "" => Ok(Some(endpoint)),
                _ => Err(CredentialsError::asked(
                    "AWS_EC2_METADATA_SERVICE_ENDPOINT has a path",
                    "Leave the path out",
                )),
            };
        }
        if !asked && !self.may_be_of_ec2() {
            return Ok(None);
        }
        let mode = set("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode");
        let host = if mode.is_some_and(|m| m.eq_ignore_ascii_case("ipv6")) {
            "fd00:ec2::254"
        } else {
            "169.254.169.254"
        };
        Ok(Some(Endpoint { tls: false, host: host.into(), port: 80 }))
    }

    /// Instances have their maker's name in DMI (Xen's, the older ones); what has no DMI may be anything.
    fn may_be_of_ec2(&self) -> bool {
        match self.sources.read(Path::new("/sys/class/dmi/id/sys_vendor")) {
            Ok(vendor) => matches!(vendor.trim(), "" | "Amazon EC2" | "Xen"),
            Err(_) => true,
        }
    }

    /// The user names a metadata service, or the machine says whose it is.
    pub(super) fn is_surely_of_ec2(&self) -> bool {
        let named = self.sources.env("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_some()
            || self.settings.get("ec2_metadata_service_endpoint").is_some_and(|v| !v.is_empty());
        let vendor = self.sources.read(Path::new("/sys/class/dmi/id/sys_vendor"));
        named || vendor.is_ok_and(|v| v.trim() == "Amazon EC2")
    }

    /// A second for connecting and one for the answer, as the SDKs have it, or what the user set.
    fn metadata_limit(&self) -> Duration {
        let set = self.sources.env("AWS_METADATA_SERVICE_TIMEOUT").and_then(|t| t.parse::<u64>().ok());
        Duration::from_secs(set.unwrap_or(1).clamp(1, 60))
    }

    fn metadata_token(&self, endpoint: &Endpoint) -> Result<Token, CredentialsError> {
        let disabled = self.sources.env("AWS_EC2_METADATA_V1_DISABLED");
        let disabled = disabled.or_else(|| self.settings.get("ec2_metadata_v1_disabled").cloned());
        let version_1 = disabled.is_some_and(|v| v.eq_ignore_ascii_case("false"));
        let request = web::WebRequest::new("PUT", endpoint, "/latest/api/token", self.metadata_limit())
            .with("x-aws-ec2-metadata-token-ttl-seconds", "21600");
        let answer = match web::ask(self.sources, &request) {
            Ok(answer) => answer,
            Err(t) if !t.connected => return Ok(Token::NobodyThere),
            Err(_) if version_1 => return Ok(Token::NotNeeded),
            Err(t) => return Err(silent(endpoint, t)),
        };
        let token = String::from_utf8_lossy(&answer.body).trim().to_owned();
        match answer.status {
            200 if !token.is_empty() && is_sendable(&token) => {
                keep_secret(&token);
                Ok(Token::Given(token))
            }
            200 => Err(garbage(endpoint, "gave no token".into())),
            403..=405 if version_1 => Ok(Token::NotNeeded),
            403 => Err(CredentialsError::asked(
                format!("{WHO} at {endpoint} refuses (HTTP 403): it is switched off for this instance"),
                "Switch it on, or set AWS_EC2_METADATA_DISABLED=true and give other credentials",
            )),
            404 | 405 => Err(CredentialsError::asked(
                format!("{WHO} at {endpoint} has no version 2 (HTTP {})", answer.status),
                "Set AWS_EC2_METADATA_V1_DISABLED=false to let version 1 be used",
            )),
            _ => Err(web::refusal(WHO, &request, &answer)),
        }
    }
}

fn silent(endpoint: &Endpoint, trouble: web::WebTrouble) -> CredentialsError {
    let _ = endpoint;
    web::silent(
        WHO,
        trouble,
        "In a container the instance's hop limit for it has to be 2 (aws ec2 modify-instance-metadata-options \
         --http-put-response-hop-limit 2); AWS_EC2_METADATA_DISABLED=true leaves it out",
    )
}

fn garbage(endpoint: &Endpoint, problem: String) -> CredentialsError {
    let what = format!("{WHO} at {endpoint} {problem}");
    CredentialsError::asked(what, "Check what answers there, or set AWS_EC2_METADATA_DISABLED=true")
}
