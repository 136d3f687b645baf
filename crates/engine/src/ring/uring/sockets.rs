//! The sockets of an io_uring. Where the kernel can, they are in the ring's own table, so that an op does not look
//! its descriptor up and count it (1 % of a 4 KiB exchange).

use std::io;
use std::net::SocketAddr;

use io_uring::{Submitter, types};

use crate::ring::{SockId, low_water, open_socket};

/// What the kernel takes in place of a descriptor to empty a place of the table.
const NONE: i32 = -1;

#[derive(Debug)]
pub(super) struct Sockets {
    fds: Vec<i32>,
    /// Which of them are in the table, at the place of their number.
    in_table: Vec<bool>,
    table: bool,
}

impl Sockets {
    /// `may_register`: the table is not taken by files, and the kernel is new enough (5.19).
    pub fn new(count: u32, may_register: bool, submitter: &Submitter<'_>) -> Self {
        let table = may_register && count > 0 && submitter.register_files_sparse(count).is_ok();
        Self { fds: vec![NONE; count as usize], in_table: vec![false; count as usize], table }
    }

    pub fn registered(&self) -> bool {
        self.table
    }

    #[inline]
    pub fn is_in_table(&self, sock: SockId) -> bool {
        self.in_table[sock as usize]
    }

    #[inline]
    pub fn fd(&self, sock: SockId) -> types::Fd {
        types::Fd(self.fds[sock as usize])
    }

    /// Makes a socket; the system calls that it took.
    pub fn open(&mut self, sock: SockId, peer: &SocketAddr, submitter: &Submitter<'_>) -> io::Result<u64> {
        let i = sock as usize;
        debug_assert!(self.fds[i] < 0);
        self.fds[i] = open_socket(peer, false)?;
        // A refusal costs speed: the descriptor itself does as well.
        self.in_table[i] = self.table && submitter.register_files_update(sock, &self.fds[i..=i]).is_ok();
        Ok(3 + u64::from(self.table))
    }

    /// Closes the socket; the system calls that it took.
    pub fn close(&mut self, sock: SockId, submitter: &Submitter<'_>) -> u64 {
        let i = sock as usize;
        let fd = std::mem::replace(&mut self.fds[i], NONE);
        if fd < 0 {
            return 0;
        }
        // The table holds the connection open as the descriptor does.
        let was_in_table = std::mem::take(&mut self.in_table[i]);
        if was_in_table && submitter.register_files_update(sock, &[NONE]).is_err() {
            // It cannot be taken out: end the connection at least.
            // SAFETY: ours.
            unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        }
        // SAFETY: ours.
        unsafe { libc::close(fd) };
        1 + u64::from(was_in_table)
    }

    pub fn low_water(&self, sock: SockId, bytes: u32) {
        low_water(self.fds[sock as usize], bytes);
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for fd in &self.fds {
            if *fd >= 0 {
                // SAFETY: the descriptor is ours.
                unsafe { libc::close(*fd) };
            }
        }
    }
}
