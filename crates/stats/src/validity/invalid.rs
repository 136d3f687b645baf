//! The V checks: each makes a result invalid.

use plimsoll_model::{Finding, Level};

use super::{Facts, SteadyFact, cpu_quota, cpu_wait};
use crate::{littles_law, math, student};

/// Share of workers' time beyond which the client, not the storage, is what was measured.
pub(super) const CLIENT_BUSY: f64 = 0.85;
const CLIENT_CORE: f64 = 0.90;
const NIC_SHARE: f64 = 0.92;
const CEILING_SHARE: f64 = 0.90;
/// Share of an open loop's ops that may be sent late, and of CPU time that the hypervisor may take.
const LATE: f64 = 0.01;
const STEAL: f64 = 0.05;
/// From here on the rate without it could be a third more, and a client that waits is no defence (guess).
const STEAL_MOST: f64 = 0.25;
/// From this share of refused attempts on it is the limiter that keeps ops from being done, whatever the client could (guess).
const MOSTLY_REFUSED: f64 = 0.50;
/// It refused without a pause where it did so in this share of the slices: then the client offered more than it lets through all the
/// time. (Guess: the first slices of a window's quota may be without refusals.)
const WITHOUT_PAUSE: f64 = 0.90;
const DEFAULT_ERROR_RATE: f64 = 0.001;

pub(super) fn found(f: &Facts, code: &str, name: &str, level: Level, text: String) -> Finding {
    let finding = Finding::new(code, name, level, text).of_agent(f.agent.as_deref());
    match &f.workload {
        Some(w) => finding.on(w.clone()),
        None => finding,
    }
}

fn invalid(f: &Facts, code: &str, name: &str, m: f64, limit: f64, text: String) -> Option<Finding> {
    Some(found(f, code, name, Level::Invalid, text).measured(m, limit))
}

/// Whether refusals show that the client, however little it could do, offered more than the limiter lets through all the time: the
/// rate is then the limiter's, and most of the client's work was to be refused. `share`: of the attempts that it refused; `slices`: of
/// those in which it refused any, where that is known.
pub fn limiter_sets_the_rate(share: f64, slices: Option<f64>) -> bool {
    // Where nothing passed, it is no question what let nothing pass, however seldom it says so.
    share >= 1.0 || share >= MOSTLY_REFUSED && slices.is_some_and(|s| s >= WITHOUT_PAUSE)
}

/// From here on pauses, and not ops that take long, are why a load had no slot for what was due (guess: half of the time).
pub const MOSTLY_HELD: f64 = 0.5;
/// Pauses that are less of the time of a load than this are not told: they took no part of its rate to speak of (guess).
const HELD: f64 = 0.01;

/// That a load held back, as a sentence that goes behind what was refused; empty where it did not. `share`: of the time of its slots.
pub fn held_back(share: f64) -> String {
    if share < HELD {
        return String::new();
    }
    format!(
        " The load held back after refused attempts, for {} of the time of its slots: the limiter may let more through.",
        percent(share)
    )
}

/// Share of attempts that a limiter refused, where it set the rate.
pub(super) fn set_by_a_limiter(f: &Facts) -> Option<f64> {
    f.refused_share.filter(|share| limiter_sets_the_rate(*share, f.refused_slices))
}

pub(crate) fn percent(x: f64) -> String {
    let p = 100.0 * x;
    match p {
        p if p != 0.0 && p.abs() < 0.1 => format!("{p:.3} %"),
        // What is not all is not rounded to it.
        p if (99.95..100.0).contains(&p) => crate::words::share(x),
        p => format!("{p:.1} %"),
    }
}

