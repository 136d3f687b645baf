//! Lines of results: one op kind of one workload, over all repeats of its cell.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::analysis::LineSpan;
use plimsoll_model::interval::EndpointCounts;
use plimsoll_model::plan::{KeyDist, suite};
use plimsoll_model::summary::{ClientSummary, EndpointSummary, WorkloadSummary};
use plimsoll_model::units::significant;
use plimsoll_model::{Estimate, OpKind, Outcome, Series, SeriesId};
use plimsoll_stats::littles_law::{LittlesLawCheck, Sums};
use plimsoll_stats::{rate, student};
use plimsoll_store::{RunData, StageData, Totals};

use super::agents::{is_each_sampled, machines};
use super::asked::{backs_off, nominal_size, paused_share};
use super::long_ops::{self, CountedWork, LongOps};
use super::part::{Part, horizon_s, seconds_between};
use super::resources::Resources;
use super::{law, percentiles};

/// From this difference on, as a part of the rate, somebody who counts what ended is told why. (A choice: less is within most intervals.)
const OTHER_RATE: f64 = 0.05;

/// Name of the lines that sum up workloads.
pub const TOGETHER: &str = "together";

/// One line. Its parts are the repeats, in the order in which they were made.
#[derive(Debug)]
pub struct Line<'a> {
    pub name: String,
    /// `None`: all kinds of a mixed workload together.
    pub kind: Option<OpKind>,
    /// What the stage's workloads did of this kind, all of them together.
    pub together: bool,
    pub parts: Vec<Part<'a>>,
}

/// The lines of a run, in the order of cells (or stages), workloads and kinds; a mixed workload's total comes after its kinds, and
/// what several workloads of a stage did together after them.
pub fn lines_of<'a>(data: &'a RunData, totals: &'a [Totals], whole: &'a [Totals]) -> Vec<Line<'a>> {
    // Repeats of one cell are one line; stages without a cell stand for themselves.
    let mut groups: BTreeMap<(u32, u16, u8, Option<OpKind>), Vec<Part<'a>>> = BTreeMap::new();
    for t in totals {
        let Some(stage) = data.stages.iter().find(|s| s.index == t.window.stage) else { continue };
        let group = stage.spec.cell.as_ref().map_or(stage.index, |c| c.index);
        for (w, spec) in stage.spec.workloads.iter().enumerate() {
            let workload = w as u16;
            let kinds: Vec<OpKind> =
                stage.series.keys().filter(|id| id.workload == workload).map(|id| id.kind).collect();
            let counted = whole.iter().find(|w| w.window.stage == stage.index).unwrap_or(t);
            let part = Part { stage, totals: t, counted, workload, together: false };
            for kind in &kinds {
                groups.entry((group, workload, 0, Some(*kind))).or_default().push(part);
            }
            if spec.mix.values().filter(|weight| **weight > 0).count() > 1 {
                groups.entry((group, workload, 1, None)).or_default().push(part);
            }
        }
        for (kind, workload) in together(stage) {
            let counted = whole.iter().find(|w| w.window.stage == stage.index).unwrap_or(t);
            let part = Part { stage, totals: t, counted, workload, together: true };
            groups.entry((group, u16::MAX, 2, Some(kind))).or_default().push(part);
        }
    }
    let mut lines: Vec<Line<'a>> = groups
        .into_iter()
        .map(|((_, _, _, kind), parts)| {
            let together = parts[0].together;
            let name = if together { TOGETHER.to_owned() } else { parts[0].spec().name.clone() };
            Line { name, kind, together, parts }
        })
        .collect();
    make_names_unique(&mut lines);
    lines
}

/// The loads that more than one of the stage's workloads puts on, each with the first of these.
fn together(stage: &StageData) -> Vec<(OpKind, u16)> {
    let is_load = |id: &SeriesId| {
        let spec = stage.spec.workloads.get(usize::from(id.workload));
        spec.is_some_and(|w| w.mix.contains_key(&id.kind))
    };
    let mut by_kind: BTreeMap<OpKind, Vec<u16>> = BTreeMap::new();
    for id in stage.series.keys().filter(|id| is_load(id)) {
        by_kind.entry(id.kind).or_default().push(id.workload);
    }
    by_kind.into_iter().filter(|(_, w)| w.len() > 1).map(|(kind, w)| (kind, w[0])).collect()
}

