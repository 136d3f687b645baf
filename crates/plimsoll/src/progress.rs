//! What is shown while a run goes on: a block of lines on a terminal, a line each 10 s elsewhere. Always stderr.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_model::count::counted;
use plimsoll_model::event::{Counted, Event, Figures, Live};
use plimsoll_model::text::clean;
use plimsoll_model::units::{format_latency_ns, significant};

use crate::{fleet_use, output};

/// Rates kept for the sparkline: four a second, so the last fifteen.
const HISTORY: usize = 60;
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Cleaning up comes when a result is waited for: it is heard of more often.
const CLEANING_EVERY: Duration = Duration::from_secs(3);

/// Shows events. One per run; the callback of the run calls [`Progress::show`] from its own thread.
#[derive(Debug)]
pub struct Progress {
    inner: Mutex<Inner>,
    /// The run's directory, once it is there.
    directory: Arc<OnceLock<PathBuf>>,
}

#[derive(Debug)]
enum Inner {
    Quiet,
    Terminal { bar: ProgressBar, history: VecDeque<f64> },
    Lines { last: Option<Instant>, every: Duration },
}

impl Progress {
    pub fn new(quiet: bool) -> Self {
        let inner = if quiet {
            Inner::Quiet
        } else if std::io::stderr().is_terminal() && !fleet_use::detaches() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            bar.set_style(ProgressStyle::with_template("{msg}").expect("a constant template"));
            Inner::Terminal { bar, history: VecDeque::new() }
        } else {
            Inner::Lines { last: None, every: LINE_EVERY }
        };
        Self { inner: Mutex::new(inner), directory: Arc::default() }
    }

    /// The run's directory, for whoever reads it while it grows.
    pub fn directory(&self) -> Arc<OnceLock<PathBuf>> {
        Arc::clone(&self.directory)
    }

    /// A line at this distance, on a terminal too (fio's --status-interval).
    pub fn lines_every(every: Duration) -> Self {
        Self { inner: Mutex::new(Inner::Lines { last: None, every }), directory: Arc::default() }
    }

    pub fn show(&self, event: &Event) {
        if let Event::Started { path, .. } = event {
            let _ = self.directory.set(path.clone());
        }
        let Ok(mut inner) = self.inner.lock() else { return };
        match &mut *inner {
            Inner::Quiet => {
                if is_for_all(event) {
                    output::tell(format_args!("{}", line(event)));
                }
            }
            Inner::Terminal { bar, history } => show_on_terminal(bar, history, event),
            Inner::Lines { last, every } => show_line(last, *every, event),
        }
    }

    /// Leaves the terminal as it was, ready for the result.
    pub fn finish(&self) {
        if let Ok(inner) = self.inner.lock()
            && let Inner::Terminal { bar, .. } = &*inner
        {
            bar.finish_and_clear();
        }
    }
}

/// Warnings are no progress: they are shown to those who follow nothing, too.
fn is_for_all(event: &Event) -> bool {
    matches!(event, Event::Message(_))
}

fn show_on_terminal(bar: &ProgressBar, history: &mut VecDeque<f64>, event: &Event) {
    match event {
        Event::Live(live) => {
            if history.len() == HISTORY {
                history.pop_front();
            }
            history.push_back(live.figures.ops_per_s);
            bar.set_message(block(live, history.make_contiguous()));
            bar.tick();
        }
        Event::StageDone { .. } => {
            history.clear();
            bar.println(line(event));
        }
        Event::Started { .. } | Event::Message(_) | Event::Doing(_) => bar.println(line(event)),
        Event::Preparing { .. } | Event::Cleaning { .. } => {
            bar.set_message(line(event));
            bar.tick();
        }
    }
}

fn show_line(last: &mut Option<Instant>, every: Duration, event: &Event) {
    let every = if matches!(event, Event::Cleaning { .. }) { every.min(CLEANING_EVERY) } else { every };
    if matches!(event, Event::Cleaning { done: 0, .. }) {
        *last = Some(Instant::now());
    } else if matches!(event, Event::Live(_) | Event::Preparing { .. } | Event::Cleaning { .. }) {
        let now = Instant::now();
        // The first comes after one period: a short run needs none.
        let due = *last.get_or_insert(now) + every;
        if now < due {
            return;
        }
        *last = Some(now);
    }
    output::tell(format_args!("{}", line(event)));
}

