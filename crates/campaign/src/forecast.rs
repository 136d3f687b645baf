//! What a campaign takes, said before it begins: as far as it can be known. What a closed loop does nobody knows before it was
//! measured, unless the subject promises a rate; once a cell was measured, its own runs say it.

use plimsoll_model::OpKind;
use plimsoll_model::plan::{ControllerSpec, Pacing, Stage, TargetSpec, Workload};

use crate::cells::{CampaignCell, CellWork};
use crate::figures::CellRun;
use crate::file::{CampaignFile, Promised};
use crate::state::{CampaignSpent, CampaignState};

/// One run of a cell; or all that are to come.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Forecast {
    /// At least, seconds: what preparing data takes is known once it was done.
    pub time_s: f64,
    /// Payload. `None`: not known before it was measured.
    pub bytes: Option<f64>,
    /// Ops. `None`: as above.
    pub requests: Option<f64>,
}

impl Forecast {
    fn plus(self, other: Self, times: f64) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b? * times);
        Self {
            time_s: self.time_s + other.time_s * times,
            bytes: sum(self.bytes, other.bytes),
            requests: sum(self.requests, other.requests),
        }
    }
}

const NOTHING: Forecast = Forecast { time_s: 0.0, bytes: Some(0.0), requests: Some(0.0) };

/// The next run of a cell: as its runs so far were, else as the file says.
pub fn next_run(file: &CampaignFile, cell: &CampaignCell, runs: &[CellRun]) -> Forecast {
    if runs.is_empty() {
        return by_the_file(file, cell);
    }
    let n = runs.len() as f64;
    let mean = |of: fn(&CellRun) -> f64| runs.iter().map(of).sum::<f64>() / n;
    Forecast {
        time_s: mean(|r| r.took_s),
        bytes: Some(mean(|r| r.bytes as f64)),
        requests: Some(mean(|r| r.requests as f64)),
    }
}

/// All runs that are to come, with the rests between them.
pub fn to_go(file: &CampaignFile, cells: &[CampaignCell], state: &CampaignState) -> Forecast {
    let one = |all: Forecast, (c, s): (&CampaignCell, &crate::state::CellState)| {
        all.plus(next_run(file, c, &s.runs), f64::from(s.to_go()))
    };
    let mut all = cells.iter().zip(&state.cells).filter(|(_, s)| s.to_go() > 0).fold(NOTHING, one);
    let rests = state.to_go().saturating_sub(u32::from(state.done_runs() == 0));
    all.time_s += file.rest.pause.0.as_secs_f64() * f64::from(rests);
    all
}

/// Every cell that is still to come once.
pub fn one_each(file: &CampaignFile, cells: &[CampaignCell], state: &CampaignState) -> Forecast {
    let due = cells.iter().zip(&state.cells).filter(|(_, s)| s.to_go() > 0);
    let (mut all, mut n) = (NOTHING, 0u32);
    for (c, s) in due {
        all = all.plus(next_run(file, c, &s.runs), 1.0);
        n += 1;
    }
    all.time_s +=
        file.rest.pause.0.as_secs_f64() * f64::from(n.saturating_sub(u32::from(state.done_runs() == 0)));
    all
}

/// Which bound of the budget a run would go beyond, in words; `None`: it fits.
pub fn beyond(file: &CampaignFile, spent: &CampaignSpent, run: &Forecast) -> Option<String> {
    let b = &file.budget;
    let over = |spent: f64, more: Option<f64>, most: f64| spent + more.unwrap_or(0.0) > most || spent >= most;
    if let Some(time) = b.time.filter(|t| over(spent.time_s, Some(run.time_s), t.0.as_secs_f64())) {
        return Some(format!("time: {time}"));
    }
    if let Some(bytes) = b.bytes.filter(|m| over(spent.bytes as f64, run.bytes, m.0 as f64)) {
        return Some(format!("bytes: {bytes}"));
    }
    let requests = b.requests.filter(|m| over(spent.requests as f64, run.requests, *m as f64))?;
    Some(format!("requests: {requests}"))
}

/// Cells of which a bound on bytes or requests cannot be kept, because nothing says what a run of them takes.
pub fn unbounded<'a>(
    file: &CampaignFile,
    cells: &'a [CampaignCell],
    state: &CampaignState,
) -> Vec<&'a CampaignCell> {
    let lacks = |f: Forecast| {
        (file.budget.bytes.is_some() && f.bytes.is_none())
            || (file.budget.requests.is_some() && f.requests.is_none())
    };
    let due = cells.iter().zip(&state.cells).filter(|(_, s)| s.to_go() > 0);
    due.filter(|(c, s)| lacks(next_run(file, c, &s.runs))).map(|(c, _)| c).collect()
}

fn by_the_file(file: &CampaignFile, cell: &CampaignCell) -> Forecast {
    let promised = file.subject(&cell.subject).map(|s| s.promised).unwrap_or_default();
    let Some(target) = &cell.target else { return NOTHING };
    if let TargetSpec::Sim(_) = target {
        return NOTHING;
    }
    match &cell.work {
        CellWork::Stage(stage) => {
            let w = &stage.workloads[0];
            let measured = w.stop.lasts().map_or(0.0, |t| t.0.as_secs_f64());
            load(target, stage, measured, &promised)
        }
        CellWork::Controller(c) => {
            let stage = c.templates().next().expect("a search has a template");
            let time = match &**c {
                ControllerSpec::Watch { duration, .. } => Some(*duration),
                other => other.budget(),
            };
            let s = time.map_or(0.0, |t| t.0.as_secs_f64());
            Forecast { time_s: s, ..load(target, stage, s, &promised) }
        }
        CellWork::Elsewhere => NOTHING,
        CellWork::Files(f) => {
            let cycles = f64::from(f.cycles);
            let total = f.total_bytes.or(f.threads.map(|n| f.bytes_of(n))).map(|n| n as f64 * cycles);
            // It writes all of it, and reads it.
            let takes_s = |op: &str| {
                let rate = promised.of_op(op).bytes_per_s.map(|r| r.0).filter(|r| *r > 0.0);
                total.zip(rate).map_or(0.0, |(total, rate)| total / rate)
            };
            let moved = takes_s("write") + takes_s("read");
            let iops_s = f.iops_duration.0.as_secs_f64() * cycles;
            Forecast {
                time_s: f.least_s.unwrap_or(iops_s + moved),
                bytes: total.map(|t| 2.0 * t),
                requests: total.zip(promised.ops_per_s).map(|(t, r)| 2.0 * t / 65_536.0 + r.0 * iops_s),
            }
        }
    }
}

