//! What stands before s3s: the limiter, the bound on buffered requests, counts, and the server's own headers.

use super::paced::{Pace, Paced};
use super::timer::Timer;
use crate::clock::now_ns;
use crate::limiter::{Caller, Direction, Gate, OpClass, Ticket, Verdict};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use s3s::service::S3Service;
use s3s::{Body, HttpError};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// Requests that s3s reads whole (XML documents, forms) share this much memory, in KiB.
pub(crate) const BUFFER_KIB: u32 = 256 << 10;
/// Largest XML document. A completion of 10,000 parts with checksums takes about 3 MB.
pub(crate) const XML_BYTES: usize = 4 << 20;
/// Largest object of a form upload, which s3s holds in memory.
pub(crate) const FORM_BYTES: u64 = 64 << 20;
/// Body of a refused request that is still read, so that its connection can be kept.
const DRAIN_BYTES: u64 = 8 << 20;

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub requests: AtomicU64,
    pub throttled: AtomicU64,
    pub bytes_in: Arc<AtomicU64>,
    pub bytes_out: Arc<AtomicU64>,
}

pub(crate) struct Front {
    pub service: S3Service,
    pub gate: Option<Arc<Gate>>,
    pub timer: Arc<Timer>,
    pub room: Arc<Semaphore>,
    pub counts: Counts,
}

/// Who is at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub client: String,
    pub connection: u64,
}

impl Front {
    pub async fn handle(
        self: Arc<Self>,
        req: Request<Incoming>,
        peer: Arc<Peer>,
    ) -> Result<Response<Body>, HttpError> {
        if req.uri().path() == "/__stats" {
            return Ok(self.stats());
        }
        let n = self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let class = class_of(&req);
        let mut pace = None;
        if let Some(gate) = &self.gate {
            match self.admit(gate, class, &req, &peer).await {
                Ok(ticket) => pace = Some(Pace { gate: gate.clone(), ticket, timer: self.timer.clone() }),
                Err(refusal) => {
                    self.counts.throttled.fetch_add(1, Ordering::Relaxed);
                    drain(req).await;
                    return Ok(self.finish(refusal, n));
                }
            }
        }
        let room = match self.room_for(&req).await {
            Ok(room) => room,
            Err(refusal) => return Ok(self.finish(refusal, n)),
        };
        let inward = pace.clone().map(|p| (p, Direction::In));
        let counter = self.counts.bytes_in.clone();
        let (admitted_ns, sent) = (now_ns(), content_length(req.headers()).unwrap_or(0));
        let req = req.map(|body| {
            if body.is_end_stream() {
                Body::empty()
            } else {
                Body::http_body_unsync(Paced::new(body, inward, counter, room))
            }
        });
        let res = self.service.call(req).await?;
        if let Some(p) = &pace {
            let bytes =
                if class == OpClass::Get { res.body().size_hint().exact().unwrap_or(0) } else { sent };
            // Work that was done meanwhile is part of the tier's latency, not on top of it.
            self.timer.until(admitted_ns + p.gate.latency_ns(class, bytes)).await;
        }
        let outward = pace.map(|p| (p, Direction::Out));
        let counter = self.counts.bytes_out.clone();
        let res = res.map(|body| Body::http_body_unsync(Paced::new(body, outward, counter, None)));
        Ok(self.finish(res, n))
    }

    /// Waits until the limiter lets the request go, or tells how it is refused.
    async fn admit(
        &self,
        gate: &Gate,
        class: OpClass,
        req: &Request<Incoming>,
        peer: &Peer,
    ) -> Result<Ticket, Response<Body>> {
        let caller = Caller {
            class,
            access_key: access_key(req),
            bucket: req.uri().path().split('/').nth(1).unwrap_or_default(),
            client: &peer.client,
            connection: peer.connection,
        };
        let (at_ns, ticket) = match gate.admit(&caller) {
            Verdict::Go { at_ns, ticket } => (at_ns, ticket),
            Verdict::Reject { status, retry_after_s, limit } => {
                return Err(refusal(status, retry_after_s, &limit));
            }
        };
        self.timer.until(at_ns).await;
        Ok(ticket)
    }

    /// Holds back requests that s3s would buffer while too many of them are buffered already.
    async fn room_for(
        &self,
        req: &Request<Incoming>,
    ) -> Result<Option<tokio::sync::OwnedSemaphorePermit>, Response<Body>> {
        if !is_buffered(req) {
            return Ok(None);
        }
        let bytes = content_length(req.headers()).unwrap_or(XML_BYTES as u64);
        if bytes > FORM_BYTES + XML_BYTES as u64 {
            let text = "a body of this kind is held in memory: at most 64 MiB; use PUT or a multipart upload";
            return Err(error(StatusCode::BAD_REQUEST, "EntityTooLarge", text));
        }
        // Parsed documents take several times their length.
        let kib = u32::try_from(bytes * 4 / 1_024 + 1).unwrap_or(BUFFER_KIB).min(BUFFER_KIB);
        Ok(self.room.clone().acquire_many_owned(kib).await.ok())
    }

