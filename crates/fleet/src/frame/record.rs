//! Records of a stage's stream: a tag, a length, and what it is. Histograms travel as their non-empty buckets, as they lie on disk.

use plimsoll_crew::FromAgent;
use plimsoll_engine::{Output, TraceChunk};
use plimsoll_model::interval::EndpointCounts;
use plimsoll_model::trace::OpRecord;
use plimsoll_model::{Interval, OpKind, Outcome, SeriesId, WorkerId};
use plimsoll_store::sparse::SparseHistogram;
use plimsoll_store::varint::{Cursor, put_u64};
use plimsoll_store::{SparseInterval, SparseSeries, StoreError, codec};
use serde::{Deserialize, Serialize};

use crate::wire::ends::EndTold;

const INTERVAL: u8 = 1;
const TRACE: u8 = 2;
const END: u8 = 3;
/// A record is no longer: who says so is not believed.
const LONGEST: usize = 64 << 20;

/// A worker serves one workload of one stage, with a series for each kind of op at most: a slice of more would be made of many small
/// ones that take a megabyte each once they are dense.
const SERIES: usize = OpKind::ALL.len();
/// Nobody counts more in a slice: sums of many slices and workers still fit.
const MOST_COUNTED: u64 = 1 << 48;
/// Nor moves more bytes, or takes longer: a petabyte, and weeks.
const MOST_MEASURED: u64 = 1 << 52;
/// Nor has more in the system, in nanoseconds of ops.
const MOST_IN_SYSTEM: u128 = 1 << 96;

/// The last record of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfStream {
    /// How each worker ended.
    pub ends: Vec<EndTold>,
    /// XXH3-64 of all records before this one, as hex.
    pub hash: String,
}

/// What comes out of a stream.
#[derive(Debug)]
pub enum StreamRecord {
    /// Of a worker of the agent of this number.
    FromAgent(FromAgent),
    /// Nothing comes after it.
    End(EndOfStream),
}

/// Appends what a worker handed over.
pub fn put_output(output: &Output, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    let tag = match output {
        Output::Interval { worker, interval } => {
            return put_slice(worker.worker, &interval.to_form(), out);
        }
        Output::Trace(chunk) => {
            put_u64(&mut body, u64::from(chunk.worker.worker));
            put_u64(&mut body, chunk.records.len() as u64);
            chunk.records.iter().for_each(|r| put_op(r, &mut body));
            TRACE
        }
    };
    put(tag, &body, out);
}

/// Appends a slice of a worker.
pub fn put_slice(worker: u16, slice: &Interval<SparseHistogram>, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    put_u64(&mut body, u64::from(worker));
    codec::encode(slice, &mut body);
    put(INTERVAL, &body, out);
}

/// The slices at the beginning of `bytes`, as they travel; the rest is of another kind, or not all there.
pub fn take_slices(mut bytes: &[u8]) -> Result<Vec<(u16, Interval<SparseHistogram>)>, StoreError> {
    let mut out = Vec::new();
    while let [INTERVAL, a, b, c, d, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let Some((body, more)) = rest.split_at_checked(length) else { break };
        let (worker, slice) = slice(&mut Cursor::new(body), 0)?;
        out.push((worker.worker, slice));
        bytes = more;
    }
    Ok(out)
}

fn slice(c: &mut Cursor<'_>, agent: u32) -> Result<(WorkerId, Interval<SparseHistogram>), StoreError> {
    let worker = worker(c, agent)?;
    let sparse = codec::decode(c)?;
    can_be(&sparse)?;
    Ok((worker, sparse))
}

/// Appends the end.
pub fn put_end(end: &EndOfStream, out: &mut Vec<u8>) {
    put(END, &serde_json::to_vec(end).expect("plain data is always JSON"), out);
}

fn put(tag: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(body);
}

fn put_op(r: &OpRecord, out: &mut Vec<u8>) {
    let kind = OpKind::ALL.iter().position(|k| *k == r.kind).expect("ALL is all") as u64;
    for v in [u64::from(r.series), u64::from(r.slot), u64::from(r.endpoint), kind, r.outcome.index() as u64] {
        put_u64(out, v);
    }
    for v in [r.key, r.bytes, r.intended_ns, r.submitted_ns, r.first_byte_ns, r.done_ns] {
        put_u64(out, v);
    }
}

