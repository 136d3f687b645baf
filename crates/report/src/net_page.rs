//! A network test as one self-contained page: what it says, pairs and meshes as heat maps, the tables, and rates over time. It needs no
//! script.

use plimsoll_model::net::{NetLane, NetRecord, NetStage};
use plimsoll_model::text::{clean, printable};

use crate::table::escape;
use crate::{net, net_chart};

/// A pair below this part of the median is marked.
const SLOW: f64 = 0.8;

/// Cells are coloured by their part of the best pair; text stays readable at either end, and slow pairs are told in words, too.
const STYLE: &str = "\
:root{color-scheme:light dark;--empty:#fff;--full:#8ecae6;--ink:#111;--rule:#ccc;--slow:#b00020}\
@media(prefers-color-scheme:dark){:root{--empty:#16181c;--full:#1f5f80;--ink:#eee;--rule:#444;--slow:#ff8a80}}\
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;background:var(--empty);color:var(--ink)}\
table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}caption{text-align:left;font-weight:600}\
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--rule);text-align:left;white-space:nowrap}\
.heat td{text-align:right;font-variant-numeric:tabular-nums;border:1px solid var(--rule)}\
.heat td{-webkit-print-color-adjust:exact;print-color-adjust:exact}\
.heat td.slow{outline:2px solid var(--slow);outline-offset:-2px;font-weight:600}\
@media print{body{max-width:none;margin:0}table{display:table}}";

/// The page.
pub fn net_html(record: &NetRecord) -> String {
    let title = format!("Network test {}: {}", record.id, net::status(record));
    let said: String = record.sentences.iter().map(|s| format!("<p>{}</p>", text(s))).collect();
    let found = |f: &plimsoll_model::Finding| format!("<li>{} {}</li>", text(&f.code), text(&f.text));
    let findings: String = record.findings.iter().map(found).collect();
    let findings =
        if findings.is_empty() { findings } else { format!("<h2>Findings</h2><ul>{findings}</ul>") };
    let tables: String = net::tables(record).iter().map(crate::table::Table::html).collect();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta name=\"generator\" content=\"plimsoll {}\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}{}</style>\n</head>\n\
         <body><main><h1>{}</h1>{said}{}{findings}{}{}<p>{}</p></main></body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        text(&title),
        net_chart::STYLE,
        text(&title),
        heat_maps(record),
        tables,
        net_chart::charts(record),
        text(&net::how(record)),
    );
    printable(&page, false).into_owned()
}

/// Cleaned, and no markup.
pub fn text(raw: &str) -> String {
    escape(&clean(raw)).to_string()
}

/// Of pairs, and of each stage in which several hosts send to several. Nothing where there are two hosts only.
fn heat_maps(record: &NetRecord) -> String {
    let pairs: Vec<&NetLane> =
        record.stages.iter().filter(|s| s.pattern == "pairs").flat_map(|s| &s.lanes).collect();
    let how = format!("one direction, {}", net::pairs_at_once(record));
    let meshes = record.stages.iter().filter(|s| matches!(s.pattern.as_str(), "all-to-all" | "east-west"));
    let mesh = |s: &NetStage| {
        heat_map(
            record,
            &s.lanes.iter().collect::<Vec<_>>(),
            &format!("{}, all lanes at the same time", s.title),
        )
    };
    heat_map(record, &pairs, &how) + &meshes.map(mesh).collect::<String>()
}

