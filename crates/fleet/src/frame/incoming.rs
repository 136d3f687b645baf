//! A conductor's side of one agent's stream of a stage.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plimsoll_crew::{FromAgent, Inbox};
use plimsoll_engine::WorkerEnd;
use plimsoll_model::OpKind;

use super::hash::StreamHash;
use super::record::{self, StreamRecord};

/// Content that may wait for frames ahead of it. What comes beyond is not kept: it is asked for again. (A choice: what a fast agent
/// measures in seconds, and little memory for a conductor of many.)
const WAITING: usize = 64 << 20;
/// The same of all agents of a run together: each may have its part of it, and the next frame in any case. (A choice: a conductor of a
/// thousand agents has frames of some seconds of each.)
pub const WAITING_OF_ALL: usize = 128 << 20;

/// No worker did more of anything: sums of many fit.
const MOST_TOLD: u64 = 1 << 48;

/// Puts frames in order, and takes records out of them.
#[derive(Debug)]
pub struct Incoming {
    agent: u32,
    inbox: Inbox<Vec<u8>>,
    /// Of what waits in it.
    waiting_bytes: usize,
    /// So much may.
    most_bytes: usize,
    /// Frames that were left with their agent for that.
    left: u64,
    /// Frames from here on are not known to have been sent.
    highest: u64,
    /// Of the stream, from where records were not taken out yet.
    buffer: Vec<u8>,
    /// So much of it was taken out.
    used: usize,
    hash: StreamHash,
    /// Of all frames in order, their end included.
    content: StreamHash,
    /// Ops that each worker began, by its slices.
    begun: BTreeMap<u16, u64>,
    /// Nothing ended later.
    latest_ns: u64,
    end: Option<Vec<WorkerEnd>>,
    broken: Option<String>,
}

impl Incoming {
    /// Of the agent of this number.
    pub fn new(agent: u32) -> Self {
        Self {
            agent,
            inbox: Inbox::default(),
            waiting_bytes: 0,
            most_bytes: WAITING,
            left: 0,
            highest: 0,
            buffer: Vec::new(),
            used: 0,
            hash: StreamHash::default(),
            content: StreamHash::default(),
            begun: BTreeMap::new(),
            latest_ns: u64::MAX,
            end: None,
            broken: None,
        }
    }

    /// As one of so many whose frames wait here.
    pub fn among(self, agents: usize) -> Self {
        Self { most_bytes: WAITING.min(WAITING_OF_ALL / agents.max(1)), ..self }
    }

    /// A frame has come, perhaps not for the first time. What is in order now is given out by [`Self::next_output`], as it is wanted: a frame
    /// waits in as many bytes as it was sent in, and what is made of it may be a thousand times that.
    pub fn accept(&mut self, number: u64, content: Vec<u8>) {
        if self.is_over() {
            return;
        }
        if number > self.inbox.next() && self.waiting_bytes + content.len() > self.most_bytes {
            self.left += 1;
            return;
        }
        let bytes = content.len();
        match self.inbox.offer(number, content) {
            Ok(true) => self.waiting_bytes += bytes,
            Ok(false) => {}
            Err(e) => {
                self.broken = Some(e.to_string());
                return;
            }
        }
        self.highest = self.highest.max(number.saturating_add(1));
    }

    /// The next output in order, if all of it is there.
    pub fn next_output(&mut self) -> Option<FromAgent> {
        while !self.is_over() {
            match record::take(&self.buffer[self.used..], self.agent) {
                Ok(Some((record, length))) => {
                    let at = self.used..self.used + length;
                    self.used = at.end;
                    if let Some(output) = self.took(record, at) {
                        return Some(output);
                    }
                }
                Ok(None) => {
                    let content = self.inbox.take()?;
                    self.waiting_bytes -= content.len();
                    self.content.update(&content);
                    self.buffer.drain(..std::mem::take(&mut self.used));
                    self.buffer.extend_from_slice(&content);
                }
                Err(e) => self.broken = Some(e.to_string()),
            }
        }
        None
    }

    fn took(&mut self, record: StreamRecord, at: Range<usize>) -> Option<FromAgent> {
        match record {
            StreamRecord::FromAgent(output) => {
                self.hash.update(&self.buffer[at]);
                if let FromAgent::Interval { worker, interval } = &output {
                    // Parts are no ops of their own.
                    let ops = interval.series.iter().filter(|s| s.id.kind != OpKind::UploadPart);
                    let begun = self.begun.entry(worker.worker).or_default();
                    *begun = ops.fold(*begun, |sum, s| sum.saturating_add(s.counts.started));
                }
                return Some(output);
            }
            StreamRecord::End(end) if end.hash == self.hash.text() => {
                let ends: Vec<WorkerEnd> = end.ends.into_iter().map(|e| e.of_agent(self.agent)).collect();
                match self.contradiction(&ends) {
                    Some(why) => self.broken = Some(why),
                    None => self.end = Some(ends),
                }
            }
            StreamRecord::End(_) => self.broken = Some("its hash is another than the agent's".into()),
        }
        None
    }