/// Two stages may have workloads of one name: the stage's name, or its number, tells them apart.
fn make_names_unique(lines: &mut [Line<'_>]) {
    let keys: Vec<_> = lines.iter().map(|l| (l.name.clone(), l.kind)).collect();
    let stages: Vec<_> =
        lines.iter().map(|l| (l.parts[0].stage.index, l.parts[0].stage.spec.name.clone())).collect();
    for (i, line) in lines.iter_mut().enumerate() {
        if keys.iter().filter(|k| **k == keys[i]).count() > 1 {
            let (index, stage_name) = &stages[i];
            let alone = stages.iter().all(|(other, name)| other == index || name != stage_name);
            let prefix = match stage_name {
                Some(name) if alone => name.clone(),
                Some(name) => format!("{name} ({})", index + 1),
                None => format!("stage {}", index + 1),
            };
            // A workload that is named after its op says nothing that the line's op does not.
            let plain = line.name == line.op_name();
            line.name = if plain { prefix } else { format!("{prefix}/{}", line.name) };
        }
    }
}

impl<'a> Line<'a> {
    pub fn op_name(&self) -> &'static str {
        self.kind.map_or("total", OpKind::name)
    }

    /// As findings name the line.
    pub fn label(&self) -> String {
        if self.name == self.op_name() {
            self.name.clone()
        } else {
            format!("{}/{}", self.name, self.op_name())
        }
    }

    /// Syncs that belong to the writes of a mix are no load of their own: their rate says nothing.
    pub fn is_load(&self) -> bool {
        self.kind != Some(OpKind::Fsync) || self.parts[0].spec().mix.contains_key(&OpKind::Fsync)
    }

    /// Whether any of it is of this stage.
    pub fn is_in(&self, stage: u32) -> bool {
        self.parts.iter().any(|p| p.stage.index == stage)
    }

    /// Relative half width of the interval over repeats; of fewer than three there is none.
    pub fn half_width_of_runs(&self, data: &RunData) -> Option<f64> {
        let means = self.run_means(data);
        if means.len() < 3 { None } else { of_runs(&means).map(|e| e.relative_half_width()) }
    }

    /// Successful ops per second of each repeat.
    pub fn run_means(&self, data: &RunData) -> Vec<f64> {
        self.parts.iter().map(|p| self.mean_of(data, p, CountedWork::Ops)).collect()
    }

    /// What one repeat did per second: in its window, or of a phase that is taken whole, from its start to the end of its last op.
    fn mean_of(&self, data: &RunData, p: &Part<'a>, work: CountedWork) -> f64 {
        self.long_ops(data, p, work)
            .map_or_else(|| self.ended_per_s(data, p, work), |l| l.per_s(data.step_ns))
    }

    /// The same, by what ended in that time.
    fn ended_per_s(&self, data: &RunData, p: &Part<'a>, work: CountedWork) -> f64 {
        let whole = is_taken_whole(data);
        let of = if whole { p.counted } else { p.totals };
        let ended = work.of_all(&p.series_in(of, self.kind)) as f64;
        ended / if whole { p.phase_s() } else { p.window_s(data.grid_ns) }
    }

    /// Of ops that last longer than a step: what was done in the window.
    fn long_ops(&self, data: &RunData, p: &Part<'a>, work: CountedWork) -> Option<LongOps> {
        long_ops::done(p, self.kind, work, data, p.window_ns(data.grid_ns))
    }

    /// Attempts of a second, each repeat's in proportion to the rate that is told of it.
    fn attempts_per_s(&self, data: &RunData, attempts: u64, window_s: f64) -> f64 {
        let weight = |p: &Part<'a>| p.window_s(data.grid_ns);
        let sum = |f: &dyn Fn(&Part<'a>) -> f64| self.parts.iter().map(|p| f(p) * weight(p)).sum::<f64>();
        let ended = sum(&|p| self.ended_per_s(data, p, CountedWork::Ops));
        let told = sum(&|p| self.mean_of(data, p, CountedWork::Ops));
        attempts as f64 / window_s * if ended > 0.0 { told / ended } else { 1.0 }
    }

    pub fn summary(&self, data: &RunData) -> WorkloadSummary {
        let grid_ns = data.grid_ns;
        let first = self.parts[0];
        let spec = first.spec();
        let whole = is_taken_whole(data);
        let window_s: f64 =
            self.parts.iter().map(|p| if whole { p.phase_s() } else { p.window_s(grid_ns) }).sum();
        let series: Vec<&Series> = self.parts.iter().flat_map(|p| p.series(self.kind)).collect();
        let counted: Vec<&Series> =
            self.parts.iter().flat_map(|p| p.series_in(p.counted, self.kind)).collect();
        let outcomes = outcomes(&counted);
        let ended = |s: &&Series| {
            s.counts.outcomes.iter().sum::<u64>() - s.counts.outcomes[Outcome::Cancelled.index()]
        };
        let attempts: u64 = if whole { &counted } else { &series }.iter().map(ended).sum();
        let moves = self.kind.is_none_or(OpKind::moves_bytes);
        // Of workloads of several sizes: the mean of what was done.
        let sizes =
            first.specs(self.kind).into_iter().map(|w| nominal_size(w, self.kind)).collect::<BTreeSet<_>>();
        let size_bytes = match sizes.len() {
            0 | 1 => nominal_size(spec, self.kind),
            _ => {
                let (ok, bytes) = series.iter().fold((0, 0), |(n, b), s| (n + s.ok(), b + s.counts.bytes_ok));
                bytes / ok.max(1)
            }
        };
        WorkloadSummary {
            name: self.name.clone(),
            op: self.op_name().into(),
            valid: true,
            mix: if self.kind.is_none() {
                spec.mix.iter().map(|(k, w)| (k.name().to_owned(), f64::from(*w))).collect()
            } else {
                BTreeMap::new()
            },
            together: if self.together { first.specs(self.kind).len() as u32 } else { 0 },
            size_bytes,
            size: serde_json::to_value(&spec.size).unwrap_or_default(),
            concurrency: first.concurrency(self.kind),
            offered_per_s: first.offered_per_s(self.kind),
            window_s,
            horizon_s: self.parts.iter().map(|p| horizon_s(p.stage)).fold(0.0, f64::max),
            warmup_s: seconds_between(Some(first.stage.start_ns), Some(first.window_ns(grid_ns).0)),
            tail_s: seconds_between(Some(first.window_ns(grid_ns).1), first.stage.end_ns),
            repeats: self.parts.len() as u32,
            load: self.load().into(),
            each_ops_per_s: self.each(data),
            ops_per_s: self.ops_per_s(data),
            bytes_per_s: moves.then(|| self.estimate(data, CountedWork::Bytes)).flatten(),
            attempts_per_s: self.attempts_per_s(data, attempts, window_s),
            latency_ns: percentiles::of_parts(&self.parts, self.kind, &series),
            outcomes,
            littles_law: self.littles_law(data),
            client: self.client(data),
            per_endpoint: self.per_endpoint(window_s),
            notes: self.notes(data),
        }
    }

    fn ops_per_s(&self, data: &RunData) -> Option<Estimate> {
        self.is_load().then(|| self.estimate(data, CountedWork::Ops)).flatten()
    }

    /// The rate that is printed, where that is of one stage: repeats are judged together.
    pub fn printed(&self, data: &RunData) -> Option<Estimate> {
        self.ops_per_s(data).filter(|_| self.parts.len() == 1)
    }

    /// One run: work over time, with the interval of the series in it. Repeats: Student's t over the logs of the run means.
    fn estimate(&self, data: &RunData, work: CountedWork) -> Option<Estimate> {
        if self.parts.len() == 1 {
            return self.estimate_one(data, work);
        }
        let means: Vec<f64> = self.parts.iter().map(|p| self.mean_of(data, p, work)).collect();
        match self.parts[..] {
            [_, _] => {
                of_two(&means, &self.parts.iter().map(|p| self.within(data, p, work)).collect::<Vec<_>>())
            }
            _ => of_runs(&means),
        }
    }

    /// One repeat's own rate, with the interval of the series in it.
    fn within(&self, data: &RunData, part: &Part<'a>, work: CountedWork) -> Option<Estimate> {
        let alone =
            Line { name: self.name.clone(), kind: self.kind, together: self.together, parts: vec![*part] };
        alone.estimate_one(data, work)
    }

    /// Each repeat's own rate; empty where there is one only. A repeat that was too short for an interval has none.
    fn each(&self, data: &RunData) -> Vec<Estimate> {
        if self.parts.len() < 2 || !self.is_load() {
            return Vec::new();
        }
        let own = |p: &Part<'a>| {
            let known = self.within(data, p, CountedWork::Ops);
            known.unwrap_or_else(|| boundless(self.mean_of(data, p, CountedWork::Ops)))
        };
        self.parts.iter().map(own).collect()
    }

    /// The load that the line is of, as `randrw` is for its reads.
    fn load(&self) -> &'static str {
        let spec = self.parts[0].spec();
        let has = |k: OpKind| spec.mix.get(&k).is_some_and(|w| *w > 0);
        let kinds = spec.mix.values().filter(|w| **w > 0).count();
        let random = !matches!(spec.keys, KeyDist::Sequential);
        match (has(OpKind::Read), has(OpKind::Write)) {
            (true, true) if random => "randrw",
            (true, true) => "rw",
            (true, false) if random && kinds == 1 => "randread",
            (false, true) if random && kinds == 1 => "randwrite",
            _ if kinds > 1 => "mix",
            _ => self.op_name(),
        }
    }

    fn estimate_one(&self, data: &RunData, work: CountedWork) -> Option<Estimate> {
        let only = self.parts.first()?;
        if let Some(long) = self.long_ops(data, only, work) {
            let (part, n_eff) = long.half_width?;
            let value = long.per_s(data.step_ns);
            return Some(Estimate {
                value,
                low: (value * (1.0 - part)).max(0.0),
                high: value * (1.0 + part),
                n_eff,
            });
        }
        let counts = self.counts(data, only, work);
        let within = *rate::estimate(&counts, data.step_ns as f64 / 1e9).known()?;
        // Points are whole steps inside the window; the value counts the whole window, or the whole phase.
        let value = self.mean_of(data, only, work);
        let moved = |x: f64| (value + x - within.value).max(0.0);
        // Of slices that are alike the interval has no width, and its ends may be off by the last digit.
        let (low, high) = (moved(within.low).min(value), moved(within.high).max(value));
        Some(Estimate { value, low, high, n_eff: within.n_eff })
    }

    /// One number per step of the window, summed over the line's kinds.
    fn counts(&self, data: &RunData, part: &Part<'_>, work: CountedWork) -> Vec<f64> {
        let (from, to) = part.window_ns(data.grid_ns);
        part.counts(self.kind, data.step_ns, from, to).iter().map(|c| work.of(c) as f64).collect()
    }

    /// Of the stage: what is in flight is counted over all its workloads.
    fn littles_law(&self, data: &RunData) -> Option<plimsoll_model::summary::LittlesLaw> {
        let mut sums = Sums::default();
        for p in &self.parts {
            sums.add(&law::sums(data, p.stage, p.totals, p.window_s(data.grid_ns))?);
        }
        LittlesLawCheck::of(&sums).map(|c| c.summary())
    }

    fn client(&self, data: &RunData) -> ClientSummary {
        let mut c = ClientSummary::default();
        let (mut bytes, mut weight, mut in_flight_s) = (0.0, 0.0, 0.0);
        // By agent, over the repeats: time that its workers lived, and that they waited.
        let mut lived: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for p in &self.parts {
            let (from, to) = p.window_ns(data.grid_ns);
            let counts = &p.totals.client;
            let seconds = p.window_s(data.grid_ns);
            let machines = machines(data, p.stage);
            let seen: Vec<Resources> = machines
                .iter()
                .map(|(agent, host)| Resources::of(&host.samples, &agent.host.machine.nics, from, to))
                .collect();
            let sampled: Option<f64> = seen.iter().map(|r| r.process_cpu_s).sum();
            c.cpu_s +=
                sampled.filter(|_| is_each_sampled(data, p.stage)).unwrap_or(counts.cpu_ns as f64 / 1e9);
            c.rss_bytes = c.rss_bytes.max(seen.iter().map(|r| r.rss_bytes).fold(0, u64::saturating_add));
            c.system_cpu += mean_of_known(seen.iter().map(|r| r.system_cpu)) * seconds;
            c.steal += mean_of_known(seen.iter().map(|r| r.steal)) * seconds;
            c.reconnects += counts.reconnects;
            c.late_ops += counts.late_ops;
            c.paused_s += counts.paused_ns as f64 / 1e9;
            in_flight_s += counts.in_flight_ns as f64 / 1e9;
            let all = [(usize::MAX, counts)];
            let each = p.totals.agents.iter().map(|a| (a.agent, &a.client));
            for (agent, counts) in each.chain(all.into_iter().filter(|_| p.totals.agents.is_empty())) {
                let (alive, waited) = lived.entry(agent).or_default();
                *alive += counts.alive_ns as f64;
                *waited += counts.waited_ns as f64;
            }
            bytes += p.totals.series.iter().map(|s| s.counts.bytes_moved as f64).sum::<f64>();
            weight += seconds;
        }
        let busy =
            lived.into_values().filter(|(alive, _)| *alive > 0.0).map(|(alive, waited)| 1.0 - waited / alive);
        c.busy_fraction = busy.reduce(f64::max).map_or(0.0, |b| b.clamp(0.0, 1.0));
        c.cpu_s_per_gib = (bytes > 0.0).then(|| c.cpu_s / (bytes / (1u64 << 30) as f64));
        if self.parts.iter().any(|p| backs_off(data, p.spec())) {
            c.held_back = paused_share(c.paused_s, in_flight_s);
        }
        c.system_cpu /= weight.max(f64::MIN_POSITIVE);
        c.steal /= weight.max(f64::MIN_POSITIVE);
        c
    }

    fn per_endpoint(&self, window_s: f64) -> Vec<EndpointSummary> {
        if self.together {
            // Each workload counts its own list of endpoints.
            return Vec::new();
        }
        let names = self.parts[0].stage.endpoints.get(usize::from(self.parts[0].workload));
        let mut sums: Vec<EndpointCounts> = Vec::new();
        for s in self.parts.iter().flat_map(|p| p.series(self.kind)) {
            sums.resize(sums.len().max(s.endpoints.len()), EndpointCounts::default());
            sums.iter_mut().zip(&s.endpoints).for_each(|(a, b)| a.merge(b));
        }
        let summary = |(i, e): (usize, &EndpointCounts)| EndpointSummary {
            endpoint: names.and_then(|n| n.get(i)).cloned().unwrap_or_else(|| format!("endpoint {}", i + 1)),
            ops_per_s: e.ok as f64 / window_s,
            bytes_per_s: e.bytes_ok as f64 / window_s,
            mean_response_ns: if e.ok > 0 { e.response_sum_ns as f64 / e.ok as f64 } else { 0.0 },
            max_response_ns: e.response_max_ns,
            ok: e.ok,
            throttled: e.throttled,
            failed: e.failed,
        };
        sums.iter().enumerate().map(summary).collect()
    }

    fn notes(&self, data: &RunData) -> Vec<String> {
        let mut notes: Vec<String> =
            data.environment.notes.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        for p in &self.parts {
            let of = p.stage.report.notes.iter().enumerate();
            let mine = of.filter(|(i, _)| p.together || *i == usize::from(p.workload));
            for note in mine.flat_map(|(_, notes)| notes) {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
        }
        notes.extend(self.note_of_long_ops(data));
        notes
    }

    /// Whoever counts what ended, as progress and the tables of endpoints and agents do, comes to another rate: why, and to which.
    fn note_of_long_ops(&self, data: &RunData) -> Option<String> {
        let [part] = &self.parts[..] else { return None };
        let told = self.long_ops(data, part, CountedWork::Ops)?.per_s(data.step_ns);
        let ended = self.ended_per_s(data, part, CountedWork::Ops);
        let is_other = (told - ended).abs() > OTHER_RATE * told;
        is_other.then(|| {
            format!(
                "rate: of what was done in the window, with the part of ops that were in progress at its ends; those that ended in it make {} op/s, \
                 which is what progress and the tables of endpoints count",
                significant(ended, 3)
            )
        })
    }

    /// Where the line's data lies; a mixed workload's total, and a sum of workloads, has no series of its own.
    pub fn spans(&self, line: usize, data: &RunData) -> Vec<LineSpan> {
        let Some(kind) = self.kind.filter(|_| !self.together) else { return Vec::new() };
        let s = |ns: u64| ns as f64 / 1e9;
        let span = |(i, p): (usize, &Part<'_>)| {
            let (from, to) = p.window_ns(data.grid_ns);
            LineSpan {
                line,
                stage: p.stage.index,
                workload: p.workload,
                kind,
                repeat: i as u32,
                start_s: s(p.stage.start_ns),
                end_s: s(p.stage.end_ns.unwrap_or(p.stage.last_ns)),
                window_start_s: s(from),
                window_end_s: s(to),
            }
        };
        self.parts.iter().enumerate().map(span).collect()
    }
}

