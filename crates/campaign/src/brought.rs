//! Runs that were made elsewhere and brought along: each belongs to the cells of its subject that its label names, or that its lines
//! fit by op and size.

use plimsoll_model::RunSummary;

use crate::cells::{CampaignCell, CellWork};
use crate::figures::{CellFigure, CellRun};

/// For each of the subject's cells (indices into `cells`) the runs that are of it; and the runs that are of none.
pub fn merged(
    cells: &[CampaignCell],
    subject: &str,
    runs: &[(String, RunSummary, u8)],
) -> (Vec<(usize, Vec<CellRun>)>, Vec<String>) {
    let own: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].subject == subject).collect();
    let mut out: Vec<(usize, Vec<CellRun>)> = own.iter().map(|i| (*i, Vec::new())).collect();
    let mut strangers = Vec::new();
    for (place, summary, exit) in runs {
        let mut is_used = false;
        for (i, list) in &mut out {
            let mut run = CellRun::of_summary(summary, list.len() as u32, *exit);
            run.run.clone_from(place);
            run.figures.retain(|f| is_of(&cells[*i], summary, f));
            if !run.figures.is_empty() {
                list.push(run);
                is_used = true;
            }
        }
        if !is_used {
            strangers.push(place.clone());
        }
    }
    (out, strangers)
}

fn is_of(cell: &CampaignCell, summary: &RunSummary, figure: &CellFigure) -> bool {
    if let Some(workload) = summary.labels.get("workload") {
        return *workload == cell.workload;
    }
    match &cell.work {
        CellWork::Stage(stage) => {
            let w = &stage.workloads[0];
            let is_op = w.mix.iter().any(|(k, n)| *n > 0 && k.name() == figure.op) || figure.op == "total";
            let depth = summary.workloads.iter().find(|l| format!("{}/{}", l.name, l.op) == figure.line);
            is_op
                && figure.size_bytes == w.size.mean_bytes()
                && depth.is_none_or(|l| l.concurrency == w.in_flight())
        }
        CellWork::Files(_) => summary.labels.get("suite").is_some_and(|s| s == "file"),
        CellWork::Controller(_) | CellWork::Elsewhere => false,
    }
}
