//! An agent's side of a stage's stream: frames are cut, kept until they were taken, and written to a file of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_engine::Output;

use super::envelope::{CONTENT, FrameHead, encode};
use super::hash::StreamHash;
use super::own::OwnRecord;
use super::record::{self, EndOfStream};
use crate::wire::ends::EndTold;

/// A frame goes out so often. (A choice: the live view is no later than the merge on the grid waits, and the network carries few, large
/// messages.)
const EVERY: Duration = Duration::from_millis(250);
/// Each of many agents cuts them more seldom, so that their one conductor gets fewer, but not so seldom that an agent that is killed takes more
/// than a second of load with it: what is in no frame yet is in no record. (A choice.)
const SELDOM: Duration = Duration::from_millis(500);
/// Beyond so many frames a second of all agents they are cut more seldom.
const OF_ALL_PER_S: u32 = 1_000;
/// What was sent so lately is not sent again: it may be on its way.
const ON_THE_WAY: Duration = Duration::from_millis(40);
/// And so much of it at once, the first ones first: a conductor that has no room for more would get all of it each time that it asks. (A
/// choice: it asks many times a second.)
const AGAIN: usize = 4 << 20;

/// One stage's stream.
#[derive(Debug)]
pub struct Outgoing {
    head: FrameHead,
    buffer: Vec<u8>,
    opened: Instant,
    every: Duration,
    hash: StreamHash,
    kept: BTreeMap<u64, Kept>,
    /// The disk's words, where the own record could not be written: the conductor's is whole all the same.
    broken: Option<String>,
}

#[derive(Debug)]
struct Kept {
    message: Vec<u8>,
    sent: Option<Instant>,
}

/// How often each of so many agents cuts a frame.
pub fn frames_every(agents: usize) -> Duration {
    let share = Duration::from_secs(1) / OF_ALL_PER_S * u32::try_from(agents).unwrap_or(u32::MAX);
    share.clamp(EVERY, SELDOM)
}

impl Outgoing {
    /// With a frame so often, as far as that is between what is right for few agents and for many.
    pub fn new(session: &str, run: &str, stage: u32, every: Duration) -> Self {
        Self {
            head: FrameHead::new(session, run, stage, 0),
            buffer: Vec::new(),
            opened: Instant::now(),
            every: every.clamp(EVERY, SELDOM),
            hash: StreamHash::default(),
            kept: BTreeMap::new(),
            broken: None,
        }
    }

    pub fn stage(&self) -> u32 {
        self.head.stage
    }

    /// What a worker handed over.
    pub fn put(&mut self, output: &Output, own: &mut OwnRecord) {
        if self.buffer.is_empty() {
            self.opened = Instant::now();
        }
        let from = self.buffer.len();
        record::put_output(output, &mut self.buffer);
        self.hash.update(&self.buffer[from..]);
        self.cut(CONTENT, own);
    }

    /// Nothing comes after this.
    pub fn end(&mut self, mut ends: Vec<EndTold>, own: &mut OwnRecord) {
        if let (Some(why), Some(first)) = (&self.broken, ends.first_mut()) {
            first.note("the agent's own record", &format!("not whole: {why}"));
        }
        let hash = self.hash.text();
        record::put_end(&EndOfStream { ends, hash }, &mut self.buffer);
        self.cut(1, own);
    }

    /// Makes a frame of what waits, if it has waited long enough.
    pub fn cut_if_due(&mut self, own: &mut OwnRecord) {
        if !self.buffer.is_empty() && self.opened.elapsed() >= self.every {
            self.cut(1, own);
        }
    }

    /// Makes a frame of what waits.
    pub fn cut_now(&mut self, own: &mut OwnRecord) {
        self.cut(1, own);
    }

    /// Makes frames for as long as at least so much waits.
    fn cut(&mut self, least: usize, own: &mut OwnRecord) {
        while self.buffer.len() >= least {
            let rest = self.buffer.split_off(self.buffer.len().min(CONTENT));
            let content = std::mem::replace(&mut self.buffer, rest);
            let number = self.head.number;
            if self.broken.is_none() {
                let written = own.append(self.head.stage, number, &content);
                self.broken = written.err().map(|e| e.to_string());
            }
            let message = encode(self.head.clone(), &content);
            self.kept.insert(number, Kept { message, sent: None });
            self.head.number += 1;
        }
    }

    /// Frames that were never sent.
    pub fn new_ones(&mut self) -> Vec<Vec<u8>> {
        let now = Instant::now();
        let unsent = self.kept.values_mut().filter(|k| k.sent.is_none());
        unsent.map(|k| (k.sent = Some(now), k.message.clone()).1).collect()
    }

    /// The conductor has all before `from` but those that are `missing`: gives what it is to get again.
    pub fn asked(&mut self, missing: &[u64], from: u64) -> Vec<Vec<u8>> {
        let first = missing.first().map_or(from, |m| from.min(*m));
        self.kept = self.kept.split_off(&first);
        let now = Instant::now();
        let wanted = |n: u64| n >= from || missing.contains(&n);
        let due = |k: &Kept| k.sent.is_none_or(|at| now.duration_since(at) >= ON_THE_WAY);
        let mut bytes = 0;
        let again = self.kept.iter_mut().filter(|(n, k)| wanted(**n) && due(k));
        let again = again.take_while(|(_, k)| {
            let is_room = bytes < AGAIN;
            bytes += k.message.len();
            is_room
        });
        again.map(|(_, k)| (k.sent = Some(now), k.message.clone()).1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_send_frames_more_seldom_and_none_so_seldom_that_a_second_is_lost() {
        let ms = [0, 1, 8, 250, 400, 1_000, 10_000, usize::MAX].map(|n| frames_every(n).as_millis());
        assert_eq!(ms, [250, 250, 250, 250, 400, 500, 500, 500]);
        // Whatever it is told: an older conductor tells it nothing.
        let told = |every| Outgoing::new("s", "r", 0, every).every;
        assert_eq!([Duration::ZERO, Duration::MAX].map(told), [EVERY, SELDOM]);
    }
}
