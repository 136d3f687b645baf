//! What was saturated while it was measured, as far as the samples of the agents' machines tell.

use std::collections::BTreeMap;

use plimsoll_model::analysis::{Bottleneck, Saturation};
use plimsoll_model::plan::{ControllerSpec, TargetSpec};
use plimsoll_model::summary::{LimitSummary, RunSummary};
use plimsoll_model::{Sample, SeriesCounts};
use plimsoll_stats::attribution::{Candidate, Observed, Suspect, attribute, shares};
use plimsoll_stats::validity::{MOSTLY_HELD, limiter_sets_the_rate};
use plimsoll_stats::words;
use plimsoll_store::{HostSamples, RunAgent, RunData, Totals};

use super::agents;

/// What was observed, by the name of the machine or agent; without one where the run has one only.
type ByMachine = BTreeMap<Option<String>, Vec<Observed>>;

/// Candidates, the likeliest first, then those that are clear. Empty without samples.
pub fn of_run(
    data: &RunData,
    totals: &[Totals],
    summary: &RunSummary,
    searches: &[Saturation],
) -> Vec<Bottleneck> {
    let mut observed = ByMachine::new();
    let here = data.plan.targets.values().any(super::seen::is_loopback);
    let over_network =
        data.plan.targets.values().any(|t| matches!(t, TargetSpec::S3(_)) && !super::seen::is_loopback(t));
    let mut refusals = Refusals::default();
    for t in totals {
        let (from, to) = (t.window.from * data.grid_ns, t.window.to * data.grid_ns);
        let stage = data.stages.iter().find(|s| s.index == t.window.stage);
        let parts = stage.map(|s| agents::of_window(data, s, t)).unwrap_or_default();
        for (agent, host) in stage.map(|s| agents::machines(data, s)).unwrap_or_default() {
            let of_host = of_host(agent, host, (from, to), here, over_network);
            merge(observed.entry(data.is_several().then(|| host.host.clone())).or_default(), of_host);
        }
        for p in parts.iter().filter(|_| !data.hosts.is_empty()) {
            let busy = p.client.busy_fraction();
            let what = "worker threads".to_owned();
            let of = busy.map(|b| Observed { candidate: Candidate::ClientCpu, what, samples: vec![b] });
            merge(observed.entry(p.name.map(str::to_owned)).or_default(), of.into_iter().collect());
        }
        refusals.add(t);
        if let Some(stage) = stage {
            refusals.add_slices(&stage.counts(t.series.iter().map(|s| s.id), data.step_ns, from, to));
        }
    }
    let mut observed = worst_of_each(observed);
    observed.extend(super::servers::candidates(data, totals));
    // A disk refuses nothing: of its limiter this says nothing. What a probe proved is not put to a vote of its stages.
    let refuses = data.plan.targets.values().any(|t| matches!(t, TargetSpec::S3(_) | TargetSpec::Sim(_)));
    let proved = proved(summary).or_else(|| of_searches(searches));
    if let Some(share) = refusals.share().filter(|_| refuses && proved.is_none()) {
        let what = "refused attempts of the whole run".to_owned();
        observed.push(Observed { candidate: Candidate::Limiter, what, samples: vec![share] });
    }
    let met = summary.offered_was_met();
    let found = attribute(&observed);
    // A probe looks at ops and at bytes, and a limiter of the one does not bind the other. Of one load what was proved set its rate.
    let is_probe = matches!(data.plan.controller, Some(ControllerSpec::Limits { .. }));
    let limiter_set_it = refusals.set_the_rate() || proved.is_some() && !is_probe || held_back(summary);
    let suspects = ranked(found.suspects, met, limiter_set_it);
    let clear = found.cleared.iter().map(|c| Bottleneck {
        candidate: format!("{} ({})", c.candidate.name(), c.what),
        measured: percent(c.mean),
        time_fraction: Some(c.time_fraction),
        threshold: percent(c.candidate.threshold()),
        // A few high samples may raise the mean of all above it.
        verdict: if c.mean >= c.candidate.threshold() { "above it for a part of the time" } else { "clear" }
            .into(),
        ..Bottleneck::default()
    });
    proved.into_iter().chain(suspects).chain(clear).collect()
}

