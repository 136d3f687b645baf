//! The first pass over a file of requests: what there is, and in which order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;

use plimsoll_model::{OpKind, Outcome};

use super::request::{Request, Requests};
use super::stages::{Divider, StageSpan};
use crate::error::ImportError;
use crate::line::word;

/// More endpoints than this are not told apart.
const MOST_ENDPOINTS: usize = 64;
/// Threads of all clients.
const MOST_THREADS: usize = 1 << 20;
/// Clients that are told apart.
const MOST_CLIENTS: usize = 10_000;
/// Bytes of the name of a client or an endpoint: what is told apart is held.
const MOST_NAME: usize = 1024;
/// Payload of all requests of a kind: an exbibyte. What is more cannot be added up.
const MOST_BYTES: u64 = 1 << 60;
/// Longest test: a year and more is a wrong clock.
const MOST_SPAN_NS: i64 = 366 * 86_400 * 1_000_000_000;

/// Of the requests of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindCounts {
    /// All of them.
    pub requests: u64,
    /// That ended well.
    pub ok: u64,
    /// Of those that ended well.
    pub bytes: u64,
    /// Smallest of those that ended well.
    pub smallest: u64,
    /// Largest of them.
    pub largest: u64,
}

/// What a file of requests holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Survey {
    /// All rows, those of ops that we have not included.
    pub requests: u64,
    /// In order of time.
    pub stages: Vec<StageSpan>,
    /// Of each stage: by kind.
    pub kinds: BTreeMap<OpKind, KindCounts>,
    /// Servers that the requests went to; empty: the file does not say, or there are too many.
    pub endpoints: Vec<String>,
    /// warp clients that took part; 0: the file does not say.
    pub clients: usize,
    /// Threads of them all: ops in flight at most.
    pub threads: u32,
    /// Ops that we have no name for: how many of each.
    pub unknown: BTreeMap<String, u64>,
    /// The first error of each kind, in words.
    pub errors: BTreeMap<String, (OpKind, String)>,
    /// Requests that failed or were refused.
    pub failed: u64,
    /// How far back a row may start from the latest start so far, nanoseconds: 0 where rows are in order.
    pub disorder_ns: u64,
    /// What warp was started with, secrets left out; empty: the file does not say.
    pub command: String,
}

impl Survey {
    /// When the first request started, nanoseconds since 1970.
    pub fn start_ns(&self) -> i64 {
        self.stages.first().map_or(0, |s| s.start_ns)
    }

    /// The stage of a request.
    pub(super) fn stage_of(&self, kind: OpKind, start_ns: i64) -> Option<usize> {
        let at =
            |s: &StageSpan| s.kinds.contains(&kind) && (s.start_ns..=s.last_start_ns).contains(&start_ns);
        self.stages.iter().position(at)
    }

    /// RFC 3339.
    pub fn started_at(&self) -> String {
        jiff::Timestamp::from_nanosecond(i128::from(self.start_ns()))
            .map(|t| t.to_string())
            .unwrap_or_default()
    }
}

/// Reads a file of requests once. An error where it has none, is cut off, or is not of one test.
pub fn survey(reader: impl Read) -> Result<Survey, ImportError> {
    let mut requests = Requests::open(reader)?;
    let mut out = Survey::default();
    let mut divider = Divider::new();
    let mut seen = Seen::default();
    let (mut latest, mut first, mut last) = (i64::MIN, i64::MAX, i64::MIN);
    while let Some(r) = requests.next()? {
        out.requests += 1;
        let Some(kind) = r.kind else {
            if out.unknown.len() < 32 {
                *out.unknown.entry(word(requests.op())).or_default() += 1;
            }
            continue;
        };
        (first, last) = (first.min(r.start_ns), last.max(r.end_ns));
        if last - first > MOST_SPAN_NS {
            return Err(requests.bad(
                "the requests are more than a year apart",
                "A clock was set while warp ran, or files of several tests were put together: import each by itself.",
            ));
        }
        out.disorder_ns = out.disorder_ns.max(latest.saturating_sub(r.start_ns).max(0) as u64);
        latest = latest.max(r.start_ns);
        divider.add(kind, r.start_ns, r.end_ns);
        if out.count(kind, &r) > MOST_BYTES {
            return Err(requests.bad(
                "the objects so far are more than an exbibyte",
                "The file is damaged, or was changed: import it as warp wrote it.",
            ));
        }
        names(&requests)?;
        seen.add(&r, &requests);
        if r.outcome != Outcome::Ok {
            out.failed += 1;
            let said = || (kind, word(requests.error()));
            out.errors.entry(r.outcome.name().to_owned()).or_insert_with(said);
        }
    }
    out.stages = divider.stages();
    if out.stages.is_empty() {
        return Err(ImportError::new(
            "there is no request in it",
            "warp was stopped before its first request, or measured other ops than Plimsoll has: repeat the test.",
        ));
    }
    out.threads = seen.threads.len() as u32;
    out.clients = seen.clients.len();
    if seen.endpoints.len() <= MOST_ENDPOINTS {
        out.endpoints = seen.endpoints.into_iter().collect();
    }
    out.command = command(&requests.comments());
    Ok(out)
}

