//! Takes away what a run made: at its end, and later, from its journal, for one that was killed.

use std::cell::RefCell;
use std::path::Path;

use plimsoll_model::plan::{ControllerSpec, S3Target, Stage, TargetSpec};
use plimsoll_model::text::clean as clean_text;
use plimsoll_model::{Event, OpKind, Plan};
use plimsoll_store::{Journal, RunDir, Thing};

use crate::error::SetupError;
use crate::interrupt::Interrupt;
use crate::objects::{Cleaned, Clock, ObjectStore, STOPPED, clean};
use crate::safety::marker::{self, Content};
use crate::safety::trees;
use crate::{s3, server};

/// Finishes what a killed run left, from its journal. Gives what could not be removed, in words. `confirmed`: endpoints that
/// the user named; without them nothing is asked of those in the plan of a run directory that was not made here.
pub fn cleanup(
    run_dir: &Path,
    confirmed: &[String],
    interrupt: Interrupt,
    mut events: impl FnMut(Event),
) -> Result<Vec<String>, SetupError> {
    let run = RunDir::open(run_dir)?;
    let plan = run.plan()?;
    let mut journal = run.journal()?;
    let how = How { keep: false, uploads: has_uploads(&plan), interrupt };
    let mut left = Vec::new();
    let stranger = stranger(&run, &journal);
    for (name, spec) in &plan.targets {
        let mine = |t: &Thing| bucket_target(t) == Some(name);
        if !journal.pending().iter().any(|(_, t)| mine(t)) {
            continue;
        }
        let TargetSpec::S3(s3) = spec else { continue };
        if let Some(why) = &stranger {
            check_confirmed(s3, why, confirmed)?;
        }
        if s3.endpoints.iter().any(|e| e == s3::EMBEDDED) {
            match s3.embedded.as_ref().and_then(|e| e.data.as_ref()) {
                // Its data goes as a whole, with the server.
                None => forget_embedded(&mut journal, name)?,
                // None is made for a cleanup.
                Some(data) if !server::is_data_directory(Path::new(data)) => {
                    left.push(format!("{data}: it is no data directory of the embedded server"));
                }
                // A directory of the user's: the server is started over it once more.
                Some(_) => {
                    let (store, server) = s3::embedded_admin(s3, &mut journal)?;
                    left.extend(bucket_things(&store, &mut journal, name, &how, &mut None, &mut events)?);
                    server.stop(&mut journal)?;
                }
            }
            continue;
        }
        let endpoints = match s3.endpoints.is_empty() {
            true => "the configured endpoint".to_owned(),
            false => s3.endpoints.join(", "),
        };
        events(Event::Message(format!("cleaning up in bucket '{}' at {endpoints}", clean_text(&s3.bucket))));
        let store = s3::admin_for(s3)?;
        left.extend(bucket_things(&store, &mut journal, name, &how, &mut None, &mut events)?);
    }
    let target_is_known = |t: &String| matches!(plan.targets.get(t), Some(TargetSpec::S3(_)));
    for (_, thing) in journal.pending() {
        if bucket_target(&thing).is_some_and(|t| !target_is_known(t)) {
            left.push(format!("{}: the plan has no such target", words(&thing)));
        }
    }
    left.extend(local_things(&mut journal, false, Content::Unknown)?);
    Ok(left)
}

/// Why a run directory may be a stranger's, or one that was changed: `None` where it was made here and is as it was.
fn stranger(run: &RunDir, journal: &Journal) -> Option<String> {
    if !trees::is_made(run.path(), journal.mark()) {
        return Some("it was not made here, is a copy, or is of an older plimsoll".into());
    }
    match run.altered_files() {
        Ok(altered) if altered.is_empty() => None,
        Ok(altered) => Some(format!("it was changed after the run ({})", altered.join(", "))),
        Err(e) => Some(e.to_string()),
    }
}

/// Refuses to ask anything, with our keys, of a server that only a stranger's plan names, and to read files because it does.
fn check_confirmed(s3: &S3Target, why: &str, confirmed: &[String]) -> Result<(), SetupError> {
    let files = [&s3.sse_c_key_file, &s3.tls.ca_file, &s3.tls.client_cert, &s3.tls.client_key];
    if let Some(file) = files.into_iter().flatten().next() {
        return Err(SetupError::input(
            format!("the plan of this run directory names the file {}, and {why}", clean_text(file)),
            "No file is read because a plan of others names it: clean up where the run was made, or by hand",
        ));
    }
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    let own = |e: &&String| !confirmed.iter().any(|c| plain(c) == plain(e));
    let Some(endpoint) = s3.endpoints.iter().filter(|e| *e != s3::EMBEDDED && *e != s3::CANNED).find(own)
    else {
        return Ok(());
    };
    let endpoint = clean_text(endpoint);
    Err(SetupError::input(
        format!(
            "this run directory would have bucket '{}' at {endpoint} cleaned up with your keys, and {why}",
            clean_text(&s3.bucket)
        ),
        format!("If that is your server, name it: plimsoll cleanup RUN --endpoint {endpoint}"),
    ))
}

/// Target that a thing in a bucket belongs to.
fn bucket_target(thing: &Thing) -> Option<&String> {
    match thing {
        Thing::Bucket { target, .. } | Thing::Prefix { target, .. } | Thing::Upload { target, .. } => {
            Some(target)
        }
        Thing::File { .. } | Thing::Directory { .. } | Thing::Tree { .. } | Thing::Process { .. } => None,
    }
}

