//! What is measured: S3, a block device, files, nothing, or a simulation. Secrets are never in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{PlanError, invalid};
use super::cluster::EmbeddedCluster;
use super::one;
use crate::units::{BytesRate, Size, Span};

/// Something that is measured; `kind` says what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TargetSpec {
    /// A bucket of an S3 server, or of several that serve the same.
    S3(S3Target),
    /// A block device, or one file used like one.
    Block(BlockTarget),
    /// A directory in which files are created.
    Files(FilesTarget),
    /// Nothing: measures the loop.
    Null,
    /// A simulated target on a virtual clock.
    Sim(SimTarget),
}

impl TargetSpec {
    /// Whether ops go to devices or files.
    pub fn is_on_files(&self) -> bool {
        matches!(self, Self::Block(_) | Self::Files(_))
    }
}

/// A bucket, how it is reached, and how requests look. Keys are never in a plan: they come from the environment or from a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct S3Target {
    /// URLs; `{1...4}` expands; `embedded` starts the embedded server for the run.
    pub endpoints: Vec<String>,
    /// Servers that a redirect may lead to, as URLs, beside the endpoints. Keys and signatures go nowhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects_to: Vec<String>,
    /// Everything of the run lives in it, under a prefix of its own.
    pub bucket: String,
    /// What requests are signed for. Absent: AWS_REGION, that of the profile, or us-east-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Profile of the AWS configuration files. As in the AWS tools, its keys come before those of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Where the bucket's name stands. Default: `path`.
    #[serde(default)]
    pub addressing: Addressing,
    /// What of a body is signed. Default: `unsigned`.
    #[serde(default)]
    pub signing: PayloadSigning,
    /// For endpoints with https.
    #[serde(default)]
    pub tls: TlsSpec,
    /// Make the bucket, and remove it when it is empty again.
    #[serde(default)]
    pub create_bucket: bool,
    /// Everything of this run lives under this prefix; absent: `plimsoll/RUN-ID/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// An op that takes longer is a time-out, and its connection is given up. Default: 30 s.
    #[serde(default = "default_timeout")]
    pub timeout: Span,
    /// Pause between attempts of one slot after 429 or 503 SlowDown. Default: `record`; the commands `speedtest` and `watch` ask for
    /// `backoff`, and `limits` for `pause`.
    #[serde(default)]
    pub on_throttle: OnThrottle,
    /// Use a connection again. Otherwise each request has a new one. Default: true.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Send `Expect: 100-continue` with bodies.
    #[serde(default)]
    pub expect_continue: bool,
    /// Headers added to each upload: storage class, server-side encryption, metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub put_headers: BTreeMap<String, String>,
    /// File with the key of SSE-C: base64 of 32 bytes. The key itself is never in a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sse_c_key_file: Option<String>,
    /// Sent with uploads and checked on downloads. Default: `none`.
    #[serde(default)]
    pub checksum: Checksum,
    /// Limiter and latency of the embedded server, when an endpoint is `embedded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<Box<EmbeddedSpec>>,
}

fn default_timeout() -> Span {
    Span(std::time::Duration::from_secs(30))
}

fn yes() -> bool {
    true
}

/// The server that Plimsoll brings, with limits that are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedSpec {
    /// Name of a tier that Plimsoll brings, such as `vultr-standard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// A limits file of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Multiplies rates and capacities of the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Directory of the data; absent: a temporary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Answer before data is synced. Default: false.
    #[serde(default)]
    pub no_sync: bool,
    /// Speak TLS, with a certificate that is made for the run and trusted in it alone. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// In place of Plimsoll's own server: a cluster of another's on this machine, for this run alone (needs root).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Box<EmbeddedCluster>>,
}

impl EmbeddedSpec {
    /// A cluster has no limits of the embedded server's.
    pub(super) fn check(&self, place: &str) -> Result<(), PlanError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        if *self != (Self { cluster: self.cluster.clone(), ..Self::default() }) {
            return Err(invalid(
                format!("{place}.embedded"),
                "tier, limits, scale, data, no_sync and tls are of the embedded server, and not of a cluster",
                "Leave them out, or leave out cluster.",
            ));
        }
        cluster
            .check()
            .map_err(|p| invalid(format!("{place}.embedded.cluster.{}", p.field), p.problem, p.remedy))
    }
}

