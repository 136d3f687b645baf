//! `plimsoll object ...`: one op, a mix, or a sweep on an S3 bucket.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    ControllerSpec, ExistingObjects, ObjectOptions, Plan, SizeDist, Stage, TargetSpec, Workload,
};
use plimsoll_model::units::Size;

use crate::args::{ArgsContext, LoadArgs, PreparedArgs, RunArgs, StorageArgs};
use crate::fault::Fault;
use crate::values::{self, CellSize, Mix};

const HEADING: &str = "Operation";

#[derive(Debug, Clone, Subcommand)]
pub enum ObjectCommand {
    /// Upload objects
    #[command(after_help = PUT_EXAMPLES)]
    Put(PutArgs),
    /// Download objects, or ranges of them
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArgs),
    /// Get object metadata (HEAD)
    #[command(after_help = STAT_EXAMPLES)]
    Stat(ReadArgs),
    /// List objects (ListObjectsV2)
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Delete objects, one by one or in batches
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
    /// Copy objects within the bucket
    #[command(after_help = COPY_EXAMPLES)]
    Copy(ReadArgs),
    /// Upload objects in parts (multipart upload)
    #[command(after_help = MULTIPART_EXAMPLES)]
    Multipart(MultipartArgs),
    /// Mix several ops, by weight
    #[command(after_help = MIXED_EXAMPLES)]
    Mixed(MixedArgs),
    /// Measure every op at every size, in random order
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
}

const PUT_EXAMPLES: &str = "\
Examples:
  plimsoll object put --endpoint http://127.0.0.1:9000 --bucket bench \\
      --size 4KiB --concurrency 16 --duration 30s
  plimsoll object put --endpoint 'http://node{1...4}:9000' --bucket bench \\
      --size 1MiB --rate 800/s
  plimsoll object put --endpoint embedded --tier vultr-standard --size 1MB \\
      --expect 'put.ops_per_s >= 590 +-1%'

Credentials come from where the AWS tools look: the environment, a web identity, the profile (keys, roles, SSO), \
the container or the instance; never from the command line. Temporary ones are renewed during the run. Sizes: 1 KB is 1000 bytes, 1 KiB is 1024.";

const GET_EXAMPLES: &str = "\
Examples:
  plimsoll object get --endpoint http://127.0.0.1:9000 --bucket bench \\
      --size 1MiB --objects 500
  plimsoll object get --endpoint http://127.0.0.1:9000 --bucket bench \\
      --size 8MiB --range 64KiB
  plimsoll object get --endpoint https://s3.example.net --bucket bench \\
      --size 4KiB --dataset small --verify
  plimsoll object get --endpoint https://s3.example.net --bucket photos \\
      --existing --prefix 2026/ --size 1MiB --rate 20/s";

const STAT_EXAMPLES: &str = "\
Examples:
  plimsoll object stat --endpoint http://127.0.0.1:9000 --bucket bench \\
      --objects 5000
  plimsoll object stat --endpoint embedded --keys zipf:1.1 --rate 500/s";

const LIST_EXAMPLES: &str = "\
Examples:
  plimsoll object list --endpoint http://127.0.0.1:9000 --bucket bench \\
      --objects 5000 --max-keys 1000
  plimsoll object list --endpoint embedded --prefixes 16 --delimiter /";

const DELETE_EXAMPLES: &str = "\
Examples:
  plimsoll object delete --endpoint http://127.0.0.1:9000 --bucket bench \\
      --objects 20000 --max-ops 20000
  plimsoll object delete --endpoint embedded --objects 20000 --batch 100

Only objects that plimsoll created for this run are deleted.";

const COPY_EXAMPLES: &str = "\
Examples:
  plimsoll object copy --endpoint http://127.0.0.1:9000 --bucket bench \\
      --size 1MiB --objects 200";

const MULTIPART_EXAMPLES: &str = "\
Examples:
  plimsoll object multipart --endpoint http://127.0.0.1:9000 --bucket bench \\
      --size 64MiB --part-size 8MiB --part-concurrency 4";

const MIXED_EXAMPLES: &str = "\
Examples:
  plimsoll object mixed --endpoint http://127.0.0.1:9000 --bucket bench \\
      --mix get=45,stat=30,put=15,delete=10
  plimsoll object mixed --endpoint http://127.0.0.1:9000 --bucket bench \\
      --mix get=90,list=10 --rate 500/s --arrivals poisson";

const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll object sweep --endpoint http://127.0.0.1:9000 --bucket bench \\
      --ops put,get --sizes 4KB,64KB,512KB,1MB,10MB
  plimsoll object sweep --endpoint embedded --ops get --sizes 4KiB,1MiB \\
      --concurrencies 1,16,64 --repeat 5
  plimsoll object sweep --endpoint embedded --ops get --sizes auto \\
      --repeat 3 --duration 10s
  plimsoll run --resume RUN        # continue a sweep that was killed";

/// What every object command takes.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    #[command(flatten)]
    pub storage: StorageArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Clone, Args)]
