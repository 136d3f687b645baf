//! What is corrected against the original, and the switches back to its way.

use plimsoll_run::RunError;

/// `true`: as GoBonnieGo does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Original {
    /// The write phase ends when the last write returns, not when the data is on the device.
    pub fsync: bool,
    /// One block of 64 KiB is written over and over.
    pub unique: bool,
    /// IOPS offsets are any byte.
    pub aligned: bool,
    /// Writes of the IOPS phase repeat data that is there.
    pub fresh: bool,
    /// Reads may come from the cache without a word.
    pub cache: bool,
}

const NAMES: [&str; 5] = ["fsync", "unique", "aligned", "fresh", "cache"];

impl Original {
    pub const ALL: Self = Self { fsync: true, unique: true, aligned: true, fresh: true, cache: true };

    /// From names, as `--original` has them; `all` is every one.
    pub fn from_names<S: AsRef<str>>(names: &[S]) -> Result<Self, RunError> {
        let mut o = Self::default();
        for name in names.iter().map(AsRef::as_ref) {
            match name {
                "fsync" => o.fsync = true,
                "unique" => o.unique = true,
                "aligned" => o.aligned = true,
                "fresh" => o.fresh = true,
                "cache" => o.cache = true,
                "all" => o = Self::ALL,
                other => {
                    return Err(RunError::input(
                        format!("--original {other}: no such correction"),
                        format!("Write some of {}, or all", NAMES.join(", ")),
                    ));
                }
            }
        }
        Ok(o)
    }

    fn flags(self) -> [bool; 5] {
        [self.fsync, self.unique, self.aligned, self.fresh, self.cache]
    }

    /// Names of what is corrected.
    pub fn corrected(self) -> Vec<&'static str> {
        NAMES.into_iter().zip(self.flags()).filter(|(_, original)| !original).map(|(n, _)| n).collect()
    }

    /// A sentence for each.
    pub fn notes(self) -> Vec<String> {
        const CORRECTED: [&str; 4] = [
            "fsync: the write phase ends with an fsync, which is included in its time.",
            "unique: every block is different, so nothing can be deduplicated.",
            "aligned: IOPS offsets are multiples of 512 bytes.",
            "fresh: every write of the IOPS phase writes new data.",
        ];
        const AS_ORIGINAL: [&str; 5] = [
            "fsync: as the original; data may still be in memory when the write phase ends.",
            "unique: as the original; one block is repeated, so storage that deduplicates looks faster.",
            "aligned: as the original; offsets are not aligned, so a 512-byte write may touch two blocks.",
            "fresh: as the original; the same data is written again, and may never reach the media.",
            "cache: as the original; pages that cannot be dropped are read from memory.",
        ];
        let mut out = Vec::new();
        for (i, original) in self.flags().into_iter().enumerate() {
            if original {
                out.push(AS_ORIGINAL[i].to_owned());
            } else if let Some(text) = CORRECTED.get(i) {
                out.push((*text).to_owned());
            }
        }
        out
    }
}
