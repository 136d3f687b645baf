//! Objects that are there already, found by listing: what a run reads that makes nothing of its own.
//!
//! A bucket may hold any number of them. What is looked at, and what is kept in memory, has a bound.

use std::sync::Arc;

use plimsoll_model::plan::{ExistingObjects, SizeDist, Workload};
use plimsoll_model::text::clean;
use plimsoll_model::units::{Size, format_size};
use plimsoll_model::{Finding, Level, OpKind};
use plimsoll_s3::xml::{ListPage, ListedObject};

use super::proof::MARKER;
use super::store::StoreFault;
use crate::error::SetupError;

/// So many times the objects that are wanted are looked at, at the most: those of the wanted size may come late in the listing.
const LOOK_AT: u64 = 10;
/// Pages without a key, of servers that filter late, beyond those that hold what is looked at.
const EMPTY_PAGES: u64 = 100;
/// Keys of a page: what servers give at the most.
const PAGE: u64 = 1000;
/// Classes whose objects have to be restored before they can be read.
const ARCHIVES: [&str; 2] = ["GLACIER", "DEEP_ARCHIVE"];
/// Sizes that are told apart; of more, neighbours are put together under their mean.
const SIZES: usize = 16;

/// Objects to look for.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedObjects {
    /// Keys begin with it.
    pub prefix: String,
    /// Those from half of it to twice it are taken before any other; absent: sizes do not matter.
    pub near_bytes: Option<u64>,
    /// Smaller ones cannot be read as it is asked for.
    pub least_bytes: u64,
    /// How many at the most.
    pub objects: u64,
}

impl WantedObjects {
    /// What a workload of existing objects reads; `None`: it reads prepared ones.
    pub fn of(w: &Workload) -> Option<Self> {
        let object = w.object.as_ref()?;
        let ExistingObjects { prefix } = object.existing.as_ref()?;
        let does = |kind| w.mix.get(&kind).is_some_and(|n| *n > 0);
        let whole = does(OpKind::Get);
        let range = object.range.map_or(64 << 10, |r| r.0).max(1);
        let least_bytes = if does(OpKind::GetRange) { range } else { u64::from(whole) };
        Some(Self {
            prefix: prefix.clone(),
            near_bytes: whole.then(|| w.size.mean_bytes()),
            least_bytes,
            objects: object.objects.max(1),
        })
    }

    fn is_near(&self, bytes: u64) -> bool {
        self.near_bytes.is_none_or(|near| bytes >= near / 2 && bytes <= near.saturating_mul(2))
    }
}

/// Objects that were found. Number n of a workload's objects is the n-th.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundObjects {
    /// In the order of the listing.
    pub keys: Arc<[String]>,
    /// Of each, in the same order.
    pub bytes: Arc<[u64]>,
    /// Objects that the listing showed until enough were found.
    pub looked_at: u64,
    /// Of these: in an archive class, so that they cannot be read.
    pub archived: u64,
    /// Of these: too small to be read as it is asked for, of plimsoll's own runs, or of names that proxies take for others.
    pub passed_over: u64,
    /// They have a size like the one that was looked for.
    pub near: bool,
}

/// Looks for objects, a page of the listing at a time, until there are enough or [`LOOK_AT`] times as many were looked at. An empty
/// find is no error.
pub fn find_existing(
    wanted: &WantedObjects,
    mut page: impl FnMut(Option<&str>) -> Result<ListPage, StoreFault>,
) -> Result<FoundObjects, StoreFault> {
    let most = wanted.objects.saturating_mul(LOOK_AT).max(PAGE);
    let mut found = FoundObjects::default();
    let (mut near, mut others) = (Vec::new(), Vec::new());
    let mut from: Option<String> = None;
    for _ in 0..most / PAGE + EMPTY_PAGES {
        let listed = page(from.as_deref())?;
        for object in listed.objects {
            if near.len() as u64 >= wanted.objects || found.looked_at >= most {
                break;
            }
            found.looked_at += 1;
            if ARCHIVES.contains(&object.storage_class.as_str()) {
                found.archived += 1;
            } else if object.size_bytes < wanted.least_bytes || is_no_object(&object, &wanted.prefix) {
                found.passed_over += 1;
            } else if wanted.is_near(object.size_bytes) {
                near.push(object);
            } else if (others.len() as u64) < wanted.objects {
                others.push(object);
            }
        }
        let enough = near.len() as u64 >= wanted.objects || found.looked_at >= most;
        let next = listed.next_token.filter(|_| listed.truncated);
        // A server that gives the same token again would be asked for ever.
        if enough || next.is_none() || next == from {
            break;
        }
        from = next;
    }
    found.near = !near.is_empty();
    let taken = if near.is_empty() { others } else { near };
    found.bytes = taken.iter().map(|o| o.size_bytes).collect();
    found.keys = taken.into_iter().map(|o| o.key).collect();
    Ok(found)
}

