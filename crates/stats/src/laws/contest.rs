//! Fits each law to a record, and says which of them it carries.

use super::replay::{PERIOD, PHASE, Parameters};
use super::{LoadRecord, LoadSlice, RIVALS, RivalLaw};
use crate::simulate::RatesSeen;
use crate::{math, rate};

/// Errors are counted over so long, seconds: finer than that, when an answer came back hides when it was decided.
const BIN_S: f64 = 1.0;
/// No law is right by less than this: an op that a slice has in the next one, and a share of what passes.
const LEAST_ERROR_OPS: f64 = 0.6;
const LEAST_ERROR_SHARE: f64 = 0.005;
/// A law that is better by so much (natural logarithm of odds) has won (a choice: odds of twenty to one, "strong" evidence, Kass and
/// Raftery 1995; a law with one parameter more that explains no more is behind by less).
pub const WON: f64 = 3.0;
/// Half of the change of twice the likelihood that bounds 95 % of one parameter (Wilks 1938).
const WITHIN: f64 = 1.92;
/// Errors up to so many times the least that any law makes are no reason against it (validated: limiters of products, simulated).
const CLOSE: f64 = 1.5;
/// Seconds with refusals without which nothing is told.
const LEAST_BINS: usize = 8;
/// Steps of the search, as shares of a parameter: its first and its last.
const FIRST_STEP: f64 = 0.25;
const LAST_STEP: f64 = 0.002;
/// No period that slices of a series tell is shorter, seconds; and nothing is larger, or smaller than its inverse.
const LEAST_PERIOD_S: f64 = 0.5;
const MOST: f64 = 1e9;
/// Slices of a record that laws are held against (a choice: 40 minutes of load, and 5 seconds of replaying it).
const MOST_SLICES: usize = 12_000;
/// Replays of one search, and starts from which one goes on.
const REPLAYS: usize = 300;
const KEPT: usize = 8;

/// A law with what fits best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawFit {
    /// Which.
    pub law: RivalLaw,
    /// Ops per second that pass for ever when nobody insists; and the bounds within which that is known.
    pub rate_per_s: f64,
    /// See `rate_per_s`.
    pub rate_bounds: (f64, f64),
    /// Seconds for which all is refused, or until it is calm; absent: it is not of this law.
    pub shut_s: Option<f64>,
    /// From the begin of one period to that of the next, seconds; absent: it is not of this law.
    pub period_s: Option<f64>,
    /// Seconds without load after which nothing that went before counts.
    pub forgets_s: f64,
    /// Ops that it lets pass wrongly, or refuses wrongly, each second, on average.
    pub error_ops: f64,
    /// Logarithm of the odds against the best of the others, the null hypothesis among them: negative, another is better.
    pub ahead: f64,
    /// Whether its errors are hardly more than what ops in flight and edges of slices make.
    pub is_close: bool,
    p: Parameters,
}

impl LawFit {
    /// When the first op would be refused, seconds, of a load of so many ops per second that begins so long after the record ends, with
    /// at most so many seconds of it. `None`: not within them.
    pub fn first_refusal_s(&self, record: &LoadRecord, rest_s: f64, per_s: f64, most_s: f64) -> Option<f64> {
        let mut longer = record.clone();
        let end_s = record.end_s() + rest_s + most_s;
        longer.add(
            &RatesSeen { dt_s: FORESIGHT_S, ops_per_s: steadily(per_s, most_s), ..RatesSeen::default() },
            end_s,
            false,
            true,
        );
        let mut passes = Vec::new();
        self.law.replay(&self.p, &longer, &mut passes);
        let n = record.slices().len();
        let short = |passes: &f64| *passes < per_s * FORESIGHT_S * (1.0 - 1e-6);
        passes[n..].iter().position(short).map(|i| (i as f64 + 0.5) * FORESIGHT_S)
    }
}

/// Slices of what is foreseen, seconds.
const FORESIGHT_S: f64 = 0.2;

