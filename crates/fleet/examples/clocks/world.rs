//! Two machines with clocks of their own and a path between them, of which everything is known: the conductor's estimate against the truth.

use plimsoll_engine::rng;
use plimsoll_fleet::{ClockFit, Echo};

const S: u64 = 1_000_000_000;
/// When a world begins: a machine that has been up for a month, so that no reading is below zero.
const UP_NS: u64 = 2_600_000 * S;
/// Questions of a round, between two of them, and how many answers make a round: as the conductor asks.
const PROBES: u64 = 24;
const APART_NS: u64 = 3_000_000;
const ENOUGH: usize = 8;
/// Between two rounds.
const EVERY_NS: u64 = 10 * S;
/// The estimate is asked for so many times between two rounds, at any time.
const LOOKS: u64 = 2;

/// What a pair of clocks may do.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The most that they differ by, parts per million.
    pub most_ppm: f64,
    /// The most that their drift changes by while the test lasts.
    pub wander_ppm: f64,
}

/// As quartz does: two crystals of 50 ppm, in machines that warm up.
pub const QUARTZ: Clocks = Clocks { most_ppm: 100.0, wander_ppm: 5.0 };
/// Beyond what the method takes for granted: clocks that are calibrated badly, or that something steers.
pub const BAD: Clocks = Clocks { most_ppm: 400.0, wander_ppm: 20.0 };

/// What the estimates of many worlds were worth.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// Estimates that were asked for.
    pub asked: u64,
    /// Of them, with the truth inside their bound.
    pub inside: u64,
    /// The largest error, as a share of its bound.
    pub worst: f64,
    /// Bounds, as multiples of half of the least time there and back: 1 is all that one question can tell.
    pub wide: Vec<f64>,
    /// Errors, as shares of their bounds.
    pub ratios: Vec<f64>,
}

impl Score {
    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.inside += other.inside;
        self.worst = self.worst.max(other.worst);
        self.wide.extend(other.wide);
        self.ratios.extend(other.ratios);
    }

    pub fn share(&self) -> f64 {
        self.inside as f64 / self.asked.max(1) as f64
    }
}

/// Numbers from a seed, one after the other.
struct Draw {
    seed: u64,
    n: u64,
}