    /// What the end says and the slices do not, in words.
    fn contradiction(&self, ends: &[WorkerEnd]) -> Option<String> {
        let told: BTreeSet<u16> = ends.iter().map(|e| e.worker.worker).collect();
        if told.len() < ends.len() {
            return Some("its end tells of one worker twice".into());
        }
        if let Some(worker) = self.begun.keys().find(|w| !told.contains(w)) {
            return Some(format!("its end does not tell of worker {worker}"));
        }
        ends.iter().find_map(|e| {
            let WorkerEnd { worker, ops, .. } = e;
            let begun = self.begun.get(&worker.worker).copied().unwrap_or(0);
            let times = [e.started_ns, e.began_ns, e.stopped_ns, e.last_submit_ns, e.finished_ns];
            let sums =
                [e.mismatches, e.crossed_reads, e.unchecked_bodies, e.unconfirmed_uploads, e.ring_syscalls];
            if sums.iter().any(|n| *n > MOST_TOLD) {
                return Some(format!(
                    "its end tells of more than anybody can have done (worker {})",
                    worker.worker
                ));
            }
            if times.iter().any(|t| *t > self.latest_ns) {
                return Some(format!(
                    "its end tells of a time that has not been yet (worker {})",
                    worker.worker
                ));
            }
            // One that broke off does not know.
            (e.error.is_none() && *ops != begun).then(|| {
                format!("its end tells of {ops} ops, and its slices of {begun} (worker {})", worker.worker)
            })
        })
    }

    /// Since the run's start: an end that tells of a later time is not believed.
    pub fn not_after(&mut self, latest_ns: u64) {
        self.latest_ns = latest_ns;
    }

    /// Nothing more comes out of it.
    fn is_over(&self) -> bool {
        self.broken.is_some() || self.end.is_some()
    }

    /// Frames that are missing, of those before the second; and all from there on are.
    pub fn wanted(&self) -> (Vec<u64>, u64) {
        (self.inbox.missing(), self.highest)
    }

    /// How many times a frame was left with its agent, for want of room here.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// How many frames are in order, from the first, and were given out.
    pub fn in_order(&self) -> u64 {
        self.inbox.next()
    }

    /// The hash of those.
    pub fn content_hash(&self) -> String {
        self.content.text()
    }

    /// How the workers ended, once all was taken.
    pub fn end(&self) -> Option<&[WorkerEnd]> {
        self.end.as_deref()
    }

    /// What is wrong with it: nothing more comes out.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Interval, WorkerId};

    use super::super::record::put_output;
    use super::*;

    #[test]
    fn a_number_that_no_frame_has_breaks_it_and_costs_nothing() {
        for number in [1_000_000_000_000, u64::MAX - 1, u64::MAX] {
            let mut incoming = Incoming::new(0);
            incoming.accept(number, vec![1]);
            assert!(incoming.next_output().is_none());
            let why = incoming.broken().unwrap();
            assert!(why.contains(&number.to_string()), "{why}");
            assert_eq!(incoming.wanted(), (vec![], 0));
        }
    }

    #[test]
    fn what_waits_is_bounded_and_what_is_beyond_is_asked_for_again() {
        let mut incoming = Incoming::new(0);
        for number in 1..=100 {
            incoming.accept(number, vec![0; 1 << 20]);
        }
        assert!(incoming.broken().is_none() && incoming.waiting_bytes <= WAITING);
        let kept = (WAITING >> 20) as u64;
        assert_eq!(incoming.wanted(), (vec![0], kept + 1));
    }

    #[test]
    fn of_many_agents_each_waits_in_its_part_of_the_room() {
        for agents in [1, 2, 1000, 100_000] {
            let mut incoming = Incoming::new(0).among(agents);
            for number in 1..=100 {
                incoming.accept(number, vec![0; 8 << 10]);
            }
            assert!(incoming.waiting_bytes * agents <= WAITING_OF_ALL, "{agents}");
            let kept = (incoming.waiting_bytes >> 13) as u64;
            assert_eq!(
                (incoming.wanted(), incoming.left()),
                ((vec![0; usize::from(kept > 0)], kept + u64::from(kept > 0)), 100 - kept)
            );
            // The next one comes in whatever waits behind it.
            incoming.accept(0, vec![0; 8 << 10]);
            assert!(incoming.wanted().0.is_empty() && incoming.left() == 100 - kept);
        }
    }

    /// Of a few bytes each, and megabytes once they are dense: they stay as they came until somebody wants one.
    #[test]
    fn frames_wait_as_they_came_and_none_is_lost() {
        let mut content = Vec::new();
        for index in 0..3 {
            let interval = Box::new(Interval::empty(index));
            put_output(
                &plimsoll_engine::Output::Interval { worker: WorkerId { agent: 0, worker: 0 }, interval },
                &mut content,
            );
        }
        // Frames cut records where they like.
        let frames: Vec<&[u8]> = content.chunks(content.len() / 4).collect();
        let mut incoming = Incoming::new(0);
        for number in (0..frames.len()).rev() {
            incoming.accept(number as u64, frames[number].to_vec());
        }
        assert_eq!((incoming.waiting_bytes, incoming.buffer.len()), (content.len(), 0));
        // All of them came: none is asked for again.
        assert_eq!(incoming.wanted(), (vec![], frames.len() as u64));
        let first = incoming.next_output();
        assert!(matches!(first, Some(FromAgent::Interval { interval, .. }) if interval.index == 0));
        assert!(incoming.waiting_bytes > 0, "what is behind it waits still");
        let rest: Vec<u64> = std::iter::from_fn(|| incoming.next_output())
            .map(|o| if let FromAgent::Interval { interval, .. } = o { interval.index } else { 99 })
            .collect();
        assert_eq!((rest, incoming.waiting_bytes), (vec![1, 2], 0));
        assert_eq!((incoming.in_order(), incoming.broken()), (frames.len() as u64, None));
    }
}
