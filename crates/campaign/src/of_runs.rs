//! Runs that no campaign made, put together as one: subjects and workloads from what they are, repeats where they did the same.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cells::{CampaignCell, OWN_LABELS};
use crate::figures::CellRun;
use crate::file::{
    CAMPAIGN_VERSION, CampaignBudget, CampaignFile, CellOrder, Promised, Repeats, Subject, default_hook_limit,
};
use crate::ledger::CampaignDir;
use crate::read::Campaigned;
use crate::rest::CampaignRest;
use crate::state::CampaignState;

/// One run, as far as a table of several needs it.
#[derive(Debug, Clone)]
pub struct LooseRun {
    /// What its figures are.
    pub run: CellRun,
    /// Marks that it was given.
    pub labels: BTreeMap<String, String>,
    /// What was measured, in words: a bucket and its server, a device, a directory.
    pub storage: String,
    /// What was done, in words.
    pub workload: String,
    /// The same for runs that did the same, on whatever storage: those are repeats where the storage is the same, too.
    pub did: String,
}

/// All of them as one campaign that is complete. A subject is a storage with its labels, a workload is what was done.
pub fn of_runs(title: &str, runs: &[LooseRun], root: &Path) -> Campaigned {
    let subjects = subjects(runs);
    let workloads = workloads(runs);
    let mut file = CampaignFile {
        version: CAMPAIGN_VERSION,
        name: title.to_owned(),
        question: None,
        seed: 0,
        order: CellOrder::AsWritten,
        rest: CampaignRest::default(),
        times: Vec::new(),
        time_zone: None,
        prices: None,
        repeat: Repeats { at_least: 1, until_wide: None, at_most: 1 },
        budget: CampaignBudget::default(),
        labels: BTreeMap::new(),
        options: plimsoll_model::plan::RunOptions::default(),
        subjects: Vec::new(),
        workloads: Vec::new(),
        published: None,
    };
    let mut cells: Vec<CampaignCell> = Vec::new();
    let mut of_cells: Vec<Vec<CellRun>> = Vec::new();
    for ((r, subject), workload) in runs.iter().zip(&subjects).zip(&workloads) {
        match file.subjects.iter_mut().find(|s| s.name == *subject) {
            Some(s) => s.runs.push(r.run.run.clone()),
            None => file.subjects.push(brought(subject, r)),
        }
        let at = cells.iter().position(|c| c.subject == *subject && c.workload == *workload);
        let at = at.unwrap_or_else(|| {
            cells.push(CampaignCell::elsewhere(title, subject, own_labels(r), workload));
            of_cells.push(Vec::new());
            cells.len() - 1
        });
        let repeat = of_cells[at].len() as u32;
        of_cells[at].push(CellRun { repeat, ..r.run.clone() });
    }
    let mut state = CampaignState::new(&file, &cells);
    of_cells.into_iter().enumerate().for_each(|(i, runs)| state.bring(i, runs));
    // It has no ledger: whoever asks for one finds none.
    let dir = CampaignDir::of(root, "");
    Campaigned {
        file,
        cells,
        state,
        entries: Vec::new(),
        dir,
        runs: root.to_owned(),
        prices: None,
        budget_beside: None,
        strangers: Vec::new(),
    }
}

fn brought(name: &str, r: &LooseRun) -> Subject {
    Subject {
        name: name.to_owned(),
        labels: own_labels(r),
        target: None,
        instances: Vec::new(),
        promised: Promised::default(),
        price: None,
        client: None,
        cluster: None,
        observe: Vec::new(),
        abort_if: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
        hook_limit: default_hook_limit(),
        runs: vec![r.run.run.clone()],
        axes: Vec::new(),
        values: Vec::new(),
    }
}

