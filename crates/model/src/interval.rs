//! What was seen in one slice of time. Intervals merge: over workers, over endpoints, over time.

use crate::histogram::MergeHistogram;
use crate::{Histogram, OpKind, Outcome};

/// Names one line of results: a workload of a stage, and one kind of op in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId {
    /// Index of the stage in the order in which stages ran.
    pub stage: u32,
    /// Index of the workload in the stage.
    pub workload: u16,
    /// Of the workload's mix, or of what its ops consist of (parts, syncs).
    pub kind: OpKind,
}

/// Counts and latencies of one series in one slice of time. `H` is the form of its histograms: dense while it is measured and
/// judged, sparse where it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<H = Histogram> {
    /// What it is of.
    pub id: SeriesId,
    /// Exact, in every form.
    pub counts: SeriesCounts,
    /// Intended start to done (open loop); in a closed loop this is the service time. `Ok` ops only.
    pub response: H,
    /// Submission to done; present in open loop only (in a closed loop it is `response`).
    pub service: Option<H>,
    /// Submission to first byte of the body or head: GET only.
    pub first_byte: Option<H>,
    /// Duration of the submission itself (fio's slat): files only.
    pub submission: Option<H>,
    /// Latencies of throttled attempts: shown, never mixed in.
    pub throttled: Option<H>,
    /// Per endpoint: the counts, with a coarse mean instead of a histogram.
    pub endpoints: Vec<EndpointCounts>,
}

/// What of a series can be summed up, in whatever form its latencies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesCounts {
    /// Ops whose first submission fell into this slice.
    pub started: u64,
    /// Ops that ended in this slice, by outcome (index: [`Outcome::index`]).
    pub outcomes: [u64; Outcome::COUNT],
    /// Payload bytes as they moved on the wire or to the device, of all attempts.
    pub bytes_moved: u64,
    /// Payload bytes of ops that ended `Ok` in this slice.
    pub bytes_ok: u64,
    /// Sum over ops that ended `Ok` or throttled of their service time: for Little's law.
    pub in_system_ns: u128,
    /// The same over ops that ended in any other way: failed, timed out, cancelled.
    pub failed_in_system_ns: u128,
}

impl SeriesCounts {
    /// Ops that are throughput.
    pub fn ok(&self) -> u64 {
        self.outcomes[Outcome::Ok.index()]
    }

    /// Refused attempts: 429 and 503.
    pub fn throttled(&self) -> u64 {
        self.sum(Outcome::is_throttled)
    }

    /// Ops that ended in any other way, without those that were cancelled at the end.
    pub fn failed(&self) -> u64 {
        self.sum(Outcome::is_failure)
    }

    fn sum(&self, pick: impl Fn(Outcome) -> bool) -> u64 {
        let picked = Outcome::ALL.into_iter().filter(|o| pick(*o)).map(|o| self.outcomes[o.index()]);
        picked.fold(0, u64::saturating_add)
    }

    /// Adds those of another slice, worker or series. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.started = self.started.saturating_add(other.started);
        for (a, b) in self.outcomes.iter_mut().zip(other.outcomes) {
            *a = a.saturating_add(b);
        }
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.bytes_ok = self.bytes_ok.saturating_add(other.bytes_ok);
        self.in_system_ns = self.in_system_ns.saturating_add(other.in_system_ns);
        self.failed_in_system_ns = self.failed_in_system_ns.saturating_add(other.failed_in_system_ns);
    }
}

/// The part of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointCounts {
    /// Ops that ended `Ok`.
    pub ok: u64,
    /// Refused attempts.
    pub throttled: u64,
    /// Ops that ended otherwise, without the cancelled ones.
    pub failed: u64,
    /// Payload of the ops that ended `Ok`.
    pub bytes_ok: u64,
    /// Sum of the response times of `Ok` ops.
    pub response_sum_ns: u128,
    /// The longest response of an `Ok` op.
    pub response_max_ns: u64,
}

/// Which histograms a series carries beside the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesShape {
    /// Open loops only.
    pub service: bool,
    /// GET only.
    pub first_byte: bool,
    /// Files only: it costs one more clock read a batch.
    pub submission: bool,
    /// Where something may refuse.
    pub throttled: bool,
    /// How many have counts of their own; 0: none.
    pub endpoints: usize,
}

