//! Outages of each stage's storage, and of single endpoints of it, from the series of the whole load.

use plimsoll_model::claim::{Outage, OutageKind};
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level, OpKind, Outcome, SeriesCounts, SeriesId};
use plimsoll_stats::client_time::{self, HandedOver};
use plimsoll_stats::outage::{self, Seen};
use plimsoll_stats::{math, words};
use plimsoll_store::{RunData, StageData};

use super::agents;
use super::client_stops::{MOST_OF_THE_LOAD, all_stopped, handed_over, most_in_flight};
use super::line::Line;
use super::throttled::StageThrottled;

/// All of a run, and when it was throttled to nothing, stage by stage.
pub fn of_run(data: &RunData) -> (Vec<Outage>, Vec<StageThrottled>) {
    let (mut outages, mut throttled) = (Vec::new(), Vec::new());
    for stage in data.stages.iter().filter(|s| s.void.is_none()) {
        let of_stage = of_stage(data, stage);
        outages.extend(of_stage.0);
        throttled.extend(of_stage.1);
    }
    (outages, throttled)
}

fn of_stage(data: &RunData, stage: &StageData) -> (Vec<Outage>, Vec<StageThrottled>) {
    let (from_ns, to_ns) = (stage.start_ns, stage.stop_ns.unwrap_or(stage.last_ns));
    let load = Load::of(data, stage, from_ns, to_ns);
    let (all, at) = (Ended::of(&load.points), at(data, stage));
    let mut out = load.outages(&all, &at);
    let mut throttled: Vec<StageThrottled> = load.throttled(&all, &at).into_iter().collect();
    let whole_is_throttled = !throttled.is_empty();
    for (name, ended) in load.endpoints(stage, data) {
        let beside = |o: &Outage| out.iter().all(|all| !overlaps(all, o));
        // What this endpoint did before and after is not what the load came to, and would be read as that.
        let of_one = |mut o: Outage| {
            (o.with_per_s, o.without_per_s) = (None, None);
            o
        };
        let own: Vec<Outage> =
            load.outages(&ended, &name).into_iter().filter(|o| beside(o)).map(of_one).collect();
        out.extend(own);
        // Of one limiter before them all, each endpoint would tell the same once more.
        throttled.extend(load.throttled(&ended, &name).filter(|_| !whole_is_throttled));
    }
    out.sort_by(|a, b| a.span.from_s.total_cmp(&b.span.from_s));
    (out, throttled)
}

/// What the stage loads, by name.
fn at(data: &RunData, stage: &StageData) -> String {
    let mut names: Vec<String> = stage.endpoints.iter().flatten().cloned().collect();
    names.sort_unstable();
    names.dedup();
    match &names[..] {
        [one] => one.clone(),
        [] => {
            let target = stage.spec.workloads.first().and_then(|w| data.plan.target_of(w).ok());
            match target.map(|(_, t)| t) {
                Some(TargetSpec::Block(b)) => b.path.clone(),
                _ => "the storage".into(),
            }
        }
        many => format!("all {} endpoints", many.len()),
    }
}

fn overlaps(a: &Outage, b: &Outage) -> bool {
    let end = |o: &Outage| o.span.to_s.unwrap_or(o.span.seen_until_s);
    a.span.from_s < end(b) && b.span.from_s < end(a)
}

/// A stage's load, step by step, all its ops together.
struct Load {
    stage: u32,
    /// When the load began, and the first slice that lies in it.
    load_s: f64,
    start_s: f64,
    dt_s: f64,
    points: Vec<SeriesCounts>,
    /// Syncs that close the load, to its very end.
    closing: Vec<SeriesCounts>,
    in_flight: Vec<f64>,
    /// Mean slots that paused after refusals.
    held_back: Vec<f64>,
    /// Slices `[from, to)` in which the client itself stood still.
    stopped: Vec<(usize, usize)>,
    /// What one op takes, and how long a refused attempt waits for its answer.
    op_s: f64,
    refused_s: f64,
    loads: Vec<SeriesId>,
    span_ns: (u64, u64),
}

