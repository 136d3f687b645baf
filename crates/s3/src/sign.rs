//! Signature Version 4: who signs, and the few hashes that a request costs.
//!
//! A signature is two SHA-256 computations: one over the canonical request, one HMAC over the string to sign.
//! The signing key depends only on day, region and secret, and the first lines of the string to sign on the second:
//! the HMAC state behind both is kept, and the date text is written once a second.
//! Source: AWS, "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".

use std::fmt;

use aws_lc_rs::{digest, hmac};

use crate::date::amz_date;
use crate::uri::hex32;

/// SHA-256 of nothing, in hex: the payload hash of a request without a body.
pub const EMPTY_SHA256: &[u8; 64] = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// The payload hash that says that the body is not signed.
pub const UNSIGNED_PAYLOAD: &[u8; 16] = b"UNSIGNED-PAYLOAD";

/// An access key. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The id of the key: sent in clear with each request.
    pub access_key: String,
    /// Never sent: signatures are made with it.
    pub secret_key: String,
    /// Of temporary keys: sent, and signed, with each request.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key", &self.access_key)
            .field("secret_key", &"***")
            .field("session_token", &self.session_token.as_ref().map(|_| "***"))
            .finish()
    }
}

/// SHA-256 in lower-case hex, as `x-amz-content-sha256` has it.
pub fn sha256_hex(data: &[u8]) -> [u8; 64] {
    hex32(&sha256(data))
}

fn sha256(data: &[u8]) -> [u8; 32] {
    let d = digest::digest(&digest::SHA256, data);
    let mut out = [0; 32];
    out.copy_from_slice(d.as_ref());
    out
}

/// SHA-256 over pieces that come one after another.
#[derive(Clone)]
pub struct Sha256(digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha256")
    }
}

impl Sha256 {
    /// The next of the data, however it is cut.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Lower case, as signatures have it.
    pub fn finish_hex(self) -> [u8; 64] {
        let mut out = [0; 32];
        out.copy_from_slice(self.0.finish().as_ref());
        hex32(&out)
    }
}

/// Signs for one access key in one region. One per worker thread: it keeps the state of the day and the second.
#[derive(Clone)]
pub struct Signer {
    credentials: Credentials,
    region: String,
    day: u64,
    key: hmac::Key,
    second: u64,
    date: [u8; 16],
    /// `YYYYMMDD/region/s3/aws4_request`
    scope: Vec<u8>,
    /// Under the key, after the first three lines of the string to sign: they change once a second.
    begun: hmac::Context,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("credentials", &self.credentials)
            .field("region", &self.region)
            .finish()
    }
}

impl Signer {
    /// The day's signing key is made when a time of that day is first signed for.
    pub fn new(credentials: Credentials, region: impl Into<String>) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"");
        let mut s = Self {
            credentials,
            region: region.into(),
            day: u64::MAX,
            begun: hmac::Context::with_key(&key),
            key,
            second: u64::MAX,
            date: [0; 16],
            scope: Vec::with_capacity(64),
        };
        s.at(0);
        s
    }

    /// Those that requests are signed with.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// As it stands in the scope of each signature.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// `YYYYMMDDTHHMMSSZ` of the time last given to [`Self::at`].
    pub fn date(&self) -> &[u8; 16] {
        &self.date
    }

    /// `ACCESSKEY/YYYYMMDD/region/s3/aws4_request` goes to `out`.
    pub fn push_credential(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.credentials.access_key.as_bytes());
        out.push(b'/');
        out.extend_from_slice(&self.scope);
    }

    /// Sets the time of the signatures that follow. Costs nothing within one second.
    #[inline]
    pub fn at(&mut self, unix_s: u64) {
        if unix_s != self.second {
            self.new_second(unix_s);
        }
    }

    #[cold]
    fn new_second(&mut self, unix_s: u64) {
        self.second = unix_s;
        self.date = amz_date(unix_s);
        let day = unix_s / 86_400;
        if day != self.day {
            self.day = day;
            self.key = signing_key(&self.credentials.secret_key, &self.date[..8], &self.region, "s3");
            self.scope.clear();
            self.scope.extend_from_slice(&self.date[..8]);
            self.scope.push(b'/');
            self.scope.extend_from_slice(self.region.as_bytes());
            self.scope.extend_from_slice(b"/s3/aws4_request");
        }
        self.begun = hmac::Context::with_key(&self.key);
        for part in [b"AWS4-HMAC-SHA256\n", &self.date[..], b"\n", &self.scope, b"\n"] {
            self.begun.update(part);
        }
    }

    /// The signature, in hex, of a canonical request at the time set by [`Self::at`].
    pub fn sign(&mut self, canonical_request: &[u8]) -> [u8; 64] {
        let mut context = self.begun.clone();
        context.update(&hex32(&sha256(canonical_request)));
        let tag = context.sign();
        let mut out = [0; 32];
        out.copy_from_slice(tag.as_ref());
        hex32(&out)
    }
}

