//! What conductor and agents say to each other: plain data, versioned, in JSON. Orders are sealed ([`seal`]); a message that is longer
//! than the bus takes goes in pieces ([`pieces`]).

pub mod ends;
pub mod entrusted;
pub mod errand;
pub mod order;
pub mod pieces;
pub mod roll;
pub mod seal;
pub mod tell;

use plimsoll_bus::Speaks;
use plimsoll_model::plan::PLAN_VERSION;
use plimsoll_store::stream::INTERVALS_FORMAT;

/// Of all that is here: who speaks another one is not spoken to.
pub const VERSION: u32 = 3;

/// What two programs have to have in common to work on one run: this wire, plans and records.
pub fn language() -> String {
    format!("fleet {VERSION}, plan {PLAN_VERSION}, {INTERVALS_FORMAT}")
}

/// What this program says of that, to whoever may be of another version.
pub fn speaks() -> Speaks {
    Speaks { language: language(), program: env!("CARGO_PKG_VERSION").into() }
}
