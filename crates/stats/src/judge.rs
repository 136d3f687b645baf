//! The judging entry: a measured stage to rates with intervals, Little's law, and findings.
//!
//! The caller fills [`StageSeen`] from a run's intervals (window already cut: warm-up, tail and the first and last
//! slice are out), and gets [`StageJudged`]. Nothing here reads a file; the same series gives the same verdict.

use plimsoll_model::summary::{LatencySummary, LittlesLaw};
use plimsoll_model::{Estimate, Finding, Interval, Level, OpKind, SeriesId, Verdict};

use crate::littles_law::{self, LittlesLawCheck, Sums};
use crate::validity::{self, Facts, LittlesLawFact, QuotaUse, Turns};
use crate::{math, rate};

mod agents;
pub use agents::AGENT_LOST;

/// One op kind of one workload in the measured window: counts per slice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkloadSeen {
    /// As the plan names it.
    pub name: String,
    /// `None`: all kinds together.
    pub op: Option<OpKind>,
    /// Nominal size; 0 where bytes mean nothing.
    pub size_bytes: u64,
    /// Ops in flight that were asked for, over the whole workload.
    pub concurrency: u32,
    /// Jobs to each of which the option that sets the ops in flight applies; 0 or 1: it sets the workload's.
    pub jobs: u32,
    /// Open loop: rate that was offered to this op kind, per second.
    pub offered_per_s: Option<f64>,
    /// The rate of the line as it is printed, ops per second; absent: it is made of `ok`.
    pub rate: Option<Estimate>,
    /// Ops that ended `Ok`, per slice.
    pub ok: Vec<f64>,
    /// Payload bytes of these.
    pub bytes_ok: Vec<f64>,
    /// Payload bytes as they moved, of all attempts: smoother than completions when ops are long.
    pub bytes_moved: Vec<f64>,
    /// 429 and 503 SlowDown.
    pub throttled: Vec<f64>,
    /// Ended neither `Ok` nor throttled, per slice.
    pub failed: Vec<f64>,
    /// Ops that began, per slice.
    pub started: Vec<f64>,
    /// From the intended start; in a closed loop the same as `service`.
    pub response: Option<LatencySummary>,
    /// From submission.
    pub service: Option<LatencySummary>,
    /// Of downloads: until the first byte of the answer.
    pub first_byte: Option<LatencySummary>,
    /// Absent: nothing was verified.
    pub verify_mismatches: Option<u64>,
    /// Every mismatch that was looked at was a sound block of another seed.
    pub of_another_seed: bool,
}

/// What the workers of one agent did, per slice, over all workloads of the stage, and what is known of its machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientSeen {
    /// Its name; of one that is alone nobody is told.
    pub agent: String,
    /// Share of time in which workers did not wait.
    pub busy: Vec<f64>,
    /// Mean ops in flight.
    pub in_flight: Vec<f64>,
    /// Sent later than intended because the client was busy; of all workers.
    pub late_ops: f64,
    /// What the workers waited for a CPU, per slice; empty: not known.
    pub turns: Vec<Turns>,
    /// How many there were.
    pub workers: f64,
    /// Ops that it began in the window, of all loads.
    pub started: f64,
    /// Of them (and of those before) that ended `Ok` in it.
    pub ok: f64,
    /// Ops in flight that it was given: of several agents those with the same share are compared.
    pub share_of_work: u32,
    /// Its record ends before the window does.
    pub lost: Option<AgentLost>,
    /// How its load began. Absent: not recorded, or there is nobody to begin with.
    pub start: Option<AgentStart>,
    /// Shares of its machine's CPU time that other work, and this process, used.
    pub others_cpu: Option<f64>,
    /// 0 to 1.
    pub own_cpu: Option<f64>,
    /// Absent: none is set.
    pub quota: Option<QuotaUse>,
    /// Most that the client used of a core, share of the network interface, of the calibrated ceiling, steal: 0 to 1 where known.
    pub busiest_core: Option<f64>,
    /// Share of its speed.
    pub nic_share: Option<f64>,
    /// What was moved, over what this machine moves against nothing.
    pub ceiling_share: Option<f64>,
    /// Share of the CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
}

