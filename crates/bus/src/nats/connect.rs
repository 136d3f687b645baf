//! The way to the broker: all addresses of the token, soon one after the other, and the first that leads there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;

use super::pinned;
use super::watch::Watch;
use crate::login::Login;
use crate::token::Trust;
use crate::{BusError, Identity};

/// A dead link is noticed after two of these without an answer.
const PING: Duration = Duration::from_secs(3);
/// One address gets so long. A broker that a thousand agents reach at once needs some of it.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The next address is tried when the one before has not answered for so long.
const STAGGER: Duration = Duration::from_millis(300);
/// One thread of this process does all handshakes: more of them at once would only make each slower, up to its limit of time.
static AT_ONCE: Semaphore = Semaphore::const_new(16);
/// So often in a row all addresses are tried, where that can help.
const ROUNDS: usize = 6;
/// Between attempts to come back, at most.
const LONGEST_PAUSE_MS: u64 = 4_000;

/// Where a broker is, and by what it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// `host:port`, the likeliest first.
    pub addresses: Vec<String>,
    /// By what it is known.
    pub trust: Trust,
}

/// Who connects.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// One of the fleet's own keys.
    Own(&'a Identity),
    /// With what the owner of the broker gave; the key is only for a subject of one's own.
    Guest(&'a Login, &'a Identity),
}

impl Caller<'_> {
    /// Nobody else of this broker has it.
    pub fn key(&self) -> String {
        match self {
            Self::Own(identity) | Self::Guest(_, identity) => identity.public(),
        }
    }
}

/// Why one address did not lead there.
#[derive(Debug)]
enum Failure {
    /// It is the broker, and it does not want us: no other address will do better.
    Unwanted,
    /// Somebody else answers there.
    Another,
    /// Somebody answered, and broke off.
    BrokenOff(String),
    /// Nobody is there.
    Nobody(String),
    /// It is us: the client library cannot read this machine's roots of trust. It does not use them, but it reads them.
    Roots(String),
}

/// What came of trying all addresses once.
enum Round {
    Connected(Client),
    /// It may be otherwise in a moment.
    Again(BusError),
}

/// Tries all addresses; the first to answer wins. A broker that reads its users again just now throws out whoever is about to say
/// who it is: being refused or broken off counts only when it comes again.
pub async fn connect(
    broker: &Broker,
    caller: Caller<'_>,
    name: &str,
    watch: &Arc<Watch>,
) -> Result<Client, BusError> {
    let jitter = jitter_of(&caller.key());
    let mut tried = 0;
    loop {
        tried += 1;
        match round(broker, caller, name, watch).await? {
            Round::Connected(client) => return Ok(client),
            Round::Again(e) if tried == ROUNDS => return Err(e),
            Round::Again(_) => tokio::time::sleep(pause(tried + 2, jitter)).await,
        }
    }
}

async fn round(
    broker: &Broker,
    caller: Caller<'_>,
    name: &str,
    watch: &Arc<Watch>,
) -> Result<Round, BusError> {
    let mut attempts = FuturesUnordered::new();
    for (place, address) in broker.addresses.iter().enumerate() {
        let options = options(broker.trust, caller, name, watch)?;
        attempts.push(async move {
            tokio::time::sleep(STAGGER * place as u32).await;
            (address, attempt(address, broker.trust, options).await)
        });
    }
    let mut failures = Vec::new();
    while let Some((address, outcome)) = attempts.next().await {
        match outcome {
            Ok(client) => return Ok(Round::Connected(client)),
            Err(Failure::Roots(why)) => return Err(roots(&why)),
            Err(Failure::Unwanted) => return Ok(Round::Again(unwanted(address, caller))),
            Err(failure) => failures.push((address.as_str(), failure)),
        }
    }
    let error = unreachable(&failures, broker.trust.is_own());
    let broken = failures.iter().any(|(_, f)| matches!(f, Failure::BrokenOff(_)));
    if broken { Ok(Round::Again(error)) } else { Err(error) }
}

fn unwanted(address: &str, caller: Caller<'_>) -> BusError {
    if let Caller::Guest(login, _) = caller {
        return BusError::refused(
            format!("the broker at {address} does not let us in ({})", login.words()),
            "Give the credentials that its owner made for this: --creds FILE, or NATS_CREDS, NATS_NKEY, or NATS_USER and \
             NATS_PASSWORD in the environment",
        );
    }
    BusError::refused(
        format!("the broker at {address} does not know this key"),
        "The fleet was started again, or the token has expired: take the token of `plimsoll fleet token`",
    )
}

fn roots(why: &str) -> BusError {
    BusError::refused(
        format!("the certificates that this machine trusts cannot be read: {why}"),
        "Correct SSL_CERT_FILE or SSL_CERT_DIR, or unset them",
    )
}

