//! The state directory of a fleet: what its keeper left there for the commands of the same user, and for nobody else.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ProcessNote;
use super::guest::GuestNote;
use super::place::{LEASE, LOCK, NOTE, Place, PlaceLock};
use crate::key::random;
use crate::subjects::check_name;
use crate::token::{Pin, Secret, Token, Trust};
use crate::{Broker, BusError, Caller, Identity, NatsBus};

/// What was started on other machines.
pub(super) const LAUNCHED: &str = "launched.json";

/// What the keeper says of itself once its broker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperNote {
    /// Version of this note.
    pub version: u32,
    /// The keeper's process.
    #[serde(flatten)]
    pub process: ProcessNote,
    /// That of its broker.
    pub broker_pid: u32,
    /// What the broker calls itself (`nats-server: v2.9.10`).
    pub broker: String,
    /// Where it can be tried from other machines, `host:port`.
    pub addresses: Vec<String>,
    /// Where it can be tried from this one.
    pub local: String,
    /// SHA-256 of its certificate.
    pub pin: [u8; 32],
    /// The conductor's public key.
    pub conductor: String,
    /// Until when the door that the broker knows of is open, in seconds since 1970.
    pub door_expires_s: u64,
    /// The broker is somebody else's: nobody keeps this fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestNote>,
}

/// By what newcomers get in, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// 32 random bytes.
    pub secret: [u8; 32],
    /// In seconds since 1970.
    pub expires_s: u64,
}

/// A fleet's state directory, whether there is one or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    fleet: String,
    dir: PathBuf,
}

/// A fleet that is up, for who conducts it.
#[derive(Debug)]
pub struct OpenFleet {
    home: Home,
    /// What its keeper says.
    pub note: KeeperNote,
    /// With which orders are signed.
    pub conductor: Identity,
}

/// The fleet is this process's, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lease {
    _lock: PlaceLock,
}

