//! Block sizes: `bs`, `bsrange` and `bssplit`, each with a value for reads and one for writes.

use plimsoll_model::plan::SizeDist;
use plimsoll_model::units::Size;

use super::error::FioError;
use super::value::Reader;

/// fio's default block size.
pub const DEFAULT_BS: u64 = 4096;

/// What was written of each form, for reads (0) and writes (1).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockSizes {
    fixed: [Option<u64>; 2],
    range: [Option<(u64, u64)>; 2],
    split: [Option<Vec<(u64, u32)>>; 2],
}

impl BlockSizes {
    /// `bs=8k`, `bs=8k,32k`; `bs=8k,` leaves writes at the default, `bs=,8k` leaves reads.
    pub fn set_fixed(&mut self, r: &Reader<'_>) -> Result<(), FioError> {
        let values = r.directions(|r, t| positive(r, t))?;
        let alone = !r.text.contains(',');
        for (slot, v) in self.fixed.iter_mut().zip(values) {
            if v.is_some() || alone {
                *slot = v;
            }
        }
        Ok(())
    }

    /// `bsrange=1k-4k,2k-8k`.
    pub fn set_range(&mut self, r: &Reader<'_>) -> Result<(), FioError> {
        let values = r.directions(|r, t| {
            let (a, b) = t.split_once('-').or_else(|| t.split_once(':')).unwrap_or((t, t));
            let (a, b) = (positive(r, a)?, positive(r, b)?);
            Ok((a.min(b), a.max(b)))
        })?;
        for (slot, v) in self.range.iter_mut().zip(values) {
            if v.is_some() {
                *slot = v;
            }
        }
        Ok(())
    }

    /// `bssplit=4k/10:64k/50:32k/40`, `4k/50:8k/` (blank shares divide what is left), and a comma
    /// between reads and writes.
    pub fn set_split(&mut self, r: &Reader<'_>) -> Result<(), FioError> {
        let parts: Vec<&str> = r.text.split(',').collect();
        if parts.len() > 3 {
            return r.fail("has more than three directions", "Write reads,writes,trims.");
        }
        let read = parse_split(r, parts[0])?;
        let write = match parts.get(1) {
            Some(p) => parse_split(r, p)?,
            None => read.clone(),
        };
        self.split = [Some(read), Some(write)];
        Ok(())
    }

    /// The distribution of one direction. As in fio a split outranks a range, and a range `bs`.
    pub fn distribution(&self, write: bool) -> SizeDist {
        let i = usize::from(write);
        if let Some(split) = &self.split[i] {
            return match split.as_slice() {
                [(size, _)] => SizeDist::Fixed(Size(*size)),
                list => SizeDist::Weighted(list.iter().map(|(s, w)| (Size(*s), *w)).collect()),
            };
        }
        match self.range[i] {
            Some((a, b)) if a == b => SizeDist::Fixed(Size(a)),
            Some((a, b)) => SizeDist::Uniform { min: Size(a), max: Size(b) },
            None => SizeDist::Fixed(Size(self.fixed[i].unwrap_or(DEFAULT_BS))),
        }
    }
}

/// Mean of a distribution as the engine draws from it, in bytes.
pub fn mean_bytes(d: &SizeDist) -> f64 {
    match d {
        SizeDist::Fixed(s) => s.0 as f64,
        SizeDist::Uniform { min, max } => {
            // Multiples of min up to max.
            let n = (max.0 / min.0.max(1)).max(1);
            min.0 as f64 * (n + 1) as f64 / 2.0
        }
        SizeDist::Weighted(l) => {
            let total: f64 = l.iter().map(|(_, w)| f64::from(*w)).sum();
            l.iter().map(|(s, w)| s.0 as f64 * f64::from(*w)).sum::<f64>() / total.max(1.0)
        }
        SizeDist::LogNormal { median, .. } => median.0 as f64,
    }
}

/// Largest block that a distribution draws.
pub fn max_bytes(d: &SizeDist) -> u64 {
    match d {
        SizeDist::Fixed(s) | SizeDist::Uniform { max: s, .. } | SizeDist::LogNormal { max: s, .. } => s.0,
        SizeDist::Weighted(l) => l.iter().filter(|(_, w)| *w > 0).map(|(s, _)| s.0).max().unwrap_or(0),
    }
}

fn positive(r: &Reader<'_>, text: &str) -> Result<u64, FioError> {
    match r.size(text)? {
        0 => r.fail("the block size is 0", "Write for example 4k."),
        n => Ok(n),
    }
}

fn parse_split(r: &Reader<'_>, text: &str) -> Result<Vec<(u64, u32)>, FioError> {
    const REMEDY: &str = "Write size/percent pairs, for example 4k/60:64k/40.";
    let mut list: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':').map(str::trim).filter(|p| !p.is_empty()) {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = match share.trim() {
            "" => None,
            s => match s.trim_end_matches('%').parse::<u32>() {
                Ok(p) if p <= 100 => Some(p),
                _ => return r.fail(format!("'{s}' is not a percentage"), REMEDY),
            },
        };
        list.push((positive(r, size)?, share));
    }
    let given: u32 = list.iter().filter_map(|(_, p)| *p).sum();
    let blanks = list.iter().filter(|(_, p)| p.is_none()).count() as u32;
    if list.is_empty() || given > 100 {
        return r.fail("is not a split: its shares add up to more than 100 %, or there are none", REMEDY);
    }
    let left = 100 - given;
    let mut out: Vec<(u64, u32)> = Vec::new();
    let mut rest = left;
    let mut blanks_left = blanks;
    for (size, share) in list {
        let p = share.unwrap_or_else(|| {
            let p = rest / blanks_left;
            rest -= p;
            blanks_left -= 1;
            p
        });
        out.push((size, p));
    }
    // fio draws the last size for whatever the shares leave.
    if blanks == 0
        && left > 0
        && let Some(last) = out.last_mut()
    {
        last.1 += left;
    }
    Ok(out)
}
