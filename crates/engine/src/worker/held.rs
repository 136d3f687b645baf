//! Slots that take no op for a while: after a refused attempt, or because their server is gone.

/// A list that never grows beyond the slots: nothing is allocated under load.
#[derive(Debug)]
pub(super) struct Held(Vec<Slot>);

#[derive(Debug, Clone, Copy)]
struct Slot {
    until_ns: u64,
    slot: u32,
    /// It pauses after a refused attempt.
    refused: bool,
}

impl Held {
    pub fn with_capacity(slots: usize) -> Self {
        Self(Vec::with_capacity(slots))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, until_ns: u64, slot: u32, refused: bool) {
        self.0.push(Slot { until_ns, slot, refused });
    }

    /// When the first of them goes on.
    pub fn first_ns(&self) -> Option<u64> {
        self.0.iter().map(|h| h.until_ns).min()
    }

    /// One whose time has come, and whether it paused after a refused attempt.
    pub fn pop(&mut self, now_ns: u64) -> Option<(u32, bool)> {
        let over = self.0.iter().position(|h| h.until_ns <= now_ns)?;
        let held = self.0.swap_remove(over);
        Some((held.slot, held.refused))
    }
}
