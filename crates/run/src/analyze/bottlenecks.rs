//! What was saturated while it was measured, as far as the samples of this machine tell.

use plimsoll_model::Sample;
use plimsoll_model::analysis::Bottleneck;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::sample::Role;
use plimsoll_stats::attribution::shares;
use plimsoll_stats::attribution::{Candidate, Observed, attribute};
use plimsoll_store::{RunData, Totals};

/// Candidates, the likeliest first, then those that are clear. Empty without samples.
pub fn of_run(data: &RunData, totals: &[Totals]) -> Vec<Bottleneck> {
    let mut observed: Vec<Observed> = Vec::new();
    let here = data.plan.targets.values().any(super::seen::is_loopback);
    let over_network =
        data.plan.targets.values().any(|t| matches!(t, TargetSpec::S3(_)) && !super::seen::is_loopback(t));
    for t in totals {
        let (from, to) = (t.window.from * data.grid_ns, t.window.to * data.grid_ns);
        let inside: Vec<Sample> = data
            .samples
            .iter()
            .filter(|s| s.role == Role::Client && (from..=to).contains(&s.at_ns))
            .cloned()
            .collect();
        let speeds =
            data.environment.nics.iter().filter_map(|(n, mbit)| Some((n.clone(), (*mbit)? as f64 * 1e6)));
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
            let what = "this machine, shared with the client".to_owned();
            of_host.push(Observed { candidate: Candidate::ServerCpu, what, samples: shares.all_cores });
        }
        merge(&mut observed, of_host);
        let c = &t.client;
        if c.alive_ns > 0 && !data.samples.is_empty() {
            let busy = (1.0 - c.waited_ns as f64 / c.alive_ns as f64).clamp(0.0, 1.0);
            let what = "worker threads".to_owned();
            merge(
                &mut observed,
                vec![Observed { candidate: Candidate::ClientCpu, what, samples: vec![busy] }],
            );
        }
        let (mut attempts, mut throttled) = (0.0, 0.0);
        for s in &t.series {
            throttled += s.throttled() as f64;
            attempts += (s.ok() + s.throttled() + s.failed()) as f64;
        }
        // A disk refuses nothing: of its limiter this says nothing.
        let refuses = data.plan.targets.values().any(|t| matches!(t, TargetSpec::S3(_) | TargetSpec::Sim(_)));
        if attempts > 0.0 && refuses {
            let what = "refused attempts".to_owned();
            merge(
                &mut observed,
                vec![Observed { candidate: Candidate::Limiter, what, samples: vec![throttled / attempts] }],
            );
        }
    }
    let found = attribute(&observed);
    let percent = |v: f64| format!("{:.1} %", 100.0 * v);
    let suspects = found.suspects.iter().map(|s| Bottleneck {
        candidate: format!("{} ({})", s.candidate.name(), s.what),
        measured: percent(s.mean),
        threshold: percent(s.threshold),
        time_fraction: Some(s.time_fraction),
        // Evidence without an intervention is no proof.
        verdict: "consistent with".into(),
        next: s.experiment.into(),
    });
    let clear = found.cleared.iter().map(|c| Bottleneck {
        candidate: format!("{} ({})", c.candidate.name(), c.what),
        measured: percent(c.mean),
        time_fraction: Some(c.time_fraction),
        threshold: percent(c.candidate.threshold()),
        verdict: "clear".into(),
        ..Bottleneck::default()
    });
    suspects.chain(clear).collect()
}

fn merge(all: &mut Vec<Observed>, new: Vec<Observed>) {
    for o in new {
        match all.iter_mut().find(|a| (a.candidate, &a.what) == (o.candidate, &o.what)) {
            Some(a) => a.samples.extend(o.samples),
            None => all.push(o),
        }
    }
}
