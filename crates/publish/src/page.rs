//! The pages: plain HTML with all tables, which needs no script; the first has the charts' data inside, and the script that draws them.

use std::fmt::Write as _;

use plimsoll_model::count::counted;
use plimsoll_model::text::printable;
use plimsoll_report::table::{Align, escape};
use plimsoll_report::template::{DATA_MARK, STATIC_MARK, TITLE_MARK, embeddable, filled};

use crate::publication::Publication;
use crate::tables::SiteTable;

/// The built page, or the plain one that stands in where `web/` was not built (see build.rs).
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/publication.html"));

/// Whether this program carries the page with charts; otherwise a publication has tables only.
pub const HAS_CHARTS: bool = cfg!(plimsoll_web);

/// What a table may take of one page, bytes: of all tables together far below what a page may have.
const MOST_OF_TABLE: usize = 200_000;
/// What the charts' data may take of the first page.
const MOST_OF_DATA: usize = 500_000;
/// A page of runs.
const MOST_OF_RUNS: usize = 600_000;
/// No page is larger.
pub const MOST_OF_PAGE: usize = 2_000_000;

/// Files by which it was measured that are named one by one.
const MOST_SOURCES: usize = 20;

/// A page and its name.
pub type SitePage = (String, String);

/// All pages: the first is `index.html`.
pub fn pages(p: &Publication) -> Vec<SitePage> {
    let runs = run_pages(p);
    let at =
        |row: usize| runs.iter().find(|r| r.rows.contains(&row)).map(|r| format!("{}#row-{row}", r.name));
    let mut more: Vec<SitePage> = Vec::new();
    let mut tables = String::new();
    for t in &p.tables {
        let parts = parts(t, &at);
        let _ = write!(tables, "<section><h2 id=\"{0}\">{1}</h2>", t.slug, escape(&t.table.title));
        tables += &parts[0];
        tables += &notes(t);
        if parts.len() > 1 {
            let names: Vec<String> = (2..=parts.len()).map(|n| format!("{}-{n}.html", t.slug)).collect();
            let links: Vec<String> =
                names.iter().enumerate().map(|(i, n)| format!("<a href=\"{n}\">{}</a>", i + 2)).collect();
            let _ = write!(tables, "<p class=\"note\">The table goes on, on page {}.</p>", links.join(", "));
            for (name, part) in names.iter().zip(&parts[1..]) {
                let body = format!(
                    "<p><a href=\"index.html#{}\">Back to the publication</a></p><h1>{}</h1>{part}",
                    t.slug,
                    escape(&t.table.title)
                );
                more.push((name.clone(), assemble(&format!("{}: {}", p.title, t.table.title), &body, "")));
            }
        }
        tables += &downloads(t);
        tables += "</section>";
    }
    let (data, is_cut) = data(p);
    let mut body = head(p);
    body += "<div id=\"charts\"></div>";
    if is_cut || p.charts.left_out > 0 {
        body += "<p class=\"note\">Not all rows are in the charts: the page would be too large. All are in the tables.</p>";
    }
    body += &tables;
    body += &method(p, runs.first().map(|r| r.name.as_str()));
    let mut out = vec![("index.html".to_owned(), assemble(&p.title, &body, &data))];
    out.extend(more);
    for r in runs {
        out.push((r.name.clone(), assemble(&format!("{}: runs", p.title), &r.body, "")));
    }
    out
}

fn assemble(title: &str, body: &str, data: &str) -> String {
    let body = printable(body, false);
    let title = format!("{} - Plimsoll", plimsoll_model::text::clean(title));
    let template = if data.is_empty() { without_script() } else { TEMPLATE.to_owned() };
    filled(&template, &[(DATA_MARK, data), (STATIC_MARK, &body), (TITLE_MARK, &escape(&title))])
}

/// Pages that have tables alone do not carry what draws charts.
fn without_script() -> String {
    match (TEMPLATE.rfind("<script"), TEMPLATE.rfind("</script>")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{}", &TEMPLATE[..first_script()], &TEMPLATE[to + "</script>".len()..])
        }
        _ => TEMPLATE.to_owned(),
    }
}

/// Where the page's own script begins: it is the last thing in the body.
fn first_script() -> usize {
    let after = TEMPLATE.find(DATA_MARK).map_or(0, |at| at + DATA_MARK.len());
    TEMPLATE[after..].find("<script").map_or(TEMPLATE.len(), |at| after + at)
}

