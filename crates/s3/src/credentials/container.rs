//! Keys of a container: an agent beside it gives them, on ECS, and on EKS by Pod Identity. Source: AWS SDKs and Tools Reference Guide,
//! "Container credential provider".

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use plimsoll_model::text::keep_secret;

use super::{Chain, CredentialsError, FoundKeys, Renewal, answers, is_sendable, web};
use crate::endpoint::Endpoint;

const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
/// ECS's own agent.
const ECS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2));
/// The agents beside a container: ECS's, and EKS's in both families.
const AGENTS: [IpAddr; 3] = [
    ECS,
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
];
/// For connecting, and then for the answer: the five seconds that aws-config reads for.
const LIMIT: Duration = Duration::from_secs(5);

impl Chain<'_> {
    /// `None`: the environment names no such agent.
    pub(super) fn of_container(&self) -> Result<Option<FoundKeys>, CredentialsError> {
        let bad = |name: &str, problem: String| {
            CredentialsError::asked(format!("{name} cannot be used: {problem}"), "Correct it, or unset it")
        };
        let (endpoint, path) = match (self.sources.env(RELATIVE), self.sources.env(FULL)) {
            (Some(relative), _) => {
                let base = Endpoint { tls: false, host: ECS.to_string(), port: 80 };
                let (_, path) = web::place(&format!("{base}{relative}")).map_err(|p| bad(RELATIVE, p))?;
                match relative.starts_with('/') {
                    true => (base, path),
                    false => return Err(bad(RELATIVE, "it does not begin with a slash".into())),
                }
            }
            (None, Some(full)) => {
                let (endpoint, path) = web::place(&full).map_err(|p| bad(FULL, p))?;
                self.must_be_near(&endpoint, &AGENTS).map_err(|p| bad(FULL, p))?;
                (endpoint, path)
            }
            (None, None) => return Ok(None),
        };
        hide_path(&path);
        let mut request =
            web::WebRequest::new("GET", &endpoint, path, LIMIT).with("accept", "application/json");
        if let Some(token) = self.container_token()? {
            request.headers.push(("authorization", token));
        }
        let answer = web::ask(self.sources, &request).map_err(|t| {
            web::silent(
                "the container's credentials",
                t,
                "Check AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI",
            )
        })?;
        let who = "the container's credential agent";
        if answer.status != 200 {
            return Err(web::refusal(who, &request, &answer));
        }
        let names = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
        let keys = answers::json(&answer.body).and_then(|json| answers::of_json(&json, names));
        let keys = keys.map_err(|problem| {
            CredentialsError::asked(format!("{who} at {endpoint} {problem}"), "Check what answers there")
        })?;
        let renewal = if keys.expires_unix_s.is_some() { Renewal::Always } else { Renewal::Never };
        Ok(Some(FoundKeys { keys, source: "container".into(), renewal }))
    }

    /// The file before the value, and read each time: EKS changes what is in it.
    fn container_token(&self) -> Result<Option<String>, CredentialsError> {
        let token = match self.sources.env(TOKEN_FILE) {
            Some(path) => {
                let text = self.sources.read(Path::new(&path)).map_err(|e| {
                    CredentialsError::asked(format!("cannot read {path}: {e}"), format!("Check {TOKEN_FILE}"))
                })?;
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
            None => match self.sources.env(TOKEN) {
                Some(token) => token,
                None => return Ok(None),
            },
        };
        // Of `Bearer TOKEN` a server repeats the second word.
        std::iter::once(&*token).chain(token.split(' ')).for_each(keep_secret);
        // `Bearer TOKEN` has a space in it.
        if token.split(' ').all(is_sendable) {
            return Ok(Some(token));
        }
        let what = "the container's authorization token contains a line end or another character that cannot be sent";
        Err(CredentialsError::asked(what, format!("Correct {TOKEN_FILE} or {TOKEN}")))
    }
}

/// Who knows the path of an agent of ECS has the keys, even without a token. Parts without a digit are words, which texts need.
fn hide_path(path: &str) {
    let parts = path.split(['/', '?', '&', '=']);
    parts.filter(|p| p.contains(|c: char| c.is_ascii_digit())).for_each(keep_secret);
}
