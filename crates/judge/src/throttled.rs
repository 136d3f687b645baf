//! Throttled to nothing: when everything that was asked for was refused. That is a limiter at its work, and no outage; it is told with its
//! times, and for an interval that is wide because of it.

use plimsoll_model::analysis::ThrottledSpan;
use plimsoll_model::{Finding, Level, Outcome, SeriesCounts};
use plimsoll_stats::outage::{Seen, ThrottledTimes};
use plimsoll_stats::words;
use plimsoll_store::RunData;

use super::line::Line;

/// So many stretches beside each other are a limiter's: storage that is down does not come back as often (a choice).
const LIMITERS: usize = 3;
/// Most stretches of which each is told with its times.
const MOST_TOLD: usize = 8;

/// The stretches of a stage's load, or of one endpoint of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StageThrottled {
    pub spans: Vec<ThrottledSpan>,
    /// Length of one and time from one to the next, where they are regular, seconds.
    each_s: Option<(f64, f64)>,
    load_s: f64,
    /// How most of what was refused was: `http_429`.
    outcome: Outcome,
}

impl StageThrottled {
    /// `points`: of the whole load, by outcome. `None`: there are no stretches.
    pub fn of(s: &Seen<'_>, times: ThrottledTimes, points: &[SeriesCounts]) -> Option<Self> {
        let inside = |o: Outcome| -> u64 {
            let of = |&(from, to): &(usize, usize)| points.get(from..to).unwrap_or_default();
            times.stretches.iter().flat_map(of).map(|c| c.outcomes[o.index()]).fold(0, u64::saturating_add)
        };
        let outcome = Outcome::ALL.into_iter().filter(|o| o.is_throttled()).max_by_key(|o| inside(*o))?;
        let n = s.ok.len();
        let at = |slice: usize| s.start_s + slice as f64 * s.dt_s;
        let alone = times.each_s.is_none() && times.stretches.len() < LIMITERS;
        let span = |&(from, to): &(usize, usize)| ThrottledSpan {
            stage: s.stage,
            at: s.at.to_owned(),
            from_s: at(from),
            to_s: (to < n).then(|| at(to)),
            seen_until_s: at(n),
            refused: s.throttled[from..to].iter().sum::<f64>() as u64,
            may_be_down: alone && outcome == Outcome::Http503SlowDown,
        };
        let spans: Vec<ThrottledSpan> = times.stretches.iter().map(span).collect();
        (!spans.is_empty()).then_some(Self { spans, each_s: times.each_s, load_s: s.load_s, outcome })
    }

    fn is_of(&self, line: &Line<'_>) -> bool {
        line.parts.iter().any(|p| Some(p.stage.index) == self.spans.first().map(|t| t.stage))
    }

