//! A stage's measured window in the form in which stats judges it.

use std::collections::BTreeMap;

use plimsoll_model::interval::ClientCounts;
use plimsoll_model::outcome::OTHER_SEED;
use plimsoll_model::plan::{AgentLoss, ControllerSpec, Pacing, TargetSpec, Workload, suite};
use plimsoll_model::summary::LatencySummary;
use plimsoll_model::{Finding, Level, OpKind, Outcome, Series, SeriesCounts};
use plimsoll_stats::judge::{
    AGENT_LOST, AgentLost, AgentStart, ClientSeen, StageSeen, SumSeen, WorkloadSeen, judge,
};
use plimsoll_stats::validity::{Facts, Turns};
use plimsoll_store::stream::FRAME_SPAN_NS;
use plimsoll_store::{RunData, StageData, Totals};

use super::agents::{self, AgentPart, Done};
use super::asked::{backs_off, nominal_size, offered_per_s, paused_share, reads};
use super::ceiling::ceiling_for;
use super::line::{Line, is_taken_whole};
use super::part::horizon_s;
use super::reads::judge_reads;
use super::roll::{all_lost, start_skew_ns};
use super::{expired, law, unchecked};

/// The findings on one stage's window, and what the checks looked at. `limiter_known`: see [`StageSeen::limiter_known`].
pub fn judge_stage(
    data: &RunData,
    totals: &Totals,
    lines: &[Line<'_>],
    limiter_known: bool,
) -> (Vec<Finding>, Vec<Facts>) {
    let Some(stage) = data.stages.iter().find(|s| s.index == totals.window.stage) else {
        return Default::default();
    };
    let seen = StageSeen { limiter_known, ..stage_seen(data, stage, totals, lines) };
    let judged = judge(&seen);
    let mut findings = judged.findings;
    add_failures(stage, &mut findings);
    findings.extend(stage.report.findings.iter().cloned());
    findings.extend(unchecked::findings(data, stage));
    findings.extend(expired::findings(data, stage));
    findings.extend(all_lost(stage));
    findings.extend(judge_reads(data, stage));
    name_the_cell(stage, lines, &mut findings);
    let findings = losses_by_line(data, stage, lines, findings);
    (lateness_by_line(stage, lines, findings), judged.facts)
}

/// What a stage measured.
fn lines_of<'a>(stage: &StageData, lines: &'a [Line<'a>]) -> Vec<&'a Line<'a>> {
    let here = |l: &&Line<'_>| !l.together && l.is_in(stage.index) && l.is_load();
    lines.iter().filter(here).collect()
}

/// Of several stages, an agent that is lost in one may have been there in those before: of each its own lines are void, or qualified.
fn losses_by_line(
    data: &RunData,
    stage: &StageData,
    lines: &[Line<'_>],
    findings: Vec<Finding>,
) -> Vec<Finding> {
    let mine = lines_of(stage, lines);
    if data.stages.len() < 2 || mine.is_empty() {
        return findings;
    }
    on_each(&mine, findings, |f| f.name == AGENT_LOST)
}

/// Only what is sent at times of its own can be late: closed loops, beside it or in another stage, stand.
fn lateness_by_line(stage: &StageData, lines: &[Line<'_>], findings: Vec<Finding>) -> Vec<Finding> {
    let is_paced = |l: &&Line<'_>| {
        l.parts.iter().any(|p| p.stage.index == stage.index && p.offered_per_s(l.kind).is_some())
    };
    let paced: Vec<&Line<'_>> = lines_of(stage, lines).into_iter().filter(is_paced).collect();
    let all = lines.iter().filter(|l| !l.together && l.is_load()).count();
    if paced.is_empty() || paced.len() == all {
        return findings;
    }
    on_each(&paced, findings, |f| f.code == "V06")
}

/// What was said of no line is said of each of these.
fn on_each(lines: &[&Line<'_>], findings: Vec<Finding>, is_one: fn(&Finding) -> bool) -> Vec<Finding> {
    let (told, mut rest): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| f.workload.is_none() && is_one(f));
    rest.extend(told.iter().flat_map(|f| lines.iter().map(|l| f.clone().on(l.label()))));
    rest
}

/// Of several cells, what is wrong with a stage is wrong with all lines of its own cell: the others stand.
fn name_the_cell(stage: &StageData, lines: &[Line<'_>], findings: &mut [Finding]) {
    let mine = lines_of(stage, lines);
    let Some(first) = mine.first() else { return };
    let of_one_cell = mine.iter().all(|l| l.name == first.name);
    if stage.spec.cell.is_none() || lines.len() < 2 || !of_one_cell {
        return;
    }
    let cell = if mine.len() == 1 { first.label() } else { first.name.clone() };
    for f in findings.iter_mut().filter(|f| f.workload.is_none() && f.level == Level::Invalid) {
        f.workload = Some(cell.clone());
    }
}

fn stage_seen(data: &RunData, stage: &StageData, totals: &Totals, lines: &[Line<'_>]) -> StageSeen {
    let step_ns = data.step_ns;
    let dt_s = step_ns as f64 / 1e9;
    let (from, to) = (totals.window.from * data.grid_ns, totals.window.to * data.grid_ns);
    let targets: Vec<&TargetSpec> =
        stage.spec.workloads.iter().filter_map(|w| data.plan.target_of(w).ok()).map(|(_, t)| t).collect();
    let virtual_time = targets.iter().any(|t| matches!(t, TargetSpec::Sim(_)));
    let loopback = targets.iter().any(|t| is_loopback(t));
    let machine = Machine { virtual_time, loopback };
    let parts = agents::of_window(data, stage, totals);
    let clients = parts.iter().map(|p| client_seen(data, stage, totals, p, machine)).collect();
    // Syncs that belong to the writes (every n, or at the end) are no load of their own that could fail to come.
    let asked_for = |s: &&Series| {
        let spec = &stage.spec.workloads[usize::from(s.id.workload)];
        s.id.kind != OpKind::Fsync || spec.mix.contains_key(&OpKind::Fsync)
    };
    let option = in_flight_option(data, stage, &targets);
    let workloads = totals
        .series
        .iter()
        .filter(asked_for)
        .map(|s| workload_seen(data, stage, s, lines, (from, to), option))
        .collect();
    let sum = |l: &&Line<'_>| l.together && l.is_in(stage.index);
    let summed = |l: &Line<'_>| Some(SumSeen { op: l.kind?, name: l.name.clone(), rate: l.printed(data) });
    let sums = lines.iter().filter(sum).filter_map(summed).collect();
    StageSeen {
        dt_s,
        workloads,
        sums,
        clients,
        law: law::sums(data, stage, totals, totals.window.seconds(data.grid_ns)),
        horizon_s: horizon_s(stage),
        goal_s: data.plan.options.goal.map(|g| g.0.as_secs_f64()),
        max_error_rate: data.plan.options.max_error_rate,
        client_is_subject: targets.iter().all(|t| matches!(t, TargetSpec::Null)),
        loopback,
        in_flight_option: option,
        held_back: held_back(data, stage, &totals.client),
        ..StageSeen::default()
    }
}

/// Share of the time of all slots that had an op or paused for which they paused, where the load backs off.
fn held_back(data: &RunData, stage: &StageData, client: &ClientCounts) -> f64 {
    if !stage.spec.workloads.iter().any(|w| backs_off(data, w)) {
        return 0.0;
    }
    paused_share(client.paused_ns as f64, client.in_flight_ns as f64)
}

/// As the command has it that the plan came from.
fn in_flight_option(data: &RunData, stage: &StageData, targets: &[&TargetSpec]) -> Option<&'static str> {
    let is_file = |t: &&TargetSpec| matches!(t, TargetSpec::Block(_) | TargetSpec::Files(_));
    // A synchronous call is one in flight: only more jobs are more.
    let one_each = stage.ring == "psync";
    targets.iter().any(is_file).then(|| match data.plan.labels.get(suite::LABEL).map(String::as_str) {
        Some(suite::FILE) => "--threads",
        Some(suite::DRIVE) => "--ioperdrive",
        _ if stage.spec.workloads.iter().any(Workload::is_of_job_file) => match one_each {
            true => "--set numjobs=",
            false => IODEPTH_OF_A_JOB_FILE,
        },
        _ if one_each => "--jobs",
        _ => IODEPTH,
    })
}

/// Depths are those of each job; all other options count what is in flight in all.
const IODEPTH: &str = "--iodepth";
const IODEPTH_OF_A_JOB_FILE: &str = "--set iodepth=";

/// Where an agent works.
#[derive(Debug, Clone, Copy)]
struct Machine {
    /// Simulated workers wait for nothing: their busy share says nothing about their machine.
    virtual_time: bool,
    /// With the storage on the same machine its cores are busy for both; the workers' own share tells the client apart.
    loopback: bool,
}

fn client_seen(
    data: &RunData,
    stage: &StageData,
    totals: &Totals,
    part: &AgentPart<'_>,
    machine: Machine,
) -> ClientSeen {
    let Machine { virtual_time, loopback } = machine;
    let dt_s = data.step_ns as f64 / 1e9;
    let r = agents::resources_of(data, totals, part.agent, &part.client);
    let ceiling = ceiling_share(&part.agent.host.machine.ceiling, part, totals.window.seconds(data.grid_ns));
    let loads = || part.done.iter().filter(|d| agents::is_load(stage, d.id));
    // Of a closed loop no op can be late.
    let is_open = |d: &&Done| stage.spec.workloads[usize::from(d.id.workload)].pacing != Pacing::Closed;
    let mut client = ClientSeen {
        agent: part.agent.host.agent.clone(),
        workers: f64::from(part.workers),
        started: loads().filter(is_open).map(|d| d.counts.started).fold(0, u64::saturating_add) as f64,
        ok: loads().map(|d| d.counts.ok()).fold(0, u64::saturating_add) as f64,
        share_of_work: share_of_work(stage, part),
        lost: part.name.and_then(|_| lost(data, stage, totals, part)),
        start: part.name.filter(|_| !virtual_time).and_then(|_| start(stage, part)),
        busiest_core: r.busiest_core.filter(|_| !loopback && !virtual_time),
        others_cpu: r.others_cpu,
        own_cpu: r.own_cpu,
        nic_share: r.nic_share,
        quota: r.quota.filter(|_| !virtual_time),
        steal: r.steal,
        ceiling_share: ceiling.filter(|_| !virtual_time),
        ..ClientSeen::default()
    };
    for c in part.points {
        if !virtual_time {
            client.busy.push(c.busy_fraction().unwrap_or(0.0));
        }
        client.in_flight.push(c.in_flight_ns as f64 / 1e9 / dt_s);
        client.late_ops += c.late_ops as f64;
        client.turns.push(Turns {
            alive_s: c.alive_ns as f64 / 1e9,
            wait_s: c.run_wait_ns as f64 / 1e9,
            turns: c.cpu_turns as f64,
        });
    }
    client
}

/// How an agent's load began, beside when all were told to begin.
fn start(stage: &StageData, part: &AgentPart<'_>) -> Option<AgentStart> {
    let skew_ns = start_skew_ns(stage, part.stage)?;
    let warm_ns = stage.warmup_end_ns?.saturating_sub(stage.start_ns);
    Some(AgentStart {
        skew_s: skew_ns as f64 / 1e9,
        bound_s: part.agent.host.clock.map_or(0.0, |c| c.bound_ns as f64 / 1e9),
        warmup_s: warm_ns as f64 / 1e9,
    })
}

/// What agents that are to do the same have in common: ops in flight are divided over agents, the times of an open loop over their
/// workers.
fn share_of_work(stage: &StageData, part: &AgentPart<'_>) -> u32 {
    let closed = stage.spec.workloads.iter().all(|w| w.pacing == Pacing::Closed);
    if closed && part.slots > 0 { part.slots } else { part.workers }
}

/// Of one of several agents whose record ends before the window does: from when on nothing is known of it. Where all ends with the
/// end of the record (a run that was killed), a file may be two frames shorter than
/// another.
fn lost(data: &RunData, stage: &StageData, totals: &Totals, part: &AgentPart<'_>) -> Option<AgentLost> {
    let (from, end) = (totals.window.from * data.grid_ns, totals.window.to * data.grid_ns);
    // Of a stage that ends with the loss: to where the window was to go.
    let to = stage.cut.map_or(end, |c| c.stop_ns / data.grid_ns * data.grid_ns);
    let spared_ns = if stage.stop_ns.is_some() { 0 } else { 2 * FRAME_SPAN_NS.max(data.grid_ns) };
    let own = Some(part.stage).filter(|own| own.is_lost_before(to.saturating_sub(spared_ns)))?;
    let until = own.seen_until_ns();
    let missing_ns = to.saturating_sub(until);
    Some(AgentLost {
        at_s: until.saturating_sub(stage.start_ns) as f64 / 1e9,
        missing_s: missing_ns as f64 / 1e9,
        share: (missing_ns as f64 / (to - from).max(1) as f64).min(1.0),
        damaged: part.agent.damaged,
        shared_s: stage.cut.map(|_| end.saturating_sub(from) as f64 / 1e9),
        stands: stage.cut.is_some() && may_stand(data),
        all: stage.is_all_lost(),
    })
}

/// Whether a result for a part of the time is one. A search goes by what it saw in each step, after the loss, too; and the file benchmark
/// is of all of its work.
fn may_stand(data: &RunData) -> bool {
    let searches = matches!(
        data.plan.controller,
        Some(ControllerSpec::Limits { .. } | ControllerSpec::Saturation { .. })
    );
    data.plan.options.on_agent_loss == AgentLoss::Continue && !searches && !is_taken_whole(data)
}

/// Share of a machine's calibrated ceiling that its agent came to: the time that its completed ops would take at full speed,
/// each kind at its own size, over the time that its workers had. Attempts that were refused move no body and are no op that was
/// generated in full: they are held against nothing. `None` without a calibration that covers all its ops.
fn ceiling_share(ceiling: &BTreeMap<String, f64>, part: &AgentPart<'_>, window_s: f64) -> Option<f64> {
    if ceiling.is_empty() {
        return None;
    }
    let mut worker_s = 0.0;
    for d in part.done.iter().filter(|d| d.counts.ok() > 0) {
        let ok = d.counts.ok();
        worker_s += ok as f64 / ceiling_for(ceiling, d.id.kind, d.counts.bytes_ok / ok)?;
    }
    let had_s = window_s * f64::from(part.workers.max(1));
    (had_s > 0.0).then(|| worker_s / had_s)
}

fn workload_seen(
    data: &RunData,
    stage: &StageData,
    series: &Series,
    lines: &[Line<'_>],
    (from, to): (u64, u64),
    option: Option<&'static str>,
) -> WorkloadSeen {
    let spec = &stage.spec.workloads[usize::from(series.id.workload)];
    let is_mine = |l: &&Line<'_>| {
        l.kind == Some(series.id.kind)
            && !l.together
            && l.parts.iter().any(|p| p.stage.index == stage.index && p.workload == series.id.workload)
    };
    let points = stage.points(series.id, data.step_ns, from, to);
    let column = |f: &dyn Fn(&SeriesCounts) -> f64| points.iter().map(|p| f(&p.counts)).collect::<Vec<f64>>();
    let stage_mismatches = if stage.spec.workloads.len() == 1 && reads(series.id.kind) {
        stage.report.mismatch_count
    } else {
        0
    };
    let mismatches = series.counts.outcomes[Outcome::VerifyMismatch.index()].max(stage_mismatches);
    WorkloadSeen {
        name: lines.iter().find(is_mine).map_or_else(|| spec.name.clone(), |l| l.name.clone()),
        op: Some(series.id.kind),
        size_bytes: nominal_size(spec, Some(series.id.kind)),
        concurrency: spec.in_flight(),
        jobs: match option {
            Some(IODEPTH | IODEPTH_OF_A_JOB_FILE) => spec.jobs.unwrap_or(1),
            _ => 1,
        },
        offered_per_s: offered_per_s(spec, series.id.kind),
        rate: lines.iter().find(is_mine).and_then(|l| l.printed(data)),
        ok: column(&|c| c.ok() as f64),
        bytes_ok: column(&|c| c.bytes_ok as f64),
        bytes_moved: column(&|c| c.bytes_moved as f64),
        throttled: column(&|c| c.throttled() as f64),
        failed: column(&|c| c.failed() as f64),
        started: column(&|c| c.started as f64),
        response: LatencySummary::of(&series.response),
        service: series.service.as_ref().and_then(LatencySummary::of),
        first_byte: series.first_byte.as_ref().and_then(LatencySummary::of),
        verify_mismatches: (spec.verify || mismatches > 0).then_some(mismatches),
        of_another_seed: !stage.report.mismatches.is_empty()
            && stage.report.mismatches.iter().all(|m| m.contains(OTHER_SEED)),
    }
}

/// Storage on this same machine.
pub fn is_loopback(target: &TargetSpec) -> bool {
    let TargetSpec::S3(s3) = target else { return false };
    s3.endpoints.iter().any(|e| {
        let host = e.split("://").last().unwrap_or(e);
        e == "embedded"
            || host.starts_with("127.")
            || host.starts_with("localhost")
            || host.starts_with("[::1]")
            || host.starts_with("0.0.0.0")
    })
}

/// What the failures were, in words, beside their number.
fn add_failures(stage: &StageData, findings: &mut Vec<Finding>) {
    let report = &stage.report;
    let said = |(outcome, kind, text): &(String, String, String)| (format!("{kind} {outcome}"), text.clone());
    let throttled = |outcome: &str| Outcome::ALL.iter().any(|o| o.is_throttled() && o.name() == outcome);
    let failures: Vec<_> = report.failures.iter().filter(|f| !throttled(&f.0)).collect();
    if failures.is_empty() && report.mismatches.is_empty() {
        return;
    }
    let evidence: Vec<(String, String)> = failures.iter().map(|f| said(f)).collect();
    let mut told = false;
    for f in findings.iter_mut() {
        match f.name.as_str() {
            "error_rate" | "nothing_succeeded" => {
                let mine: Vec<_> =
                    failures.iter().filter(|failure| is_of(f, &failure.1)).map(|f| said(f)).collect();
                if let Some((what, text)) = mine.first() {
                    f.text.push_str(&format!(" The first: {what}: {}.", text.trim_end_matches('.')));
                }
                f.evidence.extend(mine);
                told = true;
            }
            "payload_mismatch" => {
                if let Some(first) = report.mismatches.first() {
                    f.text.push_str(&format!(" The first: {first}."));
                }
                f.evidence.extend(report.mismatches.iter().map(|m| ("block".to_owned(), m.clone())));
            }
            _ => {}
        }
    }
    if !told && !evidence.is_empty() {
        let (what, text) = &evidence[0];
        let sentence = format!("Some ops failed, but fewer than allowed. The first: {what}: {text}");
        let mut f = Finding::new("F03", "some_failed", Level::Info, sentence);
        f.evidence = evidence;
        findings.push(f);
    }
}

/// Whether a failure of `kind` belongs to a finding: the label of its workload ends with its op. A multipart upload fails
/// by its parts.
fn is_of(f: &Finding, kind: &str) -> bool {
    let op = f.workload.as_ref().and_then(|w| w.rsplit('/').next());
    op.is_none_or(|op| {
        op == kind || op == OpKind::Multipart.name() && kind == OpKind::UploadPart.name() || op == "total"
    })
}
