//! Which cell comes after which: pure, from the file's seed and the number of the block.
//!
//! A block has each cell once. What drifts over hours (neighbours, temperature, credits) then meets all cells alike, and within a
//! block chance decides whom it meets first.

use plimsoll_stats::rng::Rng;

use crate::cells::CampaignCell;
use crate::file::CellOrder;

/// The cells of block `block`, as indices into `cells`. Every cell that is measured here is in it once.
pub fn block(cells: &[CampaignCell], order: CellOrder, seed: u64, block: u32) -> Vec<usize> {
    let measured: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].target.is_some()).collect();
    let mut rng = Rng::new(seed ^ (u64::from(block) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    match order {
        CellOrder::AsWritten => measured,
        CellOrder::Random => shuffled(measured, &mut rng),
        CellOrder::BySubject => {
            let groups = groups(&measured, |i| cells[i].subject.as_str());
            let groups = shuffled(groups, &mut rng);
            groups.into_iter().flat_map(|g| shuffled(g, &mut rng)).collect()
        }
        CellOrder::Abba => {
            // The loads are shuffled once in two blocks, so that A B of one stands against B A of the next.
            let mut rng = Rng::new(seed ^ (u64::from(block / 2) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let pairs = shuffled(groups(&measured, |i| cells[i].workload.as_str()), &mut rng);
            let turned = block % 2 == 1;
            let pair = |g: Vec<usize>| if turned { g.into_iter().rev().collect() } else { g };
            pairs.into_iter().flat_map(pair).collect()
        }
    }
}

/// Those of one name together, in the order in which names first occur.
fn groups<'a>(list: &[usize], name: impl Fn(usize) -> &'a str) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    for &i in list {
        match out.iter_mut().find(|g| name(g[0]) == name(i)) {
            Some(group) => group.push(i),
            None => out.push(vec![i]),
        }
    }
    out
}

fn shuffled<T>(mut list: Vec<T>, rng: &mut Rng) -> Vec<T> {
    rng.shuffle(&mut list);
    list
}
