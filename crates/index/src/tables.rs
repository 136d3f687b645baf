//! The tables of the index, and what is put into and taken out of them: few words of each run by which it is found, and apart from them what
//! it says, so that a look at all of them reads little. Each text carries a hash of what it says: a cache that was damaged on the
//! disk shows no figure.

use std::collections::HashMap;

use rusqlite::{Connection, params, params_from_iter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::course::RunCourse;
use crate::entry::{IndexedLine, IndexedRun};
use crate::filter::RunFilter;
use crate::fingerprint::Fingerprint;
use crate::{IndexError, RunStanding};

/// Raised whenever the tables, or what is put into them, change.
pub(crate) const SCHEMA_VERSION: i64 = 4;
/// `plim`: what file(1) and SQLite know our file by.
const APPLICATION_ID: i64 = 0x706c_696d;

const TABLES: &str = "
    CREATE TABLE runs (
        dir TEXT PRIMARY KEY, print BLOB NOT NULL, second TEXT NOT NULL, made_ns INTEGER NOT NULL, id TEXT NOT NULL,
        started_us INTEGER, standing TEXT NOT NULL, settled INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE docs (dir TEXT PRIMARY KEY, run TEXT NOT NULL, lines TEXT NOT NULL, hash BLOB NOT NULL);
    CREATE TABLE courses (dir TEXT PRIMARY KEY, course TEXT NOT NULL, hash BLOB NOT NULL);
    CREATE TABLE labels (dir TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
    CREATE TABLE ops (dir TEXT NOT NULL, op TEXT NOT NULL);
    CREATE TABLE targets (dir TEXT NOT NULL, word TEXT NOT NULL);
    CREATE INDEX labels_of ON labels (dir, name, value);
    CREATE INDEX ops_of ON ops (dir, op);
    CREATE INDEX targets_of ON targets (dir, word);
";

/// Makes the tables where there are none. An error where the file is another program's, or another version's.
pub(crate) fn prepare(db: &Connection) -> Result<(), IndexError> {
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get(0))?;
    if tables == 0 {
        // Two processes may find it empty: who is second finds the tables made.
        let made = db.execute_batch(&format!(
            "BEGIN EXCLUSIVE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        ));
        if let Err(e) = made {
            let _ = db.execute_batch("ROLLBACK");
            let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get(0))?;
            if tables == 0 {
                return Err(e.into());
            }
        }
    }
    let pragma = |name: &str| db.pragma_query_value(None, name, |r| r.get::<_, i64>(0));
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION_ID, SCHEMA_VERSION) => Ok(()),
        (_, version) => {
            Err(IndexError::Damaged(format!("its tables are of version {version}, not {SCHEMA_VERSION}")))
        }
    }
}

/// Whether all tables are there and read to their end, and each text is what was written.
pub(crate) fn are_sound(db: &Connection) -> bool {
    let checked = db.pragma_query_value(None, "quick_check", |r| r.get::<_, String>(0));
    let read = |table: &str| {
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get::<_, i64>(0)).is_ok()
    };
    checked.is_ok_and(|said| said == "ok")
        && ["labels", "ops", "targets"].into_iter().all(read)
        && runs(db, &RunFilter::default()).is_ok()
        && courses(db).is_ok()
}

/// What is known of a directory without its entry.
pub(crate) struct KnownRun {
    pub print: [u8; 16],
    /// Sealed, judged and cleaned up: no process has anything to do with it any more.
    pub settled: bool,
    pub standing: String,
}

