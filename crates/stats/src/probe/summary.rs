//! The probe's outcome in the words of the run summary: a limit, its evidence, and what remains open.

use plimsoll_model::analysis::{self, BucketFit, Recovery};
use plimsoll_model::summary::{BucketSummary, LimitSummary};
use plimsoll_model::units::{format_size, significant};
use plimsoll_model::{Estimate, Finding, Level};

use super::cost::Cost;
use super::questions::BurstLaw;
use super::{Capacity, Cause, DrainEvidence, Found, ProbeOutcome, Resource};
use crate::laws::{LawContest, RivalLaw};
use crate::{math, words};

/// Points of a drain's curve that are kept.
const CURVE: usize = 300;

pub(super) const PENALTY: &str = "limit_penalty";
pub(super) const COSTS_TOKENS: [&str; 2] = ["refusals", "cost tokens"];

/// Name of what a probe leaves open, each with what would settle it.
pub const OPEN_QUESTION: &str = "open_question";

/// Name of the finding that gives the evidence for a limit.
pub const LIMIT_CAUSE: &str = "limit_cause";
const REFUSED_AFTER: &str = "refused after";
const REFUSES_ALL: [&str; 2] = ["refusals", "of all that comes, for a while"];

/// Whether a probe found a limiter that refuses all of a load that does not hold back, or for a while: then a load that is refused whole
/// is no outage.
pub fn may_refuse_all(findings: &[Finding]) -> bool {
    [(PENALTY, COSTS_TOKENS), (LIMIT_CAUSE, REFUSES_ALL)].into_iter().any(|(of, says)| {
        let is = |(name, what): &(String, String)| [name.as_str(), what.as_str()] == says;
        findings.iter().any(|f| f.name == of && f.evidence.iter().any(is))
    })
}

/// How long a limiter that a probe found keeps refusals waiting, seconds: so long a load that it refuses is silent.
pub fn refused_after_s(findings: &[Finding]) -> Option<f64> {
    let late =
        |f: &Finding| f.evidence.iter().find(|(name, _)| name == REFUSED_AFTER).map(|(_, s)| s.clone());
    findings.iter().filter(|f| f.name == LIMIT_CAUSE).find_map(late)?.strip_suffix(" s")?.parse().ok()
}

impl ProbeOutcome {
    /// As the summary has it. The scope is unknown until another probe varies it.
    pub fn summary(&self, target: &str, op_class: &str) -> LimitSummary {
        // A cap that was seen under the other's load only is not known.
        let bucket = |f: &Found, hidden_by: Resource| {
            let seen = self.answers.at_once.is_some()
                || self.answers.same_share.is_some()
                || f.sustained.is_some() && self.seen_twice() != Some(hidden_by);
            seen.then(|| f.bucket(self.is_proved(f.resource)))
        };
        LimitSummary {
            target: target.into(),
            op_class: op_class.into(),
            scope: "unknown".into(),
            ops_per_s: bucket(&self.ops, Resource::Bytes),
            bytes_per_s: bucket(&self.bytes, Resource::Ops).filter(|_| self.moves_bytes),
            knee_bytes: self.knee_bytes(),
            binding: self.binding().into(),
            refused: Some(self.ops.refused().max(self.bytes.refused())),
            evidence: self.evidence(),
        }
    }

