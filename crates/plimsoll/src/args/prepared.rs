//! Objects that have to be there before they can be read, listed, copied or deleted.

use clap::Args;

const HEADING: &str = "Prepared objects";

#[derive(Debug, Clone, Args)]
pub struct PreparedArgs {
    /// Objects to prepare before the run; where a mix deletes, as many again for the deletes
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..), help_heading = HEADING)]
    pub objects: u64,
    /// Prepare the objects once under this name and use them again in later runs (they stay in the bucket)
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub dataset: Option<String>,
}
