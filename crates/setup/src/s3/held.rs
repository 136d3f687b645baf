//! Keys that a process holds for a target: found once, renewed ahead of their time while somebody signs with them, and judged when
//! that does not succeed.
//!
//! New keys are asked for 5 to 10 minutes before the old ones expire, each process at a time of its own, so that a thousand agents do
//! not ask at once; of keys that live for less than 20 minutes, in the last half or quarter of their time. Until there are new ones,
//! the old ones are used.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_engine::target::s3::LiveKeys;
use plimsoll_model::text::keep_secret;
use plimsoll_s3::Credentials;
use plimsoll_s3::credentials::{Renewal, Resolved, date_of, resolve};

use super::outside::ThisMachine;
use crate::error::SetupError;

/// How long ahead keys are renewed: so much at the least, and at the most twice that.
const AHEAD: Duration = Duration::from_secs(300);
/// And never more of their time than from a quarter to a half, from the end.
const LEAST_SHARE: f64 = 0.25;
/// How often it is looked whether anybody still signs with them.
const LOOK: Duration = Duration::from_millis(500);
/// What is waited at the most, and at the least, before new keys are asked for again.
const AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_millis(500));

/// What a worker's end says of keys that expired begins with it; a judgement finds it there.
pub const EXPIRED_KEYS: &str = "expired credentials";

/// Keys, with all that is known of them.
#[derive(Debug)]
pub struct HeldKeys {
    live: LiveKeys,
    /// Of a region and an endpoint beside them, where they were found.
    pub(crate) region: Option<String>,
    pub(super) endpoint_url: Option<String>,
    state: Mutex<KeyState>,
}

/// What changes with a renewal.
#[derive(Debug, Clone)]
struct KeyState {
    source: String,
    expires_unix_s: Option<u64>,
    renewal: Renewal,
    renewed: u32,
    /// Why the last attempt came to nothing.
    trouble: Option<String>,
}

/// Of a process: those that are in use, by the profile that was named.
static IN_USE: Mutex<Vec<(Option<String>, Weak<HeldKeys>)>> = Mutex::new(Vec::new());

impl HeldKeys {
    /// From where the AWS tools look. Who asks again while they are in use gets the same ones.
    pub(crate) fn found_here(profile: Option<&str>) -> Result<Arc<Self>, SetupError> {
        let in_use = |all: &mut Vec<(Option<String>, Weak<Self>)>| {
            all.retain(|(_, held)| held.strong_count() > 0);
            all.iter().find(|(p, _)| p.as_deref() == profile).and_then(|(_, held)| held.upgrade())
        };
        if let Some(held) = in_use(&mut unpoisoned(&IN_USE)) {
            return Ok(held);
        }
        let held = Arc::new(Self::of(look(profile)?));
        let mut all = unpoisoned(&IN_USE);
        // Somebody else may have been faster.
        if let Some(other) = in_use(&mut all) {
            return Ok(other);
        }
        all.push((profile.map(str::to_owned), Arc::downgrade(&held)));
        drop(all);
        held.keep_fresh(profile.map(str::to_owned));
        Ok(held)
    }

    /// Somebody else's: they are what they are until they expire.
    pub(super) fn given(credentials: Credentials, expires_unix_s: Option<u64>) -> Arc<Self> {
        Arc::new(Self::of(Resolved {
            credentials,
            source: "sent by the conductor".into(),
            region: None,
            endpoint_url: None,
            expires_unix_s,
            renewal: Renewal::Never,
        }))
    }

    fn of(found: Resolved) -> Self {
        hide(&found.credentials);
        let Resolved { credentials, source, region, endpoint_url, expires_unix_s, renewal } = found;
        let state = KeyState { source, expires_unix_s, renewal, renewed: 0, trouble: None };
        Self { live: LiveKeys::from(credentials), region, endpoint_url, state: Mutex::new(state) }
    }

    /// What requests are signed with.
    pub fn live(&self) -> &LiveKeys {
        &self.live
    }

    /// When these expire, Unix seconds.
    pub fn expires_unix_s(&self) -> Option<u64> {
        unpoisoned(&self.state).expires_unix_s
    }

    /// What a report says of them: where they are from, and how long they last. Nothing secret.
    pub fn in_words(&self) -> String {
        let state = unpoisoned(&self.state).clone();
        let mut text = state.source;
        if state.expires_unix_s.is_some() {
            text.push_str(match state.renewal {
                Renewal::Never => ", temporary",
                Renewal::Always | Renewal::Until(_) => ", temporary and renewed",
            });
        }
        text
    }

