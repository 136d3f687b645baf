//! A block device or file, and the I/O done on it, in the words of fio's users.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    BlockOptions, BlockTarget, DataSpec, EMBEDDED_VOLUME, EmbeddedVolume, KeyDist, SizeDist, Stage, Stop,
    TargetSpec, Workload,
};
use plimsoll_model::units::{Size, Span};

use super::load::{self, split_remedy};
use crate::fault::Fault;
use crate::values::{self, Arrivals, OfferedRate};

const DEVICE: &str = "Device";
const LOAD: &str = "Load";
const STOP: &str = "Time and stop";
const DATA: &str = "Offsets and data";
const EMBEDDED: &str = "Embedded volume (with `embedded` in place of a file)";

/// fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum BlockPattern {
    Read,
    Write,
    RandRead,
    RandWrite,
    Rw,
    RandRw,
}

impl BlockPattern {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::Rw => "rw",
            Self::RandRw => "randrw",
        }
    }

    fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    fn mix(self, read_percent: u32) -> BTreeMap<OpKind, u32> {
        match self {
            Self::Read | Self::RandRead => BTreeMap::from([(OpKind::Read, 1)]),
            Self::Write | Self::RandWrite => BTreeMap::from([(OpKind::Write, 1)]),
            Self::Rw | Self::RandRw => {
                BTreeMap::from([(OpKind::Read, read_percent), (OpKind::Write, 100 - read_percent)])
            }
        }
    }
}

/// Of one pattern that is told none.
const DEFAULT_BS: &str = "4KiB";

#[derive(Debug, Clone, Args)]
pub struct BlockArgs {
    /// Block device or file; a file that does not exist is created, with --size. `embedded` with --tier or --limits
    /// starts plimsoll's own volume for the run
    // Absent beside a subcommand only, which has its own.
    #[arg(value_name = "DEVICE|FILE", required = true)]
    pub path: Option<String>,
    /// Size of the file to create, or of the region to use [default: all of it]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Offset of the region to use
    #[arg(long, value_name = "SIZE", help_heading = DEVICE)]
    pub offset: Option<Size>,
    /// Device whose data may be destroyed: its path, /dev/disk/by-id name, or serial number
    #[arg(long, value_name = "DEVICE", help_heading = DEVICE)]
    pub destroy_data: Option<String>,
    /// Use buffered I/O (the page cache) [default: direct I/O]
    #[arg(long, help_heading = DEVICE)]
    pub buffered: bool,
    /// Do not fill the region before reading it
    #[arg(long, help_heading = DEVICE)]
    pub no_layout: bool,
    /// Do not drop the region from the page cache first
    #[arg(long, help_heading = DEVICE)]
    pub no_invalidate: bool,

