//! The search for the concurrency beyond which throughput no longer grows, over the pure controller in stats; and
//! then, where they are asked for, load points: open loop at fractions of the rate that was found. Of several ops one search
//! comes after the other, each with its share of the time that is left.

mod found;
mod op_search;

use op_search::OpSearch;
use plimsoll_model::OpKind;
use plimsoll_model::analysis::Saturation;
use plimsoll_model::plan::Stage;
use plimsoll_model::units::Span;

use crate::controller::{Conclusion, ControlRemark, ControlStep, Controller, Observation};
use crate::error::ControlError;

/// Cells of a search: measurements of one concurrency are repeats of one cell, whose index is the concurrency. Those
/// that are no part of its curve have cells of their own.
const DRAIN_CELL: u32 = 0;
const RETURN_CELL: u32 = 1 << 24;
const LOAD_CELLS: u32 = 1 << 25;
/// Cells of the next search begin here: the first one's are what they were when there was but one.
const SEARCH_CELLS: u32 = 1 << 26;

// The cells of the last search have numbers, and no concurrency and no load point reaches those of another.
const _: () = {
    use plimsoll_model::plan::bounds::{MAX_IN_FLIGHT, MAX_LIST, MAX_SEARCHES};
    assert!(MAX_SEARCHES * SEARCH_CELLS as u64 <= 1 << 32);
    assert!(MAX_IN_FLIGHT < RETURN_CELL as u64 && LOAD_CELLS as u64 + MAX_LIST <= SEARCH_CELLS as u64);
};

/// Share of a budget that is kept for what comes after the last step: cleaning up. (A guess: a thousand objects go in a few
/// requests; where each version has to go by itself it takes longer.)
const CLEANING: f64 = 0.04;

/// Share of a search's time in which what it reads may be written (a choice): the rest is measured.
const READYING: f64 = 0.2;
/// Bytes that are written for a search to read where nothing is known of how fast that goes (a guess: 8 s of a gigabit).
const UNKNOWN_BYTES: f64 = (1 << 30) as f64;

/// The searches, one after the other, as stages.
#[derive(Debug)]
pub struct SaturationController {
    searches: Vec<OpSearch>,
    /// The one that goes on.
    current: usize,
    /// Observations of those before it.
    before: usize,
    /// Of all, from the run's start to the end of cleaning up, seconds.
    budget_s: Option<f64>,
    /// Of each search that began, seconds from the end of what came before it (of the first: from the run's start) to its first
    /// step: what it needs is made ready.
    ready_s: Vec<f64>,
    /// Of what the present search reads, to be told once.
    note: Option<String>,
}

/// What a plan asks of its searches.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Most ops in flight; absent: the search's own.
    pub max_concurrency: Option<u32>,
    /// Of the response time at the 99th percentile: a rung above it ends the search.
    pub p99_ceiling: Option<Span>,
    /// Saturate this long first: a bucket that drains would lead the search astray.
    pub drain: Option<Span>,
    /// Fractions of the rate that was found, each for an open loop; empty: none.
    pub load_points: Vec<f64>,
    /// Time for all of it: preparation, searches, load points, cleaning up.
    pub budget: Option<Span>,
    /// Of the bootstrap: the same data gives the same intervals.
    pub seed: u64,
}

/// The number of a stage's search, and its cell among those of that search.
fn place(stage: &Stage) -> Option<(usize, u32)> {
    let index = stage.cell.as_ref()?.index;
    Some(((index / SEARCH_CELLS) as usize, index % SEARCH_CELLS))
}

/// Of a stage that is a load point: the number of its search, and its own among those of the plan.
pub fn load_point_of(stage: &Stage) -> Option<(usize, usize)> {
    let (search, cell) = place(stage)?;
    cell.checked_sub(LOAD_CELLS).map(|i| (search, i as usize))
}

/// Of a stage that is a point of a search's curve: the number of the search, and the concurrency.
pub fn rung_of(stage: &Stage) -> Option<(usize, u32)> {
    place(stage).filter(|(_, cell)| *cell > DRAIN_CELL && *cell < RETURN_CELL)
}

/// The number of the search that a stage is of.
pub fn search_of(stage: &Stage) -> Option<usize> {
    place(stage).map(|(search, _)| search)
}