/// JSON that no HTML parser takes for markup, and whether rows were left out of it.
fn data(p: &Publication) -> (String, bool) {
    let mut charts = p.charts.clone();
    let mut is_cut = false;
    loop {
        let json = serde_json::to_string(&charts).unwrap_or_default();
        if json.len() <= MOST_OF_DATA || charts.bars.len() + charts.curves.len() + charts.knees.len() == 0 {
            let safe = embeddable(&printable(&json, false));
            return (
                format!("<script type=\"application/json\" id=\"plimsoll-data\">{safe}</script>"),
                is_cut,
            );
        }
        is_cut = true;
        charts.bars.truncate(charts.bars.len() / 2);
        charts.curves.truncate(charts.curves.len() / 2);
        charts.knees.truncate(charts.knees.len() / 2);
        charts.cliffs.truncate(charts.cliffs.len() / 2);
        charts.costs.truncate(charts.costs.len() / 2);
    }
}

fn head(p: &Publication) -> String {
    let a = &p.answer;
    let (with, all) = a.cells;
    let (kind, badge) = match with {
        0 => ("bad", "✕ no valid cell".to_owned()),
        1 if all == 1 => ("good", "✓ its one cell is valid".to_owned()),
        n if n == all => ("good", format!("✓ all {all} cells valid")),
        n => ("fair", format!("! {n} of {} valid", counted(all, "cell"))),
    };
    let mut out = format!("<h1>{}</h1>", escape(&p.title));
    if let Some(q) = &p.question {
        let _ = write!(out, "<p class=\"question\">{}</p>", escape(q));
    }
    let _ = write!(
        out,
        "<div class=\"verdict\"><p class=\"badge {kind}\">{badge}</p><p class=\"lead\">{}</p>",
        escape(&a.lead)
    );
    if !a.tiles.is_empty() {
        out += "<dl class=\"glance\">";
        for [name, value, of] in &a.tiles {
            let _ = write!(
                out,
                "<div><dt>{}</dt><dd><span class=\"large\">{}</span> <span class=\"note\">{}</span></dd></div>",
                escape(name),
                escape(value),
                escape(of)
            );
        }
        out += "</dl>";
    }
    for s in &a.more {
        let _ = write!(out, "<p>{}</p>", escape(s));
    }
    out + "</div>"
}

fn notes(t: &SiteTable) -> String {
    t.notes.iter().map(|n| format!("<p class=\"note\">{}</p>", escape(n))).collect()
}

fn downloads(t: &SiteTable) -> String {
    format!(
        "<p class=\"tools\"><a href=\"tables/{0}.md\">Markdown</a> <a href=\"tables/{0}.csv\">CSV</a></p>",
        t.slug
    )
}

/// A table in parts that pages have room for; rows lead to their runs.
fn parts(t: &SiteTable, at: &dyn Fn(usize) -> Option<String>) -> Vec<String> {
    let mut heads = String::new();
    for (head, align) in &t.table.columns {
        let class = if *align == Align::Right { " class=\"number\"" } else { "" };
        let _ = write!(heads, "<th scope=\"col\"{class}>{}</th>", escape(head));
    }
    let open = format!(
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{0}\"><table><caption class=\"offscreen\">{0}</caption><thead><tr>{heads}</tr></thead><tbody>",
        escape(&t.table.title)
    );
    let close = "</tbody></table></div>";
    let mut out = vec![open.clone()];
    for (i, row) in t.table.rows.iter().enumerate() {
        let link = t.of[i].and_then(at);
        let mut line = String::from(if t.void[i] { "<tr class=\"void\">" } else { "<tr>" });
        for (j, cell) in row.iter().enumerate() {
            let is_number = t.table.columns[j].1 == Align::Right;
            let class = if is_number {
                " class=\"number\""
            } else if cell.chars().count() > 40 {
                " class=\"long\""
            } else {
                ""
            };
            let mut text = escape(cell);
            // The figures of a row lead to what they were made of.
            if let Some(to) = link.as_ref().filter(|_| is_number && !cell.is_empty()) {
                text = format!("<a href=\"{to}\">{text}</a>");
            }
            let _ = match j < t.table.keys {
                true => write!(line, "<th scope=\"row\"{class}>{text}</th>"),
                false => write!(line, "<td{class}>{text}</td>"),
            };
        }
        line += "</tr>";
        let last = out.last_mut().expect("there is one from the beginning");
        if last.len() + line.len() > MOST_OF_TABLE && last.len() > open.len() {
            last.push_str(close);
            out.push(open.clone());
        }
        out.last_mut().expect("there is one").push_str(&line);
    }
    out.last_mut().expect("there is one").push_str(close);
    out
}

struct RunPage {
    name: String,
    rows: Vec<usize>,
    body: String,
}

