//! From a run's data to what may be said about it: its summary and its analysis.
//!
//! Pure, without files and clocks: any old run can be judged again, by newer methods, and a run that goes on as well as one
//! that has ended. Start at [`windows_of`] and [`judge`].

#![warn(missing_docs)]

mod advice;
pub mod against;
mod agents;
pub mod alike;
mod asked;
mod bottlenecks;
pub mod ceiling;
mod cells;
mod client_stops;
mod closed;
mod cost;
mod cycles;
pub mod exit;
mod expired;
mod holds;
mod imported;
mod law;
mod line;
mod load_points;
mod long_ops;
mod outages;
mod outcome;
mod part;
mod percentiles;
mod reads;
mod replay;
mod resources;
mod roll;
mod search;
mod seen;
mod servers;
mod shapes;
mod throttled;
mod unchecked;

use line::Line;
use plimsoll_control::NOTHING_ANSWERED;
use plimsoll_model::analysis::{self, LineSpan, Remark};
use plimsoll_model::plan::{ControllerSpec, planned_mark};
use plimsoll_model::{Analysis, Environment, Finding, Level, RunSummary, summary};
use plimsoll_stats::claims;
use plimsoll_stats::expect::Expect;
use plimsoll_stats::judge::CONCURRENCY_BOUND;
use plimsoll_stats::probe::{
    CHANGED_MEANWHILE, HELD_BACK, LIMIT_CAUSE, OPEN_QUESTION, PASSED_FOR, may_refuse_all, refused_after_s,
};
use plimsoll_stats::validity::{self, Facts};
use plimsoll_store::rundir::{AGENT_LOST, COST_BUDGET, GUARD};
use plimsoll_store::{RunData, Totals, Window};

pub use asked::nominal_size;
pub use cost::seen as cost_seen;
pub use outcome::{COST_BUDGET_REACHED, GUARD_REACHED, exit_code};
pub use servers::{background_work, server_resources};

/// Findings of a stage that spoil a search, too: errors, wrong data, stolen time, a lost agent, the same host.
const SPOILS_A_SEARCH: [&str; 7] = ["V01", "V02", "V22", "V24", "Q09", "F01", "F03"];

/// What has to be summed up of a run's series before it can be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Windows {
    /// The measured window of each stage that counts.
    pub measured: Vec<Window>,
    /// All that was done, of stages that end by work and of phases that are taken whole.
    pub whole: Vec<Window>,
}

/// The windows that [`judge`] is given the totals of.
pub fn windows_of(data: &RunData) -> Windows {
    let data = &*data.while_all_were_there();
    let measured = data
        .stages
        .iter()
        .filter(|s| s.void.is_none() && !cells::is_pilot(data, s))
        .filter_map(|s| s.window(data.grid_ns))
        .collect();
    let whole = data
        .stages
        .iter()
        .filter(|s| s.void.is_none() && (s.ended_by_work() || line::is_taken_whole(data)))
        .filter_map(|s| s.extent(data.grid_ns))
        .collect();
    Windows { measured, whole }
}

