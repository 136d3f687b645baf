//! The directory of a campaign: one that is new, empty, or ours. Ours it is by the mark in it; one that was begun before there were marks by
//! the first line of its ledger. What lies in any other is somebody's, and is refused before a byte of it is touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use plimsoll_store::whole::{beside, replace_whole};
use rustix::fs::OFlags;

use crate::ledger::{LEDGER, LedgerEntry, LedgerError};

/// The file that says that the directory is a campaign's.
pub(crate) const MARK: &str = ".plimsoll-campaign";
/// What is in it; another one is another format.
const FORMAT: &str = "plimsoll.campaign-dir/1";
/// Whichever version a ledger is of: which ones are read is said where it is read.
const LEDGERS: &str = "plimsoll.ledger/";
/// A first line is a few hundred bytes.
const LONGEST: u64 = 64 << 10;

/// Whose a directory is.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// There is nothing of anybody in it.
    Free,
    /// Our mark is in it.
    Marked,
    /// Our ledger is in it, and no mark.
    Older,
    /// Somebody's: why it is taken for that.
    Foreign(String),
}

/// Refuses a directory that is somebody's. One that is not there is nobody's. Nothing is made or changed.
pub(crate) fn refuse_others(dir: &Path) -> Result<(), LedgerError> {
    match standing(dir).map_err(|problem| LedgerError::Io { path: dir.to_owned(), problem })? {
        Standing::Foreign(why) => Err(LedgerError::NotOurs { path: dir.to_owned(), why }),
        Standing::Free | Standing::Marked | Standing::Older => Ok(()),
    }
}

/// Makes the directory where there is none, and marks it where it is free or ours from before there were marks.
pub(crate) fn claim(dir: &Path) -> Result<(), LedgerError> {
    let io = |problem| LedgerError::Io { path: dir.to_owned(), problem };
    fs::create_dir_all(dir).map_err(io)?;
    refuse_others(dir)?;
    let path = dir.join(MARK);
    let mut mark = own().read(true).truncate(false).open(&path).map_err(io)?;
    // Two that begin at the same time: the second finds it marked. Held for a moment, and waited for.
    mark.lock().map_err(io)?;
    match standing(dir).map_err(io)? {
        Standing::Marked => Ok(()),
        Standing::Foreign(why) => Err(LedgerError::NotOurs { path: dir.to_owned(), why }),
        Standing::Free | Standing::Older => {
            let line = format!("{FORMAT}\n");
            mark.write_all(line.as_bytes()).and_then(|()| mark.sync_all()).map_err(io)
        }
    }
}

fn standing(dir: &Path) -> io::Result<Standing> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Standing::Free),
        Err(e) => return Err(e),
    };
    // An empty mark is that of a session that was killed before it had written it, and says nothing.
    let said = match plain(dir, MARK) {
        Ok(Some(mark)) => first_line(mark)?,
        Ok(None) => String::new(),
        Err(why) => return Ok(Standing::Foreign(format!("its '{MARK}' {why}"))),
    };
    if said == FORMAT {
        return Ok(Standing::Marked);
    }
    if !said.is_empty() {
        let said: String = plimsoll_model::text::clean(&said).chars().take(40).collect();
        return Ok(Standing::Foreign(format!("its '{MARK}' says '{said}', not '{FORMAT}'")));
    }
    let mut first = None;
    for entry in entries {
        let name = entry?.file_name();
        if name != MARK && name != "lost+found" {
            first = Some(name.to_string_lossy().into_owned());
            break;
        }
    }
    let Some(first) = first else { return Ok(Standing::Free) };
    if plain(dir, LEDGER).ok().flatten().is_some_and(|ledger| first_line(ledger).is_ok_and(|l| begins(&l))) {
        return Ok(Standing::Older);
    }
    let first = plimsoll_model::text::clean(&first).into_owned();
    Ok(Standing::Foreign(format!("it contains '{first}', and no mark of a campaign")))
}

/// Whether this is the first line of a ledger of ours.
fn begins(line: &str) -> bool {
    matches!(serde_json::from_str(line), Ok(LedgerEntry::Begun { format, .. }) if format.starts_with(LEDGERS))
}

