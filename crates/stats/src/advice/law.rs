//! The law of a limiter, and what it means for whoever has to live with it: a limit on requests in flight is no rate to stay below, a
//! ban costs time, and what refuses at any rate is cured by no limit.

use plimsoll_model::units::significant;

use super::tools::{self, KeptRate};
use super::{Known, keep, of_rates};
use crate::words;

/// How a limiter limits, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum LimitLaw {
    /// No more is known than the rates.
    #[default]
    Rate,
    /// Token buckets: so much passes at once beside the rate.
    Bucket(Amounts<BurstTokens>),
    /// So much in each window of time, and then nothing.
    Window(Amounts<WindowQuota>),
    /// So many requests at once.
    InFlight {
        /// So many were in flight, and none was refused.
        passes: u32,
        /// It is no rate that this many reach.
        sure: bool,
    },
    /// A load that is refused gets less than one that holds back: a ban, or a lower rate until it is calm.
    Insisting {
        /// Ops per second that passed beside refusals.
        pushed_per_s: f64,
        /// Ops per second that passed without one, and for how long, seconds. Absent: for too short a time to say that they hold.
        holds: Option<(f64, f64)>,
        /// The longest time in which nothing passed, seconds.
        shut_s: f64,
        /// Seconds without load before a higher rate passed; absent: it took none.
        calm_s: Option<f64>,
    },
    /// What is refused uses up tokens, too.
    CostsTokens {
        /// Ops per second that passed without a refusal, and for how long, seconds.
        holds: Option<(f64, f64)>,
    },
    /// No rate holds. Least and most that passed over a few seconds, ops per second.
    Moving(Option<(f64, f64)>),
    /// It lets more and more through, level by level.
    Growing {
        /// Ops per second of the last level, and for how long that was seen, seconds.
        last_per_s: f64,
        /// See `last_per_s`.
        last_s: f64,
        /// So long a load shows whether the last level lasts, seconds.
        drive_s: f64,
    },
    /// This share is refused at any rate.
    Share(f64),
    /// It refuses, and by no law that is known.
    Unknown,
}

/// Of operations, and of bytes, where there is such a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amounts<T> {
    /// In operations.
    pub ops: Option<T>,
    /// In bytes.
    pub bytes: Option<T>,
}

/// What a full bucket holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstTokens {
    /// Surely so many.
    pub least: f64,
    /// It may be more.
    pub is_bound: bool,
    /// Seconds of rest until it is full.
    pub full_again_s: Option<f64>,
}

/// A window's allowance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowQuota {
    /// From the begin of one window to that of the next, seconds.
    pub period_s: f64,
    /// In each.
    pub units: f64,
}

/// Shorter times without anything that passed are told by no one (a choice).
const SHUT_S: f64 = 2.0;

/// Sentences, most useful first.
pub(super) fn advice(k: &Known) -> Vec<String> {
    match k.law {
        LimitLaw::Rate => of_rates(k),
        LimitLaw::Bucket(tokens) => [of_rates(k), bursts(k, tokens)].concat(),
        LimitLaw::Window(quotas) => [windows(k, quotas), of_rates(k)].concat(),
        LimitLaw::InFlight { passes, sure } => at_once(k, passes, sure),
        LimitLaw::Insisting { pushed_per_s, holds, shut_s, calm_s } => {
            let costs = insisting(pushed_per_s, shut_s, calm_s);
            [of_rates(&k.holding(holds)), costs].concat()
        }
        LimitLaw::CostsTokens { holds } => {
            let costs = "Refused requests cost tokens: any excess lowers what passes, down to almost nothing, until the load pauses.";
            [of_rates(&k.holding(holds)), vec![costs.into()]].concat()
        }
        LimitLaw::Moving(range) => moving(k, range),
        LimitLaw::Growing { last_per_s, last_s, drive_s } => vec![format!(
            "There is no sustained limit to configure yet: the last level ({} op/s) was seen for {}. Put load on it for {} in all \
             (plimsoll watch --duration {drive_s:.0}s), to see whether it lasts.",
            words::about(last_per_s, 3),
            words::span(last_s),
            words::span(drive_s)
        )],
        LimitLaw::Share(share) => vec![format!(
            "Have the client retry (AWS_MAX_ATTEMPTS, rclone --low-level-retries, s5cmd --retry-count): {} of the attempts are \
             refused at any rate, so neither a rate limit nor fewer in flight helps.",
            words::share(share)
        )],
        LimitLaw::Unknown => Vec::new(),
    }
}

