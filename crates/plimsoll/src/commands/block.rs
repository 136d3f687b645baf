//! `plimsoll block`: a block device, or one file used like one.

use clap::Args;
use plimsoll_model::plan::Plan;

use crate::args::{BlockArgs, Context, RunArgs};
use crate::fault::Fault;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll block /var/tmp/test.dat --size 4GiB --pattern randread --bs 4KiB \\
      --iodepth 32 --runtime 60s
  plimsoll block /var/tmp/test.dat --size 4GiB \\
      --bs 4KiB,64KiB,512KiB,1MiB,4MiB --iodepth 4 --jobs 4
  plimsoll block /dev/sdX --pattern randwrite \\
      --destroy-data=/dev/disk/by-id/ata-MODEL_SERIAL

A device is written to only when --destroy-data names exactly that device, and never while it is in use.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct BlockCommand {
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

impl BlockCommand {
    pub fn plan(&self, context: &Context) -> Result<Plan, Fault> {
        let mut plan = self.run.plan(context, ("device", self.block.target()));
        plan.stages = self.block.stages()?;
        plan.validate()?;
        Ok(plan)
    }
}
