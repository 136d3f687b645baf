//! A stage of simulated agents, as their conductor sees it through the network.
//!
//! The engine runs all workers in one thread, in order of the world's time, and waits at each slice until it is given back. That is
//! when the network catches up: all that arrives until then is delivered, in either direction, before the engine goes on.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use plimsoll_engine::{Next, Output, RunningStage, TraceChunk, WorkerEnd};

use super::network::{SimNetwork, Wire};
use crate::frames::Inbox;
use crate::order::{Arrival, Enlisted, Load};

/// The conductor asks each agent so often for what is missing; it is its sign of life, too.
const ASK_EVERY_NS: u64 = 50_000_000;

/// What an agent sends.
#[derive(Debug)]
enum Frame {
    Output(Output),
    /// Its workers have ended.
    End,
}

#[derive(Debug, Clone)]
enum Message {
    /// Frame of an agent.
    Frame {
        agent: u32,
        number: u64,
        frame: Rc<Frame>,
    },
    /// Of an agent that was asked: it is there.
    Alive {
        agent: u32,
    },
    /// To an agent: which frames the conductor lacks, of those before `from`; and all from there on.
    Ask {
        agent: u32,
        missing: Vec<u64>,
        from: u64,
    },
    Stop {
        agent: u32,
    },
    Abort {
        agent: u32,
    },
    /// The conductor's clock: time to ask.
    Tick {
        agent: u32,
    },
}

/// An agent.
#[derive(Debug, Default)]
struct Sender {
    /// Frames that it may be asked for again.
    kept: BTreeMap<u64, Rc<Frame>>,
    next_number: u64,
    /// When it heard of the conductor last.
    heard_ns: u64,
    stopped: bool,
}

/// What the conductor knows of an agent.
#[derive(Debug, Default)]
struct Receiver {
    inbox: Inbox<Rc<Frame>>,
    /// Frames from here on are not known to have been sent.
    highest: u64,
    /// When it heard of the agent last.
    heard_ns: u64,
    seen_until_ns: u64,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Working,
    /// Its workers have ended, and all that they did has arrived.
    Complete,
    /// It was silent for too long.
    Lost,
}

#[derive(Debug)]
pub struct SimLoad {
    running: RunningStage,
    workers: Vec<Enlisted>,
    grid_ns: u64,
    network: SimNetwork,
    wire: Wire<Message>,
    agents: Vec<Sender>,
    known: Vec<Receiver>,
    /// The world's time, up to which the engine has come.
    engine_ns: u64,
    /// The world's time at the conductor.
    now_ns: u64,
    /// The engine waits for it.
    held: Option<Output>,
    engine_ended: bool,
    ready: VecDeque<Arrival>,
    stop_sent: bool,
    abort_sent: bool,
}

impl SimLoad {
    pub fn new(running: RunningStage, workers: Vec<Enlisted>, grid_ns: u64, network: SimNetwork) -> Self {
        let started_ns = running.started_ns();
        let receiver = |agent: u32| Receiver {
            heard_ns: started_ns,
            seen_until_ns: started_ns,
            // An agent that got no part of the stage has nothing to say.
            state: if workers.iter().any(|w| w.id.agent == agent) { State::Working } else { State::Complete },
            ..Receiver::default()
        };
        let known: Vec<Receiver> = (0..network.agents).map(receiver).collect();
        let sender = |_| Sender { heard_ns: started_ns, ..Sender::default() };
        let agents = (0..network.agents).map(sender).collect();
        let mut wire = Wire::new(network.clone());
        for (agent, _) in known.iter().enumerate().filter(|(_, k)| k.state == State::Working) {
            wire.at(started_ns + ASK_EVERY_NS, Message::Tick { agent: agent as u32 });
        }
        Self {
            running,
            workers,
            grid_ns,
            network,
            wire,
            agents,
            known,
            engine_ns: started_ns,
            now_ns: started_ns,
            held: None,
            engine_ended: false,
            ready: VecDeque::new(),
            stop_sent: false,
            abort_sent: false,
        }
    }

    /// An agent sends its next frame.
    fn send(&mut self, agent: u32, frame: Frame) {
        let sender = &mut self.agents[agent as usize];
        let (number, frame) = (sender.next_number, Rc::new(frame));
        sender.next_number += 1;
        sender.kept.insert(number, Rc::clone(&frame));
        self.wire.send(agent, self.engine_ns, Message::Frame { agent, number, frame });
    }

    /// The engine goes on until its next output.
    fn go_on(&mut self) {
        if let Some(held) = self.held.take() {
            self.running.recycle(held);
        }
        match self.running.next(Duration::MAX) {
            Next::Output(output) => {
                let agent = agent_of(&output);
                if let Output::Interval { interval, .. } = &output {
                    let own_ns = (interval.index + 1) * self.grid_ns;
                    let true_ns = own_ns.saturating_add_signed(-self.network.ahead_ns(agent));
                    self.engine_ns = self.engine_ns.max(true_ns);
                }
                self.send(agent, Frame::Output(copy_of(&output)));
                self.held = Some(output);
            }
            Next::Nothing => {}
            Next::Ended => {
                self.engine_ended = true;
                (0..self.agents.len() as u32).for_each(|agent| self.send(agent, Frame::End));
            }
        }
    }

    /// Agents that have not heard of their conductor for too long stop: there is no load without one.
    fn despair(&mut self) {
        for (agent, sender) in self.agents.iter_mut().enumerate() {
            let silent_ns = self.engine_ns.saturating_sub(sender.heard_ns);
            if !sender.stopped && silent_ns > self.network.patience_ns {
                sender.stopped = true;
                self.running.stop_agent(agent as u32);
            }
        }
    }

