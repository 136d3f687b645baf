//! What a probe leaves open, each with what would settle it.

use plimsoll_model::Estimate;

use super::outcome::{Capacity, Found, Open};
use super::questions::Penalty;
use super::track::MOST_DRAINS;
use super::{Cause, DrainKind, Resource, Track};
use crate::words;

pub(super) fn open_questions(f: &Found, t: &Track) -> Vec<Open> {
    let unit = f.resource.name();
    let open = |text: String, more_s: Option<f64>| vec![Open { text, more_s }];
    if f.cause() == Cause::Refusing {
        return Vec::new();
    }
    let Some(s) = f.sustained else {
        return open(format!("no rate of {unit} was seen to hold: more of the budget is needed"), None);
    };
    let mut out: Vec<Open> = grew(f).into_iter().chain(unclear(f, s)).collect();
    // Where cycles of its own did not bear a short burst out, it is no question any more.
    let once = t.micro.is_none() && f.drains.iter().any(|d| d.kind == DrainKind::Micro);
    out.extend(match f.capacity {
        Capacity::NoneSeen if once => open(
            format!(
                "a short burst of {unit} was seen once, and there was no time to see whether it comes back: about {MICRO_S:.0} s \
                 more would tell"
            ),
            Some(MICRO_S),
        ),
        Capacity::NoneSeen if f.drains.iter().any(|d| d.kind == DrainKind::Cliff) => open(
            format!(
                "the rate of {unit} fell, and no burst was surely seen to come back after rest: no bucket shows that; a second probe \
                 would tell whether the storage itself was faster at first"
            ),
            None,
        ),
        Capacity::NoneSeen => open(
            format!(
                "no burst of {unit} was seen in {:.0} s: a bucket whose cliff comes later is not excluded; --goal {:.0}s with \
                 --budget {:.0}s would look ten times as long",
                f.horizon_s,
                10.0 * f.horizon_s,
                (25.0 * f.horizon_s + 60.0).round()
            ),
            None,
        ),
        Capacity::AtLeast(_) if t.drains.len() >= MOST_DRAINS => open(
            format!("the capacity of the {unit} bucket is at least what was seen: {MOST_DRAINS} drains did not agree on more"),
            None,
        ),
        Capacity::AtLeast(_) => {
            let more_s = t.capacity_rest_s() + t.drain_s();
            open(
                format!(
                    "the capacity of the {unit} bucket is at least what was seen: about {more_s:.0} s more of idle time and \
                     draining would settle it"
                ),
                Some(more_s),
            )
        }
        // A bucket that fills within seconds shows its refill in no rest: more time would not help.
        Capacity::Measured(_) if f.refill.is_none() && t.micro.is_none() => match t.refill_rest_s() {
            Some(_) if t.drains.len() >= MOST_DRAINS => {
                open(format!("the refill rate of the {unit} bucket was not measured by itself in {MOST_DRAINS} drains"), None)
            }
            Some(rest_s) => {
                let more_s = rest_s + t.drain_s();
                open(
                    format!(
                        "the refill rate of the {unit} bucket was not measured by itself (while it is drained, tokens come at \
                         the sustained rate): about {more_s:.0} s more would do"
                    ),
                    Some(more_s),
                )
            }
            None => Vec::new(),
        },
        Capacity::Measured(_) => Vec::new(),
    });
    out
}

/// Time of the cycles that confirm or refute a short burst, as a rule; seconds.
const MICRO_S: f64 = 60.0;

/// A limiter that refuses, and no rate of its that is known.
pub(super) fn refused_rate(f: &Found, penalty: Option<Penalty>) -> Option<Open> {
    if f.cause() != Cause::Refusing || f.known().is_some() {
        return None;
    }
    let unit = f.resource.name();
    let text = match penalty {
        Some(Penalty::CostsTokens(e)) if e.high.is_finite() => format!(
            "the highest rate of {unit} that is not refused lies between {} and {} per second: a larger --budget would narrow it",
            words::about(e.low, 3),
            words::about(e.high, 3)
        ),
        Some(Penalty::CostsTokens(e)) => format!(
            "the highest rate of {unit} that is not refused is at least {} per second: a higher one was not reached",
            words::about(e.low, 3)
        ),
        _ if f.passed_per_s() > 0.0 => format!(
            "what passes of {unit} while much is refused held no rate: what kind of limit it is was not found out; a larger --budget \
             would look for longer"
        ),
        _ => format!(
            "what passes of {unit} when a load holds back was not found out: a larger --budget would tell"
        ),
    };
    Some(Open { text, more_s: None })
}

/// What latency and the ops in flight come to, where that is what was seen.
fn grew(f: &Found) -> Option<Open> {
    let (e, latency_s) = (f.known()?, f.drains.iter().rev().find_map(|d| d.latency_s)?);
    f.is_latency_bound().then(|| Open {
        text: format!(
            "the rate of {} still grew with the ops in flight where they were the most: {} in flight at {} each set it, and {} are              possible at the least; {} in flight would tell",
            f.resource.name(),
            f.concurrency,
            plimsoll_model::units::format_latency_ns(latency_s * 1e9),
            match f.resource {
                Resource::Ops => format!("{} op/s", words::about(e.value, 3)),
                Resource::Bytes => format!("{} MB/s", words::about(e.value / 1e6, 3)),
            },
            f.concurrency.saturating_mul(2)
        ),
        more_s: None,
    })
}

/// Why the rate itself is not given.
fn unclear(f: &Found, s: Estimate) -> Vec<Open> {
    let unit = f.resource.name();
    let text = match f.moved() {
        Some((how, by)) => format!(
            "the rate of {unit} {how} by {:.0} % while it was seen: no rate follows that would be held; look for other load, or \
             probe again for longer",
            100.0 * by.abs()
        ),
        None if f.known().is_none() && !(s.low > 0.0 && s.high.is_finite()) => format!(
            "the rate of {unit} is not known: it varied too much, or was seen for too short a time, for an interval; a larger \
             --budget would tell"
        ),
        None if f.known().is_none() => format!(
            "the rate of {unit} is known only to lie between {} and {} per second: a larger --budget would narrow it",
            words::about(s.low.max(0.0), 2),
            words::about(s.high, 2)
        ),
        None => return Vec::new(),
    };
    vec![Open { text, more_s: None }]
}