/// Whether slots paused for most of their time after attempts that were refused, be it before the window: more of them, or faster ones, would
/// pause, too.
fn held_back(summary: &RunSummary) -> bool {
    summary.workloads.iter().any(|w| w.client.held_back >= MOSTLY_HELD)
}

/// What a limiter refused over all windows.
#[derive(Debug, Default)]
struct Refusals {
    attempts: f64,
    refused: f64,
    slices: f64,
    /// Slices in which it refused any.
    refusing: f64,
}

impl Refusals {
    fn add(&mut self, t: &Totals) {
        for s in &t.series {
            self.refused += s.throttled() as f64;
            self.attempts += (s.ok() + s.throttled() + s.failed()) as f64;
        }
    }

    fn add_slices(&mut self, of_all_series: &[SeriesCounts]) {
        self.slices += of_all_series.len() as f64;
        self.refusing += of_all_series.iter().filter(|c| c.throttled() > 0).count() as f64;
    }

    /// Of the attempts.
    fn share(&self) -> Option<f64> {
        (self.attempts > 0.0).then(|| self.refused / self.attempts)
    }

    fn set_the_rate(&self) -> bool {
        let slices = (self.slices > 0.0).then(|| self.refusing / self.slices);
        self.share().is_some_and(|share| limiter_sets_the_rate(share, slices))
    }
}

/// Suspects as rows. `refusing`: a limiter sets the rate, be it that it refuses most of what is asked, without a pause, or that the load pauses
/// for most of its time as it was told: cores that are busy are so with what is refused, or with what others do, and to move that elsewhere
/// raises nothing.
fn ranked(mut suspects: Vec<Suspect>, met: bool, refusing: bool) -> Vec<Bottleneck> {
    if refusing {
        suspects.sort_by_key(|s| s.candidate != Candidate::Limiter);
    }
    let row = |s: Suspect| {
        // Evidence without an intervention is no proof; and where all that was offered came through, nothing was in its way.
        let (verdict, next) = match (met, refusing && s.candidate != Candidate::Limiter) {
            (true, _) => ("the offered rate was met", ""),
            (false, true) => ("the limiter sets the rate", ""),
            (false, false) => ("consistent with", s.experiment),
        };
        Bottleneck {
            candidate: format!("{} ({})", s.candidate.name(), s.what),
            measured: percent(s.mean),
            threshold: percent(s.threshold),
            time_fraction: Some(s.time_fraction),
            verdict: verdict.into(),
            next: next.into(),
        }
    };
    suspects.into_iter().map(row).collect()
}

fn percent(v: f64) -> String {
    match v {
        // What is not all is not rounded to it.
        0.9995..1.0 => words::share(v),
        v => format!("{:.1} %", 100.0 * v),
    }
}

/// A limiter that refused attempts of a step: over all steps these may be few.
fn of_searches(searches: &[Saturation]) -> Option<Bottleneck> {
    let from = searches.iter().find_map(|s| s.verdict.strip_prefix(Saturation::REFUSED))?;
    Some(Bottleneck {
        candidate: format!("limiter that refused attempts{from}"),
        verdict: "likely".into(),
        ..Bottleneck::default()
    })
}

/// A limiter that the run's probe or watch proved.
fn proved(summary: &RunSummary) -> Option<Bottleneck> {
    let caps = |l: &LimitSummary| {
        let ops = l.ops_per_s.as_ref().is_some_and(|b| b.proved).then_some("ops");
        ops.into_iter().chain(l.bytes_per_s.as_ref().is_some_and(|b| b.proved).then_some("bytes")).collect()
    };
    let at_once = summary.limits.iter().any(|l| l.binding == "in_flight").then(|| vec!["requests in flight"]);
    let found: Vec<&str> = summary.limits.iter().map(caps).find(|c: &Vec<&str>| !c.is_empty()).or(at_once)?;
    let mut capped = summary.limits.iter().filter(|l| !caps(l).is_empty()).peekable();
    let likely = capped.peek().is_some() && capped.all(LimitSummary::is_likely_only);
    Some(Bottleneck {
        candidate: format!("limiter (on {})", found.join(" and ")),
        verdict: if likely { "likely" } else { "proved" }.into(),
        ..Bottleneck::default()
    })
}