impl Home {
    /// Of a fleet of this name, below the user's own directory of state.
    pub fn of(fleet: &str) -> Result<Self, BusError> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let base = set("XDG_RUNTIME_DIR")
            .or_else(|| set("XDG_STATE_HOME"))
            .or_else(|| set("HOME").map(|home| home.join(".local/state")));
        let none =
            || BusError::refused("there is nowhere to keep a fleet's state", "Set HOME or XDG_RUNTIME_DIR");
        Self::below(&base.ok_or_else(none)?, fleet)
    }

    /// The same below a directory of the caller's choice.
    pub fn below(base: &Path, fleet: &str) -> Result<Self, BusError> {
        check_name("fleet", fleet)?;
        Ok(Self { fleet: fleet.to_owned(), dir: base.join("plimsoll/fleets").join(fleet) })
    }

    /// The fleet's name.
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Makes the directory, for this user alone; one that is there and not ours is refused.
    pub(super) fn make(&self) -> Result<(), BusError> {
        Place::make(&self.dir, &self.fleet).map(drop)
    }

    /// The directory, if there is one; one that is not ours is refused.
    pub(super) fn place(&self) -> Result<Option<Place>, BusError> {
        Place::open(&self.dir, &self.fleet)
    }

    pub(super) fn here(&self) -> Result<Place, BusError> {
        self.place()?.ok_or_else(|| self.not_up())
    }

    /// Removes what a keeper left, and the directories above that only it was in.
    pub(super) fn remove(&self) -> Result<(), BusError> {
        self.place()?.map_or(Ok(()), |place| self.remove_at(&place))
    }

    pub(super) fn remove_at(&self, place: &Place) -> Result<(), BusError> {
        place.remove()?;
        for above in self.dir.ancestors().skip(1).take(2) {
            // One with anything else in it stays.
            let _ = std::fs::remove_dir(above);
        }
        Ok(())
    }

    /// Removes what a keeper left that was killed, its note first. The files of locks stay: somebody may hold one.
    pub(super) fn forget(&self) -> Result<(), BusError> {
        self.here()?.forget()
    }

    fn failed(&self, what: &str, e: &std::io::Error) -> BusError {
        BusError::refused(
            format!("{} {what}: {e}", self.dir.display()),
            "Check its directory and the space there",
        )
    }

    pub(super) fn not_up(&self) -> BusError {
        let start = format!("tart it with `plimsoll fleet up --name {}`", self.fleet);
        let others = self.others();
        let remedy = match others.first() {
            None => format!("S{start}"),
            Some(first) => format!(
                "Up here: {}. Name one (PLIMSOLL_FLEET={first}, --fleet={first}, or --name {first} of `plimsoll fleet`), or s{start}",
                others.join(", ")
            ),
        };
        BusError::refused(format!("no fleet {} is up on this machine", self.fleet), remedy)
    }

    /// Other fleets of this user that are up here, by name.
    fn others(&self) -> Vec<String> {
        const SHOWN: usize = 8;
        let beside =
            self.dir.parent().and_then(|all| std::fs::read_dir(all).ok()).into_iter().flatten().flatten();
        let names = beside.filter_map(|entry| entry.file_name().into_string().ok());
        let other = |fleet: String| {
            check_name("fleet", &fleet).ok()?;
            let home = Self { dir: self.dir.with_file_name(&fleet), fleet };
            (home.fleet != self.fleet && home.is_up().unwrap_or(false)).then_some(home.fleet)
        };
        let mut up: Vec<String> = names.filter_map(other).take(SHOWN).collect();
        up.sort();
        up
    }

    /// Replaces a file as a whole, so that nobody reads half of it.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), BusError> {
        self.here()?.write(name, text)
    }

    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), BusError> {
        // Plain structures of texts and numbers: nothing in them can fail.
        let text = serde_json::to_string(value).expect("a note is plain data");
        self.write(name, &text)
    }

    pub(super) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(&self.here().ok()?.read(name).ok()?).ok()
    }

    /// The private half of a key that the keeper left.
    pub(super) fn identity(&self, name: &str) -> Result<Identity, BusError> {
        let seed = self.here()?.read(name).map_err(|e| self.failed(&format!("has no {name}"), &e))?;
        Identity::from_seed(&seed)
    }

    /// A lock that its holder's end opens, however it ends, for who means to keep it; `None`: somebody holds it. Whoever only looks
    /// holds it for a moment, too: that is waited for.
    pub(super) fn take(&self, name: &str) -> Result<Option<PlaceLock>, BusError> {
        const TRIES: u32 = 25;
        for _ in 1..TRIES {
            if let Some(lock) = self.here()?.lock(name)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.here()?.lock(name)
    }

    /// Whether a keeper lives, or none is needed. A directory that is no fleet's is refused.
    pub fn is_up(&self) -> Result<bool, BusError> {
        let Some(place) = self.place()? else { return Ok(false) };
        Ok(place.is_locked(LOCK) || self.is_guest())
    }

    /// The broker is somebody else's.
    pub(super) fn is_guest(&self) -> bool {
        self.read_json::<KeeperNote>(NOTE).is_some_and(|note| note.guest.is_some())
    }

    /// What the living keeper says of itself.
    pub fn note(&self) -> Result<KeeperNote, BusError> {
        let up = self.is_up()?.then(|| self.read_json(NOTE)).flatten();
        up.ok_or_else(|| self.not_up())
    }

    /// The fleet, for who conducts it.
    pub fn open(&self) -> Result<OpenFleet, BusError> {
        let note = self.note()?;
        Ok(OpenFleet { home: self.clone(), note, conductor: self.identity("conductor.seed")? })
    }

    /// Notes what was started on other machines, to be ended with the fleet; in a form of the caller's. It may be noted after the
    /// fleet's end, too: what could not be ended then.
    pub fn note_launched(&self, text: &str) -> Result<(), BusError> {
        self.make()?;
        self.write(LAUNCHED, text)
    }

    /// Nothing of it is there any more. The directory goes, too, where no fleet is up.
    pub fn forget_launched(&self) -> Result<(), BusError> {
        let Some(place) = self.place()? else { return Ok(()) };
        place.forget_launched()?;
        if self.is_guest() {
            return Ok(());
        }
        // Held, so that no keeper starts meanwhile.
        self.take(LOCK)?.map_or(Ok(()), |_lock| self.remove_at(&place))
    }

    /// What was noted so.
    pub fn launched(&self) -> Option<String> {
        self.here().ok()?.read(LAUNCHED).ok()
    }

    /// The token that newcomers need now.
    pub fn token(&self) -> Result<Token, BusError> {
        let note = self.note()?;
        let Some(door) = self.read_json::<Door>("door.json") else {
            return Err(BusError::refused("the fleet has no door for newcomers", "Start the fleet again"));
        };
        Ok(Token {
            fleet: self.fleet.clone(),
            addresses: note.addresses,
            trust: note.guest.map_or(Trust::Own(Pin(note.pin)), |g| g.trust),
            conductor: note.conductor,
            secret: Secret(door.secret),
            expires_s: door.expires_s,
        })
    }

    /// Closes the door for the old token and opens a new one. Agents that are in stay in.
    pub fn renew(&self, expires_s: u64) -> Result<Token, BusError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let note = self.note()?;
        if note.guest.is_some() {
            // Nobody there would close the door for the old one: agents show for as long as they live that they had it.
            return Err(BusError::refused(
                format!("fleet {} is on a broker of others, where a token cannot be replaced", self.fleet),
                format!(
                    "Start it anew: `plimsoll fleet down --name {0}`, then `plimsoll fleet up --name {0} --nats ... \
                     --token-for TIME`",
                    self.fleet
                ),
            ));
        }
        self.write_json("door.json", &Door { secret: random()?, expires_s })?;
        let until = Instant::now() + PATIENCE;
        while self.note()?.door_expires_s != expires_s {
            if Instant::now() > until {
                return Err(BusError::unreachable(
                    "the fleet's keeper does not answer",
                    "See `plimsoll fleet status`",
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.token()
    }
}

impl OpenFleet {
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// The fleet's name.
    pub fn name(&self) -> &str {
        &self.home.fleet
    }

    /// Where its broker is.
    pub fn broker(&self) -> Broker {
        match &self.note.guest {
            Some(guest) => Broker { addresses: self.note.addresses.clone(), trust: guest.trust },
            None => {
                Broker { addresses: vec![self.note.local.clone()], trust: Trust::Own(Pin(self.note.pin)) }
            }
        }
    }

    /// A connection as its conductor.
    pub fn connect(&self, name: &str) -> Result<NatsBus, BusError> {
        match self.login()? {
            Some(login) => {
                NatsBus::connect_as(&self.broker(), Caller::Guest(&login, &Identity::random()), name)
            }
            None => NatsBus::connect(&self.broker(), &self.conductor, name),
        }
    }

    /// Takes the fleet for `what` (the command, in words); one that another has is refused by that one's words.
    pub fn lease(&self, what: &str) -> Result<Lease, BusError> {
        let Some(lock) = self.home.take(LEASE)? else {
            let holder = self.holder().unwrap_or_else(|| "another command".to_owned());
            return Err(BusError::refused(
                format!("fleet {} is in use by {holder}", self.name()),
                "Wait until that has ended, or start another fleet with --name",
            ));
        };
        let text = format!("{what} (process {})", std::process::id());
        // Only for the words of a refusal.
        let mut file = &lock.0;
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        Ok(Lease { _lock: lock })
    }

    /// Who has the lease, in words; `None` where nobody has.
    pub fn holder(&self) -> Option<String> {
        let place = self.home.here().ok()?;
        if !place.is_locked(LEASE) {
            return None;
        }
        let text = place.read(LEASE).ok()?;
        Some(if text.is_empty() { "another command".to_owned() } else { text })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let base = tempfile::tempdir().unwrap();
        let home = Home::below(base.path(), "demo").unwrap();
        home.make().unwrap();
        (base, home)
    }

    fn fleet(home: &Home) -> OpenFleet {
        let conductor = Identity::random();
        let note = KeeperNote {
            version: 1,
            process: ProcessNote::own(),
            broker_pid: 2,
            broker: String::new(),
            addresses: vec!["127.0.0.1:1".into()],
            local: "127.0.0.1:1".into(),
            pin: [0; 32],
            conductor: conductor.public(),
            door_expires_s: 1,
            guest: None,
        };
        OpenFleet { home: home.clone(), note, conductor }
    }

    #[test]
    fn it_is_for_one_user_alone() {
        let (_base, home) = home();
        home.write("conductor.seed", "secret").unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(home.dir()), mode(&home.file("conductor.seed"))), (0o700, 0o600));
        std::fs::set_permissions(home.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(home.make().unwrap_err().to_string().contains("open to others"));
    }

    #[test]
    fn a_fleet_is_one_conductors_at_a_time() {
        let (_base, home) = home();
        let (one, two) = (fleet(&home), fleet(&home));
        assert_eq!(one.holder(), None);
        let lease = one.lease("plimsoll object get").unwrap();
        let e = two.lease("plimsoll block").unwrap_err().to_string();
        assert!(e.contains("fleet demo is in use by plimsoll object get (process "), "{e}");
        assert!(two.holder().unwrap().starts_with("plimsoll object get"));
        drop(lease);
        two.lease("plimsoll block").unwrap();
    }

    #[test]
    fn a_token_that_nobody_would_refuse_is_not_said_to_be_replaced() {
        let (_base, home) = home();
        let guest = GuestNote { url: "nats://b:4222".into(), trust: Trust::Plain, creds: None };
        home.write_json(NOTE, &KeeperNote { guest: Some(guest), ..fleet(&home).note }).unwrap();
        home.write_json("door.json", &Door { secret: [7; 32], expires_s: 1 }).unwrap();
        let e = home.renew(99).unwrap_err().to_string();
        assert!(e.contains("fleet down --name demo") && e.contains("--token-for"), "{e}");
        assert_eq!((home.token().unwrap().secret.0, home.token().unwrap().expires_s), ([7; 32], 1));
    }

    #[test]
    fn what_was_started_elsewhere_outlives_a_keeper_that_was_killed() {
        let (_base, home) = home();
        home.note_launched("one").unwrap();
        home.forget().unwrap();
        assert_eq!(home.launched().as_deref(), Some("one"));
        home.remove().unwrap();
        assert_eq!(home.launched(), None);
        home.note_launched("two").unwrap();
        assert!(!home.is_up().unwrap(), "a note is no fleet");
        let lock = home.take(LOCK).unwrap().unwrap();
        home.forget_launched().unwrap();
        assert!(home.launched().is_none() && home.dir().exists(), "somebody's fleet is up");
        drop(lock);
        home.forget_launched().unwrap();
        home.forget_launched().unwrap();
        assert!(!home.dir().exists());
    }

    #[test]
    fn without_a_living_keeper_there_is_no_fleet() {
        let (base, home) = home();
        home.write_json("keeper.json", &fleet(&home).note).unwrap();
        let e = home.open().unwrap_err().to_string();
        assert!(e.contains("no fleet demo is up") && e.contains("plimsoll fleet up --name demo"), "{e}");
        let lock = home.take(LOCK).unwrap().unwrap();
        assert_eq!(home.note().unwrap().broker_pid, 2);
        let other = Home::below(base.path(), "other").unwrap().note().unwrap_err().to_string();
        assert!(other.contains("Up here: demo. Name one (PLIMSOLL_FLEET=demo, --fleet=demo"), "{other}");
        assert!(other.ends_with("or start it with `plimsoll fleet up --name other`"), "{other}");
        drop(lock);
        home.remove().unwrap();
        home.remove().unwrap();
        assert!(!home.is_up().unwrap());
    }
}