    /// Access pattern; speedtest takes several, one after the other [default: randread]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub pattern: Vec<BlockPattern>,
    /// Block size: one (4KiB), several in turn (4KiB,64KiB,1MiB), a range (4KiB..64KiB), or a split by weight
    /// (4KiB=60,64KiB=40) [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    pub bs: Option<String>,
    /// Ops in flight per job
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub iodepth: u32,
    /// Number of jobs; each is a thread with its own sequence of offsets
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..), help_heading = LOAD)]
    pub jobs: u32,
    /// Percentage of reads in rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(0..=100), help_heading = LOAD)]
    pub rwmixread: u32,
    /// Send ops at this rate, over all jobs (open loop): 500/s or 100MB/s
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = LOAD)]
    pub rate: Option<OfferedRate>,
    /// Arrival process of an open loop
    #[arg(long, value_enum, default_value = "constant", help_heading = LOAD)]
    pub arrivals: Arrivals,
    /// Duration of a ramp from one rate to the other
    #[arg(long, value_name = "TIME", help_heading = LOAD)]
    pub ramp_over: Option<Span>,
    /// fsync after every N writes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = LOAD)]
    pub fsync: u32,
    /// fdatasync after every N writes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = LOAD)]
    pub fdatasync: u32,
    /// fsync at the end, inside the measured time
    #[arg(long, help_heading = LOAD)]
    pub end_fsync: bool,

    /// Duration of the measurement [default: 30s, unless --max-ops, --max-bytes or --loops is given]
    #[arg(long, visible_alias = "duration", value_name = "TIME")]
    pub runtime: Option<Span>,
    /// Stop after this many ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = STOP)]
    pub max_ops: Option<u64>,
    /// Stop after this many bytes
    #[arg(long, value_name = "SIZE", help_heading = STOP)]
    pub max_bytes: Option<Size>,
    /// Stop after this many passes over the region
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = STOP)]
    pub loops: Option<u32>,
    /// Duration of the warm-up, which is not part of any figure
    #[arg(long, visible_alias = "ramp-time", value_name = "TIME", default_value = "2s", help_heading = STOP)]
    pub warmup: Span,

    /// Distribution of random offsets: uniform, zipf:THETA or pareto:INDEX
    #[arg(long, value_name = "HOW", default_value = "uniform", value_parser = values::key_dist, help_heading = DATA)]
    pub offsets: KeyDist,
    /// Let random offsets repeat before all of them have been used
    #[arg(long, help_heading = DATA)]
    pub norandommap: bool,
    /// Stamp each block that is written, and verify each block that is read
    #[arg(long, help_heading = DATA)]
    pub verify: bool,
    /// Share of the written data that is compressible, for example 50%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share, help_heading = DATA)]
    pub compressible: f64,
    /// Share of the written blocks that are duplicates, for example 20%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share, help_heading = DATA)]
    pub dedupable: f64,

    /// A tier with known limits: vultr-hdd or vultr-nvme
    #[arg(long, value_name = "TIER", help_heading = EMBEDDED)]
    pub tier: Option<String>,
    /// A limits file (kind = "block") instead of a tier
    #[arg(long, value_name = "FILE", conflicts_with = "tier", help_heading = EMBEDDED)]
    pub limits: Option<String>,
    /// Multiply the tier's rates by this factor, for example 0.1 on a small machine
    #[arg(long, value_name = "FACTOR", help_heading = EMBEDDED)]
    pub scale: Option<f64>,
    /// Multiply how long its bursts last, and how long they take to fill up again
    #[arg(long, value_name = "FACTOR", help_heading = EMBEDDED)]
    pub burst_scale: Option<f64>,
}

impl BlockArgs {
    fn pattern(&self) -> BlockPattern {
        self.pattern.first().copied().unwrap_or(BlockPattern::RandRead)
    }

    /// Those that are named, or the one that is done without.
    pub fn patterns(&self) -> Vec<BlockPattern> {
        if self.pattern.is_empty() { vec![self.pattern()] } else { self.pattern.clone() }
    }

    pub fn target(&self) -> Result<TargetSpec, Fault> {
        let path = self.path.clone().expect("clap requires DEVICE|FILE");
        let embedded = self.embedded(&path)?;
        Ok(TargetSpec::Block(BlockTarget {
            path,
            also: Vec::new(),
            size: self.size,
            offset: self.offset,
            buffered: self.buffered,
            destroy_data: self.destroy_data.clone(),
            layout: !self.no_layout,
            invalidate: !self.no_invalidate,
            existing: false,
            embedded,
        }))
    }

    /// Where nothing says what it is to be, `embedded` is the name of a file.
    fn embedded(&self, path: &str) -> Result<Option<Box<EmbeddedVolume>>, Fault> {
        let disk = EmbeddedVolume {
            tier: self.tier.clone(),
            limits: self.limits.clone(),
            scale: self.scale,
            burst_scale: self.burst_scale,
        };
        if disk == EmbeddedVolume::default() {
            return Ok(None);
        }
        if path != EMBEDDED_VOLUME {
            return Err(Fault::input(
                format!(
                    "--tier, --limits, --scale and --burst-scale make an embedded volume, and {path} is another"
                ),
                "Write `embedded` in its place, or leave them out.",
            ));
        }
        Ok(Some(Box::new(disk)))
    }

