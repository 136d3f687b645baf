//! One self-contained HTML file: the page built in `web/`, with the data inside. It asks the network for nothing.

use plimsoll_model::text::printable;

use crate::layout::Layout;
use crate::run::{ReportError, RunReport};
use crate::table::escape;
use crate::template::{DATA_MARK, STATIC_MARK, TITLE_MARK, embeddable, filled};
use crate::verdict::verdict;
use crate::{lines, page, tables};

/// The built page, or the plain one that stands in where `web/` was not built (see build.rs).
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));

/// Whether this program carries the page with charts; otherwise its HTML report is tables only.
pub const HTML_IS_INTERACTIVE: bool = cfg!(plimsoll_web);

/// The report of one or several runs.
pub fn html(runs: &[RunReport], layout: Layout<'_>) -> Result<String, ReportError> {
    let json = serde_json::to_string(&page::page(runs, layout))?;
    let still = printable(&plain(runs, layout), false).into_owned();
    Ok(put_together(TEMPLATE, &json, &layout.title_of(runs), &still))
}

/// Where a live page hears of its run.
#[derive(Debug, Clone, Copy)]
pub struct LivePlace<'a> {
    /// Path of the run on its server: its events are below it.
    pub path: &'a str,
    /// What proves that a request to stop the run comes from this page; `None`: nobody can stop it from here.
    pub stop_token: Option<&'a str>,
}

/// The page of a run that goes on, as its server gives it: the state so far (`plimsoll.page/1`, as JSON), and where more comes from. It is
/// the report's page, but for the policy that forbids it the network: its server sends one that allows that server.
pub fn html_live(page: &serde_json::Value, title: &str, place: LivePlace<'_>) -> String {
    let (before, after) = without_policy(TEMPLATE);
    let mut head = format!("<meta name=\"plimsoll-live\" content=\"{}\">", escape(place.path));
    if let Some(token) = place.stop_token {
        head.push_str(&format!("\n<meta name=\"plimsoll-stop\" content=\"{}\">", escape(token)));
    }
    let template = format!("{before}{head}{after}");
    let still = "<p>The page of a run that goes on needs a browser that runs scripts.</p>";
    put_together(&template, &page.to_string(), title, still)
}

/// The scripts that stand in the page, for whoever sends a policy by which no other script runs.
pub fn page_scripts() -> Vec<&'static str> {
    scripts_of(TEMPLATE)
}

/// The same of another page.
pub fn scripts_of(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((_, from)) = rest.split_once("<script") {
        let Some((head, body)) = from.split_once('>') else { break };
        let Some((script, after)) = body.split_once("</script>") else { break };
        if !head.contains("application/json") {
            found.push(script);
        }
        rest = after;
    }
    found
}

/// The template on both sides of its own policy.
fn without_policy(template: &str) -> (&str, &str) {
    let Some(at) = template.find("<meta http-equiv=\"Content-Security-Policy\"") else {
        return template.split_once("<head>").map_or((template, ""), |(b, _)| template.split_at(b.len() + 6));
    };
    let end = template[at..].find('>').map_or(template.len(), |n| at + n + 1);
    (&template[..at], &template[end..])
}

fn put_together(template: &str, json: &str, title: &str, still: &str) -> String {
    let data = format!(
        "<script type=\"application/json\" id=\"plimsoll-data\">{}</script>",
        embeddable(&printable(json, false))
    );
    // What a person or a run calls itself may hold anything.
    let title = printable(&format!("{title} - Plimsoll"), false).into_owned();
    filled(template, &[(DATA_MARK, &data), (TITLE_MARK, &escape(&title)), (STATIC_MARK, still)])
}

