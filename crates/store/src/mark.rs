//! Marks in the stream of intervals: where stages, warm-up, measured window and tail begin and end.

use plimsoll_model::plan::Stage;
use serde::{Deserialize, Serialize};

/// One mark. `at_ns` counts from the run's start, as the grid does: slice `i` covers
/// `[i, i + 1) * grid_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub enum Mark {
    /// The data set of a stage is being made (or checked).
    PrepareStart {
        stage: u32,
        at_ns: u64,
    },
    PrepareEnd {
        stage: u32,
        at_ns: u64,
    },
    /// Load begins. The stage as it was run: a controller may have made it up.
    StageStart {
        stage: u32,
        at_ns: u64,
        spec: Box<Stage>,
        /// Names of the endpoints, in the order of [`plimsoll_model::Series::endpoints`]; per workload.
        #[serde(default)]
        endpoints: Vec<Vec<String>>,
        #[serde(default)]
        workers: u32,
        /// The ring that the workers use.
        #[serde(default)]
        ring: String,
    },
    /// The measured window begins with the next whole slice.
    WarmupEnd {
        stage: u32,
        at_ns: u64,
    },
    /// No op is started any more; the measured window ended with the last whole slice.
    StopRequested {
        stage: u32,
        at_ns: u64,
        reason: String,
    },
    /// The last op has ended.
    StageEnd {
        stage: u32,
        at_ns: u64,
    },
    /// A stage that does not count: it was cut off by an interrupt, an error or a kill before a resume.
    StageVoid {
        stage: u32,
        at_ns: u64,
        reason: String,
    },
    /// The run went on after a kill.
    Resumed {
        at_ns: u64,
    },
    /// Something that a reader of the run should know, such as an endpoint's error.
    Note {
        at_ns: u64,
        text: String,
    },
}

impl Mark {
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::PrepareStart { at_ns, .. }
            | Self::PrepareEnd { at_ns, .. }
            | Self::StageStart { at_ns, .. }
            | Self::WarmupEnd { at_ns, .. }
            | Self::StopRequested { at_ns, .. }
            | Self::StageEnd { at_ns, .. }
            | Self::StageVoid { at_ns, .. }
            | Self::Resumed { at_ns }
            | Self::Note { at_ns, .. } => *at_ns,
        }
    }
}
