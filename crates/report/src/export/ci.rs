//! What a CI system shows: one line, or a page of Markdown below a job.

use std::fmt::Write as _;

use crate::markdown::emphasised;
use crate::table::escape_markdown;
use crate::verdict::verdict;
use crate::{Layout, RunReport, glance};

/// Begins every such page: a comment, by which an older one is known again.
pub const MARKDOWN_MARK: &str = "<!-- made by plimsoll -->\n";

/// How far the result may be used, the first figure, what was measured, which run.
pub fn one_line(r: &RunReport) -> String {
    let s = &r.summary;
    // What covers a part of what was asked for says so: this line may be all that is read.
    let part = s.findings.iter().find_map(|f| match f.code.as_str() {
        "F11" if f.name == "unfinished" => Some(", killed before its end"),
        "F11" => Some(", ended early"),
        "F34" => Some(", so far"),
        _ => None,
    });
    let part = part.unwrap_or_default();
    format!("{}: {} ({}), run {}{part}\n", glance::mark(s), glance::result(s), glance::title(r), s.id)
}

/// Verdict and promises first; all else is folded away below.
pub fn summary_markdown(runs: &[RunReport]) -> String {
    let mut out = MARKDOWN_MARK.to_owned();
    for r in runs {
        let s = &r.summary;
        let _ = writeln!(out, "### {}: {}\n", glance::mark(s), escape_markdown(&glance::title(r)));
        let _ = writeln!(out, "{}\n", emphasised(&verdict(s)));
        let promises = crate::tables::expectations(&s.expectations);
        if !promises.rows.is_empty() {
            let _ = writeln!(out, "{}", promises.markdown());
        }
        let whole = crate::markdown(std::slice::from_ref(r), Layout::default());
        let id = escape_markdown(&s.id);
        let _ = writeln!(
            out,
            "<details><summary>Run {id}: all figures, and how to repeat it</summary>\n\n{whole}\n</details>\n"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Finding, Level};

    use super::*;
    use crate::support;

    #[test]
    fn the_line_is_one_and_the_page_folds_what_is_long() {
        let run = RunReport::of(support::sweep());
        let line = one_line(&run);
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(&run.summary.id) && line.starts_with(&glance::mark(&run.summary)), "{line}");
        assert!(!line.contains("killed"), "{line}");
        let mut killed = run.clone();
        killed.summary.findings.push(Finding::new("F11", "unfinished", Level::Qualified, "Killed."));
        assert!(one_line(&killed).ends_with(", killed before its end\n"));
        let page = summary_markdown(&[run]);
        let (first, folded) = page.split_once("<details>").unwrap();
        assert!(page.starts_with(MARKDOWN_MARK) && first.lines().count() < 12, "{first}");
        assert!(folded.contains("Findings") || folded.contains("Again:"), "{folded}");
    }
}