impl Draw {
    fn unit(&mut self) -> f64 {
        self.n += 1;
        rng::unit(rng::at(self.seed, self.n))
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// As likely in each decade.
    fn scaled(&mut self, from: f64, to: f64) -> f64 {
        (from.ln() + (to / from).ln() * self.unit()).exp()
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    fn is(&mut self, share: f64) -> bool {
        self.unit() < share
    }
}

/// One of many.
struct World {
    draw: Draw,
    ahead_ns: i64,
    drift: f64,
    /// Drift swings by this to both sides, once in so many nanoseconds.
    swing: f64,
    period_ns: f64,
    phase: f64,
    /// The least that each way takes, and what comes on top in the mean.
    there_ns: f64,
    back_ns: f64,
    jitter_ns: f64,
    loss: f64,
}

impl World {
    fn of(seed: u64, clocks: Clocks) -> Self {
        let mut draw = Draw { seed: rng::derive(seed, 1), n: 0 };
        let ahead_ns = draw.between(-1e12, 1e12) as i64;
        let swing = draw.between(0.0, clocks.wander_ppm / 2.0) * 1e-6;
        let drift = draw.between(-1.0, 1.0) * (clocks.most_ppm * 1e-6 - swing);
        let (mut there_ns, mut back_ns) = (draw.scaled(5e3, 1e8), draw.scaled(5e3, 1e8));
        // Ways that are alike, and the worst: all of the time on one of the two.
        match (draw.unit() * 4.0) as u32 {
            0 => back_ns = there_ns,
            1 if draw.is(0.5) => there_ns = 0.0,
            1 => back_ns = 0.0,
            _ => {}
        }
        let jitter_ns = draw.scaled(0.01, 3.0) * (there_ns + back_ns);
        let (period_ns, phase) =
            (draw.between(1200.0, 7200.0) * S as f64, draw.between(0.0, std::f64::consts::TAU));
        let loss = if draw.is(0.5) { 0.0 } else { draw.between(0.0, 0.4) };
        Self { draw, ahead_ns, drift, swing, period_ns, phase, there_ns, back_ns, jitter_ns, loss }
    }

    /// The agent's clock less the conductor's, at a time of the conductor's.
    fn offset_ns(&self, at_ns: u64) -> i64 {
        let (at, turn) = (at_ns as f64, std::f64::consts::TAU / self.period_ns);
        let swung = self.swing / turn * (self.phase.cos() - (turn * at + self.phase).cos());
        self.ahead_ns + (self.drift * at + swung).round() as i64
    }

    /// A round of questions that begins at a time.
    fn round(&mut self, from_ns: u64) -> Vec<Echo> {
        // A queue that all of a round finds, on one way or both; where there is load, its length changes from one to the next.
        let queue = if self.draw.is(0.3) { self.draw.exponential(4.0 * self.jitter_ns) } else { 0.0 };
        let (slow_there, slow_back) = (self.draw.is(0.5), self.draw.is(0.5));
        let mut echoes = Vec::new();
        for n in 0..PROBES {
            let there =
                self.there_ns + self.draw.exponential(self.jitter_ns) + if slow_there { queue } else { 0.0 };
            let back =
                self.back_ns + self.draw.exponential(self.jitter_ns) + if slow_back { queue } else { 0.0 };
            let thought = self.draw.exponential(30_000.0);
            if self.draw.is(self.loss) || self.draw.is(self.loss) {
                continue;
            }
            let asked_ns = from_ns + n * APART_NS;
            let (heard, answered) = (asked_ns + there as u64, asked_ns + (there + thought) as u64);
            let here = |w: &Self, at_ns: u64| (UP_NS + at_ns).strict_add_signed(w.offset_ns(at_ns));
            echoes.push(Echo {
                asked_ns: UP_NS + asked_ns,
                heard_ns: here(self, heard),
                answered_ns: here(self, answered),
                had_ns: UP_NS + answered + back as u64,
            });
        }
        echoes
    }

    /// A run of so many rounds.
    fn score(mut self, rounds: u64) -> Score {
        let (mut fit, mut score, mut last_ns) = (ClockFit::default(), Score::default(), 0);
        let mut at_ns = S;
        for _ in 0..rounds {
            let echoes = self.round(at_ns);
            if echoes.len() >= ENOUGH {
                last_ns = echoes.iter().map(|e| e.had_ns).max().unwrap_or(0) - UP_NS;
                fit.add(&echoes);
            }
            // Now and then the machine is out of reach for minutes.
            let pause_ns = if self.draw.is(0.03) { (self.draw.between(20.0, 200.0) * 1e9) as u64 } else { 0 };
            let next_ns = at_ns + EVERY_NS + pause_ns;
            for _ in 0..LOOKS {
                let look_ns =
                    (last_ns.max(at_ns) as f64 + self.draw.unit() * (next_ns - at_ns) as f64) as u64;
                if let Some(clock) = fit.at(UP_NS + look_ns) {
                    let error = clock.offset_ns.abs_diff(self.offset_ns(look_ns));
                    let least = (self.there_ns + self.back_ns) / 2.0;
                    let ratio = error as f64 / clock.bound_ns.max(1) as f64;
                    score.add(Score {
                        asked: 1,
                        inside: u64::from(error <= clock.bound_ns),
                        worst: ratio,
                        wide: vec![clock.bound_ns as f64 / least.max(1.0)],
                        ratios: vec![ratio],
                    });
                }
            }
            at_ns = next_ns;
        }
        score
    }
}

/// So many worlds of a seed, each of 1 to 90 rounds.
pub fn score(seed: u64, worlds: u64, clocks: Clocks) -> Score {
    let mut all = Score::default();
    for n in 0..worlds {
        let of = rng::derive(seed, n);
        all.add(World::of(of, clocks).score(1 + rng::below(rng::at(of, 0), 90)));
    }
    all
}
