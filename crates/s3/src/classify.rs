//! What an answer means: its outcome class for the record, and for a person what to do about it.

use plimsoll_model::Outcome;
use plimsoll_model::plan::shown_url;

use crate::date::amz_date;
use crate::response::ResponseHead;
use crate::xml::ErrorDocument;

/// Error codes by which servers say that a limiter refused the request.
const THROTTLE_CODES: [&str; 9] = [
    "SlowDown",
    "SlowDownRead",
    "SlowDownWrite",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestLimitExceeded",
    "TooManyRequests",
    "BandwidthLimitExceeded",
];

/// Error codes that mean that there is no room.
const NO_SPACE_CODES: [&str; 5] =
    ["QuotaExceeded", "StorageFull", "XMinioStorageFull", "InsufficientStorage", "EntityQuotaExceeded"];

/// The class of a final answer by its status, its error code (empty when there is none) and whether it carries
/// `Retry-After`. `Ok` needs a 2xx status and no code: CopyObject and CompleteMultipartUpload may fail under 200.
///
/// A 503 is throttled unless its body says otherwise, by an S3 error code: answers to HEAD have no body, proxies put a
/// page of their own there, and limiters of both kinds are common. A server that is down behind a proxy answers so as
/// well; what the rate does tells the two apart.
pub fn classify(status: u16, code: &str, retry_after: bool) -> Outcome {
    let status = if (200..300).contains(&status) && !code.is_empty() { status_of(code) } else { status };
    let throttled = THROTTLE_CODES.contains(&code);
    if NO_SPACE_CODES.contains(&code) || status == 507 {
        return Outcome::NoSpace;
    }
    match status {
        200..=299 => Outcome::Ok,
        429 => Outcome::Http429,
        503 if throttled || retry_after || code.is_empty() => Outcome::Http503SlowDown,
        // Some servers throttle under 400, 403, 500 or 509; the code says so.
        _ if throttled => Outcome::Http503SlowDown,
        403 => Outcome::Http403,
        404 => Outcome::Http404,
        500..=599 => Outcome::Http5xx,
        300..=399 => Outcome::Http3xx,
        _ => Outcome::Http4xx,
    }
}

/// The class of one key that a batch delete left, or of an error under status 200.
pub fn classify_code(code: &str) -> Outcome {
    classify(status_of(code), code, false)
}

/// The status that a code is sent with, for errors that come without one. AWS, "Error responses".
fn status_of(code: &str) -> u16 {
    match code {
        "AccessDenied" | "SignatureDoesNotMatch" | "InvalidAccessKeyId" | "RequestTimeTooSkewed" => 403,
        "NoSuchKey" | "NoSuchBucket" | "NoSuchUpload" => 404,
        "SlowDown" | "ServiceUnavailable" => 503,
        "InternalError" => 500,
        "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall" | "EntityTooLarge" | "BadDigest"
        | "InvalidRequest" | "MalformedXML" | "RequestTimeout" => 400,
        "PreconditionFailed" => 412,
        _ => 500,
    }
}

/// The body of a checksum that the server found wrong in what it received.
pub fn is_checksum_refusal(code: &str) -> bool {
    matches!(
        code,
        "BadDigest" | "XAmzContentChecksumMismatch" | "XAmzContentSHA256Mismatch" | "ChecksumMismatch"
    )
}

/// What a failed set-up request was about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// URL, for the message.
    pub endpoint: &'a str,
    /// Name, for the message.
    pub bucket: &'a str,
    /// The region that the request was signed for.
    pub region: &'a str,
    /// The id of the key. A message names it by its last characters: messages are stored, printed and published.
    pub access_key: &'a str,
    /// The local clock when the answer came, Unix seconds.
    pub now_unix_s: u64,
}

/// Difference of clocks beyond which S3 refuses signatures: 15 minutes (AWS, RequestTimeTooSkewed).
pub const MAX_SKEW_S: u64 = 900;

