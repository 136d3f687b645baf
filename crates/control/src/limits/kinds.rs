//! The kinds of a mix that was probed, each by itself and all side by side: limits of their own, or one that they share.
//! In the mix itself each waits for the others, and the slowest sets the pace of all: its total says nothing of them.

use plimsoll_model::summary::{BucketSummary, LimitSummary};
use plimsoll_model::{Estimate, Finding, Level, OpKind};
use plimsoll_stats::probe::shared::{Sharing, kinds_share};
use plimsoll_stats::probe::{Cause, Resource, Steadiness};
use plimsoll_stats::{rate, words};

use crate::controller::{Observation, Slice};

/// What one kind does by itself, over time.
#[derive(Debug, Clone, Default)]
pub struct Plateau {
    /// Ops or bytes per second, by slices of a fifth of a second.
    per_s: Vec<f64>,
    dt_s: f64,
    refused: f64,
    latency_s: f64,
    horizon_s: f64,
}

/// Slices of the grid are joined to so much: what the method was tuned with.
const DT_S: f64 = 0.2;

impl Plateau {
    /// The measured part of a stage.
    pub fn of(o: &Observation, of: Resource) -> Self {
        let from = ((o.window_start_s - o.start_s).max(0.0) / o.slice_s).ceil() as usize;
        let to = from + (o.window_s / o.slice_s).round() as usize;
        let slices = o.slices.get(from.min(o.slices.len())..to.min(o.slices.len())).unwrap_or_default();
        let per = ((DT_S / o.slice_s).round() as usize).max(1);
        let dt_s = per as f64 * o.slice_s;
        let count = |s: &Slice| if of == Resource::Ops { s.ok } else { s.bytes_ok };
        let per_s =
            slices.chunks_exact(per).map(|c| c.iter().map(count).sum::<u64>() as f64 / dt_s).collect();
        let (ok, refused) = slices.iter().fold((0, 0), |(a, b), s| (a + s.ok, b + s.throttled));
        let time_s = slices.iter().map(|s| s.in_system_ns).sum::<u128>() as f64 / 1e9;
        Self {
            per_s,
            dt_s,
            refused: refused as f64 / ((ok + refused) as f64).max(1.0),
            latency_s: time_s / ((ok + refused) as f64).max(1.0),
            horizon_s: (o.end_s - o.start_s).max(0.0),
        }
    }

    /// Ops or bytes per second.
    pub fn mean(&self) -> f64 {
        plimsoll_stats::math::mean(&self.per_s)
    }

    /// Whether it is a limiter's: refused, or held more exactly than storage does by itself.
    pub fn is_limited(&self, of: Resource) -> bool {
        !matches!(self.rate(of).1, Cause::None)
    }

    /// The rate, and what says that it is a limiter's.
    fn rate(&self, of: Resource) -> (Option<Estimate>, Cause) {
        let unit = if of == Resource::Ops { 1.0 } else { 0.0 };
        let held = Steadiness::of(&self.per_s, self.dt_s, unit, self.refused, self.latency_s);
        let counts: Vec<f64> = self.per_s.iter().map(|x| x * self.dt_s).collect();
        let e = rate::estimate(&counts, self.dt_s).known().copied();
        let cause = held.cause();
        // What keeps to a straight line is known as exactly as it does so.
        let e = e.map(|e| match cause {
            Cause::Held => {
                let half = (e.value * held.relative_half_width()).min(e.half_width()).max(0.001 * e.value);
                Estimate::symmetric(e.value, half, e.n_eff)
            }
            _ => e,
        });
        (e, cause)
    }
}

/// What the kinds have in common, by the look that was held up least: other load on the machine takes from a limited rate, and nothing
/// adds to one. With that look (rates side by side).
pub fn share<'a>(alone: &[f64], looks: &[&'a [f64]]) -> (Sharing, &'a [f64]) {
    let kept = |look: &[f64]| look.iter().zip(alone).map(|(t, a)| t / a.max(1e-9)).sum::<f64>();
    let best = looks.iter().copied().max_by(|a, b| kept(a).total_cmp(&kept(b))).unwrap_or_default();
    (kinds_share(alone, best), best)
}

