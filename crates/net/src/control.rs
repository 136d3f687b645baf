//! Orders and answers between two machines without a fleet: one connection, each message with a code that only somebody with the
//! session's key can make, counted, so that none can be said twice.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::secret::{CODE, NetKey};

/// The longest that a host has to tell, by far.
const LONGEST: usize = 64 << 20;
/// The longest message is taken within so long, over a link that can be tested at all. (A choice.)
const TAKES: Duration = Duration::from_secs(60);
/// Whether to go on waiting is asked so often.
const LOOK: Duration = Duration::from_millis(50);

/// One end of it.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    key: NetKey,
    /// This end opened it.
    opened: bool,
    said: u64,
    heard: u64,
}

/// What a message is of: who said it, and the how manieth of theirs it is.
fn place(opener: bool, number: u64) -> [u8; 9] {
    let mut out = [u8::from(opener); 9];
    out[1..].copy_from_slice(&number.to_le_bytes());
    out
}

impl Session {
    /// Over a connection whose two sides have proved themselves.
    pub fn new(stream: TcpStream, key: NetKey, opened: bool) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        Ok(Self { stream, key, opened, said: 0, heard: 0 })
    }

    /// Says something: to one who takes it within [`TAKES`], or until `stop`.
    pub fn say<T: Serialize>(&mut self, what: &T, stop: &AtomicBool) -> io::Result<()> {
        let body = serde_json::to_vec(what).expect("plain data is always JSON");
        let code = self.key.code(&[&place(self.opened, self.said), &body]);
        self.said += 1;
        let mut message = Vec::with_capacity(4 + CODE + body.len());
        message.extend_from_slice(&(body.len() as u32).to_le_bytes());
        message.extend_from_slice(&code);
        message.extend_from_slice(&body);
        self.pour(&message, Instant::now() + TAKES, stop)
    }

    fn pour(&mut self, mut from: &[u8], until: Instant, stop: &AtomicBool) -> io::Result<()> {
        while !from.is_empty() {
            match self.stream.write(from) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::WriteZero, "it closed the connection"));
                }
                Ok(n) => from = &from[n..],
                Err(e) if is_no_matter(&e) => {}
                Err(e) => return Err(e),
            }
            // Also of one who takes a byte now and then.
            go_on(from.is_empty(), until, stop, "it did not take in time what was said to it")?;
        }
        Ok(())
    }

    /// Waits for what the other end says: so long, or until `stop`.
    pub fn hear<T: DeserializeOwned>(&mut self, patience: Duration, stop: &AtomicBool) -> io::Result<T> {
        self.hear_up_to(LONGEST, patience, stop)
    }

    /// The same of one who may not have the key of this session, and gets room for `most` bytes.
    pub fn hear_up_to<T: DeserializeOwned>(
        &mut self,
        most: usize,
        patience: Duration,
        stop: &AtomicBool,
    ) -> io::Result<T> {
        let until = Instant::now() + patience;
        let mut head = [0; 4 + CODE];
        self.fill(&mut head, until, stop)?;
        let (length, code) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        if length > most {
            return Err(wrong("a message is longer than any of a network test"));
        }
        // Room is made as it comes: a length alone costs nothing.
        let mut body = Vec::new();
        while body.len() < length {
            let from = body.len();
            body.resize((from + (1 << 20)).min(length), 0);
            self.fill(&mut body[from..], until, stop)?;
        }
        if !self.key.is_proved(&[&place(!self.opened, self.heard), &body], code) {
            return Err(wrong("a message is not by the other side of this test"));
        }
        self.heard += 1;
        serde_json::from_slice(&body).map_err(|e| wrong(&format!("a message cannot be read: {e}")))
    }

    fn fill(&mut self, mut into: &mut [u8], until: Instant, stop: &AtomicBool) -> io::Result<()> {
        while !into.is_empty() {
            match self.stream.read(into) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
                }
                Ok(n) => into = &mut into[n..],
                Err(e) if is_no_matter(&e) => {}
                Err(e) => return Err(e),
            }
            // Also of one who says a byte now and then.
            go_on(into.is_empty(), until, stop, "nothing was heard of it in time")?;
        }
        Ok(())
    }

    /// The connection itself, to look whether it is still there.
    pub fn watched(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }
}

/// Whether a call ended only so that it is asked whether to go on.
fn is_no_matter(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// An error where what is not `done` by now is not waited for any more.
fn go_on(done: bool, until: Instant, stop: &AtomicBool, late: &str) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) && !done {
        return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "it was told to stop"));
    }
    if Instant::now() >= until && !done {
        return Err(io::Error::new(io::ErrorKind::TimedOut, late.to_owned()));
    }
    Ok(())
}

