//! Claims on the lines of a run: what was refused, what the mix was, rates, and how long they were seen.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::analysis::{LineSpan, MeasuredLevel};
use plimsoll_model::claim::{
    Attempted, ClaimKind, Fact, Horizon, MixNotDelivered, Place, Rate, RateWord, Refusing, Stretch, VoidLine,
    figure,
};
use plimsoll_model::summary::{RunSummary, WorkloadSummary};
use plimsoll_model::{Analysis, Estimate, Finding, Outcome};

use super::derive::Claims;

/// How what is undetermined about a line begins.
pub(super) const RATE_OF: &str = "the rate of ";

/// Attempts of a line that ended, and those of them that were refused.
pub(super) fn attempts(w: &WorkloadSummary) -> (u64, u64) {
    let refused = w.count(Outcome::is_throttled);
    (refused + w.count(Outcome::is_ok) + w.count(Outcome::is_failure), refused)
}

/// The same over all lines of one op, each counted once; `total`: over all.
pub(super) fn attempts_of(s: &RunSummary, op: &str) -> (u64, u64) {
    let mine = |w: &&WorkloadSummary| !w.is_total() && (op == "total" || w.op == op);
    s.workloads.iter().filter(mine).map(attempts).fold((0, 0), |(n, r), (a, b)| (n + a, r + b))
}

fn is_429(o: Outcome) -> bool {
    o == Outcome::Http429
}

/// A limiter lets something through: refusals that came where nothing else did may be those of a proxy before a server that is down,
/// and are told as both.
fn may_all_be_a_proxys(s: &RunSummary, a: &Analysis) -> bool {
    let down: u64 = a.throttled.iter().filter(|t| t.may_be_down).map(|t| t.refused).sum();
    let refused = attempts_of(s, "total").1;
    down > 0 && down as f64 >= 0.99 * refused as f64
}

/// Whether the limiter's refusals are said, op by op.
pub(super) fn refusals(s: &RunSummary, a: &Analysis, out: &mut Claims) {
    // A share that is refused of however few is no rate limiter's, and is told with what binds.
    if may_all_be_a_proxys(s, a) || s.limits.iter().any(|l| l.binding == "share") {
        return;
    }
    let mut ops: Vec<&str> = s.workloads.iter().filter(|w| !w.is_total()).map(|w| w.op.as_str()).collect();
    ops.sort_unstable();
    ops.dedup();
    if let Some(w) = of_one_limiter(s) {
        let (seen, refused) = attempts(w);
        let passed = w.attempts_per_s * w.count(Outcome::is_ok) as f64 / seen.max(1) as f64;
        let passing = w.ops_per_s.filter(|_| w.valid);
        let made = Refusing::new(&w.op, seen, refused, passing, passed)
            .map(|r| ClaimKind::Refusing(r.held_back(w.client.held_back).of_429(w.count(is_429))));
        out.add_if(Some(w.label()), made);
        return;
    }
    for op in ops {
        let mine = || s.workloads.iter().enumerate().filter(|(_, w)| w.op == op && !w.is_total());
        // Share and rate are of one line, and so of one stretch of load. Where another load ran beside it, what passes is no more
        // than its part: a line that had the limiter to itself tells more.
        let most = mine().max_by_key(|(i, w)| {
            let (_, refused) = attempts(w);
            (refused > 0, beside(*i, s, a).is_empty(), refused)
        });
        let Some((i, w)) = most else { continue };
        let (seen, refused) = attempts(w);
        let ok = w.count(Outcome::is_ok) as f64;
        let passed = if seen > 0 { w.attempts_per_s * ok / seen as f64 } else { 0.0 };
        let passing = w.ops_per_s.filter(|_| w.valid);
        let on = Stretch {
            line: if mine().count() > 1 { w.label() } else { String::new() },
            beside: beside(i, s, a),
        };
        let made = Refusing::new(op, seen, refused, passing, passed).map(|r| {
            r.on(on)
                .after_burst(cap_after_burst(s, op))
                .held_back(w.client.held_back)
                .may_be_down(may_be_down(s, w))
                .of_429(w.count(is_429))
        });
        let made = made.map(ClaimKind::Refusing);
        out.add_if(Some(w.label()), made);
    }
}

/// The cap on these ops that was seen after a burst had ended.
fn cap_after_burst(s: &RunSummary, op: &str) -> Option<Estimate> {
    let caps = s.limits.iter().filter(|l| l.op_class == op).filter_map(|l| l.ops_per_s.as_ref());
    caps.filter(|b| b.proved && b.capacity.is_some()).find_map(|b| b.sustained)
}