    /// Which limits there are.
    pub fn binding(&self) -> &'static str {
        match (self.is_limited(Resource::Ops), self.is_limited(Resource::Bytes)) {
            _ if self.answers.at_once.is_some_and(|a| a.sure) => "in_flight",
            _ if self.answers.same_share.is_some() => "share",
            (true, true) => "both",
            (true, false) => "ops",
            (false, true) => "bytes",
            (false, false) if self.is_latency_bound() => "latency",
            // Unclear is undetermined, and no finding that there is none.
            (false, false) if self.looked_for().iter().any(|f| f.known().is_none()) => "undetermined",
            (false, false) => "none",
        }
    }

    /// Bytes rate over ops rate: where the binding limit changes. `None` unless both are limits, and known.
    pub fn knee_bytes(&self) -> Option<Estimate> {
        let (o, b) = (self.ops.known()?, self.bytes.known()?);
        let limits = self.is_proved(Resource::Ops) && self.is_proved(Resource::Bytes);
        if !(limits && o.value > 0.0 && b.value > 0.0) {
            return None;
        }
        // Relative half widths of independent measurements add in quadrature.
        let r = o.relative_half_width().hypot(b.relative_half_width());
        let knee = b.value / o.value;
        // What is as wide as itself is no size: the claim on it would be refused.
        (r.exp() <= plimsoll_model::claim::SPREAD.sqrt()).then(|| Estimate {
            value: knee,
            low: knee / r.exp(),
            high: knee * r.exp(),
            n_eff: o.n_eff.min(b.n_eff),
        })
    }

    /// What each drain showed, and what says that a limiter was seen.
    pub fn evidence(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for f in self.looked_for() {
            let unit = f.resource.name();
            out.push((format!("{unit}: why a limit"), self.shows(f.resource).into()));
            out.push((format!("{unit}: in flight"), f.concurrency.to_string()));
            for (i, d) in f.drains.iter().enumerate() {
                out.push((format!("{unit} drain {}", i + 1), drain_words(d)));
            }
        }
        out.extend(self.contest.iter().flat_map(laws_words));
        out
    }

    /// What is known of a burst, in a word or two.
    fn status_of(&self, f: &Found) -> &'static str {
        let rested = self.answers.after_rest.is_some_and(|a| a.beyond > 0.0);
        match f.capacity {
            Capacity::NoneSeen if f.resource == Resource::Ops && rested => "burst after a rest",
            _ => f.status(self.cause_of(f.resource)),
        }
    }

    fn looked_for(&self) -> Vec<&Found> {
        if self.moves_bytes { vec![&self.ops, &self.bytes] } else { vec![&self.ops] }
    }

    /// What was found beside the figures, and what remains undetermined, each with what would settle it.
    pub fn findings(&self) -> Vec<Finding> {
        let mut out: Vec<Finding> = self.looked_for().into_iter().flat_map(|f| self.kind_of(f)).collect();
        out.extend(self.at_once());
        out.extend(self.same_share());
        out.extend(self.grows());
        out.extend(self.of_connections());
        out.extend(self.pace_of_connections());
        out.extend(self.enough_in_flight());
        out.extend(self.penalty());
        out.extend(self.held_back());
        out.extend(self.by_law());
        out.extend(self.cost());
        if let Some(r) = self.seen_twice() {
            out.push(self.hidden(r));
        }
        // What lies out of reach behind the other's limit is told as such, not as a question.
        let hidden = |f: &&Found| self.seen_twice().is_none_or(|cap| cap == f.resource);
        out.extend(self.looked_for().into_iter().filter(hidden).flat_map(|f| &f.open).map(|q| {
            let mut c = q.text.chars();
            let text: String = c.next().map(|f| f.to_uppercase().chain(c).collect()).unwrap_or_default();
            Finding::new("F03", OPEN_QUESTION, Level::Info, text + ".")
        }));
        out
    }

    /// How a limit behaves: refuses, delays, in windows, with a second tier, and what its burst is made of.
    fn kind_of(&self, f: &Found) -> Vec<Finding> {
        let mut out = Vec::new();
        if !self.is_limited(f.resource) {
            return out;
        }
        let unit = if f.resource == Resource::Ops { "operations" } else { "bytes" };
        let last = f.drains.iter().rfind(|d| d.steadiness.is_some());
        let steadiness = last.and_then(|d| d.steadiness);
        let cause = self.cause_of(f.resource);
        let refused = f.refused();
        let how = if refused >= 0.01 {
            let (amount, unit) = match f.resource {
                Resource::Ops => (words::about(f.passed_per_s(), 3), "op"),
                Resource::Bytes => (words::about(f.passed_per_s() / 1e6, 3), "MB"),
            };
            match refused {
                1.0.. => "the limiter refuses every attempt of a load that does not back off".to_owned(),
                _ => format!(
                    "the limiter refuses the excess ({} of attempts on the plateau, while {amount} {unit}/s get \
                     through)",
                    words::share(refused)
                ),
            }
        } else {
            let latency = last.and_then(|d| d.latency_s).unwrap_or(0.0);
            format!(
                "the limiter delays the excess (mean latency {} with {} in flight)",
                plimsoll_model::units::format_latency_ns(latency * 1e9),
                last.map_or(f.concurrency, |d| d.concurrency)
            )
        };
        let held = match (last, steadiness) {
            (Some(d), Some(s)) if cause != Cause::Refusing => straight(s.wander_s, f.resource, d.rate),
            _ => String::new(),
        };
        let shows = self.shows(f.resource);
        let text = format!("Evidence for the limit on {unit}: {shows}; {how}{held}.");
        let mut why = Finding::new("F40", LIMIT_CAUSE, Level::Info, text);
        let punishes = self.answers.by_law.is_some_and(|l| l.fit.law.punishes());
        if cause == Cause::Refusing || f.resource == Resource::Ops && punishes {
            why.evidence.push((REFUSES_ALL[0].into(), REFUSES_ALL[1].into()));
        }
        if let Some(s) = self.refused_after_s {
            why.text.pop();
            why.text += &format!("; refusals are answered {} late.", words::span(s));
            why.evidence.push((REFUSED_AFTER.into(), format!("{s:.2} s")));
        }
        out.push(why);
        // Bursts and silence come of other laws, too: where laws were held against all that was seen, this one has to explain it.
        let calendar =
            self.contest.as_ref().and_then(|c| c.fits.iter().find(|f| f.law == RivalLaw::Calendar));
        let other_law = self.answers.by_law.is_some_and(|l| l.fit.law != RivalLaw::Calendar)
            || calendar.is_some_and(|f| !f.is_close);
        if let Some((period_s, units)) = f.window().filter(|_| !other_law || f.resource != Resource::Ops) {
            let (amount, unit) = if f.resource == Resource::Ops {
                (words::about(units, 3), "ops".to_owned())
            } else {
                let (unit, k) = words::bytes_unit(units);
                (words::about(units / k, 3), unit.to_owned())
            };
            let text =
                format!("It is a fixed-window quota: {amount} {unit} in each {period_s:.1} s, then nothing.");
            out.push(Finding::new("F42", "limit_window", Level::Info, text));
        }
        if let Some((rate, capacity)) = f.first_tier() {
            let n = |x: f64| amount(f.resource, x);
            let text = format!(
                "There are two token buckets for {unit} in series: one of {} refilled at {}/s, and the one reported \
                 here.",
                n(capacity),
                n(rate)
            );
            out.push(Finding::new("F47", "limit_tiers", Level::Info, text));
        }
        if let Some((law, ratio)) = self.answers.burst[f.resource as usize] {
            let ratio = significant(ratio, 3);
            let text = match law {
                BurstLaw::Tokens => format!(
                    "The burst of {unit} is limited by tokens: at half the excess rate, it lasted {ratio} times as \
                     long."
                ),
                BurstLaw::Timer => format!(
                    "The burst of {unit} is limited by time, not by tokens: at half the excess rate, it lasted \
                     {ratio} times as long."
                ),
            };
            out.push(Finding::new("F43", "limit_burst_law", Level::Info, text));
        }
        if let Some(a) = self.answers.after_rest.filter(|a| f.resource == Resource::Ops && a.beyond > 0.0) {
            let text = format!(
                "After a rest of {} {}{} ops passed within {}, {} more than the rate gives in that time{}: while it is pushed the limiter \
                 shows no burst.",
                words::span(a.rest_s),
                if a.at_least { "at least " } else { "" },
                words::about(a.passed, 3),
                words::span(a.within_s),
                words::about(a.beyond, 3),
                if a.at_least { "" } else { ", before requests were refused" },
            );
            out.push(Finding::new("F43", "limit_burst_after_rest", Level::Info, text));
        }
        out
    }

    fn cost(&self) -> Option<Finding> {
        let text = match self.answers.cost? {
            Cost::OpsAndBytes => {
                "Intermediate sizes follow the lower of the two limits (within 10 %).".to_owned()
            }
            Cost::Shared => {
                "Operations and bytes use one shared resource: at the size where both limits meet, only \
                             half the rate is left. That suggests a CPU or a disk rather than two limits."
                    .to_owned()
            }
            Cost::Units(u) => format!(
                "Operations are counted in units of {}: a larger op costs one for each unit that it starts.",
                format_size(u as u64)
            ),
            Cost::Other(ratio) => format!(
                "Intermediate sizes do not follow the two limits: they reach {} of the predicted rate. The limits \
                 hold for the sizes that were probed.",
                percent(ratio)
            ),
        };
        Some(Finding::new("F44", "limit_cost", Level::Info, text))
    }

    /// The other cap lies above what could be reached.
    fn hidden(&self, seen: Resource) -> Finding {
        let text = match seen {
            Resource::Ops => format!(
                "No limit on bytes was reached: ops of {} run at the same {} op/s as small ones. Any limit on bytes \
                 is at least {}.",
                format_size(self.large_bytes),
                words::about(self.ops.sustained.map_or(0.0, |e| e.value), 3),
                self.bytes.sustained.map_or("unknown".into(), |e| words::bytes_rate(&e))
            ),
            Resource::Bytes => format!(
                "No limit on operations was reached: ops of {} move the same bytes per second as large ones{}.",
                format_size(self.small_bytes),
                if self.overhead_bytes > 0 { ", headers included" } else { "" }
            ),
        };
        Finding::new("F45", "limit_hidden", Level::Info, text)
    }

    /// Whether the rates were seen for as long as the user needs them.
    pub fn horizon_finding(&self, goal_s: Option<f64>, budget_s: f64) -> Option<Finding> {
        let goal_s = goal_s?;
        let seen = self.looked_for().iter().map(|f| f.horizon_s).fold(f64::INFINITY, f64::min);
        if !seen.is_finite() || seen >= goal_s {
            return None;
        }
        // A first drain of each resource as long as the goal; the first of two takes 40 % of the budget at most.
        let drains = if self.moves_bytes { 2.5 } else { 1.5 };
        let needed_s = (drains * goal_s + 60.0).max(budget_s);
        let text = format!(
            "The goal is {}, but the rates were seen for only {}: a burst that ends in between is not excluded. \
             Probe with --budget {:.0}s to measure for that long.",
            words::span(goal_s),
            words::span(seen),
            needed_s
        );
        Some(Finding::new("Q01", "horizon", Level::Qualified, text).measured(seen, goal_s))
    }

    /// What the report draws.
    pub fn buckets(&self, target: &str, op_class: &str) -> Vec<BucketFit> {
        let hidden = |f: &&&Found| match self.seen_twice() {
            Some(r) => f.resource == r,
            None => true,
        };
        self.looked_for()
            .iter()
            .filter(hidden)
            .map(|f| f.fit(target, op_class, self.cause_of(f.resource), self.status_of(f)))
            .collect()
    }
}

