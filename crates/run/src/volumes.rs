//! Volumes that a run brings: started before anybody is told of them, and ended when the last has let go of them.

use std::sync::Mutex;

use plimsoll_model::plan::{BlockTarget, EMBEDDED_VOLUME, TargetSpec};
use plimsoll_model::{Environment, Plan};
use plimsoll_setup::{EmbeddedServer, start_volume};
use plimsoll_store::Journal;

use crate::environment::describe;
use crate::error::RunError;
use crate::options::{CrewChoice, Options};

/// Running ones; each ends when it is dropped.
#[derive(Debug, Default)]
pub struct Volumes(Vec<EmbeddedServer>);

impl Volumes {
    /// Starts those that a plan asks for; gives the plan as it is carried out, with where they are. What they are is noted.
    pub fn start(
        plan: &Plan,
        options: &Options,
        journal: &Mutex<Journal>,
        environment: &mut Environment,
    ) -> Result<(Self, Plan), RunError> {
        let (mut all, mut plan) = (Self::default(), plan.clone());
        for (name, spec) in &mut plan.targets {
            let TargetSpec::Block(block) = spec else { continue };
            let Some(volume) = block.embedded.take() else { continue };
            if !matches!(options.crew, CrewChoice::Local) {
                return Err(RunError::input(
                    format!("target '{name}': an embedded volume is on this machine, and no agent's"),
                    "Leave out --fleet; or start `plimsoll target block` beside each agent, and name its file",
                ));
            }
            let size = block.size.unwrap_or(BlockTarget::EMBEDDED_SIZE).0;
            let server = start_volume(&options.exe, &volume, size, &mut Journal::locked(journal))?;
            let ready = &server.ready;
            let path = ready
                .path
                .clone()
                .ok_or_else(|| RunError::Bug("an embedded volume did not say where it is".into()))?;
            environment.devices.insert(EMBEDDED_VOLUME.into(), describe(path.as_ref()));
            if let Some(limits) = &ready.limits {
                environment.notes.insert(format!("limits of {name}"), limits.clone());
            }
            // It is full of data that was made for this run, and nobody else's.
            block.destroy_data = Some(path.clone());
            block.layout = false;
            block.size = None;
            block.path = path;
            all.0.push(server);
        }
        Ok((all, plan))
    }

    /// Ends them, with their data.
    pub fn stop(&mut self, journal: &Mutex<Journal>) -> Result<(), RunError> {
        let ended = std::mem::take(&mut self.0).into_iter().map(|d| d.stop(&mut Journal::locked(journal)));
        Ok(ended.collect::<Result<(), _>>()?)
    }
}