/// When an agent's load began, beside when it was told to. Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentStart {
    /// Later than it was told.
    pub skew_s: f64,
    /// What its clock may be off by.
    pub bound_s: f64,
    /// Length of the warm-up.
    pub warmup_s: f64,
}

/// An agent of which nothing is known from some time of the window on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentLost {
    /// When its record ends, seconds since the load began.
    pub at_s: f64,
    /// From then to the end of the window.
    pub missing_s: f64,
    /// The part of the window that this is, 0 to 1.
    pub share: f64,
    /// Its file cannot be read to its end: what it did then may have been recorded.
    pub damaged: bool,
    /// How much of the window had all agents in it, and is what the figures are of. Absent: they are of the whole window.
    pub shared_s: Option<f64>,
    /// A result for that time is what was asked for.
    pub stands: bool,
    /// So were all others: of the stage nothing stands.
    pub all: bool,
}

/// What several workloads of one kind did together.
#[derive(Debug, Clone, PartialEq)]
pub struct SumSeen {
    /// What is summed up.
    pub op: OpKind,
    /// For findings: the workloads' names, or what they have in common.
    pub name: String,
    /// As it is printed; absent: it is made of the workloads' slices.
    pub rate: Option<Estimate>,
}

/// One stage as it was seen. `dt_s` is the slice of all series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageSeen {
    /// Seconds.
    pub dt_s: f64,
    /// One for each workload and op kind.
    pub workloads: Vec<WorkloadSeen>,
    /// Op kinds of which several workloads are summed up: how exactly the sum is known counts, and not how exactly each part is.
    pub sums: Vec<SumSeen>,
    /// Agent by agent: one that is full would not be seen in their sum.
    pub clients: Vec<ClientSeen>,
    /// For Little's law; absent where a side of it is not known.
    pub law: Option<Sums>,
    /// How long the load ran, warm-up included.
    pub horizon_s: f64,
    /// How long the result has to hold, as it was asked for.
    pub goal_s: Option<f64>,
    /// Share of attempts that may fail, 0 to 1.
    pub max_error_rate: f64,
    /// Calibration: a busy client is what is wanted.
    pub client_is_subject: bool,
    /// Storage on this machine.
    pub loopback: bool,
    /// It was proved that there is a limiter of which a load that does not hold back gets nothing.
    pub limiter_known: bool,
    /// Share of the time of its slots for which a load that backs off paused after refused attempts, 0 to 1.
    pub held_back: f64,
    /// The option of the command that sets the ops in flight (of each of [`WorkloadSeen::jobs`]); absent: --concurrency. Where it ends
    /// with `=`, its value follows at once.
    pub in_flight_option: Option<&'static str>,
}

/// What may be said about one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadJudged {
    /// As the plan names it.
    pub name: String,
    /// `None`: all kinds together.
    pub op: Option<OpKind>,
    /// Seconds that count: after the warm-up, before the stop.
    pub window_s: f64,
    /// Of what ended `Ok`.
    pub ops_per_s: Verdict<Estimate>,
    /// Payload of what ended `Ok`.
    pub bytes_per_s: Verdict<Estimate>,
    /// Throttled and failed ones among them.
    pub attempts_per_s: f64,
}

/// What may be said about one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageJudged {
    /// In the order in which they were handed in.
    pub workloads: Vec<WorkloadJudged>,
    /// Of the whole stage: in-flight ops are counted over all its workloads.
    pub littles_law: Option<LittlesLaw>,
    /// Of the busiest agent, the share of time in which its workers did not wait; absent: not known.
    pub busy_fraction: Option<f64>,
    /// Of all workloads, then of the stage; those that hold.
    pub findings: Vec<Finding>,
    /// What the checks looked at: of each workload, then of the stage, then of each of several agents.
    pub facts: Vec<Facts>,
}

impl StageJudged {
    /// No finding voids it.
    pub fn is_valid(&self) -> bool {
        validity::is_valid(&self.findings)
    }
}