fn steadily(per_s: f64, seconds: f64) -> Vec<f64> {
    vec![per_s; (seconds / FORESIGHT_S).round() as usize]
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LawContest {
    /// The best first.
    pub fits: Vec<LawFit>,
    /// Independent seconds that decided.
    pub n_eff: f64,
    /// Logarithm of the odds of the best against that each load had a rate of its own.
    pub ahead_of_none: f64,
}

impl LawContest {
    /// The law that the record carries: the others have lost.
    pub fn winner(&self) -> Option<&LawFit> {
        self.fits.first().filter(|f| f.ahead >= WON)
    }

    /// The laws that have not lost, the best first: one, where there is a winner; none, where no law is better than none.
    pub fn standing(&self) -> &[LawFit] {
        let better = self.ahead_of_none >= 0.0;
        let n = if better { self.fits.iter().take_while(|f| f.ahead > -WON).count() } else { 0 };
        &self.fits[..n]
    }

    /// The best law, where all that have not lost come to its rate, that each load had one of its own has, and it is known within `most`
    /// (high over low).
    pub fn rate_within(&self, most: f64) -> Option<&LawFit> {
        if self.ahead_of_none < WON {
            return None;
        }
        let (best, others) = self.standing().split_first()?;
        let (low, high) = best.rate_bounds;
        let agrees = |f: &LawFit| (low..=high).contains(&f.rate_per_s);
        (high <= most * low && others.iter().all(agrees)).then_some(best)
    }
}

/// One law and the error with which it explains the record.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    law: RivalLaw,
    p: Parameters,
    error: f64,
}

impl Candidate {
    fn fit(&self, rate_bounds: (f64, f64), ahead: f64, floor: f64) -> LawFit {
        let [rate, second, third, fourth] = self.p;
        let period_s = self.law.has_phase().then_some(second);
        let shut_s = match self.law {
            RivalLaw::Ban => Some(third),
            RivalLaw::CalendarBan | RivalLaw::UntilCalm | RivalLaw::Slower => Some(fourth),
            RivalLaw::Bucket | RivalLaw::Calendar | RivalLaw::CountsRefused | RivalLaw::TakesFirst => None,
        };
        let forgets_s = match self.law {
            RivalLaw::Bucket => 0.0,
            RivalLaw::Calendar => second,
            RivalLaw::Ban => third,
            RivalLaw::CalendarBan => second + fourth,
            // The present period and the last one count.
            RivalLaw::CountsRefused => 2.0 * second,
            RivalLaw::UntilCalm => fourth.max(2.0 * second),
            RivalLaw::TakesFirst => fourth / rate,
            RivalLaw::Slower => fourth,
        };
        LawFit {
            law: self.law,
            rate_per_s: rate,
            rate_bounds,
            shut_s,
            period_s,
            forgets_s,
            error_ops: self.error,
            ahead,
            is_close: self.error <= CLOSE * floor,
            p: self.p,
        }
    }
}

/// What was seen in each bin, and how it is replayed.
struct Judge<'a> {
    record: &'a LoadRecord,
    /// Scored slices: their bin.
    bins: Vec<Option<u32>>,
    seen: Vec<f64>,
    /// Bins in which something was refused.
    refusing: usize,
    floor: f64,
    /// Of the replay, and by bin.
    passes: Vec<f64>,
    replayed: Vec<f64>,
}

