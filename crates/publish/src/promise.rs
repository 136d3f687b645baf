//! What a subject is said to do, beside what it did.

use plimsoll_campaign::{CampaignResult, CampaignRow};
use plimsoll_model::Estimate;
use plimsoll_report::number;

use crate::tables::mib;

/// A promise of a subject, and the most that any workload had of it.
#[derive(Debug, Clone)]
pub struct PromiseKept {
    /// Whose.
    pub subject: String,
    /// `op/s` or `MiB/s`.
    pub what: &'static str,
    /// As the file has it.
    pub promised: String,
    /// In the unit of `measured`.
    pub value: f64,
    /// Op/s, or MiB/s. `None`: there is no valid figure.
    pub measured: Option<Estimate>,
    /// That had the most.
    pub workload: String,
    /// Of the results.
    pub row: Option<usize>,
}

impl PromiseKept {
    /// The figure.
    pub fn measured_text(&self) -> String {
        number::estimate_or_missing(self.measured.as_ref())
    }

    /// Of the measured to the promised, in percent, with the interval of the measured.
    pub fn difference(&self) -> String {
        let Some(e) = self.measured.filter(|_| self.value > 0.0) else { return String::new() };
        let share = |x: f64| (x / self.value - 1.0) * 100.0;
        let change = Estimate { value: share(e.value), low: share(e.low), high: share(e.high), ..e };
        let sign = if change.value > 0.0 { "+" } else { "" };
        format!("{sign}{} %", number::difference(&change))
    }

    /// In words: the interval decides.
    pub fn verdict(&self) -> &'static str {
        match self.measured {
            None => "not measured",
            // A limiter that lets a part in a thousand less through is at its promise.
            Some(e) if e.high < self.value * 0.999 => "not reached",
            Some(e) if e.low >= self.value * REACHED_FROM && e.high.is_finite() => "reached",
            Some(_) => OPEN,
        }
    }
}

/// Of one row: that which binds it, or the only one that there is.
pub fn of_row(r: &CampaignRow) -> Option<PromiseKept> {
    let is_bytes = match (r.promised.ops_per_s, r.promised.bytes_per_s, r.bound.as_deref()) {
        (None, None, _) => return None,
        (_, None, _) => false,
        (None, Some(_), _) => true,
        (_, _, Some("bytes")) => true,
        _ => false,
    };
    Some(one(r, is_bytes, None))
}

fn one(r: &CampaignRow, is_bytes: bool, row: Option<usize>) -> PromiseKept {
    let promised = if is_bytes {
        r.promised.bytes_per_s.map(|b| (b.to_string(), b.0 / number::MIB))
    } else {
        r.promised.ops_per_s.map(|o| (o.to_string(), o.0))
    };
    let (promised, value) = promised.unwrap_or_default();
    PromiseKept {
        subject: r.subject.clone(),
        what: if is_bytes { "MiB/s" } else { "op/s" },
        promised,
        value,
        measured: if is_bytes { r.bytes_per_s.as_ref().map(mib) } else { r.ops_per_s },
        workload: r.workload.clone(),
        row,
    }
}

/// Share of a promise from which on it counts as reached, as `plimsoll replicate` counts it.
const REACHED_FROM: f64 = 0.95;
/// The interval has both in it: reached, and not.
pub const OPEN: &str = "open: the interval is too wide";

/// All promises, in the order of the file.
pub fn promises(result: &CampaignResult) -> Vec<PromiseKept> {
    let mut out: Vec<PromiseKept> = Vec::new();
    for (i, r) in result.rows.iter().enumerate() {
        for (is_bytes, is_there) in
            [(false, r.promised.ops_per_s.is_some()), (true, r.promised.bytes_per_s.is_some())]
        {
            if !is_there {
                continue;
            }
            let new = one(r, is_bytes, Some(i));
            let most = |k: &PromiseKept| k.measured.map_or(f64::MIN, |e| e.value);
            match out.iter_mut().find(|k| k.subject == new.subject && k.what == new.what) {
                Some(old) if most(&new) > most(old) => *old = new,
                Some(_) => {}
                None => out.push(new),
            }
        }
    }
    out
}