/// Odds beyond a million to one are told as that.
pub(super) const LARGE_ODDS: f64 = 13.8;

/// Further away than this no work is said to keep to a line (guess: half a second is what a rate under refusals may wander).
const LINE_S: f64 = 0.5;

/// How near to a straight line the work is, no nearer than ops, or clocks, can tell.
fn straight(wander_s: f64, of: Resource, rate: f64) -> String {
    let op_s = if of == Resource::Ops && rate > 0.0 { 1.0 / rate } else { 0.0 };
    let within = match wander_s.max(op_s) {
        s if !s.is_finite() || s > LINE_S => return String::new(),
        s if s < 1e-4 => "0.1 ms".into(),
        s => format!("{} ms", significant(1e3 * s, 2)),
    };
    format!("; on the plateau, the work done stays within {within} of a constant rate")
}

fn percent(share: f64) -> String {
    format!("{} %", significant(100.0 * share, 2))
}

fn amount(r: Resource, x: f64) -> String {
    match r {
        Resource::Ops => format!("{} ops", words::about(x, 3)),
        Resource::Bytes => {
            let (unit, f) = words::bytes_unit(x);
            format!("{} {unit}", words::about(x / f, 3))
        }
    }
}

/// How each law stands: who is told that none explains it can see what was held against it.
fn laws_words(c: &LawContest) -> Vec<(String, String)> {
    let mut out = vec![(
        "laws".to_owned(),
        format!(
            "{} independent seconds with refusals; the best is ahead of no law by {} (logarithm of odds)",
            significant(c.n_eff, 2),
            significant(c.ahead_of_none, 2)
        ),
    )];
    out.extend(c.fits.iter().map(|f| {
        let (low, high) = f.rate_bounds;
        let bounds = match high.is_finite() && low > 0.0 {
            true => format!(" ({} to {})", words::about(low, 3), words::about(high, 3)),
            false => String::new(),
        };
        let close = if f.is_close { ", which is close" } else { "" };
        let text = format!(
            "{} op/s{bounds}, off by {} op/s{close}; {} ahead of the best of the others",
            words::about(f.rate_per_s, 3),
            significant(f.error_ops, 2),
            significant(f.ahead, 2)
        );
        (format!("law: {}", f.law.words()), text)
    }));
    out
}