pub fn v01_error_rate(f: &Facts) -> Option<Finding> {
    let (attempts, failed) = (f.attempts?, f.failed?);
    let limit = f.max_error_rate.unwrap_or(DEFAULT_ERROR_RATE);
    if attempts <= 0.0 || failed / attempts <= limit {
        return None;
    }
    let share = failed / attempts;
    // The label of a workload ends with its op.
    let op = f.workload.as_ref().and_then(|w| w.rsplit('/').next()).map_or(String::new(), str::to_uppercase);
    let text = format!(
        "{failed:.0} of {attempts:.0} {op}{} failed ({}; {} is allowed). The rate counts only successful ops. Find \
         the cause in the outcomes, or allow more with --max-error-rate.",
        if op.is_empty() { "ops" } else { " ops" },
        percent(share),
        percent(limit)
    );
    invalid(f, "V01", "error_rate", share, limit, text)
}

pub fn v02_payload(f: &Facts) -> Option<Finding> {
    let n = f.verify_mismatches? as f64;
    let text = if f.of_another_seed {
        format!(
            "{n:.0} blocks are not the expected ones: they are intact, but another run wrote them with another seed. \
             This says nothing about the storage. Verify with the --seed of the run that wrote them, or read a \
             --dataset, which keeps its seed."
        )
    } else {
        format!(
            "{n:.0} blocks did not contain what was written: this storage returned wrong data. Save the run, and \
             check the storage before measuring its speed."
        )
    };
    let name = if f.of_another_seed { "another_seed" } else { "payload_mismatch" };
    if n > 0.0 { invalid(f, "V02", name, n, 0.0, text) } else { None }
}

pub fn v03_bytes_acknowledged(f: &Facts) -> Option<Finding> {
    let (sent, acked) = (f.bytes_sent?, f.bytes_acknowledged?);
    let most = sent.max(acked);
    if most <= 0.0 || (sent - acked).abs() / most <= 0.001 {
        return None;
    }
    let d = (sent - acked).abs() / most;
    let text = format!(
        "{sent:.0} bytes were sent, but {acked:.0} were acknowledged: a difference of {} (0.1 % is allowed). \
         Something on the path drops, repeats or shortens bodies.",
        percent(d)
    );
    invalid(f, "V03", "bytes_not_acknowledged", d, 0.001, text)
}

pub fn v04_steady_window(f: &Facts) -> Option<Finding> {
    let (name, text) = match f.steady.as_ref()? {
        SteadyFact::Steady => return None,
        SteadyFact::Undetermined(why) => ("no_steady_window", format!("No steady window was found: {why}.")),
        SteadyFact::Drifting => (
            "drifting",
            "The rate drifted by more than 10 % over the window, so its mean is not a sustained rate. Find out what \
             changes (a cache fills, a burst runs out), or use a longer warm-up."
                .into(),
        ),
        SteadyFact::Unstable => (
            "unstable",
            "The rate varied by more than 20 % within the window. Look for intermittent causes (other load, garbage \
             collection, flushes), or run longer."
                .into(),
        ),
        SteadyFact::Throttled => (
            "throttled",
            "A limiter took effect during the run, so the mean mixes two rates. Use the rate after the cliff.".into(),
        ),
    };
    Some(found(f, "V04", name, Level::Invalid, text))
}

pub fn v05_offered_rate(f: &Facts) -> Option<Finding> {
    let (offered, achieved) = (f.offered_per_s?, f.achieved_per_s?);
    if offered <= 0.0 {
        return None;
    }
    let share = achieved / offered;
    if let Some(held) = f.held_back.filter(|h| share < 0.95 && *h >= MOSTLY_HELD) {
        let text = format!(
            "Only {achieved:.1} of {offered:.1} ops/s offered were sent ({}): the load held back after refused attempts, \
             for {} of the time of its slots. The limiter lets less through than is offered: offer less, or use \
             --on-throttle record to send on whatever is refused.",
            percent(share),
            percent(held)
        );
        return Some(found(f, "V05", "held_back", Level::Qualified, text).measured(share, 0.95));
    }
    if share < 0.95 {
        let text = format!(
            "Only {achieved:.1} of {offered:.1} ops/s offered were achieved ({}; at least 95 % is required). This \
             load cannot be sustained: offer less, or raise {}.",
            percent(share),
            f.in_flight_option.unwrap_or("--concurrency").trim_end_matches('=')
        );
        return invalid(f, "V05", "offered_rate_missed", share, 0.95, text);
    }
    let worst = f.worst_worker_share.filter(|w| *w < 0.75)?;
    let text = format!(
        "One worker achieved only {} of its share of the offered rate (at least 75 % is required). Check its \
         endpoint and its core.",
        percent(worst)
    );
    invalid(f, "V05", "worker_rate_missed", worst, 0.75, text)
}

