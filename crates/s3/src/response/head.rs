//! The head of an answer: what Plimsoll wants to know of it, in place, without allocation.

use std::time::{SystemTime, UNIX_EPOCH};

use std::borrow::Cow;
use std::mem::MaybeUninit;

use plimsoll_model::plan::shown_url;
use plimsoll_model::text::clean;

use super::{MAX_HEAD_BYTES, MAX_HEADERS, Malformed};
use crate::date::parse_http_date;

/// A short text in place; what does not fit is cut off.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { len: 0, bytes: [0; N] }
    }
}

impl<const N: usize> Text<N> {
    /// Replaces what was there; bytes beyond `N` are lost.
    pub fn set(&mut self, value: &[u8]) {
        let n = value.len().min(N);
        self.bytes[..n].copy_from_slice(&value[..n]);
        self.len = n as u16;
    }

    /// As it came: not even UTF-8 is promised.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The text for a person: what is not UTF-8 is replaced, what a terminal would obey is made visible.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        match String::from_utf8_lossy(self.as_bytes()) {
            Cow::Borrowed(text) => clean(text),
            Cow::Owned(text) => Cow::Owned(clean(&text).into_owned()),
        }
    }

    /// Absent headers leave it so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// For the next answer.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string_lossy())
    }
}

/// Bytes of a `Location` that are kept.
const MAX_LOCATION_BYTES: usize = 1024;

/// Status and the headers that matter here. Texts are empty when the header is absent.
#[derive(Debug, Default)]
pub struct ResponseHead {
    /// Of the final answer: interim ones are swallowed.
    pub status: u16,
    /// Bytes of the body; absent where chunks or the connection's end say it.
    pub content_length: Option<u64>,
    /// The body comes in chunks, each with its length.
    pub chunked: bool,
    /// The connection ends with this answer.
    pub close: bool,
    /// With its quotes.
    pub etag: Text<96>,
    /// `x-amz-request-id`: what the server's logs know the request by.
    pub request_id: Text<64>,
    /// `Server`: the product, as it calls itself.
    pub server: Text<64>,
    /// Where a redirect leads, as it came: it may have a password or a signature in it ([`Self::shown_location`]).
    pub location: Text<MAX_LOCATION_BYTES>,
    /// `x-amz-bucket-region`: what to sign for, in redirects and refusals.
    pub bucket_region: Text<32>,
    /// `x-amz-checksum-crc32c`, base64.
    pub crc32c: Text<32>,
    /// `x-amz-checksum-crc64nvme`, base64.
    pub crc64nvme: Text<32>,
    /// `x-amz-server-side-encryption`: how the object is encrypted.
    pub encryption: Text<16>,
    /// The object is encrypted with the customer's key (SSE-C).
    pub customer_key: bool,
    /// The object has a version of its own (`x-amz-version-id`): the bucket keeps versions.
    pub versioned: bool,
    /// Absent: STANDARD.
    pub storage_class: Text<32>,
    /// `Retry-After` in seconds, when it is a number; a date is turned into one by [`Self::retry_after_s`].
    pub retry_after: RetryAfter,
    /// `Date`, Unix seconds.
    pub date_unix_s: Option<u64>,
    /// Bytes of the whole object, from `Content-Range`; absent where that has `*`.
    pub content_range_total: Option<u64>,
}

/// `Retry-After` as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryAfter {
    #[default]
    Absent,
    Seconds(u64),
    /// Unix seconds.
    At(u64),
}

impl ResponseHead {
    pub(super) fn clear(&mut self) {
        self.status = 0;
        self.content_length = None;
        self.chunked = false;
        self.close = false;
        self.etag.clear();
        self.request_id.clear();
        self.server.clear();
        self.location.clear();
        self.bucket_region.clear();
        self.crc32c.clear();
        self.crc64nvme.clear();
        self.encryption.clear();
        self.customer_key = false;
        self.versioned = false;
        self.storage_class.clear();
        self.retry_after = RetryAfter::Absent;
        self.date_unix_s = None;
        self.content_range_total = None;
    }

    /// Where a redirect leads, for a person: scheme, host, port and path. A server may put a user and password of its own
    /// there, or a signed query.
    pub fn shown_location(&self) -> String {
        let text = self.location.to_string_lossy();
        // The '@' after a password may be cut off.
        if self.location.as_bytes().len() == MAX_LOCATION_BYTES && !text.contains('?') {
            return "a URL that is too long".into();
        }
        let lower = text.to_ascii_lowercase();
        // Parameters of a path, and a query that was encoded once too often, are none of the path either.
        match [";", "%3b", "%3f", "%23"].iter().filter_map(|sign| lower.find(sign)).min() {
            Some(at) => shown_url(&format!("{}?{}", &text[..at], &text[at..])),
            None => shown_url(&text),
        }
    }

