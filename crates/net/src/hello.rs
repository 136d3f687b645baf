//! The first bytes of a connection: what it is, and the proof that whoever opened it was told its key. Nothing else is read from a
//! stranger, and what is read has a length that is known before.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::secret::{CODE, NetKey, random};

/// Name and version of what follows.
const MAGIC: &[u8; 16] = b"plimsoll-net/1\r\n";
const NONCE: usize = 16;
/// Of a [`Hello`] on the wire.
pub const HELLO: usize = MAGIC.len() + 1 + 4 + 2 + NONCE + CODE;
/// Of the answer to it.
const WELCOME: usize = NONCE + CODE;
/// A peer has so long for its first bytes, all of them together, and for the answer to ours.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Orders and answers of two machines without a fleet.
    Control,
    /// One stream of data.
    Bulk,
    /// Questions and answers beside the data.
    Ping,
}

/// What whoever opens a connection says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// What it is for.
    pub purpose: Purpose,
    /// Of which lane; 0 for control.
    pub lane: u32,
    /// Of that lane's streams; 0 for the others.
    pub stream: u16,
    nonce: [u8; NONCE],
}

/// A hello that was read and is not proved yet: whose key it needs is what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// What it says.
    pub hello: Hello,
    code: [u8; CODE],
}

impl Hello {
    /// A new one.
    pub fn new(purpose: Purpose, lane: u32, stream: u16) -> Self {
        Self { purpose, lane, stream, nonce: random() }
    }

    fn body(&self) -> [u8; HELLO - CODE] {
        let mut out = [0; HELLO - CODE];
        out[..16].copy_from_slice(MAGIC);
        out[16] = match self.purpose {
            Purpose::Control => 0,
            Purpose::Bulk => 1,
            Purpose::Ping => 2,
        };
        out[17..21].copy_from_slice(&self.lane.to_le_bytes());
        out[21..23].copy_from_slice(&self.stream.to_le_bytes());
        out[23..].copy_from_slice(&self.nonce);
        out
    }

    /// On the wire.
    pub fn sealed(&self, key: &NetKey) -> [u8; HELLO] {
        let (mut out, body) = ([0; HELLO], self.body());
        out[..body.len()].copy_from_slice(&body);
        out[body.len()..].copy_from_slice(&key.code(&[b"hello", &body]));
        out
    }

    /// What a stranger's first bytes claim; nothing where they are none of ours.
    pub fn read(bytes: &[u8]) -> Option<Claimed> {
        let bytes: &[u8; HELLO] = bytes.try_into().ok()?;
        if &bytes[..16] != MAGIC {
            return None;
        }
        let purpose = match bytes[16] {
            0 => Purpose::Control,
            1 => Purpose::Bulk,
            2 => Purpose::Ping,
            _ => return None,
        };
        let lane = u32::from_le_bytes(bytes[17..21].try_into().ok()?);
        let stream = u16::from_le_bytes(bytes[21..23].try_into().ok()?);
        let nonce = bytes[23..HELLO - CODE].try_into().ok()?;
        let code = bytes[HELLO - CODE..].try_into().ok()?;
        Some(Claimed { hello: Self { purpose, lane, stream, nonce }, code })
    }
}

impl Claimed {
    /// Whether it was said by somebody with the key.
    pub fn is_proved(&self, key: &NetKey) -> bool {
        key.is_proved(&[b"hello", &self.hello.body()], &self.code)
    }
}

/// Reads all of it, by then: a peer that says one byte after the other has no longer than one that says nothing.
fn read_by(stream: &mut TcpStream, mut into: &mut [u8], until: Instant) -> io::Result<()> {
    while !into.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its first bytes did not come in time"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(into) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
            }
            Ok(n) => into = &mut into[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Looked at above: it wakes a little early on some systems.
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(e) => return Err(e),
        }
    }
    stream.set_read_timeout(Some(PATIENCE))
}

