//! CSV for a spreadsheet: what a cell begins with must not make it a formula.

use plimsoll_campaign::{CampaignResult, CampaignRow};
use plimsoll_model::Estimate;
use plimsoll_report::table::Table;

/// Of a table as it is shown.
pub fn of_table(table: &Table) -> String {
    let heads = line(table.columns.iter().map(|(h, _)| h.as_str()));
    let rows: Vec<String> = table.rows.iter().map(|r| line(r.iter().map(String::as_str))).collect();
    heads + &rows.concat()
}

/// Of the results, with plain numbers: values and the ends of their intervals apart, in base units.
pub fn of_results(result: &CampaignResult) -> String {
    let heads = [
        "subject",
        "labels",
        "workload",
        "op",
        "line",
        "size_bytes",
        "ops_per_s",
        "ops_per_s_low",
        "ops_per_s_high",
        "bytes_per_s",
        "bytes_per_s_low",
        "bytes_per_s_high",
        "interval_of",
        "promised_ops_per_s",
        "promised_bytes_per_s",
        "p50_ns",
        "p99_ns",
        "refused_fraction",
        "refused_ops",
        "bound",
        "valid_runs",
        "void_runs",
        "void_codes",
        "runs_to_go",
        "runs",
    ];
    let rows: Vec<String> = result.rows.iter().map(|r| line(cells(r).iter().map(String::as_str))).collect();
    line(heads.into_iter()) + &rows.concat()
}

fn cells(r: &CampaignRow) -> Vec<String> {
    let three = |e: Option<Estimate>| match e {
        Some(e) => [e.value, e.low, e.high].map(number),
        None => Default::default(),
    };
    let axes = r.axes.iter().filter(|(axis, _)| !r.labels.contains_key(axis)).map(|(k, v)| (k, v));
    let labels: Vec<String> = r.labels.iter().chain(axes).map(|(k, v)| format!("{k}={v}")).collect();
    let mut out = vec![
        r.subject.clone(),
        labels.join("; "),
        r.workload.clone(),
        r.line_name().to_owned(),
        r.line.clone(),
        if r.size_bytes > 0 { r.size_bytes.to_string() } else { String::new() },
    ];
    out.extend(three(r.ops_per_s));
    out.extend(three(r.bytes_per_s));
    out.push(crate::tables::interval_of(r.interval_of).to_owned());
    out.push(r.promised.ops_per_s.map(|p| number(p.0)).unwrap_or_default());
    out.push(r.promised.bytes_per_s.map(|p| number(p.0)).unwrap_or_default());
    out.extend([r.p50_ns, r.p99_ns].map(|n| n.map(|n| n.to_string()).unwrap_or_default()));
    out.push(number(r.refused));
    out.push(r.refused_ops.to_string());
    out.push(r.bound.clone().unwrap_or_default());
    out.push(r.runs.len().to_string());
    out.push(r.void.len().to_string());
    out.push(r.codes().join(" "));
    out.push(r.to_go.to_string());
    let void = r.void.iter().map(|v| v.run.as_str());
    out.push(r.runs.iter().map(String::as_str).chain(void).collect::<Vec<_>>().join(" "));
    out
}

/// Shortest form that is the same number again; an end that is not bounded is empty.
pub fn number(x: f64) -> String {
    if x.is_finite() && x.abs() < 1e300 { x.to_string() } else { String::new() }
}

/// Of CSV, quoted where it has to be.
pub fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(cell).collect();
    cells.join(",") + "\r\n"
}

fn cell(text: &str) -> String {
    let text = plimsoll_model::text::clean(text);
    // What a spreadsheet would calculate is text: the apostrophe says so to it. A negative figure is one.
    let figure = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | ' ' | '%' | '±' | 'e'))
    };
    let signed = text.strip_prefix(['-', '+']);
    let is_formula = match signed {
        Some(rest) => !figure(
            &rest
                .replace("e-", "e")
                .replace(" (", " ")
                .replace(" to -", " ")
                .replace(" to ", " ")
                .replace(") ", " "),
        ),
        None => text.starts_with(['=', '@', '\t', '\r', '|']),
    };
    let text = if is_formula { format!("'{text}") } else { text.into_owned() };
    if text.contains([',', '"', '\n', '\r', '\'', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_figures_stay_figures() {
        for evil in ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "-1|x"] {
            let out = cell(evil);
            assert!(out.trim_start_matches('"').starts_with(['\'', ' ']), "{evil}: {out}");
        }
        for figure in ["-10.3 %", "+3.1 ± 0.2 %", "-1", "1,004 ± 6", "-3e-7"] {
            assert!(!cell(figure).contains('\''), "{figure}");
        }
        assert_eq!(cell("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(cell("two\nlines"), "two\\nlines");
    }
}
