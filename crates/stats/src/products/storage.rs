//! The storage behind a limiter: one server with a queue, log-normal times, and moods that no limiter makes.

use crate::rng::Rng;

/// What storages do that looks like a limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StorageMood {
    /// Its speed wanders a little, and that is all.
    Calm,
    /// Now and then it stands still: so often, for so long.
    Stalls {
        /// Mean time between two, seconds.
        every_s: f64,
        /// Length of each, give or take half.
        length_s: f64,
    },
    /// It writes to a fast cache until that is full, then at a part of its speed; what is left alone is emptied.
    Fills {
        /// Room of the cache.
        bytes: f64,
        /// Speed behind it, as a part of the speed of the cache.
        slow_share: f64,
    },
    /// Somebody else has a part of the machine for a while, comes and goes by chance.
    Neighbour {
        /// What is left meanwhile.
        share: f64,
        /// Mean length of a visit, and of the time between two.
        period_s: f64,
    },
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct ProductStorage {
    /// Ops per second that it can do.
    pub ops_cap: f64,
    /// Bytes per second.
    pub bytes_cap: f64,
    /// Median time of an op beside its turn at the server.
    pub base_s: f64,
    /// Sigma of the logarithm of that.
    pub spread: f64,
    /// Coefficient of variation of its speed, and for how long that keeps.
    pub cv: f64,
    /// Seconds.
    pub tau_s: f64,
    /// See there.
    pub mood: StorageMood,
    rng: Rng,
    free_s: f64,
    wander: f64,
    wander_at_s: f64,
    /// Until when it stands still, or the visit lasts; and when the next begins.
    until_s: f64,
    next_s: f64,
    cached: f64,
    cached_at_s: f64,
}

impl ProductStorage {
    /// Calm, of this speed.
    pub fn new(seed: u64, ops_cap: f64, bytes_cap: f64, base_s: f64) -> Self {
        Self {
            ops_cap,
            bytes_cap,
            base_s,
            spread: 0.3,
            cv: 0.02,
            tau_s: 3.0,
            mood: StorageMood::Calm,
            rng: Rng::new(seed ^ 0x5707),
            free_s: 0.0,
            wander: 0.0,
            wander_at_s: 0.0,
            until_s: 0.0,
            next_s: 0.0,
            cached: 0.0,
            cached_at_s: 0.0,
        }
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.uniform()).ln()
    }

    fn wander(&mut self, t: f64) -> f64 {
        if t - self.wander_at_s > 0.1 {
            let a = (-(t - self.wander_at_s) / self.tau_s).exp();
            self.wander = a * self.wander + (1.0 - a * a).sqrt() * self.rng.normal();
            self.wander_at_s = t;
        }
        (self.cv * self.wander).exp()
    }

    /// Moves the chance of stalls and visits on; whether one lasts.
    fn visited(&mut self, t: f64, every_s: f64, length_s: f64) -> bool {
        if self.next_s == 0.0 {
            self.next_s = t + self.exponential(every_s);
        }
        while self.next_s <= t {
            self.until_s = self.next_s + length_s * (0.5 + self.rng.uniform());
            self.next_s = self.until_s + self.exponential(every_s);
        }
        t < self.until_s
    }

    /// Seconds that the server takes for an op that begins now.
    fn work(&mut self, t: f64, size: f64) -> f64 {
        let work = (1.0 / self.ops_cap).max(size / self.bytes_cap) / self.wander(t);
        match self.mood {
            StorageMood::Calm => work,
            StorageMood::Stalls { every_s, length_s } => {
                if self.visited(t, every_s, length_s) {
                    work + self.until_s - t
                } else {
                    work
                }
            }
            StorageMood::Neighbour { share, period_s } => {
                if self.visited(t, period_s, period_s) {
                    work / share
                } else {
                    work
                }
            }
            StorageMood::Fills { bytes, slow_share } => {
                let emptied = (t - self.cached_at_s) * self.bytes_cap * slow_share;
                self.cached = (self.cached - emptied).max(0.0) + size;
                self.cached_at_s = t;
                if self.cached > bytes {
                    self.cached = bytes;
                    work / slow_share
                } else {
                    work
                }
            }
        }
    }

    /// When an op that is given to it now ends.
    pub fn serve(&mut self, t: f64, size: f64) -> f64 {
        let begins = self.free_s.max(t);
        self.free_s = begins + self.work(begins, size);
        self.free_s + self.base_s * (self.spread * self.rng.normal()).exp()
    }
}
