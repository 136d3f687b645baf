//! How much of a body a receive waits for.
//!
//! A body that comes fast would wake its lane a dozen times per MiB, and the kernel acknowledges each of the small
//! receives. So a receive waits until as much is there as came in [`SPAN_NS`] at the pace of the body before it:
//! measured on loopback with 1 MiB objects, 2.6 receives an op instead of 6.4, and 33 us of client CPU instead of 60.
//! The span is short against the grid of a run (100 ms), in which bytes are counted as they move. A body that comes
//! slowly is received as it comes.

/// A receive waits for what comes in so long.
const SPAN_NS: u64 = 10_000_000;
/// Less is not worth the system calls that set it.
const LEAST_BYTES: u64 = 128 << 10;

/// The water mark of one lane.
#[derive(Debug)]
pub(super) struct LowWater {
    /// What the socket has now.
    level: u32,
    /// Bytes that came in [`SPAN_NS`] of the last body.
    expected: u64,
    began_ns: u64,
    began_left: u64,
}

impl LowWater {
    pub fn new() -> Self {
        Self { level: 1, expected: 0, began_ns: 0, began_left: 0 }
    }

    /// A new socket has no mark.
    pub fn new_socket(&mut self) {
        self.level = 1;
    }

    /// A body begins: `left` bytes of it are to come.
    pub fn begin(&mut self, left: u64, now_ns: u64) {
        self.began_ns = now_ns;
        self.began_left = left;
    }

    /// Part of the body came, and `left` bytes are still to come.
    pub fn moved(&mut self, left: u64, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(self.began_ns).max(1);
        let bytes = u128::from(self.began_left.saturating_sub(left));
        self.expected = (bytes * u128::from(SPAN_NS) / u128::from(took_ns)).min(1 << 40) as u64;
    }

    /// The mark for the next receive, of at most `room` bytes, with `left` bytes to come: what the socket has to be
    /// set to, if that changes. It is never more than what is left, so that the end is not waited for in vain.
    pub fn next(&mut self, left: u64, room: u64) -> Option<u32> {
        let most = left.min(room);
        let wanted = self.expected.min(most);
        // Steps of two, so that a small change of pace costs no system call.
        let level = if wanted < LEAST_BYTES {
            1
        } else if wanted == most {
            most
        } else {
            1 << wanted.ilog2()
        };
        self.set(level as u32)
    }

    /// The mark for what follows a body.
    pub fn end(&mut self) -> Option<u32> {
        self.set(1)
    }

    fn set(&mut self, level: u32) -> Option<u32> {
        (std::mem::replace(&mut self.level, level) != level).then_some(level)
    }

    /// Receives wait for more than the first byte.
    pub fn is_set(&self) -> bool {
        self.level > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_fast_body_is_waited_for_and_a_slow_one_is_not() {
        let mut w = LowWater::new();
        w.begin(MIB, 0);
        assert_eq!(w.next(MIB, MIB), None, "nothing is known yet");
        w.moved(0, 1_000_000);
        assert_eq!(w.end(), None);
        w.begin(MIB, 0);
        assert_eq!((w.next(MIB, MIB), w.is_set()), (Some(1 << 20), true));
        assert_eq!(w.next(MIB, MIB), None, "it is set already");
        assert_eq!(w.next(200_000, MIB), Some(200_000), "never more than is left");
        assert_eq!(w.next(1000, MIB), Some(1));
        // 1 MiB in a second: 10 KiB in the span.
        w.begin(MIB, 0);
        w.moved(0, 1_000_000_000);
        assert_eq!((w.next(MIB, MIB), w.is_set()), (None, false));
    }

    proptest! {
        #[test]
        fn never_more_than_is_left(steps in proptest::collection::vec((0u64..4_000_000, 0u64..50_000_000), 1..20)) {
            let mut w = LowWater::new();
            let mut now_ns = 0;
            for (left, took_ns) in steps {
                w.begin(left, now_ns);
                let level = w.next(left, MIB).unwrap_or(w.level);
                prop_assert!(u64::from(level) <= left.clamp(1, MIB));
                now_ns += took_ns;
                w.moved(left / 3, now_ns);
                let level = w.next(left / 3, MIB).unwrap_or(w.level);
                prop_assert!(u64::from(level) <= (left / 3).clamp(1, MIB));
                w.end();
                prop_assert!(!w.is_set());
            }
        }
    }
}
