//! The second pass over a file of requests: slices of the grid, in order, each as soon as no request can fall into it any more.

use std::collections::BTreeMap;
use std::io::Read;

use plimsoll_model::interval::{ClientCounts, EndpointCounts, SeriesShape};
use plimsoll_model::{Interval, OpKind, Outcome, Series, SeriesId};

use super::GRID_NS;
use super::request::{Request, Requests};
use super::survey::Survey;
use crate::error::ImportError;

/// Requests of slices that are still open: what is held of a file whose rows are in order is what ended in the time of the longest
/// request. 32 bytes each.
const MOST_HELD: usize = 2_000_000;
/// Slices that are open at once: those of three hours. About 1 KB each.
const MOST_OPEN: usize = 100_000;

/// Slices that are given although nothing starts or ends in them, of all stages: 28 hours. They alone can be many more than there are
/// rows: a row of an hour is 36,000.
const MOST_IDLE: u64 = 1_000_000;

/// What the second pass gives.
#[derive(Debug)]
pub enum Replayed<'a> {
    /// The stage of this number begins; the one before is over.
    Begin(usize),
    /// A slice of a stage. Its index counts from the first request of all.
    Slice(usize, &'a Interval),
}

/// A request that ended in a slice.
#[derive(Debug, Clone, Copy)]
struct Ended {
    kind: OpKind,
    stage: u8,
    outcome: Outcome,
    endpoint: u8,
    took_ns: u64,
    first_byte_ns: Option<u32>,
    bytes: u64,
}

/// A slice that is still open.
#[derive(Debug, Default)]
struct Slice {
    ended: Vec<Ended>,
    started: BTreeMap<(u8, OpKind), u64>,
    /// Of requests that were in flight in a part of it, by stage.
    part_ns: BTreeMap<u8, u128>,
    /// More requests, or fewer, that are in flight from its beginning to its end than in the one before, by stage.
    change: BTreeMap<u8, i64>,
}

/// Reads the same file again and gives each slice to `take`. An error of `take` ends it.
pub fn replay<E: From<ImportError>>(
    reader: impl Read,
    survey: &Survey,
    mut take: impl FnMut(Replayed<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut requests = Requests::open(reader)?;
    let mut open = Open::new(survey);
    let (mut latest, mut rows) = (0, 0u64);
    while let Some(r) = requests.next()? {
        rows += 1;
        let Some(kind) = r.kind else { continue };
        let changed = || {
            requests.bad(
                "it is not as it was a moment ago",
                "The file was changed while it was read: import it again.",
            )
        };
        let at = open.place(&r).ok_or_else(changed)?;
        let stage = survey.stage_of(kind, r.start_ns).ok_or_else(changed)?;
        if open.held >= MOST_HELD || open.slices.len() >= MOST_OPEN {
            return Err(too_many_open(&requests, survey.disorder_ns, open.held).into());
        }
        let endpoint = survey.endpoints.iter().position(|e| e == requests.endpoint()).unwrap_or(0);
        open.add(kind, stage as u8, endpoint as u8, at, &r);
        latest = latest.max(at.0);
        // No later row starts before this.
        let closed = latest.saturating_sub(survey.disorder_ns) / GRID_NS;
        open.close_before(closed, &requests, &mut take)?;
    }
    if rows != survey.requests {
        let text = "it is shorter than it was a moment ago";
        return Err(ImportError::new(text, "The file was changed while it was read: import it again.").into());
    }
    open.close_before(u64::MAX, &requests, &mut take)
}

/// The slices that a request may still fall into, and what of them is in flight.
struct Open<'a> {
    survey: &'a Survey,
    /// Number of the first of them.
    first: u64,
    /// By their numbers; in those between them nothing starts or ends.
    slices: BTreeMap<u64, Slice>,
    held: usize,
    /// Slices so far in which nothing started or ended.
    idle: u64,
    /// Requests in flight through the whole of the first slice, by stage.
    through: BTreeMap<u8, i64>,
    /// Made once for each stage: 270 KB a histogram.
    scratch: Option<(usize, Interval)>,
}

