//! Bodies between sockets and files: uploads in batches to a thread that may block, downloads read one piece ahead.
//!
//! Memory is bounded: an upload holds two batches, a download two pieces, whatever the object's size.

use super::error::{StoreError, custom};
use super::object::{SMALL_BYTES, Writer};
use super::socket::{STAND_IN_BYTES, StandIn};
use super::store::Store;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use s3s::checksum::ChecksumHasher;
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{S3Error, S3ErrorCode, S3Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes handed to a blocking thread at once, and written by one call at a multiple of as many.
const BATCH_BYTES: usize = SMALL_BYTES as usize;
/// Bytes of one read of a download: two of them fit into a core's own cache beside what else it needs.
const PIECE_BYTES: u64 = 256 << 10;

/// Runs file work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    f: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    joined(tokio::task::spawn_blocking(f)).await
}

async fn joined<T>(handle: JoinHandle<Result<T, StoreError>>) -> Result<T, StoreError> {
    handle.await.unwrap_or_else(|e| Err(StoreError::Io(io::Error::other(e))))
}

/// A received body: small ones still in memory, so that writing and committing take one trip to a thread.
#[derive(Debug)]
pub(crate) struct Received {
    writer: Option<Writer>,
    rest: Vec<Bytes>,
    sums: Option<ChecksumBox>,
}

/// Hashers don't show themselves.
struct ChecksumBox(ChecksumHasher);

impl std::fmt::Debug for ChecksumBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChecksumHasher")
    }
}

impl Received {
    /// The writer with all data in it; blocks.
    pub fn into_writer(self, store: &Store) -> Result<Writer, StoreError> {
        let mut w = match (self.writer, self.sums) {
            (Some(w), _) => w,
            (None, sums) => store.writer(sums.map(|s| s.0).unwrap_or_default())?,
        };
        w.write(&self.rest)?;
        Ok(w)
    }
}

/// Pieces of an upload on their way into batches that end at multiples of [`BATCH_BYTES`].
///
/// How a file is written is how the page cache keeps it: a write that begins and ends at such multiples becomes one folio of as many
/// bytes, while pieces as they come from a socket become folios of 4 to 64 KiB. The fewer, the less a GET costs the kernel: 64 MiB
/// came 1.2 times as fast.
#[derive(Debug, Default)]
struct Batch {
    pieces: Vec<Bytes>,
    bytes: usize,
}

impl Batch {
    /// Takes a piece, and gives what is to be written now that more has come; what is beyond it begins the next batch.
    fn add(&mut self, mut piece: Bytes) -> Option<Vec<Bytes>> {
        self.bytes += piece.len();
        if self.bytes <= BATCH_BYTES {
            self.pieces.push(piece);
            return None;
        }
        // All but the last of the full ones: what ends the object goes with its description, in one trip.
        self.bytes = (self.bytes - 1) % BATCH_BYTES + 1;
        let rest = piece.split_off(piece.len() - self.bytes);
        self.pieces.push(piece);
        Some(std::mem::replace(&mut self.pieces, vec![rest]))
    }
}

/// Takes a whole body in.
pub(crate) async fn receive(
    store: &Arc<Store>,
    body: Option<StreamingBlob>,
    sums: ChecksumHasher,
) -> S3Result<Received> {
    let mut sums = Some(ChecksumBox(sums));
    let mut batch = Batch::default();
    let mut writing: Option<JoinHandle<Result<Writer, StoreError>>> = None;
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            if let Some(pieces) = batch.add(piece.map_err(broken_body)?) {
                let before = match writing.take() {
                    Some(w) => Some(joined(w).await?),
                    None => None,
                };
                let (store, sums) = (store.clone(), sums.take());
                writing = Some(tokio::task::spawn_blocking(move || {
                    let mut w = match before {
                        Some(w) => w,
                        None => store.writer(sums.map(|s| s.0).unwrap_or_default())?,
                    };
                    w.write(&pieces)?;
                    Ok(w)
                }));
            }
        }
    }
    let writer = match writing {
        Some(w) => Some(joined(w).await?),
        None => None,
    };
    Ok(Received { writer, rest: batch.pieces, sums })
}

