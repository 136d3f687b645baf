//! fio's latency bins: 64 per power of two, in nanoseconds, named by the middle of the bin.

/// Bits of resolution within a power of two.
const BITS: u32 = 6;
const PER_GROUP: u64 = 1 << BITS;
const GROUPS: u64 = 29;
const LAST: u64 = GROUPS * PER_GROUP - 1;

/// Number of the bin that a latency falls into.
pub fn index(ns: u64) -> u64 {
    let top = 63 - ns.max(1).leading_zeros();
    if top <= BITS {
        return ns;
    }
    let lost = top - BITS;
    let group = u64::from(lost + 1) * PER_GROUP;
    (group + ((ns >> lost) & (PER_GROUP - 1))).min(LAST)
}

/// The latency that stands for a bin: its middle.
pub fn value(index: u64) -> u64 {
    if index < 2 * PER_GROUP {
        return index;
    }
    let lost = index / PER_GROUP - 1;
    let base = 1u64 << (lost + u64::from(BITS));
    base + (((index % PER_GROUP) << lost) + (1 << lost) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_as_fio_prints_them() {
        // Values seen in fio 3.33's own json+ output.
        for v in [482u64, 502, 510, 540, 572, 16512, 18048, 21376, 61184, 5144576] {
            assert_eq!(value(index(v)), v);
        }
        assert_eq!(value(index(100)), 100);
    }

    proptest! {
        #[test]
        fn a_bin_is_within_a_hundredth(ns in 1u64..17_000_000_000) {
            let v = value(index(ns)) as f64;
            prop_assert!((v - ns as f64).abs() / ns as f64 <= 1.0 / 64.0);
        }

        #[test]
        fn bins_are_in_order(a in 0u64..1 << 34, b in 0u64..1 << 34) {
            if a <= b {
                prop_assert!(index(a) <= index(b));
            }
        }
    }
}
