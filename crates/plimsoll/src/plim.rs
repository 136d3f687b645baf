//! Packed runs (`.plim`) on the command line: unpacked for as long as a command reads them, or for good.

use std::path::Path;
use std::sync::{Mutex, Once};
use std::time::Duration;

use plimsoll_archive::{PlimError, is_plim, unpack};
use plimsoll_store::RunDir;

use crate::fault::{Exit, Fault, sentence};
use crate::signals::{self, ProcessRole};
use crate::{output, runs_dir};

/// Directories of runs that are read in this process: gone when it ends in order.
static READ: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

/// A run by its directory, its id (or the start of it), `last`, or a packed run's file, which is only read. A result that no seal vouches for
/// is not read of any.
pub fn find(root: Option<&Path>, name: &str) -> Result<RunDir, Fault> {
    if !is_packed(name) {
        let run = runs_dir::find(root, name)?;
        runs_dir::stored_result_judged(&run)?;
        return Ok(run);
    }
    let cannot = |e: std::io::Error| {
        Fault::input(
            format!("{name} cannot be unpacked to be read: {e}"),
            "Name another directory for temporary files with TMPDIR, or keep it: plimsoll runs unpack FILE",
        )
    };
    end_in_order();
    let dir = tempfile::Builder::new().prefix("plimsoll-plim-").tempdir().map_err(cannot)?;
    let run =
        unpack(Path::new(name), dir.path(), &signals::was_asked_to_stop).map_err(|e| told(name, e))?.run;
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
    end_in_order();
    let unpacked = unpack(file, &runs_dir::root(root), &signals::was_asked_to_stop)
        .map_err(|e| told(&file.display().to_string(), e))?;
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

/// Ctrl-C and its kin leave nothing of a packed run that is only half read, or half written. Whoever reads in pieces asks; what comes after
/// (judging, drawing) does not, and is ended from beside once it had its time.
pub fn end_in_order() {
    static WATCH: Once = Once::new();
    /// How long a piece may take.
    const PIECE: Duration = Duration::from_secs(2);
    WATCH.call_once(|| {
        if signals::is_installed() {
            return;
        }
        signals::install(ProcessRole::Reader);
        // Without a thread it ends when it is done.
        let _ = std::thread::Builder::new().name("plim-watch".into()).spawn(|| {
            while signals::role() == ProcessRole::Reader {
                if signals::was_asked_to_stop() {
                    std::thread::sleep(PIECE);
                    forget();
                    std::process::exit(Exit::Interrupted as i32);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    });
}

pub fn told(name: &str, e: PlimError) -> Fault {
    if signals::was_asked_to_stop() {
        let what = format!("{name}: stopped; nothing of it is kept");
        return Fault { what, remedy: String::new(), exit: Exit::Interrupted };
    }
    Fault::input(format!("{name}: {}", e.problem), sentence(e.remedy))
}
