//! What a file is, told from its beginning: whatever its name, and however long it is.

use std::collections::BTreeMap;
use std::io::{BufReader, Cursor, Read};

use plimsoll_model::Finding;
use plimsoll_model::summary::WorkloadSummary;

use crate::error::ImportError;
use crate::{document, elbencho, fio, gobonniego, iperf3, warp};

/// Longest JSON that is read: results of thousands of jobs with all of their bins are shorter.
pub const MOST_DOCUMENT: u64 = 64 << 20;

/// Bytes by which a file is recognised.
const HEAD: usize = 64 << 10;
/// A zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Largest window of a compressed file, as a power of two: 32 MiB. What needs more was made to take memory.
const WINDOW_LOG: u32 = 25;

/// Whose file it is, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// `fio --output-format=json`, or `json+`.
    Fio,
    /// `*.csv.zst` of warp: each request.
    WarpRequests,
    /// `*.json.zst` of warp: what it made of the requests.
    WarpSummary,
    /// `iperf3 -J`.
    Iperf3,
    /// `gobonniego -json`.
    GoBonnieGo,
    /// `elbencho --csvfile`.
    ElbenchoCsv,
    /// `elbencho --jsonfile`.
    ElbenchoJson,
}

impl SourceForm {
    /// As the tool calls itself.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::WarpRequests | Self::WarpSummary => "warp",
            Self::Iperf3 => "iperf3",
            Self::GoBonnieGo => "GoBonnieGo",
            Self::ElbenchoCsv | Self::ElbenchoJson => "elbencho",
        }
    }
}

/// One test of another tool, in our names and units.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportedRun {
    /// Of the tool, as the file has it; empty: the file does not say.
    pub tool_version: String,
    /// What the file is: `json`, `json+`, `csv`.
    pub form: String,
    /// What was measured, in a few words.
    pub title: String,
    /// Wall-clock time of its start, RFC 3339; empty: the file does not say.
    pub started_at: String,
    /// In the order of the file.
    pub lines: Vec<WorkloadSummary>,
    /// What does not agree, and how figures are to be read.
    pub findings: Vec<Finding>,
    /// What else the file says of the test: name and value.
    pub facts: BTreeMap<String, String>,
}

/// A file that was recognised. It is still at its beginning.
pub struct Source<'a> {
    form: SourceForm,
    reader: Box<dyn Read + 'a>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("form", &self.form).finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    /// Looks at the beginning, through zstd where it is compressed.
    pub fn open(reader: impl Read + 'a) -> Result<Self, ImportError> {
        let (start, reader) = head(reader, ZSTD.len(), "byte 0")?;
        let reader: Box<dyn Read + 'a> = if start == ZSTD {
            let mut decoder =
                zstd::stream::read::Decoder::new(reader).map_err(|e| ImportError::reading("byte 0", &e))?;
            decoder.window_log_max(WINDOW_LOG).map_err(|e| ImportError::reading("byte 0", &e))?;
            Box::new(decoder)
        } else {
            Box::new(reader)
        };
        let (start, reader) = head(reader, HEAD, "its beginning")?;
        let form = recognise(&start)?;
        Ok(Self { form, reader: Box::new(reader) })
    }

    /// Whose it is.
    pub fn form(&self) -> SourceForm {
        self.form
    }

    /// The content from its beginning, decompressed.
    pub fn into_reader(self) -> Box<dyn Read + 'a> {
        self.reader
    }

    /// The tests that a file of figures holds: one, or as many as a tool appended to it. An error for a file of requests, which has
    /// a way of its own ([`warp::survey`]).
    pub fn lines(self) -> Result<Vec<ImportedRun>, ImportError> {
        let mut runs = match self.form {
            SourceForm::Fio => fio::read(self.reader),
            SourceForm::Iperf3 => iperf3::read(self.reader),
            SourceForm::GoBonnieGo => gobonniego::read(self.reader),
            SourceForm::ElbenchoCsv => elbencho::read_csv(self.reader),
            SourceForm::ElbenchoJson => elbencho::read_json(self.reader),
            SourceForm::WarpSummary => warp::read_json(self.reader),
            SourceForm::WarpRequests => {
                Err(ImportError::new("it has requests, and no figures", "This is a bug."))
            }
        }?;
        runs.retain(|r| !r.lines.is_empty());
        if runs.is_empty() {
            return Err(ImportError::new(
                format!("{} measured nothing in it", self.form.tool()),
                "Look at the tool's own output for an error, and repeat the test.",
            ));
        }
        runs.iter_mut().for_each(crate::checks::finish);
        runs.iter().flat_map(|r| &r.lines).try_for_each(crate::checks::countable)?;
        Ok(runs)
    }
}