/// One event as one line.
pub fn line(event: &Event) -> String {
    match event {
        Event::Started { id, path } => format!("plimsoll: run {id} in {}", path.display()),
        Event::Message(m) | Event::Doing(m) => format!("plimsoll: {m}"),
        Event::Preparing { what, unit, done, total, elapsed, refused } => {
            let share = *done as f64 / (*total).max(1) as f64;
            let refused = match refused {
                0 => String::new(),
                n => format!(", {n} attempts refused (429 or 503)"),
            };
            format!(
                "preparing {what}: {} of {} {} ({:.0} %){refused}, {}{}",
                amount(*done, *unit),
                amount(*total, *unit),
                if *unit == Counted::Bytes { "MiB" } else { unit.name() },
                share * 100.0,
                clock(*elapsed),
                left(*elapsed, share),
            )
        }
        Event::Live(l) => {
            let f = &l.figures;
            let mut text = format!(
                "{} {}, {}: {}, {}, p50 {}, p99 {}, client busy {:.0} %",
                clean(&l.title),
                l.phase.name(),
                times(l),
                ops(f.ops_per_s),
                bytes(f.bytes_per_s),
                latency(f.p50_ns),
                latency(f.p99_ns),
                f.busy_fraction * 100.0
            );
            if f.throttled > 0 {
                let _ = write!(text, "; {}", throttled(f));
            }
            if !f.errors.is_empty() {
                let _ = write!(text, "; failed: {}", errors(f));
            }
            if l.late > 0 {
                let _ = write!(text, "; {} of {} workers late, not in these figures", l.late, l.workers);
            }
            if l.lost > 0 {
                let _ = write!(text, "; {}", lost(l));
            }
            text
        }
        Event::StageDone { stage, of, title, ok, throttled, failed, seconds } => {
            let place = of.map_or_else(|| format!("{}", stage + 1), |of| format!("{}/{of}", stage + 1));
            let rate = if *seconds > 0.0 { *ok as f64 / seconds } else { 0.0 };
            let mut text =
                format!("stage {place} done: {}, {} in {seconds:.1} s, {ok} ok", clean(title), ops(rate));
            if *throttled > 0 {
                let _ = write!(text, ", {throttled} throttled");
            }
            if *failed > 0 {
                let _ = write!(text, ", {failed} failed");
            }
            text
        }
        Event::Cleaning { done: 0, total: None } => "cleaning up".into(),
        Event::Cleaning { done, total } => match total {
            Some(t) => format!("cleaning up: {done} of {t} removed"),
            None => format!("cleaning up: {done} removed"),
        },
    }
}

/// A number of things, exact as long as it is short; bytes as MiB.
fn amount(n: u64, unit: Counted) -> String {
    match (unit, n) {
        (Counted::Bytes, _) => significant(n as f64 / f64::from(1 << 20), 3),
        (_, 0..1000) => n.to_string(),
        _ => significant(n as f64, 3),
    }
}

/// The others go on, with the part of the load that is theirs.
fn lost(l: &Live) -> String {
    format!("{} of {} lost", l.lost, counted(l.agents, "agent"))
}

/// The state of a stage, as lines for a terminal.
fn block(l: &Live, history: &[f64]) -> String {
    let stage = l.stages.filter(|n| *n > 1).map(|n| format!("[{}/{n}] ", l.stage + 1)).unwrap_or_default();
    let f = &l.figures;
    let errors = if f.errors.is_empty() { "none".into() } else { errors(f) };
    let throttled = if f.throttled > 0 { format!("  limiter  {}\n", throttled(f)) } else { String::new() };
    let lost = if l.lost > 0 { format!("\n  fleet    {}", lost(l)) } else { String::new() };
    format!(
        "{stage}{}  {}  {}\n  {}  {:>14}  {:>14}\n  latency  p50 {}  p99 {}  p99.9 {}  max {}\n{throttled}  errors   {errors}\n  client   {:.0} % busy, {:.1} in flight{lost}",
        clean(&l.title),
        l.phase.name(),
        times(l),
        sparkline(history),
        ops(f.ops_per_s),
        bytes(f.bytes_per_s),
        latency(f.p50_ns),
        latency(f.p99_ns),
        latency(f.p999_ns),
        latency(f.max_ns),
        f.busy_fraction * 100.0,
        f.in_flight,
    )
}

fn times(l: &Live) -> String {
    match l.remaining {
        Some(r) => format!("{} elapsed, {} left", clock(l.elapsed), clock(r)),
        None => format!("{} elapsed", clock(l.elapsed)),
    }
}

/// Refusals are what a limiter does, and no errors.
fn throttled(f: &Figures) -> String {
    format!("throttled {} ({}/s)", f.throttled, significant(f.throttled_per_s, 3))
}

