//! `plimsoll net`: what the network between machines carries.

use std::net::SocketAddr;

use clap::{Args, Subcommand};
use plimsoll_model::units::Span;

use crate::args::OutputArgs;

pub const NET_EXAMPLES: &str = "\
Examples:
  plimsoll net --fleet
  plimsoll net --fleet --pattern pairs,in,out,bisection --duration 5s
  plimsoll net --fleet --pattern all-to-all --max-gbps 2.5
  # two machines without a fleet: on the first
  plimsoll net serve --listen 10.0.0.7:5210
  # and on the second, with the key that the first has printed
  plimsoll net --to 10.0.0.7:5210 --key @key

Payload is counted where it arrives. The result is kept, and later runs can be held against it with --ceiling.";

#[derive(Debug, Clone, Args)]
pub struct NetCommand {
    #[command(subcommand)]
    pub serve: Option<NetSubcommand>,
    #[command(flatten)]
    pub test: NetArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum NetSubcommand {
    /// Take part in one test with another machine, without a fleet; print the line that starts it there
    Serve(ServeArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:5210")]
    pub listen: SocketAddr,
    /// Key of the test, from @FILE or standard input (-) [default: a new one, which is printed] [env: PLIMSOLL_NET_KEY=]
    #[arg(long, value_name = "@FILE|-")]
    pub key: Option<String>,
    /// Network or address that may be used; may be repeated [default: private addresses]
    #[arg(long, value_name = "NETWORK")]
    pub allow_net: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct NetArgs {
    /// Machine where `plimsoll net serve` waits; or use --fleet
    #[arg(long, value_name = "HOST:PORT")]
    pub to: Option<String>,
    /// Key that it printed, from @FILE or standard input (-) [env: PLIMSOLL_NET_KEY=]
    #[arg(long, value_name = "@FILE|-", requires = "to")]
    pub key: Option<String>,
    /// Network or address that may be used; may be repeated [default: private addresses]
    #[arg(long, value_name = "NETWORK", requires = "to")]
    pub allow_net: Vec<String>,
    /// What sends to what: pairs, in, out, all-to-all, bisection; storage, east-west (with agents of --role server); all
    #[arg(
        long,
        value_name = "WHAT,...",
        value_delimiter = ',',
        default_value = "pairs,all-to-all,storage,east-west"
    )]
    pub pattern: Vec<String>,
    /// Connections of each pair and direction; auto: doubled until they bring less than 2 % more
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub streams: String,
    /// Length of each stage, without its warm-up
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: Span,
    /// Time before each stage that does not count
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub warmup: Span,
    /// Most that any host sends, and receives, in Gbit/s [default: no limit]
    #[arg(long, value_name = "X")]
    pub max_gbps: Option<f64>,
    /// Seed by which the halves of the bisection are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}