    /// Why these do not last for a load of this length that begins now, if it is known that they do not.
    pub fn too_short_for(&self, load: Duration) -> Option<String> {
        let state = unpoisoned(&self.state).clone();
        let expires = state.expires_unix_s?;
        let (last, what) = match state.renewal {
            Renewal::Always => return None,
            Renewal::Never => (expires, "and nothing here can renew them"),
            Renewal::Until(until) => (until.max(expires), "and what they are renewed with expires, too"),
        };
        let end = since_epoch().saturating_add(load).as_secs();
        (end > last).then(|| {
            format!(
                "the credentials (from {}) expire at {}, before this load would end, {what}: all requests after that would be refused",
                state.source,
                date_of(last)
            )
        })
    }

    /// That they have expired by now and were not renewed, and why not.
    pub fn expired(&self) -> Option<String> {
        let state = unpoisoned(&self.state).clone();
        let at = state.expires_unix_s.filter(|at| since_epoch().as_secs() >= *at)?;
        let why = match (state.trouble, state.renewal) {
            (Some(trouble), _) => format!("they could not be renewed: {trouble}"),
            (None, Renewal::Never) => "nothing here can renew them".into(),
            (None, _) => "new ones did not come in time".into(),
        };
        Some(format!("The credentials (from {}) expired at {}; {why}.", state.source, date_of(at)))
    }

    /// Renews them for as long as somebody has them.
    fn keep_fresh(self: &Arc<Self>, profile: Option<String>) {
        let state = unpoisoned(&self.state).clone();
        let (Some(expires), false) = (state.expires_unix_s, state.renewal == Renewal::Never) else { return };
        let weak = Arc::downgrade(self);
        let mut due = due_at(since_epoch(), Duration::from_secs(expires));
        let body = move || {
            while wait_until(due, &weak) {
                // It may take its time: nobody is kept from ending meanwhile.
                let found = look(profile.as_deref());
                let Some(held) = weak.upgrade() else { return };
                due = held.take(found);
            }
        };
        if let Err(e) = std::thread::Builder::new().name("renews-keys".into()).spawn(body) {
            unpoisoned(&self.state).trouble = Some(format!("cannot start a thread: {e}"));
        }
    }

    /// Takes what was found, and says when it is looked again.
    fn take(&self, found: Result<Resolved, SetupError>) -> Duration {
        let now = since_epoch();
        let mut state = unpoisoned(&self.state);
        let left = Duration::from_secs(state.expires_unix_s.unwrap_or(0)).saturating_sub(now);
        let again = now + (left / 10).clamp(AGAIN.1, AGAIN.0);
        let found = match found {
            Ok(found) => found,
            Err(e) => {
                state.trouble = Some(e.to_string().trim_end_matches('.').to_owned());
                return again;
            }
        };
        // An instance gives the same keys until five minutes before they expire.
        if found.expires_unix_s <= state.expires_unix_s && found.expires_unix_s.is_some() {
            return again;
        }
        hide(&found.credentials);
        if let Err(e) = self.live.renew(found.credentials) {
            state.trouble = Some(e.to_string());
            return again;
        }
        state.trouble = None;
        state.renewed += 1;
        (state.source, state.expires_unix_s, state.renewal) =
            (found.source, found.expires_unix_s, found.renewal);
        match found.expires_unix_s {
            Some(expires) => due_at(now, Duration::from_secs(expires)),
            None => Duration::MAX,
        }
    }
}

fn look(profile: Option<&str>) -> Result<Resolved, SetupError> {
    resolve(&ThisMachine, profile).map_err(|e| {
        let (problem, remedy) = e.problem_and_remedy();
        match remedy.is_empty() {
            false => SetupError::input(problem, super::access::capital(&remedy)),
            true => SetupError::input(problem, "A secret is never taken from the command line or the plan"),
        }
    })
}

/// A shorter id, or one in other letters, may be a word that names something else, too. (A choice: AWS's have 20.)
const LONG_ID: usize = 16;

/// A server may repeat what it was sent. The id is no secret, and yet nobody's who reads a report.
fn hide(credentials: &Credentials) {
    let id = &credentials.access_key;
    if id.len() >= LONG_ID && id.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) {
        keep_secret(id);
    }
    keep_secret(&credentials.secret_key);
    credentials.session_token.iter().for_each(|token| keep_secret(token));
}

