//! Interfaces that tell another speed than before while a run goes on: negotiated down, a bond that lost a port, or changed by somebody. A band beside
//! the rates, and a finding.

use std::collections::BTreeMap;

use plimsoll_model::observed::{FASTEST_LINE, ServerQuantity as Q, is_nic};
use plimsoll_model::summary::servers::{BackgroundSpan, ceiling_words};
use plimsoll_model::units::significant;
use plimsoll_model::{Finding, Level};
use plimsoll_store::{ObservedSource, server_steps};

use crate::holds::is_of_width;

/// A line at another speed than the first that was told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedLine<'a> {
    host: &'a str,
    nic: &'a str,
    first: f64,
    then: f64,
    /// Of the last reading with the speed before: it changed between both.
    before_ns: u64,
    from_ns: u64,
    /// Of the last reading with that speed.
    last_ns: u64,
    /// Of the first reading with another speed again, or of the last of all.
    to_ns: u64,
}

/// Lines that are told in findings; and bands of all of them.
const MOST_TOLD: usize = 4;
const MOST_BANDS: usize = 20;

/// How far from a change a fall of the rate may be for it to be of it: what is queued goes on for a while. (A choice.)
const SLACK_S: f64 = 3.0;

fn in_words(bytes_per_s: f64) -> String {
    ceiling_words("network in", "B/s", bytes_per_s).unwrap_or_default()
}

impl ChangedLine<'_> {
    pub fn name(&self) -> String {
        format!("{} of {}", self.nic, self.host)
    }

    /// Whether it changed then, as far as readings tell.
    pub fn is_at(&self, at_s: f64) -> bool {
        let s = |ns: u64| ns as f64 / 1e9;
        (s(self.before_ns) - SLACK_S..=s(self.from_ns) + SLACK_S).contains(&at_s)
    }
}

/// In bands as those of work in the background.
pub fn spans(changes: &[ChangedLine<'_>], windows: &[(u64, u64)]) -> Vec<BackgroundSpan> {
    let span = |c: &ChangedLine<'_>| BackgroundSpan {
        what: format!("{} at {}, {} before", c.name(), in_words(c.then), in_words(c.first)),
        start_s: c.from_ns as f64 / 1e9,
        end_s: c.to_ns as f64 / 1e9,
        in_window: is_inside(c, windows),
    };
    changes.iter().take(MOST_BANDS).map(span).collect()
}

fn is_inside(c: &ChangedLine<'_>, windows: &[(u64, u64)]) -> bool {
    windows.iter().any(|(from_ns, to_ns)| c.before_ns <= *to_ns && c.to_ns >= *from_ns)
}

/// Rates on both sides of a change that are no further apart make no interval wide.
const APART: f64 = 1.2;
const RATES_APART: &str = "rates apart";
/// Name of the finding of a line whose speed changed.
const LINE_CHANGED: &str = "line_changed";

/// Of those that changed in a measured window. `ended`: ops that succeeded between two times.
pub fn findings(
    changes: &[ChangedLine<'_>],
    sources: &[ObservedSource],
    windows: &[(u64, u64)],
    ended: impl Fn(u64, u64) -> f64,
) -> Vec<Finding> {
    let times = |c: &ChangedLine<'_>| {
        changes.iter().filter(|o| (o.host, o.nic) == (c.host, c.nic) && is_inside(o, windows)).count()
    };
    let finding = |c: &ChangedLine<'_>| {
        let rates = before_and_then(c, windows, &ended);
        let text = format!(
            "{} told a speed of {} until {:.1} s, and of {} from {:.1} s {}: it was changed meanwhile{}, and of the whole time it has no ceiling.{}{}",
            c.name(),
            in_words(c.first),
            c.before_ns as f64 / 1e9,
            in_words(c.then),
            c.from_ns as f64 / 1e9,
            if c.to_ns > c.last_ns { format!("to {:.1} s", c.last_ns as f64 / 1e9) } else { "on".to_owned() },
            match times(c) {
                0 | 1 => String::new(),
                n => format!(" ({n} times in all)"),
            },
            used(sources, c),
            rates.as_ref().map_or("", |(text, _)| text)
        );
        let mut f = Finding::new("F77", LINE_CHANGED, Level::Qualified, text);
        (f.measured, f.threshold) = (Some(c.then), Some(c.first));
        // Then a mean over both is of neither.
        let is_reason = times(c) == 1 && rates.is_some_and(|(_, apart)| apart);
        f.evidence.extend(is_reason.then(|| (RATES_APART.to_owned(), "yes".to_owned())));
        f
    };
    let mut inside: Vec<&ChangedLine<'_>> = changes.iter().filter(|c| is_inside(c, windows)).collect();
    // Of each line the first change: the others are bands beside the rates.
    inside.dedup_by(|b, a| (a.host, a.nic) == (b.host, b.nic));
    let more = inside.len().saturating_sub(MOST_TOLD);
    let mut out: Vec<Finding> = inside.into_iter().take(MOST_TOLD).map(finding).collect();
    if let Some(last) = out.last_mut().filter(|_| more > 0) {
        last.text += &format!(" So did {more} more.");
    }
    out
}

