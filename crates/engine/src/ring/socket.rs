//! Sockets of the rings: how they are made, and what is set on them.

use std::io;
use std::net::SocketAddr;

/// What connections to this very machine use instead of a pacing congestion control: every kernel has it, and
/// every user may choose it.
pub(crate) const LOOPBACK_CONTROL: &str = "reno";

/// A stream socket with TCP_NODELAY.
///
/// Nothing can be congested on the way to a loopback address, but a congestion control that paces (BBR, the
/// default of some distributions) sets a timer for each 64 KiB all the same, and in a virtual machine each of them
/// costs an exit: measured with a plain `send` loop on Linux 6.18, 218 us of CPU for 1 MiB with BBR, 105 with Reno.
/// So loopback connections leave it out; [`loopback_note`] says so in the run. Any other connection has what the
/// host has.
pub(crate) fn open_socket(peer: &SocketAddr, non_blocking: bool) -> io::Result<i32> {
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let flags = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | if non_blocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: plain system call.
    let fd = unsafe { libc::socket(family, flags, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // A refusal of either only costs speed.
    set(fd, (libc::IPPROTO_TCP, libc::TCP_NODELAY), &libc::c_int::from(1).to_ne_bytes());
    if is_loopback(peer) {
        set(fd, (libc::IPPROTO_TCP, libc::TCP_CONGESTION), LOOPBACK_CONTROL.as_bytes());
    }
    Ok(fd)
}

/// The address is one of this very machine's (127.0.0.0/8, ::1).
pub(crate) fn is_loopback(peer: &SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

/// Sets how many bytes have to be there before the socket counts as readable. A refusal only costs wake-ups.
pub(crate) fn low_water(fd: i32, bytes: u32) {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set(fd, (libc::SOL_SOCKET, libc::SO_RCVLOWAT), &value.to_ne_bytes());
}

fn set(fd: i32, (level, option): (i32, i32), value: &[u8]) {
    let len = value.len() as libc::socklen_t;
    // SAFETY: the option's value lives through the call, and `len` is its length.
    unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), len) };
}

/// What the report says of loopback connections where the host's own congestion control is another.
pub(crate) fn loopback_note() -> Option<String> {
    let own = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    let own = own.trim();
    (own != LOOPBACK_CONTROL)
        .then(|| format!("{LOOPBACK_CONTROL} on loopback connections; this host's own is {own}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_connections_leave_the_hosts_congestion_control() {
        let name_of = |peer: &str| {
            let fd = open_socket(&peer.parse().unwrap(), true).unwrap();
            let mut name = [0u8; 16];
            let mut len = name.len() as libc::socklen_t;
            // SAFETY: the buffer and its length live through the call; the descriptor is closed once.
            let result = unsafe {
                let result = libc::getsockopt(
                    fd,
                    libc::IPPROTO_TCP,
                    libc::TCP_CONGESTION,
                    name.as_mut_ptr().cast(),
                    &mut len,
                );
                libc::close(fd);
                result
            };
            assert_eq!(result, 0);
            String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
        };
        assert_eq!(name_of("127.0.0.1:80"), LOOPBACK_CONTROL);
        let own = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(name_of("192.0.2.1:80"), own.trim());
    }
}