fn errors(f: &Figures) -> String {
    f.errors.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

fn ops(per_s: f64) -> String {
    format!("{} op/s", significant(per_s, 3))
}

fn bytes(per_s: f64) -> String {
    format!("{} MiB/s", significant(per_s / f64::from(1 << 20), 3))
}

/// As long as no op has ended there is none.
fn latency(ns: u64) -> String {
    if ns == 0 { "n/a".to_owned() } else { format_latency_ns(ns as f64) }
}

/// `1:05` or `2:03:04`.
fn clock(d: Duration) -> String {
    let s = d.as_secs();
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

fn left(elapsed: Duration, share: f64) -> String {
    if share <= 0.0 || share >= 1.0 {
        return String::new();
    }
    let rest = elapsed.as_secs_f64() * (1.0 - share) / share;
    // Nobody waits a century for an estimate.
    format!(", {} left", clock(Duration::from_secs_f64(rest.min(3.2e9))))
}

/// Rates as bars from zero to the highest of them.
pub fn sparkline(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = values.iter().copied().fold(0.0f64, f64::max);
    values
        .iter()
        .map(|v| if top <= 0.0 { BARS[0] } else { BARS[((v / top * 7.0).round().max(0.0) as usize).min(7)] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn live() -> Live {
        Live {
            phase: plimsoll_model::event::Phase::Measuring,
            stage: 1,
            stages: Some(4),
            title: "get 4KiB".into(),
            elapsed: Duration::from_secs(65),
            remaining: Some(Duration::from_secs(25)),
            figures: Figures {
                ops_per_s: 12345.6,
                bytes_per_s: 50_567_577.6,
                p50_ns: 1_234_567,
                p99_ns: 9_876_543,
                p999_ns: 20_000_000,
                max_ns: 1_500_000_000,
                ok: 800_000,
                throttled: 12,
                failed: 1,
                errors: BTreeMap::from([("timeout".into(), 1)]),
                throttled_per_s: 4.0,
                busy_fraction: 0.31,
                in_flight: 15.9,
            },
            late: 0,
            workers: 16,
            lost: 0,
            agents: 1,
        }
    }

    #[test]
    fn a_name_of_a_plan_begins_no_line_of_its_own() {
        let title = "a\nplimsoll: done\u{202e}";
        let done = Event::StageDone {
            stage: 0,
            of: Some(1),
            title: title.into(),
            ok: 1,
            throttled: 0,
            failed: 0,
            seconds: 1.0,
        };
        let of_live = line(&Event::Live(Box::new(Live { title: title.into(), ..live() })));
        for text in [line(&done), of_live] {
            assert!(!text.contains('\n') && !text.contains('\u{202e}'), "{text}");
        }
    }

    #[test]
    fn quiet_leaves_warnings_and_nothing_else() {
        assert!(is_for_all(&Event::Message("left behind: x".into())));
        assert!(!is_for_all(&Event::Doing("idle for 20 s".into())));
        assert!(!is_for_all(&Event::Live(Box::new(live()))));
        assert_eq!(line(&Event::Doing("idle for 20 s".into())), "plimsoll: idle for 20 s");
    }

    #[test]
    fn what_a_terminal_and_a_log_show() {
        let l = live();
        let log = line(&Event::Live(Box::new(l.clone())));
        let preparing = line(&Event::Preparing {
            what: "objects".into(),
            unit: Counted::Objects,
            done: 250,
            total: 1000,
            elapsed: Duration::from_secs(10),
            refused: 0,
        });
        let of_limiter = line(&Event::Preparing {
            what: "objects".into(),
            unit: Counted::Objects,
            done: 250,
            total: 1000,
            elapsed: Duration::from_secs(10),
            refused: 3400,
        });
        assert!(of_limiter.contains("(25 %), 3400 attempts refused (429 or 503), "), "{of_limiter}");
        insta::assert_snapshot!(format!("{}\n\n{log}\n{preparing}", block(&l, &[0.0, 5.0, 10.0, 7.5])));
    }

    #[test]
    fn a_lost_agent_stays_in_sight() {
        let l = Live { lost: 1, agents: 4, ..live() };
        assert!(line(&Event::Live(Box::new(l.clone()))).ends_with("; 1 of 4 agents lost"));
        assert!(block(&l, &[]).ends_with("\n  fleet    1 of 4 agents lost"));
    }

    #[test]
    fn a_sparkline_runs_from_zero_to_the_top_and_never_fails() {
        assert_eq!(sparkline(&[0.0, 10.0, 5.0]), "▁█▅");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[f64::NAN, 1.0]).chars().count(), 2);
    }
}
