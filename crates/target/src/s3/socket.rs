//! Bodies that go from the page cache to the socket inside the kernel (sendfile(2)), though hyper knows only of bytes in memory.
//!
//! A stand-in is a slice of an address range whose pages nobody reads or writes. It travels through s3s, the limiter (which may
//! cut it) and hyper as any other piece of a body; the socket knows the range, and sends the part of the file that the slice
//! stands for. Only a plain connection can do that: TLS has to see the bytes.

use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that one stand-in can stand for.
pub(crate) const STAND_IN_BYTES: usize = 1 << 20;
/// Stand-ins at a time (a connection has one or two). Together 256 MiB of addresses and no memory; who gets none copies.
const STAND_INS: usize = 256;

/// The address range, and what its parts stand for.
struct Range {
    pages: Box<[u8]>,
    slots: Mutex<Slots>,
}

struct Slots {
    free: Vec<usize>,
    /// File and offset of each that is taken.
    taken: Vec<Option<(Arc<File>, u64)>>,
}

// Zeroed memory of this size is mapped and not touched, so that it costs addresses only.
static RANGE: LazyLock<Range> = LazyLock::new(|| Range {
    pages: vec![0; STAND_INS * STAND_IN_BYTES].into_boxed_slice(),
    slots: Mutex::new(Slots { free: (0..STAND_INS).collect(), taken: vec![None; STAND_INS] }),
});

impl Range {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file and the offset that a buffer stands for, where it is a part of the range.
    fn stood_for(&self, buf: &[u8]) -> Option<(Arc<File>, u64)> {
        let at = (buf.as_ptr() as usize).checked_sub(self.pages.as_ptr() as usize)?;
        if buf.is_empty() || at >= self.pages.len() {
            return None;
        }
        let (file, offset) = self.slots().taken[at / STAND_IN_BYTES].clone()?;
        Some((file, offset + (at % STAND_IN_BYTES) as u64))
    }
}

/// `len` bytes of a file from an offset on, which only a [`Socket`] may send; the bytes that it shows are zeros.
pub(crate) struct StandIn {
    slot: usize,
    len: usize,
}

impl StandIn {
    /// None while all are taken.
    pub fn take(file: &Arc<File>, at: u64, len: usize) -> Option<StandIn> {
        assert!(len <= STAND_IN_BYTES, "a stand-in is too short for {len} bytes");
        let mut slots = RANGE.slots();
        let slot = slots.free.pop()?;
        slots.taken[slot] = Some((file.clone(), at));
        Some(StandIn { slot, len })
    }
}

impl AsRef<[u8]> for StandIn {
    fn as_ref(&self) -> &[u8] {
        &RANGE.pages[self.slot * STAND_IN_BYTES..][..self.len]
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let mut slots = RANGE.slots();
        slots.taken[self.slot] = None;
        slots.free.push(self.slot);
    }
}

/// A plain connection that knows stand-ins.
pub(crate) struct Socket(pub TcpStream);

impl Socket {
    fn poll_send_file(
        &self,
        cx: &mut Context<'_>,
        file: &File,
        at: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            let mut offset = at;
            let sent = self.0.try_io(Interest::WRITABLE, || {
                Ok(rustix::fs::sendfile(&self.0, file, Some(&mut offset), len)?)
            });
            return Poll::Ready(match sent {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
                Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter")),
                other => other,
            });
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stands = |buf: &IoSlice<'_>| RANGE.stood_for(buf);
        let Some(first) = bufs.iter().position(|b| !b.is_empty()) else { return Poll::Ready(Ok(0)) };
        let bufs = &bufs[first..];
        if let Some((file, at)) = stands(&bufs[0]) {
            return self.poll_send_file(cx, &file, at, bufs[0].len());
        }
        // Bytes in memory up to the first stand-in; the rest is asked for again.
        let plain = bufs.iter().position(|b| stands(b).is_some()).unwrap_or(bufs.len());
        Pin::new(&mut self.0).poll_write_vectored(cx, &bufs[..plain])
    }

    /// hyper must not put pieces together in a buffer of its own: it would copy zeros.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Buf, Bytes};
    use std::collections::VecDeque;
    use tokio::io::AsyncReadExt;

    /// Sends pieces as hyper does, and gives what came out at the other end.
    fn sent(pieces: Vec<Bytes>) -> io::Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let reader = tokio::spawn(async move {
                let mut stream = TcpStream::connect(addr).await.unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                all
            });
            let mut socket = Socket(listener.accept().await.unwrap().0);
            let mut pieces: VecDeque<Bytes> = pieces.into();
            while !pieces.is_empty() {
                let mut n = {
                    let bufs: Vec<_> = pieces.iter().map(|p| IoSlice::new(p)).collect();
                    std::future::poll_fn(|cx| Pin::new(&mut socket).poll_write_vectored(cx, &bufs)).await?
                };
                while let Some(first) = pieces.front_mut() {
                    let taken = n.min(first.len());
                    first.advance(taken);
                    n -= taken;
                    if !first.is_empty() {
                        break;
                    }
                    pieces.pop_front();
                }
            }
            drop(socket);
            Ok(reader.await.unwrap())
        })
    }

    fn file(dir: &tempfile::TempDir, bytes: usize) -> (Vec<u8>, Arc<File>) {
        let data: Vec<u8> = (0..bytes).map(|i| ((i * 2_654_435_761) >> 13) as u8 | 1).collect();
        let path = dir.path().join("f");
        std::fs::write(&path, &data).unwrap();
        (data, Arc::new(File::open(path).unwrap()))
    }

    #[test]
    fn what_a_stand_in_stands_for_is_sent_in_its_place_however_it_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        let (data, file) = file(&dir, 3 * STAND_IN_BYTES);
        let mut whole = Bytes::from_owner(StandIn::take(&file, 77, STAND_IN_BYTES).unwrap());
        let cut = whole.split_to(1_001);
        let other = Bytes::from_owner(StandIn::take(&file, 300_000, 5).unwrap());
        let pieces =
            vec![Bytes::from_static(b"head"), cut, whole, Bytes::new(), other, Bytes::from_static(b"end")];
        let mut want = b"head".to_vec();
        want.extend_from_slice(&data[77..77 + STAND_IN_BYTES]);
        want.extend_from_slice(&data[300_000..300_005]);
        want.extend_from_slice(b"end");
        assert!(sent(pieces).unwrap() == want);
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (_, file) = file(&dir, 100);
        let piece = Bytes::from_owner(StandIn::take(&file, 50, 100).unwrap());
        assert_eq!(sent(vec![piece]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_stand_in_that_is_gone_can_be_taken_again_and_no_more_than_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let (_, file) = file(&dir, 10);
        // Other tests hold a few, for a moment.
        for _ in 0..3 {
            let all: Vec<_> = std::iter::from_fn(|| StandIn::take(&file, 0, 10)).collect();
            assert!(all.len() <= STAND_INS && all.len() > STAND_INS - 16, "{}", all.len());
        }
    }
}
