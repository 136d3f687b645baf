//! The two things of which limiters have tokens.

/// Which bucket a drain is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Tokens are operations.
    Ops,
    /// Tokens are bytes.
    Bytes,
}

impl Resource {
    /// The ops that drain it, for a progress line.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ops => "small ops",
            Self::Bytes => "large ops",
        }
    }

    /// As data and sentences have it: `ops`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ops => "ops",
            Self::Bytes => "bytes",
        }
    }
}
