//! Removes all that lies under a prefix, page by page, and goes round what cannot be removed.

use std::collections::HashSet;

use plimsoll_engine::target::s3::keys::is_of_shape;
use plimsoll_model::text::clean;

use super::store::{Held, Item, ItemPage, ObjectStore, StoreFault};

/// Why a cleanup ended early.
pub const STOPPED: &str = "it was stopped by Ctrl-C";

/// Pages without anything new after which a listing is not believed to come to an end.
const MOST_EMPTY_PAGES: u32 = 1000;

/// What is to be swept: all objects under a prefix that the run can have written, or all their versions, but for the marker.
/// What else lies there is others': it came after the run began, and stays.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    pub prefix: &'a str,
    pub marker: &'a str,
    pub versions: bool,
}

/// What a sweep came to.
#[derive(Debug, Default)]
pub struct Swept {
    /// What the server refuses to remove.
    pub held: Vec<Held>,
    /// The marker's items, as they were listed.
    pub marker: Vec<Item>,
    /// Items that are not the run's, and the first of their keys.
    pub others: u64,
    pub first_other: Option<String>,
}

impl Sweep<'_> {
    fn page(&self, store: &dyn ObjectStore, from: Option<&(String, String)>) -> Result<ItemPage, StoreFault> {
        if self.versions {
            return store.versions(self.prefix, from);
        }
        let page = store.list(self.prefix, from.map(|f| f.0.as_str()), 1000)?;
        let items = page.keys.into_iter().map(Item::object).collect();
        Ok(ItemPage { items, next: page.next.map(|t| (t, String::new())) })
    }

    fn is_ours(&self, key: &str) -> bool {
        key.strip_prefix(self.prefix).is_some_and(is_of_shape)
    }

    /// Deletes until only the marker, what is held and what is others' are listed. `deleted` is told of each batch, and says whether to go on.
    /// `before` is the last page that was deleted, also by an earlier attempt: what is on it still is asked for once more, and is
    /// no step forward.
    pub fn run(
        &self,
        store: &dyn ObjectStore,
        before: &mut HashSet<Item>,
        deleted: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Swept, StoreFault> {
        let mut swept = Swept::default();
        let mut held: HashSet<Item> = HashSet::new();
        let mut again = false;
        let mut from = None;
        let mut empty = 0;
        let (mut highest, mut turns) = (String::new(), 0);
        loop {
            let page = self.page(store, from.as_ref())?;
            let mut items = Vec::new();
            let mut others = Vec::new();
            for item in page.items {
                if item.key == self.marker {
                    if !swept.marker.contains(&item) {
                        swept.marker.push(item);
                    }
                } else if !self.is_ours(&item.key) {
                    others.push(item.key);
                } else if !held.contains(&item) {
                    items.push(item);
                }
            }
            if items.is_empty() {
                // This page is not asked for again.
                swept.others += others.len() as u64;
                swept.first_other = swept.first_other.or(others.into_iter().next());
                // Nothing here was removed, so that what the server gave for the next page still holds.
                let Some(next) = page.next else { return Ok(swept) };
                empty += 1;
                if empty == MOST_EMPTY_PAGES || from.as_ref() == Some(&next) {
                    return Err(StoreFault::Other("its listing does not end".to_owned().into()));
                }
                from = Some(next);
                if !deleted(0) {
                    return Err(StoreFault::Other(STOPPED.to_owned().into()));
                }
                continue;
            }
            let new = items.iter().filter(|i| !before.contains(i)).count();
            if new == 0 && std::mem::replace(&mut again, true) {
                let text = format!("'{}' is still listed after it was deleted", clean(&items[0].key));
                return Err(StoreFault::Away(text.into()));
            }
            // What is deleted goes from the front. A listing that begins before that again and again is told anew each time.
            turns += u32::from(items[0].key < highest);
            if turns == MOST_EMPTY_PAGES {
                return Err(StoreFault::Other("its listing does not end".to_owned().into()));
            }
            highest = highest.max(items[items.len() - 1].key.clone());
            let kept = store.delete(&items)?;
            held.extend(kept.iter().map(|h| h.item.clone()));
            let gone = new.saturating_sub(kept.len()) as u64;
            swept.held.extend(kept);
            *before = items.into_iter().collect();
            empty = 0;
            if !deleted(gone) {
                return Err(StoreFault::Other(STOPPED.to_owned().into()));
            }
        }
    }
}
