//! What of its user's keys a campaign of somebody else would use.

use plimsoll_model::plan::TargetSpec;

use crate::file::CampaignFile;

/// Endpoints that are servers of the run's own.
const STARTED: [&str; 2] = ["embedded", "canned"];

/// A line for each target whose requests are signed, or encrypted, with keys of whoever runs it. Servers of our own need none.
pub fn borrowed_keys(file: &CampaignFile) -> Vec<String> {
    let mut out = Vec::new();
    for subject in &file.subjects {
        for target in subject.targets() {
            let TargetSpec::S3(s3) = target else { continue };
            let is_ours = s3.endpoints.iter().all(|e| STARTED.contains(&e.as_str()));
            let to = s3.endpoints.join(", ");
            if !is_ours {
                let whose = s3
                    .profile
                    .as_ref()
                    .map_or("whatever this environment has".into(), |p| format!("profile '{p}'"));
                out.push(format!("{}: keys ({whose}) sign requests to {to}", subject.name));
            }
            for file in [&s3.sse_c_key_file, &s3.tls.client_key].into_iter().flatten() {
                out.push(format!("{}: the key in {file} is used with {to}", subject.name));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_with_whom_they_go_to() {
        let file = |target: &str| {
            let text = format!(
                "version = 1\nname = \"t\"\n[[subject]]\nname = \"a\"\n[subject.target]\nkind = \"s3\"\nbucket = \"bench\"\n{target}\n\
                 [[workload]]\nname = \"put\"\nmix = {{ put = 1 }}\n"
            );
            CampaignFile::from_toml(&text).unwrap()
        };
        let embedded = file("endpoints = [\"embedded\"]\nembedded = { tier = \"vultr-standard\" }");
        assert!(borrowed_keys(&embedded).is_empty());
        // Without a tier it is a server of ours all the same, and keys of nobody's go to it.
        assert!(borrowed_keys(&file("endpoints = [\"embedded\"]")).is_empty());
        assert!(borrowed_keys(&file("endpoints = [\"canned\"]")).is_empty());
        let theirs = borrowed_keys(&file("endpoints = [\"https://s3.example.com\"]\nprofile = \"work\""));
        assert_eq!(theirs, ["a: keys (profile 'work') sign requests to https://s3.example.com"]);
        let chain = borrowed_keys(&file("endpoints = [\"https://s3.example.com\"]"));
        assert!(chain[0].contains("whatever this environment has"), "{chain:?}");
    }
}
