//! Commands and devices of an edited file: whoever allowed those of the file as it was taken has not seen these.

use crate::file::CampaignFile;
use crate::ledger::{CampaignDir, LedgerEntry, LedgerError, text_hash};

/// What the file would have run or destroyed, where that is not what it was when it was taken last and was not shown since: a line each,
/// as [`CampaignFile::dangers`] has them. Empty: nothing that is new to whoever allows it. Of a campaign that was not begun all is new.
pub fn unseen_dangers(dir: &CampaignDir, entries: &[LedgerEntry], file: &CampaignFile) -> Vec<String> {
    let now = file.dangers();
    let taken = entries.iter().rev().find_map(|e| match e {
        LedgerEntry::File { dangers, .. } => Some(dangers.clone()),
        _ => None,
    });
    // A copy that is not the text that was taken says nothing of what was seen.
    let of_copy =
        || CampaignFile::from_toml(&dir.copy_of(entries)?).ok().map(|old| dangers_hash(&old.dangers()));
    let seen = taken.and_then(|kept| kept.or_else(of_copy));
    let now_hash = dangers_hash(&now);
    if [seen, dir.shown()].into_iter().flatten().any(|known| known == now_hash) {
        return Vec::new();
    }
    now
}

/// They were shown to whoever goes on with it.
pub fn note_shown(dir: &CampaignDir, dangers: &[String]) -> Result<(), LedgerError> {
    dir.keep_shown(&dangers_hash(dangers))
}

pub(crate) fn dangers_hash(dangers: &[String]) -> String {
    text_hash(&serde_json::to_string(dangers).expect("texts are always JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::expand;
    use crate::ledger::{LEDGER_FORMAT, LedgerSink as _, file_entry, now};

    fn text(before: &str) -> String {
        format!(
            "version = 1\nname = \"t\"\n[[subject]]\nname = \"a\"\nbefore = [\"{before}\"]\ntarget = {{ kind = \"null\" }}\n\
             [[workload]]\nname = \"put\"\nmix = {{ put = 1 }}\n"
        )
    }

    /// The copy has it not, and what was allowed is known all the same.
    #[test]
    fn a_secret_in_a_command_is_in_no_copy_and_another_one_is_another_command() {
        let runs = tempfile::tempdir().unwrap();
        let dir = CampaignDir::of(runs.path(), "t");
        let mut ledger = dir.take().unwrap();
        let format = LEDGER_FORMAT.into();
        ledger.append(&LedgerEntry::Begun { format, name: "t".into(), fresh: 1, at: now() }).unwrap();
        let old_text = text("curl --user root:calvin1 http://h");
        let old = CampaignFile::from_toml(&old_text).unwrap();
        let entries = [file_entry(&old_text, &expand(&old).unwrap(), now())];
        ledger.keep_copy(&old_text).unwrap();
        entries.iter().for_each(|e| ledger.append(e).unwrap());
        assert!(!dir.copy_of(&entries).unwrap().contains("calvin1"));
        assert!(unseen_dangers(&dir, &entries, &old).is_empty());
        let new = CampaignFile::from_toml(&text("curl --user root:calvin2 http://h")).unwrap();
        assert_eq!(unseen_dangers(&dir, &entries, &new).len(), 1);
        // Taken again, with another secret, it is a copy of ours that is replaced.
        ledger.keep_copy(&text("curl --user root:calvin2 http://h2")).unwrap();
        for file in std::fs::read_dir(dir.path()).unwrap() {
            let content = String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned();
            assert!(!content.contains("calvin"), "{content}");
        }
    }

    #[test]
    fn a_command_that_was_edited_is_new_until_it_was_shown() {
        let runs = tempfile::tempdir().unwrap();
        let dir = CampaignDir::of(runs.path(), "t");
        let ledger = dir.take().unwrap();
        let old_text = text("echo on");
        let old = CampaignFile::from_toml(&old_text).unwrap();
        let entries = [file_entry(&old_text, &expand(&old).unwrap(), now())];
        assert_eq!(
            unseen_dangers(&dir, &entries, &old).len(),
            1,
            "without a copy nobody knows what was seen"
        );
        ledger.keep_copy(&old_text).unwrap();
        assert!(unseen_dangers(&dir, &entries, &old).is_empty());

        let new = CampaignFile::from_toml(&text("rm -r /data")).unwrap();
        let unseen = unseen_dangers(&dir, &entries, &new);
        assert!(unseen.len() == 1 && unseen[0].contains("rm -r /data"), "{unseen:?}");
        note_shown(&dir, &unseen).unwrap();
        assert!(unseen_dangers(&dir, &entries, &new).is_empty());
        // Edited once more: these were not shown.
        let newer = CampaignFile::from_toml(&text("rm -r /home")).unwrap();
        assert_eq!(unseen_dangers(&dir, &entries, &newer), newer.dangers());
    }
}
