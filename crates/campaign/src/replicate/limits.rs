//! What was published of a burst, and of the size at which one limit gives way to the other, against what probes found here.

use plimsoll_model::Estimate;

use super::compared::{ComparedFigure, ComparedFigures, ReplicaVerdict, ratio};
use super::printed::{printed_bytes, printed_ops};
use super::published::{Published, PublishedLimit};
use crate::burst::BurstFigures;
use crate::file::Promised;
use crate::result::{CampaignResult, CampaignRow, IntervalOf};

/// A line for each figure that was published of a limit.
pub(crate) fn limits(published: &Published, ours: &CampaignResult) -> Vec<ComparedFigures> {
    published.limits.iter().flat_map(|l| one(published, l, ours)).collect()
}

fn one(published: &Published, l: &PublishedLimit, ours: &CampaignResult) -> Vec<ComparedFigures> {
    let is_of =
        |r: &&CampaignRow| r.subject == l.subject && r.workload == l.workload && r.line.ends_with(" limit");
    let row = ours.rows.iter().find(is_of);
    let there = published.subjects.iter().find(|s| s.name == l.subject).map(|s| s.promised);
    let knee_there = l.knee.as_deref().and_then(printed_knee).zip(there.and_then(knee_of));
    let knee_here = row.and_then(|r| r.limit?.knee_bytes.zip(knee_of(r.promised)));
    let share = |(knee, promised): (Estimate, f64)| knee.scaled(1.0 / promised);
    let burst = |r: &CampaignRow| {
        let limit = r.limit?;
        // Of both the one whose rate was seen.
        let seen =
            |b: Option<BurstFigures>, kept: Option<Estimate>| Some((b.filter(|b| b.per_s.is_some())?, kept?));
        seen(limit.ops, r.ops_per_s).or_else(|| seen(limit.bytes, r.bytes_per_s))
    };
    let found = row.and_then(burst);
    let over = found.and_then(|(b, kept)| Some(ratio(b.per_s?, kept)));
    // A burst that is shortened here is as long as it would be there.
    let lasts = found.and_then(|(b, _)| Some(b.lasts_s?.scaled(1.0 / l.time_scale)));
    let is_one_run = row.is_none_or(|r| !r.interval_of.is_some_and(IntervalOf::is_repeated));
    [
        (ComparedFigure::LimitKnee, knee_there.map(share), knee_here.map(share)),
        (ComparedFigure::BurstOverSustained, l.burst_over_sustained.as_deref().and_then(printed_ops), over),
        (ComparedFigure::BurstLasts, l.burst_lasts_s.as_deref().and_then(printed_ops), lasts),
    ]
    .into_iter()
    .filter(|(_, published, _)| published.is_some())
    .map(|(figure, published, ours)| {
        let line = ComparedFigures {
            figure,
            subject: l.subject.clone(),
            over: None,
            workload: l.workload.clone(),
            line: row.map(|r| r.line.clone()).unwrap_or_default(),
            size_bytes: None,
            promised: None,
            published,
            ours,
            published_word: None,
            our_word: None,
            difference: None,
            verdict: ReplicaVerdict::Inconclusive,
            why: None,
        };
        match ours {
            Some(_) => line.judge(is_one_run),
            None => line.told(ReplicaVerdict::OnlyPublished, "no probe of ours found it"),
        }
    })
    .collect()
}

/// The size above which the promised payload binds, and not the promised ops.
fn knee_of(promised: Promised) -> Option<f64> {
    Some(promised.bytes_per_s?.0 / promised.ops_per_s?.0)
}

/// `209.7KB`.
pub(crate) fn printed_knee(text: &str) -> Option<Estimate> {
    printed_bytes(&format!("{text}/s"))
}