pub struct SizeArg {
    /// Object size: fixed (4KiB), a range (1KiB..64KiB), weighted (4KiB=3,1MiB=1), or lognormal:64KiB:1.2:16MiB
    #[arg(long, short = 's', value_name = "SIZE", default_value = "4KiB",
          value_parser = values::size_dist)]
    pub size: SizeDist,
}

#[derive(Debug, Clone, Args)]
pub struct PutArgs {
    #[command(flatten)]
    pub size: SizeArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ReadArgs {
    #[command(flatten)]
    pub size: SizeArg,
    #[command(flatten)]
    pub prepared: PreparedArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// Read this much of each object, at a random offset
    #[arg(long, value_name = "SIZE", help_heading = HEADING)]
    pub range: Option<Size>,
    /// Verify the stamp of every block
    #[arg(long, help_heading = HEADING)]
    pub verify: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ListingArgs {
    /// Keys to request per page
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = HEADING)]
    pub max_keys: u32,
    /// Group keys up to this delimiter
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    pub delimiter: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub listing: ListingArgs,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    /// Objects per request; more than 1 uses multi-object delete
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = HEADING)]
    pub batch: u32,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Debug, Clone, Args)]
pub struct PartArgs {
    /// Size of a part
    #[arg(long, value_name = "SIZE", default_value = "8MiB", help_heading = HEADING)]
    pub part_size: Size,
    /// Parts in flight per upload
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    pub part_concurrency: u32,
}

#[derive(Debug, Clone, Args)]
pub struct MultipartArgs {
    #[command(flatten)]
    pub parts: PartArgs,
    #[command(flatten)]
    pub size: SizeArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of every op, for commands that do several.
#[derive(Debug, Clone, Args)]
pub struct EveryOpArgs {
    /// For get-range: read this much of each object, at a random offset
    #[arg(long, value_name = "SIZE", help_heading = HEADING)]
    pub range: Option<Size>,
    /// Verify the stamp of every block that is read
    #[arg(long, help_heading = HEADING)]
    pub verify: bool,
    /// For delete-batch: objects per request
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = HEADING)]
    pub batch: u32,
    #[command(flatten)]
    pub listing: ListingArgs,
    #[command(flatten)]
    pub parts: PartArgs,
    #[command(flatten)]
    pub prepared: PreparedArgs,
}

#[derive(Debug, Clone, Args)]
pub struct MixedArgs {
    /// Ops by weight, for example get=45,stat=30,put=15,delete=10
    #[arg(long, value_name = "OP=WEIGHT,...", default_value = "get=45,stat=30,put=15,delete=10")]
    pub mix: Mix,
    #[command(flatten)]
    pub size: SizeArg,
    #[command(flatten)]
    pub every: EveryOpArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub struct SweepArgs {
    /// Ops to measure
    #[arg(long, value_name = "OP,...", default_value = "put,get", value_delimiter = ',',
          value_parser = values::op_kind)]
    pub ops: Vec<OpKind>,
    /// Sizes to measure; auto runs a short pilot to find the caps on operations and bytes, then measures around the
    /// size at which they meet (the knee)
    #[arg(long, value_name = "SIZE,...", default_value = "4KB,64KB,512KB,1MB,10MB", value_delimiter = ',',
          value_parser = values::cell_size)]
    pub sizes: Vec<CellSize>,
    /// Concurrencies to measure [default: --concurrency; with --sizes auto, those that saturate]
    #[arg(long, value_name = "N,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    pub concurrencies: Vec<u32>,
    /// Number of times to measure each cell (an op at a size and concurrency)
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    #[command(flatten)]
    pub every: EveryOpArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

impl ObjectCommand {
    pub fn run_args(&self) -> &RunArgs {
        match self {
            Self::Put(a) => &a.common.run,
            Self::Get(a) => &a.read.common.run,
            Self::Stat(a) | Self::Copy(a) => &a.common.run,
            Self::List(a) => &a.read.common.run,
            Self::Delete(a) => &a.read.common.run,
            Self::Multipart(a) => &a.common.run,
            Self::Mixed(a) => &a.common.run,
            Self::Sweep(a) => &a.common.run,
        }
    }

    pub fn plan(&self, context: &ArgsContext) -> Result<Plan, Fault> {
        let plan = match self {
            Self::Put(a) => fixed(context, &a.common, Work::of(OpKind::Put, &a.size.size))?,
            Self::Get(a) => {
                let kind = if a.range.is_some() { OpKind::GetRange } else { OpKind::Get };
                let mut work = a.read.work(kind);
                work.options.range = a.range;
                work.verify = a.verify;
                fixed(context, &a.read.common, work)?
            }
            Self::Stat(a) => fixed(context, &a.common, a.work(OpKind::Stat))?,
            Self::Copy(a) => fixed(context, &a.common, a.work(OpKind::Copy))?,
            Self::List(a) => {
                let mut work = a.read.work(OpKind::List);
                a.listing.apply(&mut work.options);
                fixed(context, &a.read.common, work)?
            }
            Self::Delete(a) => {
                let kind = if a.batch > 1 { OpKind::DeleteBatch } else { OpKind::Delete };
                let mut work = a.read.work(kind);
                work.options.delete_batch = a.batch;
                fixed(context, &a.read.common, work)?
            }
            Self::Multipart(a) => {
                let mut work = Work::of(OpKind::Multipart, &a.size.size);
                a.parts.apply(&mut work.options);
                fixed(context, &a.common, work)?
            }
            Self::Mixed(a) => {
                let mut work = Work::of(OpKind::Get, &a.size.size);
                work.name = "mixed".into();
                work.mix = a.mix.0.clone();
                a.every.apply(&mut work);
                fixed(context, &a.common, work)?
            }
            Self::Sweep(a) => a.plan(context)?,
        };
        plan.validate()?;
        Ok(plan)
    }
}

