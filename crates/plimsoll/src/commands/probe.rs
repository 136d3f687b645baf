//! Commands that decide as they go: `limits`, `speedtest` and `watch`, on objects or on a block device.

use clap::{Args, Subcommand};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{ControllerSpec, Plan, Stage, TargetSpec};
use plimsoll_model::units::Span;

use super::object::{CommonArgs, EveryOpArgs, SizeArg, Work};
use crate::args::{BlockArgs, Context, RunArgs};
use crate::fault::Fault;
use crate::values::{self, Mix};

const HEADING: &str = "Search";

/// What is probed.
#[derive(Debug, Clone, Subcommand)]
pub enum Probed<T: Args> {
    /// An S3 bucket
    Object(Box<ObjectProbe<T>>),
    /// A block device or file
    Block(Box<BlockProbe<T>>),
}

#[derive(Debug, Clone, Args)]
pub struct ObjectProbe<T: Args> {
    /// Op that is made
    #[arg(long, value_name = "OP", default_value = "put", value_parser = values::op_kind, help_heading = "Operation")]
    pub op: OpKind,
    /// Several ops by weight, in place of --op
    #[arg(long, value_name = "OP=WEIGHT,...", conflicts_with = "op", help_heading = "Operation")]
    pub mix: Option<Mix>,
    #[command(flatten)]
    pub size: SizeArg,
    #[command(flatten)]
    pub every: EveryOpArgs,
    #[command(flatten)]
    pub search: T,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub struct BlockProbe<T: Args> {
    #[command(flatten)]
    pub search: T,
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Turns flags of a search into its controller.
pub trait Search: Args {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault>;
}

impl<T: Search> Probed<T> {
    pub fn run_args(&self) -> &RunArgs {
        match self {
            Self::Object(a) => &a.common.run,
            Self::Block(a) => &a.run,
        }
    }

    pub fn plan(&self, context: &Context) -> Result<Plan, Fault> {
        let (mut plan, template, search) = match self {
            Self::Object(a) => {
                let mut work = Work::of(a.op, &a.size.size);
                if let Some(mix) = &a.mix {
                    work.mix = mix.0.clone();
                    work.name = "mixed".into();
                }
                a.every.apply(&mut work);
                let plan = a.common.run.plan(context, ("storage", a.common.storage.target(context)?));
                (plan, work.stage(&a.common.load)?, &a.search)
            }
            Self::Block(a) => {
                let target: TargetSpec = a.block.target();
                let mut stages = a.block.stages()?;
                if stages.len() != 1 {
                    return Err(Fault::input(
                        "a search takes one block size, and --bs names several",
                        "Write one size, for example --bs 4KiB.",
                    ));
                }
                (a.run.plan(context, ("device", target)), stages.remove(0), &a.search)
            }
        };
        plan.controller = Some(search.controller(template)?);
        plan.validate()?;
        Ok(plan)
    }
}

pub const LIMITS_EXAMPLES: &str = "\
Examples:
  plimsoll limits object --endpoint https://s3.example.net --bucket bench --op put --size 4KiB --budget 10m
  plimsoll limits object --endpoint embedded --tier vultr-standard --probe-shared
  plimsoll limits block /dev/sdX --pattern randread --bs 4KiB --iodepth 32 --goal 1h

The probe drives the storage to its limit, lets it rest, and drives it again. It says what it found
(sustained and burst rate, capacity, refill), and what it could not settle within the budget.";

#[derive(Debug, Clone, Args)]
pub struct LimitsArgs {
    /// Time that the probe may take
    #[arg(long, value_name = "TIME", default_value = "10m", help_heading = HEADING)]
    pub budget: Span,
    /// Find which ops draw on the same bucket
    #[arg(long, help_heading = HEADING)]
    pub probe_shared: bool,
    /// Find whether the limit is per key, bucket, connection or client
    #[arg(long, help_heading = HEADING)]
    pub probe_scope: bool,
}

impl Search for LimitsArgs {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Limits {
            template: Box::new(template),
            budget: self.budget,
            probe_shared: self.probe_shared,
            probe_scope: self.probe_scope,
        })
    }
}

pub const SPEEDTEST_EXAMPLES: &str = "\
Examples:
  plimsoll speedtest object --endpoint http://127.0.0.1:9000 --bucket bench --op get --size 1MiB
  plimsoll speedtest block /var/tmp/test.dat --size 4GiB --pattern randread --bs 4KiB";

#[derive(Debug, Clone, Args)]
pub struct SpeedtestArgs {
    /// Highest concurrency to try
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    pub max_concurrency: Option<u32>,
    /// Do not go where the 99th percentile of latency is above this
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub p99_ceiling: Option<Span>,
}

impl Search for SpeedtestArgs {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Saturation {
            template: Box::new(template),
            max_concurrency: self.max_concurrency,
            p99_ceiling: self.p99_ceiling,
        })
    }
}

pub const WATCH_EXAMPLES: &str = "\
Examples:
  plimsoll watch object --endpoint https://s3.example.net --bucket bench --op put --size 1MiB --for 4h
  plimsoll watch block /dev/sdX --pattern randread --bs 4KiB --iodepth 32 --for 1h
  plimsoll watch DIR --cycle file --for 12h       # the file benchmark, again and again";

#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// How long to watch
    #[arg(id = "watch_for", long = "for", value_name = "TIME", default_value = "1h", help_heading = HEADING)]
    pub duration: Span,
}

impl Search for WatchArgs {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Watch { template: Box::new(template), duration: self.duration })
    }
}
