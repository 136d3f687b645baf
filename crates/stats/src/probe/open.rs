//! What a probe leaves open, each with what would settle it.

use plimsoll_model::Estimate;

use super::after_rest::AfterRest;
use super::capacity::is_cache;
use super::cause::seconds_to_tell;
use super::hold::HeldBack;
use super::outcome::{Capacity, Found, Open};
use super::questions::{Answers, Penalty};
use super::track::MOST_DRAINS;
use super::{Cause, DrainKind, Resource, Track};
use crate::words;

pub(super) fn open_questions(f: &Found, t: &Track, after_rest: Option<AfterRest>) -> Vec<Open> {
    let unit = f.resource.name();
    let open = |text: String, more_s: Option<f64>| vec![Open { text, more_s }];
    if f.cause() == Cause::Refusing {
        return Vec::new();
    }
    let Some(s) = f.sustained else {
        return open(format!("no constant rate of {unit} was seen: a larger --budget is needed"), None);
    };
    let mut out: Vec<Open> = grew(f).into_iter().chain(too_short(f)).chain(unclear(f, s)).collect();
    // Where cycles of its own did not bear a short burst out, it is no question any more.
    let once = t.micro.is_none() && f.drains.iter().any(|d| d.kind == DrainKind::Micro);
    out.extend(match f.capacity {
        Capacity::NoneSeen if is_cache(t) => open(
            format!(
                "a burst of {unit} came back after rest, and the rate after it varies as a storage's own speed does: a cache \
                 that fills, or a bucket before a busy machine; which of the two was not determined"
            ),
            None,
        ),
        Capacity::NoneSeen if once => open(
            format!(
                "a short burst of {unit} was seen once, and there was no time to check whether it comes back: about \
                 {MICRO_S:.0} s more would settle it"
            ),
            Some(MICRO_S),
        ),
        Capacity::NoneSeen if f.drains.iter().any(|d| d.kind == DrainKind::Cliff) => open(
            format!(
                "the rate of {unit} fell, but no burst clearly came back after rest, as a token bucket's would; a \
                 second probe would show whether the storage itself was faster at first"
            ),
            None,
        ),
        Capacity::NoneSeen => open(
            format!(
                "no burst of {unit} was seen in {:.0} s{}: a bucket that runs dry later is not excluded; --goal {:.0}s \
                 with --budget {:.0}s would measure ten times as long",
                f.horizon_s,
                match after_rest {
                    Some(a) if a.beyond > 0.0 => " of a load that insists".to_owned(),
                    Some(a) => format!(", nor after a rest of {}", words::span(a.rest_s)),
                    None => String::new(),
                },
                10.0 * f.horizon_s,
                (25.0 * f.horizon_s + 60.0).round()
            ),
            None,
        ),
        Capacity::AtLeast(_) if t.drains.len() >= MOST_DRAINS => open(
            format!("the capacity of the {unit} bucket is a lower bound: {MOST_DRAINS} drains did not agree on a \
                     value"),
            None,
        ),
        Capacity::AtLeast(_) => {
            let more_s = t.capacity_rest_s() + t.drain_s();
            open(
                format!(
                    "the capacity of the {unit} bucket is a lower bound: about {more_s:.0} s more of rest and \
                     draining would settle it"
                ),
                Some(more_s),
            )
        }
        // A bucket that fills within seconds shows its refill in no rest: more time would not help.
        Capacity::Measured(_) if f.refill.is_none() && t.micro.is_none() => match t.refill_rest_s() {
            Some(_) if t.drains.len() >= MOST_DRAINS => {
                open(format!("the refill rate of the {unit} bucket was not measured separately in {MOST_DRAINS} \
                              drains"), None)
            }
            Some(rest_s) => {
                let more_s = rest_s + t.drain_s();
                open(
                    format!(
                        "the refill rate of the {unit} bucket was not measured separately (while it drains, tokens \
                         arrive at the sustained rate): about {more_s:.0} s more would settle it"
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
pub(super) fn refused_rate(f: &Found, answers: &Answers) -> Option<Open> {
    let less = matches!(answers.held_back, Some(HeldBack::More { .. } | HeldBack::Less { .. }));
    if !(less || f.cause() == Cause::Refusing) || f.known().is_some() {
        return None;
    }
    let unit = f.resource.name();
    if let Some(HeldBack::More { rate, pushed, .. }) = answers.held_back.filter(|_| answers.penalty.is_none())
    {
        let above = if rate.high.is_finite() {
            format!("and {}", words::about(rate.high, 3))
        } else {
            "and more".into()
        };
        let text = format!(
            "the highest rate of {unit} without refusals lies between {} {above} per second: a larger --budget would \
             narrow it",
            words::about(pushed.max(rate.low), 3)
        );
        return Some(Open { text, more_s: None });
    }
    let text = match answers.penalty {
        Some(Penalty::CostsTokens(e)) if e.low <= 0.0 => format!(
            "how much of {unit} holds without refusals was not determined: what passed did so for too short a time; a larger \
             --budget would settle it"
        ),
        Some(Penalty::CostsTokens(e)) if e.high.is_finite() => format!(
            "the highest rate of {unit} without refusals lies between {} and {} per second: a larger --budget would \
             narrow it",
            words::about(e.low, 3),
            words::about(e.high, 3)
        ),
        Some(Penalty::CostsTokens(e)) => format!(
            "the highest rate of {unit} without refusals is at least {} per second: no higher rate was reached, and a larger --budget would try one",
            words::about(e.low, 3)
        ),
        _ if f.passed_per_s() > 0.0 => format!(
            "the rate of {unit} that gets through while {} of the attempts are refused is not constant: the kind of limit \
             was not identified; a larger --budget would measure for longer",
            words::share(f.refused())
        ),
        _ => format!(
            "the rate of {unit} that a load gets when it backs off was not measured: a larger --budget would settle \
             it"
        ),
    };
    Some(Open { text, more_s: None })
}

fn rate(of: Resource, per_s: f64) -> String {
    match of {
        Resource::Ops => format!("{} op/s", words::about(per_s, 3)),
        Resource::Bytes => format!("{} MB/s", words::about(per_s / 1e6, 3)),
    }
}

/// Says of a rate that two looks had otherwise.
pub const CHANGED_MEANWHILE: &str = "it changed while it was measured";

/// Looks that each held still came to rates far apart.
pub(super) fn changed_rate(f: &Found) -> Option<Open> {
    let (least, most) = f.changed()?;
    let text = format!(
        "the rate of {} was {} at one time and {} at another, and held still each time: {CHANGED_MEANWHILE}, and none is \
         given; probe again, and look for what else changed",
        f.resource.name(),
        rate(f.resource, most),
        rate(f.resource, least)
    );
    Some(Open { text, more_s: None })
}

/// What latency and the ops in flight come to, where that is what was seen.
fn grew(f: &Found) -> Option<Open> {
    let (e, latency_s) = (f.known()?, f.drains.iter().rev().find_map(|d| d.latency_s)?);
    f.is_latency_bound().then(|| Open {
        text: format!(
            "the rate of {} was still growing at the highest concurrency: {} in flight at {} each determined it, and \
             at least {} is possible; measure with {} in flight",
            f.resource.name(),
            f.concurrency,
            plimsoll_model::units::format_latency_ns(latency_s * 1e9),
            rate(f.resource, e.value),
            f.concurrency.saturating_mul(2)
        ),
        more_s: None,
    })
}

/// The plateau ended before it could be told from the storage's own speed.
fn too_short(f: &Found) -> Option<Open> {
    let looked = f.drains.iter().filter_map(|d| Some((d.steadiness?, d.dt_s)));
    let (s, dt) = looked.max_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds))?;
    let wanted_s = seconds_to_tell(s.latency_s, dt).filter(|w| f.cause() == Cause::None && s.seconds < *w)?;
    Some(Open {
        text: format!(
            "a plateau of {:.0} s is too short to tell a limit on {} from the storage's own speed when each op takes \
             {}: {:.0} s would be enough, with a larger --budget",
            s.seconds,
            f.resource.name(),
            plimsoll_model::units::format_latency_ns(s.latency_s * 1e9),
            wanted_s
        ),
        more_s: None,
    })
}

/// Why the rate itself is not given.
fn unclear(f: &Found, s: Estimate) -> Vec<Open> {
    let unit = f.resource.name();
    let text = match f.moved() {
        Some((how, by)) => format!(
            "the rate of {unit} {how} by {:.0} % while it was measured, so no constant rate can be given; look for \
             other load, or probe again for longer",
            100.0 * by.abs()
        ),
        None if f.known().is_none() && !(s.low > 0.0 && s.high.is_finite()) => format!(
            "the rate of {unit} is not known: it varied too much, or was seen too briefly, for an interval; a larger \
             --budget would help"
        ),
        None if f.known().is_none() => format!(
            "the rate of {unit} is only known to lie between {} and {} per second: a larger --budget would narrow it",
            words::about(s.low.max(0.0), 2),
            words::about(s.high, 2)
        ),
        None => return Vec::new(),
    };
    vec![Open { text, more_s: None }]
}
