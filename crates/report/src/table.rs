//! A table, laid out once: plain text of bounded width, Markdown, or HTML.

use std::fmt::Write as _;

/// Where in its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows under heads, for whatever form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Says what the rows are; the caption in HTML.
    pub title: String,
    /// Head, and where its cells stand.
    pub columns: Vec<(String, Align)>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Columns that name a row; they are repeated when the table has to be split.
    pub keys: usize,
}

/// Key columns stay as wide as this at the least.
const LEAST_KEY: usize = 12;
const GAP: usize = 2;

impl Table {
    /// `columns` are heads; a head that begins with `>` is aligned to the right.
    pub fn new(title: &str, keys: usize, columns: &[&str]) -> Self {
        let columns = columns
            .iter()
            .map(|c| match c.strip_prefix('>') {
                Some(head) => (head.to_string(), Align::Right),
                None => ((*c).to_string(), Align::Left),
            })
            .collect();
        Self { title: title.into(), columns, rows: Vec::new(), keys }
    }

    /// `row`: one cell for each column.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Drops columns, key columns excepted, in which no row says anything or knows anything.
    pub fn without_empty_columns(mut self) -> Self {
        for i in (self.keys..self.columns.len()).rev() {
            if self.rows.iter().all(|r| r[i].is_empty() || r[i] == crate::number::MISSING) {
                self.columns.remove(i);
                self.rows.iter_mut().for_each(|r| {
                    r.remove(i);
                });
            }
        }
        self
    }

    /// Drops the columns of which this holds, of their number and their cells.
    pub fn without_columns(mut self, is_dropped: impl Fn(usize, &[&str]) -> bool) -> Self {
        for i in (0..self.columns.len()).rev() {
            let cells: Vec<&str> = self.rows.iter().map(|r| r[i].as_str()).collect();
            if is_dropped(i, &cells) {
                self.take_column(i);
            }
        }
        self
    }

    /// Drops what matters least, by heads, until the table is this narrow, or only the rest is left.
    pub fn fitted(mut self, width: usize, least: &[&str]) -> Self {
        for head in least {
            if self.width() <= width {
                break;
            }
            let at = |t: &Self| t.columns.iter().skip(t.keys).position(|(h, _)| h == head);
            while let Some(i) = at(&self) {
                self.take_column(i + self.keys);
            }
        }
        self
    }

    /// Columns of text that it takes in one piece.
    pub fn width(&self) -> usize {
        let all: usize = (0..self.columns.len()).map(|i| self.width_of(i) + GAP).sum();
        all.saturating_sub(GAP)
    }

    /// Takes a column out: its texts, each with the first cell of its row.
    pub fn take_column(&mut self, i: usize) -> Vec<(String, String)> {
        self.columns.remove(i);
        self.keys -= usize::from(i < self.keys);
        self.rows.iter_mut().map(|r| (r[0].clone(), r.remove(i))).collect()
    }

    /// Plain text. Too wide a table is split into several that repeat the key columns; sentences that leave no room for names stand below, and
    /// names that leave no room for a column beside them lose their middle.
    pub fn plain(&self, width: usize) -> String {
        let Some(i) = self.sentences(width) else { return self.plain_columns(width) };
        let mut narrower = self.clone();
        let head = self.columns[i].0.clone();
        narrower.take_column(i);
        let mut out = narrower.plain(width);
        let names = |row: &[String]| row[..self.keys].join(" ");
        let said: Vec<(String, &String)> =
            self.rows.iter().filter(|r| !r[i].is_empty()).map(|r| (names(r), &r[i])).collect();
        match &said[..] {
            [(_, first), rest @ ..]
                if rest.len() + 1 == self.rows.len() && rest.iter().all(|(_, text)| text == first) =>
            {
                out.push_str(&wrap(&format!("{head}: {first}"), width, "", "  "));
            }
            all => all
                .iter()
                .for_each(|(name, text)| out.push_str(&wrap(&format!("{name}: {text}"), width, "", "  "))),
        }
        out
    }

    /// A column of text that has no room beside the names, and is more than half of the line.
    fn sentences(&self, width: usize) -> Option<usize> {
        let keys = self.keys.min(self.columns.len());
        let names: usize = (0..keys).map(|i| self.width_of(i) + GAP).sum();
        let is_text = |i: &usize| self.columns[*i].1 == Align::Left;
        (keys..self.columns.len()).filter(is_text).find(|i| {
            let own = self.width_of(*i);
            own > width / 2 && names + own > width
        })
    }

