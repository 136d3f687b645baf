//! What this machine can do at most as a load generator, from the figures of its calibration.

use std::collections::BTreeMap;

use plimsoll_model::OpKind;

/// Sizes that a calibration measures against the canned server; costs in between follow a line.
pub const SIZES: [u64; 2] = [4096, 1 << 20];

/// What one thread of this machine can do at most with ops of this size, from the measured ones: the time of an op is a
/// fixed part and one that grows with its bytes.
pub fn ceiling_for(ceiling: &BTreeMap<String, f64>, kind: OpKind, size_bytes: u64) -> Option<f64> {
    let kind = match kind {
        OpKind::Get | OpKind::GetRange => OpKind::Get,
        OpKind::Put | OpKind::UploadPart => OpKind::Put,
        OpKind::Null => return ceiling.get("null").copied(),
        // Small exchanges both ways: as cheap as a small GET.
        OpKind::Stat | OpKind::Delete | OpKind::List | OpKind::DeleteBatch | OpKind::Copy => {
            return ceiling.get(&format!("get {}", SIZES[0])).copied();
        }
        OpKind::Multipart | OpKind::Read | OpKind::Write | OpKind::Fsync | OpKind::Trim => return None,
    };
    let time = |size: u64| ceiling.get(&format!("{kind} {size}")).filter(|r| **r > 0.0).map(|r| 1.0 / r);
    let [small, large] = SIZES;
    let (t_small, t_large) = (time(small)?, time(large)?);
    let per_byte = ((t_large - t_small) / (large - small) as f64).max(0.0);
    let t = (t_small + per_byte * (size_bytes as f64 - small as f64)).max(t_small * 0.5);
    Some(1.0 / t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_the_sizes_time_grows_with_bytes() {
        let c: BTreeMap<String, f64> =
            [("get 4096".to_owned(), 50_000.0), ("get 1048576".to_owned(), 4000.0)].into();
        assert!((ceiling_for(&c, OpKind::Get, 4096).unwrap() - 50_000.0).abs() < 0.01);
        assert!((ceiling_for(&c, OpKind::Get, 1 << 20).unwrap() - 4000.0).abs() < 1.0);
        let middle = ceiling_for(&c, OpKind::Get, 512 << 10).unwrap();
        assert!((7000.0..8500.0).contains(&middle), "{middle}");
        assert!(ceiling_for(&c, OpKind::Put, 4096).is_none());
    }
}
