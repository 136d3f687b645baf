//! Published, ours and the difference, for a terminal, a text and a program.

use plimsoll_campaign::{ComparedFigure, ComparedFigures, ReplicaVerdict, Replication};
use plimsoll_model::Estimate;
use plimsoll_model::text::clean;
use plimsoll_report::number;
use plimsoll_report::table::{Table, escape_markdown, wrap};
use plimsoll_report::{Style, number::MIB};

use super::campaign::CampaignForm;

/// In the form that was asked for.
pub fn replication(r: &Replication, form: &CampaignForm) -> String {
    if form.json {
        return serde_json::to_string_pretty(r).expect("plain data is always JSON") + "\n";
    }
    let (is_markdown, width) = (form.markdown, Style::for_stdout().width);
    let mut out = String::new();
    let mut line = |text: &str| {
        out += &if is_markdown {
            format!("{}\n\n", escape_markdown(text))
        } else {
            wrap(text, width, "", "  ") + "\n"
        };
    };
    line(&head(r));
    tallies(r).iter().for_each(|t| line(t));
    let tables = [
        Some(cells(r)),
        Some(ratios(r)),
        // As many lines again, and all in the first table's figures: for whoever reads on paper.
        is_markdown.then(|| of_sizes(r)),
    ];
    for table in tables.into_iter().flatten().filter(|t| !t.rows.is_empty()) {
        out += "\n";
        out += &if is_markdown {
            format!("### {}\n\n{}", table.title, table.markdown())
        } else {
            table.plain(width)
        };
    }
    out += "\n";
    for note in notes(r, is_markdown) {
        out += &if is_markdown {
            format!("- {}\n", escape_markdown(&note))
        } else {
            wrap(&note, width, "  ", "    ") + "\n"
        };
    }
    out
}

fn head(r: &Replication) -> String {
    let hardware = r.hardware.as_deref().map(|h| format!(", measured on {h}")).unwrap_or_default();
    let url = r.url.as_deref().map(|u| format!(", {u}")).unwrap_or_default();
    let same = if r.is_same_hardware {
        "Taken to be the same hardware as here: absolute figures are compared, too."
    } else {
        "Absolute figures are not comparable: other hardware. What has no dimension is."
    };
    clean(&format!("{} against {}{url}{hardware}. {same}", r.name, r.source)).into_owned()
}

/// How many of each kind came out how.
fn tallies(r: &Replication) -> Vec<String> {
    let kinds = [
        (ComparedFigure::ShareOfCap, "shares of what is promised"),
        (ComparedFigure::CapReached, "promise that is reached"),
        (ComparedFigure::SubjectOverSubject, "subject over the one before it"),
        (ComparedFigure::PublishedRatio, "subject over one that the source names"),
        (ComparedFigure::WriteOverRead, "writes over reads"),
        (ComparedFigure::OfLargestSize, "payload over that at the largest size"),
    ];
    let verdicts = [
        ReplicaVerdict::NoDifferenceSeen,
        ReplicaVerdict::Same,
        ReplicaVerdict::Higher,
        ReplicaVerdict::Lower,
        ReplicaVerdict::Differs,
        ReplicaVerdict::Inconclusive,
        ReplicaVerdict::NotComparable,
        ReplicaVerdict::OnlyPublished,
    ];
    let tally = |(kind, name): (ComparedFigure, &str)| {
        let of = |v| r.comparisons.iter().filter(|c| c.figure == kind && c.verdict == v).count();
        let parts: Vec<String> = verdicts
            .iter()
            .map(|v| (of(*v), word(*v)))
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{n} {word}"))
            .collect();
        (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(", ")))
    };
    kinds.into_iter().filter_map(tally).collect()
}

