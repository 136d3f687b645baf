//! Keys that may be others before the load ends: temporary ones are renewed while it goes on.
//!
//! A worker does not look for new keys when it begins an op. Whoever renews them makes the worker's request heads anew, in its own
//! thread, and leaves them in the worker's inbox; the worker looks there where its slices end, ten times a second, and gives the old
//! ones back to be freed elsewhere: no lock, no allocation, and nothing at all on the way of an op.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crossbeam_channel::{Receiver, Sender, bounded};
use plimsoll_s3::head::{HeadOptions, Heads};
use plimsoll_s3::{Credentials, Endpoint, HeaderError};

/// The keys that requests are signed with, now. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct LiveKeys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: Mutex<Arc<Credentials>>,
    /// How often they were renewed.
    renewals: AtomicU64,
    signers: Mutex<Vec<Signing>>,
}

/// Somebody who signs, as whoever renews keys sees him.
#[derive(Debug)]
struct Signing {
    recipe: HeadRecipe,
    fresh: Sender<Vec<Heads>>,
    /// To take back what was not fetched.
    unfetched: Receiver<Vec<Heads>>,
    spent: Receiver<Vec<Heads>>,
    /// Nobody holds it any more: who signed has ended.
    alive: Weak<()>,
}

/// What request heads are made of beside the keys: one set for each endpoint.
#[derive(Debug, Clone)]
pub struct HeadRecipe {
    /// In the order of the heads.
    pub endpoints: Vec<Endpoint>,
    /// That requests are signed for.
    pub region: String,
    /// What all requests have in common.
    pub options: HeadOptions,
}

impl HeadRecipe {
    fn heads(&self, credentials: &Credentials) -> Result<Vec<Heads>, HeaderError> {
        let of = |e: &Endpoint| Heads::new(e, credentials.clone(), &self.region, &self.options);
        self.endpoints.iter().map(of).collect()
    }
}

/// Where a worker finds heads with new keys.
#[derive(Debug)]
pub struct HeadsInbox {
    fresh: Receiver<Vec<Heads>>,
    spent: Sender<Vec<Heads>>,
    /// With it ends the subscription.
    _alive: Arc<()>,
}

impl HeadsInbox {
    /// Takes them, if there are any; what was in use is freed by who made it.
    #[inline]
    pub fn fetch(&self, in_use: &mut Vec<Heads>) -> bool {
        let Ok(fresh) = self.fresh.try_recv() else { return false };
        // A full box: the one before is still there, and these are freed here. That is between slices, and rare.
        let _ = self.spent.try_send(std::mem::replace(in_use, fresh));
        true
    }
}

impl From<Credentials> for LiveKeys {
    fn from(credentials: Credentials) -> Self {
        let current = Mutex::new(Arc::new(credentials));
        Self(Arc::new(Shared { current, renewals: AtomicU64::new(0), signers: Mutex::default() }))
    }
}

impl LiveKeys {
    /// Those of now.
    pub fn get(&self) -> Arc<Credentials> {
        Arc::clone(&unpoisoned(&self.0.current))
    }

    /// How often they were renewed: who keeps what was made of keys sees by it whether they are still these.
    pub fn renewals(&self) -> u64 {
        self.0.renewals.load(Ordering::Acquire)
    }

    /// From now on these. The heads of all who sign are made here, in the caller's time.
    ///
    /// # Errors
    /// They cannot be sent in a header: then nothing has changed.
    pub fn renew(&self, credentials: Credentials) -> Result<(), HeaderError> {
        // Held throughout: who subscribes meanwhile gets heads of the new keys.
        let mut signers = unpoisoned(&self.0.signers);
        signers.retain(|s| s.alive.strong_count() > 0);
        let made: Result<Vec<_>, _> = signers.iter().map(|s| s.recipe.heads(&credentials)).collect();
        let made = made?;
        *unpoisoned(&self.0.current) = Arc::new(credentials);
        self.0.renewals.fetch_add(1, Ordering::AcqRel);
        for (signing, heads) in signers.iter().zip(made) {
            while signing.spent.try_recv().is_ok() {}
            while signing.unfetched.try_recv().is_ok() {}
            // There is room, and the other end is here, too.
            let _ = signing.fresh.try_send(heads);
        }
        Ok(())
    }

