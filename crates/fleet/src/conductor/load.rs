//! A stage that agents carry out, as it comes in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_crew::{Arrival, Enlisted, FromAgent, Load, StageOrder};
use plimsoll_engine::WorkerEnd;

use super::known::{Inside, KnownAgent};
use super::link::Link;
use super::listen::hand_over;
use crate::wire::ends::EndTold;

/// A load that was dropped is cancelled, and is given so long to end.
const CANCEL: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub struct FleetLoad {
    link: Arc<Link>,
    started_ns: u64,
    workers: Vec<Enlisted>,
    joined: bool,
}

impl FleetLoad {
    /// Who is lost already is lost to this stage from its beginning.
    pub fn new(link: &Arc<Link>, order: &StageOrder<'_>, started_ns: u64, workers: Vec<Enlisted>) -> Self {
        {
            let mut inside = link.lock();
            debug_assert_eq!(inside.stage.as_ref().map(|s| s.index), Some(order.index));
            let Inside { agents, stage, .. } = &mut *inside;
            for (number, agent) in (0u32..).zip(agents) {
                if let (None, Some(stage)) = (&agent.part, stage.as_mut()) {
                    let why = agent.lost.clone().unwrap_or_default();
                    stage.ready.push_front(Arrival::Lost { agent: number, seen_until_ns: started_ns, why });
                }
            }
        }
        Self { link: Arc::clone(link), started_ns, workers, joined: false }
    }

    fn wish(&self, stop: bool, abort: bool) {
        let mut inside = self.link.lock();
        if let Some(stage) = &mut inside.stage {
            stage.stop |= stop;
            stage.abort |= abort;
            if stop {
                stage.stopped.get_or_insert_with(Instant::now);
            }
            if abort {
                stage.aborted.get_or_insert_with(Instant::now);
            }
        }
        self.link.heed_all(&mut inside);
    }
}

impl Load for FleetLoad {
    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn workers(&self) -> &[Enlisted] {
        &self.workers
    }

    fn next(&mut self, wait: Duration) -> Option<Arrival> {
        let until = Instant::now() + wait;
        let mut inside = self.link.lock();
        loop {
            let ready = inside.stage.as_mut().and_then(|s| s.ready.pop_front());
            if ready.is_some() {
                return ready;
            }
            if !inside.agents.iter().any(KnownAgent::is_awaited) {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Arrival::Nothing);
            }
            inside = self.link.wait(inside, left);
        }
    }

    fn recycle(&mut self, taken: Arrival) {
        let Arrival::FromAgent(taken) = taken else { return };
        let agent = taken.worker().agent as usize;
        let mut inside = self.link.lock();
        let in_lockstep = inside.stage.as_ref().is_some_and(|s| s.in_lockstep);
        let Some(known) = inside.agents.get_mut(agent) else { return };
        if let Some(part) = &mut known.part {
            part.takes_back();
        }
        let has_lost_it = known.lost.is_some();
        hand_over(&mut inside, agent);
        // Its worker waits for this one.
        if in_lockstep && !has_lost_it && matches!(taken, FromAgent::Interval { .. }) {
            self.link.heed(&mut inside, agent);
        }
    }

    fn stop(&mut self) {
        self.wish(true, false);
    }

    fn abort(&mut self) {
        self.wish(true, true);
    }

    fn join(mut self: Box<Self>) -> Vec<WorkerEnd> {
        self.joined = true;
        let mut inside = self.link.lock();
        // One that was lost after its end had come has told how it ended.
        let ends = |known: &KnownAgent| known.part.as_ref()?.incoming.end().map(<[WorkerEnd]>::to_vec);
        let mut all: Vec<WorkerEnd> = inside.agents.iter().filter_map(ends).flatten().collect();
        if let (Some(why), Some(first)) = (&inside.dead, self.workers.first()) {
            all.push(EndTold::broken(first.id.worker, why).of_agent(first.id.agent));
        }
        all.sort_by_key(|e| e.worker);
        // The last frames are acknowledged, so that nobody keeps them.
        self.link.heed_all(&mut inside);
        all
    }
}

impl Drop for FleetLoad {
    fn drop(&mut self) {
        if self.joined {
            return;
        }
        self.abort();
        let until = Instant::now() + CANCEL;
        while let Some(arrival) = self.next(Duration::from_millis(50))
            && Instant::now() < until
        {
            // What is behind it comes only then.
            self.recycle(arrival);
        }
    }
}
