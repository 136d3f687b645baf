//! Is the storage slower than it was? Response times of a short run at a low load, held against those of an earlier one.
//!
//! One run stands against one, so that how much runs differ from each other is not known ([`crate::compare`] needs several of each).
//! What can be said is what the 95 % intervals of the percentiles within the runs carry, and no more: they lie apart, or they do not.
//! An earlier run under a higher load is a bound on one side only: at a fraction of its load no response should take longer, and that
//! none does says nothing of the storage under that load.

use plimsoll_model::summary::{PercentileIntervals, WorkloadSummary};
use plimsoll_model::{Estimate, Finding, Level, OpKind, Outcome};
use serde::Serialize;

/// Ops that a 90th percentile takes, the least tail that is held against another: ten beyond it.
pub const LEAST_OPS: f64 = 100.0;
/// Ops that a 99th percentile takes.
pub const OPS_FOR_P99: f64 = 1000.0;
/// An interval that reaches so many times beyond the earlier one does not exclude that all takes twice as long: nothing is said then.
/// (A choice; `compare` draws the same line.)
const MOST_LEFT_OPEN: f64 = 2.0;
/// Checks of the rate, which is not asked for here: what they find shows in the times, or is no trouble of theirs.
const OF_THE_RATE: [&str; 4] = ["V04", "V05", "V14", "V19"];
/// Failed ops, which are judged here.
const OF_FAILURES: &str = "V01";
/// The storage answered nothing for a good part of the time.
const OUTAGE: &str = "F60";
/// Ops were sent late, by the client's fault.
const SENT_LATE: &str = "V06";
/// A median among so many that were not late lies at most five percentiles off (50 % of 90 % is 45 %).
const FEW_LATE: f64 = 0.1;
/// The offered rate was not done.
const RATE_MISSED: &str = "V05";

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckWord {
    /// No slower than it was, as far as the load of the check shows.
    Ok,
    /// Response times lie above those of the earlier run by more than both intervals, or less is let through.
    Slower,
    /// More ops fail than are allowed.
    Failing,
    /// The data does not carry an answer.
    Unknown,
}

/// How a time stands to that of the earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeShift {
    /// The intervals lie apart, and this one above.
    Slower,
    /// The intervals lie apart, and this one below.
    Faster,
    /// They meet.
    NoneSeen,
}

/// One percentile of the response times, now and then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimePair {
    /// `p50`, `p90` or `p99`.
    pub percentile: &'static str,
    /// Of the check, nanoseconds.
    pub now_ns: Estimate,
    /// Of the earlier run, nanoseconds.
    pub baseline_ns: Estimate,
    /// Which of the two is the greater.
    pub shift: TimeShift,
}

/// Why it came to that.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "said")]
pub enum CheckReason {
    /// The response times say it.
    Times,
    /// These outcomes, by how many there were of each, most first.
    Failures(Vec<(&'static str, u64)>),
    /// Ops were sent, and not one was answered in the time.
    NoAnswer,
    /// 429 and 503 at a fraction of the load that the earlier run had.
    Refused,
    /// Ops per second that were done, and offered.
    RateMissed(f64, f64),
    /// It answered nothing for this share of the time, 0 to 1.
    StoodStill(f64),
    /// Objects that were listed were not there when they were read.
    Gone,
    /// The result is void; the finding's words.
    Void(String),
    /// A sentence without its stop.
    Open(String),
}

/// What was measured, and what it is held against.
#[derive(Debug, Clone, Copy)]
pub struct CheckFacts<'a> {
    /// Of the check.
    pub now: &'a WorkloadSummary,
    /// Of all the check's run.
    pub findings: &'a [Finding],
    /// The line of the earlier run.
    pub baseline: &'a WorkloadSummary,
    /// Share of failed ops that is allowed, 0 to 1.
    pub max_error_rate: f64,
}

/// What a check comes to, with what was counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckVerdict {
    /// In a word.
    pub verdict: CheckWord,
    /// Why.
    pub reason: CheckReason,
    /// The median, and the furthest percentile that both runs carry.
    pub times: Vec<TimePair>,
    /// Ops that ended, in whatever way.
    pub attempts: u64,
    /// Of these: failed. What was gone or refused is not among them.
    pub failed: u64,
    /// Of these: refused with 429 or 503.
    pub throttled: u64,
    /// Of these: reads of objects that somebody had removed since they were listed.
    pub gone: u64,
}

