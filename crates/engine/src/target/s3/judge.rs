//! What a complete answer means for the op.

use plimsoll_model::text::clean;
use plimsoll_model::{Op, OpKind, Outcome};
use plimsoll_s3::classify::{classify, classify_code, is_checksum_refusal};
use plimsoll_s3::xml::{self, DeleteResult, DocumentError, ErrorDocument};

use super::exchange::{Ended, Why};
use super::lane::Lane;
use super::request::Call;

/// The outcome of an exchange, and words for the first of its class.
pub(super) fn judge(lane: &mut Lane, ended: Ended, call: Call, op: &Op) -> (Outcome, Option<String>) {
    match ended {
        Ended::Failed(outcome, Why::TooLong) if is_whole(lane, op) => (outcome, Some(whole(lane))),
        Ended::Failed(outcome, why) => (outcome, Some(in_words(lane, why))),
        Ended::Answered => answered(lane, call, op),
    }
}

fn answered(lane: &mut Lane, call: Call, op: &Op) -> (Outcome, Option<String>) {
    let head = lane.parser.head();
    let status = head.status;
    let retry_after = head.retry_after_s().is_some();
    if !(200..300).contains(&status) {
        let error = ErrorDocument::parse(&lane.text).unwrap_or_default();
        let outcome = if is_checksum_refusal(&error.code) {
            Outcome::ChecksumMismatch
        } else {
            classify(status, &error.code, retry_after)
        };
        return (outcome, Some(said(status, &error, &head.request_id.to_string_lossy())));
    }
    match (call, op.kind) {
        (Call::Initiate, _) => initiated(lane),
        (Call::Complete, _) => {
            inner_error(lane, b"<CompleteMultipartUploadResult", |t| xml::parse_complete(t).map(drop))
        }
        (Call::Single, OpKind::Copy) => {
            inner_error(lane, b"<CopyObjectResult", |t| xml::parse_copy(t).map(drop))
        }
        (Call::Single, OpKind::DeleteBatch) => deleted(lane),
        (Call::Single, OpKind::Get | OpKind::GetRange) => body(lane, op),
        (Call::Part(_), _) | (Call::Single, OpKind::Put) => uploaded(lane, call),
        _ => hidden_error(lane),
    }
}

/// What a server says of a body that it took.
fn uploaded(lane: &mut Lane, call: Call) -> (Outcome, Option<String>) {
    let hidden = hidden_error(lane);
    if !hidden.0.is_ok() {
        return hidden;
    }
    if !lane.upload_is_confirmed() {
        let text = "the server reports a different checksum than that of the body that was sent";
        return (Outcome::ChecksumMismatch, Some(text.into()));
    }
    // Without it nothing can be said at the end of what the object is made of.
    if call != Call::Single && lane.parser.head().etag.is_empty() {
        return (
            Outcome::Protocol,
            Some("the answer to a part has no ETag, which is needed to complete the upload".into()),
        );
    }
    hidden
}

/// A range was asked for, and the object comes.
fn is_whole(lane: &Lane, op: &Op) -> bool {
    op.kind == OpKind::GetRange && lane.parser.head().status != 206
}

fn whole(lane: &Lane) -> String {
    format!("a range was requested, but the answer is HTTP {}, not 206", lane.parser.head().status)
}

/// Checks the body of a GET.
fn body(lane: &mut Lane, op: &Op) -> (Outcome, Option<String>) {
    if is_whole(lane, op) {
        return (Outcome::Protocol, Some(whole(lane)));
    }
    if lane.body_bytes != op.length {
        let text = format!("the body has {} bytes, not {}", lane.body_bytes, op.length);
        let short = lane.body_bytes < op.length;
        return (if short { Outcome::ShortBody } else { Outcome::Protocol }, Some(text));
    }
    if lane.difference.is_some() {
        return (Outcome::VerifyMismatch, Some("the object is not what was written".into()));
    }
    if !lane.checksum_holds() {
        return (
            Outcome::ChecksumMismatch,
            Some("the body does not have the checksum that the server gave".into()),
        );
    }
    (Outcome::Ok, None)
}