impl WorkloadSeen {
    /// Cuts one series out of merged intervals; slices in which it is absent count as zero.
    pub fn from_intervals(name: &str, id: SeriesId, intervals: &[Interval]) -> Self {
        let mut w = Self { name: name.into(), op: Some(id.kind), ..Self::default() };
        for i in intervals {
            let s = i.get(id);
            let put = |v: &mut Vec<f64>, x: f64| v.push(x);
            put(&mut w.ok, s.map_or(0.0, |s| s.ok() as f64));
            put(&mut w.bytes_ok, s.map_or(0.0, |s| s.counts.bytes_ok as f64));
            put(&mut w.bytes_moved, s.map_or(0.0, |s| s.counts.bytes_moved as f64));
            put(&mut w.throttled, s.map_or(0.0, |s| s.throttled() as f64));
            put(&mut w.failed, s.map_or(0.0, |s| s.failed() as f64));
            put(&mut w.started, s.map_or(0.0, |s| s.counts.started as f64));
        }
        w
    }

    fn attempts(&self) -> f64 {
        total(&self.ok) + total(&self.throttled) + total(&self.failed)
    }
}

impl StageSeen {
    /// Whether the workload is a part of a sum.
    fn is_summed(&self, w: &WorkloadSeen) -> bool {
        self.sums.iter().any(|sum| w.op == Some(sum.op))
    }
}

impl ClientSeen {
    /// Share of the window in which its workers did not wait; absent where that is not known.
    pub fn mean_busy(&self) -> Option<f64> {
        (!self.busy.is_empty()).then(|| math::mean(&self.busy))
    }

    /// The workers' own counts, slice by slice.
    pub fn from_intervals(intervals: &[Interval], dt_s: f64) -> Self {
        let mut c = Self::default();
        for i in intervals {
            let k = &i.client;
            c.busy.push(k.busy_fraction().unwrap_or(0.0));
            c.in_flight.push(k.in_flight_ns as f64 / 1e9 / dt_s);
            c.late_ops += k.late_ops as f64;
        }
        c
    }
}

fn total(x: &[f64]) -> f64 {
    x.iter().sum()
}

/// Judges a stage: the rates of each workload, and every check that the data carries.
pub fn judge(stage: &StageSeen) -> StageJudged {
    let busy = stage.clients.iter().filter_map(ClientSeen::mean_busy).reduce(f64::max);
    let workloads: Vec<WorkloadJudged> = stage.workloads.iter().map(|w| judge_workload(stage, w)).collect();
    let law = stage.law.as_ref().and_then(LittlesLawCheck::of);
    let mut facts: Vec<Facts> =
        stage.workloads.iter().zip(&workloads).map(|(w, j)| workload_facts(stage, w, j)).collect();
    let mut findings = Vec::new();
    for ((w, j), f) in stage.workloads.iter().zip(&workloads).zip(&facts) {
        findings.extend(workload_findings(stage, w, j, f));
    }
    for sum in &stage.sums {
        let f = sum_facts(stage, sum);
        findings.extend(validity::check_all(&f));
        findings.extend(no_rate(&f));
        facts.push(f);
    }
    let whole = stage_facts(stage, law);
    findings.extend(validity::check_all(&whole));
    let each = agents::facts(stage, &whole);
    findings.extend(agents::findings(stage, &each));
    facts.push(whole);
    facts.extend(each);
    findings.extend(concurrency_finding(stage, busy));
    one_remedy(&mut findings);
    findings
        .sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(&b.code)).then(a.workload.cmp(&b.workload)));
    StageJudged { workloads, littles_law: law.map(|l| l.summary()), busy_fraction: busy, findings, facts }
}

/// A rate whose interval carries no figure is no wide one: what is to be done is said once of it.
fn one_remedy(findings: &mut Vec<Finding>) {
    let none: Vec<Option<String>> =
        findings.iter().filter(|f| f.name == "no_rate").map(|f| f.workload.clone()).collect();
    findings.retain(|f| f.name != "wide_interval" || !none.contains(&f.workload));
}

fn judge_workload(stage: &StageSeen, w: &WorkloadSeen) -> WorkloadJudged {
    let window_s = w.ok.len() as f64 * stage.dt_s;
    let moves = w.op.is_none_or(OpKind::moves_bytes);
    WorkloadJudged {
        name: w.name.clone(),
        op: w.op,
        window_s,
        ops_per_s: w.rate.map_or_else(|| rate::estimate(&w.ok, stage.dt_s), Verdict::Known),
        bytes_per_s: if moves {
            rate::estimate(&w.bytes_ok, stage.dt_s)
        } else {
            Verdict::Inconclusive("this op moves no bytes that count".into())
        },
        attempts_per_s: if window_s > 0.0 { w.attempts() / window_s } else { 0.0 },
    }
}