impl CheckVerdict {
    /// The result is void.
    pub fn is_void(&self) -> bool {
        matches!(self.reason, CheckReason::Void(_))
    }
}

/// Judges a check.
pub fn check(f: &CheckFacts<'_>) -> CheckVerdict {
    let w = f.now;
    let gone = if is_of_objects(w) { w.count(|o| o == Outcome::Http404) } else { 0 };
    let mut out = CheckVerdict {
        verdict: CheckWord::Unknown,
        reason: CheckReason::Times,
        times: times(w, f.baseline),
        attempts: w.count(|o| o != Outcome::Cancelled),
        failed: w.count(Outcome::is_failure) - gone,
        throttled: w.count(Outcome::is_throttled),
        gone,
    };
    (out.verdict, out.reason) = decide(f, &out);
    out
}

fn decide(f: &CheckFacts<'_>, c: &CheckVerdict) -> (CheckWord, CheckReason) {
    let too_many = |n: u64| n as f64 > f.max_error_rate * c.attempts as f64;
    if c.attempts == 0 {
        return match f.now.count(|o| o == Outcome::Cancelled) {
            0 => (CheckWord::Unknown, CheckReason::Open("no op was sent".into())),
            _ => (CheckWord::Failing, CheckReason::NoAnswer),
        };
    }
    if c.failed > 0 && too_many(c.failed) {
        return (CheckWord::Failing, CheckReason::Failures(failures(f.now, c.gone > 0)));
    }
    if c.gone > 0 && too_many(c.gone) {
        return (CheckWord::Unknown, CheckReason::Gone);
    }
    if c.throttled > 0 && too_many(c.throttled) && refused_share(f.now) > refused_share(f.baseline) {
        return (CheckWord::Slower, CheckReason::Refused);
    }
    let label = f.now.label();
    let mut void = f.findings.iter().filter(|x| {
        x.level == Level::Invalid && x.code != OF_FAILURES && x.workload.as_ref().is_none_or(|w| *w == label)
    });
    let of_rate = |x: &&Finding| OF_THE_RATE.contains(&x.code.as_str());
    let stood = f.findings.iter().find(|x| x.code == OUTAGE && x.level == Level::Invalid);
    let median_is_slower = c.times.iter().any(|t| t.percentile == "p50" && t.shift == TimeShift::Slower);
    // A few ops that were sent late do not move a median.
    let explains = |x: &Finding| {
        !(x.code == SENT_LATE && median_is_slower && x.measured.is_some_and(|share| share <= FEW_LATE))
    };
    if let Some(x) = void.clone().find(|x| !of_rate(x) && x.code != OUTAGE && explains(x)) {
        return (CheckWord::Unknown, CheckReason::Void(x.text.clone()));
    }
    // Nothing says that it was the client: that the storage answered nothing is the answer.
    if let Some(x) = stood {
        return (CheckWord::Slower, CheckReason::StoodStill(x.measured.unwrap_or(0.0)));
    }
    if c.times.iter().any(|t| t.shift == TimeShift::Slower) {
        return (CheckWord::Slower, CheckReason::Times);
    }
    if void.clone().any(|x| x.code == RATE_MISSED)
        && let (Some(done), Some(offered)) = (f.now.ops_per_s, f.now.offered_per_s)
    {
        return (CheckWord::Slower, CheckReason::RateMissed(done.value, offered));
    }
    if let Some(x) = void.next() {
        return (CheckWord::Unknown, CheckReason::Void(x.text.clone()));
    }
    match left_open(f, &c.times) {
        Some(why) => (CheckWord::Unknown, CheckReason::Open(why)),
        None => (CheckWord::Ok, CheckReason::Times),
    }
}

