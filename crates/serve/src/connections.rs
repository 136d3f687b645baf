//! Connections: how many there are at once, and how long each may take before it has said what it wants. Whoever opens some and says
//! nothing, says half a head, or takes no bytes of its answer, has its place for a while only: descriptors are the run's, too.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Connections at once; who comes beyond them waits until one has ended.
    pub most: usize,
    /// Until TLS is agreed upon. A handshake takes two round trips and little else.
    pub handshake: Duration,
    /// Until the head of a request is here, and as long a connection waits for its next.
    pub head: Duration,
    /// Without a byte being taken of an answer that is ready.
    pub stall: Duration,
}

impl Default for ConnectionLimits {
    /// Choices: twice as many connections as pages that may follow runs, half of the descriptors that a process has by default.
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        Self { most: 512, handshake: ten, head: ten, stall: Duration::from_secs(60) }
    }
}

/// Out of descriptors or memory: whoever holds them needs time to end.
const NO_ROOM: Duration = Duration::from_millis(200);

/// Answers whoever connects, for as long as it is polled.
pub async fn answer_all(
    tcp: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    app: Router,
    limits: ConnectionLimits,
) {
    let room = Arc::new(Semaphore::new(limits.most));
    let tls = tls.map(TlsAcceptor::from);
    loop {
        // Before it is taken: what waits for room costs this process nothing.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = tcp.accept().await else {
            sleep(NO_ROOM).await;
            continue;
        };
        let (app, tls) = (app.clone(), tls.clone());
        tokio::spawn(async move {
            answer_one(stream, tls, app, limits).await;
            drop(place);
        });
    }
}

async fn answer_one(stream: TcpStream, tls: Option<TlsAcceptor>, app: Router, limits: ConnectionLimits) {
    // Messages are short, and each is wanted now.
    let _ = stream.set_nodelay(true);
    let stream = MovingStream::new(stream, limits.stall);
    match tls {
        None => speak(stream, app, limits).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.handshake, tls.accept(stream)).await {
                speak(stream, app, limits).await;
            }
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    limits: ConnectionLimits,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    // What goes wrong on a connection is between it and whoever opened it.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await;
}

/// A connection that fails once nothing could be written for so long.
struct MovingStream {
    stream: TcpStream,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl MovingStream {
    fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, stalled: None }
    }

    /// What a write came to; one that has to wait waits no longer than the limit.
    fn moved<T>(&mut self, done: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for MovingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for MovingStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.moved(done, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.moved(done, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.moved(done, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.moved(done, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;

    use super::*;
    use crate::tls::ServeCertificate;

    /// Long enough for a test that waits for a CPU to say what it has to say.
    const SHORT: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(600);
    const LIMITS: ConnectionLimits = ConnectionLimits { most: 4, handshake: LONG, head: LONG, stall: LONG };

    /// A server for as long as the test lives.
    fn served(app: Router, tls: Option<Arc<ServerConfig>>, limits: ConnectionLimits) -> SocketAddr {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let at = tcp.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                answer_all(TcpListener::from_std(tcp).unwrap(), tls, app, limits).await;
            });
        });
        at
    }

    fn hello() -> Router {
        Router::new().route("/", get(|| async { "hello" }))
    }

    /// All that the server says until it ends the connection.
    fn until_the_end(mut stream: TcpStream) -> String {
        let mut said = Vec::new();
        // A reset is an end, too.
        let _ = stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }

    fn ask(at: SocketAddr) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        until_the_end(stream)
    }

    /// More strangers than there is room for, who say nothing or half of a head: each is let go, and who asks is answered.
    #[test]
    fn who_says_nothing_keeps_no_place() {
        let at = served(hello(), None, ConnectionLimits { head: SHORT, ..LIMITS });
        let silent: Vec<TcpStream> = (0..6).map(|_| TcpStream::connect(at).unwrap()).collect();
        let mut half = TcpStream::connect(at).unwrap();
        half.write_all(b"GET / HTTP/1.1\r\nhost:").unwrap();
        assert!(ask(at).ends_with("hello"));
        for stream in silent.into_iter().chain([half]) {
            assert!(!until_the_end(stream).contains("200 OK"));
        }
    }

    #[test]
    fn who_asked_once_and_says_no_more_keeps_no_place() {
        let at = served(hello(), None, ConnectionLimits { most: 1, head: SHORT, ..LIMITS });
        let mut first = TcpStream::connect(at).unwrap();
        first.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert!(ask(at).ends_with("hello"));
        assert!(until_the_end(first).ends_with("hello"));
    }

    /// A record that is announced and never comes.
    #[test]
    fn half_a_handshake_keeps_no_place() {
        let config = ServeCertificate::make(vec!["localhost".into()]).unwrap().config;
        let at = served(hello(), Some(config), ConnectionLimits { handshake: SHORT, ..LIMITS });
        let begin = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let strangers: Vec<TcpStream> =
            (0..9).map(|i| begin(if i % 2 == 0 { b"" } else { &[22, 3, 1, 2, 0, 1] })).collect();
        // All of them had a place in turn, which they could not have had if one had kept it.
        strangers.into_iter().for_each(|s| drop(until_the_end(s)));
    }

    #[test]
    fn who_takes_nothing_of_an_answer_keeps_no_place() {
        let much = || async { vec![b'x'; 64 << 20] };
        let app = hello().route("/much", get(much));
        let at = served(app, None, ConnectionLimits { most: 1, stall: SHORT, ..LIMITS });
        let mut slow = TcpStream::connect(at).unwrap();
        slow.write_all(b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert!(ask(at).ends_with("hello"));
        assert!(until_the_end(slow).len() < 64 << 20);
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let counted = || async {
            MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_millis(20)).await;
            NOW.fetch_sub(1, Ordering::SeqCst);
            "hello"
        };
        let at = served(Router::new().route("/", get(counted)), None, LIMITS);
        let all: Vec<_> = (0..24).map(|_| std::thread::spawn(move || ask(at))).collect();
        for one in all {
            assert!(one.join().unwrap().ends_with("hello"));
        }
        assert!((1..=LIMITS.most).contains(&MOST.load(Ordering::SeqCst)), "{MOST:?}");
    }
}
