//! Secrets have no place in a plan: it is kept in each run directory, printed by `--dry-run` and shown in reports.
//!
//! Headers are refused by name, endpoints by what they hold. No message repeats the value.

use super::check::{PlanError, invalid};
use super::{Plan, TargetSpec};
use crate::credentials::{holds_credential, is_secret_header_value, is_secret_label};

/// Words that name a secret, as parts of a header's name.
const SECRET_WORDS: [&str; 15] = [
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cookie",
    "cookie2",
    "credential",
    "credentials",
    "jwt",
    "passwd",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];
/// The same, written in two words.
const SECRET_PAIRS: [&str; 5] = ["api-key", "access-key", "private-key", "customer-key", "encryption-key"];

/// Whether a header of this name is one that carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    name.split('-')
        .any(|word| SECRET_WORDS.contains(&word) || word.ends_with("apikey") || word.starts_with("vault"))
        || name.ends_with("-key")
        || SECRET_PAIRS.iter().any(|pair| name.contains(pair))
        || name.contains("server-side-encryption-customer-")
}

/// Why a URL of a server cannot be kept; none: it can.
pub fn url_problem(url: &str) -> Option<&'static str> {
    // A pattern such as {1...4} holds none of these.
    if url.contains('@') {
        Some("contains a user name or password")
    } else if url.contains(['?', '#']) {
        Some("has a query or fragment, which may contain signatures and tokens")
    } else {
        None
    }
}

/// A URL for a message: without user, password and query. What may be a part of them, because an `@` comes late, is `\u{2026}`.
pub fn shown_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(s, r)| (s, r));
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let place = match place.rsplit_once('@') {
        Some((_, host)) => host,
        // A value of the query, or the end of a password with such a sign in it.
        None if query.contains('@') && !begins_with_host(place) => "\u{2026}",
        None => place,
    };
    if scheme.is_empty() { place.to_owned() } else { format!("{scheme}://{place}") }
}

/// Whether a path follows on a host, with a port or none: a user and password have other signs between them.
fn begins_with_host(place: &str) -> bool {
    let Some((authority, _)) = place.split_once('/') else { return false };
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    port.bytes().all(|c| c.is_ascii_digit())
}

