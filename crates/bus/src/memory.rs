//! A bus within one process: for a run whose agents are its own threads, and for tests, which choose its weather and cut off who
//! they like.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::pattern::{check_pattern, check_subject, matches};
use crate::queue::{Audience, Queue, Room};
use crate::{Bus, BusError, BusEvent, Events, LARGEST_BYTES, Message, Subscription, Weather};

/// How much may wait for one subscriber.
const ROOM: Room = Room { count: 65_536, bytes: 256 << 20 };

/// One client's connection to a network within this process; [`Self::client`] makes more.
#[derive(Debug)]
pub struct MemoryBus {
    network: Arc<Network>,
    line: Arc<Line>,
}

#[derive(Debug)]
struct Network {
    weather: Weather,
    inside: Mutex<Inside>,
    room: Room,
}

#[derive(Debug, Default)]
struct Inside {
    listeners: Vec<Listener>,
    /// How many messages each subject had, for the weather.
    said: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Listener {
    pattern: String,
    queue: Arc<Queue<Message>>,
    line: Arc<Line>,
}

/// What belongs to one client.
#[derive(Debug, Default)]
struct Line {
    cut: AtomicBool,
    audience: Audience,
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new(Weather::default())
    }
}

impl MemoryBus {
    /// A network of its own, and the first client of it.
    pub fn new(weather: Weather) -> Self {
        Self::with(weather, ROOM)
    }

    fn with(weather: Weather, room: Room) -> Self {
        let network = Network { weather, inside: Mutex::default(), room };
        Self { network: Arc::new(network), line: Arc::default() }
    }

    /// One where so few messages may wait for a subscriber: to see what becomes of a slow one.
    pub fn with_room(weather: Weather, messages: usize) -> Self {
        Self::with(weather, Room { count: messages, ..ROOM })
    }

    /// Another client of the same network.
    pub fn client(&self) -> Self {
        Self { network: self.network.clone(), line: Arc::default() }
    }

    /// Cuts this client off: what it says, and what is said to it, is lost until [`Self::mend`].
    pub fn cut(&self) {
        if !self.line.cut.swap(true, Ordering::SeqCst) {
            self.line.audience.tell(BusEvent::Disconnected);
        }
    }

    /// Ends a [`Self::cut`].
    pub fn mend(&self) {
        if self.line.cut.swap(false, Ordering::SeqCst) {
            self.line.audience.tell(BusEvent::Connected);
        }
    }
}

impl Network {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry(&self, subject: &str, payload: &[u8]) {
        let mut inside = self.lock();
        let count = inside.said.entry(subject.to_owned()).or_default();
        let fate = self.weather.fate(subject, *count);
        *count += 1;
        inside.listeners.retain(|l| !l.queue.closed());
        let now = Instant::now();
        let wanted = |l: &&Listener| matches(&l.pattern, subject) && !l.line.cut.load(Ordering::SeqCst);
        for listener in inside.listeners.iter().filter(wanted) {
            for late in &fate {
                let message = Message { subject: subject.to_owned(), payload: payload.to_vec() };
                if !listener.queue.push(now + *late, payload.len(), message) {
                    listener.line.audience.tell(BusEvent::Dropped(1));
                }
            }
        }
    }
}

impl Bus for MemoryBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        check_subject(subject)?;
        if payload.len() > self.largest() {
            return Err(BusError::TooLarge { bytes: payload.len(), largest: self.largest() });
        }
        if !self.line.cut.load(Ordering::SeqCst) {
            self.network.carry(subject, payload);
        }
        Ok(())
    }

    fn subscribe(&self, subject: &str) -> Result<Subscription, BusError> {
        check_pattern(subject)?;
        let queue = Queue::new(self.network.room);
        let listener =
            Listener { pattern: subject.to_owned(), queue: queue.clone(), line: self.line.clone() };
        self.network.lock().listeners.push(listener);
        let network = self.network.clone();
        Ok(Subscription::new(queue, move || network.lock().listeners.retain(|l| !l.queue.closed())))
    }

    fn largest(&self) -> usize {
        LARGEST_BYTES
    }

    fn events(&self) -> Events {
        self.line.audience.listen()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Duration = Duration::ZERO;
    const SOON: Duration = Duration::from_millis(50);

    fn numbers(subscription: &Subscription, wait: Duration) -> Vec<u8> {
        std::iter::from_fn(|| subscription.next(wait)).map(|m| m.payload[0]).collect()
    }

    #[test]
    fn who_subscribed_gets_it_and_nobody_else() {
        let bus = MemoryBus::default();
        let other = bus.client();
        let (one, all) = (other.subscribe("a.b").unwrap(), other.subscribe("a.>").unwrap());
        bus.publish("a.b", &[1]).unwrap();
        bus.publish("a.c", &[2]).unwrap();
        bus.publish("b.a", &[3]).unwrap();
        assert_eq!(numbers(&one, NOW), [1]);
        assert_eq!(numbers(&all, NOW), [1, 2]);
        drop(all);
        bus.publish("a.b", &[4]).unwrap();
        assert_eq!(numbers(&one, NOW), [4]);
        assert_eq!(bus.network.lock().listeners.len(), 1);
    }

    #[test]
    fn bad_weather_loses_doubles_and_mixes_and_does_so_again() {
        let delay = Duration::from_millis(3);
        let weather = Weather { seed: 4, lost: 0.2, doubled: 0.2, delayed: 0.5, delay, ..Weather::default() };
        let seen = || {
            let bus = MemoryBus::new(weather);
            let all = bus.subscribe(">").unwrap();
            (0..100).for_each(|n| bus.publish("a", &[n]).unwrap());
            let mut came = numbers(&all, SOON);
            let mixed = !came.is_sorted();
            came.sort_unstable();
            (came, mixed)
        };
        let (came, mixed) = seen();
        let mut once = came.clone();
        once.dedup();
        assert!(once.len() < 95 && once.len() < came.len() && mixed, "{came:?}");
        assert_eq!(seen().0, came);
    }

    #[test]
    fn who_is_cut_off_neither_speaks_nor_hears() {
        let bus = MemoryBus::default();
        let lost = bus.client();
        let (here, there) = (bus.subscribe("a").unwrap(), lost.subscribe("a").unwrap());
        let events = lost.events();
        lost.cut();
        bus.publish("a", &[1]).unwrap();
        lost.publish("a", &[2]).unwrap();
        lost.mend();
        lost.publish("a", &[3]).unwrap();
        assert_eq!((numbers(&here, NOW), numbers(&there, NOW)), (vec![1, 3], vec![3]));
        assert_eq!(
            [events.next(NOW), events.next(NOW)],
            [Some(BusEvent::Disconnected), Some(BusEvent::Connected)]
        );
    }

    #[test]
    fn a_slow_one_loses_by_count() {
        let bus = MemoryBus::with_room(Weather::default(), 3);
        let (slow, events) = (bus.subscribe("a").unwrap(), bus.events());
        (0..5).for_each(|n| bus.publish("a", &[n]).unwrap());
        assert_eq!((numbers(&slow, NOW), slow.dropped()), (vec![0, 1, 2], 2));
        assert_eq!(events.next(NOW), Some(BusEvent::Dropped(1)));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let bus = MemoryBus::default();
        let e = bus.publish("a", &vec![0; LARGEST_BYTES + 1]).unwrap_err();
        assert_eq!(e, BusError::TooLarge { bytes: LARGEST_BYTES + 1, largest: LARGEST_BYTES });
    }
}
