//! Laws as limiters obey them, replayed: what each lets through of the attempts that were made, at the times at which they were made.
//!
//! Attempts are a flow in each step: an op is what can be told, and times are no finer than that.

use std::ops::ControlFlow;

/// A time in which attempts come evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReplayStep {
    /// Of its begin, seconds.
    pub at_s: f64,
    /// Its length, seconds.
    pub dt_s: f64,
    /// Attempts in it.
    pub asked: f64,
}

impl ReplayStep {
    pub fn end_s(&self) -> f64 {
        self.at_s + self.dt_s
    }
}

/// A law that refuses, with its parameters. Rates in ops per second, times in seconds, amounts in ops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RivalLaw {
    /// A token bucket: rate, capacity.
    Bucket,
    /// A token bucket; who finds it empty is refused for a while, whatever comes: rate, capacity, time.
    Ban,
    /// So many in each period of a clock: rate, period, phase.
    Calendar,
    /// The same, and who is over is refused for a while: rate, period, phase, time.
    CalendarBan,
    /// So many attempts in a sliding period, refused ones included: rate, period, phase.
    CountsRefused,
    /// The same, and who was over is refused until it was calm for a while: rate, period, phase, time.
    UntilCalm,
    /// So many that passed in a sliding period: rate, period, phase.
    CountsPassed,
    /// So many attempts in a sliding period, refused ones included, which is looked at once in a while; who was over then is refused until
    /// the next look: rate, period, phase of the looks, time between two.
    CountsAtLooks,
    /// A token bucket that refusals draw on, down to a floor: rate, capacity, tokens for a refusal, depth of the floor.
    TakesFirst,
    /// A token bucket, and a slower one after an excess, until nothing was refused for a while: rate, capacity, slower rate, time.
    Slower,
}

/// All of them.
pub const RIVALS: [RivalLaw; 10] = [
    RivalLaw::Bucket,
    RivalLaw::Ban,
    RivalLaw::Calendar,
    RivalLaw::CalendarBan,
    RivalLaw::CountsRefused,
    RivalLaw::UntilCalm,
    RivalLaw::CountsPassed,
    RivalLaw::CountsAtLooks,
    RivalLaw::TakesFirst,
    RivalLaw::Slower,
];

/// Of a law; those that it does not have are not used. All but the phase are more than 0.
pub(super) const MOST_PARAMETERS: usize = 4;
pub(super) type Parameters = [f64; MOST_PARAMETERS];

/// Which of the parameters is a period, and which its phase, as a share of it: of laws that have them.
pub(super) const PERIOD: usize = 1;
/// See there.
pub(super) const PHASE: usize = 2;

