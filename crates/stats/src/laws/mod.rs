//! (e) Laws of limiters that refuse, each a model that can lose to another: all are fitted to the same record of attempts and of what
//! passed, and the likelihoods decide, for as many independent observations as there were (Bayesian information criterion, Schwarz
//! 1978; Laplace's errors, since what a law gets wrong is wrong by much, and seldom).
//!
//! A law that nobody wrote down here is the null hypothesis: that each load had a rate of its own. A law that explains what was seen
//! no better than that is none that is known.

mod contest;
mod errors;
mod guess;
mod looks;
mod record;
mod replay;
mod search;

pub use contest::{LawContest, LawFit, LawHypothesis, LawState, WON, contest};
pub use record::{LoadRecord, LoadSlice, RecordedLoad};
pub use replay::{RIVALS, RivalLaw};

#[cfg(test)]
mod tests;
