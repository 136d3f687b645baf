//! Groups of flags that several commands share, and the part of a plan that each group is read into.

pub mod block;
pub mod context;
pub mod load;
pub mod prepared;
pub mod run;
pub mod storage;

pub use block::BlockArgs;
pub use context::Context;
pub use load::LoadArgs;
pub use prepared::PreparedArgs;
pub use run::{OutputArgs, RunArgs};
pub use storage::StorageArgs;
