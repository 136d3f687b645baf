//! The client agent by agent: each is held against the checks of a client by itself, and those with the same share of the work
//! against each other.

use std::collections::BTreeMap;

use plimsoll_model::{Finding, Level};

use super::{AgentLost, AgentStart, ClientSeen, StageSeen, is_open};
use crate::math;
use crate::validity::{self, Facts, percent};

/// What one agent's workers and machine show, beside what is known of the stage.
pub fn with_client(of_stage: Facts, c: &ClientSeen, open: bool, started: f64) -> Facts {
    Facts {
        late_share: (open && started > 0.0).then(|| c.late_ops / started),
        sent: (open && started > 0.0).then_some(started),
        client_busy: c.mean_busy(),
        client_core: c.busiest_core,
        cpu_wait: validity::cpu_wait(&c.turns, c.workers, c.others_cpu, c.own_cpu),
        cpu_quota: c.quota,
        client_nic: c.nic_share,
        ceiling_share: c.ceiling_share,
        steal: c.steal,
        ..of_stage
    }
}

/// The facts of each of several agents; one that is alone is the stage's client.
pub fn facts(stage: &StageSeen, whole: &Facts) -> Vec<Facts> {
    if stage.clients.len() < 2 {
        return Vec::new();
    }
    let of = |c: &ClientSeen| {
        let beside = Facts {
            agent: Some(c.agent.clone()),
            client_is_subject: whole.client_is_subject,
            refused_share: whole.refused_share,
            refused_slices: whole.refused_slices,
            loopback: whole.loopback,
            ..Facts::default()
        };
        with_client(beside, c, is_open(stage), c.started)
    };
    stage.clients.iter().map(of).collect()
}

/// What is to be said of single agents. `facts`: those of [`facts`].
pub fn findings(stage: &StageSeen, facts: &[Facts]) -> Vec<Finding> {
    let told: Vec<Vec<Finding>> = facts.iter().map(validity::check_agent).collect();
    let mut out = Vec::new();
    if !facts.is_empty() {
        out.extend(stage.clients.iter().filter_map(|c| Some(lost(c.lost.as_ref()?, &c.agent))));
        out.extend(stage.clients.iter().filter_map(|c| late_start(c.start.as_ref()?, &c.agent)));
        out.extend(stragglers(&stage.clients, facts, &told));
    }
    out.extend(told.into_iter().flatten());
    few(out)
}

/// What a start may be late by beyond what the agent's clock may be off by, seconds (a choice: the tolerance of a late op, and a tenth of a
/// slice).
const LATE_START_S: f64 = 0.010;

/// All are told to begin at one time. In the warm-up one that comes late costs nothing; beyond it a part of its share is missing.
fn late_start(s: &AgentStart, agent: &str) -> Option<Finding> {
    let allowed_s = s.bound_s + LATE_START_S;
    if s.skew_s <= allowed_s {
        return None;
    }
    let (level, then) = match s.skew_s - s.warmup_s {
        missing if missing > 0.0 => (
            Level::Qualified,
            format!(
                "The measured window had begun {:.0} ms before, so a part of its share is missing. Use a longer --warmup, \
                 and look at what keeps its machine busy.",
                missing * 1e3
            ),
        ),
        _ => (Level::Info, "The warm-up had not ended, so no figure is affected.".to_owned()),
    };
    let text = format!(
        "Its load began {:.1} ms later than all agents were told to; its clock is known to {:.2} ms, and {:.0} ms more are \
         allowed. {then}",
        s.skew_s * 1e3,
        s.bound_s * 1e3,
        LATE_START_S * 1e3
    );
    let f = Finding::new("Q15", "late_start", level, text).measured(s.skew_s, allowed_s);
    Some(f.of_agent(Some(agent)))
}

/// Name of what is said of an agent that was lost.
pub const AGENT_LOST: &str = "agent_lost";

/// Totals hold for the time in which all agents were there.
fn lost(l: &AgentLost, agent: &str) -> Finding {
    let damaged = if l.damaged { " (its file is damaged)" } else { "" };
    let again = "Measure again, with all agents or without this one";
    let then = match l.shared_s {
        _ if l.all => "All others were lost, too.".to_owned(),
        None => format!("Its share is missing from the totals. {again}."),
        Some(s) if l.stands => format!(
            "The figures are of the {s:.1} s of the window in which all agents were there; what came after is in the \
             record and in no figure."
        ),
        Some(s) => format!(
            "The figures are of the {s:.1} s of the window in which all agents were there, and not of the time that was \
             asked for. {again}, or with --on-agent-loss continue, where a result for the time before a loss will do."
        ),
    };
    let text = format!(
        "It was lost: its record ends {:.1} s after the load began{damaged}, {:.1} s before the end of the measured \
         window. {then}",
        l.at_s, l.missing_s
    );
    let level = if l.stands && !l.all { Level::Qualified } else { Level::Invalid };
    Finding::new("V24", AGENT_LOST, level, text).measured(l.share, 0.0).of_agent(Some(agent))
}

