//! The page of the history: the built page of `web/`, with the first answer in it; and the same list as a table for whoever runs no scripts.

use plimsoll_model::count::counted;
use plimsoll_model::text::printable;
use plimsoll_report::table::escape;
use plimsoll_report::template::{DATA_MARK, STATIC_MARK, TITLE_MARK, embeddable, filled};

use crate::history::{HistoryState, HistoryTest, ListAnswer, ListedRun};

/// The built page, or the plain one that stands in where `web/` was not built (see build.rs).
pub const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/history.html"));

/// `2026-11-24 15:36:54 UTC`, of RFC 3339 with fractions; another form stays as it is.
fn second(rfc3339: &str) -> String {
    match (rfc3339.get(..19), rfc3339.ends_with('Z')) {
        (Some(whole), true) => format!("{} UTC", whole.replace('T', " ")),
        _ => rfc3339.to_owned(),
    }
}

/// The page. `place`: the directory. `query`: of its address, so that the rest of the list has it, too.
pub fn page(place: &str, query: &str, answer: &Result<ListAnswer, HistoryState>) -> String {
    let place = printable(place, false).into_owned();
    let data = match answer {
        Ok(answer) => serde_json::json!({ "place": place, "list": answer }),
        Err(_) => serde_json::json!({ "place": place, "list": null }),
    };
    let data = format!(
        "<script type=\"application/json\" id=\"plimsoll-data\">{}</script>",
        embeddable(&printable(&data.to_string(), false))
    );
    let still = match answer {
        Ok(answer) => table(&place, query, answer),
        Err(HistoryState::Failed(why)) => {
            format!(
                "<h1>Runs</h1><p role=\"alert\">The runs cannot be listed: {}</p>",
                escape(&printable(why, false))
            )
        }
        Err(_) => "<h1>Runs</h1><p>The runs are being read. Reload the page.</p>".into(),
    };
    let template = without_policy(TEMPLATE);
    filled(&template, &[(DATA_MARK, &data), (TITLE_MARK, "Runs - Plimsoll"), (STATIC_MARK, &still)])
}

/// The server sends a stricter one, which allows the page to ask it.
fn without_policy(template: &str) -> String {
    let Some(at) = template.find("<meta http-equiv=\"Content-Security-Policy\"") else {
        return template.to_owned();
    };
    let end = template[at..].find('>').map_or(template.len(), |n| at + n + 1);
    format!("{}{}", &template[..at], &template[end..])
}

fn table(place: &str, query: &str, answer: &ListAnswer) -> String {
    let mut out = format!(
        "<h1>Runs</h1>\n<p>{} of {} in {}, the newest first.</p>\n",
        answer.found,
        answer.all,
        escape(place)
    );
    if answer.all == 0 && answer.tests.is_empty() {
        out.push_str("<p>There are no runs here yet. Measure something: <code>plimsoll object put --endpoint embedded --size 4KiB --duration 10s</code></p>\n");
        return out;
    }
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Started</th><th scope=\"col\">What</th><th scope=\"col\">Result</th><th scope=\"col\">Validity</th></tr></thead>\n<tbody>\n");
    answer.runs.iter().for_each(|r| out.push_str(&tr(r)));
    answer.tests.iter().for_each(|t| out.push_str(&test_tr(t)));
    out.push_str("</tbody>\n</table></div>\n");
    // The rest of the query stays as it was asked.
    let rest: String = query
        .split('&')
        .filter(|p| !p.is_empty() && !p.starts_with("skip="))
        .map(|p| format!("{p}&"))
        .collect();
    let link = |skip: usize, word: &str| format!("<a href=\"/?{}skip={skip}\">{word}</a> ", escape(&rest));
    let shown = answer.runs.len();
    let newer = if answer.skip > 0 {
        link(answer.skip.saturating_sub(crate::history::RUNS_SHOWN), "Newer")
    } else {
        String::new()
    };
    let older =
        if answer.skip + shown < answer.found { link(answer.skip + shown, "Older") } else { String::new() };
    out.push_str(&format!("<p>{newer}{older}</p>\n"));
    out
}

fn tr(r: &ListedRun) -> String {
    let labels: Vec<String> = r.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!(
        "<tr><th scope=\"row\"><a href=\"/runs/{id}\">{id}</a></th><td>{}</td><td>{}<br>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&second(&r.started_at)),
        escape(&r.what),
        escape(&labels.join(" ")),
        escape(&r.result),
        escape(&r.mark),
        id = escape(&r.id),
    )
}

fn test_tr(t: &HistoryTest) -> String {
    format!(
        "<tr><th scope=\"row\"><a href=\"/net/{id}\">{id}</a></th><td>{}</td><td>network test, {}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&second(&t.started_at)),
        counted(t.hosts, "host"),
        escape(&t.result),
        escape(&t.status),
        id = escape(&t.id),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{HistoryQuery, list, support};

    #[test]
    fn a_hostile_label_is_text() {
        let evil = "<script>alert(1)</script>\" onload=x <!--PLIMSOLL_STATIC-->";
        let history = support::history(&[support::Made { label: evil, ..support::Made::default() }]);
        let answer = list(&history, &HistoryQuery::default());
        let html = page(evil, &format!("label={evil}&"), &Ok(answer));
        // Within the data a quote is one of JSON, and no tag can begin.
        let still = html.split("<script").next().unwrap();
        assert!(
            !html.contains("<script>alert")
                && !still.contains("\" onload=x")
                && still.contains("&lt;script&gt;"),
            "{still}"
        );
        assert_eq!(html.matches("id=\"plimsoll-data\">").count(), 1);
    }

    #[test]
    fn times_are_told_to_the_second() {
        assert_eq!(second("2026-11-24T15:36:54.1517074Z"), "2026-11-24 15:36:54 UTC");
        assert_eq!(second("yesterday"), "yesterday");
    }

    #[test]
    fn an_empty_place_says_what_to_do_and_one_that_is_being_read_says_so() {
        let none = list(&Default::default(), &HistoryQuery::default());
        let html = page("/runs", "", &Ok(none));
        assert!(html.contains("no runs here yet") && html.contains("plimsoll object put"), "{html}");
        assert!(page("/runs", "", &Err(HistoryState::Reading)).contains("being read"));
        assert!(
            page("/runs", "", &Err(HistoryState::Failed("no <room>".into()))).contains("no &lt;room&gt;")
        );
    }

    #[test]
    fn the_rest_of_the_list_keeps_what_was_asked_for() {
        let made: Vec<support::Made> =
            (0..250).map(|i| support::Made { rate: f64::from(i), ..support::Made::default() }).collect();
        let history = support::history(&made);
        let query = HistoryQuery::parse("op=get&skip=100").unwrap();
        let html = page("/runs", "op=get&skip=100", &Ok(list(&history, &query)));
        assert!(
            html.contains("href=\"/?op=get&amp;skip=0\">Newer")
                && html.contains("href=\"/?op=get&amp;skip=200\">Older")
        );
    }
}
