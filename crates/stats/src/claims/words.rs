//! A claim in words. One claim, one sentence or two; nothing but the claim's own evidence goes in.

use std::collections::BTreeMap;

use plimsoll_model::claim::{
    Amount, BestConcurrency, Burst, Cap, CapBound, Claim, ClaimKind, Horizon, Knee, LoadHeld,
    MixNotDelivered, NoLimiter, Place, Rate, RateWord, Refusing, RunStatus, SearchHorizon, SizeCaps, Status,
    Unit, VoidLine,
};
use plimsoll_model::units::{format_latency_ns, format_size, significant};
use plimsoll_model::{Estimate, OpKind};

use crate::words;

/// Fewer runs of each cell, and how much runs differ is not measured.
const REPEATS: u32 = 3;

/// The claim as a person reads it.
pub(super) fn sentence(c: &Claim) -> String {
    match &c.kind {
        ClaimKind::Status(x) => status(x),
        ClaimKind::Rate(x) => rate(x),
        ClaimKind::VoidLine(x) => void_line(x),
        ClaimKind::Outage(x) => crate::outage::sentence(x),
        ClaimKind::Refusing(x) => refusing(x),
        ClaimKind::MixNotDelivered(x) => mix(x),
        ClaimKind::Cap(x) => cap(x),
        ClaimKind::Burst(x) => burst(x),
        ClaimKind::Knee(x) => knee(x),
        ClaimKind::Binding(x) => binding(&x.binding),
        ClaimKind::NoLimiter(x) => no_limiter(x),
        ClaimKind::Scope(x) if x.scope == "server" => "Everything that was tried shares the limit.".into(),
        ClaimKind::Scope(x) => format!("The limit is per {}.", x.scope),
        ClaimKind::Horizon(x) => horizon(x),
        ClaimKind::SizeCaps(x) => size_caps(x),
        ClaimKind::BestConcurrency(x) => best(x),
        ClaimKind::LoadHeld(x) => load_held(x),
        ClaimKind::SearchHorizon(x) => search_horizon(x),
        ClaimKind::Undetermined(x) => {
            format!("**Undetermined**: {} ({}).", x.what, x.why.trim_end_matches('.'))
        }
        ClaimKind::Fact(x) => x.said.clone(),
        ClaimKind::Notes(x) => format!("Notes: {}.", x.said),
        ClaimKind::NextStep(x) => format!("Next: {}", x.said),
    }
}

/// `GET`; a mix's total is no op.
pub(super) fn op_name(op: &str) -> String {
    if op == "total" { "all ops of the mix".into() } else { op.to_uppercase() }
}

pub(super) fn unit_name(u: Unit) -> &'static str {
    match u {
        Unit::Ops => "operations",
        Unit::Bytes => "bytes",
    }
}

pub(super) fn sized(op: &str, size_bytes: u64) -> String {
    match (op, size_bytes) {
        (op, 0) => op_name(op),
        ("total", n) => format!("{} ({} on average)", op_name(op), format_size(n)),
        (op, n) => format!("{} {}", format_size(n), op_name(op)),
    }
}

pub(super) fn named(p: &Place) -> String {
    sized(&p.op, p.size_bytes)
}

/// `VALID`, `PARTLY VALID`, `[INVALID V04]`, and why.
fn status(s: &Status) -> String {
    let notes = match s.notes {
        0 => String::new(),
        1 => " (1 note)".into(),
        n => format!(" ({n} notes)"),
    };
    let mark = format!("[INVALID {}]", s.codes.join(" "));
    let because = if s.because.is_empty() { String::new() } else { format!(" {}", s.because) };
    let which = match s.void.as_slice() {
        [] => String::new(),
        [one] => format!("1 of {} lines is void ({one})", s.lines),
        [first, rest @ ..] => {
            format!("{} of {} lines are void ({first} and {} more)", rest.len() + 1, s.lines, rest.len())
        }
    };
    match (s.status, s.answered) {
        (RunStatus::Valid, _) => format!("VALID{notes}."),
        (RunStatus::Partly, true) if which.is_empty() => format!("PARTLY VALID{notes}: {mark}.{because}"),
        (RunStatus::Partly, true) => format!("PARTLY VALID{notes}: {which}: {mark}.{because}"),
        (RunStatus::Partly, false) => format!("{mark}{because} (Partly valid: {which}.)"),
        (RunStatus::None, _) => format!("{mark}{because}"),
    }
}