fn label_of(w: &WorkloadSeen) -> String {
    match w.op {
        Some(op) if op.name() != w.name => format!("{}/{}", w.name, op.name()),
        _ => w.name.clone(),
    }
}

fn workload_facts(stage: &StageSeen, w: &WorkloadSeen, j: &WorkloadJudged) -> Facts {
    Facts {
        workload: Some(label_of(w)),
        attempts: Some(w.attempts()),
        failed: Some(total(&w.failed)),
        max_error_rate: Some(stage.max_error_rate),
        verify_mismatches: w.verify_mismatches,
        of_another_seed: w.of_another_seed,
        offered_per_s: w.offered_per_s,
        achieved_per_s: Some(j.attempts_per_s),
        in_flight_option: stage.in_flight_option,
        held_back: Some(stage.held_back).filter(|h| *h > 0.0),
        relative_half_width: (!stage.is_summed(w)).then(|| half_width(&j.ops_per_s)).flatten(),
        ..Facts::default()
    }
}

fn half_width(rate: &Verdict<Estimate>) -> Option<f64> {
    rate.known().filter(|e| e.value > 0.0).map(Estimate::relative_half_width)
}

/// Relative half width from which on an interval carries no figure: what a claim refuses (its ends lie
/// [`plimsoll_model::claim::SPREAD`] apart) is no rate of a line either.
const NO_RATE: f64 = (plimsoll_model::claim::SPREAD - 1.0) / (plimsoll_model::claim::SPREAD + 1.0);

/// How exactly the sum of a kind's workloads is known; all else is said of the parts.
fn sum_facts(stage: &StageSeen, of: &SumSeen) -> Facts {
    let mut sum: Vec<f64> = Vec::new();
    for w in stage.workloads.iter().filter(|w| w.op == Some(of.op)) {
        sum.resize(sum.len().max(w.ok.len()), 0.0);
        sum.iter_mut().zip(&w.ok).for_each(|(a, n)| *a += n);
    }
    Facts {
        workload: Some(format!("{}/{}", of.name, of.op.name())),
        relative_half_width: half_width(
            &of.rate.map_or_else(|| rate::estimate(&sum, stage.dt_s), Verdict::Known),
        ),
        ..Facts::default()
    }
}

fn no_rate(facts: &Facts) -> Option<Finding> {
    let width = facts.relative_half_width.filter(|w| *w >= NO_RATE)?;
    let text = "The confidence interval is as wide as the rate itself, so there is no usable rate. Run longer, or \
                find out what disturbs it.";
    let f = Finding::new("V04", "no_rate", Level::Invalid, text)
        .measured(if width.is_finite() { width } else { f64::MAX }, NO_RATE);
    Some(match &facts.workload {
        Some(w) => f.on(w.clone()),
        None => f,
    })
}

/// What Linux waits before it acknowledges what needs no answer: 40 ms (TCP_DELACK_MIN), and a little for the way.
const DELAYED_ACK_MS: std::ops::Range<f64> = 38.0..50.0;
/// Larger bodies take time of their own (guess).
const SMALL_BODY_BYTES: u64 = 256 << 10;

/// A small body that comes 40 ms after the head of its answer: the server wrote them apart with Nagle's algorithm on, and
/// waits for an acknowledgement that the client's kernel delays. No storage has this floor.
fn delayed_acknowledgement(w: &WorkloadSeen) -> Option<Finding> {
    let whole = w.service.as_ref().or(w.response.as_ref())?.p50? as f64 / 1e6;
    let first = w.first_byte.as_ref()?.p50? as f64 / 1e6;
    let gap = whole - first;
    if w.size_bytes > SMALL_BODY_BYTES || !DELAYED_ACK_MS.contains(&gap) || first > gap {
        return None;
    }
    let text = format!(
        "Half of the answers start within {first:.1} ms but end {gap:.1} ms later, for a small body. That is not the \
         storage: the server sends header and body separately with Nagle's algorithm on, and waits for an \
         acknowledgement that the client's kernel delays by 40 ms. Set TCP_NODELAY on the server (or the proxy in \
         front of it); the rate per connection can be {:.0} times this.",
        (whole / first.max(0.1)).floor()
    );
    Some(Finding::new("F63", "delayed_ack", Level::Qualified, text).measured(gap, DELAYED_ACK_MS.start))
}

