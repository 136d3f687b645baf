//! Streams of records in frames: `intervals/AGENT.zst` (intervals and marks), `samples/HOST.zst`, and `samples/observed-N.zst` of one
//! source of servers' metrics each, whose records name host and daemon.
//!
//! A record is a tag byte, a LEB128 length and that many bytes. What a reader does not know (a tag, a mark, a field's
//! value) is skipped and told as [`Record::Unknown`], so that a newer program may add within a format version.

use std::path::Path;

use plimsoll_model::{Interval, Sample, Scrape, SeriesCounts, SeriesId};
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::codec::{self, SparseInterval};
use crate::frame::{Damage, FrameReader, FrameWriter};
use crate::mark::Mark;
use crate::unknown::Unknown;
use crate::varint::{Cursor, put_u64};

/// In the header of `intervals/AGENT.zst`.
pub const INTERVALS_FORMAT: &str = "plimsoll.intervals/1";
/// In the header of `samples/HOST.zst`.
pub const SAMPLES_FORMAT: &str = "plimsoll.samples/1";

const TAG_HEADER: u8 = 0;
const TAG_INTERVAL: u8 = 1;
const TAG_MARK: u8 = 2;
const TAG_SAMPLE: u8 = 3;
const TAG_SCRAPE: u8 = 4;

/// A frame spans about this much of the run, and one slice where that is longer: what a kill can cost.
pub const FRAME_SPAN_NS: u64 = 1_000_000_000;
/// And at most about this many bytes before compression.
const FRAME_BYTES: usize = 8 << 20;

/// Latest time of a record: a hundred years after its run's start. Sums of a few still fit in 64 bits.
const MAX_AT_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;
/// Longest slice of a grid: a day.
const MAX_GRID_NS: u64 = 86_400 * 1_000_000_000;

/// First record of each file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Format and version, such as `plimsoll.intervals/1`.
    pub format: String,
    /// Agent (intervals) or host (samples) that this file comes from.
    pub source: String,
    /// Length of a slice; 0 in a samples file.
    pub grid_ns: u64,
    /// Of a file of scrapes: make and address of the source, `node http://s1:9100/metrics`. Empty: of no other file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observes: String,
}

/// One record, as read.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A slice of the grid, of one agent.
    Interval {
        /// Index of the stage that was running.
        stage: u32,
        /// Histograms are made dense only where they are merged.
        interval: SparseInterval,
    },
    /// Something that happened, with its time.
    Mark(Mark),
    /// Of a host, at a time.
    Sample(Box<Sample>),
    /// Of a source, at a time.
    Scrape(Box<Scrape>),
    /// A record that this version cannot read.
    Unknown(Unknown),
}

/// What ended in a slice, without how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceCounts {
    /// Index of the stage that was running.
    pub stage: u32,
    /// Number of the slice on the run's grid.
    pub index: u64,
    /// In the order of the file. Without the time in system of failed ops.
    pub series: Vec<(SeriesId, SeriesCounts)>,
}

/// Collects records and appends them as frames.
#[derive(Debug)]
pub struct StreamWriter {
    frames: FrameWriter,
    /// Agent or host that the file is of.
    source: String,
    grid_ns: u64,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Start of the first record in the buffer, nanoseconds since the run's start.
    opened_ns: Option<u64>,
}

impl StreamWriter {
    /// With its header in a frame of its own, flushed. There must be no such file.
    pub fn create(path: &Path, header: &Header) -> Result<Self, StoreError> {
        let mut w = Self::over(FrameWriter::create(path)?, header.clone());
        w.record(TAG_HEADER, &json(header));
        w.flush()?;
        Ok(w)
    }

    /// Goes on with a file that a killed run left.
    pub fn resume(path: &Path) -> Result<Self, StoreError> {
        let header = StreamReader::open(path)?.header().clone();
        Ok(Self::over(FrameWriter::resume(path)?, header))
    }

    fn over(frames: FrameWriter, Header { source, grid_ns, .. }: Header) -> Self {
        Self { frames, source, grid_ns, buffer: Vec::new(), scratch: Vec::new(), opened_ns: None }
    }

    /// Appends a slice of a stage; slices come in order of their index.
    pub fn interval(&mut self, stage: u32, interval: &Interval) -> Result<(), StoreError> {
        self.sparse(stage, &interval.to_form())
    }

    /// The same of a slice that comes from a file.
    pub fn sparse(&mut self, stage: u32, interval: &SparseInterval) -> Result<(), StoreError> {
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        put_u64(&mut body, u64::from(stage));
        codec::encode(interval, &mut body);
        self.record(TAG_INTERVAL, &body);
        self.scratch = body;
        self.flush_if_due(interval.index.saturating_mul(self.grid_ns), self.grid_ns)
    }