fn first_line(file: File) -> io::Result<String> {
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// A file that proves something: of one name, and of whoever owns the directory or runs this program. No link is followed.
fn plain(dir: &Path, name: &str) -> Result<Option<File>, String> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(flags()).open(dir.join(name)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("cannot be read: {e}")),
    };
    let cannot = |e: io::Error| format!("cannot be read: {e}");
    let (found, above) = (file.metadata().map_err(cannot)?, fs::metadata(dir).map_err(cannot)?);
    if !found.is_file() || found.nlink() != 1 {
        return Err("is no plain file".into());
    }
    if found.uid() != above.uid() && found.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".into());
    }
    Ok(Some(file))
}

/// What is in a plain file of the directory; of anything else nothing, and nothing is waited for.
pub(crate) fn text(dir: &Path, name: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    plain(dir, name).ok()??.read_to_end(&mut out).ok()?;
    Some(out)
}

/// What a link leads to is not ours, and nothing is waited for at the other end of a pipe.
pub(crate) fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32
}

/// A file of a campaign, made where it is not there. It may hold command lines: it is its owner's.
pub(crate) fn own() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).mode(0o600).custom_flags(flags());
    options
}

/// Puts a file of ours in the place of an older one, whole. `is_ours` says it of what the older one holds; any other stays, and is told.
pub(crate) fn replace(path: &Path, content: &[u8], is_ours: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let theirs = |why: &str| io::Error::other(format!("it {why}, and is not replaced: move it away"));
    if let Some(mut old) = plain(dir, &name).map_err(|why| theirs(&why))? {
        let mut held = Vec::new();
        old.read_to_end(&mut held)?;
        if held == content {
            return Ok(());
        }
        if !held.is_empty() && !is_ours(&held) {
            return Err(theirs("is not what a campaign wrote there"));
        }
    }
    replace_whole(path, &beside(path)?, content, 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{CampaignDir, LEDGER_FORMAT, LedgerSink as _, text_hash};

    fn begun(name: &str) -> LedgerEntry {
        LedgerEntry::Begun { format: LEDGER_FORMAT.into(), name: name.into(), fresh: 1, at: "t".into() }
    }

    /// What somebody else may keep under each name that a campaign uses.
    const NAMES: [&str; 9] = [
        "ledger.jsonl",
        "campaign.toml",
        "campaign.new",
        "lock",
        "hooks.log",
        "hooks.log.old",
        "shown",
        "hook.json",
        "hook.new",
    ];

    #[test]
    fn what_somebody_else_keeps_there_is_refused_by_name_and_left_as_it_is() {
        for name in NAMES.into_iter().chain(["notes.txt"]) {
            let runs = tempfile::tempdir().unwrap();
            let dir = CampaignDir::of(runs.path(), "t");
            fs::create_dir_all(dir.path()).unwrap();
            let precious = dir.path().join(name);
            fs::write(&precious, b"of mine, without an end of line").unwrap();
            for problem in [
                dir.take().unwrap_err().to_string(),
                dir.keep_shown(&text_hash("t")).unwrap_err().to_string(),
                dir.read().unwrap_err().to_string(),
            ] {
                assert!(problem.contains(&format!("contains '{name}'")), "{problem}");
            }
            assert_eq!(fs::read(&precious).unwrap(), b"of mine, without an end of line");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{name}: nothing was put beside it");
        }
    }

    #[test]
    fn a_new_an_empty_and_a_marked_directory_are_ours() {
        let runs = tempfile::tempdir().unwrap();
        let dir = CampaignDir::of(runs.path(), "t");
        fs::create_dir_all(dir.path()).unwrap();
        dir.take().unwrap().append(&begun("t")).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(MARK)).unwrap(), "plimsoll.campaign-dir/1\n");
        assert_eq!(dir.read().unwrap(), [begun("t")]);
        dir.keep_shown(&text_hash("t")).unwrap();
        dir.take().unwrap();
        // Killed before its mark was written, it had made nothing else.
        let torn = CampaignDir::of(runs.path(), "torn");
        fs::create_dir_all(torn.path()).unwrap();
        fs::write(torn.path().join(MARK), b"").unwrap();
        torn.take().unwrap();
    }

    /// A campaign of a version that made no marks goes on.
    #[test]
    fn our_own_ledger_is_proof_enough_where_there_is_no_mark() {
        let runs = tempfile::tempdir().unwrap();
        let dir = CampaignDir::of(runs.path(), "t");
        fs::create_dir_all(dir.path()).unwrap();
        let line = serde_json::to_string(&begun("t")).unwrap();
        fs::write(dir.path().join("ledger.jsonl"), line.clone() + "\n{\"entry\":\"op").unwrap();
        for name in ["lock", "hooks.log", "campaign.toml"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        assert_eq!(dir.read().unwrap(), [begun("t")]);
        assert!(!dir.path().join(MARK).exists(), "who reads changes nothing");
        dir.take().unwrap();
        assert!(dir.path().join(MARK).exists());
    }

    #[test]
    fn what_others_put_into_a_campaign_s_directory_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (path, precious) = (dir.path().join("shown"), dir.path().join("precious"));
        let put = |content: &[u8]| replace(&path, content, |old| old.starts_with(b"ours"));
        put(b"ours 1").unwrap();
        put(b"ours 2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours 2");
        fs::write(&precious, "ours, by its content alone").unwrap();
        for way in ["file", "link", "hard link"] {
            fs::remove_file(&path).unwrap();
            match way {
                "file" => fs::write(&path, "precious").unwrap(),
                "link" => std::os::unix::fs::symlink(&precious, &path).unwrap(),
                _ => fs::hard_link(&precious, &path).unwrap(),
            }
            let before = fs::read(&path).unwrap();
            assert!(put(b"ours 3").unwrap_err().to_string().contains("move it away"), "{way}");
            assert_eq!(fs::read(&path).unwrap(), before, "{way}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing half made is left");
    }

    /// The copy of the file that was taken is no place for edits; whoever makes some there does not lose them.
    #[test]
    fn an_edited_copy_stays() {
        let runs = tempfile::tempdir().unwrap();
        let mut ledger = CampaignDir::of(runs.path(), "t").take().unwrap();
        let copy = CampaignDir::of(runs.path(), "t").path().join("campaign.toml");
        ledger.append(&begun("t")).unwrap();
        for text in ["one", "two"] {
            ledger.keep_copy(text).unwrap();
            ledger.append(&crate::ledger::file_entry(text, &[], "t".into())).unwrap();
        }
        assert_eq!(fs::read_to_string(&copy).unwrap(), "two");
        fs::write(&copy, "two, edited").unwrap();
        assert!(ledger.keep_copy("three").unwrap_err().to_string().contains("move it away"));
        assert_eq!(fs::read_to_string(&copy).unwrap(), "two, edited");
        ledger.keep_copy("two, edited").unwrap();
    }

    #[test]
    fn a_mark_or_a_file_that_is_a_link_is_not_ours() {
        let runs = tempfile::tempdir().unwrap();
        let precious = runs.path().join("precious");
        fs::write(&precious, "plimsoll.campaign-dir/1\n").unwrap();
        let linked = CampaignDir::of(runs.path(), "linked");
        fs::create_dir_all(linked.path()).unwrap();
        std::os::unix::fs::symlink(&precious, linked.path().join(MARK)).unwrap();
        assert!(matches!(linked.take(), Err(LedgerError::NotOurs { .. })));
        let other = CampaignDir::of(runs.path(), "other");
        fs::create_dir_all(other.path()).unwrap();
        fs::write(other.path().join(MARK), "plimsoll.other/1\n").unwrap();
        let problem = other.take().unwrap_err().to_string();
        assert!(problem.contains("says 'plimsoll.other/1'"), "{problem}");
        // Ours, and a name in it leads elsewhere.
        for name in ["ledger.jsonl", "lock", "shown"] {
            let dir = CampaignDir::of(runs.path(), &format!("to-{name}").replace('.', "-"));
            drop(dir.take().unwrap());
            let _ = fs::remove_file(dir.path().join(name));
            std::os::unix::fs::symlink(&precious, dir.path().join(name)).unwrap();
            assert!(dir.take().is_err() || dir.keep_shown(&text_hash("t")).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "plimsoll.campaign-dir/1\n");
    }
}
