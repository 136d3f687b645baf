//! Several runs side by side: what is compared, and one sentence on which does the most at what.
//!
//! The sentence rests on intervals that lie apart, and on nothing finer: whether a difference is proved is for `plimsoll compare` to say.

use std::collections::BTreeSet;

use plimsoll_model::Estimate;
use plimsoll_model::count::counted;
use plimsoll_stats::words;
use serde::{Deserialize, Serialize};

use crate::glance::{GlanceFact, listed};
use crate::group::{Group, GroupKey, NO_LABEL, Part};
use crate::number;
use crate::run::RunReport;
use crate::tables;

/// What a page of several runs begins with, and how it sets them side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// What is compared, over what.
    pub title: String,
    /// `VALID`, `PARTLY VALID`, `INVALID`: of the lines of all runs.
    pub mark: String,
    /// Which does the most at what, by how much; or that intervals overlap.
    pub sentence: String,
    /// The most of each, and what the intervals are of.
    pub facts: Vec<GlanceFact>,
    /// Index of the key that is compared.
    pub compared: usize,
    /// Its values, in order: numbers as numbers.
    pub values: Vec<String>,
}

/// Names that a title can carry.
const MOST_NAMED: usize = 4;

/// Which of the keys tells apart what is compared: a label before the run itself, before all else; of two labels the one
/// that is no number.
fn compared(runs: &[RunReport], by: &[GroupKey]) -> usize {
    let differs = |k: &GroupKey| values(runs, k).len() > 1;
    let is_named =
        |k: &GroupKey| values(runs, k).iter().all(|v| !v.starts_with(|c: char| c.is_ascii_digit()));
    let rank = |k: &GroupKey| match k {
        GroupKey::Label(_) if differs(k) && is_named(k) => 0,
        GroupKey::Label(_) if differs(k) => 1,
        GroupKey::Run => 2,
        GroupKey::Workload | GroupKey::Concurrency if differs(k) => 3,
        GroupKey::Op if differs(k) => 4,
        _ => 5,
    };
    (0..by.len()).min_by_key(|&i| (rank(&by[i]), by.len() - i)).unwrap_or(0)
}

fn values(runs: &[RunReport], key: &GroupKey) -> Vec<String> {
    let sizes = runs.iter().flat_map(|r| &r.summary.workloads).map(|w| w.size_bytes);
    let decimal = number::is_decimal(sizes);
    let all: BTreeSet<Part> =
        runs.iter().flat_map(|r| r.summary.workloads.iter().map(|w| key.of(r, w, decimal))).collect();
    all.into_iter().map(|p| p.text).collect()
}

/// The values of a label as a title names them: of runs without it that they have none, last.
fn named(mut values: Vec<String>, name: &str) -> Vec<String> {
    if let Some(i) = values.iter().position(|v| v == NO_LABEL) {
        values.remove(i);
        values.push(format!("no {name}"));
    }
    values
}

/// What is compared, over what: `performance and standard: GET and PUT at 5 sizes`.
pub fn title(runs: &[RunReport], by: &[GroupKey]) -> String {
    let by = &tables::keys(by, runs)[..];
    let lines = || runs.iter().flat_map(|r| &r.summary.workloads);
    if lines().next().is_none() {
        return format!("{} in which nothing was measured", counted(runs.len(), "run"));
    }
    let ops = listed(lines().map(|w| w.op.as_str()));
    let sizes: BTreeSet<u64> = lines().filter(|w| tables::moves_bytes(w)).map(|w| w.size_bytes).collect();
    let of = if sizes.len() > 1 { format!("{ops} at {} sizes", sizes.len()) } else { ops };
    match by.get(compared(runs, by)) {
        Some(key @ GroupKey::Label(name)) => match &named(values(runs, key), name)[..] {
            [] | [_] => format!("{}: {of}", counted(runs.len(), "run")),
            [most @ .., last] if most.len() < MOST_NAMED => {
                let numbers = [most, std::slice::from_ref(last)].concat();
                let bare = numbers.iter().all(|v| v.starts_with(|c: char| c.is_ascii_digit()));
                let what = if bare { format!("{name} ") } else { String::new() };
                format!("{what}{} and {last}: {of}", most.join(", "))
            }
            all => format!("{} values of {name}: {of}", all.len()),
        },
        _ => format!("{}: {of}", counted(runs.len(), "run")),
    }
}