impl<'a> Judge<'a> {
    fn of(record: &'a LoadRecord) -> Self {
        let (mut bins, mut seen, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for load in record.loads() {
            let mut room_s = 0.0;
            for s in load {
                if !s.scored {
                    bins.push(None);
                    continue;
                }
                if room_s < 0.5 * s.dt_s {
                    room_s = BIN_S;
                    seen.push(0.0);
                    refused.push(0.0);
                }
                room_s -= s.dt_s;
                let bin = seen.len() - 1;
                bins.push(Some(bin as u32));
                seen[bin] += s.passed;
                refused[bin] += s.refused;
            }
        }
        let refusing: Vec<f64> =
            seen.iter().zip(&refused).filter(|(_, r)| **r > 0.0).map(|(s, _)| *s).collect();
        let floor = LEAST_ERROR_OPS + LEAST_ERROR_SHARE * math::mean(&refusing);
        let n = seen.len();
        Self {
            record,
            bins,
            seen,
            refusing: refusing.len(),
            floor,
            passes: Vec::new(),
            replayed: vec![0.0; n],
        }
    }

    /// Sum of the errors over all seconds, for each with refusals: who foresees a refusal where there was none is as wrong.
    fn error(&mut self, law: RivalLaw, p: &Parameters) -> f64 {
        self.replay(law, p);
        let sum: f64 = self.seen.iter().zip(&self.replayed).map(|(a, b)| (a - b).abs()).sum();
        sum / self.refusing as f64
    }

    fn replay(&mut self, law: RivalLaw, p: &Parameters) {
        law.replay(p, self.record, &mut self.passes);
        self.replayed.fill(0.0);
        for (bin, passes) in self.bins.iter().zip(&self.passes) {
            if let Some(bin) = bin {
                self.replayed[*bin as usize] += passes;
            }
        }
    }

    /// That each load had a rate of its own once it was refused: as many parameters as loads that were.
    fn null(&self) -> (f64, usize) {
        let (mut sum, mut k) = (0.0, 0);
        for load in self.record.loads() {
            let refused_from = load.iter().position(|s| s.scored && s.refused > 0.0).unwrap_or(load.len());
            let Some(first) = load.get(refused_from) else { continue };
            let passed: Vec<f64> =
                load[refused_from..].iter().filter(|s| s.scored).map(|s| s.passed).collect();
            let bin = ((BIN_S / first.dt_s).round() as usize).max(1);
            let means = math::bin_means(&passed, bin);
            if means.is_empty() {
                continue;
            }
            let middle = math::median(&means);
            sum += bin as f64 * means.iter().map(|m| (m - middle).abs()).sum::<f64>();
            k += 1;
        }
        (sum / self.refusing as f64, k)
    }

    /// Of errors that follow each other, one tells little more than the other.
    fn independent(&mut self, best: &Candidate) -> f64 {
        self.replay(best.law, &best.p);
        let errors: Vec<f64> = self.seen.iter().zip(&self.replayed).map(|(a, b)| a - b).collect();
        let r = rate::lag1(&errors).clamp(0.0, 0.9);
        (self.refusing as f64 * (1.0 - r) / (1.0 + r)).max(2.0)
    }

    fn ln_likelihood(&self, error: f64, n: f64) -> f64 {
        -n * error.max(self.floor).ln()
    }
}

/// Holds the laws against the record; `None`: too little was refused to tell any.
pub fn contest(record: &LoadRecord) -> Option<LawContest> {
    // Each replay goes through all of it: hours of load would be replayed for minutes.
    if record.slices().len() > MOST_SLICES {
        return None;
    }
    let mut judge = Judge::of(record);
    if judge.refusing < LEAST_BINS {
        return None;
    }
    let guess = Guess::of(record);
    let mut found: Vec<Candidate> = RIVALS.iter().map(|law| fitted(&mut judge, *law, &guess)).collect();
    found.sort_by(|a, b| a.error.total_cmp(&b.error));
    let n = judge.independent(&found[0]);
    let score = |error: f64, k: usize| judge.ln_likelihood(error, n) - 0.5 * k as f64 * n.ln();
    let (null_error, null_k) = judge.null();
    let null = score(null_error, null_k);
    let mut scored: Vec<(f64, Candidate)> =
        found.iter().map(|c| (score(c.error, c.law.parameters()), *c)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best_other = |i: usize| {
        let others = scored.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, s)| s.0);
        others.fold(null, f64::max)
    };
    let ahead: Vec<f64> = (0..scored.len()).map(|i| scored[i].0 - best_other(i)).collect();
    let ahead_of_none = scored[0].0 - null;
    let fits = scored.iter().zip(ahead).enumerate().map(|(i, ((_, c), ahead))| {
        // How well it is known matters of those that may be it.
        let rate_bounds = if i < 2 { bounds(&mut judge, c, n) } else { (0.0, f64::INFINITY) };
        c.fit(rate_bounds, ahead, judge.floor)
    });
    let fits = fits.collect();
    Some(LawContest { fits, n_eff: n, ahead_of_none })
}

/// Rates that explain the record hardly worse, with the other parameters as suits them.
fn bounds(judge: &mut Judge<'_>, best: &Candidate, n: f64) -> (f64, f64) {
    let at = judge.ln_likelihood(best.error, n);
    let mut side = |sign: f64| {
        let mut from = *best;
        let mut away = 0.01;
        while away < 1.0 {
            let rate = best.p[0] * (sign * away).exp();
            from.p[0] = rate;
            from = searched(judge, from, 1, REPLAYS / 4);
            if at - judge.ln_likelihood(from.error, n) > WITHIN {
                return rate;
            }
            away *= 1.6;
        }
        if sign > 0.0 { f64::INFINITY } else { 0.0 }
    };
    (side(-1.0), side(1.0))
}

/// What the record suggests by itself.
#[derive(Default)]
struct Guess {
    /// Where loads were first refused: seconds from their begin, and ops that had passed.
    firsts: Vec<(f64, f64)>,
    /// Ops per second of who is refused.
    pushed: f64,
    /// The fastest load that was never refused, ops per second.
    free: f64,
    /// Between these, a time in which nothing passes ends, seconds: the longest that was seen, and the shortest after which something
    /// passed again, be it under the same load or the next one.
    shut_s: (f64, f64),
    /// When it opened again under a load, seconds from the begin of the record.
    opens_s: Vec<f64>,
}

