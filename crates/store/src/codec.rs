//! One interval as bytes and back. Numbers are LEB128, histograms sparse; a slice of 100 ms takes a few kilobytes.

use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::{Histogram, Interval, OpKind, Outcome, Series, SeriesId};

use crate::StoreError;
use crate::sparse::SparseHistogram;
use crate::varint::{Cursor, put_u64, put_u128};

/// An interval with its histograms in sparse form: [`Interval`] as it lies on disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SparseInterval {
    /// Slice on the run's grid.
    pub index: u64,
    pub series: Vec<SparseSeries>,
    pub client: ClientCounts,
}

/// [`Series`] in sparse form; fields mean the same.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseSeries {
    pub id: SeriesId,
    pub started: u64,
    pub outcomes: [u64; Outcome::COUNT],
    pub bytes_moved: u64,
    pub bytes_ok: u64,
    pub in_system_ns: u128,
    pub failed_in_system_ns: u128,
    pub response: SparseHistogram,
    pub service: Option<SparseHistogram>,
    pub first_byte: Option<SparseHistogram>,
    pub submission: Option<SparseHistogram>,
    pub throttled: Option<SparseHistogram>,
    pub endpoints: Vec<EndpointCounts>,
}

impl From<&Series> for SparseSeries {
    fn from(s: &Series) -> Self {
        let sparse = |h: &Option<Histogram>| h.as_ref().map(SparseHistogram::from);
        Self {
            id: s.id,
            started: s.started,
            outcomes: s.outcomes,
            bytes_moved: s.bytes_moved,
            bytes_ok: s.bytes_ok,
            in_system_ns: s.in_system_ns,
            failed_in_system_ns: s.failed_in_system_ns,
            response: SparseHistogram::from(&s.response),
            service: sparse(&s.service),
            first_byte: sparse(&s.first_byte),
            submission: sparse(&s.submission),
            throttled: sparse(&s.throttled),
            endpoints: s.endpoints.clone(),
        }
    }
}

impl SparseSeries {
    /// No counts at all.
    pub fn empty(id: SeriesId) -> Self {
        Self {
            id,
            started: 0,
            outcomes: [0; Outcome::COUNT],
            bytes_moved: 0,
            bytes_ok: 0,
            in_system_ns: 0,
            failed_in_system_ns: 0,
            response: SparseHistogram::default(),
            service: None,
            first_byte: None,
            submission: None,
            throttled: None,
            endpoints: Vec::new(),
        }
    }

    /// Adds another slice, worker or agent of the same series. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.started = self.started.saturating_add(other.started);
        for (a, b) in self.outcomes.iter_mut().zip(other.outcomes) {
            *a = a.saturating_add(b);
        }
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.bytes_ok = self.bytes_ok.saturating_add(other.bytes_ok);
        self.in_system_ns = self.in_system_ns.saturating_add(other.in_system_ns);
        self.failed_in_system_ns = self.failed_in_system_ns.saturating_add(other.failed_in_system_ns);
        self.response.merge(&other.response);
        merge_optional(&mut self.service, &other.service);
        merge_optional(&mut self.first_byte, &other.first_byte);
        merge_optional(&mut self.submission, &other.submission);
        merge_optional(&mut self.throttled, &other.throttled);
        EndpointCounts::merge_all(&mut self.endpoints, &other.endpoints);
    }

    /// The dense form, which stats and reports take.
    pub fn to_series(&self) -> Series {
        let dense = |h: &Option<SparseHistogram>| h.as_ref().map(SparseHistogram::to_dense);
        Series {
            id: self.id,
            started: self.started,
            outcomes: self.outcomes,
            bytes_moved: self.bytes_moved,
            bytes_ok: self.bytes_ok,
            in_system_ns: self.in_system_ns,
            failed_in_system_ns: self.failed_in_system_ns,
            response: self.response.to_dense(),
            service: dense(&self.service),
            first_byte: dense(&self.first_byte),
            submission: dense(&self.submission),
            throttled: dense(&self.throttled),
            endpoints: self.endpoints.clone(),
        }
    }
}

