//! AWS's published examples, and what must hold for any key.
//!
//! Source of the signatures: AWS, "Signature Calculations for the Authorization Header: Transferring Payload in a
//! Single Chunk (AWS Signature Version 4)", section "Examples".

use proptest::prelude::*;

use super::*;
use crate::sign::sha256_hex;

/// 24 May 2013 00:00:00 GMT
const EXAMPLE_S: u64 = 1_369_353_600;

fn example_credentials() -> Credentials {
    Credentials {
        access_key: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
    }
}

fn example(put_headers: &[(&str, &str)]) -> Heads {
    let options = HeadOptions {
        bucket: "examplebucket".into(),
        virtual_host: true,
        put_headers: put_headers.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
        ..HeadOptions::default()
    };
    let endpoint = Endpoint::parse("https://s3.amazonaws.com").unwrap();
    Heads::new(&endpoint, example_credentials(), "us-east-1", &options).unwrap()
}

fn head(heads: &mut Heads, action: &Action<'_>, key: &[u8], body: &Body<'_>) -> String {
    let mut out = Vec::new();
    heads.write(&mut out, action, key, body, EXAMPLE_S);
    String::from_utf8(out).unwrap()
}

fn signature(head: &str) -> &str {
    head.split("Signature=").nth(1).unwrap().split("\r\n").next().unwrap()
}