/// What 19 of 20 clients stay below that send [`LATE`] late: of few ops one is no share (normal approximation, one-sided).
fn late_by_chance(sent: Option<f64>) -> f64 {
    LATE + sent.map_or(0.0, |n| 1.645 * (LATE * (1.0 - LATE) / n.max(1.0)).sqrt())
}

pub fn v06_schedule_lag(f: &Facts) -> Option<Finding> {
    let late = f.late_share.filter(|s| *s > late_by_chance(f.sent))?;
    if let Some(q) = f.cpu_quota.filter(|q| q.throttled >= late / 2.0) {
        let text = format!(
            "{} of the ops were sent late (1 % is allowed) because the CPU quota of the client's control group \
             stopped it: {}. Raise or remove the quota, or offer less.",
            percent(late),
            cpu_quota::said(&q)
        );
        return invalid(f, "V06", "schedule_lag", late, LATE, text);
    }
    // Late is what came 10 ms after its time: when others had the CPU, the client could not be in time.
    let waited = f.cpu_wait.filter(|w| cpu_wait::others_took_it(w) && w.share >= late / 2.0);
    let text = match waited {
        Some(w) => format!(
            "{} of the ops were sent late (1 % is allowed) because other processes on this machine took the client's \
             CPU: {}. Stop them, or give the client dedicated cores.",
            percent(late),
            cpu_wait::said(&w)
        ),
        None => format!(
            "{} of the ops were sent late because the client was busy (1 % is allowed). Use more threads or cores, or \
             offer less.",
            percent(late)
        ),
    };
    invalid(f, "V06", "schedule_lag", late, LATE, text)
}

/// The first of the client's resources that is at its limit.
pub fn v07_client_bound(f: &Facts) -> Option<Finding> {
    if f.client_is_subject {
        return None;
    }
    // A quota stops the workers wherever they are: busy shares and waits are its effects.
    let quota = cpu_quota::found_in(f);
    if quota.as_ref().is_some_and(|q| q.level == Level::Invalid) {
        return quota;
    }
    let remedy =
        "This rate is the client's limit, not the storage's. Use more threads or more client machines.";
    // Where others had the CPU while workers wanted it, a full core says nothing of the client.
    let contended = f.cpu_wait.is_some_and(|w| cpu_wait::is_told(&w) && cpu_wait::others_took_it(&w));
    let rules = [
        (f.client_busy, CLIENT_BUSY, "the workers were busy", "of their time"),
        (
            f.client_core.filter(|_| !contended),
            CLIENT_CORE,
            "the client kept one core of this machine busy for",
            "of its time",
        ),
        (f.client_nic, NIC_SHARE, "the client's network interface ran at", "of its speed"),
        (f.ceiling_share, CEILING_SHARE, "the rate reached", "of the most that this machine can generate"),
    ];
    let full = rules
        .into_iter()
        .find_map(|(v, limit, what, of)| v.filter(|v| *v >= limit).map(|v| (v, limit, what, of)));
    let Some((value, limit, what, of)) = full else { return quota.or_else(|| cpu_wait::taken(f)) };
    if let Some(refused) = set_by_a_limiter(f) {
        return Some(busy_with_refusals(
            f,
            refused,
            &format!("{what} {} {of}", percent(value)),
            (value, limit),
        ));
    }
    let text = format!("Client-bound: {what} {} {of} (limit {}). {remedy}", percent(value), percent(limit));
    invalid(f, "V07", "client_bound", value, limit, text)
}

