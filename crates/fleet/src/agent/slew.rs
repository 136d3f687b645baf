//! An agent's slices follow its conductor's clock: where its own runs fast or slow against that, the grid's edges are slewed, never
//! stepped, so that a slice is of the time that its number says for as long as a stage lasts. Ops are paced by the agent's own clock.

use std::sync::Arc;

use plimsoll_engine::{GridLine, Output, SliceGrid, WorkerEnd};

use crate::wire::order::ClockAhead;

/// A bend is told so long before its first edge: by then no worker has looked it up. (A choice: eight times as long as between two words of
/// the conductor.)
const LEAD_NS: u64 = 2_000_000_000;
/// And holds for so long: clocks are compared as often.
const SPAN_NS: u64 = 10_000_000_000;
/// A slice is longer or shorter than the grid's step by one part in so many at the most: ten times what crystals differ by, and far below
/// what a rate can be told to.
const MOST: u64 = 2000;

/// The grid of a stage that runs, and all that it followed.
#[derive(Debug)]
pub struct Slew {
    grid: Arc<SliceGrid>,
    step_ns: u64,
    /// In order of their edges; before the first, edges are multiples of the step.
    lines: Vec<GridLine>,
}

impl Slew {
    pub fn new(grid: Arc<SliceGrid>, step_ns: u64) -> Self {
        Self { grid, step_ns, lines: Vec::new() }
    }

    /// Slices in a time, two at least.
    fn slices(&self, ns: u64) -> u64 {
        ns.div_ceil(self.step_ns.max(1)).max(2)
    }

    /// What the own clock has gained, told at `now_ns` of it (since the run's start, as it was taken to be when the workers were made).
    pub fn told(&mut self, ahead: ClockAhead, now_ns: u64) {
        let (lead, span) = (self.slices(LEAD_NS), self.slices(SPAN_NS).max(2 * self.slices(LEAD_NS)));
        let newest = self.grid.newest();
        let earliest = self.grid.index_at(now_ns).saturating_add(lead);
        let from = if self.lines.is_empty() { earliest } else { newest.edge.saturating_add(span) };
        if earliest < from {
            return;
        }
        let until = earliest.saturating_add(span);
        // Where that edge is to lie: at its time of the conductor's clock, by the own one.
        let then_ns = until.saturating_mul(self.step_ns);
        let seconds = (then_ns as f64 - ahead.at_ns as f64) / 1e9;
        let gained_ns = ahead.ahead_ns.saturating_add((ahead.drift_ns_per_s as f64 * seconds).round() as i64);
        let line = newest.bent(earliest, span, then_ns.saturating_add_signed(gained_ns), MOST);
        self.grid.follow(line);
        self.lines.push(line);
    }

    /// A time of the own clock on the conductor's, as the slices have it.
    pub fn of_grid(&self, own_ns: u64) -> u64 {
        let after = self.lines.partition_point(|l| l.at_ns <= own_ns);
        let Some(line) = after.checked_sub(1).and_then(|at| self.lines.get(at)) else { return own_ns };
        let index = line.index_at(own_ns);
        let (from_ns, to_ns) = (line.edge_ns(index), line.edge_ns(index + 1));
        let inside = u128::from(own_ns.saturating_sub(from_ns)) * u128::from(self.step_ns);
        let inside = inside / u128::from(to_ns.saturating_sub(from_ns).max(1));
        index.saturating_mul(self.step_ns).saturating_add(inside as u64)
    }

    /// The times of ops, where each is recorded. (Slices have none but their number.)
    pub fn date(&self, output: &mut Output) {
        let Output::Trace(chunk) = output else { return };
        for r in &mut chunk.records {
            for at_ns in [&mut r.intended_ns, &mut r.submitted_ns, &mut r.first_byte_ns, &mut r.done_ns] {
                // 0: there was none.
                *at_ns = if *at_ns > 0 { self.of_grid(*at_ns) } else { 0 };
            }
        }
    }

