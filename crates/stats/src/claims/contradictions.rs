//! What two claims, or a claim and a counter, say against each other. Empty for every summary that is made: held by a property
//! test over random and simulated runs, and by an assertion where a run is judged in a debug build.

use plimsoll_model::claim::{Amount, CapBound, Claim, ClaimKind, Outage, OutageKind, RunStatus};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Estimate, Finding, Outcome, RunSummary};

use super::lines::{attempts, attempts_of};

/// The finding that says what outages mean for the figures.
const OUTAGES: &str = "F60";

/// Slack of two widths that are the same: of repeats one is over slices and one over seconds.
const WIDTHS: f64 = 1e-6;

/// Each as a sentence for whoever mends it.
pub fn contradictions(claims: &[Claim], s: &RunSummary) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(claims.iter().flat_map(|c| of_one(c, s)));
    out.extend(of_status(claims, s));
    out.extend(of_limiters(claims, s));
    out.extend(of_outages(claims, s));
    out.extend(of_widths(s));
    out.extend(of_advice(claims, s));
    out.extend(claims.iter().filter(|c| c.text.is_empty()).map(|c| format!("without words: {c:?}")));
    out.extend(claims.iter().flat_map(|c| of_text(&c.text)));
    out
}

/// Every estimate that a claim states.
fn figures(kind: &ClaimKind) -> Vec<Estimate> {
    let amount = |a: &Amount| match a {
        Amount::Measured(e) => Some(*e),
        Amount::AtLeast(_) => None,
    };
    let bound = |b: &CapBound| match b {
        CapBound::AtMost(e) => Some(*e),
        CapBound::AtLeast(_) | CapBound::Unknown => None,
    };
    let all: Vec<Option<Estimate>> = match kind {
        ClaimKind::Rate(x) => vec![Some(x.ops_per_s), x.bytes_per_s],
        ClaimKind::VoidLine(x) => vec![x.ops_per_s],
        ClaimKind::Refusing(x) => vec![x.passing_per_s, x.after_burst_per_s],
        ClaimKind::Cap(x) => vec![Some(x.per_s)],
        ClaimKind::Burst(x) => vec![amount(&x.capacity), x.burst_per_s, x.refill_per_s],
        ClaimKind::Knee(x) => vec![Some(x.bytes)],
        ClaimKind::SizeCaps(x) => vec![bound(&x.ops_per_s), bound(&x.bytes_per_s)],
        ClaimKind::BestConcurrency(x) => vec![Some(x.ops_per_s), x.plateau_per_s],
        ClaimKind::Outage(x) => vec![x.before_per_s, x.after_per_s, x.with_per_s, x.without_per_s],
        _ => Vec::new(),
    };
    all.into_iter().flatten().collect()
}

fn of_one(c: &Claim, s: &RunSummary) -> Vec<String> {
    let mut out = Vec::new();
    for e in figures(&c.kind) {
        if let Err(why) = plimsoll_model::claim::figure(e, None) {
            out.push(format!("{}: {e:?}: {}", c.text, why.0));
        }
    }
    let line = c.subject.as_ref().and_then(|on| s.workloads.iter().find(|w| w.label() == *on));
    match (&c.kind, line) {
        (ClaimKind::Rate(r), Some(w)) => {
            let ok = w.count(Outcome::is_ok);
            if !w.valid {
                out.push(format!("a rate of a line that is void: {}", c.text));
            }
            if ok == 0 {
                out.push(format!("a rate where nothing succeeded: {}", c.text));
            }
            if w.repeats <= 1 && r.ops_per_s.value > 1.001 * w.attempts_per_s {
                out.push(format!("more than the {} attempts per second: {}", w.attempts_per_s, c.text));
            }
        }
        (ClaimKind::VoidLine(_), Some(w)) if w.valid => out.push(format!("void, and valid: {}", c.text)),
        (ClaimKind::Refusing(r), _) => {
            let on = |w: &&WorkloadSummary| w.op == r.op && c.subject.as_ref() == Some(&w.label());
            if !s.workloads.iter().filter(on).any(|w| attempts(w) == (r.attempts, r.refused)) {
                out.push(format!("no line had {} of {} refused: {}", r.refused, r.attempts, c.text));
            }
        }
        _ => {}
    }
    out
}

fn of_status(claims: &[Claim], s: &RunSummary) -> Vec<String> {
    let [Claim { kind: ClaimKind::Status(first), .. }, ..] = claims else {
        return vec!["the first claim is not the status".into()];
    };
    let void = s.workloads.iter().filter(|w| !w.valid).count();
    let bad = s.findings.iter().any(|f| f.level == plimsoll_model::Level::Invalid);
    let mut out = Vec::new();
    if s.valid != (s.status == RunStatus::Valid) || first.status != s.status {
        out.push(format!("valid {} with status {:?}", s.valid, s.status));
    }
    if s.valid && (void > 0 || bad) {
        out.push(format!("valid with {void} void lines"));
    }
    if s.status == RunStatus::None && s.workloads.iter().any(|w| w.valid) {
        out.push("no line may be used, and some are valid".into());
    }
    out
}

