//! What a bucket holds, in order: the map that LIST pages are cut from.

use std::collections::BTreeMap;
use std::ops::Bound;

/// What a LIST tells about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub size: u64,
    pub etag: Box<str>,
    pub modified_ms: u64,
    pub storage_class: Option<Box<str>>,
}

/// Objects by the raw UTF-8 bytes of their keys: the order that S3 promises.
pub(crate) type Index = BTreeMap<Box<[u8]>, Entry>;

/// What a page is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest<'a> {
    pub prefix: &'a [u8],
    pub delimiter: &'a [u8],
    /// Only what comes after this: a key, or a common prefix that was the last of the page before.
    pub after: &'a [u8],
    pub max: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub items: Vec<(Box<[u8]>, Entry)>,
    pub prefixes: Vec<Vec<u8>>,
    /// More follows; the next page begins after this.
    pub next: Option<Vec<u8>>,
}

/// Cuts one page.
pub(crate) fn page(index: &Index, ask: PageRequest<'_>) -> Page {
    let mut page = Page::default();
    if ask.max == 0 {
        return page;
    }
    let mut last: Vec<u8> = Vec::new();
    let Some(mut lower) = first_bound(&ask) else { return page };
    while let Some((key, entry)) = next(index, &lower, ask.prefix) {
        if page.items.len() + page.prefixes.len() == ask.max {
            page.next = Some(last);
            return page;
        }
        match common_prefix(key, &ask) {
            Some(prefix) => {
                last = prefix.to_vec();
                page.prefixes.push(prefix.to_vec());
                match successor(prefix) {
                    Some(s) => lower = Bound::Included(s),
                    None => return page,
                }
            }
            None => {
                last = key.to_vec();
                lower = Bound::Excluded(key.to_vec());
                page.items.push((key.into(), entry.clone()));
            }
        }
    }
    page
}

/// Where the page starts; `None` when nothing can follow.
fn first_bound(ask: &PageRequest<'_>) -> Option<Bound<Vec<u8>>> {
    if ask.after < ask.prefix || ask.after.is_empty() {
        return Some(Bound::Included(ask.prefix.to_vec()));
    }
    // After a common prefix come the keys that don't begin with it.
    match common_prefix(ask.after, ask) {
        Some(p) if p == ask.after => successor(p).map(Bound::Included),
        _ => Some(Bound::Excluded(ask.after.to_vec())),
    }
}

fn next<'i>(index: &'i Index, lower: &Bound<Vec<u8>>, prefix: &[u8]) -> Option<(&'i [u8], &'i Entry)> {
    let lower = match lower {
        Bound::Included(k) => Bound::Included(&k[..]),
        Bound::Excluded(k) => Bound::Excluded(&k[..]),
        Bound::Unbounded => Bound::Unbounded,
    };
    let (key, entry) = index.range::<[u8], _>((lower, Bound::Unbounded)).next()?;
    key.starts_with(prefix).then_some((key, entry))
}

/// The key up to and with the first delimiter behind the prefix.
fn common_prefix<'k>(key: &'k [u8], ask: &PageRequest<'_>) -> Option<&'k [u8]> {
    if ask.delimiter.is_empty() || !key.starts_with(ask.prefix) {
        return None;
    }
    let rest = &key[ask.prefix.len()..];
    let at = rest.windows(ask.delimiter.len()).position(|w| w == ask.delimiter)?;
    Some(&key[..ask.prefix.len() + at + ask.delimiter.len()])
}

/// The first byte string behind all that begin with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&b| b < 0xff)?;
    let mut s = prefix[..=keep].to_vec();
    s[keep] += 1;
    Some(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn index(keys: &[Vec<u8>]) -> Index {
        let entry = Entry { size: 1, etag: "e".into(), modified_ms: 0, storage_class: None };
        keys.iter().map(|k| (k.clone().into_boxed_slice(), entry.clone())).collect()
    }

    fn walk(index: &Index, prefix: &[u8], delimiter: &[u8], max: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut keys, mut prefixes, mut after) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let p = page(index, PageRequest { prefix, delimiter, after: &after, max });
            assert!(p.items.len() + p.prefixes.len() <= max);
            keys.extend(p.items.into_iter().map(|i| i.0.into_vec()));
            prefixes.extend(p.prefixes);
            match p.next {
                Some(n) => after = n,
                None => return (keys, prefixes),
            }
        }
    }

    #[test]
    fn a_file_beside_a_directory_of_its_name() {
        let i = index(&[b"a".to_vec(), b"a/b".to_vec(), b"a/c".to_vec(), b"a-".to_vec(), b"b".to_vec()]);
        let (keys, prefixes) = walk(&i, b"", b"/", 1);
        assert_eq!(keys, [b"a".to_vec(), b"a-".to_vec(), b"b".to_vec()]);
        assert_eq!(prefixes, [b"a/".to_vec()]);
        let (keys, _) = walk(&i, b"a/", b"/", 10);
        assert_eq!(keys, [b"a/b".to_vec(), b"a/c".to_vec()]);
    }

    proptest! {
        /// Pages of any size, put together, are what a plain filter over all keys gives.
        #[test]
        fn pages_add_up_to_the_whole(
            keys in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'/'), Just(0xffu8), Just(1u8)], 1..6), 0..40),
            prefix in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'/')], 0..3),
            delimited in any::<bool>(),
            max in 1usize..7,
        ) {
            let i = index(&keys);
            let delimiter: &[u8] = if delimited { b"/" } else { b"" };
            let (got_keys, got_prefixes) = walk(&i, &prefix, delimiter, max);
            let mut want_keys = Vec::new();
            let mut want_prefixes = BTreeSet::new();
            for k in i.keys().filter(|k| k.starts_with(&prefix)) {
                match k[prefix.len()..].iter().position(|&b| delimited && b == b'/') {
                    Some(at) => { want_prefixes.insert(k[..prefix.len() + at + 1].to_vec()); }
                    None => want_keys.push(k.to_vec()),
                }
            }
            prop_assert_eq!(got_keys, want_keys);
            prop_assert_eq!(got_prefixes, want_prefixes.into_iter().collect::<Vec<_>>());
        }
    }
}
