//! What a run holds of its files, devices and directories: judged once, open until the run ends, and its alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::need::{HeldBy, Need};
use super::standby::{SharedHold, Standby};
use crate::error::SetupError;
use crate::safety::{self, FileFate, HeldFile, Permit, handle, held};

#[derive(Debug, Default)]
pub(super) struct Holds {
    devices: BTreeMap<PathBuf, Permit>,
    files: BTreeMap<PathBuf, HeldFile>,
    directories: BTreeMap<PathBuf, File>,
    standby: Standby,
}

impl Holds {
    pub fn is_device(&self, path: &Path) -> bool {
        self.devices.contains_key(path) || safety::DeviceInfo::of(path).is_ok()
    }

    pub fn has_device(&self, path: &Path) -> bool {
        self.devices.contains_key(path)
    }

    /// Claims a device; a claim for reading becomes one for writing when a stage writes.
    pub fn device(&mut self, need: &Need) -> Result<(), SetupError> {
        let enough = |p: &Permit| (p.may_write() || !need.writes) && leads_to(&need.path, &p.file);
        if !self.devices.get(&need.path).is_some_and(enough) {
            self.devices.remove(&need.path);
            let permit = if need.existing && !need.writes {
                safety::permit_to_look(&need.path)?
            } else if need.held_by == HeldBy::Another {
                safety::permit_beside(&need.path, need.writes, need.destroy_data.as_deref())?
            } else {
                safety::permit(&need.path, need.writes, need.destroy_data.as_deref())?
            };
            self.devices.insert(need.path.clone(), permit);
        }
        Ok(())
    }

    /// What of a shared device or image that was judged is held here, from now on looked after: whoever does not hold it takes it over
    /// when its holder is gone. Not before all agents have what they are to have: none takes it from the one who is to hold it.
    pub fn share(&mut self, need: &Need) {
        let (device, file) = (self.devices.get(&need.path), self.files.get(&need.path));
        let Some(judged) = device.map(|p| &p.file).or(file.map(|h| &h.file)) else { return };
        match need.held_by {
            // What is others' and only read is nobody's to hold.
            _ if need.existing && !need.writes => {}
            HeldBy::Us => {}
            HeldBy::UsForAll => self.standby.holds(&need.path, judged),
            HeldBy::Another => {
                self.standby.stands_by(&need.path, judged, device.map(|p| &p.device), need.writes);
            }
        }
    }

    /// See [`SharedHold`].
    pub fn shared(&self) -> Arc<SharedHold> {
        self.standby.hold()
    }

    /// Judges a file, and makes it where it is missing and written to. `run` is the run's mark.
    pub fn file(&mut self, need: &Need, writes: bool, run: &str) -> Result<FileFate, SetupError> {
        let enough = |h: &HeldFile| (h.writes || !writes) && leads_to(&need.path, &h.file);
        if let Some(held) = self.files.get(&need.path).filter(|h| enough(h)) {
            return Ok(held.fate);
        }
        self.files.remove(&need.path);
        let held = safety::prepare_file(&need.path, writes, need.destroy_data.as_deref(), run)?;
        // Under two names of one plan, it is held once. What is others' and only read is not held: a lock could be in their way.
        if !need.existing
            && need.held_by != HeldBy::Another
            && !self.files.values().any(|h| same(&h.file, &held.file))
        {
            held::lock(&held.file, &need.path.display().to_string())?;
        }
        let fate = held.fate;
        self.files.insert(need.path.clone(), held);
        Ok(fate)
    }

    /// Locks the directory that a set of files has for itself, once it is there.
    pub fn directory(&mut self, need: &Need) -> Result<(), SetupError> {
        let Some(dir) = need.path.parent().filter(|_| need.own_directory) else { return Ok(()) };
        if self.directories.contains_key(dir) || !dir.is_dir() {
            return Ok(());
        }
        let shown = dir.display().to_string();
        let open = File::open(dir).map_err(|e| {
            SetupError::input(format!("{shown} cannot be opened: {e}"), "Check its read permissions")
        })?;
        if !self.directories.values().any(|d| same(d, &open)) {
            held::lock(&open, &shown)?;
        }
        self.directories.insert(dir.to_owned(), open);
        Ok(())
    }

    /// A path that leads to what was judged; the path itself where nothing was.
    pub fn through(&self, path: &Path) -> PathBuf {
        let device = self.devices.get(path).map(|p| &p.file);
        let file = device.or_else(|| self.files.get(path).map(|h| &h.file));
        file.map_or_else(|| path.to_owned(), handle::through)
    }

    /// A file that is about to be removed.
    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

pub(super) fn same(a: &File, b: &File) -> bool {
    matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Whether a path still leads to what was opened under it.
fn leads_to(path: &Path, file: &File) -> bool {
    let id = |m: &fs::Metadata| (m.dev(), m.ino(), m.rdev());
    matches!((fs::metadata(path), file.metadata()), (Ok(a), Ok(b)) if id(&a) == id(&b))
}
