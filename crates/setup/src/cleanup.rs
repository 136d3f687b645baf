//! Takes away what a killed run left, from its journal and its plan.

use std::path::Path;

use plimsoll_model::plan::{S3Target, TargetSpec};
use plimsoll_model::text::clean as clean_text;
use plimsoll_model::{Event, Plan};
use plimsoll_store::{Journal, RunDir, Thing};

use crate::error::SetupError;
use crate::interrupt::{Interrupt, RemovalEnd};
use crate::objects::STOPPED;
use crate::removal::{How, bucket_target, bucket_things, forget_embedded, has_uploads, local_things, words};
use crate::s3::{ClaimBy, Errands};
use crate::safety::marker::Content;
use crate::safety::trees;
use crate::{s3, server};

/// Finishes what a killed run left, from its journal. Gives what could not be removed, in words. `confirmed`: endpoints that
/// the user named; without them nothing is asked of those in the plan of a run directory that was not made here.
pub fn cleanup(
    run_dir: &Path,
    confirmed: &[String],
    interrupt: Interrupt,
    events: impl FnMut(Event),
) -> Result<Vec<String>, SetupError> {
    cleanup_by(run_dir, confirmed, interrupt, (ClaimBy::Conductor, &mut |_, _| Ok(None)), events)
}

/// Those who can ask the storage of a plan in place of this machine, for the run of this mark.
pub type FindErrands<'a> = dyn FnMut(&Plan, &str) -> Result<Option<Box<dyn Errands>>, SetupError> + 'a;

/// The same, where others may have to ask the storage in place of this machine.
pub fn cleanup_by(
    run_dir: &Path,
    confirmed: &[String],
    interrupt: Interrupt,
    (by, find): (ClaimBy, &mut FindErrands<'_>),
    mut events: impl FnMut(Event),
) -> Result<Vec<String>, SetupError> {
    let run = RunDir::open(run_dir)?;
    let plan = run.plan()?;
    let mut journal = run.journal()?;
    let how = How { keep: false, uploads: has_uploads(&plan), end: RemovalEnd::of(&interrupt) };
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
                    left.push(format!("{data}: not a data directory of the embedded server"));
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
        // Of those before it.
        if how.end.is_asked() {
            let pending = journal.pending();
            left.extend(
                pending.iter().filter(|(_, t)| mine(t)).map(|(_, t)| format!("{}: {STOPPED}", words(t))),
            );
            continue;
        }
        events(Event::Message(format!("cleaning up in bucket '{}' at {endpoints}", clean_text(&s3.bucket))));
        let errands = find(&plan, journal.mark())?;
        let store = s3::bucket_for(name, s3, by, errands, &interrupt)?;
        left.extend(bucket_things(&*store, &mut journal, name, &how, &mut None, &mut events)?);
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
        return Some("it was not made on this machine, is a copy, or is from an older plimsoll".into());
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
            "Files named only by a plan from elsewhere are not read. Clean up on the machine that made the run, or \
             manually",
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
            "this run directory asks to clean up bucket '{}' at {endpoint} with your keys, but {why}",
            clean_text(&s3.bucket)
        ),
        format!("If that is your server, confirm it: plimsoll cleanup RUN --endpoint {endpoint}"),
    ))
}