/// Where the bucket's name stands in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// `http://host/bucket/key`
    #[default]
    Path,
    /// `http://bucket.host/key`
    VirtualHost,
}

/// What of an upload's body the signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadSigning {
    /// `UNSIGNED-PAYLOAD`.
    #[default]
    Unsigned,
    /// Bodies are slices of a pool whose hashes were computed before the run; blocks carry no stamp.
    Pool,
    /// Each body is hashed as it is sent.
    Full,
}

/// What a slot does after a 429 or 503 SlowDown. Either way it counts as throttled, and is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnThrottle {
    /// Record and go on at once.
    #[default]
    Record,
    /// Wait as Retry-After says (else with exponential backoff) before the slot's next attempt.
    Backoff,
    /// Wait a few milliseconds, whatever Retry-After says: a limiter stays saturated without a loop of refusals.
    Pause,
}

/// The `x-amz-checksum-*` of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// No checksum.
    #[default]
    None,
    /// Castagnoli's, 4 bytes.
    Crc32c,
    /// 8 bytes.
    Crc64nvme,
}

/// How https is spoken. Default: the system's roots, no certificate of the client's, TLS 1.2 or 1.3.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// PEM file of roots to trust in place of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// PEM file of the client's certificate; with `client_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert: Option<String>,
    /// PEM file of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
    /// Accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// `1.2` or `1.3`: the only version to speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A block device, or one file used like one. A device is only written to where `destroy_data` names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockTarget {
    /// The device or file. A file that is not there is made, with `size`.
    pub path: String,
    /// More devices or files, used in turn with the first; size and offset are those of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Size of a file to lay out; absent: the device's or file's own size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// First byte of the region used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Size>,
    /// Use the page cache. Default is direct I/O.
    #[serde(default)]
    pub buffered: bool,
    /// The device whose data may be destroyed: path, /dev/disk/by-id name or serial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroy_data: Option<String>,
    /// Write the whole region before reading it.
    #[serde(default = "yes")]
    pub layout: bool,
    /// Drop the page cache of the region before each stage.
    #[serde(default = "yes")]
    pub invalidate: bool,
    /// Only reads, of what is there and in use by others: nothing is made, laid out or locked, and no cache dropped. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
    /// The volume that Plimsoll brings, when the path is `embedded`: with limits that are known, for this run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<Box<EmbeddedVolume>>,
}

/// The volume that Plimsoll brings: a file behind the limits of a tier, by QEMU's storage daemon, which has to be installed. It is as large
/// as the target's `size`, filled with data that does not compress, and gone with the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedVolume {
    /// Name of a block tier that Plimsoll brings, such as `vultr-hdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// A limits file of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Multiplies rates and bursts of the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Multiplies how long its bursts last, and how long they take to fill up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_scale: Option<f64>,
}

/// The path that stands for an embedded volume in a plan.
pub const EMBEDDED_VOLUME: &str = "embedded";

impl BlockTarget {
    /// What its volume is to be, where it is one that the run brings.
    pub fn embedded_volume(&self) -> Option<&EmbeddedVolume> {
        self.embedded.as_deref()
    }

    /// How large an embedded volume is where its target does not say so.
    pub const EMBEDDED_SIZE: Size = Size(1 << 30);
}

/// A directory with files of one size, for each job its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesTarget {
    /// Where they are made.
    pub directory: String,
    /// Files are named STEM.JOB.FILE; absent: the target's name. Targets with one stem share their files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stem: Option<String>,
    /// Number of files per worker.
    #[serde(default = "one")]
    pub files: u32,
    /// Of each file.
    pub file_size: Size,
    /// Use the page cache. Default is direct I/O.
    #[serde(default)]
    pub buffered: bool,
    /// Write the files in full before they are read. Default: true.
    #[serde(default = "yes")]
    pub layout: bool,
    /// Drop the page cache of the files before each stage. Default: true.
    #[serde(default = "yes")]
    pub invalidate: bool,
    /// Of a `directory` that is `embedded`: a disk with known limits that is made and mounted for the run (needs root).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<Box<EmbeddedDisk>>,
}

/// The word that stands for an embedded server or disk.
const EMBEDDED: &str = "embedded";

