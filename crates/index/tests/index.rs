//! The index against the directories that it is of.

#[path = "../examples/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_index::{Refreshed, RunFilter, RunIndex, RunStanding};
use plimsoll_store::RunDir;
use support::{MadeRun, make};

fn ids(index: &mut RunIndex, filter: RunFilter) -> Vec<String> {
    let found: Vec<String> = index.runs(&filter).unwrap().into_iter().map(|r| r.entry.id).collect();
    // Whoever has all runs in memory finds the same.
    let all = index.runs(&RunFilter::default()).unwrap();
    let taken: Vec<String> = all.into_iter().filter(|r| filter.takes(r)).map(|r| r.entry.id).collect();
    assert_eq!(found, taken, "{filter:?}");
    found
}

fn open(root: &Path) -> RunIndex {
    RunIndex::open_at(root, &root.join("index.sqlite")).unwrap()
}

/// All changed so long ago that a second look at the file system tells whether they changed since.
fn rested() {
    std::thread::sleep(Duration::from_millis(2_100));
}

fn three(root: &Path) {
    make(
        root,
        &MadeRun { id: "20261101-080000-0001", op: "get", tier: "standard", hours: 0, ..MadeRun::default() },
    );
    make(
        root,
        &MadeRun { id: "20261102-080000-0002", op: "put", tier: "standard", hours: 24, ..MadeRun::default() },
    );
    make(
        root,
        &MadeRun {
            id: "20261103-080000-0003",
            op: "get",
            tier: "premium",
            hours: 48,
            void: true,
            ..MadeRun::default()
        },
    );
}

#[test]
fn runs_are_found_by_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    fs::create_dir(dir.path().join("no-run")).unwrap();
    let mut index = open(dir.path());
    assert_eq!(index.refresh().unwrap(), Refreshed { runs: 3, read: 3, gone: 0 });
    let all = ["20261101-080000-0001", "20261102-080000-0002", "20261103-080000-0003"];
    assert_eq!(ids(&mut index, RunFilter::default()), all);
    let label = |v: &str| RunFilter { labels: vec![("tier".into(), v.into())], ..RunFilter::default() };
    assert_eq!(ids(&mut index, label("standard")), all[..2]);
    assert_eq!(ids(&mut index, label("stand")), [""; 0]);
    assert_eq!(
        ids(&mut index, RunFilter { ops: vec!["put".into(), "stat".into()], ..RunFilter::default() }),
        all[1..2]
    );
    assert_eq!(ids(&mut index, RunFilter { targets: vec!["null".into()], ..RunFilter::default() }), all);
    assert_eq!(ids(&mut index, RunFilter { targets: vec!["s3".into()], ..RunFilter::default() }), [""; 0]);
    let standing = |s| RunFilter { standings: vec![s], ..RunFilter::default() };
    assert_eq!(ids(&mut index, standing(RunStanding::Invalid)), all[2..]);
    assert_eq!(ids(&mut index, standing(RunStanding::Valid)), all[..2]);
    let us = |text: &str| Some(text.parse::<jiff::Timestamp>().unwrap().as_microsecond());
    let since = RunFilter {
        since_us: us("2026-11-02T08:00:00Z"),
        until_us: us("2026-11-03T08:00:00Z"),
        ..RunFilter::default()
    };
    assert_eq!(ids(&mut index, since), all[1..2]);
    let both = RunFilter { ops: vec!["get".into()], ..label("standard") };
    assert_eq!(ids(&mut index, both), all[..1]);
}

