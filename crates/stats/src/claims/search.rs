//! Claims of a search for the best concurrency: what it found, what that costs in time, how long each step was seen.

use plimsoll_model::analysis::{LoadPoint, Saturation};
use plimsoll_model::claim::{BestConcurrency, ClaimKind, LoadHeld, SearchHorizon, Undetermined};
use plimsoll_model::{Finding, Level, RunSummary};

use super::derive::Claims;

pub(super) fn of_search(
    s: &RunSummary,
    found: &Saturation,
    load: &[&LoadPoint],
    goal_s: f64,
    out: &mut Claims,
) {
    let subject = || Some(found.op_class.clone());
    let size = s.workloads.iter().find(|w| w.op == found.op_class).map_or(found.size_bytes, |w| w.size_bytes);
    let what = format!("the best concurrency for {}", super::words::sized(&found.op_class, size));
    // Of several searches one may be void, and the others stand.
    if s.answered && !found.invalid.is_empty() {
        let is_why = |f: &&Finding| f.level == Level::Invalid && found.invalid.contains(&f.code);
        let why = s.findings.iter().find(is_why).map_or(String::new(), |f| format!(": {}", f.text));
        let why = format!("its search is void, by {}{why}", found.invalid.join(" "));
        out.add(subject(), Undetermined::new(what, why));
        return;
    }
    let best = found.c95.and_then(|c| {
        let at = c.value as u32;
        found.points.iter().find(|p| p.concurrency == at)
    });
    let known = found.verdict != "state changed during search" && found.budget_needed_s.is_none();
    let Some(best) = best.filter(|_| known) else {
        out.add(subject(), Undetermined::new(what, reason(found)));
        return;
    };
    let plateau = found.plateau_per_s.filter(|_| found.verdict == "saturated");
    let most = found.points.last().filter(|p| p.concurrency > best.concurrency);
    let most = most.and_then(|p| Some((p.concurrency, p.p50_ns?)));
    let place = (found.op_class.as_str(), size);
    let made =
        BestConcurrency::new(place, best.concurrency, best.ops_per_s, plateau, &found.verdict).map(|b| {
            let b = b.against_fewer(found.fewer_fall_short).costing(best.p50_ns, best.p99_ns, most);
            ClaimKind::BestConcurrency(b.limited_by(found.limited_by.clone()))
        });
    let is_made = made.is_ok();
    out.add_or(subject(), made, what);
    if !is_made {
        return;
    }
    out.add_if(subject(), held(load).map(ClaimKind::LoadHeld));
    let mine = s.workloads.iter().filter(|w| w.op == found.op_class);
    let longest = mine.map(|w| w.horizon_s).fold(0.0, f64::max);
    let seen = SearchHorizon::new(longest, goal_s, best.concurrency).map(ClaimKind::SearchHorizon);
    out.add_if(subject(), seen);
}

/// Why there is no best concurrency: of a search that its budget cut off with what was seen until then, and what would do.
fn reason(found: &Saturation) -> String {
    let Some(needed_s) = found.budget_needed_s else { return found.verdict.clone() };
    let seen = found.points.last().map_or(String::new(), |p| {
        format!(
            " ({} at {} in flight, the most that was tried)",
            crate::words::ops_rate(&p.ops_per_s),
            p.concurrency
        )
    });
    format!("{}{seen}; {}", found.verdict, Saturation::would_do(needed_s))
}

/// The highest load that held, with what it costs beyond service.
fn held(load: &[&LoadPoint]) -> Result<LoadHeld, plimsoll_model::claim::Refusal> {
    let valid = || load.iter().copied().filter(|p| p.invalid.is_empty());
    let best = valid().filter(|p| p.sustainable).max_by(|a, b| a.fraction.total_cmp(&b.fraction));
    let not_held = valid().filter(|p| !p.sustainable).map(|p| p.fraction).collect();
    let void = load.len() - valid().count();
    let pair = |q: fn(&plimsoll_model::summary::LatencySummary) -> Option<u64>| {
        let p = best?;
        Some((q(p.response.as_ref()?)?, q(p.service.as_ref()?)?))
    };
    let point = best.map(|p| (p.fraction, p.offered_per_s));
    LoadHeld::new(point, pair(|l| l.p50), pair(|l| l.p99), not_held, void as u32)
}