/// Names what s3s found wrong with a body, which it tells by text only.
fn broken_body(e: s3s::StdError) -> S3Error {
    let text = e.to_string();
    let code = if text.contains("Sha256Mismatch") {
        let why = "the body does not have the hash that x-amz-content-sha256 tells";
        return custom("XAmzContentSHA256Mismatch", hyper::StatusCode::BAD_REQUEST, why);
    } else if text.contains("SignatureMismatch") {
        S3ErrorCode::SignatureDoesNotMatch
    } else {
        S3ErrorCode::IncompleteBody
    };
    S3Error::with_message(code, format!("the body could not be read: {text}"))
}

/// A part of a file as a body.
///
/// What the page cache has is read at once, without a trip to another thread: a hand-over costs more than the copy.
/// What it has not is read one piece ahead on a thread that may block. For a plain connection, what the page cache has
/// is not even copied: a stand-in is yielded, for which the socket sends the file's own pages.
#[derive(Debug)]
pub(crate) struct FileStream {
    file: Arc<File>,
    at: u64,
    end: u64,
    /// Bytes that were not yielded yet.
    left: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    /// Stand-ins may be yielded: the body goes to a socket that knows them, and nowhere else.
    in_kernel: bool,
}

impl FileStream {
    /// Bytes in memory, for whoever takes them.
    pub fn new(file: File, at: u64, end: u64) -> FileStream {
        FileStream { file: Arc::new(file), at, end, left: end - at, reading: None, in_kernel: false }
    }

    /// For an answer to a plain connection only.
    pub fn for_socket(self) -> FileStream {
        FileStream { in_kernel: true, ..self }
    }

    /// Stands for the next piece, where the page cache has it.
    fn stand_in(&mut self) -> Option<Bytes> {
        let wanted = (self.end - self.at).min(STAND_IN_BYTES as u64);
        if !self.in_kernel || wanted == 0 || self.reading.is_some() {
            return None;
        }
        // Its last byte is asked for: what came by reading ahead came up to there. Should a page before it be missing all the
        // same, the kernel reads it while this thread waits; that costs time, and nothing else.
        let last = &mut [0];
        let into = &mut [io::IoSliceMut::new(last)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        if rustix::io::preadv2(&self.file, into, self.at + wanted - 1, flags).ok()? == 0 {
            return None;
        }
        let piece = StandIn::take(&self.file, self.at, wanted as usize)?;
        self.at += wanted;
        Some(Bytes::from_owner(piece))
    }

    /// Takes the next piece from the page cache, where it is there from its beginning.
    fn cached(&mut self) -> Option<Bytes> {
        let wanted = (self.end - self.at).min(PIECE_BYTES) as usize;
        if wanted == 0 || self.reading.is_some() {
            return None;
        }
        let mut piece = Piece::take();
        let into = &mut [io::IoSliceMut::new(&mut piece.bytes[..wanted])];
        // Whatever it cannot do (not in the cache, not on this file system) the thread that may block does.
        let got = rustix::io::preadv2(&self.file, into, self.at, rustix::io::ReadWriteFlags::NOWAIT).ok()?;
        if got == 0 {
            return None;
        }
        piece.len = got;
        self.at += got as u64;
        Some(Bytes::from_owner(piece))
    }

    fn read_ahead(&mut self) {
        if self.at < self.end && self.reading.is_none() {
            let n = (self.end - self.at).min(PIECE_BYTES);
            let (file, at) = (self.file.clone(), self.at);
            self.at += n;
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let mut piece = Piece::take();
                piece.len = n as usize;
                file.read_exact_at(&mut piece.bytes[..n as usize], at)?;
                Ok(Bytes::from_owner(piece))
            }));
        }
    }
}