/// Judges a run: `totals` are those of the measured windows, `whole` those of whole stages (see [`windows_of`]), `altered` the
/// files that were changed after the run.
pub fn judge(
    data: &RunData,
    totals: &[Totals],
    whole: &[Totals],
    altered: &[String],
) -> (RunSummary, Analysis) {
    if let Some(lines) = &data.imported {
        return imported::judge(data, lines, altered);
    }
    let recorded = data;
    // Whatever is said of a stage is said of the time in which all of its agents were there.
    let data = &*data.while_all_were_there();
    let lines = line::lines_of(data, totals, whole);
    let mut findings = Vec::new();
    // The phases of a search are means to its end: only what spoils what it concludes is said of them.
    let searched = matches!(
        data.plan.controller,
        Some(ControllerSpec::Limits { .. } | ControllerSpec::Saturation { .. })
    );
    let concluded = replay::conclude(data, totals).unwrap_or_default();
    let limiter_known = may_refuse_all(&concluded.findings);
    let (mut outages, mut throttled) = outages::of_run(data);
    // A probe asks for more than it gets on purpose.
    if searched {
        throttled.clear();
    }
    outages::not_of_a_limiter(&mut outages, limiter_known, refused_after_s(&concluded.findings));
    let mut facts = Vec::new();
    for t in totals {
        let (mut of_stage, looked_at) = seen::judge_stage(data, t, &lines, limiter_known);
        // That no op took much longer than another cannot be said beside an outage: ops waited for its end.
        let was_down = outages.iter().any(|o| o.span.stage == t.window.stage);
        of_stage.retain(|f| !(was_down && f.name == CONCURRENCY_BOUND));
        // At a load point the client's own lag would be taken for the storage's.
        let timed = search::is_load_point(&lines, t.window.stage);
        let spoils = |f: &Finding| {
            SPOILS_A_SEARCH.contains(&f.code.as_str())
                || timed && f.code == "V06"
                // What the client's own quota allows is no answer of the storage's, at whatever step it was met.
                || f.name == validity::CPU_QUOTA
        };
        // The figure of a line with repeats is over them: how wide one repeat's own interval is says nothing of it.
        let of_one_repeat = |f: &Finding| {
            let repeated = |l: &Line<'_>| l.parts.len() > 1 && f.workload.as_ref() == Some(&l.label());
            ["wide_interval", "no_rate"].contains(&f.name.as_str()) && lines.iter().any(repeated)
        };
        findings.extend(of_stage.into_iter().filter(|f| (!searched || spoils(f)) && !of_one_repeat(f)));
        facts.extend(looked_at.into_iter().map(|f| if searched { of_a_search(f, timed) } else { f }));
    }
    if !searched {
        let repeats: Vec<Facts> = lines.iter().filter_map(|l| repeat_facts(data, l)).collect();
        findings.extend(repeats.iter().flat_map(validity::check_all));
        facts.extend(repeats);
    }
    search::confine(&mut findings, &lines, &data.plan);
    let mut findings = merge_repeats(findings);
    let whole = run_facts(data, altered);
    findings.extend(run_findings(data, totals, &whole));
    findings.extend(closed::finding(&data.plan, totals));
    let observed = servers::of_run(data, totals);
    if let Some((_, of_servers)) = &observed {
        findings.extend(of_servers.iter().cloned());
    }
    facts.push(whole);
    // A probe drains and rests on purpose: its own conclusion stands for its series.
    let probed = !concluded.limits.is_empty();
    let held = |i: usize| holds::of_line(i, &lines, data, throttled::meanwhile(&throttled, &lines[i]));
    let held: Vec<holds::Held> = (0..lines.len()).filter(|_| !probed).filter_map(held).collect();
    findings.extend(held.iter().flat_map(|h| h.findings.clone()));
    facts.extend(held.iter().map(holds::Held::facts));
    findings.extend(lines.iter().filter_map(|l| cycles::fall(data, l)));
    // What fails is not delayed, nor held to a rate: of a load most of which failed no evidence of a limit is told.
    let failed = findings.iter().any(|f| f.code == "V01" && f.level == Level::Invalid);
    let passed = concluded.findings.iter().any(|f| f.name == HELD_BACK && f.text.contains(PASSED_FOR));
    let changed =
        concluded.findings.iter().find(|f| f.name == OPEN_QUESTION && f.text.contains(CHANGED_MEANWHILE));
    let silent = concluded.findings.iter().any(|f| f.name == NOTHING_ANSWERED);
    let away = outcome::away(silent, outages.iter().any(|o| o.span.to_s.is_none()));
    findings.extend(outcome::limits_open(&concluded.limits, passed, changed.map(|f| f.text.as_str()), away));
    findings.extend(concluded.findings.into_iter().filter(|f| !(failed && f.name == LIMIT_CAUSE)));
    outages::explain(&mut findings, &outages, &lines);
    findings.extend(replay::drops(data, totals));
    findings.extend(throttled::findings(data, &throttled, &lines));
    findings.extend(outages::findings(data, &outages, &lines, searched));
    findings.extend(outages::unanswered(data));
    findings.extend(client_stops::findings(data, &lines, searched));
    let mut workloads: Vec<_> = lines.iter().map(|l| l.summary(data)).collect();
    let mut saturations = concluded.saturations;
    servers::with_ceilings(&mut saturations, data);
    search::with_limits(&mut saturations, &lines, observed.as_ref().map(|(servers, _)| servers));
    search::apply(&lines, &mut workloads, &saturations);
    let machines: Vec<String> = data
        .environment
        .agent_hosts()
        .into_iter()
        .map(|h| h.machine.host)
        .filter(|h| !h.is_empty())
        .collect();
    findings.extend(against::findings(&data.plan.labels, &machines, &lines, &workloads));
    search::confine(&mut findings, &lines, &data.plan);
    // Searches of several ops stand beside each other as the cells of a sweep do; one alone is one answer.
    let several = search::is_of_several(&data.plan);
    let cells = search::cells(&lines, searched, several);
    if !searched {
        findings.extend(outcome::no_figure(&workloads, &findings));
    }
    let was_out = |l: &Line<'_>| outages.iter().any(|o| l.is_in(o.span.stage));
    throttled::explain(&mut findings, &throttled, &lines, was_out);
    servers::explain(&mut findings, totals);
    if matches!(data.plan.controller, Some(ControllerSpec::Watch { .. })) {
        holds::answer_of_watch(&held, &lines, &mut findings);
    }
    holds::answer_of_shape(&held, &lines, &mut findings);
    cycles::answer(&mut findings);
    // The cause before what follows from it: load that nobody is there to give is also too little, or late.
    let follows = |f: &Finding| f.code != "V24";
    findings.sort_by(|a, b| {
        let by_cause = b.level.cmp(&a.level).then(follows(a).cmp(&follows(b)));
        by_cause.then(a.code.cmp(&b.code)).then(a.workload.cmp(&b.workload))
    });
    let mut summary = RunSummary {
        schema: summary::SCHEMA.into(),
        id: data.id.clone(),
        findings,
        remarks: remarks(data),
        workloads,
        agents: roll::summaries(data, totals),
        limits: concluded.limits.into_iter().chain(held.iter().filter_map(|h| h.limit.clone())).collect(),
        servers: observed.map(|(servers, _)| servers),
        labels: data.plan.labels.clone(),
        rerun: data.rerun.clone(),
        environment: Environment { findings: Vec::new(), ..data.environment.clone() },
        ..RunSummary::default()
    };
    throttled::of_servers_that_were_away(&mut summary);
    let one_answer = searched && !several;
    let answered = validity::is_run_valid(&summary.findings, &cells, !one_answer);
    summary.settle(answered, one_answer);
    claims::bind_to_counters(&mut summary);
    let size_models = cells::models(data, &lines, &summary);
    cells::drop_what_a_cap_explains(&mut summary.findings, &summary.workloads, &size_models);
    servers::drop_what_a_ceiling_explains(&mut summary);
    servers::drop_the_next_step_of_a_met_rate(&mut summary);
    // A promise that cannot be read was refused before the run began.
    search::mark_void(&mut saturations, &summary.findings, &data.plan);
    let promised = search::of_the_best(&summary, &lines, &saturations);
    let promised = promised.as_ref().unwrap_or(&summary);
    summary.expectations =
        data.plan.expect.iter().filter_map(|t| Some(t.parse::<Expect>().ok()?.check(promised))).collect();
    let of_shapes: Vec<String> = held.iter().flat_map(|h| h.advice.clone()).collect();
    let spans = lines.iter().enumerate().flat_map(|(i, l)| l.spans(i, data)).collect::<Vec<LineSpan>>();
    let bottlenecks = bottlenecks::of_run(data, totals, &summary, &saturations);
    let mut analysis = Analysis {
        schema: analysis::SCHEMA.into(),
        spans,
        outages,
        throttled: throttled.into_iter().flat_map(|t| t.spans).collect(),
        remarks: summary.remarks.clone(),
        saturations,
        advice: concluded.advice,
        buckets: concluded.buckets.into_iter().chain(held.iter().filter_map(|h| h.bucket.clone())).collect(),
        holds: held.into_iter().map(|h| h.hold).collect(),
        size_models,
        bottlenecks,
        load_points: load_points::of_run(data, &lines, &summary.findings),
        checks: validity::table(&facts, &summary.findings),
        ..Analysis::default()
    };
    // A probe knows more of its limits than their figures say.
    if analysis.advice.is_empty() {
        analysis.advice = advice::of_run(&summary, &analysis, of_shapes);
    }
    let goal_s = data.plan.options.goal.map(|g| g.0.as_secs_f64());
    summary.cost = cost::of_run(recorded, &summary.workloads);
    summary.claims = claims::derive(&summary, &analysis, goal_s);
    summary.verdict = claims::paragraph(&summary.claims);
    debug_assert_eq!(claims::contradictions(&summary.claims, &summary), Vec::<String>::new());
    (summary, analysis)
}