    fn share(&self) -> f64 {
        let seen_s = self.spans.last().map_or(0.0, |t| t.seen_until_s - self.load_s);
        (self.spans.iter().map(ThrottledSpan::length_s).sum::<f64>() / seen_s.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Of the limiter's windows, where there are such.
    fn window_s(&self) -> Option<f64> {
        self.each_s.map(|(_, apart_s)| apart_s)
    }

    fn goes_on(&self) -> bool {
        self.spans.last().is_some_and(|t| t.to_s.is_none())
    }

    /// What was refused when, in words.
    fn sentence(&self) -> String {
        let (n, refused) = (self.spans.len(), self.spans.iter().map(|t| t.refused).sum::<u64>());
        let tenths = |s: f64| format!("{} s", words::fixed(s, 1));
        let all_s: f64 = self.spans.iter().map(ThrottledSpan::length_s).sum();
        let share = words::share(self.share());
        let longest = self.spans.iter().max_by(|a, b| a.length_s().total_cmp(&b.length_s()));
        let when = longest.map_or(String::new(), |t| self.when(t));
        let (who, times) = (self.spans.first().map_or("", |t| t.at.as_str()), format!("{n} times"));
        let what = match (self.each_s, n) {
            (Some((length_s, apart_s)), _) => {
                format!(
                    "for {} of each {} ({times}, {share} of the load's time)",
                    tenths(length_s),
                    tenths(apart_s)
                )
            }
            (None, 1) => format!("for {}, {when} ({share} of the load's time)", tenths(all_s)),
            (None, _) => format!(
                "for {} in all ({times}, {share} of the load's time), the longest {when}",
                tenths(all_s)
            ),
        };
        let why = if self.spans.iter().any(|t| t.may_be_down) {
            "a limiter let nothing through, or the storage was down behind a proxy"
        } else {
            "a limiter let nothing through"
        };
        let end = if self.goes_on() { " It had not ended when the load did." } else { "" };
        format!(
            "Throttled to nothing {what}: {who} refused everything that was asked of it then ({} attempts, {}), so {why}.{end} The \
             rates include that time.",
            words::fixed(refused as f64, 0),
            self.outcome.name()
        )
    }

    /// `from 12.3 s to 19.3 s into the load`.
    fn when(&self, t: &ThrottledSpan) -> String {
        let at = |s: f64| format!("{} s", words::fixed(s - self.load_s, 1));
        match t.to_s {
            Some(to_s) => format!("from {} to {} into the load", at(t.from_s), at(to_s)),
            None => format!("from {} into the load on", at(t.from_s)),
        }
    }
}

/// The time from one window of a limiter to the next, where it refused everything for the rest of each while this line ran.
pub fn window_s(throttled: &[StageThrottled], line: &Line<'_>) -> Option<f64> {
    throttled.iter().filter(|t| t.is_of(line)).find_map(StageThrottled::window_s)
}

/// One for each stage, or endpoint; of several stages, on the lines that they are of.
pub fn findings(data: &RunData, throttled: &[StageThrottled], lines: &[Line<'_>]) -> Vec<Finding> {
    let several = data.stages.iter().filter(|s| s.void.is_none()).count() > 1;
    let of = |t: &StageThrottled| {
        let mut f = Finding::new("F38", "throttled_to_nothing", Level::Qualified, t.sentence());
        f.measured = Some(t.share());
        f.evidence = t.spans.iter().take(MOST_TOLD).map(|span| (span.at.clone(), t.when(span))).collect();
        let mine: Vec<String> = lines.iter().filter(|l| several && t.is_of(l)).map(Line::label).collect();
        if mine.is_empty() { vec![f] } else { mine.into_iter().map(|l| f.clone().on(l)).collect() }
    };
    throttled.iter().flat_map(of).collect()
}

/// An interval is wide because nothing got through for a while. Where that ended it is the limiter's doing and part of the answer: what
/// got through is what a user gets. `is_explained`: an outage is why.
pub fn explain(
    findings: &mut [Finding],
    throttled: &[StageThrottled],
    lines: &[Line<'_>],
    is_explained: impl Fn(&Line<'_>) -> bool,
) {
    let of_width = |f: &&mut Finding| ["no_rate", "wide_interval"].contains(&f.name.as_str());
    for f in findings.iter_mut().filter(of_width) {
        let of_line = |l: &&Line<'_>| f.workload.as_ref().is_none_or(|on| *on == l.label());
        let mine: Vec<&Line<'_>> = lines.iter().filter(of_line).collect();
        let cause = throttled.iter().find(|t| mine.iter().any(|l| t.is_of(l) && !is_explained(l)));
        let Some(cause) = cause else { continue };
        let because = format!(
            "because everything was refused for {} of the load's time (F38): the mean over the load is over that time, too.",
            words::share(cause.share())
        );
        f.text = match f.measured {
            Some(width) => format!(
                "The confidence interval is ±{:.1} % (at most 10 % is acceptable) {because}",
                100.0 * width
            ),
            None => format!("The confidence interval is as wide as the rate itself, {because}"),
        };
        // Of a rhythm it is chance where in it the load ended.
        if cause.each_s.is_some() || !cause.goes_on() {
            f.level = f.level.min(Level::Qualified);
        }
    }
}