    /// Heads for one who signs, and where he finds others later.
    pub fn subscribe(&self, recipe: HeadRecipe) -> Result<(Vec<Heads>, HeadsInbox), HeaderError> {
        let (fresh, inbox) = bounded(1);
        let (spent, back) = bounded(1);
        let mut signers = unpoisoned(&self.0.signers);
        signers.retain(|s| s.alive.strong_count() > 0);
        let heads = recipe.heads(&self.get())?;
        let alive = Arc::new(());
        let (unfetched, known) = (inbox.clone(), Arc::downgrade(&alive));
        signers.push(Signing { recipe, fresh, unfetched, spent: back, alive: known });
        Ok((heads, HeadsInbox { fresh: inbox, spent, _alive: alive }))
    }

    /// For whoever renews them: it ends when nobody signs with them any more.
    pub fn downgrade(&self) -> WeakLiveKeys {
        WeakLiveKeys(Arc::downgrade(&self.0))
    }
}

/// Keys that do not stay for its sake.
#[derive(Debug, Clone)]
pub struct WeakLiveKeys(Weak<Shared>);

impl WeakLiveKeys {
    /// `None`: nobody has them any more.
    pub fn upgrade(&self) -> Option<LiveKeys> {
        self.0.upgrade().map(LiveKeys)
    }
}

/// What is behind the lock is whole at any time.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use plimsoll_s3::head::{Action, Body};

    use super::*;

    fn keys(name: &str) -> Credentials {
        let session_token = Some(format!("token-{name}"));
        Credentials { access_key: name.into(), secret_key: "s".into(), session_token }
    }

    fn recipe() -> HeadRecipe {
        let endpoints = ["http://a", "http://b"].map(|e| Endpoint::parse(e).unwrap()).into();
        let options = HeadOptions { bucket: "b".into(), ..HeadOptions::default() };
        HeadRecipe { endpoints, region: "r".into(), options }
    }

    fn signed(heads: &mut [Heads]) -> String {
        let mut out = Vec::new();
        heads
            .iter_mut()
            .for_each(|h| h.write(&mut out, &Action::GetObject, b"k", &Body::NONE, 1_000_000_000));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_signer_finds_the_last_keys_and_only_once() {
        let live = LiveKeys::from(keys("AK1"));
        let (mut mine, inbox) = live.subscribe(recipe()).unwrap();
        let (mut other, others_inbox) = live.subscribe(recipe()).unwrap();
        assert!(signed(&mut mine).contains("Credential=AK1/") && !inbox.fetch(&mut mine));
        live.renew(keys("AK2")).unwrap();
        live.renew(keys("AK3")).unwrap();
        for (heads, inbox) in [(&mut mine, &inbox), (&mut other, &others_inbox)] {
            assert!(inbox.fetch(heads) && !inbox.fetch(heads));
            let text = signed(heads);
            assert_eq!(text.matches("Credential=AK3/").count(), 2, "both endpoints: {text}");
            assert!(text.contains("x-amz-security-token:token-AK3"));
        }
        assert_eq!((live.renewals(), live.get().access_key.as_str()), (2, "AK3"));
    }

    #[test]
    fn who_has_gone_is_forgotten_and_who_comes_late_has_the_new_ones() {
        let live = LiveKeys::from(keys("AK1"));
        drop(live.subscribe(recipe()).unwrap());
        live.renew(keys("AK2")).unwrap();
        assert!(unpoisoned(&live.0.signers).is_empty());
        let (mut late, _inbox) = live.subscribe(recipe()).unwrap();
        assert!(signed(&mut late).contains("Credential=AK2/"));
        let weak = live.downgrade();
        drop(live);
        assert!(weak.upgrade().is_none());
    }
}
