//! Claims on limits: caps, buckets, knees, what binds, whose limit it is, and how long it was seen.

use plimsoll_model::OpKind;
use plimsoll_model::analysis::SizeModel;
use plimsoll_model::claim::{
    Binding, Burst, Cap, CapBound, ClaimKind, Horizon, Knee, NoLimiter, Scope, SizeCaps, Undetermined, Unit,
};
use plimsoll_model::summary::{BucketSummary, LimitSummary, RunSummary};

use super::derive::Claims;
use super::lines::attempts_of;

/// One limiter that was looked for.
pub(super) fn of_limit(s: &RunSummary, l: &LimitSummary, goal_s: f64, out: &mut Claims) {
    let op = l.op_class.as_str();
    let subject = || Some(l.op_class.clone());
    for (bucket, unit) in [(&l.ops_per_s, Unit::Ops), (&l.bytes_per_s, Unit::Bytes)] {
        if let Some(b) = bucket {
            of_bucket(op, unit, b, out);
        }
    }
    binding(s, l, out);
    horizons(s, l, goal_s, out);
    let is_object = OpKind::parse(op).map_or(op == "total", |k| !k.is_block() && k != OpKind::Null);
    match Scope::new(&l.scope) {
        Ok(scope) => out.add(subject(), ClaimKind::Scope(scope)),
        Err(_) if is_object && l.binding != "none" => {
            let tried = l.evidence.iter().any(|(name, _)| name.starts_with("scope: "));
            let why =
                if tried { "the findings list what was tried" } else { "use --probe-scope to find out" };
            out.add(
                subject(),
                Undetermined::new("whether the limit is per connection, bucket, key or client", why),
            );
        }
        Err(_) => {}
    }
}

fn of_bucket(op: &str, unit: Unit, b: &BucketSummary, out: &mut Claims) {
    let subject = || Some(op.to_owned());
    let what =
        |of: &str| format!("{of} of {} in {}", super::words::op_name(op), super::words::unit_name(unit));
    let Some(sustained) = b.sustained else {
        out.add(
            subject(),
            Undetermined::new(what("the sustained rate"), "the findings say what would settle it"),
        );
        return;
    };
    // "Sustained" is what comes after a burst that was seen to end; all else is as long as it was seen.
    let held_for_s = b.horizon_s.filter(|_| b.proved && b.capacity.is_none());
    let cap = match Cap::new(op, unit, b.proved, sustained) {
        Ok(cap) => cap.held_for(held_for_s),
        Err(why) => {
            out.add(subject(), Undetermined::new(what("what is given"), why.0));
            return;
        }
    };
    let burst =
        b.capacity.filter(|_| b.proved).map(|c| Burst::new(&cap, c, b.burst, b.refill, b.full_again_s));
    out.add(subject(), ClaimKind::Cap(cap));
    if let Some(made) = burst {
        out.add_or(subject(), made.map(ClaimKind::Burst), what("the bucket"));
    }
}

/// What binds: the knee where both do, nothing where no limiter was found and none refused.
fn binding(s: &RunSummary, l: &LimitSummary, out: &mut Claims) {
    let op = l.op_class.as_str();
    let subject = || Some(l.op_class.clone());
    let attempts = attempts_of(s, op).0;
    // Of any op: who refuses one may hold the others back, too.
    let refused = attempts_of(s, "total").1;
    if let Some(k) = l.knee_bytes {
        let made = Knee::new(op, k).map(ClaimKind::Knee);
        out.add_or(subject(), made, "the size below which operations are the limit");
        return;
    }
    let vague = |b: &Option<BucketSummary>| {
        b.as_ref()
            .is_some_and(|b| b.sustained.is_none_or(|e| plimsoll_model::claim::figure(e, None).is_err()))
    };
    let proved = |b: &Option<BucketSummary>| b.as_ref().is_some_and(|b| b.proved);
    let made = match l.binding.as_str() {
        // A limiter is excluded by a rate that is known, or not at all.
        "none" if vague(&l.ops_per_s) || vague(&l.bytes_per_s) => plimsoll_model::claim::Refusal::new(
            "no limit was seen, and the rates are not known well enough to exclude one",
        ),
        "none" => NoLimiter::new(op, attempts, refused).map(ClaimKind::NoLimiter),
        // Who refuses is a limiter: neither latency nor the client set that rate.
        "latency" | "client" if refused > 0 => plimsoll_model::claim::Refusal::new(format!(
            "{refused} attempts were refused, and the limit behind that was not identified"
        )),
        "undetermined" if proved(&l.ops_per_s) || proved(&l.bytes_per_s) => {
            // One size tells that there is a limit, and not of what.
            let one_size = l.evidence.iter().any(|(what, _)| what == "unit");
            plimsoll_model::claim::Refusal::new(if one_size {
                "a limit was proved, but ops of one size do not tell operations from bytes: plimsoll limits varies the size"
            } else {
                "one limit was proved, and the rate of the other resource is not known well enough to exclude one there"
            })
        }
        other => Binding::new(op, other).map(ClaimKind::Binding),
    };
    out.add_or(subject(), made, "which limit binds");
}

