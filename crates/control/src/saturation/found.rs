//! What a search found, in the words and figures of an analysis, and as findings.

use plimsoll_model::claim::figure;
use plimsoll_model::{Estimate, Finding, Level, analysis};
use plimsoll_stats::saturation::{self, Ended};
use plimsoll_stats::words;

/// Name of the finding that the budget kept a search from its answer.
const BUDGET_TOO_SHORT: &str = analysis::Saturation::BUDGET_TOO_SHORT;

/// The search in figures. `op`: what it is of; `size_bytes`: of each op.
pub(super) fn figures(
    op: &str,
    size_bytes: u64,
    out: &saturation::SaturationOutcome,
) -> analysis::Saturation {
    let ns = |s: Option<f64>| s.map(|s| (s * 1e9).round() as u64);
    let point = |(p, rate): (&saturation::Point, &Estimate)| {
        let (p50, p99) = p.percentiles_s();
        analysis::SaturationPoint {
            concurrency: p.concurrency,
            ops_per_s: *rate,
            p50_ns: ns(p50),
            p99_ns: ns(p99),
        }
    };
    // Where the rate had not ended there is no plateau, and no share of it.
    let known = !matches!(out.ended, Ended::Budget | Ended::Unfinished | Ended::TooShort { .. });
    let mut found = analysis::Saturation {
        op_class: op.to_owned(),
        size_bytes,
        points: out.curve.iter().zip(&out.rates).map(point).collect(),
        c95: out.c95.filter(|_| known).map(|c| c95_band(c, out)),
        plateau_per_s: out.plateau.filter(|_| known).map(Estimate::exact),
        fewer_fall_short: known && out.fewer_fall_short,
        verdict: verdict(out),
        budget_needed_s: None,
        invalid: Vec::new(),
        ceilings: Vec::new(),
        limited_by: None,
    };
    if let (Some(p), Some(rate)) = (&mut found.plateau_per_s, out.rate) {
        let relative = rate.relative_half_width();
        *p = Estimate::symmetric(p.value, p.value * relative, rate.n_eff);
    }
    found
}

/// Of a search for which no time was left.
pub(super) fn not_begun(op: &str, size_bytes: u64) -> analysis::Saturation {
    analysis::Saturation {
        op_class: op.to_owned(),
        size_bytes,
        points: Vec::new(),
        c95: None,
        plateau_per_s: None,
        fewer_fall_short: false,
        verdict: "the budget ended before this search began".to_owned(),
        budget_needed_s: None,
        invalid: Vec::new(),
        ceilings: Vec::new(),
        limited_by: None,
    }
}

/// The ladder has steps: c95 lies above the last concurrency that was surely too small.
fn c95_band(c: u32, out: &saturation::SaturationOutcome) -> Estimate {
    Estimate {
        value: f64::from(c),
        low: out.surely_short.map_or(1.0, f64::from).min(f64::from(c)),
        high: f64::from(c),
        n_eff: out.curve.len() as f64,
    }
}

fn verdict(out: &saturation::SaturationOutcome) -> String {
    let text = match (&out.ended, out.changed) {
        (_, Some(_)) => "state changed during search",
        (Ended::Saturated, _) => "saturated",
        (Ended::Refused, _) => match out.refused_from {
            Some(from) => return format!("{} from {from} in flight on", analysis::Saturation::REFUSED),
            None => analysis::Saturation::REFUSED,
        },
        (Ended::AtMaximum, _) => "not saturated at the largest concurrency",
        (Ended::ClientBound, _) => "client limited",
        (Ended::LatencyCeiling, _) => "latency ceiling",
        (Ended::Errors, _) => "errors",
        (Ended::Budget, _) => "the budget ended before the rate did",
        (Ended::Unfinished, _) if out.curve.is_empty() => "the run ended before this search began",
        (Ended::Unfinished, _) => "the run ended before the search did",
        (Ended::NoThroughput, _) => "no throughput",
        (Ended::TooShort { .. }, _) => "no step was long enough for an op",
    };
    text.to_owned()
}

/// What a limiter made of the curve: where its refusals begin, and what there is without them.
fn refused(out: &saturation::SaturationOutcome) -> String {
    let share = words::share(out.refused);
    let least = out.curve.first().map_or(0, |p| p.concurrency);
    match (out.refused_from, out.c95) {
        (Some(from), Some(best)) if least < from => format!(
            "A limiter refused attempts from {from} in flight on (up to {share} of those of a step): of what was tried without \
             refusals, {best} in flight is the best. More in flight are only refused; what the storage could do without the limiter \
             is not known."
        ),
        _ => format!(
            "A limiter refused up to {share} of the attempts of a step{}, so the rates are those of the limiter and of how the load \
             comes back after a refusal, and not the storage's. More in flight are only refused more often; plimsoll limits finds \
             the rate to stay below.",
            if out.refused_from == Some(least) { ", at every concurrency that was tried" } else { "" }
        ),
    }
}

