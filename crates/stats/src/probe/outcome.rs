//! What the probe found: estimates, bounds, and what remains open with the seconds that would settle it.

use plimsoll_model::Estimate;

use super::after_rest::AfterRest;
use super::capacity::capacity;
use super::cause;
use super::grows::growth;
use super::hold;
use super::ladder::GROWTH;
use super::open::{changed_rate, open_questions, refused_rate};
use super::questions::{Answers, Penalty, Questions};
use super::track::FirstLook;
use super::{AtOnce, Cause, DrainEvidence, DrainKind, Growth, HeldBack, ProbeOptions, Resource, Track};
use crate::laws::{LawContest, LoadRecord, RivalLaw};
use crate::math;
use crate::silence::ONE_BY_ONE;
use crate::student;

/// Looks of one rate, each of so many seconds or more, differ by no more than this beside what each is not sure of (a choice: limiters are
/// known to hold theirs within 2 %).
const CHANGED: f64 = 1.1;
const LEAST_LOOK_S: f64 = 8.0;

/// Least relative half width of a rate.
const LEAST_HALF_WIDTH: f64 = 0.001;

/// Large ops are as many as small ones from this share on (a choice: what passes beside refusals differs by more than what is constant).
const AS_MANY: f64 = 0.8;

/// A rate that is known no better than this (half width over value) is none: what is shown then are bounds (guess; as wide as
/// SNIA lets the rounds of a steady window differ).
const WIDEST: f64 = 0.20;

/// A plateau of less than this share of the longest one has to come back to its line all the more to tell that the rate is held.
pub(super) const BRIEF: f64 = 0.5;

/// Least relative half width of a burst's rate: load comes up and slices have edges at every drain alike, which repeats do not
/// show (validated: simulated bursts).
const LEAST_BURST_HALF_WIDTH: f64 = 0.02;

/// How much of the capacity is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// The idle time before would have filled it over and over.
    Measured(Estimate),
    /// At least this much: no idle time within the budget would have filled more.
    AtLeast(f64),
    /// No burst was seen: a bucket larger than `not_excluded` tokens could still be there.
    NoneSeen,
}

/// One resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Which of the two it is.
    pub resource: Resource,
    /// Units per second.
    pub sustained: Option<Estimate>,
    /// Units per second, while its tokens last.
    pub burst: Option<Estimate>,
    /// Tokens: of a full bucket.
    pub capacity: Capacity,
    /// Tokens per second that come back.
    pub refill: Option<Estimate>,
    /// Longest single drain: how long a rate was seen.
    pub horizon_s: f64,
    /// Ops in flight that drained it.
    pub concurrency: u32,
    /// What the ladder's first rung showed; absent where refusals came with it, or there was none.
    pub first_look: Option<FirstLook>,
    /// The rate still grew with the ops in flight where the ladder ended.
    pub still_grew: bool,
    /// Latency with half as many in flight as the ladder ended with, seconds.
    pub latency_below_s: Option<f64>,
    /// What remains open, each with what would settle it.
    pub open: Vec<Open>,
    /// All of them, in order.
    pub drains: Vec<DrainEvidence>,
}

/// A question that remains open.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// A sentence, without its full stop.
    pub text: String,
    /// So much more of the same probe would settle it, seconds; `None`: more time alone would not.
    pub more_s: Option<f64>,
}

impl Found {
    /// The rate, where it is known well enough to be quoted, and what was seen held still for it.
    pub fn known(&self) -> Option<Estimate> {
        let e = self.sustained.filter(|e| e.value.is_finite() && e.relative_half_width() <= WIDEST)?;
        self.moved().is_none().then_some(Estimate { low: e.low.max(0.0), ..e })
    }

