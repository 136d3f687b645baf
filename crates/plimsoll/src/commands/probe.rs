//! Commands that decide as they go: `limits`, `speedtest` and `watch`, on objects or on a block device.

use clap::{Args, Subcommand};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{ControllerSpec, OnThrottle, Plan, Stage, Stop, TargetSpec};
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

    /// What of a load's own end the search leaves to the user. All else would be taken and not obeyed: it is refused.
    fn ends(&self) -> Ends;

    /// What the search wants of the targets: settings of its own, and more targets beside the one that is named.
    fn targets(&self, _plan: &mut Plan, _name: &str) -> Result<(), Fault> {
        Ok(())
    }
}

/// Which of the flags that end a load have a place in a search, and what says how long it takes.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// `--duration` and `--runtime` are the length of one step.
    pub duration: bool,
    /// `--max-ops`, `--max-bytes` and `--loops`.
    pub work: bool,
    /// What to use instead.
    pub instead: &'static str,
}

impl Ends {
    /// Refuses what would not be obeyed, and takes out of the template the default that nobody asked for.
    fn apply(self, stage: &mut Stage, asked: Stop) -> Result<(), Fault> {
        let refused = [
            (asked.duration.is_some() && !self.duration, "the length of one load (--duration, --runtime)"),
            (asked.ops.is_some() && !self.work, "--max-ops"),
            (asked.bytes.is_some() && !self.work, "--max-bytes"),
            (asked.loops.is_some() && !self.work, "--loops"),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is, _)| *is) {
            return Err(Fault::input(format!("{what} has no place here"), self.instead));
        }
        stage.workloads.iter_mut().for_each(|w| w.stop = asked);
        Ok(())
    }
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
                let mut plan = a.common.run.plan(context, ("storage", a.common.storage.target(context)?));
                let mut stage = work.stage(&a.common.load)?;
                a.search.ends().apply(&mut stage, a.common.load.asked())?;
                a.search.targets(&mut plan, "storage")?;
                if plan.targets.len() > 1 {
                    stage.workloads.iter_mut().for_each(|w| w.target = Some("storage".into()));
                }
                (plan, stage, &a.search)
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
                let mut stage = stages.remove(0);
                a.search.ends().apply(&mut stage, a.block.asked())?;
                (a.run.plan(context, ("device", target)), stage, &a.search)
            }
        };
        plan.controller = Some(search.controller(template)?);
        plan.validate()?;
        Ok(plan)
    }
}

pub const LIMITS_EXAMPLES: &str = "\
Examples:
  plimsoll limits object --endpoint https://s3.example.net --bucket bench \\
      --op put --size 4KiB --budget 10m
  plimsoll limits object --endpoint embedded --tier vultr-standard \\
      --size 4KiB..1MiB --probe-shared
  plimsoll limits block /dev/sdX --pattern randread --bs 4KiB --iodepth 32 \\
      --goal 1h

The probe drives the storage to its limit, lets it rest, and drives it again. It says what it found \
(sustained and burst rate, capacity, refill), and what it could not settle within the budget.

It needs small ops to find a limit on operations, and large ones to find a limit on bytes. --size 4KiB names the small \
ones, --size 1MiB (256 KiB or more) the large ones, --size 4KiB..1MiB both; what is not named is the probe's choice.";

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
    /// For --probe-scope: another bucket of the same server and credentials
    #[arg(long, value_name = "NAME", requires = "probe_scope", help_heading = HEADING)]
    pub second_bucket: Option<String>,
    /// For --probe-scope: a profile with another access key, which may use the same bucket
    #[arg(long, value_name = "NAME", requires = "probe_scope", help_heading = HEADING)]
    pub second_profile: Option<String>,
}

impl LimitsArgs {
    /// Targets that differ in one thing, by that thing: (thing, name of the target).
    fn seconds(&self) -> Vec<(&'static str, &'static str)> {
        let bucket = self.second_bucket.as_ref().map(|_| ("bucket", "storage-second-bucket"));
        let key = self.second_profile.as_ref().map(|_| ("key", "storage-second-key"));
        bucket.into_iter().chain(key).collect()
    }
}

