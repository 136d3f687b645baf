//! The end of a run: who observed stops, what the run made is removed, and it is sealed.

use std::time::{Duration, Instant};

use plimsoll_model::count::counted;
use plimsoll_model::{AgentHost, Environment, Event, Finding, Level};
use plimsoll_setup::RemovalEnd;
use plimsoll_setup::removal::{self, How};
use plimsoll_store::Journal;

use super::Session;
use crate::error::RunError;
use crate::kept;
use crate::trace::TraceWriter;

/// A server's data may take so long to remove until it is told how far that is.
const QUIET: Duration = Duration::from_secs(1);

impl Session {
    /// Cleans up, closes the files and seals the run. Gives what could not be removed.
    pub fn close(mut self, end: &str, events: &mut dyn FnMut(Event)) -> Result<Vec<String>, RunError> {
        self.crew.rest();
        if let Some((observers, files)) = self.observers.take() {
            // They ask once more.
            drop(observers);
            files.finish()?;
        }
        if let Some(problem) = self.trace.take().and_then(TraceWriter::finish) {
            let text = format!("The trace is incomplete: {problem}. The figures do not depend on it.");
            events(Event::Message(text.clone()));
            self.found(Finding::new("F13", "trace_incomplete", Level::Qualified, text));
        }
        self.tell_redirects();
        let hosts = self.crew.hosts();
        let left = self.take_down(events)?;
        if !left.is_empty() {
            self.found(left_behind(&left, &self.run.id()));
        }
        let mut env = self.run.env()?;
        // How their clocks drift is known at the end.
        env.environment = Environment { agents: hosts, ..self.environment };
        let clock = |a: &AgentHost| Some((a.agent.clone(), a.clock?.offset_ns));
        env.clock_offsets_ns = env.environment.agents.iter().filter_map(clock).collect();
        self.run.write_env(&env)?;
        self.streams.finish()?;
        self.samples.take().map_or(Ok(()), |samples| samples.finish())?;
        if let Some(recruit) = self.recruit.take().filter(|_| self.lost) {
            tell_delivered(
                &kept::fetch_into(&self.run, recruit.as_ref(), &self.interrupt, false, events),
                events,
            );
        }
        // What failed before its first stage is thrown away; what had no time for one is a run, and says so.
        if self.next_stage > 0 || end == "done" {
            self.run.seal(end)?;
        }
        Ok(left)
    }

    /// Figures of requests that went elsewhere are told as that.
    fn tell_redirects(&mut self) {
        for (way, count) in std::mem::take(&mut self.redirected) {
            let text = format!(
                "{count} requests were redirected from {way}, and the redirect was followed: their time includes \
                 both answers. To measure the final server alone, name it as the endpoint."
            );
            self.found(Finding {
                measured: Some(count as f64),
                ..Finding::new("Q12", "redirected", Level::Qualified, text)
            });
        }
    }

    /// Removes what the run made, unless it is to be kept.
    pub(super) fn take_down(&mut self, events: &mut dyn FnMut(Event)) -> Result<Vec<String>, RunError> {
        let keep = self.plan.options.keep;
        let uploads = removal::has_uploads(&self.plan);
        let how = How { keep, uploads, end: RemovalEnd::of(&self.interrupt) };
        let mut left = Vec::new();
        // Of a run in one bucket alone it is known what was to be there.
        let mut removed = (self.plan.targets.len() == 1 && !keep).then_some(0);
        let all_claimed = self.claims.len() == self.plan.targets.len();
        let mut by_errands = Vec::new();
        // Of agents that were lost nobody knows what else they sent.
        let sent = (!self.lost).then(|| self.streams.writes().saturating_add(self.filled));
        for claim in self.claims.values_mut() {
            let mut journal = Journal::locked(&self.journal);
            if claim.is_thrown_away() && !keep {
                removed = None;
                removal::forget_embedded(&mut journal, claim.target_name())?;
            } else if let Some(area) = claim.area() {
                removal::note_sent(&mut journal, area, sent)?;
                left.extend(removal::bucket_things(
                    claim.store(),
                    &mut journal,
                    &area.target,
                    &how,
                    &mut removed,
                    events,
                )?);
            } else {
                removed = None;
            }
            // Most are small, and gone before anybody could read how far that is.
            let began = Instant::now();
            let mut tell = |e: Event| {
                if began.elapsed() >= QUIET {
                    events(e)
                }
            };
            left.extend(claim.stop_server(&mut journal, &mut removal::watched(&how.end, &mut tell))?);
            by_errands.extend(claim.by_errands().map(|(who, why)| asked_by(claim.target_name(), &who, why)));
        }
        by_errands.into_iter().for_each(|finding| self.found(finding));
        if all_claimed && let Some(f) = self.acknowledged.finding(removed) {
            self.found(f);
        }
        self.claims.clear();
        left.extend(self.crew.disband(keep)?);
        self.volumes.stop(&self.journal)?;
        Ok(left)
    }
}

/// Of agents that were lost, what they had kept is there now, or can be asked for later: no reason for a run to fail.
fn tell_delivered(came: &Result<Vec<kept::AgentCollected>, RunError>, events: &mut dyn FnMut(Event)) {
    match came {
        Ok(all) => {
            for a in all {
                let mut text = format!(
                    "agent {}: {} of its own record came after it was lost",
                    a.agent,
                    counted(a.slices, "slice")
                );
                if !a.missing.is_empty() {
                    text.push_str(&format!("; still missing: {}", a.missing));
                }
                events(Event::Message(text));
            }
        }
        Err(e) => events(Event::Message(format!("what lost agents kept was not fetched: {e}"))),
    }
}

/// What the run could not remove is in its result: it may cost money, or stand in somebody's way.
fn left_behind(left: &[String], id: &str) -> Finding {
    let text = format!("Left behind: {}. `plimsoll cleanup {id}` tries again.", left.join("; "));
    let evidence = left.iter().map(|l| ("left behind".to_owned(), l.clone())).collect();
    Finding {
        measured: Some(left.len() as f64),
        evidence,
        ..Finding::new("F14", "left_behind", Level::Qualified, text)
    }
}

/// Whose word it is that nothing was left is in the result.
fn asked_by(target: &str, agents: &[String], why: &str) -> Finding {
    let s = if agents.len() == 1 { "" } else { "s" };
    let text =
        format!("Markers, listings and cleanup of '{target}' by agent{s} {}, {why}.", agents.join(", "));
    Finding::new("F21", "claimed_by_agent", Level::Info, text)
}
