//! Block devices and files as targets: made ready before a stage (permission, files, layout, alignment, cache), and
//! lowered to the engine's workers.
//!
//! For each stage: [`Ground::prepare`], then [`workers`] per workload, then run; [`crate::safety::reads::cached_reads`] judges after it.
//! At the end of the run: [`Ground::clean_up`].

mod align;
mod cache;
mod ground;
mod layout;
mod lower;
mod names;

pub use align::{Alignment, alignment_of, check_alignment};
pub use cache::{Dropped, drop_all_caches, drop_cache};
pub use ground::{Ground, LayoutRunner, Progress, free_bytes};
pub use layout::{ContentSample, LayoutJob, layout_workers, sample_content, unwritten_bytes};
pub use lower::{LowerWorkload, kinds_of, series_of, workers};
pub use names::{first_object, paths_of_job};
