//! Results in fio's own output formats, so that whatever reads fio's output reads ours: normal, json, json+.
//!
//! Keys and units are those of fio 3.33. What fio measures and we do not is derived and said so, under the key
//! `plimsoll` that fio does not have: `clat` is our total latency less the mean of the submission, and depths are
//! the job's own in a closed loop, and those of the mean number in flight where a rate is held. Under the document's own
//! `plimsoll` stands how the run was judged ([`Judged`]): fio has no word for a figure that is not to be used.

mod collect;
mod cpu;
mod direction;
mod drive;
mod drive_short;
mod file_bench;
mod json;
mod judged;
mod normal;
mod number;
mod phase;
mod plat;

pub use collect::{FioReport, Job, read, read_until};
pub use direction::{Direction, Latency};
pub use drive::{Ceiling, Drive, Rates, ceiling};
pub use file_bench::{FileBench, FileRun, file_bench};
pub use json::json;
pub use judged::Judged;
pub use normal::normal;

/// `--output-format` of fio; several may be given, separated by commas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Normal,
    /// fio's field names, for its tools.
    Json,
    /// With the bins of the completion latencies.
    JsonPlus,
}

impl Format {
    /// Reads fio's list, for example `normal,json+`.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',')
            .map(|word| match word.trim() {
                "normal" => Ok(Self::Normal),
                "json" => Ok(Self::Json),
                "json+" => Ok(Self::JsonPlus),
                other => Err(format!("'{other}' is not an output format: write normal, json or json+")),
            })
            .collect()
    }
}

/// The report in all formats that were asked for, normal first, as fio prints them.
pub fn render(report: &FioReport, formats: &[Format]) -> String {
    let mut out = String::new();
    if formats.contains(&Format::Normal) {
        out.push_str(&normal(report));
    }
    let plus = formats.contains(&Format::JsonPlus);
    if plus || formats.contains(&Format::Json) {
        out.push_str(&json(report, plus));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests;