impl Load {
    fn of(data: &RunData, stage: &StageData, from_ns: u64, to_ns: u64) -> Self {
        let step_ns = data.step_ns;
        let dt_s = step_ns as f64 / 1e9;
        let loads: Vec<SeriesId> =
            stage.series.keys().copied().filter(|id| agents::is_load(stage, *id)).collect();
        let points = stage.counts(loads.iter().copied(), step_ns, from_ns, to_ns);
        let client = stage.client_points(step_ns, from_ns, to_ns);
        let handed: Vec<HandedOver> = client.iter().map(handed_over).collect();
        let mut spread = client_time::spread(&handed, stage.workers, most_in_flight(stage), dt_s);
        spread.in_flight.resize(points.len(), 0.0);
        let mut held_back: Vec<f64> = client.iter().map(|c| c.paused_ns as f64 / step_ns as f64).collect();
        held_back.resize(points.len(), 0.0);
        let start_s = from_ns.div_ceil(step_ns) as f64 * dt_s;
        let stopped = all_stopped(data, stage, (from_ns, to_ns), start_s, dt_s);
        let took = |c: &SeriesCounts| {
            let ended = c.ok() + c.throttled();
            (ended > 0).then(|| c.in_system_ns as f64 / 1e9 / ended as f64)
        };
        let times: Vec<f64> = points.iter().filter_map(took).collect();
        Self {
            stage: stage.index,
            load_s: from_ns as f64 / 1e9,
            start_s,
            dt_s,
            op_s: if times.is_empty() { 0.0 } else { math::median(&times) },
            refused_s: refused_s(&points),
            points,
            closing: closing_syncs(data, stage),
            in_flight: spread.in_flight,
            held_back,
            stopped,
            loads,
            span_ns: (from_ns, to_ns),
        }
    }

    /// What lies in a stop of the client is none of the storage's.
    fn is_the_clients(&self, o: &Outage) -> bool {
        let slices = self.slices(o);
        let stopped = |s: &(usize, usize)| s.1.min(slices.end).saturating_sub(s.0.max(slices.start));
        let of_client: usize = self.stopped.iter().map(stopped).sum();
        slices.len().saturating_sub(of_client) as f64 * self.dt_s < outage::SHORTEST_S
    }

    fn seen<'a>(&'a self, ended: &'a Ended, at: &'a str) -> Seen<'a> {
        Seen {
            stage: self.stage,
            at,
            load_s: self.load_s,
            start_s: self.start_s,
            ok: &ended.ok,
            throttled: &ended.throttled,
            failed: &ended.failed,
            in_flight: &self.in_flight,
            held_back: &self.held_back,
            dt_s: self.dt_s,
            op_s: self.op_s,
            refused_s: self.refused_s,
        }
    }

    fn throttled(&self, ended: &Ended, at: &str) -> Option<StageThrottled> {
        let seen = self.seen(ended, at);
        StageThrottled::of(&seen, outage::throttled(&seen), &self.points)
    }

    fn outages(&self, ended: &Ended, at: &str) -> Vec<Outage> {
        let mut found = outage::find(&self.seen(ended, at));
        found.retain(|o| !self.is_the_clients(o) && !self.is_its_sync(o));
        let named = |mut o: Outage| {
            o.outcome = majority(&self.points[self.slices(&o)], o.ended);
            o
        };
        found.into_iter().map(named).collect()
    }

    /// What was written through the page cache is at the storage with the last sync: no write ends while that lasts, and the storage is at
    /// work, where it ends well.
    fn is_its_sync(&self, o: &Outage) -> bool {
        let during = self.closing.get(self.slices(o).start..).unwrap_or_default();
        let of = |f: fn(&SeriesCounts) -> u64| during.iter().map(f).fold(0, u64::saturating_add);
        o.span.to_s.is_none() && of(SeriesCounts::ok) > 0 && of(SeriesCounts::failed) == 0
    }

    fn slices(&self, o: &Outage) -> std::ops::Range<usize> {
        let slice = |s: f64| (((s - self.start_s) / self.dt_s).round() as usize).min(self.points.len());
        slice(o.span.from_s)..o.span.to_s.map_or(self.points.len(), slice)
    }

    /// Of several endpoints, what each of them answered.
    fn endpoints(&self, stage: &StageData, data: &RunData) -> Vec<(String, Ended)> {
        let mut out: Vec<(String, Ended)> = Vec::new();
        for id in &self.loads {
            let names = stage.endpoints.get(usize::from(id.workload)).map_or(&[][..], Vec::as_slice);
            let slices = stage.endpoint_points(*id, data.step_ns, self.span_ns.0, self.span_ns.1);
            for (e, name) in names.iter().enumerate().filter(|_| names.len() > 1) {
                let i = out.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
                    out.push((name.clone(), Ended::nothing(self.points.len())));
                    out.len() - 1
                });
                let sums = &mut out[i].1;
                for (k, all) in slices.iter().enumerate().take(sums.ok.len()) {
                    let Some(c) = all.get(e) else { continue };
                    sums.ok[k] += c.ok as f64;
                    sums.throttled[k] += c.throttled as f64;
                    sums.failed[k] += c.failed as f64;
                }
            }
        }
        out
    }
}

