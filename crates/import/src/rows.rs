//! Tables with a head, row by row: what warp and elbencho write. No row is longer than a bound, however long the file.

use std::io::{BufRead, BufReader, Read};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::error::{CUT, ImportError};
use crate::source::buffered;

/// Longest row: names of objects have 1 KiB, and errors a few.
const MOST_ROW: usize = 256 << 10;
/// More columns than any tool has.
const MOST_COLUMNS: usize = 512;
/// Of the end of the file, for what stands behind the table.
const TAIL: usize = 8 << 10;

/// What a row of appended tables is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Names of the columns of what follows.
    Head,
    /// A row.
    Row,
}

/// Reads rows; [`Rows::field`] is of the one that was read last.
pub(crate) struct Rows<R: Read> {
    reader: BufReader<R>,
    csv: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    /// Line that the row begins in, from 1.
    line: u64,
    head: Vec<String>,
    tail: Vec<u8>,
}

impl<R: Read> Rows<R> {
    /// Reads the head.
    pub fn open(reader: R, delimiter: u8) -> Result<Self, ImportError> {
        let csv = ReaderBuilder::new().delimiter(delimiter).comment(Some(b'#')).build();
        let (text, ends) = (vec![0; MOST_ROW], vec![0; MOST_COLUMNS]);
        let mut rows = Self {
            reader: buffered(reader),
            csv,
            text,
            ends,
            fields: 0,
            line: 1,
            head: Vec::new(),
            tail: Vec::new(),
        };
        if rows.advance()? {
            rows.head = rows.names();
        }
        Ok(rows)
    }

    /// What the row that was read last says, as a head.
    fn names(&self) -> Vec<String> {
        (0..self.fields).map(|i| self.field(i).trim_start_matches('\u{feff}').to_owned()).collect()
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.head.iter().position(|h| h == name)
    }

    /// The column of a name without which the table says nothing.
    pub fn needed(&self, name: &str) -> Result<usize, ImportError> {
        self.column(name).ok_or_else(|| {
            ImportError::at(
                "line 1",
                format!("there is no column '{name}'"),
                "It is of a version that is not known here, or its head was changed. Import the file as the tool wrote it.",
            )
        })
    }

    /// Names of all columns.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// Goes to the next row; false at the end. A row with fewer fields than the head was cut off.
    pub fn next(&mut self) -> Result<bool, ImportError> {
        if !self.advance()? {
            return Ok(false);
        }
        self.whole().map(|()| true)
    }

    /// The same in a file to which tables were appended, each with its own head: a row that has all of these names is the head of what follows.
    /// `None` at the end.
    pub fn next_or_head(&mut self, needed: &[&str]) -> Result<Option<RowKind>, ImportError> {
        if !self.advance()? {
            return Ok(None);
        }
        if (0..self.fields).any(|i| self.field(i) == needed[0]) {
            let names = self.names();
            if needed.iter().all(|n| names.iter().any(|name| name == n)) {
                self.head = names;
                return Ok(Some(RowKind::Head));
            }
        }
        self.whole().map(|()| Some(RowKind::Row))
    }

    /// Whether the row has a field for each name.
    fn whole(&mut self) -> Result<(), ImportError> {
        if self.fields != self.head.len() {
            let (problem, remedy) = if self.fields < self.head.len() && self.is_at_end()? {
                ("the last row is cut off".to_owned(), CUT)
            } else {
                (
                    format!("the row has {} fields, and the head has {}", self.fields, self.head.len()),
                    "The file is damaged, or results of several versions were put into one: import each by itself.",
                )
            };
            return Err(ImportError::at(self.place(), problem, remedy));
        }
        Ok(())
    }

    fn is_at_end(&mut self) -> Result<bool, ImportError> {
        let place = self.place();
        self.reader.fill_buf().map(<[u8]>::is_empty).map_err(|e| ImportError::reading(place, &e))
    }

    fn advance(&mut self) -> Result<bool, ImportError> {
        let (mut text, mut ends) = (0, 0);
        self.line = self.csv.line();
        loop {
            let place = format!("line {}", self.line);
            let input = self.reader.fill_buf().map_err(|e| ImportError::reading(place, &e))?;
            let (result, read, written, ended) =
                self.csv.read_record(input, &mut self.text[text..], &mut self.ends[ends..]);
            self.tail.extend_from_slice(&input[..read]);
            if self.tail.len() > 4 * TAIL {
                self.tail.drain(..self.tail.len() - TAIL);
            }
            self.reader.consume(read);
            text += written;
            ends += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => {
                    self.fields = ends;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    return Err(ImportError::at(
                        format!("line {}", self.line),
                        format!("the row is longer than {} KiB", MOST_ROW >> 10),
                        "A quotation mark is not closed there, or the file is damaged: import it as the tool wrote it.",
                    ));
                }
            }
        }
    }

    /// Of the row that was read last; empty: there is none, or it is no text.
    pub fn field(&self, column: usize) -> &str {
        if column >= self.fields {
            return "";
        }
        let from = if column == 0 { 0 } else { self.ends[column - 1] };
        std::str::from_utf8(&self.text[from..self.ends[column]]).unwrap_or_default()
    }

    /// Where the row is, for a message.
    pub fn place(&self) -> String {
        format!("line {}", self.line)
    }

    /// Comments at the end of the file, once all rows were read.
    pub fn comments(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.tail);
        text.lines().filter_map(|l| l.strip_prefix('#')).map(|l| l.trim().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_and_comments_are_read() {
        let text = "a\tb\n1\t\"two\nlines\"\n# made by hand\n2\tx\n# warp get\n";
        let mut rows = Rows::open(text.as_bytes(), b'\t').unwrap();
        assert_eq!(rows.head(), ["a", "b"]);
        assert!(rows.next().unwrap());
        assert_eq!((rows.field(1), rows.place().as_str()), ("two\nlines", "line 2"));
        assert!(rows.next().unwrap());
        assert_eq!(rows.field(0), "2");
        assert!(!rows.next().unwrap());
        assert_eq!(rows.comments(), ["made by hand", "warp get"]);
    }

    #[test]
    fn a_row_without_end_is_refused_in_bounded_memory() {
        let text = std::io::repeat(b'x').take(1 << 30);
        let mut rows = Rows::open("a\tb\n1\t\"".as_bytes().chain(text), b'\t').unwrap();
        let e = rows.next().unwrap_err();
        assert!(e.to_string().contains("line 2") && e.to_string().contains("longer than 256 KiB"), "{e}");
    }

    #[test]
    fn a_cut_row_is_told_with_its_line() {
        let mut rows = Rows::open("a\tb\n1\t2\n3".as_bytes(), b'\t').unwrap();
        assert!(rows.next().unwrap());
        let e = rows.next().unwrap_err();
        assert_eq!((e.place.as_str(), e.problem.as_str()), ("line 3", "the last row is cut off"));
    }
}
