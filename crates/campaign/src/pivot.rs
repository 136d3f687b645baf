//! Results by an axis: a row for all that is the same but for it, a column for each of its values.

use crate::result::{CampaignResult, CampaignRow};
use crate::schedule::TIME_AXIS;

/// More columns are read by nobody.
const MOST_VALUES: usize = 24;

/// One axis of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisPivot<'a> {
    /// The axis.
    pub by: String,
    /// Its values, as the file has them.
    pub values: Vec<String>,
    /// What they have in common, and what each has; `None`: there is no such cell.
    pub rows: Vec<PivotRow<'a>>,
}

/// Of [`AxisPivot`].
#[derive(Debug, Clone, PartialEq)]
pub struct PivotRow<'a> {
    /// Without the value on the axis.
    pub subject: String,
    /// The same.
    pub workload: String,
    /// Of the runs.
    pub line: String,
    /// One for each value.
    pub cells: Vec<Option<&'a CampaignRow>>,
}

/// Axes on which some rows differ, in the order of the file.
pub fn axes(result: &CampaignResult) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    // The time of day comes last: only its own rows have it.
    for (axis, _) in result.rows.iter().chain(&result.by_time).flat_map(|r| &r.axes) {
        if !out.contains(axis) {
            out.push(axis.clone());
        }
    }
    out
}

/// By one of its axes; `None`: no two rows differ in it alone.
pub fn pivot<'a>(result: &'a CampaignResult, by: &str) -> Option<AxisPivot<'a>> {
    let mut out = AxisPivot { by: by.to_owned(), values: Vec::new(), rows: Vec::new() };
    let mut keys = Vec::new();
    let rows = if by == TIME_AXIS { &result.by_time } else { &result.rows };
    for row in rows {
        let Some((_, value)) = row.axes.iter().find(|(axis, _)| axis == by) else { continue };
        let at = out.values.iter().position(|v| v == value).unwrap_or_else(|| {
            out.values.push(value.clone());
            out.values.len() - 1
        });
        let rest: Vec<_> = row.axes.iter().filter(|(axis, _)| axis != by).cloned().collect();
        let (subject, workload) = (without(&row.subject, by, value), without(&row.workload, by, value));
        let key = (rest, line_of(row), subject, workload);
        let n = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            let (_, line, subject, workload) = key.clone();
            out.rows.push(PivotRow { subject, workload, line, cells: Vec::new() });
            keys.push(key);
            keys.len() - 1
        });
        let cells = &mut out.rows[n].cells;
        cells.resize(cells.len().max(at + 1), None);
        cells[at] = Some(row);
    }
    out.rows.iter_mut().for_each(|r| r.cells.resize(out.values.len(), None));
    let differs = out.rows.iter().any(|r| r.cells.iter().flatten().count() > 1);
    (differs && out.values.len() <= MOST_VALUES).then_some(out)
}

/// Reads are reads, alone and in a mix; a line that has a name of its own keeps it.
fn line_of(row: &CampaignRow) -> String {
    let is_plain = row.line == format!("{0}/{0}", row.op) || row.line == format!("mixed/{}", row.op);
    if is_plain { row.op.clone() } else { row.line.clone() }
}

/// A name without the value that stands in it.
fn without(name: &str, axis: &str, value: &str) -> String {
    let shown = crate::axes::shown(axis, value);
    let shown: &str = match axis {
        "concurrency" => &format!("x{value}"),
        "threads" => &crate::cells::threads_text(value),
        _ => &shown,
    };
    let words: Vec<&str> = name.split(&format!(" {shown}")).collect();
    // Where it stands more than once, or not at all, the name stays as it is: it is the axes that tell rows apart.
    if words.len() == 2 { words.concat() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::expand;
    use crate::file::CampaignFile;
    use crate::result::result;
    use crate::state::CampaignState;

    #[test]
    fn rows_that_differ_in_one_axis_stand_side_by_side() {
        let text = r#"
version = 1
name = "t"
[[subject]]
name = "cluster"
target = { kind = "null" }
[[subject.axis]]
name = "tls"
values = [{ name = "off" }, { name = "on" }]
[[workload]]
name = "GET"
mix = { get = 1 }
sizes = ["4KiB", "64KiB"]
concurrency = [1, 16]
[[workload]]
name = "PUT"
mix = { put = 1 }
"#;
        let file = CampaignFile::from_toml(text).unwrap();
        let cells = expand(&file).unwrap();
        let all = result(&file, &cells, &CampaignState::new(&file, &cells));
        assert_eq!(axes(&all), ["tls", "size", "concurrency"]);
        let tls = pivot(&all, "tls").unwrap();
        assert_eq!(tls.values, ["off", "on"]);
        let heads: Vec<(&str, &str)> = tls.rows.iter().map(|r| (&*r.subject, &*r.workload)).collect();
        assert_eq!(heads.len(), 5);
        assert_eq!((heads[0], heads[4]), (("cluster", "GET 4KiB x1"), ("cluster", "PUT")));
        assert!(tls.rows.iter().all(|r| r.cells.iter().all(Option::is_some)));
        let depth = pivot(&all, "concurrency").unwrap();
        assert_eq!(depth.rows.len(), 4, "PUT has one concurrency");
        assert_eq!((&*depth.rows[1].subject, &*depth.rows[1].workload), ("cluster tls off", "GET 64KiB"));
        assert_eq!(depth.rows[1].cells[1].unwrap().workload, "GET 64KiB x16");
        assert_eq!(pivot(&all, "nothing"), None);
    }
}
