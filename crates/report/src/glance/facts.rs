//! The facts at a glance: rate, throughput, response, limit; of a limit search what was found.

use plimsoll_model::claim::{BestConcurrency, Claim, ClaimKind, Unit};
use plimsoll_model::finding::Level;
use plimsoll_model::summary::{LimitSummary, WorkloadSummary};
use plimsoll_model::units::format_latency_ns;
use plimsoll_model::{Estimate, RunSummary};
use plimsoll_stats::words;

use super::{GlanceFact, fact, first_sentence, is_of_limits, kinds, per_s, searches, upper};
use crate::run::RunReport;
use crate::{number, tables};

/// How an advice begins that names tools' settings, and what it is for.
const SETTINGS: [(&str, &str); 2] = [("To stay below", "stay below"), ("To keep to", "in flight")];
/// The same for generators of HTTP load.
const GENERATORS: (&str, &str) = ("Load generators", "generators");

/// Those that stand below the sentence, in the order in which they are asked for.
pub(super) fn facts(r: &RunReport) -> Vec<GlanceFact> {
    let mut out = measured(r);
    if r.summary.answered {
        out.extend(asked(&r.summary));
    }
    if let Some(from) = &r.summary.environment.imported {
        let hash = from.sha256.get(..12).unwrap_or_default();
        out.insert(0, fact("imported", format!("{}, from {} (sha256 {hash}…)", from.who(), from.file)));
    }
    out
}

/// Answers to what was asked beside the rate.
fn asked(s: &RunSummary) -> Vec<GlanceFact> {
    const FOUND: [(&str, &str); 4] =
        [("F50", "ceiling"), ("F46", "shared"), ("F41", "refusals"), ("F42", "window")];
    let several = searches::bests(s).count() > 1;
    let of = |c: &Claim, text: &str| match &c.kind {
        ClaimKind::Scope(_) => Some(fact("scope", first_sentence(text))),
        ClaimKind::LoadHeld(_) => {
            let op = c.subject.as_deref().filter(|_| several).map(|op| format!("{}: ", upper(op)));
            Some(fact("load", op.unwrap_or_default() + &first_sentence(text)))
        }
        ClaimKind::MixNotDelivered(_) => Some(fact("mix", text.trim_end_matches('.').to_owned())),
        _ => None,
    };
    let claims = s.claims.iter().filter_map(|c| of(c, &c.text.replace("**", "")));
    let found = FOUND.iter().filter_map(|(code, name)| {
        let f = s.findings.iter().find(|f| f.code == *code && f.level == Level::Info)?;
        // A comparison has its code for what the plans differ in.
        let name = if f.name == "factor" { "plans" } else { name };
        Some(fact(name, first_sentence(&f.text)))
    });
    claims.chain(found).collect()
}

fn measured(r: &RunReport) -> Vec<GlanceFact> {
    let s = &r.summary;
    // Figures of what is void are in the details only.
    if !s.answered && s.workloads.len() != 1 {
        return Vec::new();
    }
    if is_of_limits(s) {
        return if s.answered { limit_facts(r) } else { Vec::new() };
    }
    if s.workloads.len() > 1 && !tables::is_search(r) {
        return Vec::new();
    }
    let best: Vec<&BestConcurrency> = searches::bests(s).collect();
    if !best.is_empty() || r.analysis.saturations.len() > 1 {
        return searches::facts(r, &best);
    }
    if tables::is_search(r) {
        // A search without an answer has no line that stands for it.
        return vec![limited_by(r)];
    }
    let line = s.workloads.iter().find(|w| w.op == "total").or(s.workloads.first());
    line.map_or_else(Vec::new, |w| line_facts(r, w))
}

fn line_facts(r: &RunReport, w: &WorkloadSummary) -> Vec<GlanceFact> {
    let s = &r.summary;
    let mut out = Vec::new();
    // A mean over a step is no rate: where none is claimed, none is quoted.
    let claimed = kinds(s).any(|k| matches!(k, ClaimKind::Rate(_)))
        || kinds(s).all(|k| matches!(k, ClaimKind::Status(_)));
    if w.valid && s.answered && claimed {
        let offered = match w.offered_per_s {
            Some(o) => format!("   of {} offered, at most {} in flight", words::about(o, 4), w.concurrency),
            None => format!("   {} in flight", w.concurrency),
        };
        let unit = if tables::is_block(s) { "IOPS" } else { "op/s" };
        let rate =
            w.ops_per_s.as_ref().map_or("not known".into(), |e| format!("{} {unit}", number::estimate(e)));
        out.push(fact("rate", rate + &offered));
        if let Some(b) = w.bytes_per_s.as_ref().filter(|_| tables::moves_bytes(w)) {
            let (mib, mb) =
                (number::estimate(&b.scaled(1.0 / number::MIB)), number::value(&b.scaled(1.0 / number::MB)));
            out.push(fact("throughput", format!("{mib} MiB/s   {mb} MB/s")));
        }
        if let Some(l) = &w.latency_ns.response {
            let at =
                |name: &str, ns: Option<u64>| ns.map(|n| format!("{name} {}", format_latency_ns(n as f64)));
            let all = [at("p50", l.p50), at("p99", l.p99), at("p99.9", l.p999), at("max", Some(l.max))];
            out.push(fact("response", all.into_iter().flatten().collect::<Vec<_>>().join("   ")));
        }
    }
    let (refused, failed) = (tables::throttled(w), tables::failed(w));
    let ok = w.count(plimsoll_model::Outcome::is_ok);
    let share = |n: u64| {
        if n > 0 {
            format!(" ({})", number::percent(n as f64 / (ok + refused + failed) as f64))
        } else {
            String::new()
        }
    };
    if ok + refused + failed == 0 && r.summary.environment.imported.is_some() {
        return out;
    }
    out.push(fact(
        "ops",
        format!(
            "{} ok   {} refused{}   {} failed{}",
            number::count(ok),
            number::count(refused),
            share(refused),
            number::count(failed),
            share(failed)
        ),
    ));
    // Who only read another tool's figures saw nothing of what was busy.
    if r.summary.environment.imported.is_none() || !r.analysis.bottlenecks.is_empty() {
        out.push(limited_by(r));
    }
    out
}

