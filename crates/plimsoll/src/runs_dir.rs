//! Where runs are kept, and how they are named on the command line.

use std::path::{Path, PathBuf};

use plimsoll_store::{RunDir, StoreError, net};

use crate::fault::Fault;
use crate::{output, plim};

/// `--runs-dir` (or PLIMSOLL_RUNS, which clap reads for it), else a directory beside the user's work.
pub fn root(given: Option<&Path>) -> PathBuf {
    given.unwrap_or(Path::new(plimsoll_store::rundir::DEFAULT_ROOT)).to_owned()
}

/// A run by its directory, its id (or the start of it), or `last`.
pub fn find(given: Option<&Path>, name: &str) -> Result<RunDir, Fault> {
    if plim::is_packed(name) {
        return Err(Fault::input(
            format!("{name} is a packed run, and this is done to runs that are stored here"),
            format!("Unpack it first: plimsoll runs unpack {name}"),
        ));
    }
    let root = root(given);
    RunDir::find(&root, name)
        .map_err(|e| if net::is_name(name) { no_run_but_a_test(&root, name) } else { e.into() })
}

/// What is asked of a run (to go on, to fetch what agents kept, to be compared) cannot be asked of a network test, which is listed below
/// the runs.
fn no_run_but_a_test(root: &Path, name: &str) -> Fault {
    match net::find(root, name) {
        Ok(_) => Fault::input(
            format!("{name} is a network test, and no run: it is one whole record"),
            format!(
                "Show it with `plimsoll report {name}`, hold runs against it with --ceiling {name}, or give one of \
                 `plimsoll runs list`."
            ),
        ),
        Err(e) => e.into(),
    }
}

impl From<StoreError> for Fault {
    fn from(e: StoreError) -> Self {
        match e {
            StoreError::Dir { path, problem, remedy } => {
                Fault::input(format!("{}: {problem}", path.display()), format!("{remedy}."))
            }
            StoreError::Io { doing, .. } if doing.ends_with("the trace") => Fault::input(
                e.to_string(),
                "Choose another file with --trace: an existing file is never overwritten.",
            ),
            e if e.is_no_space() => Fault::input(
                e.to_string(),
                "Free some space, or choose another directory with --runs-dir DIR.",
            ),
            e @ StoreError::Io { .. } => Fault::input(
                e.to_string(),
                "Check path and permissions, or choose another directory with --runs-dir DIR.",
            ),
            e => Fault::input(e.to_string(), "`plimsoll runs list` lists the runs."),
        }
    }
}

/// A run that was killed has no result yet: it is judged by what it recorded. One that is still going has none to show.
pub fn judged(dir: &RunDir) -> Result<(), Fault> {
    if dir.summary_is_there() {
        return Ok(());
    }
    let id = dir.id();
    if dir.is_running() {
        return Err(Fault::input(
            format!("run {id} is still in progress"),
            "Wait until it ends, or stop it.",
        ));
    }
    let nothing = |e: StoreError| {
        Fault::input(
            format!("run {id} recorded nothing that can be shown: {e}"),
            format!("Remove it with: plimsoll cleanup {id} ; plimsoll runs rm {id}"),
        )
    };
    plimsoll_run::analyze(dir).map_err(nothing)?;
    output::tell(format_args!("plimsoll: run {id} did not finish; this is what it recorded"));
    Ok(())
}
