//! Orders are sealed: signed by the conductor, for one run, one process of one agent, once, and for a short while. The while is told
//! in the agent's own monotonic time, so that no two clocks have to agree.

use plimsoll_bus::{Identity, signed_by};
use serde::{Deserialize, Serialize};

use super::VERSION;
use super::order::{Assignment, Order};

const SIGNATURE: usize = 64;

/// An order, and for whom it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`VERSION`].
    pub version: u32,
    /// The run that it is of.
    pub run: String,
    /// The agent's process.
    pub to: String,
    /// Higher than that of the order before.
    pub sequence: u64,
    /// On the agent's monotonic clock: later it holds no more.
    pub until_ns: u64,
    /// What.
    pub order: Order,
}

impl Envelope {
    /// As bytes that only `conductor` can have made.
    pub fn sealed(&self, conductor: &Identity) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("plain data is always JSON");
        let mut out = conductor.sign(&body);
        debug_assert_eq!(out.len(), SIGNATURE);
        out.extend_from_slice(&body);
        out
    }
}

/// Why an order is not obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// Not by the conductor of this fleet.
    #[error("its signature is not the conductor's")]
    Signature,
    /// By the conductor, but nothing that is known here.
    #[error("it cannot be read")]
    Content,
    /// Of another version of the wire.
    #[error("it is of version {0}, and this program speaks {VERSION}")]
    Version(u32),
    /// For another agent, or for this one before it was started again.
    #[error("it is for another agent")]
    To,
    /// This one, or a later one, was accepted before.
    #[error("it was said before")]
    Replayed,
    /// It was too long on its way.
    #[error("it came too late")]
    Expired,
    /// Of a run that this agent does not work for.
    #[error("it is of another run")]
    Run,
}

/// What an agent accepts.
#[derive(Debug)]
pub struct Guard {
    conductor: String,
    session: String,
    run: Option<String>,
    last: u64,
}

impl Guard {
    /// Of one process, which obeys the holder of this public key.
    pub fn new(conductor: &str, session: &str) -> Self {
        Self { conductor: conductor.to_owned(), session: session.to_owned(), run: None, last: 0 }
    }

    /// The number of the last order that was accepted.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// From now on orders of this run, or only those that hire.
    pub fn works_for(&mut self, run: Option<&str>) {
        self.run = run.map(str::to_owned);
    }

    /// What is ordered, if it is to be obeyed.
    pub fn open(&mut self, sealed: &[u8], now_ns: u64) -> Result<Envelope, Unsealed> {
        let (signature, body) = sealed.split_at_checked(SIGNATURE).ok_or(Unsealed::Signature)?;
        if !signed_by(&self.conductor, body, signature) {
            return Err(Unsealed::Signature);
        }
        let envelope: Envelope = read(body)?;
        if envelope.to != self.session {
            return Err(Unsealed::To);
        }
        if envelope.sequence <= self.last {
            return Err(Unsealed::Replayed);
        }
        if now_ns > envelope.until_ns {
            return Err(Unsealed::Expired);
        }
        let hires =
            matches!(&envelope.order, Order::Work { job, .. } if matches!(**job, Assignment::Hire { .. }));
        let fetches = matches!(&envelope.order, Order::Fetch(_));
        // Whoever is at work says so to who would hire it, or would have its records.
        if !hires && !fetches && self.run.as_ref() != Some(&envelope.run) {
            return Err(Unsealed::Run);
        }
        self.last = envelope.sequence;
        Ok(envelope)
    }
}

/// The version first: what else is there is of it.
fn read(body: &[u8]) -> Result<Envelope, Unsealed> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(body).map_err(|_| Unsealed::Content)?;
    if version != VERSION {
        return Err(Unsealed::Version(version));
    }
    serde_json::from_slice(body).map_err(|_| Unsealed::Content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(run: &str, sequence: u64, order: Order) -> Envelope {
        let (run, to) = (run.to_owned(), "s1".to_owned());
        Envelope { version: VERSION, run, to, sequence, until_ns: 1000, order }
    }

    fn hire() -> Order {
        let job = Assignment::Hire { plan: String::new(), deadman_ns: 1 };
        Order::Work { task: 1, job: Box::new(job) }
    }

    #[test]
    fn only_what_is_signed_new_in_time_and_of_the_run_is_obeyed() {
        let (conductor, stranger) = (Identity::random(), Identity::random());
        let mut guard = Guard::new(&conductor.public(), "s1");
        let mut open = |e: &Envelope, by: &Identity, now| guard.open(&e.sealed(by), now);
        assert_eq!(open(&order("r1", 5, hire()), &stranger, 0), Err(Unsealed::Signature));
        assert_eq!(open(&order("r1", 5, Order::Dismiss), &conductor, 0), Err(Unsealed::Run));
        assert_eq!(open(&order("r1", 5, hire()), &conductor, 1001), Err(Unsealed::Expired));
        assert_eq!(open(&order("r1", 5, hire()), &conductor, 1000).unwrap().sequence, 5);
        assert_eq!(open(&order("r1", 5, hire()), &conductor, 0), Err(Unsealed::Replayed));
        assert_eq!(open(&order("r1", 4, hire()), &conductor, 0), Err(Unsealed::Replayed));
        let other = Envelope { to: "s2".into(), ..order("r1", 6, hire()) };
        assert_eq!(open(&other, &conductor, 0), Err(Unsealed::To));
        let newer = Envelope { version: VERSION + 1, ..order("r1", 6, hire()) };
        assert_eq!(open(&newer, &conductor, 0), Err(Unsealed::Version(VERSION + 1)));
        let mut changed = order("r1", 6, hire()).sealed(&conductor);
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(guard.open(&changed, 0), Err(Unsealed::Signature));
        assert_eq!(guard.open(&changed[..10], 0), Err(Unsealed::Signature));
    }

    #[test]
    fn an_order_of_the_run_before_is_of_another_run() {
        let conductor = Identity::random();
        let mut guard = Guard::new(&conductor.public(), "s1");
        guard.works_for(Some("r2"));
        let heed = |run, n| order(run, n, Order::Heed(Default::default())).sealed(&conductor);
        assert_eq!(guard.open(&heed("r1", 1), 0), Err(Unsealed::Run));
        assert!(guard.open(&heed("r2", 1), 0).is_ok());
        guard.works_for(None);
        assert_eq!(guard.open(&heed("r2", 2), 0), Err(Unsealed::Run));
        assert!(guard.open(&order("r3", 3, hire()).sealed(&conductor), 0).is_ok());
    }
}
