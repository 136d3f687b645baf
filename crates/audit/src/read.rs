//! CSV and Markdown to tables.

use plimsoll_model::text::clean;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::AuditError;
use crate::table::{PrintedTable, TableRow};

/// A table of more is no table that somebody published, and is not held in memory. 30,000 rows of six columns took 6 s in a build that
/// is not optimised, on a busy machine, and time grows as the rows do.
const MOST_ROWS: usize = 50_000;
/// Cells of one row.
const MOST_COLUMNS: usize = 1_000;
/// Tables of one text.
const MOST_TABLES: usize = 1_000;
/// Cells of all of its tables.
const MOST_CELLS: usize = 1_000_000;
/// Bytes of the name of a column, and of a heading: both are repeated row by row.
const MOST_NAME: usize = 500;

fn tidy(text: &str) -> String {
    clean(text.trim()).into_owned()
}

/// One table from CSV; separated by semicolons or tabs where the first line has more of those than commas.
///
/// # Errors
/// Where the text is no CSV, has rows that are longer or shorter than the header, or no rows at all.
pub fn read_csv(text: &str) -> Result<Vec<PrintedTable>, AuditError> {
    let text = text.trim_start_matches('\u{feff}');
    let first = text.lines().next().unwrap_or_default();
    let count = |c: char| first.matches(c).count();
    let separator = [';', '\t', ','].into_iter().max_by_key(|c| count(*c)).unwrap_or(',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator as u8)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let wrong = |e: &csv::Error| {
        let place = e.position().map_or("the table".to_owned(), |p| format!("line {}", p.line()));
        let problem = match e.kind() {
            csv::ErrorKind::UnequalLengths { expected_len: 1, .. } => {
                return AuditError::new(
                    "line 1",
                    "it has one cell, and other lines have several: this is no CSV",
                    "Of an article take its tables: as Markdown (`| size | op/s |`, in a file that ends in .md), or as CSV with the names of the columns in its first line.",
                );
            }
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} cells, but the header has {expected_len}")
            }
            _ => clean(&e.to_string()).into_owned(),
        };
        AuditError::new(
            place,
            problem,
            "Give each row a cell for each column; quote cells that hold the separator.",
        )
    };
    let header = reader.headers().map_err(|e| wrong(&e))?;
    if header.len() > MOST_COLUMNS {
        return Err(too_wide(header.len()));
    }
    let header: Vec<String> = header.iter().map(tidy).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| wrong(&e))?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        rows.push(TableRow { line, title: String::new(), cells: record.iter().map(tidy).collect() });
        if rows.len() > MOST_ROWS {
            return Err(too_long());
        }
        if rows.len() * header.len() > MOST_CELLS {
            return Err(too_many("cells", MOST_CELLS));
        }
    }
    whole(vec![PrintedTable { header, rows }])
}

fn too_wide(columns: usize) -> AuditError {
    AuditError::new(
        "the table",
        format!("it has {columns} columns, and at most {MOST_COLUMNS} are read"),
        "Give fewer.",
    )
}

fn too_many(what: &str, most: usize) -> AuditError {
    AuditError::new(
        "the text",
        format!("it has more than {most} {what}"),
        "Give the part that was published.",
    )
}

/// What a heading is called in remarks.
fn heading(text: &str) -> String {
    let mut text = tidy(text);
    text.truncate(text.floor_char_boundary(MOST_NAME));
    text
}

fn too_long() -> AuditError {
    AuditError::new(
        "the table",
        format!("it has more than {MOST_ROWS} rows"),
        "Give the part that was published.",
    )
}

/// All tables of a Markdown text, each with the heading above it.
///
/// # Errors
/// Where there is no table, or one without rows.
pub fn read_markdown(text: &str) -> Result<Vec<PrintedTable>, AuditError> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|s| *s <= at);
    let mut tables = Vec::new();
    let mut table: Option<PrintedTable> = None;
    let (mut title, mut cell, mut row): (String, Option<String>, Vec<String>) = Default::default();
    let (mut in_heading, mut cells_in_all) = (false, 0);
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                in_heading = true;
                title.clear();
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::Table(_)) => {
                if tables.len() >= MOST_TABLES {
                    return Err(too_many("tables", MOST_TABLES));
                }
                table = Some(PrintedTable { header: Vec::new(), rows: Vec::new() });
            }
            Event::End(TagEnd::Table) => tables.extend(table.take()),
            Event::Start(Tag::TableCell) => cell = Some(String::new()),
            Event::End(TagEnd::TableCell) => row.extend(cell.take().map(|c| tidy(&c))),
            Event::End(TagEnd::TableHead) => {
                if let Some(t) = &mut table {
                    t.header = std::mem::take(&mut row);
                    if t.header.len() > MOST_COLUMNS {
                        return Err(too_wide(t.header.len()));
                    }
                }
            }
            Event::End(TagEnd::TableRow) => {
                if let Some(t) = &mut table {
                    let cells = std::mem::take(&mut row);
                    cells_in_all += cells.len();
                    if cells_in_all > MOST_CELLS {
                        return Err(too_many("cells", MOST_CELLS));
                    }
                    t.rows.push(TableRow { line: line_of(range.start), title: heading(&title), cells });
                    if t.rows.len() > MOST_ROWS {
                        return Err(too_long());
                    }
                }
            }
            Event::Text(said) | Event::Code(said) => match &mut cell {
                Some(cell) => cell.push_str(&said),
                None if in_heading => title.push_str(&said),
                None => {}
            },
            Event::SoftBreak | Event::HardBreak | Event::Html(_) | Event::InlineHtml(_) => {
                if let Some(cell) = &mut cell {
                    cell.push(' ');
                }
            }
            _ => {}
        }
    }
    if tables.is_empty() {
        if text.contains("<table") {
            return Err(AuditError::new(
                "the text",
                "its tables are HTML, which is not read",
                "Copy the table into a spreadsheet, and give it as CSV.",
            ));
        }
        return Err(AuditError::new(
            "the text",
            "it has no table",
            "A table begins with a line `| a | b |` and a line `|---|---|` below it.",
        ));
    }
    whole(tables)
}

