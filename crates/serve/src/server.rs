//! The server: its address, its rules, the runs that it follows, and the thread that answers.

use std::collections::{BTreeMap, HashMap};
use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use plimsoll_store::RunDir;

use crate::access::PageAccess;
use crate::address::ListenAddress;
use crate::connections::{ConnectionLimits, answer_all};
use crate::follow::{RunFollower, give_way};
use crate::history::RunHistory;
use crate::now::LiveHints;
use crate::routes::routes;
use crate::tls::ServeCertificate;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or is not of this machine.
    #[error("cannot listen on {at}: {why}")]
    Listen {
        /// As it was asked for.
        at: ListenAddress,
        /// Of the system.
        why: std::io::Error,
    },
    /// No certificate could be made.
    #[error("no TLS certificate can be made: {0}")]
    Tls(String),
    /// The system gives no threads or descriptors.
    #[error("the server cannot be started: {0}")]
    Start(std::io::Error),
    /// What was given as token is none.
    #[error("a token has 16 characters or more, of letters, digits, '-', '.', '_' and '~'")]
    Token,
}

/// What a server is started with.
#[derive(Clone)]
pub struct ServeOptions {
    /// Where it listens.
    pub address: ListenAddress,
    /// Below which runs are.
    pub root: PathBuf,
    /// Without which nothing is shown beyond this machine. `None`: a new one for each start.
    pub token: Option<String>,
    /// Names of this machine that it may be called by.
    pub names: Vec<String>,
}

/// Without its token.
impl std::fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions")
            .field("address", &self.address)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// A run of this process.
pub struct OwnRun {
    dir: PathBuf,
    stop: Box<dyn Fn() -> bool + Send>,
    follower: Arc<RunFollower>,
}

impl std::fmt::Debug for OwnRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnRun").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// What the answers are made of.
#[derive(Debug)]
pub struct ServeState {
    pub root: PathBuf,
    pub history: Arc<RunHistory>,
    pub access: PageAccess,
    /// Content-Security-Policy of all pages.
    pub policy: String,
    /// Begins the names of feeds.
    start: String,
    followers: Mutex<HashMap<String, Arc<RunFollower>>>,
    own: Mutex<BTreeMap<String, OwnRun>>,
    feeds: std::sync::atomic::AtomicU64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a run could be called so: a name, and no path.
pub fn is_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.chars().all(plain)
}

impl ServeState {
    /// The directory of a run; `None`: there is none of this name.
    pub fn dir(&self, id: &str) -> Option<RunDir> {
        if let Some(own) = held(&self.own).get(id) {
            return RunDir::open(&own.dir).ok();
        }
        is_name(id).then(|| RunDir::open(&self.root.join(id)).ok()).flatten()
    }

    pub fn is_own(&self, id: &str) -> bool {
        held(&self.own).contains_key(id)
    }

    /// Whether it goes on, or its end has still to be told.
    pub fn is_live(&self, id: &str, dir: &RunDir) -> bool {
        let own = held(&self.own).get(id).map(|o| !o.follower.feed().is_over());
        own.unwrap_or_else(|| dir.is_running())
    }

    /// Whoever follows a run; begun where nobody does.
    pub fn follow(&self, id: &str, dir: RunDir) -> std::io::Result<Arc<RunFollower>> {
        if let Some(own) = held(&self.own).get(id) {
            return Ok(Arc::clone(&own.follower));
        }
        let mut followers = held(&self.followers);
        // Of those that are over, whoever asks for metrics has the last counters for a while; who asks for the page has a new look.
        followers.retain(|_, f| !f.is_forgotten());
        if let Some(follower) = followers.get(id).filter(|f| !f.feed().is_over()) {
            return Ok(Arc::clone(follower));
        }
        let follower = RunFollower::start(dir, self.feed_name(), false)?;
        followers.insert(id.to_owned(), Arc::clone(&follower));
        Ok(follower)
    }

    /// All that are followed now.
    pub fn followed(&self) -> Vec<(String, Arc<RunFollower>)> {
        let mut all: Vec<_> =
            held(&self.own).iter().map(|(id, o)| (id.clone(), Arc::clone(&o.follower))).collect();
        all.extend(held(&self.followers).iter().map(|(id, f)| (id.clone(), Arc::clone(f))));
        all
    }

    /// Ends a run of this process; false: it is ending already. `None`: it is none of this process.
    pub fn stop(&self, id: &str) -> Option<bool> {
        held(&self.own).get(id).map(|own| (own.stop)())
    }

    fn feed_name(&self) -> String {
        format!("{}-{}", self.start, self.feeds.fetch_add(1, Ordering::Relaxed))
    }
}

/// A server, with its thread. It answers until it is dropped.
#[derive(Debug)]
pub struct LiveServer {
    state: Arc<ServeState>,
    at: ListenAddress,
    fingerprint: Option<String>,
    /// The token was made up here, and nobody else has it.
    shows_token: bool,
    stopped: Arc<AtomicBool>,
}

