//! A body whose bytes are charged to the limiter as they move, and that waits when they have to.

use super::timer::Timer;
use crate::clock::now_ns;
use crate::limiter::{Direction, Gate, Ticket};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;

/// What a body needs to know of its limits.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub gate: Arc<Gate>,
    pub ticket: Ticket,
    pub timer: Arc<Timer>,
}

pub(crate) struct Paced<B> {
    inner: B,
    pace: Option<(Pace, Direction)>,
    counter: Arc<AtomicU64>,
    /// Bytes that are not charged yet.
    held: Bytes,
    /// Charged; to be passed on when the wait is over.
    ready: Option<Bytes>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Room in memory that the request occupies until its body is gone.
    _room: Option<OwnedSemaphorePermit>,
}

impl<B> Paced<B> {
    pub fn new(
        inner: B,
        pace: Option<(Pace, Direction)>,
        counter: Arc<AtomicU64>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Paced<B> {
        let pace = pace.filter(|(p, d)| p.ticket.charges(*d));
        Paced { inner, pace, counter, held: Bytes::new(), ready: None, wait: None, _room: room }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Paced<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(wait) = &mut this.wait {
                ready!(wait.as_mut().poll(cx));
                this.wait = None;
            }
            if let Some(piece) = this.ready.take() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let (false, Some((pace, direction))) = (this.held.is_empty(), &this.pace) {
                let n = this.held.len().min(pace.gate.piece_bytes() as usize);
                this.ready = Some(this.held.split_to(n));
                let at_ns = pace.gate.bytes(&pace.ticket, *direction, n as u64);
                if at_ns > now_ns() {
                    let timer = pace.timer.clone();
                    this.wait = Some(Box::pin(async move { timer.until(at_ns).await }));
                }
                continue;
            }
            let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(f)) => f,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => {
                    this.counter.fetch_add(data.len() as u64, Ordering::Relaxed);
                    if this.pace.is_none() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    this.held = data;
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.ready.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.inner.size_hint();
        let ours = (self.held.len() + self.ready.as_ref().map_or(0, Bytes::len)) as u64;
        if ours > 0 {
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper + ours);
            }
            hint.set_lower(hint.lower() + ours);
        }
        hint
    }
}