/// How long refused attempts waited for their answers, of what successes beside them leave; 0: none were.
pub fn refused_s(points: &[SeriesCounts]) -> f64 {
    let time_s = |c: &SeriesCounts| c.in_system_ns as f64 / 1e9;
    let alone = points.iter().filter(|c| c.throttled() == 0 && c.ok() > 0);
    let ok_s = alone.map(|c| time_s(c) / c.ok() as f64).collect::<Vec<_>>();
    let ok_s = if ok_s.is_empty() { 0.0 } else { math::median(&ok_s) };
    let of = |c: &SeriesCounts| (time_s(c) - c.ok() as f64 * ok_s).max(0.0) / c.throttled() as f64;
    let all: Vec<f64> = points.iter().filter(|c| c.throttled() > 0).map(of).collect();
    if all.is_empty() { 0.0 } else { math::median(&all) }
}

/// Of workloads that sync what they wrote at their end.
fn closing_syncs(data: &RunData, stage: &StageData) -> Vec<SeriesCounts> {
    let closes = |id: &SeriesId| {
        let spec = stage.spec.workloads.get(usize::from(id.workload)).and_then(|w| w.block.as_ref());
        id.kind == OpKind::Fsync && !agents::is_load(stage, *id) && spec.is_some_and(|b| b.end_fsync)
    };
    let ids = stage.series.keys().copied().filter(closes);
    stage.counts(ids, data.step_ns, stage.start_ns, stage.last_ns.saturating_add(data.step_ns))
}

/// Ops that ended in each slice, by class: all that is counted of a single endpoint.
struct Ended {
    ok: Vec<f64>,
    throttled: Vec<f64>,
    failed: Vec<f64>,
}

impl Ended {
    fn nothing(slices: usize) -> Self {
        Self { ok: vec![0.0; slices], throttled: vec![0.0; slices], failed: vec![0.0; slices] }
    }

    fn of(points: &[SeriesCounts]) -> Self {
        let column = |f: fn(&SeriesCounts) -> u64| points.iter().map(|c| f(c) as f64).collect();
        Self {
            ok: column(SeriesCounts::ok),
            throttled: column(SeriesCounts::throttled),
            failed: column(SeriesCounts::failed),
        }
    }
}

/// Attempts that ended so.
pub fn ended_so(points: &[SeriesCounts], outcome: Outcome) -> u64 {
    points.iter().map(|c| c.outcomes[outcome.index()]).fold(0, u64::saturating_add)
}