/// The index says what the directories say, in the same order.
#[test]
fn it_is_what_reading_every_run_would_say() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    let mut index = open(dir.path());
    index.refresh().unwrap();
    let read = plimsoll_store::rundir::list(dir.path()).unwrap();
    let known = index.runs(&RunFilter::default()).unwrap();
    for (a, b) in read.iter().zip(&known) {
        assert_eq!(serde_json::to_value(a).unwrap(), serde_json::to_value(&b.entry).unwrap());
    }
    let lines = index.lines(&RunFilter::default()).unwrap();
    assert_eq!(lines.len(), 3);
    let summary = RunDir::open(&read[0].path).unwrap().summary().unwrap();
    assert_eq!(lines[0].ops_per_s, summary.workloads[0].ops_per_s);
    assert_eq!((lines[0].run.as_str(), lines[2].valid), (read[0].id.as_str(), false));
}

#[test]
fn only_what_is_new_or_changed_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    rested();
    let mut index = open(dir.path());
    index.refresh().unwrap();
    assert_eq!(index.refresh().unwrap(), Refreshed { runs: 3, read: 0, gone: 0 });
    // A summary that was edited in place is told as such: the index asks again.
    let summary = dir.path().join("20261102-080000-0002/summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replace("\"put\"", "\"stat\"")).unwrap();
    make(dir.path(), &MadeRun { id: "20261104-080000-0004", ..MadeRun::default() });
    fs::remove_dir_all(dir.path().join("20261101-080000-0001")).unwrap();
    // In another process.
    let mut index = open(dir.path());
    assert_eq!(index.refresh().unwrap(), Refreshed { runs: 3, read: 2, gone: 1 });
    let stat = RunFilter { ops: vec!["stat".into()], ..RunFilter::default() };
    assert_eq!(ids(&mut index, stat), ["20261102-080000-0002"]);
    assert_eq!(
        index.runs(&RunFilter::default()).unwrap()[0].standing,
        RunStanding::Invalid,
        "it was changed: V23"
    );
}

#[test]
fn a_run_that_is_going_on_is_asked_each_time() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), &MadeRun { id: "20261101-080000-0001", unsealed: true, ..MadeRun::default() });
    let run = RunDir::open(&dir.path().join("20261101-080000-0001")).unwrap();
    rested();
    let mut index = open(dir.path());
    let mut standing = || {
        index.refresh().unwrap();
        index.runs(&RunFilter::default()).unwrap()[0].standing
    };
    assert_eq!(standing(), RunStanding::Killed);
    let held = run.journal().unwrap();
    assert_eq!(standing(), RunStanding::Running);
    drop(held);
    assert_eq!(standing(), RunStanding::Killed);
    run.seal("done").unwrap();
    assert_eq!(standing(), RunStanding::Valid);
}

/// A process that was stopped while it held the index alone keeps nobody from an answer.
#[test]
fn a_lock_that_is_never_let_go_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    rested();
    let lock = fs::File::create(dir.path().join("index.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut index = open(dir.path());
    assert_eq!(index.refresh().unwrap().read, 3);
    assert!(index.note().unwrap().contains("does not let it go"), "{:?}", index.note());
}

/// Whatever its file has become, the answers are those of the directories, and nobody else's file is touched.
#[test]
fn a_file_that_is_not_what_was_written_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("index.sqlite");
    three(dir.path());
    rested();
    open(dir.path()).refresh().unwrap();
    let sound = fs::read(&file).unwrap();
    let sql = |text: &str| rusqlite::Connection::open(&file).unwrap().execute_batch(text).unwrap();
    let damages: [(&str, &dyn Fn()); 7] = [
        ("empty", &|| fs::write(&file, "").unwrap()),
        ("no database", &|| fs::write(&file, "a letter of some length, which is no database").unwrap()),
        ("cut off", &|| fs::write(&file, &sound[..sound.len() / 2]).unwrap()),
        ("overwritten", &|| {
            let mut bytes = sound.clone();
            bytes[4096..12288].fill(0x5a);
            fs::write(&file, bytes).unwrap();
        }),
        ("newer", &|| sql("PRAGMA user_version = 99")),
        ("another program's", &|| sql("DROP TABLE labels")),
        ("a figure changed", &|| sql("UPDATE docs SET run = replace(run, 'standard', 'stendard')")),
    ];
    for (what, damage) in damages {
        fs::write(&file, &sound).unwrap();
        damage();
        let mut index = open(dir.path());
        index.refresh().unwrap();
        let tier = RunFilter { labels: vec![("tier".into(), "standard".into())], ..RunFilter::default() };
        assert_eq!(index.runs(&RunFilter::default()).unwrap().len(), 3, "{what}");
        assert_eq!(ids(&mut index, tier).len(), 2, "{what}");
        assert_eq!(index.note(), None, "{what}");
        assert_eq!(open(dir.path()).refresh().unwrap().read, 0, "{what}: it was kept");
    }
    // A link is not followed, and no place at all is no hindrance.
    let theirs = dir.path().join("theirs.sqlite");
    fs::write(&theirs, "theirs").unwrap();
    let link = dir.path().join("link.sqlite");
    std::os::unix::fs::symlink(&theirs, &link).unwrap();
    for place in [link, dir.path().join("theirs.sqlite/below/it.sqlite")] {
        let mut index = RunIndex::open_at(dir.path(), &place).unwrap();
        assert_eq!(index.refresh().unwrap().read, 3);
        assert!(index.note().is_some());
    }
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs");
}