    /// A speed that no limiter explains moved more than a steady one may, in the longest look at it: how, and by how much.
    pub fn moved(&self) -> Option<(&'static str, f64)> {
        if !matches!(self.cause(), Cause::None) {
            return None;
        }
        let longest = self.drains.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s))?;
        longest.moves
    }

    /// The least and the most of what its looks came to, each of which held still, where they are far apart: it changed meanwhile, and
    /// what lies between them never passed.
    pub(super) fn changed(&self) -> Option<(f64, f64)> {
        let looks =
            self.drains.iter().filter(|d| d.kind != DrainKind::Unsteady && d.rate > 0.0).filter_map(|d| {
                let s = d.steadiness.filter(|s| s.seconds >= LEAST_LOOK_S)?;
                let half =
                    if s.is_held_exactly() { d.rate * s.relative_half_width() } else { d.rate_half_width };
                half.is_finite().then_some((d.rate - half, d.rate + half))
            });
        let (least, most) =
            looks.fold((f64::INFINITY, 0.0f64), |(l, m), (low, high)| (l.min(high), m.max(low)));
        (most > CHANGED * least).then_some((least, most))
    }

    /// Ops (or bytes) per second that passed where most was refused.
    pub fn passed_per_s(&self) -> f64 {
        let share = |d: &DrainEvidence| d.steadiness.map_or(0.0, |s| s.refused);
        let most = self.drains.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        most.map_or(0.0, |d| math::mean(&d.x[d.x.len() / 3..]))
    }

    /// The highest rate of any slice, units per second.
    pub(super) fn most_passed(&self) -> f64 {
        self.drains.iter().flat_map(|d| &d.x).copied().fold(0.0, f64::max)
    }

    /// A rate that its plateaus do not tell well (a quota in large steps) lies between what passed with no tokens left and what did not. One that
    /// a plateau had well below what passed is of none: after a rest a sliding count lets much through at once, and nothing for as long.
    fn between(&mut self, passes: f64, refused: f64) {
        let below = self.sustained.is_some_and(|e| e.high < passes);
        let unknown = self.sustained.is_none_or(|e| e.relative_half_width() > WIDEST);
        if below {
            self.no_bucket();
        }
        if below || unknown {
            // Both were tried around what passed beside refusals.
            self.sustained =
                Some(Estimate { value: passes / hold::LESS, low: passes, high: refused, n_eff: 1.0 });
        }
    }

    /// What was seen of one is of another law.
    fn no_bucket(&mut self) {
        (self.capacity, self.burst, self.refill) = (Capacity::NoneSeen, None, None);
        self.open.clear();
    }

    /// Whether a bucket was found.
    pub fn is_bucket(&self) -> bool {
        !matches!(self.capacity, Capacity::NoneSeen)
    }

    /// The strongest evidence that the rate is a limiter's.
    pub fn cause(&self) -> Cause {
        if self.is_bucket() {
            return Cause::Bucket;
        }
        let longest_s =
            self.drains.iter().filter_map(|d| d.steadiness).map(|s| s.seconds).fold(0.0, f64::max);
        let of = |d: &DrainEvidence| {
            let cause = match d.window {
                Some(_) => Cause::Held,
                None => d.steadiness.map_or(Cause::None, |s| s.cause()),
            };
            // What a short look takes for held, a longer one shows to wander: by chance some seconds are even.
            let brief = d.window.is_none()
                && d.steadiness.is_some_and(|s| s.seconds < BRIEF * longest_s && !s.comes_back());
            // As even as latency is, and as high as more in flight make it.
            if cause == Cause::Held && (brief || self.latency_sets(d)) { Cause::None } else { cause }
        };
        self.drains.iter().map(of).min().unwrap_or(Cause::None)
    }

    /// The rate grew with the ops in flight up to the ladder's top, and they take no longer there than half as many did: where a limit
    /// delays, the ops beyond what it allows wait, and latency grows with their number (Little's law).
    fn latency_sets(&self, d: &DrainEvidence) -> bool {
        let longer = |below_s: f64| d.latency_s.is_none_or(|l| l > GROWTH * below_s);
        self.still_grew && self.latency_below_s.is_some_and(|b| !longer(b))
    }

    /// More ops in flight would have brought more, and no limit was seen: latency is what was seen.
    pub fn is_latency_bound(&self) -> bool {
        self.still_grew && self.cause() == Cause::None
    }

    /// Share of attempts that were refused on the plateau, and mean latency there, seconds: of the drain that was refused most.
    pub fn refused(&self) -> f64 {
        self.drains.iter().filter_map(|d| d.steadiness).map(|s| s.refused).fold(0.0, f64::max)
    }

    /// Period and units of a quota per fixed window: ops that come one by one are a rate.
    pub fn window(&self) -> Option<(f64, f64)> {
        let several = |units: f64| self.resource != Resource::Ops || units > ONE_BY_ONE;
        self.drains.iter().find_map(|d| d.window).filter(|(_, units)| several(*units))
    }

    /// A faster bucket before the last one, as the fullest drain shows it: (rate, capacity).
    pub fn first_tier(&self) -> Option<(f64, f64)> {
        let fullest = self.drains.iter().filter(|d| !d.tiers.is_empty());
        fullest
            .max_by(|a, b| a.recovered.unwrap_or(0.0).total_cmp(&b.recovered.unwrap_or(0.0)))?
            .tiers
            .first()
            .copied()
    }

    /// Tokens of a bucket that this probe does not exclude if the true sustained rate is `r`.
    pub fn not_excluded(&self, r: f64) -> f64 {
        self.sustained.map_or(f64::INFINITY, |s| (s.value - r).max(0.0) * self.horizon_s)
    }
}

