//! What would explain that a row does not fit: slips that people make, tried one after the other.

use super::bytes::BytesRow;
use super::view::gap;
use crate::column::ReadCell;
use crate::remark::short;
use crate::unit::{RATES, SPANS, Scale};

/// Whether a value stands within these bounds, or so near that rounding may have done it.
fn meets(value: f64, bounds: (f64, f64)) -> bool {
    gap((value, value), bounds) < 1e-4
}

/// Why operations, size and throughput of a row do not fit.
pub(super) fn of_row(r: &BytesRow<'_>, bytes: Option<f64>) -> String {
    let size = bytes.unwrap_or(r.size.bytes());
    let (ops, rate) = (r.ops.bounds(), r.rate.bounds());
    let product = (ops.0 * size, ops.1 * size);
    if let Some((name, _)) = unit_that_fits(r.rate, product, RATES) {
        return format!("the throughput of this row is in {name}");
    }
    let swapped = gap(
        (r.rate.low * size, r.rate.high * size),
        (r.ops.low * r.rate.unit.scale, r.ops.high * r.rate.unit.scale),
    );
    if swapped == 0.0 {
        return "operations and throughput have each other's numbers".into();
    }
    if let Some(mean) = r.mean {
        if gap(product, (mean.low * r.rate.unit.scale, mean.high * r.rate.unit.scale)) == 0.0 {
            return "throughput and latency have each other's numbers".into();
        }
        if gap((mean.low * size, mean.high * size), rate) == 0.0 {
            return "operations and latency have each other's numbers".into();
        }
    }
    if let Some(power) = ten(product, rate) {
        return format!("one of them is off by a factor of {}", short(10_f64.powi(power.abs())));
    }
    if is_bits(product, rate) {
        return "one of them is off by a factor of 8: bits for bytes, or bytes for bits".into();
    }
    let as_rate = r.rate.number.transpositions().into_iter().find(|v| meets(v * r.rate.unit.scale, product));
    if let Some(v) = as_rate {
        return format!("digits exchanged: the throughput would be {}", short_exact(v));
    }
    let as_ops = r.ops.number.transpositions().into_iter().find(|v| meets(v * r.ops.unit.scale * size, rate));
    if let Some(v) = as_ops {
        return format!("digits exchanged: the operations would be {}", short_exact(v));
    }
    let other = r.size.unit.in_other_base().map(|s| s * r.size.count);
    if let Some(b) = other.filter(|b| bytes.is_none() && gap((ops.0 * b, ops.1 * b), rate) == 0.0) {
        return format!("{} is {} bytes in this row", r.size.text, short_exact(b));
    }
    "a typing error, or the two figures are from different runs or windows".into()
}

/// Why most rows do not fit; `all` are those of the table, in its order.
pub(super) fn common(rows: &[&BytesRow<'_>], all: &[BytesRow<'_>]) -> String {
    if let Some(why) = row_too_low(all) {
        return why;
    }
    let count = |f: &dyn Fn(&BytesRow<'_>) -> bool| rows.iter().filter(|r| f(r)).count();
    let most = |n: usize| n * 10 >= rows.len() * 6;
    let latency_for_ops = count(&|r| {
        let size = r.size.bytes();
        r.mean.is_some_and(|m| gap((m.low * size, m.high * size), r.rate.bounds()) < 0.005)
    });
    if most(latency_for_ops) {
        return "the columns of operations and latency have each other's numbers".into();
    }
    let latency_for_rate = count(&|r| {
        let (size, ops, scale) = (r.size.bytes(), r.ops.bounds(), r.rate.unit.scale);
        r.mean.is_some_and(|m| gap((ops.0 * size, ops.1 * size), (m.low * scale, m.high * scale)) < 0.005)
    });
    if most(latency_for_rate) {
        return "the columns of throughput and latency have each other's numbers".into();
    }
    "columns under the wrong names, or other sizes than are printed".into()
}

/// A column that stands a row too low or too high: what fits nowhere fits the neighbours.
fn row_too_low(all: &[BytesRow<'_>]) -> Option<String> {
    let fits = |a: &BytesRow<'_>, b: &BytesRow<'_>| {
        let (size, ops) = (a.size.bytes(), a.ops.bounds());
        gap((ops.0 * size, ops.1 * size), b.rate.bounds()) < 0.005
    };
    let ops_of = |a: &BytesRow<'_>, b: &BytesRow<'_>| {
        let (size, ops) = (a.size.bytes(), b.ops.bounds());
        gap((ops.0 * size, ops.1 * size), a.rate.bounds()) < 0.005
    };
    // Three pairs at least: of two rows one may fit the other by chance.
    if all.len() < 4 {
        return None;
    }
    let most = |f: &dyn Fn(&[BytesRow<'_>]) -> bool| {
        let fitting = all.windows(2).filter(|w| f(w)).count();
        10 * fitting >= 8 * (all.len() - 1)
    };
    let said = |what: &str, way: &str| Some(format!("the column of the {what} stands a row too {way}"));
    if most(&|w| fits(&w[0], &w[1])) {
        return said("throughput", "low");
    }
    if most(&|w| fits(&w[1], &w[0])) {
        return said("throughput", "high");
    }
    if most(&|w| ops_of(&w[0], &w[1])) {
        return said("operations", "low");
    }
    if most(&|w| ops_of(&w[1], &w[0])) { said("operations", "high") } else { None }
}

/// A unit in which a printed number would be within the bounds.
pub(super) fn unit_that_fits(cell: &ReadCell, bounds: (f64, f64), all: &[Scale]) -> Option<Scale> {
    let other = |s: &&Scale| (s.1 / cell.unit.scale - 1.0).abs() > 1e-9;
    all.iter().filter(other).find(|s| gap((cell.low * s.1, cell.high * s.1), bounds) == 0.0).copied()
}

/// A unit of time in which a latency would be within the bounds, given in seconds.
pub(super) fn span_that_fits(cell: &ReadCell, bounds: (f64, f64)) -> Option<&'static str> {
    unit_that_fits(cell, bounds, SPANS).map(|s| s.0)
}

/// The power of ten between two bounds; none where there is none.
pub(super) fn ten(a: (f64, f64), b: (f64, f64)) -> Option<i32> {
    [1, -1, 2, -2, 3, -3, 6, -6].into_iter().find(|p| {
        let f = 10_f64.powi(*p);
        gap((a.0 * f, a.1 * f), b) == 0.0
    })
}

/// Whether one is eight times the other.
fn is_bits(product: (f64, f64), rate: (f64, f64)) -> bool {
    [8.0, 0.125].iter().any(|by| gap((product.0 * by, product.1 * by), rate) == 0.0)
}

fn short_exact(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
