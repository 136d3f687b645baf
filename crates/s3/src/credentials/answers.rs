//! What is answered when credentials are asked for: the JSON of programs, containers, instances and SSO, and the XML of STS.
//!
//! No message repeats what was answered: it holds secrets, or should.

use plimsoll_model::text::keep_secret;

use super::Keys;
use crate::sign::Credentials;

/// The longest key or token that is taken: AWS says 2048 for the token's usual size and promises no limit.
const MOST_CHARS: usize = 16 << 10;

/// A time as these documents have it; old tools write `UTC` for `Z`.
pub(super) fn unix_s(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix("UTC").map_or_else(|| text.to_owned(), |t| format!("{}Z", t.trim_end()));
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// Seconds since 1970 as a person reads them.
pub fn date_of(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.map_or_else(|| "at an unknown time".to_owned(), |t| t.to_string())
}

/// Keys of which all parts are known; from here on the secret ones are left out of any text.
fn keys(
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
    expires_unix_s: Option<u64>,
) -> Result<Keys, String> {
    keep_secret(&secret_key);
    session_token.iter().for_each(|token| keep_secret(token));
    let longest = [Some(&access_key), Some(&secret_key), session_token.as_ref()];
    if longest.into_iter().flatten().any(|v| v.len() > MOST_CHARS) {
        return Err(format!("gave a key or token of more than {MOST_CHARS} characters"));
    }
    Ok(Keys { credentials: Credentials { access_key, secret_key, session_token }, expires_unix_s })
}

/// Reads what is under these names: key, secret, token, and when they expire.
pub(super) fn of_json(json: &serde_json::Value, names: [&str; 4]) -> Result<Keys, String> {
    let [id, secret, token, expiry] = names;
    let text = |name: &str| json[name].as_str().filter(|s| !s.is_empty()).map(str::to_owned);
    let expires_unix_s = match &json[expiry] {
        serde_json::Value::Null => None,
        // SSO counts milliseconds.
        serde_json::Value::Number(ms) => ms.as_u64().map(|ms| ms / 1000),
        value => {
            let read = value.as_str().and_then(unix_s);
            Some(read.ok_or_else(|| format!("gave an {expiry} that is no time"))?)
        }
    };
    let access_key = text(id).ok_or_else(|| format!("gave no {id}"))?;
    let secret_key = text(secret).ok_or_else(|| format!("gave no {secret}"))?;
    keys(access_key, secret_key, text(token), expires_unix_s)
}

/// The same out of bytes.
pub(super) fn json(body: &[u8]) -> Result<serde_json::Value, String> {
    serde_json::from_slice(body)
        .map_err(|e| format!("gave no JSON (line {}, column {})", e.line(), e.column()))
}

/// The keys in an answer of STS.
pub(super) fn of_sts(body: &[u8]) -> Result<Keys, String> {
    let mut parts: [String; 4] = Default::default();
    let read = crate::xml::walk(body, |path, text| {
        let Some((rest, name)) = path.rsplit_once('/') else { return Ok(()) };
        let names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
        if let Some(at) = names.iter().position(|n| *n == name).filter(|_| rest.ends_with("/Credentials")) {
            parts[at] = text.trim().to_owned();
        }
        Ok(())
    });
    if read.is_err() {
        return Err("gave no XML of STS".into());
    }
    let [access_key, secret_key, token, expiry] = parts;
    for (value, name) in
        [(&access_key, "AccessKeyId"), (&secret_key, "SecretAccessKey"), (&token, "SessionToken")]
    {
        if value.is_empty() {
            return Err(format!("gave no {name}"));
        }
    }
    let expires = unix_s(&expiry).ok_or("gave an Expiration that is no time")?;
    keys(access_key, secret_key, Some(token), Some(expires))
}

/// The JSON of a `credential_process`: version 1, key, secret, perhaps a token and a time.
pub(super) fn of_process(output: &[u8]) -> Result<Keys, String> {
    let v = serde_json::from_slice(output)
        .map_err(|e| format!("did not print JSON (line {}, column {})", e.line(), e.column()))?;
    let v: serde_json::Value = v;
    if v["Version"].as_u64() != Some(1) {
        return Err("did not print Version 1".into());
    }
    of_json(&v, ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_all_the_forms_that_tools_write() {
        for text in [
            "2026-11-23T16:00:00Z",
            "2026-11-23T16:00:00.123Z",
            "2026-11-23T17:00:00+01:00",
            "2026-11-23T16:00:00UTC",
        ] {
            assert_eq!(unix_s(text), Some(1_795_449_600), "{text}");
        }
        assert_eq!(unix_s("tomorrow"), None);
        assert_eq!(date_of(1_795_449_600), "2026-11-23T16:00:00Z");
    }

    #[test]
    fn an_answer_that_lacks_something_is_named_and_not_repeated() {
        let names = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
        let bad =
            r#"{"AccessKeyId":"AKIA","SecretAccessKey":"hunter2hunter2","Token":"t","Expiration":"soon"}"#;
        let e = of_json(&json(bad.as_bytes()).unwrap(), names).unwrap_err();
        assert!(e.contains("Expiration") && !e.contains("hunter2"), "{e}");
        assert!(
            of_sts(b"<html><p>x</html>").is_err() && of_sts(b"<a/>").unwrap_err().contains("AccessKeyId")
        );
        assert!(json(b"<html>").unwrap_err().contains("no JSON"));
    }
}
