//! What `target` does: starts a server, says where it is in one line of JSON on stdout, and serves until it is ended.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use plimsoll_target::canned::{self, CannedError, CannedOptions, FaultScope};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::target::{CannedArgs, TargetCommand};
use crate::fault::{Exit, Fault};
use crate::output;

pub fn target(c: &TargetCommand) -> Result<Exit, Fault> {
    match c {
        TargetCommand::Canned(a) => canned(a),
        TargetCommand::S3(a) => super::target_s3::serve(a),
        TargetCommand::Block(a) => super::target_block::serve(a),
    }
}

/// Binds, or says who is in the way.
pub fn bind(listen: std::net::SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(listen).map_err(|e| {
        Fault::input(format!("cannot listen on {listen}: {e}"), "Choose another --listen; port 0 takes a free one.")
    })
}

/// Where the server is, for whoever started it. Flushed at once: the reader waits for it.
pub fn say_ready(endpoint: &str, access_key: &str, secret_key: &str) -> Result<(), Fault> {
    let line = serde_json::json!({ "endpoint": endpoint, "access_key": access_key, "secret_key": secret_key });
    output::print(&format!("{line}\n"))
}

pub fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

/// TLS of a certificate and key in PEM files; none without them.
pub fn tls(cert: Option<&Path>, key: Option<&Path>) -> Result<Option<Arc<rustls::ServerConfig>>, Fault> {
    let (Some(cert), Some(key)) = (cert, key) else { return Ok(None) };
    let bad = |path: &Path, why: String| {
        Fault::input(format!("{}: {why}", path.display()), "Give PEM files that belong together.")
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| bad(cert, e.to_string()))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| bad(key, e.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Fault::bug(e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|e| bad(cert, e.to_string()))?;
    Ok(Some(Arc::new(config)))
}

fn canned(a: &CannedArgs) -> Result<Exit, Fault> {
    if let Some(cpus) = &a.cpus {
        pin(&cpus.0)?;
    }
    let options = CannedOptions {
        body_bytes: a.body.0,
        threads: a.threads as usize,
        delay: a.delay.map(|d| d.0).unwrap_or_default(),
        list_keys: a.list_keys,
        faults: a.faults.clone(),
        fault_scope: if a.fault_all { FaultScope::All } else { FaultScope::Objects },
        retry_after_s: a.retry_after,
        redirect_to: a.redirect_to.clone(),
        close_after: a.close_after,
        tls: tls(a.tls_cert.as_deref(), a.tls_key.as_deref())?,
        ..CannedOptions::default()
    };
    let scheme = scheme(options.tls.is_some());
    let handle = canned::serve(bind(a.listen)?, options).map_err(refused)?;
    // It checks no signature, so any credentials do.
    say_ready(&format!("{scheme}://{}", handle.addr()), "canned", "canned")?;
    handle.wait().map_err(refused)?;
    Ok(Exit::Valid)
}

fn refused(e: CannedError) -> Fault {
    Fault::input(e.to_string(), "See `plimsoll target canned --help`.")
}

/// Pins this process, and the threads that it starts from now on.
fn pin(cpus: &[u32]) -> Result<(), Fault> {
    // SAFETY: the set is zeroed, CPU_SET checks its index, and the call reads it only.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if set == 0 {
        return Ok(());
    }
    let e = std::io::Error::last_os_error();
    Err(Fault::input(format!("cannot pin to CPUs {cpus:?}: {e}"), "Name CPUs that this machine has: see lscpu."))
}