/// A load of this length, with what is put there for it and taken away again.
fn load(target: &TargetSpec, stage: &Stage, measured_s: f64, promised: &Promised) -> Forecast {
    let w = &stage.workloads[0];
    let time_s = stage.warmup.0.as_secs_f64() + measured_s;
    let size = w.size.mean_bytes() as f64;
    let (prepared_ops, prepared_bytes) = prepared(target, w, size);
    let per_op = size * moves(w);
    if let TargetSpec::Null = target {
        return Forecast { time_s, ..NOTHING };
    }
    let ops = match &w.pacing {
        Pacing::Constant(r) | Pacing::Capped(r) | Pacing::Poisson(r) => Some(r.0 * time_s),
        Pacing::Ramp { from, to, .. } => Some(from.0.max(to.0) * time_s),
        Pacing::Bytes(b) if size > 0.0 => Some(b.0 / size * time_s),
        Pacing::Bytes(_) | Pacing::Closed => promised_rate(promised, w).map(|rate| rate * time_s),
    };
    Forecast {
        time_s,
        bytes: ops.map(|n| n * per_op + prepared_bytes),
        requests: ops.map(|n| n + prepared_ops + deleted(target, w, n)),
    }
}

/// Ops/s that the subject promises of these ops; `None`: nothing that bounds them. What is read and what is written may be bounded each
/// by its own promise; what has none shares that of all payload.
pub(crate) fn promised_rate(promised: &Promised, w: &Workload) -> Option<f64> {
    let size = w.size.mean_bytes() as f64;
    let mut bounds: Vec<f64> = promised.ops_per_s.iter().map(|r| r.0).collect();
    for (own, is_of) in [
        (promised.read_bytes_per_s, (|k| payload_of(k) == Payload::Read) as fn(OpKind) -> bool),
        (promised.write_bytes_per_s, |k| payload_of(k) == Payload::Written),
    ] {
        let per_op = size * share(w, is_of);
        bounds.extend(own.filter(|_| per_op > 0.0).map(|b| b.0 / per_op));
    }
    let is_shared = |k| match payload_of(k) {
        Payload::Read => promised.read_bytes_per_s.is_none(),
        Payload::Written => promised.write_bytes_per_s.is_none(),
        Payload::None => false,
    };
    let per_op = size * share(w, is_shared);
    bounds.extend(promised.bytes_per_s.filter(|_| per_op > 0.0).map(|b| b.0 / per_op));
    bounds.into_iter().reduce(f64::min)
}

/// Which way the payload of an op goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Read,
    Written,
    None,
}

fn payload_of(kind: OpKind) -> Payload {
    match kind {
        OpKind::Stat | OpKind::List | OpKind::Delete | OpKind::DeleteBatch | OpKind::Copy => Payload::None,
        OpKind::Get | OpKind::GetRange | OpKind::Read => Payload::Read,
        _ => Payload::Written,
    }
}

/// Share of the ops that move payload.
fn moves(w: &Workload) -> f64 {
    share(w, |k| payload_of(k) != Payload::None)
}

fn share(w: &Workload, is_of: impl Fn(OpKind) -> bool) -> f64 {
    let total: f64 = w.mix.values().map(|n| f64::from(*n)).sum();
    let of: f64 = w.mix.iter().filter(|(k, _)| is_of(**k)).map(|(_, n)| f64::from(*n)).sum();
    if total > 0.0 { of / total } else { 0.0 }
}

/// Ops and bytes before the load, with those that take objects away after it.
fn prepared(target: &TargetSpec, w: &Workload, size: f64) -> (f64, f64) {
    match target {
        TargetSpec::S3(_) if w.existing().is_none() => {
            let (read, deleted) = plimsoll_lower::prepared_objects(w);
            let n = (read + deleted) as f64;
            (2.0 * n, n * size)
        }
        TargetSpec::Block(b) => (0.0, b.size.filter(|_| b.layout && !b.existing).map_or(0.0, |s| s.0 as f64)),
        TargetSpec::Files(f) if f.layout => {
            let files = f64::from(f.files) * f64::from(w.jobs.unwrap_or(1));
            (0.0, files * f.file_size.0 as f64)
        }
        _ => (0.0, 0.0),
    }
}

/// Objects that the load itself makes are deleted after it.
fn deleted(target: &TargetSpec, w: &Workload, ops: f64) -> f64 {
    let total: f64 = w.mix.values().map(|n| f64::from(*n)).sum();
    let made: f64 = [OpKind::Put, OpKind::Copy, OpKind::Multipart]
        .iter()
        .filter_map(|k| w.mix.get(k))
        .map(|n| f64::from(*n))
        .sum();
    match target {
        TargetSpec::S3(_) if total > 0.0 => ops * made / total,
        _ => 0.0,
    }
}
