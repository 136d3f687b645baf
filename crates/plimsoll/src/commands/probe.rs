//! Commands that decide as they go: `limits`, `speedtest` and `watch`, on objects or on a block device.

use clap::{Args, Subcommand};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    ControllerSpec, ObjectOptions, OnThrottle, Plan, ScopeWish, SizeDist, Stage, Stop, TargetSpec,
};
use plimsoll_model::units::{Size, Span};
use plimsoll_stats::probe::scope::Dimension;

use super::object::{CommonArgs, EveryOpArgs, Work};
use crate::args::{ArgsContext, BlockArgs, BlockPattern, RunArgs};
use crate::fault::Fault;
use crate::fleet_use;
use crate::values::{self, Mix};

const HEADING: &str = "Search";
/// Bytes of the objects that several ops share, where no number of objects is asked for: as many as a search writes over.
const SHARED_BYTES: u64 = 2 << 30;
/// So many objects at the least: that not all readers read the same one.
const LEAST_SHARED: u64 = 16;
/// Of objects whose size nobody asked for.
const ANY_SIZE: Size = Size(4096);

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
    /// Op to send; speedtest takes several, one after the other
    #[arg(long, value_name = "OP", default_value = "put", value_delimiter = ',', value_parser = values::op_kind)]
    pub op: Vec<OpKind>,
    /// Several ops by weight, instead of --op
    #[arg(long, value_name = "OP=WEIGHT,...", conflicts_with = "op", help_heading = "Operation")]
    pub mix: Option<Mix>,
    #[command(flatten)]
    pub size: ProbeSizeArg,
    #[command(flatten)]
    pub every: EveryOpArgs,
    #[command(flatten)]
    pub search: T,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ProbeSizeArg {
    /// Object size: fixed (4KiB), a range (1KiB..64KiB), weighted (4KiB=3,1MiB=1), or lognormal:64KiB:1.2:16MiB [default: 4KiB; a speedtest with
    /// --cluster takes 64MiB, as `mc admin speedtest` does]
    #[arg(long, short = 's', value_name = "SIZE", value_parser = values::size_dist)]
    pub size: Option<SizeDist>,
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
    /// `then`: templates of further searches; none where [`Self::SEVERAL`] is false.
    fn controller(&self, template: Stage, then: Vec<Stage>) -> Result<ControllerSpec, Fault>;

    /// Whether it takes several ops, one after the other.
    const SEVERAL: bool = false;

    /// Of objects of a cluster that is described, where no size was asked for; else that of every command.
    const OF_CLUSTERS: Size = ANY_SIZE;

    /// What of a load's own end the search leaves to the user. All else would be taken and not obeyed: it is refused.
    fn ends(&self) -> Ends;

    /// After a refused attempt, where `--on-throttle` does not say. A search or a watch that goes on at once sends tens of
    /// thousands of refused attempts a second to a service that asked for fewer.
    const ON_THROTTLE: OnThrottle = OnThrottle::Backoff;

    /// What the search wants of the targets: more of them beside the one that is named.
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
            return Err(Fault::input(format!("{what} does not apply to this command"), self.instead));
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

    pub fn plan(&self, context: &ArgsContext) -> Result<Plan, Fault> {
        let (mut plan, mut stages, search) = match self {
            Self::Object(a) => {
                let mut storage = a.common.storage.clone();
                storage.on_throttle = storage.on_throttle.or(Some(T::ON_THROTTLE));
                let mut plan = a.common.run.plan(context, ("storage", storage.target(context)?))?;
                let mut stages = a.stages()?;
                a.search.targets(&mut plan, "storage")?;
                if plan.targets.len() > 1 {
                    let all = stages.iter_mut().flat_map(|s| &mut s.workloads);
                    all.for_each(|w| w.target = Some("storage".into()));
                }
                (plan, stages, &a.search)
            }
            Self::Block(a) => {
                let target: TargetSpec = a.block.target()?;
                (a.run.plan(context, ("device", target))?, a.stages()?, &a.search)
            }
        };
        if stages.len() > 1 && !T::SEVERAL {
            return Err(Fault::input(
                "this command takes one op (--op, --pattern), and several are named",
                "Name one. `plimsoll speedtest` takes several.",
            ));
        }
        let template = stages.remove(0);
        plan.controller = Some(search.controller(template, stages)?);
        plan.validate()?;
        Ok(plan)
    }
}

