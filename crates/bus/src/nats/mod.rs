//! The bus between machines: a connection to a NATS broker. The library behind it is asynchronous, our callers are threads: one
//! thread for all connections of the process drives it, and hands messages over to bounded queues.

mod connect;
mod echo;
mod pinned;
mod watch;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc as threads};
use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};

pub use connect::{Broker, Caller};
use echo::OwnEcho;
use watch::Watch;

use crate::pattern::{check_pattern, check_subject};
use crate::queue::{Queue, Room};
use crate::{Bus, BusError, Events, Identity, LARGEST_BYTES, Message, Subscription};

/// How much may wait for one subscriber: by number what the library itself lets wait, and no more than a machine can spare.
const ROOM: Room = Room { count: 65_536, bytes: 256 << 20 };
/// How many messages may wait to be sent, and how many bytes in all: more means that the broker is gone, or too slow.
const OUTBOX: usize = 8_192;
const OUTBOX_BYTES: usize = 64 << 20;
/// How long a subscription, or the last messages before the end, may take.
const PATIENCE: Duration = Duration::from_secs(10);
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to a broker. It comes back by itself when it breaks; dropping it sends what was published before.
#[derive(Debug)]
pub struct NatsBus {
    client: Client,
    outbox: Option<mpsc::Sender<Message>>,
    /// Bytes that wait to be sent.
    waiting: Arc<AtomicUsize>,
    watch: Arc<Watch>,
    /// What this client says to itself, to know that the broker has dealt with all that it said before.
    echo: OwnEcho,
    /// Ends when the outbox is empty and the connection closed.
    ended: Mutex<threads::Receiver<()>>,
}

/// One thread drives all connections of this process.
fn runtime() -> Result<&'static Runtime, BusError> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let make = || {
        Builder::new_multi_thread().worker_threads(1).thread_name("plimsoll-bus").enable_all().build().ok()
    };
    let none = || BusError::unreachable("no thread can be started for the bus", "See `ulimit -u`");
    RUNTIME.get_or_init(make).as_ref().ok_or_else(none)
}

impl NatsBus {
    /// Connects as `identity`; the broker shows `name` to whoever asks it for its clients.
    pub fn connect(broker: &Broker, identity: &Identity, name: &str) -> Result<Self, BusError> {
        Self::connect_as(broker, Caller::Own(identity), name)
    }

    /// The same as a guest of somebody else's broker.
    pub fn connect_as(broker: &Broker, caller: Caller<'_>, name: &str) -> Result<Self, BusError> {
        let runtime = runtime()?;
        let watch = Arc::new(Watch::default());
        let client = runtime.block_on(connect::connect(broker, caller, name, &watch))?;
        let echo = runtime.block_on(OwnEcho::new(&client, &caller.key()))?;
        let (outbox, from) = mpsc::channel(OUTBOX);
        let (end, ended) = threads::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (sender, count) = (client.clone(), waiting.clone());
        runtime.spawn(async move {
            send(&sender, from, &count).await;
            // Whoever waited for it has given up.
            let _ = end.send(());
        });
        Ok(Self { client, outbox: Some(outbox), waiting, watch, echo, ended: Mutex::new(ended) })
    }

    /// Why the broker did not deal with what was asked of it.
    fn unheard(&self) -> BusError {
        match self.denied().last() {
            None => BusError::Busy,
            Some(said) => BusError::refused(
                format!("the broker does not let us do what a fleet needs: {said}"),
                "Its owner has to allow this user to publish and subscribe under fleet.> and echo.>",
            ),
        }
    }

    /// Whether the broker lets us do this; said in its own words where it does not. What is published is empty.
    pub(crate) fn check_allowed(&self, publish: &[String], subscribe: &[String]) -> Result<(), BusError> {
        publish.iter().try_for_each(|subject| self.publish(subject, b""))?;
        // Refusals come before the answer to what was asked after them.
        subscribe.iter().try_for_each(|subject| self.subscribe(subject).map(drop))?;
        if self.denied().is_empty() { Ok(()) } else { Err(self.unheard()) }
    }

