//! What a check says: one line for a person, and the same with its figures as JSON.

use plimsoll_model::Estimate;
use plimsoll_model::plan::{Plan, TargetSpec};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::text::clean;
use plimsoll_model::units::significant;
use plimsoll_report::number;
use plimsoll_run::Finished;
use plimsoll_stats::check::{CheckReason, CheckVerdict, CheckWord, TimePair, TimeShift};
use plimsoll_stats::words::plus_minus;
use serde_json::json;

use super::check::CheckCommand;
use super::check_baseline::Baseline;
use crate::fault::Exit;

/// Of the JSON; within it names are added, none changes.
const SCHEMA: &str = "plimsoll.check/1";

/// All that is told of a check.
pub struct CheckReport<'a> {
    baseline: &'a Baseline,
    place: &'a str,
    for_s: f64,
    /// Ops per second that were offered; absent: the storage did not answer at all.
    rate: Option<f64>,
    judged: CheckVerdict,
    now: Option<WorkloadSummary>,
    /// Of objects of other sizes than the baseline's.
    sizes: Option<String>,
    run: Option<(String, String)>,
}

impl<'a> CheckReport<'a> {
    pub fn new(
        c: &CheckCommand,
        baseline: &'a Baseline,
        place: &'a str,
        rate: Option<f64>,
        judged: CheckVerdict,
    ) -> Self {
        let for_s = c.time.0.as_secs_f64();
        Self { baseline, place, for_s, rate, judged, now: None, sizes: None, run: None }
    }

    pub fn measured(mut self, now: &WorkloadSummary, sizes: Option<String>) -> Self {
        self.now = Some(now.clone());
        self.sizes = sizes;
        self
    }

    pub fn of_run(mut self, finished: &Finished) -> Self {
        let summary = finished.path.join("summary.json");
        self.run = Some((finished.id.clone(), summary.to_string_lossy().into_owned()));
        self
    }

    /// One line, without its end.
    pub fn line(&self) -> String {
        let word = match self.judged.verdict {
            CheckWord::Ok => "OK",
            CheckWord::Slower => "SLOWER",
            CheckWord::Failing => "FAILING",
            CheckWord::Unknown => "UNKNOWN",
        };
        let sizes =
            self.sizes.as_ref().map(|s| format!(" (of {s}: none is of that size)")).unwrap_or_default();
        let text = format!("{word:<8} {}{sizes} of {}: {}", self.baseline.what(), self.place, self.reason());
        clean(&text.replace('\n', " ")).into_owned()
    }

    fn reason(&self) -> String {
        let (j, id) = (&self.judged, &self.baseline.id);
        match &j.reason {
            CheckReason::Open(why) if self.now.is_none() => why.clone(),
            CheckReason::Void(why) => format!("the measurement is void: {why}"),
            CheckReason::Open(why) => format!("{why}; {}", self.compared(&j.times)),
            CheckReason::NoAnswer => format!("no op was answered in {}", number::seconds(self.for_s)),
            CheckReason::Failures(by_outcome) => {
                let named: Vec<String> = by_outcome.iter().map(|(o, n)| said(o, *n, j.failed)).collect();
                format!(
                    "{} of {} failed ({})",
                    number::count(j.failed),
                    number::count(j.attempts),
                    named.join(", ")
                )
            }
            CheckReason::Refused => format!(
                "{} of {} were refused (429 or 503) {}; in baseline {id} {} of {}",
                number::count(j.throttled),
                number::count(j.attempts),
                self.load(),
                number::count(self.baseline.line.count(plimsoll_model::Outcome::is_throttled)),
                number::count(self.baseline.line.count(|o| o != plimsoll_model::Outcome::Cancelled)),
            ),
            CheckReason::RateMissed(done, offered) => format!(
                "only {} of {} op/s were done, {} of what baseline {id} did",
                significant(*done, 3),
                significant(*offered, 3),
                number::percent(self.baseline.max_load)
            ),
            CheckReason::StoodStill(share) => {
                format!("it answered nothing for {} of the time {}", number::percent(*share), self.load())
            }
            CheckReason::Gone => format!(
                "{} of {} objects were gone when they were read: name a prefix whose objects stay (--prefix)",
                number::count(j.gone),
                number::count(j.attempts)
            ),
            CheckReason::Times if j.verdict == CheckWord::Slower => {
                let slower: Vec<TimePair> =
                    j.times.iter().copied().filter(|t| t.shift == TimeShift::Slower).collect();
                self.compared(&slower)
            }
            CheckReason::Times => self.compared(&j.times),
        }
    }

