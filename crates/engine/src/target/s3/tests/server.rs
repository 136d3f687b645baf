//! A server for tests: threads and std only, and a script that says how each request is answered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Number of the request on its connection, and of the connection, from 0.
    pub on_connection: usize,
    pub connection: usize,
}

/// How a request is answered.
pub enum Reply {
    /// These bytes; the connection stays.
    Bytes(Vec<u8>),
    /// These pieces, each sent when the one before has surely been taken.
    Pieces(Vec<Vec<u8>>),
    /// These bytes, then the end of the connection.
    Close(Vec<u8>),
    /// These bytes, then a reset in the middle of what was promised.
    Reset(Vec<u8>),
    /// Nothing, until the client goes away.
    Silence,
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

pub struct Server {
    scheme: &'static str,
    pub port: u16,
    pub seen: Arc<Mutex<Vec<Request>>>,
}

/// Objects by path.
pub type Store = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

impl Server {
    pub fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, script)
    }

    /// With TLS when there is a configuration.
    pub fn start_with(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_as(tls, true, script)
    }

    /// One that never says `100 Continue`, as old servers and some proxies do.
    pub fn start_deaf(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_as(None, false, script)
    }

    fn start_as(
        tls: Option<Arc<rustls::ServerConfig>>,
        continues: bool,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script: Arc<Script> = Arc::new(script);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                let (script, log) = (script.clone(), log.clone());
                let Ok(stream) = stream else { return };
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    None => serve(&mut BufReader::new(stream), (n, continues), &*script, &log),
                    Some(config) => {
                        let connection = rustls::ServerConnection::new(config).unwrap();
                        let stream = rustls::StreamOwned::new(connection, stream);
                        serve(&mut BufReader::new(stream), (n, continues), &*script, &log);
                    }
                });
            }
        });
        Self { scheme, port, seen }
    }

    /// Keeps and gives objects as S3 does: PUT, GET, HEAD, DELETE, ranges.
    pub fn storing() -> (Self, Store) {
        Self::storing_with(None)
    }

    pub fn storing_with(tls: Option<Arc<rustls::ServerConfig>>) -> (Self, Store) {
        let store = Store::default();
        let kept = store.clone();
        (Self::start_with(tls, move |r| Reply::Bytes(answer(r, &kept))), store)
    }

    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// Status line, `Content-Length`, other headers (each with its line end), body.
pub fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out =
        format!("HTTP/1.1 {status}\r\nServer: test\r\nContent-Length: {}\r\n{headers}\r\n", body.len())
            .into_bytes();
    out.extend_from_slice(body);
    out
}

pub fn error(status: &str, code: &str, headers: &str) -> Vec<u8> {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>because</Message></Error>");
    http(status, headers, body.as_bytes())
}

fn answer(r: &Request, store: &Store) -> Vec<u8> {
    let mut objects = store.lock().unwrap();
    match r.method.as_str() {
        "PUT" => {
            objects.insert(r.path.clone(), r.body.clone());
            http("200 OK", "ETag: \"e\"\r\n", b"")
        }
        "DELETE" => {
            objects.remove(&r.path);
            b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()
        }
        "HEAD" => match objects.get(&r.path) {
            Some(o) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", o.len()).into_bytes(),
            None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\n".to_vec(),
        },
        _ => match (objects.get(&r.path), r.headers.get("range")) {
            (None, _) => error("404 Not Found", "NoSuchKey", ""),
            (Some(o), None) => http("200 OK", "", o),
            (Some(o), Some(range)) => {
                let (a, b) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                let (a, b): (usize, usize) = (a.parse().unwrap(), b.parse().unwrap());
                http("206 Partial Content", "", &o[a..=b])
            }
        },
    }
}

/// A stream of which a test may ask whether its bytes were taken.
trait Wire: Read + Write {
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
    fn tcp(&self) -> &TcpStream {
        &self.sock
    }
}

fn serve(
    reader: &mut BufReader<impl Wire>,
    (connection, continues): (usize, bool),
    script: &Script,
    log: &Mutex<Vec<Request>>,
) {
    for on_connection in 0.. {
        let Some(mut request) = read_head(reader) else { return };
        request.on_connection = on_connection;
        request.connection = connection;
        if continues && request.headers.contains_key("expect") {
            // Asked before the body comes: a refusal now must keep it from being sent.
            if let Reply::Close(bytes) = script(&request) {
                log.lock().unwrap().push(request);
                let _ = reader.get_mut().write_all(&bytes);
                return;
            }
            reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        }
        let length = request.headers.get("content-length").map_or(0, |l| l.parse().unwrap());
        request.body = vec![0; length];
        if reader.read_exact(&mut request.body).is_err() {
            return;
        }
        log.lock().unwrap().push(request.clone());
        match script(&request) {
            Reply::Bytes(b) => {
                if reader.get_mut().write_all(&b).is_err() {
                    return;
                }
            }
            Reply::Pieces(pieces) => {
                for p in pieces {
                    if reader.get_mut().write_all(&p).is_err() {
                        return;
                    }
                    wait_until_taken(reader.get_ref().tcp());
                }
            }
            Reply::Close(b) => {
                let _ = reader.get_mut().write_all(&b);
                return;
            }
            Reply::Reset(b) => {
                let _ = reader.get_mut().write_all(&b);
                wait_until_taken(reader.get_ref().tcp());
                reset(reader.get_ref().tcp());
                return;
            }
            Reply::Silence => {
                let _ = reader.read(&mut [0; 16]);
                return;
            }
        }
    }
}

fn read_head(reader: &mut BufReader<impl Wire>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let mut request = Request { method: words.next()?.into(), ..Request::default() };
    let target = words.next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    request.path = path.into();
    request.query = query.into();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Some(request) };
        request.headers.insert(name.to_lowercase(), value.trim().into());
    }
}

/// Waits until the peer's kernel has acknowledged all (SIOCOUTQ is zero), and its process had its turn.
fn wait_until_taken(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let mut left: libc::c_int = 1;
    while left > 0 {
        // SAFETY: the descriptor is open; the argument is an int to write to.
        if unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut left) } < 0 {
            return;
        }
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(2));
}

/// Makes the coming close a reset: no lingering, and what is in flight is thrown away.
fn reset(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open, and the option's value has the type and size that are named.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}
