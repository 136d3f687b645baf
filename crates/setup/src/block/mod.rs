//! Block devices and files as targets: made ready before a stage (permission, files, layout, alignment, cache), and
//! looked at before reads ([`Ground::prepare`], for each stage).
//!
//! What was made is in the journal: the end of the run, or `plimsoll cleanup`, removes it.

mod align;
mod cache;
mod ground;
mod holds;
mod layout;
mod names;
mod need;
mod range;
pub mod record;
mod room;
mod standby;

pub use align::{Alignment, alignment_of, check_alignment};
pub use cache::{Dropped, drop_all_caches, drop_cache};
pub use ground::{Ground, LayoutRunner};
pub use layout::{ContentSample, LayoutJob, layout_workers, sample_content, unwritten_bytes};
pub use names::{first_object, paths_of_job};
pub use range::{range_of, range_unit};
pub use room::{free_bytes, known_size};
pub use standby::SharedHold;
