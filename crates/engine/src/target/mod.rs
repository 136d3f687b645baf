//! Targets: what is measured. A target turns an op into ring work and judges what comes back.

use plimsoll_model::{Op, Outcome};

use crate::recorder::Recorder;
use crate::ring::{Ring, RingSpec, Token};

pub mod file;
pub mod null;
pub mod s3;
pub mod sim;

/// What a target may touch while it works: the ring, the time of this turn, and the recorder for
/// what is not the end of an op (parts, reconnects, first errors, mismatches).
#[derive(Debug)]
pub struct Context<'a, R> {
    /// The worker's own.
    pub ring: &'a mut R,
    /// Time of this turn (since the epoch): one clock read a batch.
    pub now_ns: u64,
    /// The worker's own; the end of an op it records itself.
    pub recorder: &'a mut Recorder,
}

/// What became of an op after one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpStep {
    /// Ring ops are in flight for it; `moved_bytes` of payload moved with this event, and
    /// `first_byte` came with it.
    More {
        /// Bytes.
        moved_bytes: u64,
        /// Of the answer, or of the data.
        first_byte: bool,
    },
    /// It is over, and nothing of it is in flight any more.
    Done(Done),
}

impl OpStep {
    /// In flight, and nothing moved.
    pub const MORE: OpStep = OpStep::More { moved_bytes: 0, first_byte: false };
}

/// The end of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// What it counts as.
    pub outcome: Outcome,
    /// Payload bytes that count if the outcome is Ok.
    pub bytes: u64,
    /// Payload bytes that moved with this last event.
    pub moved_bytes: u64,
    /// The first byte came with this event.
    pub first_byte: bool,
    /// Index of the endpoint that did it; 0 where there is one.
    pub endpoint: u16,
    /// The slot takes no new op before this time (backoff after a throttled answer); 0: at once.
    pub hold_until_ns: u64,
}

impl Done {
    /// An end where all `bytes` moved with the last event.
    pub fn at_once(outcome: Outcome, bytes: u64) -> Self {
        Self { outcome, bytes, moved_bytes: bytes, first_byte: false, endpoint: 0, hold_until_ns: 0 }
    }
}

/// What is measured, as one worker sees it: a state machine per slot.
///
/// Made in the worker's own thread. After the first op it must not allocate, lock, log or make
/// system calls of its own.
pub trait Target<R: Ring> {
    /// Whether preparing an op takes long enough (signing) that the time of submission is read after
    /// the batch was prepared; otherwise the time of the turn is the time of submission.
    const STAMP_AFTER_PREPARE: bool;

    /// Starts `op`, the `n`-th of its worker's sequence, in `slot`.
    fn begin(&mut self, cx: &mut Context<'_, R>, slot: u32, op: &Op, n: u64) -> OpStep;

    /// A ring op of the slot ended. Also called for a slot without an op, when the target left ring
    /// ops in flight on purpose (watching an idle connection); it answers [`OpStep::MORE`] then.
    fn complete(&mut self, cx: &mut Context<'_, R>, token: Token, result: i32) -> OpStep;

    /// Ends the op of `slot` with `why` (`Timeout` or `Cancelled`): cancels its ring ops. Answers
    /// `Done` if nothing is in flight; otherwise `complete` will, once the ring has let go.
    fn cancel(&mut self, cx: &mut Context<'_, R>, slot: u32, why: Outcome) -> OpStep;

    /// An op in flight for longer than this is cancelled as `Timeout`.
    fn timeout_ns(&self) -> Option<u64> {
        None
    }

    /// When [`Self::wake`] wants to be called; read in each turn of the loop.
    fn wake_ns(&self) -> u64 {
        u64::MAX
    }

    /// Does what time itself brings. What it leads to comes as completions.
    fn wake(&mut self, _cx: &mut Context<'_, R>) {}

    /// A slice of the grid has ended, and the next begins: ten times a second, between ops. What is kept up to date without an op having
    /// to look for it.
    fn between_slices(&mut self) {}

    /// After the last op: let go of what was left in flight (idle watches), so that the ring is empty.
    fn close(&mut self, _cx: &mut Context<'_, R>) {}

    /// Whether the op may not begin before some op in flight has ended.
    fn must_wait(&self, _op: &Op) -> bool {
        false
    }

    /// The ring is handed so many ops at a time while a turn begins more of them; as a rule, all of the
    /// turn's at once.
    fn submit_every(&self) -> u32 {
        u32::MAX
    }

    /// Ring ops left in flight by slots without an op. `close` brings it to zero.
    fn idle_in_flight(&self) -> u32 {
        0
    }

    /// Reads that were not judged, for a write to the same place crossed them.
    fn crossed_reads(&self) -> u64 {
        0
    }

    /// Bodies whose checksum was to be checked, and that came without one.
    fn unchecked_bodies(&self) -> u64 {
        0
    }

    /// Uploads with a checksum that the server said nothing of.
    fn unconfirmed_uploads(&self) -> u64 {
        0
    }

    /// Facts for the report: name to value, such as how bodies were received.
    fn notes(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// A target, and the ring that it needs.
#[derive(Debug)]
pub struct Built<T> {
    /// Owns what the ring's ops point to.
    pub target: T,
    /// Epoch is filled in by the worker.
    pub ring: RingSpec,
}