impl Survey {
    /// The bytes of this kind so far.
    fn count(&mut self, kind: OpKind, r: &Request) -> u64 {
        let k = self.kinds.entry(kind).or_default();
        k.requests += 1;
        if r.outcome == Outcome::Ok {
            k.smallest = if k.ok == 0 { r.bytes } else { k.smallest.min(r.bytes) };
            k.largest = k.largest.max(r.bytes);
            k.ok += 1;
            k.bytes = k.bytes.saturating_add(r.bytes);
        }
        k.bytes
    }
}

/// Refuses what is no name.
fn names<R: Read>(row: &Requests<R>) -> Result<(), ImportError> {
    let long = [("client_id", row.client()), ("endpoint", row.endpoint())];
    match long.into_iter().find(|(_, name)| name.len() > MOST_NAME) {
        Some((column, _)) => Err(row.bad(
            &format!("{column} has more than {MOST_NAME} bytes"),
            "The file is damaged there, or was changed: import it as warp wrote it.",
        )),
        None => Ok(()),
    }
}

/// What is told apart, up to a bound.
#[derive(Default)]
struct Seen {
    threads: HashSet<(u32, u32)>,
    clients: BTreeMap<String, u32>,
    endpoints: BTreeSet<String>,
}

impl Seen {
    fn add<R: Read>(&mut self, r: &Request, row: &Requests<R>) {
        let (client, endpoint) = (row.client(), row.endpoint());
        if !client.is_empty() && !self.clients.contains_key(client) && self.clients.len() < MOST_CLIENTS {
            self.clients.insert(client.to_owned(), self.clients.len() as u32);
        }
        if !endpoint.is_empty()
            && self.endpoints.len() <= MOST_ENDPOINTS
            && !self.endpoints.contains(endpoint)
        {
            self.endpoints.insert(endpoint.to_owned());
        }
        if self.threads.len() < MOST_THREADS {
            // Threads are numbered within a client.
            self.threads.insert((self.clients.get(client).copied().unwrap_or_default(), r.thread));
        }
    }
}

/// The command line behind the table, without what may be a secret.
fn command(comments: &[String]) -> String {
    let line = comments.iter().find(|c| c.contains("warp")).cloned().unwrap_or_default();
    without_keys(&line)
}

/// Leaves the values of options out that hold keys and passwords. (warp does so itself from 0.3 on.)
pub(crate) fn without_keys(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut hide = false;
    for w in line.split_whitespace() {
        let name = w.split('=').next().unwrap_or_default().to_lowercase();
        let is_option = name.starts_with('-');
        let is_key = is_option
            && ["key", "secret", "password", "token", "credential"].iter().any(|k| name.contains(k));
        match (hide && !is_option, is_key, w.contains('=')) {
            (true, ..) => words.push("(left out)".into()),
            (_, true, true) => words.push(format!("{}=(left out)", w.split('=').next().unwrap_or_default())),
            _ => words.push(w.to_owned()),
        }
        hide = is_key && !w.contains('=');
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_can_be_added_up_are_refused() {
        let head = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\tcat\n";
        let row = "1\t0\tGET\tc\t1\t54975581388800\th\tf\t\t2026-11-23T10:00:00Z\t\t2026-11-23T10:00:01Z\t1000000000\t0\n";
        assert!(survey((head.to_owned() + &row.repeat(20_000)).as_bytes()).is_ok());
        let e = survey((head.to_owned() + &row.repeat(21_000)).as_bytes()).unwrap_err();
        assert!(e.place == "line 20973" && e.problem.contains("exbibyte"), "{e}");
    }

    #[test]
    fn keys_of_a_command_line_are_left_out() {
        let line = "warp get --host=h:9000 --access-key=AK --secret-key SK --bucket b --sse-c-key=K";
        assert_eq!(
            without_keys(line),
            "warp get --host=h:9000 --access-key=(left out) --secret-key (left out) --bucket b --sse-c-key=(left out)"
        );
    }
}
