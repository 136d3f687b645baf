//! What is new between two states of a page, as the messages that bring a page from the one to the other (`web/src/feed.ts`).

use serde_json::{Map, Value, json};

/// What a newer summary replaces as a whole: all of a run that has no message of its own. `web/src/state.ts` has the same list.
const REPLACED: [&str; 15] = [
    "summary", "status", "verdict", "glance", "labels", "spoiled", "sweep", "block", "plan", "analysis",
    "stages", "spectra", "gaps", "seal", "servers",
];
const COLUMNS: [&str; 8] =
    ["ops_per_s", "bytes_per_s", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "ttfb_p50_ns"];

/// Messages without their numbers, in the order in which they are to be applied. Both states are of one run.
pub fn changes(old: &Value, new: &Value) -> Vec<Value> {
    if old == new {
        return Vec::new();
    }
    let (Some(before), Some(after)) = (old["runs"].get(0), new["runs"].get(0)) else { return Vec::new() };
    let id = after["summary"]["id"].clone();
    let series = parts(&before["series"], &after["series"], &["stage", "label", "op"], series_since);
    let samples =
        parts(&before["resources"], &after["resources"], &["role", "host", "group", "name"], |old, new| {
            since(old, new, &["t", "v"], &[])
        });
    // What is gone, and a run that has ended, is told by all of what there is.
    let (Some(series), Some(samples)) = (series, samples) else {
        return vec![json!({ "kind": "run", "run": after })];
    };
    if before["live"] != after["live"] || before["end"] != after["end"] {
        return vec![json!({ "kind": "run", "run": after })];
    }
    let mut out = Vec::new();
    if !series.is_empty() || !samples.is_empty() {
        out.push(json!({ "kind": "points", "run": id, "series": series, "resources": samples }));
    }
    let changed = REPLACED.iter().filter(|n| before[**n] != after[**n]);
    let set: Map<String, Value> =
        changed.filter_map(|n| Some(((*n).to_owned(), after.get(*n)?.clone()))).collect();
    if !set.is_empty() {
        out.push(json!({ "kind": "summary", "run": id, "set": set }));
    }
    if before["now"] != after["now"] {
        out.push(json!({ "kind": "now", "run": id, "now": after["now"] }));
    }
    out
}

/// The part of each of `new` that `old` has not; `None`: something of `old` is gone.
fn parts(
    old: &Value,
    new: &Value,
    key: &[&str],
    part: impl Fn(&Value, &Value) -> Option<Value>,
) -> Option<Vec<Value>> {
    let (old, new) = (list(old), list(new));
    let same = |a: &Value, b: &Value| key.iter().all(|k| a[*k] == b[*k]);
    if old.iter().any(|o| !new.iter().any(|n| same(o, n))) {
        return None;
    }
    let none = Value::Null;
    let of = |n: &Value| part(old.iter().find(|o| same(o, n)).unwrap_or(&none), n);
    Some(new.iter().filter_map(of).collect())
}

fn series_since(old: &Value, new: &Value) -> Option<Value> {
    let names: Vec<&str> = new["outcomes_per_s"].as_object()?.keys().map(String::as_str).collect();
    // Other steps are other points.
    let same_steps = old["step_s"] == new["step_s"] && old["start_s"] == new["start_s"];
    since(if same_steps { old } else { &Value::Null }, new, &COLUMNS, &names)
}