/// Why nothing is said of times none of which lies above: too few ops, or too wide an interval.
fn left_open(f: &CheckFacts<'_>, times: &[TimePair]) -> Option<String> {
    if times.len() < 2 {
        return Some(not_carried(f.baseline).map_or_else(
            || {
                format!(
                    "{} ops ended well, and they carry no interval of a median and of a 90th percentile",
                    f.now.count(Outcome::is_ok)
                )
            },
            Into::into,
        ));
    }
    let wide = times.iter().find(|t| t.now_ns.high > MOST_LEFT_OPEN * t.baseline_ns.high)?;
    Some(format!(
        "the interval of {} is so wide that twice the time is not excluded: check for longer",
        wide.percentile
    ))
}

/// Why nothing can be held against a line, whatever is measured now.
pub fn not_carried(baseline: &WorkloadSummary) -> Option<&'static str> {
    let carries =
        intervals(baseline).is_some_and(|i| i.p50.is_some() && (i.p90.is_some() || i.p99.is_some()));
    (!carries).then_some(
        "the baseline's response times carry no interval of a 90th percentile: it was too short, or too uneven",
    )
}

fn is_of_objects(w: &WorkloadSummary) -> bool {
    OpKind::parse(&w.op).is_some_and(|k| !k.is_block())
}

fn refused_share(w: &WorkloadSummary) -> f64 {
    w.count(Outcome::is_throttled) as f64 / w.count(|o| o != Outcome::Cancelled).max(1) as f64
}