fn merge_optional(a: &mut Option<SparseHistogram>, b: &Option<SparseHistogram>) {
    match (a, b) {
        (Some(a), Some(b)) => a.merge(b),
        (a @ None, Some(b)) => *a = Some(b.clone()),
        (_, None) => {}
    }
}

impl From<&Interval> for SparseInterval {
    fn from(i: &Interval) -> Self {
        Self { index: i.index, series: i.series.iter().map(SparseSeries::from).collect(), client: i.client }
    }
}

impl SparseInterval {
    /// Adds another worker's, agent's or slice's counts, matched by series id.
    pub fn merge(&mut self, other: &Self) {
        for s in &other.series {
            match self.series.binary_search_by_key(&s.id, |x| x.id) {
                Ok(i) => self.series[i].merge(s),
                Err(i) => self.series.insert(i, s.clone()),
            }
        }
        self.client.merge(&other.client);
    }

    pub fn to_interval(&self) -> Interval {
        Interval {
            index: self.index,
            series: self.series.iter().map(SparseSeries::to_series).collect(),
            client: self.client,
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.index);
        encode_client(&self.client, out);
        put_u64(out, self.series.len() as u64);
        for s in &self.series {
            encode_series(s, out);
        }
        put_u64(out, self.client.run_wait_ns);
        put_u64(out, self.client.cpu_turns);
        for s in &self.series {
            put_u128(out, s.failed_in_system_ns);
        }
    }

    /// Reads what [`Self::encode`] wrote. Series come in id order, whatever the bytes say.
    pub fn decode(c: &mut Cursor<'_>) -> Result<Self, StoreError> {
        let index = c.u64("slice index")?;
        let mut client = decode_client(c)?;
        let n = c.count("number of series")?;
        let mut series: Vec<SparseSeries> = (0..n).map(|_| decode_series(c)).collect::<Result<_, _>>()?;
        // Runs of before these were kept end here.
        if !c.is_empty() {
            client.run_wait_ns = c.u64("wait for a CPU")?;
            client.cpu_turns = c.u64("turns on a CPU")?;
        }
        // And those of before these, here.
        if !c.is_empty() {
            for s in &mut series {
                s.failed_in_system_ns = c.u128("time in system of failed ops")?;
            }
        }
        series.sort_by_key(|s| s.id);
        if series.windows(2).any(|w| w[0].id == w[1].id) {
            return Err(StoreError::Record("series id (twice in a slice)"));
        }
        Ok(Self { index, series, client })
    }
}

fn encode_client(c: &ClientCounts, out: &mut Vec<u8>) {
    put_u64(out, u64::from(c.workers));
    for v in [c.alive_ns, c.waited_ns, c.cpu_ns, c.late_ops, c.reconnects] {
        put_u64(out, v);
    }
    put_u128(out, c.in_flight_ns);
}

fn decode_client(c: &mut Cursor<'_>) -> Result<ClientCounts, StoreError> {
    const WHAT: &str = "client counts";
    let workers = c.u32(WHAT)?;
    let mut next = || c.u64(WHAT);
    let (alive_ns, waited_ns, cpu_ns) = (next()?, next()?, next()?);
    let (late_ops, reconnects) = (next()?, next()?);
    let in_flight_ns = c.u128(WHAT)?;
    Ok(ClientCounts {
        workers,
        alive_ns,
        waited_ns,
        cpu_ns,
        in_flight_ns,
        late_ops,
        reconnects,
        ..ClientCounts::default()
    })
}

