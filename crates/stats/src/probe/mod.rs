//! (d) The active probe of an unknown limiter, as a pure controller: observations in, the next phase out.
//!
//! It saturates with small ops until the ops bucket has run dry and the plateau is known, then with large ones for
//! the bytes bucket: the drain of the one is the time in which the other refills. From the second drain on, the tokens
//! recovered after a known idle time give capacity (when the idle time would have filled it over and over) and refill
//! rate (when not); tokens that the other's phases took meanwhile are accounted for. Bursts too short to be a level are
//! found by a scan and confirmed by repeated idle-and-drain cycles against a control that followed no idle time.
//!
//! The caller executes each [`ProbeAction`] on real storage or on a simulator and calls [`Probe::next`] with what it saw.

mod after_rest;
mod answered;
mod at_once;
mod bisect;
mod by_law;
mod capacity;
mod cause;
mod connection;
mod cost;
mod design;
mod drain;
mod explained;
mod grows;
mod hold;
mod kept_waiting;
mod ladder;
mod law;
mod micro;
mod one_cap;
mod open;
mod options;
mod outcome;
mod pilot;
mod plateau;
mod questions;
mod resource;
pub mod scope;
mod served;
pub mod shared;
mod summary;
mod track;

pub use after_rest::AfterRest;
pub use answered::{HELD_BACK, PASSED_FOR};
pub use at_once::{AtOnce, SameShare};
pub use by_law::ByLaw;
pub use cause::{Cause, Steadiness};
pub use cost::Cost;
pub use drain::{DrainEvidence, DrainKind};
pub use grows::Growth;
pub use hold::HeldBack;
pub use open::CHANGED_MEANWHILE;
pub use options::ProbeOptions;
pub use outcome::{Capacity, Found, Open, ProbeOutcome};
pub use pilot::only_chooses_load;
pub use questions::{Answers, BurstLaw, Penalty};
pub use resource::Resource;
pub use served::ServedAtOnce;
pub use summary::{LIMIT_CAUSE, OPEN_QUESTION, may_refuse_all, refused_after_s};
pub use track::FirstLook;

use crate::laws::{self, LoadRecord, RecordedLoad};
use crate::simulate::RatesSeen;
use ladder::Ladder;
use micro::MicroRun;
use pilot::{LADDER, PILOT, PilotRun};
use plateau::Plateau;
use questions::{Questions, Trial};
use track::Track;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProbeAction {
    /// Load, closed-loop unless a rate is offered. `continues`: the same load as before, without a break.
    Load {
        /// Of one op.
        size_bytes: u64,
        /// Ops in flight.
        concurrency: u32,
        /// After which the probe wants to see what came of it.
        duration_s: f64,
        /// Slices of the answer, seconds.
        dt_s: f64,
        /// Ops in flight from before stay in flight.
        continues: bool,
        /// Open loop: ops per second.
        offered_per_s: Option<f64>,
    },
    /// Stop issuing and wait for every op in flight; then report the time.
    Stop,
    /// Leave the storage alone.
    Idle {
        /// So long.
        seconds: f64,
    },
    /// All is known that the budget allows.
    Done,
}

/// What came of the last action.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeObservation {
    /// Seconds on any steady clock, after the action ended.
    pub now_s: f64,
    /// Of a load: rates per slice. Absent after [`ProbeAction::Stop`] and [`ProbeAction::Idle`].
    pub seen: Option<RatesSeen>,
}

/// Seconds of load between two looks.
const CHUNK_S: f64 = 5.0;
const LEAST_CHUNK_S: f64 = 1.0;
/// A drain of less shows neither a plateau nor its end: what is left of a budget is too little for it.
const LEAST_DRAIN_S: f64 = 10.0;
const LONGEST_REDRAIN_S: f64 = 180.0;
/// Seconds of refusals without a break that a first drain shows (guess: the plateau of a steady window's half).
const REFUSED_S: f64 = 30.0;
/// Least length of a first drain, if the budget has it.
const LEAST_FIRST_S: f64 = 20.0;

#[derive(Debug, Clone)]
enum State {
    Start,
    Pilot(PilotRun),
    Choose,
    Wait(Resource),
    Rung(Ladder),
    RungEnd(Ladder),
    Draining(Draining),
    Drained(Draining),
    Resting(Trial),
    Trying(Trial),
    Tried(Trial),
    AtOnce(at_once::Search),
    AtOnceEnd(at_once::Search),
    MicroIdle(MicroRun),
    MicroLoad(MicroRun),
    MicroStop(MicroRun),
    Done,
}