/// Both resources.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeOutcome {
    /// The bucket of operations.
    pub ops: Found,
    /// The bucket of bytes; empty where the op moves none.
    pub bytes: Found,
    /// Size of the large ops, as the pilot chose it.
    pub large_bytes: u64,
    /// Size of the small ops.
    pub small_bytes: u64,
    /// Bytes that travel with each op beside its own.
    pub overhead_bytes: u64,
    /// Whether a bytes bucket was looked for.
    pub moves_bytes: bool,
    /// What kind of limiter it is.
    pub answers: Answers,
    /// Refusals are answered so late, seconds; absent: at once.
    pub refused_after_s: Option<f64>,
    /// Clients were kept waiting for their refusals, and nobody held back: no rate is told.
    pub kept_waiting: bool,
    /// A limit that grows while it is asked.
    pub grows: Option<Growth>,
    /// How the laws of limiters that refuse stood, when they were held against each other last.
    pub contest: Option<LawContest>,
    /// On the clock of the observations.
    pub elapsed_s: f64,
}

impl ProbeOutcome {
    pub(super) fn of(
        tracks: &[Track; 2],
        large_bytes: u64,
        elapsed_s: f64,
        o: &ProbeOptions,
        questions: &Questions,
        record: &LoadRecord,
    ) -> Self {
        let answers = questions.answers;
        let mut out = Self {
            ops: found(Resource::Ops, &tracks[0], o, answers.after_rest),
            bytes: found(Resource::Bytes, &tracks[1], o, None),
            large_bytes,
            small_bytes: o.small_bytes,
            overhead_bytes: o.overhead_bytes,
            moves_bytes: o.moves_bytes,
            answers,
            refused_after_s: record.refused_after_s(),
            kept_waiting: false,
            grows: growth(record),
            contest: questions.contest.clone(),
            elapsed_s,
        };
        // Saturated, such a limiter grants next to nothing: its rate is the highest one without refusals.
        if let Some(Penalty::CostsTokens(rate)) = answers.penalty {
            out.ops.sustained = Some(rate);
            // It was seen for as long as its trial was: in the drains next to nothing passed.
            out.ops.horizon_s = answers.free_s.unwrap_or(out.ops.horizon_s);
        }
        if let Some(law) = answers.by_law {
            if law.fit.law != RivalLaw::Bucket {
                out.ops.no_bucket();
            }
            (out.ops.sustained, out.ops.horizon_s) = (Some(law.rate()), law.seconds);
        }
        match answers.held_back {
            // A bucket that a load which insists seemed to see is none of a limiter that gives it less.
            Some(HeldBack::More { rate, seconds, .. }) => {
                out.ops.no_bucket();
                (out.ops.sustained, out.ops.horizon_s) = (Some(rate), seconds);
            }
            Some(HeldBack::Less { .. }) => {
                out.ops.no_bucket();
                out.ops.sustained = None;
            }
            Some(HeldBack::Same { passes, refused, .. }) => out.ops.between(passes, refused),
            None => {}
        }
        if out.grows.is_some() {
            out.ops.no_bucket();
            out.ops.sustained = None;
        }
        // A rate that was found by itself was found whatever the drains had come to.
        let by_itself = answers.by_law.is_some()
            || out.grows.is_some()
            || matches!(answers.penalty, Some(Penalty::CostsTokens(_)))
            || matches!(answers.held_back, Some(HeldBack::More { .. } | HeldBack::Less { .. }));
        if !by_itself {
            out.forget_what_changed();
        }
        out.ops.open.extend(refused_rate(&out.ops, &answers));
        // Where nothing passes, large ops are not tried: what small ones showed holds for both.
        if out.ops.cause() == Cause::Refusing && out.bytes.drains.is_empty() {
            out.bytes.open.clear();
        }
        out.pool_one_cap();
        if let Some(at_once) = answers.at_once {
            out.no_rate(at_once);
        }
        if answers.same_share.is_some() {
            out.forget_rates();
        }
        out
    }

