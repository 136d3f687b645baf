//! Removes what the journal lists: of a bucket, and of this machine.

use std::cell::RefCell;

use plimsoll_model::count::counted;
use plimsoll_model::plan::{ControllerSpec, Stage};
use plimsoll_model::{Event, OpKind, Plan};
use plimsoll_store::{Journal, Thing};

use crate::error::SetupError;
use crate::interrupt::RemovalEnd;
use crate::objects::{Area, Cleaned, ObjectStore, PatientClock, STOPPED, clean};
use crate::safety::marker::{self, Content};
use crate::safety::trees;
use crate::{group, mounted, network, server};

/// Target that a thing in a bucket belongs to.
pub fn bucket_target(thing: &Thing) -> Option<&String> {
    match thing {
        Thing::Bucket { target, .. } | Thing::Prefix { target, .. } | Thing::Upload { target, .. } => {
            Some(target)
        }
        Thing::File { .. }
        | Thing::Directory { .. }
        | Thing::Tree { .. }
        | Thing::Process { .. }
        | Thing::Group { .. }
        | Thing::Mount { .. }
        | Thing::Namespace { .. }
        | Thing::Link { .. } => None,
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
#[derive(Debug, Clone, Default)]
pub struct How {
    /// Nothing is removed, by wish.
    pub keep: bool,
    /// The run may have left unfinished uploads.
    pub uploads: bool,
    /// When it stops, whatever the server does; of all that is removed together.
    pub end: RemovalEnd,
}

/// Whether a plan uploads in parts. Only then is there anything to be looked for that no listing of objects shows.
pub fn has_uploads(plan: &Plan) -> bool {
    let parts =
        |stage: &Stage| stage.workloads.iter().any(|w| w.mix.get(&OpKind::Multipart).is_some_and(|n| *n > 0));
    let template = plan.controller.as_ref().is_some_and(|c| {
        let swept = matches!(c, ControllerSpec::Sweep { ops, .. } if ops.contains(&OpKind::Multipart));
        swept || c.templates().any(parts)
    });
    template || plan.stages.iter().any(parts)
}

/// Listed beyond what a run sent: versions and delete markers, requests that were sent again, what was in flight when nothing was waited for.
/// (A choice: no run has as much.)
const ROOM_TIMES: u64 = 10;
const ROOM_OBJECTS: u64 = 10_000;

/// Notes how many objects were sent to a prefix, before they are removed. `None`: nobody knows.
pub fn note_sent(journal: &mut Journal, area: &Area, objects: Option<u64>) -> Result<(), SetupError> {
    let Some(objects) = objects else { return Ok(()) };
    for (id, thing) in journal.pending() {
        if matches!(&thing, Thing::Prefix { target, prefix, .. } if (target, prefix) == (&area.target, &area.prefix))
        {
            journal.put_there(id, objects)?;
        }
    }
    Ok(())
}

/// For who removes much, one by one: tells how far that is, and whether to go on.
pub fn watched<'a>(end: &'a RemovalEnd, events: &'a mut dyn FnMut(Event)) -> impl FnMut(u64) -> bool + 'a {
    move |done| {
        events(Event::Cleaning { done, total: None });
        !end.is_due()
    }
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
    store.give_up_when(how.end.give_up());
    let (mut left, mut in_vain) = (Vec::new(), false);
    for (id, thing) in journal.pending() {
        if bucket_target(&thing).is_none_or(|t| t != target) {
            continue;
        }
        if how.keep {
            journal.kept(id)?;
            continue;
        }
        if matches!(thing, Thing::Prefix { .. }) {
            events(Event::Cleaning { done: 0, total: None });
        }
        // The clock tells why it waits, and the work how far it is: both to the same listener, in turn.
        let tell = RefCell::new(&mut *events);
        let mut waits = |e: Event| (*tell.borrow_mut())(e);
        let mut clock = PatientClock::new(how.end.clone(), &mut waits).after(in_vain);
        let sent = journal.objects(id);
        let most = sent.map(|n| n.saturating_mul(ROOM_TIMES).saturating_add(ROOM_OBJECTS));
        let mut gone = 0;
        let done = {
            let mut told = |e: Event| (*tell.borrow_mut())(e);
            let mut go_on = watched(&how.end, &mut told);
            clean(store, journal, (id, &thing, how.uploads), &mut clock, &mut |done| {
                gone = done;
                go_on(done) && most.is_none_or(|m| done <= m)
            })?
        };
        in_vain = matches!(done, Cleaned::Left(_)) && clock.is_over();
        match done {
            Cleaned::Left(_) if most.is_some_and(|m| gone > m) => {
                *removed = None;
                let sent = counted(sent.unwrap_or_default(), "object");
                left.push(format!(
                    "{}: the removal was stopped after {gone} objects, for the run sent {sent} at most: its listing may have no end, or \
                     somebody else writes there. Look at it with another client, and remove what is the run's manually",
                    words(&thing)
                ));
            }
            Cleaned::Left(mut why) => {
                *removed = None;
                // A request that was broken off names only itself, and one that was not waited for only what the server said.
                if how.end.is_asked() && !why.contains(STOPPED) {
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
    let (mut stays, mut trees_gone) = (Vec::new(), Vec::new());
    let run = journal.mark().to_owned();
    for (id, thing) in journal.pending() {
        let gone = match &thing {
            // Of an older version: from another directory it says nothing of what is there.
            Thing::File { path } | Thing::Directory { path } | Thing::Tree { path }
                if path.is_relative() && !path.exists() =>
            {
                Err("its path is relative to the directory that the run was started in: clean up from there"
                    .to_owned())
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
            Thing::Group { path } => group::remove(path, &run),
            Thing::Mount { path } => mounted::remove(path, &run),
            Thing::Namespace { name } => network::remove_namespace(name, &run),
            Thing::Link { name } => network::remove_link(name, &run),
            Thing::Bucket { .. } | Thing::Prefix { .. } | Thing::Upload { .. } => continue,
        };
        match gone {
            Ok(()) => {
                journal.removed(id)?;
                if let Thing::Tree { path } = thing {
                    trees_gone.push(path);
                }
            }
            Err(why) => stays.push((id, thing, why)),
        }
    }
    let mut left = Vec::new();
    for (id, thing, why) in stays {
        // A file on a disk of the run's own that was killed cannot be removed from it, and is gone with it.
        let path = match &thing {
            Thing::File { path } | Thing::Directory { path } => Some(path),
            _ => None,
        };
        if path.is_some_and(|p| trees_gone.iter().any(|t| p.starts_with(t)) && p.symlink_metadata().is_err())
        {
            journal.removed(id)?;
        } else {
            left.push(format!("{}: {why}; {}", words(&thing), by_hand(&thing)));
        }
    }
    Ok(left)
}

/// What to do about a thing that stays.
fn by_hand(thing: &Thing) -> String {
    match thing {
        Thing::Process { pid, .. } => format!("if it is this run's server, stop it manually: kill {pid}"),
        Thing::Group { path } => format!("when no process is in it: rmdir {}", path.display()),
        Thing::Mount { path } => format!("if nothing else is in it: umount {}", path.display()),
        Thing::Namespace { name } => format!("if nothing else uses it: ip netns del {name}"),
        Thing::Link { name } => format!("if nothing else uses it: ip link del {name}"),
        _ => "if it contains only this run's data, remove it manually".into(),
    }
}

/// A thing, for a person.
pub fn words(thing: &Thing) -> String {
    match thing {
        Thing::Bucket { bucket, .. } => format!("bucket '{bucket}'"),
        Thing::Prefix { bucket, prefix, .. } => format!("objects under '{prefix}' in bucket '{bucket}'"),
        Thing::Upload { bucket, key, .. } => format!("unfinished upload of '{key}' in bucket '{bucket}'"),
        Thing::File { path } | Thing::Directory { path } | Thing::Tree { path } => path.display().to_string(),
        Thing::Process { pid, .. } => format!("process {pid}"),
        Thing::Group { path } => format!("control group {}", path.display()),
        Thing::Mount { path } => format!("what is mounted at {}", path.display()),
        Thing::Namespace { name } => format!("network namespace {name}"),
        Thing::Link { name } => format!("network interface {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::memory::Memory;
    use crate::objects::open_area;

    /// Removes 25,000 objects of a run whose journal says that it sent so many; gives what is left in words, and how many objects.
    fn removed_of(sent: Option<u64>) -> (Vec<String>, usize) {
        let store = Memory::with_bucket();
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let area = open_area(&store, &mut journal, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        for n in 0..25_000 {
            store.put(&format!("{}4KiB/{n:016x}", area.prefix), b"o").unwrap();
        }
        note_sent(&mut journal, &area, sent).unwrap();
        let left = bucket_things(&store, &mut journal, "t", &How::default(), &mut None, &mut |_| {}).unwrap();
        (left, store.keys().len())
    }

    #[test]
    fn far_more_than_a_run_sent_is_not_removed() {
        assert_eq!(removed_of(None), (vec![], 0), "of a killed run nobody knows");
        assert_eq!(removed_of(Some(2_500)), (vec![], 0), "versions, and what was sent again");
        let (left, objects) = removed_of(Some(100));
        assert!(
            left[0].contains("the run sent 100 objects at most") && left[0].contains("manually"),
            "{left:?}"
        );
        assert!((13_000..=14_001).contains(&objects), "{objects}");
    }
}
