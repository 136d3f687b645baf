//! What observed servers did, cell by cell: what limited them, how full each kind of resource was, and what their daemons took.

use std::collections::BTreeSet;

use plimsoll_campaign::{CampaignResult, CampaignRow, OverRuns, ServedDaemon, ServedRow};
use plimsoll_model::units::significant;
use plimsoll_report::number;
use plimsoll_report::table::Table;

use crate::sheet;
use crate::tables::{SiteTable, text};

/// As `tables/servers.csv` is called.
pub(crate) const SLUG: &str = "servers";

/// For a publication.
pub(crate) fn served(result: &CampaignResult) -> SiteTable {
    let (table, of) = rows(result);
    let mut out = SiteTable::new(SLUG, table);
    out.of = of;
    out.notes = notes(result);
    out
}

/// The same for a terminal. `None`: in no valid run were servers observed.
pub fn servers_table(result: &CampaignResult) -> Option<Table> {
    let (table, _) = rows(result);
    (!table.rows.is_empty()).then_some(table)
}

/// What is to be known of it.
pub fn notes(result: &CampaignResult) -> Vec<String> {
    let rows: Vec<&ServedRow> = result.rows.iter().filter_map(|r| r.servers.as_ref()).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut out = vec![
        "Servers: means over valid runs (the least to the most of them). Of each kind of resource the fullest one, as a part of its ceiling; cores and \
         memory are of one daemon, CPU seconds of all. \"none seen\": nothing that was observed was at its ceiling."
            .to_owned(),
    ];
    let unseen: BTreeSet<&str> = rows.iter().flat_map(|r| &r.not_observed).map(String::as_str).collect();
    if !unseen.is_empty() {
        let names: Vec<String> = unseen.into_iter().map(text).collect();
        out.push(format!(
            "Not observed, and so not excluded as a limit, in some runs or all: {}.",
            names.join(", ")
        ));
    }
    out
}

fn rows(result: &CampaignResult) -> (Table, Vec<Option<usize>>) {
    let kinds: BTreeSet<&String> =
        result.rows.iter().filter_map(|r| r.servers.as_ref()).flat_map(|s| s.shares.keys()).collect();
    let heads: Vec<String> = kinds.iter().map(|k| format!(">{}", text(k))).collect();
    let mut columns = vec!["subject", "workload", "op", "limited by"];
    columns.extend(heads.iter().map(String::as_str));
    columns.extend([
        "daemon",
        ">how many",
        ">cores each",
        ">CPU s/GiB",
        ">CPU ms/op",
        ">most memory, MiB",
        ">runs",
    ]);
    let mut table = Table::new("Servers", 3, &columns);
    let mut of = Vec::new();
    for (i, r) in result.rows.iter().enumerate() {
        let Some(s) = &r.servers else { continue };
        // A row for each kind of daemon; one without, where only hosts were observed.
        let daemons: Vec<Option<&ServedDaemon>> =
            if s.daemons.is_empty() { vec![None] } else { s.daemons.iter().map(Some).collect() };
        for d in daemons {
            let mut cells =
                vec![r.subject.clone(), r.workload.clone(), r.line_name().to_owned(), s.limit_words()];
            cells.extend(kinds.iter().map(|k| s.shares.get(*k).map(share).unwrap_or_default()));
            cells.extend(d.map(of_daemon).unwrap_or_default());
            cells.push(s.runs.to_string());
            table.push(cells.iter().map(|c| text(c)).collect());
            of.push(Some(i));
        }
    }
    (table.without_empty_columns(), of)
}

fn of_daemon(d: &ServedDaemon) -> [String; 6] {
    let known = |v: Option<OverRuns>, factor: f64| v.map(|v| amount(v.scaled(factor))).unwrap_or_default();
    [
        d.kind.clone(),
        d.daemons.to_string(),
        known(d.cores_each, 1.0),
        known(d.cpu_s_per_gib, 1.0),
        known(d.cpu_s_per_op, 1000.0),
        known(d.rss_bytes, 1.0 / number::MIB),
    ]
}

fn amount(v: OverRuns) -> String {
    spread(v, |x| significant(x, 3))
}

fn share(v: &OverRuns) -> String {
    spread(*v, number::percent)
}

/// The mean, and how far runs lie apart, where there are several.
fn spread(v: OverRuns, words: impl Fn(f64) -> String) -> String {
    let (mean, least, most) = (words(v.mean), words(v.least), words(v.most));
    if v.runs < 2 || (least == mean && most == mean) { mean } else { format!("{mean} ({least} to {most})") }
}

