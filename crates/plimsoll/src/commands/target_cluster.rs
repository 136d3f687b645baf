//! `target cluster`: real storage servers in network namespaces of this machine, until it is ended; and the commands that reach one that runs.

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use plimsoll_cluster::{BoxFault, BoxHome, ClusterSpec, Keys, RunningCluster, ask, sweep};
use plimsoll_model::plan::{EmbeddedCluster, TlsSpec};
use plimsoll_model::units::{BytesRate, LinkRate, Size};
use plimsoll_setup::SetupError;
use plimsoll_setup::s3::await_uploads;
use plimsoll_target::s3::Credentials;

use super::target_s3::pair;
use crate::fault::{Exit, Fault};
use crate::{output, signals};

pub const CLUSTER_EXAMPLES: &str = "\
Examples:
  plimsoll target cluster --nodes 4 --drives 2 --ec 2 --link 200mbit
  plimsoll target cluster --nodes 4 --ec 2 --drive-limit 20MB/s --cpu 0.5
  # with the endpoints and keys that the first command prints
  plimsoll object get --endpoint 'http://10.213.0.{1...4}:9000' \\
      --bucket bench --create-bucket --size 64MiB \\
      --observe 'minio=http://10.213.0.{1...4}:9000' \\
      --observe 'node=http://10.213.0.{1...4}:9100' \\
      --cluster /var/tmp/plimsoll-cluster-box/cluster.toml
  # while it runs
  plimsoll target cluster fault link:3=20mbit
  plimsoll target cluster fault link:3=good
  plimsoll target cluster stop

Each node is a server in a network namespace of its own, which a pair of interfaces joins to a bridge; --link holds both \
ways of each. This machine is at the bridge without a limit. All of it is in /var/tmp (or TMPDIR), is known by its mark, and \
goes when the command ends; what a killed one left goes when the next is started, or with `stop`.

Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. If they are not set, new ones are created and \
printed.

What it is made of, with the rates that it is held to, is in cluster.toml of its directory: with --cluster a run knows the \
ceilings and what redundancy makes of its bytes.

Each node also serves what its host counts, as node_exporter does, at port 9100: interface and link speed, limited drives, \
and with --cpu its processor.";

const FAULT_EXAMPLES: &str = "\
Examples:
  plimsoll target cluster fault drive:2
  plimsoll target cluster fault drive:2=5MB/s link:3=20mbit
  plimsoll target cluster fault node:1=down
  plimsoll target cluster fault node:1=good

Drives are numbered node by node: of nodes with two, drive 3 is the first of node 2. Rates of drives need --drive-limit.";

const STOP_EXAMPLES: &str = "\
Examples:
  plimsoll target cluster stop";

