//! What a run that was killed did after its record ends.

use plimsoll_model::OpKind;

use super::RunData;

/// A frame of about a second, and the slices that wait for the slowest agent: what a kill may cost of a record, seconds.
const UNRECORDED_S: f64 = 2.0;

impl RunData {
    /// By which share more was done of these ops than the record has, at most as far as it can say: a run that was killed went on for
    /// two seconds after it, as fast as in the fastest of its points. 0: it ended in order, or nothing of it is recorded.
    pub fn unrecorded_share(&self, is_of: impl Fn(OpKind) -> bool) -> f64 {
        if self.end.is_some() || self.step_ns == 0 {
            return 0.0;
        }
        let (mut all, mut most) = (0.0, 0.0f64);
        for stage in &self.stages {
            let series = || stage.series.iter().filter(|(id, _)| is_of(id.kind)).map(|(_, points)| points);
            let length = series().map(Vec::len).max().unwrap_or(0);
            for i in 0..length {
                let outcomes = series().filter_map(|points| points.get(i)).flat_map(|p| &p.counts.outcomes);
                let ops = outcomes.map(|n| *n as f64).sum::<f64>();
                all += ops;
                most = most.max(ops);
            }
        }
        if all > 0.0 { most / all * UNRECORDED_S * 1e9 / self.step_ns as f64 } else { 0.0 }
    }
}