impl Known {
    /// With the rate that passed without refusals, where no figure with an interval stands for it.
    fn holding(&self, holds: Option<(f64, f64)>) -> Self {
        match (self.ops_per_s, holds) {
            (None, Some((per_s, s))) => {
                // It was offered as it is.
                Self {
                    ops_per_s: Some(per_s),
                    held_for_s: Some(s),
                    surely: [None; 2],
                    ops_open: false,
                    ..*self
                }
            }
            _ => *self,
        }
    }
}

fn amount(bytes: bool, x: f64) -> String {
    if !bytes {
        return format!("{} ops", whole(x));
    }
    let (unit, f) = words::bytes_unit(x);
    format!("{} {unit}", significant(x / f, 3))
}

/// All digits of a count, rounded down.
fn whole(x: f64) -> String {
    significant(x.floor(), 1)
}

fn each<T: Copy>(a: Amounts<T>) -> impl Iterator<Item = (bool, T)> {
    [(false, a.ops), (true, a.bytes)].into_iter().filter_map(|(bytes, t)| Some((bytes, t?)))
}

fn bursts(k: &Known, tokens: Amounts<BurstTokens>) -> Vec<String> {
    let one = |(bytes, t): (bool, BurstTokens)| {
        let full = t.full_again_s.map_or(String::new(), |s| format!(" of {}", words::span(s)));
        let own = (t.least / k.share_each()).floor();
        let tool = match bytes || k.is_block || own < 1.0 {
            true => String::new(),
            false => format!(" (rclone --tpslimit-burst {own:.0}{})", k.on_each()),
        };
        format!(
            "A burst of {}{} passes beside that after a rest{full}{tool}.",
            if t.is_bound { "at least " } else { "" },
            amount(bytes, t.least)
        )
    };
    each(tokens).filter(|(_, t)| t.least >= 1.0).map(one).collect()
}

/// A count per period, as whoever sets up a limiter has it; and the even spacing that keeps to it.
fn windows(k: &Known, quotas: Amounts<WindowQuota>) -> Vec<String> {
    let one = |(bytes, q): (bool, WindowQuota)| {
        let per_s = q.units / q.period_s;
        let (quota, at_once, evenly) = match bytes {
            true => {
                let all = amount(true, q.units);
                (all.clone(), all, format!(" ({}/s)", amount(true, per_s)))
            }
            false => {
                let what = if k.is_block { "ops" } else { "requests" };
                let evenly =
                    KeptRate::of(per_s).map_or(String::new(), |r| format!(" ({} op/s)", r.decimal()));
                (format!("{} {what}", whole(q.units)), whole(q.units), evenly)
            }
        };
        let period = words::span(q.period_s).replace(".0 s", " s");
        let quota = format!(
            "A quota of {quota} per {period}: at most {at_once} at once, and then nothing until the next window. Spread the load \
             evenly{evenly}: what comes at once is refused or waits."
        );
        // With limits that are known beside it, the rate is theirs. One request fewer, since a window may begin between any two.
        let fewer = (q.units.floor() - 1.0) / q.period_s;
        let tools = match bytes || k.is_block || k.ops_per_s.is_some() {
            true => Vec::new(),
            false => {
                keep(k, &format!("To stay below it with {} (one request fewer per window)", k.who()), fewer)
            }
        };
        [vec![quota], tools].concat()
    };
    each(quotas).filter(|(_, q)| q.period_s > 0.0 && q.units > 0.0).flat_map(one).collect()
}

