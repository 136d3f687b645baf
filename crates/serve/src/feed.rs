//! What the pages of one run are told: a hello with all there is, then numbered messages. The last of them are kept for pages that were cut
//! off; whoever was away for longer gets a hello, made of the same state. No page has a queue: each takes what comes after the number that
//! it has, when it has room for it, so that a slow one holds up nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_model::text::printable;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::changes::changes;

/// Bytes of messages that are kept: about a minute of a run with many lines, ten of a small one.
const KEPT_BYTES: usize = 8 << 20;

/// Where in a feed a page is: the numbering, and the last number of it that the page has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPlace {
    pub feed: String,
    pub seq: u64,
}

impl FeedPlace {
    /// As it is the id of a server-sent event: `FEED:NUMBER`.
    pub fn parse(text: &str) -> Option<Self> {
        let (feed, seq) = text.rsplit_once(':')?;
        Some(Self { feed: feed.to_owned(), seq: seq.parse().ok()? })
    }
}

/// The feed of one run.
#[derive(Debug)]
pub struct PageFeed {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    /// Of this numbering: another process numbers anew.
    name: String,
    seq: u64,
    /// Null until there is one.
    page: Value,
    kept: VecDeque<(u64, Arc<str>)>,
    bytes: usize,
    over: bool,
}

impl PageFeed {
    /// `name` is one that no other feed had.
    pub fn new(name: String) -> Self {
        let inner = Inner { name, seq: 0, page: Value::Null, kept: VecDeque::new(), bytes: 0, over: false };
        Self { inner: Mutex::new(inner), changed: watch::Sender::new(0) }
    }

    /// Told whenever there is more.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// How many pages follow it.
    pub fn watchers(&self) -> usize {
        self.changed.receiver_count()
    }

    /// The state is this now.
    pub fn update(&self, page: Value) {
        let mut inner = self.inner();
        let messages = changes(&inner.page, &page);
        let is_first = inner.page.is_null();
        inner.page = page;
        inner.append(messages);
        self.tell(inner, is_first);
    }

    /// Nothing more will come.
    pub fn end(&self, why: &str) {
        let mut inner = self.inner();
        if !inner.over {
            inner.append(vec![json!({ "kind": "end", "run": null, "end": why })]);
            inner.over = true;
        }
        self.tell(inner, true);
    }

    fn tell(&self, inner: MutexGuard<'_, Inner>, in_any_case: bool) {
        let seq = inner.seq;
        drop(inner);
        self.changed.send_if_modified(|seen| {
            let is_new = *seen != seq || in_any_case;
            *seen = seq;
            is_new
        });
    }

    /// The state as it is; `None`: there is none yet.
    pub fn page(&self) -> Option<Value> {
        let inner = self.inner();
        (!inner.page.is_null()).then(|| inner.page.clone())
    }

    /// What a page lacks that is at `place` (`None`: it has nothing), each with its place; empty: it has all there is.
    pub fn after(&self, place: Option<&FeedPlace>) -> Vec<(FeedPlace, Arc<str>)> {
        let inner = self.inner();
        let at = |seq| FeedPlace { feed: inner.name.clone(), seq };
        let known = place.filter(|p| p.feed == inner.name && p.seq <= inner.seq).map(|p| p.seq);
        let oldest = inner.kept.front().map_or(inner.seq + 1, |(seq, _)| *seq);
        match known {
            Some(seq) if seq + 1 >= oldest => {
                let more = inner.kept.iter().filter(|(s, _)| *s > seq);
                more.map(|(s, text)| (at(*s), Arc::clone(text))).collect()
            }
            _ if inner.page.is_null() => Vec::new(),
            // Of one that is over the end comes again, after the hello.
            _ => {
                let seq = inner.seq - u64::from(inner.over);
                let hello = json!({ "kind": "hello", "seq": seq, "feed": inner.name, "page": inner.page });
                let last = inner.kept.back().filter(|_| inner.over);
                let end = last.map(|(s, text)| (at(*s), Arc::clone(text)));
                std::iter::once((at(seq), text_of(&hello))).chain(end).collect()
            }
        }
    }

