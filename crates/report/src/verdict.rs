//! How a run came out, in a word and in a paragraph: the same in all forms of the report.

use std::fmt::Write as _;

use plimsoll_model::finding::Level;
use plimsoll_model::{RunStatus, RunSummary};

/// `VALID`, `VALID (2 notes)`, `[INVALID V07 V13]`.
pub fn status(s: &RunSummary) -> String {
    if !s.answered {
        let mut out = String::from("[INVALID");
        for c in s.codes_of_the_answer() {
            let _ = write!(out, " {c}");
        }
        return out + "]";
    }
    if s.status == RunStatus::Partly {
        let void = s.workloads.iter().filter(|w| !w.valid).count();
        return format!(
            "PARTLY VALID: {void} of {} lines [INVALID {}]",
            s.workloads.len(),
            s.codes_of_the_answer().join(" ")
        );
    }
    match s.findings.iter().filter(|f| f.level == Level::Qualified).count() {
        0 => "VALID".into(),
        1 => "VALID (1 note)".into(),
        n => format!("VALID ({n} notes)"),
    }
}

/// The verdict, with the validity before it where the text does not begin with it. `**` stands around what matters
/// most, as in Markdown.
pub fn verdict(s: &RunSummary) -> String {
    let text = s.verdict.trim();
    let said = ["VALID", "PARTLY VALID", "INVALID", "[INVALID", "UNDETERMINED"]
        .iter()
        .any(|w| text.to_uppercase().starts_with(w));
    if said { text.into() } else { format!("{}. {text}", status(s)) }
}
