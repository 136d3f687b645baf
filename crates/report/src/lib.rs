//! From a run directory to what people read: terminal, JSON, Markdown, CSV, and one self-contained HTML file.
//!
//! [`read`] takes a run directory; [`terminal`], [`markdown`], [`csv`] and [`html`] render one or several runs.
//! The JSON form is the [`plimsoll_model::RunSummary`] itself ([`json`]).

#![warn(missing_docs)]

mod agents;
mod cost;
mod csv;
mod drains;
pub mod export;
pub mod fio;
pub mod glance;
mod group;
mod html;
mod layout;
pub mod limits;
pub mod lines;
mod markdown;
mod net;
mod net_chart;
mod net_page;
pub mod number;
mod outside;
pub mod page;
mod pivot;
mod resources;
mod run;
mod servers;
mod several;
mod spectrum;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
pub mod table;
mod tables;
pub mod template;
mod terminal;
pub mod together;
mod verdict;

pub use cost::{cost_csv, cost_markdown, cost_terminal};
pub use csv::csv;
pub use group::{Group, GroupKey, groups, mean as mean_of_lines};
pub use html::{HTML_IS_INTERACTIVE, LivePlace, html, html_live, page_scripts, scripts_of};
pub use layout::Layout;
pub use markdown::markdown;
pub use net::{net_json, net_markdown, net_result, net_terminal, status as net_status};
pub use net_page::net_html;
pub use outside::cleaned;
pub use run::{ReportError, RunReport, SealMark, read, read_as_judged};
pub use several::SideBySide;
pub use terminal::{Style, findings, terminal};

/// The run summary as JSON: the contract with programs. Several runs are an array.
pub fn json(runs: &[RunReport]) -> String {
    let text = match runs {
        [one] => serde_json::to_string_pretty(&one.summary),
        many => serde_json::to_string_pretty(&many.iter().map(|r| &r.summary).collect::<Vec<_>>()),
    };
    let mut text = text.expect("a summary is plain data");
    text.push('\n');
    text
}