/// When keys that come now and expire then are renewed.
fn due_at(now: Duration, expires: Duration) -> Duration {
    expires.saturating_sub(ahead(expires.saturating_sub(now), by_chance()))
}

/// `chance`: from 0 to 1.
fn ahead(lifetime: Duration, chance: f64) -> Duration {
    AHEAD.mul_f64(1.0 + chance).min(lifetime.mul_f64(LEAST_SHARE * (1.0 + chance)))
}

/// From 0 to 1, in each process another.
fn by_chance() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

/// False: nobody has the keys any more.
fn wait_until(due: Duration, held: &Weak<HeldKeys>) -> bool {
    loop {
        if held.strong_count() == 0 {
            return false;
        }
        let left = due.saturating_sub(since_epoch());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// The wall clock: keys expire by it.
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, expires_unix_s: Option<u64>, renewal: Renewal) -> Resolved {
        let credentials =
            Credentials { access_key: name.into(), secret_key: "secret-of-test".into(), session_token: None };
        Resolved {
            credentials,
            source: "a test".into(),
            region: None,
            endpoint_url: None,
            expires_unix_s,
            renewal,
        }
    }

    #[test]
    fn an_id_that_names_nothing_else_is_left_out_of_what_servers_say() {
        let said = |id: &str| {
            HeldKeys::of(found(id, None, Renewal::Never));
            plimsoll_model::text::said(&format!("{id} may not do this"))
        };
        assert_eq!(said("AKIAHELDKEYSTEST1234"), "(secret left out) may not do this");
        assert_eq!(said("held-keys-admin-user"), "held-keys-admin-user may not do this");
    }

    #[test]
    fn five_to_ten_minutes_ahead_and_short_ones_in_their_last_half_or_quarter() {
        let s = Duration::from_secs;
        assert_eq!((ahead(s(3600), 0.0), ahead(s(3600), 1.0)), (s(300), s(600)));
        assert_eq!((ahead(s(120), 0.0), ahead(s(120), 1.0)), (s(30), s(60)));
        assert_eq!((ahead(s(1200), 0.0), ahead(s(1200), 1.0)), (s(300), s(600)));
        assert_eq!(due_at(s(100), s(50)), s(50), "expired ones at once");
    }

    #[test]
    fn new_keys_are_taken_and_the_same_ones_or_none_leave_the_old() {
        let now = since_epoch().as_secs();
        let held = HeldKeys::of(found("AK1", Some(now + 100), Renewal::Always));
        let same = held.take(Ok(found("AK1", Some(now + 100), Renewal::Always)));
        assert!(same.as_secs().abs_diff(now + 10) <= 1, "again after a tenth of what is left");
        held.take(Err(SetupError::input("no", "more")));
        assert_eq!((held.live.renewals(), held.live.get().access_key.as_str()), (0, "AK1"));
        let due = held.take(Ok(found("AK2", Some(now + 7200), Renewal::Always)));
        assert_eq!((held.live.renewals(), held.live.get().access_key.as_str()), (1, "AK2"));
        assert!((now + 6600..=now + 6901).contains(&due.as_secs()));
        assert_eq!(held.expired(), None);
    }

    #[test]
    fn who_cannot_be_renewed_is_told_before_and_judged_after() {
        let now = since_epoch().as_secs();
        let day = Duration::from_secs(86_400);
        let held = HeldKeys::of(found("AK1", Some(now + 60), Renewal::Never));
        assert!(held.too_short_for(Duration::from_secs(10)).is_none());
        let text = held.too_short_for(day).unwrap();
        assert!(text.contains(&date_of(now + 60)) && text.contains("nothing here can renew them"), "{text}");
        assert!(HeldKeys::of(found("A", Some(now + 60), Renewal::Always)).too_short_for(day).is_none());
        assert!(HeldKeys::of(found("A", None, Renewal::Never)).too_short_for(day).is_none());
        let session = HeldKeys::of(found("A", Some(now + 60), Renewal::Until(now + 3600)));
        assert!(session.too_short_for(day).unwrap().contains(&date_of(now + 3600)));
        let over = HeldKeys::of(found("A", Some(now - 1), Renewal::Never));
        assert!(over.expired().unwrap().contains("nothing here can renew them"));
    }
}