/// How far the refused share of an op may lie from that of all, for one limiter to be what refuses them (a choice).
const ALIKE: f64 = 0.05;

/// The total of a mix whose ops are refused alike: one limiter on all of them, and not as many as there are ops.
fn of_one_limiter(s: &RunSummary) -> Option<&WorkloadSummary> {
    let mut totals = s.workloads.iter().filter(|w| w.is_total());
    let (total, None) = (totals.next()?, totals.next()) else { return None };
    let share = |(n, refused): (u64, u64)| refused as f64 / n.max(1) as f64;
    let all = attempts(total);
    let mut each = s.workloads.iter().filter(|w| !w.is_total());
    let alike =
        |w: &WorkloadSummary| w.name == total.name && (share(attempts(w)) - share(all)).abs() <= ALIKE;
    (all.1 > 0 && each.all(alike)).then_some(total)
}

/// Ops of the other workloads that ran at the same time as this line. The kinds of one mix are one load.
fn beside(line: usize, s: &RunSummary, a: &Analysis) -> Vec<String> {
    let here = || a.spans.iter().filter(|x| x.line == line);
    let with = |x: &&LineSpan| here().any(|h| h.stage == x.stage && h.workload != x.workload);
    let others = a.spans.iter().filter(with).filter_map(|x| s.workloads.get(x.line)).map(|w| w.op.clone());
    others.collect::<BTreeSet<String>>().into_iter().collect()
}

/// A mix that did not come as it was asked for: of the totals, the one that is furthest off.
pub(super) fn mixes(s: &RunSummary, out: &mut Claims) {
    let off =
        |m: &MixNotDelivered| m.asked.iter().map(|(k, a)| (a - m.delivered[k]).abs()).fold(0.0, f64::max);
    let judged = |total: &WorkloadSummary| {
        let of = |w: &&WorkloadSummary| w.name == total.name && !w.is_total();
        let ok: BTreeMap<String, u64> =
            s.workloads.iter().filter(of).map(|w| (w.op.clone(), w.count(Outcome::is_ok))).collect();
        Some((total.label(), MixNotDelivered::new(&total.mix, &ok).ok()?))
    };
    let found = s.workloads.iter().filter(|w| !w.mix.is_empty()).filter_map(judged);
    if let Some((label, worst)) = found.max_by(|a, b| off(&a.1).total_cmp(&off(&b.1))) {
        out.add(Some(label), ClaimKind::MixNotDelivered(worst));
    }
}

pub(super) fn place(w: &WorkloadSummary) -> Place {
    Place {
        op: w.op.clone(),
        size_bytes: w.size_bytes,
        concurrency: w.concurrency,
        offered_per_s: w.offered_per_s,
        jobs: w.together,
        repeats: w.repeats,
        window_s: w.window_s,
    }
}

/// "Sustained" is kept for what held one level for as long as the user needs; all else was only measured.
pub(super) fn rates(s: &RunSummary, a: &Analysis, goal_s: f64, out: &mut Claims) {
    let held = |line: usize, w: &WorkloadSummary| {
        w.horizon_s >= goal_s && a.holds.iter().any(|h| h.line == line && h.verdict == "steady")
    };
    for (i, w) in s.workloads.iter().enumerate() {
        // Syncs that belong to writes have no rate of their own, and need none.
        let is_load = w.op != "fsync" || w.ops_per_s.is_some();
        // What jobs did together stands for each of them.
        let stands = w.together > 0 || s.workloads.iter().all(|o| o.together == 0 || o.op != w.op);
        if !(is_load && stands) {
            continue;
        }
        let label = Some(w.label());
        let of = super::words::named(&place(w));
        if let Some(said) = super::imported::reported(s, w).filter(|_| w.valid) {
            out.add_or(label, said, format!("{RATE_OF}{of}"));
            continue;
        }
        let Some(ops) = w.ops_per_s else {
            let why = "the findings say why";
            out.add(label, plimsoll_model::claim::Undetermined::new(format!("{RATE_OF}{of}"), why));
            continue;
        };
        if !w.valid {
            let made = VoidLine::new(place(w), s.codes_of(w), Some(ops)).map(ClaimKind::VoidLine);
            out.add_if(label, made);
            continue;
        }
        if let Some(f) = s.findings.iter().find(|f| is_fall(f, i, w, a) || is_shape(f, i, w, a)) {
            // Of levels that differ the mean is of neither: they are told, each by itself.
            let said = Fact::new(vec![f.code.clone()], f.text.clone()).map(ClaimKind::Fact);
            out.add_or(label, said, format!("{RATE_OF}{of}"));
            continue;
        }
        // What a longer measurement would not settle.
        if figure(ops, Some(w.attempts_per_s)).is_err() && throttled_to_nothing(s, w).next().is_some() {
            let why = "its interval is as wide as the value itself: nothing got through for a part of the time (F38)";
            out.add(label, plimsoll_model::claim::Undetermined::new(format!("{RATE_OF}{of}"), why));
            continue;
        }
        let word = if held(i, w) { RateWord::Sustained } else { RateWord::Measured };
        let bytes = w.bytes_per_s.filter(|b| b.value > 0.0);
        let ok = w.count(Outcome::is_ok);
        let attempted = Attempted { ok, per_s: w.attempts_per_s };
        let made = Rate::new(word, place(w), ops, bytes, attempted).map(ClaimKind::Rate);
        out.add_or(label, made, format!("{RATE_OF}{of}"));
    }
}