    fn plain_columns(&self, width: usize) -> String {
        let widths = self.widths_within(width);
        let keys: Vec<usize> = (0..self.keys.min(widths.len())).collect();
        let key_width: usize = keys.iter().map(|i| widths[*i] + GAP).sum();
        let mut out = String::new();
        let mut part = keys.clone();
        let mut used = key_width;
        for i in keys.len()..widths.len() {
            if part.len() > keys.len() && used + widths[i] > width {
                self.part(&mut out, &part, &widths);
                out.push('\n');
                part.truncate(keys.len());
                used = key_width;
            }
            part.push(i);
            used += widths[i] + GAP;
        }
        self.part(&mut out, &part, &widths);
        out
    }

    /// Of each column as wide as it is, but key columns narrower where the widest of the others has no room beside them.
    fn widths_within(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|i| self.width_of(i)).collect();
        let keys = self.keys.min(widths.len());
        // So does text that has no room beside the names, however short these are.
        let least: usize = widths[..keys].iter().map(|w| (*w).min(LEAST_KEY) + GAP).sum();
        widths[keys..].iter_mut().for_each(|w| *w = (*w).min(width.saturating_sub(least).max(LEAST_KEY)));
        let widest = widths[keys..].iter().copied().max().unwrap_or(0);
        loop {
            let taken: usize = widths[..keys].iter().map(|w| w + GAP).sum();
            let most = widths[..keys].iter_mut().filter(|w| **w > LEAST_KEY).max();
            match most.filter(|_| taken + widest > width) {
                Some(w) => *w -= 1,
                None => return widths,
            }
        }
    }

    fn part(&self, out: &mut String, columns: &[usize], widths: &[usize]) {
        let heads: Vec<&str> = self.columns.iter().map(|c| c.0.as_str()).collect();
        self.line(out, columns, widths, &heads);
        let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
        self.line(out, columns, widths, &rules.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &self.rows {
            self.line(out, columns, widths, &row.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    fn line(&self, out: &mut String, columns: &[usize], widths: &[usize], cells: &[&str]) {
        let mut line = String::new();
        for (n, i) in columns.iter().enumerate() {
            if n > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let w = widths[*i];
            let cell = without_middle(cells[*i], w);
            match self.columns[*i].1 {
                Align::Left => write!(line, "{cell:<w$}"),
                Align::Right => write!(line, "{cell:>w$}"),
            }
            .expect("writing to a string does not fail");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }

    /// Columns of text of one of them.
    pub fn width_of(&self, i: usize) -> usize {
        let cells = self.rows.iter().map(|r| r[i].chars().count());
        cells.chain([self.columns[i].0.chars().count()]).max().unwrap_or(0)
    }

    /// With pipes; what Markdown would take for itself is escaped.
    pub fn markdown(&self) -> String {
        let cell = |s: &str| escape_markdown(s).replace('|', "\\|");
        let mut out = String::from("|");
        for (head, _) in &self.columns {
            let _ = write!(out, " {} |", cell(head));
        }
        out.push_str("\n|");
        for (_, align) in &self.columns {
            out.push_str(if *align == Align::Right { "---:|" } else { "---|" });
        }
        out.push('\n');
        for row in &self.rows {
            out.push('|');
            for c in row {
                let _ = write!(out, " {} |", cell(c));
            }
            out.push('\n');
        }
        out
    }

    /// Escaped, with its title as the caption.
    pub fn html(&self) -> String {
        let mut out = format!("<table><caption>{}</caption><thead><tr>", escape(&self.title));
        for (head, _) in &self.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, c) in row.iter().enumerate() {
                let _ = match i < self.keys {
                    true => write!(out, "<th scope=\"row\">{}</th>", escape(c)),
                    false => write!(out, "<td>{}</td>", escape(c)),
                };
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table>");
        out
    }
}

/// At most so many characters: names differ at both ends.
fn without_middle(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= most || most == 0 {
        return text.into();
    }
    let head = (most - 1).div_ceil(2);
    let tail = all.len() - (most - 1 - head);
    all[..head].iter().chain(&['…']).chain(&all[tail..]).collect::<String>().into()
}

/// User text that must not become Markdown.
pub fn escape_markdown(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.replace('\n', " ").chars() {
        if matches!(c, '<' | '`' | '[' | ']' | '*' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Text for HTML, safe in content and in quoted attributes.
pub fn escape(s: &str) -> String {
    s.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Words wrapped at `width`; `indent` goes before every line but the first, `first` before that.
pub fn wrap(text: &str, width: usize, first: &str, indent: &str) -> String {
    let mut out = String::from(first);
    let mut used = first.chars().count();
    let mut fresh = true;
    for word in glued(text) {
        let len = word.chars().count();
        if !fresh && used + 1 + len > width {
            out.push('\n');
            out.push_str(indent);
            used = indent.chars().count();
        } else if !fresh {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += len;
        fresh = false;
    }
    out.push('\n');
    out
}

/// Words, with numbers kept together with their unit and their uncertainty.
fn glued(text: &str) -> Vec<String> {
    const UNITS: [&str; 16] = [
        "s",
        "ms",
        "us",
        "ns",
        "min",
        "h",
        "%",
        "B",
        "KB",
        "MB",
        "KiB",
        "MiB",
        "op/s",
        "objects/s",
        "MiB/s",
        "MB/s",
    ];
    let mut out: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        match out.last_mut() {
            Some(last)
                if (word == "±" || UNITS.contains(&bare) || last.ends_with('±'))
                    && last.ends_with(|c: char| c.is_ascii_digit() || c == '±') =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => out.push(word.into()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut t = Table::new("Rates", 1, &["Op", ">Rate", ">p99", "Note"]);
        t.push(vec!["put".into(), "1,004 ± 6".into(), "4.1 ms".into(), String::new()]);
        t.push(vec!["get|x".into(), "9".into(), "n/a".into(), String::new()]);
        t
    }

    #[test]
    fn plain_text_is_aligned_and_bounded() {
        let wide = sample().plain(80);
        assert_eq!(
            wide,
            "Op          Rate     p99  Note\n-----  ---------  ------  ----\nput    1,004 ± 6  4.1 ms\nget|x          9     n/a\n"
        );
        let narrow = sample().plain(20);
        assert!(narrow.lines().all(|l| l.chars().count() <= 20), "{narrow}");
        assert_eq!(narrow.matches("put").count(), 2);
    }

    #[test]
    fn long_names_lose_their_middle_and_no_line_is_too_wide() {
        let mut t = Table::new("Steps", 1, &["step", ">op/s", "verdict"]);
        let name = format!("put 1 MiB {} 16 in flight", "with a long name ".repeat(8));
        t.push(vec![name.clone(), "1,234 ± 12".into(), "below its ceiling".into()]);
        let text = t.plain(100);
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(text.contains("put 1 MiB") && text.contains('…') && text.contains("16 in flight"), "{text}");
        assert!(t.markdown().contains(&name), "whole elsewhere");
        assert_eq!(without_middle("abcdefgh", 5), "ab…gh");
        assert_eq!(without_middle("abcde", 5), "abcde");
    }

    /// The rows of a comparison were `put, 1…ponse` twice, beside a sentence that lost its middle.
    #[test]
    fn sentences_that_leave_no_room_for_names_stand_below() {
        let mut t = Table::new("Compared", 1, &["what", ">A", ">B", "verdict"]);
        let why =
            "1 run and 1 run: the run-to-run variation is not known, so no difference can be told from it";
        for what in ["mean response", "p99 response"] {
            t.push(vec![
                format!("put, 16 in flight: {what}"),
                "2.99 ms".into(),
                "2.53 ms".into(),
                why.into(),
            ]);
        }
        for width in [80, 100] {
            let text = t.plain(width);
            assert!(text.contains("put, 16 in flight: mean response  2.99 ms"), "{text}");
            assert_eq!(
                text.split_whitespace().collect::<Vec<_>>().join(" ").matches(why).count(),
                1,
                "{text}"
            );
            assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
        }
        t.rows[0][3] = "different".into();
        let text = t.plain(80);
        assert!(text.contains("put, 16 in flight: mean response: different\n"), "{text}");
    }

    #[test]
    fn markdown_escapes_bars_and_html_escapes_all() {
        assert!(sample().markdown().contains("get\\|x"));
        let mut t = sample();
        t.rows[0][0] = "<script>\"'&".into();
        assert!(t.markdown().contains("\\<script>"), "{}", t.markdown());
        assert!(t.html().contains("&lt;script&gt;&quot;&#39;&amp;"));
        assert_eq!(sample().without_empty_columns().columns.len(), 3);
    }

    #[test]
    fn wrapping_keeps_every_word() {
        let text = "one two three four five";
        let out = wrap(text, 11, "- ", "  ");
        assert_eq!(out, "- one two\n  three\n  four five\n");
        assert_eq!(wrap("seen for 1,004 ± 6 op/s.", 14, "", ""), "seen for\n1,004 ± 6 op/s.\n");
    }
}
