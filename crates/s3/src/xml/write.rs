//! Request bodies, appended to the caller's buffer.

use crate::checksum::CrcKind;
use crate::uri::push_decimal;

const NAMESPACE: &[u8] = b" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// Text content: what XML reserves and what line ends would change is written as a reference.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &c in text {
        match c {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            0..=31 | 127 => {
                out.extend_from_slice(b"&#");
                push_decimal(u64::from(c), out);
                out.push(b';');
            }
            _ => out.push(c),
        }
    }
}

fn element(name: &[u8], text: &[u8], out: &mut Vec<u8>) {
    out.push(b'<');
    out.extend_from_slice(name);
    out.push(b'>');
    escape(text, out);
    out.extend_from_slice(b"</");
    out.extend_from_slice(name);
    out.push(b'>');
}

/// Body of DeleteObjects. `quiet`: only failures are answered.
pub fn write_delete<'a>(keys: impl IntoIterator<Item = &'a [u8]>, quiet: bool, out: &mut Vec<u8>) {
    write_delete_versions(keys.into_iter().map(|k| (k, None)), quiet, out);
}

/// The same for versions: key, and the version where one is meant.
pub fn write_delete_versions<'a>(
    items: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    quiet: bool,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"<Delete");
    out.extend_from_slice(NAMESPACE);
    out.push(b'>');
    if quiet {
        out.extend_from_slice(b"<Quiet>true</Quiet>");
    }
    for (key, version) in items {
        out.extend_from_slice(b"<Object>");
        element(b"Key", key, out);
        if let Some(v) = version {
            element(b"VersionId", v, out);
        }
        out.extend_from_slice(b"</Object>");
    }
    out.extend_from_slice(b"</Delete>");
}

/// Body of CompleteMultipartUpload: number, ETag and checksum (base64, empty for none) of each part, in order.
pub fn write_complete<'a>(
    parts: impl IntoIterator<Item = (u32, &'a [u8], &'a [u8])>,
    checksum: Option<CrcKind>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"<CompleteMultipartUpload");
    out.extend_from_slice(NAMESPACE);
    out.push(b'>');
    for (number, etag, sum) in parts {
        out.extend_from_slice(b"<Part>");
        if let Some(kind) = checksum.filter(|_| !sum.is_empty()) {
            element(kind.element().as_bytes(), sum, out);
        }
        element(b"ETag", etag, out);
        out.extend_from_slice(b"<PartNumber>");
        push_decimal(u64::from(number), out);
        out.extend_from_slice(b"</PartNumber></Part>");
    }
    out.extend_from_slice(b"</CompleteMultipartUpload>");
}

/// Body of CreateBucket; nothing for us-east-1, which must not be named.
pub fn write_create_bucket(region: &str, out: &mut Vec<u8>) {
    if region.is_empty() || region == "us-east-1" {
        return;
    }
    out.extend_from_slice(b"<CreateBucketConfiguration");
    out.extend_from_slice(NAMESPACE);
    out.push(b'>');
    element(b"LocationConstraint", region.as_bytes(), out);
    out.extend_from_slice(b"</CreateBucketConfiguration>");
}
