//! `plimsoll drive`: the ceiling of drives, each alone and then all at once.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::units::Size;

use crate::args::{AboutArgs, OutputArgs};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll drive /mnt/disk1 /mnt/disk2 /mnt/disk3 /mnt/disk4
  plimsoll drive /mnt/disk{1..4} --serial --write-only
  # one stream, like dd
  plimsoll drive /mnt/disk1 -i 1 -b 16MiB -f 1GiB";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DriveCommand {
    /// One directory on each drive
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,
    /// Block size
    #[arg(long, short = 'b', value_name = "SIZE", default_value = "4MiB")]
    pub blocksize: Size,
    /// Size of each stream's file
    #[arg(long, short = 'f', value_name = "SIZE", default_value = "1GiB")]
    pub filesize: Size,
    /// Streams per drive
    #[arg(long, short = 'i', value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub ioperdrive: u32,
    /// Measure each drive alone only, not all together
    #[arg(long)]
    pub serial: bool,
    /// Write only, do not read
    #[arg(long)]
    pub write_only: bool,
    /// Seed for the data [default: a new one for each run]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would happen, and exit
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub about: AboutArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