/// What persons put on the time axis: planned events, counted from the first load on, and notes of `plimsoll mark`.
fn remarks(data: &RunData) -> Vec<Remark> {
    let load_s = data.stages.first().map_or(0.0, |s| s.start_ns as f64 / 1e9);
    let planned = data.plan.options.mark_at.iter().filter_map(|t| planned_mark(t).ok());
    let mut all: Vec<Remark> = planned
        .map(|(after, text)| Remark { at_s: load_s + after.as_secs_f64(), text, planned: true })
        .chain(data.remarks.iter().cloned())
        .collect();
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

/// A line's repeats, for the trend over them and how many there were.
fn repeat_facts(data: &RunData, line: &Line<'_>) -> Option<Facts> {
    let expected = line.parts.iter().any(|p| p.stage.spec.cell.is_some());
    (expected && line.is_load()).then(|| Facts {
        workload: Some(line.label()),
        relative_half_width: line.half_width_of_runs(data),
        repeats: line.run_means(data),
        repeats_expected: true,
        ..Facts::default()
    })
}

/// Of what was looked at in a step of a search, the part that is judged: what spoils a search.
fn of_a_search(f: Facts, timed: bool) -> Facts {
    Facts {
        workload: f.workload,
        agent: f.agent,
        attempts: f.attempts,
        failed: f.failed,
        max_error_rate: f.max_error_rate,
        verify_mismatches: f.verify_mismatches,
        of_another_seed: f.of_another_seed,
        refused_share: f.refused_share,
        refused_slices: f.refused_slices,
        client_busy: f.client_busy,
        client_core: f.client_core,
        cpu_wait: f.cpu_wait,
        cpu_quota: f.cpu_quota,
        client_nic: f.client_nic,
        ceiling_share: f.ceiling_share,
        steal: f.steal,
        loopback: f.loopback,
        late_share: f.late_share.filter(|_| timed),
        ..Facts::default()
    }
}

fn run_facts(data: &RunData, altered: &[String]) -> Facts {
    Facts { sealed_hash_matches: data.end.is_some().then_some(altered.is_empty()), ..Facts::default() }
}

/// One finding per code, workload and agent: with repeats, the worst one, which says how often it was found.
fn merge_repeats(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<(Finding, u32)> = Vec::new();
    for f in findings {
        let same = |g: &Finding| {
            (&g.code, &g.name, &g.workload, &g.agent) == (&f.code, &f.name, &f.workload, &f.agent)
        };
        match merged.iter_mut().find(|(g, _)| same(g)) {
            Some((g, times)) => {
                *times += 1;
                if f.off_by() > g.off_by() {
                    *g = f;
                }
            }
            None => merged.push((f, 1)),
        }
    }
    let finish = |(mut f, times): (Finding, u32)| {
        if times > 1 {
            f.evidence.push(("found in repeats".into(), times.to_string()));
        }
        f
    };
    merged.into_iter().map(finish).collect()
}

/// Records that this version does not know.
fn unread(data: &RunData) -> Option<Finding> {
    if data.skipped.is_empty() {
        return None;
    }
    let (level, then) = if data.skipped.has_figures() {
        (
            Level::Qualified,
            "These figures do not include them: read the run with the plimsoll version that wrote it, or a newer one.",
        )
    } else {
        (Level::Info, "No figure depends on them.")
    };
    let text = format!(
        "This version does not know {} record(s) of the run ({}); they were skipped, and stay in the files. {then}",
        data.skipped.count(),
        data.skipped
    );
    Some(Finding::new("F16", "unread_records", level, text))
}

/// What concerns the run as a whole: how it ended, and whether its files are whole.
fn run_findings(data: &RunData, totals: &[Totals], facts: &Facts) -> Vec<Finding> {
    let mut out = validity::check_all(facts);
    for damage in &data.damage {
        let text =
            format!("A file of the run is damaged: {damage}. Data after that point is not in these figures.");
        out.push(Finding::new("F10", "damaged_file", Level::Qualified, text));
    }
    out.extend(unread(data));
    out.extend(roll::findings(data, totals));
    out.extend(data.environment.findings.iter().cloned());
    match data.end.as_deref() {
        None if data.running => {
            let text = "The run goes on: this is what can be said so far.";
            out.push(Finding::new("F34", "so_far", Level::Info, text));
        }
        None => {
            let text = format!(
                "The run was killed before its end; these figures cover what had been recorded. To continue it: plimsoll run --resume {}.",
                data.id
            );
            out.push(Finding::new("F11", "unfinished", Level::Qualified, text));
        }
        Some("done") => {}
        Some(AGENT_LOST) if data.stages.iter().any(|s| s.void.is_none() && s.is_all_lost()) => {
            let text = "The run ended with the loss of its last agent; nothing was measured after that.";
            out.push(Finding::new("F11", "ended_by_loss", Level::Qualified, text));
        }
        Some(AGENT_LOST) => {
            let text = "The run was ended when an agent was lost, as --on-agent-loss stop asks; nothing was measured \
                        after that.";
            out.push(Finding::new("F11", "ended_by_loss", Level::Qualified, text));
        }
        // Its own finding says what was spent.
        Some(COST_BUDGET | GUARD) => {}
        Some("interrupted") => {
            let text = "The run was interrupted; these figures cover what had been measured until then.";
            out.push(Finding::new("F11", "interrupted", Level::Qualified, text));
        }
        Some(other) => {
            out.push(Finding::new(
                "F12",
                "failed",
                Level::Invalid,
                format!("The run did not end as planned: {other}."),
            ));
        }
    }
    for s in data.stages.iter().filter(|s| s.void.is_none() && !cells::is_pilot(data, s)) {
        // One that has not ended may still get there.
        let goes_on = data.running && s.end_ns.is_none();
        if !goes_on && totals.iter().all(|t| t.window.stage != s.index) {
            if let Some(lost) = roll::all_lost(s) {
                out.push(lost);
                continue;
            }
            let when = if s.warmup_end_ns.is_none() { "in its warm-up" } else { "within one time slice" };
            let why = match s.stop_reason.as_deref() {
                Some("ops" | "bytes") => {
                    "It ran out of work: raise --max-ops, --max-bytes or (for deletes) --objects, or shorten the warm-up."
                }
                _ => "Shorten the warm-up, or run longer.",
            };
            let text = format!("Stage {} has no measured window: it ended {when}. {why}", s.index + 1);
            out.push(Finding::new("V04", "no_window", Level::Invalid, text));
        }
    }
    // Where a budget ended before the first stage its own finding says so, with the budget that would do.
    let never_begun = data.stages.is_empty() && data.end.as_deref() == Some("done");
    if never_begun {
        return out;
    }
    if data.stages.iter().all(|s| s.void.is_some()) {
        let text = "No stage was measured to its end.";
        out.push(Finding::new("V04", "nothing_measured", Level::Invalid, text));
    } else if data.stages.iter().all(|s| s.void.is_some() || cells::is_pilot(data, s)) {
        let text = "The pilot of the sweep saw no rate, so there were no cells to measure. Try one size first \
                    (plimsoll object put).";
        out.push(Finding::new("V04", "nothing_measured", Level::Invalid, text));
    }
    out
}