/// The most bytes a second that any step wrote; none: none did.
fn written_per_s(seen: &[Observation]) -> Option<f64> {
    let of = |o: &Observation| {
        let writes = o.series.iter().filter(|s| matches!(s.id.kind, OpKind::Put | OpKind::Multipart));
        writes.map(|s| s.counts.bytes_ok).sum::<u64>() as f64 / o.window_s.max(f64::MIN_POSITIVE)
    };
    seen.iter().map(of).filter(|b| *b > 0.0).reduce(f64::max)
}

impl SaturationController {
    /// `templates`: of each search the one workload whose concurrency is varied.
    pub fn new(templates: Vec<Stage>, wish: &Wish) -> Self {
        let several = templates.len() > 1;
        let search = |(i, t): (usize, Stage)| OpSearch::new(t, i as u32, several, wish);
        Self {
            searches: templates.into_iter().enumerate().map(search).collect(),
            current: 0,
            before: 0,
            budget_s: wish.budget.map(|s| s.0.as_secs_f64()),
            ready_s: Vec::new(),
            note: None,
        }
    }

    /// Gives the present search its share of what is left: before its first step, and again when it is known how long what was
    /// made ready for it took. False: it is too little to begin.
    fn allot(&mut self, seen: &[Observation]) -> bool {
        let Some(budget_s) = self.budget_s else { return true };
        let left = (self.searches.len() - self.current) as f64;
        let last_s = seen[..self.before].last().map_or(0.0, |o| o.end_s);
        let from_s = match seen.get(self.before..) {
            Some([first]) => {
                self.ready_s.resize(self.current + 1, 0.0);
                self.ready_s[self.current] = (first.start_s - last_s).max(0.0);
                first.start_s
            }
            Some([]) | None => last_s,
            Some(_) => return true,
        };
        let share_s = ((1.0 - CLEANING) * budget_s - from_s) / left;
        let search = &mut self.searches[self.current];
        if seen.len() == self.before {
            if share_s < search.least_s() {
                return false;
            }
            let bytes = written_per_s(seen).map_or(UNKNOWN_BYTES, |b| READYING * share_s * b);
            self.note = search.read_no_more_than(bytes as u64);
        }
        search.allot(share_s);
        true
    }

    /// `; get and stat come after`.
    fn after(&self) -> String {
        let names: Vec<&str> = self.searches.iter().skip(self.current + 1).map(OpSearch::name).collect();
        match names.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} comes after"),
            [most @ .., last] => format!("; {} and {last} come after", most.join(", ")),
        }
    }

    /// Seconds of a budget with which each search would have been answered: all get the same share of it.
    fn needed_s(&self) -> f64 {
        let around_s = self.searches.iter().map(OpSearch::around_s).fold(0.0, f64::max);
        let most_s = self.searches.iter().filter_map(|s| s.wants_s(around_s)).fold(0.0, f64::max);
        let ready_s: f64 = self.ready_s.iter().sum();
        let s = (ready_s + self.searches.len() as f64 * most_s) / (1.0 - CLEANING);
        // As a person would give it.
        let step_s = if s < 120.0 { 10.0 } else { 30.0 };
        (s / step_s).ceil() * step_s
    }
}

impl Controller for SaturationController {
    fn next(&mut self, seen: &[Observation]) -> ControlStep {
        while self.current < self.searches.len() {
            let begins = self.allot(seen);
            let after = self.after();
            let search = &mut self.searches[self.current];
            if begins {
                if let Some(stage) = search.next(&seen[self.before..], &after) {
                    return ControlStep::Run(Box::new(stage));
                }
            } else {
                search.skipped = true;
            }
            self.before = seen.len();
            self.current += 1;
        }
        ControlStep::Done
    }

    fn remark(&mut self) -> Option<ControlRemark> {
        if let Some(note) = self.note.take() {
            return Some(note.into());
        }
        let text = self.searches.get_mut(self.current)?.progress.take()?;
        Some(ControlRemark { is_progress: true, ..text.into() })
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(ControlError::input(
            "a search for the best concurrency cannot be resumed: the storage may have changed in the meantime",
            "Start it again",
        ))
    }

    fn conclude(&self) -> Option<Conclusion> {
        let needed_s = self.needed_s();
        let more = Saturation::would_do(needed_s);
        let all = self.searches.iter().map(|s| s.conclude(&more, needed_s));
        let (saturations, findings): (Vec<_>, Vec<_>) = all.unzip();
        Some(Conclusion {
            findings: findings.into_iter().flatten().collect(),
            saturations,
            ..Conclusion::default()
        })
    }
}

#[cfg(test)]
mod tests;
