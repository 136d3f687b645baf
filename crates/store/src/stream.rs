//! Streams of records in frames: `intervals/AGENT.zst` (intervals and marks) and `samples/HOST.zst`.
//!
//! A record is a tag byte, a LEB128 length and that many bytes. Tags that a reader does not know are
//! skipped, so that a newer program may add kinds of record within a format version.

use std::path::Path;

use plimsoll_model::{Interval, Sample};
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::codec::SparseInterval;
use crate::frame::{Damage, FrameReader, FrameWriter};
use crate::mark::Mark;
use crate::varint::{Cursor, put_u64};

pub const INTERVALS_FORMAT: &str = "plimsoll.intervals/1";
pub const SAMPLES_FORMAT: &str = "plimsoll.samples/1";

const TAG_HEADER: u8 = 0;
const TAG_INTERVAL: u8 = 1;
const TAG_MARK: u8 = 2;
const TAG_SAMPLE: u8 = 3;

/// A frame spans at most this much of the run: what a kill can cost.
const FRAME_SPAN_NS: u64 = 1_000_000_000;
/// And at most about this many bytes before compression.
const FRAME_BYTES: usize = 8 << 20;

/// First record of each file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Format and version, such as `plimsoll.intervals/1`.
    pub format: String,
    /// Agent (intervals) or host (samples) that this file comes from.
    pub source: String,
    /// Length of a slice; 0 in a samples file.
    pub grid_ns: u64,
}

/// One record, as read.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Interval { stage: u32, interval: SparseInterval },
    Mark(Mark),
    Sample(Box<Sample>),
}

/// Collects records and appends them as frames.
#[derive(Debug)]
pub struct StreamWriter {
    frames: FrameWriter,
    grid_ns: u64,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Start of the first record in the buffer, nanoseconds since the run's start.
    opened_ns: Option<u64>,
}

impl StreamWriter {
    pub fn create(path: &Path, header: &Header) -> Result<Self, StoreError> {
        let mut w = Self::over(FrameWriter::create(path)?, header.grid_ns);
        w.record(TAG_HEADER, &json(header));
        w.flush()?;
        Ok(w)
    }

    /// Goes on with a file that a killed run left.
    pub fn resume(path: &Path) -> Result<Self, StoreError> {
        let header = StreamReader::open(path)?.header().clone();
        Ok(Self::over(FrameWriter::resume(path)?, header.grid_ns))
    }

    fn over(frames: FrameWriter, grid_ns: u64) -> Self {
        Self { frames, grid_ns, buffer: Vec::new(), scratch: Vec::new(), opened_ns: None }
    }

    /// Appends a slice of a stage; slices come in order of their index.
    pub fn interval(&mut self, stage: u32, interval: &Interval) -> Result<(), StoreError> {
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        put_u64(&mut body, u64::from(stage));
        SparseInterval::from(interval).encode(&mut body);
        self.record(TAG_INTERVAL, &body);
        self.scratch = body;
        self.flush_if_due(interval.index.saturating_mul(self.grid_ns), self.grid_ns)
    }

    pub fn sample(&mut self, sample: &Sample) -> Result<(), StoreError> {
        self.record(TAG_SAMPLE, &json(sample));
        self.flush_if_due(sample.at_ns, 0)
    }

    /// Appends a mark and flushes: marks are few, and a kill after one must not lose it.
    pub fn mark(&mut self, mark: &Mark) -> Result<(), StoreError> {
        self.record(TAG_MARK, &json(mark));
        self.flush()
    }

    fn record(&mut self, tag: u8, body: &[u8]) {
        self.buffer.push(tag);
        put_u64(&mut self.buffer, body.len() as u64);
        self.buffer.extend_from_slice(body);
    }

    fn flush_if_due(&mut self, start_ns: u64, length_ns: u64) -> Result<(), StoreError> {
        let opened = *self.opened_ns.get_or_insert(start_ns);
        let span = start_ns.saturating_add(length_ns).saturating_sub(opened);
        if span >= FRAME_SPAN_NS || self.buffer.len() >= FRAME_BYTES { self.flush() } else { Ok(()) }
    }

    /// Appends what is buffered as one frame.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        if !self.buffer.is_empty() {
            self.frames.append(&self.buffer)?;
            self.buffer.clear();
            self.opened_ns = None;
        }
        Ok(())
    }

    /// Flushes and makes it survive a power cut.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.frames.sync()
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data is always JSON")
}