/// Whether the run's stages are phases that are taken whole: those of the file benchmark, whose figure is the work of a phase over
/// the time from its start to its last fsync. It has that one figure everywhere: a window inside the phase would leave the fsync out.
pub fn is_taken_whole(data: &RunData) -> bool {
    data.plan.labels.get(suite::LABEL).is_some_and(|s| s == suite::FILE)
}

/// Zero where nothing is known.
fn mean_of_known(values: impl Iterator<Item = Option<f64>>) -> f64 {
    let (sum, n) = values.flatten().fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

/// A rate whose interval is not known.
fn boundless(value: f64) -> Estimate {
    Estimate { value, low: f64::NEG_INFINITY, high: f64::INFINITY, n_eff: 1.0 }
}

/// Of two runs how much runs differ is not known (Student's t with one degree of freedom tells nothing): what is given is what both
/// have seen, from the lower end of the lower one's own interval to the upper end of the other's. Where one of them is too short for an
/// interval of its own, the two rates are all that is known, and what lies between them has the mean of all runs in it in one of two cases only:
/// then Student's t is what there is.
fn of_two(means: &[f64], within: &[Option<Estimate>]) -> Option<Estimate> {
    let of_both = of_runs(means)?;
    let value = of_both.value;
    let Some(own) = within.iter().copied().collect::<Option<Vec<Estimate>>>() else { return Some(of_both) };
    let low = own.iter().map(|e| e.low.max(0.0)).fold(value, f64::min);
    let high = own.iter().map(|e| e.high).fold(value, f64::max);
    Some(Estimate { value, low, high, n_eff: means.len() as f64 })
}

/// Runs are the unit: Student's t on the logs of their means; the value is their geometric mean.
///
/// A run with no throughput has no log: the interval is then on the means themselves.
pub fn of_runs(means: &[f64]) -> Option<Estimate> {
    let k = means.len() as f64;
    if means.len() < 2 || means.iter().any(|m| !m.is_finite()) {
        return None;
    }
    let logs = means.iter().all(|m| *m > 0.0);
    let x: Vec<f64> = means.iter().map(|m| if logs { m.ln() } else { *m }).collect();
    let mean = x.iter().sum::<f64>() / k;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let half = student::t95(k - 1.0) * (variance / k).sqrt();
    let back = |v: f64| if logs { v.exp() } else { v };
    Some(Estimate { value: back(mean), low: back(mean - half), high: back(mean + half), n_eff: k })
}

fn outcomes(series: &[&Series]) -> BTreeMap<String, u64> {
    let count = |o: Outcome| series.iter().map(|s| s.counts.outcomes[o.index()]).sum::<u64>();
    let seen = Outcome::ALL.into_iter().filter(|o| o.is_ok() || count(*o) > 0);
    seen.map(|o| (o.name().to_owned(), count(o))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_unit() {
        let e = of_runs(&[100.0, 100.0, 100.0]).unwrap();
        assert!((e.value - 100.0).abs() < 1e-9 && (e.high - e.low).abs() < 1e-9);
        assert_eq!(e.n_eff, 3.0);
        // ln 90, ln 110: t(1 df) = 12.706 on half the log distance.
        let e = of_runs(&[90.0, 110.0]).unwrap();
        assert!((e.value - (90.0f64 * 110.0).sqrt()).abs() < 1e-9);
        let half = 12.706_204_736 * ((110.0f64 / 90.0).ln() / 2.0);
        assert!((e.high / e.value / half.exp() - 1.0).abs() < 1e-6, "{e:?}");
        assert!(of_runs(&[1.0]).is_none());
        // Two runs: the hull of what each saw, not the twelve-fold of their distance.
        let own = |v: f64| Some(Estimate::symmetric(v, 2.0, 9.0));
        let e = of_two(&[90.0, 110.0], &[own(90.0), own(110.0)]).unwrap();
        assert_eq!((e.low, e.high, e.n_eff), (88.0, 112.0, 2.0));
        // The smaller and the larger one were "a 95 % interval".
        assert_eq!(of_two(&[90.0, 110.0], &[None, own(110.0)]), of_runs(&[90.0, 110.0]));
        let zero = of_runs(&[0.0, 2.0]).unwrap();
        assert_eq!(zero.value, 1.0);
    }
}
