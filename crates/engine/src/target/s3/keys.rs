//! From an object's number to its key, the same for the hot path, preparation and cleanup.
//!
//! Numbers are scrambled hex at the end, so that keys of one prefix do not sort in the order in which they were
//! made (many servers place neighbours together); with several prefixes the number says which one.

use std::sync::Arc;

/// Names the objects of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyNames {
    /// Everything of the run is under it; ends with `/` by custom.
    pub prefix: String,
    /// Number of prefixes below it over which keys are spread; at least 1.
    pub prefixes: u32,
    /// Objects with numbers below [`DATASET_NUMBERS`] are under this prefix instead: a data set that outlives the run.
    pub dataset: Option<String>,
    /// Objects that were there already: number n is the n-th, and `prefix` what they were listed under.
    pub existing: Option<Arc<[String]>>,
}

/// Numbers below it are those of a data set; what a run makes is numbered from here on.
pub const DATASET_NUMBERS: u64 = 1 << 40;

const HEX: &[u8; 16] = b"0123456789abcdef";

impl KeyNames {
    /// Bytes of the longest key.
    pub fn max_bytes(&self) -> usize {
        let found = self.existing.iter().flat_map(|keys| keys.iter()).map(String::len).max().unwrap_or(0);
        (self.prefix.len().max(self.dataset.as_ref().map_or(0, String::len)) + 9 + 16).max(found)
    }

    /// Appends the prefix that LIST op `number` lists.
    pub fn push_prefix(&self, number: u64, out: &mut Vec<u8>) {
        let prefix = match &self.dataset {
            Some(dataset) if number < DATASET_NUMBERS => dataset,
            _ => &self.prefix,
        };
        out.extend_from_slice(prefix.as_bytes());
        if self.prefixes > 1 {
            push_hex(number % u64::from(self.prefixes), 8, out);
            out.push(b'/');
        }
    }

    /// Appends the key of object `number`.
    #[inline]
    pub fn push(&self, number: u64, out: &mut Vec<u8>) {
        if let Some(key) = self.existing.as_ref().and_then(|keys| keys.get(number as usize)) {
            return out.extend_from_slice(key.as_bytes());
        }
        self.push_prefix(number, out);
        push_hex(scramble(number), 16, out);
    }

    /// For messages and set-up: it allocates.
    pub fn key(&self, number: u64) -> String {
        let mut out = Vec::with_capacity(self.max_bytes());
        self.push(number, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Whether a key below an area of a run is one that [`KeyNames`] can have made there: `WORD/HEX` or `WORD/DIRECTORY/HEX`,
/// where the word has no `/` and the directory is a number below the most prefixes that there can be. So what lies under
/// a further prefix, such as the area of another run, is never of this shape.
pub fn is_of_shape(below: &str) -> bool {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let directory = |text: &str| {
        hex(text, 8)
            && u64::from_str_radix(text, 16).is_ok_and(|n| n < plimsoll_model::plan::bounds::MAX_PREFIXES)
    };
    let word = |text: &str| {
        text.bytes().any(|c| c.is_ascii_alphanumeric())
            && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-'))
    };
    match below.split('/').collect::<Vec<_>>()[..] {
        [first, number] => word(first) && hex(number, 16),
        [first, middle, number] => word(first) && directory(middle) && hex(number, 16),
        _ => false,
    }
}

/// A bijection of 64 bits (the finaliser of splitmix64), so that keys stay unique.
fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn push_hex(n: u64, digits: u32, out: &mut Vec<u8>) {
    for i in (0..digits).rev() {
        out.push(HEX[(n >> (4 * i) & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_key_of_ours_is_known_by_its_shape_and_that_of_a_run_below_is_not() {
        for prefixes in [1, 4, plimsoll_model::plan::bounds::MAX_PREFIXES as u32] {
            let names = KeyNames { prefix: "run/4KiB/".into(), prefixes, dataset: None, existing: None };
            for n in [0, 7, DATASET_NUMBERS, u64::MAX - 1] {
                assert!(is_of_shape(&names.key(n)["run/".len()..]), "{}", names.key(n));
                // Another run's, whose area lies below.
                for area in ["20261122-053127-d0ae", "4KiB", "00000001", "a/b"] {
                    let theirs = format!("{area}/10000000/{}", &names.key(n)["run/4KiB/".len()..]);
                    assert!(!is_of_shape(&theirs), "{theirs}");
                }
            }
        }
        for other in [
            "",
            "report.pdf",
            "4KiB/report.pdf",
            "4KiB/",
            "/0123456789abcdef",
            "a_b/0123456789abcdef",
            "4KiB/0123456789ABCDEF",
            ".plimsoll",
            "x/.plimsoll",
        ] {
            assert!(!is_of_shape(other), "{other}");
        }
    }

    #[test]
    fn keys_are_unique_and_spread() {
        let names = KeyNames { prefix: "run/".into(), prefixes: 4, dataset: None, existing: None };
        let keys: HashSet<String> = (0..1000).map(|n| names.key(n)).collect();
        assert_eq!(keys.len(), 1000);
        let heads: HashSet<&str> = keys.iter().map(|k| &k[..13]).collect();
        assert_eq!(heads.len(), 4);
        assert!(keys.iter().all(|k| k.len() == names.max_bytes()));
        let set =
            KeyNames { prefix: "run/".into(), prefixes: 1, dataset: Some("sets/a/".into()), existing: None };
        assert!(set.key(7).starts_with("sets/a/") && set.key(DATASET_NUMBERS).starts_with("run/"));
        assert_eq!(set.key(7).len(), set.max_bytes() - 9);
    }
}