/// Every run under the row that it is of, with its hash: what each number leads to.
fn run_pages(p: &Publication) -> Vec<RunPage> {
    let heads = "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">begun</th><th scope=\"col\">counts</th><th scope=\"col\">SHA-256</th><th scope=\"col\">again</th></tr></thead>";
    let top = "<p><a href=\"index.html\">Back to the publication</a></p><h1>Runs</h1><p>Each cell of the results with the runs that its figures are of. The hash of a run is that of the list of its files, which data/runs.sha256 has.</p>";
    let mut out: Vec<RunPage> = Vec::new();
    for (i, r) in p.result.rows.iter().enumerate() {
        let name = format!("{}, {}, {}", r.subject, r.workload, r.line_name());
        let mut part = format!(
            "<section><h2 id=\"row-{i}\">{0}</h2><div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{0}\"><table>{heads}<tbody>",
            escape(&name)
        );
        let void = r.void.iter().map(|v| (v.run.as_str(), format!("void {}", v.codes.join(" "))));
        for (run, counts) in r.runs.iter().map(|run| (run.as_str(), "yes".to_owned())).chain(void) {
            let known = p.runs.iter().find(|k| k.run == run);
            let (begun, hash, again) = known.map_or(("", "", ""), |k| (&k.started_at, &k.sha256, &k.rerun));
            let gap = known.and_then(|k| k.gap.as_deref()).unwrap_or_default();
            let hash = if hash.is_empty() { format!("not available {gap}") } else { hash.to_owned() };
            let copied = known.filter(|k| p.has_runs && k.dir.is_some()).map(|k| &k.copied_as);
            let place = copied.map_or_else(
                || escape(run),
                |dir| format!("<a href=\"runs/{}/summary.json\">{}</a>", escape(dir), escape(run)),
            );
            let _ = write!(
                part,
                "<tr><th scope=\"row\">{place}</th><td>{}</td><td>{}</td><td class=\"hash\">{}</td><td class=\"long\"><code>{}</code></td></tr>",
                escape(begun),
                escape(counts.trim_end()),
                escape(&hash),
                escape(again)
            );
        }
        part += "</tbody></table></div></section>";
        let is_full = out.last().is_none_or(|l| l.body.len() + part.len() > MOST_OF_RUNS);
        if is_full {
            out.push(RunPage {
                name: format!("runs-{}.html", out.len() + 1),
                rows: Vec::new(),
                body: top.to_owned(),
            });
        }
        let last = out.last_mut().expect("one was just put there");
        last.rows.push(i);
        last.body += &part;
    }
    let names: Vec<String> = out.iter().map(|r| r.name.clone()).collect();
    if names.len() > 1 {
        let links: Vec<String> =
            names.iter().enumerate().map(|(i, n)| format!("<a href=\"{n}\">{}</a>", i + 1)).collect();
        out.iter_mut().for_each(|r| {
            let _ = write!(r.body, "<p>Pages: {}</p>", links.join(" "));
        });
    }
    out
}

fn method(p: &Publication, runs: Option<&str>) -> String {
    let mut out = String::from("<section><h2 id=\"method\">Method</h2><dl class=\"facts\">");
    for (name, what) in &p.method {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(what));
    }
    out += "</dl></section><section><h2 id=\"again\">Data and repetition</h2>";
    if !p.commands.is_empty() {
        out += "<p>Measure it again elsewhere, from this folder:</p>";
    }
    for c in &p.commands {
        let _ = write!(out, "<pre><code>{}</code></pre>", escape(c));
    }
    out += "<ul>";
    for (path, _) in p.sources.iter().take(MOST_SOURCES) {
        let _ = write!(out, "<li><a href=\"{0}\">{0}</a>: what was measured</li>", escape(path));
    }
    if let Some(more) = p.sources.len().checked_sub(MOST_SOURCES).filter(|n| *n > 0) {
        let _ = write!(out, "<li>{more} more in the same folder</li>");
    }
    out += "<li><a href=\"data/result.json\">data/result.json</a>: all figures</li>";
    out += "<li><a href=\"data/runs.sha256\">data/runs.sha256</a>: hashes of the files of all runs</li>";
    for name in p.charts.sheets().iter().map(|(n, _)| n) {
        let _ = write!(out, "<li><a href=\"charts/{name}.csv\">charts/{name}.csv</a></li>");
    }
    if let Some(name) = runs {
        let _ = write!(out, "<li><a href=\"{name}\">Runs</a>, each with its hash and its command</li>");
    }
    out += "</ul>";
    if !p.redacted.is_empty() {
        let _ = write!(out, "<p class=\"note\">Left out of all files: {}.</p>", escape(&p.redacted));
    }
    let _ = write!(
        out,
        "<p class=\"id\">Published {} with plimsoll {}.</p></section>",
        escape(&p.made_at),
        escape(&p.version)
    );
    out
}
