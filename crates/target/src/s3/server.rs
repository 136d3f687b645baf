//! The server's life: options, threads, listening, TLS, and its end.

use super::backend::Backend;
use super::front::{BUFFER_KIB, Counts, FORM_BYTES, Front, Peer, XML_BYTES};
use super::socket::Socket;
use super::store::Store;
use super::timer::Timer;
use crate::limiter::{Gate, LimitSet};
use crate::ready::Ready;
use crate::tls::{TlsError, TlsOptions, TlsSource, server_config};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::{S3Auth, SecretKey};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::host::SingleDomain;
use s3s::service::S3ServiceBuilder;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key: String,
    pub secret_key: String,
}

/// The secret stays out of debug output.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

impl Credentials {
    /// A new random pair.
    pub fn generate() -> std::io::Result<Credentials> {
        const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut random = [0u8; 60];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let text = |bytes: &[u8]| bytes.iter().map(|b| LETTERS[usize::from(b % 32)] as char).collect();
        Ok(Credentials { access_key: text(&random[..20]), secret_key: text(&random[20..]) })
    }
}

/// How the embedded S3 server runs.
#[derive(Clone, Debug)]
pub struct S3Options {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Directory of the data; made if need be. One server per directory.
    pub data: PathBuf,
    /// Who may use the server. With none given, one pair is made and printed.
    pub credentials: Vec<Credentials>,
    /// Region that the server says it is in.
    pub region: String,
    /// Sync data and names to the disk before each answer. Without it, a power cut may lose what was answered.
    pub sync: bool,
    /// TLS instead of plain HTTP.
    pub tls: Option<TlsOptions>,
    /// Rate limits and latencies of a tier, or of a file.
    pub limits: Option<LimitSet>,
    /// Domain whose subdomains are buckets (virtual-host addressing), beside the path form.
    pub domain: Option<String>,
    /// Buckets that are there from the start.
    pub buckets: Vec<String>,
    /// Threads for requests; 0 is one per processor.
    pub threads: usize,
    /// Most connections at a time; more wait in the listen queue. Bounds memory: about 1 MiB each at worst.
    pub max_connections: usize,
}

impl S3Options {
    /// Any free port on this machine only, durable, no limits.
    pub fn new(data: PathBuf) -> S3Options {
        S3Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data,
            credentials: Vec::new(),
            region: String::from("us-east-1"),
            sync: true,
            tls: None,
            limits: None,
            domain: None,
            buckets: Vec::new(),
            threads: 0,
            max_connections: 1_024,
        }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum S3ServerError {
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    #[error("data directory: {0}")]
    Store(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("--domain {0:?} is no domain name")]
    Domain(String),
    #[error("--bucket {0:?} is no name of a bucket")]
    Bucket(String),
}

/// A running server; it stops when this is dropped.
pub struct ServerHandle {
    addr: SocketAddr,
    credentials: Vec<Credentials>,
    /// The pair was made here: nobody else could tell a client.
    made: bool,
    region: String,
    ca_file: Option<PathBuf>,
    tls: bool,
    damaged: Vec<PathBuf>,
    front: Arc<Front>,
    stop: watch::Sender<bool>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle")
            .field("addr", &self.addr)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl ServerHandle {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The first pair, which is the generated one where none was given.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials[0]
    }

    /// `http://...` or `https://...`.
    pub fn endpoint(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.addr)
    }

    /// Files in the data directory that are not whole objects; they are left alone and not served.
    pub fn damaged(&self) -> &[PathBuf] {
        &self.damaged
    }

    /// Requests answered, and how many of them were refused by a limit.
    pub fn counts(&self) -> (u64, u64) {
        let Counts { requests, throttled, .. } = &self.front.counts;
        (requests.load(Ordering::Relaxed), throttled.load(Ordering::Relaxed))
    }

    /// What a parent process has to know, for one line on stdout.
    pub fn ready(&self) -> Ready {
        Ready {
            kind: "s3",
            address: self.addr.to_string(),
            endpoint: self.endpoint(),
            // Keys that the user gave are the user's to tell.
            access_key: self.made.then(|| self.credentials().access_key.clone()),
            secret_key: self.made.then(|| self.credentials().secret_key.clone()),
            region: Some(self.region.clone()),
            ca_file: self.ca_file.clone(),
            path: None,
            limits: None,
            pid: std::process::id(),
        }
    }

    /// Serves until the process ends.
    pub fn wait(&self) {
        loop {
            std::thread::park();
        }
    }

