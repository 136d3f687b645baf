//! JSON documents of tools, of bounded size, with text before and after them as tools leave it.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::{CUT, ImportError};
use crate::source::MOST_DOCUMENT;

/// Results that are kept of one file.
const MOST_DOCUMENTS: usize = 10_000;
/// Items of one list: jobs of a test, seconds of another.
const MOST_ITEMS: usize = 200_000;

/// A list that is no longer than any tool writes it: an item takes far more memory than the two bytes that it may have in the file.
pub(crate) fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    at_most::<MOST_ITEMS, D, T>(from)
}

/// As [`few`], of items that are large.
pub(crate) fn at_most<'de, const MOST: usize, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    struct Items<const MOST: usize, T>(PhantomData<T>);

    impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for Items<MOST, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut out = Vec::new();
            while let Some(item) = seq.next_element()? {
                if out.len() >= MOST {
                    return Err(A::Error::custom(format!("a list of more than {MOST} items")));
                }
                out.push(item);
            }
            Ok(out)
        }
    }
    from.deserialize_seq(Items::<MOST, T>(PhantomData))
}

/// The text of a whole file, and how many bytes and lines of other text stood before its first document.
pub(crate) struct JsonFile {
    text: Vec<u8>,
    start: usize,
}

impl JsonFile {
    /// All of it; refused where it is larger than any result.
    pub fn read(reader: impl Read) -> Result<Self, ImportError> {
        let mut text = Vec::new();
        reader
            .take(MOST_DOCUMENT + 1)
            .read_to_end(&mut text)
            .map_err(|e| ImportError::reading(format!("byte {}", text.len()), &e))?;
        if text.len() as u64 > MOST_DOCUMENT {
            return Err(ImportError::new(
                format!("it has more than {} MiB of JSON", MOST_DOCUMENT >> 20),
                "No result of this tool is as long. Check that the file is the tool's own output and nothing else; split a \
                 file with many results.",
            ));
        }
        let start = start_of(&text).unwrap_or(text.len());
        Ok(Self { text, start })
    }

    /// The documents; no more than any tool puts into a file.
    pub fn all<T: DeserializeOwned>(&self) -> Result<Vec<T>, ImportError> {
        let mut out = Vec::new();
        self.each(|document| {
            if out.len() >= MOST_DOCUMENTS {
                return Err(ImportError::new(
                    format!("there are more than {MOST_DOCUMENTS} results in it"),
                    "Split the file.",
                ));
            }
            out.push(document);
            Ok(())
        })?;
        Ok(out)
    }

    /// The documents in turn; what is no JSON between or after them ends them, if it is not an error in the first one.
    pub fn each<T: DeserializeOwned>(
        &self,
        mut take: impl FnMut(T) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let mut from = self.start;
        while from < self.text.len() {
            let mut stream = serde_json::Deserializer::from_slice(&self.text[from..]).into_iter::<T>();
            match stream.next() {
                Some(Ok(document)) => take(document)?,
                Some(Err(e)) => return Err(self.error(from, &e)),
                None => break,
            }
            let end = from + stream.byte_offset();
            // Tools print on after a document: "fio: ..." lines, or the next document.
            match start_of(&self.text[end..]) {
                Some(next) => from = end + next,
                None => break,
            }
        }
        Ok(())
    }

    fn error(&self, from: usize, e: &serde_json::Error) -> ImportError {
        let lines_before = self.text[..from].iter().filter(|b| **b == b'\n').count();
        let place = format!("line {}, column {}", lines_before + e.line(), e.column());
        if e.is_eof() {
            return ImportError::at(place, "the JSON ends in the middle", CUT);
        }
        let said = e.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        ImportError::at(
            place,
            format!("this is not what the tool writes there: {said}"),
            "Import the file as the tool wrote it.",
        )
    }
}

/// Where a document begins: a brace that is the first of its line.
pub(crate) fn start_of(text: &[u8]) -> Option<usize> {
    let mut fresh = true;
    for (i, b) in text.iter().enumerate() {
        match b {
            b'{' if fresh => return Some(i),
            b'\n' => fresh = true,
            b' ' | b'\t' | b'\r' | 0xef | 0xbb | 0xbf => {}
            _ => fresh = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<serde_json::Value>, ImportError> {
        JsonFile::read(text.as_bytes())?.all()
    }

    #[test]
    fn text_before_between_and_after_is_passed_over() {
        let all = read("fio: a {warning}\n{\"a\": 1}\nnote\n{\"a\": 2}\nfio: terminating\n").unwrap();
        assert_eq!(all, [serde_json::json!({"a": 1}), serde_json::json!({"a": 2})]);
    }

    #[test]
    fn a_cut_is_told_with_its_place_in_the_whole_file() {
        let e = read("one line\n{\"a\":\n [1, 2").unwrap_err();
        assert_eq!(e.place, "line 3, column 6");
        assert!(e.problem.contains("ends in the middle") && e.remedy.contains("not complete"), "{e}");
    }
}
