//! All that comes off the wire, for its fuzz targets: read or refused, never a panic, and nothing of a size that the bytes do not have.

use plimsoll_bus::Identity;
use plimsoll_model::{Interval, Plan};

use crate::agent::{ClockProbe, ProbeEcho};
use crate::frame::envelope::{self, FrameHead};
use crate::frame::incoming::Incoming;
use crate::frame::record;
use crate::wire::order::{Assignment, Order};
use crate::wire::pieces::Joiner;
use crate::wire::seal::{Envelope, Guard};
use crate::wire::tell::{AgentTold, Tell, WorkDone};

/// To an agent: sealed by whoever it is, and (what only its conductor can do) sealed well.
pub fn order(bytes: &[u8]) {
    let conductor = Identity::random();
    let mut guard = Guard::new(&conductor.public(), "s1");
    assert!(guard.open(bytes, 0).is_err(), "nobody guesses a signature");
    let mut sealed = conductor.sign(bytes);
    sealed.extend_from_slice(bytes);
    let _ = guard.open(&sealed, 0);
    let Ok(envelope) = serde_json::from_slice::<Envelope>(bytes) else { return };
    // What was read can be said again.
    let again = serde_json::to_vec(&envelope).expect("plain data is always JSON");
    serde_json::from_slice::<Envelope>(&again).expect("what was said can be read");
    if let Order::Work { job, .. } = envelope.order
        && let Assignment::Hire { plan, .. } = *job
    {
        let _ = Plan::from_toml(&plan);
    }
}

/// To the conductor: what an agent says, in pieces or whole, and the time of its clock.
pub fn tell(bytes: &[u8]) {
    let mut joiner = Joiner::up_to(1 << 20);
    for piece in bytes.chunks(64) {
        let _ = joiner.offer(piece);
    }
    let _ = (serde_json::from_slice::<ProbeEcho>(bytes), serde_json::from_slice::<ClockProbe>(bytes));
    let Ok(told) = serde_json::from_slice::<AgentTold>(bytes) else { return };
    let again = serde_json::to_vec(&told).expect("plain data is always JSON");
    serde_json::from_slice::<AgentTold>(&again).expect("what was said can be read");
    if let Tell::Answer { result: Ok(WorkDone::Armed { workers, .. }), .. } = told.tell {
        workers.into_iter().map(|w| w.enlisted(0)).for_each(|w| assert_eq!(w.id.agent, 0));
    }
}

/// To the conductor: what an agent measured, as frames and as their content, put together and summed up.
pub fn frame(bytes: &[u8]) {
    let mut sum = Interval::empty(0);
    let mut incoming = Incoming::new(1);
    if let Some((_, content)) = envelope::decode(bytes) {
        incoming.accept(0, content);
        while incoming.next_output().is_some() {}
    }
    let mut incoming = Incoming::new(1);
    incoming.not_after(1 << 60);
    for (number, content) in (0..).zip(bytes.chunks(4096)) {
        let head = FrameHead::new("s", "r", 0, number);
        let (_, content) =
            envelope::decode(&envelope::encode(head, content)).expect("a frame of ours is one");
        incoming.accept(number, content);
        while let Some(output) = incoming.next_output() {
            if let plimsoll_crew::FromAgent::Interval { interval, .. } = output {
                sum.merge(&interval);
                // As the live view has it.
                let ops: u64 = sum.series.iter().map(|s| s.counts.started).sum();
                let of: u64 = interval.series.iter().flat_map(|s| s.counts.outcomes).sum();
                let _ = (ops, of);
            }
        }
    }
    let _ = record::take(bytes, 0);
}
