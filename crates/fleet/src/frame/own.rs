//! What an agent measured, in a file of its own: all of its stages, frame by frame, as they were sent. So nothing is lost with a network
//! or a conductor, and both can be asked for again.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_crew::FromAgent;
use plimsoll_store::StoreError;
use plimsoll_store::frame::{FrameReader, FrameWriter};
use serde::{Deserialize, Serialize};

use super::incoming::Incoming;

/// The first line of each frame's content; the bytes of the stream follow.
#[derive(Debug, Serialize, Deserialize)]
struct OwnHead {
    stage: u32,
    number: u64,
}

/// The file, as it grows.
#[derive(Debug)]
pub struct OwnRecord {
    frames: FrameWriter,
}

impl OwnRecord {
    /// There must be no such file.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { frames: FrameWriter::create(path)? })
    }

    /// Flushed with each frame: a kill costs what was not cut yet.
    pub fn append(&mut self, stage: u32, number: u64, content: &[u8]) -> Result<(), StoreError> {
        let mut frame = serde_json::to_vec(&OwnHead { stage, number }).expect("plain data is always JSON");
        frame.push(b'\n');
        frame.extend_from_slice(content);
        self.frames.append(&frame)
    }
}

/// A frame of an own record.
#[derive(Debug)]
pub struct OwnFrame {
    pub stage: u32,
    pub number: u64,
    /// Of the stream.
    pub content: Vec<u8>,
}

/// The file, frame by frame. It ends where a kill tore it.
#[derive(Debug)]
pub struct OwnReader {
    frames: FrameReader,
}

impl OwnReader {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { frames: FrameReader::open(path)? })
    }

    /// The next one; `None`: nothing more can be read.
    pub fn next(&mut self) -> Result<Option<OwnFrame>, StoreError> {
        let Some(mut frame) = self.frames.next()? else { return Ok(None) };
        let bad = || StoreError::Record("frame of an agent's own record");
        let end = frame.iter().position(|b| *b == b'\n').ok_or_else(bad)?;
        let OwnHead { stage, number } = serde_json::from_slice(&frame[..end]).map_err(|_| bad())?;
        let content = frame.split_off(end + 1);
        Ok(Some(OwnFrame { stage, number, content }))
    }
}

/// What is in the own record of an agent: by stage, all that its workers handed over, with the number that the agent had.
pub fn read_own_record(path: &Path, agent: u32) -> Result<BTreeMap<u32, Vec<FromAgent>>, StoreError> {
    let mut frames = OwnReader::open(path)?;
    let mut stages: BTreeMap<u32, (Incoming, Vec<FromAgent>)> = BTreeMap::new();
    while let Some(frame) = frames.next()? {
        let (incoming, outputs) =
            stages.entry(frame.stage).or_insert_with(|| (Incoming::new(agent), Vec::new()));
        incoming.accept(frame.number, frame.content);
        outputs.extend(std::iter::from_fn(|| incoming.next_output()));
        if incoming.broken().is_some() {
            return Err(StoreError::Record("frame of an agent's own record"));
        }
    }
    Ok(stages.into_iter().map(|(stage, (_, outputs))| (stage, outputs)).collect())
}
