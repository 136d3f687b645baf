//! Answers as real servers send them, broken ones, and that what is written can be read.

use proptest::prelude::*;

use super::*;
use crate::checksum::CrcKind;

#[test]
fn errors() {
    let e = ErrorDocument::parse(
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>The &lt;key&gt; &#x41;&amp;</Message><Resource>/b/k</Resource><RequestId>4442587FB7D0A2F9</RequestId></Error>",
    )
    .unwrap();
    assert_eq!((e.code.as_str(), e.message.as_str()), ("NoSuchKey", "The <key> A&"));
    for none in [
        "",
        "<html>no</html>",
        "<Error></Error>",
        "<Error><Code>x</Code>",
        "plain text",
        "<!DOCTYPE a><Error><Code>x</Code></Error>",
        "<Error><Code>&ent;</Code></Error>",
        "<Error><Code>a</Code></Error><Error/>",
    ] {
        assert_eq!(ErrorDocument::parse(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn listings() {
    let body = br#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
<Contents><Key>a+b%2Fc</Key><LastModified>x</LastModified><ETag>&#34;e&#34;</ETag><Size>12</Size><StorageClass>GLACIER</StorageClass></Contents>
<Contents><Key><![CDATA[<d>]]></Key><Size>0</Size></Contents>
<CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes>
<IsTruncated>true</IsTruncated><NextContinuationToken>tok==</NextContinuationToken><EncodingType>url</EncodingType></ListBucketResult>"#;
    let p = ListPage::parse(body).unwrap();
    assert_eq!(
        p.objects[0],
        ListedObject {
            key: "a b/c".into(),
            size_bytes: 12,
            etag: "\"e\"".into(),
            storage_class: "GLACIER".into()
        }
    );
    assert_eq!(p.objects[1].key, "<d>");
    assert_eq!((p.prefixes, p.next_token.as_deref(), p.truncated), (vec!["p/".into()], Some("tok=="), true));
    let endless =
        b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken/></ListBucketResult>";
    let p = ListPage::parse(endless).unwrap();
    assert!(p.truncated && p.next_token.is_none());
    assert!(
        ListPage::parse(b"<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>").is_err()
    );
    assert!(ListPage::parse(b"<ListBucketResultX/>").is_err());
}

#[test]
fn versions_and_locks() {
    let body = br#"<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextKeyMarker>p%2Fb</NextKeyMarker><NextVersionIdMarker>v3</NextVersionIdMarker>
<Version><Key>p%2Fa</Key><VersionId>null</VersionId><IsLatest>true</IsLatest></Version>
<DeleteMarker><Key>p%2Fb</Key><VersionId>v3</VersionId></DeleteMarker></ListVersionsResult>"#;
    let page = VersionsPage::parse(body).unwrap();
    let item = |key: &str, id: &str, marker| ListedVersion {
        key: key.into(),
        version_id: id.into(),
        delete_marker: marker,
    };
    assert_eq!(page.versions, [item("p/a", "null", false), item("p/b", "v3", true)]);
    assert_eq!(
        (page.truncated, page.next_key_marker.as_str(), page.next_version_id_marker.as_str()),
        (true, "p/b", "v3")
    );
    let status = |inner: &str| {
        parse_versioning(format!("<VersioningConfiguration>{inner}</VersioningConfiguration>").as_bytes())
    };
    assert_eq!(status("<Status>Suspended</Status>").unwrap(), "Suspended");
    assert_eq!(status("").unwrap(), "");
    assert!(
        parse_versioning(b"<ListBucketResult/>").is_err(),
        "a server that does not know the question lists"
    );
    let lock = ObjectLock::parse(b"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>3</Days></DefaultRetention></Rule></ObjectLockConfiguration>").unwrap();
    assert_eq!((lock.enabled, lock.retention.as_deref()), (true, Some("3 days, COMPLIANCE")));
}

#[test]
fn success_status_with_an_error_inside() {
    let body = b"<?xml version=\"1.0\"?>\n\n<Error><Code>InternalError</Code><Message>m</Message></Error>";
    for r in [parse_complete(body), parse_copy(body), parse_initiate(body)] {
        assert!(matches!(r, Err(DocumentError::S3(e)) if e.code == "InternalError"));
    }
    assert_eq!(
        parse_complete(
            b"<CompleteMultipartUploadResult><ETag>\"a-2\"</ETag></CompleteMultipartUploadResult>"
        )
        .unwrap(),
        "\"a-2\""
    );
    assert_eq!(parse_initiate(b"<s:InitiateMultipartUploadResult xmlns:s='x'><s:UploadId>u</s:UploadId></s:InitiateMultipartUploadResult>").unwrap(), "u");
    assert!(parse_initiate(b"<InitiateMultipartUploadResult/>").is_err());
}

#[test]
fn deletes_uploads_parts_location() {
    let d = DeleteResult::parse(b"<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>").unwrap();
    assert_eq!((d.deleted, d.failed[0].key.as_str(), d.failed[0].code.as_str()), (1, "b", "AccessDenied"));
    let u = UploadsPage::parse(b"<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>i</UploadId></Upload><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>").unwrap();
    assert_eq!(u.uploads, [("k".to_string(), "i".to_string())]);
    let p = PartsPage::parse(b"<ListPartsResult><Part><PartNumber>3</PartNumber><Size>9</Size><ETag>e</ETag></Part></ListPartsResult>").unwrap();
    assert_eq!(p.parts, [(3, 9, "e".to_string())]);
    assert_eq!(parse_location(b"<LocationConstraint/>").unwrap(), "us-east-1");
    assert_eq!(parse_location(b"<LocationConstraint>eu-west-1</LocationConstraint>").unwrap(), "eu-west-1");
}

#[test]
fn bodies_that_are_written() {
    let mut out = Vec::new();
    write_complete(
        [(1u32, &b"\"e1\""[..], &b"AAAAAA=="[..]), (2, b"\"e2\"", b"")],
        Some(CrcKind::Crc32c),
        &mut out,
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C><ETag>&quot;e1&quot;</ETag><PartNumber>1</PartNumber></Part><Part><ETag>&quot;e2&quot;</ETag><PartNumber>2</PartNumber></Part></CompleteMultipartUpload>"
    );
    let mut out = Vec::new();
    write_create_bucket("us-east-1", &mut out);
    assert!(out.is_empty());
    write_create_bucket("eu", &mut out);
    assert!(String::from_utf8(out).unwrap().contains("<LocationConstraint>eu</LocationConstraint>"));
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
    assert!(walk(deep.as_bytes(), |_, _| Ok(())).is_err());
}

proptest! {
    #[test]
    fn keys_survive_the_round_trip(keys in proptest::collection::vec("[^\\x00-\\x1f\\x7f\\ufffe\\uffff]{1,40}|[\\t\\r\\n a&<>]{1,9}", 1..6)) {
        let mut out = Vec::new();
        write_delete(keys.iter().map(|k| k.as_bytes()), true, &mut out);
        let mut back = Vec::new();
        walk(&out, |path, text| {
            if path == "Delete/Object/Key" {
                back.push(text.to_owned());
            }
            Ok(())
        }).unwrap();
        prop_assert_eq!(back, keys);
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "[<>/&;!\\[\\]A-Za-z =\"']{0,120}") {
        for b in [&bytes[..], text.as_bytes()] {
            let _ = ErrorDocument::parse(b);
            let _ = ListPage::parse(b);
            let _ = DeleteResult::parse(b);
            let _ = UploadsPage::parse(b);
            let _ = parse_complete(b);
        }
    }
}
