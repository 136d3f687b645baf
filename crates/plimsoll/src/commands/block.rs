//! `plimsoll block`: a block device, or one file used like one.

use clap::{Args, Subcommand};
use plimsoll_model::plan::{Cell, Plan, Stage};

use crate::args::{ArgsContext, BlockArgs, BlockPattern, RunArgs};
use crate::fault::Fault;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll block /var/tmp/test.dat --size 4GiB --pattern randread --bs 4KiB \\
      --iodepth 32 --runtime 60s
  plimsoll block /var/tmp/test.dat --size 4GiB \\
      --bs 4KiB,64KiB,512KiB,1MiB,4MiB --iodepth 4 --jobs 4
  plimsoll block sweep /var/tmp/test.dat --size 4GiB --iodepth 16 \\
      --patterns randread,randwrite --bs 4KiB,64KiB,1MiB
  plimsoll block /dev/sdX --pattern randwrite \\
      --destroy-data=/dev/disk/by-id/ata-MODEL_SERIAL

A device is written to only if --destroy-data names exactly that device, and never while it is in use.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BlockCommand {
    #[command(subcommand)]
    pub several: Option<BlockSeveral>,
    #[command(flatten)]
    pub one: OneBlock,
}

/// One pattern.
#[derive(Debug, Clone, Args)]
pub struct OneBlock {
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum BlockSeveral {
    /// Measure every pattern at every block size, and find what limits each
    Sweep(Box<BlockSweep>),
}

#[derive(Debug, Clone, Args)]
pub struct BlockSweep {
    /// Patterns to measure, in this order
    #[arg(
        long,
        value_enum,
        value_name = "PATTERN,...",
        default_value = "randread,randwrite,randrw",
        value_delimiter = ',',
        conflicts_with = "pattern"
    )]
    pub patterns: Vec<BlockPattern>,
    /// Number of times to measure each cell (a pattern at a block size)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    #[command(flatten)]
    pub at: OneBlock,
}

/// Sizes of a sweep that is told none.
const SIZES: &str = "4KiB,64KiB,512KiB,1MiB,4MiB";

impl BlockCommand {
    pub fn run_args(&self) -> &RunArgs {
        match &self.several {
            Some(BlockSeveral::Sweep(s)) => &s.at.run,
            None => &self.one.run,
        }
    }

    pub fn plan(&self, context: &ArgsContext) -> Result<Plan, Fault> {
        let (at, stages) = match &self.several {
            Some(BlockSeveral::Sweep(s)) => (&s.at, s.stages()?),
            None => (&self.one, self.one.block.stages()?),
        };
        let mut plan = at.run.plan(context, ("device", at.block.target()?))?;
        plan.stages = stages;
        plan.validate()?;
        Ok(plan)
    }
}

impl BlockSweep {
    /// Round by round, so that what drifts meets all cells alike.
    fn stages(&self) -> Result<Vec<Stage>, Fault> {
        if !self.at.block.pattern.is_empty() {
            let problem = "a sweep takes --patterns, not --pattern";
            return Err(Fault::input(problem, "Write --patterns randread,randwrite."));
        }
        let mut cells = Vec::new();
        for pattern in &self.patterns {
            let mut block = self.at.block.clone();
            block.pattern = vec![*pattern];
            block.bs.get_or_insert_with(|| SIZES.into());
            cells.extend(block.stages()?);
        }
        let round = |repeat: u32| {
            let cells = cells.clone().into_iter().zip(0..);
            cells.map(move |(s, index)| Stage { cell: Some(Cell { index, repeat }), ..s })
        };
        Ok((0..self.repeat).flat_map(round).collect())
    }
}