/// Share of the median of its like below which an agent is a straggler (a choice: what makes a sum of eight a tenth of an agent less).
const STRAGGLES: f64 = 0.80;
/// What counts differ by that come about by chance, in square roots of the median (guess: three standard deviations of two counts).
const BY_CHANCE: f64 = 4.2;

/// Where the cause of a small part is looked for: what held the client, then what was taken from it, then what came of either.
const CAUSES: [&str; 3] = ["V07", "V22", "V06"];

/// The first of an agent's own findings that may be why it did less. What concerns only the highest percentiles is none.
fn cause(told: &[Finding]) -> Option<&Finding> {
    let of = |code: &&str| told.iter().find(|f| f.code == **code && f.level > Level::Info);
    CAUSES.iter().find_map(of)
}

/// What that finding comes to, in a few words. `facts`: what it was found in.
fn in_words(f: &Finding, facts: &Facts) -> String {
    // In the order in which the check looks at them: the first that has the figure is what was at its limit.
    let full = [
        (facts.client_busy, "its workers were busy", "of their time"),
        (facts.client_core, "it kept a core busy for", "of its time"),
        (facts.client_nic, "its network interface ran at", "of its speed"),
        (facts.ceiling_share, "it reached", "of the most that its machine can generate"),
    ];
    let at_its_limit = || full.iter().find(|(v, ..)| v.is_some() && *v == f.measured);
    match (f.name.as_str(), at_its_limit()) {
        ("client_bound", Some((Some(v), what, of))) => format!("{what} {} {of}", percent(*v)),
        ("cpu_taken", _) => "other processes on its machine took its CPU".into(),
        ("cpu_quota", _) => "its CPU quota stopped it".into(),
        ("steal", _) => "the hypervisor took its CPU time".into(),
        ("schedule_lag", _) => "it sent ops late".into(),
        _ => "its machine".into(),
    }
}

/// Agents that did less than those with the same share of the work, with what may be the cause. `told`: what is said of each, from
/// its `facts`.
fn stragglers(clients: &[ClientSeen], facts: &[Facts], told: &[Vec<Finding>]) -> Vec<Finding> {
    let mut alike: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    // What a lost one did is not to be compared; that it is lost is said.
    for (i, c) in clients.iter().enumerate().filter(|(_, c)| c.lost.is_none()) {
        alike.entry(c.share_of_work).or_default().push(i);
    }
    let mut out = Vec::new();
    for group in alike.values().filter(|g| g.len() > 1) {
        let ok: Vec<f64> = group.iter().map(|i| clients[*i].ok).collect();
        let median = math::median(&ok);
        let straggles =
            |c: &ClientSeen| c.ok < STRAGGLES * median && median - c.ok > BY_CHANCE * median.sqrt();
        for i in group.iter().copied().filter(|i| straggles(&clients[*i])) {
            let c = &clients[i];
            let share = c.ok / median;
            let (because, remedy) = match cause(&told[i]) {
                Some(f) => (
                    format!("likely cause: {} ({} {})", in_words(f, &facts[i]), f.code, f.name),
                    String::new(),
                ),
                None => (
                    "the cause is not known".to_owned(),
                    " Compare its machine and its network path to the storage with theirs.".to_owned(),
                ),
            };
            // The first sentence is all that the short form has room for.
            let text = format!(
                "{} of the median; {because}. It did {:.0} ops in the measured window, the median of the {} agents with \
                 the same share of the work is {:.0}, and at least {} of that is expected.{remedy}",
                percent(share),
                c.ok,
                group.len(),
                median,
                percent(STRAGGLES)
            );
            let f = Finding::new("Q14", "straggler", Level::Qualified, text).measured(share, STRAGGLES);
            out.push(f.of_agent(Some(&c.agent)));
        }
    }
    out
}

/// Agents that are named with the same fault: the worst of them. Of a thousand that are all full nobody reads a thousand sentences.
const MOST_NAMED: usize = 8;

fn few(findings: Vec<Finding>) -> Vec<Finding> {
    let mut alike: BTreeMap<(String, String), Vec<Finding>> = BTreeMap::new();
    for f in findings {
        alike.entry((f.code.clone(), f.name.clone())).or_default().push(f);
    }
    for group in alike.values_mut() {
        group.sort_by(|a, b| b.level.cmp(&a.level).then(b.off_by().total_cmp(&a.off_by())));
        let more = group.len().saturating_sub(MOST_NAMED);
        group.truncate(MOST_NAMED);
        if let Some(worst) = group.first_mut().filter(|_| more > 0) {
            worst.evidence.push(("more agents with the same finding".into(), more.to_string()));
        }
    }
    alike.into_values().flatten().collect()
}