    /// One stage for each block size of a list; a range or split is one stage.
    pub fn stages(&self) -> Result<Vec<Stage>, Fault> {
        if self.pattern.len() > 1 {
            return Err(Fault::input(
                "--pattern names several patterns",
                "Name one. `plimsoll block sweep --patterns` measures several, and so does `plimsoll speedtest block`.",
            ));
        }
        let sizes = self.sizes()?;
        let many = sizes.len() > 1;
        sizes.into_iter().enumerate().map(|(i, size)| self.stage(size, many.then_some(i as u32))).collect()
    }

    fn sizes(&self) -> Result<Vec<SizeDist>, Fault> {
        let bs = self.bs.as_deref().unwrap_or(DEFAULT_BS);
        let bad = |e: String| Fault::input(format!("--bs {bs}: {e}"), "See `plimsoll block --help`.");
        if bs.contains('=') || bs.contains("..") {
            return Ok(vec![values::size_dist(bs).map_err(bad)?]);
        }
        bs.split(',')
            .map(|s| s.parse::<Size>().map(SizeDist::Fixed).map_err(|e| bad(e.to_string())))
            .collect()
    }

    fn stage(&self, size: SizeDist, cell: Option<u32>) -> Result<Stage, Fault> {
        if self.pattern().is_random() && self.offsets == KeyDist::Sequential {
            return Err(Fault::input(
                format!("--offsets sequential contradicts --pattern {}", self.pattern().name()),
                "Use --pattern read, write or rw for sequential I/O.",
            ));
        }
        if !self.pattern().is_random() && !matches!(self.offsets, KeyDist::Uniform | KeyDist::Sequential) {
            return Err(Fault::input(
                format!("--offsets goes with random patterns, and {} is sequential", self.pattern().name()),
                "Use --pattern randread, randwrite or randrw.",
            ));
        }
        let block = BlockOptions {
            fsync: self.fsync,
            fdatasync: self.fdatasync,
            end_fsync: self.end_fsync,
            norandommap: self.norandommap,
            ..BlockOptions::default()
        };
        let label = match &size {
            SizeDist::Fixed(s) => format!("{} {s}", self.pattern().name()),
            _ => format!("{} {}", self.pattern().name(), self.bs.as_deref().unwrap_or(DEFAULT_BS)),
        };
        Ok(Stage {
            name: Some(label.clone()),
            warmup: self.warmup,
            workloads: vec![Workload {
                name: label,
                target: None,
                mix: self.pattern().mix(self.rwmixread),
                size,
                keys: if self.pattern().is_random() { self.offsets } else { KeyDist::Sequential },
                concurrency: self.iodepth,
                jobs: Some(self.jobs),
                pacing: values::pacing(self.rate, self.arrivals, self.ramp_over).map_err(split_remedy)?,
                stop: self.stop(),
                verify: self.verify,
                data: DataSpec { compressible: self.compressible, dedupable: self.dedupable },
                object: None,
                block: (block != BlockOptions::default()).then_some(block),
                machines: None,
            }],
            cell: cell.map(|index| plimsoll_model::plan::Cell { index, repeat: 0 }),
        })
    }

    /// What was asked for, without a default: a search has an end of its own.
    pub fn asked(&self) -> Stop {
        Stop { duration: self.runtime, ops: self.max_ops, bytes: self.max_bytes, loops: self.loops }
    }

    fn stop(&self) -> Stop {
        let stop = match self.loops {
            Some(_) => Stop { duration: self.runtime, ops: self.max_ops, bytes: self.max_bytes, loops: None },
            None => load::stop(self.runtime, self.max_ops, self.max_bytes),
        };
        Stop { loops: self.loops, ..stop }
    }
}
