//! A run directory may be anybody's: its labels, names and messages are text from outside.
//!
//! They are cleaned once, where a run is read for a report, so that no form of it (terminal, Markdown, CSV, HTML) can forget to.

use plimsoll_model::text::clean;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The same value with all its text cleaned, keys included. One that cannot be written as JSON stays as it is.
pub fn cleaned<T: Serialize + DeserializeOwned>(value: T) -> T {
    let Ok(mut json) = serde_json::to_value(&value) else { return value };
    if !walk(&mut json) {
        return value;
    }
    serde_json::from_value(json).unwrap_or(value)
}

/// Cleans in place; whether anything was changed. Line ends stay where a text is one of several lines (a plan).
pub fn walk(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match clean(text) {
            std::borrow::Cow::Borrowed(_) => false,
            std::borrow::Cow::Owned(cleaned) => {
                *text = cleaned;
                true
            }
        },
        Value::Array(list) => list.iter_mut().fold(false, |changed, v| walk(v) | changed),
        Value::Object(map) => {
            let mut changed = map.iter_mut().fold(false, |changed, (_, v)| walk(v) | changed);
            if map.keys().any(|k| matches!(clean(k), std::borrow::Cow::Owned(_))) {
                let old = std::mem::take(map);
                map.extend(old.into_iter().map(|(k, v)| (clean(&k).into_owned(), v)));
                changed = true;
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::RunSummary;

    #[test]
    fn the_text_of_a_run_is_cleaned_keys_included() {
        let mut summary = RunSummary { verdict: "VALID.\u{1b}[8m".into(), ..RunSummary::default() };
        summary.labels.insert("a\u{202e}b".into(), "x\nVALID".into());
        let out = cleaned(summary.clone());
        assert_eq!(out.verdict, "VALID.\\u{1b}[8m");
        assert_eq!(out.labels["a\\u{202e}b"], "x\\nVALID");
        let plain = RunSummary { verdict: "VALID.".into(), ..RunSummary::default() };
        assert_eq!(cleaned(plain.clone()), plain);
    }
}
