//! Whether a run is shown in a browser while it goes on.

use std::path::PathBuf;

use clap::Args;
use plimsoll_serve::ListenAddress;

const LIVE: &str = "Live view";

/// Given anywhere, understood by the commands that measure.
#[derive(Debug, Clone, Default, Args)]
pub struct LiveArgs {
    /// Show the run in a browser while it goes on, at the address that is printed: on this machine and any free port, or at ADDR (a port,
    /// an address, or both). Beyond this machine it speaks TLS and asks for a token
    #[arg(long, value_name = "ADDR", global = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0", help_heading = LIVE)]
    pub live: Option<ListenAddress>,
    /// Read the token for --live beyond this machine from this file [default: a new one, printed with the address]
    #[arg(long, value_name = "FILE", global = true, require_equals = true, requires = "live", help_heading = LIVE)]
    pub live_token_file: Option<PathBuf>,
}
