//! What an edited file says otherwise than before: named, place by place.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cells::CampaignCell;
use crate::file::CampaignFile;

/// An edited file against what the ledger knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDifference {
    /// Place, before and after: one line each.
    pub places: Vec<String>,
    /// Cells that are measured otherwise now: what was measured of them does not count for the file as it is.
    pub changed: Vec<String>,
    /// Cells that are new.
    pub new: Vec<String>,
    /// Cells that are no longer there.
    pub gone: Vec<String>,
}

impl FileDifference {
    /// Nothing that a person would have to decide.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Of the cells as they were taken (their hashes by key) and as they are.
    pub fn of(old: &BTreeMap<String, String>, cells: &[CampaignCell]) -> Self {
        let changed = |c: &&CampaignCell| old.get(&c.key).is_some_and(|h| *h != c.hash);
        let key = |c: &CampaignCell| c.key.clone();
        Self {
            places: Vec::new(),
            changed: cells.iter().filter(changed).map(key).collect(),
            new: cells.iter().filter(|c| !old.contains_key(&c.key)).map(key).collect(),
            gone: old.keys().filter(|k| !cells.iter().any(|c| c.key == **k)).cloned().collect(),
        }
    }

    /// With the places in which two files differ.
    pub fn with_places(mut self, old: &CampaignFile, new: &CampaignFile) -> Self {
        let json = |f: &CampaignFile| serde_json::to_value(f).expect("plain data is always JSON");
        walk("", &json(old), &json(new), &mut self.places);
        self
    }

    /// A line each; of long lists the first.
    pub fn lines(&self) -> Vec<String> {
        let cells = |what: &str, list: &[String]| match list {
            [] => None,
            [one] => Some(format!("cell {what}: {one}")),
            many if many.len() <= 3 => Some(format!("cells {what}: {}", many.join(", "))),
            many => Some(format!("{} cells {what}: {}, ...", many.len(), many[..3].join(", "))),
        };
        let mut out: Vec<String> = self.places.iter().take(20).cloned().collect();
        if self.places.len() > 20 {
            out.push(format!("and {} more", self.places.len() - 20));
        }
        out.extend(cells("measured otherwise", &self.changed));
        out.extend(cells("added", &self.new));
        out.extend(cells("gone", &self.gone));
        out
    }
}

fn walk(place: &str, old: &Value, new: &Value, out: &mut Vec<String>) {
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))).collect();
            keys.sort();
            for key in keys {
                let null = Value::Null;
                walk(&below(key), a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if is_named(a) && is_named(b) => {
            let find = |list: &[Value], name: &str| list.iter().find(|v| name_of(v) == Some(name)).cloned();
            let mut names: Vec<&str> = a.iter().chain(b).filter_map(name_of).collect();
            names.dedup();
            let mut seen: Vec<&str> = Vec::new();
            for name in names {
                if seen.contains(&name) {
                    continue;
                }
                seen.push(name);
                let at = format!("{place} '{name}'");
                match (find(a, name), find(b, name)) {
                    (Some(x), Some(y)) => walk(&at, &x, &y, out),
                    (Some(_), None) => out.push(format!("{at}: gone")),
                    _ => out.push(format!("{at}: new")),
                }
            }
        }
        (a, b) if a != b => out.push(format!("{place}: {} was {}", said(b), said(a))),
        _ => {}
    }
}

fn name_of(v: &Value) -> Option<&str> {
    v.get("name")?.as_str()
}

fn is_named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|v| name_of(v).is_some())
}

fn said(v: &Value) -> String {
    match v {
        Value::Null => "nothing".into(),
        Value::String(s) => format!("'{s}'"),
        other => other.to_string(),
    }
}