/// Share of ops that lie beyond a 99th percentile.
const BEYOND_P99: f64 = 0.01;

fn workload_findings(stage: &StageSeen, w: &WorkloadSeen, j: &WorkloadJudged, facts: &Facts) -> Vec<Finding> {
    let label = label_of(w);
    let tail = |l: &LatencySummary| l.count as f64 * BEYOND_P99;
    let mut out = validity::check_all(facts);
    if let Verdict::Inconclusive(why) = &j.ops_per_s {
        out.push(
            Finding::new("V04", "no_rate", Level::Invalid, format!("No rate: {why}.")).on(label.clone()),
        );
    } else if total(&w.ok) == 0.0 {
        let held = facts.held_back.filter(|h| *h >= validity::MOSTLY_HELD);
        let text = if let Some(held) = held.filter(|_| w.attempts() == 0.0) {
            format!(
                "No op ended in the measured window: the storage had refused attempts, and for {} of its time the load held back, as it \
                 was asked to (Retry-After). plimsoll limits finds the rate to stay below; --on-throttle record goes on at once.",
                validity::percent(held)
            )
        } else if w.attempts() == 0.0 {
            "No op ended in the measured window. Run longer than one op takes.".to_owned()
        } else {
            format!("None of {:.0} ops succeeded, so there is no throughput.", w.attempts())
        };
        out.push(Finding::new("V04", "nothing_succeeded", Level::Invalid, text).on(label.clone()));
    } else {
        out.extend(no_rate(facts));
    }
    if let Some(l) = w.response.as_ref().filter(|l| l.p99.is_none()) {
        let text = format!("{} ops are too few for p99 (10 ops beyond it are needed).", l.count);
        out.push(
            Finding::new("V21", "thin_tail", Level::Info, text)
                .measured(tail(l), LatencySummary::TAIL)
                .on(label.clone()),
        );
    }
    out.extend(delayed_acknowledgement(w).map(|f| f.on(label.clone())));
    let throttled = total(&w.throttled);
    if throttled > 0.0 {
        let share = throttled / w.attempts();
        let what = match total(&w.ok) > 0.0 {
            true => LIMITER_ACTIVE,
            false if stage.limiter_known => {
                "the limiter lets nothing through from a load that does not back off"
            }
            false => "nothing got through, so this may be a limiter or storage that is down",
        };
        let text = format!(
            "The storage answered 429 or 503 to {throttled:.0} of {:.0} attempts: {what}.{}",
            w.attempts(),
            validity::held_back(stage.held_back)
        );
        out.push(Finding::new("F01", "throttled", Level::Info, text).measured(share, 0.0).on(label));
    }
    out
}

/// What is said of refusals beside which something passes.
pub const LIMITER_ACTIVE: &str = "a rate limiter is active";

fn refused_share(stage: &StageSeen) -> Option<f64> {
    let attempts: f64 = stage.workloads.iter().map(WorkloadSeen::attempts).sum();
    let refused: f64 = stage.workloads.iter().map(|w| total(&w.throttled)).sum();
    (attempts > 0.0).then(|| refused / attempts)
}

/// Share of slices in which a limiter refused something, whatever workload's.
fn refused_slices(stage: &StageSeen) -> Option<f64> {
    let slices = stage.workloads.iter().map(|w| w.throttled.len()).max().filter(|n| *n > 0)?;
    let refused = |i: &usize| stage.workloads.iter().any(|w| w.throttled.get(*i).is_some_and(|n| *n > 0.0));
    Some((0..slices).filter(refused).count() as f64 / slices as f64)
}

/// Whether ops come at times of their own, so that one can be late.
fn is_open(stage: &StageSeen) -> bool {
    stage.workloads.iter().any(|w| w.offered_per_s.is_some())
}

