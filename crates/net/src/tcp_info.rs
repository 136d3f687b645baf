//! What the kernel knows of a connection (`TCP_INFO`), as far as this kernel fills it in.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use plimsoll_model::net::TcpFacts;

/// More than any kernel has so far.
const ROOM: usize = 512;
/// Bits of `tcpi_options`: timestamps are in each segment.
const TIMESTAMPS: u8 = 1;

/// A field, where the kernel has filled it in.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_ne_bytes)
}

/// Reads `struct tcp_info` (linux/tcp.h), of which an older kernel gives the beginning only: what is not there is not known.
pub fn parse(bytes: &[u8]) -> TcpFacts {
    TcpFacts {
        has_timestamps: bytes.get(5).map(|options| options & TIMESTAMPS != 0),
        // Bit 0 of the byte after the window scales.
        delivery_is_app_limited: bytes.get(7).map(|bits| bits & 1 != 0),
        mss_bytes: u32_at(bytes, 16),
        path_mtu_bytes: u32_at(bytes, 60),
        rtt_us: u32_at(bytes, 68),
        rtt_variation_us: u32_at(bytes, 72),
        congestion_window: u32_at(bytes, 80),
        total_retransmits: u32_at(bytes, 100),
        pacing_bytes_per_s: u64_at(bytes, 104).filter(|rate| *rate != u64::MAX),
        acked_bytes: u64_at(bytes, 120),
        received_bytes: u64_at(bytes, 128),
        segments_out: u32_at(bytes, 136),
        min_rtt_us: u32_at(bytes, 148).filter(|rtt| *rtt != u32::MAX),
        delivery_bytes_per_s: u64_at(bytes, 160),
        busy_us: u64_at(bytes, 168),
        receiver_limited_us: u64_at(bytes, 176),
        send_buffer_limited_us: u64_at(bytes, 184),
        sent_bytes: u64_at(bytes, 200),
        retransmitted_bytes: u64_at(bytes, 208),
    }
}

/// Of a connection, now.
pub fn of(fd: BorrowedFd<'_>) -> io::Result<TcpFacts> {
    let mut bytes = [0u8; ROOM];
    let mut len = ROOM as libc::socklen_t;
    // SAFETY: the buffer has `len` bytes, and lives through the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(parse(&bytes[..(len as usize).min(ROOM)]))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_a_kernel_does_not_fill_in_is_not_known() {
        let full: Vec<u8> = (0..240).map(|i| i as u8).collect();
        let whole = parse(&full);
        assert_eq!(whole.mss_bytes, Some(u32::from_ne_bytes([16, 17, 18, 19])));
        assert_eq!(whole.sent_bytes, Some(u64::from_ne_bytes([200, 201, 202, 203, 204, 205, 206, 207])));
        // Linux 4.4 gives 160 bytes; and a field that is cut is none.
        let old = parse(&full[..160]);
        assert_eq!((old.rtt_us, old.busy_us, old.sent_bytes), (whole.rtt_us, None, None));
        assert_eq!(parse(&full[..207]).sent_bytes, None);
        assert_eq!(parse(&full[..208]).sent_bytes, whole.sent_bytes);
        for n in 0..full.len() {
            parse(&full[..n]);
        }
        assert_eq!(parse(&[]), TcpFacts::default());
    }

    #[test]
    fn a_real_connection_counts_its_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut b, _) = listener.accept().unwrap();
        a.write_all(&[7; 5000]).unwrap();
        b.read_exact(&mut [0; 5000]).unwrap();
        b.write_all(b"x").unwrap();
        a.read_exact(&mut [0]).unwrap();
        let (sender, receiver) = (of(a.as_fd()).unwrap(), of(b.as_fd()).unwrap());
        assert_eq!(sender.sent_bytes.unwrap_or(5000), 5000);
        assert_eq!(receiver.received_bytes, Some(5000));
        assert!(sender.mss_bytes.unwrap() > 500 && sender.rtt_us.is_some());
        assert_eq!(sender.retransmitted_bytes.unwrap_or(0), 0);
    }
}
