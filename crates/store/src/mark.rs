//! Marks in the stream of intervals: where stages, warm-up, measured window and tail begin and end.

use plimsoll_model::plan::Stage;
use serde::{Deserialize, Serialize};

/// When one agent's load began and ended, as it was. Since the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadTimes {
    /// Its first worker awoke, and its first op could begin.
    pub began_ns: u64,
    /// Its last op was over.
    pub finished_ns: u64,
}

/// Facts about a stage that no count tells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StageReport {
    /// Per workload: facts beside the result, such as `body discarded in kernel`.
    pub notes: Vec<Vec<String>>,
    /// The first failure of each class: (outcome, op kind, in words).
    pub failures: Vec<(String, String, String)>,
    /// Blocks that were not what was written (the first few), in words.
    pub mismatches: Vec<String>,
    /// All of them, also those beyond the first few.
    pub mismatch_count: u64,
    /// The ring, and why that one.
    pub ring: String,
    /// Why that one: what others lack, or what was asked for.
    pub ring_reason: String,
    /// System calls that the rings made, and ops, for the cost of an op.
    pub ring_calls: u64,
    /// Of all workers, sync ops included.
    pub ops: u64,
    /// Ops that the ring never gave back (a hung device).
    pub abandoned: u64,
    /// Bodies whose checksum was to be checked, and that came without one.
    pub unchecked_bodies: u64,
    /// Uploads with a checksum that the server said nothing of.
    pub unconfirmed_uploads: u64,
    /// Verified reads that did not show what was expected, and prove nothing: a write to the same place crossed them.
    pub crossed_reads: u64,
    /// What was found out about the storage before the load: reads of what was never written, for example.
    pub findings: Vec<plimsoll_model::Finding>,
    /// Of the agent whose report it is; absent: it had no workers, or the record is older. Of several together there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<LoadTimes>,
}

impl StageReport {
    /// Adds another agent's.
    pub fn merge(&mut self, other: &Self) {
        if self.notes.len() < other.notes.len() {
            self.notes.resize(other.notes.len(), Vec::new());
        }
        for (mine, theirs) in self.notes.iter_mut().zip(&other.notes) {
            let new: Vec<String> = theirs.iter().filter(|n| !mine.contains(n)).cloned().collect();
            mine.extend(new);
        }
        self.failures.extend(other.failures.iter().cloned());
        self.mismatches.extend(other.mismatches.iter().cloned());
        self.mismatch_count = self.mismatch_count.saturating_add(other.mismatch_count);
        self.ring_calls = self.ring_calls.saturating_add(other.ring_calls);
        self.ops = self.ops.saturating_add(other.ops);
        self.unchecked_bodies = self.unchecked_bodies.saturating_add(other.unchecked_bodies);
        self.unconfirmed_uploads = self.unconfirmed_uploads.saturating_add(other.unconfirmed_uploads);
        self.crossed_reads = self.crossed_reads.saturating_add(other.crossed_reads);
        self.abandoned = self.abandoned.saturating_add(other.abandoned);
        self.findings.extend(
            other.findings.iter().filter(|f| !self.findings.contains(f)).cloned().collect::<Vec<_>>(),
        );
        if self.ring.is_empty() {
            self.ring.clone_from(&other.ring);
            self.ring_reason.clone_from(&other.ring_reason);
        }
    }
}

/// One mark. `at_ns` counts from the run's start, as the grid does: slice `i` covers
/// `[i, i + 1) * grid_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
#[allow(missing_docs, reason = "of each: the index of the stage, when it was, and what the variant says")]
pub enum Mark {
    /// The data set of a stage is being made (or checked).
    PrepareStart { stage: u32, at_ns: u64 },
    /// The data set is there.
    PrepareEnd { stage: u32, at_ns: u64 },
    /// Load begins. The stage as it was run: a controller may have made it up.
    StageStart {
        stage: u32,
        at_ns: u64,
        spec: Box<Stage>,
        /// Names of the endpoints, in the order of [`plimsoll_model::Series::endpoints`]; per workload.
        #[serde(default)]
        endpoints: Vec<Vec<String>>,
        /// How many threads put load on; 0: written before this was kept.
        #[serde(default)]
        workers: u32,
        /// The ring that the workers use.
        #[serde(default)]
        ring: String,
        /// Ops in flight that this agent's workers keep at most: its share of the work. 0: not recorded.
        #[serde(default, skip_serializing_if = "is_zero")]
        slots: u32,
    },
    /// The measured window begins with the next whole slice.
    WarmupEnd { stage: u32, at_ns: u64 },
    /// No op is started any more; the measured window ended with the last whole slice.
    StopRequested { stage: u32, at_ns: u64, reason: String },
    /// The last op has ended.
    StageEnd { stage: u32, at_ns: u64 },
    /// What the workers had to say at the end of a stage, beside their counts.
    StageReport { stage: u32, at_ns: u64, report: Box<StageReport> },
    /// A stage that does not count: it was cut off by an interrupt, an error or a kill before a resume.
    StageVoid { stage: u32, at_ns: u64, reason: String },
    /// An agent was not heard of for too long; `at_ns`: end of the last slice that came from all of its workers.
    AgentLost { stage: u32, at_ns: u64, agent: String },
    /// What an agent had kept of a stage reached its record later: it was lost, or its conductor was. `at_ns`: nothing after that had come
    /// while the stage ran; `until_ns`: end of the last slice that is recorded now.
    Delivered {
        stage: u32,
        at_ns: u64,
        until_ns: u64,
        agent: String,
        /// Slices that only the agent had, or had more of.
        slices: u64,
        /// Of the agent's own record of the stage: how many, and the hash of all.
        frames: u64,
        hash: String,
        /// The agent's record has the end of the stage: no op of it is missing.
        whole: bool,
        /// Whether the agent's machine had been started again since the run: what had not reached its disk is lost. Absent: not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        went_down: Option<bool>,
    },
    /// The run went on after a kill.
    Resumed { at_ns: u64 },
    /// Something that a reader of the run should know, such as an endpoint's error.
    Note { at_ns: u64, text: String },
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Mark {
    /// Whether this version knows a kind of mark by this name.
    pub fn knows(name: &str) -> bool {
        let bare = serde_json::json!({ "mark": name });
        // A known kind lacks its fields; only an unknown one is an unknown variant.
        !serde_json::from_value::<Self>(bare).is_err_and(|e| e.to_string().starts_with("unknown variant"))
    }

    /// Of whichever mark it is.
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::PrepareStart { at_ns, .. }
            | Self::PrepareEnd { at_ns, .. }
            | Self::StageStart { at_ns, .. }
            | Self::WarmupEnd { at_ns, .. }
            | Self::StopRequested { at_ns, .. }
            | Self::StageEnd { at_ns, .. }
            | Self::StageReport { at_ns, .. }
            | Self::StageVoid { at_ns, .. }
            | Self::AgentLost { at_ns, .. }
            | Self::Delivered { at_ns, .. }
            | Self::Resumed { at_ns }
            | Self::Note { at_ns, .. } => *at_ns,
        }
    }
}
