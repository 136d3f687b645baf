//! Levels that grow, and teeth, in words: what is reported in place of a mean that is the rate of none of them.

use plimsoll_model::analysis::Hold;
use plimsoll_model::{Estimate, Finding, Level};
use plimsoll_stats::advice::{Amounts, LimitLaw, WindowQuota};
use plimsoll_stats::shape::RateShape;
use plimsoll_stats::steady::{MIN_WINDOW_S, SteadyVerdict};
use plimsoll_stats::throttle::{REFUSED, Throttle, ThrottleVerdict};
use plimsoll_stats::words;

use super::line::Line;

/// A last level that lasts for so many times the longest before it may be the end of growth (a choice).
const LASTS: f64 = 2.0;

/// Where growth stands.
struct Growth {
    last: Estimate,
    last_s: f64,
    /// The last level lasted for so long that it may stay.
    lasts: bool,
    /// A load of so long would tell, seconds.
    drive_s: f64,
}

impl Growth {
    fn of(hold: &Hold) -> Option<Self> {
        let long = |l: &plimsoll_model::analysis::MeasuredLevel| l.end_s - l.start_s;
        let (last, before) = hold.levels.split_last()?;
        let longest_s = before.iter().map(long).fold(0.0, f64::max);
        let enough_s = (LASTS * longest_s).max(MIN_WINDOW_S);
        let more_s = (enough_s - long(last)).max(0.0);
        Some(Self {
            last: last.per_s,
            last_s: long(last),
            lasts: more_s <= 0.0,
            drive_s: 10.0 * ((hold.horizon_s + more_s) / 10.0).ceil(),
        })
    }
}

/// The finding that is told in place of a rate.
pub fn finding(line: &Line<'_>, shape: &RateShape, hold: &Hold, refused: f64) -> Finding {
    let is_refused = refused >= REFUSED;
    let share = || words::share(refused);
    match shape {
        RateShape::Grows(all) => {
            let what = if is_refused { "limit" } else { "rate" };
            let start_s = hold.levels.first().map_or(0.0, |l| l.start_s);
            let each: Vec<String> = hold
                .levels
                .iter()
                .map(|l| format!("{} for {}", words::ops_rate(&l.per_s), words::span(l.end_s - l.start_s)))
                .collect();
            let mut text = format!("The {what} grew in {} levels: {}.", all.len(), each.join(", then "));
            if is_refused {
                text += &format!(" {} of the attempts were refused.", share());
            }
            text += &match Growth::of(hold) {
                Some(g) if g.lasts => format!(
                    " The mean over them is the rate of none. The last level has lasted for longer than any before ({}).",
                    words::span(g.last_s)
                ),
                Some(g) => format!(
                    " No sustained rate is known yet: it may go on growing. A load of {} would show whether the last level \
                     lasts.",
                    words::span(g.drive_s)
                ),
                None => String::new(),
            };
            let mut f = Finding::new("F36", "levels_grow", Level::Qualified, text).on(line.label());
            f.evidence = hold
                .levels
                .iter()
                .enumerate()
                .map(|(i, l)| {
                    let at = |s: f64| words::fixed(s - start_s, 0);
                    let when =
                        format!("{} s to {} s: {}", at(l.start_s), at(l.end_s), words::ops_rate(&l.per_s));
                    (format!("level {}", i + 1), when)
                })
                .collect();
            f
        }
        RateShape::Sawtooth(s) => {
            let n = |x: f64| words::about(x, 3);
            let why = match is_refused {
                true => format!(
                    "{} of the attempts were refused, as by an adaptive limit, which comes down after an excess and goes up again",
                    share()
                ),
                false => {
                    "An adaptive limit that delays does so, and so does storage that works in cycles".into()
                }
            };
            let text = format!(
                "The rate goes up and down like a sawtooth: from {} to {} op/s in {}, and down at once, {} times. {why}. Its mean \
                 over whole teeth is {}, and no rate to configure.",
                n(s.low),
                n(s.high),
                words::span(s.period_s),
                s.teeth,
                words::ops_rate(&s.mean)
            );
            Finding::new("F37", "sawtooth", Level::Qualified, text).on(line.label())
        }
    }
}

/// What is said of the mean over a line of this verdict; `None`: nothing but what is.
pub fn of_the_mean(verdict: &str) -> Option<&'static str> {
    match verdict {
        "growing" => Some(
            "The mean over the window mixes levels that grow, so it is the rate of none of them. They are reported separately.",
        ),
        "sawtooth" => Some(
            "The mean over the window is one over teeth of a sawtooth, whole and cut. What they come to is reported separately.",
        ),
        _ => None,
    }
}

/// What the series tells of a limiter's law. `range`: of the rate, over a few seconds.
pub fn law(
    shape: Option<&RateShape>,
    throttle: &Throttle,
    steady: &SteadyVerdict,
    range: Option<(f64, f64)>,
    hold: &Hold,
) -> LimitLaw {
    match (shape, &throttle.verdict) {
        (Some(RateShape::Grows(_)), _) => match Growth::of(hold).filter(|g| !g.lasts) {
            Some(g) => LimitLaw::Growing { last_per_s: g.last.value, last_s: g.last_s, drive_s: g.drive_s },
            None => LimitLaw::Rate,
        },
        (Some(RateShape::Sawtooth(s)), ThrottleVerdict::Refusing(_)) => {
            LimitLaw::Moving(Some((s.low, s.high)))
        }
        (None, ThrottleVerdict::Refusing(_))
            if matches!(steady, SteadyVerdict::Drifting | SteadyVerdict::Unstable) =>
        {
            LimitLaw::Moving(range)
        }
        (None, ThrottleVerdict::FixedWindow { period_s, units }) => LimitLaw::Window(Amounts {
            ops: Some(WindowQuota { period_s: *period_s, units: *units }),
            bytes: None,
        }),
        // Storage that works in cycles has no limit, and one that was proved is told with its figures.
        (Some(RateShape::Sawtooth(_)) | None, _) => LimitLaw::Rate,
    }
}
