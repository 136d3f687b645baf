//! Campaigns: a matrix of subjects and workloads in one file, measured cell by cell, and resumable at any moment.
//!
//! [`CampaignFile`] is read and checked, [`cells::expand`] makes its cells, [`order`] and [`stop`] say which comes next and how often,
//! [`CampaignSession`] carries it out by a [`CampaignCarrier`], and the [`ledger`] knows what was begun and what came of it.
//! [`read_campaign`] reads it all back: for tables, and for whoever publishes them. A cell is measured by a run as any other.

#![warn(missing_docs)]

mod axes;
pub mod brought;
mod burst;
pub mod cells;
mod check;
mod count;
mod difference;
mod drive;
mod figures;
mod file;
pub mod forecast;
mod hook;
pub mod ledger;
mod left_hook;
mod lock;
mod money;
mod of_runs;
pub mod order;
mod pivot;
mod place;
mod read;
mod replicate;
mod rest;
mod result;
mod schedule;
mod served;
mod spread;
mod state;
pub mod stop;
mod template;
mod unseen;

#[cfg(test)]
mod money_tests;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod result_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting_tests;

pub use axes::{AxisValue, CampaignAxis};
pub use burst::{BurstFigures, LimitFigures};
pub use cells::{CampaignCell, CellWork, FileCell};
pub use check::{CampaignError, FILL_IN};
pub use count::asked;
pub use difference::FileDifference;
pub use drive::{CampaignCarrier, CampaignEnd, CampaignSession, CampaignTold, CellEnd, LeftRun, RunTerms};
pub use figures::{CellFigure, CellRun, SeenFall};
pub use file::{
    CAMPAIGN_VERSION, CampaignBudget, CampaignFile, CampaignLoad, CellOrder, FileOfLoad, LimitsOfLoad,
    PerMachine, Promised, Repeats, SpeedtestOfLoad, Subject, SubjectInstance, ThreadCount, ThreadCounts,
    WatchOfLoad,
};
pub use hook::{HookFiles, HookOf, run_hook};
pub use ledger::{
    CampaignDir, CampaignLedger, HookTime, LedgerEntry, LedgerError, LedgerSink, RunSpent, UnderWay,
};
pub use left_hook::end_left_hook;
pub use money::{CampaignPrices, CostKnownBy, CostToGo, MoneySpent, RunCost, affordable};
pub use of_runs::{LooseRun, of_runs};
pub use pivot::{AxisPivot, PivotRow, axes as axes_of, pivot};
pub use read::{Campaigned, ReadError, read_campaign};
pub use replicate::{
    ComparedFigure, ComparedFigures, Published, PublishedAs, PublishedCliff, PublishedCost, PublishedFigure,
    PublishedLimit, PublishedRatio, PublishedSubject, REPLICATE_SCHEMA, ReplicaVerdict, Replication,
    borrowed_keys, published_result, replication,
};
pub use rest::{CALM_LOOKS, CampaignRest, Rested, wait_for_rest};
pub use result::{
    CampaignResult, CampaignRow, IntervalOf, OURS, RESULT_SCHEMA, VoidCellRun, line_name, result,
};
pub use schedule::{RunDue, RunTime, TIME_AXIS, TimesOfDay};
pub use served::{DaemonFigures, NONE_SEEN, OverRuns, ServedDaemon, ServedFigures, ServedRow};
pub use state::{CampaignSpent, CampaignState, CellState};
pub use template::{TEMPLATES, template};
pub use unseen::{note_shown, unseen_dangers};
