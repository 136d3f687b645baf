//! Groups of flags that several commands share, and the part of a plan that each group is read into.

pub mod block;
pub mod context;
pub mod cost;
pub mod fleet;
pub mod hand_out;
pub mod load;
pub mod prepared;
pub mod run;
pub mod storage;

pub use block::{BlockArgs, BlockPattern};
pub use context::ArgsContext;
pub use cost::CostArgs;
pub use fleet::{FleetArgs, IdentityArgs};
pub use hand_out::HandOutArgs;
pub use load::LoadArgs;
pub use prepared::PreparedArgs;
pub use run::{AboutArgs, OutputArgs, RunArgs};
pub use storage::StorageArgs;
