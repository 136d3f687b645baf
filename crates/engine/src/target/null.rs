//! A target that does nothing: it measures the loop.

use plimsoll_model::{Op, Outcome};

use super::{Built, Context, Done, OpStep, Target};
use crate::ring::{Ring, RingOp, RingSpec, Token};

/// Every op ends at once: what is left is the tool's own work.
#[derive(Debug)]
pub struct NullTarget {
    lengths: Vec<u64>,
}

impl NullTarget {
    /// `slots`: ops in flight at most.
    pub fn build(slots: u32) -> Built<Self> {
        let ring = RingSpec { entries: slots, ..RingSpec::default() };
        Built { target: Self { lengths: vec![0; slots as usize] }, ring }
    }
}

impl<R: Ring> Target<R> for NullTarget {
    const STAMP_AFTER_PREPARE: bool = false;

    #[inline]
    fn begin(&mut self, cx: &mut Context<'_, R>, slot: u32, op: &Op, _n: u64) -> OpStep {
        self.lengths[slot as usize] = op.length;
        // SAFETY: a no-op points to nothing.
        unsafe { cx.ring.push(Token::new(slot, 0), RingOp::Nop) };
        OpStep::MORE
    }

    #[inline]
    fn complete(&mut self, _cx: &mut Context<'_, R>, token: Token, _result: i32) -> OpStep {
        OpStep::Done(Done::at_once(Outcome::Ok, self.lengths[token.slot() as usize]))
    }

    fn cancel(&mut self, _cx: &mut Context<'_, R>, _slot: u32, _why: Outcome) -> OpStep {
        // It completes by itself.
        OpStep::MORE
    }
}
