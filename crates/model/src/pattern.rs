//! Patterns that stand for several names: `s{1...4}`, of servers, of nodes of a cluster.

/// The most names that one pattern may stand for: more is nearly always a slip of the pen.
pub const MAX_EXPANSION: usize = 4096;

/// Each `{a...b}` stands for the numbers a to b, with leading zeros kept (`{01...16}`); in order. A text without one is itself.
pub fn expand_ranges(pattern: &str) -> Result<Vec<String>, String> {
    let Some(open) = pattern.find('{') else {
        return if pattern.contains('}') { Err("'}' without '{'".into()) } else { Ok(vec![pattern.into()]) };
    };
    let close = pattern[open..].find('}').ok_or("'{' is not closed")? + open;
    let inside = &pattern[open + 1..close];
    let form = || format!("'{{{inside}}}' is not a range of numbers such as {{1...4}}");
    let (a, b) = inside.split_once("...").ok_or_else(form)?;
    let number = |s: &str| -> Result<u32, String> {
        if s.is_empty() || !s.bytes().all(|c| c.is_ascii_digit()) {
            return Err(form());
        }
        s.parse().map_err(|_| form())
    };
    let (first, last) = (number(a)?, number(b)?);
    if first > last {
        return Err(format!("the range {{{inside}}} runs backwards"));
    }
    let too_many = || format!("it stands for more than {MAX_EXPANSION} servers");
    if (last - first) as usize >= MAX_EXPANSION {
        return Err(too_many());
    }
    let width = if a.starts_with('0') && a.len() > 1 { a.len() } else { 0 };
    let rest = expand_ranges(&pattern[close + 1..])?;
    if rest.len().saturating_mul((last - first) as usize + 1) > MAX_EXPANSION {
        return Err(too_many());
    }
    let head = &pattern[..open];
    Ok((first..=last).flat_map(|n| rest.iter().map(move |r| format!("{head}{n:0width$}{r}"))).collect())
}
