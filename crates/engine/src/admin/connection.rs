//! One blocking HTTP/1.1 connection, plain or TLS, opened when it is needed and again when it was lost.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::plan::TlsSpec;
use plimsoll_model::units::Span;
use plimsoll_s3::Endpoint;
use plimsoll_s3::response::{ResponseEvent, ResponseHead, ResponseParser};
use plimsoll_s3::xml::{ErrorDocument, MAX_DOCUMENT_BYTES};
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::{AdminSetup, GiveUp, parse_error};
use crate::target::s3::config::addresses_of;
use crate::target::s3::tls;
use stream::{Stream, Tls, is_later};

mod stream;

/// Three attempts of TCP (at 0, 1 and 3 s). Who has not taken a connection by then is away.
const CONNECT: Duration = Duration::from_secs(5);

/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// So much of a request is taken within the limit, bytes.
const PART: usize = 64 << 10;
/// What an answer's error says that came in part, and not in full in time.
const TRICKLES: &str = "the answer trickles";
/// What it says when nobody wants it any more.
const UNWANTED: &str = "no longer waiting for it";

/// A complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub head: ResponseHead,
    pub body: Vec<u8>,
    /// The error that the body tells of, also under a 2xx status.
    pub error: Option<ErrorDocument>,
}

/// No answer, in words.
#[derive(Debug)]
pub(super) struct Lost {
    /// The connection had been made: it broke, rather than never being there.
    pub was_open: bool,
    pub message: String,
    /// A connection was made, whatever came of it.
    pub connected: bool,
    /// What to do about it; may be empty.
    pub remedy: &'static str,
}

impl Lost {
    fn unreached(message: String, remedy: &'static str) -> Self {
        Self { was_open: false, connected: false, message, remedy }
    }
}

pub(super) struct Connection {
    host: String,
    port: u16,
    shown: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    timeout: Duration,
    /// When nobody waits any longer.
    pub give_up: GiveUp,
    stream: Option<Stream>,
    parser: ResponseParser,
    buffer: Vec<u8>,
    /// The longest answer that is taken.
    most_bytes: usize,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({}, open: {})", self.shown, self.stream.is_some())
    }
}

impl Connection {
    pub fn new(setup: &AdminSetup) -> Result<Self, String> {
        let bucket = setup.virtual_host.then_some(setup.bucket.as_str());
        Self::to(&setup.endpoint, bucket, &setup.tls, (setup.timeout, MAX_DOCUMENT_BYTES))
    }

