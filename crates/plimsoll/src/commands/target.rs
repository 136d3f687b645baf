//! `plimsoll target ...`: servers to measure, with limits that are known.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::units::{Size, Span};

use super::target_cluster::ClusterArgs;

#[derive(Debug, Clone, Subcommand)]
pub enum TargetCommand {
    /// An S3 server that stores objects in a directory, with an optional rate limiter
    S3(S3ServerArgs),
    /// A minimal S3 responder for calibration: fixed answers, no storage, no signature check
    Canned(CannedArgs),
    /// A block device with a known limit (uses qemu-storage-daemon)
    Block(BlockServerArgs),
    /// A mounted directory on a disk with a known limit, credit included (needs root)
    Disk(DiskServerArgs),
    /// A storage cluster on this machine: servers in network namespaces, with links, drives and CPUs of known limits (needs root)
    #[command(args_conflicts_with_subcommands = true)]
    Cluster(ClusterArgs),
}

pub const S3_EXAMPLES: &str = "\
Examples:
  plimsoll target s3 --listen 127.0.0.1:9000 --data DIR
  plimsoll target s3 --listen 127.0.0.1:9000 --data DIR \\
      --tier vultr-standard --scale 0.1

Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. If they are not set, new ones are \
created and printed (credentials that are set are not printed). A second pair is accepted if \
PLIMSOLL_SECOND_ACCESS_KEY_ID and PLIMSOLL_SECOND_SECRET_ACCESS_KEY are set.

Format of a --limits file (each [[limit]] is a token bucket; answer is 429, 503, delay or queue):
  name = \"mine\"
  kind = \"object\"
  description = \"60 op/s after a burst of 900\"
  [[limit]]
  unit = \"ops\"
  rate_per_s = 60
  capacity = 900
  scope = \"server\"
  answer = \"503\"";

pub const CANNED_EXAMPLES: &str = "\
Examples:
  plimsoll target canned --listen 127.0.0.1:9001 --body 1MiB
  plimsoll target canned --delay 5ms --fault 503=30% --retry-after 1

It accepts any credentials.";

pub const BLOCK_EXAMPLES: &str = "\
Examples:
  plimsoll target block --tier vultr-hdd --size 4GiB
  plimsoll target block --tier vultr-nvme --scale 0.2 --burst-scale 0.1
  # with the FILE that the first command prints
  plimsoll block FILE --pattern randread --bs 4KiB --iodepth 32";

pub const DISK_EXAMPLES: &str = "\
Examples:
  plimsoll target disk --tier azure-premium-256 --size 2GiB
  # with the DIR that the first command prints
  plimsoll file DIR --memory 512MiB --threads 4
  # a disk whose credit runs out after half a minute of work
  plimsoll target disk --tier gce-standard-20 --credit 30s

It is an ext4 file system on a loop device over FUSE, and is taken down when the command ends. Limits hold for what \
reaches the disk: what the page cache answers does not.

Format of a --limits file: as of `target s3`, with kind = \"block\". Bytes limits may be of one direction: \
directions = [\"out\"] (reads) or [\"in\"] (writes). With a credit all limits are burst_per_s while it lasts, then \
rate_per_s:
  [credit]
  seconds = 1200
  earned_per_s = 0.02";

/// A limiter in front of a server's answers.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// A tier with known limits
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// A limits file instead of a tier (format below)
    #[arg(long, value_name = "FILE", conflicts_with = "tier")]
    pub limits: Option<PathBuf>,
    /// Multiply the tier's rates and capacities
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
}

/// TLS of a server, by files or made on the spot.
#[derive(Debug, Clone, Args)]
pub struct TlsArgs {
    /// PEM file of the certificate to serve TLS with
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve TLS with a new self-made certificate, and write its CA certificate to this file
    #[arg(long, value_name = "CA-FILE", conflicts_with = "tls_cert")]
    pub tls_self_signed: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = S3_EXAMPLES)]
pub struct S3ServerArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: std::net::SocketAddr,
    /// Data directory: new, empty, or made by an earlier `target s3`
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Answer without waiting for data to be synced
    #[arg(long)]
    pub no_sync: bool,
    /// Also accept virtual-host addressing: buckets are subdomains of this domain
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Create this bucket at startup; may be repeated
    #[arg(long = "bucket", value_name = "NAME")]
    pub buckets: Vec<String>,
    #[command(flatten)]
    pub tls: TlsArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = CANNED_EXAMPLES)]
pub struct CannedArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9001")]
    pub listen: std::net::SocketAddr,
    /// Size of the body that GET returns
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub body: Size,
    /// Wait this long before each answer
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
    /// Answer a share of requests with a fault: a status (403, 429, 500, 503, ...), redirect, chunked, short, reset,
    /// trickle, garbage, stall, close or drop, for example 503=30%; may be repeated
    #[arg(long = "fault", value_name = "KIND=SHARE")]
    pub faults: Vec<plimsoll_target::canned::CannedFault>,
    /// Apply faults to all requests, not only to object requests
    #[arg(long)]
    pub fault_all: bool,
    /// Retry-After value of 429 and 503 answers, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
    /// Target of the redirect fault, for example http://127.0.0.1:9002
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9")]
    pub redirect_to: String,
    /// Keep uploaded bodies in memory, up to this much, and return them to GET, so that clients can verify them
    #[arg(long, value_name = "SIZE")]
    pub keep: Option<Size>,
    /// Poll this long for more work before sleeping; this makes a busy server answer faster
    #[arg(long, value_name = "TIME", default_value = "50us")]
    pub spin: Span,
    /// Number of keys that a list returns
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub list_keys: u64,
    /// Close each connection after this many requests, announced with Connection: close
    #[arg(long, value_name = "N")]
    pub close_after: Option<u64>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Pin threads to these CPUs, for example 1
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<crate::values::Cpus>,
    #[command(flatten)]
    pub tls: TlsArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = BLOCK_EXAMPLES)]
pub struct BlockServerArgs {
    /// A tier with known limits, for example vultr-hdd
    #[arg(long, value_name = "TIER", required_unless_present = "limits")]
    pub tier: Option<String>,
    /// A limits file (kind = "block") instead of a tier
    #[arg(long, value_name = "FILE", conflicts_with = "tier")]
    pub limits: Option<PathBuf>,
    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub size: Size,
    /// Data directory: new, empty, or that of an earlier disk [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Multiply the tier's rates
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Multiply how long its bursts last, and how long they take to fill up again
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub burst_scale: f64,
    /// Nothing on stderr but errors
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = DISK_EXAMPLES)]
pub struct DiskServerArgs {
    /// A tier with known limits, for example gce-standard-20
    #[arg(long, value_name = "TIER", required_unless_present = "limits")]
    pub tier: Option<String>,
    /// A limits file (kind = "block") instead of a tier
    #[arg(long, value_name = "FILE", conflicts_with = "tier")]
    pub limits: Option<PathBuf>,
    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub size: Size,
    /// Data directory: new, empty, or that of an earlier disk [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Multiply the tier's rates
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// What is left of the tier's credit, as time at its burst rates [default: all of it]
    #[arg(long, value_name = "TIME")]
    pub credit: Option<Span>,
    /// Put a page cache in front of the limits, as a host that caches its guests' disks
    #[arg(long)]
    pub cached: bool,
}