/// How more than half of `ended` attempts ended that are among those of the whole load in these slices: whatever else ended
/// otherwise may have been theirs.
fn majority(points: &[SeriesCounts], ended: u64) -> Option<String> {
    let count = |o: Outcome| ended_so(points, o);
    let bad = || Outcome::ALL.into_iter().filter(|o| o.is_failure() || o.is_throttled());
    let most = bad().max_by_key(|o| count(*o))?;
    let others = bad().filter(|o| *o != most).map(count).fold(0, u64::saturating_add);
    let surely = ended.checked_sub(others)?.min(count(most));
    (surely > ended / 2).then(|| most.name().to_owned())
}

/// A probe that found a limiter which refuses all for a while knows why nothing was answered for as long as such a limiter keeps refusals
/// waiting (a tarpit): that was no outage.
pub fn not_of_a_limiter(outages: &mut Vec<Outage>, limiter_known: bool, refused_after_s: Option<f64>) {
    let waits_s = outage::LATER * refused_after_s.unwrap_or(0.0);
    let waits = |o: &Outage| o.span.to_s.unwrap_or(o.span.seen_until_s) - o.span.from_s <= waits_s;
    let is_its = |o: &Outage| o.kind == OutageKind::Silent && waits(o);
    outages.retain(|o| !limiter_known || !is_its(o));
}

