//! Chunked transfer coding (RFC 9112 section 7.1): sizes with extensions, data, trailers.

use super::Malformed;

/// The longest line (chunk size with its extensions, or one trailer) that is read.
const MAX_LINE_BYTES: u32 = 8 * 1024;
/// All trailers together.
const MAX_TRAILER_BYTES: u32 = 32 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the digits of a size; `digits` were seen.
    Size {
        digits: u8,
    },
    /// In an extension or the blanks after a size, up to the line's end.
    Extension,
    /// After the size's CR.
    SizeLf,
    Data,
    /// After data: CR, then LF.
    DataCr,
    DataLf,
    /// In a trailer line (or the empty line at the end).
    Trailer,
    TrailerLf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunked {
    at: At,
    left: u64,
    line: u32,
    trailers: u32,
}

/// What the used bytes were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All input is used.
    More,
    /// The last so many of the used bytes are data.
    Data(usize),
    /// A trailer line is complete, in `pending`.
    Trailer,
    End,
}

impl Chunked {
    pub fn new() -> Self {
        Self { at: At::Size { digits: 0 }, left: 0, line: 0, trailers: 0 }
    }

    /// Reads on; see [`Part`]. A trailer line gathers in `pending`.
    pub fn step(&mut self, input: &[u8], pending: &mut Vec<u8>) -> Result<(usize, Part), Malformed> {
        let mut i = 0;
        while i < input.len() {
            if self.at == At::Data {
                let len = (input.len() - i).min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= len as u64;
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                return Ok((i + len, Part::Data(len)));
            }
            let c = input[i];
            i += 1;
            if let Some(part) = self.byte(c, pending)? {
                return Ok((i, part));
            }
        }
        Ok((i, Part::More))
    }

    fn byte(&mut self, c: u8, pending: &mut Vec<u8>) -> Result<Option<Part>, Malformed> {
        match self.at {
            At::Size { digits } => self.size(c, digits)?,
            At::Extension => {
                self.count_line()?;
                match c {
                    b'\r' => self.at = At::SizeLf,
                    // A bare LF inside an extension is how requests are smuggled: not taken as a line end.
                    b'\n' => return Err(Malformed::Chunk),
                    _ => {}
                }
            }
            At::SizeLf => {
                expect(c, b'\n')?;
                self.line = 0;
                self.at = if self.left == 0 { At::Trailer } else { At::Data };
            }
            At::Data => unreachable!("data is taken in one piece above"),
            At::DataCr => {
                expect(c, b'\r')?;
                self.at = At::DataLf;
            }
            At::DataLf => {
                expect(c, b'\n')?;
                self.at = At::Size { digits: 0 };
            }
            At::Trailer => {
                self.count_line()?;
                self.trailers += 1;
                if self.trailers > MAX_TRAILER_BYTES {
                    return Err(Malformed::HeadTooLong);
                }
                match c {
                    b'\r' => self.at = At::TrailerLf,
                    b'\n' => return Err(Malformed::Chunk),
                    _ => pending.push(c),
                }
            }
            At::TrailerLf => {
                expect(c, b'\n')?;
                self.at = At::Trailer;
                self.line = 0;
                return Ok(Some(if pending.is_empty() { Part::End } else { Part::Trailer }));
            }
        }
        Ok(None)
    }

    fn size(&mut self, c: u8, digits: u8) -> Result<(), Malformed> {
        if let Some(d) = (c as char).to_digit(16) {
            // 15 hex digits stay far from overflow and from any real chunk.
            if digits == 15 {
                return Err(Malformed::Chunk);
            }
            self.left = self.left << 4 | u64::from(d);
            self.at = At::Size { digits: digits + 1 };
            return Ok(());
        }
        if digits == 0 {
            return Err(Malformed::Chunk);
        }
        self.at = match c {
            b'\r' => At::SizeLf,
            b';' | b' ' | b'\t' => At::Extension,
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }

    fn count_line(&mut self) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > MAX_LINE_BYTES { Err(Malformed::Chunk) } else { Ok(()) }
    }
}

fn expect(c: u8, want: u8) -> Result<(), Malformed> {
    if c == want { Ok(()) } else { Err(Malformed::Chunk) }
}