/// A success that has no document as a rule; one that there is may be an error.
fn hidden_error(lane: &Lane) -> (Outcome, Option<String>) {
    if !contains(&lane.text, b"<Error") {
        return (Outcome::Ok, None);
    }
    match ErrorDocument::parse(&lane.text) {
        Some(e) => (classify_code(&e.code), Some(said(lane.parser.head().status, &e, ""))),
        None => (Outcome::Protocol, Some("the body of the answer is not an S3 document".into())),
    }
}

/// A success that must be the document that begins with `root`; an error may hide under status 200.
fn inner_error(
    lane: &Lane,
    root: &[u8],
    parse: impl Fn(&[u8]) -> Result<(), DocumentError>,
) -> (Outcome, Option<String>) {
    if contains(&lane.text, root) && !contains(&lane.text, b"<Error") {
        return (Outcome::Ok, None);
    }
    match parse(&lane.text) {
        Ok(()) => (Outcome::Ok, None),
        Err(DocumentError::S3(e)) => (classify_code(&e.code), Some(said(200, &e, ""))),
        Err(DocumentError::Xml(e)) => (Outcome::Protocol, Some(e.to_string())),
    }
}

fn initiated(lane: &mut Lane) -> (Outcome, Option<String>) {
    // The usual case without a parser: nothing is allocated for it.
    if between(&lane.text, b"<UploadId>", b"</UploadId>")
        .is_some_and(|id| !id.contains(&b'&') && !id.is_empty())
    {
        return (Outcome::Ok, None);
    }
    match xml::parse_initiate(&lane.text) {
        Ok(_) => (Outcome::Ok, None),
        Err(DocumentError::S3(e)) => (classify_code(&e.code), Some(said(200, &e, ""))),
        Err(DocumentError::Xml(e)) => (Outcome::Protocol, Some(e.to_string())),
    }
}

/// The upload id of an answer that [`judge`] found good.
pub(super) fn upload_id(text: &[u8], out: &mut String) {
    out.clear();
    match between(text, b"<UploadId>", b"</UploadId>").filter(|id| !id.contains(&b'&')) {
        Some(id) => out.push_str(std::str::from_utf8(id).unwrap_or("")),
        None => out.push_str(&xml::parse_initiate(text).unwrap_or_default()),
    }
}

fn deleted(lane: &Lane) -> (Outcome, Option<String>) {
    if !contains(&lane.text, b"<Error") && contains(&lane.text, b"DeleteResult") {
        return (Outcome::Ok, None);
    }
    match DeleteResult::parse(&lane.text) {
        Ok(r) => match r.failed.first() {
            None => (Outcome::Ok, None),
            Some(f) => (
                classify_code(&f.code),
                Some(format!(
                    "{} keys were not deleted; '{}': {} {}",
                    r.failed.len(),
                    clean(&f.key),
                    f.code,
                    f.message
                )),
            ),
        },
        Err(DocumentError::S3(e)) => (classify_code(&e.code), Some(said(200, &e, ""))),
        Err(DocumentError::Xml(e)) => (Outcome::Protocol, Some(e.to_string())),
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|w| w == what)
}

fn between<'a>(text: &'a [u8], open: &[u8], close: &[u8]) -> Option<&'a [u8]> {
    let from = text.windows(open.len()).position(|w| w == open)? + open.len();
    let len = text[from..].windows(close.len()).position(|w| w == close)?;
    Some(&text[from..from + len])
}

fn said(status: u16, e: &ErrorDocument, request_id: &str) -> String {
    let mut s = format!("HTTP {status}");
    for part in [e.code.as_str(), e.message.as_str()] {
        if !part.is_empty() {
            s.push_str(": ");
            s.push_str(part);
        }
    }
    if !request_id.is_empty() {
        s.push_str(&format!(" (request {request_id})"));
    }
    s
}

fn in_words(lane: &Lane, why: Why) -> String {
    let os = |e: i32| std::io::Error::from_raw_os_error(e);
    match why {
        Why::Connect(e) => format!("cannot connect: {}", os(e)),
        Why::Socket | Why::Tls => lane.tls_error.clone(),
        Why::Send(e) => format!("sending failed: {}", os(e)),
        Why::Receive(e) => format!("receiving failed: {}", os(e)),
        Why::Malformed(m) => m.to_string(),
        Why::TooLong => {
            format!("the body is longer than the {} bytes requested", lane.exchange.expected)
        }
        Why::Cancelled => "no answer in time".into(),
    }
}
