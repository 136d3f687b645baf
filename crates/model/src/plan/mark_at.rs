//! Events that are planned on a run's time axis (`--mark-at 30s=TEXT`).

use std::time::Duration;

use crate::units::Span;

/// `30s=node 3 off`: when after the first load has begun, and what.
pub fn planned_mark(text: &str) -> Result<(Duration, String), String> {
    let example = "write TIME=TEXT, for example '30s=node 3 off'";
    let (at, what) = text.split_once('=').ok_or_else(|| format!("'{text}' has no '=': {example}"))?;
    let at: Span = at.trim().parse().map_err(|e| format!("'{at}' is not a time ({e}): {example}"))?;
    let what = what.trim();
    if what.is_empty() || what.chars().any(char::is_control) {
        return Err(format!("'{text}' has no text that can be shown in one line: {example}"));
    }
    Ok((at.0, what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_events_are_a_time_and_a_text() {
        assert_eq!(planned_mark("30s=node 3 off"), Ok((Duration::from_secs(30), "node 3 off".into())));
        assert_eq!(planned_mark("1m30s=a=b").unwrap().1, "a=b");
        for bad in ["node 3 off", "soon=node 3 off", "30s=", "30s= ", "30s=a\nb"] {
            assert!(planned_mark(bad).unwrap_err().contains("30s=node 3 off"), "{bad}");
        }
    }
}