fn stage_facts(stage: &StageSeen, law: Option<LittlesLawCheck>) -> Facts {
    let of_stage = Facts {
        littles_law: law.map(|l| LittlesLawFact {
            in_flight: l.in_flight,
            rate_times_time: l.rate_times_time,
            error: l.error,
            edge: l.edge,
        }),
        refused_share: refused_share(stage),
        refused_slices: refused_slices(stage),
        client_is_subject: stage.client_is_subject,
        horizon_s: Some(stage.horizon_s),
        goal_s: stage.goal_s,
        loopback: stage.loopback.then_some(true),
        ..Facts::default()
    };
    let [alone] = &stage.clients[..] else { return of_stage };
    // Of a closed loop no op can be late.
    let open = stage.workloads.iter().filter(|w| w.offered_per_s.is_some());
    let started: f64 = open.map(|w| total(&w.started)).sum();
    agents::with_client(of_stage, alone, is_open(stage), started)
}

/// Workers that are busy for less of their time had some to spare (guess; V07 is at 85 %).
const HAS_TIME: f64 = 0.7;
/// No op waits for another where the mean time is within this of the least (guess: a queue of one doubles it).
const UNDISTURBED: f64 = 2.0;
/// Ops that tell so at the least (guess).
const LEAST_TIMED: u64 = 100;
/// How many times more in flight to try (guess: a rate that can rise does so visibly).
const TRY_TIMES: f64 = 4.0;

/// The name of what [`judge`] says of a load whose concurrency set its rate.
pub const CONCURRENCY_BOUND: &str = "concurrency_bound";

/// In a closed loop that nothing saturated, the concurrency set the rate: says so, and what to try.
///
/// Sign: no op waits for another (the mean service time is within twice the least one), none is throttled, and the
/// client had time to spare. Then rate = concurrency / service time, and more in flight gives more.
fn concurrency_finding(stage: &StageSeen, busy: Option<f64>) -> Option<Finding> {
    let [w] = stage.workloads.as_slice() else { return None };
    if w.offered_per_s.is_some()
        || busy.is_some_and(|b| b > HAS_TIME)
        || total(&w.throttled) > 0.0
        || stage.clients.iter().any(|c| c.quota.is_some_and(|q| validity::holds_back(&q)))
        || stage.client_is_subject
    {
        return None;
    }
    let l = w.service.as_ref().or(w.response.as_ref())?;
    let time_s = l.mean / 1e9;
    if l.count < LEAST_TIMED || l.min == 0 || l.mean > UNDISTURBED * l.min as f64 || time_s <= 0.0 {
        return None;
    }
    let c = f64::from(w.concurrency.max(1));
    let next = (c * TRY_TIMES).round();
    // In the option's own meaning: a depth is that of each job.
    let jobs = f64::from(w.jobs.max(1));
    let option = stage.in_flight_option.unwrap_or("--concurrency");
    let space = if option.ends_with('=') { "" } else { " " };
    let all = if jobs > 1.0 { format!(" ({next:.0} in flight over {jobs:.0} jobs)") } else { String::new() };
    let try_it = format!("{option}{space}{:.0}{all}", (next / jobs).round());
    let text = format!(
        "The concurrency may have limited this rate, not the storage: {c:.0} in flight at {} each cannot exceed \
         {:.0} ops/s (Little's law), and no op took much longer than the others. Try {try_it}: if the rate rises, \
         concurrency was the limit; if not, something delays all ops equally.",
        plimsoll_model::units::format_latency_ns(l.mean),
        c / time_s
    );
    let ratio = l.mean / l.min as f64;
    let mut f = Finding::new("F02", CONCURRENCY_BOUND, Level::Info, text)
        .measured(ratio, UNDISTURBED)
        .on(w.name.clone());
    f.evidence = vec![
        ("concurrency".into(), format!("{c:.0}")),
        ("most that it allows".into(), format!("{:.0} ops/s", c / time_s)),
        (
            "concurrency to try".into(),
            format!("{:.0}", littles_law::concurrency_for(TRY_TIMES * c / time_s, time_s)),
        ),
    ];
    Some(f)
}

#[cfg(test)]
mod tests;