fn at_once(k: &Known, passes: u32, sure: bool) -> Vec<String> {
    // More clients than it allows: one each is the least, and too many.
    let own = (f64::from(passes) / k.share_each()).floor().max(1.0);
    let set = format!(
        "To keep to {passes} requests in flight with {}: {}{}.",
        k.who(),
        k.tools_in_flight(own),
        k.on_each()
    );
    let why = match sure {
        true => "The limit is on how many requests there are at once: a rate limit does not keep to it.",
        false => {
            "Nothing is refused with as many in flight, whether their number is the limit or the rate that they reach."
        }
    };
    let mut out = vec![set];
    if !k.is_block {
        out.push(tools::generators_in_flight(own, k.clients > 1));
    }
    out.push(why.into());
    if !k.is_block {
        out.push(
            "Parts of one object are requests, too: s5cmd cp --concurrency 1 and rclone --s3-upload-concurrency 1 send one at a time."
                .into(),
        );
    }
    out
}

fn insisting(pushed_per_s: f64, shut_s: f64, calm_s: Option<f64>) -> Vec<String> {
    let time = match shut_s >= SHUT_S {
        true => format!(", with nothing at all for up to {} at a time", words::span(shut_s)),
        false => String::new(),
    };
    let mut out = vec![format!(
        "An excess costs: a load that goes on when it is refused gets {} op/s{time}.",
        words::about(pushed_per_s, 3)
    )];
    out.extend(calm_s.map(|s| {
        format!(
            "After a refusal, pause: after {} without load, the higher rate passed again.",
            words::span(s)
        )
    }));
    out
}

/// A client that backs off follows what no constant rate can.
fn moving(k: &Known, range: Option<(f64, f64)>) -> Vec<String> {
    let range = range.filter(|(low, high)| *low > 0.0 && high.is_finite() && low < high);
    let between = range.map_or(String::new(), |(low, high)| {
        format!(" (it moved between {} and {} op/s)", words::about(low, 2), words::about(high, 2))
    });
    let mut out = vec![format!(
        "There is no constant rate to configure: what gets through is not constant{between}. Use a client that slows down when it is \
         refused (AWS_RETRY_MODE=adaptive, rclone)."
    )];
    if k.untried {
        out.push("Which rate passes without refusals was not tried here: plimsoll limits tries it.".into());
        return out;
    }
    if let Some((low, _)) = range.filter(|(low, high)| *low >= SILENCE * high && !k.is_block) {
        let what_for = "For a tool that cannot, use the low end, which was not tried by itself";
        out.extend(keep(k, what_for, low));
    }
    out
}

/// Of what passes at the most. Less than this is where a limiter let nothing through for a part of the time, and no rate. (A choice: limits
/// that adapt halve themselves.)
const SILENCE: f64 = 0.25;

/// One limit of which ops use up unlike amounts. `alone`: ops per second of each kind by itself.
pub fn unlike_costs(alone: &[(&str, f64)]) -> Option<String> {
    let rates = || alone.iter().map(|(_, r)| *r);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    if alone.len() < 2 || !(least > 0.0 && most.is_finite() && most > UNLIKE * least) {
        return None;
    }
    let each: Vec<String> =
        alone.iter().map(|(op, r)| format!("{} {} op/s", op.to_uppercase(), words::about(*r, 3))).collect();
    Some(format!(
        "Set a rate for each op, since they use up unlike amounts of one limit: alone, {}; of a mix, the shares of these rates come \
         to 1 at the most.",
        each.join(", ")
    ))
}

/// Rates of ops of one limit that differ by more than this are of unlike costs (as the scope's "stays": 7 %, and as much again).
const UNLIKE: f64 = 1.15;

#[cfg(test)]
mod tests;