/// What other runs have in the bucket goes when they end; markers are no data; and keys with parts that are empty, '.' or '..' are
/// taken for other keys by proxies and servers.
fn is_no_object(object: &ListedObject, prefix: &str) -> bool {
    const RUNS: &str = "plimsoll/";
    const DATASETS: &str = "plimsoll/datasets/";
    let key = object.key.as_str();
    let of_a_run = key.starts_with(RUNS) && !key.starts_with(DATASETS) && !prefix.starts_with(RUNS);
    let name = key.rsplit('/').next().unwrap_or_default();
    let odd = key.split('/').any(|part| part.is_empty() || part == "." || part == "..");
    of_a_run || odd || name.starts_with(MARKER)
}

impl FoundObjects {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Of all of them together.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Their mean, bytes; 0: there are none.
    pub fn mean_bytes(&self) -> f64 {
        self.total_bytes() as f64 / self.count().max(1) as f64
    }

    /// The sizes as a plan has them, by how many there are of each.
    pub fn sizes(&self) -> SizeDist {
        let mut sorted = self.bytes.to_vec();
        sorted.sort_unstable();
        let mut distinct = sorted.clone();
        distinct.dedup();
        let weight = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        match &distinct[..] {
            [] => SizeDist::Fixed(Size(0)),
            [one] => SizeDist::Fixed(Size(*one)),
            few if few.len() <= SIZES => {
                let count = |size: &u64| sorted.iter().filter(|s| *s == size).count();
                SizeDist::Weighted(few.iter().map(|s| (Size(*s), weight(count(s)))).collect())
            }
            _ => {
                let mean = |group: &[u64]| group.iter().sum::<u64>() / group.len() as u64;
                let groups = sorted.chunks(sorted.len().div_ceil(SIZES));
                SizeDist::Weighted(groups.map(|g| (Size(mean(g)), weight(g.len()))).collect())
            }
        }
    }

    /// The workload as it can be carried out: so many objects, of these sizes.
    pub fn as_found(&self, w: &Workload) -> Workload {
        let mut w = w.clone();
        w.size = self.sizes();
        if let Some(object) = &mut w.object {
            object.objects = self.count();
        }
        w
    }

    /// The smallest and the largest, for a person: `4 KiB`, or `3 KiB to 5 KiB`.
    pub fn sizes_said(&self) -> String {
        let (least, most) = (self.bytes.iter().min(), self.bytes.iter().max());
        match (least, most) {
            (Some(a), Some(b)) if a != b => format!("{} to {}", format_size(*a), format_size(*b)),
            (Some(a), _) => format_size(*a),
            _ => "none".into(),
        }
    }

    /// What a result says of them. Objects of other sizes than those looked for make it another measurement.
    pub fn finding(&self, wanted: &WantedObjects, bucket: &str) -> Finding {
        let mut text = format!(
            "Read were {} objects that were there already, found {} ({} together, {} each); nothing was written. Objects that others \
             read, too, may come from a cache.",
            self.count(),
            place(wanted, bucket),
            format_size(self.total_bytes()),
            self.sizes_said()
        );
        if self.archived > 0 {
            text += &format!(" {} in an archive class were passed over.", self.archived);
        }
        let level = match wanted.near_bytes.filter(|_| !self.near) {
            Some(near) => {
                text += &format!(
                    " None of the {} that were looked at is within a factor of two of {}: these are other sizes.",
                    self.looked_at,
                    format_size(near)
                );
                Level::Qualified
            }
            None => Level::Info,
        };
        Finding::new("F18", "existing_objects", level, text).measured(self.count() as f64, 1.0)
    }
}

/// Where objects were looked for, for a person.
fn place(wanted: &WantedObjects, bucket: &str) -> String {
    match wanted.prefix.as_str() {
        "" => format!("in bucket '{}'", clean(bucket)),
        prefix => format!("under '{}' in bucket '{}'", clean(prefix), clean(bucket)),
    }
}

