//! What one agent holds for all of a run, and what becomes of the hold when that agent is lost. Its process ends, and the kernel lets
//! go of the claim and the lock; whoever stands by on the same machine has them within a look. So what is under load is not nobody's.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::safety::{DeviceInfo, DeviceUse, claim, facts, held};

/// Whoever stands by tries so often. (A choice: an open that is refused costs microseconds.)
const LOOK: Duration = Duration::from_millis(100);
/// And looks each so many times whether somebody else uses the device by now: the table of mounts may be long.
const LOOKS_AT_USES: u32 = 10;
/// A call of the system that hangs is not waited for beyond this.
const END: Duration = Duration::from_secs(5);

/// What of the shared devices and images is held here at present. Asked from any thread.
#[derive(Debug, Default)]
pub struct SharedHold {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    things: BTreeMap<PathBuf, Thing>,
    taken: Option<String>,
    /// Nothing is taken any more.
    is_over: bool,
}

/// A device or image.
#[derive(Debug)]
struct Thing {
    /// What was judged.
    judged: Arc<File>,
    device: Option<DeviceInfo>,
    writes: bool,
    /// It was this agent's from the beginning: who judged it holds it.
    is_ours: bool,
    /// A device that is written to, as the kernel knows its one owner.
    claimed: Option<File>,
    /// The judged one is locked against other runs.
    is_locked: bool,
}

impl Thing {
    fn needs_claim(&self) -> bool {
        self.device.is_some() && self.writes
    }

    fn is_held(&self) -> bool {
        self.is_ours || if self.needs_claim() { self.claimed.is_some() } else { self.is_locked }
    }
}

/// One look at one thing, without anybody waiting: a call of the system may hang.
struct Look {
    path: PathBuf,
    judged: Arc<File>,
    needs_claim: bool,
    device: Option<DeviceInfo>,
}

impl SharedHold {
    /// What nobody should be panicking over: each change is of one field.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Paths, as the plan names them, that this process holds for all: from the beginning, or since another agent let go.
    pub fn held(&self) -> Vec<String> {
        let inside = self.lock();
        let held = inside.things.iter().filter(|(_, t)| t.is_held());
        held.map(|(path, _)| path.display().to_string()).collect()
    }

    /// In words: somebody else uses by now what the run writes to.
    pub fn taken(&self) -> Option<String> {
        self.lock().taken.clone()
    }

    fn looks(&self) -> Vec<Look> {
        let inside = self.lock();
        let open = inside.things.iter().filter(|(_, t)| !t.is_ours && !(t.is_held() && t.is_locked));
        let look = |(path, t): (&PathBuf, &Thing)| Look {
            path: path.clone(),
            judged: Arc::clone(&t.judged),
            needs_claim: t.needs_claim() && t.claimed.is_none(),
            device: t.device.clone().filter(|_| t.writes),
        };
        open.map(look).collect()
    }

    /// Tries each once. `at_uses`: where it cannot be had, it is asked who uses it.
    fn look(&self, at_uses: bool) {
        for look in self.looks() {
            let shown = look.path.display().to_string();
            let claimed = look.needs_claim.then(|| claim::claim_device(&look.judged, &shown).ok()).flatten();
            if look.needs_claim && claimed.is_none() {
                let used = look.device.filter(|_| at_uses).map(|d| facts::uses(&d)).unwrap_or_default();
                if let Some(DeviceUse { device, what, .. }) = used.first() {
                    let words =
                        format!("{shown} is used by others since its holder was lost: {device} {what}");
                    self.lock().taken.get_or_insert(words);
                }
                continue;
            }
            let is_locked = held::is_locked_now(&look.judged);
            let mut inside = self.lock();
            // What came too late is let go of again, as this goes.
            if inside.is_over {
                return;
            }
            if let Some(t) =
                inside.things.get_mut(&look.path).filter(|t| Arc::ptr_eq(&t.judged, &look.judged))
            {
                t.is_locked |= is_locked;
                t.claimed = t.claimed.take().or(claimed);
            }
        }
    }
}

/// Looks after a [`SharedHold`] for as long as it lives.
#[derive(Debug, Default)]
pub(super) struct Standby {
    hold: Arc<SharedHold>,
    thread: Option<(Sender<()>, Receiver<()>, JoinHandle<()>)>,
}

