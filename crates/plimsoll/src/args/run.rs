//! What holds for every run: seed, ring, labels, promises, and what is printed at the end.

use std::collections::BTreeMap;

use clap::Args;
use plimsoll_model::plan::{PLAN_VERSION, Plan, RingChoice, RunOptions, TargetSpec};
use plimsoll_model::units::Span;

use super::Context;
use crate::ceiling;
use crate::values::{self, Cpus};

const RUN: &str = "Run";
const OUTPUT: &str = "Output";

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Name of the run
    #[arg(long, value_name = "NAME", help_heading = RUN)]
    pub name: Option<String>,
    /// Seed of order, keys, sizes, data and arrivals [default: a new one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64), help_heading = RUN)]
    pub seed: Option<u64>,
    /// How I/O is submitted; the result says which was taken, and why
    #[arg(long, value_name = "RING", default_value = "auto", help_heading = RUN,
          value_parser = values::named::<RingChoice>(["auto", "io_uring", "epoll", "psync", "libaio"]))]
    pub ring: RingChoice,
    /// Worker threads [default: chosen from cores and concurrency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = RUN)]
    pub threads: Option<u32>,
    /// Pin workers to these CPUs, for example 0-3,6
    #[arg(long, value_name = "LIST", help_heading = RUN)]
    pub cpus: Option<Cpus>,
    /// Share of failed (not throttled) ops above which the result is invalid
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = values::share, help_heading = RUN)]
    pub max_error_rate: f64,
    /// Keep what the run created
    #[arg(long, help_heading = RUN)]
    pub keep: bool,
    /// The horizon that you need: a shorter run says that it is shorter
    #[arg(long, value_name = "TIME", help_heading = RUN)]
    pub goal: Option<Span>,
    /// Mark the run, for example tier=standard; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = values::label, help_heading = RUN)]
    pub labels: Vec<(String, String)>,
    /// Hold the run against a ceiling: a run of `plimsoll drive` (or another one), or the file of its --json; the
    /// result says what part of it was reached
    #[arg(long, value_name = "RUN|FILE", help_heading = RUN)]
    pub ceiling: Option<String>,
    /// A promise to check, for example 'get.ops_per_s >= 800 +-1%'; not met is exit code 4; may be repeated
    #[arg(long = "expect", value_name = "PROMISE", help_heading = RUN)]
    pub expect: Vec<String>,
    /// An event that comes at a known time after the load has begun, for example '30s=node 3 off'; shown on the time axis;
    /// may be repeated
    #[arg(long, value_name = "TIME=TEXT", value_parser = values::mark_at, help_heading = RUN)]
    pub mark_at: Vec<String>,
    /// Write one line per request of the measured part to this file (TSV, as warp's; --warmup 0s for all of them)
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub trace: Option<String>,
    /// Print the plan and what would happen, and do nothing
    #[arg(long, help_heading = RUN)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What comes out at the end. One of the first three at most.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Print the run summary as JSON (schema/run.schema.json)
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub json: bool,
    /// Print Markdown
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub markdown: bool,
    /// Print CSV
    #[arg(long, group = "result_form", help_heading = OUTPUT)]
    pub csv: bool,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<String>,
    /// No progress on stderr
    #[arg(long, short = 'q', help_heading = OUTPUT)]
    pub quiet: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS", help_heading = OUTPUT)]
    pub runs_dir: Option<std::path::PathBuf>,
}

impl RunArgs {
    /// A plan with everything but its work.
    pub fn plan(&self, context: &Context, target: (&str, TargetSpec)) -> Plan {
        let mut plan = Plan {
            version: PLAN_VERSION,
            name: self.name.clone(),
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
            labels: self.labels.iter().cloned().collect(),
            expect: self.expect.clone(),
            targets: BTreeMap::from([(target.0.to_owned(), target.1)]),
            stages: Vec::new(),
            controller: None,
        };
        ceiling::name(&mut plan.labels, self.ceiling.as_ref());
        plan
    }

    /// Lays what was given over a plan that was made elsewhere (a job file), and leaves the rest of it.
    pub fn lay_over(&self, plan: &mut Plan) {
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        if self.name.is_some() {
            plan.name.clone_from(&self.name);
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
        plan.labels.extend(self.labels.iter().cloned());
        ceiling::name(&mut plan.labels, self.ceiling.as_ref());
        plan.expect.extend(self.expect.iter().cloned());
    }
}