/// What one machine's samples say of it, and of the disks under test.
fn of_host(
    agent: &RunAgent,
    host: &HostSamples,
    (from, to): (u64, u64),
    here: bool,
    over_network: bool,
) -> Vec<Observed> {
    let inside: Vec<Sample> =
        host.samples.iter().filter(|s| (from..=to).contains(&s.at_ns)).cloned().collect();
    let speeds =
        agent.host.machine.nics.iter().filter_map(|(n, mbit)| Some((n.clone(), (*mbit)? as f64 * 1e6)));
    let shares = shares(&inside, &speeds.collect());
    let mut of_host = shares.of_client();
    if !over_network {
        // What this machine sends elsewhere, and sends again, is not of this run.
        of_host.retain(|o| !matches!(o.candidate, Candidate::NetworkPath | Candidate::ClientNic));
    }
    let stopped = plimsoll_stats::math::mean(&shares.quota) >= Candidate::ClientQuota.threshold();
    if here && stopped {
        // Nothing follows about the server from cores that a stopped client did not load.
        of_host.retain(|o| o.candidate != Candidate::ClientCpu);
    } else if here {
        // The storage works on the same cores: only the workers' own share tells the client apart.
        of_host.retain(|o| o.candidate != Candidate::ClientCpu);
        let what = "client, storage and everything else that ran".to_owned();
        of_host.push(Observed { candidate: Candidate::SharedCpu, what, samples: shares.all_cores });
    }
    of_host
}

/// Windows of one machine (or agent) add up; those of two stay apart.
fn merge(all: &mut Vec<Observed>, new: Vec<Observed>) {
    for o in new {
        match all.iter_mut().find(|a| (a.candidate, &a.what) == (o.candidate, &o.what)) {
            Some(a) => a.samples.extend(o.samples),
            None => all.push(o),
        }
    }
}

