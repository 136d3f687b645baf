//! How an attempt ended. Every attempt has exactly one outcome; only `Ok` is throughput.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is said of a block whose stamp is sound, but made with another seed. Whoever judges a run looks for it: such a
/// block is no damage.
pub const OTHER_SEED: &str = "it was written with another seed";

/// How an op ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should.
    Ok,
    /// Answered, and not allowed.
    Http403,
    /// Answered, and not there.
    Http404,
    /// 429: throttled.
    Http429,
    /// 503, unless its body carries an error code that is no throttling: throttled.
    Http503SlowDown,
    /// Any other 4xx, and an unexpected 1xx.
    Http4xx,
    /// Any other 5xx, a 503 whose body says that it is something else included.
    Http5xx,
    /// Nothing came within the target's timeout; the connection was given up.
    Timeout,
    /// Reset or closed in the middle of an exchange: there was a connection.
    Reset,
    /// Fewer bytes than the answer promised, or than were asked for.
    ShortBody,
    /// The server's checksum does not match the bytes.
    ChecksumMismatch,
    /// The stamp of a block is not the one that was written.
    VerifyMismatch,
    /// An answer that is not HTTP, or breaks it; a body with more bytes than were asked for.
    Protocol,
    /// EIO and other errors of a read or write.
    IoError,
    /// ENOSPC, EDQUOT, and S3's QuotaExceeded or StorageFull.
    NoSpace,
    /// Not answered when the run ended; in no rate, and in no latency.
    Cancelled,
    /// No connection came about: refused, unreachable.
    NoConnection,
    /// 3xx: a redirect that was not followed, or 304 without having been asked for.
    Http3xx,
}

impl Outcome {
    /// Length of arrays that are indexed by outcome.
    pub const COUNT: usize = 18;
    /// By [`Self::index`].
    pub const ALL: [Outcome; Self::COUNT] = [
        Self::Ok,
        Self::Http403,
        Self::Http404,
        Self::Http429,
        Self::Http503SlowDown,
        Self::Http4xx,
        Self::Http5xx,
        Self::Timeout,
        Self::Reset,
        Self::ShortBody,
        Self::ChecksumMismatch,
        Self::VerifyMismatch,
        Self::Protocol,
        Self::IoError,
        Self::NoSpace,
        Self::Cancelled,
        Self::NoConnection,
        Self::Http3xx,
    ];

    /// Its place in arrays of [`Self::COUNT`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Http403 => "http_403",
            Self::Http404 => "http_404",
            Self::Http429 => "http_429",
            Self::Http503SlowDown => "http_503",
            Self::Http4xx => "http_4xx",
            Self::Http5xx => "http_5xx",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::ShortBody => "short_body",
            Self::ChecksumMismatch => "checksum_mismatch",
            Self::VerifyMismatch => "verify_mismatch",
            Self::Protocol => "protocol",
            Self::IoError => "io_error",
            Self::NoSpace => "no_space",
            Self::Cancelled => "cancelled",
            Self::NoConnection => "no_connection",
            Self::Http3xx => "http_3xx",
        }
    }

    /// Only these make a rate.
    pub fn is_ok(self) -> bool {
        self == Self::Ok
    }

    /// A limiter said no: shown, never throughput, never a failure.
    pub fn is_throttled(self) -> bool {
        matches!(self, Self::Http429 | Self::Http503SlowDown)
    }

    /// Counts against `--max-error-rate`.
    pub fn is_failure(self) -> bool {
        !self.is_ok() && !self.is_throttled() && self != Self::Cancelled
    }
}