#[test]
fn two_processes_at_once_come_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..40 {
        let id = format!("20261101-0800{i:02}-0001");
        make(dir.path(), &MadeRun { id: &id, hours: i, ..MadeRun::default() });
    }
    let all = std::thread::scope(|s| {
        let work = || {
            let mut index = open(dir.path());
            let done = index.refresh().unwrap();
            (done.runs, ids(&mut index, RunFilter::default()))
        };
        let threads: Vec<_> = (0..4).map(|_| s.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
    });
    for (runs, ids) in all {
        assert_eq!((runs, ids.len()), (40, 40));
    }
}

/// Of a list of ten thousand each is drawn, and none of them keeps it waiting: courses are read apart, and once.
#[test]
fn how_a_rate_went_is_read_once_of_runs_that_have_one() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    // Two seconds at 400 op/s, one at 100, five at 400.
    let ended: Vec<u64> = (0..80).map(|i| if (20..30).contains(&i) { 10 } else { 40 }).collect();
    let drawn = "20261104-080000-0004";
    let made = MadeRun { id: drawn, hours: 72, ended: &ended, ..MadeRun::default() };
    make(dir.path(), &made);
    make(dir.path(), &MadeRun { id: "20261105-080000-0005", unsealed: true, hours: 96, ..made });
    rested();
    let mut index = open(dir.path());
    index.refresh().unwrap();
    assert!(index.courses().unwrap().is_empty(), "nobody has asked for it");
    // The newest first, and one at least, however little time there is; not of what has not come to its end.
    assert_eq!(index.read_courses(Duration::ZERO).unwrap(), 1);
    let known = index.courses().unwrap();
    assert_eq!(known.keys().collect::<Vec<_>>(), [drawn]);
    let course = &known[drawn];
    assert_eq!((course.line, course.seconds, course.ops_per_s.len()), (0, 8.0, 32));
    assert_eq!(course.ops_per_s[..8], [400.0; 8]);
    assert_eq!(course.ops_per_s[8..12], [100.0; 4]);
    assert_eq!(course.ops_per_s[12..], [400.0; 20]);
    // Whoever has no rate has no course, which is known, too.
    assert_eq!(index.read_courses(Duration::from_secs(60)).unwrap(), 3);
    assert_eq!(index.courses().unwrap(), known);
    drop(index);
    let mut index = open(dir.path());
    assert_eq!(index.refresh().unwrap().read, 0);
    assert_eq!(
        (index.read_courses(Duration::from_secs(60)).unwrap(), index.courses().unwrap()),
        (0, known.clone())
    );

    // A run that was read again is looked at again, and a cache that was damaged draws nothing.
    let plan = dir.path().join(drawn).join("plan.toml");
    fs::write(&plan, fs::read_to_string(&plan).unwrap() + "\n").unwrap();
    assert_eq!(index.refresh().unwrap().read, 1);
    assert!(index.courses().unwrap().is_empty());
    assert_eq!(index.read_courses(Duration::from_secs(60)).unwrap(), 1);
    let file = dir.path().join("index.sqlite");
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute_batch("UPDATE courses SET course = replace(course, '100', '900')").unwrap();
    drop(sql);
    assert!(index.courses().unwrap().is_empty(), "it was made anew");
    assert_eq!(index.read_courses(Duration::from_secs(60)).unwrap(), 4);
    assert_eq!(index.courses().unwrap(), known);
}