/// Opens a connection that is there: says who we are, and has the other side prove that it knows the key, too. Gives the key of the
/// session. `until`: no later, and no longer than [`PATIENCE`].
pub fn introduce(stream: &mut TcpStream, hello: &Hello, key: &NetKey, until: Instant) -> io::Result<NetKey> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&hello.sealed(key))?;
    let mut answer = [0; WELCOME];
    read_by(stream, &mut answer, until.min(Instant::now() + PATIENCE)).map_err(|e| match e.kind() {
        // It says nothing to strangers.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the other side closed the connection: it is gone, or the key is not the one that it gave, or was used before",
        ),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            "the other side does not answer as `plimsoll net serve` does",
        ),
        _ => e,
    })?;
    let (nonce, code) = answer.split_at(NONCE);
    if !key.is_proved(&[b"welcome", &hello.nonce, nonce], code) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other side does not know the key"));
    }
    Ok(key.derived(&[b"session", &hello.nonce, nonce]))
}

/// Reads what a stranger says first, by then.
pub fn hear(stream: &mut TcpStream, until: Instant) -> io::Result<Claimed> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut bytes = [0; HELLO];
    read_by(stream, &mut bytes, until)?;
    Hello::read(&bytes).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "its first bytes are none of a network test")
    })
}

/// Answers one whose claim was proved. Gives the key of the session.
pub fn welcome(stream: &mut TcpStream, claimed: &Claimed, key: &NetKey) -> io::Result<NetKey> {
    let nonce: [u8; NONCE] = random();
    let code = key.code(&[b"welcome", &claimed.hello.nonce, &nonce]);
    let mut answer = [0; WELCOME];
    answer[..NONCE].copy_from_slice(&nonce);
    answer[NONCE..].copy_from_slice(&code);
    stream.write_all(&answer)?;
    Ok(key.derived(&[b"session", &claimed.hello.nonce, &nonce]))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_sides_prove_the_key_and_share_a_session() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let key = NetKey::random();
        let (served, address) = (key.clone(), listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let claimed = hear(&mut stream, soon()).unwrap();
            assert!(claimed.is_proved(&served) && !claimed.is_proved(&NetKey::random()));
            assert_eq!(
                (claimed.hello.purpose, claimed.hello.lane, claimed.hello.stream),
                (Purpose::Bulk, 7, 3)
            );
            welcome(&mut stream, &claimed, &served).unwrap()
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let session = introduce(&mut stream, &Hello::new(Purpose::Bulk, 7, 3), &key, soon()).unwrap();
        assert_eq!(session, server.join().unwrap());
        assert_ne!(session, key);
    }

    fn soon() -> Instant {
        Instant::now() + PATIENCE
    }

    #[test]
    fn who_says_one_byte_after_the_other_has_no_longer_than_who_says_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        // Each byte comes long before the deadline, and all of them never do.
        let over = std::sync::atomic::AtomicBool::new(false);
        let drips = || {
            let hello = Hello::new(Purpose::Control, 0, 0).sealed(&NetKey::random());
            for byte in &hello[..HELLO - 1] {
                if over.load(std::sync::atomic::Ordering::Relaxed) || slow.write_all(&[*byte]).is_err() {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(40));
            }
            true
        };
        std::thread::scope(|scope| {
            let dripping = scope.spawn(drips);
            let e = hear(&mut stream, Instant::now() + Duration::from_millis(400)).unwrap_err();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(e.kind(), io::ErrorKind::TimedOut, "{e}");
            assert!(!dripping.join().unwrap(), "it was heard to its end");
        });
    }

    #[test]
    fn a_server_that_does_not_know_the_key_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let claimed = hear(&mut stream, soon()).unwrap();
            welcome(&mut stream, &claimed, &NetKey::random()).unwrap();
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let hello = Hello::new(Purpose::Control, 0, 0);
        let e = introduce(&mut stream, &hello, &NetKey::random(), soon()).unwrap_err();
        assert!(e.to_string().contains("does not know the key"), "{e}");
        server.join().unwrap();
    }

    proptest! {
        #[test]
        fn strangers_bytes_prove_nothing(mut bytes: Vec<u8>, at in 0..HELLO, bit in 0u8..8) {
            let key = NetKey::random();
            prop_assert!(Hello::read(&bytes).is_none_or(|c| !c.is_proved(&key)));
            bytes = Hello::new(Purpose::Ping, 1, 2).sealed(&key).to_vec();
            prop_assert!(Hello::read(&bytes).unwrap().is_proved(&key));
            bytes[at] ^= 1 << bit;
            prop_assert!(Hello::read(&bytes).is_none_or(|c| !c.is_proved(&key)), "one bit is another hello");
        }
    }
}