impl Guess {
    fn of(record: &LoadRecord) -> Self {
        let mut g = Self { shut_s: (0.0, f64::INFINITY), ..Self::default() };
        let began_s = record.slices().first().map_or(0.0, |s| s.at_s);
        let mut pushed = Vec::new();
        // Since then nothing has passed of what came.
        let mut shut_at: Option<f64> = None;
        for load in record.loads() {
            let load: Vec<&LoadSlice> = load.iter().filter(|s| s.scored).collect();
            let Some(dt) = load.first().map(|s| s.dt_s) else { continue };
            let refused_from = load.iter().position(|s| s.refused > 0.0);
            let seconds = |n: usize| n as f64 * dt;
            let passed: Vec<f64> = load.iter().map(|s| s.passed).collect();
            match refused_from {
                None => g.free = g.free.max(math::mean(&passed) / dt),
                Some(at) => {
                    let before: f64 = passed[..at].iter().sum();
                    if before > 0.0 {
                        g.firsts.push((seconds(at), before));
                    }
                    if seconds(load.len() - at) >= BIN_S {
                        pushed.push(math::mean(&passed[at..]) / dt);
                    }
                }
            }
            for s in &load {
                let is_shut = s.passed <= SHUT * s.attempts();
                if s.attempts() <= 0.0 {
                    continue;
                }
                let since_s = shut_at.map(|from| s.at_s - from);
                match (is_shut, since_s) {
                    (true, None) => shut_at = Some(s.at_s),
                    (true, Some(since_s)) => g.shut_s.0 = g.shut_s.0.max(since_s + dt),
                    (false, Some(since_s)) if since_s >= BIN_S => {
                        g.shut_s.1 = g.shut_s.1.min(since_s + dt);
                        g.opens_s.push(s.at_s - began_s);
                        shut_at = None;
                    }
                    (false, _) => shut_at = None,
                }
            }
        }
        g.pushed = if pushed.is_empty() { 1.0 } else { math::median(&pushed).max(0.1) };
        g
    }

    /// Rates from which a search begins, each with the tokens that the first refusals want with it.
    fn buckets(&self) -> Vec<(f64, f64)> {
        // What passed until the first refusal came from a bucket as well.
        let most = self.firsts.iter().filter(|f| f.0 > 0.0).map(|f| f.1 / f.0).fold(f64::INFINITY, f64::min);
        let least = self.pushed.max(self.free).max(0.1);
        let most = if most.is_finite() { most.max(1.05 * least) } else { 2.0 * least };
        let steps = RATES - 1;
        let mut rates: Vec<f64> =
            (0..RATES).map(|i| least * (most / least).powf(i as f64 / steps as f64)).collect();
        rates.push(self.pushed);
        let left =
            |rate: f64| -> Vec<f64> { self.firsts.iter().map(|(s, n)| (n - rate * s).max(1.0)).collect() };
        rates
            .into_iter()
            .map(|r| (r, if self.firsts.is_empty() { r } else { math::median(&left(r)) }))
            .collect()
    }

    /// How long nothing passes.
    fn shuts_s(&self) -> Vec<f64> {
        let (low, high) = self.shut_s;
        let low = low.max(1.0);
        match high.is_finite() && high > low {
            true => vec![low, (low * high).sqrt(), high],
            false => vec![low, 1.5 * low],
        }
    }

    /// Periods with the phase of their begin: as they were seen to begin, and those that people choose.
    fn periods(&self) -> Vec<(f64, f64)> {
        let mut out: Vec<(f64, f64)> = [1.0, 10.0, 60.0]
            .into_iter()
            .flat_map(|p| [0.0, 0.25, 0.5, 0.75].map(|phase| (p, phase)))
            .collect();
        let between = self.opens_s.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
        if let Some(open) = self.opens_s.first() {
            let seen = [10.0, 60.0, between];
            out.extend(seen.into_iter().filter(|p| p.is_finite()).map(|p| (p, (-open / p).rem_euclid(1.0))));
        }
        out
    }