impl RivalLaw {
    /// As a sentence has it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bucket => "a token bucket",
            Self::Ban => "a token bucket that refuses everything for a while after an excess",
            Self::Calendar => "a quota per period of a clock",
            Self::CalendarBan => {
                "a quota per period of a clock that refuses everything for a while after an excess"
            }
            Self::CountsRefused => "a count over a sliding period in which refused attempts count, too",
            Self::UntilCalm => {
                "a count over a sliding period that refuses everything after an excess until it is calm"
            }
            Self::CountsPassed => "a count over a sliding period of what passed",
            Self::CountsAtLooks => {
                "a count over a sliding period in which refused attempts count, too, looked at once in a while"
            }
            Self::TakesFirst => "a token bucket that refusals draw on",
            Self::Slower => "a token bucket with a lower rate after an excess, until it is calm",
        }
    }

    /// Whether insisting costs: who is refused gets less than who is not.
    pub fn punishes(self) -> bool {
        match self {
            Self::Bucket | Self::Calendar | Self::CountsPassed => false,
            Self::Ban
            | Self::CalendarBan
            | Self::CountsRefused
            | Self::UntilCalm
            | Self::CountsAtLooks
            | Self::TakesFirst
            | Self::Slower => true,
        }
    }

    /// Seconds of a probe without which it can't be told, and only explains by chance what others do.
    pub(super) fn takes_s(self) -> f64 {
        match self {
            Self::CountsAtLooks => LOOKS_TAKE_S,
            Self::Bucket
            | Self::Ban
            | Self::Calendar
            | Self::CalendarBan
            | Self::CountsRefused
            | Self::UntilCalm
            | Self::CountsPassed
            | Self::TakesFirst
            | Self::Slower => 0.0,
        }
    }

    pub(super) fn parameters(self) -> usize {
        match self {
            Self::Bucket => 2,
            Self::Ban | Self::Calendar | Self::CountsRefused | Self::CountsPassed => 3,
            Self::CalendarBan | Self::UntilCalm | Self::CountsAtLooks | Self::TakesFirst | Self::Slower => 4,
        }
    }

    /// The period, or the time, which people choose, and which a search does not find by small steps.
    pub(super) fn group(self, p: &Parameters) -> f64 {
        match self {
            Self::Bucket => 0.0,
            Self::Ban => p[2],
            Self::Calendar
            | Self::CalendarBan
            | Self::CountsRefused
            | Self::UntilCalm
            | Self::CountsPassed
            | Self::CountsAtLooks => p[PERIOD],
            Self::TakesFirst => p[2],
            Self::Slower => p[3],
        }
    }

    pub(super) fn has_phase(self) -> bool {
        match self {
            Self::Calendar
            | Self::CalendarBan
            | Self::CountsRefused
            | Self::UntilCalm
            | Self::CountsPassed
            | Self::CountsAtLooks => true,
            Self::Bucket | Self::Ban | Self::TakesFirst | Self::Slower => false,
        }
    }

    /// How it stands after these steps.
    pub(super) fn after(self, p: &Parameters, steps: &[ReplayStep]) -> Limiter {
        let mut s = Limiter::new(self, p);
        s.began_s = steps.first().map_or(0.0, |s| s.at_s);
        let mut now_s = s.began_s;
        for step in steps {
            if step.at_s > now_s {
                s.rest(step.at_s - now_s, step.at_s);
            }
            s.load(step.at_s, step.dt_s, step.asked);
            now_s = step.end_s();
        }
        s
    }

    /// Ops that pass in each step, one after the other, for as long as `each` goes on.
    pub(super) fn replay(
        self,
        p: &Parameters,
        steps: &[ReplayStep],
        mut each: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) {
        let mut s = Limiter::new(self, p);
        let mut now_s = steps.first().map_or(0.0, |s| s.at_s);
        s.began_s = now_s;
        for (i, step) in steps.iter().enumerate() {
            if step.at_s > now_s {
                s.rest(step.at_s - now_s, step.at_s);
            }
            if each(i, s.load(step.at_s, step.dt_s, step.asked)).is_break() {
                return;
            }
            now_s = step.end_s();
        }
    }
}

/// The same as the method, without a call where the processor that is built for has no instruction for it: periods are few.
fn floor(x: f64) -> f64 {
    let whole = x as i64 as f64;
    if whole > x { whole - 1.0 } else { whole }
}

/// Where the attempts after a look are counted.
fn place_of(look: f64) -> usize {
    (look as i64).rem_euclid(KEPT_COUNTS as i64) as usize
}

/// Slices of what is foreseen, seconds.
const FORESIGHT_S: f64 = 0.2;
/// A refusal that costs a whole token passes for one that costs a little less.
const MOST_COST: f64 = 0.95;

/// Tokens that come back at a rate, of which ops take one each, as a flow.
#[derive(Debug, Clone, Copy)]
struct FlowBucket {
    rate: f64,
    capacity: f64,
    tokens: f64,
}

impl FlowBucket {
    fn full(rate: f64, capacity: f64) -> Self {
        Self { rate, capacity, tokens: capacity }
    }

    /// Nobody comes for so long.
    fn fill(&mut self, seconds: f64) {
        self.tokens = self.capacity.min(self.tokens + self.rate * seconds);
    }

    /// What passes of `n` attempts in `h` seconds.
    fn pass(&mut self, h: f64, n: f64) -> f64 {
        let room = self.tokens + self.rate * h;
        let passes = n.min(room);
        self.tokens = self.capacity.min(room - passes);
        passes
    }
}

/// Counts of a minute or two that are looked at once in a while have to be seen to pass and to refuse a few times (validated: of 40 simulated
/// rules none is told in four minutes, two in five in ten).
const LOOKS_TAKE_S: f64 = 400.0;
/// Counts between looks that are kept: no period is longer than so many of them, but for two.
const KEPT_COUNTS: usize = 64;

/// A time within one period, counted in periods.
#[derive(Debug, Clone, Copy)]
struct PeriodPart {
    /// The period's number.
    this: f64,
    begin: f64,
    end: f64,
}