/// What outages do to the results: a stage of which much was one, or which ended in one, has no rate. One that has no line (the
/// pilot of a sweep, a stage without a window) has nothing to void.
pub fn findings(data: &RunData, outages: &[Outage], lines: &[Line<'_>], searched: bool) -> Vec<Finding> {
    let mut out = Vec::new();
    for stage in &data.stages {
        let mine: Vec<&Outage> = outages.iter().filter(|o| o.span.stage == stage.index).collect();
        if mine.is_empty() {
            continue;
        }
        let of_stage = |l: &&Line<'_>| l.is_in(stage.index);
        let measured = lines.iter().any(|l| of_stage(&l));
        let load_s = (stage.stop_ns.unwrap_or(stage.last_ns) - stage.start_ns) as f64 / 1e9;
        let share = length_s(&mine) / load_s.max(f64::MIN_POSITIVE);
        let open = mine.iter().any(|o| o.span.to_s.is_none());
        let spoils = (share > MOST_OF_THE_LOAD || open) && !searched && measured;
        let level = if spoils { Level::Invalid } else { Level::Qualified };
        let text = consequence(&mine, &at(data, stage), load_s, spoils);
        let several = lines.iter().any(|l| l.parts.iter().any(|p| p.stage.index != stage.index));
        let labels: Vec<Option<String>> = if several && measured {
            lines.iter().filter(of_stage).map(|l| Some(l.label())).collect()
        } else {
            vec![None]
        };
        for label in labels {
            let mut f = Finding::new("F60", "outage", level, text.clone()).measured(share, MOST_OF_THE_LOAD);
            f.workload = label;
            f.evidence = mine.iter().take(8).map(|o| (o.span.at.clone(), when(o))).collect();
            out.push(f);
        }
    }
    out
}

/// Time in which at least one of them was.
fn length_s(outages: &[&Outage]) -> f64 {
    let end_s = |o: &Outage| o.span.to_s.unwrap_or(o.span.seen_until_s);
    // They are in order of their beginnings.
    let add = |(sum, until): (f64, f64), o: &&Outage| {
        let (from_s, to_s) = (o.span.from_s.max(until), end_s(o));
        (sum + (to_s - from_s).max(0.0), until.max(to_s))
    };
    outages.iter().fold((0.0, 0.0), add).0
}

/// What outages mean for the figures: what happened is said by their claims, once. `all`: what all of the load is called, beside which single endpoints
/// may have had outages of their own.
fn consequence(outages: &[&Outage], all: &str, load_s: f64, spoils: bool) -> String {
    let (whole, parts): (Vec<&Outage>, Vec<&Outage>) =
        outages.iter().copied().partition(|o| o.span.at == all);
    let mut names: Vec<&str> = parts.iter().map(|o| o.span.at.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let whose = match names[..] {
        [one] => format!(" of {one}"),
        _ => format!(" of {} endpoints", names.len()),
    };
    let mut out = [(&whole, ""), (&parts, whose.as_str())]
        .into_iter()
        .filter(|(outages, _)| !outages.is_empty())
        .map(|(outages, whose)| taken(outages, whose, load_s))
        .collect::<Vec<_>>()
        .join("; ");
    out += if spoils { ": the mean is not a rate of this storage." } else { ": the rates include them." };
    out + " Find out what happened, and measure again."
}

/// The part of the load's time that these took.
fn taken(outages: &[&Outage], whose: &str, load_s: f64) -> String {
    let share = length_s(outages) / load_s.max(f64::MIN_POSITIVE);
    match (outages.iter().any(|o| o.span.to_s.is_none()), share) {
        (true, s) if s > 0.999 && whose.is_empty() => "All of the load was an outage".to_owned(),
        (true, s) if s > 0.999 => format!("An outage{whose} took all of the load's time"),
        (true, s) => {
            format!("The load ended during an outage{whose} ({:.1} % of its time was outage)", 100.0 * s)
        }
        (false, s) => format!(
            "Outages{whose} took {:.1} % of the load's time (at most {:.0} % is acceptable)",
            100.0 * s,
            100.0 * MOST_OF_THE_LOAD
        ),
    }
}

/// `12.3 s to 19.3 s`.
fn when(o: &Outage) -> String {
    let at = |s: f64| format!("{} s", words::fixed(s, 1));
    format!("{} to {}", at(o.span.from_s), o.span.to_s.map_or("the end of the load".into(), at))
}

/// A wide interval has its reason: more time would not make it narrower.
pub fn explain(findings: &mut [Finding], outages: &[Outage], lines: &[Line<'_>]) {
    for f in findings.iter_mut().filter(|f| f.code == "Q03" || f.name == "no_rate" && f.measured.is_some()) {
        let of_line = |l: &&Line<'_>| f.workload.as_ref().is_none_or(|on| *on == l.label());
        let within = |o: &&Outage| lines.iter().filter(of_line).any(|l| l.is_in(o.span.stage));
        let Some(o) = outages.iter().find(within) else { continue };
        let width = f.measured.unwrap_or(0.0) * 100.0;
        f.text = format!(
            "The confidence interval is ±{width:.1} % (at most 10 % is acceptable) because the window contains an \
             outage (F60); a longer run would not fix that.{}",
            o.without_per_s.map_or(String::new(), |e| {
                format!(" Outside of the outage, the rate was {}.", words::ops_rate(&e))
            })
        );
    }
}

/// Ops that had no answer when the run let them go.
pub fn unanswered(data: &RunData) -> Option<Finding> {
    let of = |s: &StageData| {
        let all = s.series.iter().filter(|(id, _)| id.kind != OpKind::UploadPart).flat_map(|(_, p)| p);
        all.map(|p| p.counts.outcomes[Outcome::Cancelled.index()])
            .fold(s.report.abandoned, u64::saturating_add)
    };
    let interrupted = data.end.as_deref() == Some("interrupted");
    let stages = || data.stages.iter().filter(|s| s.void.is_none());
    let n: u64 = stages().map(of).fold(0, u64::saturating_add);
    if n == 0 || interrupted {
        return None;
    }
    let asked: u64 = stages().map(|s| s.report.ops).sum();
    let text = format!(
        "{n} of {asked} ops had no answer a minute after the load had ended. They are not in any rate or latency, \
         and it is not known whether they took effect. The storage hangs or loses requests."
    );
    Some(Finding::new("F61", "unanswered", Level::Qualified, text).measured(n as f64, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(outcomes: &[(Outcome, u64)]) -> SeriesCounts {
        let mut c = SeriesCounts::default();
        outcomes.iter().for_each(|(o, n)| c.outcomes[o.index()] += n);
        c
    }

    #[test]
    fn an_outcome_is_named_where_most_had_it_for_sure() {
        let all = [slice(&[(Outcome::Ok, 900), (Outcome::Timeout, 30)]), slice(&[(Outcome::Reset, 10)])];
        let named = |ended| majority(&all, ended);
        assert_eq!(named(40).as_deref(), Some("timeout"));
        // Of one endpoint among several: 25 of 30 and more were timeouts, and of 12 perhaps 2.
        assert_eq!(named(30).as_deref(), Some("timeout"));
        assert_eq!(named(12), None);
        assert_eq!(named(5), None);
        assert_eq!(named(0), None);
        // The largest of many is not most.
        let mixed = [slice(&[(Outcome::Http5xx, 40), (Outcome::Reset, 35), (Outcome::Http429, 35)])];
        assert_eq!(majority(&mixed, 110), None);
        assert_eq!(majority(&[], 0), None);
    }

    #[test]
    fn what_a_proved_limiter_keeps_waiting_is_no_outage() {
        use plimsoll_model::claim::OutageSpan;
        use plimsoll_stats::probe::may_refuse_all;
        let span = || OutageSpan {
            stage: 0,
            load_s: 0.0,
            at: "a".into(),
            from_s: 1.0,
            to_s: None,
            seen_until_s: 6.0,
        };
        let of = |kind| Outage::new(span(), kind, 0.0, 700).unwrap();
        let penalty = |evidence: &[(&str, &str)]| {
            let mut f = Finding::new("F41", "limit_penalty", Level::Info, "x");
            f.evidence = evidence.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
            may_refuse_all(&[f])
        };
        let mut outages = vec![of(OutageKind::Failing), of(OutageKind::Silent)];
        not_of_a_limiter(&mut outages, penalty(&[]), None);
        assert_eq!(outages.len(), 2, "refusals are free: nothing is known of these");
        assert!(
            !penalty(&[("refusals", "of all that comes, for a while")]),
            "that is said of a limit's cause"
        );
        not_of_a_limiter(&mut outages, penalty(&[("refusals", "cost tokens")]), None);
        assert_eq!(outages.len(), 2);
        // Five seconds: of a tarpit of two they are an outage, of one of five they are not.
        not_of_a_limiter(&mut outages, true, Some(2.0));
        assert_eq!(outages.len(), 2);
        not_of_a_limiter(&mut outages, true, Some(5.0));
        assert_eq!(outages.iter().map(|o| o.kind).collect::<Vec<_>>(), [OutageKind::Failing]);
    }

    #[test]
    fn what_two_endpoints_were_away_together_counts_once() {
        use plimsoll_model::claim::OutageSpan;
        let of = |at: &str, from_s: f64, to_s: Option<f64>| {
            let span = OutageSpan { stage: 0, load_s: 0.0, at: at.into(), from_s, to_s, seen_until_s: 60.0 };
            Outage::new(span, OutageKind::Silent, 0.0, 0).unwrap()
        };
        let all = [of("a", 10.0, Some(20.0)), of("b", 12.0, Some(14.0)), of("c", 15.0, Some(25.0))];
        assert_eq!(length_s(&all.iter().collect::<Vec<_>>()), 15.0);
        assert_eq!(length_s(&[&all[0], &of("b", 50.0, None)]), 20.0);
        assert_eq!(when(&all[0]), "10.0 s to 20.0 s");
        assert_eq!(when(&of("b", 50.0, None)), "50.0 s to the end of the load");
    }

    #[test]
    fn an_outage_is_told_of_whom_it_is() {
        use plimsoll_model::claim::OutageSpan;
        let of = |at: &str, from_s: f64, to_s: Option<f64>| {
            let span = OutageSpan { stage: 0, load_s: 0.0, at: at.into(), from_s, to_s, seen_until_s: 200.0 };
            Outage::new(span, OutageKind::Silent, 0.0, 0).unwrap()
        };
        let said = |outages: &[Outage]| {
            consequence(&outages.iter().collect::<Vec<_>>(), "all 2 endpoints", 200.0, true)
        };
        let whole = said(&[of("all 2 endpoints", 0.0, None)]);
        assert!(whole.starts_with("All of the load was an outage: the mean is not a rate"), "{whole}");
        let one = said(&[of("a", 0.0, None)]);
        assert!(one.starts_with("An outage of a took all of the load's time: the mean"), "{one}");
        let both = said(&[of("a", 5.0, Some(25.0)), of("all 2 endpoints", 30.0, Some(32.0))]);
        assert!(
            both.starts_with("Outages took 1.0 % of the load's time")
                && both.contains("; Outages of a took 10.0 % of"),
            "{both}"
        );
        let two = said(&[of("a", 5.0, Some(25.0)), of("b", 100.0, None)]);
        assert!(two.starts_with("The load ended during an outage of 2 endpoints (60.0 %"), "{two}");
    }

    #[test]
    fn an_endpoint_is_judged_by_classes_and_named_by_none_that_was_not_seen() {
        let n = 600;
        let mut ended = Ended::nothing(n);
        ended.ok.fill(20.0);
        ended.ok[200..300].fill(0.0);
        ended.failed[200..300].fill(8.0);
        // The load goes on at the other endpoint, which times out now and then; ours breaks connections.
        let points = |ours: Outcome| -> Vec<SeriesCounts> {
            let of = |i: usize| match i {
                200..300 => slice(&[(Outcome::Ok, 20), (ours, 8), (Outcome::Timeout, 6)]),
                _ => slice(&[(Outcome::Ok, 40)]),
            };
            (0..n).map(of).collect()
        };
        let load = |points| Load {
            stage: 0,
            load_s: 2.0,
            start_s: 2.0,
            dt_s: 0.1,
            points,
            closing: Vec::new(),
            in_flight: vec![16.0; n],
            held_back: vec![0.0; n],
            stopped: Vec::new(),
            op_s: 0.01,
            refused_s: 0.0,
            loads: Vec::new(),
            span_ns: (0, 0),
        };
        let found = load(points(Outcome::Protocol)).outages(&ended, "b:9000");
        let [o] = &found[..] else { panic!("{found:?}") };
        assert_eq!((o.ended, o.outcome.as_deref()), (800, None), "600 timeouts may have been its own");
        let said = outage::sentence(o);
        assert!(
            said.contains("b:9000 answered nothing but errors (800 attempts without success)**"),
            "{said}"
        );
        let found = load(points(Outcome::Timeout)).outages(&ended, "b:9000");
        assert_eq!(found[0].outcome.as_deref(), Some("timeout"));
    }

    /// Writes fill the page cache, and then nothing ends until what is in it is at the storage.
    #[test]
    fn a_write_that_waits_for_its_sync_is_no_outage() {
        let n = 120;
        let ok = |k: u64| slice(&[(Outcome::Ok, k)]);
        let load = |closing: Vec<SeriesCounts>, back: u64| Load {
            stage: 0,
            load_s: 2.0,
            start_s: 2.0,
            dt_s: 0.1,
            points: (0..n)
                .map(|i| {
                    ok(if i < 80 {
                        40
                    } else if i < 118 {
                        0
                    } else {
                        back
                    })
                })
                .collect(),
            closing,
            in_flight: vec![4.0; n],
            held_back: vec![0.0; n],
            stopped: Vec::new(),
            op_s: 0.001,
            refused_s: 0.0,
            loads: Vec::new(),
            span_ns: (0, 0),
        };
        let ended_with = |last: SeriesCounts| [vec![SeriesCounts::default(); n], vec![last]].concat();
        let found = |load: Load| load.outages(&Ended::of(&load.points), "the storage").len();
        assert_eq!(found(load(Vec::new(), 0)), 1, "nobody asked for a sync");
        assert_eq!(found(load(ended_with(ok(4)), 0)), 0);
        assert_eq!(found(load(ended_with(slice(&[(Outcome::Ok, 3), (Outcome::Timeout, 1)])), 0)), 1);
        // One after which writes went on was none that closes.
        assert_eq!(found(load(ended_with(ok(4)), 40)), 1);
    }
}