    /// Seconds to wait as the server asks. A date counts from the server's own `Date`.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self.retry_after {
            RetryAfter::Absent => None,
            RetryAfter::Seconds(s) => Some(s),
            // By the clock that wrote it; an answer without `Date` is held against ours.
            RetryAfter::At(at) => {
                let ours = || SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|d| d.as_secs());
                self.date_unix_s.or_else(ours).map(|now| at.saturating_sub(now))
            }
        }
    }

    /// Reads a head at the start of `input`; its length, or `None` when it is not complete.
    pub(super) fn parse(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut headers = [MaybeUninit::uninit(); MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let status = config.parse_response_with_uninit_headers(&mut response, input, &mut headers).map_err(
            |e| match e {
                httparse::Error::TooManyHeaders => Malformed::HeadTooLong,
                httparse::Error::Version => Malformed::NotHttp("it does not begin with HTTP/1.0 or HTTP/1.1"),
                httparse::Error::Status => Malformed::NotHttp("its status line is broken"),
                httparse::Error::HeaderName | httparse::Error::HeaderValue => {
                    Malformed::NotHttp("a header is broken")
                }
                _ => Malformed::NotHttp("its head is broken"),
            },
        )?;
        let httparse::Status::Complete(used) = status else { return Ok(None) };
        if used > MAX_HEAD_BYTES {
            return Err(Malformed::HeadTooLong);
        }
        self.clear();
        self.status = response.code.unwrap_or(0);
        if !(100..=599).contains(&self.status) {
            return Err(Malformed::NotHttp("its status is not between 100 and 599"));
        }
        let http_1_0 = response.version == Some(0);
        let mut keep_alive = false;
        for h in response.headers.iter() {
            keep_alive |= self.header(h.name, h.value)?;
        }
        if http_1_0 {
            // A 1.0 server does not know chunks; RFC 9112 6.1: such a message is faulty.
            if self.chunked {
                return Err(Malformed::TransferCoding);
            }
            self.close |= !keep_alive;
        }
        if self.chunked && self.content_length.take().is_some() {
            // RFC 9112 6.3: chunked rules, and the connection is not to be trusted afterwards.
            self.close = true;
        }
        Ok(Some(used))
    }

    /// Takes one header; true for `Connection: keep-alive`.
    fn header(&mut self, name: &str, value: &[u8]) -> Result<bool, Malformed> {
        let is = |n: &str| name.eq_ignore_ascii_case(n);
        match name.len() {
            4 if is("date") => self.date_unix_s = parse_http_date(value),
            4 if is("etag") => self.etag.set(value),
            6 if is("server") => self.server.set(value),
            8 if is("location") => self.location.set(value),
            10 if is("connection") => return Ok(self.connection(value)),
            11 if is("retry-after") => self.retry_after = parse_retry_after(value),
            13 if is("content-range") => {
                self.content_range_total =
                    value.rsplit(|c| *c == b'/').next().and_then(|t| decimal(t.trim_ascii()));
            }
            14 if is("content-length") => self.length(value)?,
            16 if is("x-amz-request-id") => self.request_id.set(value),
            16 if is("x-amz-version-id") => self.versioned = value.trim_ascii() != b"null",
            17 if is("transfer-encoding") => self.coding(value)?,
            19 if is("x-amz-bucket-region") => self.bucket_region.set(value),
            19 if is("x-amz-storage-class") => self.storage_class.set(value.trim_ascii()),
            21 if is("x-amz-checksum-crc32c") => self.crc32c.set(value.trim_ascii()),
            24 if is("x-amz-checksum-crc64nvme") => self.crc64nvme.set(value.trim_ascii()),
            28 if is("x-amz-server-side-encryption") => self.encryption.set(value.trim_ascii()),
            47 if is("x-amz-server-side-encryption-customer-algorithm") => self.customer_key = true,
            _ => {}
        }
        Ok(false)
    }

    fn connection(&mut self, value: &[u8]) -> bool {
        let mut keep = false;
        for word in value.split(|c| *c == b',').map(<[u8]>::trim_ascii) {
            self.close |= word.eq_ignore_ascii_case(b"close");
            keep |= word.eq_ignore_ascii_case(b"keep-alive");
        }
        keep
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        // `5, 5` is what a proxy makes of two equal headers; RFC 9112 6.3 lets it pass.
        for word in value.split(|c| *c == b',') {
            let n = decimal(word.trim_ascii()).ok_or(Malformed::ContentLength)?;
            if self.content_length.is_some_and(|m| m != n) {
                return Err(Malformed::ContentLength);
            }
            self.content_length = Some(n);
        }
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let v = value.trim_ascii();
        if v.eq_ignore_ascii_case(b"chunked") && !self.chunked {
            self.chunked = true;
            Ok(())
        } else if v.eq_ignore_ascii_case(b"identity") {
            Ok(())
        } else {
            Err(Malformed::TransferCoding)
        }
    }

    /// Takes `name: value` of a trailer; only checksums matter, and a broken line is not worth an error.
    pub(super) fn trailer_line(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|c| *c == b':') else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"x-amz-checksum-crc32c") {
            self.crc32c.set(value);
        } else if name.eq_ignore_ascii_case(b"x-amz-checksum-crc64nvme") {
            self.crc64nvme.set(value);
        }
    }
}

fn parse_retry_after(value: &[u8]) -> RetryAfter {
    let v = value.trim_ascii();
    match (decimal(v), parse_http_date(v)) {
        (Some(s), _) => RetryAfter::Seconds(s),
        (None, Some(at)) => RetryAfter::At(at),
        (None, None) => RetryAfter::Absent,
    }
}

/// Digits only: no sign, no blank; below 2^63.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0u64, |n, c| c.is_ascii_digit().then(|| n * 10 + u64::from(c - b'0')))
}