/// `new` from the first point on that differs from `old`'s; `None`: there is none, and nothing else differs.
fn since(old: &Value, new: &Value, columns: &[&str], outcomes: &[&str]) -> Option<Value> {
    if old == new {
        return None;
    }
    let at = |path: &dyn Fn(&Value) -> Value| {
        let (a, b) = (path(old), path(new));
        let (a, b) = (list(&a).to_vec(), list(&b).to_vec());
        // A column that has no points says nothing of where the others differ.
        let equal = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        if b.is_empty() && a.is_empty() { usize::MAX } else { equal }
    };
    let plain = columns.iter().map(|c| at(&|v| v[*c].clone()));
    let first = plain.chain(outcomes.iter().map(|o| at(&|v| v["outcomes_per_s"][*o].clone()))).min();
    let first = first.unwrap_or(0).min(list(&new[columns[0]]).len());
    let mut out = new.clone();
    let from = |v: &mut Value| {
        if let Value::Array(points) = v {
            points.drain(..first.min(points.len()));
        }
    };
    columns.iter().for_each(|c| from(&mut out[*c]));
    outcomes.iter().for_each(|o| from(&mut out["outcomes_per_s"][*o]));
    out["at"] = first.into();
    Some(out)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rates: &[u32], refused: &[u32], verdict: &str) -> Value {
        let outcomes = if refused.is_empty() { json!({}) } else { json!({ "http_429": refused }) };
        json!({ "runs": [{
            "summary": { "id": "r1" }, "verdict": verdict, "live": true, "now": { "in_flight": rates.len() },
            "series": [{
                "stage": 0, "label": "get", "op": "get", "start_s": 0.0, "step_s": 1.0, "ops_per_s": rates,
                "bytes_per_s": [], "p50_ns": rates, "p90_ns": rates, "p99_ns": rates, "p999_ns": rates, "max_ns": rates,
                "ttfb_p50_ns": [], "outcomes_per_s": outcomes,
            }],
            "resources": [{ "role": "client", "host": "h", "group": "cpu", "name": "busy", "t": rates, "v": rates }],
        }] })
    }

    /// What the page is made of is replaced, or has a message of its own; and the page replaces what it is sent.
    #[test]
    fn no_part_of_a_run_is_forgotten() {
        let report = plimsoll_report::RunReport::of(plimsoll_model::RunSummary::default());
        let page = plimsoll_report::page::page(&[report], plimsoll_report::Layout::default());
        let page = serde_json::to_value(page).unwrap();
        let own = ["series", "resources", "end", "live", "now"];
        let forgotten: Vec<&String> = page["runs"][0]
            .as_object()
            .unwrap()
            .keys()
            .filter(|k| !REPLACED.contains(&k.as_str()) && !own.contains(&k.as_str()))
            .collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
        let state = include_str!("../../../web/src/state.ts");
        let list = state.split_once("const REPLACED = [").unwrap().1.split_once(']').unwrap().0;
        let list: Vec<&str> = list.split(',').map(|n| n.trim().trim_matches('"')).collect();
        assert_eq!(list, REPLACED);
    }

    #[test]
    fn only_what_is_new_is_sent() {
        assert_eq!(changes(&page(&[1], &[], "a"), &page(&[1], &[], "a")), Vec::<Value>::new());
        let out = changes(&page(&[1, 2], &[], "a"), &page(&[1, 2, 3], &[], "b"));
        let kinds: Vec<&str> = out.iter().map(|m| m["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["points", "summary", "now"]);
        let part = &out[0]["series"][0];
        assert_eq!(
            (&part["at"], &part["ops_per_s"], &part["bytes_per_s"]),
            (&json!(2), &json!([3]), &json!([]))
        );
        assert_eq!(out[0]["resources"][0]["t"], json!([3]));
        assert_eq!(out[1]["set"], json!({ "verdict": "b" }));
    }

    /// The last point was of half a second, and is whole now.
    #[test]
    fn a_point_that_has_changed_is_sent_again() {
        let out = changes(&page(&[5, 6, 3], &[], "a"), &page(&[5, 6, 7, 1], &[], "a"));
        let part = &out[0]["series"][0];
        assert_eq!((&part["at"], &part["ops_per_s"]), (&json!(2), &json!([7, 1])));
    }

    /// An outcome that was not there before has its column from the first point on: the page fills what it lacks with none.
    #[test]
    fn a_new_outcome_is_sent_whole() {
        let out = changes(&page(&[5, 6], &[], "a"), &page(&[5, 6, 7], &[0, 2, 3], "a"));
        let part = &out[0]["series"][0];
        assert_eq!((&part["at"], &part["outcomes_per_s"]["http_429"]), (&json!(0), &json!([0, 2, 3])));
        assert_eq!(part["ops_per_s"], json!([5, 6, 7]));
    }

    #[test]
    fn what_is_gone_and_what_has_ended_is_sent_as_a_whole() {
        let mut gone = page(&[1, 2], &[], "a");
        gone["runs"][0]["series"] = json!([]);
        assert_eq!(changes(&page(&[1], &[], "a"), &gone)[0]["kind"], "run");
        let mut ended = page(&[1, 2], &[], "a");
        ended["runs"][0]["live"] = false.into();
        assert_eq!(
            changes(&page(&[1], &[], "a"), &ended),
            [json!({ "kind": "run", "run": ended["runs"][0] })]
        );
    }
}