fn start(name: &str) -> &str {
    &name[..name.floor_char_boundary(80)]
}

/// Nothing that is too wide, nameless or empty.
fn whole(tables: Vec<PrintedTable>) -> Result<Vec<PrintedTable>, AuditError> {
    for t in &tables {
        let name = format!(
            "the table with the columns {}",
            t.header.iter().take(4).map(|n| start(n)).collect::<Vec<_>>().join(", ")
        );
        if t.rows.is_empty() {
            return Err(AuditError::new(name, "it has no rows", "Give a header and at least one row."));
        }
        if let Some(long) = t.header.iter().find(|n| n.len() > MOST_NAME) {
            let (name, problem) = (start(long), format!("its name is longer than {MOST_NAME} bytes"));
            return Err(AuditError::new(format!("the column '{name}'"), problem, "Give it a short name."));
        }
        let mut names = t.header.clone();
        names.sort();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1] && !w[0].is_empty()) {
            return Err(AuditError::new(
                name,
                format!("two columns are called '{}'", twice[0]),
                "Give each its own name, for example with the operation in front: 'PUT MiB/s', 'GET MiB/s'.",
            ));
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_tables_have_their_headings_and_lines() {
        let text = "# A\n\ntext\n\n## Standard *Tier*\n\n| Op | MB/s |\n|---|---|\n| PUT | 1.8 |\n| GET | `2` |\n\n## B\n\n| x |\n|---|\n| 1 |\n";
        let tables = read_markdown(text).unwrap();
        assert_eq!(tables.len(), 2);
        assert_eq!(
            (tables[0].rows[0].title.as_str(), tables[0].rows[0].line, tables[0].rows[1].line),
            ("Standard Tier", 9, 10)
        );
        assert_eq!(tables[0].rows[1].cells, ["GET", "2"]);
        assert_eq!(tables[1].rows[0].title, "B");
    }

    /// Somebody gives the article itself.
    #[test]
    fn what_is_no_table_says_what_to_give_instead() {
        let e = read_csv("How fast is it?\n\nWe measured PUT, GET, STAT and DELETE, each for a minute.\n")
            .unwrap_err();
        assert!(e.to_string().contains("this is no CSV") && e.remedy.contains("Markdown"), "{e}");
    }

    #[test]
    fn csv_is_read_with_its_separator_and_says_where_it_is_broken() {
        let table = &read_csv("\u{feff}op;MB/s\nPUT;1,5\n").unwrap()[0];
        assert_eq!(
            (table.header.clone(), table.rows[0].cells.clone()),
            (vec!["op".into(), "MB/s".into()], vec!["PUT".into(), "1,5".into()])
        );
        let e = read_csv("a,b\n1,2\n3\n").unwrap_err();
        assert_eq!(e.to_string(), "line 3: 1 cells, but the header has 2");
        assert!(read_csv("a,b\n").unwrap_err().to_string().contains("no rows"));
        assert!(read_csv("a,a\n1,2\n").unwrap_err().to_string().contains("two columns are called 'a'"));
        assert!(read_markdown("no table").unwrap_err().remedy.contains("|---|"));
        assert!(read_markdown("<table><tr><td>1</td></tr></table>").unwrap_err().remedy.contains("CSV"));
    }

    #[test]
    fn more_than_anybody_published_is_refused() {
        let one = |i: usize| format!("| a{i} | MB/s |\n|---|---|\n| {i} | {i} |\n\n");
        let text = |n: usize| (0..n).map(one).collect::<String>();
        assert_eq!(read_markdown(&text(MOST_TABLES)).unwrap().len(), MOST_TABLES);
        let e = read_markdown(&text(MOST_TABLES + 1)).unwrap_err();
        assert!(e.to_string().contains("more than 1000 tables"), "{e}");
        let wide = |n: usize| (0..n).map(|i| format!("c{i}")).collect::<Vec<_>>();
        let csv = |n: usize| format!("{}\n{}\n", wide(n).join(","), wide(n).join(","));
        assert!(read_csv(&csv(MOST_COLUMNS)).is_ok());
        assert!(read_csv(&csv(MOST_COLUMNS + 1)).unwrap_err().to_string().contains("columns"));
        // Nor cells of all tables, each within its bounds.
        let long = "x,".repeat(99) + "x\n";
        let head = wide(100).join(",") + "\n";
        let e = read_csv(&(head + &long.repeat(MOST_CELLS / 100 + 1))).unwrap_err();
        assert!(e.to_string().contains("cells"), "{e}");
    }

    #[test]
    fn names_and_headings_are_short() {
        let name = "n".repeat(MOST_NAME + 1);
        assert!(read_csv(&format!("{name},b\n1,2\n")).unwrap_err().to_string().contains("longer than"));
        let heading = "h".repeat(100_000);
        let t = &read_markdown(&format!("# {heading}\n\n| a |\n|---|\n| 1 |\n")).unwrap()[0];
        assert!(t.rows[0].title.len() <= MOST_NAME, "{}", t.rows[0].title.len());
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in "(?s).{0,200}") {
            let _ = (read_csv(&text), read_markdown(&text));
        }
    }
}