impl Series {
    /// Allocates everything; afterwards nothing in it allocates.
    pub fn new(id: SeriesId, shape: SeriesShape) -> Self {
        let hist = |on: bool| on.then(Histogram::new);
        Self {
            id,
            counts: SeriesCounts::default(),
            response: Histogram::new(),
            service: hist(shape.service),
            first_byte: hist(shape.first_byte),
            submission: hist(shape.submission),
            throttled: hist(shape.throttled),
            endpoints: vec![EndpointCounts::default(); shape.endpoints],
        }
    }

    /// Empties it for the next slice without giving memory back.
    pub fn clear(&mut self) {
        self.counts = SeriesCounts::default();
        self.response.clear();
        let optional = [&mut self.service, &mut self.first_byte, &mut self.submission, &mut self.throttled];
        optional.into_iter().flatten().for_each(Histogram::clear);
        self.endpoints.fill(EndpointCounts::default());
    }
}

impl<H> Series<H> {
    /// Ops that are throughput.
    pub fn ok(&self) -> u64 {
        self.counts.ok()
    }

    /// Refused attempts: 429 and 503.
    pub fn throttled(&self) -> u64 {
        self.counts.throttled()
    }

    /// Ops that ended in any other way, without those that were cancelled at the end.
    pub fn failed(&self) -> u64 {
        self.counts.failed()
    }

    /// The same with its histograms in another form.
    pub fn to_form<G: for<'a> From<&'a H>>(&self) -> Series<G> {
        let optional = |h: &Option<H>| h.as_ref().map(G::from);
        Series {
            id: self.id,
            counts: self.counts,
            response: G::from(&self.response),
            service: optional(&self.service),
            first_byte: optional(&self.first_byte),
            submission: optional(&self.submission),
            throttled: optional(&self.throttled),
            endpoints: self.endpoints.clone(),
        }
    }
}

impl<H: MergeHistogram> Series<H> {
    /// Adds another slice, worker or agent of the same series. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.id, other.id);
        self.counts.merge(&other.counts);
        self.response.merge(&other.response);
        merge_optional(&mut self.service, &other.service);
        merge_optional(&mut self.first_byte, &other.first_byte);
        merge_optional(&mut self.submission, &other.submission);
        merge_optional(&mut self.throttled, &other.throttled);
        EndpointCounts::merge_all(&mut self.endpoints, &other.endpoints);
    }
}

fn merge_optional<H: MergeHistogram>(a: &mut Option<H>, b: &Option<H>) {
    match (a, b) {
        (Some(a), Some(b)) => a.merge(b),
        (a @ None, Some(b)) => *a = Some(b.clone()),
        (_, None) => {}
    }
}

impl EndpointCounts {
    /// Adds to each endpoint's counts those of the same number.
    pub fn merge_all(sum: &mut Vec<Self>, other: &[Self]) {
        if sum.len() < other.len() {
            sum.resize(other.len(), Self::default());
        }
        sum.iter_mut().zip(other).for_each(|(a, b)| a.merge(b));
    }

    /// Adds what another worker, agent or slice counted of the same endpoint.
    pub fn merge(&mut self, other: &Self) {
        self.ok = self.ok.saturating_add(other.ok);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.failed = self.failed.saturating_add(other.failed);
        self.bytes_ok = self.bytes_ok.saturating_add(other.bytes_ok);
        self.response_sum_ns = self.response_sum_ns.saturating_add(other.response_sum_ns);
        self.response_max_ns = self.response_max_ns.max(other.response_max_ns);
    }
}

/// All series of one worker (or, after merging, of all workers) in one slice of the shared grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval<H = Histogram> {
    /// Number of the slice on the run's grid: it covers [index, index + 1) times the grid's step.
    pub index: u64,
    /// In order of their ids, without doubles.
    pub series: Vec<Series<H>>,
    /// Of the same workers.
    pub client: ClientCounts,
}