/// A client at its limit with attempts that a limiter refused: a faster one would only be refused more often.
pub(super) fn busy_with_refusals(f: &Facts, refused: f64, what: &str, (value, limit): (f64, f64)) -> Finding {
    let text = format!(
        "The client was busy with attempts that were refused ({} of all): {what}. The rate is what the limiter let \
         through; the latencies are partly the client's. Offer less, or use --on-throttle backoff.",
        percent(refused)
    );
    found(f, "V07", "busy_with_refusals", Level::Qualified, text).measured(value, limit)
}

pub fn v08_working_set(f: &Facts) -> Option<Finding> {
    if !f.reads {
        return None;
    }
    let set = f.working_set_bytes?;
    let (client, server) = (f.client_ram_bytes, f.server_ram_bytes);
    if f.bypasses_client_cache == Some(false)
        && let Some(ram) = client.filter(|r| *r > 0.0 && set < 5.0 * r)
    {
        let text = format!(
            "The data read through the page cache is only {:.2} times the client's memory (at least 5 times is \
             required), so memory was measured. Use direct I/O or a larger region.",
            set / ram
        );
        return invalid(f, "V08", "working_set_small", set / ram, 5.0, text);
    }
    let ram = server.filter(|r| *r > 0.0 && set <= 2.0 * r)?;
    if f.server_cache_stated == Some(true) {
        return None;
    }
    let text = format!(
        "The data read is {:.2} times the server's memory, and the state of its cache is not stated. Read more than \
         twice its memory, or state that a warm cache is intended.",
        set / ram
    );
    invalid(f, "V08", "server_cache", set / ram, 2.0, text)
}

pub fn v09_payload_entropy(f: &Facts) -> Option<Finding> {
    if let Some(n) = f.unwritten_reads.filter(|n| *n > 0) {
        let text = format!(
            "{n} reads were of blocks that were never written; thin-provisioned storage answers these without \
             reading anything. Write the region first (layout = true)."
        );
        return invalid(f, "V09", "unwritten_reads", n as f64, 0.0, text);
    }
    if f.reducible_asked_for {
        return None;
    }
    if let Some(e) = f.entropy_bits_per_byte.filter(|e| *e < 7.9) {
        let text = format!(
            "The payload has {e:.2} bits of entropy per byte (at least 7.9 is required): storage that compresses \
             would store less than it is given. Use random data."
        );
        return invalid(f, "V09", "payload_compressible", e, 7.9, text);
    }
    let share = f.repeated_share.filter(|s| *s > 0.0)?;
    let text = format!(
        "{} of the blocks are duplicates: storage that deduplicates would store them once.",
        percent(share)
    );
    invalid(f, "V09", "payload_repeats", share, 0.0, text)
}

pub fn v10_driver_skew(f: &Facts) -> Option<Finding> {
    let dt = f.dt_s?;
    if let Some(s) = f.start_skew_s.filter(|s| *s > dt) {
        let text = format!("The drivers started or stopped {s:.3} s apart (one slice of {dt} s is allowed).");
        return invalid(f, "V10", "drivers_apart", s, dt, text);
    }
    let o = f.clock_offset_s.map(f64::abs).filter(|o| *o > dt / 2.0)?;
    let text = format!(
        "The drivers' clocks are {o:.3} s apart (half a slice of {dt} s is allowed): synchronise them, or use longer slices."
    );
    invalid(f, "V10", "clock_offset", o, dt / 2.0, text)
}

pub fn v11_ended_early(f: &Facts) -> Option<Finding> {
    let limit = f.dt_s.unwrap_or(1.0);
    let s = f.ended_early_s.filter(|s| *s > limit)?;
    let text = format!(
        "The load ended {s:.1} s earlier on one driver than on the others, so its tail was not the requested load. \
         Stop by duration, not by amount of work."
    );
    invalid(f, "V11", "ended_early", s, limit, text)
}