#[derive(Debug, Clone)]
struct Draining {
    of: Resource,
    first: bool,
    idle_s: Option<f64>,
    /// Time since the resource was loaded last, also before a first drain.
    rest_s: f64,
    /// Tokens per second that others took during that time.
    taken_per_s: f64,
    limit_s: f64,
    start_s: f64,
    t: f64,
    /// Seconds until the next look.
    chunk_s: f64,
    seen: Plateau,
}

/// The controller. Deterministic: the same observations give the same actions.
#[derive(Debug, Clone)]
pub struct Probe {
    options: ProbeOptions,
    state: State,
    started_s: f64,
    now_s: f64,
    large_bytes: u64,
    /// Small ops meet the cap on bytes: they drain that bucket in finer grains than large ones.
    small_for_bytes: bool,
    /// Small ops were looked at again, since what they had shown contradicted the bytes' plateau.
    looked_twice: bool,
    used: [f64; 2],
    tracks: [Track; 2],
    questions: Questions,
    /// All that was asked and passed, for the laws.
    record: LoadRecord,
    /// The load that is on.
    loading: Option<RecordedLoad>,
}

impl Probe {
    /// Nothing is known yet: the first action is a load.
    pub fn new(options: ProbeOptions) -> Self {
        let mut tracks = [Track::default(), Track::default()];
        tracks[1].done = !options.moves_bytes;
        Self {
            options,
            questions: Questions::new(options.questions),
            state: State::Start,
            started_s: 0.0,
            now_s: 0.0,
            large_bytes: options.large_bytes,
            small_for_bytes: false,
            looked_twice: false,
            used: [0.0; 2],
            tracks,
            record: LoadRecord::default(),
            loading: None,
        }
    }

    /// One phrase for a progress line.
    pub fn phase(&self) -> String {
        match &self.state {
            State::Start | State::Pilot(..) => format!("{PILOT}finding the size with the highest throughput"),
            State::Rung(l) | State::RungEnd(l) => {
                format!("finding how many {}{LADDER}{}", l.of.words(), l.concurrency)
            }
            State::Resting(t) | State::Trying(t) | State::Tried(t) => t.phase(),
            State::AtOnce(s) | State::AtOnceEnd(s) => {
                format!("finding how many requests at once get through: {}", s.concurrency)
            }
            State::Choose | State::Done => "deciding".into(),
            State::Wait(r) => format!("waiting while the {} bucket refills", r.name()),
            State::Draining(d) | State::Drained(d) if d.first => {
                format!("looking for a limit on {}", d.of.name())
            }
            State::Draining(d) | State::Drained(d) => format!("draining the {} bucket again", d.of.name()),
            State::MicroIdle(m) | State::MicroLoad(m) | State::MicroStop(m) => {
                format!("measuring a short burst of {}", m.of.name())
            }
        }
    }

    /// What was asked so far, and what passed.
    pub fn record(&self) -> &LoadRecord {
        &self.record
    }

    /// Seconds since the first call.
    pub fn elapsed_s(&self) -> f64 {
        self.now_s - self.started_s
    }

    /// A load ended that drained no bucket of its own: from here on both rest.
    fn rest_begins(&mut self) {
        for (track, used) in self.tracks.iter_mut().zip(self.used) {
            (track.last_end_s, track.mark) = (self.now_s, used);
        }
    }

    /// The load that ended began at `at_s`, later than it was asked for: making it ready takes time, and so long the bucket rested.
    pub fn began(&mut self, at_s: f64) {
        self.record.began(at_s);
        let State::Drained(d) = &mut self.state else { return };
        let late_s = at_s - d.start_s;
        if late_s > 0.0 {
            let taken = d.taken_per_s * d.rest_s;
            (d.start_s, d.rest_s) = (at_s, d.rest_s + late_s);
            d.idle_s = d.idle_s.map(|i| i + late_s);
            d.taken_per_s = taken / d.rest_s;
        }
    }

    /// What to do after `last` was seen. Call it first with an observation that carries only the time.
    pub fn next(&mut self, last: &ProbeObservation) -> ProbeAction {
        if matches!(self.state, State::Start) {
            self.started_s = last.now_s;
        }
        self.now_s = last.now_s;
        if let Some(s) = &last.seen {
            self.used[0] += s.ops_per_s.iter().sum::<f64>() * s.dt_s;
            self.used[1] += s.bytes_per_s.iter().sum::<f64>() * s.dt_s;
            if let Some(load) = self.loading {
                self.record.add(s, last.now_s, load);
            }
        }
        let action = self.after(last);
        self.loading = match action {
            ProbeAction::Load { size_bytes, concurrency, continues, offered_per_s, .. } => {
                Some(RecordedLoad {
                    continues,
                    scored: size_bytes == self.options.small_bytes,
                    offered_per_s,
                    in_flight: concurrency,
                })
            }
            ProbeAction::Stop | ProbeAction::Idle { .. } | ProbeAction::Done => None,
        };
        action
    }