/// The state of any of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limiter {
    law: RivalLaw,
    rate: f64,
    /// Capacity, or period.
    second: f64,
    third: f64,
    fourth: f64,
    began_s: f64,
    bucket: FlowBucket,
    /// After an excess.
    slow: FlowBucket,
    /// All is refused until then.
    shut_until_s: f64,
    period: f64,
    count: f64,
    count_before: f64,
    /// Attempts between two looks, by the number of the look before them.
    counts: [f64; KEPT_COUNTS],
    /// The last refusal, or attempt.
    last_s: f64,
    excess: bool,
}

impl Limiter {
    fn new(law: RivalLaw, p: &Parameters) -> Self {
        let [rate, second, third, fourth] = *p;
        Self {
            law,
            rate,
            second,
            third,
            fourth,
            began_s: 0.0,
            bucket: FlowBucket::full(rate, second),
            slow: FlowBucket::full(third, third),
            shut_until_s: f64::NEG_INFINITY,
            period: f64::NEG_INFINITY,
            count: 0.0,
            count_before: 0.0,
            counts: [0.0; KEPT_COUNTS],
            last_s: f64::NEG_INFINITY,
            excess: false,
        }
    }

    /// When the first op would be refused, seconds, of a load of so many ops per second that begins after a rest from `now_s` on, with at
    /// most so many seconds of it. `None`: not within them.
    pub(super) fn first_refusal_s(self, now_s: f64, rest_s: f64, per_s: f64, most_s: f64) -> Option<f64> {
        let refuses = |passes: f64, asked: f64| passes < asked * (1.0 - 1e-6);
        self.first_slice(now_s, rest_s, per_s, most_s, refuses).map(|i| (i as f64 + 0.5) * FORESIGHT_S)
    }

    /// When the first of it would pass, of a load of so many ops per second; as [`Self::first_refusal_s`] otherwise.
    pub(super) fn first_passing_s(self, now_s: f64, rest_s: f64, per_s: f64, most_s: f64) -> Option<f64> {
        let passes = |passes: f64, asked: f64| passes >= 0.5 * asked;
        self.first_slice(now_s, rest_s, per_s, most_s, passes).map(|i| i as f64 * FORESIGHT_S)
    }

    /// The first slice of a load, after a rest, of which so much passes of what is asked.
    fn first_slice(
        mut self,
        now_s: f64,
        rest_s: f64,
        per_s: f64,
        most_s: f64,
        is_it: impl Fn(f64, f64) -> bool,
    ) -> Option<usize> {
        let from_s = now_s + rest_s;
        if rest_s > 0.0 {
            self.rest(rest_s, from_s);
        }
        let n = (most_s / FORESIGHT_S).round() as usize;
        let asked = per_s * FORESIGHT_S;
        (0..n).find(|i| is_it(self.load(from_s + *i as f64 * FORESIGHT_S, FORESIGHT_S, asked), asked))
    }

    /// No load until `to_s`.
    fn rest(&mut self, seconds: f64, to_s: f64) {
        match self.law {
            RivalLaw::Bucket | RivalLaw::Ban | RivalLaw::TakesFirst => self.bucket.fill(seconds),
            RivalLaw::Slower => {
                self.bucket.fill(seconds);
                self.slow.fill(seconds);
            }
            RivalLaw::Calendar
            | RivalLaw::CalendarBan
            | RivalLaw::CountsRefused
            | RivalLaw::CountsPassed
            | RivalLaw::CountsAtLooks => {}
            RivalLaw::UntilCalm => {
                // What expired is gone with its counts, and its periods begin with the next attempt.
                if to_s - self.last_s > self.fourth {
                    (self.excess, self.count, self.count_before) = (false, 0.0, 0.0);
                    (self.began_s, self.third, self.period) = (to_s, 0.0, f64::NEG_INFINITY);
                }
            }
        }
    }

    /// What passes of `n` attempts in `h` seconds from `at_s` on.
    fn load(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        match self.law {
            RivalLaw::Bucket => self.bucket.pass(h, n),
            RivalLaw::Ban => self.ban(at_s, h, n),
            RivalLaw::Calendar => self.by_periods(at_s, h, n, f64::NEG_INFINITY),
            RivalLaw::CalendarBan => self.by_periods(at_s, h, n, self.fourth),
            RivalLaw::CountsRefused => self.counts(at_s, h, n),
            RivalLaw::UntilCalm => self.until_calm(at_s, h, n),
            RivalLaw::CountsPassed => self.counts(at_s, h, n),
            RivalLaw::CountsAtLooks => self.at_looks(at_s, h, n),
            RivalLaw::TakesFirst => self.takes_first(h, n),
            RivalLaw::Slower => self.slower(at_s, h, n),
        }
    }