fn rates(ops: &Estimate, bytes: Option<&Estimate>, p: &Place) -> String {
    let bytes = bytes.map_or(String::new(), |b| format!(", {}", words::bytes_rate(b)));
    let jobs = if p.jobs > 0 { format!(" from {} jobs combined", p.jobs) } else { String::new() };
    // In an open loop the rate is the user's, and the concurrency only its bound.
    let load = match p.offered_per_s {
        Some(offered) => {
            format!(
                ", of {} op/s offered, with at most {} in flight",
                words::about(offered, 4),
                p.concurrency
            )
        }
        None => format!(" with {} in flight", p.concurrency),
    };
    format!("{} of {}{bytes}{load}{jobs}", words::ops_rate(ops), named(p))
}

fn rate(r: &Rate) -> String {
    let word = match r.word {
        RateWord::Sustained => "Sustained",
        RateWord::Measured => "Measured",
    };
    let runs = if r.place.repeats > 1 { format!(", {} runs", r.place.repeats) } else { String::new() };
    format!(
        "{word} {} (95 % CI{runs}, {} window).",
        rates(&r.ops_per_s, r.bytes_per_s.as_ref(), &r.place),
        words::span(r.place.window_s)
    )
}

fn void_line(v: &VoidLine) -> String {
    let mark = format!("[INVALID {}]", v.codes.join(" "));
    match &v.ops_per_s {
        Some(e) => format!("Not usable: {} {mark}.", rates(e, None, &v.place)),
        None => format!("No usable rate of {} {mark}.", named(&v.place)),
    }
}

/// A share that is not all is never rounded to all, nor one that is not nothing to nothing.
fn percent(share: f64) -> String {
    let p = 100.0 * share;
    let digits = if p > 99.0 { 4 } else { 3 };
    match p {
        p if share < 1.0 && p > 99.99 => "over 99.99 %".into(),
        p => format!("{} %", significant(p, digits)),
    }
}

fn refusing(r: &Refusing) -> String {
    let passing = match (&r.after_burst_per_s, &r.passing_per_s) {
        (Some(e), _) => format!("{} get through after the burst", words::ops_rate(e)),
        (None, Some(e)) => format!("{} get through", words::ops_rate(e)),
        (None, None) if r.passed_per_s <= 0.0 => "nothing gets through".into(),
        (None, None) => format!("about {} op/s get through on average", words::about(r.passed_per_s, 2)),
    };
    let line = if r.on.line.is_empty() { String::new() } else { format!(" in {}", r.on.line) };
    if r.refused == r.attempts {
        return format!(
            "{} of {}{line} {} answered with {}.{}",
            match r.attempts {
                1 => "**The only attempt**".into(),
                n => format!("**All {} attempts**", words::fixed(n as f64, 0)),
            },
            op_name(&r.op),
            if r.attempts == 1 { "was" } else { "were" },
            if r.is_429 {
                "429: a limiter lets nothing of this load through"
            } else {
                "429 or 503: either a limiter lets nothing of this load through, or the storage was down behind a proxy"
            },
            crate::validity::held_back(r.held_back)
        );
    }
    let beside = match r.on.beside.as_slice() {
        [] => String::new(),
        ops => format!(
            " while {} ran at the same time",
            ops.iter().map(|o| op_name(o)).collect::<Vec<_>>().join(" and ")
        ),
    };
    if r.may_be_down {
        return format!(
            "**{}** of {} was refused ({} of {} attempts{line}, with 503): by a limiter, or by a proxy whose storage was down.",
            percent(r.share()),
            op_name(&r.op),
            words::fixed(r.refused as f64, 0),
            words::fixed(r.attempts as f64, 0)
        );
    }
    format!(
        "A rate limiter refuses **{}** of {} ({} of {} attempts{line} were answered with 429 or 503); \
         {passing}{beside}.{}",
        percent(r.share()),
        op_name(&r.op),
        words::fixed(r.refused as f64, 0),
        words::fixed(r.attempts as f64, 0),
        crate::validity::held_back(r.held_back)
    )
}

