//! Executes a controller on a simulator, as run/ does on real storage.

use super::{Load, System};
use crate::probe::{Probe, ProbeAction, ProbeObservation, ProbeOptions, ProbeOutcome};

/// Probes a simulated system to the end.
pub fn probe(system: &mut dyn System, options: ProbeOptions) -> ProbeOutcome {
    probe_watched(system, options, &mut |_, _, _| ())
}

/// The same, and `watch` hears after each action which phase it was of, how many seconds it took, and what was known before it.
pub fn probe_watched(
    system: &mut dyn System,
    options: ProbeOptions,
    watch: &mut dyn FnMut(&str, f64, &Probe),
) -> ProbeOutcome {
    let mut probe = Probe::new(options);
    let mut last = ProbeObservation { now_s: system.now_s(), seen: None };
    loop {
        let action = probe.next(&last);
        let phase = probe.phase();
        let seen = match action {
            ProbeAction::Done => return probe.outcome(),
            ProbeAction::Stop => {
                system.quiesce();
                None
            }
            ProbeAction::Idle { seconds } => {
                system.idle(seconds);
                None
            }
            ProbeAction::Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s, continues: _ } => {
                Some(system.run(&Load {
                    size_bytes: size_bytes as f64,
                    concurrency,
                    duration_s,
                    dt_s,
                    offered_per_s,
                }))
            }
        };
        let now_s = system.now_s();
        watch(&phase, now_s - last.now_s, &probe);
        last = ProbeObservation { now_s, seen };
    }
}
