//! Objects that have to be there before they can be read, listed, copied or deleted.

use clap::Args;

const HEADING: &str = "Prepared objects";

#[derive(Debug, Clone, Args)]
pub struct PreparedArgs {
    /// Number of objects to upload before the run; a mix with deletes needs as many again to delete
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..), help_heading = HEADING)]
    pub objects: u64,
    /// Prepare the objects once under this name and reuse them in later runs (they stay in the bucket)
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub dataset: Option<String>,
    /// Read objects that are there already (get, stat, list): at most --objects of them, found by listing under --prefix,
    /// of about --size where there are such. Nothing is written, and keys that may only list and read will do
    #[arg(long, conflicts_with_all = ["dataset", "create_bucket"], help_heading = HEADING)]
    pub existing: bool,
}
