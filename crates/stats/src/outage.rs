//! Outages: spans in which storage that was being asked answered next to nothing.
//!
//! A gap is a run of slices in which no op succeeded (a straggler among them ends no gap). It is an outage when by the rates
//! around it many ops should have ended in it, when it is long against one op, when somebody was asking, and when such gaps are
//! not the storage's rhythm (a quota per window is silent at the same phase each time). What answers is not out, be it slowly or with
//! refusals: those parts of a gap are throttled ([`throttled`]), and so are pauses that the load makes after a refusal. Levels and limiters
//! have methods of their own.

use plimsoll_model::Estimate;
use plimsoll_model::claim::{Outage, OutageKind, OutageSpan};

use crate::{math, rate, silence, words};

mod refused;

pub use refused::{LATER, ThrottledTimes, throttled};

/// Shorter ones are told by the latencies (guess).
pub const SHORTEST_S: f64 = 0.5;
/// So many ops should have ended in it, by the lower of the rates before and after: of Poisson arrivals none do so in one of
/// 5e8 such spans, and with four times their variance in one of 150 (guess; the false alarms were counted, METHODOLOGY.md).
pub const LEAST_OPS: f64 = 20.0;
/// Ops that end together leave gaps of their own length; an outage is longer by this factor (guess).
pub const OP_TIMES: f64 = 3.0;
/// Share of the rate around it that stragglers may make up (guess).
pub const STRAGGLERS: f64 = 0.05;
/// Stragglers end within so many slices of each other (guess).
const STRAGGLING_SLICES: usize = 3;
/// So many gaps may be a rhythm (guess).
const RHYTHM: usize = 5;
/// Gaps are a rhythm where this share of the times between their beginnings is within that of the usual one (or so many slices);
/// one that is longer than the usual by this factor is none of them (validated: false alarms under a quota per window).
const MOSTLY: f64 = 0.75;
const REGULAR: f64 = 0.1;
const REGULAR_SLICES: f64 = 2.0;
const LONGER: f64 = 1.5;
/// The rates around a gap are of so many times its length, and of this long at the least (guesses).
const AROUND: f64 = 3.0;
const AROUND_S: f64 = 3.0;
/// Recovered: the mean over a second, and over so many ops, reaches this share of the rate before (guesses; a hundred ops
/// vary by 10 %).
pub const RECOVERED: f64 = 0.9;
const RECOVERED_OVER_S: f64 = 1.0;
const RECOVERED_OPS: f64 = 100.0;

/// Without a single success: from this long on (guess). Where nothing failed or was refused either, an op may just take as long.
const NOTHING_S: f64 = 1.0;
const SILENCE_S: f64 = 5.0;

/// What was in flight when silence began may fail once, and a try more: so many times the ops in flight (guess).
const FEW_ENDED: f64 = 2.0;

/// What was seen, per slice of `dt_s`, from the start of a stage's load to its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen<'a> {
    /// Its index in the run.
    pub stage: u32,
    /// The endpoint, device or directory that was asked.
    pub at: &'a str,
    /// When the load began, and its first slice, seconds since the run's start.
    pub load_s: f64,
    /// Begin of the first slice.
    pub start_s: f64,
    /// Ops that ended `Ok`, per slice.
    pub ok: &'a [f64],
    /// Attempts that were refused, per slice.
    pub throttled: &'a [f64],
    /// Attempts that failed otherwise, per slice.
    pub failed: &'a [f64],
    /// Mean ops in flight.
    pub in_flight: &'a [f64],
    /// Mean slots of the load that paused after refusals, as the answers ask or by its own choice.
    pub held_back: &'a [f64],
    /// Length of a slice, seconds.
    pub dt_s: f64,
    /// What one op takes as a rule, seconds.
    pub op_s: f64,
    /// How long a refused attempt waits for its answer as a rule, seconds: a limiter may keep them waiting (a tarpit).
    pub refused_s: f64,
}

/// Slices `[from, to)`.
type Gap = (usize, usize);

/// All outages, in order. How the attempts in them ended is known by class only: whoever knows more names the outcome.
pub fn find(s: &Seen<'_>) -> Vec<Outage> {
    if !is_sound(s) {
        return Vec::new();
    }
    if s.ok.iter().all(|v| *v == 0.0) {
        return nothing_at_all(s);
    }
    let (mut silent, mut refused) = (Vec::new(), Vec::new());
    for parts in gaps(s).into_iter().map(|g| refused::parts(s, g)) {
        silent.extend(parts.silent);
        refused.extend(parts.refused);
    }
    let gaps: Vec<Gap> = silent.into_iter().filter(|g| asked(s, *g)).collect();
    // A single step is like itself at any distance, too: a rhythm takes several gaps.
    let window_s = silence::fixed_window(s.ok, s.dt_s).filter(|_| gaps.len() >= RHYTHM);
    let gaps = match window_s {
        Some(_) if long(s, &gaps).len() >= RHYTHM => longer_than_usual(s, &gaps),
        // Ops in step leave gaps that are no outage by their length, and one that is: it is held against their rhythm, and not against itself.
        Some(window_s) => {
            gaps.into_iter().filter(|g| (g.1 - g.0) as f64 * s.dt_s > LONGER * window_s).collect()
        }
        None => without_rhythm(s, gaps),
    };
    claimed(s, &joined(s, accepted(s, &gaps, &refused)))
}