    fn ban(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        let open_s = (at_s + h - self.shut_until_s.max(at_s)).clamp(0.0, h);
        self.bucket.fill(h - open_s);
        if open_s <= 0.0 {
            return 0.0;
        }
        let n = n * open_s / h;
        if n <= self.bucket.tokens + self.rate * open_s {
            return self.bucket.pass(open_s, n);
        }
        let empty_s = self.bucket.tokens / (n / open_s - self.rate);
        let passes = n * empty_s / open_s;
        self.bucket.tokens = 0.0;
        let empty_at_s = at_s + h - open_s + empty_s;
        self.shut_until_s = empty_at_s + self.third;
        self.bucket.fill(at_s + h - empty_at_s);
        passes
    }

    /// Begin and end of `h` seconds from `at_s` on, counted in periods, and their parts, of one period each.
    fn periods(&self, at_s: f64, h: f64) -> (f64, f64, impl Iterator<Item = PeriodPart> + use<>) {
        self.periods_of(self.second, at_s, h)
    }

    /// The same of any period that has this phase.
    fn periods_of(
        &self,
        period_s: f64,
        at_s: f64,
        h: f64,
    ) -> (f64, f64, impl Iterator<Item = PeriodPart> + use<>) {
        let since = |s: f64| (s - self.began_s) / period_s + self.third;
        let (from, to) = (since(at_s), since(at_s + h));
        let mut begin = from;
        let parts = std::iter::from_fn(move || {
            let this = floor(begin);
            let part = PeriodPart { this, begin, end: to.min(this + 1.0) };
            (begin < to - 1e-12).then(|| {
                begin = part.end;
                part
            })
        });
        (from, to, parts)
    }

    /// `shut_s`: for so long who was over is refused.
    fn by_periods(&mut self, at_s: f64, h: f64, n: f64, shut_s: f64) -> f64 {
        let (period_s, quota) = (self.second, self.rate * self.second);
        let (from, _, parts) = self.periods(at_s, h);
        let mut passes = 0.0;
        for PeriodPart { this, begin, end } in parts {
            if this != self.period {
                (self.period, self.count) = (this, 0.0);
            }
            let begin_s = at_s + (begin - from) * period_s;
            let end_s = at_s + (end - from) * period_s;
            let open_s = (end_s - self.shut_until_s.max(begin_s)).clamp(0.0, end_s - begin_s);
            let come = n * open_s / h;
            let room = quota - self.count;
            if come > room {
                passes += room.max(0.0);
                let over_s = end_s - open_s + open_s * room.max(0.0) / come;
                self.shut_until_s = over_s + shut_s;
                self.count = quota;
            } else {
                passes += come;
                self.count += come;
            }
        }
        passes
    }

    fn counts(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        let period_s = self.second;
        let (from, to, parts) = self.periods(at_s, h);
        let mut passes = 0.0;
        for PeriodPart { this, begin, end } in parts {
            if this != self.period {
                self.count_before = if this == self.period + 1.0 { self.count } else { 0.0 };
                (self.period, self.count) = (this, 0.0);
            }
            passes += self.counts_in(begin - this, (end - begin) * period_s, n * (end - begin) / (to - from));
        }
        passes
    }

    /// Within one period, of which such a share is over: what is counted goes in a straight line, and passes while it is below the quota.
    fn counts_in(&mut self, share: f64, h: f64, n: f64) -> f64 {
        let (period_s, quota) = (self.second, self.rate * self.second);
        let counted = self.count + self.count_before * (1.0 - share);
        if self.law == RivalLaw::CountsPassed {
            // What leaves the period makes room.
            let passes = (quota - counted + self.count_before * h / period_s).clamp(0.0, n);
            self.count += passes;
            return passes;
        }
        let after = counted + n - self.count_before * h / period_s;
        self.count += n;
        match (counted < quota, after <= quota) {
            (true, true) => n,
            (false, false) => 0.0,
            // It gets there, from below or from above.
            (true, false) => n * (quota - counted) / (after - counted),
            (false, true) if counted > after => n * (quota - after) / (counted - after),
            (false, true) => 0.0,
        }
    }

