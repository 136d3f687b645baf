//! What a network does to messages, drawn from a seed: the n-th message of a subject fares the same in every run, whichever
//! thread comes first.

use std::time::Duration;

/// How a [`crate::MemoryBus`] treats what it carries. The default is a perfect network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weather {
    /// From which all chances are drawn.
    pub seed: u64,
    /// The share that never arrives.
    pub lost: f64,
    /// The share that arrives twice.
    pub doubled: f64,
    /// The share that arrives late, and so perhaps after what was said later.
    pub delayed: f64,
    /// By how much, at most.
    pub delay: Duration,
    /// How long the way is for each: what is late is later still.
    pub way: Duration,
}

impl Weather {
    /// When the copies of a subject's n-th message arrive, after now: none where it is lost.
    pub(crate) fn fate(&self, subject: &str, n: u64) -> Vec<Duration> {
        let mut draw = Draws(mix(self.seed ^ mix(hash(subject).wrapping_add(n))));
        if draw.unit() < self.lost {
            return Vec::new();
        }
        let copies = if draw.unit() < self.doubled { 2 } else { 1 };
        (0..copies).map(|_| self.way + self.late(&mut draw)).collect()
    }

    fn late(&self, draw: &mut Draws) -> Duration {
        let late = draw.unit() < self.delayed;
        let part = draw.unit();
        if late { self.delay.mul_f64(part) } else { Duration::ZERO }
    }
}

struct Draws(u64);

impl Draws {
    /// In `[0, 1)`.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a: the same in every build, which the standard library's hash does not promise.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_come_out_as_asked_and_the_same_again() {
        let delay = Duration::from_millis(8);
        let weather = Weather { seed: 7, lost: 0.2, doubled: 0.1, delayed: 0.5, delay, way: Duration::ZERO };
        let fates: Vec<_> = (0..10_000).map(|n| weather.fate("a.b", n)).collect();
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let lost = fates.iter().filter(|f| f.is_empty()).count();
        let doubled = fates.iter().filter(|f| f.len() == 2).count();
        let all: Vec<_> = fates.iter().flatten().collect();
        let late = all.iter().filter(|d| !d.is_zero()).count();
        assert!((share(lost, 10_000) - 0.2).abs() < 0.02, "{lost}");
        assert!((share(doubled, 10_000 - lost) - 0.1).abs() < 0.02, "{doubled}");
        assert!((share(late, all.len()) - 0.5).abs() < 0.02, "{late}");
        assert!(all.iter().all(|d| **d <= delay));
        assert_eq!(fates, (0..10_000).map(|n| weather.fate("a.b", n)).collect::<Vec<_>>());
    }

    #[test]
    fn fine_weather_loses_nothing() {
        assert!((0..100).all(|n| Weather::default().fate("a", n) == [Duration::ZERO]));
    }
}
