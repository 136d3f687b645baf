//! Tables of what a line of results is made of: the agents that drove it, and the resources of the servers that were observed meanwhile.
//! They are no lines, and would be summed up with those that they are part of: so each is a table of its own.

use super::export_table::{ExportTable, HeadKind};
use crate::RunReport;
use crate::csv::number;

const TEXT: HeadKind = HeadKind::Text;
const NUMBER: HeadKind = HeadKind::Number;

/// A row for each agent of each run, as the summary names its figures.
pub fn agents_table(runs: &[RunReport]) -> ExportTable {
    let heads = [
        ("run", TEXT),
        ("agent", TEXT),
        ("host", TEXT),
        ("ops_per_s", NUMBER),
        ("share", NUMBER),
        ("bytes_per_s", NUMBER),
        ("busy_fraction", NUMBER),
        ("p50_ns", NUMBER),
        ("p99_ns", NUMBER),
        ("clock_offset_ns", NUMBER),
        ("clock_bound_ns", NUMBER),
        ("cpu_fraction", NUMBER),
        ("nic_fraction", NUMBER),
        ("start_skew_ns", NUMBER),
        ("first_op_s", NUMBER),
        ("last_op_s", NUMBER),
    ];
    let mut table = ExportTable::new(heads.map(|(h, k)| (h.to_owned(), k)).to_vec());
    let known = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    let signed = |n: Option<i64>| n.map_or(String::new(), |n| n.to_string());
    let measured = |x: Option<f64>| x.map_or(String::new(), number);
    for (run, a) in runs.iter().flat_map(|r| r.summary.agents.iter().map(move |a| (&r.summary.id, a))) {
        table.push(vec![
            run.clone(),
            a.agent.clone(),
            a.host.clone(),
            number(a.ops_per_s),
            number(a.share),
            measured(a.bytes_per_s),
            number(a.busy_fraction),
            known(a.p50_ns),
            known(a.p99_ns),
            signed(a.clock_offset_ns),
            known(a.clock_bound_ns),
            measured(a.cpu_fraction),
            measured(a.nic_fraction),
            signed(a.start_skew_ns),
            measured(a.first_op_s),
            measured(a.last_op_s),
        ]);
    }
    table
}

/// A row for each resource of the observed servers in each measured stage; then one for each that was not observed, which says so.
pub fn servers_table(runs: &[RunReport]) -> ExportTable {
    let heads = [
        ("run", TEXT),
        ("stage", NUMBER),
        ("resource", TEXT),
        ("host", TEXT),
        ("device", TEXT),
        ("reached", NUMBER),
        ("ceiling", NUMBER),
        ("unit", TEXT),
        ("share", NUMBER),
        ("time_above", NUMBER),
        ("threshold", NUMBER),
        ("waited_for", HeadKind::Flag),
        ("verdict", TEXT),
        ("ceiling_of", TEXT),
        ("start_s", NUMBER),
        ("end_s", NUMBER),
    ];
    let mut table = ExportTable::new(heads.map(|(h, k)| (h.to_owned(), k)).to_vec());
    let known = |x: Option<f64>| x.map_or(String::new(), number);
    for r in runs {
        let Some(servers) = &r.summary.servers else { continue };
        for (w, u) in servers.windows.iter().flat_map(|w| w.resources.iter().map(move |u| (w, u))) {
            table.push(vec![
                r.summary.id.clone(),
                (w.stage + 1).to_string(),
                u.resource.clone(),
                u.host.clone(),
                u.device.clone(),
                number(u.reached),
                known(u.ceiling),
                u.unit.clone(),
                known(u.share),
                known(u.time_above),
                number(u.threshold),
                u.waited_for.map_or(String::new(), |w| w.to_string()),
                u.verdict.clone(),
                u.ceiling_of.clone(),
                number(w.start_s),
                number(w.end_s),
            ]);
        }
        for what in &servers.not_observed {
            let mut cells = vec![r.summary.id.clone(), String::new(), what.clone()];
            cells.resize(heads.len(), String::new());
            cells[12] = "not observed".into();
            table.push(cells);
        }
    }
    table
}