    fn finish(&self, mut res: Response<Body>, n: u64) -> Response<Body> {
        let h = res.headers_mut();
        h.insert(header::SERVER, HeaderValue::from_static("PlimsollS3"));
        if let Ok(id) = HeaderValue::from_str(&format!("{n:016X}")) {
            h.insert(HeaderName::from_static("x-amz-request-id"), id);
        }
        res
    }

    fn stats(&self) -> Response<Body> {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let c = &self.counts;
        let text = format!(
            "{{\"requests\":{},\"throttled\":{},\"bytes_in\":{},\"bytes_out\":{}}}",
            get(&c.requests),
            get(&c.throttled),
            get(&c.bytes_in),
            get(&c.bytes_out)
        );
        let mut res = Response::new(Body::from(text));
        res.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res
    }
}

fn error(status: StatusCode, code: &str, text: &str) -> Response<Body> {
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{text}</Message></Error>"
    );
    let mut res = Response::new(Body::from(xml));
    *res.status_mut() = status;
    res.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    res
}

fn refusal(status: u16, retry_after_s: u64, limit: &str) -> Response<Body> {
    let (status, code) = match status {
        429 => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
    };
    // The name comes from a user's file.
    let limit: String = limit.chars().filter(|c| c.is_ascii_alphanumeric() || "-_ .".contains(*c)).collect();
    let mut res = error(status, code, &format!("Please reduce your request rate (limit: {limit})."));
    res.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
    res
}

/// Reads what the client is sending anyway; an answer before that would cost it its connection.
async fn drain(req: Request<Incoming>) {
    let small = content_length(req.headers()).is_none_or(|n| n <= DRAIN_BYTES);
    if !small || req.headers().contains_key(header::EXPECT) {
        return;
    }
    let mut body = req.into_body();
    let mut seen = 0;
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        seen += frame.data_ref().map_or(0, |d| d.len() as u64);
        if seen > DRAIN_BYTES {
            return;
        }
    }
}

fn content_length(h: &HeaderMap) -> Option<u64> {
    h.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn has_param(query: &str, name: &str) -> bool {
    query.split('&').any(|p| p.split('=').next() == Some(name))
}

fn has_key(path: &str) -> bool {
    path.strip_prefix('/').and_then(|p| p.split_once('/')).is_some_and(|(_, key)| !key.is_empty())
}

/// s3s streams object bodies and reads all others whole.
fn is_buffered(req: &Request<Incoming>) -> bool {
    let query = req.uri().query().unwrap_or_default();
    match *req.method() {
        Method::POST => true,
        Method::PUT => !has_key(req.uri().path()) || (!query.is_empty() && !has_param(query, "partNumber")),
        _ => false,
    }
}

fn class_of<B>(req: &Request<B>) -> OpClass {
    let (path, query) = (req.uri().path(), req.uri().query().unwrap_or_default());
    let key = has_key(path);
    match *req.method() {
        Method::GET if key && !has_param(query, "uploadId") => OpClass::Get,
        Method::GET if key => OpClass::List,
        Method::HEAD if key => OpClass::Head,
        Method::PUT if key && req.headers().contains_key("x-amz-copy-source") => OpClass::Copy,
        Method::PUT if key => OpClass::Put,
        Method::DELETE if key && has_param(query, "uploadId") => OpClass::Multipart,
        Method::DELETE if key => OpClass::Delete,
        Method::POST if has_param(query, "delete") => OpClass::Delete,
        Method::POST if key => OpClass::Multipart,
        Method::POST => OpClass::Put,
        Method::GET if is_list(query) => OpClass::List,
        _ => OpClass::Bucket,
    }
}

/// A GET of a bucket is a list unless it asks for one of the bucket's settings.
fn is_list(query: &str) -> bool {
    ["location", "versioning", "object-lock", "policy", "tagging", "lifecycle", "encryption", "cors", "acl"]
        .iter()
        .all(|q| !has_param(query, q))
}

/// Access key of the signature, in its header or in the query of a presigned URL.
fn access_key(req: &Request<Incoming>) -> &str {
    let credential =
        |text: &'_ str, mark: &str| -> Option<usize> { text.find(mark).map(|at| at + mark.len()) };
    let upto = |text: &'_ str, from: usize| -> usize {
        text[from..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(text.len(), |n| from + n)
    };
    if let Some(text) = req.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()) {
        if let Some(from) = credential(text, "Credential=") {
            return &text[from..upto(text, from)];
        }
        if let Some(from) = credential(text, "AWS ") {
            return &text[from..upto(text, from)];
        }
    }
    let query = req.uri().query().unwrap_or_default();
    for mark in ["X-Amz-Credential=", "AWSAccessKeyId="] {
        if let Some(from) = credential(query, mark) {
            return &query[from..upto(query, from)];
        }
    }
    ""
}
