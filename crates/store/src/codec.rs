//! One interval as bytes and back. Numbers are LEB128, histograms sparse; a slice of 100 ms takes a few kilobytes.

use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::{Interval, OpKind, Series, SeriesCounts, SeriesId};

use crate::StoreError;
use crate::sparse::SparseHistogram;
use crate::varint::{Cursor, put_u64, put_u128};

/// An interval as it lies on disk, and as hours of them fit into memory.
pub type SparseInterval = Interval<SparseHistogram>;

/// Bits of the flags that say which histograms follow the one of responses.
const OPTIONAL_HISTOGRAMS: u8 = 0b1111;

/// A series of such an interval.
pub type SparseSeries = Series<SparseHistogram>;

/// Appends to `out`. What was added to the format later stands at its end, where older records stop.
pub fn encode(interval: &SparseInterval, out: &mut Vec<u8>) {
    put_u64(out, interval.index);
    encode_client(&interval.client, out);
    put_u64(out, interval.series.len() as u64);
    for s in &interval.series {
        encode_series(s, out);
    }
    put_u64(out, interval.client.run_wait_ns);
    put_u64(out, interval.client.cpu_turns);
    for s in &interval.series {
        put_u128(out, s.counts.failed_in_system_ns);
    }
    put_u128(out, interval.client.paused_ns);
}

/// Reads what [`encode`] wrote. Series come in id order, whatever the bytes say.
pub fn decode(c: &mut Cursor<'_>) -> Result<SparseInterval, StoreError> {
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
            s.counts.failed_in_system_ns = c.u128("time in system of failed ops")?;
        }
    }
    if !c.is_empty() {
        client.paused_ns = c.u128("pauses after refused attempts")?;
    }
    series.sort_by_key(|s| s.id);
    if series.windows(2).any(|w| w[0].id == w[1].id) {
        return Err(StoreError::Record("series id (twice in a slice)"));
    }
    Ok(SparseInterval { index, series, client })
}

/// Of what [`encode`] wrote the index, and each series' ops and bytes; how long they took is passed over, which is most of it.
pub fn decode_counts(c: &mut Cursor<'_>) -> Result<(u64, Vec<(SeriesId, SeriesCounts)>), StoreError> {
    let index = c.u64("slice index")?;
    decode_client(c)?;
    let n = c.count("number of series")?;
    let series = (0..n).map(|_| series_counts(c)).collect::<Result<_, _>>()?;
    Ok((index, series))
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
    put_u64(out, s.counts.started);
    let seen = s.counts.outcomes.iter().enumerate().filter(|(_, n)| **n > 0);
    out.push(seen.clone().count() as u8);
    for (i, n) in seen {
        out.push(i as u8);
        put_u64(out, *n);
    }
    put_u64(out, s.counts.bytes_moved);
    put_u64(out, s.counts.bytes_ok);
    put_u128(out, s.counts.in_system_ns);
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

fn decode_id(c: &mut Cursor<'_>) -> Result<SeriesId, StoreError> {
    let stage = c.u32("stage")?;
    let workload = u16::try_from(c.u64("workload")?).map_err(|_| StoreError::Record("workload"))?;
    let kind = kind_of(c.u8("op kind")?)?;
    Ok(SeriesId { stage, workload, kind })
}

fn series_counts(c: &mut Cursor<'_>) -> Result<(SeriesId, SeriesCounts), StoreError> {
    let (id, counts) = (decode_id(c)?, decode_ended(c)?);
    SparseHistogram::pass(c)?;
    let present = c.u8("histogram flags")?;
    for _ in 0..(present & OPTIONAL_HISTOGRAMS).count_ones() {
        SparseHistogram::pass(c)?;
    }
    for _ in 0..c.count("number of endpoints")? {
        decode_endpoint(c)?;
    }
    Ok((id, counts))
}

fn decode_series(c: &mut Cursor<'_>) -> Result<SparseSeries, StoreError> {
    let id = decode_id(c)?;
    let counts = decode_ended(c)?;
    let response = SparseHistogram::decode(c)?;
    let present = c.u8("histogram flags")?;
    let mut optional = |bit: u8| (present >> bit & 1 == 1).then(|| SparseHistogram::decode(c)).transpose();
    let (service, first_byte) = (optional(0)?, optional(1)?);
    let (submission, throttled) = (optional(2)?, optional(3)?);
    let n = c.count("number of endpoints")?;
    let endpoints = (0..n).map(|_| decode_endpoint(c)).collect::<Result<_, _>>()?;
    Ok(SparseSeries { id, counts, response, service, first_byte, submission, throttled, endpoints })
}

/// All but the time in system of failed ops: that came later, and stands at the end of the interval.
fn decode_ended(c: &mut Cursor<'_>) -> Result<SeriesCounts, StoreError> {
    let mut counts = SeriesCounts { started: c.u64("started")?, ..SeriesCounts::default() };
    for _ in 0..c.u8("number of outcomes")? {
        let i = usize::from(c.u8("outcome")?);
        let slot = counts.outcomes.get_mut(i).ok_or(StoreError::Record("outcome"))?;
        *slot = c.u64("outcome count")?;
    }
    counts.bytes_moved = c.u64("bytes moved")?;
    counts.bytes_ok = c.u64("bytes ok")?;
    counts.in_system_ns = c.u128("time in system")?;
    Ok(counts)
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
    use plimsoll_model::Outcome;

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