impl<'a> Open<'a> {
    fn new(survey: &'a Survey) -> Self {
        let (slices, through) = (BTreeMap::new(), BTreeMap::new());
        Self { survey, first: 0, slices, held: 0, idle: 0, through, scratch: None }
    }

    /// Start and end of a request since the first one; `None`: it is before all that the first pass saw.
    fn place(&self, r: &Request) -> Option<(u64, u64)> {
        let start = u64::try_from(r.start_ns.checked_sub(self.survey.start_ns())?).ok()?;
        (start / GRID_NS >= self.first).then_some((start, start + r.duration_ns()))
    }

    fn slice(&mut self, number: u64) -> &mut Slice {
        self.slices.entry(number).or_default()
    }

    fn add(&mut self, kind: OpKind, stage: u8, endpoint: u8, (start, end): (u64, u64), r: &Request) {
        let (from, to) = (start / GRID_NS, end / GRID_NS);
        *self.slice(from).started.entry((stage, kind)).or_default() += 1;
        let part = |open: &mut Self, number, ns: u64| {
            *open.slice(number).part_ns.entry(stage).or_default() += u128::from(ns);
        };
        if from == to {
            part(self, from, end - start);
        } else {
            part(self, from, (from + 1) * GRID_NS - start);
            part(self, to, end - to * GRID_NS);
            *self.slice(from + 1).change.entry(stage).or_default() += 1;
            *self.slice(to).change.entry(stage).or_default() -= 1;
        }
        self.held += 1;
        self.slice(to).ended.push(Ended {
            kind,
            stage,
            outcome: r.outcome,
            endpoint,
            took_ns: end - start,
            first_byte_ns: r.first_byte_ns.map(|ns| u32::try_from(ns).unwrap_or(u32::MAX)),
            bytes: r.bytes,
        });
    }