impl Plan {
    /// Refuses what would write a secret into the run.
    pub(super) fn check_secrets(&self) -> Result<(), PlanError> {
        for (name, target) in &self.targets {
            let TargetSpec::S3(s3) = target else { continue };
            let place = || format!("targets.{name}");
            if let Some(header) = s3.put_headers.keys().find(|h| is_secret_header(h)) {
                let remedy = if header.to_ascii_lowercase().contains("customer-") {
                    "Write the key (32 bytes in base64) to a file, and give it with --sse-c-key-file FILE, or \
                     sse_c_key_file in a plan."
                } else {
                    "Remove it: keys and session tokens come from the environment or a profile. For metadata, use \
                     another name."
                };
                let problem = format!("'{header}' contains a secret, but plans are stored and shown");
                return Err(invalid(place(), problem, remedy));
            }
            for url in s3.endpoints.iter().chain(&s3.redirects_to) {
                if let Some(problem) = url_problem(url) {
                    return Err(invalid(
                        place(),
                        format!("the URL of {} {problem}, but plans are stored and shown", shown_url(url)),
                        "Write it as http://HOST:PORT; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile.",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Refuses what looks like a secret in the texts that a run keeps: its name, labels, events, and the values of headers. Asked when a run
    /// begins and not when its plan is read: a run that is stored stays readable.
    pub fn check_kept_texts(&self) -> Result<(), PlanError> {
        let refused = |place: String| {
            let problem = "it holds what looks like a key, a password or a token, but it is stored and shown";
            let remedy = "Leave it out: keys come from the environment or a profile, and a text needs none.";
            Err(invalid(place, problem, remedy))
        };
        if self.name.as_deref().is_some_and(holds_credential) {
            return refused("name".into());
        }
        if let Some(n) = self.labels.iter().position(|(name, value)| is_secret_label(name, value)) {
            // Its name may be the secret.
            let name = self.labels.keys().nth(n).filter(|name| !holds_credential(name));
            return refused(name.map_or("labels".into(), |name| format!("labels.{name}")));
        }
        if let Some(n) = self.options.mark_at.iter().position(|text| holds_credential(text)) {
            return refused(format!("options.mark_at, number {}", n + 1));
        }
        for (name, target) in &self.targets {
            let TargetSpec::S3(s3) = target else { continue };
            if let Some((header, _)) = s3.put_headers.iter().find(|(_, v)| is_secret_header_value(v)) {
                return refused(format!("targets.{name}, header '{header}'"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, PlanError> {
        Plan::from_toml(&format!(
            "version = 1\n[targets.t]\nkind = \"s3\"\nbucket = \"b\"\n{line}\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {{ get = 1 }}\n"
        ))
    }

    #[test]
    fn headers_that_carry_secrets_are_refused_by_name_and_not_repeated() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "Set-Cookie",
            "X-Amz-Security-Token",
            "x-auth-token",
            "x-jwt",
            "X-Vault-Request",
            "x-goog-encryption-key",
            "X-Goog-Encryption-Key-Sha256",
            "x-tenant-key",
            "X-Api-Key",
            "x_api_key",
            "apikey",
            "x-amz-meta-password",
            "X-Amz-Server-Side-Encryption-Customer-Key",
            "x-amz-copy-source-server-side-encryption-customer-key-MD5",
            "X-Vault-Token",
            "x-amz-signature",
        ] {
            let e = plan(&format!("endpoints = [\"http://h\"]\nput_headers = {{ {name} = \"hunter2\" }}"))
                .unwrap_err();
            assert!(e.to_string().contains(name) && !e.to_string().contains("hunter2"), "{e}");
        }
        for name in [
            "x-amz-meta-author",
            "x-amz-storage-class",
            "x-amz-server-side-encryption-aws-kms-key-id",
            "content-type",
            "x-amz-meta-owner",
            "x-amz-tagging",
        ] {
            assert!(
                plan(&format!("endpoints = [\"http://h\"]\nput_headers = {{ {name} = \"v\" }}")).is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn urls_that_carry_secrets_are_refused_and_not_repeated() {
        for url in [
            "http://user:hunter2@h:9000",
            "https://h/?X-Amz-Signature=hunter2",
            "http://h#hunter2",
            "http://a@hunter2@h",
        ] {
            for line in [
                format!("endpoints = [\"{url}\"]"),
                format!("endpoints = [\"http://h\"]\nredirects_to = [\"{url}\"]"),
            ] {
                let e = plan(&line).unwrap_err().to_string();
                assert!(e.contains("://h") && !e.contains("hunter2"), "{e}");
            }
        }
        assert!(plan("endpoints = [\"http://node{1...4}:9000\"]").is_ok());
    }

    #[test]
    fn texts_that_are_kept_hold_no_secret() {
        let made = |target: &str, rest: &str| {
            let text = format!(
                "version = 1\n{rest}\n[targets.t]\nkind = \"s3\"\nbucket = \"b\"\nendpoints = [\"http://h\"]\n{target}\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {{ get = 1 }}\n"
            );
            // It is read all the same: of a run that is stored it would be lost otherwise.
            Plan::from_toml(&text).unwrap().check_kept_texts().map_err(|e| e.to_string())
        };
        for (target, rest, place) in [
            ("", "name = \"http://u:hunter2@h/\"", "name"),
            ("", "labels = { url = \"http://u:hunter2@h/x?sig=hunter2\" }", "labels.url"),
            ("", "labels = { db_password = \"hunter2\" }", "labels.db_password"),
            (
                "",
                "options.mark_at = [\"1s=x\", \"2s=mc alias set a http://h AKIAHUNTER2HUNTER2X hunter2\"]",
                "number 2",
            ),
            ("put_headers = { x-amz-meta-x = \"Bearer hunter2\" }", "", "header 'x-amz-meta-x'"),
            ("put_headers = { x-amz-meta-x = \"Basic hunter2\" }", "", "header 'x-amz-meta-x'"),
        ] {
            let e = made(target, rest).unwrap_err();
            assert!(
                e.contains(place) && e.contains("Leave it out") && !e.to_lowercase().contains("hunter2"),
                "{e}"
            );
        }
        let harmless =
            "labels = { repo = \"ssh://git@h/x\", pass = \"2\" }\noptions.mark_at = [\"1s=node 3 off\"]";
        assert_eq!(made("put_headers = { x-amz-meta-owner = \"me\" }", harmless), Ok(()));
    }

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("http://u:hunter2@h:9000/b/k?sig=hunter2#x", "http://h:9000/b/k"),
            ("http://h:9000/b/k?token=hunter2@x", "http://h:9000/b/k"),
            ("http://u:hunter2?x@h/b", "http://\u{2026}"),
            ("http://u:hunter2/x?@h/b", "http://\u{2026}"),
            ("http://u:hunt/er2@h/b", "http://h/b"),
            ("/b/k?sig=hunter2", "/b/k"),
        ] {
            assert_eq!(shown_url(url), shown, "{url}");
        }
    }
}
