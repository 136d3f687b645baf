//! Faults on purpose: which request of the run gets which, by counting, so that a test can demand the exact number.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What goes wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An S3 error with this status: 403, 404, 429, 500, 503 (SlowDown) and others.
    Status(u16),
    /// 307 to the redirect location of the options.
    Redirect,
    /// A good answer whose body has `Transfer-Encoding: chunked`.
    Chunked,
    /// The head promises a body; half of it comes, then the connection closes.
    Short,
    /// The head promises a body; half of it comes, then the connection is reset (RST).
    Reset,
    /// The answer comes in small pieces with pauses (see `trickle_bytes` and `trickle_interval`).
    Trickle,
    /// Bytes that are not HTTP, then the connection closes.
    Garbage,
    /// No answer at all; the connection stays open.
    Stall,
    /// A good answer with `Connection: close`.
    Close,
    /// A good answer without a word of it, after which the connection closes: what a client sees when a server
    /// times out idle connections.
    Drop,
}

/// One fault and its share of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannedFault {
    pub kind: FaultKind,
    /// Share in parts per million: 300,000 is 30 %.
    pub share_ppm: u32,
}

/// `503=30%`, `reset=1%`, `trickle=100%`: a kind, and a share with up to four decimals.
impl FromStr for CannedFault {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let help = "a fault is KIND=SHARE, for instance 503=30% or reset=1%; kinds: a status (403, 429, 500, 503, ...), \
                    redirect, chunked, short, reset, trickle, garbage, stall, close, drop";
        let (kind, share) = s.split_once('=').ok_or_else(|| format!("{s:?} has no share: {help}"))?;
        let kind = match kind.trim() {
            "redirect" => FaultKind::Redirect,
            "chunked" => FaultKind::Chunked,
            "short" => FaultKind::Short,
            "reset" => FaultKind::Reset,
            "trickle" => FaultKind::Trickle,
            "garbage" => FaultKind::Garbage,
            "stall" => FaultKind::Stall,
            "close" => FaultKind::Close,
            "drop" => FaultKind::Drop,
            k => match k.parse::<u16>() {
                Ok(status @ 400..=599) => FaultKind::Status(status),
                _ => return Err(format!("unknown kind {k:?}: {help}")),
            },
        };
        let number =
            share.trim().strip_suffix('%').ok_or_else(|| format!("share {share:?} has no %: {help}"))?;
        let percent: f64 =
            number.trim().parse().map_err(|_| format!("share {share:?} is not a number: {help}"))?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(format!("share {share:?} is not between 0 % and 100 %"));
        }
        Ok(CannedFault { kind, share_ppm: (percent * 10_000.0).round() as u32 })
    }
}

impl FaultKind {
    /// The name under which `/__stats` counts it.
    pub fn name(&self) -> String {
        match self {
            FaultKind::Status(s) => s.to_string(),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// Which requests the shares are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultScope {
    /// Requests whose path names an object; bucket calls and lists stay whole.
    #[default]
    Objects,
    /// All requests, except `/__stats`.
    All,
}

/// Trickle: bytes in one piece and the pause between pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trickle {
    pub piece_bytes: u32,
    pub interval: Duration,
}

impl Default for Trickle {
    fn default() -> Self {
        Trickle { piece_bytes: 256, interval: Duration::from_millis(5) }
    }
}

/// Deals faults by counting: of the first n requests in scope, exactly floor(n * share) are faulty, spread evenly.
#[derive(Debug)]
pub(crate) struct FaultDealer {
    faults: Vec<CannedFault>,
    seen: AtomicU64,
    dealt: Vec<AtomicU64>,
}

const WHOLE: u64 = 1_000_000;

impl FaultDealer {
    /// Shares that add up to more than 100 % are an error.
    pub fn new(faults: &[CannedFault]) -> Result<Self, String> {
        let sum: u64 = faults.iter().map(|f| u64::from(f.share_ppm)).sum();
        if sum > WHOLE {
            return Err(format!(
                "the shares of the faults add up to {} %: at most 100 %",
                sum as f64 / 10_000.0
            ));
        }
        let dealt = faults.iter().map(|_| AtomicU64::new(0)).collect();
        Ok(FaultDealer { faults: faults.to_vec(), seen: AtomicU64::new(0), dealt })
    }

    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The fault of the next request in scope, if it gets one.
    pub fn next(&self) -> Option<&FaultKind> {
        if self.faults.is_empty() {
            return None;
        }
        let n = self.seen.fetch_add(1, Ordering::Relaxed);
        let i = self.pick(n)?;
        self.dealt[i].fetch_add(1, Ordering::Relaxed);
        Some(&self.faults[i].kind)
    }