#[test]
fn aws_get_object() {
    let h = head(&mut example(&[]), &Action::GetRange { first: 0, last: 9 }, b"test.txt", &Body::NONE);
    assert!(
        h.starts_with("GET /test.txt HTTP/1.1\r\nhost:examplebucket.s3.amazonaws.com\r\nrange:bytes=0-9\r\n"),
        "{h}"
    );
    assert!(h.contains("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"));
    assert!(h.contains("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"));
    assert_eq!(signature(&h), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

#[test]
fn aws_put_object() {
    let hash = sha256_hex(b"Welcome to Amazon S3.");
    let mut heads =
        example(&[("x-amz-storage-class", "REDUCED_REDUNDANCY"), ("Date", "Fri, 24 May 2013 00:00:00 GMT")]);
    let body = Body::new(21, PayloadHash::Sha256(&hash));
    let h = head(&mut heads, &Action::PutObject, b"test$file.text", &body);
    assert!(h.starts_with("PUT /test%24file.text HTTP/1.1\r\n"));
    assert!(h.contains("\r\ncontent-length:21\r\n"));
    assert_eq!(signature(&h), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

#[test]
fn aws_get_bucket_lifecycle() {
    let h = head(&mut example(&[]), &Action::GetBucket { query: b"lifecycle=" }, b"", &Body::NONE);
    assert_eq!(signature(&h), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

#[test]
fn aws_list_objects() {
    let h = head(&mut example(&[]), &Action::GetBucket { query: b"max-keys=2&prefix=J" }, b"", &Body::NONE);
    assert!(h.starts_with("GET /?max-keys=2&prefix=J HTTP/1.1\r\n"));
    assert_eq!(signature(&h), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

#[test]
fn path_addressing_queries_and_tails() {
    let options = HeadOptions {
        bucket: "b".into(),
        put_headers: vec![("x-amz-meta-a".into(), "one   two".into())],
        checksum: Some(CrcKind::Crc32c),
        close: true,
        expect_continue: true,
        ..HeadOptions::default()
    };
    let e = Endpoint::parse("http://[::1]:9000").unwrap();
    let mut c = example_credentials();
    c.session_token = Some("TOKEN".into());
    let mut heads = Heads::new(&e, c, "r", &options).unwrap();
    let body = Body { checksum: b"AAAAAA==", ..Body::new(5, PayloadHash::Unsigned) };

    let h = head(&mut heads, &Action::PutObject, b"k", &body);
    assert!(
        h.starts_with("PUT /b/k HTTP/1.1\r\nhost:[::1]:9000\r\nx-amz-checksum-crc32c:AAAAAA==\r\n"),
        "{h}"
    );
    assert!(h.contains("\r\nx-amz-content-sha256:UNSIGNED-PAYLOAD\r\n"));
    assert!(h.contains("\r\nx-amz-meta-a:one   two\r\n") && h.contains("\r\nx-amz-security-token:TOKEN\r\n"));
    assert!(h.contains(
        "SignedHeaders=host;x-amz-checksum-crc32c;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-security-token,"
    ));
    assert!(h.contains("\r\nexpect:100-continue\r\n") && h.ends_with("\r\nconnection:close\r\n\r\n"));

    let h = head(&mut heads, &Action::UploadPart { upload_id: "u/1+=", number: 10_000 }, b"k", &body);
    assert!(h.starts_with("PUT /b/k?partNumber=10000&uploadId=u%2F1%2B%3D HTTP/1.1\r\n"), "{h}");
    assert!(!h.contains("x-amz-meta-a"));

    let list = Action::List {
        prefix: "p/ä",
        delimiter: Some("/"),
        max_keys: 7,
        token: Some("t=="),
        start_after: None,
        url_encoding: true,
    };
    let h = head(&mut heads, &list, b"", &Body::NONE);
    let want = "GET /b?continuation-token=t%3D%3D&delimiter=%2F&encoding-type=url&list-type=2&max-keys=7&prefix=p%2F%C3%A4 HTTP/1.1\r\n";
    assert!(h.starts_with(want), "{h}");
    assert!(!h.contains("content-length"));

    let h = head(&mut heads, &Action::CopyObject { source: "a b/c" }, b"to", &Body::NONE);
    assert!(h.contains("\r\nx-amz-copy-source:/b/a%20b/c\r\n") && h.contains("\r\ncontent-length:0\r\n"));
    let h = head(&mut heads, &Action::ListBuckets, b"", &Body::NONE);
    assert!(h.starts_with("GET / HTTP/1.1\r\n"));
    let h = head(&mut heads, &Action::CreateMultipart, b"k", &Body::NONE);
    assert!(h.starts_with("POST /b/k?uploads= HTTP/1.1\r\n") && h.contains("x-amz-checksum-type:COMPOSITE"));
}

/// A second, plain implementation of SigV4 as the documentation words it, from the head on the wire.
fn sign_again(head: &str, region: &str, secret: &str) -> String {
    use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
    let (request_line, rest) = head.split_once("\r\n").unwrap();
    let mut words = request_line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers: Vec<(String, String)> = rest
        .lines()
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_lowercase(), v.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    let get = |n: &str| headers.iter().find(|(k, _)| k == n).map(|(_, v)| v.clone()).unwrap();
    let signed = head.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let canonical_headers: String = signed.split(';').map(|n| format!("{n}:{}\n", get(n))).collect();
    let mut params: Vec<&str> = query.split('&').filter(|p| !p.is_empty()).collect();
    params.sort_unstable();
    let sha = get("x-amz-content-sha256");
    let canonical = format!("{method}\n{path}\n{}\n{canonical_headers}\n{signed}\n{sha}", params.join("&"));
    let date = get("x-amz-date");
    let day = &date[..8];
    let hash = String::from_utf8(sha256_hex(canonical.as_bytes()).to_vec()).unwrap();
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{day}/{region}/s3/aws4_request\n{hash}");
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [day, region, "s3", "aws4_request"] {
        key = sign(&Key::new(HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    sign(&Key::new(HMAC_SHA256, &key), to_sign.as_bytes())
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

proptest! {
    /// Any key, any time, any kind: the head is one well-formed request whose signature an independent reading
    /// of the documentation confirms; and writing it twice, out of order, changes nothing.
    #[test]
    fn any_request_signs_as_documented(
        key in "\\PC{1,80}", id in "\\PC{1,30}", number in 1u32..=10_000, prefix in "\\PC{0,20}",
        first in 0u64..1 << 40, unix_s in 0u64..4_102_444_800,
    ) {
        let mut heads = example(&[("x-amz-meta-x", "a  b")]);
        let hash = sha256_hex(key.as_bytes());
        let md5 = crate::checksum::content_md5(key.as_bytes());
        let body = Body::new(first, PayloadHash::Sha256(&hash));
        let actions = [
            Action::PutObject, Action::GetObject, Action::GetRange { first, last: first + 9 }, Action::HeadObject,
            Action::DeleteObject, Action::CopyObject { source: &prefix }, Action::CreateMultipart,
            Action::UploadPart { upload_id: &id, number }, Action::CompleteMultipart { upload_id: &id },
            Action::AbortMultipart { upload_id: &id }, Action::ListParts { upload_id: &id, after: number },
            Action::List { prefix: &prefix, delimiter: Some(&id), max_keys: number, token: Some(&id), start_after: Some(&key), url_encoding: true },
            Action::ListUploads { prefix: &prefix, key_marker: Some(&key), upload_id_marker: Some(&id) },
            Action::DeleteObjects { content_md5: &md5 }, Action::CreateBucket, Action::DeleteBucket, Action::HeadBucket, Action::ListBuckets,
        ];
        let mut seen = Vec::new();
        for a in &actions {
            let mut out = Vec::new();
            heads.write(&mut out, a, key.as_bytes(), &body, unix_s);
            let text = String::from_utf8(out).unwrap();
            prop_assert!(text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 1);
            let again = sign_again(&text, "us-east-1", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
            prop_assert_eq!(signature(&text), again);
            seen.push(text);
        }
        for (a, text) in actions.iter().zip(&seen).rev() {
            let mut out = Vec::new();
            heads.write(&mut out, a, key.as_bytes(), &body, unix_s);
            prop_assert_eq!(std::str::from_utf8(&out).unwrap(), text);
        }
    }
}
