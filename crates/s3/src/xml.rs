//! The XML bodies of S3: the few documents that are read, and the three that are written.
//!
//! Documents come from a server that may be broken or hostile: sizes and depth are bounded, document types and
//! unknown entities are refused, names are matched without their namespace.

use plimsoll_model::text::said;
use quick_xml::Reader;
use quick_xml::events::Event;

mod documents;
mod versions;
mod write;

pub use documents::*;
pub use versions::{ListedVersion, ObjectLock, VersionsPage, parse_versioning};
pub use write::{write_complete, write_create_bucket, write_delete, write_delete_versions};

/// The largest document that is read: a page of 1000 keys of 1024 percent-encoded bytes is under 4 MB.
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
const MAX_DEPTH: usize = 32;

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server's XML cannot be read: {0}")]
pub struct XmlError(pub String);

fn bad(why: impl Into<String>) -> XmlError {
    // What is wrong is most often shown with what the server sent.
    XmlError(said(&why.into()))
}

/// Walks a document. At the end of each element `visit` gets its path (`ListBucketResult/Contents/Key`) and its
/// own text (empty for elements that only hold others).
pub(crate) fn walk(
    document: &[u8],
    mut visit: impl FnMut(&str, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(bad(format!("it is longer than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let text = std::str::from_utf8(document).map_err(|_| bad("it is not UTF-8"))?;
    let mut reader = Reader::from_str(text);
    let mut path = String::new();
    // Where each open element's name begins in `path`, and its text so far.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut roots = 0;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|e| bad(format!("{e} at byte {at}")))?;
        match event {
            Event::Start(e) => {
                push(&mut path, &mut open, e.local_name().as_ref(), &mut roots)?;
            }
            Event::Empty(e) => {
                push(&mut path, &mut open, e.local_name().as_ref(), &mut roots)?;
                pop(&mut path, &mut open, &mut visit)?;
            }
            Event::End(_) => pop(&mut path, &mut open, &mut visit)?,
            Event::Text(t) => match open.last_mut() {
                Some((_, s)) => s.push_str(&t.xml10_content()),
                None if t.trim().is_empty() => {}
                None => return Err(bad("there is text outside the document")),
            },
            Event::CData(t) => match open.last_mut() {
                Some((_, s)) => s.push_str(&t.xml10_content()),
                None => return Err(bad("there is text outside the document")),
            },
            Event::GeneralRef(r) => {
                let (_, s) = open.last_mut().ok_or_else(|| bad("there is text outside the document"))?;
                match r.resolve_char_ref().map_err(|e| bad(e.to_string()))? {
                    Some(c) => s.push(c),
                    None => s.push(entity(&r)?),
                }
            }
            Event::DocType(_) => return Err(bad("it has a document type, which S3 never sends")),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            Event::Eof => break,
        }
    }
    if !open.is_empty() || roots != 1 {
        return Err(bad(if roots == 0 { "it is empty" } else { "it ends in the middle" }));
    }
    Ok(())
}

fn entity(name: &str) -> Result<char, XmlError> {
    Ok(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        other => return Err(bad(format!("unknown entity '&{other};'"))),
    })
}

fn push(
    path: &mut String,
    open: &mut Vec<(usize, String)>,
    name: impl AsRef<str>,
    roots: &mut u32,
) -> Result<(), XmlError> {
    if open.len() == MAX_DEPTH {
        return Err(bad(format!("it is nested deeper than {MAX_DEPTH}")));
    }
    if open.is_empty() {
        *roots += 1;
        if *roots > 1 {
            return Err(bad("it has two roots"));
        }
    }
    open.push((path.len(), String::new()));
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name.as_ref());
    Ok(())
}

fn pop(
    path: &mut String,
    open: &mut Vec<(usize, String)>,
    visit: &mut impl FnMut(&str, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    let (at, text) = open.pop().ok_or_else(|| bad("an element ends that was not begun"))?;
    visit(path, &text)?;
    path.truncate(at);
    Ok(())
}

#[cfg(test)]
mod tests;
