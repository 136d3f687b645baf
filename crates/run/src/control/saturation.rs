//! The search for the concurrency beyond which throughput no longer grows, over the pure controller in stats.

use plimsoll_model::analysis;
use plimsoll_model::plan::{Stage, Stop};
use plimsoll_model::units::Span;
use plimsoll_model::{Estimate, Finding, Histogram, Level};
use plimsoll_stats::saturation::{self, Action, Ended, Options};

use super::{Conclusion, Controller, Observation, Step};
use crate::error::RunError;

/// Share of the workers' time beyond which the client is what was measured (V07).
const CLIENT_BUSY: f64 = 0.85;

#[derive(Debug)]
pub struct Saturation {
    search: saturation::Saturation,
    template: Stage,
    /// Observations that the search has seen.
    taken: usize,
}

impl Saturation {
    pub fn new(template: Stage, max_concurrency: Option<u32>, p99_ceiling: Option<Span>, seed: u64) -> Self {
        let mut options =
            Options { seed, p99_ceiling_s: p99_ceiling.map(|s| s.0.as_secs_f64()), ..Options::default() };
        if let Some(max) = max_concurrency {
            options.max = max;
            options.start = options.start.min(max);
        }
        // A template that says how long to measure is obeyed.
        let asked = template.workloads.iter().find_map(|w| w.stop.duration);
        if let Some(d) = asked {
            options.measure_s = d.0.as_secs_f64();
            options.ramp_s = template.warmup.0.as_secs_f64();
        }
        Self { search: saturation::Saturation::new(options), template, taken: 0 }
    }
}

fn seconds(s: f64) -> Span {
    Span(std::time::Duration::from_secs_f64(s.max(0.0)))
}

/// What one stage showed, over all its workloads.
fn observe(o: &Observation) -> saturation::Observation {
    let mut latency = Histogram::new();
    let (mut ok, mut failed, mut ended) = (0, 0, 0);
    for s in &o.series {
        latency.merge(&s.response);
        ok += s.ok();
        failed += s.failed();
        ended += s.ok() + s.failed() + s.throttled();
    }
    saturation::Observation {
        ops_per_s: if o.window_s > 0.0 { ok as f64 / o.window_s } else { 0.0 },
        mean_latency_s: latency.mean() / 1e9,
        p99_s: (latency.count() >= 1000).then(|| latency.quantile(0.99) as f64 / 1e9),
        error_rate: if ended > 0 { failed as f64 / ended as f64 } else { 0.0 },
        client_bound: o.busy_fraction > CLIENT_BUSY,
    }
}

impl Controller for Saturation {
    fn next(&mut self, seen: &[Observation]) -> Step {
        let last = seen.get(self.taken..).and_then(<[Observation]>::last).map(observe);
        self.taken = seen.len();
        match self.search.next(last.as_ref()) {
            Action::Done => Step::Done,
            Action::Measure { concurrency, ramp_s, measure_s, phase } => {
                let mut stage = self.template.clone();
                stage.warmup = seconds(ramp_s);
                stage.name =
                    Some(format!("{} at {concurrency} in flight", format!("{phase:?}").to_lowercase()));
                for w in &mut stage.workloads {
                    w.concurrency = concurrency;
                    w.stop = Stop { duration: Some(seconds(measure_s)), ..Stop::default() };
                }
                Step::Run(Box::new(stage))
            }
        }
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), RunError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(RunError::input(
            "a search for the best concurrency cannot go on after a kill: the storage may have changed meanwhile",
            "Start it again",
        ))
    }

    fn conclude(&self) -> Option<Conclusion> {
        let out = self.search.outcome();
        let w = self.template.workloads.first()?;
        let op = w.mix.keys().next().map_or("", |k| k.name());
        let point = |p: &saturation::Point| {
            let rates: Vec<f64> = p.seen.iter().map(|o| o.ops_per_s).collect();
            let mean = plimsoll_stats::math::mean(&rates);
            let spread = if rates.len() > 1 {
                plimsoll_stats::student::t95((rates.len() - 1) as f64)
                    * plimsoll_stats::math::stdev(&rates, 1)
                    / (rates.len() as f64).sqrt()
            } else {
                0.0
            };
            let p99 = p.seen.iter().filter_map(|o| o.p99_s).reduce(f64::max);
            analysis::SaturationPoint {
                concurrency: p.concurrency,
                ops_per_s: Estimate::symmetric(mean, spread, rates.len() as f64),
                p50_ns: None,
                p99_ns: p99.map(|s| (s * 1e9) as u64),
            }
        };
        let verdict = match (&out.ended, out.changed) {
            (_, Some(_)) => "state changed during search",
            (Ended::Saturated, _) => "saturated",
            (Ended::AtMaximum, _) => "not saturated at the largest concurrency",
            (Ended::ClientBound, _) => "client limited",
            (Ended::LatencyCeiling, _) => "latency ceiling",
            (Ended::Errors, _) => "errors",
            (Ended::NoThroughput, _) => "no throughput",
        };
        let mut found = analysis::Saturation {
            op_class: op.to_owned(),
            size_bytes: crate::analyze::mean_size(&w.size),
            points: out.curve.iter().map(point).collect(),
            c95: out.c95.map(|c| Estimate::exact(f64::from(c))),
            plateau_per_s: out.plateau.map(Estimate::exact),
            verdict: verdict.to_owned(),
        };
        if let (Some(p), Some(rate)) = (&mut found.plateau_per_s, out.rate) {
            let relative = rate.relative_half_width();
            *p = Estimate::symmetric(p.value, p.value * relative, rate.n_eff);
        }
        Some(Conclusion {
            findings: vec![finding(&out, verdict)],
            saturations: vec![found],
            ..Conclusion::default()
        })
    }
}

fn finding(out: &saturation::Outcome, verdict: &str) -> Finding {
    if let Some(change) = out.changed {
        let text = format!(
            "The first concurrency, measured again at the end, gave {:.0} % of its first rate: the storage changed during \
             the search, and no concurrency follows from it. Search again, after a rest.",
            100.0 * change
        );
        return Finding::new("V19", "state_changed", Level::Invalid, text);
    }
    let text = match (out.c95, out.rate, out.plateau) {
        (Some(c), Some(rate), Some(plateau)) => format!(
            "{c} in flight give {:.0} ops/s, 95 % or more of the most that was seen ({plateau:.0} ops/s; {verdict}).",
            rate.value
        ),
        _ => format!("No best concurrency was found: {verdict}."),
    };
    Finding::new("F20", "best_concurrency", Level::Info, text)
}