    /// Whether nothing more will come.
    pub fn is_over(&self) -> bool {
        self.inner().over
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn append(&mut self, messages: Vec<Value>) {
        for mut m in messages {
            self.seq += 1;
            m["seq"] = self.seq.into();
            let text = text_of(&m);
            self.bytes += text.len();
            self.kept.push_back((self.seq, text));
        }
        while self.bytes > KEPT_BYTES && self.kept.len() > 1 {
            self.bytes -= self.kept.pop_front().map_or(0, |(_, text)| text.len());
        }
    }
}

/// A run's text may be anybody's.
fn text_of(message: &Value) -> Arc<str> {
    Arc::from(printable(&message.to_string(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(n: u64) -> Value {
        json!({ "schema": "plimsoll.page/1", "runs": [{ "summary": { "id": "r" }, "live": true, "now": n }] })
    }

    fn kinds(list: &[(FeedPlace, Arc<str>)]) -> Vec<(u64, String)> {
        let kind = |t: &str| serde_json::from_str::<Value>(t).unwrap()["kind"].as_str().unwrap().to_owned();
        list.iter().map(|(p, t)| (p.seq, kind(t))).collect()
    }

    #[test]
    fn who_was_cut_off_gets_what_it_lacks_and_who_is_new_all_of_it() {
        let feed = PageFeed::new("f".into());
        assert!(feed.after(None).is_empty());
        (0..4).for_each(|n| feed.update(page(n)));
        assert_eq!(kinds(&feed.after(None)), [(3, "hello".into())]);
        let at = |seq| FeedPlace { feed: "f".into(), seq };
        assert_eq!(kinds(&feed.after(Some(&at(1)))), [(2, "now".into()), (3, "now".into())]);
        assert!(feed.after(Some(&at(3))).is_empty());
        // Of another process, or of a number that never was.
        for stranger in [FeedPlace { feed: "g".into(), seq: 1 }, at(9)] {
            assert_eq!(kinds(&feed.after(Some(&stranger))), [(3, "hello".into())]);
        }
        feed.end("the run has ended");
        assert_eq!(kinds(&feed.after(Some(&at(3)))), [(4, "end".into())]);
        assert_eq!(kinds(&feed.after(None)), [(3, "hello".into()), (4, "end".into())]);
        feed.end("once");
        assert_eq!(kinds(&feed.after(None)).len(), 2);
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_was_away_for_longer_gets_a_hello() {
        let feed = PageFeed::new("f".into());
        let long = "x".repeat(KEPT_BYTES / 4);
        for n in 0..8 {
            feed.update(json!({ "runs": [{ "summary": { "id": "r" }, "now": format!("{n}{long}") }] }));
        }
        let kept = feed.inner().bytes;
        assert!(kept <= KEPT_BYTES, "{kept}");
        let old = FeedPlace { feed: "f".into(), seq: 1 };
        assert_eq!(kinds(&feed.after(Some(&old))), [(7, "hello".into())]);
    }

    #[test]
    fn no_text_of_a_run_reaches_a_page_as_a_control_character() {
        let feed = PageFeed::new("f".into());
        feed.update(json!({ "runs": [{ "summary": { "id": "r" }, "now": "a\u{202e}b\u{9b}c" }] }));
        let text = feed.after(None)[0].1.clone();
        assert!(!text.chars().any(plimsoll_model::text::is_harmful), "{text}");
    }

    #[test]
    fn a_place_is_read_back() {
        assert_eq!(FeedPlace::parse("a:b:7"), Some(FeedPlace { feed: "a:b".into(), seq: 7 }));
        assert_eq!(FeedPlace::parse("7"), None);
        assert_eq!(FeedPlace::parse("a:-1"), None);
    }
}
