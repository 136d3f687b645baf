//! What is said about a run: a list of claims, each a type with its evidence.
//!
//! The paragraph, the tiles of the page and `claims[]` of the summary are the same values: words are made from a claim, and
//! never chosen beside it. A claim is made by its constructor alone (the evidence types are `#[non_exhaustive]`), which
//! refuses where its condition does not hold; what is refused becomes [`Undetermined`], with the reason.
//!
//! To add one: (1) an evidence type with `new(..) -> Result<Self, Refusal>` in [`kinds`] or a file beside it, holding its
//! condition; (2) a variant of [`ClaimKind`]; (3) its sentence in `plimsoll_stats::claims::words`; (4) where it is made, in
//! `plimsoll_stats::claims::derive`; (5) if it can contradict a counter or another claim, a rule in
//! `plimsoll_stats::claims::contradictions`; (6) `cargo run -p xtask -- schema`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod figure;
mod kinds;
mod limits;
mod outage;
mod searches;
mod status;

pub use figure::{Amount, Refusal, SPREAD, figure};
pub use kinds::{
    Attempted, Fact, Horizon, MixNotDelivered, Place, Rate, RateWord, Refusing, Stretch, Undetermined,
    VoidLine,
};
pub use limits::{Binding, Burst, Cap, CapBound, Knee, NoLimiter, Scope, SizeCaps, Unit};
pub use outage::{Outage, OutageKind, OutageSpan};
pub use searches::{BestConcurrency, LoadHeld, SearchHorizon};
pub use status::{RunStatus, Status};

/// One statement about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What it is about: a line (`NAME/OP`, as findings name it) or an op class; absent: the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What is claimed, with its evidence.
    #[serde(flatten)]
    pub kind: ClaimKind,
    /// The claim in words. The verdict is all of these, in order.
    #[serde(default)]
    pub text: String,
}

/// What may be claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum ClaimKind {
    /// How much of the run may be used.
    Status(Status),
    /// A rate of a line, measured or sustained.
    Rate(Rate),
    /// A line whose figures may not be used.
    VoidLine(VoidLine),
    /// Storage that was asked answered nothing for a while.
    Outage(Outage),
    /// A limiter refuses.
    Refusing(Refusing),
    /// The kinds of a mix did not come in the shares that were asked for.
    MixNotDelivered(MixNotDelivered),
    /// What one resource (operations or bytes) gives in the long run: a proved cap, or a speed that was seen.
    Cap(Cap),
    /// A token bucket above a cap.
    Burst(Burst),
    /// The size at which the binding limit changes.
    Knee(Knee),
    /// What binds.
    Binding(Binding),
    /// Nothing limits but the storage itself.
    NoLimiter(NoLimiter),
    /// Whose limit it is.
    Scope(Scope),
    /// How long it was seen, and what that does not exclude.
    Horizon(Horizon),
    /// Caps over sizes, of a sweep.
    SizeCaps(SizeCaps),
    /// What a search for the best concurrency found.
    BestConcurrency(BestConcurrency),
    /// Open-loop load that held.
    LoadHeld(LoadHeld),
    /// How long each step of a search was seen.
    SearchHorizon(SearchHorizon),
    /// What the data does not carry.
    Undetermined(Undetermined),
    /// A finding of the run that belongs into the paragraph.
    Fact(Fact),
    /// Codes of what qualifies the result.
    Notes(Fact),
    /// What to do next.
    NextStep(Fact),
}

impl From<Undetermined> for ClaimKind {
    fn from(u: Undetermined) -> Self {
        Self::Undetermined(u)
    }
}