/// Waits until a connection is closed by its other end, or `over`. Says whether it was closed.
pub fn is_closed_before(stream: &TcpStream, over: &AtomicBool) -> bool {
    let mut byte = [0];
    while !over.load(Ordering::Acquire) {
        match stream.peek(&mut byte) {
            Ok(0) => return true,
            // Something was said, which is read later.
            Ok(_) => std::thread::sleep(LOOK),
            Err(e) if is_no_matter(&e) => {}
            Err(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn two(key: &NetKey, other: &NetKey) -> (Session, Session) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (b, _) = listener.accept().unwrap();
        (Session::new(a, key.clone(), true).unwrap(), Session::new(b, other.clone(), false).unwrap())
    }

    #[test]
    fn what_is_said_is_heard_in_order_and_by_nobody_without_the_key() {
        let (never, wait) = (AtomicBool::new(false), Duration::from_secs(5));
        let key = NetKey::random();
        let (mut a, mut b) = two(&key, &key);
        a.say(&"one", &never).unwrap();
        a.say(&2, &never).unwrap();
        assert_eq!(b.hear::<String>(wait, &never).unwrap(), "one");
        assert_eq!(b.hear::<u32>(wait, &never).unwrap(), 2);
        b.say(&vec![3; 100_000], &never).unwrap();
        assert_eq!(a.hear::<Vec<u32>>(wait, &never).unwrap().len(), 100_000);
        let (mut a, mut b) = two(&key, &NetKey::random());
        a.say(&"one", &never).unwrap();
        assert!(b.hear::<String>(wait, &never).unwrap_err().to_string().contains("not by the other side"));
    }

    /// A byte each time that it would be asked whether to go on: it is asked all the same.
    #[test]
    fn who_says_a_byte_now_and_then_is_not_waited_for_beyond_the_time_nor_a_stop() {
        let key = NetKey::random();
        for stops in [false, true] {
            let (mut a, mut b) = two(&key, &key);
            let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let drips = scope.spawn(|| {
                    // A message of a megabyte has begun.
                    a.stream.write_all(&(1u32 << 20).to_le_bytes()).unwrap();
                    for n in 0..600 {
                        if over.load(Ordering::Acquire) || a.stream.write_all(&[0]).is_err() {
                            return false;
                        }
                        stop.store(stops && n > 3, Ordering::Release);
                        std::thread::sleep(LOOK / 5);
                    }
                    // So that it ends where nobody looked.
                    a.stream.shutdown(std::net::Shutdown::Both).unwrap();
                    true
                });
                let patience = if stops { Duration::from_secs(3600) } else { LOOK * 4 };
                let e = b.hear::<u32>(patience, &stop).unwrap_err();
                over.store(true, Ordering::Release);
                let kind = if stops { io::ErrorKind::ConnectionAborted } else { io::ErrorKind::TimedOut };
                assert_eq!(e.kind(), kind, "{e}");
                assert!(!drips.join().unwrap());
            });
        }
    }

    /// Of one who opened the connection and reads nothing: what is said fills the kernel's buffers, and waits.
    #[test]
    fn what_nobody_takes_is_not_said_beyond_a_stop() {
        let key = NetKey::random();
        let (mut a, b) = two(&key, &key);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let says = scope.spawn(|| a.say(&vec![7u8; 24 << 20], &stop));
            std::thread::sleep(LOOK * 4);
            assert!(!says.is_finished(), "it is too much for the buffers");
            stop.store(true, Ordering::Release);
            let e = says.join().unwrap().unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::ConnectionAborted, "{e}");
        });
        drop(b);
    }

    #[test]
    fn a_message_again_a_length_without_end_and_silence_are_refused() {
        let (never, wait) = (AtomicBool::new(false), Duration::from_secs(5));
        let key = NetKey::random();
        let (mut a, mut b) = two(&key, &key);
        a.say(&1, &never).unwrap();
        a.said = 0;
        a.say(&1, &never).unwrap();
        assert_eq!(b.hear::<u32>(wait, &never).unwrap(), 1);
        assert!(b.hear::<u32>(wait, &never).is_err(), "said twice");
        let (mut a, mut b) = two(&key, &key);
        a.stream.write_all(&[0xff; 36]).unwrap();
        assert!(b.hear::<u32>(wait, &never).unwrap_err().to_string().contains("longer"));
        assert_eq!(b.hear::<u32>(Duration::ZERO, &never).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let told = b.hear::<u32>(wait, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ConnectionAborted);
        drop(a);
        assert_eq!(b.hear::<u32>(wait, &never).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