    fn after(&mut self, last: &ProbeObservation) -> ProbeAction {
        match std::mem::replace(&mut self.state, State::Choose) {
            State::Start => self.start_pilot(),
            State::Pilot(p) => self.pilot_seen(p, last.seen.as_ref()),
            State::Choose => self.choose(),
            State::Wait(r) => self.start_drain(r),
            State::Rung(l) => self.rung_seen(l, last.seen.as_ref()),
            State::RungEnd(l) => self.rung_next(l),
            State::Resting(t) => self.try_it(t),
            State::Trying(t) => self.trial_seen(t, last.seen.as_ref()),
            State::Tried(t) => self.trial_next(t),
            State::Draining(d) => self.go_on(d, last.seen.as_ref()),
            State::Drained(d) => self.finish_drain(d),
            State::AtOnce(s) => self.at_once_seen(s, last.seen.as_ref()),
            State::AtOnceEnd(s) => self.at_once_next(s),
            State::MicroIdle(m) => self.micro_load(m),
            State::MicroLoad(m) => self.micro_seen(m, last.seen.as_ref()),
            State::MicroStop(m) => self.micro_next(m),
            State::Done => self.finish(),
        }
    }

    /// What is known so far.
    pub fn outcome(&self) -> ProbeOutcome {
        let mut out = ProbeOutcome::of(
            &self.tracks,
            self.large_bytes,
            self.elapsed_s(),
            &self.options,
            &self.questions,
            &self.record,
        );
        // Until then it is what is held back from; and who asks no questions never holds back.
        if matches!(self.state, State::Done) && self.options.questions {
            out.forget_what_waited();
        }
        out
    }

    /// Whose ops drain it.
    fn drained_by(&self, r: Resource) -> Resource {
        if self.small_for_bytes { Resource::Ops } else { r }
    }

    fn size_of(&self, r: Resource) -> u64 {
        match self.drained_by(r) {
            Resource::Ops => self.options.small_bytes,
            Resource::Bytes => self.large_bytes,
        }
    }

    fn concurrency_of(&self, r: Resource) -> u32 {
        self.tracks[self.drained_by(r) as usize].concurrency.unwrap_or(self.options.concurrency)
    }

    /// Of small ops that are offered at a rate: where refusals are kept waiting, they take up what may be in flight.
    fn open_concurrency(&self) -> u32 {
        let few = self.concurrency_of(Resource::Ops);
        self.record.refused_after_s().map_or(few, |_| few.max(self.options.most[Resource::Ops as usize]))
    }

    fn closed_load(&self, r: Resource, duration_s: f64, dt_s: f64, continues: bool) -> ProbeAction {
        ProbeAction::Load {
            size_bytes: self.size_of(r),
            concurrency: self.concurrency_of(r),
            duration_s,
            dt_s,
            continues,
            offered_per_s: None,
        }
    }

    fn finish(&mut self) -> ProbeAction {
        self.state = State::Done;
        if self.questions.answers.by_law.is_none() {
            self.questions.contest = laws::contest(&self.record, self.options.budget_s);
            self.forget_what_is_explained();
        }
        let a = self.questions.answers;
        let rate =
            a.by_law.is_some() || matches!(a.held_back, Some(HeldBack::Same { .. } | HeldBack::More { .. }));
        if a.by_law.is_none()
            && let Some(law) = self.foretold_law().filter(|_| !rate || self.outcome().ops.known().is_none())
        {
            self.law_is(law);
        }
        if a.at_once.is_none() && !rate && self.questions.answers.by_law.is_none() {
            self.questions.answers.at_once = self.questions.maybe_at_once;
        }
        ProbeAction::Done
    }

    fn track(&mut self, r: Resource) -> &mut Track {
        &mut self.tracks[r as usize]
    }

