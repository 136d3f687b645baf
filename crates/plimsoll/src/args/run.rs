//! What holds for every run: seed, ring, labels, promises, and what is printed at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::Cluster;
use plimsoll_model::plan::{ObserveSpec, PLAN_VERSION, Plan, RingChoice, RunOptions, TargetSpec, TlsSpec};
use plimsoll_model::units::Span;

use super::{ArgsContext, CostArgs, HandOutArgs};
use crate::ceiling;
use crate::commands::plan_file::read_text;
use crate::fault::Fault;
use crate::values::{self, Cpus};

const RUN: &str = "Run";
const OBSERVE: &str = "Servers";
const OUTPUT: &str = "Output";

/// What a run is called, marked with and held against: of every command that measures.
#[derive(Debug, Clone, Default, Args)]
pub struct AboutArgs {
    /// Name of the run
    #[arg(long, value_name = "NAME", help_heading = RUN)]
    pub name: Option<String>,
    /// Add a label to the run, for example tier=standard; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label, help_heading = RUN)]
    pub labels: Vec<(String, String)>,
    /// Promise to check, for example 'get.ops_per_s >= 800 +-1%'; exit code 4 if it is not met; may be repeated
    #[arg(long = "expect", value_name = "PROMISE", help_heading = RUN)]
    pub expect: Vec<String>,
    /// Compare the run with a ceiling: a run of `plimsoll drive` (or another one), or a file of its --json output;
    /// the result says what share of it was reached
    #[arg(long, value_name = "RUN|FILE", help_heading = RUN)]
    pub ceiling: Option<String>,
    #[command(flatten)]
    pub cost: CostArgs,
    #[command(flatten)]
    pub observe: ObserveArgs,
}

/// Who is asked what the servers do meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct ObserveArgs {
    /// Ask the servers what they do meanwhile: node, process, minio, ceph, metrics or prometheus, and where, for example
    /// node=http://s{1...4}:9100; or ssh=root@s{1...4}, which reads /proc there; may be repeated. What does not answer is told
    /// and does not end the run
    #[arg(long, value_name = "MAKE=URL", help_heading = OBSERVE)]
    pub observe: Vec<String>,
    /// How often each is asked, 1s to 10m [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = OBSERVE)]
    pub observe_every: Option<Span>,
    /// Environment variable with the bearer token for --observe [default: none; for minio, one made of the run's keys]
    #[arg(long, value_name = "NAME", help_heading = OBSERVE)]
    pub observe_token_env: Option<String>,
    /// File with the bearer token for --observe
    #[arg(long, value_name = "FILE", conflicts_with = "observe_token_env", help_heading = OBSERVE)]
    pub observe_token_file: Option<String>,
    /// Configuration file of ssh for --observe ssh=... [default: your own]
    #[arg(long, value_name = "FILE", help_heading = OBSERVE)]
    pub observe_ssh_config: Option<String>,
    /// CA certificates (PEM) for --observe over https [default: those of the target]
    #[arg(long, value_name = "FILE", help_heading = OBSERVE)]
    pub observe_ca_file: Option<String>,
    /// End the run, so that others are left alone, when this holds, for example 'server.cpu > 90 % for 30s' (cpu, network,
    /// drive or memory of any observed host) or 'other.p99 > 50ms' (of a workload or op of the plan); exit code 8; may be
    /// repeated
    #[arg(long, value_name = "GUARD", help_heading = OBSERVE)]
    pub abort_if: Vec<String>,
    /// What the servers are made of (TOML, as from `plimsoll describe cluster`): labels, line rates and other ceilings, and
    /// what redundancy makes of the traffic
    #[arg(long, value_name = "FILE", help_heading = OBSERVE)]
    pub cluster: Option<PathBuf>,
}

/// A file that describes a cluster.
pub fn read_cluster(file: &Path) -> Result<Cluster, Fault> {
    let text = read_text(file, "the cluster")?;
    Cluster::from_toml(&text).map_err(|e| {
        Fault::input(
            format!("the cluster in {} cannot be used: {e}", file.display()),
            "`plimsoll describe cluster` writes one; unknown keys are errors, so that nothing is left out by a typo.",
        )
    })
}

impl ObserveArgs {
    /// The command line's own refusal would repeat the value, and a password in it.
    fn lay_over(&self, plan: &mut Plan) -> Result<(), Fault> {
        let tls = self.observe_ca_file.as_ref();
        let tls = tls.map(|ca| TlsSpec { ca_file: Some(ca.clone()), ..TlsSpec::default() });
        for text in &self.observe {
            let spec: ObserveSpec = text.parse().map_err(|why: String| {
                Fault::input(format!("--observe: {why}"), "Write MAKE=URL, for example node=http://s1:9100")
            })?;
            plan.options.observe.push(ObserveSpec {
                token_env: self.observe_token_env.clone(),
                token_file: self.observe_token_file.clone(),
                tls: tls.clone(),
                ssh_config: self.observe_ssh_config.clone(),
                ..spec
            });
        }
        plan.options.observe_every = self.observe_every.or(plan.options.observe_every);
        plan.options.abort_if.extend(self.abort_if.iter().cloned());
        if let Some(file) = &self.cluster {
            plan.options.cluster = Some(Box::new(read_cluster(file)?));
        }
        // Whoever gave a label knows better.
        for (name, value) in plan.options.cluster.iter().flat_map(|c| c.labels()) {
            plan.labels.entry(name).or_insert(value);
        }
        Ok(())
    }
}

