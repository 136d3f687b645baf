//! Whether servers that have just been started take uploads: those of a cluster lock objects for each other, and the way on which they do
//! comes up after they say that they are healthy. Until then uploads are answered with 503.

use std::time::{Duration, Instant};

use plimsoll_engine::admin::{Admin, AdminError, AdminSetup, Trouble};
use plimsoll_engine::target::s3::LiveKeys;
use plimsoll_model::plan::TlsSpec;
use plimsoll_s3::{Credentials, Endpoint};

use crate::SetupError;

/// A bucket of this name is made and removed again.
const BUCKET: &str = "plimsoll-is-ready";
const KEY: &str = "is-ready";
/// Each server has to take so many one after the other.
const UPLOADS: usize = 3;
/// Of an answer, and of all of it.
const TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(60);

/// Waits until each server of `pattern` takes uploads, and leaves nothing there: of a cluster that was just made, in which nobody has
/// anything yet. `keys`: access and secret key; `stopped`: whoever waits has had enough.
pub fn await_uploads(
    pattern: &str,
    (access_key, secret_key): (String, String),
    tls: &TlsSpec,
    stopped: &dyn Fn() -> bool,
) -> Result<(), SetupError> {
    let wrong = |e: AdminError| SetupError::input(e.message, e.remedy);
    let endpoints = Endpoint::expand(pattern)
        .map_err(|e| SetupError::input(e.to_string(), "Correct the servers' addresses"))?;
    let keys = LiveKeys::from(Credentials { access_key, secret_key, session_token: None });
    let admin = |endpoint: &Endpoint| {
        Admin::new(AdminSetup {
            endpoint: endpoint.clone(),
            keys: keys.clone(),
            region: "us-east-1".into(),
            bucket: BUCKET.into(),
            virtual_host: false,
            tls: tls.clone(),
            put_headers: Vec::new(),
            timeout: TIMEOUT,
        })
        .map_err(wrong)
    };
    let began = Instant::now();
    let until = |what: &mut dyn FnMut() -> Result<(), AdminError>| loop {
        match what() {
            Ok(()) => return Ok(()),
            Err(_) if stopped() => return Err(SetupError::Interrupted),
            Err(e) if began.elapsed() > LONGEST => return Err(wrong(e)),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    let Some(first) = endpoints.first() else { return Ok(()) };
    let mut bucket = admin(first)?;
    until(&mut || bucket.create_bucket().map(drop))?;
    for endpoint in &endpoints {
        let mut admin = admin(endpoint)?;
        for _ in 0..UPLOADS {
            until(&mut || admin.put(KEY, b"ready"))?;
        }
    }
    // What went though the answer was lost is gone.
    let gone = |done: Result<(), AdminError>| match done {
        Err(e) if matches!(e.trouble, Trouble::NoSuchBucket | Trouble::NotFound) => Ok(()),
        done => done,
    };
    until(&mut || gone(bucket.delete(KEY)))?;
    until(&mut || gone(bucket.delete_bucket()))
}
