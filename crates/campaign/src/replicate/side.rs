//! The two sides of a comparison in one form: what was published, and what was measured here.

use plimsoll_model::Estimate;

use super::printed::{printed_bytes, printed_ops};
use super::published::Published;
use crate::cells::CampaignCell;
use crate::file::Promised;
use crate::result::{CampaignResult, CampaignRow, IntervalOf, promised_of};

/// A cell of one side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SideCell {
    pub subject: String,
    pub workload: String,
    pub line: String,
    pub op: String,
    /// 0: its ops have no one size.
    pub size_bytes: u64,
    pub promised: Promised,
    pub ops: Option<Estimate>,
    pub bytes: Option<Estimate>,
    /// Its interval is of the time of a single run, or there is none: no word on another run.
    pub is_one_run: bool,
    /// Why it has no rate.
    pub lacks: Option<String>,
}

/// Ours, or a site's.
pub(crate) fn of_result(result: &CampaignResult) -> Vec<SideCell> {
    result.rows.iter().map(of_row).collect()
}

fn of_row(r: &CampaignRow) -> SideCell {
    let mut codes: Vec<&str> = r.void.iter().flat_map(|v| &v.codes).map(String::as_str).collect();
    codes.sort_unstable();
    codes.dedup();
    let lacks = match (r.ops_per_s.or(r.bytes_per_s), r.void.is_empty(), r.to_go) {
        (Some(_), ..) => None,
        (None, false, _) => Some(format!("void {}", codes.join(" ")).trim_end().to_owned()),
        (None, true, 0) => Some("not measured".to_owned()),
        (None, true, _) => Some("not measured yet".to_owned()),
    };
    SideCell {
        subject: r.subject.clone(),
        workload: r.workload.clone(),
        line: r.line.clone(),
        op: r.op.clone(),
        size_bytes: r.size_bytes,
        promised: r.promised,
        ops: r.ops_per_s,
        bytes: r.bytes_per_s,
        is_one_run: !r.interval_of.is_some_and(IntervalOf::is_repeated),
        lacks,
    }
}

/// As a source prints it. Its cells are those that the campaign calls by the same names; sizes and ops are of these.
pub(crate) fn of_published(
    published: &Published,
    ours: &[SideCell],
    cells: &[CampaignCell],
) -> Vec<SideCell> {
    let cell = |f: &super::published::PublishedFigure| {
        let promised = published.subjects.iter().find(|s| s.name == f.subject).map(|s| s.promised);
        let like = find(ours, &f.subject, &f.workload, f.op.as_deref());
        let work = cells.iter().find(|c| c.subject == f.subject && c.workload == f.workload).map(|c| &c.work);
        let promised =
            promised.zip(work.zip(like)).map(|(p, (w, o))| promised_of(p, w, &o.line)).or(promised);
        SideCell {
            subject: f.subject.clone(),
            workload: f.workload.clone(),
            line: like.map_or_else(|| f.op.clone().unwrap_or_default(), |o| o.line.clone()),
            op: like.map_or_else(|| f.op.clone().unwrap_or_default(), |o| o.op.clone()),
            size_bytes: like.map_or(0, |o| o.size_bytes),
            promised: promised.unwrap_or_default(),
            ops: f.ops_per_s.as_deref().and_then(printed_ops),
            bytes: f.bytes_per_s.as_deref().and_then(printed_bytes),
            is_one_run: false,
            lacks: None,
        }
    };
    published.figures.iter().map(cell).collect()
}

/// By line or by op, where that is but one.
pub(crate) fn find<'a>(
    cells: &'a [SideCell],
    subject: &str,
    workload: &str,
    op: Option<&str>,
) -> Option<&'a SideCell> {
    let of = || cells.iter().filter(|c| c.subject == subject && c.workload == workload);
    let only = |list: Vec<&'a SideCell>| (list.len() == 1).then(|| list[0]);
    match op {
        None => only(of().collect()),
        Some(op) => of().find(|c| c.line == op).or_else(|| only(of().filter(|c| c.op == op).collect())),
    }
}

impl SideCell {
    /// Op/s; out of payload where only that is known and all ops have one size.
    pub fn rate(&self) -> Option<Estimate> {
        let of_bytes =
            || self.bytes.filter(|_| self.size_bytes > 0).map(|b| b.scaled(1.0 / self.size_bytes as f64));
        self.ops.or_else(of_bytes)
    }

    /// Payload; out of op/s where only that is known.
    pub fn payload(&self) -> Option<Estimate> {
        let of_ops = || self.ops.filter(|_| self.size_bytes > 0).map(|o| o.scaled(self.size_bytes as f64));
        self.bytes.or_else(of_ops)
    }

    /// The most op/s that are promised at this size, and which of the promises it is.
    pub fn cap(&self) -> Option<(f64, &'static str)> {
        let ops = self.promised.ops_per_s.map(|o| (o.0, "ops"));
        let size = self.size_bytes as f64;
        let bytes = self.promised.bytes_per_s.filter(|_| size > 0.0).map(|b| (b.0 / size, "bytes"));
        match (ops, bytes) {
            (Some(o), Some(b)) => Some(if b.0 < o.0 { b } else { o }),
            (one, other) => one.or(other),
        }
    }

    /// Measured op/s over what is promised.
    pub fn share(&self) -> Option<Estimate> {
        let (cap, _) = self.cap()?;
        Some(self.rate()?.scaled(1.0 / cap))
    }

    /// The size above which the promised payload binds, and not the promised ops.
    pub fn promised_knee(&self) -> Option<f64> {
        Some(self.promised.bytes_per_s?.0 / self.promised.ops_per_s?.0)
    }

    pub fn is(&self, other: &Self) -> bool {
        self.subject == other.subject && self.workload == other.workload && self.line == other.line
    }
}