/// Rates on both sides of a change: a mean over both is of neither.
fn before_and_then(
    c: &ChangedLine<'_>,
    windows: &[(u64, u64)],
    ended: impl Fn(u64, u64) -> f64,
) -> Option<(String, bool)> {
    let (from_ns, to_ns) = windows.iter().find(|(from, to)| c.before_ns > *from && c.from_ns < *to)?;
    let of = |from_ns: u64, to_ns: u64| {
        let (ops, s) = (ended(from_ns, to_ns), to_ns.saturating_sub(from_ns) as f64 / 1e9);
        let text = format!("{ops:.0} ops succeeded in {s:.1} s ({}/s)", significant(ops / s, 3));
        (s > 0.0).then_some((text, ops / s))
    };
    let ((before, was), (then, is)) = of(*from_ns, c.before_ns).zip(of(c.from_ns, c.last_ns.min(*to_ns)))?;
    let apart = was.max(is) > APART * was.min(is);
    (was > 0.0).then(|| (format!(" Before it {before}, then {then}."), apart))
}

/// A wide interval of a rate over two speeds has its reason, where there is one window that both are in.
pub fn explain(findings: &mut [Finding]) {
    let is_reason =
        |f: &Finding| f.name == LINE_CHANGED && f.evidence.iter().any(|(of, _)| of == RATES_APART);
    if !findings.iter().any(is_reason) {
        return;
    }
    for f in findings.iter_mut().filter(|f| is_of_width(f) && !f.text.contains("because")) {
        let width = match f.measured {
            Some(w) if w < 1.0 => format!("±{:.1} % (at most 10 % is acceptable)", 100.0 * w),
            _ => "as wide as the rate itself".to_owned(),
        };
        f.text = format!(
            "The confidence interval is {width} because the speed of a line changed meanwhile: F77 has the rates before it and after. \
             A longer run would not fix that."
        );
    }
}

/// What went over it at its other speed, as parts of that: whether it was full then.
fn used(sources: &[ObservedSource], c: &ChangedLine<'_>) -> String {
    let steps = server_steps(sources, c.from_ns.saturating_sub(1), c.last_ns);
    let of_host = || steps.iter().filter(|s| s.host == c.host && s.daemon.is_empty()).flat_map(|s| &s.steps);
    let seconds: f64 = of_host().map(|s| s.seconds()).sum();
    let share = |q: Q| {
        let bytes: Option<f64> = of_host().map(|s| s.delta(q, c.nic)).sum();
        bytes.filter(|_| seconds > 0.0).map(|b| 100.0 * b / seconds / c.then)
    };
    match (share(Q::NicRxBytes), share(Q::NicTxBytes)) {
        (Some(rx), Some(tx)) => {
            format!(" At {} it was used to {rx:.0} % in and {tx:.0} % out.", in_words(c.then))
        }
        _ => String::new(),
    }
}

/// All changes, by line and time.
pub fn changes(sources: &[ObservedSource]) -> Vec<ChangedLine<'_>> {
    let mut out = sources.iter().flat_map(of_source).collect::<Vec<_>>();
    out.sort_by(|a, b| (a.host, a.nic, a.from_ns).cmp(&(b.host, b.nic, b.from_ns)));
    // Of what two sources tell the first is kept.
    out.dedup_by(|b, a| (a.host, a.nic) == (b.host, b.nic) && a.then == b.then && b.from_ns <= a.to_ns);
    out
}