type Rest<R> = std::io::Chain<Cursor<Vec<u8>>, R>;

/// The first bytes, and a reader that still has them.
fn head<R: Read>(mut reader: R, bytes: usize, place: &str) -> Result<(Vec<u8>, Rest<R>), ImportError> {
    let mut start = Vec::new();
    reader
        .by_ref()
        .take(bytes as u64)
        .read_to_end(&mut start)
        .map_err(|e| ImportError::reading(place, &e))?;
    Ok((start.clone(), Cursor::new(start).chain(reader)))
}

fn recognise(start: &[u8]) -> Result<SourceForm, ImportError> {
    if start.iter().all(u8::is_ascii_whitespace) {
        return Err(ImportError::new(
            "it is empty",
            "The tool was killed before it wrote its result, or wrote it elsewhere: repeat the test.",
        ));
    }
    let text = String::from_utf8_lossy(start);
    let first = text.trim_start_matches('\u{feff}').lines().find(|l| !l.starts_with('#')).unwrap_or_default();
    if first.starts_with("idx\tthread\top\t") {
        return Ok(SourceForm::WarpRequests);
    }
    if first.contains("operation,") && first.contains("time ms [last]") {
        return Ok(SourceForm::ElbenchoCsv);
    }
    let json = document::start_of(start).map(|at| String::from_utf8_lossy(&start[at..])).unwrap_or_default();
    let has = |key: &str| json.contains(&format!("\"{key}\""));
    let known = [
        (has("fio version"), SourceForm::Fio),
        (has("gobonniego_directory"), SourceForm::GoBonnieGo),
        (has("phase_type") && has("iso_start_date"), SourceForm::ElbenchoJson),
        (has("v") && has("commandline") && has("total"), SourceForm::WarpSummary),
        (
            has("start") && (json.contains("iperf 3") || has("test_start") || has("connected")),
            SourceForm::Iperf3,
        ),
    ];
    known.into_iter().find(|(is, _)| *is).map(|(_, form)| form).ok_or_else(|| {
        ImportError::new(
            "it is not the result of a tool that is known here",
            "These are: fio (--output-format=json or json+), warp (.csv.zst, .json.zst), elbencho (--csvfile, --jsonfile), \
             GoBonnieGo (-json), iperf3 (-J).",
        )
    })
}

/// Reads large files in large pieces.
pub(crate) fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(1 << 16, reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_or_unknown_is_told() {
        let e = Source::open(&b""[..]).unwrap_err();
        assert_eq!(e.to_string(), "it is empty");
        let e = Source::open(&[0u8; 4096][..]).unwrap_err();
        assert!(e.remedy.contains("warp (.csv.zst"), "{e}");
        assert!(Source::open(&ZSTD[..]).is_err());
    }

    #[test]
    fn a_compressed_file_that_ends_in_the_middle_is_told() {
        let text = "idx\tthread\top\tbytes\n".repeat(5000);
        let whole = zstd::encode_all(text.as_bytes(), 1).unwrap();
        assert_eq!(Source::open(&whole[..]).unwrap().form(), SourceForm::WarpRequests);
        let e = Source::open(&whole[..whole.len() / 2]).unwrap_err();
        assert!(e.to_string().contains("ends in the middle"), "{e}");
    }
}