fn word(v: ReplicaVerdict) -> &'static str {
    match v {
        ReplicaVerdict::Higher => "higher",
        ReplicaVerdict::Lower => "lower",
        ReplicaVerdict::NoDifferenceSeen => "no difference seen",
        ReplicaVerdict::Same => "same",
        ReplicaVerdict::Differs => "differ",
        ReplicaVerdict::Inconclusive => "inconclusive",
        ReplicaVerdict::NotComparable => "not comparable",
        ReplicaVerdict::OnlyOurs => "only ours",
        ReplicaVerdict::OnlyPublished => "without ours",
    }
}

fn says(c: &ComparedFigures) -> String {
    match (c.verdict, &c.why) {
        (
            ReplicaVerdict::Inconclusive | ReplicaVerdict::NotComparable | ReplicaVerdict::OnlyPublished,
            Some(why),
        ) => {
            format!("{}: {why}", word(c.verdict))
        }
        (v, _) => word(v).to_owned(),
    }
}

fn find<'a>(r: &'a Replication, figure: ComparedFigure, of: &ComparedFigures) -> Option<&'a ComparedFigures> {
    let same = |c: &&ComparedFigures| {
        c.figure == figure && c.subject == of.subject && c.workload == of.workload && c.line == of.line
    };
    r.comparisons.iter().find(same)
}

/// A row for each cell that was published: rates, and their shares of what is promised. Without op/s its payload, in MiB/s.
fn cells(r: &Replication) -> Table {
    let columns = [
        "subject",
        "workload",
        "unit",
        ">published",
        ">ours",
        ">of cap there",
        ">of cap here",
        ">difference",
        "",
    ];
    let mut table = Table::new("Cells", 2, &columns);
    let is_ops = |c: &ComparedFigures| c.figure == ComparedFigure::OpsPerS;
    let main = r.comparisons.iter().filter(|c| {
        is_ops(c)
            || (c.figure == ComparedFigure::BytesPerS
                && find(r, ComparedFigure::OpsPerS, c)
                    .is_none_or(|o| o.published.is_none() && c.published.is_some()))
    });
    for c in main.filter(|c| c.published.is_some()) {
        let share = find(r, ComparedFigure::ShareOfCap, c);
        // Without a promise in the source there is no share to hold ours against.
        let share_there = share.filter(|s| s.published.is_some());
        let judged = if r.is_same_hardware { Some(c) } else { share_there };
        let scale = if is_ops(c) { 1.0 } else { 1.0 / MIB };
        let rate = |e: Option<Estimate>| e.map(|e| number::estimate(&e.scaled(scale))).unwrap_or_default();
        let row = vec![
            c.subject.clone(),
            named(c, r),
            if is_ops(c) { "op/s" } else { "MiB/s" }.to_owned(),
            c.published.map(|e| number::value(&e.scaled(scale))).unwrap_or_default(),
            rate(c.ours),
            percents(share.and_then(|s| s.published)),
            percents(share.and_then(|s| s.ours)),
            judged
                .map(|j| off_by(j.difference, if r.is_same_hardware { "%" } else { "points" }))
                .unwrap_or_default(),
            judged.map_or_else(|| says(c), says),
        ];
        table.push(row.iter().map(|t| clean(t).into_owned()).collect());
    }
    table.without_empty_columns()
}

/// The line beside the workload, where a run has several.
fn named(c: &ComparedFigures, r: &Replication) -> String {
    let others = r.comparisons.iter().any(|o| {
        o.figure == c.figure && o.subject == c.subject && o.workload == c.workload && o.line != c.line
    });
    if others { format!("{}: {}", c.workload, c.line) } else { c.workload.clone() }
}

fn percents(e: Option<Estimate>) -> String {
    e.map(|e| format!("{} %", number::estimate(&e.scaled(100.0)))).unwrap_or_default()
}

/// A share of the published figure, or points of a share.
fn off_by(e: Option<Estimate>, unit: &str) -> String {
    let Some(e) = e else { return String::new() };
    let sign = if e.value > 0.0 { "+" } else { "" };
    format!("{sign}{} {unit}", number::difference(&e.scaled(100.0)))
}