/// A limiter that is and is not there.
fn of_limiters(claims: &[Claim], s: &RunSummary) -> Vec<String> {
    let mut out = Vec::new();
    for c in claims {
        let ClaimKind::NoLimiter(none) = &c.kind else { continue };
        let refused = attempts_of(s, "total").1;
        if refused > 0 || none.refused > 0 {
            out.push(format!("{refused} attempts were refused, and no limiter was found"));
        }
        let against = |o: &&Claim| match &o.kind {
            ClaimKind::Refusing(_) => true,
            ClaimKind::Cap(cap) => cap.op == none.op && cap.proved,
            ClaimKind::Burst(b) => b.op == none.op,
            ClaimKind::Scope(_) => o.subject == c.subject,
            _ => false,
        };
        out.extend(claims.iter().filter(against).map(|o| format!("{} | {}", c.text, o.text)));
    }
    for c in claims {
        let ClaimKind::Burst(b) = &c.kind else { continue };
        let under =
            |o: &Claim| matches!(&o.kind, ClaimKind::Cap(x) if x.op == b.op && x.unit == b.unit && x.proved);
        if !claims.iter().any(under) {
            out.push(format!("a bucket above no cap: {}", c.text));
        }
        if b.full_again_s.is_some() && matches!(b.capacity, Amount::AtLeast(_)) {
            out.push(format!("full again after a time that follows from a bound: {}", c.text));
        }
    }
    out
}

/// A time without answers in which answers came, that lies outside of its load, or that no finding knows of.
fn of_outages(claims: &[Claim], s: &RunSummary) -> Vec<String> {
    let all: Vec<(&Outage, &str)> = claims
        .iter()
        .filter_map(|c| if let ClaimKind::Outage(o) = &c.kind { Some((o, c.text.as_str())) } else { None })
        .collect();
    let mut out = Vec::new();
    let known = s.findings.iter().filter(|f| f.code == OUTAGES).count();
    if all.is_empty() != (known == 0) {
        out.push(format!("{} outages, and {known} findings of them", all.len()));
    }
    for (i, (o, text)) in all.iter().enumerate() {
        let end_s = o.span.to_s.unwrap_or(o.span.seen_until_s);
        let back_s = end_s + o.recover_s.unwrap_or(0.0);
        // Steps of a load are sums of decimal fractions.
        let until_s = o.span.seen_until_s * (1.0 + 1e-9);
        let above =
            |a: Option<Estimate>, b: Option<Estimate>| a.zip(b).is_some_and(|(a, b)| a.value > b.value);
        let rules = [
            (o.span.from_s < 0.0 || o.span.from_s >= end_s, "it ends before it begins"),
            (end_s > until_s || back_s > until_s, "it goes on after the load"),
            (
                o.span.to_s.is_none() && (o.recover_s.is_some() || o.after_per_s.is_some()),
                "after it, without end",
            ),
            (o.is_a_rate(), "the rate in it is that around it"),
            (above(o.with_per_s, o.without_per_s), "the load was faster with it"),
            (o.kind != OutageKind::Silent && o.ended == 0, "errors that nobody counted"),
            (o.outcome.is_some() && o.ended == 0, "an outcome of nothing"),
        ];
        out.extend(rules.iter().filter(|(bad, _)| *bad).map(|(_, why)| format!("{why}: {text}")));
        let twice = |(p, _): &&(&Outage, &str)| {
            let p_end_s = p.span.to_s.unwrap_or(p.span.seen_until_s);
            (p.span.stage, &p.span.at) == (o.span.stage, &o.span.at)
                && p.span.from_s < end_s
                && o.span.from_s < p_end_s
        };
        out.extend(all[..i].iter().filter(twice).map(|(_, first)| format!("twice: {first} | {text}")));
    }
    out
}

/// The width that a line is blamed for is that of the interval that is printed, and it is blamed once.
fn of_widths(s: &RunSummary) -> Vec<String> {
    let of_width =
        |f: &&Finding| ["wide_interval", "no_rate"].contains(&f.name.as_str()) && f.measured.is_some();
    let mut out = Vec::new();
    for w in &s.workloads {
        let mine: Vec<&Finding> =
            s.findings.iter().filter(of_width).filter(|f| f.workload == Some(w.label())).collect();
        if mine.len() > 1 {
            out.push(format!("{} findings on the width of {}", mine.len(), w.label()));
        }
        let shown = w.ops_per_s.map(|e| e.relative_half_width()).filter(|r| r.is_finite());
        for f in mine {
            let Some((shown, blamed)) = shown.zip(f.measured) else { continue };
            if (blamed - shown).abs() > WIDTHS * shown.max(blamed) {
                out.push(format!("{blamed} wide, and {shown} is printed: {}", f.text));
            }
        }
    }
    out
}

/// In a load of one line: a storage that was away, and ops of which none took much longer than another.
fn of_advice(claims: &[Claim], s: &RunSummary) -> Vec<String> {
    let away = claims.iter().filter(|c| matches!(c.kind, ClaimKind::Outage(_)));
    let alike =
        s.findings.iter().filter(|f| s.workloads.len() == 1 && f.name == crate::judge::CONCURRENCY_BOUND);
    let pairs = away.flat_map(|c| alike.clone().map(move |f| (c, f)));
    pairs.map(|(c, f)| format!("{} | {}", c.text, f.text)).collect()
}

/// Signs of a figure that was not checked.
fn of_text(text: &str) -> Vec<String> {
    let digits = text.split(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.'));
    let long = digits.filter(|d| d.chars().filter(char::is_ascii_digit).count() > 24);
    let mut out: Vec<String> = long.map(|d| format!("a number without end, {d}: {text}")).collect();
    let odd = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| matches!(w, "NaN" | "inf"));
    if odd {
        out.push(format!("no number: {text}"));
    }
    out
}
