//! How a report of one or several runs is laid out: what the user may choose of it.

use plimsoll_model::text::clean;

use crate::group::GroupKey;
use crate::run::{ReportError, RunReport};
use crate::table::Table;
use crate::{glance, several, tables};

/// What was chosen; by default, what suits the runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout<'a> {
    /// How several runs are set side by side; empty: by what differs.
    pub by: &'a [GroupKey],
    /// In place of what was measured.
    pub title: Option<&'a str>,
    /// Of the table of several runs, by their heads; empty: all of them.
    pub columns: &'a [String],
}

impl<'a> Layout<'a> {
    /// Grouped by these.
    pub fn by(by: &'a [GroupKey]) -> Self {
        Self { by, ..Self::default() }
    }

    /// The report's first line.
    pub fn title_of(&self, runs: &[RunReport]) -> String {
        match (self.title, runs) {
            (Some(title), _) => clean(title).into_owned(),
            (None, [one]) => glance::title(one),
            (None, many) => several::title(many, self.by),
        }
    }

    /// Several runs side by side, with the columns that were asked for.
    pub fn side_by_side(&self, runs: &[RunReport]) -> Table {
        let by = tables::keys(self.by, runs);
        let mut t = tables::groups(&crate::group::groups(runs, &by), &by);
        self.pick(&mut t);
        t
    }

    fn pick(&self, t: &mut Table) {
        if self.columns.is_empty() {
            return;
        }
        for i in (t.keys..t.columns.len()).rev() {
            if !self.columns.iter().any(|c| c.eq_ignore_ascii_case(&t.columns[i].0)) {
                t.take_column(i);
            }
        }
    }

    /// Refuses columns that no table of several runs has.
    pub fn check(&self) -> Result<(), ReportError> {
        let known = tables::GROUP_HEADS.map(|h| h.trim_start_matches('>'));
        let unknown = self.columns.iter().find(|c| !known.iter().any(|k| k.eq_ignore_ascii_case(c)));
        unknown.map_or(Ok(()), |c| Err(ReportError::Column { asked: c.clone(), known: known.join(", ") }))
    }
}
