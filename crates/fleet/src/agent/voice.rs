//! What an agent says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_bus::Bus;
use plimsoll_bus::subjects::Subjects;

use super::json;
use crate::wire::tell::{AgentTold, Tell};
use crate::wire::{VERSION, pieces};

/// Speaks as one agent. What gets lost is asked for again, so that a bus that does not take it is no error here.
#[derive(Debug)]
pub struct Voice {
    bus: Arc<dyn Bus>,
    tell: String,
    frame: String,
    session: String,
    said: AtomicU64,
}

impl Voice {
    pub fn new(bus: Arc<dyn Bus>, subjects: &Subjects, name: &str, session: &str) -> Self {
        Self {
            bus,
            tell: subjects.tell(name),
            frame: subjects.frame(name),
            session: session.to_owned(),
            said: AtomicU64::new(0),
        }
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    pub fn tell(&self, run: Option<&str>, tell: Tell) {
        let run = run.map(str::to_owned);
        let told = AgentTold { version: VERSION, session: self.session.clone(), run, tell };
        let number = self.said.fetch_add(1, Ordering::Relaxed);
        for piece in pieces::split(number, &json(&told), self.bus.largest()) {
            let _ = self.bus.publish(&self.tell, &piece);
        }
    }

    pub fn frames(&self, frames: Vec<Vec<u8>>) {
        for frame in frames {
            let _ = self.bus.publish(&self.frame, &frame);
        }
    }
}
