//! A socket, plain or TLS, in steps: each call asks the kernel once at the most, so that whoever waits can look at the clock between two.
//! (rustls' own streams read until a whole record or handshake is there, however slowly that comes.)

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustls::ClientConnection;

pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// The socket has time-outs.
pub(super) struct Tls {
    pub conn: ClientConnection,
    pub sock: TcpStream,
    /// Something has come.
    pub heard: bool,
}

/// Nothing now; another step may have something.
pub(super) fn is_later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Stream {
    /// `WouldBlock`: nothing to be read yet. 0: the end.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.read(buf),
            Self::Tls(s) => s.read(buf),
        }
    }

    /// Bytes that were taken, not all of them and perhaps none.
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(s) => s.write(buf),
            Self::Tls(s) => {
                s.push()?;
                s.conn.writer().write(buf)
            }
        }
    }

    /// Gives on what was taken; true: that is all.
    pub fn is_flushed(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(s) => {
                s.push()?;
                Ok(!s.conn.wants_write())
            }
        }
    }
}

impl Tls {
    /// One step of a handshake.
    pub fn shake(&mut self) -> io::Result<()> {
        match self.conn.wants_write() {
            true => self.push(),
            false => match self.pull()? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            },
        }
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.conn.reader().read(buf) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        // An answer to a change of keys; if it cannot go now, it goes with a later step.
        match self.push() {
            Err(e) if is_later(&e) => {}
            step => step?,
        }
        self.pull()?;
        self.conn.reader().read(buf)
    }

    fn push(&mut self) -> io::Result<()> {
        match self.conn.wants_write() {
            true => self.conn.write_tls(&mut self.sock).map(drop),
            false => Ok(()),
        }
    }

    fn pull(&mut self) -> io::Result<usize> {
        let n = self.conn.read_tls(&mut self.sock)?;
        self.heard |= n > 0;
        if let Err(e) = self.conn.process_new_packets() {
            // The other side is told why, if it takes that.
            let _ = self.push();
            return Err(io::Error::new(io::ErrorKind::InvalidData, e));
        }
        Ok(n)
    }
}
