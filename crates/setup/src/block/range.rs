//! The ranges of a device or image that several agents write to: apart from each other, for the whole run.

use plimsoll_model::plan::{SizeDist, Workload};

/// A range begins at a multiple of it, whatever the block: no two agents write to one block of any device or file system.
const UNIT: u64 = 1 << 20;

/// What ranges of a workload are multiples of: of [`UNIT`], and of the largest block.
pub fn range_unit(w: &Workload) -> u64 {
    let block = w.block.clone().unwrap_or_default();
    let largest = |s: &SizeDist| s.max_bytes().max(1);
    let most = block.write_size.as_ref().map_or(0, largest).max(largest(&w.size));
    let step = block.offset_align.map_or(most, |a| a.0.max(1));
    UNIT.next_multiple_of(step.max(1)).max(most.next_multiple_of(step.max(1)))
}

/// Where the range of an agent begins, from the region's begin on, and its length, bytes. Ranges are equal; what is left over at the end
/// is nobody's. Length 0: there is no room for so many.
pub fn range_of(agent: u32, agents: u32, length: u64, unit: u64) -> (u64, u64) {
    let each = length / u64::from(agents.max(1)) / unit.max(1) * unit.max(1);
    (u64::from(agent) * each, each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_apart_and_inside(agents in 1u32..300, length in 0u64..1 << 50, unit in 1u64..1 << 22) {
            let mut end = 0;
            for agent in 0..agents {
                let (at, each) = range_of(agent, agents, length, unit);
                prop_assert!(at >= end && at % unit == 0 && each % unit == 0);
                end = at + each;
            }
            prop_assert!(end <= length);
            // No more than a unit of each is left over.
            prop_assert!(length - end < u64::from(agents) * unit);
        }
    }
}