/// Whether there is a series at all.
fn is_sound(s: &Seen<'_>) -> bool {
    let n = s.ok.len();
    let fits = [s.throttled, s.failed, s.in_flight, s.held_back].iter().all(|x| x.len() == n);
    fits && n > 0 && s.dt_s > 0.0 && s.ok.iter().all(|v| v.is_finite())
}

/// Gaps that are outages as claims: each with the rate of the whole load, with and without all of them.
fn claimed(s: &Seen<'_>, found: &[Gap]) -> Vec<Outage> {
    let outside = |(i, _): &(usize, &f64)| found.iter().all(|g| !(g.0..g.1).contains(i));
    let rest: Vec<f64> = s.ok.iter().enumerate().filter(outside).map(|(_, v)| *v).collect();
    let whole = [s.ok, &rest].map(|x| rate::estimate(x, s.dt_s).known().copied());
    (0..found.len()).filter_map(|i| outage(s, found, i, whole)).collect()
}

/// Runs of slices without a success.
fn gaps(s: &Seen<'_>) -> Vec<Gap> {
    let mut out: Vec<Gap> = Vec::new();
    for (i, _) in s.ok.iter().enumerate().filter(|(_, ok)| **ok == 0.0) {
        match out.last_mut() {
            Some(last) if last.1 == i => last.1 = i + 1,
            _ => out.push((i, i + 1)),
        }
    }
    out
}

/// Gaps without those that come at the same distance again and again: a quota per window, whatever its length is in slices.
fn without_rhythm(s: &Seen<'_>, gaps: Vec<Gap>) -> Vec<Gap> {
    match regular(&long(s, &gaps)) {
        Some(_) => longer_than_usual(s, &gaps),
        None => gaps,
    }
}

/// The distance, in slices, of gaps that come at the same one again and again.
fn regular(gaps: &[Gap]) -> Option<f64> {
    if gaps.len() < RHYTHM {
        return None;
    }
    let apart: Vec<f64> = gaps.windows(2).map(|w| (w[1].0 - w[0].0) as f64).collect();
    let usual = math::median(&apart);
    let off = (usual * REGULAR).max(REGULAR_SLICES);
    let alike = apart.iter().filter(|d| (*d - usual).abs() <= off).count() as f64;
    (alike >= MOSTLY * apart.len() as f64).then_some(usual)
}

/// Gaps that are long enough for an outage, but for one that was there from the start on: when that began is not known.
fn long(s: &Seen<'_>, gaps: &[Gap]) -> Vec<Gap> {
    let is_long = |g: &&Gap| g.0 > 0 && (g.1 - g.0) as f64 * s.dt_s >= SHORTEST_S - 1e-9;
    gaps.iter().filter(is_long).copied().collect()
}

/// Of gaps that are a rhythm: those that are none of it, by their length.
fn longer_than_usual(s: &Seen<'_>, gaps: &[Gap]) -> Vec<Gap> {
    let lengths: Vec<f64> = long(s, gaps).iter().map(|g| (g.1 - g.0) as f64).collect();
    if lengths.is_empty() {
        return Vec::new();
    }
    let longest = LONGER * math::median(&lengths);
    gaps.iter().filter(|g| (g.1 - g.0) as f64 > longest).copied().collect()
}

/// Those that are outages, the longest first: what surrounds the others is judged without them.
/// `refused`: what was throttled beside them tells nothing of the rate either.
fn accepted(s: &Seen<'_>, gaps: &[Gap], refused: &[Gap]) -> Vec<Gap> {
    let mut longest: Vec<Gap> = gaps.to_vec();
    longest.sort_by_key(|g| (std::cmp::Reverse(g.1 - g.0), g.0));
    let mut found: Vec<Gap> = Vec::new();
    for g in longest {
        if is_outage(s, g, gaps, &[&found[..], refused].concat()) {
            found.push(g);
        }
    }
    found.sort_unstable();
    found
}

/// Outages with nothing but stragglers between them are one.
fn joined(s: &Seen<'_>, found: Vec<Gap>) -> Vec<Gap> {
    let mut out: Vec<Gap> = Vec::new();
    for g in &found {
        match out.last_mut() {
            Some(last) if g.0 - last.1 <= STRAGGLING_SLICES && only_stragglers(s, (last.0, g.1), &found) => {
                last.1 = g.1;
            }
            _ => out.push(*g),
        }
    }
    out
}