impl<T: Search> ObjectProbe<T> {
    /// One for each op, or one of the mix.
    fn stages(&self) -> Result<Vec<Stage>, Fault> {
        let is_cluster = self.common.run.about.observe.cluster.is_some();
        let size = self.size.size.clone().unwrap_or(SizeDist::Fixed(if is_cluster {
            T::OF_CLUSTERS
        } else {
            ANY_SIZE
        }));
        let works = match &self.mix {
            Some(mix) => {
                let first = self.op.first().copied().unwrap_or(OpKind::Put);
                vec![Work { mix: mix.0.clone(), name: "mixed".into(), ..Work::of(first, &size) }]
            }
            None => self.op.iter().map(|op| Work::of(*op, &size)).collect(),
        };
        let several = works.len() > 1;
        let stage = |mut work: Work| {
            self.every.apply(&mut work);
            // What one op writes the others read: no more than a search writes over and over, or filling up the rest would take
            // the time of the budget. A number that was asked for is obeyed.
            if several && work.options.objects == ObjectOptions::default().objects {
                let room = SHARED_BYTES / work.size.max_bytes().max(1);
                work.options.objects = work.options.objects.min(room.max(LEAST_SHARED));
            }
            let mut stage = work.stage(&self.common.load)?;
            self.search.ends().apply(&mut stage, self.common.load.asked())?;
            Ok(stage)
        };
        works.into_iter().map(stage).collect()
    }
}

impl<T: Search> BlockProbe<T> {
    /// One for each pattern.
    fn stages(&self) -> Result<Vec<Stage>, Fault> {
        let stage = |pattern: &BlockPattern| {
            let block = BlockArgs { pattern: vec![*pattern], ..self.block.clone() };
            let mut stages = block.stages()?;
            if stages.len() != 1 {
                return Err(Fault::input(
                    "a search takes one block size, and --bs names several",
                    "Write one size, for example --bs 4KiB.",
                ));
            }
            let mut stage = stages.remove(0);
            self.search.ends().apply(&mut stage, self.block.asked())?;
            Ok(stage)
        };
        self.block.patterns().iter().map(stage).collect()
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

The probe loads the storage to its limit, lets it rest, and loads it again. It reports what it found \
(sustained rate, burst rate, bucket capacity, refill rate) and what it could not determine within the budget.

It uses small ops to find a limit on operations, and large ops to find a limit on bytes. --size 4KiB sets the small \
size, --size 1MiB (256 KiB or more) the large size, --size 4KiB..1MiB both. The probe chooses a size that is not set.";

#[derive(Debug, Clone, Args)]
pub struct LimitsArgs {
    /// Time limit for the probe
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub budget: Span,
    /// Find which ops share the limit (draw on the same token bucket)
    #[arg(long, help_heading = HEADING)]
    pub probe_shared: bool,
    /// Find whether the limit applies per connection, prefix, bucket, access key or client: all that can be tried, or those of a list.
    /// Clients are tried over a fleet, from half of its machines and from all
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = "all", value_parser = scope_arg,
          help_heading = HEADING)]
    pub probe_scope: Option<ScopeWish>,
    /// For --probe-scope: another bucket on the same server, with the same credentials
    #[arg(long, value_name = "NAME", requires = "probe_scope", help_heading = HEADING)]
    pub second_bucket: Option<String>,
    /// For --probe-scope: a profile with another access key that can use the same bucket
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

/// `all`, or a list of what the limit may be per, in the singular or the plural.
fn scope_arg(text: &str) -> Result<ScopeWish, String> {
    if text == "all" {
        return Ok(ScopeWish::All(true));
    }
    let one = |word: &str| {
        let names = Dimension::ALL.map(Dimension::name);
        let known = |n: &&str| {
            word == *n || word.strip_suffix(['s']) == Some(n) || (word, *n) == ("prefixes", "prefix")
        };
        let name = names.into_iter().find(|n| known(n));
        name.map(str::to_owned).ok_or_else(|| format!("'{word}' is none of {}, all", names.join(", ")))
    };
    Ok(ScopeWish::Only(text.split(',').map(|w| one(w.trim())).collect::<Result<_, _>>()?))
}

impl LimitsArgs {
    /// As the plan has it: over a fleet, all that can be tried is more.
    fn scope(&self) -> Result<ScopeWish, Fault> {
        let wish = self.probe_scope.clone().unwrap_or_default();
        let client = || Dimension::Client.name().to_owned();
        match wish {
            ScopeWish::All(true) if fleet_use::is_used() => {
                let local = [Dimension::Connection, Dimension::Prefix].map(|d| d.name().to_owned());
                let seconds = self.seconds().into_iter().map(|(thing, _)| thing.to_owned());
                Ok(ScopeWish::Only(local.into_iter().chain(seconds).chain([client()]).collect()))
            }
            ScopeWish::Only(names) if names.contains(&client()) && !fleet_use::is_used() => {
                Err(Fault::input(
                    "--probe-scope client: one machine is one client",
                    "Add --fleet, with agents on two machines or more.",
                ))
            }
            wish => Ok(wish),
        }
    }
}

impl Search for LimitsArgs {
    /// A refused op that goes on at once is a loop of refusals; one that backs off leaves tokens unused.
    const ON_THROTTLE: OnThrottle = OnThrottle::Pause;

    fn controller(&self, template: Stage, _then: Vec<Stage>) -> Result<ControllerSpec, Fault> {
        let owned = |(thing, name): (&str, &str)| (thing.to_owned(), name.to_owned());
        Ok(ControllerSpec::Limits {
            template: Box::new(template),
            budget: self.budget,
            probe_shared: self.probe_shared,
            probe_scope: self.scope()?,
            scope_targets: self.seconds().into_iter().map(owned).collect(),
        })
    }