impl AboutArgs {
    /// Lays what was given over a plan, and leaves the rest of it. A file of prices is read.
    pub fn lay_over(&self, plan: &mut Plan) -> Result<(), Fault> {
        if self.name.is_some() {
            plan.name.clone_from(&self.name);
        }
        plan.labels.extend(self.labels.iter().cloned());
        ceiling::name(&mut plan.labels, self.ceiling.as_ref());
        plan.expect.extend(self.expect.iter().cloned());
        if let Some(cost) = self.cost.options()? {
            plan.options.cost = Some(cost);
        }
        self.observe.lay_over(plan)
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub about: AboutArgs,
    /// Seed for order, keys, sizes, data and arrivals [default: a new one for each run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64), help_heading = RUN)]
    pub seed: Option<u64>,
    /// How I/O is submitted; the result says which one was used, and why
    #[arg(long, value_name = "RING", default_value = "auto", help_heading = RUN,
          value_parser = values::named::<RingChoice>(["auto", "io_uring", "epoll", "psync", "libaio"]))]
    pub ring: RingChoice,
    /// Number of worker threads [default: chosen from cores and concurrency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = RUN)]
    pub threads: Option<u32>,
    /// Pin workers to these CPUs, for example 0-3,6
    #[arg(long, value_name = "LIST", help_heading = RUN)]
    pub cpus: Option<Cpus>,
    /// Result is invalid above this share of failed ops (throttled ops are not failed)
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = values::share, help_heading = RUN)]
    pub max_error_rate: f64,
    /// Keep what the run creates
    #[arg(long, help_heading = RUN)]
    pub keep: bool,
    /// How long the rate must hold for your purpose; a shorter run says that it is shorter
    #[arg(long, value_name = "TIME", help_heading = RUN)]
    pub goal: Option<Span>,
    /// Planned event at this time after the load starts, for example '30s=node 3 off', shown on the time axis; may
    /// be repeated
    #[arg(long, value_name = "TIME=TEXT", value_parser = values::mark_at, help_heading = RUN)]
    pub mark_at: Vec<String>,
    /// Write one line per measured request to this file (TSV, warp's format); --warmup 0s to include all requests
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub trace: Option<String>,
    /// Print the plan and what would happen, and exit
    #[arg(long, help_heading = RUN)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What comes out at the end. One of the first four at most.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Print the summary as JSON (schema/run.schema.json)
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub json: bool,
    /// Print Markdown
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub markdown: bool,
    /// Print CSV
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub csv: bool,
    /// Print one line: how far the result may be used, its first figure, and the run
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub oneline: bool,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<String>,
    /// Do not show progress on stderr
    #[arg(long, short = 'q', help_heading = OUTPUT)]
    pub quiet: bool,
    /// Print everything that was found, as `plimsoll runs show` does
    #[arg(long, short = 'v', help_heading = OUTPUT)]
    pub verbose: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS", help_heading = OUTPUT)]
    pub runs_dir: Option<PathBuf>,
    #[command(flatten)]
    pub hand_out: HandOutArgs,
}

impl RunArgs {
    /// A plan with everything but its work.
    pub fn plan(&self, context: &ArgsContext, target: (&str, TargetSpec)) -> Result<Plan, Fault> {
        let mut plan = Plan {
            version: PLAN_VERSION,
            name: None,
            seed: self.seed.unwrap_or(context.fresh_seed),
            options: RunOptions {
                max_error_rate: self.max_error_rate,
                keep: self.keep,
                ring: self.ring,
                threads: self.threads,
                cpus: self.cpus.clone().map(|c| c.0).unwrap_or_default(),
                trace: self.trace.clone(),
                goal: self.goal,
                mark_at: self.mark_at.clone(),
                ..RunOptions::default()
            },
            labels: BTreeMap::new(),
            expect: Vec::new(),
            targets: BTreeMap::from([(target.0.to_owned(), target.1)]),
            stages: Vec::new(),
            controller: None,
        };
        self.about.lay_over(&mut plan)?;
        Ok(plan)
    }

    /// Lays what was given over a plan that was made elsewhere (a job file), and leaves the rest of it.
    pub fn lay_over(&self, plan: &mut Plan) -> Result<(), Fault> {
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        if self.ring != RingChoice::Auto {
            plan.options.ring = self.ring;
        }
        if self.cpus.is_some() {
            plan.options.cpus = self.cpus.clone().map(|c| c.0).unwrap_or_default();
        }
        plan.options.max_error_rate = self.max_error_rate;
        plan.options.keep |= self.keep;
        plan.options.goal = self.goal.or(plan.options.goal);
        plan.options.trace = self.trace.clone().or(plan.options.trace.take());
        plan.options.mark_at.extend(self.mark_at.iter().cloned());
        self.about.lay_over(plan)
    }
}