    /// Gives away all slices before that number.
    fn close_before<R: Read, E: From<ImportError>>(
        &mut self,
        number: u64,
        requests: &Requests<R>,
        take: &mut impl FnMut(Replayed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let empty = Slice::default();
        loop {
            let next = self.slices.keys().next().copied();
            let until = next.unwrap_or(self.first).min(number);
            // What is in flight all the time has slices of its own; a pause has none.
            if self.through.values().any(|n| *n > 0) {
                for index in self.first..until {
                    self.idle += 1;
                    if self.idle > MOST_IDLE {
                        return Err(too_idle(requests).into());
                    }
                    self.give_all(index, &empty, take)?;
                }
            }
            self.first = self.first.max(until);
            let Some(entry) = self.slices.first_entry().filter(|e| *e.key() < number) else { return Ok(()) };
            let (index, slice) = entry.remove_entry();
            self.first = index + 1;
            self.held -= slice.ended.len();
            for (stage, n) in &slice.change {
                *self.through.entry(*stage).or_default() += n;
            }
            self.give_all(index, &slice, take)?;
        }
    }

    fn give_all<E>(
        &mut self,
        index: u64,
        slice: &Slice,
        take: &mut impl FnMut(Replayed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        (0..self.survey.stages.len()).try_for_each(|stage| self.give(index, stage, slice, take))
    }

    /// One stage's part of a slice, where it has one.
    fn give<E>(
        &mut self,
        index: u64,
        stage: usize,
        slice: &Slice,
        take: &mut impl FnMut(Replayed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let key = stage as u8;
        let through = self.through.get(&key).copied().unwrap_or(0).max(0) as u128;
        let in_flight_ns =
            through * u128::from(GRID_NS) + slice.part_ns.get(&key).copied().unwrap_or_default();
        let is_mine_too = |e: &Ended| e.stage == key;
        let is_mine = |e: &&Ended| is_mine_too(e);
        let started = slice.started.iter().filter(|((s, _), _)| *s == key);
        if in_flight_ns == 0
            && started.clone().next().is_none()
            && !slice.ended.iter().any(|e| e.stage == key)
        {
            return Ok(());
        }
        if self.scratch.as_ref().is_none_or(|(s, _)| *s != stage) {
            // A slice may hold the end of one stage and the beginning of the next: each begins once.
            let is_new = self.scratch.as_ref().is_none_or(|(s, _)| *s < stage);
            self.scratch = Some((stage, blank(self.survey, stage)));
            if is_new {
                take(Replayed::Begin(stage))?;
            }
        }
        let (_, interval) = self.scratch.as_mut().expect("it was just made");
        interval.reset(index);
        interval.client =
            ClientCounts { workers: self.survey.threads, in_flight_ns, ..ClientCounts::default() };
        for ((_, kind), n) in started {
            if let Some(s) = interval.series.iter_mut().find(|s| s.id.kind == *kind) {
                s.counts.started += n;
            }
        }
        for e in slice.ended.iter().filter(is_mine) {
            if let Some(s) = interval.series.iter_mut().find(|s| s.id.kind == e.kind) {
                record(s, e);
            }
        }
        take(Replayed::Slice(stage, interval))
    }
}

/// Why more is open than can be held: rows out of order keep slices open, and without such only what is in flight does.
fn too_many_open<R: Read>(requests: &Requests<R>, disorder_ns: u64, held: usize) -> ImportError {
    if disorder_ns >= GRID_NS {
        let by_s = disorder_ns as f64 / 1e9;
        return requests.bad(
            &format!("the rows before it are not in order of their start, by {by_s:.1} s"),
            "Have warp write the file in order: warp merge FILE --benchdata=SORTED",
        );
    }
    requests.bad(
        &format!("{held} requests are in flight at once there"),
        "No test has as many: the file is damaged, or was put together of others. Import it as warp wrote it.",
    )
}

fn too_idle<R: Read>(requests: &Requests<R>) -> ImportError {
    let hours = MOST_IDLE * GRID_NS / 3_600_000_000_000;
    requests.bad(
        &format!("nothing starts and nothing ends in more than {hours} hours of the time in which requests are in flight"),
        "A clock was set while warp ran, or the file is not of a load. Repeat the test.",
    )
}

/// An interval with the series of a stage.
fn blank(survey: &Survey, stage: usize) -> Interval {
    let mut kinds = survey.stages[stage].kinds.clone();
    kinds.sort_unstable();
    let several = survey.endpoints.len() > 1;
    let series = kinds.into_iter().map(|kind| {
        let shape = SeriesShape {
            first_byte: kind == OpKind::Get,
            throttled: true,
            endpoints: if several { survey.endpoints.len() } else { 0 },
            ..SeriesShape::default()
        };
        Series::new(SeriesId { stage: stage as u32, workload: 0, kind }, shape)
    });
    Interval { series: series.collect(), ..Interval::empty(0) }
}

fn record(s: &mut Series, e: &Ended) {
    let counts = &mut s.counts;
    counts.outcomes[e.outcome.index()] += 1;
    let endpoint = s.endpoints.get_mut(usize::from(e.endpoint));
    let mut none = EndpointCounts::default();
    let endpoint = endpoint.unwrap_or(&mut none);
    if e.outcome.is_ok() {
        counts.bytes_ok += e.bytes;
        // When bytes moved is not in the file: they count where their request ended.
        counts.bytes_moved += e.bytes;
        counts.in_system_ns += u128::from(e.took_ns);
        s.response.record(e.took_ns);
        if let (Some(h), Some(ns)) = (&mut s.first_byte, e.first_byte_ns) {
            h.record(u64::from(ns));
        }
        endpoint.ok += 1;
        endpoint.bytes_ok += e.bytes;
        endpoint.response_sum_ns += u128::from(e.took_ns);
        endpoint.response_max_ns = endpoint.response_max_ns.max(e.took_ns);
    } else if e.outcome.is_throttled() {
        counts.in_system_ns += u128::from(e.took_ns);
        if let Some(h) = &mut s.throttled {
            h.record(e.took_ns);
        }
        endpoint.throttled += 1;
    } else {
        counts.failed_in_system_ns += u128::from(e.took_ns);
        endpoint.failed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_too_much_open_is_told_by_its_cause() {
        let head = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\tcat\n";
        let mut row = Requests::open(head.as_bytes()).unwrap();
        assert!(row.next().unwrap().is_none());
        let told = |disorder_ns| too_many_open(&row, disorder_ns, 2_000_000).problem;
        assert_eq!(told(0), "2000000 requests are in flight at once there");
        assert!(told(2_500_000_000).contains("not in order of their start, by 2.5 s"));
    }
}
