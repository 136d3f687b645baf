//! What uploads ask of the storage beyond keeping bytes (encryption, storage class), and whether it was done: a server
//! that does not know such a header ignores it, and the figures would be of something else than what was asked for.

use std::path::Path;

use plimsoll_engine::admin::Stored;
use plimsoll_model::plan::S3Target;
use plimsoll_s3::head::customer_key_problem;

use crate::error::SetupError;

const ENCRYPTION: &str = "x-amz-server-side-encryption";
const CUSTOMER_KEY: &str = "x-amz-server-side-encryption-customer-key";
const STORAGE_CLASS: &str = "x-amz-storage-class";

/// The target with the key of its key file among its headers. Only for the wire: it must not be written or shown.
pub fn with_customer_key(target: &S3Target) -> Result<S3Target, SetupError> {
    let mut target = target.clone();
    if let Some(file) = &target.sse_c_key_file {
        let key = customer_key(Path::new(file))?;
        target.put_headers.insert(CUSTOMER_KEY.into(), key);
    }
    Ok(target)
}

/// The key in a file, as base64. An error never repeats what the file holds.
fn customer_key(file: &Path) -> Result<String, SetupError> {
    const REMEDY: &str = "Make a key file with: openssl rand -base64 32 > FILE";
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|e| SetupError::input(format!("cannot read the key file {shown}: {e}"), REMEDY))?;
    match customer_key_problem(text.trim()) {
        None => Ok(text.trim().to_owned()),
        Some(problem) => Err(SetupError::input(format!("the key in file {shown} {problem}"), REMEDY)),
    }
}

/// Said where the server could not be asked.
pub const UNKNOWN: &str = "It is not known whether the server applied the upload options (encryption, storage \
                           class): it could not be asked about an object.";

/// Whether there is anything to confirm.
pub fn asks(target: &S3Target) -> bool {
    header(target, ENCRYPTION).is_some() || header(target, STORAGE_CLASS).is_some() || has_key(target)
}

/// The header names that an upload carries, for a message about an upload that was refused.
pub fn named(target: &S3Target) -> Option<String> {
    let mut names: Vec<&str> = target.put_headers.keys().map(String::as_str).collect();
    if target.sse_c_key_file.is_some() && !names.contains(&CUSTOMER_KEY) {
        names.push(CUSTOMER_KEY);
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// What was asked for and is not said of an object that was stored so: a sentence each.
pub fn unconfirmed(target: &S3Target, stored: &Stored) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |what: String, said: &str| {
        let answer = if said.is_empty() { "does not mention it".into() } else { format!("says {said}") };
        out.push(format!(
            "{what} was requested, but the server {answer} when asked about an object. What was measured is most \
             likely the storage without it."
        ));
    };
    if let Some(want) = header(target, ENCRYPTION)
        && !stored.encryption.eq_ignore_ascii_case(want)
    {
        say(format!("Encryption {want}"), &stored.encryption);
    }
    if has_key(target) && !stored.customer_key {
        say("Encryption with a customer-provided key (SSE-C)".into(), &stored.encryption);
    }
    if let Some(want) = header(target, STORAGE_CLASS)
        // The usual class is most often not mentioned.
        && !(want == "STANDARD" && stored.storage_class.is_empty())
        && stored.storage_class != want
    {
        say(format!("Storage class {want}"), &stored.storage_class);
    }
    out
}

fn has_key(target: &S3Target) -> bool {
    target.sse_c_key_file.is_some()
}

fn header<'a>(target: &'a S3Target, name: &str) -> Option<&'a str> {
    target.put_headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;
    use plimsoll_model::plan::TargetSpec;

    fn target(headers: &[(&str, &str)]) -> S3Target {
        let text = "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"http://x\"]\nbucket = \"b\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { get = 1 }\n";
        let mut plan = Plan::from_toml(text).unwrap();
        let Some(TargetSpec::S3(mut t)) = plan.targets.remove("t") else { panic!("no S3 target") };
        t.put_headers = headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        t
    }

    #[test]
    fn what_a_server_ignores_is_named() {
        let said =
            |headers: &[(&str, &str)], stored: &Stored| unconfirmed(&target(headers), stored).join(" ");
        let plain = Stored::default();
        assert_eq!(said(&[], &plain), "");
        assert_eq!(said(&[("x-amz-storage-class", "STANDARD")], &plain), "");
        assert!(said(&[("x-amz-storage-class", "COLD")], &plain).contains("COLD"));
        assert!(said(&[("X-Amz-Server-Side-Encryption", "aws:kms")], &plain).contains("does not mention it"));
        let aes = Stored { encryption: "AES256".into(), ..Stored::default() };
        assert_eq!(said(&[("x-amz-server-side-encryption", "AES256")], &aes), "");
        assert!(said(&[("x-amz-server-side-encryption", "aws:kms")], &aes).contains("says AES256"));
        let mut own = target(&[]);
        own.sse_c_key_file = Some("f".into());
        assert!(unconfirmed(&own, &plain)[0].contains("SSE-C"));
        assert!(unconfirmed(&own, &Stored { customer_key: true, ..plain }).is_empty());
    }

    #[test]
    fn a_bad_key_file_is_told_without_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let mut t = target(&[]);
        t.sse_c_key_file = Some(file.display().to_string());
        assert!(with_customer_key(&t).unwrap_err().to_string().contains("cannot read"));
        for (text, told) in [("c2hvcnQ=\n", "32 bytes"), ("not base64!\n", "not base64")] {
            std::fs::write(&file, text).unwrap();
            let e = with_customer_key(&t).unwrap_err().to_string();
            assert!(e.contains(told) && !e.contains(text.trim()), "{e}");
        }
        let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
        std::fs::write(&file, format!("{key}\n")).unwrap();
        assert_eq!(with_customer_key(&t).unwrap().put_headers[CUSTOMER_KEY], key);
    }
}