    /// Parameters from which the search for a law begins.
    fn starts(&self, law: RivalLaw) -> Vec<Parameters> {
        let mut out = Vec::new();
        let fewest = self.firsts.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
        let quotas = |period_s: f64| match law {
            RivalLaw::Calendar => vec![self.pushed * period_s, fewest],
            _ => vec![fewest, self.free * period_s],
        };
        for (rate, tokens) in self.buckets() {
            match law {
                RivalLaw::Bucket => out.push([rate, tokens, 1.0, 1.0]),
                RivalLaw::Ban => out.extend(self.shuts_s().into_iter().map(|s| [rate, tokens, s, 1.0])),
                RivalLaw::TakesFirst => {
                    out.extend([1.0, rate, tokens].map(|floor| [rate, tokens, 1.0, floor]));
                }
                RivalLaw::Slower => {
                    let calm = self.shuts_s().into_iter().map(|s| s.max(5.0));
                    out.extend(calm.map(|s| [rate.max(1.2 * self.pushed), tokens, self.pushed, s]));
                }
                RivalLaw::Calendar
                | RivalLaw::CalendarBan
                | RivalLaw::CountsRefused
                | RivalLaw::UntilCalm => {}
            }
        }
        if law.has_phase() {
            for (period_s, phase) in self.periods() {
                for quota in quotas(period_s).into_iter().filter(|q| q.is_finite() && *q > 0.0) {
                    let shuts_s = if law.parameters() > PHASE + 1 { self.shuts_s() } else { vec![1.0] };
                    out.extend(shuts_s.into_iter().map(|s| [quota / period_s, period_s, phase, s]));
                }
            }
        }
        out
    }
}

/// Rates between the least and the most that are tried first; and less than this share of what comes is next to nothing.
const RATES: usize = 5;
const SHUT: f64 = 0.02;

fn fitted(judge: &mut Judge<'_>, law: RivalLaw, guess: &Guess) -> Candidate {
    let starts = guess.starts(law);
    let mut best: Vec<Candidate> =
        starts.iter().map(|p| Candidate { law, p: *p, error: judge.error(law, p) }).collect();
    // Most starts are far off, and are left at once; the rest has to be looked at to be told apart.
    for (kept, replays) in [(KEPT, REPLAYS / 6), (2, REPLAYS)] {
        best.sort_by(|a, b| a.error.total_cmp(&b.error));
        best.truncate(kept);
        best.iter_mut().for_each(|c| *c = searched(judge, *c, 0, replays));
    }
    best.into_iter().min_by(|a, b| a.error.total_cmp(&b.error)).unwrap_or(Candidate {
        law,
        p: [1.0; 4],
        error: f64::INFINITY,
    })
}

/// From a start to a place around which nothing is better: one parameter after the other, and as far again where that helped, in steps
/// that become smaller (Hooke and Jeeves 1961). What a law does has edges, and no derivatives. Parameters before `from` are kept.
fn searched(judge: &mut Judge<'_>, mut at: Candidate, from: usize, replays: usize) -> Candidate {
    let n = at.law.parameters();
    at.error = judge.error(at.law, &at.p);
    let mut step = FIRST_STEP;
    let mut left = replays;
    while step > LAST_STEP && left > 0 {
        let before = at;
        for i in from..n {
            let moved = [step, -step].into_iter().find_map(|by| {
                left = left.saturating_sub(1);
                let mut p = at.p;
                shift(at.law, &mut p, i, by);
                // What passes in a period is seen; how long it is, less so.
                if i == PERIOD && at.law.has_phase() && from == 0 {
                    shift(at.law, &mut p, 0, -by);
                }
                let error = judge.error(at.law, &p);
                (error < at.error).then_some(Candidate { p, error, ..at })
            });
            at = moved.unwrap_or(at);
        }
        if at.error >= before.error {
            step *= 0.4;
            continue;
        }
        // Along a valley: amounts and rates make up for each other.
        while left > 0 {
            left -= 1;
            let mut p = at.p;
            for i in from..n {
                let by =
                    if is_phase(at.law, i) { at.p[i] - before.p[i] } else { (at.p[i] / before.p[i]).ln() };
                shift(at.law, &mut p, i, by);
            }
            let error = judge.error(at.law, &p);
            if error >= at.error {
                break;
            }
            (at.p, at.error) = (p, error);
        }
    }
    at
}

fn is_phase(law: RivalLaw, i: usize) -> bool {
    i == PHASE && law.has_phase()
}

fn shift(law: RivalLaw, p: &mut Parameters, i: usize, by: f64) {
    p[i] = match is_phase(law, i) {
        true => (p[i] + by).rem_euclid(1.0),
        false if i == PERIOD && law.has_phase() => (p[i] * by.exp()).clamp(LEAST_PERIOD_S, MOST),
        false => (p[i] * by.exp()).clamp(1.0 / MOST, MOST),
    };
}