/// The record at the beginning of `bytes`, and its length; `None`: not all of it is there yet.
pub fn take(bytes: &[u8], agent: u32) -> Result<Option<(StreamRecord, usize)>, StoreError> {
    const HEAD: usize = 5;
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > LONGEST {
        return Err(StoreError::Record("length of a record of a stream"));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    Ok(Some((decode(head[0], body, agent)?, HEAD + length)))
}

fn decode(tag: u8, body: &[u8], agent: u32) -> Result<StreamRecord, StoreError> {
    let mut c = Cursor::new(body);
    match tag {
        INTERVAL => {
            let (worker, sparse) = slice(&mut c, agent)?;
            Ok(StreamRecord::FromAgent(FromAgent::Interval { worker, interval: Box::new(sparse) }))
        }
        TRACE => {
            let worker = worker(&mut c, agent)?;
            let count = c.count("number of ops")?;
            let records = (0..count).map(|_| op(&mut c, worker)).collect::<Result<_, _>>()?;
            Ok(StreamRecord::FromAgent(FromAgent::Trace(TraceChunk { worker, records })))
        }
        END => serde_json::from_slice(body)
            .map(StreamRecord::End)
            .map_err(|_| StoreError::Record("end of a stream")),
        _ => Err(StoreError::Record("tag of a stream")),
    }
}

/// Whether it is a slice that somebody can have measured.
fn can_be(slice: &Interval<SparseHistogram>) -> Result<(), StoreError> {
    let c = &slice.client;
    let mut counted = vec![c.late_ops, c.reconnects, c.cpu_turns, u64::from(c.workers)];
    let mut measured = vec![c.alive_ns, c.waited_ns, c.cpu_ns, c.run_wait_ns];
    let mut in_system = vec![c.in_flight_ns, c.paused_ns];
    for s in &slice.series {
        counted.push(s.counts.started);
        counted.extend(s.counts.outcomes);
        measured.extend([s.counts.bytes_moved, s.counts.bytes_ok]);
        in_system.extend([s.counts.in_system_ns, s.counts.failed_in_system_ns]);
        for e in &s.endpoints {
            counted.extend([e.ok, e.throttled, e.failed]);
            measured.push(e.bytes_ok);
            in_system.push(e.response_sum_ns);
        }
        let optional = [&s.service, &s.first_byte, &s.submission, &s.throttled];
        let times = std::iter::once(&s.response).chain(optional.into_iter().flatten());
        counted.extend(times.map(SparseHistogram::count));
    }
    let is_one = slice.series.windows(2).all(|s| of_workload(s[0].id) == of_workload(s[1].id));
    let fits = slice.series.len() <= SERIES
        && is_one
        && counted.iter().all(|n| *n <= MOST_COUNTED)
        && measured.iter().all(|n| *n <= MOST_MEASURED)
        && in_system.iter().all(|n| *n <= MOST_IN_SYSTEM);
    if fits { Ok(()) } else { Err(StoreError::Record("slice that nobody can have measured")) }
}

fn of_workload(id: SeriesId) -> (u32, u16) {
    (id.stage, id.workload)
}

/// Memory that it takes while it waits, about.
pub fn weight(came: &FromAgent) -> usize {
    let series = |s: &SparseSeries| {
        let optional = [&s.service, &s.first_byte, &s.submission, &s.throttled];
        let times = std::iter::once(&s.response).chain(optional.into_iter().flatten());
        let buckets: usize = times.map(|h| h.buckets().len()).sum();
        size_of::<SparseSeries>()
            + buckets * size_of::<(u64, u64)>()
            + s.endpoints.len() * size_of::<EndpointCounts>()
    };
    let of = match came {
        FromAgent::Interval { interval, .. } => interval.series.iter().map(series).sum(),
        FromAgent::Trace(chunk) => chunk.records.len() * size_of::<OpRecord>(),
    };
    of + size_of::<FromAgent>() + size_of::<SparseInterval>()
}

fn worker(c: &mut Cursor<'_>, agent: u32) -> Result<WorkerId, StoreError> {
    let worker = u16::try_from(c.u64("worker")?).map_err(|_| StoreError::Record("worker"))?;
    Ok(WorkerId { agent, worker })
}

fn op(c: &mut Cursor<'_>, worker: WorkerId) -> Result<OpRecord, StoreError> {
    const WHAT: &str = "op";
    let short = |v: u64| u16::try_from(v).map_err(|_| StoreError::Record(WHAT));
    let (series, slot, endpoint) = (short(c.u64(WHAT)?)?, c.u32(WHAT)?, short(c.u64(WHAT)?)?);
    let (kind, outcome) = (c.u32(WHAT)? as usize, c.u32(WHAT)? as usize);
    let kind = *OpKind::ALL.get(kind).ok_or(StoreError::Record(WHAT))?;
    let outcome = *Outcome::ALL.get(outcome).ok_or(StoreError::Record(WHAT))?;
    let mut next = || c.u64(WHAT);
    let (key, bytes, intended_ns) = (next()?, next()?, next()?);
    let (submitted_ns, first_byte_ns, done_ns) = (next()?, next()?, next()?);
    Ok(OpRecord {
        series,
        worker,
        slot,
        endpoint,
        kind,
        outcome,
        key,
        bytes,
        intended_ns,
        submitted_ns,
        first_byte_ns,
        done_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Series;
    use plimsoll_model::interval::{ClientCounts, SeriesShape};
    use proptest::prelude::*;

    fn interval(latencies: &[u64]) -> Output {
        let id = SeriesId { stage: 3, workload: 1, kind: OpKind::Get };
        let shape = SeriesShape {
            service: true,
            first_byte: true,
            throttled: true,
            endpoints: 2,
            ..SeriesShape::default()
        };
        let mut s = Series::new(id, shape);
        s.counts.started = latencies.len() as u64;
        latencies.iter().for_each(|l| s.response.record(*l));
        let client = ClientCounts { workers: 1, alive_ns: 5, ..ClientCounts::default() };
        let interval = Box::new(Interval { index: 9, series: vec![s], client });
        Output::Interval { worker: WorkerId { agent: 2, worker: 7 }, interval }
    }

    proptest! {
        #[test]
        fn a_slice_loses_nothing(latencies in prop::collection::vec(any::<u64>(), 0..40)) {
            let output = interval(&latencies);
            let mut bytes = Vec::new();
            put_output(&output, &mut bytes);
            let (back, length) = take(&bytes, 2).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            let (StreamRecord::FromAgent(FromAgent::Interval { worker, interval }), Output::Interval { worker: w, interval: i }) =
                (back, output)
            else {
                panic!("a slice is a slice")
            };
            prop_assert_eq!((worker, *interval), (w, i.to_form()));
            prop_assert!(take(&bytes[..bytes.len() - 1], 2).unwrap().is_none());
        }

        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>) {
            let _ = take(&bytes, 0);
            for tag in 0..5 {
                let _ = decode(tag, &bytes, 0);
            }
        }
    }

    #[test]
    fn a_slice_that_nobody_can_have_measured_is_refused() {
        let refused = |change: &dyn Fn(&mut Interval)| {
            let Output::Interval { worker, mut interval } = interval(&[1, 2]) else { unreachable!() };
            change(&mut interval);
            let mut bytes = Vec::new();
            put_output(&Output::Interval { worker, interval }, &mut bytes);
            take(&bytes, 2).is_err()
        };
        assert!(!refused(&|_| {}));
        assert!(refused(&|i| i.series[0].counts.started = u64::MAX));
        assert!(refused(&|i| i.series[0].counts.outcomes[1] = 1 << 49));
        assert!(refused(&|i| i.series[0].counts.bytes_ok = 1 << 53));
        assert!(refused(&|i| i.client.alive_ns = u64::MAX));
        assert!(refused(&|i| i.client.in_flight_ns = u128::MAX));
        // Of one workload, each kind of op once: as many as a worker can have, and no more.
        let of = |ids: Vec<SeriesId>| {
            move |i: &mut Interval| {
                i.series = ids.iter().map(|id| Series::new(*id, SeriesShape::default())).collect();
            }
        };
        let id = |stage, workload, kind| SeriesId { stage, workload, kind };
        assert!(!refused(&of(OpKind::ALL.map(|kind| id(3, 1, kind)).to_vec())));
        assert!(refused(&of((0..16).map(|n| id(3, n, OpKind::Get)).collect())));
        assert!(refused(&of(vec![id(3, 1, OpKind::Get), id(3, 2, OpKind::Get)])));
        assert!(refused(&of(vec![id(3, 1, OpKind::Get), id(4, 1, OpKind::Get)])));
    }

    #[test]
    fn records_of_ops_lose_nothing() {
        let worker = WorkerId { agent: 0, worker: 3 };
        let record = OpRecord {
            series: 1,
            worker,
            slot: 4,
            endpoint: 2,
            kind: OpKind::Put,
            outcome: Outcome::Http403,
            key: 1 << 50,
            bytes: 77,
            intended_ns: 1,
            submitted_ns: 2,
            first_byte_ns: 0,
            done_ns: u64::MAX,
        };
        let mut bytes = Vec::new();
        put_output(&Output::Trace(TraceChunk { worker, records: vec![record; 3] }), &mut bytes);
        let Some((StreamRecord::FromAgent(FromAgent::Trace(chunk)), _)) = take(&bytes, 0).unwrap() else {
            panic!("a trace")
        };
        assert_eq!(chunk.records, [record; 3]);
    }
}