fn only_stragglers(s: &Seen<'_>, g: Gap, found: &[Gap]) -> bool {
    let length_s = (g.1 - g.0) as f64 * s.dt_s;
    let (before, after) = around(s, g, found, length_s);
    let rate = [before, after].into_iter().flatten().reduce(f64::min);
    rate.is_some_and(|r| s.ok[g.0..g.1].iter().sum::<f64>() <= STRAGGLERS * r * length_s)
}

/// Whether somebody waited for an answer.
fn asked(s: &Seen<'_>, g: Gap) -> bool {
    let of = |x: &[f64]| x[g.0..g.1].iter().sum::<f64>();
    of(s.failed) + of(s.throttled) > 0.0 || of(s.in_flight) >= 0.5 * (g.1 - g.0) as f64
}

fn is_outage(s: &Seen<'_>, g: Gap, gaps: &[Gap], found: &[Gap]) -> bool {
    let length_s = (g.1 - g.0) as f64 * s.dt_s;
    if length_s < SHORTEST_S - 1e-9 || length_s < OP_TIMES * s.op_s {
        return false;
    }
    let (before, after) = around(s, g, found, length_s);
    // Gaps of about this length that come often are how this storage works.
    let alike = gaps.iter().filter(|o| (o.1 - o.0) * 2 >= g.1 - g.0).count() as f64;
    let covered = alike * length_s / (s.ok.len() as f64 * s.dt_s);
    if alike >= 10.0 && covered > 0.1 {
        return false;
    }
    let expected = match (before, after) {
        (Some(a), Some(b)) => a.min(b),
        (Some(a), None) | (None, Some(a)) => a,
        (None, None) => return false,
    };
    expected * length_s >= LEAST_OPS
}

/// Ops per second before and after a gap, of slices that lie in no longer outage.
fn around(s: &Seen<'_>, g: Gap, found: &[Gap], length_s: f64) -> (Option<f64>, Option<f64>) {
    let reach = ((AROUND * length_s).max(AROUND_S) / s.dt_s).ceil() as usize;
    let mean = |from: usize, to: usize| {
        let free = |i: &usize| found.iter().all(|o| !(o.0..o.1).contains(i));
        let x: Vec<f64> = (from..to).filter(free).map(|i| s.ok[i]).collect();
        // A few slices say nothing of a rate: then the other side has to.
        (x.len() as f64 * s.dt_s >= SHORTEST_S).then(|| math::mean(&x) / s.dt_s)
    };
    (mean(g.0.saturating_sub(reach), g.0), mean(g.1, (g.1 + reach).min(s.ok.len())))
}

fn outage(s: &Seen<'_>, found: &[Gap], i: usize, whole: [Option<Estimate>; 2]) -> Option<Outage> {
    let (g, n) = (found[i], s.ok.len());
    let sum = |x: &[f64]| x[g.0..g.1].iter().sum::<f64>();
    let at = |slice: usize| s.start_s + slice as f64 * s.dt_s;
    let since = if i == 0 { 0 } else { found[i - 1].1 };
    let until = found.get(i + 1).map_or(n, |next| next.0);
    let before = rate::estimate(&s.ok[since..g.0], s.dt_s).known().copied().filter(|e| e.value > 0.0);
    let back = before.and_then(|b| recovered(&s.ok[g.1..until], s.dt_s, b.value));
    let rest = &s.ok[g.1 + back.unwrap_or(0)..until];
    let after = rate::estimate(rest, s.dt_s).known().copied().filter(|_| g.1 < n);
    let (failed, throttled) = (sum(s.failed), sum(s.throttled));
    let in_flight = sum(s.in_flight) / (g.1 - g.0) as f64;
    let kind = match () {
        // What was in flight when it began fails once: that is silence with a noise at its edge.
        () if failed + throttled <= FEW_ENDED * in_flight => OutageKind::Silent,
        () => OutageKind::Failing,
    };
    let span = OutageSpan {
        stage: s.stage,
        load_s: s.load_s,
        at: s.at.to_owned(),
        from_s: at(g.0),
        to_s: (g.1 < n).then(|| at(g.1)),
        seen_until_s: at(n),
    };
    let during_per_s = sum(s.ok) / ((g.1 - g.0) as f64 * s.dt_s);
    let made = Outage::new(span, kind, during_per_s, (failed + throttled) as u64).ok()?;
    let made = made.rates([before, after], whole).ok()?.attempts(None, in_flight);
    Some(made.recovered(back.map(|k| k as f64 * s.dt_s)))
}