    fn compared(&self, times: &[TimePair]) -> String {
        let list = |of: fn(&TimePair) -> Estimate| {
            let one = |t: &TimePair| format!("{} {}", t.percentile, time(&of(t)));
            times.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let failed = format!(
            "{} of {} failed",
            number::count(self.judged.failed),
            number::count(self.judged.attempts)
        );
        if times.is_empty() {
            return format!("{failed} {}", self.load());
        }
        let under = match self.rate.is_some_and(|r| self.baseline.is_same_load(r)) {
            true => "at the same load".to_owned(),
            false => format!("under its own load of {} op/s", round(self.own_rate())),
        };
        format!(
            "{} {}; baseline {} had {} {under}; {failed}",
            list(|t| t.now_ns),
            self.load(),
            self.baseline.id,
            list(|t| t.baseline_ns)
        )
    }

    fn own_rate(&self) -> f64 {
        self.baseline.line.ops_per_s.map_or(0.0, |e| e.value)
    }

    /// `at 12 op/s (5 % of the baseline's 240)`.
    fn load(&self) -> String {
        let Some(rate) = self.rate else { return String::new() };
        let full = self.baseline.full_ops_per_s;
        format!("at {} op/s ({} of {})", significant(rate, 3), number::percent(rate / full), round(full))
    }

    /// Of this form: SCHEMA. Absent figures are null.
    pub fn json(&self, exit: Exit) -> String {
        let b = self.baseline;
        let value = json!({
            "schema": SCHEMA,
            "verdict": self.judged.verdict,
            "exit_code": exit as u8,
            "text": self.line(),
            "reason": self.judged.reason,
            "op": b.kind,
            "size_bytes": self.now.as_ref().map_or(b.line.size_bytes, |w| w.size_bytes),
            "place": clean(self.place),
            "offered_per_s": self.rate,
            "ops_per_s": self.now.as_ref().and_then(|w| w.ops_per_s),
            "duration_s": self.for_s,
            "max_load": b.max_load,
            "same_load": self.rate.is_some_and(|r| b.is_same_load(r)),
            "times": self.judged.times,
            "attempts": self.judged.attempts,
            "failed": self.judged.failed,
            "throttled": self.judged.throttled,
            "gone": self.judged.gone,
            "outcomes": self.now.as_ref().map(|w| &w.outcomes),
            "baseline": {
                "run": b.id,
                "ops_per_s": b.line.ops_per_s,
                "bytes_per_s": b.line.bytes_per_s,
                "full_ops_per_s": b.full_ops_per_s,
                "size_bytes": b.line.size_bytes,
                "concurrency": b.line.concurrency,
            },
            "run": self.run.as_ref().map(|r| &r.0),
            "summary": self.run.as_ref().map(|r| &r.1),
        });
        serde_json::to_string_pretty(&value).expect("a report is plain data") + "\n"
    }
}

/// `31 timeout`, or the name alone where all are of it.
fn said(outcome: &str, n: u64, failed: u64) -> String {
    let words = outcome.replace("http_", "HTTP ").replace('_', " ");
    if n == failed { words } else { format!("{} {words}", number::count(n)) }
}

/// Whole from a hundred on.
fn round(x: f64) -> String {
    if x >= 100.0 { number::count(x.round() as u64) } else { significant(x, 3) }
}

/// `31 ms ± 4`, or `1.10 ms (1.00 to 1.50)` where the sides differ.
fn time(e: &Estimate) -> String {
    let (unit, ns) = match e.value {
        v if v < 1e5 => ("µs", 1e3),
        v if v < 1e10 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let e = e.scaled(1.0 / ns);
    if !e.half_width().is_finite() {
        return format!("{} {unit} (at least {})", significant(e.value, 3), significant(e.low.max(0.0), 3));
    }
    let text = plus_minus(&e);
    match text.split_once(' ') {
        Some((value, rest)) => format!("{value} {unit} {rest}"),
        None => format!("{text} {unit}"),
    }
}

/// A length of time as an option takes it, rounded up: `84s`, `20m`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s <= 600.0 => format!("{:.0}s", s.ceil()),
        s if s <= 36_000.0 => format!("{:.0}m", (s / 60.0).ceil()),
        s => format!("{:.0}h", (s / 3600.0).ceil()),
    }
}

/// Where the storage is, for a person: `http://h:9000/bucket/prefix`, or paths.
pub fn place_of(plan: &Plan) -> String {
    let w = &plan.stages[0].workloads[0];
    let text = match plan.target_of(w).map(|(_, t)| t) {
        Ok(TargetSpec::S3(s3)) => {
            let first = s3.endpoints.first().map(|e| plimsoll_model::plan::shown_url(e)).unwrap_or_default();
            let more = match s3.endpoints.len() {
                0 | 1 => String::new(),
                n => format!(" (and {} more endpoints)", n - 1),
            };
            let prefix = w.existing().map(|e| e.prefix.as_str()).unwrap_or_default();
            format!("{}/{}/{prefix}{more}", first.trim_end_matches('/'), s3.bucket)
        }
        Ok(TargetSpec::Block(b)) => {
            let more = if b.also.is_empty() { String::new() } else { format!(" and {} more", b.also.len()) };
            format!("{}{more}", b.path)
        }
        _ => String::new(),
    };
    clean(text.trim_end_matches('/')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_what_is_not_known_of_them() {
        let e = |value: f64, low: f64, high: f64| Estimate { value, low, high, n_eff: 9.0 };
        assert_eq!(time(&e(31e6, 27e6, 35e6)), "31 ms ± 4");
        assert_eq!(time(&e(1.1e6, 1.0e6, 1.5e6)), "1.10 ms (1.00 to 1.50)");
        assert_eq!(time(&e(80e3, 79e3, 81e3)), "80.0 µs ± 1.0");
        assert_eq!(time(&e(3.25e6, 2.13e6, f64::INFINITY)), "3.25 ms (at least 2.13)");
        assert_eq!(time(&e(12e9, 11e9, 13e9)), "12.0 s ± 1.0");
    }

    #[test]
    fn a_time_that_would_do_is_rounded_up() {
        assert_eq!(
            (duration(83.1), duration(0.2), duration(601.0)),
            ("84s".into(), "1s".into(), "11m".into())
        );
        assert_eq!(duration(86_400.0), "24h");
    }

    #[test]
    fn outcomes_are_named_as_people_do() {
        assert_eq!(said("http_403", 3, 3), "HTTP 403");
        assert_eq!(said("no_connection", 3, 5), "3 no connection");
    }
}