    /// Takes no more connections and ends; open requests get a second.
    pub fn stop(self) {}
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// Starts the server on threads of its own; the answer comes when it listens.
pub fn spawn(options: S3Options) -> Result<ServerHandle, S3ServerError> {
    let mut credentials = options.credentials.clone();
    let made = credentials.is_empty();
    if made {
        credentials.push(Credentials::generate()?);
    }
    // What no client could ask for is not made.
    if let Some(bad) = options.buckets.iter().find(|b| !s3s::path::check_bucket_name(b)) {
        return Err(S3ServerError::Bucket(bad.clone()));
    }
    let store = Store::open(&options.data, options.sync).map_err(|e| S3ServerError::Store(e.to_string()))?;
    for name in options.buckets.iter().filter(|b| store.bucket(b).is_err()) {
        store.create_bucket(name).map_err(|e| S3ServerError::Store(format!("bucket {name}: {e}")))?;
    }
    let damaged = store.damaged.clone();
    let tls = options.tls.as_ref().map(server_config).transpose()?;
    let ca_file = match options.tls.as_ref().map(|t| &t.source) {
        Some(TlsSource::SelfSigned { ca_out, .. }) => Some(ca_out.clone()),
        _ => None,
    };
    let listener = TcpListener::bind(options.listen).map_err(|e| S3ServerError::Listen(options.listen, e))?;
    listener.set_nonblocking(true)?;
    let addr = listener.local_addr()?;
    let front = Arc::new(Front {
        service: service(&options, &credentials, Arc::new(store))?,
        gate: options.limits.as_ref().map(|l| Arc::new(Gate::new(l))),
        timer: Arc::new(Timer::start()?),
        room: Arc::new(Semaphore::new(BUFFER_KIB as usize)),
        counts: Counts::default(),
    });
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if options.threads > 0 {
        builder.worker_threads(options.threads);
    }
    let runtime = builder.thread_name("s3").enable_all().build()?;
    let (stop, stopped) = watch::channel(false);
    let acceptor = tls.map(TlsAcceptor::from);
    let accept = Accept {
        front: front.clone(),
        acceptor: acceptor.clone(),
        max: options.max_connections.max(1),
        stopped,
    };
    runtime.spawn(async move { accept.run(listener).await });
    Ok(ServerHandle {
        addr,
        credentials,
        made,
        region: options.region,
        ca_file,
        tls: acceptor.is_some(),
        damaged,
        front,
        stop,
        runtime: Some(runtime),
    })
}

/// The keys that are let in; s3s checks the signature with the secret.
struct Keys(Vec<Credentials>);

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> s3s::S3Result<SecretKey> {
        match self.0.iter().find(|c| c.access_key == access_key) {
            Some(c) => Ok(c.secret_key.as_str().into()),
            None => Err(s3s::s3_error!(InvalidAccessKeyId, "this server does not know the access key")),
        }
    }
}

fn service(
    options: &S3Options,
    all: &[Credentials],
    store: Arc<Store>,
) -> Result<s3s::service::S3Service, S3ServerError> {
    let mut builder = S3ServiceBuilder::new(Backend {
        store,
        region: options.region.clone(),
        plain: options.tls.is_none(),
    });
    builder.set_auth(Keys(all.to_vec()));
    let mut config = S3Config::default();
    config.xml_max_body_size = XML_BYTES;
    config.post_object_max_file_size = FORM_BYTES;
    config.form_max_fields_size = 1 << 20;
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    if let Some(domain) = &options.domain {
        builder.set_host(SingleDomain::new(domain).map_err(|_| S3ServerError::Domain(domain.clone()))?);
    }
    Ok(builder.build())
}

struct Accept {
    front: Arc<Front>,
    acceptor: Option<TlsAcceptor>,
    max: usize,
    stopped: watch::Receiver<bool>,
}

impl Accept {
    async fn run(mut self, listener: TcpListener) {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let room = Arc::new(Semaphore::new(self.max));
        let mut connection = 0;
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let accepted = tokio::select! {
                a = listener.accept() => a,
                _ = self.stopped.changed() => return,
            };
            let Ok((stream, addr)) = accepted else {
                // Out of file descriptors, most likely: some will close.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            connection += 1;
            let peer = Arc::new(Peer { client: addr.ip().to_string(), connection });
            let (front, acceptor) = (self.front.clone(), self.acceptor.clone());
            let stopped = self.stopped.clone();
            tokio::spawn(async move {
                // Nagle and delayed acknowledgements would add 40 ms to small answers.
                let _ = stream.set_nodelay(true);
                match acceptor {
                    None => serve(Socket(stream), front, peer, stopped).await,
                    Some(a) => {
                        let handshake = tokio::time::timeout(Duration::from_secs(30), a.accept(stream));
                        if let Ok(Ok(stream)) = handshake.await {
                            serve(stream, front, peer, stopped).await;
                        }
                    }
                }
                drop(permit);
            });
        }
    }
}

async fn serve<S>(stream: S, front: Arc<Front>, peer: Arc<Peer>, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |req| front.clone().handle(req, peer.clone()));
    let mut builder = http1::Builder::new();
    // A client that does not finish its request head must not keep its place for ever.
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(60)).max_buf_size(128 << 10);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A connection's end is the client's affair.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
