//! Outages: spans in which storage that was being asked answered next to nothing.
//!
//! A gap is a run of slices in which no op succeeded (a straggler among them ends no gap). It is an outage when by the rates
//! around it many ops should have ended in it, when it is long against one op, when somebody was asking, and when such gaps are
//! not the storage's rhythm (a quota per window is silent at the same phase each time) nor the rest of a limiter's window (it
//! refuses what comes then, and the burst beside the gap makes up for it). What is slow, but answers, is no outage: levels and
//! limiters have methods of their own.

use plimsoll_model::Estimate;
use plimsoll_model::claim::{Outage, OutageKind, OutageSpan};

use crate::{math, rate, silence, words};

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
/// A limiter is at work where it refuses in this share of the slices outside of the gap in question (guess: most).
const AT_WORK: f64 = 0.5;
/// It refused the gap where this share of its slices saw refusals (guess: nearly all; one slice at each edge may be without).
const REFUSED: f64 = 0.8;
/// A gap is made up for where gap and burst together come to this share of the rate around them. Storage that was away comes to half
/// of its rate at the most: as long as the gap, and next to it, it can only run at that rate. (Guess: half way to all of it.)
const MADE_UP: f64 = 0.75;
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
}

/// Slices `[from, to)`.
type Gap = (usize, usize);

/// All outages, in order. How the attempts in them ended is known by class only: whoever knows more names the outcome.
pub fn find(s: &Seen<'_>) -> Vec<Outage> {
    let n = s.ok.len();
    let others = [s.throttled, s.failed, s.in_flight, s.held_back];
    let fits = others.iter().all(|x| x.len() == n);
    if !fits || n == 0 || s.dt_s.is_nan() || s.dt_s <= 0.0 || s.ok.iter().any(|v| !v.is_finite()) {
        return Vec::new();
    }
    if s.ok.iter().all(|v| *v == 0.0) {
        return nothing_at_all(s);
    }
    let refused_slices = s.throttled.iter().filter(|n| **n > 0.0).count();
    let gaps: Vec<Gap> = gaps(s).into_iter().filter(|g| asked(s, *g)).collect();
    // The rhythm is that of all gaps: those that a window's rest explains one by one would leave a few, at no distance.
    // A single step is like itself at any distance, too: a rhythm takes several gaps.
    let gaps = if gaps.len() >= RHYTHM && silence::fixed_window(s.ok, s.dt_s).is_some() {
        longer_than_usual(s, &gaps)
    } else {
        without_rhythm(s, gaps)
    };
    let gaps: Vec<Gap> = gaps.into_iter().filter(|g| !of_a_window(s, *g, refused_slices)).collect();
    claimed(s, &joined(s, accepted(s, &gaps)))
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
    let regular = long(s, &gaps);
    if regular.len() < RHYTHM {
        return gaps;
    }
    let apart: Vec<f64> = regular.windows(2).map(|w| (w[1].0 - w[0].0) as f64).collect();
    let usual = math::median(&apart);
    let off = (usual * REGULAR).max(REGULAR_SLICES);
    let alike = apart.iter().filter(|d| (*d - usual).abs() <= off).count() as f64;
    if alike < MOSTLY * apart.len() as f64 {
        return gaps;
    }
    longer_than_usual(s, &gaps)
}

/// Whether a limiter that is at work all the time refused the rest of its window: what it had let through in a burst before (or lets
/// through after, where the window began before the load) comes with the gap to the rate that it lets through anyway.
fn of_a_window(s: &Seen<'_>, g: Gap, refused_slices: usize) -> bool {
    let length = g.1 - g.0;
    let inside = s.throttled[g.0..g.1].iter().filter(|n| **n > 0.0).count();
    let outside = (refused_slices - inside) as f64 / (s.ok.len() - length).max(1) as f64;
    let failed = s.failed[g.0..g.1].iter().sum::<f64>() > 0.0;
    if failed || outside < AT_WORK || (inside as f64) < REFUSED * length as f64 {
        return false;
    }
    let (before, after) = around(s, g, &[], length as f64 * s.dt_s);
    let rate = before.into_iter().chain(after).reduce(f64::min).filter(|r| *r > 0.0);
    let Some(per_slice) = rate.map(|r| MADE_UP * r * s.dt_s) else { return false };
    let made_up = |beside: &mut dyn Iterator<Item = &f64>| {
        let mut passed = 0.0;
        beside.take(length).zip(length + 1..).any(|(ok, slices)| {
            passed += ok;
            passed >= per_slice * slices as f64
        })
    };
    made_up(&mut s.ok[..g.0].iter().rev()) || made_up(&mut s.ok[g.1..].iter())
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
fn accepted(s: &Seen<'_>, gaps: &[Gap]) -> Vec<Gap> {
    let mut longest: Vec<Gap> = gaps.to_vec();
    longest.sort_by_key(|g| (std::cmp::Reverse(g.1 - g.0), g.0));
    let mut found: Vec<Gap> = Vec::new();
    for g in longest {
        if is_outage(s, g, gaps, &found) {
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

/// Whether somebody waited for an answer, or was refused one. Slots that all pause after one refusal each ask nobody: that is what their
/// load does. Who is refused again after its pause has asked.
fn asked(s: &Seen<'_>, g: Gap) -> bool {
    let of = |x: &[f64]| x[g.0..g.1].iter().sum::<f64>();
    let slots = (of(s.held_back) + of(s.in_flight)) / (g.1 - g.0) as f64;
    if of(s.failed) == 0.0 && of(s.held_back) > of(s.in_flight) {
        return of(s.throttled) > slots;
    }
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
        () if throttled > failed => OutageKind::Throttled,
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
            out += &format!(" The mean with outages is {}; without outages, {}.", rate(with), rate(e))
        }
        (None, Some(e)) => out += &format!(" Without outages, the rate was {}.", rate(e)),
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