/// The answer for programs: the verdict says it in words.
fn best(out: &saturation::SaturationOutcome) -> Option<Finding> {
    let c = out.c95?;
    // As the claim in the verdict: what may not be stated there is not stated here either.
    let rate = figure(out.rate?, None).ok()?;
    let text = format!(
        "{c} in flight give {} ops/s, at least 95 % of the plateau; more in flight only wait longer.{}",
        words::about(rate.value, 4),
        if out.fewer_fall_short
            || out.surely_short.is_none() && out.curve.first().is_some_and(|p| p.concurrency == c)
        {
            ""
        } else {
            " Fewer may be enough: their rates are not clearly lower. Longer steps (--duration, --budget) would \
             settle it."
        }
    );
    let mut f = Finding::new("F20", "best_concurrency", Level::Info, text).measured(f64::from(c), 0.0);
    f.threshold = None;
    f.evidence = vec![("ops per second".into(), format!("{:.1}", rate.value))];
    f.evidence.extend(out.latency_s.map(|s| ("mean latency".into(), format!("{:.3} ms", 1e3 * s))));
    f.evidence.extend(out.knee.map(|k| ("greatest rate over latency".into(), format!("{k} in flight"))));
    Some(f)
}

/// What the last steps of a curve without a plateau show.
fn end_of_curve(out: &saturation::SaturationOutcome, top: u32) -> String {
    match out.still_rose {
        Some(true) => format!("The rate was still rising at {top} in flight"),
        Some(false) => {
            format!(
                "It is not known whether the rate still rises: the last step, to {top} in flight, gained less than 3 \
                 %"
            )
        }
        None => format!(
            "It is not known whether the rate rises with more in flight: only one step was measured, with {top} in \
             flight"
        ),
    }
}

/// What keeps the search's answer from being the storage's, with what to do. The answer itself is in the verdict. `more`: the
/// budget that would do.
pub(super) fn finding(out: &saturation::SaturationOutcome, more: &str) -> Option<Finding> {
    if let Some(change) = out.changed {
        let text = format!(
            "The first concurrency, measured again at the end, gave {:.0} % of its first rate: the storage changed \
             during the search, so there is no best concurrency. {}",
            100.0 * (1.0 + change),
            if out.refused >= saturation::REFUSED {
                format!(
                    "Its limiter refused up to {} of the attempts of a step: plimsoll limits measures what it lets through.",
                    words::share(out.refused)
                )
            } else {
                "Search again after a rest, or drain a burst first (--drain 60s).".to_owned()
            }
        );
        return Some(Finding::new("V19", "state_changed", Level::Invalid, text));
    }
    let top = out.curve.last().map_or(0, |p| p.concurrency);
    let (name, level, text) = match out.ended {
        Ended::Saturated => return best(out),
        Ended::Refused => ("refused", Level::Qualified, refused(out)),
        Ended::AtMaximum => (
            "still_gaining",
            Level::Qualified,
            format!("{}, the highest allowed: raise --max-concurrency.", end_of_curve(out, top)),
        ),
        Ended::ClientBound => (
            "client_limited",
            Level::Qualified,
            format!(
                "The client was saturated at {top} in flight, where the search ended; the storage may be able to do \
                 more. Use more threads or client machines."
            ),
        ),
        Ended::LatencyCeiling => (
            "latency_ceiling",
            Level::Info,
            format!("At {top} in flight p99 exceeded --p99-ceiling, and the search ended there."),
        ),
        Ended::Errors => (
            "errors",
            Level::Qualified,
            format!(
                "More than 1 % of the ops failed at {top} in flight, and the search ended there. Find the cause \
                 first."
            ),
        ),
        Ended::Budget => (
            BUDGET_TOO_SHORT,
            Level::Qualified,
            format!("{} when the budget ran out: {more}.", end_of_curve(out, top)),
        ),
        Ended::Unfinished => (
            "search_cut_off",
            Level::Qualified,
            match top {
                0 => "The run ended before this search began; it has no result.".to_owned(),
                _ => format!("The run ended at {top} in flight, before the search did: start it again."),
            },
        ),
        Ended::TooShort { concurrency, measure_s } => (
            BUDGET_TOO_SHORT,
            Level::Qualified,
            format!(
                "With {concurrency} in flight no op ended within the {} of a step: {more}.",
                words::span(measure_s)
            ),
        ),
        Ended::NoThroughput => {
            ("no_throughput", Level::Invalid, "No op succeeded, so there is no best concurrency.".to_owned())
        }
    };
    Some(Finding::new("F20", name, level, text))
}

/// Of a search for which no time was left.
pub(super) fn never_begun(op: &str, more: &str) -> Finding {
    let text = format!("The budget ended before the search of {op} began: {more}.");
    Finding::new("F20", BUDGET_TOO_SHORT, Level::Qualified, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one slice there is a rate and no interval: the verdict states no best concurrency then, nor may the finding.
    #[test]
    fn a_rate_without_an_interval_has_no_best_concurrency() {
        let known = saturation::SaturationOutcome {
            ended: Ended::Saturated,
            c95: Some(32),
            rate: Some(Estimate::symmetric(390.0, 8.0, 9.0)),
            plateau: Some(400.0),
            surely_short: Some(16),
            fewer_fall_short: true,
            latency_s: None,
            knee: None,
            curve: Vec::new(),
            still_rose: None,
            rates: Vec::new(),
            refused: 0.0,
            refused_from: None,
            changed: None,
        };
        assert!(best(&known).is_some());
        let rate = Some(Estimate { low: f64::NEG_INFINITY, high: f64::INFINITY, ..known.rate.unwrap() });
        assert_eq!(best(&saturation::SaturationOutcome { rate, ..known }), None);
    }
}
