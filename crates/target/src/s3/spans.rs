//! Which bytes of an object a request is about: a range, a part, or all.

use super::object::Meta;
use s3s::dto::Range;
use s3s::{S3Result, s3_error};
use std::ops::Range as Span;

/// The bytes that a range asks for: (span, whether it is a part).
pub(crate) fn span_of(range: Option<&Range>, size: u64) -> S3Result<(Span<u64>, bool)> {
    match range {
        None => Ok((0..size, false)),
        Some(r) => {
            let span = r.check(size).map_err(|_| s3_error!(InvalidRange, "the object has {size} bytes"))?;
            Ok((span, true))
        }
    }
}

/// The bytes of one part of an object that was uploaded in parts; the whole of any other is part 1.
fn part_span(meta: &Meta, number: i32) -> S3Result<Span<u64>> {
    let bad = || s3_error!(InvalidRange, "the object has no part {number}");
    let index = usize::try_from(number - 1).map_err(|_| bad())?;
    if meta.parts.is_empty() && index == 0 {
        return Ok(0..meta.size);
    }
    let size = *meta.parts.get(index).ok_or_else(bad)?;
    let start: u64 = meta.parts[..index].iter().sum();
    Ok(start..start + size)
}

/// Which bytes a GET or HEAD is about, and what Content-Range says of them.
pub(crate) fn select(
    meta: &Meta,
    range: Option<&Range>,
    part: Option<i32>,
) -> S3Result<(Span<u64>, Option<String>)> {
    let (span, partial) = match part {
        Some(n) => (part_span(meta, n)?, !meta.parts.is_empty()),
        None => span_of(range, meta.size)?,
    };
    let text =
        (partial && !span.is_empty()).then(|| format!("bytes {}-{}/{}", span.start, span.end - 1, meta.size));
    Ok((span, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_parts_give_their_bytes() {
        let meta = Meta { size: 100, parts: vec![60, 40], ..Meta::default() };
        let range = |t: &str| select(&meta, Some(&Range::parse(t).unwrap()), None);
        assert_eq!(range("bytes=0-9").unwrap(), (0..10, Some("bytes 0-9/100".into())));
        assert_eq!(range("bytes=90-999").unwrap(), (90..100, Some("bytes 90-99/100".into())));
        assert_eq!(range("bytes=-5").unwrap(), (95..100, Some("bytes 95-99/100".into())));
        assert!(range("bytes=100-").is_err());
        assert_eq!(select(&meta, None, Some(2)).unwrap(), (60..100, Some("bytes 60-99/100".into())));
        assert!(select(&meta, None, Some(3)).is_err() && select(&meta, None, Some(0)).is_err());
        let plain = Meta { size: 0, ..Meta::default() };
        assert_eq!(select(&plain, None, None).unwrap(), (0..0, None));
        assert_eq!(select(&plain, None, Some(1)).unwrap(), (0..0, None));
    }
}