    /// Nothing but the looks, at which all attempts of the period before are counted, opens or shuts it.
    fn at_looks(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        let between_s = self.fourth.max(self.second / (KEPT_COUNTS - 2) as f64);
        let (from, to, parts) = self.periods_of(between_s, at_s, h);
        let mut passes = 0.0;
        for PeriodPart { this, begin, end } in parts {
            if this != self.period {
                self.look(this, self.second / between_s);
            }
            let come = n * (end - begin) / (to - from);
            self.counts[place_of(this)] += come;
            if !self.excess {
                passes += come;
            }
        }
        passes
    }

    /// The look of that number: who was over during the last so many times between two looks is shut out.
    fn look(&mut self, this: f64, looks: f64) {
        let passed = (this - self.period).min(KEPT_COUNTS as f64);
        let mut at = this;
        while this - at < passed {
            self.counts[place_of(at)] = 0.0;
            at -= 1.0;
        }
        self.period = this;
        let whole = looks as usize;
        let count: f64 = (1..=whole).map(|i| self.counts[place_of(this - i as f64)]).sum();
        let part = (looks - whole as f64) * self.counts[place_of(this - (whole + 1) as f64)];
        self.excess = count + part > self.rate * self.second;
    }

    fn until_calm(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        let passes = self.counts(at_s, h, n);
        if n > 0.0 {
            self.last_s = at_s + h;
        }
        if self.excess {
            return 0.0;
        }
        self.excess = passes < n - 1e-9;
        passes
    }

    /// Who finds less than a token is refused, which costs a part of one: below a token all are refused, at one as many pass as what
    /// comes back pays for, with the refusals beside them.
    fn takes_first(&mut self, h: f64, n: f64) -> f64 {
        let (cost, floor) = (self.third.min(MOST_COST), -self.fourth);
        let came = n / h;
        // Tokens per second while all pass, and while all are refused.
        let (passing, refusing) = (self.rate - came, self.rate - cost * came);
        let level = &mut self.bucket.tokens;
        let (mut left_s, mut passes) = (h, 0.0);
        if *level < 0.0 {
            let up_s = if refusing > 0.0 { (-*level / refusing).min(left_s) } else { left_s };
            *level = (*level + refusing * up_s).max(floor);
            left_s -= up_s;
        }
        if left_s > 0.0 && (*level > 0.0 || passing >= 0.0) {
            let down_s = if passing < 0.0 { (*level / -passing).min(left_s) } else { left_s };
            *level = (*level + passing * down_s).min(self.second);
            passes += came * down_s;
            left_s -= down_s;
        }
        if left_s > 0.0 {
            if refusing > 0.0 {
                passes += refusing / (1.0 - cost) * left_s;
            } else {
                *level = (*level + refusing * left_s).max(floor);
            }
        }
        passes
    }

    fn slower(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        let calm_s = self.last_s + self.fourth;
        if self.excess && calm_s > at_s && calm_s < at_s + h && n > 0.0 {
            let first_s = calm_s - at_s;
            let part = n * first_s / h;
            let passes = self.slower_part(at_s, first_s, part);
            return passes + self.slower_part(calm_s, h - first_s, n - part);
        }
        self.slower_part(at_s, h, n)
    }

    fn slower_part(&mut self, at_s: f64, h: f64, n: f64) -> f64 {
        if self.excess && at_s - self.last_s >= self.fourth - 1e-9 {
            self.excess = false;
        }
        let mut passes = 0.0;
        let (mut at_s, mut h, mut n) = (at_s, h, n);
        if !self.excess {
            let (room, came) = (self.bucket.tokens + self.rate * h, n / h);
            if n <= room {
                self.slow.fill(h);
                return self.bucket.pass(h, n);
            }
            // Found empty: the rest is asked of the slower one.
            let empty_s = (self.bucket.tokens / (came - self.rate)).min(h);
            passes += came * empty_s;
            self.bucket.tokens = 0.0;
            self.slow.fill(empty_s);
            (at_s, h, n) = (at_s + empty_s, h - empty_s, n - came * empty_s);
            (self.excess, self.last_s) = (true, at_s);
        }
        if h > 0.0 {
            self.bucket.fill(h);
            let by_slow = self.slow.pass(h, n);
            if by_slow < n - 1e-9 {
                self.last_s = at_s + h;
            }
            passes += by_slow;
        }
        passes
    }
}