pub fn v12_durability(f: &Facts) -> Option<Finding> {
    if !f.writes {
        return None;
    }
    let claimed = f.durability_claimed?;
    if f.durability.is_some_and(|d| d >= claimed) {
        return None;
    }
    let text = match f.durability {
        None => {
            "Durable writes are claimed, but it is not known how the writes were made durable.".to_owned()
        }
        Some(d) => format!("Writes are durable at level {d:?}, but {claimed:?} is claimed."),
    };
    Some(found(
        f,
        "V12",
        "durability",
        Level::Invalid,
        text + " Set fsync, direct I/O or the write quorum, or claim less.",
    ))
}

/// Beyond 2 % it is shown, beyond 5 % the result is invalid; what the window's edges explain is no error.
pub fn v13_littles_law(f: &Facts) -> Option<Finding> {
    let l = f.littles_law?;
    let level = if l.error > littles_law::INVALID + l.edge {
        Level::Invalid
    } else if l.error > littles_law::SHOWN + l.edge {
        Level::Qualified
    } else {
        return None;
    };
    let limit = if level == Level::Invalid { littles_law::INVALID } else { littles_law::SHOWN };
    let text = format!(
        "Little's law is off by {}: {:.2} ops were in flight, but rate times latency gives {:.2}. The window is short for ops this \
         long: measure for several times as long (--duration). Where that changes nothing, plimsoll's own accounting is wrong.",
        percent(l.error),
        l.in_flight,
        l.rate_times_time
    );
    Some(found(f, "V13", "littles_law", level, text).measured(l.error, limit))
}

pub fn v14_level_change(f: &Facts) -> Option<Finding> {
    let n = f.level_changes.filter(|n| *n > 0)?;
    let text = format!(
        "The rate changed its level {n} time(s) inside the window, so one mean covers different states. Use the last \
         level, and run until it has lasted a minute."
    );
    invalid(f, "V14", "level_change", n as f64, 0.0, text)
}

/// Trend over the order of repeats: Spearman, |rho| > 0.7 at p < 0.05 (t approximation).
pub fn v15_order_trend(f: &Facts) -> Option<Finding> {
    let n = f.repeats.len();
    if n < 5 || !math::is_series(&f.repeats) {
        return None;
    }
    let order: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let rho = math::spearman(&order, &f.repeats);
    let df = (n - 2) as f64;
    let p = student::two_sided(rho * (df / (1.0 - rho * rho).max(1e-12)).sqrt(), df);
    if rho.abs() <= 0.7 || p >= 0.05 {
        return None;
    }
    let text = format!(
        "The repeats show a trend over their order (Spearman {rho:.2} over {n}): each run affects the next. Rest \
         longer between runs, or alternate them."
    );
    invalid(f, "V15", "order_trend", rho.abs(), 0.7, text)
}

pub fn v16_configuration(f: &Facts) -> Option<Finding> {
    if f.configuration_differences.is_empty() {
        return None;
    }
    let text = format!(
        "The compared runs differ in more than one factor: {}. Repeat with only one of them changed.",
        f.configuration_differences.join("; ")
    );
    invalid(f, "V16", "configuration_differs", f.configuration_differences.len() as f64, 0.0, text)
}

pub fn v17_fill(f: &Facts) -> Option<Finding> {
    if f.raw_ssd && f.preconditioned == Some(false) {
        let text = "A raw SSD was not preconditioned: fresh flash is faster than it will be later. Write its whole \
                    capacity twice first.";
        return Some(found(f, "V17", "not_preconditioned", Level::Invalid, text.into()));
    }
    if f.fill_stated {
        return None;
    }
    let fill = f.fill.filter(|x| *x > 0.80 || *x < 0.01)?;
    let limit = if fill > 0.8 { 0.80 } else { 0.01 };
    let text = format!(
        "The storage is {} full, and that is not stated. Nearly empty and nearly full storage performs differently \
         than otherwise.",
        percent(fill)
    );
    invalid(f, "V17", "fill", fill, limit, text)
}

