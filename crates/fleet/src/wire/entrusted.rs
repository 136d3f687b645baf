//! Keys of the storage, as they are sent to one agent: only ever sealed, and only ever in memory.

use std::collections::BTreeMap;

use plimsoll_bus::sealed::{SealingKey, seal};
use plimsoll_model::Plan;
use plimsoll_model::plan::TargetSpec;
use plimsoll_setup::SetupError;
use plimsoll_setup::s3::{CANNED, EMBEDDED, GivenKeys};
use serde::{Deserialize, Serialize};

/// By target.
#[derive(Default, Serialize, Deserialize)]
pub struct Entrusted(BTreeMap<String, KeysTold>);

#[derive(Serialize, Deserialize)]
struct KeysTold {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_unix_s: Option<u64>,
}

impl std::fmt::Debug for Entrusted {
    /// What is in it is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Entrusted {
    /// What this machine would use for the targets of a plan.
    pub fn of_here(plan: &Plan) -> Result<Self, SetupError> {
        let mut all = BTreeMap::new();
        for (name, spec) in &plan.targets {
            let TargetSpec::S3(s3) = spec else { continue };
            // A server that we start makes its own.
            if s3.endpoints.iter().any(|e| e == EMBEDDED || e == CANNED) {
                continue;
            }
            let found = GivenKeys::of_here(s3)?;
            let (access_key, secret_key, session_token, expires_unix_s) = found.parts();
            let keys = KeysTold {
                access_key: access_key.to_owned(),
                secret_key: secret_key.to_owned(),
                session_token: session_token.map(str::to_owned),
                expires_unix_s,
            };
            all.insert(name.clone(), keys);
        }
        Ok(Self(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For one process of an agent and one run. `None`: that is no key.
    pub fn sealed(&self, key: &str, run: &str, session: &str) -> Option<String> {
        let text = serde_json::to_vec(self).expect("texts are always JSON");
        seal(key, &occasion(run, session), &text)
    }

    /// What was sealed to this process.
    pub fn open(sealed: &str, key: &SealingKey, run: &str, session: &str) -> Option<Self> {
        serde_json::from_slice(&key.open(sealed, &occasion(run, session))?).ok()
    }

    /// The keys of a target.
    pub fn keys(&self, target: &str) -> Option<GivenKeys> {
        let KeysTold { access_key, secret_key, session_token, expires_unix_s } = self.0.get(target)?;
        Some(GivenKeys::new(access_key, secret_key, session_token.as_deref(), *expires_unix_s))
    }
}

/// Neither has a zero byte in it.
fn occasion(run: &str, session: &str) -> String {
    format!("credentials\0{run}\0{session}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_open_for_their_process_and_run_only_and_are_not_shown() {
        let keys = KeysTold {
            access_key: "AKIA".into(),
            secret_key: "hunter2".into(),
            session_token: Some("t".into()),
            expires_unix_s: None,
        };
        let entrusted = Entrusted([("s3".to_owned(), keys)].into());
        let (one, two) = (SealingKey::random().unwrap(), SealingKey::random().unwrap());
        let sealed = entrusted.sealed(&one.public(), "r1", "p1").unwrap();
        let open = |key, run, session| Entrusted::open(&sealed, key, run, session);
        let opened = open(&one, "r1", "p1").unwrap();
        assert!(opened.keys("s3").is_some() && opened.keys("other").is_none());
        assert!(
            open(&two, "r1", "p1").is_none()
                && open(&one, "r2", "p1").is_none()
                && open(&one, "r1", "p2").is_none()
        );
        assert!(!format!("{opened:?} {:?}", opened.keys("s3")).contains("hunter2"));
    }
}