impl Search for LimitsArgs {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault> {
        let owned = |(thing, name): (&str, &str)| (thing.to_owned(), name.to_owned());
        Ok(ControllerSpec::Limits {
            template: Box::new(template),
            budget: self.budget,
            probe_shared: self.probe_shared,
            probe_scope: self.probe_scope,
            scope_targets: self.seconds().into_iter().map(owned).collect(),
        })
    }

    fn ends(&self) -> Ends {
        Ends { duration: false, work: false, instead: "The probe ends after its --budget." }
    }

    fn targets(&self, plan: &mut Plan, name: &str) -> Result<(), Fault> {
        let Some(TargetSpec::S3(first)) = plan.targets.get_mut(name) else { return Ok(()) };
        // A refused op that goes on at once is a loop of refusals; one that backs off leaves tokens unused.
        if first.on_throttle == OnThrottle::Record {
            first.on_throttle = OnThrottle::Pause;
        }
        let first = first.clone();
        for (thing, name) in self.seconds() {
            let mut twin = first.clone();
            match thing {
                "bucket" => twin.bucket = self.second_bucket.clone().unwrap_or_default(),
                _ => twin.profile = self.second_profile.clone(),
            }
            if first.endpoints.iter().any(|e| e == "embedded") {
                return Err(Fault::input(
                    "the embedded server of a run has one bucket and one access key",
                    "Start one with `plimsoll target s3`, and name its endpoint.",
                ));
            }
            if twin.bucket.is_empty() || (thing == "bucket" && twin.bucket == first.bucket) {
                return Err(Fault::input("--second-bucket names no second bucket", "Name another one."));
            }
            plan.targets.insert(name.to_owned(), TargetSpec::S3(twin));
        }
        Ok(())
    }
}

pub const SPEEDTEST_EXAMPLES: &str = "\
Examples:
  plimsoll speedtest object --endpoint http://127.0.0.1:9000 --bucket bench \\
      --op get --size 1MiB
  plimsoll speedtest object --endpoint http://127.0.0.1:9000 --bucket bench \\
      --op put --load-points=50%,80%,95%
  plimsoll speedtest block /var/tmp/test.dat --size 4GiB --pattern randread \\
      --bs 4KiB";

#[derive(Debug, Clone, Args)]
pub struct SpeedtestArgs {
    /// Highest concurrency to try
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    pub max_concurrency: Option<u32>,
    /// Do not go where the 99th percentile of latency is above this
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub p99_ceiling: Option<Span>,
    /// Saturate this long first: the search does then not follow a burst that ends meanwhile
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub drain: Option<Span>,
    /// Time that all of it may take: steps are as long as it allows, and repeated until the answer is clear
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub budget: Option<Span>,
    /// Then measure latency in open loop at fractions of the rate that was found
    #[arg(long, value_name = "SHARE,...", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "25%,50%,70%,80%,90%,95%", value_parser = values::fraction, help_heading = HEADING)]
    pub load_points: Vec<f64>,
}

impl Search for SpeedtestArgs {
    fn controller(&self, template: Stage) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Saturation {
            template: Box::new(template),
            max_concurrency: self.max_concurrency,
            p99_ceiling: self.p99_ceiling,
            drain: self.drain,
            load_points: self.load_points.clone(),
            budget: self.budget,
        })
    }

    fn ends(&self) -> Ends {
        let instead = "Name the length of one step with --duration (--runtime), and of all with --budget.";
        Ends { duration: true, work: false, instead }
    }
}

pub const WATCH_EXAMPLES: &str = "\
Examples:
  plimsoll watch object --endpoint https://s3.example.net --bucket bench \\
      --op put --size 1MiB --for 4h
  plimsoll watch block /dev/sdX --pattern randread --bs 4KiB --iodepth 32 \\
      --for 1h
  # the file benchmark, again and again
  plimsoll watch DIR --cycle file --for 12h";

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

    fn ends(&self) -> Ends {
        Ends { duration: false, work: true, instead: "Say with --for how long to watch." }
    }
}