/// What a server's refusal means, for a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explained {
    /// What happened, with what the server said. No full stop at its end.
    pub what: String,
    /// What to do about it; empty when there is nothing better than what is said. No full stop at its end.
    pub remedy: String,
    /// The server does not refuse who asks (keys, clock, region), but what is asked for.
    pub by_rights: bool,
}

/// What the server said, what it means, and the remedy.
pub fn explain(head: &ResponseHead, error: &ErrorDocument, asked: &Asked<'_>) -> Explained {
    let code = if error.code.is_empty() { code_of_status(head.status) } else { error.code.as_str() };
    let skew = skew_text(head, asked);
    let (what, remedy) = meaning(code, head, error, asked, &skew);
    let mut said = format!(" (HTTP {}", head.status);
    for part in [&error.code, &error.message] {
        if !part.is_empty() {
            said.push_str(", ");
            said.push_str(part.trim_end_matches('.'));
        }
    }
    let id = first_of(&[&error.request_id, &head.request_id.to_string_lossy()]);
    if let Some(id) = id {
        said.push_str(", request ");
        said.push_str(&id);
    }
    let by_rights = matches!(code, "AccessDenied" | "AllAccessDisabled") && skew.is_empty();
    Explained { what: format!("{what}{said})"), remedy, by_rights }
}

/// Characters of a key's id that a message has.
const SHOWN_OF_KEY: usize = 4;
/// A shorter id is not told in part: not enough of it would be left out. (A choice: AWS's have 20 characters.)
const LEAST_TOLD_KEY: usize = 12;

/// A key as its owner knows it again, and nobody else learns it.
fn shown_key(id: &str) -> String {
    let id: Vec<char> = id.chars().collect();
    match id.len() {
        n if n < LEAST_TOLD_KEY => "the access key".into(),
        n => format!("the access key ending in {}", id[n - SHOWN_OF_KEY..].iter().collect::<String>()),
    }
}

const SET_CLOCK: &str = "Set this machine's clock (for example with chrony or timedatectl)";

/// What happened and what to do, by the error's code.
fn meaning(
    code: &str,
    head: &ResponseHead,
    error: &ErrorDocument,
    asked: &Asked<'_>,
    skew: &str,
) -> (String, String) {
    let Asked { endpoint, bucket, region, .. } = *asked;
    let key = shown_key(asked.access_key);
    match code {
        "SignatureDoesNotMatch" => (
            format!(
                "{endpoint} rejects the signature of {key}: the secret key does not belong to it \
                 (or a proxy modifies requests){skew}"
            ),
            "Check AWS_SECRET_ACCESS_KEY or the profile".into(),
        ),
        "InvalidAccessKeyId" | "InvalidAccessKey" => (
            format!("{endpoint} does not know {key}"),
            "Check AWS_ACCESS_KEY_ID or the profile, and that the key is for this server".into(),
        ),
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => (
            "the session token has expired".into(),
            "Get new temporary credentials, including AWS_SESSION_TOKEN".into(),
        ),
        "RequestTimeTooSkewed" | "RequestExpired" => (
            format!(
                "the clocks of this machine and of {endpoint} differ by more than the server allows{skew}"
            ),
            SET_CLOCK.into(),
        ),
        "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException"
        | "AuthorizationQueryParametersError" => {
            match first_of(&[&error.region, &head.bucket_region.to_string_lossy()]) {
                Some(r) if r != region => {
                    (format!("the region is '{r}', not '{region}'"), format!("Use --region {r}"))
                }
                _ => (
                    format!("{endpoint} does not accept region '{region}'"),
                    "Set the right one with --region or AWS_REGION".into(),
                ),
            }
        }
        "NoSuchBucket" => (
            format!("there is no bucket '{bucket}' at {endpoint}"),
            "Create it, name another one, or add --create-bucket".into(),
        ),
        "BucketAlreadyExists" => (
            format!("the bucket name '{bucket}' is taken by somebody else at {endpoint}"),
            "Choose another bucket".into(),
        ),
        "AccessDenied" | "AllAccessDisabled" if skew.is_empty() => (
            format!("access denied: {key} is not allowed to do this in bucket '{bucket}' at {endpoint}"),
            "Grant it the permission, or use other credentials".into(),
        ),
        "AccessDenied" | "AllAccessDisabled" => (format!("{endpoint} denies access{skew}"), SET_CLOCK.into()),
        "PermanentRedirect" | "TemporaryRedirect" | "Redirect" => moved(head, error, asked),
        "InvalidBucketName" => (
            format!("'{bucket}' is not a bucket name"),
            "Use 3 to 63 lower-case letters, digits, dots and hyphens".into(),
        ),
        "" if head.status == 503 => (
            format!("{endpoint} answers 503 without a reason: it throttles, or the server behind it is down"),
            "Check that the server is up; if it is, wait and try again".into(),
        ),
        _ if classify(head.status, code, false).is_throttled() => {
            (format!("{endpoint} throttles: it asks for fewer requests"), "Wait and try again".into())
        }
        "NotImplemented" => (format!("{endpoint} does not support this request"), String::new()),
        _ if head.status >= 500 => (
            format!("{endpoint} reports an internal error"),
            "Check the server's log, or try again later".into(),
        ),
        _ => (format!("{endpoint} rejects the request"), String::new()),
    }
}