    /// To a server of which no more is known; `limits`: for connecting and then for the answer, and the most bytes of that.
    pub fn to(
        e: &Endpoint,
        bucket: Option<&str>,
        tls: &TlsSpec,
        (timeout, most_bytes): (Duration, usize),
    ) -> Result<Self, String> {
        let tls =
            if e.tls { Some((tls::client_config(tls)?, tls::server_name(&e.host, bucket)?)) } else { None };
        Ok(Self {
            host: bucket.map_or_else(|| e.host.clone(), |b| format!("{b}.{}", e.host)),
            port: e.port,
            shown: e.to_string(),
            tls,
            timeout,
            most_bytes,
            give_up: GiveUp::default(),
            stream: None,
            parser: ResponseParser::new(),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// One request and its answer. A connection that the server closed while idle is opened again, once.
    pub fn exchange(&mut self, head: &[u8], body: &[u8], is_head: bool) -> Result<Answer, Lost> {
        let reused = self.stream.is_some();
        match self.once(head, body, is_head) {
            // A server that is silent on this connection is so on the next.
            Err(e) if e.was_open && reused && !self.parser.started() => {
                self.stream = None;
                self.once(head, body, is_head)
            }
            other => other,
        }
        .inspect_err(|_| self.stream = None)
    }

    fn once(&mut self, head: &[u8], body: &[u8], is_head: bool) -> Result<Answer, Lost> {
        if self.stream.is_none() {
            self.stream = Some(self.connect()?);
        }
        self.parser.begin(is_head);
        let shown = self.shown.clone();
        let sent = head.chunks(PART).chain(body.chunks(PART)).try_for_each(|part| self.send(part));
        let received = self.receive();
        match (sent, received) {
            // A server may refuse and close before it took all of the body: its answer counts.
            (_, Ok(answer)) => Ok(answer),
            (Err(e), _) | (Ok(()), Err(e)) => Err(lost(&shown, &e, self.timeout)),
        }
    }

    fn send(&mut self, part: &[u8]) -> io::Result<()> {
        let (begun, mut at) = (Instant::now(), 0);
        loop {
            self.still_waits(begun, false)?;
            let stream = self.stream.as_mut().expect("the caller opened it");
            let step = match at < part.len() {
                true => stream.write(&part[at..]).map(|n| at += n),
                false => match stream.is_flushed() {
                    Ok(true) => return Ok(()),
                    step => step.map(drop),
                },
            };
            match step {
                Err(e) if is_later(&e) => {}
                step => step?,
            }
        }
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let bad = |e: plimsoll_s3::Malformed| io::Error::other(e.to_string());
        let mut body = Vec::new();
        let begun = Instant::now();
        'receive: loop {
            self.still_waits(begun, self.parser.started())?;
            let stream = self.stream.as_mut().expect("the caller opened it");
            let n = match stream.read(&mut self.buffer) {
                Err(e) if is_later(&e) => continue,
                read => read?,
            };
            if n == 0 {
                self.parser.closed().map_err(bad)?;
                break;
            }
            let mut at = 0;
            loop {
                let (used, event) = self.parser.step(&self.buffer[at..n]).map_err(bad)?;
                at += used;
                match event {
                    ResponseEvent::NeedMore => break,
                    ResponseEvent::Continue | ResponseEvent::Head => {}
                    ResponseEvent::Body { len } => {
                        if body.len() + len > self.most_bytes {
                            let most = self.most_bytes;
                            let what = format!("an answer of more than {most} bytes");
                            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
                        }
                        body.extend_from_slice(&self.buffer[at - len..at]);
                    }
                    ResponseEvent::Done => break 'receive,
                }
            }
        }
        if !self.parser.reusable() {
            self.stream = None;
        }
        let head = self.parser.take_head();
        let error = parse_error(head.status, &body);
        Ok(Answer { head, body, error })
    }

    /// Nobody waits any longer.
    pub fn is_unwanted(&self) -> bool {
        self.give_up.is_due()
    }

    /// Waits, as long as that is wanted.
    pub fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.give_up.is_due() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn connect(&self) -> Result<Stream, Lost> {
        let Self { host, port, shown, .. } = self;
        let addresses = addresses_of(host, *port).map_err(|e| {
            let message = format!("cannot find the host '{host}' of {shown}: {e}");
            Lost::unreached(message, "Check the name, or the network")
        })?;
        let mut last = None;
        for a in &addresses {
            if self.give_up.is_due() {
                return Err(lost(shown, &unwanted(), self.timeout));
            }
            // The kernel is not asked in slices: what is left is the limit.
            let left = self.give_up.left().unwrap_or(CONNECT).max(LOOK);
            match TcpStream::connect_timeout(a, self.timeout.min(CONNECT).min(left)) {
                Ok(tcp) => {
                    // Each read and write is short, so that a wait can be ended.
                    let setup = tcp
                        .set_read_timeout(Some(self.timeout.min(LOOK)))
                        .and_then(|()| tcp.set_write_timeout(Some(self.timeout.min(LOOK))))
                        .and_then(|()| tcp.set_nodelay(true));
                    setup.map_err(|e| lost(shown, &e, self.timeout))?;
                    return self.wrap(tcp);
                }
                Err(e) => last = Some((a, e)),
            }
        }
        let Some((address, e)) = last else {
            return Err(Lost::unreached(format!("the host '{host}' has no address"), "Check the name"));
        };
        let remedy = match e.kind() {
            io::ErrorKind::ConnectionRefused => {
                "Nothing is listening there: check that the server is running, and the port"
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "Check the address and any firewall",
            _ => "Check the address and the network",
        };
        Err(Lost::unreached(format!("cannot connect to {shown} ({address}): {e}"), remedy))
    }

    fn wrap(&self, tcp: TcpStream) -> Result<Stream, Lost> {
        let Some((config, name)) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        let c = ClientConnection::new(config.clone(), name.clone())
            .map_err(|e| Lost::unreached(format!("TLS: {e}"), "Check the endpoint"))?;
        let mut tls = Tls { conn: c, sock: tcp, heard: false };
        // Handshake now, so that a certificate that is not trusted is told as that.
        let begun = Instant::now();
        while tls.conn.is_handshaking() {
            self.still_waits(begun, tls.heard).map_err(|e| lost(&self.shown, &e, self.timeout))?;
            match tls.shake() {
                Err(e) if is_later(&e) => {}
                step => step.map_err(|e| tls_trouble(&self.shown, &e))?,
            }
        }
        Ok(Stream::Tls(Box::new(tls)))
    }

    /// Whether something that began then may go on. `heard`: a part of it has come.
    fn still_waits(&self, begun: Instant, heard: bool) -> io::Result<()> {
        if self.give_up.is_due() {
            return Err(unwanted());
        }
        // One limit for the whole: it may come byte by byte.
        match (begun.elapsed() >= self.timeout, heard) {
            (false, _) => Ok(()),
            (true, true) => Err(io::Error::new(io::ErrorKind::TimedOut, TRICKLES)),
            (true, false) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

fn unwanted() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, UNWANTED)
}

/// A connection that was there and broke.
fn lost(shown: &str, e: &io::Error, timeout: Duration) -> Lost {
    let lost = match e.kind() {
        io::ErrorKind::TimedOut if e.to_string() == UNWANTED => {
            Lost::unreached(format!("no longer waiting for an answer from {shown}"), "")
        }
        io::ErrorKind::TimedOut if e.to_string() == TRICKLES => Lost::unreached(
            format!("{shown} began to answer but did not finish within {}", Span(timeout)),
            "Check that it is an S3 server and not overloaded",
        ),
        // Not tried again at once: each attempt would cost the whole time-out.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Lost::unreached(
            format!("{shown} accepted the connection but did not answer within {}", Span(timeout)),
            "Check that it is an S3 server and not overloaded",
        ),
        // The connection did not break: it is left. The next answer is hardly shorter.
        io::ErrorKind::FileTooLarge => Lost::unreached(
            format!("{shown} gave {e}, longer than expected"),
            "Check that this is the right address and port",
        ),
        // A TLS error shows only now, with the handshake, and does not go away by trying again.
        io::ErrorKind::InvalidData => tls_trouble(shown, e),
        _ => Lost {
            was_open: true,
            connected: true,
            message: format!("the connection to {shown} broke: {e}"),
            remedy: "Check that it is an S3 server, and look at its log",
        },
    };
    Lost { connected: true, ..lost }
}

fn tls_trouble(shown: &str, e: &io::Error) -> Lost {
    let text = e.to_string();
    let (what, remedy) = if text.contains("UnknownIssuer") {
        (
            ": its certificate is not signed by an authority that this machine trusts",
            "Give the CA with --ca-file, or use --insecure to accept any certificate",
        )
    } else if text.contains("NotValidForName") {
        (
            ": its certificate is for another name",
            "Use that name in --endpoint, or --insecure to accept any certificate",
        )
    } else if text.contains("Expired") {
        (
            ": its certificate has expired (or this machine's clock is wrong)",
            "Renew it, or use --insecure to accept any certificate",
        )
    } else if text.contains("corrupt message") || text.contains("InvalidContentType") {
        (": it does not use TLS", "Use http:// instead of https://")
    } else if text.contains("CertificateRequired") {
        (": it requires a client certificate", "Use --client-cert and --client-key")
    } else if text.contains("UnknownCA") || text.contains("DecryptError") || text.contains("BadCertificate") {
        (
            ": it does not accept the client's certificate",
            "Use a certificate signed by a CA that the server trusts",
        )
    } else if text.contains("ProtocolVersion") {
        (": it does not support this TLS version", "Omit --tls-version, or give another version")
    } else {
        ("", "Check the endpoint and its certificate")
    };
    Lost::unreached(format!("TLS with {shown} failed{what} ({text})"), remedy)
}

#[cfg(test)]
mod tests;