pub fn v18_background(f: &Facts) -> Option<Finding> {
    if f.background.is_empty() {
        return None;
    }
    let text =
        format!("The storage was busy with {}. Wait until that has finished.", f.background.join(", "));
    invalid(f, "V18", "background_work", f.background.len() as f64, 0.0, text)
}

pub fn v19_limiter_state(f: &Facts) -> Option<Finding> {
    if f.mixed_limiter_states != Some(true) {
        return None;
    }
    let text = "Some cells were measured during a burst and some after it, so they cannot be compared. Drain the \
                bucket before each cell, or rest long enough before each.";
    Some(found(f, "V19", "limiter_state", Level::Invalid, text.into()))
}

pub fn v20_retries(f: &Facts) -> Option<Finding> {
    let n = f.retried_as_success.filter(|n| *n > 0)? as f64;
    let text = format!(
        "{n:.0} retried ops were counted as successes with the latency of their last attempt only. Turn retries off."
    );
    invalid(f, "V20", "retries", n, 0.0, text)
}

pub fn v21_thin_tail(f: &Facts) -> Option<Finding> {
    let n = f.tail_samples.filter(|n| *n < 10.0)?;
    let text = format!(
        "The highest percentile has only {n:.1} ops beyond it (at least 10 are required). Run longer, or use a lower \
         percentile."
    );
    invalid(f, "V21", "thin_tail", n, 10.0, text)
}

pub fn v22_clock_and_steal(f: &Facts) -> Option<Finding> {
    if let Some(j) = f.clock_jump_s.map(f64::abs).filter(|j| *j > 0.5) {
        let text = format!(
            "The wall clock jumped by {j:.2} s, or the machine slept, during the run. Repeat the run."
        );
        return invalid(f, "V22", "clock_jump", j, 0.5, text);
    }
    if f.thermal_throttled == Some(true) {
        let text = "The client's CPU throttled because of heat. Cool it, or use fewer cores.";
        return Some(found(f, "V22", "thermal", Level::Invalid, text.into()));
    }
    stolen(f)
}

/// CPU time that the hypervisor gave to others: by the rule of time that other work on the machine took (V07). What a limiter lets
/// through, and what workers wait for most of the time, is not made of it; latencies are.
fn stolen(f: &Facts) -> Option<Finding> {
    let s = f.steal.filter(|s| *s > STEAL)?;
    let taken = format!("The hypervisor took {} of the client's CPU time (reported above 5 %)", percent(s));
    let remedy = "Use a machine with dedicated cores.";
    let qualified = |text| Some(found(f, "V22", "steal", Level::Qualified, text).measured(s, STEAL));
    let busy = f.client_busy.map(|b| b + f.cpu_wait.map_or(0.0, |w| w.share) + s);
    match busy {
        _ if f.client_is_subject => {}
        _ if set_by_a_limiter(f).is_some() => {
            return qualified(format!(
                "{taken}. The rate is what the limiter let through; the latencies are partly the hypervisor's. {remedy}"
            ));
        }
        Some(busy) if busy < CLIENT_BUSY && s < STEAL_MOST => {
            let more = percent(s / (1.0 - s));
            return qualified(format!(
                "{taken}. This adds to latencies; unless something else limited the rate, it could be up to {more} \
                 higher. {remedy}"
            ));
        }
        _ => {}
    }
    let why = "The remaining CPU time may have limited the rate";
    invalid(f, "V22", "steal", s, STEAL, format!("{taken}. {why}. {remedy}"))
}

pub fn v23_hash(f: &Facts) -> Option<Finding> {
    if f.sealed_hash_matches != Some(false) {
        return None;
    }
    let text =
        "The data of the run does not match the hash recorded at its end: it was changed after the run.";
    Some(found(f, "V23", "hash_mismatch", Level::Invalid, text.into()))
}
