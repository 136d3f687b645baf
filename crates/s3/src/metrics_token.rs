//! The bearer token with which MinIO lets its metrics be read: made of the same keys as requests to it, as `mc admin prometheus generate`
//! makes it (a JWT by HS512, of the issuer `prometheus`).

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::sign::Credentials;

/// For one request, and the clocks of two machines.
const VALID_S: u64 = 300;

/// A token that is valid for some minutes from `now_s` (seconds since 1970).
pub fn metrics_token(keys: &Credentials, now_s: u64) -> String {
    let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let head = part(&serde_json::json!({ "alg": "HS512", "typ": "JWT" }));
    let claims = serde_json::json!({ "exp": now_s + VALID_S, "iss": "prometheus", "sub": keys.access_key });
    let signed = format!("{head}.{}", part(&claims));
    let key = hmac::Key::new(hmac::HMAC_SHA512, keys.secret_key.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's hmac and base64.
    #[test]
    fn the_token_is_what_another_program_makes() {
        let keys =
            Credentials { access_key: "minioadmin".into(), secret_key: "secret".into(), session_token: None };
        assert_eq!(metrics_token(&keys, 1_700_000_000), TOKEN);
    }

    const TOKEN: &str = "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3MDAwMDAzMDAsImlzcyI6InByb21ldGhldXMiLCJzdWIiOiJtaW5pb2FkbWluIn0.3I9pAdtmPTAMFPpwpEPjSko0zUfVk7Se3FOtUjuKpxzrS7aoeuxXdVxBpOV8s0qYYZtLjpOFM8Poqjl-M1e1vA";
}
