//! `plimsoll serve`: the runs of a directory in a browser.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plimsoll_serve::{ListenAddress, LiveServer, ServeOptions};

use crate::fault::{Exit, Fault};
use crate::{live, output, runs_dir, signals};

pub const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll serve
  plimsoll serve /data/plimsoll-runs --listen 127.0.0.1:8080
  plimsoll serve --listen 0.0.0.0:9741 --token-file token

Each run links to its report; one that goes on is shown live. Nothing is
written into the directory. GET /metrics is for Prometheus.";

#[derive(Debug, Clone, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeCommand {
    /// Where runs are kept; it has to be there [default: that of PLIMSOLL_RUNS, or plimsoll-runs]
    #[arg(value_name = "RUNS_DIR")]
    pub runs_dir: Option<PathBuf>,
    /// Address to listen on: a port (on this machine only), an address, or both; port 0 is any free one. Beyond this machine it speaks TLS
    /// and asks for a token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9741")]
    pub listen: ListenAddress,
    /// Read the token from this file [default: a new one, printed with the address]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Another name that this machine is reached by; may be repeated
    #[arg(long = "name", value_name = "HOST")]
    pub names: Vec<String>,
}

/// Until it is ended.
pub fn serve(c: &ServeCommand) -> Result<Exit, Fault> {
    let given = c.runs_dir.clone().or_else(|| std::env::var_os("PLIMSOLL_RUNS").map(PathBuf::from));
    let root = runs_dir::root(given.as_deref());
    if c.runs_dir.is_some() && !root.is_dir() {
        return Err(Fault::input(
            format!("{}: there is no such directory", root.display()),
            "Name the directory that holds the runs.",
        ));
    }
    // Before signals are ours: a token that nobody writes yet is waited for, and there is nothing to end in order.
    let token = c.token_file.as_deref().map(live::token_in).transpose()?;
    signals::install(signals::ProcessRole::Server);
    let names = [live::names(), c.names.clone()].concat();
    let server = LiveServer::start(ServeOptions { address: c.listen, root: root.clone(), token, names })?;
    live::tell_place(&server, "/", &format!("the runs of {}", root.display()));
    output::tell("plimsoll: Ctrl-C ends it");
    while !signals::was_asked_to_stop() {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Exit::Valid)
}
