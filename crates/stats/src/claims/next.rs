//! Claims that rest on a finding alone: what kind of limit it is, the notes, what to do next, the ceiling.

use plimsoll_model::analysis::Bottleneck;
use plimsoll_model::claim::{ClaimKind, Fact};
use plimsoll_model::{Finding, Level, RunSummary};

use super::derive::Claims;
use crate::judge::AGENT_LOST;

/// Names of the findings that say what kind of limit it is, in the order in which they are said.
const KINDS: [&str; 10] = [
    "limit_cause",
    "limit_at_once",
    "limit_window",
    "limit_tiers",
    "limit_burst_law",
    "limit_penalty",
    "limit_held_back",
    "limit_cost",
    "limit_shared",
    "limit_by_kind",
];
/// Names of the findings that say what to do next, where they are the first of these.
const NEXT: [&str; 5] = [
    "open_question",
    "concurrency_bound",
    "still_gaining",
    plimsoll_model::analysis::Saturation::BUDGET_TOO_SHORT,
    "client_limited",
];

/// What kind of limit it is, as far as that was found out.
pub(super) fn kinds(findings: &[Finding], out: &mut Claims) {
    let said = KINDS.iter().flat_map(|name| findings.iter().filter(move |f| f.name == *name));
    for f in said {
        out.add_if(f.workload.clone(), fact(f).map(ClaimKind::Fact));
    }
}

/// Agents that were lost, where the result stands for the time before.
pub(super) fn losses(findings: &[Finding], out: &mut Claims) {
    for f in findings.iter().filter(|f| f.name == AGENT_LOST && f.level == Level::Qualified) {
        let agent = f.agent.as_deref().unwrap_or_default();
        let text = f.text.replacen(&format!("agent {agent}: It was"), &format!("Agent {agent} was"), 1);
        out.add_if(None, Fact::new(vec![f.code.clone()], text).map(ClaimKind::Fact));
    }
}

/// Name of the finding of times in which everything was refused.
pub const THROTTLED_TO_NOTHING: &str = "throttled_to_nothing";
/// Its evidence, where both may be.
pub const MAY_BE_DOWN: [&str; 2] = ["cause", "a limiter, or storage that was down behind a proxy"];

/// Times in which everything was refused: once for each text, however many lines it is said of.
pub(super) fn throttled(findings: &[Finding], out: &mut Claims) {
    let mut told: Vec<&str> = Vec::new();
    for f in findings.iter().filter(|f| f.name == THROTTLED_TO_NOTHING) {
        if !told.contains(&f.text.as_str()) {
            told.push(&f.text);
            out.add_if(None, fact(f).map(ClaimKind::Fact));
        }
    }
}

fn fact(f: &Finding) -> Result<Fact, plimsoll_model::claim::Refusal> {
    Fact::new(vec![f.code.clone()], f.text.clone())
}

/// The notes, by name: the table explains them.
pub(super) fn notes(findings: &[Finding], out: &mut Claims) {
    let qualified = findings.iter().filter(|f| f.level == Level::Qualified);
    let mut notes: Vec<(String, String)> =
        qualified.map(|f| (f.code.clone(), f.name.replace('_', " "))).collect();
    notes.sort();
    notes.dedup();
    let said = notes.iter().map(|(code, name)| format!("{code} {name}")).collect::<Vec<_>>().join(", ");
    let codes = notes.into_iter().map(|(code, _)| code).collect();
    out.add_if(None, Fact::new(codes, said).map(ClaimKind::Notes));
}

/// What to do next: the remedy of the first thing that was left open.
pub(super) fn next(findings: &[Finding], out: &mut Claims) {
    if let Some(open) = findings.iter().find(|f| NEXT.contains(&f.name.as_str())) {
        out.add_if(open.workload.clone(), fact(open).map(ClaimKind::NextStep));
    }
}

/// Name of the finding of which of the servers' resources was the limit.
pub const SERVERS_LIMIT: &str = "servers_limit";

/// Which of the servers' resources was the limit; not beside a client that was at its own, nor of a rate that was offered and met: then
/// theirs say nothing of the rate. What differs by stage is in the table alone.
pub(super) fn servers(s: &RunSummary, bottlenecks: &[Bottleneck], out: &mut Claims) {
    let beside = |b: &Bottleneck| {
        ["proved", "likely"].contains(&b.verdict.as_str())
            || b.verdict == "consistent with" && b.candidate.starts_with("client")
    };
    let is_beside = s.offered_was_met() || bottlenecks.iter().any(beside);
    let mut said = s.findings.iter().filter(|f| f.name == SERVERS_LIMIT);
    if let (Some(f), None, false) = (said.next(), said.next(), is_beside) {
        out.add_if(None, fact(f).map(ClaimKind::Fact));
    }
}

/// What part of a recorded ceiling was reached.
pub(super) fn ceiling(findings: &[Finding], out: &mut Claims) {
    for f in findings.iter().filter(|f| f.name == "held_against_ceiling") {
        out.add_if(f.workload.clone(), fact(f).map(ClaimKind::Fact));
    }
}
