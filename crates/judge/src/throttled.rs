//! Throttled to nothing: when everything that was asked for was refused. That is a limiter at its work, and no outage; it is told with its
//! times, and for an interval that is wide because of it.

use plimsoll_model::analysis::ThrottledSpan;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, Level, Outcome, RunSummary, SeriesCounts};
use plimsoll_stats::claims::{MAY_BE_DOWN, THROTTLED_TO_NOTHING, is_of_a_server_that_was_away};
use plimsoll_stats::judge::LIMITER_ACTIVE as ACTIVE;
use plimsoll_stats::outage::{Seen, ThrottledTimes};
use plimsoll_stats::words;
use plimsoll_store::RunData;

use super::holds::is_of_width;
use super::line::Line;
use super::outages::ended_so;

/// Where so much of what was refused with 503 was so in stretches in which nothing got through, it may be a proxy's whose storage is down, however often
/// that comes back; a limiter lets something through beside what it refuses. (A choice.)
const IN_STRETCHES: f64 = 0.9;
const EITHER: &str = "a rate limiter is active, or the storage was down behind a proxy";
/// Most stretches of which each is told with its times.
const MOST_TOLD: usize = 8;

/// The stretches of a stage's load, or of one endpoint of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StageThrottled {
    pub spans: Vec<ThrottledSpan>,
    /// Length of one and time from one to the next, where they are regular, seconds.
    each_s: Option<(f64, f64)>,
    load_s: f64,
    /// Attempts that were refused in them, by outcome.
    refused: Vec<(Outcome, u64)>,
    /// Attempts that failed in them, by outcome.
    failed: Vec<(Outcome, u64)>,
    /// Of all 503, most came in them.
    is_most: bool,
    /// For most of their time the load paused, and asked nothing.
    paused: bool,
}

impl StageThrottled {
    /// `points`: of the whole load, by outcome. `None`: there are no stretches.
    pub fn of(s: &Seen<'_>, times: ThrottledTimes, points: &[SeriesCounts]) -> Option<Self> {
        let sum = |(from, to): (usize, usize), o: Outcome| -> u64 {
            ended_so(points.get(from..to).unwrap_or_default(), o)
        };
        let ended = |which: fn(Outcome) -> bool| -> Vec<(Outcome, u64)> {
            let of =
                |o: Outcome| (o, times.stretches.iter().map(|g| sum(*g, o)).fold(0, u64::saturating_add));
            Outcome::ALL.into_iter().filter(|o| which(*o)).map(of).filter(|(_, n)| *n > 0).collect()
        };
        let (refused, failed) = (ended(Outcome::is_throttled), ended(Outcome::is_failure));
        let n = s.ok.len();
        let at = |slice: usize| s.start_s + slice as f64 * s.dt_s;
        let span = |&(from, to): &(usize, usize)| {
            let all = s.throttled[from..to].iter().sum::<f64>();
            ThrottledSpan {
                stage: s.stage,
                at: s.at.to_owned(),
                from_s: at(from),
                to_s: (to < n).then(|| at(to)),
                seen_until_s: at(n),
                refused: all as u64,
                may_be_down: 2.0 * sum((from, to), Outcome::Http503SlowDown) as f64 > all,
            }
        };
        let spans: Vec<ThrottledSpan> = times.stretches.iter().map(span).collect();
        let inside = |x: &[f64]| times.stretches.iter().map(|g| x[g.0..g.1].iter().sum::<f64>()).sum::<f64>();
        // Of 503 alone: what else refuses at other times is another's.
        let of_503 =
            times.stretches.iter().map(|g| sum(*g, Outcome::Http503SlowDown)).fold(0, u64::saturating_add);
        let all_503 = ended_so(points, Outcome::Http503SlowDown);
        (!spans.is_empty()).then_some(Self {
            is_most: of_503 as f64 >= IN_STRETCHES * all_503 as f64,
            paused: inside(s.held_back) > inside(s.in_flight),
            spans,
            each_s: times.each_s,
            load_s: s.load_s,
            refused,
            failed,
        })
    }

    /// Which of both it is nobody can say from here.
    fn may_be_down(&self) -> bool {
        self.is_most && self.spans.iter().any(|t| t.may_be_down)
    }