/// What each lane carried: senders are rows. `how`: beside what else.
fn heat_map(record: &NetRecord, lanes: &[&NetLane], how: &str) -> String {
    let rate = |from: usize, to: usize| {
        let lane = lanes.iter().find(|l| (l.from, l.to) == (from, to))?;
        Some(lane.bytes_per_s?.value * 8e-9)
    };
    // Of the hosts those that took part.
    let hosts: Vec<usize> =
        (0..record.hosts.len()).filter(|h| lanes.iter().any(|l| l.from == *h || l.to == *h)).collect();
    let mut all: Vec<f64> = hosts.iter().flat_map(|a| hosts.iter().filter_map(|b| rate(*a, *b))).collect();
    all.sort_by(f64::total_cmp);
    let (Some(best), true) = (all.last().copied(), hosts.len() > 2) else { return String::new() };
    let median = all[all.len() / 2];
    let name = |h: usize| text(record.name_of(h));
    let heads: String = hosts.iter().map(|h| format!("<th scope=\"col\">{}</th>", name(*h))).collect();
    let cell = |from: usize, to: usize| match rate(from, to) {
        Some(x) => {
            let part = 100.0 * x / best.max(f64::MIN_POSITIVE);
            let (class, word) = if x < SLOW * median { (" class=\"slow\"", " slow") } else { ("", "") };
            format!(
                "<td{class} style=\"background:color-mix(in srgb,var(--full) {part:.0}%,var(--empty))\" title=\"{} to {}\">{x:.3}{word}</td>",
                name(from),
                name(to)
            )
        }
        None => format!("<td>{}</td>", if from == to { "" } else { "?" }),
    };
    let row = |from: &usize| {
        let cells: String = hosts.iter().map(|to| cell(*from, *to)).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", name(*from))
    };
    format!(
        "<table class=\"heat\"><caption>Gbit/s of payload from the row's host to the column's, {}; slow: below \
         80 % of the median</caption><thead><tr><td></td>{heads}</tr></thead><tbody>{}</tbody></table>",
        text(how),
        hosts.iter().map(row).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Estimate;
    use plimsoll_model::net::{NetAsked, NetHost};

    use super::*;

    fn record() -> NetRecord {
        let lane = |from: usize, to: usize| NetLane {
            from,
            to,
            bytes_per_s: Some(Estimate::symmetric(if (from, to) == (2, 0) { 50e6 } else { 125e6 }, 1e6, 9.0)),
            ..NetLane::default()
        };
        let lanes = (0..9).filter(|i| i / 3 != i % 3).map(|i| lane(i / 3, i % 3)).collect();
        let host = |name: &str| NetHost { name: name.into(), ..NetHost::default() };
        NetRecord {
            format: plimsoll_model::net::NET_FORMAT.into(),
            id: "net-1".into(),
            plimsoll_version: "1".into(),
            commit: String::new(),
            made_at: "2026-11-23T00:00:00Z".into(),
            asked: NetAsked::default(),
            hosts: vec![host("a"), host("<b>"), host("c\u{1b}[31m")],
            streams_tried: Vec::new(),
            stages: vec![NetStage {
                pattern: "pairs".into(),
                title: "all".into(),
                bytes_per_s: None,
                why: None,
                lanes,
                ..NetStage::default()
            }],
            findings: Vec::new(),
            sentences: vec!["It <carries>.".into()],
            valid: true,
            interrupted: false,
        }
    }

    #[test]
    fn pairs_are_a_heat_map_slow_ones_are_told_and_no_name_is_markup() {
        let page = net_html(&record());
        assert_eq!(page.matches("color-mix(in srgb").count(), 6);
        assert!(page.contains("to a\">0.400 slow</td>"), "{page}");
        assert_eq!(page.matches(" slow</td>").count(), 1);
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>") && !page.contains('\u{1b}'));
        assert!(page.contains("It &lt;carries&gt;.") && page.contains("content=\"plimsoll "));
    }

    #[test]
    fn pairs_at_the_same_time_are_not_told_as_alone() {
        let mut r = record();
        let said = |r: &NetRecord| (net_html(r), crate::net_terminal(r, crate::Style::PLAIN));
        let (page, shown) = said(&r);
        assert!(page.contains("one direction, 6 disjoint pairs at the same time;"), "{page}");
        assert!(shown.contains("Pairs, 6 disjoint pairs at the same time, one direction: Gbit/s"), "{shown}");
        let lanes = std::mem::take(&mut r.stages[0].lanes);
        let stage = r.stages[0].clone();
        r.stages = lanes.into_iter().map(|l| NetStage { lanes: vec![l], ..stage.clone() }).collect();
        let (page, shown) = said(&r);
        assert!(page.contains("one direction, one pair at a time;"), "{page}");
        assert!(shown.contains("Pairs, one pair at a time, one direction: Gbit/s"), "{shown}");
    }

    #[test]
    fn a_mesh_has_a_heat_map_of_its_own_with_the_hosts_that_took_part() {
        let mut r = record();
        r.stages[0].pattern = "all-to-all".into();
        r.stages[0].title = "each to <each>".into();
        r.hosts.push(NetHost { name: "idle".into(), ..NetHost::default() });
        let page = net_html(&r);
        assert!(
            page.contains("to the column's, each to &lt;each&gt;, all lanes at the same time; slow"),
            "{page}"
        );
        assert_eq!(
            (page.matches("class=\"heat\"").count(), page.matches("color-mix(in srgb").count()),
            (1, 6)
        );
        assert!(!page.contains("<th scope=\"col\">idle</th></tr></thead><tbody>"), "{page}");
        r.stages[0].pattern = "in".into();
        assert!(!net_html(&r).contains("class=\"heat\""), "all to one is no mesh");
    }

    #[test]
    fn the_table_of_lanes_says_which_they_are() {
        let mut r = record();
        let shown = |r: &NetRecord| net_html(r) + &crate::net_markdown(r);
        assert!(!shown(&r).contains("that carried least"), "all of them");
        let again = NetStage { pattern: "all-to-all".into(), ..r.stages[0].clone() };
        r.stages.extend([again.clone(), again]);
        assert!(
            shown(&r).contains("Lanes of pairs") && !shown(&r).contains("that carried least"),
            "6 of pairs, of 18"
        );
        r.stages[0].pattern = "all-to-all".into();
        assert!(shown(&r).contains("The 12 of 18 lanes that carried least"), "{}", shown(&r));
        r.stages.iter_mut().for_each(|s| s.pattern = "pairs".into());
        assert!(shown(&r).contains("The 12 of 18 lanes of pairs that carried least"));
    }

    #[test]
    fn the_terminal_has_the_same() {
        let text = crate::net_terminal(&record(), crate::Style::PLAIN);
        assert!(
            text.contains("to <b>")
                && text.contains("0.400")
                && text.lines().all(|l| l.chars().count() <= 100),
            "{text}"
        );
        assert!(crate::net_markdown(&record()).contains("| a |"));
        let mut two = record();
        two.hosts.truncate(2);
        assert!(!net_html(&two).contains("class=\"heat\""));
    }
}
