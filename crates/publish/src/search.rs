//! Looks for what looks like a credential in run directories that would go along as they are: in texts, and in what is packed.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use plimsoll_model::credentials::without_credentials;

use crate::gather::files_of;

/// Of a packed file so much is looked through, unpacked: a day of a large fleet has less. One with more does not go along.
const MOST_BYTES: u64 = 8 << 30;
/// Looked at in one piece; what may stand across its end is looked at again with the next.
const PIECE_BYTES: usize = 256 << 10;
/// Longer than a credential with its name.
const OVERLAP_BYTES: usize = 8 << 10;
/// Shorter texts are numbers that happen to be letters.
const LEAST_TEXT: usize = 12;
/// Between texts that do not belong together: neither a space, nor a line's end, nor part of a word.
const APART: char = '\u{fffd}';

/// What keeps a copy from going along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCopy {
    /// What looks like a credential is in it; of a text, in this line.
    Credential { file: PathBuf, line: Option<usize> },
    /// It cannot be looked through.
    Unknown { file: PathBuf, why: String },
}

/// The first reason in a run directory, if there is one.
pub fn no_copy(dir: &Path) -> Option<NoCopy> {
    let unknown = |file: &Path, e: std::io::Error| NoCopy::Unknown { file: file.into(), why: e.to_string() };
    let files = match files_of(dir) {
        Ok(files) => files,
        Err(e) => return Some(unknown(dir, e)),
    };
    files.into_iter().find_map(|(file, name)| {
        let found = if name.ends_with(".zst") { in_packed(&file, MOST_BYTES) } else { in_text(&file) };
        match found {
            Ok(Look::Clean) => None,
            Ok(Look::Credential(line)) => Some(NoCopy::Credential { file, line }),
            Ok(Look::TooLarge) => {
                let why = format!("it holds more than {} GiB", MOST_BYTES >> 30);
                Some(NoCopy::Unknown { file, why })
            }
            Err(e) => Some(unknown(&file, e)),
        }
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Look {
    Clean,
    Credential(Option<usize>),
    TooLarge,
}

fn in_text(file: &Path) -> std::io::Result<Look> {
    let text = unescaped(&String::from_utf8_lossy(&fs::read(file)?));
    let clean = without_credentials(&text);
    if clean == text {
        return Ok(Look::Clean);
    }
    let at = clean.bytes().zip(text.bytes()).take_while(|(new, old)| new == old).count();
    Ok(Look::Credential(Some(1 + text.bytes().take(at).filter(|b| *b == b'\n').count())))
}

/// A stream of frames, a piece at a time. What is broken ends it: nobody else can read on there either.
fn in_packed(file: &Path, most_bytes: u64) -> std::io::Result<Look> {
    let mut unpacked = zstd::Decoder::new(BufReader::new(File::open(file)?))?;
    let mut piece = Vec::with_capacity(PIECE_BYTES + OVERLAP_BYTES);
    let mut seen = 0u64;
    loop {
        let kept = piece.len();
        // A stream that ends within a frame was written by a run that was killed.
        let broken = unpacked.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece).is_err();
        let came = piece.len() - kept;
        seen += came as u64;
        let texts = unescaped(&texts_of(&piece));
        if without_credentials(&texts) != texts {
            return Ok(Look::Credential(None));
        }
        if broken || came == 0 {
            return Ok(Look::Clean);
        }
        if seen >= most_bytes {
            return Ok(Look::TooLarge);
        }
        piece.drain(..piece.len().saturating_sub(OVERLAP_BYTES));
    }
}

/// What is text in it: most of a record is numbers, and bytes that happen to be letters are no words of anybody.
fn texts_of(bytes: &[u8]) -> String {
    let is_text = |b: &u8| matches!(b, b' '..=b'~');
    let parts = bytes.split(|b| !is_text(b)).filter(|part| part.len() >= LEAST_TEXT);
    let mut out = String::new();
    for part in parts {
        out.push_str(&String::from_utf8_lossy(part));
        out.push(APART);
    }
    out
}

/// Letters that JSON and TOML may write as escapes (`\u0070`, `\U00000070`, `\/`), as themselves: a name is no other one for that. What holds
/// a document together stays as it is, and so do its lines.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let digits = |n: usize| escape.get(2..2 + n).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let (code, length) = match escape.as_bytes().get(1) {
            Some(b'u') => (digits(4), 6),
            Some(b'U') => (digits(8), 10),
            Some(b'/') => (Some(u32::from(b'/')), 2),
            _ => (None, 2),
        };
        let letter = code.and_then(char::from_u32).filter(|c| !c.is_control() && !matches!(c, '"' | '\\'));
        let length = if letter.is_some() { length } else { 2.min(escape.len()) };
        // Behind a backslash stands a letter that may have several bytes.
        let length = (length..=escape.len()).find(|n| escape.is_char_boundary(*n)).unwrap_or(escape.len());
        match letter {
            Some(letter) => out.push(letter),
            None => out.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(frames: &[&[u8]]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut all = Vec::new();
        for frame in frames {
            // As the store writes them: a head that decoders skip, then the frame.
            all.extend([0x5e, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);
            all.extend(zstd::bulk::compress(frame, 1).unwrap());
        }
        fs::write(file.path(), all).unwrap();
        file
    }

    /// Numbers that look like anything.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn what_is_packed_is_looked_through_wherever_it_stands() {
        let secret = br#"{"text":"it failed: password=hunter3-hunter3"}"#;
        for before in [0, 100, PIECE_BYTES - 20, PIECE_BYTES - 1, 2 * PIECE_BYTES + 7] {
            let frame = [&noise(before)[..], b"\0", secret, b"\0", &noise(300)[..]].concat();
            let file = packed(&[b"a first frame of words", &frame]);
            assert_eq!(in_packed(file.path(), MOST_BYTES).unwrap(), Look::Credential(None), "{before}");
        }
    }

    #[test]
    fn numbers_are_no_secrets() {
        let file = packed(&[br#"{"format":"plimsoll.intervals/1","source":"lg-1"}"#, &noise(4 << 20)]);
        assert_eq!(in_packed(file.path(), MOST_BYTES).unwrap(), Look::Clean);
    }

    #[test]
    fn what_cannot_be_looked_through_does_not_go_along() {
        // A gigabyte of nothing takes kilobytes.
        let file = packed(&[&vec![0; 3 << 20]]);
        assert_eq!(in_packed(file.path(), 1 << 20).unwrap(), Look::TooLarge);
        let torn = packed(&[b"a whole frame of words", &noise(1 << 20)]);
        let all = fs::read(torn.path()).unwrap();
        fs::write(torn.path(), &all[..all.len() / 2]).unwrap();
        assert_eq!(in_packed(torn.path(), MOST_BYTES).unwrap(), Look::Clean);
    }

    #[test]
    fn a_secret_in_escapes_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env.json");
        for (line, secret) in [
            (r#"  "pass\u0077ord": "geheim123","#, true),
            (r#"  "label": {"\u0074oken": "geheim123"}"#, true),
            (r#"  "endpoint": "http:\/\/me:geheim123@h""#, true),
            (r#"  "cmd": "mc alias set a http:\/\/h KEYKEY Sup3rSecret""#, true),
            (r#"  "note": "caf\u00e9 \u0022x\u0022 \\ \n \u00","#, false),
            ("  \"a\": \"\\\u{e9}\", \"b\": \"\\", false),
        ] {
            fs::write(&file, format!("{{\n{line}\n}}\n")).unwrap();
            let found = no_copy(dir.path());
            let line_2 = NoCopy::Credential { file: file.clone(), line: Some(2) };
            assert_eq!(found, secret.then_some(line_2), "{line}");
        }
        assert_eq!(unescaped(r#"a\u0070\/\n\u0022\ud83d\"#), r#"ap/\n\u0022\ud83d\"#);
    }

    #[test]
    fn a_directory_tells_the_file_and_of_a_text_the_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("intervals")).unwrap();
        fs::write(dir.path().join("plan.toml"), "version = 1\n").unwrap();
        assert_eq!(no_copy(dir.path()), None);
        let at = dir.path().join("intervals/local.zst");
        let secret = zstd::bulk::compress(b"a mark: secret_key=wJalrXUtnFEMIK7MDENG", 1).unwrap();
        fs::write(&at, secret).unwrap();
        assert_eq!(no_copy(dir.path()), Some(NoCopy::Credential { file: at, line: None }));
        let plan = dir.path().join("a.toml");
        fs::write(&plan, "version = 1\npassword = \"hunter3\"\n").unwrap();
        assert_eq!(no_copy(dir.path()), Some(NoCopy::Credential { file: plan, line: Some(2) }));
    }
}
