//! Exchanges over real sockets with a scripted server, on both rings: what a real server does on its bad days.

use std::sync::{Arc, LazyLock};

use plimsoll_model::plan::{DataSpec, PayloadSigning, S3Target};
use plimsoll_model::{Op, OpKind, Outcome};
use plimsoll_s3::{Credentials, Endpoint};

use super::config::{ClientOptions, Config, Setup};
use super::content::{ContentDifference, Layout, ObjectContent};
use super::keys::KeyNames;
use super::machine::{Machine, Sink};
use crate::ring::{Completions, Ring, RingSpec, epoll::EpollRing, monotonic_ns, uring::UringRing};
use crate::target::{Done, OpStep};

mod ops;
mod server;
mod tls;
mod trouble;
mod water;

use server::Server;

/// What a run of some ops came to.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub done: Vec<Done>,
    pub moved: u64,
    pub first_bytes: u32,
    pub log: Log,
    pub discarded: u64,
    /// From, to, how often.
    pub redirects: Vec<(String, String, u64)>,
}

/// All that a sink is told.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub reconnects: u32,
    pub failures: Vec<(Outcome, OpKind, String)>,
    pub mismatches: Vec<(String, ContentDifference)>,
    pub parts: Vec<(Outcome, u64)>,
}

impl Sink for Log {
    fn reconnected(&mut self) {
        self.reconnects += 1;
    }
    fn failed(&mut self, outcome: Outcome, kind: OpKind, text: String) {
        self.failures.push((outcome, kind, text));
    }
    fn wants_text(&self, _outcome: Outcome, _kind: OpKind) -> bool {
        true
    }
    fn mismatch(&mut self, _op: &Op, key: String, difference: &ContentDifference) {
        self.mismatches.push((key, *difference));
    }
    fn part(&mut self, outcome: Outcome, bytes: u64, _endpoint: u16, _submitted_ns: u64) {
        self.parts.push((outcome, bytes));
    }
}

impl Ran {
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.done.iter().map(|d| d.outcome).collect()
    }
}

/// How a test's target differs from the plain one.
pub(super) struct Case {
    pub target: S3Target,
    pub options: ClientOptions,
    pub verify: bool,
    pub layout: Layout,
    pub sizes: Vec<u64>,
    pub slots: u32,
    /// Cancel what is in flight once nothing came for that many milliseconds, and as what. (Not after a time since the start: on a
    /// machine that stands still for it, what is there already would be cancelled.)
    pub cancel_after_ms: Option<u64>,
    pub cancel_as: Outcome,
    /// An address of the first server that comes before its own.
    pub first_address: Option<std::net::SocketAddr>,
    /// How long bodies wait for `100 Continue`.
    pub continue_ns: u64,
}

impl Case {
    pub fn new(servers: &[&Server]) -> Self {
        let urls: Vec<String> = servers.iter().map(|s| s.url()).collect();
        Self::at(&urls)
    }

    pub fn at(urls: &[String]) -> Self {
        // Through the plan's own defaults, as a user's plan comes.
        let target = S3Target {
            endpoints: urls.to_vec(),
            bucket: "b".into(),
            region: None,
            profile: None,
            addressing: Default::default(),
            signing: PayloadSigning::Unsigned,
            tls: Default::default(),
            create_bucket: false,
            prefix: None,
            timeout: plimsoll_model::units::Span(std::time::Duration::from_secs(5)),
            on_throttle: Default::default(),
            keep_alive: true,
            expect_continue: false,
            put_headers: Default::default(),
            redirects_to: Vec::new(),
            sse_c_key_file: None,
            checksum: Default::default(),
            embedded: None,
        };
        Self {
            target,
            options: ClientOptions::default(),
            verify: false,
            layout: Layout::Stamped,
            sizes: Vec::new(),
            slots: 1,
            cancel_after_ms: None,
            cancel_as: Outcome::Timeout,
            first_address: None,
            continue_ns: 1_000_000_000,
        }
    }

    /// The usual content is made once: it has a pool of random bytes.
    fn content(&self) -> Arc<ObjectContent> {
        static STAMPED: LazyLock<Arc<ObjectContent>> =
            LazyLock::new(|| Arc::new(ObjectContent::new(11, DataSpec::default(), Layout::Stamped, &[])));
        match self.layout {
            Layout::Stamped => STAMPED.clone(),
            Layout::Pool => Arc::new(ObjectContent::new(11, DataSpec::default(), Layout::Pool, &self.sizes)),
        }
    }

