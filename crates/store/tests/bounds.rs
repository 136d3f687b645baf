//! Documents of a run directory that are larger than any run writes: refused by their length, and none of it is read.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::fs::File;
use std::path::Path;

use plimsoll_model::{Environment, Plan};
use plimsoll_store::{EnvFile, RunDir, RunEntry, RunState, StoreError, journal};

use common::PLAN;

fn run_in(root: &Path) -> RunDir {
    let run = RunDir::create(root).unwrap();
    run.write_plan(&Plan::from_toml(PLAN).unwrap()).unwrap();
    let environment = Environment { started_at: "2026-11-24T08:00:00Z".into(), ..Environment::default() };
    run.write_env(&EnvFile {
        format: "plimsoll.env/1".into(),
        id: run.id(),
        environment,
        rerun: "plimsoll run plan.toml".into(),
        clock_offsets_ns: Default::default(),
    })
    .unwrap();
    drop(run.journal().unwrap());
    run.seal("done").unwrap();
    run
}

/// Nothing but a length: three gigabytes that take no room on a disk.
fn grow(run: &RunDir, name: &str) {
    File::options().create(true).append(true).open(run.path().join(name)).unwrap().set_len(3 << 30).unwrap();
}

fn refused<T: std::fmt::Debug>(read: Result<T, StoreError>, name: &str) {
    match read {
        Err(StoreError::TooLarge { path, bytes, most }) => {
            assert!(path.ends_with(name) && bytes == 3 << 30 && most < bytes, "{path:?} {bytes} {most}");
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn what_no_run_writes_is_not_read() {
    for name in
        ["plan.toml", "env.json", "seal.json", "summary.json", "analysis.json", "imported.json", "journal"]
    {
        let root = tempfile::tempdir().unwrap();
        let run = run_in(root.path());
        grow(&run, name);
        match name {
            "plan.toml" => {
                refused(run.plan(), name);
                assert!(run.clone().remove().unwrap_err().to_string().contains("at most"));
            }
            "env.json" => refused(run.env(), name),
            "seal.json" => refused(run.sealed(), name),
            "summary.json" => refused(run.summary(), name),
            "analysis.json" => refused(run.analysis(), name),
            "imported.json" => refused(run.imported(), name),
            _ => {
                refused(journal::pending(&run.journal_path()), name);
                refused(journal::kept(&run.journal_path()), name);
                refused(run.journal(), name);
                assert_eq!(journal::mark_of(&run.journal_path()), None);
            }
        }
    }
}

#[test]
fn the_list_goes_on_with_the_others() {
    let root = tempfile::tempdir().unwrap();
    let (bad, good) = (run_in(root.path()), run_in(root.path()));
    for name in ["plan.toml", "env.json", "seal.json", "summary.json", "journal"] {
        grow(&bad, name);
    }
    let all = plimsoll_store::rundir::list(root.path()).unwrap();
    let of = |run: &RunDir| -> RunEntry { all.iter().find(|e| e.id == run.id()).unwrap().clone() };
    assert_eq!((of(&bad).state, of(&good).state), (RunState::Unfinished, RunState::Sealed));
    assert_eq!((of(&bad).started_at.as_str(), of(&good).started_at.as_str()), ("", "2026-11-24T08:00:00Z"));
}

#[test]
fn empty_parts_without_number_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    let run = run_in(root.path());
    let text = format!(
        r#"{{"format":"plimsoll.env/1","environment":{{"agents":[{}{{}}]}}}}"#,
        "{},".repeat(600_000)
    );
    std::fs::write(run.path().join("env.json"), text).unwrap();
    assert!(run.env().unwrap_err().to_string().contains("objects and lists"));
}

#[test]
fn a_plan_that_could_not_be_read_again_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let run = run_in(root.path());
    let mut plan = run.plan().unwrap();
    plan.name = Some("x".repeat(17 << 20));
    assert!(run.write_plan(&plan).unwrap_err().to_string().contains("are read of it again"));
    assert_eq!(run.plan().unwrap().name, None);
}
