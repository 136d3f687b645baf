//! What is asked over HTTP on the way to credentials, without the socket: a request, its answer, and what is said of an answer
//! that is none.

use std::net::IpAddr;
use std::time::Duration;

use plimsoll_model::text::said;

use super::{Chain, CredentialsError, Sources};
use crate::endpoint::Endpoint;

/// The most that such a server may answer, bytes: keys and a token are a few thousand.
pub const WEB_MOST_BYTES: usize = 64 << 10;

/// Attempts where a server says that it is ill or throttles, and the first pause between them (it doubles).
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// One request. Redirects are not followed and no proxy is used: who answers is who was asked.
#[derive(Clone)]
pub struct WebRequest {
    /// `GET`, `PUT` or `POST`.
    pub method: &'static str,
    /// Who is asked.
    pub endpoint: Endpoint,
    /// With its query; begins with a slash.
    pub path: String,
    /// Names in lower case; some values are secrets.
    pub headers: Vec<(&'static str, String)>,
    /// Of a POST. It may hold secrets.
    pub body: String,
    /// For connecting, and then for the whole answer.
    pub limit: Duration,
}

/// Neither headers nor body nor query: there are secrets among them.
impl std::fmt::Debug for WebRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebRequest({} {})", self.method, self.endpoint)
    }
}

impl WebRequest {
    /// Without headers and body.
    pub fn new(method: &'static str, endpoint: &Endpoint, path: impl Into<String>, limit: Duration) -> Self {
        let (endpoint, path) = (endpoint.clone(), path.into());
        Self { method, endpoint, path, headers: Vec::new(), body: String::new(), limit }
    }

    /// With one header more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A complete answer.
#[derive(Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// HTTP's.
    pub status: u16,
    /// At most [`WEB_MOST_BYTES`].
    pub body: Vec<u8>,
}

/// The body holds keys.
impl std::fmt::Debug for WebAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebAnswer({}, {} bytes)", self.status, self.body.len())
    }
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebTrouble {
    /// A connection was made: somebody is there.
    pub connected: bool,
    /// What happened, with the endpoint's name in it; no full stop at its end.
    pub what: String,
}

/// Asks until there is an answer that is not "not now", a few times.
pub(super) fn ask(sources: &dyn Sources, request: &WebRequest) -> Result<WebAnswer, WebTrouble> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        let answer = sources.web(request)?;
        if answer.status < 500 && answer.status != 429 {
            return Ok(answer);
        }
        sources.pause(pause);
        pause *= 2;
    }
    sources.web(request)
}

/// An URL that a setting names: who is asked, and the path on it (`/` at the least).
pub(super) fn place(url: &str) -> Result<(Endpoint, String), String> {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let cut = url[after_scheme..].find(['/', '?']).map_or(url.len(), |at| after_scheme + at);
    let (base, path) = url.split_at(cut);
    let endpoint = Endpoint::parse(base).map_err(|e| e.problem)?;
    let is_sendable = path.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    if !is_sendable {
        return Err("its path contains a space or another character that cannot be sent".into());
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((endpoint, path))
}

impl Chain<'_> {
    /// Whether a secret that opens by itself (a token that is not signed with, but shown) may go there: without TLS to this machine only,
    /// and to the `agents` beside it, by address or as localhost.
    pub(super) fn must_be_near(&self, endpoint: &Endpoint, agents: &[IpAddr]) -> Result<(), String> {
        if endpoint.tls {
            return Ok(());
        }
        let addresses = match endpoint.host.parse::<IpAddr>() {
            Ok(ip) => vec![ip],
            // Who answers for another name may say something else when it is connected to.
            Err(_) if !endpoint.host.eq_ignore_ascii_case("localhost") => {
                return Err(format!(
                    "{endpoint} is neither https nor an address of this machine: without TLS write the address itself, or localhost"
                ));
            }
            Err(_) => self
                .sources
                .addresses(&endpoint.host)
                .map_err(|e| format!("the host '{}' is not found: {e}", endpoint.host))?,
        };
        let near = |ip: &IpAddr| ip.is_loopback() || agents.contains(ip);
        if !addresses.is_empty() && addresses.iter().all(near) {
            return Ok(());
        }
        let others: Vec<String> = agents.iter().map(IpAddr::to_string).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(" or of its ECS or EKS agent ({})", others.join(", ")),
        };
        Err(format!("{endpoint} is neither https nor an address of this machine{others}"))
    }
}

/// What an answer says that is not what was asked for: status, and the words of it that are for people.
pub(super) fn refusal(who: &str, request: &WebRequest, answer: &WebAnswer) -> CredentialsError {
    let from = format!("{who} at {}", request.endpoint);
    let what = match answer.status {
        300..=399 => {
            format!("{from} answered with a redirect (HTTP {}), which is not followed", answer.status)
        }
        status => match words(&answer.body) {
            Some(words) => format!("{from} refused (HTTP {status}): {}", words.trim_end_matches('.')),
            None => format!("{from} refused (HTTP {status})"),
        },
    };
    CredentialsError::Asked { what, remedy: String::new() }
}

/// The message of an error in JSON or in the XML of STS; a page of HTML has none.
fn words(body: &[u8]) -> Option<String> {
    if let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) {
        let text = |names: &[&str]| names.iter().find_map(|n| json.get(n)?.as_str()).map(said);
        let (code, message) = (text(&["code", "Code", "__type"]), text(&["message", "Message"]));
        return match (code, message) {
            (Some(c), Some(m)) => Some(format!("{c}: {m}")),
            (one, other) => one.or(other),
        };
    }
    let (mut code, mut message) = (String::new(), String::new());
    crate::xml::walk(body, |path, text| {
        match path.rsplit('/').next() {
            Some("Code") => code = said(text),
            Some("Message") => message = said(text),
            _ => {}
        }
        Ok(())
    })
    .ok()?;
    match (code.is_empty(), message.is_empty()) {
        (true, true) => None,
        (false, false) => Some(format!("{code}: {message}")),
        _ => Some(code + &message),
    }
}

/// Somebody who was to give keys did not answer.
pub(super) fn silent(who: &str, trouble: WebTrouble, remedy: &str) -> CredentialsError {
    CredentialsError::Asked { what: format!("{who}: {}", trouble.what), remedy: remedy.to_owned() }
}
