//! A glance on a terminal: the answer first, and twelve lines at 100 columns, whatever was measured.

use super::{Glance, NAME, shortened};
use crate::run::RunReport;
use crate::table::{Table, wrap};
use crate::terminal::Style;
use crate::{pivot, tables};

/// Lines at [`WIDTH`] columns.
const MOST_LINES: usize = 12;
const WIDTH: usize = 100;
/// Of a sentence above a table; what is void is told with its remedy, which takes more.
const MOST_SAID: usize = 3;
const MOST_SAID_OF_VOID: usize = 6;
/// Begins the row over all others, which is the last one.
pub(crate) const ALL: &str = "all";
/// Of a table, whatever stands below it.
const LEAST_ROWS: usize = 2;
/// Facts that go first where there is no room: the table or the sentence has them, or nearly.
const FIRST_TO_GO: [&str; 10] = [
    "generators",
    "tried",
    "not known",
    "limited by",
    "all running",
    "!",
    "traffic",
    "agents",
    "cost",
    "servers",
];

/// What stands below the sentence in one block: a table, or another tool's lines.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Rows that do not fit are told as so many more.
    Table(Table),
    /// Shown whole.
    Lines(Vec<String>),
}

/// A name, and what is said; its place in the order in which things go.
struct Below<'a> {
    name: String,
    text: &'a str,
    goes: Option<usize>,
}

impl Glance {
    /// At most twelve lines of 100 columns: what does not fit is told as so much more.
    pub fn terminal(&self, r: &RunReport, style: Style) -> String {
        self.with_body(r, super::table(r, style.width).map(Body::Table), style)
    }

    /// The same with a table of one's own.
    pub(crate) fn with_body(&self, r: &RunReport, body: Option<Body>, style: Style) -> String {
        let troubled = pivot::troubled(&r.summary).filter(|_| body.is_some() && tables::is_sweep(&r.summary));
        let mut below = self.below(troubled.as_deref());
        let said = self.said(body.is_some(), below.iter().filter(|b| b.goes.is_none()).count(), style);
        let heads = match &body {
            Some(Body::Table(_)) => 2,
            _ => 0,
        };
        let rows = match &body {
            Some(Body::Table(t)) => t.rows.len(),
            Some(Body::Lines(all)) => all.len(),
            None => 0,
        };
        let mut more = self.more_reservations;
        // The empty line and the last one.
        let fixed = said.len() + heads + 2;
        while fixed + rows + below.len() > MOST_LINES {
            let next = below.iter().enumerate().filter_map(|(i, b)| Some((b.goes?, i))).min();
            let Some((_, i)) = next else { break };
            below.remove(i);
            more += 1;
        }
        let room = MOST_LINES.saturating_sub(fixed + below.len()).max(LEAST_ROWS);
        let mut out = said.join("\n") + "\n\n";
        let hidden = body.map_or(String::new(), |b| b.write(&mut out, room, style));
        if rows > 0 && fixed + rows + below.len() < MOST_LINES {
            out.push('\n');
        }
        let mut line = |name: &str, text: &str| {
            out.push_str(&shortened(&format!("  {name:<NAME$} {text}"), style.width));
            out.push('\n');
        };
        below.iter().for_each(|b| line(&b.name, b.text));
        let notes = match more {
            0 => String::new(),
            1 => "   (1 more note)".into(),
            n => format!("   ({n} more notes)"),
        };
        line("more", &format!("{hidden}plimsoll runs show {}{notes}", r.summary.id));
        out
    }

    /// Facts and reservations; promises and the worst reservation stay in any case.
    fn below<'a>(&'a self, troubled: Option<&'a str>) -> Vec<Below<'a>> {
        let rank = |name: &str| FIRST_TO_GO.iter().position(|n| *n == name).map(|n| n + 1);
        let facts =
            self.facts.iter().map(|f| Below { name: f.name.clone(), text: &f.text, goes: rank(&f.name) });
        let troubled =
            troubled.map(|text| Below { name: "! ops".into(), text, goes: Some(FIRST_TO_GO.len() + 1) });
        let reservations = self.reservations.iter().enumerate().map(|(i, f)| Below {
            name: format!("! {}", f.name),
            text: &f.text,
            goes: (i > 0).then_some(0),
        });
        facts.chain(troubled).chain(reservations).collect()
    }

    fn said(&self, with_body: bool, below: usize, style: Style) -> Vec<String> {
        let void = self.mark.starts_with("INVALID");
        let colour = if void { "1;31" } else { "1" };
        // Without a figure the sentence does not say of what it is.
        let said = match void && !self.title.is_empty() {
            true => format!("{}: {}", self.title, self.sentence),
            false => self.sentence.clone(),
        };
        let most = match (with_body, void) {
            (true, false) => MOST_SAID,
            (true, true) => MOST_SAID_OF_VOID,
            (false, _) => MOST_LINES.saturating_sub(below + 2).max(MOST_SAID),
        };
        let most = (most * WIDTH).div_ceil(style.width.min(WIDTH));
        let text = wrap(&said, style.width, &format!("{}  ", self.mark), "  ");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() > most {
            lines.truncate(most);
            let last = lines.pop().unwrap_or_default() + " and more";
            lines.push(shortened(&format!("{last:<w$}", w = style.width + 1), style.width));
        }
        lines.iter().map(|l| style.paint(colour, l)).collect()
    }
}

impl Body {
    /// What is not shown of it: `3 more rows (1 void): -v; `.
    fn write(self, out: &mut String, room: usize, style: Style) -> String {
        let mut table = match self {
            Self::Lines(all) => {
                all.iter().for_each(|l| {
                    out.push_str(l);
                    out.push('\n');
                });
                return String::new();
            }
            Self::Table(t) => t,
        };
        // What is said of all of them stays.
        let all = table.rows.pop_if(|row| row.first().is_some_and(|c| c == ALL));
        let room = room.saturating_sub(usize::from(all.is_some()));
        let cut = table.rows.split_off(room.min(table.rows.len()));
        table.rows.extend(all);
        out.push_str(&table.plain(style.width));
        let marked = cut.iter().filter(|row| row.iter().any(|c| is_mark(c))).count();
        match (cut.len(), marked) {
            (0, _) => String::new(),
            (n, 0) => format!("{n} more: -v   "),
            (n, marked) => format!("{n} more ({marked} marked): -v   "),
        }
    }
}

/// Void, failed, or not known.
fn is_mark(cell: &str) -> bool {
    ["[INVALID", "void", "undetermined", crate::number::MISSING].iter().any(|w| cell.starts_with(w))
        || ["!", "✗"].iter().any(|m| cell.ends_with(m))
}