/// Of several machines the one that was nearest to its limit stands for all, by name: one of a thousand is found, and the table stays
/// one of candidates.
fn worst_of_each(all: ByMachine) -> Vec<Observed> {
    let level = |o: &Observed| {
        let above = o.samples.iter().filter(|v| **v >= o.candidate.threshold()).count();
        (above as f64 / o.samples.len().max(1) as f64, plimsoll_stats::math::mean(&o.samples))
    };
    let mut worst: Vec<(Option<String>, Observed)> = Vec::new();
    for (whose, observed) in all {
        for o in observed {
            match worst.iter_mut().find(|(_, w)| (w.candidate, &w.what) == (o.candidate, &o.what)) {
                Some(w) if level(&o) > level(&w.1) => *w = (whose.clone(), o),
                Some(_) => {}
                None => worst.push((whose.clone(), o)),
            }
        }
    }
    let name = |(whose, mut o): (Option<String>, Observed)| {
        if let Some(whose) = whose {
            o.what = format!("{} of {whose}", o.what);
        }
        o
    };
    worst.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Outcome;
    use plimsoll_model::summary::{BucketSummary, WorkloadSummary};

    fn open(ok: u64, offered: Option<f64>) -> RunSummary {
        let line = WorkloadSummary {
            op: "put".into(),
            outcomes: [("ok".to_owned(), ok)].into(),
            window_s: 10.0,
            offered_per_s: offered,
            ..WorkloadSummary::default()
        };
        RunSummary { workloads: vec![line], ..RunSummary::default() }
    }

    #[test]
    fn a_rate_that_was_offered_and_came_is_limited_by_nothing() {
        assert!(open(500, Some(50.0)).offered_was_met() && open(495, Some(50.0)).offered_was_met());
        assert!(!open(480, Some(50.0)).offered_was_met() && !open(500, None).offered_was_met());
        assert!(!RunSummary::default().offered_was_met());
    }

    #[test]
    fn a_proved_limit_is_named_and_not_put_to_a_vote() {
        let mut s = open(500, None);
        assert_eq!(proved(&s), None);
        let cap = |proved| Some(BucketSummary { proved, ..BucketSummary::default() });
        s.limits = vec![LimitSummary {
            target: String::new(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: cap(true),
            bytes_per_s: cap(false),
            knee_bytes: None,
            binding: "ops".into(),
            refused: None,
            evidence: Vec::new(),
        }];
        let of = |s: &RunSummary| proved(s).map(|b| (b.candidate, b.verdict)).unwrap();
        assert_eq!(of(&s), ("limiter (on ops)".to_owned(), "proved".to_owned()));
        s.limits[0].evidence = vec![("verdict".into(), "throttle likely".into())];
        assert_eq!(of(&s).1, "likely");
        s.limits[0].ops_per_s = cap(false);
        assert_eq!(proved(&s), None);
        s.limits[0].binding = "in_flight".into();
        assert_eq!(proved(&s).unwrap().candidate, "limiter (on requests in flight)");
    }

    /// Of a speedtest behind a limiter 0.5 % were refused over all, and this machine's processor was "possibly" the limit.
    #[test]
    fn a_limiter_that_refused_a_step_is_likely_the_limit_of_a_search() {
        let ended = |verdict: &str| Saturation { verdict: verdict.into(), ..Saturation::default() };
        let found =
            of_searches(&[ended("saturated"), ended("a limiter refused attempts from 8 in flight on")]);
        let found = found.unwrap();
        assert_eq!(
            (found.candidate.as_str(), found.verdict.as_str()),
            ("limiter that refused attempts from 8 in flight on", "likely")
        );
        assert_eq!(of_searches(&[ended("saturated")]), None);
    }

    /// 80 of a million passed: that is not all.
    #[test]
    fn what_is_not_all_is_not_a_hundred_percent() {
        assert_eq!(
            (percent(0.915), percent(0.0), percent(1.0)),
            ("91.5 %".into(), "0.0 %".into(), "100.0 %".into())
        );
        assert_eq!(percent(0.999_92), "99.9920 %");
    }

    /// 17 % of the attempts were refused, the slots paused for nine tenths of their time, and the machine's busy cores were "possibly" the limit.
    #[test]
    fn a_limiter_sets_the_rate_of_a_load_that_holds_back() {
        let held = |held_back: f64, refused: u64| {
            let mut w = WorkloadSummary {
                outcomes: BTreeMap::from([("ok".to_owned(), 1000), ("http_429".to_owned(), refused)]),
                ..WorkloadSummary::default()
            };
            w.client.held_back = held_back;
            super::held_back(&RunSummary { workloads: vec![w], ..RunSummary::default() })
        };
        assert!(held(0.87, 200));
        // Refused before the window, and told to wait for longer than it lasts.
        assert!(!held(0.3, 200) && held(1.0, 0));
    }

    /// The same rule as that of V07: a limiter that pauses lets through what is offered then.
    #[test]
    fn a_limiter_sets_the_rate_where_it_refuses_most_without_a_pause() {
        let refusals = |refused: &dyn Fn(u64) -> u64| {
            let slice = |i| {
                let mut c = SeriesCounts::default();
                (c.outcomes[Outcome::Ok.index()], c.outcomes[Outcome::Http429.index()]) = (10, refused(i));
                c
            };
            let slices: Vec<SeriesCounts> = (0..100).map(slice).collect();
            let refused = slices.iter().map(|c| c.throttled() as f64).sum::<f64>();
            let mut all = Refusals { attempts: refused + 1000.0, refused, ..Refusals::default() };
            all.add_slices(&slices);
            all.set_the_rate()
        };
        assert!(refusals(&|_| 30) && !refusals(&|_| 5) && !Refusals::default().set_the_rate());
        assert!(
            !refusals(&|i| if (i / 10) % 2 == 0 { 60 } else { 0 }),
            "it let all through half of the time"
        );
    }

    #[test]
    fn a_limiter_that_refuses_most_comes_first_and_nothing_else_is_to_be_moved() {
        let seen = |candidate, level| Observed { candidate, what: "x".into(), samples: vec![level; 20] };
        let rows = |refused, refusing| {
            let found = attribute(&[seen(Candidate::SharedCpu, 0.97), seen(Candidate::Limiter, refused)]);
            ranked(found.suspects, false, refusing)
        };
        let all = rows(0.998, true);
        assert_eq!((all[0].candidate.as_str(), all[0].verdict.as_str()), ("limiter (x)", "consistent with"));
        assert_eq!((all[1].verdict.as_str(), all[1].next.as_str()), ("the limiter sets the rate", ""));
        let few = rows(0.02, false);
        assert!(few[0].candidate.starts_with("this machine's processor") && !few[0].next.is_empty());
    }
}