/// A list goes on with the other runs, and says of a damaged one that it is.
#[test]
fn what_cannot_be_read_is_said_and_the_others_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    let ids = ["20261101-080000-0001", "20261102-080000-0002", "20261103-080000-0003"];
    let grow = |id: &str, name: &str| {
        fs::File::options()
            .append(true)
            .open(dir.path().join(id).join(name))
            .unwrap()
            .set_len(3 << 30)
            .unwrap();
    };
    grow(ids[0], "plan.toml");
    grow(ids[0], "summary.json");
    grow(ids[1], "seal.json");
    let mut index = open(dir.path());
    assert_eq!(index.refresh().unwrap(), Refreshed { runs: 3, read: 3, gone: 0 });
    let what: Vec<String> = index.runs(&RunFilter::default()).unwrap().into_iter().map(|r| r.what).collect();
    assert_eq!(what[..2], ["plan.toml, summary.json cannot be read", "seal.json cannot be read"]);
    assert!(!what[2].is_empty() && !what[2].contains("cannot be read"), "{}", what[2]);
}

/// Nothing vouches for them: the file may be edited, or of before the run was resumed.
#[test]
fn figures_of_a_run_without_a_seal_are_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let id = "20261101-080000-0001";
    make(dir.path(), &MadeRun { id, unsealed: true, ..MadeRun::default() });
    make(dir.path(), &MadeRun { id: "20261102-080000-0002", hours: 24, ..MadeRun::default() });
    let mut index = open(dir.path());
    index.refresh().unwrap();
    let runs = index.runs(&RunFilter::default()).unwrap();
    let of =
        |run: &plimsoll_index::IndexedRun| (run.standing, run.result.is_empty(), run.entry.verdict.is_none());
    assert_eq!((of(&runs[0]), runs[0].answered), ((RunStanding::Killed, true, true), None));
    assert_eq!(of(&runs[1]), (RunStanding::Valid, false, false));
    // What it was of is said all the same, and by that it is found.
    assert_eq!((&runs[0].what, &runs[0].ops), (&runs[1].what, &runs[1].ops));
    let lines = index.lines(&RunFilter::default()).unwrap();
    assert!(!lines.is_empty() && lines.iter().all(|l| l.run != id), "{lines:?}");
}

/// The name of a listed run is the one by which it is opened.
#[test]
fn a_link_to_a_run_is_listed_by_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (dir.path().join("runs"), dir.path().join("elsewhere"));
    fs::create_dir(&root).unwrap();
    make(&elsewhere, &MadeRun { id: "20261101-080000-0001", ..MadeRun::default() });
    std::os::unix::fs::symlink(elsewhere.join("20261101-080000-0001"), root.join("linked")).unwrap();
    let mut index = open(&root);
    index.refresh().unwrap();
    assert_eq!(ids(&mut index, RunFilter::default()), ["linked"]);
    let found = RunDir::find(&root, "linked").unwrap();
    assert_eq!((found.id(), found.path()), ("linked".into(), &*root.join("linked")));
    assert_eq!(RunDir::find(&root, "last").unwrap().id(), "linked");
    assert!(RunDir::find(&root, "20261101-080000-0001").is_err());
}
