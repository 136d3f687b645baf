//! What came and was not taken yet: bounded, each with the time from which it may be taken, and nothing lost without being counted.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{BusEvent, Message};

/// Something that waits, ordered by when it is due, then by when it came.
#[derive(Debug)]
struct Waiting<T> {
    due: Instant,
    number: u64,
    bytes: usize,
    value: T,
}

impl<T> Waiting<T> {
    fn place(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

#[derive(Debug)]
struct Inside<T> {
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    /// Of all that wait.
    bytes: usize,
    came: u64,
    dropped: u64,
    closed: bool,
}

/// Between those who deliver and the one who takes.
#[derive(Debug)]
pub struct Queue<T> {
    inside: Mutex<Inside<T>>,
    news: Condvar,
    room: Room,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub count: usize,
    pub bytes: usize,
}

impl<T> Queue<T> {
    pub fn new(room: Room) -> Arc<Self> {
        let inside = Inside { waiting: BinaryHeap::new(), bytes: 0, came: 0, dropped: 0, closed: false };
        Arc::new(Self { inside: Mutex::new(inside), news: Condvar::new(), room })
    }

    /// What a panicking thread left is whole: each change is one push, one pop or one count.
    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false`: there was no room, and it is counted as lost.
    pub fn push(&self, due: Instant, bytes: usize, value: T) -> bool {
        let mut inside = self.lock();
        let fits = inside.waiting.len() < self.room.count && inside.bytes + bytes <= self.room.bytes;
        if fits {
            let number = inside.came;
            inside.bytes += bytes;
            inside.waiting.push(Reverse(Waiting { due, number, bytes, value }));
        } else {
            inside.dropped += 1;
        }
        inside.came += 1;
        drop(inside);
        self.news.notify_one();
        fits
    }

    /// Nothing comes any more; what is there can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.news.notify_all();
    }

    pub fn closed(&self) -> bool {
        self.lock().closed
    }

    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// The next that is due. `None`: none was within `wait`, or none will ever be.
    pub fn next(&self, wait: Duration) -> Option<T> {
        let deadline = Instant::now().checked_add(wait);
        let mut inside = self.lock();
        loop {
            let now = Instant::now();
            let due = inside.waiting.peek().map(|Reverse(first)| first.due);
            if due.is_some_and(|due| due <= now) {
                let Reverse(first) = inside.waiting.pop()?;
                inside.bytes -= first.bytes;
                return Some(first.value);
            }
            let ended = inside.closed && due.is_none();
            if ended || deadline.is_some_and(|deadline| deadline <= now) {
                return None;
            }
            let until = [due, deadline].into_iter().flatten().min();
            inside = match until {
                Some(until) => {
                    let slept = self.news.wait_timeout(inside, until.saturating_duration_since(now));
                    slept.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.news.wait(inside).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// What was subscribed to, until it is dropped.
pub struct Subscription {
    queue: Arc<Queue<Message>>,
    /// Tells the transport that nobody listens any more.
    ended: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

impl Subscription {
    pub(crate) fn new(queue: Arc<Queue<Message>>, ended: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { queue, ended: Some(Box::new(ended)) }
    }

    /// The next message. `None`: none came within `wait`, or the bus has ended (see [`Self::closed`]).
    pub fn next(&self, wait: Duration) -> Option<Message> {
        self.queue.next(wait)
    }

    /// How many messages came while there was no room for them. They are lost.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Whether nothing will come any more.
    pub fn closed(&self) -> bool {
        self.queue.closed()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(ended) = self.ended.take() {
            ended();
        }
    }
}

/// What becomes of a connection.
#[derive(Debug)]
pub struct Events {
    queue: Arc<Queue<BusEvent>>,
}

impl Events {
    pub(crate) fn new(queue: Arc<Queue<BusEvent>>) -> Self {
        Self { queue }
    }

    /// The next event. `None`: none came within `wait`.
    pub fn next(&self, wait: Duration) -> Option<BusEvent> {
        self.queue.next(wait)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Whoever wants to know what becomes of a connection.
#[derive(Debug, Default)]
pub struct Audience {
    listeners: Mutex<Vec<Arc<Queue<BusEvent>>>>,
}

/// Events are few; who does not read them loses the newest.
const EVENTS: Room = Room { count: 1024, bytes: usize::MAX };

impl Audience {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Queue<BusEvent>>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn listen(&self) -> Events {
        let queue = Queue::new(EVENTS);
        self.lock().push(queue.clone());
        Events::new(queue)
    }

    pub fn tell(&self, event: BusEvent) {
        let mut listeners = self.lock();
        listeners.retain(|queue| !queue.closed());
        for queue in listeners.iter() {
            // Whoever has not read a thousand events misses nothing by one more.
            let _ = queue.push(Instant::now(), 0, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Room = Room { count: 8, bytes: 100 };

    #[test]
    fn what_is_due_first_comes_first_and_equals_keep_their_order() {
        let queue = Queue::new(WIDE);
        let now = Instant::now();
        let later = now + Duration::from_millis(2);
        for (due, value) in [(later, 'c'), (now, 'a'), (now, 'b'), (later, 'd')] {
            assert!(queue.push(due, 1, value));
        }
        let came: String = (0..4).filter_map(|_| queue.next(Duration::from_secs(5))).collect();
        assert_eq!(came, "abcd");
        assert_eq!(queue.next(Duration::ZERO), None);
    }

    #[test]
    fn without_room_it_is_counted() {
        let queue = Queue::new(Room { count: 2, ..WIDE });
        let kept: Vec<bool> = (0..5).map(|n| queue.push(Instant::now(), 1, n)).collect();
        assert_eq!(kept, [true, true, false, false, false]);
        assert_eq!(queue.dropped(), 3);
        let queue = Queue::new(WIDE);
        let kept = [60, 60, 40, 1].map(|bytes| queue.push(Instant::now(), bytes, bytes));
        assert_eq!((kept, queue.dropped()), ([true, false, true, false], 2));
        assert_eq!(queue.next(Duration::ZERO), Some(60));
        assert!(queue.push(Instant::now(), 60, 60), "what was taken makes room");
    }

    #[test]
    fn what_is_closed_ends_at_once_but_gives_what_it_has() {
        let queue = Queue::new(WIDE);
        queue.push(Instant::now(), 1, 1);
        queue.close();
        assert_eq!(queue.next(Duration::MAX), Some(1));
        assert_eq!(queue.next(Duration::MAX), None);
    }
}