    fn is_of(&self, line: &Line<'_>) -> bool {
        self.spans.first().is_some_and(|t| line.is_in(t.stage))
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
        let n = self.spans.len();
        let attempts: u64 = self.refused.iter().map(|(_, n)| n).sum();
        let by = match &self.refused[..] {
            [(one, _)] => one.name().to_owned(),
            several => listed(several),
        };
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
        let why = if self.may_be_down() {
            "a limiter let nothing through, or the storage was down behind a proxy"
        } else {
            "a limiter let nothing through"
        };
        let end = if self.goes_on() { " It had not ended when the load did." } else { "" };
        // Who pauses asks nothing: what it would have got is not known.
        let did = match self.paused {
            true => format!(
                "nothing got through, and for most of that time the load paused, since it was refused by {who}{}",
                if self.may_be_down() { ": a limiter, or a proxy whose storage was down" } else { "" }
            ),
            false if self.failed.is_empty() => format!("{who} refused all that it answered then"),
            false => format!("{who} refused most of what it answered then, and nothing got through"),
        };
        let failed = match &self.failed[..] {
            [] => String::new(),
            all => format!("; beside them failed {}", listed(all)),
        };
        format!(
            "Throttled to nothing {what}: {did} ({} attempts, {by}{failed}){}.{end} The rates include that time.",
            words::fixed(attempts as f64, 0),
            if self.paused { String::new() } else { format!(", so {why}") }
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

/// `429 12, 503 3`.
fn listed(all: &[(Outcome, u64)]) -> String {
    let one = |(o, n): &(Outcome, u64)| format!("{} {}", o.name(), words::fixed(*n as f64, 0));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What is known of refusals while a line ran.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RefusedMeanwhile {
    /// The time from one window of a limiter to the next, where it refused everything for the rest of each.
    pub window_s: Option<f64>,
    /// They may be a proxy's whose storage was down.
    pub may_be_down: bool,
}

pub fn meanwhile(throttled: &[StageThrottled], line: &Line<'_>) -> RefusedMeanwhile {
    let mine = || throttled.iter().filter(|t| t.is_of(line));
    RefusedMeanwhile {
        window_s: mine().find_map(StageThrottled::window_s),
        may_be_down: mine().any(StageThrottled::may_be_down),
    }
}

/// One for each stage, or endpoint; of several stages, on the lines that they are of.
pub fn findings(data: &RunData, throttled: &[StageThrottled], lines: &[Line<'_>]) -> Vec<Finding> {
    let several = data.stages.iter().filter(|s| s.void.is_none()).count() > 1;
    let of = |t: &StageThrottled| {
        let mut f = Finding::new("F38", THROTTLED_TO_NOTHING, Level::Qualified, t.sentence());
        f.measured = Some(t.share());
        f.evidence =
            t.may_be_down().then(|| (MAY_BE_DOWN[0].into(), MAY_BE_DOWN[1].into())).into_iter().collect();
        f.evidence.extend(t.spans.iter().take(MOST_TOLD).map(|span| (span.at.clone(), t.when(span))));
        let mine: Vec<String> = lines.iter().filter(|l| several && t.is_of(l)).map(Line::label).collect();
        if mine.is_empty() { vec![f] } else { mine.into_iter().map(|l| f.clone().on(l)).collect() }
    };
    throttled.iter().flat_map(of).collect()
}

/// A few 503 of a server that was out, or started again, are no sure sign of a limiter.
pub fn of_servers_that_were_away(s: &mut RunSummary) {
    let lines: Vec<String> = s
        .workloads
        .iter()
        .filter(|w| is_of_a_server_that_was_away(s, w))
        .map(WorkloadSummary::label)
        .collect();
    let is_one = |f: &Finding| f.workload.as_ref().map_or(!lines.is_empty(), |l| lines.contains(l));
    for f in s.findings.iter_mut().filter(|f| f.code == "F01" && is_one(f)) {
        f.text = f.text.replace(ACTIVE, "a rate limiter is active, or a server was not ready");
    }
}

/// Whether a finding is of a line.
fn is_on(f: &Finding) -> impl Fn(&&Line<'_>) -> bool {
    let on = f.workload.clone();
    move |l| on.as_ref().is_none_or(|on| *on == l.label())
}

/// An interval is wide because nothing got through for a while. Where that ended it is the limiter's doing and part of the answer: what
/// got through is what a user gets. `is_explained`: an outage is why.
pub fn explain(
    findings: &mut [Finding],
    throttled: &[StageThrottled],
    lines: &[Line<'_>],
    is_explained: impl Fn(&Line<'_>) -> bool,
) {
    for f in findings.iter_mut().filter(|f| f.code == "F01") {
        let is_either =
            lines.iter().filter(is_on(f)).any(|l| throttled.iter().any(|t| t.may_be_down() && t.is_of(l)));
        if is_either {
            f.text = f.text.replace(ACTIVE, EITHER);
        }
    }
    for f in findings.iter_mut().filter(|f| is_of_width(f)) {
        let mine: Vec<&Line<'_>> = lines.iter().filter(is_on(f)).collect();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn where_a_server_was_away_both_are_named() {
        let line = |name: &str, refused: u64| WorkloadSummary {
            name: name.into(),
            op: "get".into(),
            outcomes: BTreeMap::from([("ok".to_owned(), 10_000), ("http_503".to_owned(), refused)]),
            ..WorkloadSummary::default()
        };
        let workloads = vec![line("few", 40), line("many", 4_000)];
        let wide = |w: &WorkloadSummary| {
            let mut f = Finding::new("F01", "wide", Level::Qualified, format!("Wide: {ACTIVE}."));
            f.workload = Some(w.label());
            f
        };
        let mut findings: Vec<Finding> = workloads.iter().map(wide).collect();
        findings.push(Finding::new("F60", "outage", Level::Qualified, "Outages."));
        let mut s = RunSummary { workloads, findings, ..RunSummary::default() };
        of_servers_that_were_away(&mut s);
        assert_eq!(s.findings[0].text, "Wide: a rate limiter is active, or a server was not ready.");
        assert_eq!(s.findings[1].text, format!("Wide: {ACTIVE}."));
    }
}
