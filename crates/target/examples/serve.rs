//! Runs one of the embedded servers without the `plimsoll` binary:
//! `serve s3 --data DIR [--no-sync] [--tier NAME] [--scale X]` or `serve canned [--body N] [--threads N] [--tier NAME]`.

use plimsoll_target::canned::{self, CannedOptions};
use plimsoll_target::limiter::LimitSet;
use plimsoll_target::s3::{self, Credentials, S3Options};
use plimsoll_target::tls::{TlsOptions, server_config};
use std::net::SocketAddr;

fn value<T: std::str::FromStr>(args: &[String], name: &str) -> Option<T> {
    let at = args.iter().position(|a| a == name)?;
    args.get(at + 1)?.parse().ok()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let listen = value::<SocketAddr>(&args, "--listen").unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let limits = match value::<String>(&args, "--tier") {
        Some(name) => Some(LimitSet::tier(&name)?.scaled(value(&args, "--scale").unwrap_or(1.0))?),
        None => match value::<String>(&args, "--limits") {
            Some(file) => Some(LimitSet::read(file.as_ref())?),
            None => None,
        },
    };
    match args.first().map(String::as_str) {
        Some("s3") => {
            let data: String = value(&args, "--data").ok_or("--data DIR is missing")?;
            let mut options = S3Options::new(data.into());
            (options.listen, options.limits) = (listen, limits);
            options.sync = !args.iter().any(|a| a == "--no-sync");
            let pair = |k: &str| Credentials { access_key: k.into(), secret_key: format!("{k}-secret-key") };
            options.tls =
                value::<String>(&args, "--tls-self-signed").map(|f| TlsOptions::self_signed(f.into()));
            options.credentials = vec![pair("first"), pair("second")];
            let handle = s3::spawn(options)?;
            println!("{}", handle.ready().line());
            handle.wait();
        }
        Some("canned") => {
            let options = CannedOptions {
                body_bytes: value(&args, "--body").unwrap_or(4_096),
                threads: value(&args, "--threads").unwrap_or(1),
                delay: std::time::Duration::from_micros(value(&args, "--delay-us").unwrap_or(0)),
                keep_bytes: value(&args, "--keep").unwrap_or(0),
                spin: std::time::Duration::from_micros(value(&args, "--spin-us").unwrap_or(50)),
                limits,
                tls: value::<String>(&args, "--tls-self-signed")
                    .map(|f| server_config(&TlsOptions::self_signed(f.into())))
                    .transpose()?,
                ..CannedOptions::default()
            };
            let handle = canned::spawn(listen, options)?;
            println!("{{\"endpoint\": \"http://{}\"}}", handle.addr());
            handle.wait()?;
        }
        _ => return Err("say s3 or canned".into()),
    }
    Ok(())
}