    /// First drains first; then whichever has waited for as long as it wanted, or wait for the nearest.
    fn choose(&mut self) -> ProbeAction {
        if let Some(action) = self.ask_at_once().or_else(|| self.ask_hold()) {
            return action;
        }
        let open: Vec<Resource> =
            [Resource::Ops, Resource::Bytes].into_iter().filter(|r| !self.tracks[*r as usize].done).collect();
        if self.left_s() < LEAST_DRAIN_S {
            return self.rested_or_end();
        }
        if open.is_empty() {
            return self.ask();
        }
        let climbs = |r: Resource| {
            let t = &self.tracks[r as usize];
            let most = self.options.most[r as usize];
            t.drains.is_empty()
                && t.concurrency.is_none()
                && most > 0
                && most.max(self.options.concurrency) > 1
        };
        // Both ladders before the first drain: what is made ready for them is no one's idle time.
        if let Some(&r) = open.iter().find(|r| climbs(**r)) {
            return self.rung(Ladder::new(r, self.options.concurrency, self.options.most[r as usize]));
        }
        if let Some(&r) = open.iter().find(|r| self.tracks[**r as usize].drains.is_empty()) {
            return self.start_drain(r);
        }
        let wait = |r: Resource| {
            let t = &self.tracks[r as usize];
            // What the other's ops took is rest that was not.
            let taken_s =
                t.rate.filter(|r| *r > 0.0).map_or(0.0, |rate| (self.used[r as usize] - t.mark) / rate);
            (t.want_s - (self.now_s - t.last_end_s - taken_s).max(0.0)).max(0.0)
        };
        // Who must not rest for longer than it wants is not kept waiting by the other's drain.
        let hurries = |r: Resource| self.tracks[r as usize].no_longer && wait(r) > 0.0;
        let first = |r: &Resource| (!hurries(*r), wait(*r));
        let r = open
            .iter()
            .copied()
            .min_by(|a, b| first(a).0.cmp(&first(b).0).then(first(a).1.total_cmp(&first(b).1)))
            .expect("not empty");
        let seconds = wait(r);
        if seconds <= 0.0 {
            return self.start_drain(r);
        }
        if seconds + LEAST_DRAIN_S > self.left_s() {
            return self.rested_or_end();
        }
        self.state = State::Wait(r);
        ProbeAction::Idle { seconds }
    }

    fn start_drain(&mut self, of: Resource) -> ProbeAction {
        let left = self.left_s().max(LEAST_DRAIN_S);
        let (now, used) = (self.now_s, self.used[of as usize]);
        // A first look at one bucket leaves time for one at the other, and for a second one.
        let others = self.tracks.iter().filter(|t| !t.done && t.drains.is_empty()).count();
        let (share, most) = if others > 1 { (0.3, 0.4) } else { (0.5, 0.7) };
        // So long that a rate can be seen to be held, where there is so much time.
        let wanted = (share * left).max(LEAST_FIRST_S.min(most * left));
        let horizon = self.options.horizon_s.min(wanted.max(10.0));
        let t = self.track(of);
        let first = t.drains.is_empty() || std::mem::take(&mut t.look_again);
        let rest_s = now - t.last_end_s;
        let idle_s = (!t.drains.is_empty()).then_some(rest_s);
        let taken_per_s = if rest_s > 0.0 { (used - t.mark) / rest_s } else { 0.0 };
        let limit_s = left.min(if first { horizon } else { LONGEST_REDRAIN_S });
        self.load_on(Draining {
            of,
            first,
            idle_s,
            rest_s,
            taken_per_s,
            limit_s,
            start_s: now,
            t: 0.0,
            chunk_s: CHUNK_S,
            seen: Plateau::default(),
        })
    }

    fn load_on(&mut self, mut d: Draining) -> ProbeAction {
        let (of, continues, dt) = (d.of, d.t > 0.0, self.options.dt_s);
        // What is in flight at the end takes its time, too.
        let left_s = (self.left_s() - d.seen.wave_s()).min(d.limit_s - d.t);
        d.chunk_s = (left_s.clamp(LEAST_CHUNK_S, CHUNK_S) / dt).round() * dt;
        let chunk_s = d.chunk_s;
        self.state = State::Draining(d);
        self.closed_load(of, chunk_s, dt, continues)
    }

    fn go_on(&mut self, mut d: Draining, seen: Option<&RatesSeen>) -> ProbeAction {
        // The load ended before it was told to: what was seen until then is all.
        let Some(s) = seen else {
            self.state = State::Drained(d);
            return ProbeAction::Stop;
        };
        d.seen.add(s, d.of);
        d.t += d.chunk_s;
        let t = &self.tracks[d.of as usize];
        let before = drain::Before { first: d.first, rate: t.rate, refuted: t.refuted };
        let refused =
            d.first && self.options.questions && d.seen.is_refused_for(REFUSED_S, self.options.dt_s);
        let enough = drain::is_enough(&d.seen.x, self.options.dt_s, d.t, before)
            || d.seen.is_shut(self.options.dt_s)
            || refused;
        if d.t >= d.limit_s - LEAST_CHUNK_S {
            d.limit_s = d.limit_s.max(self.worth_s(&d));
        }
        let over = d.t >= d.limit_s - LEAST_CHUNK_S || self.left_s() - d.seen.wave_s() < LEAST_CHUNK_S;
        if over || enough || self.other_cap(&d).is_some() {
            self.state = State::Drained(d);
            return ProbeAction::Stop;
        }
        self.load_on(d)
    }

