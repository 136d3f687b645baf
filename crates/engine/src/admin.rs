//! A small blocking S3 client for set-up and cleanup: never on the hot path.
//!
//! It makes and removes buckets, writes manifests, lists, deletes in batches and aborts uploads, and turns what goes
//! wrong into a sentence with a remedy. Throttled and 5xx answers are tried again (nothing here is measured).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_model::Outcome;
use plimsoll_s3::Endpoint;
use plimsoll_s3::classify::{Asked, classify, explain};
use plimsoll_s3::head::{Action, Body, HEAD_CAPACITY, HeadOptions, Heads, PayloadHash};
use plimsoll_s3::sign::sha256_hex;
use plimsoll_s3::xml::{self, DocumentError, ErrorDocument};

mod cleaning;
mod connection;
mod give_up;
mod web;

pub use cleaning::{DeleteItem, KeepsVersions, Kept, MAX_DELETE_KEYS};
pub use give_up::GiveUp;
pub use web::{check_tls, fetch, fetch_up_to};

use crate::target::s3::LiveKeys;
use crate::target::s3::renewal::{HeadRecipe, HeadsInbox};
use cleaning::Listing;
use connection::{Answer, Connection};

/// What the client talks to.
#[derive(Debug, Clone)]
pub struct AdminSetup {
    /// The server that is asked.
    pub endpoint: Endpoint,
    /// What requests are signed with.
    pub keys: LiveKeys,
    /// What they are signed for, and where a bucket is made.
    pub region: String,
    /// Of all requests.
    pub bucket: String,
    /// `bucket.host` instead of `host/bucket`.
    pub virtual_host: bool,
    /// Trust and names, where the endpoint is https.
    pub tls: plimsoll_model::plan::TlsSpec,
    /// Headers of uploads (encryption, storage class).
    pub put_headers: Vec<(String, String)>,
    /// Of connecting, of each silence of the server, and of a whole answer.
    pub timeout: Duration,
}

/// What a server says of how it keeps an object; empty where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// `AES256`, `aws:kms`.
    pub encryption: String,
    /// Encrypted with the customer's key (SSE-C).
    pub customer_key: bool,
    /// `x-amz-storage-class`; empty also stands for STANDARD.
    pub storage_class: String,
}

/// The kind of trouble, for callers that react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No connection: name, network, TLS.
    Unreachable,
    /// The server answered and refused who asks: credentials, clock, region.
    Refused,
    /// The server knows who asks, and does not allow it (403 AccessDenied, or without a code).
    Forbidden,
    /// Or no name of one.
    NoSuchBucket,
    /// The bucket is there, the object is not.
    NotFound,
    /// The bucket exists already and is not ours, or is not empty.
    Conflict,
    /// 429, or 503 as throttling, after the last attempt.
    Throttled,
    /// The server answers with 5xx: it is starting, stopping, or ill.
    Failing,
    /// The server does not know this request (501, 405).
    Unsupported,
    /// A listing names what is not under the prefix that was asked for.
    Foreign,
    /// The answer made no sense, or another error.
    Other,
}

/// What went wrong, for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}. {remedy}")]
pub struct AdminError {
    /// To decide by.
    pub trouble: Trouble,
    /// No full stop at its end.
    pub message: String,
    /// What to do about it; may be empty.
    pub remedy: String,
}

impl AdminError {
    fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self { trouble, message: message.into(), remedy: String::new() }
    }
}

/// One connection to one endpoint.
#[derive(Debug)]
pub struct Admin {
    setup: AdminSetup,
    heads: Vec<Heads>,
    new_heads: HeadsInbox,
    connection: Connection,
    head: Vec<u8>,
    server: Option<String>,
    listing: Listing,
    /// The server has no DeleteObjects.
    single_deletes: bool,
    /// An answer showed that the bucket keeps versions.
    versioned: bool,
}