/// The bucket could not be listed.
pub fn listing_error(bucket: &str, prefix: &str, fault: &StoreFault) -> SetupError {
    let wanted = match prefix {
        "" => format!("bucket '{}'", clean(bucket)),
        prefix => format!("'{}' in bucket '{}'", clean(prefix), clean(bucket)),
    };
    let usual = match fault {
        StoreFault::NoSuchBucket => "Name a bucket that is there: --bucket NAME",
        StoreFault::Denied(_) | StoreFault::Forbidden(_) => {
            "Check the credentials, the region, and that these keys may list and read there"
        }
        _ => "Check the endpoint, and that it speaks S3",
    };
    SetupError::input(format!("{wanted} cannot be listed: {fault}"), fault.remedy().unwrap_or(usual))
}

/// Nothing that could be read was found.
pub fn none_found(wanted: &WantedObjects, bucket: &str, found: &FoundObjects) -> SetupError {
    let mut why = format!("{} objects were looked at", found.looked_at);
    if found.archived > 0 {
        why += &format!(", {} of them in an archive class", found.archived);
    }
    if found.passed_over > 0 {
        let small = match wanted.least_bytes {
            0 | 1 => "empty".to_owned(),
            least => format!("smaller than {}", format_size(least)),
        };
        why +=
            &format!(", {} of them {small}, or of a run, which removes them when it ends", found.passed_over);
    }
    SetupError::input(
        format!("there is no object to read {} ({why})", place(wanted, bucket)),
        "Name a prefix under which objects stay: --prefix PREFIX",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;

    fn object(key: &str, bytes: u64, class: &str) -> ListedObject {
        ListedObject {
            key: key.into(),
            size_bytes: bytes,
            storage_class: class.into(),
            ..ListedObject::default()
        }
    }

    /// A bucket, in pages of `per_page`, and how many pages were asked for.
    fn look(wanted: &WantedObjects, all: &[ListedObject], per_page: usize) -> (FoundObjects, usize) {
        let mut asked = 0;
        let found = find_existing(wanted, |from| {
            asked += 1;
            let at: usize = from.map_or(0, |f| f.parse().unwrap());
            let end = (at + per_page).min(all.len());
            let more = end < all.len();
            Ok(ListPage {
                objects: all[at..end].to_vec(),
                truncated: more,
                next_token: more.then(|| end.to_string()),
                ..ListPage::default()
            })
        });
        (found.unwrap(), asked)
    }

    fn wanted(near: Option<u64>, objects: u64) -> WantedObjects {
        WantedObjects { prefix: String::new(), near_bytes: near, least_bytes: 1, objects }
    }

    #[test]
    fn sizes_like_the_wanted_one_come_first_and_others_only_where_there_are_none() {
        let all = [object("a", 10, ""), object("b", 5000, ""), object("c", 4096, ""), object("d", 9000, "")];
        let (found, _) = look(&wanted(Some(4096), 10), &all, 2);
        assert_eq!((&found.keys[..], &found.bytes[..]), (&["b".into(), "c".into()][..], &[5000, 4096][..]));
        assert!(found.near && found.looked_at == 4);
        let w = wanted(Some(1 << 20), 2);
        let (found, _) = look(&w, &all, 2);
        assert_eq!(&found.keys[..], ["a".to_owned(), "b".to_owned()]);
        let told = found.finding(&w, "b");
        assert!(
            !found.near && told.level == Level::Qualified && told.text.contains("other sizes"),
            "{told:?}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_said() {
        let all = [
            object("a", 4096, "GLACIER"),
            object("b", 4096, "DEEP_ARCHIVE"),
            object("c", 4096, "GLACIER_IR"),
            object("d/", 0, ""),
            object("e//f", 4096, ""),
            object("g/../h", 4096, ""),
            object("plimsoll/20261122-000000-aaaa/4KiB/0123456789abcdef", 4096, ""),
            object("plimsoll/datasets/x/4KiB/0123456789abcdef", 4096, "STANDARD"),
            object("plimsoll/datasets/x/4KiB/.plimsoll-dataset.json", 4096, "STANDARD"),
        ];
        let w = wanted(Some(4096), 10);
        let (found, _) = look(&w, &all, 100);
        assert_eq!(&found.keys[..], ["c".to_owned(), "plimsoll/datasets/x/4KiB/0123456789abcdef".to_owned()]);
        assert_eq!((found.archived, found.passed_over), (2, 5));
        assert!(found.finding(&w, "b").text.contains("2 in an archive class"));
        let (none, _) = look(&w, &all[..2], 100);
        let e = none_found(&w, "b", &none).to_string();
        assert!(
            none.count() == 0 && e.contains("2 of them in an archive class") && e.contains("--prefix"),
            "{e}"
        );
    }

    #[test]
    fn a_bucket_without_end_is_looked_at_up_to_a_bound() {
        let w = wanted(Some(4096), 200);
        // Enough are found: no further page is asked for.
        let (mut asked, page) = (0, |bytes: u64| {
            move |from: Option<&str>| -> Result<ListPage, StoreFault> {
                let at: u64 = from.map_or(0, |f| f.parse().unwrap());
                let objects = (at..at + PAGE).map(|i| object(&format!("{i:09}"), bytes, "")).collect();
                let next_token = Some((at + PAGE).to_string());
                Ok(ListPage { objects, truncated: true, next_token, ..ListPage::default() })
            }
        });
        let found = find_existing(&w, |from| {
            asked += 1;
            page(4096)(from)
        });
        assert_eq!((found.unwrap().count(), asked), (200, 1));
        asked = 0;
        let found = find_existing(&w, |from| {
            asked += 1;
            page(1 << 30)(from)
        });
        let found = found.unwrap();
        assert_eq!((found.count(), found.looked_at, asked), (200, 2000, 2));
        // A server that goes on without a key, or with the same token, is not asked for ever.
        let mut n = 0;
        let empty = find_existing(&w, |_| {
            n += 1;
            Ok(ListPage { truncated: true, next_token: Some(n.to_string()), ..ListPage::default() })
        });
        assert!(empty.unwrap().count() == 0 && n < 200, "{n}");
        n = 0;
        let same = find_existing(&w, |_| {
            n += 1;
            Ok(ListPage { truncated: true, next_token: Some("x".into()), ..ListPage::default() })
        });
        assert!(same.unwrap().count() == 0 && n == 2, "{n}");
    }

    #[test]
    fn a_workload_becomes_what_was_found() {
        let text = "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://h\"]\nbucket = \"b\"\n[[stage]]\n\
                    [[stage.workload]]\nname = \"w\"\nmix = { get = 1 }\nobject = { existing = { prefix = \"p/\" } }\n";
        let plan = Plan::from_toml(text).unwrap();
        let w = &plan.stages[0].workloads[0];
        let wanted = WantedObjects::of(w).unwrap();
        assert_eq!((wanted.near_bytes, wanted.least_bytes, wanted.objects), (Some(4096), 1, 1000));
        let of = |bytes: Vec<u64>| FoundObjects {
            keys: bytes.iter().map(|b| b.to_string()).collect(),
            bytes: bytes.into(),
            ..FoundObjects::default()
        };
        let found = of(vec![4096, 4096, 5000]);
        let as_found = found.as_found(w);
        assert_eq!(as_found.object.as_ref().unwrap().objects, 3);
        assert_eq!(as_found.size, SizeDist::Weighted(vec![(Size(4096), 2), (Size(5000), 1)]));
        assert_eq!(of(vec![7, 7]).sizes(), SizeDist::Fixed(Size(7)));
        // Of many sizes the mean stays.
        let many = of((1..=1000).map(|i| i * 16).collect());
        let SizeDist::Weighted(list) = many.sizes() else { panic!("{:?}", many.sizes()) };
        assert!(list.len() <= SIZES);
        let mean = many.sizes().mean_bytes() as f64;
        assert!((mean - many.mean_bytes()).abs() < 2.0, "{mean} {}", many.mean_bytes());
        // A ranged read needs objects that have the range; what they have beyond it does not matter.
        let ranged =
            text.replace("get = 1", "get-range = 1").replace("existing", "range = \"8KiB\", existing");
        let ranged = ranged.replace("mix", "size = \"1MiB\"\nmix");
        let wanted = WantedObjects::of(&Plan::from_toml(&ranged).unwrap().stages[0].workloads[0]).unwrap();
        assert_eq!((wanted.near_bytes, wanted.least_bytes), (None, 8192));
    }
}
