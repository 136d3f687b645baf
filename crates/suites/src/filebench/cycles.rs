//! What is told while the file benchmark goes round and round: a line a cycle, and a fall when one is sure.

use plimsoll_model::Event;
use plimsoll_model::units::significant;
use plimsoll_stats::cycles::{Fall, fall};

use super::phases::{BLOCK_BYTES, STAGES};

/// Follows the events of a run of cycles.
#[derive(Debug, Default)]
pub struct CycleLines {
    /// Ops per second of each cycle, for each stage.
    per_s: [Vec<f64>; STAGES.len()],
    /// Falls that were told: where they began.
    told: [Option<usize>; STAGES.len()],
}

impl CycleLines {
    /// The line that follows from this event, at the end of a cycle. `clock`: the time of day.
    pub fn see(&mut self, event: &Event, clock: &str) -> Option<String> {
        let Event::StageDone { title, ok, seconds, .. } = event else { return None };
        let stage = STAGES.iter().position(|s| s == title)?;
        self.per_s[stage].push(if *seconds > 0.0 { *ok as f64 / seconds } else { 0.0 });
        if stage + 1 < STAGES.len() {
            return None;
        }
        let mib = |i: usize| self.last(i) * BLOCK_BYTES as f64 / f64::from(1 << 20);
        let mut line = format!(
            "{clock} cycle {}: write {} MiB/s, read {} MiB/s, {} IOPS",
            self.per_s[stage].len(),
            significant(mib(0), 3),
            significant(mib(1), 3),
            significant(self.last(2), 3)
        );
        for (i, name) in STAGES.iter().enumerate() {
            let now = fall(&self.per_s[i]);
            if now.map(|f| f.first_after) == self.told[i] {
                continue;
            }
            line += &match now {
                Some(Fall { first_after, before, after }) => format!(
                    "; {name} fell from cycle {} on, from {} to {} op/s",
                    first_after + 1,
                    significant(before, 3),
                    significant(after, 3)
                ),
                None => format!("; correction: {name} recovered"),
            };
            self.told[i] = now.map(|f| f.first_after);
        }
        Some(line)
    }

    fn last(&self, stage: usize) -> f64 {
        self.per_s[stage].last().copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_a_line_and_a_fall_is_told_once() {
        let mut lines = CycleLines::default();
        let mut told = Vec::new();
        for cycle in 0..8 {
            let read = if cycle < 4 { 3200.0 } else { 800.0 } + f64::from(cycle);
            for (title, ok) in STAGES.iter().zip([1600.0, read, 5000.0]) {
                let done = Event::StageDone {
                    stage: 0,
                    of: None,
                    title: (*title).into(),
                    ok: ok as u64,
                    throttled: 0,
                    failed: 0,
                    seconds: 1.0,
                };
                told.extend(lines.see(&done, "14:03:07"));
            }
        }
        assert_eq!(told.len(), 8);
        assert_eq!(told[0], "14:03:07 cycle 1: write 100 MiB/s, read 200 MiB/s, 5,000 IOPS");
        let fell: Vec<&String> = told.iter().filter(|t| t.contains("fell")).collect();
        assert_eq!(fell.len(), 1, "{told:?}");
        assert!(fell[0].contains("read fell from cycle 5 on, from 3,201 to 80"), "{fell:?}");
    }
}