fn drain_words(d: &DrainEvidence) -> String {
    let idle = d.idle_s.map_or("first".into(), |s| format!("after {} of rest", words::span(s)));
    let cliff = d.cliff_s.map_or(String::new(), |s| format!(", cliff at {}", words::span(s)));
    let found = d.recovered.map_or("unknown".into(), |r| significant(r, 4));
    let refused = d
        .steadiness
        .filter(|s| s.refused > 0.0)
        .map_or(String::new(), |s| format!(", {} refused", words::share(s.refused)));
    format!(
        "{idle}: {}{cliff}, plateau {}{refused}, {found} tokens beyond it, {} long",
        d.kind.name(),
        significant(d.rate, 4),
        words::span(d.length_s)
    )
}

impl Found {
    fn bucket(&self, proved: bool) -> BucketSummary {
        let capacity = match self.capacity {
            Capacity::Measured(e) => Some(e),
            // A bound, as an interval without an upper end.
            Capacity::AtLeast(v) => Some(Estimate { value: v, low: v, high: f64::MAX, n_eff: 1.0 }),
            Capacity::NoneSeen => None,
        };
        let sustained = finite(self.known());
        let refill = finite(self.refill);
        BucketSummary {
            sustained,
            burst: finite(self.burst),
            capacity: finite(capacity),
            refill,
            proved,
            horizon_s: (self.horizon_s > 0.0).then_some(self.horizon_s),
            full_again_s: match (self.capacity, refill) {
                (Capacity::Measured(c), Some(r)) if r.value > 0.0 => finite(Some(c.scaled(1.0 / r.value))),
                _ => None,
            },
        }
    }