    /// Nested Bresenham steps: first whether request `n` is faulty at all, then, among the faulty ones, which kind.
    fn pick(&self, n: u64) -> Option<usize> {
        let mut level: u64 = self.faults.iter().map(|f| u64::from(f.share_ppm)).sum();
        let mut index = step(n, level, WHOLE)?;
        for i in (1..self.faults.len()).rev() {
            let inner = level - u64::from(self.faults[i].share_ppm);
            match step(index, inner, level) {
                Some(k) => index = k,
                None => return Some(i),
            }
            level = inner;
        }
        Some(0)
    }

    /// (requests in scope, faults dealt by kind).
    pub fn counts(&self) -> (u64, Vec<(String, u64)>) {
        let by_kind = self.faults.iter().zip(&self.dealt);
        (
            self.seen.load(Ordering::Relaxed),
            by_kind.map(|(f, n)| (f.kind.name(), n.load(Ordering::Relaxed))).collect(),
        )
    }
}

/// Whether item `n` of a stream is picked when `share` of `whole` are, evenly; the answer is its index among the picked.
fn step(n: u64, share: u64, whole: u64) -> Option<u64> {
    let at = |n: u64| (u128::from(n) * u128::from(share) / u128::from(whole)) as u64;
    let before = at(n);
    (at(n + 1) > before).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thirty_percent_is_exactly_thirty_percent() {
        let d = FaultDealer::new(&["503=30%".parse().unwrap()]).unwrap();
        let hit = (0..1_000).filter(|_| d.next().is_some()).count();
        assert_eq!(hit, 300);
        assert_eq!(d.counts(), (1_000, vec![("503".into(), 300)]));
    }

    #[test]
    fn bad_faults_say_what_is_wrong() {
        for (text, part) in
            [("503", "no share"), ("503=30", "no %"), ("frob=1%", "unknown kind"), ("503=101%", "between")]
        {
            let e = text.parse::<CannedFault>().unwrap_err();
            assert!(e.contains(part), "{e}");
        }
        assert!(FaultDealer::new(&["503=60%".parse().unwrap(), "500=60%".parse().unwrap()]).is_err());
    }

    proptest! {
        #[test]
        fn counts_stay_within_one_of_each_share(shares in proptest::collection::vec(0u32..200_000, 1..5), n in 1u64..5_000) {
            let faults: Vec<CannedFault> =
                shares.iter().map(|&s| CannedFault { kind: FaultKind::Status(500), share_ppm: s }).collect();
            let d = FaultDealer::new(&faults).unwrap();
            for _ in 0..n { d.next(); }
            let total: u64 = shares.iter().map(|&s| u64::from(s)).sum();
            let (seen, by_kind) = d.counts();
            prop_assert_eq!(seen, n);
            prop_assert_eq!(by_kind.iter().map(|k| k.1).sum::<u64>(), n * total / WHOLE);
            for (i, (_, got)) in by_kind.iter().enumerate() {
                let want = n as f64 * f64::from(shares[i]) / WHOLE as f64;
                prop_assert!((*got as f64 - want).abs() <= shares.len() as f64, "kind {} got {} want {}", i, got, want);
            }
        }
    }
}
