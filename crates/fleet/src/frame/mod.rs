//! What an agent measures in a stage: one stream of records ([`record`]), cut into numbered frames ([`envelope`]). The agent keeps each
//! until it was taken ([`outgoing`]); the conductor puts them in order again, asks for what is missing, and compares the hash of the
//! whole ([`incoming`]).

pub mod envelope;
pub mod hash;
pub mod incoming;
pub mod outgoing;
pub mod own;
pub mod record;