    fn arrived(&mut self, at_ns: u64, message: Message) {
        self.now_ns = self.now_ns.max(at_ns);
        match message {
            Message::Frame { agent, number, frame } => self.frame_came(agent, number, frame, at_ns),
            Message::Alive { agent } => {
                let known = &mut self.known[agent as usize];
                known.heard_ns = known.heard_ns.max(at_ns);
            }
            Message::Tick { agent } => self.tick(agent, at_ns),
            Message::Ask { agent, missing, from } => self.asked(agent, &missing, from, at_ns),
            Message::Stop { agent } => {
                self.agents[agent as usize].stopped = true;
                self.running.stop_agent(agent);
            }
            Message::Abort { agent } => self.running.abort_agent(agent),
        }
    }

    /// An agent is asked for frames: it sends them again, and keeps what may be asked for still. It always answers: an agent with nothing
    /// to report is no lost one.
    fn asked(&mut self, agent: u32, missing: &[u64], from: u64, at_ns: u64) {
        let sender = &mut self.agents[agent as usize];
        sender.heard_ns = sender.heard_ns.max(at_ns);
        let first = missing.first().copied().unwrap_or(from);
        sender.kept = sender.kept.split_off(&first);
        let wanted = missing.iter().copied().chain(from..sender.next_number);
        let again: Vec<_> = wanted.filter_map(|n| Some((n, Rc::clone(sender.kept.get(&n)?)))).collect();
        self.wire.send(agent, at_ns, Message::Alive { agent });
        for (number, frame) in again {
            self.wire.send(agent, at_ns, Message::Frame { agent, number, frame });
        }
    }

    fn frame_came(&mut self, agent: u32, number: u64, frame: Rc<Frame>, at_ns: u64) {
        let known = &mut self.known[agent as usize];
        // What comes from an agent that was given up is of no use: nobody knows what else it did.
        if known.state != State::Working {
            return;
        }
        known.heard_ns = known.heard_ns.max(at_ns);
        // One too far ahead comes again, once those before it have come.
        if known.inbox.offer(number, frame).is_ok() {
            known.highest = known.highest.max(number + 1);
        }
        while let Some(frame) = known.inbox.take() {
            match &*frame {
                Frame::Output(output) => {
                    if let Output::Interval { interval, .. } = output {
                        known.seen_until_ns = known.seen_until_ns.max((interval.index + 1) * self.grid_ns);
                    }
                    self.ready.push_back(Arrival::Output(copy_of(output)));
                }
                Frame::End => known.state = State::Complete,
            }
        }
    }

    /// Time to ask an agent for what is missing, or to give it up.
    fn tick(&mut self, agent: u32, at_ns: u64) {
        let known = &mut self.known[agent as usize];
        if known.state != State::Working {
            return;
        }
        if at_ns.saturating_sub(known.heard_ns) > self.network.patience_ns {
            known.state = State::Lost;
            let why = "nothing was heard of it".to_owned();
            self.ready.push_back(Arrival::Lost { agent, seen_until_ns: known.seen_until_ns, why });
            return;
        }
        let (missing, from) = (known.inbox.missing(), known.highest);
        self.wire.send(agent, at_ns, Message::Ask { agent, missing, from });
        // What an agent is told may be lost: it is told again.
        for (sent, message) in
            [(self.stop_sent, Message::Stop { agent }), (self.abort_sent, Message::Abort { agent })]
        {
            if sent {
                self.wire.send(agent, at_ns, message);
            }
        }
        self.wire.at(at_ns + ASK_EVERY_NS, Message::Tick { agent });
    }

    fn tell_all(&mut self, message: impl Fn(u32) -> Message) {
        for agent in 0..self.agents.len() as u32 {
            self.wire.send(agent, self.now_ns, message(agent));
        }
    }

    fn is_over(&self) -> bool {
        self.ready.is_empty() && self.known.iter().all(|k| k.state != State::Working)
    }
}

fn agent_of(output: &Output) -> u32 {
    match output {
        Output::Interval { worker, .. } => worker.agent,
        Output::Trace(chunk) => chunk.worker.agent,
    }
}

fn copy_of(output: &Output) -> Output {
    match output {
        Output::Interval { worker, interval } => {
            Output::Interval { worker: *worker, interval: interval.clone() }
        }
        Output::Trace(c) => Output::Trace(TraceChunk { worker: c.worker, records: c.records.clone() }),
    }
}

impl Load for SimLoad {
    fn started_ns(&self) -> u64 {
        self.running.started_ns()
    }

    fn workers(&self) -> &[Enlisted] {
        &self.workers
    }

    fn next(&mut self, _: Duration) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.ready.pop_front() {
                return Some(arrival);
            }
            if self.is_over() && self.engine_ended {
                return None;
            }
            let until_ns = if self.engine_ended { u64::MAX } else { self.engine_ns };
            match self.wire.arrival(until_ns) {
                Some((at_ns, message)) => self.arrived(at_ns, message),
                None => {
                    // All that arrived until now was delivered: who has not heard by now, has not been told.
                    self.despair();
                    self.go_on();
                }
            }
        }
    }

    fn recycle(&mut self, _: Arrival) {
        // It is a copy: the engine has its own back already, or waits for the network to catch up.
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stop_sent, true) {
            self.tell_all(|agent| Message::Stop { agent });
        }
    }

    fn abort(&mut self) {
        if !std::mem::replace(&mut self.abort_sent, true) {
            self.tell_all(|agent| Message::Abort { agent });
        }
    }

    fn join(self: Box<Self>) -> Vec<WorkerEnd> {
        let Self { running, known, .. } = *self;
        let ends = running.join();
        ends.into_iter().filter(|e| known[e.worker.agent as usize].state != State::Lost).collect()
    }
}
