//! What the client library tells of its connection, for our own listeners.

use std::sync::{Mutex, PoisonError};

use async_nats::ServerError;

use crate::BusEvent;
use crate::queue::{Audience, Events};

/// Denials are few, or all the same.
const MOST_DENIED: usize = 64;

/// Of one connection.
#[derive(Debug, Default)]
pub struct Watch {
    audience: Audience,
    denied: Mutex<Vec<String>>,
}

impl Watch {
    pub fn listen(&self) -> Events {
        self.audience.listen()
    }

    pub fn dropped(&self, messages: u64) {
        self.audience.tell(BusEvent::Dropped(messages));
    }

    /// What the broker did not let us do.
    pub fn denied(&self) -> Vec<String> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn tell(&self, event: &async_nats::Event) {
        match event {
            async_nats::Event::Connected => self.audience.tell(BusEvent::Connected),
            async_nats::Event::Disconnected | async_nats::Event::Closed => {
                self.audience.tell(BusEvent::Disconnected);
            }
            async_nats::Event::SlowConsumer(_) => self.dropped(1),
            async_nats::Event::ServerError(ServerError::Other(text)) => self.deny(text),
            _ => {}
        }
    }

    fn deny(&self, text: &str) {
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        if text.to_lowercase().contains("permissions violation") && denied.len() < MOST_DENIED {
            denied.push(text.to_owned());
        }
    }
}
