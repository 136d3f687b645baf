//! A fleet on a broker that was there before: nothing is started and nobody keeps it. Its state is a directory, as that of any fleet;
//! what keeps strangers out is the broker's owner's.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ProcessNote;
use super::home::{Door, Home, KeeperNote, OpenFleet};
use super::place::NOTE;
use crate::key::random;
use crate::subjects::Subjects;
use crate::token::{Pin, Trust};
use crate::{Broker, Bus as _, BusError, Caller, Identity, LARGEST_BYTES, Login, NatsBus};

/// With what a fleet is started there.
#[derive(Debug, Clone)]
pub struct GuestWish {
    /// `nats://host:port` or `tls://host:port`, several after commas.
    pub url: String,
    /// File of credentials; none: as the environment says.
    pub creds: Option<PathBuf>,
    /// A certificate that the broker shows, its own or its authority's, in PEM; none: what the machine trusts.
    pub authority_pem: Option<Vec<u8>>,
    /// Until when machines can join, in seconds since 1970.
    pub expires_s: u64,
}

/// What is kept of it. Passwords are not: they are in the environment of who uses the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNote {
    /// Without anything secret.
    pub url: String,
    /// By what the broker is known.
    pub trust: Trust,
    /// File of credentials.
    pub creds: Option<PathBuf>,
}

/// Reads a URL: addresses, and whether they are to be spoken to in clear.
fn read_url(url: &str) -> Result<(Vec<String>, bool), BusError> {
    const REMEDY: &str = "Give tls://HOST:PORT, or nats://HOST:PORT for one without encryption";
    let mut addresses = Vec::new();
    let mut plain = Vec::new();
    for one in url.split(',').map(str::trim) {
        if one.contains('@') {
            return Err(BusError::refused(
                "--nats: the URL contains a user name or password, which all users of a machine can read",
                "Set NATS_USER and NATS_PASSWORD instead",
            ));
        }
        let (scheme, rest) = one.split_once("://").unwrap_or(("", one));
        let host = rest.trim_end_matches('/');
        if !["nats", "tls"].contains(&scheme) || host.is_empty() || host.contains('/') {
            return Err(BusError::refused(format!("--nats: '{one}' is no URL of a broker"), REMEDY));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        addresses.push(if has_port { host.to_owned() } else { format!("{host}:4222") });
        plain.push(scheme == "nats");
    }
    if plain.iter().any(|p| *p != plain[0]) {
        return Err(BusError::refused("--nats: some of the URLs are encrypted and some are not", REMEDY));
    }
    Ok((addresses, plain[0]))
}

fn trust_of(plain: bool, authority_pem: Option<&[u8]>) -> Result<Trust, BusError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    match (plain, authority_pem) {
        (true, None) => Ok(Trust::Plain),
        (true, Some(_)) => Err(BusError::refused(
            "--ca is for an encrypted connection, and --nats names none",
            "Give tls://HOST:PORT",
        )),
        (false, None) => Ok(Trust::System),
        (false, Some(pem)) => match CertificateDer::from_pem_slice(pem) {
            Ok(certificate) => Ok(Trust::Shown(Pin::of(&certificate))),
            Err(e) => {
                Err(BusError::refused(format!("--ca: no certificate can be read: {e}"), "Give one in PEM"))
            }
        },
    }
}

/// Tries the broker, and leaves what other commands need to know. What was left of a fleet of this name by a keeper that was killed goes.
pub fn be_guest(home: &Home, wish: &GuestWish, env: &dyn Fn(&str) -> Option<String>) -> Result<(), BusError> {
    let (addresses, plain) = read_url(&wish.url)?;
    let trust = trust_of(plain, wish.authority_pem.as_deref())?;
    // Commands are called from anywhere.
    let absolute = |p: &PathBuf| std::path::absolute(p).unwrap_or_else(|_| p.clone());
    let creds = wish.creds.as_ref().map(absolute);
    let login = Login::find(creds.as_deref(), env)?;
    let conductor = Identity::random();
    let broker = Broker { addresses: addresses.clone(), trust };
    let bus = NatsBus::connect_as(&broker, Caller::Guest(&login, &conductor), "plimsoll conductor")?;
    allowed(&bus, &Subjects::of(home.fleet())?)?;
    home.make()?;
    if home.is_up()? {
        return Err(super::already_up(home));
    }
    let write = || {
        home.forget()?;
        home.write("conductor.seed", conductor.seed())?;
        home.write_json("door.json", &Door { secret: random()?, expires_s: wish.expires_s })?;
        let note = KeeperNote {
            version: 1,
            process: ProcessNote::own(),
            broker_pid: 0,
            broker: bus.server(),
            local: addresses.join(","),
            addresses: addresses.clone(),
            pin: [0; 32],
            conductor: conductor.public(),
            door_expires_s: wish.expires_s,
            guest: Some(GuestNote { url: wish.url.clone(), trust, creds: creds.clone() }),
        };
        home.write_json(NOTE, &note)
    };
    write().inspect_err(|_| drop(home.remove()))
}

/// Whether a conductor can speak there at all, before anybody relies on it.
fn allowed(bus: &NatsBus, subjects: &Subjects) -> Result<(), BusError> {
    if bus.largest() < LARGEST_BYTES {
        return Err(BusError::refused(
            format!(
                "the broker takes messages of {} bytes at most, and a fleet needs {LARGEST_BYTES}",
                bus.largest()
            ),
            "Its owner has to raise max_payload",
        ));
    }
    let user = subjects.of_conductor();
    let publish: Vec<String> = user.publish.iter().map(|s| s.replace('*', "nobody")).collect();
    bus.check_allowed(&publish, &user.subscribe)
}

impl OpenFleet {
    /// As whom one connects there; none: the broker is the fleet's own.
    pub(super) fn login(&self) -> Result<Option<Login>, BusError> {
        let Some(guest) = &self.note.guest else { return Ok(None) };
        let env = |name: &str| std::env::var(name).ok();
        Login::find(guest.creds.as_deref().map(Path::new), &env).map(Some)
    }

    /// The last word to all agents of a fleet that nobody keeps.
    pub(super) fn dismiss(&self) -> Result<(), BusError> {
        let bus = self.connect("plimsoll fleet down")?;
        bus.publish(&Subjects::of(self.name())?.over(), b"over")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_secrets_in_them_refused() {
        let (addresses, plain) = read_url("tls://a.example.net,tls://b:5222/").unwrap();
        assert_eq!((addresses, plain), (vec!["a.example.net:4222".to_owned(), "b:5222".to_owned()], false));
        assert!(read_url("nats://10.0.0.7:4222").unwrap().1);
        for bad in
            ["nats://me:hunter2@h:4222", "h:4222", "http://h", "tls://", "nats://a,tls://b", "tls://a/b"]
        {
            let e = read_url(bad).unwrap_err().to_string();
            assert!(e.contains("--nats") && !e.contains("hunter2"), "{e}");
        }
    }

    #[test]
    fn a_certificate_is_for_encrypted_connections() {
        assert_eq!(trust_of(true, None).unwrap(), Trust::Plain);
        assert_eq!(trust_of(false, None).unwrap(), Trust::System);
        assert!(trust_of(true, Some(b"x")).is_err() && trust_of(false, Some(b"x")).is_err());
    }
}
