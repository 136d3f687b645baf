//! What a client says to itself. The broker deals with what one client says in its order: when the echo is back, it has dealt with
//! all that came before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures::StreamExt;
use tokio::sync::Mutex;

use crate::BusError;
use crate::subjects::echo;

/// An echo takes as long as the way there and back.
const AGAIN: Duration = Duration::from_secs(1);

/// Of one connection.
#[derive(Debug)]
pub struct OwnEcho {
    subject: String,
    said: AtomicU64,
    from: Mutex<Subscriber>,
}

impl OwnEcho {
    /// The client of this key hears itself from here on.
    pub async fn new(client: &Client, key: &str) -> Result<Self, BusError> {
        let subject = echo(key);
        let from = client.subscribe(subject.clone()).await.map_err(|_| BusError::Closed)?;
        Ok(Self { subject, said: AtomicU64::new(0), from: Mutex::new(from) })
    }

    /// Returns when the broker has dealt with what `client` said before.
    pub async fn heard(&self, client: &Client) -> Result<(), BusError> {
        let mut from = self.from.lock().await;
        loop {
            let number = self.said.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let said = client.publish(self.subject.clone(), number.to_vec().into()).await;
            said.map_err(|_| BusError::Closed)?;
            match tokio::time::timeout(AGAIN, came(&mut from, number)).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(BusError::Closed),
                // Lost with a connection that broke: what was said before it is said again when the connection is back.
                Err(_) => {}
            }
        }
    }
}

/// Waits for one echo; earlier ones may be here, where a caller has waited no longer. `false`: none will come.
async fn came(from: &mut Subscriber, number: [u8; 8]) -> bool {
    while let Some(message) = from.next().await {
        if message.payload[..] == number {
            return true;
        }
    }
    false
}
