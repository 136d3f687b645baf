//! Where runs are kept, and how they are named on the command line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
            e @ StoreError::TooLarge { .. } => Fault::input(
                e.to_string(),
                "No run writes such a file: get the run again from where it was made.",
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

/// Runs without a seal that were judged in this process: once is enough, and is told once.
static JUDGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A run that was killed has no seal: whatever result is stored beside its record may be anybody's, so it is judged by what it recorded.
/// One that is still going has none to show.
pub fn judged(dir: &RunDir) -> Result<(), Fault> {
    // What a seal that cannot be read is worth, whoever reads the summary tells.
    let is_sealed = !matches!(dir.sealed(), Ok(None));
    if dir.summary_is_there() && (is_sealed || is_judged(dir)) {
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
    if is_sealed {
        plimsoll_run::analyze(dir).map_err(nothing)?;
        output::tell(format_args!("plimsoll: run {id} did not finish; this is what it recorded"));
        return Ok(());
    }
    let was_another = plimsoll_run::judge_anew(dir).map_err(nothing)?;
    JUDGED.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.path().to_owned());
    let another =
        if was_another { "; the result that was stored beside it was another, and is replaced" } else { "" };
    output::tell(format_args!(
        "plimsoll: run {id} is not sealed: it did not finish, and this is what it recorded{another}"
    ));
    Ok(())
}

/// The same of a run that has a stored result; one without is left as it is.
pub fn stored_result_judged(dir: &RunDir) -> Result<(), Fault> {
    if dir.summary_is_there() { judged(dir) } else { Ok(()) }
}

fn is_judged(dir: &RunDir) -> bool {
    JUDGED.lock().unwrap_or_else(PoisonError::into_inner).contains(dir.path())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Environment, Interval, Plan};
    use plimsoll_store::EnvFile;

    use super::*;

    fn run_in(root: &Path) -> RunDir {
        let run = RunDir::create(root).unwrap();
        run.write_plan(&Plan::from_toml(include_str!("../../../plans/sim-bucket.toml")).unwrap()).unwrap();
        run.write_env(&EnvFile {
            format: plimsoll_store::rundir::ENV_FORMAT.into(),
            id: run.id(),
            environment: Environment::default(),
            rerun: "plimsoll run plan.toml".into(),
            clock_offsets_ns: Default::default(),
        })
        .unwrap();
        let mut stream = run.create_intervals("local", 100_000_000).unwrap();
        stream.interval(0, &Interval::empty(0)).unwrap();
        stream.finish().unwrap();
        run
    }

    fn edited(run: &RunDir) {
        let mut summary = plimsoll_run::analyze(run).unwrap();
        summary.verdict = "VALID. Ten times as fast".into();
        run.write_summary(&summary).unwrap();
    }

    #[test]
    fn what_no_seal_vouches_for_is_judged_by_its_record() {
        let root = tempfile::tempdir().unwrap();
        let run = run_in(root.path());
        edited(&run);
        let held = run.journal().unwrap();
        assert!(judged(&run).unwrap_err().what.contains("still in progress"));
        drop(held);
        judged(&run).unwrap();
        assert_eq!(run.summary().unwrap().verdict, plimsoll_run::judged_by_record(&run).unwrap().verdict);
        assert!(!plimsoll_run::judge_anew(&run).unwrap(), "it is the same judgement now");
    }

    #[test]
    fn what_is_sealed_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let run = run_in(root.path());
        run.seal("done").unwrap();
        edited(&run);
        judged(&run).unwrap();
        assert_eq!(run.summary().unwrap().verdict, "VALID. Ten times as fast");
    }
}