/// Reads the records of one file in order, and stops at the first damage.
#[derive(Debug)]
pub struct StreamReader {
    frames: FrameReader,
    header: Header,
    frame: Vec<u8>,
    at: usize,
}

impl StreamReader {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut frames = FrameReader::open(path)?;
        let bad = |problem: String| StoreError::Content { path: path.to_owned(), problem };
        let Some(frame) = frames.next()? else {
            let why = frames.damage().map_or("it is empty".into(), |d| d.reason.clone());
            return Err(bad(format!("no record can be read: {why}")));
        };
        let mut c = Cursor::new(&frame);
        let header = match next_record(&mut c) {
            Ok(Some((TAG_HEADER, body))) => {
                serde_json::from_slice::<Header>(body).map_err(|e| bad(format!("bad header: {e}")))?
            }
            _ => return Err(bad("it does not begin with a header".into())),
        };
        let wanted = match header.format.split('/').next() {
            Some("plimsoll.samples") => SAMPLES_FORMAT,
            _ => INTERVALS_FORMAT,
        };
        if header.format != wanted || (wanted == INTERVALS_FORMAT && header.grid_ns == 0) {
            return Err(StoreError::Format { path: path.to_owned(), found: header.format, wanted });
        }
        let at = frame.len() - c.remaining();
        Ok(Self { frames, header, frame, at })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Why reading ended before the end, if it did.
    pub fn damage(&self) -> Option<&Damage> {
        self.frames.damage()
    }

    /// The next record; `None` at the end or at damage. The error is the disk's.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator of results would hide that damage is no error"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, StoreError> {
        while let Some((tag, start, end)) = self.next_raw()? {
            match decode(tag, &self.frame[start..end]) {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(e) => self.stop(&e),
            }
        }
        Ok(None)
    }

    /// Stage and slice index of the next interval, without decoding the rest of it: for a first look at a long file.
    pub fn next_index(&mut self) -> Result<Option<(u32, u64)>, StoreError> {
        while let Some((tag, start, end)) = self.next_raw()? {
            if tag != TAG_INTERVAL {
                continue;
            }
            let mut c = Cursor::new(&self.frame[start..end]);
            match (c.u32("stage"), c.u64("slice index")) {
                (Ok(stage), Ok(index)) => return Ok(Some((stage, index))),
                (Err(e), _) | (_, Err(e)) => self.stop(&e),
            }
        }
        Ok(None)
    }

    /// Tag and place in the frame of the next record.
    fn next_raw(&mut self) -> Result<Option<(u8, usize, usize)>, StoreError> {
        loop {
            let mut c = Cursor::new(&self.frame[self.at..]);
            match next_record(&mut c) {
                Ok(Some((tag, body))) => {
                    let end = self.frame.len() - c.remaining();
                    self.at = end;
                    return Ok(Some((tag, end - body.len(), end)));
                }
                Ok(None) => match self.frames.next()? {
                    Some(frame) => (self.frame, self.at) = (frame, 0),
                    None => {
                        (self.frame, self.at) = (Vec::new(), 0);
                        return Ok(None);
                    }
                },
                Err(e) => self.stop(&e),
            }
        }
    }

    fn stop(&mut self, why: &StoreError) {
        self.frames.stop(why.to_string());
        (self.frame, self.at) = (Vec::new(), 0);
    }
}

fn next_record<'a>(c: &mut Cursor<'a>) -> Result<Option<(u8, &'a [u8])>, StoreError> {
    if c.is_empty() {
        return Ok(None);
    }
    let tag = c.u8("record tag")?;
    let len = c.count("record length")?;
    Ok(Some((tag, c.bytes(len, "record")?)))
}

/// `None` for a kind of record that this version does not know.
fn decode(tag: u8, body: &[u8]) -> Result<Option<Record>, StoreError> {
    match tag {
        TAG_INTERVAL => {
            let mut c = Cursor::new(body);
            let stage = c.u32("stage")?;
            Ok(Some(Record::Interval { stage, interval: SparseInterval::decode(&mut c)? }))
        }
        TAG_MARK => serde_json::from_slice(body)
            .map(|m| Some(Record::Mark(m)))
            .map_err(|_| StoreError::Record("mark")),
        TAG_SAMPLE => serde_json::from_slice(body)
            .map(|s| Some(Record::Sample(Box::new(s))))
            .map_err(|_| StoreError::Record("sample")),
        _ => Ok(None),
    }
}