/// Tiers, PUT against GET, knees, cliffs.
fn ratios(r: &Replication) -> Table {
    of_kinds(
        r,
        "Ratios",
        &[
            ComparedFigure::SubjectOverSubject,
            ComparedFigure::PublishedRatio,
            ComparedFigure::WriteOverRead,
            ComparedFigure::KneeOfPromised,
            ComparedFigure::LimitKnee,
            ComparedFigure::BurstOverSustained,
            ComparedFigure::BurstLasts,
            ComparedFigure::CliffAfterRuns,
            ComparedFigure::CliffDrop,
            ComparedFigure::MonthAtRate,
        ],
    )
}

fn of_sizes(r: &Replication) -> Table {
    of_kinds(r, "Payload over that at the largest size", &[ComparedFigure::OfLargestSize])
}

fn of_kinds(r: &Replication, title: &str, kinds: &[ComparedFigure]) -> Table {
    let columns = ["ratio", "workload", ">promised", ">published", ">ours", ">difference", ""];
    let mut table = Table::new(title, 2, &columns);
    for c in r.comparisons.iter().filter(|c| kinds.contains(&c.figure)) {
        let (what, promised) = match c.figure {
            ComparedFigure::SubjectOverSubject
            | ComparedFigure::PublishedRatio
            | ComparedFigure::WriteOverRead
            | ComparedFigure::OfLargestSize => {
                let over = c.over.as_deref().unwrap_or_default();
                let of = if of_subjects(c) {
                    c.subject.clone()
                } else {
                    format!("{} {}", c.subject, c.line.split('/').next_back().unwrap_or_default())
                };
                (
                    format!("{of} / {over}"),
                    c.promised.map(|p| number::estimate(&Estimate::exact(p))).unwrap_or_default(),
                )
            }
            ComparedFigure::KneeOfPromised => {
                let promised =
                    c.promised.map(|p| number::size_among(p.round() as u64, true)).unwrap_or_default();
                (format!("{} knee / promised", c.subject), promised)
            }
            ComparedFigure::LimitKnee => (format!("{} knee / promised, probed", c.subject), String::new()),
            ComparedFigure::BurstOverSustained => (format!("{} burst / sustained", c.subject), String::new()),
            ComparedFigure::BurstLasts => (format!("{} burst, seconds unscaled", c.subject), String::new()),
            ComparedFigure::CliffAfterRuns => {
                (format!("{} {}, runs before the fall", c.subject, c.line), String::new())
            }
            ComparedFigure::CliffDrop => {
                (format!("{} {}, depth of the fall", c.subject, c.line), String::new())
            }
            ComparedFigure::MonthAtRate => {
                (format!("{} {}, a month at this rate, unscaled", c.subject, c.line), String::new())
            }
            _ => continue,
        };
        let shown = |e: Option<Estimate>, word: &Option<String>| {
            word.clone().or_else(|| e.map(|e| number::estimate(&e))).unwrap_or_default()
        };
        // The others have their line, or their op, in what they are called.
        let is_plain = of_subjects(c);
        let row = [
            what,
            if is_plain { named(c, r) } else { c.workload.clone() },
            promised,
            shown(c.published, &c.published_word),
            shown(c.ours, &c.our_word),
            c.difference
                .map(|d| format!("{}{}", if d.value > 0.0 { "+" } else { "" }, number::difference(&d)))
                .unwrap_or_default(),
            says(c),
        ];
        table.push(row.iter().map(|t| clean(t).into_owned()).collect());
    }
    table.without_empty_columns()
}

/// A subject over another.
fn of_subjects(c: &ComparedFigures) -> bool {
    matches!(c.figure, ComparedFigure::SubjectOverSubject | ComparedFigure::PublishedRatio)
}