impl Standby {
    pub fn hold(&self) -> Arc<SharedHold> {
        Arc::clone(&self.hold)
    }

    /// This process holds it for all.
    pub fn holds(&mut self, path: &Path, judged: &File) {
        self.add(path, judged, (None, false), true);
    }

    /// Another one does; `device`: what it is, where it is no image.
    pub fn stands_by(&mut self, path: &Path, judged: &File, device: Option<&DeviceInfo>, writes: bool) {
        self.add(path, judged, (device.cloned(), writes), false);
        if self.thread.is_none() {
            self.thread = start(&self.hold);
        }
    }

    fn add(
        &mut self,
        path: &Path,
        judged: &File,
        (device, writes): (Option<DeviceInfo>, bool),
        is_ours: bool,
    ) {
        let mut inside = self.hold.lock();
        // What was taken over stays so; a stage that writes has more to take.
        if let Some(known) = inside.things.get_mut(path)
            && super::holds::same(&known.judged, judged)
            && known.is_ours == is_ours
        {
            known.device = device.or(known.device.take());
            known.writes |= writes;
            return;
        }
        // Without a second handle of it there is nothing to hold it by.
        let Ok(judged) = judged.try_clone() else { return };
        let judged = Arc::new(judged);
        let thing = Thing { judged, device, writes, is_ours, claimed: None, is_locked: false };
        inside.things.insert(path.to_owned(), thing);
    }

    /// Lets go of all of it.
    pub fn clear(&mut self) {
        {
            let mut inside = self.hold.lock();
            inside.is_over = true;
            inside.things.clear();
        }
        if let Some((stop, ended, thread)) = self.thread.take() {
            drop(stop);
            // What it just opens is closed when it ends: whoever comes next finds nobody.
            if ended.recv_timeout(END) == Err(RecvTimeoutError::Disconnected) {
                let _ = thread.join();
            }
        }
        self.hold = Arc::default();
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Without a thread nobody stands by, and the conductor sees that nobody has it.
fn start(hold: &Arc<SharedHold>) -> Option<(Sender<()>, Receiver<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel::<()>();
    let (ends, ended) = channel::<()>();
    let hold = Arc::clone(hold);
    let body = move || {
        let _ends = ends;
        let mut looks = 0u32;
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            looks = looks.wrapping_add(1);
            hold.look(looks % LOOKS_AT_USES == 0);
        }
    };
    let thread = std::thread::Builder::new().name("standby".into()).spawn(body).ok()?;
    Some((stop, ended, thread))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    fn held_within(standby: &Standby) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while standby.hold().held().is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK / 5);
        }
        !standby.hold().held().is_empty()
    }

    #[test]
    fn one_of_those_who_stand_by_takes_what_its_holder_let_go_of() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, [0; 4096]).unwrap();
        let (first, mut holder) = (open(&path), Standby::default());
        held::lock(&first, "image").unwrap();
        holder.holds(&path, &first);
        assert_eq!(holder.hold().held(), [path.display().to_string()]);
        let mut others = [Standby::default(), Standby::default()];
        let files = [open(&path), open(&path)];
        others.iter_mut().zip(&files).for_each(|(s, f)| s.stands_by(&path, f, None, true));
        std::thread::sleep(LOOK * 3);
        assert!(others.iter().all(|s| s.hold().held().is_empty()), "it has one holder");
        // It ends: its handles are closed.
        holder.clear();
        drop(first);
        let until = Instant::now() + Duration::from_secs(20);
        while others.iter().all(|s| s.hold().held().is_empty()) && Instant::now() < until {
            std::thread::sleep(LOOK / 5);
        }
        assert_eq!(others.iter().filter(|s| !s.hold().held().is_empty()).count(), 1);
        assert!(held::lock(&open(&path), "image").is_err(), "another run is refused");
        others.iter_mut().for_each(Standby::clear);
        drop(files);
        held::lock(&open(&path), "image").unwrap();
    }

    #[test]
    fn a_later_stage_keeps_what_was_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, [0; 4096]).unwrap();
        let (file, mut standby) = (open(&path), Standby::default());
        standby.stands_by(&path, &file, None, false);
        assert!(held_within(&standby), "nobody has it");
        standby.stands_by(&path, &file, None, true);
        assert_eq!(standby.hold().held().len(), 1);
    }
}