#[derive(Debug, Clone, Args)]
#[command(after_help = CLUSTER_EXAMPLES)]
pub struct ClusterArgs {
    #[command(subcommand)]
    pub command: Option<ClusterCommand>,
    #[command(flatten)]
    pub made: MadeArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ClusterCommand {
    /// Make a drive, a link or a node of a running cluster worse, or good again
    #[command(after_help = FAULT_EXAMPLES)]
    Fault(FaultArgs),
    /// End a running cluster, and take down what a killed one left
    #[command(after_help = STOP_EXAMPLES)]
    Stop(ClusterNameArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ClusterNameArgs {
    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "box")]
    pub name: String,
}

#[derive(Debug, Clone, Args)]
pub struct FaultArgs {
    /// drive:N, link:N or node:N; with =down (or nothing), =good, or a rate: link:3=20mbit, drive:2=5MB/s
    #[arg(value_name = "FAULT", required = true)]
    pub faults: Vec<String>,
    #[command(flatten)]
    pub name: ClusterNameArgs,
}

#[derive(Debug, Clone, Args)]
pub struct MadeArgs {
    /// What runs in it: MinIO, from PATH
    #[arg(long, value_name = "ENGINE", default_value = "minio", value_parser = ["minio"])]
    pub engine: String,
    /// Number of servers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub nodes: u32,
    /// Number of drives of each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub drives: u32,
    /// Rate of each node's link, each way, headers included [default: as fast as this machine]
    #[arg(long, value_name = "RATE")]
    pub link: Option<LinkRate>,
    /// Parity drives of an object [default: MinIO's own choice]
    #[arg(long, value_name = "N")]
    pub ec: Option<u32>,
    /// Rate of each drive, of reads and of writes [default: directories without a limit]
    #[arg(long, value_name = "RATE")]
    pub drive_limit: Option<BytesRate>,
    /// Another rate for reads
    #[arg(long, value_name = "RATE", requires = "drive_limit")]
    pub drive_read_limit: Option<BytesRate>,
    /// Size of each drive with a limit
    #[arg(long, value_name = "SIZE", default_value = "4GiB", requires = "drive_limit")]
    pub drive_size: Size,
    /// Cores of each node [default: those of this machine, shared]
    #[arg(long, value_name = "CORES")]
    pub cpu: Option<f64>,
    /// TLS between clients and servers, and among these, with a certificate made for it
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub name: ClusterNameArgs,
    /// Nothing on stderr but errors
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

pub fn cluster(a: &ClusterArgs) -> Result<Exit, Fault> {
    match &a.command {
        Some(ClusterCommand::Fault(f)) => fault(f),
        Some(ClusterCommand::Stop(n)) => stop(n),
        None => run(&a.made),
    }
}

fn run(a: &MadeArgs) -> Result<Exit, Fault> {
    let made = EmbeddedCluster {
        nodes: a.nodes,
        drives: a.drives,
        ec: a.ec,
        link: a.link,
        drive_limit: a.drive_limit,
        drive_read_limit: a.drive_read_limit,
        drive_size: a.drive_size,
        cpu: a.cpu,
        tls: a.tls,
    };
    let spec = ClusterSpec { name: a.name.name.clone(), made };
    spec.check()?;
    let (keys, are_new) = keys()?;
    signals::install(signals::ProcessRole::Server);
    sweep(&mut |left| output::tell(format_args!("plimsoll: {left}")));
    let signing = (keys.access_key.clone(), keys.secret_key.clone());
    let mut cluster = match RunningCluster::start(&spec, keys, &signals::was_asked_to_stop) {
        Err(SetupError::Interrupted) => return Ok(Exit::Interrupted),
        started => started?,
    };
    let servers = cluster.ready(false);
    let ca_file = servers.ca_file.map(|f| f.display().to_string());
    let tls = TlsSpec { ca_file, ..TlsSpec::default() };
    if let Err(e) = await_uploads(&servers.endpoint, signing, &tls, &signals::was_asked_to_stop) {
        cluster.take_down()?;
        return match e {
            SetupError::Interrupted => Ok(Exit::Interrupted),
            e => Err(e.into()),
        };
    }
    // Before it is told that it is ready: whoever reads that may want the file.
    let described = cluster.describe()?;
    output::print(&format!("{}\n", cluster.ready(are_new).line()))?;
    if !a.quiet {
        introduce(&spec, &cluster, &described);
    }
    while !signals::was_asked_to_stop() {
        cluster.tend(&mut |what| output::tell(format_args!("plimsoll: {what}")));
        std::thread::sleep(Duration::from_millis(50));
    }
    cluster.take_down()?;
    Ok(Exit::Valid)
}

/// What was made, and what to try with it.
fn introduce(spec: &ClusterSpec, cluster: &RunningCluster, described: &Path) {
    let parity = spec.made.parity();
    output::tell(format_args!(
        "plimsoll: MinIO, {} ({} + {parity}); Ctrl-C takes all of it down",
        spec.made.words(),
        spec.made.drive_count() - parity
    ));
    for line in cluster.nodes_in_words() {
        output::tell(format_args!("plimsoll: {line}"));
    }
    let ready = cluster.ready(false);
    let trust = ready.ca_file.map(|f| format!(" --ca-file {}", f.display())).unwrap_or_default();
    let observe = cluster.observed().map(|o| format!("--observe '{o}'")).join(" ");
    let observe = format!("{observe} --cluster {}", described.display());
    // Of 16 large objects in flight over narrow links each takes longer than a request may by default.
    let timeout =
        if spec.made.link.is_some() || spec.made.drive_limit.is_some() { " --timeout 2m" } else { "" };
    let named = if spec.name == "box" { String::new() } else { format!(" --name {}", spec.name) };
    output::tell(format_args!(
        "plimsoll: logs of its servers are in {}\n\
         plimsoll: to try, with its keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY:\n  \
         plimsoll object put --endpoint '{}'{trust} --bucket bench --create-bucket --size 64MiB --concurrency 16{timeout} {observe}\n  \
         plimsoll target cluster fault{named} link:1=20mbit\n  \
         plimsoll target cluster stop{named}",
        ready.path.unwrap_or_default().display(),
        ready.endpoint,
    ));
}

/// From the variables that clients use, or new ones; true: new, and to be told.
fn keys() -> Result<(Keys, bool), Fault> {
    if let Some(set) = pair("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")? {
        if set.access_key.len() < 3 || set.secret_key.len() < 8 {
            return Err(Fault::input(
                "MinIO wants an access key of 3 characters or more, and a secret of 8 or more",
                "Set longer ones in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither.",
            ));
        }
        plimsoll_model::text::keep_secret(&set.secret_key);
        return Ok((Keys { access_key: set.access_key, secret_key: set.secret_key }, false));
    }
    let made = Credentials::generate().map_err(|e| {
        Fault::input(format!("/dev/urandom: {e}"), "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    })?;
    Ok((Keys { access_key: made.access_key, secret_key: made.secret_key }, true))
}

fn fault(a: &FaultArgs) -> Result<Exit, Fault> {
    // All of them are understood before one is done.
    for text in &a.faults {
        text.parse::<BoxFault>()
            .map_err(|e| Fault::input(e, "See `plimsoll target cluster fault --help`."))?;
    }
    let home = BoxHome::of(&a.name.name)?;
    for text in &a.faults {
        output::tell(format_args!("plimsoll: {}", ask(&home, text)?));
    }
    Ok(Exit::Valid)
}

fn stop(a: &ClusterNameArgs) -> Result<Exit, Fault> {
    let home = BoxHome::of(&a.name)?;
    let said = if home.stop()? { "the cluster is taken down" } else { "there is no cluster of this name" };
    output::tell(format_args!("plimsoll: {said} ({})", home.dir().display()));
    Ok(Exit::Valid)
}