    fn config(&self) -> Config {
        Config::new(Setup {
            endpoints: self.target.endpoints.iter().map(|u| Endpoint::parse(u).unwrap()).collect(),
            redirects: self.target.redirects_to.iter().map(|u| Endpoint::parse(u).unwrap()).collect(),
            keys_in_use: Credentials {
                access_key: "AK".into(),
                secret_key: "SK".into(),
                session_token: Some("TOKEN".into()),
            }
            .into(),
            region: "us-east-1".into(),
            target: self.target.clone(),
            keys: KeyNames { prefix: "run/".into(), prefixes: 1, dataset: None, existing: None },
            content: self.content(),
            object: self.options.clone(),
        })
        .unwrap()
    }

    /// Runs the ops on io_uring (where it is allowed), then on epoll; `check` sees both.
    pub fn run_both(&self, ops: &[Op], check: impl Fn(&Ran)) {
        match self.run::<UringRing>(ops) {
            Ok(ran) => check(&ran),
            // A container may forbid io_uring; epoll must then carry the test.
            Err(e) => eprintln!("io_uring is not available here: {e}"),
        }
        check(&self.run::<EpollRing>(ops).unwrap());
    }

    pub fn run<R: Ring>(&self, ops: &[Op]) -> Result<Ran, String> {
        let mut config = self.config();
        config.servers[0].addresses.splice(0..0, self.first_address);
        let config = Arc::new(config);
        let (sockets, entries) = Machine::ring_needs(&config, self.slots);
        let spec = RingSpec { epoch_ns: monotonic_ns(), entries, sockets, ..RingSpec::default() };
        let mut ring = R::open(&spec).map_err(|e| e.to_string())?;
        let mut machine = Machine::new(config, self.slots, self.verify, ring.now_ns()).unwrap();
        machine.continue_ns = self.continue_ns;
        let mut ran = Ran::default();
        let mut free: Vec<u32> = (0..self.slots).rev().collect();
        let mut busy: Vec<u32> = Vec::new();
        let mut next = 0;
        let mut completions = Completions::with_room(64);
        let silence = |now: u64| self.cancel_after_ms.map(|ms| now + ms * 1_000_000);
        let mut cancel_at = silence(ring.now_ns());
        while next < ops.len() || !busy.is_empty() {
            while next < ops.len()
                && let Some(slot) = free.pop()
            {
                busy.push(slot);
                let now = ring.now_ns();
                let step = machine.begin(&mut ring, (now, &mut ran.log), slot, &ops[next], next as u64);
                next += 1;
                ran.take(step, slot, &mut free, &mut busy);
            }
            if busy.is_empty() {
                continue;
            }
            let until = cancel_at.unwrap_or(u64::MAX).min(ring.now_ns() + 20_000_000_000);
            ring.wait(1, until.min(machine.wake_ns())).map_err(|e| e.to_string())?;
            let now = ring.now_ns();
            let waking = now >= machine.wake_ns();
            if waking {
                machine.wake(&mut ring, now);
            }
            completions.clear();
            ring.reap(&mut completions);
            if cancel_at.is_some() && !completions.as_slice().is_empty() {
                cancel_at = silence(now);
            }
            let cancelling = cancel_at.is_some_and(|t| now >= t);
            if cancelling {
                cancel_at = None;
                for slot in busy.clone() {
                    let step = machine.cancel(&mut ring, now, slot, self.cancel_as);
                    ran.take(step, slot, &mut free, &mut busy);
                }
            }
            assert!(
                cancelling || waking || !completions.as_slice().is_empty() || now < until,
                "the ring fell silent: {:?}",
                ran.log
            );
            for c in completions.as_slice() {
                let (slot, tag) = (c.token.slot(), c.token.tag());
                let step = machine.complete(&mut ring, (now, &mut ran.log), slot, tag, c.result);
                ran.take(step, slot, &mut free, &mut busy);
            }
        }
        machine.close(&mut ring);
        ran.discarded = machine.discarded_bytes;
        ran.redirects = machine
            .redirects()
            .map(|(f, t, n)| (f.endpoint.to_string(), t.endpoint.to_string(), n))
            .collect();
        Ok(ran)
    }
}

impl Ran {
    fn take(&mut self, step: OpStep, slot: u32, free: &mut Vec<u32>, busy: &mut Vec<u32>) {
        match step {
            OpStep::More { moved_bytes, first_byte } => {
                self.moved += moved_bytes;
                self.first_bytes += u32::from(first_byte);
            }
            OpStep::Done(d) => {
                self.moved += d.moved_bytes;
                self.first_bytes += u32::from(d.first_byte);
                self.done.push(d);
                busy.retain(|s| *s != slot);
                free.push(slot);
            }
        }
    }
}

pub(super) fn op(kind: OpKind, key: u64, length: u64) -> Op {
    Op { kind, key, offset: 0, length }
}