/// What is told of times in which everything was refused as the line ran.
fn throttled_to_nothing<'a>(s: &'a RunSummary, w: &WorkloadSummary) -> impl Iterator<Item = &'a Finding> {
    let label = w.label();
    let is_of = move |f: &&Finding| f.workload.as_ref().is_none_or(|on| *on == label);
    s.findings.iter().filter(|f| f.name == super::THROTTLED_TO_NOTHING).filter(is_of)
}

/// Whether what was refused may be a proxy's whose storage was down.
fn may_be_down(s: &RunSummary, w: &WorkloadSummary) -> bool {
    let says = |f: &Finding| f.evidence.iter().any(|(of, what)| [of.as_str(), what] == super::MAY_BE_DOWN);
    throttled_to_nothing(s, w).any(says) || is_of_a_server_that_was_away(s, w)
}

/// Few, none of them 429, where a server was out or started again meanwhile: one that is not ready answers 503, too. (The share is a choice.)
pub fn is_of_a_server_that_was_away(s: &RunSummary, w: &WorkloadSummary) -> bool {
    const FEW: f64 = 0.05;
    let (seen, refused) = attempts(w);
    let away = s.findings.iter().any(|f| f.code == "F60" || f.code == "F74");
    away && refused > 0 && w.count(is_429) == 0 && (refused as f64) < FEW * seen as f64
}

/// Whether the line's rate fell for good while it was measured: from one cycle of a benchmark to the next, or within its window.
fn is_fall(f: &Finding, line: usize, w: &WorkloadSummary, a: &Analysis) -> bool {
    let inside = |at_s: f64| {
        let mut spans = a.spans.iter().filter(|x| x.line == line);
        spans.any(|x| x.window_start_s < at_s && at_s < x.window_end_s)
    };
    let cliff = || a.holds.iter().filter(|h| h.line == line).flat_map(|h| &h.cliffs).any(|c| inside(c.at_s));
    let of_cycles = f.evidence.iter().any(|(name, _)| name == "cycle");
    f.code == "F30" && f.workload.as_deref() == Some(w.label().as_str()) && (of_cycles || cliff())
}

/// Whether the line's mean is one over levels that grow, or over teeth. Where the window lies within one level, its mean is that level's.
fn is_shape(f: &Finding, line: usize, w: &WorkloadSummary, a: &Analysis) -> bool {
    let inside = |l: &MeasuredLevel| {
        let mut spans = a.spans.iter().filter(|x| x.line == line);
        spans.any(|x| x.window_start_s < l.end_s && l.start_s < x.window_end_s)
    };
    let levels = || a.holds.iter().filter(|h| h.line == line).flat_map(|h| &h.levels).filter(|l| inside(l));
    f.workload.as_deref() == Some(w.label().as_str())
        && match f.code.as_str() {
            "F36" => levels().count() > 1,
            "F37" => true,
            _ => false,
        }
}

/// No rate without its horizon: which bucket this does not exclude.
pub(super) fn horizon(s: &RunSummary, goal_s: f64, out: &mut Claims) {
    let usable = s.workloads.iter().filter(|w| w.ops_per_s.is_some_and(|e| e.value > 0.0));
    let Some(w) = usable.max_by(|a, b| a.horizon_s.total_cmp(&b.horizon_s)) else { return };
    let known = w.ops_per_s.filter(|_| w.valid).and_then(|e| figure(e, Some(w.attempts_per_s)).ok());
    let bucket = known.map(|ops| ops.value / 2.0 * w.horizon_s);
    out.add_if(Some(w.label()), Horizon::new(w.horizon_s, goal_s, None, bucket).map(ClaimKind::Horizon));
}