fn encode_series(s: &SparseSeries, out: &mut Vec<u8>) {
    put_u64(out, u64::from(s.id.stage));
    put_u64(out, u64::from(s.id.workload));
    out.push(kind_code(s.id.kind));
    put_u64(out, s.started);
    let seen = s.outcomes.iter().enumerate().filter(|(_, n)| **n > 0);
    out.push(seen.clone().count() as u8);
    for (i, n) in seen {
        out.push(i as u8);
        put_u64(out, *n);
    }
    put_u64(out, s.bytes_moved);
    put_u64(out, s.bytes_ok);
    put_u128(out, s.in_system_ns);
    s.response.encode(out);
    let optional = [&s.service, &s.first_byte, &s.submission, &s.throttled];
    out.push(optional.iter().enumerate().map(|(i, h)| u8::from(h.is_some()) << i).sum());
    for h in optional.into_iter().flatten() {
        h.encode(out);
    }
    put_u64(out, s.endpoints.len() as u64);
    for e in &s.endpoints {
        for v in [e.ok, e.throttled, e.failed, e.bytes_ok, e.response_max_ns] {
            put_u64(out, v);
        }
        put_u128(out, e.response_sum_ns);
    }
}

fn decode_series(c: &mut Cursor<'_>) -> Result<SparseSeries, StoreError> {
    let stage = c.u32("stage")?;
    let workload = u16::try_from(c.u64("workload")?).map_err(|_| StoreError::Record("workload"))?;
    let kind = kind_of(c.u8("op kind")?)?;
    let mut s = SparseSeries::empty(SeriesId { stage, workload, kind });
    s.started = c.u64("started")?;
    for _ in 0..c.u8("number of outcomes")? {
        let i = usize::from(c.u8("outcome")?);
        let slot = s.outcomes.get_mut(i).ok_or(StoreError::Record("outcome"))?;
        *slot = c.u64("outcome count")?;
    }
    s.bytes_moved = c.u64("bytes moved")?;
    s.bytes_ok = c.u64("bytes ok")?;
    s.in_system_ns = c.u128("time in system")?;
    s.response = SparseHistogram::decode(c)?;
    let present = c.u8("histogram flags")?;
    let mut optional = |bit: u8| (present >> bit & 1 == 1).then(|| SparseHistogram::decode(c)).transpose();
    s.service = optional(0)?;
    s.first_byte = optional(1)?;
    s.submission = optional(2)?;
    s.throttled = optional(3)?;
    let n = c.count("number of endpoints")?;
    s.endpoints = (0..n).map(|_| decode_endpoint(c)).collect::<Result<_, _>>()?;
    Ok(s)
}

fn decode_endpoint(c: &mut Cursor<'_>) -> Result<EndpointCounts, StoreError> {
    let mut next = || c.u64("endpoint counts");
    let (ok, throttled, failed) = (next()?, next()?, next()?);
    let (bytes_ok, response_max_ns) = (next()?, next()?);
    let response_sum_ns = c.u128("endpoint counts")?;
    Ok(EndpointCounts { ok, throttled, failed, bytes_ok, response_sum_ns, response_max_ns })
}

/// The number of a kind on disk: its place in [`OpKind::ALL`], which only ever grows at its end.
fn kind_code(kind: OpKind) -> u8 {
    OpKind::ALL.iter().position(|k| *k == kind).expect("ALL is all") as u8
}

fn kind_of(code: u8) -> Result<OpKind, StoreError> {
    OpKind::ALL.get(usize::from(code)).copied().ok_or(StoreError::Record("op kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old files name kinds and outcomes by number: neither list may ever be reordered.
    #[test]
    fn numbers_on_disk_stay() {
        let kinds: Vec<_> = OpKind::ALL.iter().map(|k| k.name()).collect();
        assert!(kinds.join(" ").starts_with(
            "put get get-range stat list delete delete-batch copy multipart upload-part read write fsync trim null"
        ));
        let outcomes: Vec<_> = Outcome::ALL.iter().map(|o| o.name()).collect();
        assert!(outcomes.join(" ").starts_with(
            "ok http_403 http_404 http_429 http_503 http_4xx http_5xx timeout reset short_body \
             checksum_mismatch verify_mismatch protocol io_error no_space cancelled no_connection http_3xx"
        ));
    }
}