impl Stream for FileStream {
    type Item = Result<Bytes, s3s::StdError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(piece) = this.stand_in().or_else(|| this.cached()) {
            this.left -= piece.len() as u64;
            return Poll::Ready(Some(Ok(piece)));
        }
        this.read_ahead();
        let Some(reading) = &mut this.reading else { return Poll::Ready(None) };
        let piece = ready!(Pin::new(reading).poll(cx)).unwrap_or_else(|e| Err(io::Error::other(e)));
        this.reading = None;
        match piece {
            Ok(piece) => {
                this.left -= piece.len() as u64;
                this.read_ahead();
                Poll::Ready(Some(Ok(piece)))
            }
            Err(e) => {
                this.at = this.end;
                Poll::Ready(Some(Err(e.into())))
            }
        }
    }
}

impl ByteStream for FileStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(usize::try_from(self.left).unwrap_or(usize::MAX))
    }
}

/// A buffer of a download, given back when the socket has taken its bytes: one that was used a moment ago is still in
/// the core's cache, and needs no new pages of the kernel.
struct Piece {
    bytes: Box<[u8]>,
    len: usize,
}

/// Buffers that wait for the next download, the last used on top.
static SPARE: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());
/// Buffers that are kept: 16 MiB.
const MOST_SPARE: usize = (16 << 20) / PIECE_BYTES as usize;

impl Piece {
    fn take() -> Piece {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Piece { bytes: spare.unwrap_or_else(|| vec![0; PIECE_BYTES as usize].into()), len: 0 }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(file: File, at: u64, end: u64) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pieces: Vec<_> = runtime.block_on(FileStream::new(file, at, end).collect());
        pieces.into_iter().flat_map(|p| p.unwrap()).collect()
    }

    #[test]
    fn a_body_is_the_span_whether_cached_or_not_and_however_often_its_buffers_were_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let data: Vec<u8> = (0..3 * PIECE_BYTES + 77).map(|i| ((i * 2_654_435_761) >> 16) as u8).collect();
        std::fs::write(&path, &data).unwrap();
        let open = || File::open(&path).unwrap();
        open().sync_all().unwrap();
        for (at, end) in [(0, data.len() as u64), (5, PIECE_BYTES + 6), (7, 8), (9, 9)] {
            for cached in [true, false] {
                if !cached {
                    rustix::fs::fadvise(open(), 0, None, rustix::fs::Advice::DontNeed).unwrap();
                }
                assert!(body(open(), at, end) == data[at as usize..end as usize], "{at} {end} {cached}");
            }
        }
    }

    #[test]
    fn batches_end_at_multiples_whatever_comes_and_nothing_is_lost() {
        for lens in [
            vec![BATCH_BYTES],
            vec![BATCH_BYTES, 1],
            vec![7_800, 131_072, 131_072, 131_072, 0, 5],
            vec![5 * BATCH_BYTES + 3, 9],
        ] {
            let all: Vec<u8> = (0..lens.iter().sum()).map(|i: usize| ((i * 31) >> 3) as u8).collect();
            let (mut batch, mut from, mut written) = (Batch::default(), Bytes::from(all.clone()), Vec::new());
            for len in &lens {
                let full = batch.add(from.split_to(*len));
                written.extend(full.into_iter().flatten().flatten());
                assert_eq!(written.len() % BATCH_BYTES, 0, "{lens:?}");
            }
            let rest: Vec<u8> = batch.pieces.into_iter().flatten().collect();
            assert!((1..=BATCH_BYTES).contains(&rest.len()), "{lens:?}: {}", rest.len());
            written.extend(rest);
            assert!(written == all, "{lens:?}");
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error_and_no_short_body() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![1; 1000]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pieces: Vec<_> =
            runtime.block_on(FileStream::new(File::open(&path).unwrap(), 0, 2 * PIECE_BYTES).collect());
        assert!(pieces.last().is_some_and(Result::is_err), "{pieces:?}");
    }
}