fn notes(r: &Replication, is_markdown: bool) -> Vec<String> {
    let mut out: Vec<String> = r.notes.iter().map(|n| clean(n).into_owned()).collect();
    // A source that gives payload alone has the cell.
    let has_bytes = |c: &ComparedFigures| {
        let same =
            |b: &&ComparedFigures| (&b.subject, &b.workload, &b.line) == (&c.subject, &c.workload, &c.line);
        let mut bytes = r.comparisons.iter().filter(|b| b.figure == ComparedFigure::BytesPerS);
        bytes.find(same).is_some_and(|b| b.published.is_some())
    };
    let only_ours = r.comparisons.iter().filter(|c| {
        c.figure == ComparedFigure::OpsPerS && c.verdict == ReplicaVerdict::OnlyOurs && !has_bytes(c)
    });
    let names: Vec<String> =
        only_ours.map(|c| clean(&format!("{}, {}", c.subject, named(c, r))).into_owned()).collect();
    if !names.is_empty() {
        let more = if names.len() > 6 { format!(" and {} more", names.len() - 6) } else { String::new() };
        out.push(format!(
            "not in the source, and measured here (`campaign status` has them): {}{more}",
            names[..names.len().min(6)].join("; ")
        ));
    }
    if r.comparisons.iter().any(|c| c.figure == ComparedFigure::ShareOfCap) {
        out.push(
            "of cap: rate over the lower of the promised rates at this size; reached from 95 % on".into(),
        );
    }
    if !is_markdown && r.comparisons.iter().any(|c| c.figure == ComparedFigure::OfLargestSize) {
        out.push("payload over that at the largest size: with --markdown or --json".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(is_same_hardware: bool) -> Replication {
        let line = |figure, ours: f64, difference: f64| ComparedFigures {
            figure,
            subject: "| a | [x](javascript:y)".into(),
            over: None,
            workload: "put `4 KiB`".into(),
            line: "put/put".into(),
            size_bytes: Some(4096),
            promised: None,
            published: Some(Estimate::exact(ours - difference)),
            ours: Some(Estimate::exact(ours)),
            published_word: None,
            our_word: None,
            difference: Some(Estimate::exact(difference)),
            verdict: ReplicaVerdict::Higher,
            why: None,
        };
        Replication {
            schema: "plimsoll.replicate/1".into(),
            name: "ours".into(),
            source: "<script>alert(1)</script>".into(),
            url: None,
            hardware: Some("![x](http://192.0.2.1/x.png) <img src=x>".into()),
            is_same_hardware,
            comparisons: vec![
                line(ComparedFigure::OpsPerS, 110.0, 0.1),
                line(ComparedFigure::ShareOfCap, 0.9, 0.05),
            ],
            notes: vec!["[a](javascript:b) <b>".into()],
        }
    }

    fn form(markdown: bool) -> CampaignForm {
        CampaignForm { json: false, markdown, quiet: false, runs_dir: None }
    }

    /// A share of the published figure is in percent, what two shares differ by in points; the word is of the same figure.
    #[test]
    fn the_difference_has_the_unit_of_what_is_judged() {
        let text = replication(&compared(true), &form(false));
        assert!(text.contains("+10 %") && !text.contains("points"), "{text}");
        let text = replication(&compared(false), &form(false));
        assert!(text.contains("+5 points") && !text.contains("+10 %"), "{text}");
    }

    #[test]
    fn text_of_a_stranger_is_text_in_markdown() {
        let text = replication(&compared(false), &form(true));
        for live in ["<script", "<img", "<b>", "](javascript", "![x]("] {
            let is_live = |(at, _): (usize, &str)| !text[..at].ends_with('\\');
            assert!(!text.match_indices(live).any(is_live) || live.starts_with(']'), "{live}: {text}");
        }
        assert!(text.lines().filter(|l| l.contains("javascript")).all(|l| l.contains("\\[")), "{text}");
    }
}
