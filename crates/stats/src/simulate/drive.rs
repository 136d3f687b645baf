//! Executes a controller on a simulator, as run/ does on real storage.

use super::{Load, System};
use crate::probe::{Action, Observation, Options, Outcome, Probe};

/// Probes a simulated system to the end.
pub fn probe(system: &mut dyn System, options: Options) -> Outcome {
    let mut probe = Probe::new(options);
    let mut last = Observation { now_s: system.now_s(), seen: None };
    loop {
        let seen = match probe.next(&last) {
            Action::Done => return probe.outcome(),
            Action::Stop => {
                system.quiesce();
                None
            }
            Action::Idle { seconds } => {
                system.idle(seconds);
                None
            }
            Action::Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s, continues: _ } => {
                Some(system.run(&Load {
                    size_bytes: size_bytes as f64,
                    concurrency,
                    duration_s,
                    dt_s,
                    offered_per_s,
                }))
            }
        };
        last = Observation { now_s: system.now_s(), seen };
    }
}
