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

/// Where the range of an agent begins, from the region's begin on, and its length, bytes: whole units inside of the agent's own part of the
/// region. Parts are the same for all workloads, whatever their blocks, so that ranges of different ones are apart, too; what is left
/// over is nobody's. Length 0: there is no room for so many.
pub fn range_of(agent: u32, agents: u32, length: u64, unit: u64) -> (u64, u64) {
    let unit = unit.max(1);
    let each = length / u64::from(agents.max(1)) / UNIT * UNIT;
    let part = u64::from(agent) * each;
    let at = part.next_multiple_of(unit);
    (at, (part + each).saturating_sub(at) / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Workloads with blocks of different sizes: what one agent does in any of them is apart from what another does in any.
        #[test]
        fn ranges_are_apart_and_inside(
            agents in 1u32..300,
            length in 0u64..1 << 50,
            units in prop::collection::vec(1u64..1 << 23, 1..4),
        ) {
            let mut end = 0;
            for agent in 0..agents {
                let of = |unit: &u64| (range_of(agent, agents, length, *unit), *unit);
                let ranges: Vec<_> = units.iter().map(of).filter(|((_, each), _)| *each > 0).collect();
                for ((at, each), unit) in &ranges {
                    prop_assert!(*at >= end && at % unit == 0 && each % unit == 0);
                }
                end = ranges.iter().map(|((at, each), _)| at + each).max().unwrap_or(end);
            }
            prop_assert!(end <= length);
        }

        #[test]
        fn what_is_left_over_is_little(agents in 1u32..300, mib in 0u64..1 << 30, unit in 0u32..4) {
            let (length, unit) = (mib << 20, UNIT << unit);
            let used: u64 = (0..agents).map(|a| range_of(a, agents, length, unit).1).sum();
            prop_assert!(length - used < u64::from(agents) * (UNIT + 2 * unit));
        }
    }

    #[test]
    fn small_blocks_of_one_agent_are_not_in_large_ones_of_another() {
        let (length, agents) = (25 << 20, 3);
        let large = |a| range_of(a, agents, length, 4 << 20);
        let small = |a| range_of(a, agents, length, UNIT);
        assert!((0..3).all(|a| (0..3).filter(|b| a != *b).all(|b| {
            let (l, s) = (large(a), small(b));
            l.0 + l.1 <= s.0 || s.0 + s.1 <= l.0
        })));
    }
}
