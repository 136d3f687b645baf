//! One connection: a socket of the ring, and TLS on top of it where the endpoint wants it.

use std::io::{Read, Write};
use std::net::SocketAddr;

use rustls::ClientConnection;

use super::config::ResolvedEndpoint;
use crate::ring::{Ring, SockId};

/// A connection from one lane to one server. It is opened with its first exchange and again whenever it was lost.
pub(super) struct Conn {
    pub sock: SockId,
    pub open: bool,
    /// At least one exchange was completed on it: the server may have closed it since.
    pub reused: bool,
    /// It was opened before (by this lane, to this server).
    pub ever_open: bool,
    /// Which of the server's addresses is next.
    turn: usize,
    /// The address of this socket, and those that could not be connected to, as bits.
    current: usize,
    bad: u64,
    /// What the pending connect points to.
    address: Box<libc::sockaddr_storage>,
    address_len: libc::socklen_t,
    pub tls: Option<ClientConnection>,
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Conn(socket {}, open {}, reused {})", self.sock, self.open, self.reused)
    }
}

impl Conn {
    pub fn new(sock: SockId, turn: usize) -> Self {
        // SAFETY: sockaddr_storage is plain data for which all zeros is a valid value (family AF_UNSPEC).
        let address = Box::new(unsafe { std::mem::zeroed() });
        Self {
            sock,
            open: false,
            reused: false,
            ever_open: false,
            turn,
            current: 0,
            bad: 0,
            address,
            address_len: 0,
            tls: None,
        }
    }

    /// Makes the socket and the TLS state; the caller then connects to [`Self::address`].
    pub fn prepare<R: Ring>(&mut self, server: &ResolvedEndpoint, ring: &mut R) -> Result<(), String> {
        let address = server.addresses[self.choose(server.addresses.len())];
        ring.socket_open(self.sock, &address).map_err(|e| format!("cannot make a socket: {e}"))?;
        self.open = true;
        self.reused = false;
        self.address_len = write_address(&address, &mut self.address);
        self.tls = match &server.tls {
            None => None,
            Some((config, name)) => {
                let mut c = ClientConnection::new(config.clone(), name.clone()).map_err(|e| e.to_string())?;
                // The lane hands over one window at a time; the default of 64 KiB would cut it up.
                c.set_buffer_limit(Some(super::outgoing::TLS_WINDOW_BYTES * 2));
                Some(c)
            }
        };
        Ok(())
    }

    /// The next address in turn that is not known to be bad; all of them again when all are.
    fn choose(&mut self, count: usize) -> usize {
        if self.tried_all(count) {
            self.bad = 0;
        }
        for _ in 0..count {
            self.current = self.turn % count;
            self.turn = self.turn.wrapping_add(1);
            if self.bad & bit(self.current) == 0 {
                break;
            }
        }
        self.current
    }

    /// The socket's address cannot be connected to: the other ones of its server come first from now on.
    pub fn mark_bad(&mut self) {
        self.bad |= bit(self.current);
    }

    /// None of `count` addresses is left to be tried.
    pub fn tried_all(&self, count: usize) -> bool {
        (0..count).all(|i| self.bad & bit(i) != 0)
    }

    pub fn address(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        ((&raw const *self.address).cast(), self.address_len)
    }

    /// Closes the socket; nothing may be in flight on it.
    pub fn close<R: Ring>(&mut self, ring: &mut R) {
        if self.open {
            ring.socket_close(self.sock);
            self.open = false;
        }
        self.reused = false;
        self.tls = None;
    }

    /// Whether application data can flow.
    pub fn ready(&self) -> bool {
        self.tls.as_ref().is_none_or(|t| !t.is_handshaking())
    }

    /// Takes bytes of the wire into TLS. Returns how many were used; the rest when the reader was emptied.
    pub fn take_wire(&mut self, mut wire: &[u8]) -> Result<usize, String> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let before = wire.len();
        tls.read_tls(&mut wire).map_err(|e| e.to_string())?;
        tls.process_new_packets().map_err(|e| format!("TLS: {e}"))?;
        Ok(before - wire.len())
    }

    /// Reads decrypted bytes; 0 when there are none now.
    pub fn read_plain(&mut self, out: &mut [u8]) -> usize {
        let Some(tls) = &mut self.tls else { return 0 };
        tls.reader().read(out).unwrap_or(0)
    }

    /// Gives plain bytes to be encrypted; how many were taken.
    pub fn write_plain(&mut self, data: &[u8]) -> usize {
        let Some(tls) = &mut self.tls else { return 0 };
        tls.writer().write(data).unwrap_or(0)
    }

    /// Moves encrypted bytes to `out`.
    pub fn drain_wire(&mut self, out: &mut Vec<u8>) {
        let Some(tls) = &mut self.tls else { return };
        while tls.wants_write() {
            if tls.write_tls(out).is_err() {
                break;
            }
        }
    }
}

/// Addresses beyond the 63rd share a bit.
fn bit(index: usize) -> u64 {
    1 << index.min(63)
}

fn write_address(address: &SocketAddr, out: &mut libc::sockaddr_storage) -> libc::socklen_t {
    let len = match address {
        SocketAddr::V4(a) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: a.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(a.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is larger than sockaddr_in and aligned for all address types.
            unsafe { std::ptr::write((&raw mut *out).cast::<libc::sockaddr_in>(), raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(a) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: a.port().to_be(),
                sin6_flowinfo: a.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                sin6_scope_id: a.scope_id(),
            };
            // SAFETY: as above, for sockaddr_in6.
            unsafe { std::ptr::write((&raw mut *out).cast::<libc::sockaddr_in6>(), raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    len as libc::socklen_t
}