fn mix(m: &MixNotDelivered) -> String {
    let shares = |of: &BTreeMap<String, f64>| {
        let each: Vec<String> =
            of.iter().map(|(k, v)| format!("{} {:.0} %", k.to_uppercase(), 100.0 * v)).collect();
        each.join(", ")
    };
    format!(
        "The mix was not delivered as requested: requested {}; delivered {}. Totals are of the delivered mix.",
        shares(&m.asked),
        shares(&m.delivered)
    )
}

fn per_s(unit: Unit, e: &Estimate) -> String {
    match unit {
        Unit::Ops => words::ops_rate(e),
        Unit::Bytes => words::bytes_rate(e),
    }
}

fn cap(c: &Cap) -> String {
    let rate = per_s(c.unit, &c.per_s);
    match (c.proved, c.held_for_s) {
        (true, None) => return format!("Sustained **{rate}** of {} (95 % CI).", op_name(&c.op)),
        (true, Some(s)) => {
            return format!(
                "Held **{rate}** of {} (95 % CI) for as long as it was seen ({}).",
                op_name(&c.op),
                words::span(s)
            );
        }
        (false, _) => {}
    }
    format!("Seen **{rate}** of {} (95 % CI), with no limit on {} proved.", op_name(&c.op), unit_name(c.unit))
}

fn burst(b: &Burst) -> String {
    let lead = match &b.burst_per_s {
        Some(p) => {
            format!("The rate starts at {}, then falls to the sustained rate: ", per_s(b.unit, p))
        }
        None => "On top of it there is ".into(),
    };
    let amount = match (&b.capacity, b.unit) {
        (Amount::Measured(e), Unit::Ops) => format!("{} ops", words::plus_minus(e)),
        (Amount::Measured(e), Unit::Bytes) => words::bytes(e),
        (Amount::AtLeast(v), Unit::Ops) => format!("at least {} ops", words::about(*v, 2)),
        (Amount::AtLeast(v), Unit::Bytes) => {
            let (unit, f) = words::bytes_unit(*v);
            format!("at least {} {unit}", words::about(v / f, 2))
        }
    };
    let mut out = format!("{lead}a token bucket of **{amount}**");
    if let Some(r) = &b.refill_per_s {
        out += &format!(", refilling at {}", per_s(b.unit, r));
    }
    if let Some(s) = b.full_again_s {
        out += &format!(" (full again after {} of rest)", words::span(s));
    }
    out + "."
}

fn knee(k: &Knee) -> String {
    let (unit, f) = words::bytes_unit(k.bytes.value);
    let n = |x: f64| significant(x / f, 3);
    let (value, low, high) = (n(k.bytes.value), n(k.bytes.low), n(k.bytes.high));
    format!(
        "{} below **{value} {unit}** ({low} to {high}) is limited by operations, above it by bytes.",
        op_name(&k.op)
    )
}

fn binding(b: &str) -> String {
    match b {
        "ops" => "The limit is on operations.",
        "bytes" => "The limit is on bytes.",
        "both" => "There are limits on operations and on bytes.",
        "in_flight" => "The limit is on requests in flight.",
        "share" => "The same share of requests is refused at any rate: that is no limit on a rate.",
        "latency" => "Latency and concurrency determined the rate; no limit was reached.",
        _ => "The client limited the rate; the limit of the storage was not reached.",
    }
    .into()
}

fn no_limiter(n: &NoLimiter) -> String {
    format!(
        "No limiter was found: no burst that ended, no refusals in {} attempts, and no rate steadier than storage \
         produces by itself. The measured rate is what the storage, or this client, can do.",
        words::fixed(n.attempts as f64, 0)
    )
}

fn horizon(h: &Horizon) -> String {
    let of = h.unit.map_or(String::new(), |u| format!(" of {}", unit_name(u)));
    let mut out = match h.bucket_ops {
        Some(n) => format!(
            "Seen for {}: a burst that lasts longer is not excluded (it would take a bucket of more than {} ops if \
             the sustained rate were half of this).",
            words::span(h.seen_s),
            words::about(n, 2)
        ),
        None => format!(
            "The rate{of} was seen for at most {}: a bucket that runs dry later is not excluded.",
            words::span(h.seen_s)
        ),
    };
    if h.bucket_ops.is_some() && h.seen_s < h.goal_s {
        out += &format!(" To call it sustained for {}, measure it for that long.", words::span(h.goal_s));
    }
    out
}