/// Each resource was seen for as long as it was driven; where only one figure is known, it is the run's.
fn horizons(s: &RunSummary, l: &LimitSummary, goal_s: f64, out: &mut Claims) {
    let seen = |b: &Option<BucketSummary>| b.as_ref().and_then(|b| b.horizon_s);
    let each = [(seen(&l.ops_per_s), Unit::Ops), (seen(&l.bytes_per_s), Unit::Bytes)];
    let longest = s.workloads.iter().map(|w| w.horizon_s).fold(0.0, f64::max);
    let known: Vec<(f64, Unit)> = each.into_iter().filter_map(|(t, u)| Some((t?, u))).collect();
    let subject = || Some(l.op_class.clone());
    match known[..] {
        [] => out.add_if(subject(), Horizon::new(longest, goal_s, None, None).map(ClaimKind::Horizon)),
        [(seen, unit)] => {
            out.add_if(subject(), Horizon::new(seen, goal_s, Some(unit), None).map(ClaimKind::Horizon));
        }
        _ => {
            for (seen, unit) in known {
                out.add_if(subject(), Horizon::new(seen, goal_s, Some(unit), None).map(ClaimKind::Horizon));
            }
        }
    }
}

/// A sweep: which cap binds below and above which size.
pub(super) fn of_sizes(m: &SizeModel, out: &mut Claims) {
    let op = m.op_class.as_str();
    let subject = || Some(m.op_class.clone());
    let name = super::words::op_name(op);
    if let Some(why) = m.reading.strip_prefix(SizeModel::UNDETERMINED) {
        out.add(subject(), Undetermined::new(format!("the caps on {name} over these sizes"), why));
        return;
    }
    let ops = CapBound::of(m.ops_per_s, m.ops_at_least);
    let bytes = CapBound::of(m.bytes_per_s, m.bytes_at_least);
    let made = SizeCaps::new(op, ops, bytes, m.repeats, m.in_flight).map(ClaimKind::SizeCaps);
    out.add_or(subject(), made, format!("the caps on {name} over these sizes"));
    let what = format!("the size of {name} below which operations are the limit");
    match m.knee_bytes {
        Some(k) => out.add_or(subject(), Knee::new(op, k).map(ClaimKind::Knee), what),
        None => out.add(subject(), Undetermined::new(what, missing(m))),
    }
}

/// What would show the cap that the cells did not reach.
fn missing(m: &SizeModel) -> &'static str {
    match (&m.ops_per_s, &m.bytes_per_s) {
        _ if m.in_flight.is_some() => {
            "at a single concurrency, a limit on operations looks the same as latency; run with more in flight, or \
             use plimsoll limits"
        }
        (None, None) => {
            "no cap was reached in three or more cells; run with more in flight, or use --sizes auto"
        }
        (None, _) => {
            "too few cells reach a cap on operations; use smaller objects, more in flight, or --sizes auto"
        }
        _ => "too few cells reach a cap on bytes; use larger objects, more in flight, or --sizes auto",
    }
}
