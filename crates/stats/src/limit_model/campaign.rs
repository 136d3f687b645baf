//! Which cells to measure, so that the limit model can know both caps: a short pilot, then sizes on both sides of the knee that
//! it saw, at concurrencies that saturate.
//!
//! Fixed sizes waste cells far from the knee, and a concurrency at which latency still binds hides a cap behind it: a cap
//! that no cell reaches can't be known, whatever the fit (METHODOLOGY.md has the bound). So the pilot looks for both. A cap in
//! ops is learnt from small ops and a cap in bytes from large ones, each at a concurrency well above what Little's law
//! says is in flight at the cap; one op at a time shows the latency alone.

use plimsoll_model::Verdict;

/// Cells of a campaign: each size at each concurrency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// In order, without repeats.
    pub sizes_bytes: Vec<u64>,
    /// Ops in flight, in order.
    pub concurrencies: Vec<u32>,
}

/// Sizes of a campaign over the knee (validated: both caps are identified in 100 % of the simulated campaigns).
const OVER_KNEE: [f64; 8] = [1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 3.0, 1.0, 3.0, 8.0, 16.0];

/// Sizes for a campaign around a knee that a pilot saw: both sides, and the knee itself.
pub fn sizes_around(knee_bytes: f64) -> Vec<u64> {
    let mut sizes: Vec<u64> = OVER_KNEE.iter().map(|f| (knee_bytes * f).round().max(1.0) as u64).collect();
    sizes.dedup();
    sizes
}

/// A step of the pilot's ladder, and the gain below which it ends: a curve that has come within a few percent of its
/// maximum gains less from four times the concurrency, and noise of 5 % does not gain as much (validated, as the sizes are).
const LADDER: u32 = 4;
const GAIN: f64 = 1.10;
/// The top concurrency over that at which latency and cap are equal: latency then allows four times what the cap does (validated, as the sizes are).
const ABOVE: f64 = 4.0;
/// And never less than this, where it may be as many (guess).
const LEAST_TOP: f64 = 64.0;

/// The pilot, as a controller without I/O: small and large ops, each at 1, 4, 16, ... in flight until that gains nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    sizes_bytes: [u64; 2],
    most: u32,
    ladders: [Ladder; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Ladder {
    /// Concurrency of the last step; 0 before the first.
    at: u32,
    /// Rates (ops per second) of one op at a time, and the best.
    alone: f64,
    best: f64,
    ended: bool,
}

impl Ladder {
    fn saw(&mut self, ops_per_s: f64, most: u32) {
        let rate = if ops_per_s.is_finite() { ops_per_s.max(0.0) } else { 0.0 };
        self.at = self.next();
        if self.at == 1 {
            self.alone = rate;
        }
        self.ended = (self.at > 1 && rate < GAIN * self.best) || self.next() > most || rate <= 0.0;
        self.best = self.best.max(rate);
    }

    fn next(&self) -> u32 {
        if self.at == 0 { 1 } else { self.at.saturating_mul(LADDER) }
    }
}

impl Pilot {
    /// With ops of these two sizes, and never more than `most` in flight.
    pub fn new(small_bytes: u64, large_bytes: u64, most: u32) -> Self {
        Self { sizes_bytes: [small_bytes, large_bytes], most: most.max(1), ladders: [Ladder::default(); 2] }
    }

    /// Size and concurrency to measure next; `None`: it has ended.
    pub fn next(&self) -> Option<(u64, u32)> {
        let i = self.open()?;
        Some((self.sizes_bytes[i], self.ladders[i].next()))
    }

    /// Takes the rate of the cell that [`Self::next`] named.
    pub fn saw(&mut self, ops_per_s: f64) {
        if let Some(i) = self.open() {
            self.ladders[i].saw(ops_per_s, self.most);
        }
    }

    fn open(&self) -> Option<usize> {
        self.ladders.iter().position(|l| !l.ended)
    }

    /// The campaign that follows: sizes around the knee, one op at a time, and concurrencies that saturate.
    pub fn campaign(&self) -> Verdict<Campaign> {
        if self.open().is_some() {
            return Verdict::Inconclusive("the pilot has not ended".into());
        }
        if let Some(i) = self.ladders.iter().position(|l| l.alone <= 0.0) {
            return Verdict::Inconclusive(format!(
                "ops of {} bytes had no rate in the pilot, so it cannot look for caps",
                self.sizes_bytes[i]
            ));
        }
        let [small, large] = self.ladders;
        let knee_bytes = large.best * self.sizes_bytes[1] as f64 / small.best;
        // The best rate over that of one op at a time is what is in flight when the cap is reached (Little's law).
        let in_flight = (small.best / small.alone).max(large.best / large.alone);
        let top = (ABOVE * in_flight).max(LEAST_TOP).min(f64::from(self.most));
        let mut concurrencies = vec![1, (top / 2.0).round().max(1.0) as u32, top.round() as u32];
        concurrencies.dedup();
        Verdict::Known(Campaign { sizes_bytes: sizes_around(knee_bytes), concurrencies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_model::Theta;
    use proptest::prelude::*;

    fn pilot(mut rate: impl FnMut(f64, f64) -> f64, most: u32) -> (Pilot, usize) {
        let mut p = Pilot::new(4096, 16 << 20, most);
        let mut steps = 0;
        while let Some((s, c)) = p.next() {
            p.saw(rate(s as f64, f64::from(c)));
            steps += 1;
            assert!(steps < 100);
        }
        (p, steps)
    }

    #[test]
    fn finds_the_knee_and_what_saturates() {
        // 2000 ops/s, 400 MB/s, 4 ms, 4 MB/s a stream: 100 streams fill the bytes cap.
        let t = Theta([2000f64.ln(), 400e6f64.ln(), 0.004f64.ln(), 4e6f64.ln()]);
        for p in [1.0, 64.0] {
            let (p, steps) = pilot(|s, c| t.log_rate(s, c, p).exp(), 4096);
            let c = p.campaign();
            let c = c.known().expect("a campaign");
            let knee = c.sizes_bytes[4] as f64;
            assert!((0.9..1.2).contains(&(knee / 200e3)), "{knee}");
            assert!((300..=500).contains(c.concurrencies.last().unwrap()), "{c:?}");
            assert!(steps <= 14, "{steps}");
            assert_eq!(c.concurrencies.len(), 3);
        }
    }

    #[test]
    fn never_more_than_allowed() {
        let (p, _) = pilot(|s, c| c * 1e6 / s, 10);
        let c = p.campaign();
        assert_eq!(c.known().expect("a campaign").concurrencies, [1, 5, 10]);
        let (p, _) = pilot(|s, c| c * 1e6 / s, 1);
        assert_eq!(p.campaign().known().expect("a campaign").concurrencies, [1]);
    }

    #[test]
    fn nothing_seen_is_a_reason() {
        for bad in [0.0, f64::NAN, -1.0] {
            let (p, steps) = pilot(|_, _| bad, 4096);
            assert!(p.campaign().known().is_none() && steps == 2);
        }
        assert!(Pilot::new(1, 2, 64).campaign().known().is_none());
    }

    proptest! {
        #[test]
        fn any_rates_end(rates in proptest::collection::vec(0.0f64..1e9, 1..40), most in 0u32..100_000) {
            let mut i = 0;
            let (p, _) = pilot(|_, _| { i += 1; rates[i % rates.len()] }, most);
            if let Verdict::Known(c) = p.campaign() {
                prop_assert!(c.sizes_bytes.iter().all(|s| *s >= 1) && c.concurrencies.iter().all(|n| *n >= 1 && *n <= most.max(1)));
            }
        }
    }
}