impl LiveServer {
    /// Listens, and answers from now on.
    pub fn start(options: ServeOptions) -> Result<Self, ServeError> {
        let failed = |why| ServeError::Listen { at: options.address, why };
        let listener = StdListener::bind(options.address.0).map_err(failed)?;
        listener.set_nonblocking(true).map_err(ServeError::Start)?;
        let at = ListenAddress(listener.local_addr().map_err(ServeError::Start)?);
        let certificate = match at.is_loopback() {
            true => None,
            false => {
                let mut names = options.names.clone();
                names.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
                names.extend((!at.0.ip().is_unspecified()).then(|| at.0.ip().to_string()));
                Some(ServeCertificate::make(names)?)
            }
        };
        let shows_token = options.token.is_none();
        if options.token.as_deref().is_some_and(|t| !is_token(t)) {
            return Err(ServeError::Token);
        }
        let token = certificate.is_some().then(|| options.token.clone().unwrap_or_else(secret));
        let access = PageAccess {
            port: at.0.port(),
            scheme: if certificate.is_some() { "https" } else { "http" },
            names: options.names,
            loopback: at.is_loopback(),
            token,
            session: secret(),
            page_token: secret(),
        };
        let state = Arc::new(ServeState {
            history: RunHistory::new(options.root.clone(), None),
            root: options.root,
            access,
            policy: policy(),
            start: secret()[..8].to_owned(),
            followers: Mutex::default(),
            own: Mutex::default(),
            feeds: Default::default(),
        });
        let stopped = Arc::new(AtomicBool::new(false));
        let fingerprint = certificate.as_ref().map(|c| c.fingerprint.clone());
        let (of_thread, until) = (Arc::clone(&state), Arc::clone(&stopped));
        let answer = move || answer(of_thread, listener, certificate, &until);
        std::thread::Builder::new().name("serves-pages".into()).spawn(answer).map_err(ServeError::Start)?;
        Ok(Self { state, at, fingerprint, shows_token, stopped })
    }

    /// Where a browser finds `path`. With the token that was made for this start.
    pub fn url(&self, path: &str) -> String {
        let access = &self.state.access;
        let token = access.token.as_deref().filter(|_| self.shows_token);
        let query = token.map_or(String::new(), |t| format!("?token={t}"));
        let ip = self.at.0.ip();
        let host = match (ip.is_unspecified(), access.names.first()) {
            (true, Some(name)) => format!("{name}:{}", access.port),
            _ => self.at.to_string(),
        };
        format!("{}://{host}{path}{query}", access.scheme)
    }

    /// SHA-256 of its certificate; `None`: it speaks no TLS.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// A run of this process has begun. `stop` asks it to end; false: it was asked before.
    pub fn begin(
        &self,
        id: &str,
        dir: &Path,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let opened = RunDir::open(dir).map_err(std::io::Error::other)?;
        let follower = RunFollower::start(opened, self.state.feed_name(), true)?;
        let own = OwnRun { dir: dir.to_owned(), stop: Box::new(stop), follower };
        held(&self.state.own).insert(id.to_owned(), own);
        Ok(())
    }

    /// What the run itself says. Takes a lock that is held for an assignment only.
    pub fn hint(&self, id: &str, change: impl FnOnce(&mut LiveHints)) {
        if let Some(own) = held(&self.state.own).get(id) {
            own.follower.hint(change);
        }
    }

    /// The run has ended: its pages are told its result, for at most `limit`.
    pub fn finish(&self, id: &str, limit: Duration) {
        let Some(follower) = held(&self.state.own).get(id).map(|o| Arc::clone(&o.follower)) else { return };
        let until = Instant::now() + limit;
        follower.has_ended();
        while !follower.feed().is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Pages that have it close their connection.
        while follower.feed().watchers() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Scripts that run are those of the page itself, by their hashes; nothing comes from elsewhere, and nothing goes elsewhere.
fn policy() -> String {
    let hash = |script: &str| {
        let sum = digest(&SHA256, script.as_bytes());
        format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(sum.as_ref()))
    };
    let pages = [plimsoll_report::page_scripts(), plimsoll_report::scripts_of(crate::list::TEMPLATE)];
    let scripts: Vec<String> = pages.concat().into_iter().map(hash).collect();
    let scripts = if scripts.is_empty() { "'none'".to_owned() } else { scripts.join(" ") };
    format!(
        "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// 128 random bits.
fn secret() -> String {
    let mut bytes = [0u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn is_token(text: &str) -> bool {
    text.len() >= 16 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
}

fn answer(
    state: Arc<ServeState>,
    listener: StdListener,
    certificate: Option<ServeCertificate>,
    stopped: &AtomicBool,
) {
    give_way();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .thread_name("serves-pages")
        .build();
    // Without it nobody is answered, and the run goes on.
    let Ok(runtime) = runtime else { return };
    let serve = async move {
        let app = routes(state);
        let Ok(tcp) = tokio::net::TcpListener::from_std(listener) else { return };
        answer_all(tcp, certificate.map(|c| c.config), app, ConnectionLimits::default()).await;
    };
    runtime.block_on(async {
        tokio::select! {
            () = serve => {}
            () = async {
                while !stopped.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            } => {}
        }
    });
    runtime.shutdown_background();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_run_is_a_path() {
        assert!(is_name("20261124-150000-ab12"));
        for bad in ["", ".", "..", "../x", "a/b", "a\\b", "%2e%2e", ".hidden", "a\0b", &"x".repeat(129)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_token_can_be_typed_into_an_address() {
        assert!(is_token(&secret()) && !is_token("short") && !is_token("sixteen letters & more"));
    }
}