    /// No rate is told of what had two, nor a bucket that stands on one of them; and what changed for small ops did for large ones.
    fn forget_what_changed(&mut self) {
        let changed: Vec<Open> = [&self.ops, &self.bytes].into_iter().filter_map(changed_rate).collect();
        if !changed.is_empty() {
            self.forget_rates();
            self.answers.held_back = None;
            self.bytes.open.clear();
            self.ops.open = changed;
        }
    }

    /// Neither resource has a rate that is a limit's.
    pub(super) fn forget_rates(&mut self) {
        for f in [&mut self.ops, &mut self.bytes] {
            f.no_bucket();
            f.sustained = None;
        }
    }

    /// What passes is what the storage does with so many in flight: no rate is a limit's, and none was looked for.
    fn no_rate(&mut self, at_once: AtOnce) {
        let AtOnce { passes, sure, .. } = at_once;
        self.forget_rates();
        let text = if sure {
            format!(
                "what the storage does with the requests that get through was not measured: run a measurement with \
                 {passes} in flight"
            )
        } else {
            format!(
                "whether the limit is on more than {passes} requests at once, or on a rate that this many reach, was \
                 not determined: slower ops (of another size) or a larger --budget would settle it"
            )
        };
        self.ops.open.push(Open { text, more_s: None });
    }

    /// What says that this resource has a limiter: where one cap was seen under both loads, what either shows of it counts.
    pub fn cause_of(&self, r: Resource) -> Cause {
        // Refusals are of how many there are at once, or of any.
        if self.answers.at_once.is_some() || self.answers.same_share.is_some() {
            return Cause::None;
        }
        let found = match r {
            Resource::Ops => &self.ops,
            Resource::Bytes => &self.bytes,
        };
        if r == Resource::Bytes && (self.kept_waiting || self.large_are_refused_as_small()) {
            return Cause::None;
        }
        // It refuses, and not by the law that its plateau seemed to have.
        let other_law = self.answers.by_law.is_some_and(|l| l.fit.law != RivalLaw::Bucket)
            || matches!(self.answers.held_back, Some(HeldBack::More { .. } | HeldBack::Less { .. }));
        let unclear =
            self.answers.is_unclear && self.answers.by_law.is_none() && found.cause() == Cause::Refusals;
        if r == Resource::Ops && (other_law || unclear || self.kept_waiting || self.grows.is_some()) {
            return Cause::Refusing;
        }
        match self.seen_twice() {
            Some(cap) if cap == r => self.ops.cause().min(self.bytes.cause()).min(self.cause_of_same_bytes()),
            Some(_) => Cause::None,
            None => found.cause(),
        }
    }