fn size_caps(c: &SizeCaps) -> String {
    let of = |bound: &CapBound, unit| match bound {
        CapBound::AtMost(e) => format!("at most **{}**", per_s(unit, e)),
        CapBound::AtLeast(v) if unit == Unit::Ops => format!("at least {} op/s", words::about(*v, 3)),
        CapBound::AtLeast(v) => {
            let (name, f) = words::bytes_unit(*v);
            format!("at least {} {name}/s", significant(v / f, 3))
        }
        CapBound::Unknown => "an unknown rate".into(),
    };
    let (ops, bytes) = (of(&c.ops_per_s, Unit::Ops), of(&c.bytes_per_s, Unit::Bytes));
    let name = op_name(&c.op);
    let mut out = match c.in_flight {
        Some(n) => {
            format!("With {n} in flight, {name} reaches {ops} and {bytes} over these sizes (95 % CI).")
        }
        None => format!("{name} reaches {ops} and {bytes} (95 % CI)."),
    };
    if c.repeats < REPEATS && c.in_flight.is_some() {
        out += " The run-to-run variation was not measured: 3 % is assumed, or what the sizes show if that is more.";
    } else if c.repeats < REPEATS {
        out += &format!(
            " These intervals are based on {} run{} per cell and on the misfit of the model; --repeat {REPEATS} \
             measures the run-to-run variation.",
            c.repeats,
            if c.repeats == 1 { "" } else { "s" }
        );
    }
    out
}

fn best(b: &BestConcurrency) -> String {
    let counts_bytes = OpKind::parse(&b.op).is_none_or(OpKind::moves_bytes) && b.size_bytes > 0;
    let bytes = if counts_bytes {
        format!(", {}", words::bytes_rate(&b.ops_per_s.scaled(b.size_bytes as f64)))
    } else {
        String::new()
    };
    let with = b.limited_by.as_ref().map(|what| format!(", with {what}")).unwrap_or_default();
    let head = format!(
        "Best concurrency: **{} in flight**, at **{}** of {}{bytes} (95 % CI){with}",
        b.concurrency,
        words::ops_rate(&b.ops_per_s),
        sized(&b.op, b.size_bytes)
    );
    let mut out = match (b.ended.as_str(), &b.plateau_per_s) {
        ("saturated", Some(p)) => format!(
            "{head}; the plateau is at {}{}.",
            words::ops_rate(p),
            if b.fewer_fall_short { "; fewer in flight do not reach 95 % of it" } else { "" }
        ),
        ("saturated", None) => format!("{head}."),
        (other, _) => format!("{head}. This is not shown to be the storage's maximum: {other}."),
    };
    let time = |ns: u64| format_latency_ns(ns as f64);
    if let Some(p50) = b.p50_ns {
        out += &format!(" Median latency at that concurrency is {}", time(p50));
        if let Some(p99) = b.p99_ns {
            out += &format!(", p99 {}", time(p99));
        }
        if let Some((c, p50)) = b.most {
            out += &format!("; the median is {} with {c} in flight", time(p50));
        }
        out.push('.');
    }
    out
}

fn load_held(l: &LoadHeld) -> String {
    let share = |f: &f64| {
        let text = words::about(100.0 * f, 3);
        format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
    };
    let time = |ns: u64| format_latency_ns(ns as f64);
    let Some(fraction) = &l.fraction else {
        let valid = if l.void > 0 { "no valid load point" } else { "none of the load points" };
        return format!("In open loop, {valid} could be kept up.");
    };
    let mut out = format!(
        "In open loop, {} of that rate ({} op/s) could be kept up",
        share(fraction),
        words::about(l.offered_per_s, 3)
    );
    if let Some((response, service)) = l.p50_ns {
        out += &format!(": median response {} (service {})", time(response), time(service));
        if let Some((r, s)) = l.p99_ns {
            out += &format!(", p99 {} ({})", time(r), time(s));
        }
    }
    if !l.not_held.is_empty() {
        let list: Vec<String> = l.not_held.iter().map(share).collect();
        out += &format!("; {} could not", list.join(" and "));
    }
    out + "."
}

fn search_horizon(h: &SearchHorizon) -> String {
    format!(
        "Each step lasted at most {}: a burst that outlasts the search is not excluded. To find out, run with {} in \
         flight for {} (plimsoll watch).",
        words::span(h.seen_s),
        h.concurrency,
        words::span(h.goal_s)
    )
}