/// Attempts of one request, and the first pause between them (it doubles).
const ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Admin {
    /// Checks the settings; connects with the first request.
    pub fn new(setup: AdminSetup) -> Result<Self, AdminError> {
        let other = |m: String| AdminError::new(Trouble::Other, m);
        if setup.virtual_host && setup.endpoint.is_ip() {
            return Err(other(format!(
                "virtual-host addressing needs a host name, but {} is an IP address: use path addressing",
                setup.endpoint
            )));
        }
        let options = HeadOptions {
            bucket: setup.bucket.clone(),
            virtual_host: setup.virtual_host,
            put_headers: setup.put_headers.clone(),
            ..HeadOptions::default()
        };
        let endpoints = vec![setup.endpoint.clone()];
        let recipe = HeadRecipe { endpoints, region: setup.region.clone(), options };
        let (heads, new_heads) = setup.keys.subscribe(recipe).map_err(|e| other(e.to_string()))?;
        let connection = Connection::new(&setup).map_err(other)?;
        Ok(Self {
            heads,
            new_heads,
            connection,
            head: Vec::with_capacity(HEAD_CAPACITY),
            server: None,
            listing: Listing::default(),
            single_deletes: false,
            versioned: false,
            setup,
        })
    }

    /// The `Server` header of the last answer that had one.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Nobody waits any longer once this is due: calls fail at once, and the one under way within a tenth of a second.
    pub fn give_up_when(&mut self, end: GiveUp) {
        self.connection.give_up = end;
    }

    /// As it was made.
    pub fn setup(&self) -> &AdminSetup {
        &self.setup
    }

    /// Whether the bucket is there. Other troubles (credentials, clock) are errors. `tell` gets a sentence when the server has to be
    /// waited for.
    pub fn reach(&mut self, tell: &mut dyn FnMut(String)) -> Result<bool, AdminError> {
        // A GET, because a HEAD answers without saying what is wrong.
        let list = Action::List {
            prefix: "",
            delimiter: None,
            max_keys: 1,
            token: None,
            start_after: None,
            url_encoding: false,
        };
        let a = self.exchange_telling(&list, "", b"", tell)?;
        if a.outcome().is_ok() {
            return Ok(true);
        }
        match self.refusal(&a) {
            e if e.trouble == Trouble::NoSuchBucket => Ok(false),
            e => Err(e),
        }
    }

    /// Makes the bucket. True when it was made, false when it was there already and is ours.
    pub fn create_bucket(&mut self) -> Result<bool, AdminError> {
        let mut body = Vec::new();
        xml::write_create_bucket(&self.setup.region, &mut body);
        match self.exchange(&Action::CreateBucket, "", &body)? {
            a if a.outcome().is_ok() => Ok(true),
            a if a.code() == "BucketAlreadyOwnedByYou" => Ok(false),
            a => Err(self.refusal(&a)),
        }
    }

    /// Removes the bucket, which must be empty.
    pub fn delete_bucket(&mut self) -> Result<(), AdminError> {
        self.request(&Action::DeleteBucket, "", b"").map(drop)
    }

    /// Replaces what is there. Throttled and ill answers are tried again.
    pub fn put(&mut self, key: &str, data: &[u8]) -> Result<(), AdminError> {
        self.request(&Action::PutObject, key, data).map(drop)
    }

    /// Whether an answer showed that the bucket keeps versions, asked about that or not.
    pub fn shows_versions(&self) -> bool {
        self.versioned
    }

    /// Puts an object where there is none. False: there is one already, and it stays. A server that does not know the
    /// condition refuses it ([`AdminError`]), or ignores it: who needs to know reads the object back.
    pub fn put_new(&mut self, key: &str, data: &[u8]) -> Result<bool, AdminError> {
        let a = self.exchange(&Action::PutNew, key, data)?;
        self.versioned |= a.head.versioned;
        match a.head.status {
            // 409: another such request is under way.
            409 | 412 => Ok(false),
            _ if a.outcome().is_ok() => Ok(true),
            _ => Err(self.refusal(&a)),
        }
    }

    /// The object's content; `None` when there is none.
    pub fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, AdminError> {
        match self.request(&Action::GetObject, key, b"") {
            Ok(a) => Ok(Some(a.body)),
            Err(e) if e.trouble == Trouble::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The object's size in bytes; `None` when there is none.
    pub fn head(&mut self, key: &str) -> Result<Option<u64>, AdminError> {
        match self.request(&Action::HeadObject, key, b"") {
            Ok(a) => Ok(Some(a.head.content_length.unwrap_or(0))),
            Err(e) if matches!(e.trouble, Trouble::NotFound | Trouble::NoSuchBucket) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// How the object is kept.
    pub fn stored(&mut self, key: &str) -> Result<Stored, AdminError> {
        let head = self.request(&Action::HeadObject, key, b"")?.head;
        Ok(Stored {
            encryption: head.encryption.to_string_lossy().into_owned(),
            customer_key: head.customer_key,
            storage_class: head.storage_class.to_string_lossy().into_owned(),
        })
    }

    /// Removes one object; removing what is not there is no error.
    pub fn delete(&mut self, key: &str) -> Result<(), AdminError> {
        match self.request(&Action::DeleteObject, key, b"") {
            Err(e) if e.trouble != Trouble::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// An exchange whose answer must be a success.
    fn request(&mut self, action: &Action<'_>, key: &str, body: &[u8]) -> Result<Answer, AdminError> {
        let a = self.exchange(action, key, body)?;
        self.versioned |= a.head.versioned;
        if a.outcome().is_ok() { Ok(a) } else { Err(self.refusal(&a)) }
    }

    fn exchange(&mut self, action: &Action<'_>, key: &str, body: &[u8]) -> Result<Answer, AdminError> {
        self.exchange_telling(action, key, body, &mut |_| {})
    }

    /// Sends and receives; tries again when the server throttles or stumbles, and tells of that once.
    fn exchange_telling(
        &mut self,
        action: &Action<'_>,
        key: &str,
        body: &[u8],
        tell: &mut dyn FnMut(String),
    ) -> Result<Answer, AdminError> {
        let mut pause = FIRST_PAUSE;
        let hash = sha256_hex(body);
        for attempt in 1.. {
            self.head.clear();
            let described = Body::new(body.len() as u64, PayloadHash::Sha256(&hash));
            self.new_heads.fetch(&mut self.heads);
            self.heads[0].write(&mut self.head, action, key.as_bytes(), &described, unix_s());
            let is_head = matches!(action, Action::HeadObject | Action::HeadBucket);
            let result = self.connection.exchange(&self.head, body, is_head);
            let wanted = !self.connection.is_unwanted();
            let again = wanted
                && match &result {
                    Ok(a) => a.outcome().is_throttled() || matches!(a.head.status, 500 | 502 | 503 | 504),
                    // The first failure to connect is told at once: it is most often a wrong address.
                    Err(e) => e.was_open,
                };
            if !again || attempt == ATTEMPTS {
                let a = result.map_err(|e| AdminError {
                    trouble: Trouble::Unreachable,
                    message: e.message,
                    remedy: e.remedy.into(),
                })?;
                if !a.head.server.is_empty() {
                    self.server = Some(a.head.server.to_string_lossy().into_owned());
                }
                return Ok(a);
            }
            if attempt == 1 {
                let why = match &result {
                    Ok(a) => self.refusal(a).message,
                    Err(e) => e.message.clone(),
                };
                tell(format!("waiting for the server: {why}. {} attempts left", ATTEMPTS - 1));
            }
            let asked = result.ok().and_then(|a| a.head.retry_after_s()).map(Duration::from_secs);
            // No pause is a wish once; with each refusal it is none.
            let asked = asked.filter(|t| attempt == 1 || !t.is_zero());
            self.connection.pause(asked.unwrap_or(pause).min(Duration::from_secs(10)));
            pause *= 2;
        }
        unreachable!("the loop returns at the last attempt")
    }

    fn refusal(&self, a: &Answer) -> AdminError {
        let e = a.error.clone().unwrap_or_default();
        let endpoint = self.setup.endpoint.to_string();
        let asked = Asked {
            endpoint: &endpoint,
            bucket: &self.setup.bucket,
            region: &self.setup.region,
            access_key: &self.setup.keys.get().access_key,
            now_unix_s: unix_s(),
        };
        let explained = explain(&a.head, &e, &asked);
        let trouble = match (e.code.as_str(), a.outcome()) {
            ("NoSuchBucket", _) => Trouble::NoSuchBucket,
            ("NoSuchKey" | "NoSuchUpload", _) => Trouble::NotFound,
            ("BucketAlreadyExists" | "BucketNotEmpty" | "OperationAborted", _) => Trouble::Conflict,
            (_, Outcome::Http404) => Trouble::NotFound,
            ("NotImplemented" | "MethodNotAllowed", _) => Trouble::Unsupported,
            _ if matches!(a.head.status, 405 | 501) => Trouble::Unsupported,
            (_, o) if o.is_throttled() => Trouble::Throttled,
            (_, Outcome::Http403) if explained.by_rights => Trouble::Forbidden,
            (_, Outcome::Http403) => Trouble::Refused,
            _ if matches!(a.head.status, 301 | 307 | 400 | 401) => Trouble::Refused,
            (_, Outcome::Http5xx) => Trouble::Failing,
            _ => Trouble::Other,
        };
        let mut remedy = explained.remedy;
        // What servers of HTTPS answer to plain HTTP, in their own ways, and never as S3.
        if a.head.status == 400 && e.code.is_empty() && !self.setup.endpoint.tls && remedy.is_empty() {
            remedy = "It does not answer like an S3 server: if it uses TLS, write https://".into();
        }
        AdminError { trouble, message: explained.what, remedy }
    }

    fn document(&self, a: &Answer, e: DocumentError) -> AdminError {
        match e {
            DocumentError::S3(error) => {
                let text =
                    format!("{} rejects the request: {}: {}", self.setup.endpoint, error.code, error.message);
                AdminError::new(Trouble::Other, text)
            }
            DocumentError::Xml(x) => AdminError {
                trouble: Trouble::Other,
                message: format!(
                    "{} answered (HTTP {}) with something that is not S3: {x}",
                    self.setup.endpoint, a.head.status
                ),
                remedy: "Check the endpoint: is it an S3 server?".into(),
            },
        }
    }
}

impl Answer {
    fn outcome(&self) -> Outcome {
        classify(self.head.status, self.code(), self.head.retry_after_s().is_some())
    }
}

fn parse_error(status: u16, body: &[u8]) -> Option<ErrorDocument> {
    if (200..300).contains(&status) && !body.windows(6).take(256).any(|w| w == b"<Error") {
        return None;
    }
    ErrorDocument::parse(body)
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
