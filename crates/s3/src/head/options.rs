//! What all requests of a target have in common, and which headers a user may add.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::checksum::{CrcKind, content_md5};

/// Settings of one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadOptions {
    /// Raw name; part of the path, or of the host.
    pub bucket: String,
    /// `bucket.host` instead of `host/bucket`.
    pub virtual_host: bool,
    /// Added to uploads (PutObject, CreateMultipart, CopyObject) and signed: storage class, server-side
    /// encryption, metadata, content type. The headers of SSE-C also go to each request that reads the object.
    pub put_headers: Vec<(String, String)>,
    /// Of uploads; `None`: no checksum is sent.
    pub checksum: Option<CrcKind>,
    /// Send `Connection: close` with each request.
    pub close: bool,
    /// Ask for `100 Continue` before bodies of PutObject and UploadPart.
    pub expect_continue: bool,
}

/// A header that cannot be sent, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header '{name}': {problem}")]
pub struct HeaderError {
    /// As it was given.
    pub name: String,
    /// What is wrong with it, in words.
    pub problem: String,
}

/// Names that Plimsoll writes itself, or that would change what a request is.
const OWN: [&str; 19] = [
    "authorization",
    "connection",
    "content-length",
    "content-md5",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-date",
    "x-amz-security-token",
];

/// Headers in lower case, checked; SSE-C ones apart, because reads need them too.
#[derive(Debug, Clone, Default)]
pub(super) struct Extra {
    pub put: Vec<(String, String)>,
    pub sse_c: Vec<(String, String)>,
}

const SSE_C: &str = "x-amz-server-side-encryption-customer-";

impl Extra {
    pub fn new(headers: &[(String, String)]) -> Result<Self, HeaderError> {
        let mut e = Self::default();
        for (name, value) in headers {
            let (name, value) = check(name, value)?;
            let list = if name.starts_with(SSE_C) { &mut e.sse_c } else { &mut e.put };
            if list.iter().any(|(n, _)| *n == name) {
                return Err(HeaderError { name, problem: "is given twice".into() });
            }
            list.push((name, value));
        }
        e.complete_sse_c()?;
        Ok(e)
    }

    /// SSE-C needs algorithm, key and the key's MD5; the first and the last follow from the key.
    fn complete_sse_c(&mut self) -> Result<(), HeaderError> {
        if self.sse_c.is_empty() {
            return Ok(());
        }
        let name = |part: &str| format!("{SSE_C}{part}");
        let find =
            |list: &[(String, String)], n: &str| list.iter().find(|(k, _)| k == n).map(|(_, v)| v.clone());
        let bad = |problem: &str| HeaderError { name: name("key"), problem: problem.into() };
        let key = find(&self.sse_c, &name("key"))
            .ok_or_else(|| bad("is missing beside the other SSE-C headers"))?;
        if let Some(problem) = customer_key_problem(&key) {
            return Err(bad(problem));
        }
        if find(&self.sse_c, &name("algorithm")).is_none() {
            self.sse_c.push((name("algorithm"), "AES256".into()));
        }
        let raw = STANDARD.decode(&key).map_err(|_| bad("is not base64"))?;
        let md5 = String::from_utf8_lossy(&content_md5(&raw)).into_owned();
        match find(&self.sse_c, &name("key-md5")) {
            None => self.sse_c.push((name("key-md5"), md5)),
            Some(given) if given == md5 => {}
            Some(_) => {
                return Err(HeaderError {
                    name: name("key-md5"),
                    problem: "is not the MD5 of the key".into(),
                });
            }
        }
        Ok(())
    }

    /// The SSE-C headers as a copy's source needs them.
    pub fn copy_source_sse_c(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.sse_c
            .iter()
            .map(|(n, v)| (n.replacen("x-amz-server-side", "x-amz-copy-source-server-side", 1), v.clone()))
    }
}

/// What is wrong with a customer's key (SSE-C); none: it can be sent. Never says what the key is.
pub fn customer_key_problem(key: &str) -> Option<&'static str> {
    match STANDARD.decode(key) {
        Ok(raw) if raw.len() == 32 => None,
        Ok(_) => Some("must be base64 of 32 bytes (AES-256)"),
        Err(_) => Some("is not base64"),
    }
}

fn check(name: &str, value: &str) -> Result<(String, String), HeaderError> {
    let bad = |problem: &str| HeaderError { name: name.to_owned(), problem: problem.to_owned() };
    let lower = name.to_ascii_lowercase();
    let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    if lower.is_empty() || !lower.bytes().all(token) {
        return Err(bad("is not a header name"));
    }
    if OWN.contains(&lower.as_str())
        || lower.starts_with("x-amz-checksum-")
        || lower == "x-amz-sdk-checksum-algorithm"
    {
        return Err(bad("is set by plimsoll itself and cannot be given (for checksums, use --checksum)"));
    }
    if !value.bytes().all(|c| c == b'\t' || (b' '..=b'~').contains(&c)) {
        return Err(bad("has a value with characters other than printable ASCII"));
    }
    Ok((lower, value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(h: &[(&str, &str)]) -> Result<Extra, HeaderError> {
        Extra::new(&h.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect::<Vec<_>>())
    }

    #[test]
    fn bad_headers_are_named() {
        for (n, v) in [
            ("Host", "x"),
            ("bad name", "x"),
            ("", "x"),
            ("x-a", "line\r\nbreak"),
            ("x-amz-checksum-crc32c", "AAAA"),
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            ("x-amz-server-side-encryption-customer-key", "c2hvcnQ="),
        ] {
            let e = extra(&[(n, v)]).unwrap_err();
            assert!(e.to_string().starts_with("header '"), "{e}");
        }
        assert!(extra(&[("x-a", "1"), ("X-A", "2")]).is_err());
    }

    #[test]
    fn sse_c_is_completed_from_its_key() {
        let key = STANDARD.encode([7u8; 32]);
        let e = extra(&[("X-Amz-Server-Side-Encryption-Customer-Key", &key)]).unwrap();
        assert_eq!(e.sse_c.len(), 3);
        let copy: Vec<_> = e.copy_source_sse_c().map(|(n, _)| n).collect();
        assert!(copy.contains(&"x-amz-copy-source-server-side-encryption-customer-key-md5".to_string()));
    }
}