    /// The program and version that it says it is.
    pub fn server(&self) -> String {
        format!("nats-server: v{}", self.client.server_info().version)
    }

    /// What the broker did not let this client do, in its own words, since the connection was made.
    pub fn denied(&self) -> Vec<String> {
        self.watch.denied()
    }

    /// Asks the broker itself (its system account); nothing between agents is asked this way.
    pub(crate) fn ask(&self, subject: &str, payload: &[u8], wait: Duration) -> Option<Vec<u8>> {
        let request = self.client.request(subject.to_owned(), Bytes::copy_from_slice(payload));
        let answer = runtime().ok()?.block_on(async { tokio::time::timeout(wait, request).await });
        Some(answer.ok()?.ok()?.payload.to_vec())
    }
}

async fn send(client: &Client, mut outbox: mpsc::Receiver<Message>, waiting: &AtomicUsize) {
    while let Some(message) = outbox.recv().await {
        let bytes = message.payload.len();
        let sent = client.publish(message.subject, message.payload.into()).await;
        waiting.fetch_sub(bytes, Ordering::Relaxed);
        if sent.is_err() {
            return;
        }
    }
    // Without a connection there is nothing to wait for.
    let _ = tokio::time::timeout(LAST_WORDS, client.flush()).await;
    let _ = client.drain().await;
}

/// From the library's stream to our queue, until either ends.
async fn deliver(mut from: Subscriber, to: Arc<Queue<Message>>, watch: Arc<Watch>, end: Arc<Notify>) {
    loop {
        let message = tokio::select! {
            message = from.next() => message,
            () = end.notified() => None,
        };
        let Some(message) = message else { break };
        let message = Message { subject: message.subject.to_string(), payload: message.payload.to_vec() };
        if !to.push(Instant::now(), message.payload.len(), message) {
            watch.dropped(1);
        }
    }
    to.close();
}

impl Bus for NatsBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        check_subject(subject)?;
        if payload.len() > self.largest() {
            return Err(BusError::TooLarge { bytes: payload.len(), largest: self.largest() });
        }
        let outbox = self.outbox.as_ref().ok_or(BusError::Closed)?;
        if self.waiting.load(Ordering::Relaxed) + payload.len() > OUTBOX_BYTES {
            return Err(BusError::Busy);
        }
        self.waiting.fetch_add(payload.len(), Ordering::Relaxed);
        let message = Message { subject: subject.to_owned(), payload: payload.to_vec() };
        outbox.try_send(message).map_err(|e| {
            self.waiting.fetch_sub(payload.len(), Ordering::Relaxed);
            match e {
                mpsc::error::TrySendError::Full(_) => BusError::Busy,
                mpsc::error::TrySendError::Closed(_) => BusError::Closed,
            }
        })
    }

    fn subscribe(&self, subject: &str) -> Result<Subscription, BusError> {
        check_pattern(subject)?;
        let runtime = runtime()?;
        let wanted = async {
            let from = self.client.subscribe(subject.to_owned()).await.map_err(|_| BusError::Closed)?;
            // Now the broker knows of it, whoever publishes next.
            self.echo.heard(&self.client).await?;
            Ok(from)
        };
        let wanted = runtime.block_on(async { tokio::time::timeout(PATIENCE, wanted).await });
        let from = wanted.map_err(|_| self.unheard())??;
        let (queue, end) = (Queue::new(ROOM), Arc::new(Notify::new()));
        runtime.spawn(deliver(from, queue.clone(), self.watch.clone(), end.clone()));
        Ok(Subscription::new(queue, move || end.notify_one()))
    }

    fn largest(&self) -> usize {
        LARGEST_BYTES.min(self.client.max_payload())
    }

    fn events(&self) -> Events {
        self.watch.listen()
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        self.outbox = None;
        // Gone or too slow: what was published is lost, as on any bus.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(LAST_WORDS);
    }
}