    /// Appends a sample of the host that the file is of. Flushed at least once a second.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), StoreError> {
        assert_eq!(
            sample.host, self.source,
            "a file of samples is of one host: counters of two do not subtract"
        );
        self.record(TAG_SAMPLE, &json(sample));
        self.flush_if_due(sample.at_ns, 0)
    }

    /// Appends what the source said that the file is of.
    pub fn scrape(&mut self, scrape: &Scrape) -> Result<(), StoreError> {
        self.record(TAG_SCRAPE, &json(scrape));
        self.flush()
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

impl StreamPosition {
    /// Of the file.
    pub fn bytes(&self) -> u64 {
        self.frames.1
    }
}

/// Reads the records of one file in order, and stops at the first damage.
#[derive(Debug)]
pub struct StreamReader {
    frames: FrameReader,
    header: Header,
    frame: Vec<u8>,
    at: usize,
    /// A frame was whole, and what is in it is not ours: nothing behind it is read, however the file grows.
    is_bad: bool,
}

/// How far a file that grows was read: to the end of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPosition {
    header: Header,
    frames: (u64, u64),
    is_bad: bool,
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
            _ => return Err(bad("it does not start with a header".into())),
        };
        let wanted = match header.format.split('/').next() {
            Some("plimsoll.samples") => SAMPLES_FORMAT,
            _ => INTERVALS_FORMAT,
        };
        if header.format != wanted {
            return Err(StoreError::Format { path: path.to_owned(), found: header.format, wanted });
        }
        if wanted == INTERVALS_FORMAT && !(1..=MAX_GRID_NS).contains(&header.grid_ns) {
            return Err(bad(format!("a grid of {} ns is none that is written", header.grid_ns)));
        }
        let at = frame.len() - c.remaining();
        Ok(Self { frames, header, frame, at, is_bad: false })
    }

    /// Where another reader of the file had come to its end ([`Self::position`]).
    pub fn open_at(path: &Path, from: &StreamPosition) -> Result<Self, StoreError> {
        let frames = FrameReader::open_at(path, from.frames)?;
        let mut reader =
            Self { frames, header: from.header.clone(), frame: Vec::new(), at: 0, is_bad: from.is_bad };
        if from.is_bad {
            reader.frames.stop("a record cannot be read");
        }
        Ok(reader)
    }

    /// How far it has read: whole frames, of the last of which all records were given out.
    pub fn position(&self) -> StreamPosition {
        StreamPosition { header: self.header.clone(), frames: self.frames.position(), is_bad: self.is_bad }
    }

    /// As whoever made the file wrote it.
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
        Ok(self.next_raw()?.map(|(tag, start, end)| {
            decode(tag, &self.frame[start..end], self.header.grid_ns).unwrap_or_else(Record::Unknown)
        }))
    }

    /// Stage and slice index of the next interval, without decoding the rest of it: for a first look at a long file.
    pub fn next_index(&mut self) -> Result<Option<(u32, u64)>, StoreError> {
        while let Some((tag, start, end)) = self.next_raw()? {
            if tag != TAG_INTERVAL {
                continue;
            }
            let mut c = Cursor::new(&self.frame[start..end]);
            match (c.u32("stage"), c.u64("slice index")) {
                (Ok(stage), Ok(index)) if in_time(index, self.header.grid_ns) => {
                    return Ok(Some((stage, index)));
                }
                // [`Self::next`] tells what is skipped.
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next interval without its times: for the rate over a long file.
    pub fn next_counts(&mut self) -> Result<Option<SliceCounts>, StoreError> {
        while let Some((tag, start, end)) = self.next_raw()? {
            if tag != TAG_INTERVAL {
                continue;
            }
            let mut c = Cursor::new(&self.frame[start..end]);
            // [`Self::next`] tells what is skipped.
            let Ok(stage) = c.u32("stage") else { continue };
            let Ok((index, series)) = codec::decode_counts(&mut c) else { continue };
            if in_time(index, self.header.grid_ns) {
                return Ok(Some(SliceCounts { stage, index, series }));
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
        self.is_bad = true;
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

fn in_time(index: u64, grid_ns: u64) -> bool {
    index < MAX_AT_NS / grid_ns.max(1)
}

/// The error is a record that this version does not know.
fn decode(tag: u8, body: &[u8], grid_ns: u64) -> Result<Record, Unknown> {
    match tag {
        TAG_INTERVAL => {
            let mut c = Cursor::new(body);
            let read = || Ok((c.u32("stage")?, codec::decode(&mut c)?));
            let (stage, interval) = { read }().map_err(|e: StoreError| Unknown::of_counts("slice", e))?;
            if !in_time(interval.index, grid_ns) {
                return Err(Unknown::of_counts("slice", "its time"));
            }
            Ok(Record::Interval { stage, interval })
        }
        TAG_MARK => match serde_json::from_slice::<Mark>(body) {
            Ok(mark) if mark.at_ns() < MAX_AT_NS => Ok(Record::Mark(mark)),
            _ => Err(Unknown::of_mark(body, Mark::knows)),
        },
        TAG_SAMPLE => match serde_json::from_slice::<Sample>(body) {
            Ok(sample) if sample.at_ns < MAX_AT_NS => Ok(Record::Sample(Box::new(sample))),
            _ => Err(Unknown::of_counts("sample", "its content")),
        },
        TAG_SCRAPE => match serde_json::from_slice::<Scrape>(body) {
            Ok(scrape) if scrape.at_ns < MAX_AT_NS => Ok(Record::Scrape(Box::new(scrape))),
            _ => Err(Unknown { what: "scrape (its content)".into(), figures: false }),
        },
        _ => Err(Unknown::of_tag(tag)),
    }
}
