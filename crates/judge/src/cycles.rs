//! A benchmark that was repeated in one run (`watch --cycle`): a fall from some cycle on, which a mean over all would hide.

use plimsoll_model::{Finding, Level};
use plimsoll_stats::cycles::{Fall, fall as of_means};
use plimsoll_store::RunData;

use super::line::Line;
use super::part::horizon_s;

/// In the evidence of a fall between cycles; one inside of a stage has none.
const CYCLE: &str = "cycle";
/// What a fall between two cycles makes of their mean, in words of its own: that has no interval worth the name, and a trend.
const OF_THE_MEAN: [&str; 2] = ["no_rate", "order_trend"];

/// What fell, when, and from what to what.
pub fn fall(data: &RunData, line: &Line<'_>) -> Option<Finding> {
    if !line.is_load() || line.parts.iter().any(|p| p.stage.spec.cell.is_none()) {
        return None;
    }
    let Fall { first_after, before, after } = of_means(&line.run_means(data))?;
    let part = line.parts.get(first_after)?;
    let at_s = part.stage.start_ns as f64 / 1e9;
    let words = |x: f64| plimsoll_stats::words::about(x, 3);
    let text = format!(
        "From cycle {} on, {} after the start, {} runs at {} op/s, and at {} before: the mean over all {} cycles \
         describes neither. Each cycle lasted {}.",
        first_after + 1,
        plimsoll_stats::words::span(at_s),
        line.label(),
        words(after),
        words(before),
        line.parts.len(),
        plimsoll_stats::words::span(horizon_s(part.stage)),
    );
    let mut f = Finding::new("F30", "cliff", Level::Qualified, text).on(line.label());
    f.evidence = vec![
        (CYCLE.into(), (first_after + 1).to_string()),
        ("before, op/s".into(), words(before)),
        ("after, op/s".into(), words(after)),
    ];
    Some(f)
}

/// A fall that is dated is what cycles are gone round for, and their answer. That their mean is of neither level spoils that mean, and not
/// the run: it is said of the fall, and not once more as a trend that rests between the cycles would put right.
pub fn answer(findings: &mut [Finding]) {
    let is_dated = |f: &&Finding| f.code == "F30" && f.evidence.iter().any(|(name, _)| name == CYCLE);
    let fell: Vec<Option<String>> = findings.iter().filter(is_dated).map(|f| f.workload.clone()).collect();
    let is_said = |f: &&mut Finding| OF_THE_MEAN.contains(&f.name.as_str()) && fell.contains(&f.workload);
    for f in findings.iter_mut().filter(is_said) {
        f.level = Level::Qualified;
        f.text = "The mean over all cycles mixes those before and after the fall, so it is the rate of neither. Both are reported separately."
            .into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trend without a fall stays what it is, and so does that of another line.
    #[test]
    fn a_dated_fall_is_no_trend() {
        let trend = |line: &str| Finding::new("V15", "order_trend", Level::Invalid, "a trend").on(line);
        let mut fall = Finding::new("F30", "cliff", Level::Qualified, "fell").on("read");
        fall.evidence = vec![(CYCLE.into(), "5".into())];
        let inside = Finding::new("F30", "cliff", Level::Qualified, "fell").on("write");
        let busy = Finding::new("V07", "client_bound", Level::Invalid, "busy").on("read");
        let mut all = vec![trend("read"), trend("write"), trend("iops/total"), fall, inside, busy];
        answer(&mut all);
        let levels: Vec<Level> = all.iter().map(|f| f.level).collect();
        let (invalid, qualified) = (Level::Invalid, Level::Qualified);
        assert_eq!(levels, [qualified, invalid, invalid, qualified, qualified, invalid]);
        assert!(all[0].text.contains("before and after the fall"));
    }
}