/// Slices after the end of a gap from which on the mean is the rate's again.
fn recovered(ok: &[f64], dt_s: f64, rate_per_s: f64) -> Option<usize> {
    let window_s = RECOVERED_OVER_S.max(RECOVERED_OPS / rate_per_s);
    let window = ((window_s / dt_s).round() as usize).max(1);
    let enough = RECOVERED * rate_per_s * window as f64 * dt_s;
    ok.windows(window).position(|w| w.iter().sum::<f64>() >= enough)
}

/// Not one success. What answers wrongly from the first request to the last has no rate before or after it to be held against:
/// that is no outage, its errors say enough (V01), and so do refusals (F01, which names both that may be behind them). Where nothing
/// was answered at all there is no error either to say so.
fn nothing_at_all(s: &Seen<'_>) -> Vec<Outage> {
    let whole = (0, s.ok.len());
    let length_s = whole.1 as f64 * s.dt_s;
    let sum = |x: &[f64]| x.iter().sum::<f64>();
    let ended = sum(s.failed) + sum(s.throttled);
    // By what ops take elsewhere in this load, one slot alone would have ended so many: large ones at a slow endpoint may not be through yet.
    let least_s = if ended == 0.0 { SILENCE_S.max(LEAST_OPS * s.op_s) } else { NOTHING_S };
    // A few refusals before it went silent do not say why nothing came after them.
    let is_refused = ended > FEW_ENDED * sum(s.in_flight) / s.ok.len() as f64;
    if length_s < least_s || sum(s.failed) > sum(s.throttled) || is_refused || !asked(s, whole) {
        return Vec::new();
    }
    claimed(s, &[whole])
}

/// An outage in words.
pub fn sentence(o: &Outage) -> String {
    // All else that is said of times counts from the load's start, not from the run's.
    let clock = |s: f64| clock(s - o.span.load_s);
    let when = match o.span.to_s {
        Some(to_s) => format!("From {} to {} into the load", clock(o.span.from_s), clock(to_s)),
        None => format!("From {} into the load on", clock(o.span.from_s)),
    };
    let lasted = words::span(o.length_s());
    let lasted = match o.span.to_s {
        Some(_) => format!("for {lasted}"),
        None => format!("for {lasted}, until the load ended"),
    };
    let attempts = attempts(o);
    let what = match o.kind {
        OutageKind::Silent if o.ended == 0 => {
            format!("answered {}, with {:.0} ops in flight", nothing(o), o.in_flight)
        }
        OutageKind::Silent => format!("answered {} ({attempts})", nothing(o)),
        OutageKind::Failing if o.outcome.as_deref() == Some("no_connection") => {
            format!("was unreachable: no connection could be made ({} attempts failed)", o.ended)
        }
        OutageKind::Failing => format!("answered {} but errors ({attempts})", nothing(o)),
        OutageKind::Throttled => format!(
            "refused {} ({attempts}): either it was down behind a proxy, or a limiter let nothing through",
            if o.during_per_s > 0.0 { "nearly everything" } else { "everything" }
        ),
    };
    let rate = |e: &Estimate| words::ops_rate(e);
    let mut out = format!("{when}, {lasted}, **{} {what}**", o.span.at);
    match (&o.before_per_s, &o.after_per_s) {
        (Some(b), Some(a)) => out += &format!(": {} before it, {} after it", rate(b), rate(a)),
        (Some(b), None) => out += &format!(": {} before it", rate(b)),
        (None, Some(a)) => out += &format!(": {} after it", rate(a)),
        (None, None) => {}
    }
    match (o.span.to_s, o.recover_s) {
        (Some(_), Some(s)) if s < 0.05 => out += ", immediately",
        (Some(_), Some(s)) => out += &format!(", after another {} of recovery", words::span(s)),
        (Some(_), None) if o.before_per_s.is_some() => out += "; the rate was not seen to recover",
        _ => {}
    }
    out.push('.');
    match (&o.with_per_s, &o.without_per_s) {
        (Some(with), Some(e)) => {
            out += &format!(
                " The mean over the whole load is {}; outside of outages it was {}.",
                rate(with),
                rate(e)
            )
        }
        // Of the whole load there is no mean with an interval, and the other one is not what a user got.
        (None, Some(e)) => {
            out +=
                &format!(" Outside of outages the rate was {}, and over the whole load it was less.", rate(e))
        }
        (_, None) => {}
    }
    out
}

/// A straggler is not nothing.
fn nothing(o: &Outage) -> &'static str {
    if o.during_per_s > 0.0 { "almost nothing" } else { "nothing" }
}

/// How many ended without success, and how, as far as that is known.
fn attempts(o: &Outage) -> String {
    let most = o.outcome.as_deref().map_or(String::new(), |name| format!(", most of them {name}"));
    format!("{} attempts without success{most}", o.ended)
}

/// A time since the load's start.
fn clock(s: f64) -> String {
    format!("{} s", words::fixed(s, 1))
}