    fn status(&self, cause: Cause) -> &'static str {
        match self.capacity {
            Capacity::Measured(_) => "measured",
            Capacity::AtLeast(_) => "bound",
            Capacity::NoneSeen
                if cause != Cause::None && self.drains.iter().any(|d| d.kind == super::DrainKind::Micro) =>
            {
                "short burst seen once"
            }
            Capacity::NoneSeen if cause != Cause::None => "no burst seen",
            Capacity::NoneSeen => "no limit seen",
        }
    }

    fn fit(&self, target: &str, op_class: &str, cause: Cause, status: &str) -> BucketFit {
        let b = self.bucket(cause != Cause::None);
        BucketFit {
            target: target.into(),
            op_class: op_class.into(),
            unit: self.resource.name().into(),
            sustained_per_s: b.sustained,
            burst_per_s: b.burst,
            capacity: b.capacity,
            refill_per_s: b.refill,
            full_again_s: b.full_again_s,
            status: status.into(),
            drains: self.drains.iter().map(curve).collect(),
            recoveries: self.drains.iter().filter_map(recovery).collect(),
            frontier: Vec::new(),
        }
    }
}

fn finite(e: Option<Estimate>) -> Option<Estimate> {
    e.filter(|e| e.value.is_finite() && e.low.is_finite() && e.high.is_finite())
}

fn curve(d: &DrainEvidence) -> analysis::Drain {
    let work = math::cumulative(&d.x, d.dt_s);
    let every = work.len().div_ceil(CURVE).max(1);
    analysis::Drain {
        start_s: d.start_s,
        work: work.iter().enumerate().step_by(every).map(|(i, w)| (i as f64 * d.dt_s, *w)).collect(),
        cliff_s: d.cliff_s,
    }
}

fn recovery(d: &DrainEvidence) -> Option<Recovery> {
    let tokens = finite(Some(Estimate::symmetric(d.recovered?, d.recovered_half_width, 1.0)))?;
    Some(Recovery { idle_s: d.idle_s?, tokens, saturated: d.is_saturated() })
}