impl FilesTarget {
    /// Files on an embedded disk say so, and no others do.
    pub(super) fn check_embedded(&self, place: &str) -> Result<(), PlanError> {
        let stands = self.directory == EMBEDDED || self.directory.starts_with("embedded/");
        match (&self.embedded, stands) {
            (None, false) => Ok(()),
            (Some(disk), true) => disk.check(place),
            (None, true) => Err(invalid(
                format!("{place}.directory"),
                "an embedded disk has limits that are not given",
                "Write embedded = { tier = \"azure-premium-256\" }; a directory of this name is ./embedded.",
            )),
            (Some(_), false) => Err(invalid(
                format!("{place}.directory"),
                "files on an embedded disk are in no directory that is there",
                "Write directory = \"embedded\", or leave embedded out.",
            )),
        }
    }
}

/// A disk that Plimsoll brings, with limits that are known: `plimsoll target disk`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddedDisk {
    /// Name of a tier that Plimsoll brings, such as `gce-standard-20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// A limits file of the user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Multiplies rates of the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Of the disk. Default: 1 GiB.
    pub size: Size,
    /// What is left of the tier's credit, as time at its burst rates. Absent: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Span>,
    /// A page cache stands in front of the limits, outside of the client's memory: host caching.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Directory of its file; absent: a temporary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

impl Default for EmbeddedDisk {
    fn default() -> Self {
        let size = Size(1 << 30);
        Self { tier: None, limits: None, scale: None, size, credit: None, cached: false, data: None }
    }
}

impl EmbeddedDisk {
    fn check(&self, place: &str) -> Result<(), PlanError> {
        if self.tier.is_some() == self.limits.is_some() {
            return Err(invalid(
                format!("{place}.embedded"),
                "it needs a tier or a limits file, and not both",
                "Write tier = \"azure-premium-256\"; `plimsoll target disk --help` names the tiers.",
            ));
        }
        Ok(())
    }

    /// In words: `tier gce-standard-20, scale 2, 30 s of credit, cached by its host`.
    pub fn words(&self) -> String {
        let name = match (&self.tier, &self.limits) {
            (Some(tier), _) => format!("tier {tier}"),
            (None, Some(file)) => format!("limits of {file}"),
            (None, None) => "no limits".to_owned(),
        };
        let scale = self.scale.map(|s| format!("scale {s}"));
        let credit = self.credit.map(|c| format!("{c} of credit"));
        let cached = self.cached.then(|| "cached by its host".to_owned());
        [Some(name), scale, credit, cached].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A service-time law on a virtual clock. The truth that tests compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimTarget {
    /// Time of an op with no bytes.
    pub base: Span,
    /// Bytes per second of one op's transfer; absent: bytes cost nothing.
    pub stream: Option<BytesRate>,
    /// Log-normal spread of service times (sigma of the log); 0: none.
    pub spread: f64,
    /// Ops served at once; absent: unlimited.
    pub servers: Option<u32>,
    /// Token bucket of operations.
    pub ops: Option<SimBucket>,
    /// Token bucket of bytes.
    pub bytes: Option<SimBucket>,
    /// Answer 429 instead of queueing when a bucket is empty.
    pub reject: bool,
    /// Share of ops that fail with a 500.
    pub error_rate: f64,
    /// Every `stall_every`, all service stops for `stall_for`.
    pub stall_every: Option<Span>,
    /// Length of each stall; with `stall_every`.
    pub stall_for: Option<Span>,
}

impl Default for SimTarget {
    fn default() -> Self {
        Self {
            base: Span(std::time::Duration::from_millis(1)),
            stream: None,
            spread: 0.0,
            servers: None,
            ops: None,
            bytes: None,
            reject: false,
            error_rate: 0.0,
            stall_every: None,
            stall_for: None,
        }
    }
}

/// Tokens (ops or bytes): refilled at `sustained` per second up to `capacity`, drained at most at `burst`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimBucket {
    /// Tokens that come in, per second.
    pub sustained_per_s: f64,
    /// Most tokens that leave it, per second. Absent: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_per_s: Option<f64>,
    /// Tokens when it is full.
    pub capacity: f64,
    /// Share of the capacity at the start, 0 to 1.
    #[serde(default = "full")]
    pub initial_fill: f64,
}

fn full() -> f64 {
    1.0
}