/// What the kinds have in common. Limits only where each has one of its own. `looks`: rates side by side, each time that they were.
pub fn judge(
    kinds: &[OpKind],
    alone: &[&Plateau],
    looks: &[&[f64]],
    of: Resource,
    total: &LimitSummary,
) -> (Finding, Vec<LimitSummary>) {
    let means: Vec<f64> = alone.iter().map(|p| p.mean()).collect();
    let said = |x: f64| match of {
        Resource::Ops => format!("{} op/s", words::about(x, 4)),
        Resource::Bytes => format!("{} MB/s", words::about(x / 1e6, 4)),
    };
    let each = |v: &[f64]| {
        let one = |(k, x): (&OpKind, &f64)| format!("{k} {}", said(*x));
        kinds.iter().zip(v).map(one).collect::<Vec<_>>().join(", ")
    };
    let (sharing, together) = share(&means, looks);
    let seen = format!("alone {}; at the same time {}", each(&means), each(together));
    let text = match sharing {
        Sharing::Separate => format!(
            "The kinds of the mix have separate limits on {}: {seen}. The total rate of the mix is set by the limit \
             that is reached first, and is not a limit on the others.",
            of.name()
        ),
        Sharing::Shared => format!("The kinds of the mix share one limit on {}: {seen}.", of.name()),
        Sharing::Undetermined => format!(
            "It is undetermined whether the kinds of the mix share the limit on {}: {seen}. Running at the same \
             time, they reach neither their own rates nor a shared one; a quieter machine or a larger --budget may \
             settle it.",
            of.name()
        ),
    };
    let finding = Finding::new("F56", "limit_by_kind", Level::Info, text);
    if sharing != Sharing::Separate {
        return (finding, Vec::new());
    }
    let limits = kinds.iter().zip(alone).map(|(k, p)| limit(*k, p, of, total)).collect();
    (finding, limits)
}

fn limit(kind: OpKind, p: &Plateau, of: Resource, total: &LimitSummary) -> LimitSummary {
    let (sustained, cause) = p.rate(of);
    // A rate that latency sets is as even as latency is: of each kind as of all together.
    let cause = if cause == Cause::Held && total.binding == "latency" { Cause::None } else { cause };
    let proved = matches!(cause, Cause::Held | Cause::Refusals);
    let bucket =
        BucketSummary { sustained, proved, horizon_s: Some(p.horizon_s), ..BucketSummary::default() };
    let (ops_per_s, bytes_per_s) = match of {
        Resource::Ops => (Some(bucket), None),
        Resource::Bytes => (None, Some(bucket)),
    };
    LimitSummary {
        target: total.target.clone(),
        op_class: kind.name().into(),
        scope: "unknown".into(),
        ops_per_s,
        bytes_per_s,
        knee_bytes: None,
        binding: if proved { of.name() } else { "undetermined" }.into(),
        refused: Some(p.refused),
        evidence: vec![(format!("{}: why a limit", of.name()), cause.words().into())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(per_s: f64) -> Plateau {
        Plateau { per_s: vec![per_s; 60], dt_s: DT_S, refused: 0.0, latency_s: 0.040, horizon_s: 13.0 }
    }

    fn total(binding: &str) -> LimitSummary {
        LimitSummary {
            target: "s".into(),
            op_class: "total".into(),
            scope: "unknown".into(),
            ops_per_s: None,
            bytes_per_s: None,
            knee_bytes: None,
            binding: binding.into(),
            refused: None,
            evidence: vec![],
        }
    }

    /// What latency sets is as even as latency is, of each kind as of all.
    #[test]
    fn a_kind_whose_rate_latency_sets_has_no_limit_of_its_own() {
        let (get, put) = (kind(6400.0), kind(3200.0));
        let kinds = [OpKind::Get, OpKind::Put];
        let judged =
            |binding| judge(&kinds, &[&get, &put], &[&[6400.0, 3200.0]], Resource::Ops, &total(binding));
        let proved = |l: &LimitSummary| l.ops_per_s.as_ref().unwrap().proved || l.binding == "ops";
        assert!(!judged("latency").1.iter().any(proved), "{:?}", judged("latency"));
        assert!(judged("undetermined").1.iter().all(proved));
    }

    /// Each was just quoted by itself.
    #[test]
    fn what_is_left_to_do_was_not_just_done() {
        let (get, put) = (kind(100.0), kind(100.0));
        let (f, _) = judge(
            &[OpKind::Get, OpKind::Put],
            &[&get, &put],
            &[&[80.0, 60.0]],
            Resource::Ops,
            &total("none"),
        );
        assert!(f.text.contains("undetermined") && !f.text.contains("each by itself"), "{}", f.text);
    }
}
