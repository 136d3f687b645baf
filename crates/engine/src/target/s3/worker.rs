//! The S3 target as the worker loop sees it: the machine, with what it tells brought to the recorder.

use std::sync::Arc;

use plimsoll_model::{Op, OpKind, Outcome};

use super::config::Config;
use super::content::ContentDifference;
use super::machine::{Machine, Sink};
use crate::api::WorkerSpec;
use crate::error::EngineError;
use crate::recorder::{Mismatch, Recorder};
use crate::ring::socket::{is_loopback, loopback_note};
use crate::ring::{Ring, RingSpec, Token, monotonic_ns};
use crate::target::{Built, Context, OpStep, Target};

/// Begins the note on redirects that were followed; its value is their number.
pub const REDIRECTED: &str = "redirected ";

/// One worker's exchanges.
#[derive(Debug)]
pub struct S3Worker {
    machine: Machine,
    timeout_ns: u64,
}

impl S3Worker {
    /// `epoch_ns`: the run's start, from which the ring counts.
    pub(crate) fn build(
        spec: &WorkerSpec,
        config: &Arc<Config>,
        epoch_ns: u64,
    ) -> Result<Built<Self>, EngineError> {
        let (sockets, entries) = Machine::ring_needs(config, spec.slots);
        let now_ns = monotonic_ns().saturating_sub(epoch_ns);
        let machine =
            Machine::new(Arc::clone(config), spec.slots, spec.verify, now_ns).map_err(EngineError::Target)?;
        let target = Self { machine, timeout_ns: config.timeout_ns };
        Ok(Built { target, ring: RingSpec { entries, sockets, ..RingSpec::default() } })
    }
}

/// Tells the recorder.
struct Teller<'a> {
    recorder: &'a mut Recorder,
    now_ns: u64,
}

impl Sink for Teller<'_> {
    fn reconnected(&mut self) {
        self.recorder.reconnected();
    }

    fn failed(&mut self, outcome: Outcome, kind: OpKind, text: String) {
        self.recorder.error(outcome, kind, || text);
    }

    fn wants_text(&self, outcome: Outcome, kind: OpKind) -> bool {
        self.recorder.wants_error(outcome, kind)
    }

    fn mismatch(&mut self, op: &Op, key: String, difference: &ContentDifference) {
        let hex = |bytes: &[u8; 8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        self.recorder.mismatch(|| Mismatch {
            object: format!("{key} (object {})", op.key),
            offset_bytes: difference.offset,
            expected: hex(&difference.expected),
            found: hex(&difference.found),
        });
    }

    fn part(&mut self, outcome: Outcome, bytes: u64, _endpoint: u16, submitted_ns: u64) {
        self.recorder.part(OpKind::UploadPart, outcome, bytes, submitted_ns, self.now_ns);
    }
}

impl<R: Ring> Target<R> for S3Worker {
    /// Signing takes microseconds an op: it is the client's time, not the storage's.
    const STAMP_AFTER_PREPARE: bool = true;

    fn begin(&mut self, cx: &mut Context<'_, R>, slot: u32, op: &Op, n: u64) -> OpStep {
        let mut teller = Teller { recorder: cx.recorder, now_ns: cx.now_ns };
        self.machine.begin(cx.ring, (cx.now_ns, &mut teller), slot, op, n)
    }

    fn complete(&mut self, cx: &mut Context<'_, R>, token: Token, result: i32) -> OpStep {
        let mut teller = Teller { recorder: cx.recorder, now_ns: cx.now_ns };
        self.machine.complete(cx.ring, (cx.now_ns, &mut teller), token.slot(), token.tag(), result)
    }

    fn cancel(&mut self, cx: &mut Context<'_, R>, slot: u32, why: Outcome) -> OpStep {
        self.machine.cancel(cx.ring, cx.now_ns, slot, why)
    }

    fn timeout_ns(&self) -> Option<u64> {
        Some(self.timeout_ns)
    }

    fn wake_ns(&self) -> u64 {
        self.machine.wake_ns()
    }

    fn wake(&mut self, cx: &mut Context<'_, R>) {
        self.machine.wake(cx.ring, cx.now_ns);
    }

    fn between_slices(&mut self) {
        self.machine.take_new_keys();
    }

    fn close(&mut self, cx: &mut Context<'_, R>) {
        self.machine.close(cx.ring);
    }

    fn unchecked_bodies(&self) -> u64 {
        self.machine.unchecked_bodies()
    }

    fn unconfirmed_uploads(&self) -> u64 {
        self.machine.unconfirmed_uploads()
    }

    fn notes(&self) -> Vec<(String, String)> {
        let mut notes = Vec::new();
        let (gone, read) = (self.machine.discarded_bytes, self.machine.copied_bytes);
        if gone + read > 0 {
            let percent = 100.0 * gone as f64 / (gone + read) as f64;
            let how = if gone == 0 {
                "copied to the client".to_owned()
            } else {
                // What comes together with the head of an answer is copied with it.
                format!("discarded in the kernel ({percent:.0} %), the rest copied to the client")
            };
            notes.push(("received bodies".into(), how));
        }
        if self.machine.renewals > 0 {
            notes.push(("credentials".into(), "renewed while the load was on".into()));
        }
        let signing = format!("{:?}", self.machine.config().signing).to_lowercase();
        notes.push(("payload signing".into(), signing));
        for (from, to, count) in self.machine.redirects() {
            notes.push((format!("{REDIRECTED}{} to {}", from.endpoint, to.endpoint), count.to_string()));
        }
        let mut addresses = self.machine.config().servers.iter().flat_map(|s| &s.addresses);
        if addresses.any(is_loopback)
            && let Some(text) = loopback_note()
        {
            notes.push(("congestion control".into(), text));
        }
        for (server, name) in self.machine.config().servers.iter().zip(&self.machine.server_names) {
            let name = name.to_string_lossy().into_owned();
            if !name.is_empty() {
                notes.push((format!("server {}", server.endpoint), name));
            }
        }
        notes
    }
}
