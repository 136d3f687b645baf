//! Cleaning up in a bucket what the journal says is there.

use plimsoll_store::{Journal, StoreError, Thing};

use super::store::{ObjectStore, StoreFault, Upload};

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaned {
    /// Gone, with so many objects.
    Gone { objects: u64 },
    /// Left as it is, and why.
    Left(String),
}

/// Removes one journalled thing of a bucket. `progress` gets the number of objects deleted so far.
pub fn clean(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    (id, thing): (u64, &Thing),
    progress: &mut dyn FnMut(u64),
) -> Result<Cleaned, StoreError> {
    let done = match thing {
        Thing::Prefix { prefix, marker, content, .. } => {
            clean_prefix(store, prefix, marker, content, progress)
        }
        Thing::Bucket { .. } => clean_bucket(store),
        Thing::Upload { key, upload_id, .. } => {
            let upload = Upload { key: key.clone(), id: upload_id.clone() };
            store.abort_upload(&upload).map(|()| Cleaned::Gone { objects: 0 })
        }
        Thing::File { .. } | Thing::Directory { .. } | Thing::Tree { .. } | Thing::Process { .. } => {
            Ok(Cleaned::Left("it is not in a bucket".into()))
        }
    };
    match done {
        Ok(Cleaned::Gone { objects }) => {
            journal.removed(id)?;
            Ok(Cleaned::Gone { objects })
        }
        Ok(left) => Ok(left),
        Err(StoreFault::NoSuchBucket) => {
            journal.removed(id)?;
            Ok(Cleaned::Gone { objects: 0 })
        }
        Err(e) => Ok(Cleaned::Left(e.to_string())),
    }
}

/// Deletes what lies under a prefix whose marker is ours, the marker last: a kill in between can be resumed.
fn clean_prefix(
    store: &dyn ObjectStore,
    prefix: &str,
    marker: &str,
    content: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Cleaned, StoreFault> {
    // A prefix that is empty or has no end of its own would reach beyond what is ours.
    if !prefix.ends_with('/') || !marker.starts_with(prefix) {
        return Ok(Cleaned::Left(format!("'{prefix}' is no prefix that plimsoll makes")));
    }
    match store.get(marker)? {
        Some(found) if found == content.as_bytes() => {}
        Some(_) => {
            return Ok(Cleaned::Left(format!("the marker '{marker}' is not the one that this run wrote")));
        }
        None if store.list(prefix, None, 1)?.keys.is_empty() => return Ok(Cleaned::Gone { objects: 0 }),
        None => {
            return Ok(Cleaned::Left(format!(
                "the marker '{marker}' is missing, so what is under '{prefix}' may not be ours"
            )));
        }
    }
    for upload in uploads(store, prefix)? {
        match store.abort_upload(&upload) {
            Ok(()) | Err(StoreFault::NoSuchKey) => {}
            Err(e) => return Err(e),
        }
    }
    let mut deleted = 0;
    loop {
        // Always the first page: what was on it is gone.
        let page = store.list(prefix, None, 1000)?;
        let keys: Vec<String> =
            page.keys.into_iter().filter(|k| k != marker && k.starts_with(prefix)).collect();
        if keys.is_empty() {
            break;
        }
        store.delete(&keys)?;
        deleted += keys.len() as u64;
        progress(deleted);
    }
    store.delete(&[marker.to_owned()])?;
    Ok(Cleaned::Gone { objects: deleted })
}

/// Unfinished uploads under the prefix. MinIO takes a prefix of uploads for a whole key and then shows none, so that all
/// are asked for, too, and ours picked out.
fn uploads(store: &dyn ObjectStore, prefix: &str) -> Result<Vec<Upload>, StoreFault> {
    let mut found: Vec<Upload> = Vec::new();
    for ask in [prefix, ""] {
        match store.uploads(ask) {
            Ok(all) => found.extend(all.into_iter().filter(|u| u.key.starts_with(prefix))),
            Err(StoreFault::Unsupported) => return Ok(found),
            Err(e) => return Err(e),
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

fn clean_bucket(store: &dyn ObjectStore) -> Result<Cleaned, StoreFault> {
    match store.delete_bucket() {
        Ok(()) => Ok(Cleaned::Gone { objects: 0 }),
        Err(StoreFault::NotEmpty) => Ok(Cleaned::Left("there are other objects in it now".into())),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::super::{MARKER, open_area};
    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        (dir, journal)
    }

    fn clean_all(store: &Memory, journal: &mut Journal) -> Vec<Cleaned> {
        let pending = journal.pending();
        pending.iter().map(|(id, t)| clean(store, journal, (*id, t), &mut |_| {}).unwrap()).collect()
    }

    #[test]
    fn a_bucket_is_left_as_it_was() {
        let store = Memory::with_bucket();
        store.put("theirs", b"x").unwrap();
        store.put("plimsoll/other/.plimsoll", b"another run").unwrap();
        let before = store.keys();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "plimsoll/id", false, "id").unwrap();
        for i in 0..2500 {
            store.put(&format!("{}{i}", area.prefix), b"o").unwrap();
        }
        store.begin_upload(&format!("{}mp", area.prefix));
        store.begin_upload("theirs-too");
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 2500 }]);
        assert_eq!(store.keys(), before);
        assert_eq!(store.uploads("").unwrap().len(), 1, "a foreign upload goes on");
        assert!(j.pending().is_empty());
    }

    #[test]
    fn a_bucket_of_ours_goes_only_when_empty() {
        let store = Memory::default();
        let (_dir, mut j) = journal();
        assert!(
            open_area(&store, &mut j, ("t", "b"), "p", false, "id")
                .unwrap_err()
                .to_string()
                .contains("--create-bucket")
        );
        open_area(&store, &mut j, ("t", "b"), "p", true, "id").unwrap();
        store.put("someone-elses", b"x").unwrap();
        let done = clean_all(&store, &mut j);
        assert_eq!(done[0], Cleaned::Gone { objects: 0 });
        assert!(matches!(&done[1], Cleaned::Left(why) if why.contains("other objects")));
        store.delete(&["someone-elses".into()]).unwrap();
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 0 }]);
        assert!(!store.bucket_exists().unwrap());
    }

    #[test]
    fn without_our_marker_nothing_is_deleted() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, "id").unwrap();
        store.put("p/precious", b"x").unwrap();
        let marker = format!("{}{MARKER}", area.prefix);
        for content in [Some(&b"another"[..]), None] {
            match content {
                Some(c) => store.put(&marker, c).unwrap(),
                None => store.delete(std::slice::from_ref(&marker)).unwrap(),
            }
            assert!(matches!(&clean_all(&store, &mut j)[..], [Cleaned::Left(_)]));
            assert!(store.keys().contains(&"p/precious".to_owned()));
        }
    }

    #[test]
    fn a_prefix_in_use_is_refused() {
        let store = Memory::with_bucket();
        store.put("p/x", b"x").unwrap();
        let (_dir, mut j) = journal();
        let e = open_area(&store, &mut j, ("t", "b"), "p", false, "id").unwrap_err().to_string();
        assert!(e.contains("not empty") && e.contains("p/x"), "{e}");
        assert!(j.pending().is_empty());
    }

    #[test]
    fn a_server_without_uploads_is_cleaned_all_the_same() {
        let store = Memory::without_uploads();
        let (_dir, mut j) = journal();
        open_area(&store, &mut j, ("t", "b"), "p", false, "id").unwrap();
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 0 }]);
    }
}
