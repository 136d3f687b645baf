//! What a level between agents and their conductor would do: the streams of a site merged to one. No process does so; `examples/levels`
//! measures it, and SCALE.md says what follows. Here it is held against the merge of all at once.

use std::collections::BTreeMap;

use plimsoll_model::Interval;
use plimsoll_store::{SparseInterval, StoreError};

use crate::frame::envelope::{CONTENT, FrameHead, decode, encode};
use crate::frame::record;

/// Slices by their number, of all agents of a site.
pub type SiteSum = BTreeMap<u64, SparseInterval>;

/// Slices of a worker (of an agent; or of all of a site, as one) as they are published, in one or more frames.
pub fn framed(worker: u16, slices: &[&SparseInterval]) -> Vec<Vec<u8>> {
    let mut content = Vec::new();
    slices.iter().for_each(|s| record::put_slice(worker, s, &mut content));
    let head = || FrameHead::new("0123456789abcdef0123456789abcdef", "20261123T000000Z-abcdef", 0, 1);
    content.chunks(CONTENT).map(|part| encode(head(), part)).collect()
}

/// And back; frames of one call of [`framed`], in order.
pub fn unframed(frames: &[Vec<u8>]) -> Result<Vec<SparseInterval>, StoreError> {
    let mut content = Vec::new();
    for frame in frames {
        let (_, part) = decode(frame).ok_or(StoreError::Record("frame"))?;
        content.extend(part);
    }
    Ok(record::take_slices(&content)?.into_iter().map(|(_, slice)| slice).collect())
}

/// Adds a slice to those of its number.
pub fn add(sum: &mut SiteSum, slice: &SparseInterval) {
    sum.entry(slice.index)
        .or_insert_with(|| Interval { index: slice.index, series: Vec::new(), client: Default::default() })
        .merge(slice);
}

#[cfg(test)]
mod tests {
    use plimsoll_model::interval::{ClientCounts, SeriesShape};
    use plimsoll_model::{OpKind, Series, SeriesId};
    use proptest::prelude::*;

    use super::*;

    fn slice(index: u64, ops: &[(bool, u64)]) -> SparseInterval {
        let mut of = [OpKind::Get, OpKind::Put]
            .map(|kind| Series::new(SeriesId { stage: 0, workload: 0, kind }, SeriesShape::default()));
        for (is_put, ns) in ops {
            let s = &mut of[usize::from(*is_put)];
            s.counts.outcomes[0] += 1;
            s.counts.in_system_ns += u128::from(*ns);
            s.response.record(*ns);
        }
        let client = ClientCounts { workers: 1, waited_ns: ops.len() as u64, ..ClientCounts::default() };
        let dense: Interval = Interval { index, series: of.into(), client };
        dense.to_form()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn merged_by_sites_is_merged_at_once_bit_for_bit(
            agents in prop::collection::vec(
                prop::collection::vec((0u64..6, prop::collection::vec((any::<bool>(), 1u64..1 << 40), 0..20)), 1..8), 1..24),
            sites in 1usize..6,
        ) {
            let (mut flat, mut top) = (SiteSum::new(), SiteSum::new());
            let agents: Vec<Vec<SparseInterval>> =
                agents.iter().map(|a| a.iter().map(|(index, ops)| slice(*index, ops)).collect()).collect();
            agents.iter().flatten().for_each(|s| add(&mut flat, s));
            // Sites in another order than agents, and each over the wire.
            for site in (0..sites).rev() {
                let mut sum = SiteSum::new();
                for agent in agents.iter().skip(site).step_by(sites) {
                    let frames = framed(3, &agent.iter().collect::<Vec<_>>());
                    unframed(&frames).unwrap().iter().for_each(|s| add(&mut sum, s));
                }
                let up = framed(site as u16, &sum.values().collect::<Vec<_>>());
                unframed(&up).unwrap().iter().for_each(|s| add(&mut top, s));
            }
            prop_assert_eq!(top, flat);
        }
    }
}
