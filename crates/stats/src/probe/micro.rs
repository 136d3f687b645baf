//! Bursts too short to be a level: rest, drain and look at the excess, cycle after cycle, against a control that followed no rest.

use super::drain::{DrainEvidence, Micro, micro_capacity};
use super::{Probe, ProbeAction, Resource, State};
use crate::simulate::RatesSeen;

const MICRO_CYCLES: usize = 6;
/// So many cycles are worth a little more than the budget, once they have begun: a budget is kept within 5 %.
const LEAST_CYCLES: usize = 3;
const MORE_FOR_CYCLES: f64 = 1.04;
const MICRO_LOAD_S: f64 = 6.0;
const MICRO_DT_S: f64 = 0.1;

#[derive(Debug, Clone)]
pub(super) struct MicroRun {
    pub of: Resource,
    pub recovered: f64,
    pub values: Vec<f64>,
}

impl Probe {
    /// Rest before a cycle of a short burst; `None` where neither it nor the load after it fit into the budget.
    pub(super) fn micro_rest_s(&self, m: &MicroRun) -> Option<f64> {
        let rate = self.tracks[m.of as usize].rate.unwrap_or(1.0);
        let seconds = 1.5 * m.recovered / rate + 1.0;
        let more = if (1..LEAST_CYCLES).contains(&m.values.len()) { MORE_FOR_CYCLES } else { 1.0 };
        let end_s = self.elapsed_s() + seconds + MICRO_LOAD_S;
        (end_s <= more * self.options.budget_s).then_some(seconds)
    }

    pub(super) fn micro_idle(&mut self, m: MicroRun) -> ProbeAction {
        let Some(seconds) = self.micro_rest_s(&m) else { return self.micro_done(m) };
        self.state = State::MicroIdle(m);
        ProbeAction::Idle { seconds }
    }

    pub(super) fn micro_load(&mut self, m: MicroRun) -> ProbeAction {
        let of = m.of;
        self.state = State::MicroLoad(m);
        self.closed_load(of, MICRO_LOAD_S, MICRO_DT_S, false)
    }

    pub(super) fn micro_seen(&mut self, mut m: MicroRun, seen: Option<&RatesSeen>) -> ProbeAction {
        let rate = self.tracks[m.of as usize].rate.unwrap_or(1.0);
        if let Some(s) = seen {
            let x = match m.of {
                Resource::Ops => &s.ops_per_s,
                Resource::Bytes => &s.bytes_per_s,
            };
            m.values.push(micro_capacity(x, s.dt_s, rate));
        }
        self.state = State::MicroStop(m);
        ProbeAction::Stop
    }

    pub(super) fn micro_next(&mut self, m: MicroRun) -> ProbeAction {
        if m.values.len() < MICRO_CYCLES {
            return self.micro_idle(m);
        }
        self.micro_done(m)
    }

    pub(super) fn micro_done(&mut self, m: MicroRun) -> ProbeAction {
        let dt = self.options.dt_s;
        let (now, used) = (self.now_s, self.used[m.of as usize]);
        let horizon_s = self.options.horizon_s;
        // The plateau that the same ops have seen.
        let per_op = if self.drained_by(m.of) == m.of { 1.0 } else { self.options.small_bytes as f64 };
        let first = self.tracks[self.drained_by(m.of) as usize].drains.first();
        let plateau: Vec<f64> = first.map_or(&[][..], |d| &d.x).iter().map(|x| x * per_op).collect();
        let t = self.track(m.of);
        t.last_end_s = now;
        t.mark = used;
        let rate = t.rate.unwrap_or(0.0);
        t.micro = Micro::of(&m.values, &plateau, dt, rate);
        let seen_s = t.drains.iter().map(|d| d.length_s).fold(0.0, f64::max);
        if t.micro.is_some_and(|m| !m.is_real(rate)) && seen_s < horizon_s {
            t.drains.iter_mut().for_each(DrainEvidence::refute);
            (t.micro, t.refuted, t.look_again) = (None, true, true);
            (t.done, t.want_s) = (false, 0.0);
        }
        self.choose()
    }
}
