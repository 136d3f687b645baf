//! Packed runs (`.plim`) on the command line: unpacked for as long as a command reads them, or for good.

use std::path::Path;
use std::sync::Mutex;

use plimsoll_archive::{PlimError, is_plim, unpack};
use plimsoll_store::RunDir;

use crate::fault::{Fault, sentence};
use crate::{output, runs_dir};

/// Directories of runs that are read in this process: gone when it ends in order.
static READ: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

/// A run by its directory, its id (or the start of it), `last`, or a packed run's file, which is only read.
pub fn find(root: Option<&Path>, name: &str) -> Result<RunDir, Fault> {
    if !is_packed(name) {
        return runs_dir::find(root, name);
    }
    let cannot = |e: std::io::Error| {
        Fault::input(
            format!("{name} cannot be unpacked to be read: {e}"),
            "Name another directory for temporary files with TMPDIR, or keep it: plimsoll runs unpack FILE",
        )
    };
    let dir = tempfile::Builder::new().prefix("plimsoll-plim-").tempdir().map_err(cannot)?;
    let run = unpack(Path::new(name), dir.path()).map_err(|e| told(name, e))?.run;
    READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(dir);
    runs_dir::judged(&run)?;
    Ok(run)
}

/// Whether a name is that of a packed run's file.
pub fn is_packed(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|e| e == "plim") && !path.is_dir()
}

/// Whether a file is one, by its content, too.
pub fn is_packed_file(path: &Path) -> bool {
    is_plim(path)
}

/// A packed run among the others, for good.
pub fn kept(file: &Path, root: Option<&Path>) -> Result<RunDir, Fault> {
    let unpacked = unpack(file, &runs_dir::root(root)).map_err(|e| told(&file.display().to_string(), e))?;
    let due = plimsoll_store::journal::pending(&unpacked.run.journal_path()).map_or(0, |p| p.len());
    if due > 0 {
        output::tell(format_args!(
            "plimsoll: where run {} was made, {due} thing(s) that it created were still to be cleaned up when it was packed",
            unpacked.manifest.id
        ));
    }
    Ok(unpacked.run)
}

/// Removes what was unpacked to be read.
pub fn forget() {
    READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}

pub fn told(name: &str, e: PlimError) -> Fault {
    Fault::input(format!("{name}: {}", e.problem), sentence(e.remedy))
}
