//! Gives the conductor what it asks for of this agent's own records, in a thread of its own: a long file is read while orders go on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use plimsoll_bus::BusError;
use plimsoll_store::StoreError;

use super::voice::Voice;
use super::{AgentOptions, records, spawn};
use crate::error::AgentRefusal;
use crate::frame::envelope::{FrameHead, encode};
use crate::frame::hash::StreamHash;
use crate::frame::own::{OwnFrame, OwnReader};
use crate::wire::order::FetchKept;
use crate::wire::tell::{KeptStage, Tell};

/// Frames that are sent at once: about 8 MiB.
pub const AT_ONCE: usize = 32;
/// Frames that are kept in memory, so that one that was lost is not looked for from the beginning.
const CACHED: usize = 2 * AT_ONCE;

/// The thread. Dropped, it ends with what it does.
#[derive(Debug)]
pub struct Delivery {
    asked: Option<Sender<(String, FetchKept)>>,
    thread: Option<JoinHandle<()>>,
}

impl Delivery {
    pub fn start(options: AgentOptions, voice: Arc<Voice>) -> Result<Self, BusError> {
        let (asked, questions) = channel();
        let thread = spawn("agent-delivery", move || serve(&options, &voice, &questions))?;
        Ok(Self { asked: Some(asked), thread: Some(thread) })
    }

    /// Something is wanted of what was kept of a run.
    pub fn ask(&self, run: String, fetch: FetchKept) {
        if let Some(asked) = &self.asked {
            // It ends only with this.
            let _ = asked.send((run, fetch));
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already.
            let _ = thread.join();
        }
    }
}

fn serve(options: &AgentOptions, voice: &Voice, questions: &Receiver<(String, FetchKept)>) {
    let mut open: Option<(String, Kept)> = None;
    while let Ok((run, fetch)) = questions.recv() {
        let result = answer(options, voice, &run, &fetch, &mut open);
        let refused = |e: StoreError| AgentRefusal::new(e.to_string().trim_end_matches('.'), "");
        let result = match result.map_err(refused) {
            // Frames are their own answer.
            Ok(None) => continue,
            Ok(Some(kept)) => Ok(kept),
            Err(refusal) => {
                open = None;
                Err(refusal)
            }
        };
        voice.tell(Some(&run), Tell::Kept { question: fetch.question, result });
    }
}

fn answer(
    options: &AgentOptions,
    voice: &Voice,
    run: &str,
    fetch: &FetchKept,
    open: &mut Option<(String, Kept)>,
) -> Result<Option<Vec<KeptStage>>, StoreError> {
    // What there is is looked at anew each time that it is asked for; its frames are then of that.
    let of_run = open.take().filter(|(of, _)| of == run && fetch.stage.is_some());
    let (_, kept) = open.insert(match of_run {
        Some(there) => there,
        None => (run.to_owned(), Kept::read(records::of_run(options, run))?),
    });
    let Some(stage) = fetch.stage else { return Ok(Some(kept.told())) };
    let frames = kept.wanted(stage, fetch)?.into_iter();
    let head = |number| FrameHead::new(voice.session(), run, stage, number);
    voice.frames(frames.map(|(number, content)| encode(head(number), &content)).collect());
    Ok(None)
}

/// What there is of one run.
#[derive(Debug)]
struct Kept {
    stages: BTreeMap<u32, StageKept>,
    /// The stage that is being read, and what was read of it last.
    cursor: Option<(u32, OwnReader)>,
    cached: BTreeMap<u64, Vec<u8>>,
}

#[derive(Debug)]
struct StageKept {
    path: PathBuf,
    frames: u64,
    hash: StreamHash,
}

impl Kept {
    /// One pass over its files. Frames of a stage are counted as far as they follow one another.
    fn read(paths: Vec<PathBuf>) -> Result<Self, StoreError> {
        let mut stages: BTreeMap<u32, StageKept> = BTreeMap::new();
        for path in paths {
            let mut reader = OwnReader::open(&path)?;
            while let Some(OwnFrame { stage, number, content }) = reader.next()? {
                let new = || StageKept { path: path.clone(), frames: 0, hash: StreamHash::default() };
                let kept = stages.entry(stage).or_insert_with(new);
                if kept.path == path && kept.frames == number {
                    kept.frames += 1;
                    kept.hash.update(&content);
                }
            }
        }
        Ok(Self { stages, cursor: None, cached: BTreeMap::new() })
    }

    fn told(&self) -> Vec<KeptStage> {
        let one = |(stage, k): (&u32, &StageKept)| KeptStage {
            stage: *stage,
            frames: k.frames,
            hash: k.hash.text(),
        };
        self.stages.iter().map(one).collect()
    }

    /// Frames that are wanted, as many as go out at once.
    fn wanted(&mut self, stage: u32, fetch: &FetchKept) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let Some(of) = self.stages.get(&stage) else { return Ok(Vec::new()) };
        let frames = of.frames;
        let missing = fetch.missing.iter().copied().filter(|n| *n < fetch.from.min(frames));
        let wanted: Vec<u64> = missing.chain(fetch.from..frames).take(AT_ONCE).collect();
        let mut out = Vec::new();
        for number in wanted {
            if let Some(content) = self.frame(stage, number)? {
                out.push((number, content));
            }
        }
        Ok(out)
    }

    fn frame(&mut self, stage: u32, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let is_ahead = |last: Option<&u64>| last.is_none_or(|last| *last < number);
        let reads_on = self.cursor.as_ref().is_some_and(|(of, _)| *of == stage);
        if reads_on && let Some(content) = self.cached.get(&number) {
            return Ok(Some(content.clone()));
        }
        if !reads_on || !is_ahead(self.cached.keys().next_back()) {
            let Some(of) = self.stages.get(&stage) else { return Ok(None) };
            self.cursor = Some((stage, OwnReader::open(&of.path)?));
            self.cached.clear();
        }
        let Some((_, reader)) = &mut self.cursor else { return Ok(None) };
        while let Some(frame) = reader.next()? {
            if frame.stage != stage {
                continue;
            }
            let is_it = frame.number == number;
            let found = is_it.then(|| frame.content.clone());
            self.cached.insert(frame.number, frame.content);
            while self.cached.len() > CACHED {
                self.cached.pop_first();
            }
            if is_it {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