    /// Who refuses small ops refuses large ones: without a rate of theirs, or where they come to as many per second as small ones whose rate is not
    /// known, that is no limit on bytes.
    fn large_are_refused_as_small(&self) -> bool {
        let (ops, bytes) = (&self.ops, &self.bytes);
        let no_rate = bytes.refused() >= cause::REFUSED && bytes.known().is_none();
        let most = AS_MANY * ops.passed_per_s() * self.large_bytes as f64;
        let as_many = self.large_bytes > self.small_bytes
            && ops.known().is_none()
            && bytes.sustained.is_some_and(|e| e.value >= most);
        ops.refused() >= cause::REFUSED && (no_rate || as_many)
    }

    /// Whether this resource has a limiter of its own, as far as the evidence goes.
    pub fn is_limited(&self, r: Resource) -> bool {
        self.cause_of(r) != Cause::None
    }

    /// Whether the rate that is given is a cap: who refuses limits, but what passes under a load that is refused is no cap.
    pub fn is_proved(&self, r: Resource) -> bool {
        match self.cause_of(r) {
            Cause::Bucket | Cause::Refusals | Cause::Held => true,
            Cause::Refusing => {
                let costs = matches!(self.answers.penalty, Some(Penalty::CostsTokens(_)));
                // What passed for a moment is what a load gets that insists.
                let more =
                    matches!(self.answers.held_back, Some(HeldBack::More { seconds, .. }) if seconds > 0.0);
                let told = costs || more || self.answers.by_law.is_some();
                // Bounds that are far apart are no rate.
                told && r == Resource::Ops && self.ops.known().is_some()
            }
            Cause::None => false,
        }
    }

    /// Whether its rate is a limit's, and is held under the load that was put on it.
    pub fn is_held(&self, r: Resource) -> bool {
        self.is_proved(r) && self.cause_of(r) != Cause::Refusing
    }

    /// What these ops come to is not known, and no other cap was seen under them.
    pub fn is_open(&self, r: Resource) -> bool {
        let f = if r == Resource::Ops { &self.ops } else { &self.bytes };
        f.known().is_none() && self.seen_twice().is_none_or(|cap| cap == r)
    }

    /// Sustained ops per second, where they are a limit.
    pub fn limit_of_ops(&self) -> Option<f64> {
        self.ops.known().filter(|_| self.is_proved(Resource::Ops)).map(|e| e.value)
    }

    /// Sustained bytes per second, where they are a limit.
    pub fn limit_of_bytes(&self) -> Option<f64> {
        self.bytes.known().filter(|_| self.is_proved(Resource::Bytes)).map(|e| e.value)
    }

    /// Time of one small op where nothing waits for a limit, seconds; `None` where no load below the limit was seen.
    pub fn unloaded_latency_s(&self) -> Option<f64> {
        let look = self.ops.first_look?;
        // Small ops may be held back by the limit on bytes.
        let by_bytes = self.limit_of_bytes().map(|b| b / self.small_bytes.max(1) as f64);
        let caps = || [self.limit_of_ops(), by_bytes].into_iter().flatten();
        // Below each of them, or of none that is known.
        caps().next()?;
        caps().map(|cap| look.latency_below(cap)).collect::<Option<Vec<f64>>>()?.first().copied()
    }

    /// More ops in flight would have brought more: latency is what was seen.
    pub fn is_latency_bound(&self) -> bool {
        self.ops.is_latency_bound() || (self.moves_bytes && self.bytes.is_latency_bound())
    }
}