/// What the workers themselves did in the slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounts {
    /// Worker threads merged into this.
    pub workers: u32,
    /// Time that workers existed in the slice, summed over workers.
    pub alive_ns: u64,
    /// Time that workers waited for completions (or for the next intended start), summed.
    pub waited_ns: u64,
    /// Thread CPU time, summed over workers.
    pub cpu_ns: u64,
    /// Time that workers were ready to run and waited for a CPU, summed (`/proc/thread-self/schedstat`); 0 where
    /// the kernel does not say. Each waking costs some microseconds of it: see `cpu_turns`.
    pub run_wait_ns: u64,
    /// How often workers got a CPU.
    pub cpu_turns: u64,
    /// In-flight ops integrated over the slice (op-nanoseconds): mean in flight is this over its length.
    pub in_flight_ns: u128,
    /// Time that slots paused after refused attempts (`--on-throttle`), integrated over the slice (slot-nanoseconds): what was
    /// not asked for then says nothing of the storage.
    pub paused_ns: u128,
    /// Ops submitted later than intended by more than the tolerance because the worker was busy.
    pub late_ops: u64,
    /// Connections opened after the first on their slot (idle closes, errors).
    pub reconnects: u64,
}

impl ClientCounts {
    /// Adds another worker's, agent's or slice's. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.workers = self.workers.saturating_add(other.workers);
        self.alive_ns = self.alive_ns.saturating_add(other.alive_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.run_wait_ns = self.run_wait_ns.saturating_add(other.run_wait_ns);
        self.cpu_turns = self.cpu_turns.saturating_add(other.cpu_turns);
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
        self.paused_ns = self.paused_ns.saturating_add(other.paused_ns);
        self.late_ops = self.late_ops.saturating_add(other.late_ops);
        self.reconnects = self.reconnects.saturating_add(other.reconnects);
    }

    /// Share of their time in which workers did not wait, 0 to 1; `None` where none lived.
    pub fn busy_fraction(&self) -> Option<f64> {
        let alive = self.alive_ns as f64;
        (alive > 0.0).then(|| (1.0 - self.waited_ns as f64 / alive).clamp(0.0, 1.0))
    }

    /// Of all of these: share of the slots' time, of those that had an op or paused, in which they paused after refusals.
    pub fn held_back<'a>(all: impl IntoIterator<Item = &'a Self>) -> f64 {
        let add = |(paused, busy): (f64, f64), c: &Self| {
            (paused + c.paused_ns as f64, busy + c.in_flight_ns as f64)
        };
        let (paused, busy) = all.into_iter().fold((0.0, 0.0), add);
        paused / (paused + busy).max(f64::MIN_POSITIVE)
    }
}

impl Interval {
    /// Empties it for reuse as slice `index`.
    pub fn reset(&mut self, index: u64) {
        self.index = index;
        self.series.iter_mut().for_each(Series::clear);
        self.client = ClientCounts::default();
    }
}

impl<H> Interval<H> {
    /// Without any series: what others are merged into.
    pub fn empty(index: u64) -> Self {
        Self { index, series: Vec::new(), client: ClientCounts::default() }
    }

    /// `None`: nothing of it is in this slice.
    pub fn get(&self, id: SeriesId) -> Option<&Series<H>> {
        self.series.iter().find(|s| s.id == id)
    }

    /// The same with its histograms in another form.
    pub fn to_form<G: for<'a> From<&'a H>>(&self) -> Interval<G> {
        let series = self.series.iter().map(Series::to_form).collect();
        Interval { index: self.index, series, client: self.client }
    }
}

impl<H: MergeHistogram> Interval<H> {
    /// Adds another worker's, agent's or slice's counts. Series are matched by id; new ones are inserted in id order.
    pub fn merge(&mut self, other: &Self) {
        for s in &other.series {
            match self.series.binary_search_by_key(&s.id, |x| x.id) {
                Ok(i) => self.series[i].merge(s),
                Err(i) => self.series.insert(i, s.clone()),
            }
        }
        self.client.merge(&other.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_counts_stay_full() {
        let full = SeriesCounts {
            started: u64::MAX,
            outcomes: [u64::MAX; Outcome::COUNT],
            bytes_moved: u64::MAX,
            bytes_ok: u64::MAX,
            in_system_ns: u128::MAX,
            failed_in_system_ns: u128::MAX,
        };
        let mut sum = full;
        sum.merge(&full);
        assert_eq!(sum, full);
        assert_eq!([sum.ok(), sum.throttled(), sum.failed()], [u64::MAX; 3]);
    }
}