    /// When a worker began and ended.
    pub fn date_end(&self, e: &mut WorkerEnd) {
        let times = [
            &mut e.started_ns,
            &mut e.began_ns,
            &mut e.stopped_ns,
            &mut e.last_submit_ns,
            &mut e.finished_ns,
        ];
        times.into_iter().for_each(|t| *t = self.of_grid(*t));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::{ClockFit, Echo};

    const S: u64 = 1_000_000_000;
    const STEP: u64 = S / 10;
    const HOUR: u64 = 3600 * S;

    /// A machine whose clock was this far ahead of the conductor's when the run began there, and gains so much since; the drift itself
    /// changes with the temperature, by a tenth within two hours.
    struct Machine {
        ahead_ns: i64,
        ppm: f64,
    }

    impl Machine {
        /// Gained by a time of the conductor's clock, since the run's start.
        fn gained_ns(&self, at_ns: u64) -> i64 {
            let hours = at_ns as f64 / HOUR as f64;
            let wave = 0.1 * (1.0 - (hours * std::f64::consts::PI).cos()) / std::f64::consts::PI;
            (self.ppm * 1e-6 * (hours + wave) * HOUR as f64) as i64
        }

        /// When its clock shows so much since the run's start, by the conductor's.
        fn truth_ns(&self, own_ns: u64) -> u64 {
            let mut at_ns = own_ns;
            for _ in 0..3 {
                at_ns = own_ns.saturating_add_signed(-self.gained_ns(at_ns));
            }
            at_ns
        }
    }

    /// The conductor compares clocks every 10 s and tells what it knows every second: gives the grid's followers after so long, and what the
    /// conductor was unsure of at the most.
    fn followed(machine: &Machine, jitter_ns: &[u64], length_ns: u64) -> (Slew, u64, Vec<(u64, u64)>) {
        let mut slew = Slew::new(Arc::new(SliceGrid::new(STEP)), STEP);
        let (mut fit, mut armed, mut most_ns, mut edges) = (ClockFit::default(), None, 0, Vec::new());
        let base_ns = HOUR;
        for second in 0..length_ns / S {
            let at_ns = second * S;
            if second % 10 == 0 {
                let late_ns = jitter_ns[(second / 10) as usize % jitter_ns.len()];
                let asked_ns = base_ns + at_ns;
                let heard_ns = (asked_ns + 60_000 + late_ns)
                    .strict_add_signed(machine.ahead_ns + machine.gained_ns(at_ns));
                let had_ns = asked_ns + 120_000 + late_ns;
                fit.add(&[Echo { asked_ns, heard_ns, answered_ns: heard_ns, had_ns }]);
            }
            let clock = fit.at(base_ns + at_ns).unwrap();
            let armed_ns = *armed.get_or_insert(clock.offset_ns);
            most_ns = most_ns.max(clock.bound_ns);
            let ahead = ClockAhead {
                at_ns,
                ahead_ns: clock.offset_ns - armed_ns,
                drift_ns_per_s: clock.drift_ns_per_s.round() as i64,
            };
            slew.told(ahead, at_ns.saturating_add_signed(machine.gained_ns(at_ns)));
            // The edges that workers look up in this second.
            edges.extend((second * 10..second * 10 + 10).map(|n| (n, slew.grid.edge_ns(n))));
        }
        (slew, most_ns, edges)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn slices_of_twelve_hours_are_of_the_time_that_their_number_says(
            ppm in -50.0f64..50.0,
            ahead_ns in -1_000_000_000_000i64..1_000_000_000_000,
            jitter in prop::collection::vec(0u64..400_000, 50),
        ) {
            let machine = Machine { ahead_ns, ppm };
            let (slew, bound_ns, edges) = followed(&machine, &jitter, 12 * HOUR);
            // Known at the start, and now; and in the 20 s before a drift is known a crystal's 50 ppm are a millisecond.
            let allowed_ns = 2 * bound_ns + 2_000_000;
            let (mut worst_ns, mut last) = (0, None::<u64>);
            for (n, own_ns) in &edges {
                let true_ns = machine.truth_ns(*own_ns);
                worst_ns = worst_ns.max(true_ns.abs_diff(n * STEP));
                if let Some(last) = last {
                    // Never stepped: each is as long as its number says, to a twentieth of a percent and the crystal.
                    prop_assert!((own_ns - last).abs_diff(STEP) <= STEP / MOST + 1, "slice {}", n);
                }
                last = Some(*own_ns);
            }
            prop_assert!(worst_ns <= allowed_ns, "{} of {} ns", worst_ns, allowed_ns);
            // Without that, it would be off by all that the clock has gained.
            prop_assert!(ppm.abs() < 5.0 || machine.gained_ns(12 * HOUR).unsigned_abs() > 20 * worst_ns);
            // The times of workers go the same way as the slices.
            for (n, own_ns) in edges.iter().step_by(997) {
                prop_assert!(slew.of_grid(*own_ns).abs_diff(n * STEP) <= 1, "{}", n);
                prop_assert!(slew.of_grid(own_ns + STEP / 2).abs_diff(n * STEP + STEP / 2) <= STEP / MOST);
            }
        }
    }

    #[test]
    fn a_clock_that_gains_nothing_bends_nothing() {
        let (slew, _, edges) = followed(&Machine { ahead_ns: 5, ppm: 0.0 }, &[0], HOUR);
        assert!(edges.iter().all(|(n, at_ns)| n * STEP == *at_ns), "{:?}", slew.lines.first());
        assert_eq!(slew.of_grid(77), 77);
    }
}