/// Outcomes that are failures, most first; `but_gone`: 404 is counted for itself.
fn failures(w: &WorkloadSummary, but_gone: bool) -> Vec<(&'static str, u64)> {
    let failed = |o: &Outcome| o.is_failure() && !(but_gone && *o == Outcome::Http404);
    let mut all: Vec<(&'static str, u64)> = Outcome::ALL
        .into_iter()
        .filter(failed)
        .filter_map(|o| w.outcomes.get(o.name()).map(|n| (o.name(), *n)))
        .filter(|(_, n)| *n > 0)
        .collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all
}

fn intervals(w: &WorkloadSummary) -> Option<&PercentileIntervals> {
    w.latency_ns.response.as_ref().map(|l| &l.intervals)
}

/// The median, and the 99th percentile, or where one of the two does not carry it the 90th.
fn times(now: &WorkloadSummary, baseline: &WorkloadSummary) -> Vec<TimePair> {
    let (Some(n), Some(b)) = (intervals(now), intervals(baseline)) else { return Vec::new() };
    let tail = pair("p99", n.p99, b.p99).or_else(|| pair("p90", n.p90, b.p90));
    pair("p50", n.p50, b.p50).into_iter().chain(tail).collect()
}

fn pair(percentile: &'static str, now: Option<Estimate>, baseline: Option<Estimate>) -> Option<TimePair> {
    let (now_ns, baseline_ns) = (now?, baseline?);
    let shift = if now_ns.low > baseline_ns.high {
        TimeShift::Slower
    } else if now_ns.high < baseline_ns.low {
        TimeShift::Faster
    } else {
        TimeShift::NoneSeen
    };
    Some(TimePair { percentile, now_ns, baseline_ns, shift })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Histogram;
    use plimsoll_model::summary::LatencySummary;

    const MS: f64 = 1e6;

    /// A line of so many ops whose median and 99th percentile (90th where there is none) are known to a tenth.
    fn line(p50_ms: f64, p99_ms: Option<f64>, outcomes: &[(&str, u64)]) -> WorkloadSummary {
        let around = |ms: f64| Estimate::symmetric(ms * MS, 0.1 * ms * MS, 100.0);
        let mut h = Histogram::new();
        h.record((p50_ms * MS) as u64);
        let mut l = LatencySummary::of(&h).unwrap();
        l.intervals = PercentileIntervals {
            p50: Some(around(p50_ms)),
            p90: Some(around(2.0 * p50_ms)),
            p99: p99_ms.map(around),
            p999: None,
        };
        let mut w = WorkloadSummary {
            name: "get".into(),
            op: "get".into(),
            outcomes: outcomes.iter().map(|(o, n)| ((*o).to_owned(), *n)).collect(),
            ops_per_s: Some(Estimate::exact(10.0)),
            offered_per_s: Some(12.0),
            ..WorkloadSummary::default()
        };
        w.latency_ns.response = Some(l);
        w
    }

    fn judged(now: &WorkloadSummary, findings: &[Finding]) -> CheckVerdict {
        let baseline = line(3.0, Some(9.0), &[("ok", 10_000)]);
        check(&CheckFacts { now, findings, baseline: &baseline, max_error_rate: 0.001 })
    }

    fn invalid(code: &str) -> Finding {
        Finding::new(code, "x", Level::Invalid, "Client-bound.").on("get")
    }

    #[test]
    fn slower_is_what_lies_above_by_both_intervals() {
        let ok = [("ok", 2000)];
        assert_eq!(judged(&line(1.0, Some(3.0), &ok), &[]).verdict, CheckWord::Ok);
        // 9 ± 0.9 against 10 ± 1: they meet.
        assert_eq!(judged(&line(3.0, Some(10.0), &ok), &[]).verdict, CheckWord::Ok);
        let slow = judged(&line(1.0, Some(31.0), &ok), &[]);
        assert_eq!((slow.verdict, &slow.reason), (CheckWord::Slower, &CheckReason::Times));
        let shifts: Vec<_> = slow.times.iter().map(|t| (t.percentile, t.shift)).collect();
        assert_eq!(shifts, [("p50", TimeShift::Faster), ("p99", TimeShift::Slower)]);
        assert_eq!(judged(&line(4.0, Some(9.0), &ok), &[]).verdict, CheckWord::Slower, "the median alone");
        // Too few for a 99th percentile: the 90th stands for the tail.
        let few = judged(&line(4.0, None, &ok), &[]);
        assert_eq!((few.verdict, few.times[1].percentile), (CheckWord::Slower, "p90"));
    }

    #[test]
    fn failures_come_first_and_what_was_refused_or_removed_is_none() {
        let slow = |outcomes: &[(&str, u64)]| judged(&line(30.0, Some(90.0), outcomes), &[invalid("V01")]);
        let failing = slow(&[("ok", 689), ("timeout", 11), ("no_connection", 20)]);
        assert_eq!((failing.verdict, failing.failed, failing.attempts), (CheckWord::Failing, 31, 720));
        assert_eq!(failing.reason, CheckReason::Failures(vec![("no_connection", 20), ("timeout", 11)]));
        // Within what is allowed.
        assert_eq!(
            judged(&line(1.0, Some(3.0), &[("ok", 9999), ("timeout", 1)]), &[]).verdict,
            CheckWord::Ok
        );
        let gone = slow(&[("ok", 700), ("http_404", 20)]);
        assert_eq!((gone.verdict, gone.reason, gone.failed), (CheckWord::Unknown, CheckReason::Gone, 0));
        let refused = judged(&line(1.0, Some(3.0), &[("ok", 700), ("http_503", 20)]), &[]);
        assert_eq!((refused.verdict, refused.reason), (CheckWord::Slower, CheckReason::Refused));
        assert_eq!((refused.failed, refused.throttled), (0, 20));
        let silent = judged(&line(1.0, Some(3.0), &[("ok", 0), ("cancelled", 4)]), &[]);
        assert_eq!((silent.verdict, silent.reason), (CheckWord::Failing, CheckReason::NoAnswer));
    }

    #[test]
    fn a_void_result_says_nothing_and_a_missed_rate_is_slower() {
        let ok = [("ok", 2000)];
        let slow = line(30.0, Some(90.0), &ok);
        let void = judged(&slow, &[invalid("V07")]);
        assert!(void.verdict == CheckWord::Unknown && void.is_void(), "{void:?}");
        assert_eq!(judged(&slow, &[invalid("V04")]).verdict, CheckWord::Slower, "the rate is not asked for");
        assert_eq!(judged(&slow, &[invalid("V07").on("other")]).verdict, CheckWord::Slower);
        let fast = line(1.0, Some(3.0), &ok);
        let missed = judged(&fast, &[invalid("V05")]);
        assert_eq!((missed.verdict, missed.reason), (CheckWord::Slower, CheckReason::RateMissed(10.0, 12.0)));
        assert!(judged(&fast, &[invalid("V14")]).is_void());
    }

    #[test]
    fn what_the_data_does_not_carry_is_open() {
        let mut wide = line(1.0, Some(3.0), &[("ok", 1000)]);
        let l = wide.latency_ns.response.as_mut().unwrap();
        l.intervals.p99 = Some(Estimate { value: 3.0 * MS, low: 2.0 * MS, high: f64::INFINITY, n_eff: 10.0 });
        let open = judged(&wide, &[]);
        assert!(matches!(&open.reason, CheckReason::Open(why) if why.contains("p99")), "{open:?}");
        let mut few = line(1.0, None, &[("ok", 30)]);
        few.latency_ns.response.as_mut().unwrap().intervals.p90 = None;
        let open = judged(&few, &[]);
        assert!(matches!(&open.reason, CheckReason::Open(why) if why.contains("30 ops")), "{open:?}");
        let mut short = line(3.0, None, &[("ok", 30)]);
        short.latency_ns.response.as_mut().unwrap().intervals = PercentileIntervals::default();
        let now = line(1.0, Some(3.0), &[("ok", 1000)]);
        let facts = CheckFacts { now: &now, findings: &[], baseline: &short, max_error_rate: 0.001 };
        assert!(matches!(check(&facts).reason, CheckReason::Open(why) if why.contains("baseline's")));
    }

    fn against(now: &WorkloadSummary, findings: &[Finding], baseline: &WorkloadSummary) -> CheckVerdict {
        check(&CheckFacts { now, findings, baseline, max_error_rate: 0.001 })
    }

    #[test]
    fn a_few_late_ops_do_not_hide_a_storage_that_is_slower() {
        let (was, now) = (line(30.0, Some(60.0), &[("ok", 2000)]), line(200.0, Some(260.0), &[("ok", 2000)]));
        let late =
            |share: f64| Finding::new("V06", "late", Level::Invalid, "sent late").measured(share, 0.01);
        assert_eq!(against(&now, &[late(0.018)], &was).verdict, CheckWord::Slower);
        assert!(against(&now, &[late(0.3)], &was).is_void(), "a third of the ops may be what moved it");
        assert!(against(&was, &[late(0.018)], &was).is_void(), "that nothing is slower is not known");
    }

    #[test]
    fn a_storage_that_answers_nothing_is_slower_unless_the_client_was_away() {
        let same = line(30.0, Some(60.0), &[("ok", 2000)]);
        let outage = Finding::new("F60", "outage", Level::Invalid, "outages").measured(0.328, 0.1);
        let found = against(&same, std::slice::from_ref(&outage), &same);
        assert_eq!((found.verdict, found.reason), (CheckWord::Slower, CheckReason::StoodStill(0.328)));
        let stopped = Finding::new("V22", "client_stopped", Level::Invalid, "the client was stopped");
        assert!(against(&same, &[outage, stopped], &same).is_void());
    }
}