fn moved(head: &ResponseHead, error: &ErrorDocument, asked: &Asked<'_>) -> (String, String) {
    let to = first_of(&[&shown_url(&error.endpoint), &head.shown_location()])
        .map(|t| format!("; it is at {t}"))
        .unwrap_or_default();
    let region = first_of(&[&head.bucket_region.to_string_lossy(), &error.region]);
    let of = region.as_ref().map(|r| format!(" (--region {r})")).unwrap_or_default();
    (
        format!("bucket '{}' is not served by {}{to}", asked.bucket, asked.endpoint),
        format!("Use the endpoint of the bucket's own region{of}"),
    )
}

/// HEAD answers carry no error code: the status has to do.
fn code_of_status(status: u16) -> &'static str {
    match status {
        301 => "PermanentRedirect",
        302 | 307 | 308 => "TemporaryRedirect",
        403 => "AccessDenied",
        404 => "NoSuchBucket",
        429 => "TooManyRequests",
        501 => "NotImplemented",
        _ => "",
    }
}

fn first_of(list: &[&str]) -> Option<String> {
    list.iter().find(|s| !s.is_empty()).map(|s| (*s).to_owned())
}

/// The difference of clocks in words, when it is large enough to break signatures.
fn skew_text(head: &ResponseHead, asked: &Asked<'_>) -> String {
    let Some(server) = head.date_unix_s else { return String::new() };
    let skew = asked.now_unix_s.abs_diff(server);
    if skew < MAX_SKEW_S {
        return String::new();
    }
    let ahead = if asked.now_unix_s > server { "ahead of" } else { "behind" };
    let text = |t: u64| String::from_utf8_lossy(&amz_date(t)).into_owned();
    format!(
        "; this machine's clock is {skew} s {ahead} the server's: {} here, {} there",
        text(asked.now_unix_s),
        text(server)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::ResponseParser;
    use proptest::prelude::*;

    #[test]
    fn classes() {
        for (status, code, retry, want) in [
            (200, "", false, Outcome::Ok),
            (204, "", false, Outcome::Ok),
            (206, "", false, Outcome::Ok),
            (200, "InternalError", false, Outcome::Http5xx),
            (200, "SlowDown", false, Outcome::Http503SlowDown),
            (200, "NoSuchUpload", false, Outcome::Http404),
            (429, "", false, Outcome::Http429),
            (503, "SlowDown", false, Outcome::Http503SlowDown),
            (503, "", true, Outcome::Http503SlowDown),
            (503, "ServiceUnavailable", false, Outcome::Http5xx),
            (503, "", false, Outcome::Http503SlowDown),
            (500, "", false, Outcome::Http5xx),
            (502, "", false, Outcome::Http5xx),
            (400, "RequestLimitExceeded", false, Outcome::Http503SlowDown),
            (403, "AccessDenied", false, Outcome::Http403),
            (403, "QuotaExceeded", false, Outcome::NoSpace),
            (507, "XMinioStorageFull", false, Outcome::NoSpace),
            (404, "", false, Outcome::Http404),
            (416, "InvalidRange", false, Outcome::Http4xx),
            (307, "", false, Outcome::Http3xx),
            (304, "", false, Outcome::Http3xx),
            (500, "", true, Outcome::Http5xx),
        ] {
            assert_eq!(classify(status, code, retry), want, "{status} {code}");
        }
    }

    fn answer(head: &str) -> ResponseParser {
        let mut p = ResponseParser::new();
        p.step(head.as_bytes()).unwrap();
        p
    }

    #[test]
    fn remedies() {
        let asked = Asked {
            endpoint: "http://e",
            bucket: "b",
            region: "us-east-1",
            access_key: "AKIAIOSFODNN7EXAMPLE",
            now_unix_s: 784_111_777 + 1000,
        };
        let late =
            answer("HTTP/1.1 403 F\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n");
        let error = |code: &str| ErrorDocument { code: code.into(), ..ErrorDocument::default() };
        let said = explain(late.head(), &error("RequestTimeTooSkewed"), &asked);
        assert!(
            said.what.contains("1000 s ahead") && said.what.contains("19941106T084937Z there"),
            "{said:?}"
        );
        let said = explain(late.head(), &error(""), &asked);
        assert!(said.what.contains("1000 s ahead") && !said.by_rights, "{said:?}");

        let ok = answer("HTTP/1.1 403 F\r\nx-amz-request-id: R1\r\ncontent-length: 0\r\n\r\n");
        for (code, want) in [
            ("SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
            ("InvalidAccessKeyId", "does not know the access key ending in MPLE"),
            ("AccessDenied", "access denied: the access key ending in MPLE is not allowed to do this"),
            ("NoSuchBucket", "--create-bucket"),
            ("ExpiredToken", "AWS_SESSION_TOKEN"),
            ("Other", "request R1"),
        ] {
            let said = explain(ok.head(), &error(code), &asked);
            let text = format!("{}. {}", said.what, said.remedy);
            assert!(text.contains(want) && text.contains("HTTP 403"), "{code}: {text}");
            assert!(!text.contains("IOSFODNN"), "{code}: {text}");
            assert_eq!(said.by_rights, code == "AccessDenied");
        }
        let short =
            explain(ok.head(), &error("InvalidAccessKeyId"), &Asked { access_key: "minioadmin", ..asked });
        assert!(short.what.contains("does not know the access key (HTTP"), "{short:?}");
        assert!(explain(ok.head(), &error(""), &asked).by_rights, "a bare 403");
        let moved = answer("HTTP/1.1 301 M\r\nx-amz-bucket-region: eu-west-1\r\ncontent-length: 0\r\n\r\n");
        assert!(explain(moved.head(), &error(""), &asked).remedy.contains("--region eu-west-1"));
        let secret = "http://u:hunter2@h:9000/b/k?X-Amz-Security-Token=hunter2&sig=hunter2";
        let moved = answer(&format!("HTTP/1.1 307 M\r\nlocation: {secret}\r\ncontent-length: 0\r\n\r\n"));
        let said = explain(moved.head(), &error(""), &asked).what;
        assert!(said.contains("; it is at http://h:9000/b/k (HTTP") && !said.contains("hunter2"), "{said}");
        let mut e = error("PermanentRedirect");
        e.endpoint = secret.into();
        let said = explain(ok.head(), &e, &asked).what;
        assert!(said.contains("; it is at http://h:9000/b/k (HTTP") && !said.contains("hunter2"), "{said}");
        let mut e = error("AuthorizationHeaderMalformed");
        e.region = "eu-west-2".into();
        assert!(explain(ok.head(), &e, &asked).remedy.contains("Use --region eu-west-2"));
    }

    proptest! {
        #[test]
        fn only_2xx_without_a_code_is_ok(status in 100u16..600, code in "[A-Za-z]{0,12}", retry in any::<bool>()) {
            let o = classify(status, &code, retry);
            prop_assert_eq!(o.is_ok(), (200..300).contains(&status) && code.is_empty());
        }
    }
}