/// Without those that a campaign gives each of its runs.
fn own_labels(r: &LooseRun) -> BTreeMap<String, String> {
    let own = |(k, _): &(&String, &String)| !OWN_LABELS.contains(&k.as_str());
    r.labels.iter().filter(own).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// For each run the name of what it measured: what a campaign called it, else labels in which the runs differ, else the storage; both
/// where one alone does not tell them apart.
fn subjects(runs: &[LooseRun]) -> Vec<String> {
    let labels: Vec<_> = runs.iter().map(own_labels).collect();
    let differ = |k: &String| labels.iter().any(|l| l.get(k) != labels[0].get(k));
    let name = |r: &LooseRun, own: &BTreeMap<String, String>| {
        if let Some(subject) = r.labels.get("subject") {
            return subject.clone();
        }
        let told: Vec<String> =
            own.iter().filter(|(k, _)| differ(k)).map(|(k, v)| format!("{k} {v}")).collect();
        if told.is_empty() { r.storage.clone() } else { told.join(", ") }
    };
    let mut names: Vec<String> = runs.iter().zip(&labels).map(|(r, own)| name(r, own)).collect();
    for i in 0..runs.len() {
        let is_two = |j: usize| {
            names[j] == names[i] && (&runs[j].storage, &labels[j]) != (&runs[i].storage, &labels[i])
        };
        if (0..runs.len()).any(is_two) && names[i] != runs[i].storage {
            let own: Vec<usize> = (0..runs.len()).filter(|j| names[*j] == names[i]).collect();
            let plain = names[i].clone();
            own.iter().for_each(|j| names[*j] = format!("{plain}, {}", runs[*j].storage));
        }
    }
    names
}

/// For each run the name of what it did; what is called the same and is not has a number behind it.
fn workloads(runs: &[LooseRun]) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in runs {
        let known = kinds.entry(&r.workload).or_default();
        if !known.contains(&r.did.as_str()) {
            known.push(&r.did);
        }
    }
    let name = |r: &LooseRun| match kinds[r.workload.as_str()].iter().position(|d| *d == r.did) {
        Some(n) if n > 0 => format!("{} ({})", r.workload, n + 1),
        _ => r.workload.clone(),
    };
    runs.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::CellFigure;
    use plimsoll_model::Estimate;

    fn run(id: &str, storage: &str, labels: &[(&str, &str)], did: &str, rate: f64) -> LooseRun {
        let figure = CellFigure {
            line: "get/get".into(),
            op: "get".into(),
            valid: true,
            ops_per_s: Some(Estimate::symmetric(rate, 1.0, 9.0)),
            ..CellFigure::default()
        };
        LooseRun {
            run: CellRun { run: id.into(), answered: true, figures: vec![figure], ..CellRun::default() },
            labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            storage: storage.into(),
            workload: "GET, 4 KiB".into(),
            did: did.into(),
        }
    }

    fn rows(runs: &[LooseRun]) -> Vec<(String, String, usize)> {
        let result = of_runs("t", runs, Path::new("/none")).result();
        assert_eq!(result.to_go, 0);
        result.rows.into_iter().map(|r| (r.subject, r.workload, r.runs.len())).collect()
    }

    #[test]
    fn the_same_on_the_same_storage_is_a_repeat_and_anything_else_is_not() {
        let runs =
            [run("1", "a", &[], "x", 10.0), run("2", "a", &[], "x", 12.0), run("3", "b", &[], "x", 20.0)];
        let of = |s: &str, w: &str, n| (s.to_owned(), w.to_owned(), n);
        assert_eq!(rows(&runs), [of("a", "GET, 4 KiB", 2), of("b", "GET, 4 KiB", 1)]);
        // As long as it may be called the same: it ran longer, say.
        let runs = [run("1", "a", &[], "x", 10.0), run("2", "a", &[], "y", 12.0)];
        assert_eq!(rows(&runs), [of("a", "GET, 4 KiB", 1), of("a", "GET, 4 KiB (2)", 1)]);
        let gold = [("tier", "gold"), ("repeat", "1")];
        let tin = [("tier", "tin"), ("repeat", "2")];
        let runs = [run("1", "a", &gold, "x", 10.0), run("2", "a", &tin, "x", 12.0)];
        assert_eq!(rows(&runs), [of("tier gold", "GET, 4 KiB", 1), of("tier tin", "GET, 4 KiB", 1)]);
        // A label that both have tells nothing; with the storage it does.
        let runs =
            [run("1", "a", &gold, "x", 10.0), run("2", "b", &gold, "x", 1.0), run("3", "b", &tin, "x", 1.0)];
        let names: Vec<String> = rows(&runs).into_iter().map(|r| r.0).collect();
        assert_eq!(names, ["tier gold, a", "tier gold, b", "tier tin"]);
    }
}
