//! The paragraph's part on a sweep: which cap binds below and above which size, and how well that is known.

use plimsoll_model::Estimate;
use plimsoll_model::analysis::SizeModel;
use plimsoll_model::units::significant;

use crate::words;

/// What a model says of itself where there is none.
const UNDETERMINED: &str = "undetermined: ";
/// Fewer runs of each cell, and how much runs differ is not measured.
const REPEATS: u32 = 3;

pub(super) fn sentences(m: &SizeModel) -> Vec<String> {
    let op = m.op_class.to_uppercase();
    if let Some(why) = m.reading.strip_prefix(UNDETERMINED) {
        return vec![format!("**Undetermined**: the caps of {op} over sizes ({why}).")];
    }
    let ops = cap(&m.ops_per_s, m.ops_at_least, words::ops_rate, |v| format!("{} op/s", words::about(v, 3)));
    let bytes = cap(&m.bytes_per_s, m.bytes_at_least, words::bytes_rate, |v| {
        let (unit, f) = words::bytes_unit(v);
        format!("{} {unit}/s", significant(v / f, 3))
    });
    let mut out = vec![format!("{op} comes to {ops}, and to {bytes} (95 %).")];
    out.push(match &m.knee_bytes {
        Some(k) => knee(&op, k),
        None => format!("**Undetermined**: below which size of {op} operations bind: {}.", missing(m)),
    });
    if m.repeats < REPEATS {
        out.push(format!(
            "These intervals rest on {} run{} of each cell, and on the model's misfit: --repeat {REPEATS} measures how much runs \
             differ.",
            m.repeats,
            if m.repeats == 1 { "" } else { "s" }
        ));
    }
    out
}

fn cap(
    known: &Option<Estimate>,
    least: Option<f64>,
    rate: fn(&Estimate) -> String,
    about: impl Fn(f64) -> String,
) -> String {
    match (known, least) {
        (Some(e), _) => format!("at most **{}**", rate(e)),
        (None, Some(v)) => format!("at least {}", about(v)),
        (None, None) => "an unknown rate".into(),
    }
}

fn knee(op: &str, k: &Estimate) -> String {
    let (unit, f) = words::bytes_unit(k.value);
    let n = |x: f64| significant(x / f, 3);
    format!(
        "{op} below **{} {unit}** ({} to {}) is limited by operations, above it by bytes.",
        n(k.value),
        n(k.low),
        n(k.high)
    )
}

/// What would show the cap that the cells did not reach.
fn missing(m: &SizeModel) -> &'static str {
    match (&m.ops_per_s, &m.bytes_per_s) {
        (None, None) => {
            "no cap was reached in three cells or more; more in flight would show them (--sizes auto finds out)"
        }
        (None, _) => {
            "too few cells reach a cap on operations; smaller objects or more in flight would (--sizes auto finds out)"
        }
        _ => {
            "too few cells reach a cap on bytes; larger objects or more in flight would (--sizes auto finds out)"
        }
    }
}