/// What was at its limit, how surely; an honest answer where nothing was.
pub(super) fn limited_by(r: &RunReport) -> GlanceFact {
    let with = |verdict: &str| r.analysis.bottlenecks.iter().find(|b| b.verdict == verdict);
    if let Some(b) = with("likely") {
        return fact("limited by", format!("probably the {}", b.candidate));
    }
    let text = match (with("proved"), with("the offered rate was met"), with("consistent with")) {
        (Some(b), ..) if b.measured.is_empty() => b.candidate.clone(),
        (Some(b), ..) => format!("{}, {} (threshold {})", b.candidate, b.measured, b.threshold),
        (None, Some(_), _) => "nothing: the offered rate was achieved".into(),
        (None, None, Some(b)) => {
            format!("possibly {}, {} (threshold {})", b.candidate, b.measured, b.threshold)
        }
        (None, None, None) => "not found".into(),
    };
    fact("limited by", text)
}

fn limit_facts(r: &RunReport) -> Vec<GlanceFact> {
    let s = &r.summary;
    let mut out = Vec::new();
    for l in &s.limits {
        let why = |unit: &str| {
            let name = format!("{unit}: why a limit");
            l.evidence.iter().find(|(n, _)| *n == name).map_or(String::new(), |(_, t)| format!(": {t}"))
        };
        let several =
            if s.limits.len() > 1 { format!("{} ", l.op_class.to_uppercase()) } else { String::new() };
        let limited = l.binding == "in_flight" || l.refused.is_some_and(|x| x >= LimitSummary::REFUSES);
        for (unit, bucket) in [("ops", &l.ops_per_s), ("bytes", &l.bytes_per_s)] {
            let Some(b) = bucket.as_ref().filter(|b| b.sustained.is_some()) else { continue };
            let show = |e: &Estimate| per_s(if unit == "ops" { Unit::Ops } else { Unit::Bytes }, e);
            let rate = b.sustained.as_ref().map_or("not known".into(), show);
            let text = match b.proved {
                true if l.is_likely_only() => format!("{several}{rate}, likely{}", why(unit)),
                true => format!("{several}{rate}, proved{}", why(unit)),
                false if limited => format!("{several}{rate} seen"),
                false => format!("{several}{rate} seen; no limit proved"),
            };
            out.push(fact(unit, text));
            if let Some(c) = &b.capacity {
                // A bound is an interval without an upper end.
                let tokens = match (unit, words::is_boundless(c)) {
                    ("ops", true) => format!("at least {} ops", words::about(c.value, 3)),
                    (_, true) => {
                        let (unit, k) = words::bytes_unit(c.value);
                        format!("at least {} {unit}", words::about(c.value / k, 3))
                    }
                    ("ops", false) => format!("{} ops", words::plus_minus(c)),
                    (_, false) => words::bytes(c),
                };
                let full = b.full_again_s.as_ref().map_or(String::new(), |f| {
                    format!(", full again after {} of rest", words::span(f.value))
                });
                out.push(fact("bucket", format!("{several}{tokens}{full}")));
            }
        }
        if let Some(k) = &l.knee_bytes {
            out.push(fact(
                "size",
                format!("below {} limited by operations, above by bytes", number::size_estimate(k)),
            ));
        }
    }
    out.extend(SETTINGS.into_iter().filter_map(|s| told(r, s)));
    out
}

/// What to set, without the reason, which stands above. Settings may have colons of their own.
fn told(r: &RunReport, (begin, name): (&str, &'static str)) -> Option<GlanceFact> {
    let advice = r.analysis.advice.iter().find(|a| a.starts_with(begin))?;
    Some(fact(name, advice.split_once(": ")?.1.trim_end_matches('.').to_owned()))
}

/// The settings of load generators below those of other tools: where there is room for one fact more, since nothing goes for them.
pub(super) fn add_generators(facts: &mut Vec<GlanceFact>, r: &RunReport) {
    let is_setting = |f: &GlanceFact| SETTINGS.iter().any(|(_, name)| f.name == *name);
    if let Some((at, generators)) = facts.iter().position(is_setting).zip(told(r, GENERATORS)) {
        facts.insert(at + 1, generators);
    }
}