fn unreachable(failures: &[(&str, Failure)], is_own: bool) -> BusError {
    let another = failures.iter().any(|(_, f)| matches!(f, Failure::Another));
    let word = |(address, failure): &(&str, Failure)| match failure {
        Failure::BrokenOff(why) | Failure::Nobody(why) => format!("{address}: {why}"),
        _ => format!("{address}: another broker, {}", pinned::ANOTHER),
    };
    let all: Vec<String> = failures.iter().map(word).collect();
    let problem = format!("no broker of this fleet answers ({})", all.join("; "));
    if !is_own {
        return BusError::unreachable(
            problem,
            "Correct --nats, or --ca where its certificate is not trusted",
        );
    }
    if another {
        let remedy =
            "The fleet was started again, or somebody else answers under its address: take a new token";
        BusError::refused(problem, remedy)
    } else {
        BusError::unreachable(problem, "Is the fleet up, and is its port open towards this machine?")
    }
}

async fn attempt(address: &str, trust: Trust, options: ConnectOptions) -> Result<Client, Failure> {
    // It is never closed, so this does not fail; an attempt without a permit would be none the worse.
    let _permit = AT_ONCE.acquire().await;
    let no_address = |_| Failure::Nobody("this is no address".to_owned());
    let scheme = if trust == Trust::Plain { "nats" } else { "tls" };
    let parsed: ServerAddr = format!("{scheme}://{address}").parse().map_err(no_address)?;
    options.connect(parsed).await.map_err(|e| {
        let text = format!("{e:?}");
        match e.kind() {
            ConnectErrorKind::AuthorizationViolation => Failure::Unwanted,
            _ if text.contains(pinned::ANOTHER) => Failure::Another,
            ConnectErrorKind::TimedOut => Failure::Nobody("no answer".to_owned()),
            ConnectErrorKind::Dns => Failure::Nobody("this name is not known here".to_owned()),
            ConnectErrorKind::Tls if text.contains("platform certs") => Failure::Roots(e.to_string()),
            _ if text.contains("ConnectionRefused") => Failure::Nobody("nobody listens there".to_owned()),
            _ => Failure::BrokenOff(e.to_string()),
        }
    })
}

fn options(
    trust: Trust,
    caller: Caller<'_>,
    name: &str,
    watch: &Arc<Watch>,
) -> Result<ConnectOptions, BusError> {
    let watch = watch.clone();
    let key = caller.key();
    let jitter = jitter_of(&key);
    let options = match caller {
        Caller::Own(identity) => ConnectOptions::with_nkey(identity.seed().to_owned()),
        Caller::Guest(login, _) => login.options()?,
    };
    let options = match trust {
        Trust::Own(pin) => options.tls_client_config(pinned::client_config(pin)?).require_tls(true),
        Trust::Shown(pin) => options.tls_client_config(pinned::authority_config(pin)?).require_tls(true),
        Trust::System => options.require_tls(true),
        Trust::Plain => options,
    };
    Ok(options
        .name(name)
        // Nobody may read it, so that a request that slips in fails and leaks nothing.
        .custom_inbox_prefix(format!("_INBOX_{key}"))
        .ignore_discovered_servers()
        .ping_interval(PING)
        .connection_timeout(ATTEMPT)
        .reconnect_delay_callback(move |attempts| pause(attempts, jitter))
        .event_callback(move |event| {
            watch.tell(&event);
            std::future::ready(())
        }))
}

/// Longer from attempt to attempt, and another for each client, so that a thousand of them do not come back at once.
fn pause(attempts: usize, jitter: u64) -> Duration {
    if attempts <= 1 {
        return Duration::ZERO;
    }
    let most = (20u64 << attempts.min(10)).min(LONGEST_PAUSE_MS);
    // Half of it is fixed, half is this client's and this attempt's.
    let part = (jitter.wrapping_mul(attempts as u64 | 1) >> 32) % (most / 2 + 1);
    Duration::from_millis(most / 2 + part)
}

/// FNV-1a of a client's key.
fn jitter_of(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ() {
        assert_eq!(pause(1, 7), Duration::ZERO);
        let longest = Duration::from_millis(LONGEST_PAUSE_MS);
        let of = |key: &str| (2..20).map(|n| pause(n, jitter_of(key))).collect::<Vec<_>>();
        let (one, two) = (of("one"), of("two"));
        assert!(one.iter().all(|p| *p <= longest) && one[17] >= longest / 2);
        assert!(one.iter().zip(&two).filter(|(a, b)| a != b).count() > 12, "{one:?} {two:?}");
        assert!(one[0] < Duration::from_millis(100));
    }
}