fn signing_key(secret: &str, day: &[u8], region: &str, service: &str) -> hmac::Key {
    let mut key = hmac::Key::new(hmac::HMAC_SHA256, [b"AWS4", secret.as_bytes()].concat().as_slice());
    for part in [day, region.as_bytes(), service.as_bytes(), b"aws4_request"] {
        key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part).as_ref());
    }
    key
}

/// What a request is signed for, where it is none of the hot path.
#[derive(Debug, Clone, Copy)]
pub struct PostScope<'a> {
    /// That it is signed for.
    pub region: &'a str,
    /// `sts`, `s3`.
    pub service: &'a str,
    /// As in the `Host` header.
    pub host: &'a str,
    /// Without a query.
    pub path: &'a str,
}

/// The headers that sign a POST of another service than S3, beside `content-type` and `host`. Not for the hot path.
pub fn sign_post(
    credentials: &Credentials,
    scope: PostScope<'_>,
    content_type: &str,
    body: &[u8],
    unix_s: u64,
) -> Vec<(&'static str, String)> {
    let before = [("content-type", content_type), ("host", scope.host)];
    signed(credentials, scope, ("POST", &before), &text(&sha256_hex(body)), unix_s)
}

/// The headers that sign a GET without a query, beside `host`: of calls that administrators make. Not for the hot path.
pub fn sign_get(credentials: &Credentials, scope: PostScope<'_>, unix_s: u64) -> Vec<(&'static str, String)> {
    let hash = text(EMPTY_SHA256);
    let before = [("host", scope.host), ("x-amz-content-sha256", &hash)];
    let mut headers = signed(credentials, scope, ("GET", &before), &hash, unix_s);
    headers.push(("x-amz-content-sha256", hash));
    headers
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `before`: method, and headers that are sent and signed beside those that are given back, in order of their names and before them.
fn signed(
    credentials: &Credentials,
    scope: PostScope<'_>,
    (method, before): (&str, &[(&'static str, &str)]),
    payload_hash: &str,
    unix_s: u64,
) -> Vec<(&'static str, String)> {
    let date = text(&amz_date(unix_s));
    let mut headers = vec![("x-amz-date", date.clone())];
    headers.extend(credentials.session_token.iter().map(|t| ("x-amz-security-token", t.clone())));
    let mut canonical = format!("{method}\n{}\n\n", scope.path);
    let mut names: Vec<&str> = Vec::new();
    let own = headers.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in before.iter().copied().chain(own) {
        canonical.push_str(&format!("{name}:{value}\n"));
        names.push(name);
    }
    let names = names.join(";");
    canonical.push_str(&format!("\n{names}\n{payload_hash}"));
    let within = format!("{}/{}/{}/aws4_request", &date[..8], scope.region, scope.service);
    let hash = text(&sha256_hex(canonical.as_bytes()));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{within}\n{hash}");
    let key = signing_key(&credentials.secret_key, &date.as_bytes()[..8], scope.region, scope.service);
    let mut signature = [0; 32];
    signature.copy_from_slice(hmac::sign(&key, to_sign.as_bytes()).as_ref());
    let signature = text(&hex32(&signature));
    let id = &credentials.access_key;
    let value =
        format!("AWS4-HMAC-SHA256 Credential={id}/{within}, SignedHeaders={names}, Signature={signature}");
    headers.push(("authorization", value));
    headers
}

/// SHA-1 in lower-case hex: the name of a file in the AWS tools' cache, and nothing that has to be safe.
pub fn sha1_hex(data: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data);
    hash.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        let c = Credentials {
            access_key: "AK".into(),
            secret_key: "very-secret".into(),
            session_token: Some("also-secret".into()),
        };
        let text = format!("{c:?} {:?}", Signer::new(c.clone(), "r"));
        assert!(
            text.contains("AK")
                && text.contains("***")
                && !text.contains("secret\"")
                && !text.contains("very")
        );
        assert!(!text.contains("also"));
    }

    /// Computed with Python's hmac and hashlib.
    #[test]
    fn a_get_is_signed_as_another_program_signs_it() {
        let c = Credentials { access_key: "AK".into(), secret_key: "SK".into(), session_token: None };
        let scope =
            PostScope { region: "us-east-1", service: "s3", host: "s1:9000", path: "/minio/admin/v3/info" };
        let headers = sign_get(&c, scope, 1_700_000_000);
        let of = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str()).unwrap();
        assert_eq!(of("x-amz-date"), "20231114T221320Z");
        assert_eq!(
            of("authorization"),
            "AWS4-HMAC-SHA256 Credential=AK/20231114/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=f0d161fab525c80682a70283279f06d4904c5f1dc9778c94b618c8eb99050a67"
        );
        assert_eq!(of("x-amz-content-sha256").as_bytes(), EMPTY_SHA256);
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        let mut h = Sha256::default();
        h.update(b"Welcome to ");
        h.update(b"Amazon S3.");
        assert_eq!(h.finish_hex(), sha256_hex(b"Welcome to Amazon S3."));
        assert_eq!(&sha256_hex(b""), EMPTY_SHA256);
    }
}