impl SweepArgs {
    fn plan(&self, context: &ArgsContext) -> Result<Plan, Fault> {
        let first = *self
            .ops
            .first()
            .ok_or_else(|| Fault::input("--ops is empty", "Name an op, for example put."))?;
        if self.sizes.is_empty() {
            return Err(Fault::input("--sizes is empty", "Name a size, for example 4KB."));
        }
        let sizes: Vec<Size> = self.sizes.iter().filter_map(|s| s.0).collect();
        if !sizes.is_empty() && sizes.len() < self.sizes.len() {
            return Err(Fault::input("--sizes combines sizes with auto", "Give the sizes, or auto alone."));
        }
        let mut work = Work::of(first, &SizeDist::Fixed(sizes.first().copied().unwrap_or(Size(4096))));
        work.name = "sweep".into();
        self.every.apply(&mut work);
        let mut plan = self.common.run.plan(context, ("storage", self.common.storage.target(context)?))?;
        plan.controller = Some(ControllerSpec::Sweep {
            template: Box::new(work.stage(&self.common.load)?),
            ops: self.ops.clone(),
            sizes,
            concurrencies: self.concurrencies.clone(),
            repeat: self.repeat,
        });
        Ok(plan)
    }
}

/// A workload's own part, before load is put on it.
#[derive(Debug, Clone)]
pub struct Work {
    pub name: String,
    pub mix: BTreeMap<OpKind, u32>,
    pub size: SizeDist,
    pub options: ObjectOptions,
    pub verify: bool,
}

impl Work {
    pub fn of(kind: OpKind, size: &SizeDist) -> Self {
        Self {
            name: kind.name().into(),
            mix: BTreeMap::from([(kind, 1)]),
            size: size.clone(),
            options: ObjectOptions::default(),
            verify: false,
        }
    }

    pub fn stage(mut self, load: &LoadArgs) -> Result<Stage, Fault> {
        self.options.prefixes = load.prefixes;
        Ok(Stage {
            name: Some(self.name.clone()),
            warmup: load.warmup,
            workloads: vec![Workload {
                name: self.name,
                target: None,
                mix: self.mix,
                size: self.size,
                keys: load.keys,
                concurrency: load.concurrency,
                jobs: None,
                pacing: load.pacing()?,
                stop: load.stop(),
                verify: self.verify,
                data: load.data(),
                object: (self.options != ObjectOptions::default()).then_some(self.options),
                block: None,
                machines: None,
            }],
            cell: None,
        })
    }
}

fn fixed(context: &ArgsContext, common: &CommonArgs, work: Work) -> Result<Plan, Fault> {
    let mut plan = common.run.plan(context, ("storage", common.storage.target(context)?))?;
    plan.stages.push(work.stage(&common.load)?);
    look_under_prefix(&mut plan);
    Ok(plan)
}

/// `--prefix` names where existing objects are, and where new ones go: of a run that only reads it is the first.
fn look_under_prefix(plan: &mut Plan) {
    for w in plan.stages.iter_mut().flat_map(|s| &mut s.workloads) {
        let existing = w.object.as_mut().and_then(|o| o.existing.as_mut());
        let Some(existing) = existing else { continue };
        for target in plan.targets.values_mut() {
            if let TargetSpec::S3(s3) = target
                && let Some(prefix) = s3.prefix.take()
            {
                existing.prefix = prefix;
            }
        }
    }
}

impl ReadArgs {
    fn work(&self, kind: OpKind) -> Work {
        let mut work = Work::of(kind, &self.size.size);
        self.prepared.apply(&mut work.options);
        work
    }
}

impl PreparedArgs {
    pub fn apply(&self, options: &mut ObjectOptions) {
        options.objects = self.objects;
        options.dataset.clone_from(&self.dataset);
        options.existing = self.existing.then(ExistingObjects::default);
    }
}

impl ListingArgs {
    fn apply(&self, options: &mut ObjectOptions) {
        options.list_max_keys = self.max_keys;
        options.list_delimiter.clone_from(&self.delimiter);
    }
}

impl PartArgs {
    fn apply(&self, options: &mut ObjectOptions) {
        options.part_size = self.part_size;
        options.part_concurrency = self.part_concurrency;
    }
}

impl EveryOpArgs {
    pub fn apply(&self, work: &mut Work) {
        work.verify = self.verify;
        work.options.range = self.range;
        work.options.delete_batch = self.batch;
        self.listing.apply(&mut work.options);
        self.parts.apply(&mut work.options);
        self.prepared.apply(&mut work.options);
    }
}
