//! What `target` does: starts a server, says where it is in one line of JSON on stdout, and serves until it is ended.

use std::net::TcpListener;

use plimsoll_target::canned::{self, CannedError, CannedOptions, FaultScope};
use plimsoll_target::ready::Ready;
use plimsoll_target::tls::{TlsOptions, TlsSource, server_config};

use super::target::{CannedArgs, TargetCommand, TlsArgs};
use crate::fault::{Exit, Fault};
use crate::{out_file, output};

pub fn target(c: &TargetCommand) -> Result<Exit, Fault> {
    match c {
        TargetCommand::Canned(a) => canned(a),
        TargetCommand::S3(a) => super::target_s3::serve(a),
        TargetCommand::Block(a) => super::target_block::serve(a),
        TargetCommand::Disk(a) => super::target_disk::serve(a),
        TargetCommand::Cluster(a) => super::target_cluster::cluster(a),
    }
}

/// Binds, or says who is in the way.
pub fn bind(listen: std::net::SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(listen).map_err(|e| {
        Fault::input(
            format!("cannot listen on {listen}: {e}"),
            "Choose another --listen; port 0 picks a free port.",
        )
    })
}

/// TLS from PEM files, or with a certificate made on the spot; none without them.
pub fn tls_options(a: &TlsArgs) -> Result<Option<TlsOptions>, Fault> {
    a.tls_self_signed.as_deref().map_or(Ok(()), out_file::check)?;
    Ok(match (&a.tls_cert, &a.tls_key, &a.tls_self_signed) {
        (Some(cert), Some(key), _) => {
            let source = TlsSource::Files { cert: cert.clone(), key: key.clone() };
            Some(TlsOptions { source, client_ca: None })
        }
        (_, _, Some(ca_out)) => Some(TlsOptions::self_signed(ca_out.clone())),
        _ => None,
    })
}

fn canned(a: &CannedArgs) -> Result<Exit, Fault> {
    if let Some(cpus) = &a.cpus {
        pin(&cpus.0)?;
    }
    let options = CannedOptions {
        body_bytes: a.body.0,
        threads: a.threads as usize,
        delay: a.delay.map(|d| d.0).unwrap_or_default(),
        spin: a.spin.0,
        keep_bytes: a.keep.map_or(0, |s| s.0),
        list_keys: a.list_keys,
        faults: a.faults.clone(),
        fault_scope: if a.fault_all { FaultScope::All } else { FaultScope::Objects },
        retry_after_s: a.retry_after,
        redirect_to: a.redirect_to.clone(),
        close_after: a.close_after,
        limits: super::target_s3::object_limits(&a.limits)?,
        tls: tls_options(&a.tls)?
            .map(|o| server_config(&o))
            .transpose()
            .map_err(|e| Fault::input(e.to_string(), "Give a certificate and key that match."))?,
        ..CannedOptions::default()
    };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let handle = canned::serve(bind(a.listen)?, options).map_err(refused)?;
    // It checks no signature, so any credentials do.
    let ready = Ready {
        kind: "canned",
        address: handle.addr().to_string(),
        endpoint: format!("{scheme}://{}", handle.addr()),
        access_key: Some("canned".into()),
        secret_key: Some("canned".into()),
        region: None,
        ca_file: a.tls.tls_self_signed.clone(),
        path: None,
        limits: None,
        pid: std::process::id(),
    };
    output::print(&format!("{}\n", ready.line()))?;
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
    Err(Fault::input(
        format!("cannot pin to CPUs {cpus:?}: {e}"),
        "Give CPUs that this machine has: see lscpu.",
    ))
}