/// What the report says, without a script: also what is read by those who do not run scripts.
fn plain(runs: &[RunReport], layout: Layout<'_>) -> String {
    let mut out = String::new();
    if runs.len() > 1 {
        out.push_str(&layout.side_by_side(runs).html());
    }
    for r in runs {
        let s = &r.summary;
        out.push_str(&format!(
            "<section><h2>{}</h2><p>{}</p><p>{}</p>",
            escape(&if runs.len() == 1 { layout.title_of(runs) } else { crate::glance::title(r) }),
            escape(&s.id),
            escape(&verdict(s).replace("**", ""))
        ));
        if tables::is_sweep(s) {
            out.push_str(&tables::sweep(s).html());
        }
        for w in s.workloads.iter().filter(|_| !tables::is_sweep(s)) {
            out.push_str(&workload(s, w));
        }
        let each = tables::each_run(s);
        if !each.rows.is_empty() {
            out.push_str(&each.html());
        }
        for t in crate::limits::tables(s, &r.analysis) {
            out.push_str(&t.html());
        }
        for t in crate::servers::tables(s) {
            out.push_str(&t.html());
        }
        out.push_str("<h3>Findings</h3><ul>");
        for f in &s.findings {
            let text = format!("{:?} {} {}: {}", f.level, f.code, f.name, f.text);
            out.push_str(&format!("<li>{}</li>", escape(&text)));
        }
        out.push_str(&format!("</ul><p>Again: <code>{}</code></p></section>", escape(&s.rerun)));
    }
    out
}

fn workload(s: &plimsoll_model::RunSummary, w: &plimsoll_model::summary::WorkloadSummary) -> String {
    let rate = crate::number::estimate_or_missing(w.ops_per_s.as_ref());
    let bytes = w.bytes_per_s.filter(|_| tables::moves_bytes(w)).map_or(String::new(), |b| {
        format!(", {} MiB/s", crate::number::estimate(&b.scaled(1.0 / crate::number::MIB)))
    });
    let notes: String = w.notes.iter().map(|n| format!("<p>Note: {}</p>", escape(n))).collect();
    format!(
        "<h3>{}</h3><p>{rate} {}{bytes}; {}. Ops: {}.</p>{notes}{}",
        escape(&lines::label(w, &s.workloads)),
        tables::rate_unit(s),
        escape(&tables::conditions(w)),
        escape(&tables::outcomes(w)),
        tables::latencies(w).html()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support;

    #[test]
    fn nothing_in_a_run_can_break_out_of_the_page() {
        let mut s = support::sweep();
        let evil = "</script><script>alert(1)</script><!--PLIMSOLL_DATA--> & \u{2028}";
        s.id = evil.into();
        s.verdict = evil.into();
        s.rerun = evil.into();
        s.labels.insert(evil.into(), evil.into());
        let text = html(&[RunReport::of(s)], Layout::default()).unwrap();
        assert!(!text.contains("<script>alert"));
        let start = text.find("id=\"plimsoll-data\">").unwrap() + "id=\"plimsoll-data\">".len();
        let end = start + text[start..].find("</script>").unwrap();
        let page: page::Page = serde_json::from_str(&text[start..end]).unwrap();
        // A line separator would forge a line of ours: it is replaced, all else comes through as it is.
        assert_eq!(page.runs[0].summary.id, evil.replace('\u{2028}', "\u{fffd}"));
        assert_eq!(text.matches("id=\"plimsoll-data\">").count(), 1);
    }

    #[test]
    fn it_names_no_other_host() {
        let text = html(&[RunReport::of(support::sweep())], Layout::default()).unwrap();
        for needle in ["src=\"http", "href=\"http", "@import", "url(http", "<link rel=\"stylesheet\""] {
            assert!(!text.contains(needle), "{needle}");
        }
    }

    /// What a person types for a title, or calls a label, is in the head of the page, too, where a browser shows it.
    #[test]
    fn a_title_obeys_nobody() {
        let evil = "tiers \u{1b}[2J\u{9b}31m\u{202e}gpj.exe\u{2066}\u{200f}";
        let title = |runs: &[RunReport], layout: Layout<'_>| {
            let text = html(runs, layout).unwrap();
            text.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0.to_owned()
        };
        let of_tier = |tier: &str| {
            let mut s = support::sweep();
            s.labels.insert("tier".into(), tier.into());
            RunReport::of(s)
        };
        let typed =
            title(&[of_tier("a")], Layout { title: Some(&format!("{evil}\nVALID")), ..Layout::default() });
        assert!(typed.starts_with("tiers ") && !typed.contains('\n'), "{typed:?}");
        let labelled = title(&[of_tier("a"), of_tier(evil)], Layout::default());
        assert!(labelled.contains("gpj.exe"), "{labelled:?}");
        for shown in [typed, labelled] {
            assert!(!shown.contains(plimsoll_model::text::is_harmful), "{shown:?}");
        }
    }
}