    /// How long a first look has to be to tell a limit at all, where what is left of the budget has that much and no other use: it
    /// is too little for a second look, and the other bucket is not waiting for its first.
    fn worth_s(&self, d: &Draining) -> f64 {
        let left_s = self.left_s() - d.seen.wave_s();
        // Seconds of slices round, and a latency moves a little.
        let wanted_s = d.seen.tells_at_s(self.options.dt_s).map_or(0.0, |s| s + LEAST_CHUNK_S);
        let open = self.tracks.iter().filter(|t| !t.done && t.drains.is_empty()).count();
        let spare = left_s < track::REST_S + LEAST_DRAIN_S
            && open <= usize::from(self.tracks[d.of as usize].drains.is_empty());
        if d.first && spare && wanted_s <= d.t + left_s { wanted_s } else { 0.0 }
    }

    fn finish_drain(&mut self, d: Draining) -> ProbeAction {
        let of = d.of;
        let dt = self.options.dt_s;
        let (now, used) = (self.now_s, self.used[of as usize]);
        let left = self.left_s();
        // What the way to the storage takes up at the start is no burst of its.
        let hidden = match of {
            Resource::Ops => 0.0,
            Resource::Bytes => {
                f64::from(self.concurrency_of(of)) * self.options.buffered_bytes.min(self.large_bytes) as f64
            }
        };
        let other_cap = self.other_cap(&d);
        let shut = d.seen.is_shut(dt);
        let concurrency = self.concurrency_of(of);
        let t = self.track(of);
        let before = drain::Before { first: d.first, rate: t.rate, refuted: t.refuted };
        let mut seen = DrainEvidence::of(&d.seen.x, dt, before);
        seen.judge_plateau(&d.seen, dt, of);
        seen.hide(hidden);
        // A bucket that was empty in the first drain shows its burst after the first rest.
        let known = t.rate.filter(|_| !d.first);
        let cut_off = seen.was_cut_off(known);
        seen.idle_s = d.idle_s;
        seen.rest_s = d.rest_s;
        seen.taken_per_s = d.taken_per_s;
        seen.length_s = d.t;
        seen.x = d.seen.x;
        seen.start_s = d.start_s;
        seen.dt_s = dt;
        seen.concurrency = concurrency;
        t.last_end_s = now;
        t.mark = used;
        if t.refuted {
            seen.refute();
        }
        let usable = seen.kind != DrainKind::Unsteady;
        let was_unsteady = t.drains.first().is_some_and(|q| q.kind == DrainKind::Unsteady);
        let limited = matches!(seen.kind, DrainKind::Cliff | DrainKind::Micro);
        if (d.first && usable) || t.rate.is_none() || (was_unsteady && limited) {
            t.rate = Some(seen.rate);
            t.burst = seen.burst.or(t.burst);
        }
        t.drains.push(seen);
        t.decide(left);
        if cut_off && of == Resource::Bytes {
            // Small ops go hardly faster than the cap allows: large ones get to its end sooner.
            self.small_for_bytes = false;
        }
        if let Some(cap) = other_cap {
            self.settle_other(cap);
        }
        if shut {
            // Asked for more, it grants nothing, of whatever size: what it does grant is a question of its own.
            self.tracks.iter_mut().for_each(|t| t.done = true);
        }
        match of {
            Resource::Bytes => self.contradicted(),
            Resource::Ops if self.is_one_cap_after_all() => self.settle_other(Resource::Bytes),
            Resource::Ops => {}
        }
        let t = self.track(of);
        // A short burst is believed only after cycles of its own; a cliff needs none.
        let micro = t.done
            && t.rate.is_some_and(|r| r > 0.0)
            && t.drains.iter().all(|q| q.kind != DrainKind::Cliff)
            && t.drains.iter().any(|q| q.kind == DrainKind::Micro);
        if micro {
            let recovered = t.most_recovered();
            return self.micro_idle(MicroRun { of, recovered, values: Vec::new() });
        }
        self.choose()
    }
}

#[cfg(test)]
mod changing_tests;
#[cfg(test)]
mod product_tests;
#[cfg(test)]
mod tests;