fn of_source(source: &ObservedSource) -> Vec<ChangedLine<'_>> {
    // Speed of the first reading, of the last one with its time, and what is open.
    let mut lines: BTreeMap<(&str, &str), (f64, f64, u64)> = BTreeMap::new();
    let mut open: BTreeMap<(&str, &str), ChangedLine<'_>> = BTreeMap::new();
    let mut out = Vec::new();
    for scrape in source.scrapes.iter().filter(|s| s.gap.is_none()) {
        let at_ns = scrape.at_ns;
        for subject in scrape.subjects.iter().filter(|s| s.daemon.is_empty()) {
            // What tells no speed (-1, or 0 while it is down) has not told another one.
            let speeds = subject.readings.iter().filter(|r| {
                r.quantity == Q::NicSpeedBytesPerS
                    && r.value > 0.0
                    && r.value < FASTEST_LINE
                    && is_nic(&r.label)
            });
            for r in speeds {
                let key = (subject.host.as_str(), r.label.as_str());
                let (first, last, last_ns) = *lines.entry(key).or_insert((r.value, r.value, at_ns));
                lines.insert(key, (first, r.value, at_ns));
                if let Some(c) = open.get_mut(&key) {
                    c.to_ns = at_ns;
                    c.last_ns = if r.value == c.then { at_ns } else { c.last_ns };
                }
                if r.value == last {
                    continue;
                }
                out.extend(open.remove(&key));
                if r.value != first {
                    let (host, nic) = key;
                    let new = ChangedLine {
                        host,
                        nic,
                        first,
                        then: r.value,
                        before_ns: last_ns,
                        from_ns: at_ns,
                        last_ns: at_ns,
                        to_ns: at_ns,
                    };
                    open.insert(key, new);
                }
            }
        }
    }
    out.extend(open.into_values());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Scrape;
    use plimsoll_model::observed::{ReadSubject, ServerReading};

    const S: u64 = 1_000_000_000;

    /// Seconds, and megabits that it told; `None`: no answer.
    fn source(points: &[(u64, Option<f64>)]) -> ObservedSource {
        let scrape = |(at_s, mbit): &(u64, Option<f64>)| {
            let speed = |mbit: f64| ServerReading {
                quantity: Q::NicSpeedBytesPerS,
                label: "eth0".into(),
                value: mbit * 125_000.0,
            };
            let subject =
                |m: f64| ReadSubject { host: "s3".into(), daemon: String::new(), readings: vec![speed(m)] };
            Scrape {
                at_ns: at_s * S,
                subjects: mbit.iter().map(|m| subject(*m)).collect(),
                gap: mbit.is_none().then(|| "no answer".into()),
                ..Scrape::default()
            }
        };
        ObservedSource { observes: "node s3".into(), every: 1, scrapes: points.iter().map(scrape).collect() }
    }

    fn told(points: &[(u64, Option<f64>)]) -> Vec<(String, f64, f64)> {
        spans(&changes(&[source(points)]), &[]).into_iter().map(|s| (s.what, s.start_s, s.end_s)).collect()
    }

    #[test]
    fn a_line_that_is_made_slower_is_told_from_then_until_it_is_as_it_was() {
        let all = [
            (0, Some(200.0)),
            (5, Some(200.0)),
            (10, None),
            (15, Some(20.0)),
            (20, Some(20.0)),
            (25, Some(200.0)),
            (30, Some(200.0)),
        ];
        assert_eq!(told(&all), [("eth0 of s3 at 20Mbit/s, 200Mbit/s before".to_owned(), 15.0, 25.0)]);
        let both = [source(&all), source(&all)];
        assert_eq!(spans(&changes(&both), &[]).len(), 1, "two sources of one line");
        let slower = [source(&all)];
        let at = |s: f64| changes(&slower).iter().any(|c| c.is_at(s));
        assert!(at(5.0) && at(16.0) && !at(1.0) && !at(24.0));
        assert_eq!(told(&all[..5]).len(), 1, "to the end");
        // Down is no speed, and the same is no other.
        assert_eq!(told(&[(0, Some(200.0)), (5, Some(-1.0)), (10, Some(0.0)), (15, Some(200.0))]), []);
    }
}