/// With plain numbers, a line for each figure: in base units, the mean with the least and the most of the runs.
pub(crate) fn of_servers(result: &CampaignResult) -> String {
    let heads = [
        "subject",
        "workload",
        "line",
        "limited_by",
        "of",
        "figure",
        "unit",
        "mean",
        "least",
        "most",
        "runs",
    ];
    let mut out = sheet::line(heads.into_iter());
    for r in &result.rows {
        let Some(s) = &r.servers else { continue };
        for (kind, v) in &s.shares {
            out += &figure(r, s, kind, ("share_of_ceiling", "fraction"), v);
        }
        for d in &s.daemons {
            let all = [
                (("cores_each", "cores"), d.cores_each),
                (("cpu_s_per_gib", "s/GiB"), d.cpu_s_per_gib),
                (("cpu_s_per_op", "s"), d.cpu_s_per_op),
                (("most_memory", "B"), d.rss_bytes),
            ];
            for (name, v) in all {
                out += &v.map(|v| figure(r, s, &d.kind, name, &v)).unwrap_or_default();
            }
        }
    }
    out
}

fn figure(r: &CampaignRow, s: &ServedRow, of: &str, (name, unit): (&str, &str), v: &OverRuns) -> String {
    let limit = s.limit_words();
    let numbers = [v.mean, v.least, v.most].map(sheet::number);
    let runs = v.runs.to_string();
    let cells = [r.subject.as_str(), &r.workload, &r.line, &limit, of, name, unit];
    sheet::line(cells.into_iter().chain(numbers.iter().map(String::as_str)).chain([runs.as_str()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result() -> CampaignResult {
        let over = |mean: f64, least: f64, most: f64| json!({ "mean": mean, "least": least, "most": most, "runs": 3 });
        let row = |subject: &str, servers: serde_json::Value| {
            json!({
                "subject": subject, "labels": {}, "workload": "PUT 4MiB", "line": "PUT/put", "op": "put", "size_bytes": 4194304,
                "promised": {}, "ops_per_s": null, "ops_runs": 0, "bytes_runs": 0, "tools": [], "refused": 0.0, "runs": [],
                "void": [], "to_go": 0, "instances": 1, "servers": servers
            })
        };
        let seen = json!({
            "limits": [["network in", 2], ["none seen", 1]], "runs": 3,
            "shares": { "network in": over(0.9, 0.8, 0.95), "cpu": over(0.2, 0.2, 0.2) },
            "daemons": [{ "kind": "=rgw", "daemons": 4, "cores_each": over(0.25, 0.2, 0.3), "cpu_s_per_gib": over(20.0, 18.0, 22.0),
                          "cpu_s_per_op": null, "rss_bytes": over(209715200.0, 104857600.0, 314572800.0) }],
            "not_observed": ["the servers' drives"]
        });
        serde_json::from_value(json!({
            "schema": "plimsoll.campaign/1", "name": "t", "question": null, "until_wide": null,
            "rows": [row("bare", json!(null)), row("seen", seen)], "to_go": 0, "failed": {}
        }))
        .unwrap()
    }

    #[test]
    fn servers_have_a_table_with_what_limited_each_cell() {
        let all = served(&result());
        assert_eq!((all.table.rows.len(), &all.of[..]), (1, &[Some(1)][..]));
        let row = all.table.rows[0].join(" | ");
        for part in [
            "seen | PUT 4MiB | put",
            "network in (2 of 3); none seen (1 of 3)",
            "90 % (80 % to 95 %)",
            "20 %",
            "0.250 (0.200 to 0.300)",
            "20.0 (18.0 to 22.0)",
            "200 (100 to 300)",
        ] {
            assert!(row.contains(part), "{part}: {row}");
        }
        // What no run has is no column; what was not observed is said.
        assert!(!all.table.columns.iter().any(|(h, _)| h.contains("CPU ms/op")), "{:?}", all.table.columns);
        assert!(all.notes.iter().any(|n| n.contains("the servers' drives")), "{:?}", all.notes);
        let bare = CampaignResult { rows: result().rows[..1].to_vec(), ..result() };
        assert!(servers_table(&bare).is_none() && notes(&bare).is_empty());
    }

    #[test]
    fn its_sheet_has_plain_numbers_and_no_formula() {
        let sheet = of_servers(&result());
        assert!(sheet.contains("share_of_ceiling,fraction,0.9,0.8,0.95,3"), "{sheet}");
        assert!(sheet.contains("most_memory,B,209715200,104857600,314572800,3"), "{sheet}");
        assert!(!sheet.contains(",=rgw"), "{sheet}");
        assert_eq!(sheet.lines().count(), 1 + 2 + 3, "{sheet}");
    }
}