/// The objects of a server whose data goes as a whole need no removing one by one.
pub fn forget_embedded(journal: &mut Journal, name: &str) -> Result<(), SetupError> {
    for (id, thing) in journal.pending() {
        if bucket_target(&thing).is_some_and(|t| t == name) {
            journal.removed(id)?;
        }
    }
    Ok(())
}

/// How a bucket is cleaned up.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Nothing is removed, by wish.
    pub keep: bool,
    /// The run may have left unfinished uploads.
    pub uploads: bool,
    pub interrupt: Interrupt,
}

/// Whether a plan uploads in parts. Only then is there anything to be looked for that no listing of objects shows.
pub fn has_uploads(plan: &Plan) -> bool {
    let parts =
        |stage: &Stage| stage.workloads.iter().any(|w| w.mix.get(&OpKind::Multipart).is_some_and(|n| *n > 0));
    let template = plan.controller.as_ref().is_some_and(|c| match c {
        ControllerSpec::Sweep { template, ops, .. } => parts(template) || ops.contains(&OpKind::Multipart),
        ControllerSpec::Saturation { template, .. }
        | ControllerSpec::Limits { template, .. }
        | ControllerSpec::Watch { template, .. } => parts(template),
    });
    template || plan.stages.iter().any(parts)
}

/// What the journal holds of one target's bucket. Gives what had to stay, in words; `removed` counts objects, and is none where
/// the removal of a prefix did not come to its end.
pub fn bucket_things(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    target: &str,
    how: &How,
    removed: &mut Option<u64>,
    events: &mut dyn FnMut(Event),
) -> Result<Vec<String>, SetupError> {
    store.give_up_when(how.interrupt.enough_flag());
    let mut left = Vec::new();
    for (id, thing) in journal.pending() {
        if bucket_target(&thing).is_none_or(|t| t != target) {
            continue;
        }
        if how.keep {
            journal.kept(id)?;
            continue;
        }
        how.interrupt.begin_cleaning();
        if matches!(thing, Thing::Prefix { .. }) {
            events(Event::Cleaning { done: 0, total: None });
        }
        // The clock tells why it waits, and the work how far it is: both to the same listener, in turn.
        let tell = RefCell::new(&mut *events);
        let mut waits = |e: Event| (*tell.borrow_mut())(e);
        let mut clock = Clock::new(how.interrupt, &mut waits);
        let done = clean(store, journal, (id, &thing, how.uploads), &mut clock, &mut |done| {
            (*tell.borrow_mut())(Event::Cleaning { done, total: None });
            !how.interrupt.is_enough()
        })?;
        match done {
            Cleaned::Left(mut why) => {
                *removed = None;
                // A request that was broken off names only itself.
                if how.interrupt.is_enough() && !why.contains(STOPPED) {
                    why = format!("{STOPPED}: {why}");
                }
                left.push(format!("{}: {why}", words(&thing)));
            }
            Cleaned::Gone { objects } => *removed = removed.map(|n| n + objects),
            Cleaned::GoneBeside { objects, others } => {
                *removed = removed.map(|n| n + objects);
                events(Event::Message(format!("{}: {others}", words(&thing))));
            }
        }
    }
    Ok(left)
}

/// Files, directories and processes: each only if it carries this run's mark itself. What a journal says is no proof.
pub fn local_things(journal: &mut Journal, keep: bool, content: Content) -> Result<Vec<String>, SetupError> {
    let mut left = Vec::new();
    let run = journal.mark().to_owned();
    for (id, thing) in journal.pending() {
        let gone = match &thing {
            // Of an older version: from another directory it says nothing of what is there.
            Thing::File { path } | Thing::Directory { path } | Thing::Tree { path }
                if path.is_relative() && !path.exists() =>
            {
                Err("its path is relative to where the run was started: clean up from there".to_owned())
            }
            Thing::File { .. } | Thing::Directory { .. } if keep => {
                journal.kept(id)?;
                continue;
            }
            Thing::File { path } => marker::remove(path, &run, content),
            Thing::Directory { path } => trees::remove(path, &run, trees::Extent::Empty),
            Thing::Tree { path } => trees::remove(path, &run, trees::Extent::Whole),
            Thing::Process { pid, start_ticks, boot_id } => {
                server::end_leftover(*pid, *start_ticks, boot_id, &run)
            }
            Thing::Bucket { .. } | Thing::Prefix { .. } | Thing::Upload { .. } => continue,
        };
        match gone {
            Ok(()) => journal.removed(id)?,
            Err(why) => left.push(format!("{}: {why}; {}", words(&thing), by_hand(&thing))),
        }
    }
    Ok(left)
}

/// What to do about a thing that stays.
fn by_hand(thing: &Thing) -> String {
    match thing {
        Thing::Process { pid, .. } => format!("if it is this run's server, end it by hand: kill {pid}"),
        _ => "if it is nothing but this run's, remove it by hand".into(),
    }
}

/// A thing, for a person.
fn words(thing: &Thing) -> String {
    match thing {
        Thing::Bucket { bucket, .. } => format!("bucket '{bucket}'"),
        Thing::Prefix { bucket, prefix, .. } => format!("objects under '{prefix}' in bucket '{bucket}'"),
        Thing::Upload { bucket, key, .. } => format!("unfinished upload of '{key}' in bucket '{bucket}'"),
        Thing::File { path } | Thing::Directory { path } | Thing::Tree { path } => path.display().to_string(),
        Thing::Process { pid, .. } => format!("process {pid}"),
    }
}