fn found(resource: Resource, t: &Track, o: &ProbeOptions, after_rest: Option<AfterRest>) -> Found {
    let horizon_s = t.drains.iter().map(|d| d.length_s).fold(0.0, f64::max);
    let sustained = sustained(t);
    let capacity = capacity(t);
    let refill = refill(t, capacity);
    let burst = burst(t);
    let mut f = Found {
        resource,
        sustained,
        burst,
        capacity,
        refill,
        horizon_s,
        concurrency: t.concurrency.unwrap_or(o.concurrency),
        first_look: t.first_look,
        still_grew: t.still_grew,
        latency_below_s: t.latency_below_s,
        open: vec![],
        drains: t.drains.clone(),
    };
    // What was not looked for is no question.
    if resource == Resource::Ops || o.moves_bytes {
        f.open = open_questions(&f, t, after_rest);
    }
    f
}

/// Median over the drains that saw a plateau, with the interval of a long one, or their spread if that is wider.
fn sustained(t: &Track) -> Option<Estimate> {
    let seen: Vec<&DrainEvidence> = t.drains.iter().filter(|d| d.kind != DrainKind::Unsteady).collect();
    let rates: Vec<f64> = seen.iter().map(|d| d.rate).collect();
    if rates.is_empty() {
        return t.rate.map(|r| Estimate::symmetric(r, f64::INFINITY, 1.0));
    }
    // A drain that saw the rate held for longest knows it best: so exactly as its work keeps to a straight line.
    let held = seen.iter().filter(|d| d.kind == DrainKind::Flat).filter_map(|d| {
        let s = d.steadiness.filter(|s| s.cause() == Cause::Held)?;
        Some((d.rate, d.rate * s.relative_half_width()))
    });
    if let Some((value, hw)) = held.min_by(|a, b| a.1.total_cmp(&b.1)) {
        let own = seen.iter().map(|d| d.rate_half_width).fold(f64::INFINITY, f64::min);
        // Slices have edges, and clocks differ: no rate is known better than this.
        let half = hw.min(own).max(LEAST_HALF_WIDTH * value);
        return Some(Estimate::symmetric(value, half, rates.len() as f64));
    }
    let widths: Vec<f64> = seen.iter().map(|d| d.rate_half_width).filter(|w| w.is_finite()).collect();
    let own = if widths.is_empty() { f64::INFINITY } else { math::quantile(&widths, 0.25) };
    let value = math::median(&rates);
    let between = if rates.len() >= 3 {
        student::t95((rates.len() - 1) as f64) * math::stdev(&rates, 1) / (rates.len() as f64).sqrt()
    } else {
        0.0
    };
    Some(Estimate::symmetric(value, own.max(between).max(LEAST_HALF_WIDTH * value), rates.len() as f64))
}

fn burst(t: &Track) -> Option<Estimate> {
    let v: Vec<f64> = t.drains.iter().filter_map(|d| d.burst).collect();
    if v.is_empty() {
        return None;
    }
    let n = v.len() as f64;
    let value = math::median(&v);
    let hw = if v.len() >= 2 {
        // What varies within each look, and what between them; and what is the same in all.
        let own: Vec<f64> = t.drains.iter().map(|d| d.burst_half_width).filter(|w| w.is_finite()).collect();
        let within = if own.is_empty() { 0.0 } else { math::median(&own) / n.sqrt() };
        let between = student::t95(n - 1.0) * math::stdev(&v, 1) / n.sqrt();
        between.max(within).max(LEAST_BURST_HALF_WIDTH * value)
    } else {
        // One look at the burst: the spread between looks is not known; 5 % is what simulations show at most 9 in 10 times.
        0.05 * v[0]
    };
    Some(Estimate::symmetric(value, hw, n))
}

fn refill(t: &Track, capacity: Capacity) -> Option<Estimate> {
    let cap = match capacity {
        Capacity::Measured(e) => e.value,
        Capacity::AtLeast(_) => t.most_recovered(),
        Capacity::NoneSeen => return None,
    };
    let d = t.refill_drain(cap)?;
    let (idle, r) = (d.idle_s?, d.recovered?);
    Some(Estimate::symmetric(r / idle + d.taken_per_s, d.recovered_half_width / idle, 1.0))
}