impl SideBySide {
    /// `groups` are of `runs` by `by`.
    pub fn of(runs: &[RunReport], by: &[GroupKey], groups: &[Group]) -> Self {
        let compared = compared(runs, by);
        let values = by.get(compared).map_or_else(Vec::new, |k| values(runs, k));
        let lines: usize = groups.iter().map(|g| g.lines).sum();
        let out: usize = groups.iter().map(|g| g.left_out).sum();
        Self {
            title: title(runs, by),
            mark: match (lines, out) {
                (0, _) => "INVALID".into(),
                (_, 0) => "VALID".into(),
                _ => format!("PARTLY VALID: {out} of {} lines left out", lines + out),
            },
            sentence: sentence(by, compared, groups),
            facts: facts(by, compared, &values, groups),
            compared,
            values,
        }
    }
}

/// The value that is compared, the rest of the keys as one name, and the rate.
struct Cell {
    value: String,
    row: String,
    rate: Estimate,
}

/// A bare number says of what it is: `GiB 20`.
fn spoken(key: Option<&GroupKey>, value: &str) -> String {
    match key {
        Some(key) if value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',')) => {
            format!("{} {value}", key.name())
        }
        _ => value.to_owned(),
    }
}

fn cells(by: &[GroupKey], compared: usize, groups: &[Group]) -> Vec<Cell> {
    let of = |g: &Group| {
        let rest = g.keys.iter().enumerate().filter(|(i, _)| *i != compared);
        let row = rest.map(|(i, k)| spoken(by.get(i), k)).collect::<Vec<_>>().join(" ");
        Some(Cell { value: spoken(by.get(compared), g.keys.get(compared)?), row, rate: g.ops_per_s? })
    };
    groups.iter().filter_map(of).collect()
}

/// The best of one row, if its interval lies above the next one's; how many times that one it is.
struct Row<'a> {
    best: &'a Cell,
    next: &'a Cell,
    apart: bool,
}

fn rows<'a>(cells: &'a [Cell]) -> Vec<Row<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for c in cells {
        if !names.contains(&c.row.as_str()) {
            names.push(&c.row);
        }
    }
    let of = |name: &&str| {
        let mut all: Vec<&Cell> = cells.iter().filter(|c| c.row == **name).collect();
        all.sort_by(|a, b| b.rate.value.total_cmp(&a.rate.value));
        let [best, rest @ ..] = &all[..] else { return None };
        let next = rest.first()?;
        // The one whose interval reaches highest need not be the second.
        let reach = rest.iter().map(|c| c.rate.high).fold(f64::NEG_INFINITY, f64::max);
        Some(Row { best, next, apart: best.rate.low > reach })
    };
    names.iter().filter_map(of).collect()
}

fn sentence(by: &[GroupKey], compared: usize, groups: &[Group]) -> String {
    let all = cells(by, compared, groups);
    let rows = rows(&all);
    let rest: Vec<String> =
        by.iter().enumerate().filter(|(i, _)| *i != compared).map(|(_, k)| lower(k)).collect();
    let of = if rest.is_empty() { "line".to_owned() } else { rest.join(" and ") };
    match &rows[..] {
        [] => format!("Nothing can be compared: no two of them have a valid line of the same {of}."),
        [one] if one.apart => format!(
            "{} does the most: {}, {} {}.",
            one.best.value,
            words::ops_rate(&one.best.rate),
            times(&[one.best.rate.value / one.next.rate.value]),
            one.next.value
        ),
        [one] => format!(
            "{} and {} are not told apart: their intervals overlap ({} and {}).",
            one.best.value,
            one.next.value,
            words::ops_rate(&one.best.rate),
            words::ops_rate(&one.next.rate)
        ),
        many => among(many, &of),
    }
}

/// A label keeps the letters that it was given.
fn lower(key: &GroupKey) -> String {
    match key {
        GroupKey::Label(name) => name.clone(),
        other => other.name().to_lowercase(),
    }
}