    fn ends(&self) -> Ends {
        Ends { duration: false, work: false, instead: "The length of the probe is set with --budget." }
    }

    fn targets(&self, plan: &mut Plan, name: &str) -> Result<(), Fault> {
        let Some(TargetSpec::S3(first)) = plan.targets.get(name) else { return Ok(()) };
        let first = first.clone();
        for (thing, name) in self.seconds() {
            let mut twin = first.clone();
            match thing {
                "bucket" => twin.bucket = self.second_bucket.clone().unwrap_or_default(),
                _ => twin.profile = self.second_profile.clone(),
            }
            if first.endpoints.iter().any(|e| e == "embedded") {
                return Err(Fault::input(
                    "the embedded server has only one bucket and one access key",
                    "Start a server with `plimsoll target s3`, and give its endpoint.",
                ));
            }
            if twin.bucket.is_empty() || (thing == "bucket" && twin.bucket == first.bucket) {
                return Err(Fault::input(
                    "--second-bucket does not name a second bucket",
                    "Name another one.",
                ));
            }
            plan.targets.insert(name.to_owned(), TargetSpec::S3(twin));
        }
        Ok(())
    }
}

pub const SPEEDTEST_EXAMPLES: &str = "\
Examples:
  plimsoll speedtest object --endpoint http://127.0.0.1:9000 --bucket bench \\
      --op put,get --size 1MiB --budget 2m
  plimsoll speedtest object --endpoint http://127.0.0.1:9000 --bucket bench \\
      --op put --load-points=50%,80%,95%
  # a cluster, node by node, with its servers' part in it
  plimsoll speedtest object --endpoint 'http://node{1...4}:9000' \\
      --bucket bench --op put,get --budget 10m \\
      --observe 'node=http://node{1...4}:9100' --cluster cluster.toml
  plimsoll speedtest block /var/tmp/test.dat --size 4GiB --bs 4KiB \\
      --pattern randread,randwrite --budget 2m

Of several ops one search comes after the other. Each is told with the number in flight that it takes: get reads what \
put wrote, and what is missing is written first. An op for which the budget is too short is undetermined, with the budget \
that would do (exit code 5). Where cluster.toml has the rates of links or drives (`plimsoll describe cluster --ceiling RUN` puts in \
those that were measured), each rate stands beside its part of what they let through. Of several endpoints `runs show` has what each did at the best concurrency.";

#[derive(Debug, Clone, Args)]
pub struct SpeedtestArgs {
    /// Highest concurrency to try
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    pub max_concurrency: Option<u32>,
    /// Do not raise the concurrency once p99 latency exceeds this
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub p99_ceiling: Option<Span>,
    /// Saturate the storage for this long first, so that a burst does not end during the search
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub drain: Option<Span>,
    /// Time limit for everything, from preparing data to cleanup, shared between the ops: steps are as long as it allows,
    /// and repeated until the answer is clear
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Span>,
    /// Then measure open-loop latency at these fractions of the rate found
    #[arg(long, value_name = "SHARE,...", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "25%,50%,70%,80%,90%,95%", value_parser = values::fraction, help_heading = HEADING)]
    pub load_points: Vec<f64>,
}

impl Search for SpeedtestArgs {
    const SEVERAL: bool = true;

    /// Its ceilings are in bytes: small objects would come near to none of them.
    const OF_CLUSTERS: Size = Size(64 << 20);

    fn controller(&self, template: Stage, then: Vec<Stage>) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Saturation {
            template: Box::new(template),
            then,
            max_concurrency: self.max_concurrency,
            p99_ceiling: self.p99_ceiling,
            drain: self.drain,
            load_points: self.load_points.clone(),
            budget: self.budget,
        })
    }

    fn ends(&self) -> Ends {
        let instead =
            "Set the length of one step with --duration (--runtime), and of the whole search with --budget.";
        Ends { duration: true, work: false, instead }
    }
}

pub const WATCH_EXAMPLES: &str = "\
Examples:
  plimsoll watch object --endpoint https://s3.example.net --bucket bench \\
      --op put --size 1MiB --for 4h
  plimsoll watch block /dev/sdX --pattern randread --bs 4KiB --iodepth 32 \\
      --for 1h
  # repeat the file benchmark
  plimsoll watch DIR --cycle file --for 12h";

#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// How long to watch; a cycle of files that has begun by then goes on to its end
    #[arg(id = "watch_for", long = "for", value_name = "TIME", default_value = "1h")]
    pub duration: Span,
}

impl Search for WatchArgs {
    fn controller(&self, template: Stage, _then: Vec<Stage>) -> Result<ControllerSpec, Fault> {
        Ok(ControllerSpec::Watch { template: Box::new(template), duration: self.duration })
    }

    fn ends(&self) -> Ends {
        Ends { duration: false, work: true, instead: "Set how long to watch with --for." }
    }
}
