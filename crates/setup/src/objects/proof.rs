//! What proves that a thing in a bucket is this run's: a marker object with the run's mark, on the thing itself. What a
//! journal says of it is a claim.

use plimsoll_store::Thing;

use super::store::{Item, ObjectStore, StoreFault};

/// Name of the object that says whose a prefix is.
pub const MARKER: &str = ".plimsoll";

/// Key of the marker of a bucket that a run made.
pub const BUCKET_MARKER: &str = ".plimsoll-bucket";

/// What the marker of a prefix holds; `run` is the run's mark.
pub fn marker_content(run: &str) -> String {
    format!("made by plimsoll, run {run}; all under this prefix goes when the run is cleaned up\n")
}

/// What the marker of a bucket holds.
pub fn bucket_content(run: &str) -> String {
    format!(
        "made by plimsoll, run {run}; this bucket goes when the run is cleaned up, if nothing else is in it\n"
    )
}

/// Why what a journal says of a thing cannot be true of anything that this run made, or `None`: then the thing itself is
/// to be looked at.
pub fn doubt(thing: &Thing, run: &str) -> Option<String> {
    match thing {
        Thing::Prefix { prefix, marker, content, .. } => {
            let ours = *marker == format!("{prefix}{MARKER}") && is_of(content, run);
            (!ours).then(|| {
                format!(
                    "the marker '{marker}' does not belong to this run: remove the run's own objects manually"
                )
            })
        }
        Thing::Upload { .. } => {
            Some("an upload carries no run mark: if it belongs to this run, abort it manually".into())
        }
        _ => None,
    }
}

/// Whether a marker's content is this run's. Runs of a version without marks wrote their id (and what told a resumed part, or
/// a second target, apart).
pub(super) fn is_of(content: &str, run: &str) -> bool {
    let id = run.rsplit_once('.').map_or(run, |(id, _)| id);
    let unmarked = content.strip_prefix("made by plimsoll, run ").and_then(|rest| rest.strip_prefix(id));
    let suffix = unmarked.and_then(|rest| rest.split_once(';')).map(|(suffix, _)| suffix);
    content == marker_content(run) || suffix.is_some_and(|s| s.is_empty() || s.starts_with('-'))
}

/// Removes a bucket that carries the run's mark and nothing else. `unmarked`: its mark was removed a moment ago, by us.
pub fn clean_bucket(
    store: &dyn ObjectStore,
    run: &str,
    unmarked: &mut bool,
) -> Result<Option<String>, StoreFault> {
    let content = bucket_content(run);
    if !*unmarked {
        match store.get(BUCKET_MARKER)? {
            Some(found) if found == content.as_bytes() => {}
            _ if !store.bucket_exists()? => return Ok(None),
            _ => {
                return Ok(Some(
                    "it does not carry this run's mark; if it belongs to this run, remove it manually".into(),
                ));
            }
        }
        if store.list("", None, 2)?.keys.iter().any(|k| k != BUCKET_MARKER) {
            return Ok(Some(OTHERS.into()));
        }
        let held = store.delete(&[Item::object(BUCKET_MARKER)])?;
        if let Some(held) = held.first() {
            return Ok(Some(format!("its marker cannot be removed: {}", held.why)));
        }
        *unmarked = true;
    }
    match store.delete_bucket() {
        Ok(()) => Ok(None),
        Err(StoreFault::NotEmpty) => {
            // Somebody was quicker: it stays, and stays known.
            store.put(BUCKET_MARKER, content.as_bytes())?;
            *unmarked = false;
            Ok(Some(OTHERS.into()))
        }
        Err(e) => Err(e),
    }
}

/// What could not be removed of this run's is in the bucket, too.
const OTHERS: &str =
    "it contains other objects than its mark: this run's, where those are left behind, or another's";

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::memory::Memory;

    const RUN: &str = "20261122-053127-d0ae.0123456789abcdef0123456789abcdef";

    fn prefix(prefix: &str, marker: &str, content: &str) -> Thing {
        let [prefix, marker, content] = [prefix, marker, content].map(str::to_owned);
        Thing::Prefix { target: "t".into(), bucket: "b".into(), prefix, marker, content }
    }

    #[test]
    fn a_bucket_goes_by_its_mark_and_alone() {
        let store = Memory::with_bucket();
        let mut unmarked = false;
        let mut clean = || clean_bucket(&store, RUN, &mut unmarked).unwrap();
        assert!(clean().unwrap().contains("does not carry"));
        store.put(BUCKET_MARKER, bucket_content("another.0").as_bytes()).unwrap();
        assert!(clean().unwrap().contains("does not carry"));
        store.put(BUCKET_MARKER, bucket_content(RUN).as_bytes()).unwrap();
        store.put("theirs", b"x").unwrap();
        assert_eq!(clean().as_deref(), Some(OTHERS));
        assert_eq!(store.keys(), [BUCKET_MARKER, "theirs"]);
        assert!(store.delete(&[Item::object("theirs")]).unwrap().is_empty());
        assert_eq!(clean(), None);
        assert!(!store.bucket_exists().unwrap());
    }

    #[test]
    fn a_journal_is_believed_only_where_the_run_could_have_written_it() {
        let ours = marker_content(RUN);
        assert_eq!(doubt(&prefix("p/", "p/.plimsoll", &ours), RUN), None);
        for id in ["20261122-053127-d0ae", "20261122-053127-d0ae-2", "20261122-053127-d0ae-t"] {
            assert_eq!(doubt(&prefix("p/", "p/.plimsoll", &marker_content(id)), RUN), None, "{id}");
        }
        for (p, marker, content) in [
            ("p/", "p/README.md", ours.as_str()),
            ("", ".plimsoll-x", &ours),
            ("data/", "data/README.md", "of theirs\n"),
            ("p/", "p/.plimsoll", ""),
            ("p/", "p/.plimsoll", &marker_content("20261122-053127-d0a")),
            ("p/", "p/.plimsoll", &marker_content("20261122-053127-d0aef")),
        ] {
            assert!(doubt(&prefix(p, marker, content), RUN).is_some(), "{p} {marker} {content}");
        }
        let upload =
            Thing::Upload { target: "t".into(), bucket: "b".into(), key: "k".into(), upload_id: "1".into() };
        assert!(doubt(&upload, RUN).is_some());
    }
}