/// Who leads where, the one that leads most often first.
fn among(rows: &[Row<'_>], of: &str) -> String {
    let mut leaders: Vec<(&str, Vec<f64>)> = Vec::new();
    for r in rows.iter().filter(|r| r.apart) {
        let factor = r.best.rate.value / r.next.rate.value;
        match leaders.iter_mut().find(|(v, _)| *v == r.best.value) {
            Some((_, factors)) => factors.push(factor),
            None => leaders.push((&r.best.value, vec![factor])),
        }
    }
    leaders.sort_by_key(|(_, f)| std::cmp::Reverse(f.len()));
    let n = rows.len();
    let open = n - leaders.iter().map(|(_, f)| f.len()).sum::<usize>();
    let each = |(i, (value, f)): (usize, &(&str, Vec<f64>))| match i {
        0 => format!("{value} does the most at {} of {n} ({of}), {} the next", f.len(), times(f)),
        _ => format!("{value} at {}, {} the next", f.len(), times(f)),
    };
    let mut parts: Vec<String> = leaders.iter().enumerate().map(each).collect();
    match open {
        0 => {}
        _ if leaders.is_empty() => {
            parts.push(format!("None does the most: the best intervals overlap at all {n} ({of})"))
        }
        _ => parts.push(format!("at {open} the best intervals overlap")),
    }
    parts.join("; ") + "."
}

/// `2.9 to 3.4 times`, `4 % to 12 % above`.
fn times(factors: &[f64]) -> String {
    let low = factors.iter().copied().fold(f64::INFINITY, f64::min);
    let high = factors.iter().copied().fold(0.0, f64::max);
    let (one, unit, end): (fn(f64) -> String, &str, &str) = if low < 1.995 {
        (|f| words::about(100.0 * (f - 1.0), 2), " %", " above")
    } else {
        (|f| words::about(f, 2), "", " times")
    };
    match (one(low), one(high)) {
        (a, b) if a == b => format!("{a}{unit}{end}"),
        (a, b) => format!("{a}{unit} to {b}{unit}{end}"),
    }
}

fn facts(by: &[GroupKey], compared: usize, values: &[String], groups: &[Group]) -> Vec<GlanceFact> {
    const MOST_FACTS: usize = 5;
    let all = cells(by, compared, groups);
    let mut out = Vec::new();
    for value in values {
        let value = spoken(by.get(compared), value);
        let of: Vec<&Cell> = all.iter().filter(|c| c.value == value).collect();
        let Some(most) = of.iter().max_by(|a, b| a.rate.value.total_cmp(&b.rate.value)) else {
            out.push(GlanceFact { name: value, text: "no valid line".into() });
            continue;
        };
        let place = if most.row.is_empty() { String::new() } else { format!(" ({})", most.row) };
        let up = if of.len() > 1 { "up to " } else { "" };
        let text = format!("{up}{}{place}", words::ops_rate(&most.rate));
        out.push(GlanceFact { name: value, text });
    }
    if out.len() > MOST_FACTS {
        let more = out.len() - (MOST_FACTS - 1);
        out.truncate(MOST_FACTS - 1);
        let name = by.get(compared).map_or(String::new(), |k| k.name());
        out.push(GlanceFact { name: "more".into(), text: format!("{more} more of {name}, in the table") });
    }
    let text = match groups.iter().map(|g| g.lines).max().unwrap_or(0) {
        0 => return out,
        1 => "95 %, within one run each: how much runs differ is not in them",
        _ => "95 %, over the runs of each; of a single run, within it",
    };
    out.push(GlanceFact { name: "intervals".into(), text: text.into() });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::sweep as summary;

    /// The sweep of each tier, its rates times a factor.
    fn runs(tiers: &[(&str, f64)]) -> Vec<RunReport> {
        let run = |(i, (tier, factor)): (usize, &(&str, f64))| {
            let mut s = summary();
            s.id = format!("run-{i}");
            s.labels.insert("tier".into(), (*tier).into());
            for w in &mut s.workloads {
                w.ops_per_s = w.ops_per_s.map(|e| e.scaled(*factor));
            }
            RunReport::of(s)
        };
        tiers.iter().enumerate().map(run).collect()
    }

    fn side_by_side(runs: &[RunReport], by: &[&str]) -> SideBySide {
        let by: Vec<GroupKey> = by.iter().map(|k| k.parse().unwrap()).collect();
        SideBySide::of(runs, &by, &crate::group::groups(runs, &by))
    }

    #[test]
    fn a_bare_number_says_of_what_it_is() {
        let s = side_by_side(&runs(&[("2", 1.0), ("4", 3.0)]), &["op", "size", "label:tier"]);
        assert_eq!(s.sentence, "tier 4 does the most at 10 of 10 (operation and size), 3.0 times the next.");
        assert!(s.facts.iter().any(|f| f.name == "tier 4"), "{:?}", s.facts);
    }

    #[test]
    fn who_does_the_most_is_said_with_how_much() {
        let s = side_by_side(&runs(&[("slow", 1.0), ("fast", 3.0)]), &["op", "size", "label:tier"]);
        assert_eq!(s.title, "fast and slow: GET and PUT at 5 sizes");
        assert_eq!(s.sentence, "fast does the most at 10 of 10 (operation and size), 3.0 times the next.");
        assert_eq!((s.compared, s.mark.as_str()), (2, "VALID"));
        assert_eq!(s.values, ["fast", "slow"]);
        assert!(s.facts.iter().any(|f| f.name == "intervals" && f.text.contains("within one run")), "{s:?}");
        let s = side_by_side(&runs(&[("slow", 1.0), ("fast", 1.1)]), &["op", "size", "label:tier"]);
        assert!(s.sentence.ends_with("10 % above the next."), "{}", s.sentence);
    }

    #[test]
    fn intervals_that_overlap_make_no_winner() {
        let s = side_by_side(&runs(&[("a", 1.0), ("b", 1.004)]), &["op", "size", "label:tier"]);
        assert_eq!(
            s.sentence,
            "None does the most: the best intervals overlap at all 10 (operation and size)."
        );
        let mut two = runs(&[("a", 1.0), ("b", 1.004)]);
        for r in &mut two {
            r.summary.workloads.truncate(1);
        }
        let s = side_by_side(&two, &["label:tier"]);
        assert!(s.sentence.starts_with("b and a are not told apart: their intervals overlap ("), "{s:?}");
    }

    #[test]
    fn what_is_invalid_wins_nothing_and_is_counted() {
        let mut all = runs(&[("a", 1.0), ("b", 9.0)]);
        all[1].summary.status = plimsoll_model::RunStatus::None;
        let s = side_by_side(&all, &["op", "size", "label:tier"]);
        assert!(s.sentence.starts_with("Nothing can be compared"), "{}", s.sentence);
        assert_eq!(s.mark, "PARTLY VALID: 10 of 20 lines left out");
        assert!(s.facts.iter().any(|f| f.name == "b" && f.text == "no valid line"), "{s:?}");
    }

    #[test]
    fn of_two_labels_the_one_with_names_is_compared_and_numbers_are_in_order() {
        let mut all = runs(&[("aws", 1.0), ("aws", 2.0), ("gcp", 1.0), ("gcp", 4.0)]);
        for (r, gib) in all.iter_mut().zip(["100", "20", "100", "20"]) {
            r.summary.labels.insert("GiB".into(), gib.into());
            r.summary.workloads.truncate(1);
        }
        let by = ["label:tier", "label:GiB"];
        let s = side_by_side(&all, &by);
        assert_eq!((s.compared, s.title.as_str()), (0, "aws and gcp: PUT"));
        assert_eq!(
            s.sentence,
            "gcp does the most at 1 of 2 (GiB), 2.0 times the next; at 1 the best intervals overlap."
        );
        let by: Vec<GroupKey> = by.iter().map(|k| k.parse().unwrap()).collect();
        assert_eq!(values(&all, &by[1]), ["20", "100"]);
    }

    /// A run of a suite beside one that is none: what made them is no title, and of a label that one lacks that is said.
    #[test]
    fn a_title_names_no_label_of_a_command_and_no_none() {
        let mut all = runs(&[("gold", 1.0), ("b", 2.0)]);
        all[0].summary.labels.remove("tier");
        all[1].summary.labels.insert("suite".into(), "drive".into());
        assert_eq!(title(&all, &[]), "b and no tier: GET and PUT at 5 sizes");
        all[1].summary.labels.remove("tier");
        assert_eq!(title(&all, &[]), "2 runs: GET and PUT at 5 sizes");
        assert!(!tables::default_keys(&all).iter().any(|k| matches!(k, GroupKey::Label(_))));
    }

    /// What was asked for is kept, and PUT and GET are never in one row.
    #[test]
    fn ops_are_never_in_one_group() {
        let all = runs(&[("a", 1.0), ("b", 2.0)]);
        let by = tables::keys(&["size".parse().unwrap()], &all);
        assert_eq!(by, [GroupKey::Size, GroupKey::Op]);
        assert_eq!(crate::group::groups(&all, &by).len(), 10);
        let one: Vec<RunReport> = all
            .into_iter()
            .map(|mut r| {
                r.summary.workloads.retain(|w| w.op == "put");
                r
            })
            .collect();
        assert_eq!(tables::keys(&["size".parse().unwrap()], &one), [GroupKey::Size]);
    }
}