pub(crate) fn known(db: &Connection) -> Result<HashMap<String, KnownRun>, IndexError> {
    let mut select = db.prepare("SELECT dir, print, settled, standing FROM runs")?;
    let rows = select.query_map([], |r| {
        let known = KnownRun { print: r.get(1)?, settled: r.get(2)?, standing: r.get(3)? };
        Ok((r.get::<_, String>(0)?, known))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn hash(run: &str, lines: &str) -> [u8; 16] {
    let mut both = xxhash_rust::xxh3::Xxh3Default::new();
    both.update(run.as_bytes());
    both.update(b"\n");
    both.update(lines.as_bytes());
    both.digest128().to_le_bytes()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("entries are plain data")
}

/// Puts a run in the place of what was known of it.
pub(crate) fn put(
    db: &Connection,
    dir: &str,
    print: &Fingerprint,
    (run, lines): &(IndexedRun, Vec<IndexedLine>),
) -> Result<(), IndexError> {
    remove(db, dir)?;
    let (run_text, lines_text) = (json(run), json(lines));
    // What is still going on, or has only just changed, is read again next time.
    let current = print.rests && run.standing != RunStanding::Running;
    let hash_of_directory = if current { print.hash } else { [0; 16] };
    let started_us =
        run.entry.started_at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond);
    let settled = run.entry.cleanup_due == 0
        && matches!(run.standing, RunStanding::Valid | RunStanding::Partly | RunStanding::Invalid);
    let second: String = run.entry.id.chars().take("20261122-053127".len()).collect();
    db.prepare("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?.execute(params![
        dir,
        hash_of_directory,
        second,
        print.made_ns,
        run.entry.id,
        started_us,
        run.standing.name(),
        settled,
    ])?;
    let hash = hash(&run_text, &lines_text);
    db.prepare("INSERT INTO docs VALUES (?, ?, ?, ?)")?.execute(params![dir, run_text, lines_text, hash])?;
    for (name, value) in &run.entry.labels {
        db.prepare("INSERT INTO labels VALUES (?, ?, ?)")?.execute(params![dir, name, value])?;
    }
    for op in &run.ops {
        db.prepare("INSERT INTO ops VALUES (?, ?)")?.execute(params![dir, op])?;
    }
    for word in &run.targets {
        db.prepare("INSERT INTO targets VALUES (?, ?)")?.execute(params![dir, word])?;
    }
    Ok(())
}

pub(crate) fn remove(db: &Connection, dir: &str) -> Result<(), IndexError> {
    for delete in [
        "DELETE FROM runs WHERE dir = ?",
        "DELETE FROM docs WHERE dir = ?",
        "DELETE FROM courses WHERE dir = ?",
        "DELETE FROM labels WHERE dir = ?",
        "DELETE FROM ops WHERE dir = ?",
        "DELETE FROM targets WHERE dir = ?",
    ] {
        db.prepare(delete)?.execute([dir])?;
    }
    Ok(())
}

/// Rows of what is wanted, oldest first: (directory, run, lines), each as it was put in.
fn rows(db: &Connection, filter: &RunFilter) -> Result<Vec<(String, String, String)>, IndexError> {
    let (condition, values) = filter.condition();
    // A run without its text is damage, and none that is passed over.
    let text = format!(
        "SELECT runs.dir, docs.run, docs.lines, docs.hash FROM runs LEFT JOIN docs ON docs.dir = runs.dir \
         WHERE {condition} ORDER BY second, made_ns, id"
    );
    let mut select = db.prepare(&text)?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let (dir, run, lines): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if row.get::<_, [u8; 16]>(3)? != hash(&run, &lines) {
            return Err(IndexError::Damaged(format!("what it says of {dir} is not what was written")));
        }
        out.push((dir, run, lines));
    }
    Ok(out)
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, IndexError> {
    serde_json::from_str(text).map_err(|e| IndexError::Damaged(e.to_string()))
}

pub(crate) fn runs(db: &Connection, filter: &RunFilter) -> Result<Vec<(String, IndexedRun)>, IndexError> {
    rows(db, filter)?.into_iter().map(|(dir, run, _)| Ok((dir, parsed(&run)?))).collect()
}

pub(crate) fn lines(db: &Connection, filter: &RunFilter) -> Result<Vec<IndexedLine>, IndexError> {
    let all = rows(db, filter)?;
    let lines = all.into_iter().map(|(_, _, lines)| parsed::<Vec<IndexedLine>>(&lines));
    Ok(lines.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Directories of runs that have come to their end and whose course was not looked for since they were read, with their fingerprint; the
/// newest first.
pub(crate) fn without_course(db: &Connection) -> Result<Vec<(String, [u8; 16])>, IndexError> {
    let mut select = db.prepare(
        "SELECT runs.dir, runs.print FROM runs LEFT JOIN courses ON courses.dir = runs.dir \
         WHERE courses.dir IS NULL AND standing IN ('valid', 'partly', 'invalid') ORDER BY second DESC, made_ns DESC, id DESC",
    )?;
    let rows = select.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get::<_, [u8; 16]>(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Puts a course, or that there is none, unless the run was read again meanwhile, or is gone.
pub(crate) fn put_course(
    db: &Connection,
    (dir, print): &(String, [u8; 16]),
    course: Option<&RunCourse>,
) -> Result<(), IndexError> {
    let text = json(&course);
    let hash = hash(dir, &text);
    db.prepare("INSERT OR REPLACE INTO courses SELECT dir, ?, ? FROM runs WHERE dir = ? AND print = ?")?
        .execute(params![text, hash, dir, print])?;
    Ok(())
}

/// All that are known, by directory.
pub(crate) fn courses(db: &Connection) -> Result<HashMap<String, RunCourse>, IndexError> {
    let mut select = db.prepare("SELECT dir, course, hash FROM courses WHERE course != 'null'")?;
    let mut rows = select.query([])?;
    let mut out = HashMap::new();
    while let Some(row) = rows.next()? {
        let (dir, course): (String, String) = (row.get(0)?, row.get(1)?);
        if row.get::<_, [u8; 16]>(2)? != hash(&dir, &course) {
            return Err(IndexError::Damaged(format!("the course of {dir} is not what was written")));
        }
        out.insert(dir, parsed(&course)?);
    }
    Ok(out)
}
