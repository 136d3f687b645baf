//! `--ceiling`: the record that a run is held against. It is resolved before the run and written into its plan, so that
//! the run says what it was held against wherever it goes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_judge::against::{
    LABEL, MACHINES_LABEL, NETWORK, OF_LABEL, QUALIFIED_LABEL, READ_BETWEEN_LABEL, READ_LABEL, RUN_LABEL,
    SEPARATOR, WRITE_BETWEEN_LABEL, WRITE_LABEL,
};
use plimsoll_model::net::NetRecord;
use plimsoll_model::plan::{TargetSpec, suite};
use plimsoll_model::text::clean;
use plimsoll_model::{Level, Plan};
use plimsoll_report::fio::{self, Ceiling, Rates};
use plimsoll_store::RunDir;

use crate::args::OutputArgs;
use crate::commands::net_exec;
use crate::fault::Fault;
use crate::runs_dir;

/// Ops whose bytes come from the storage, and go to it.
const READS: [&str; 3] = ["read", "get", "get_range"];
const WRITES: [&str; 3] = ["write", "put", "multipart"];

/// Marks a plan with the record that was named on the command line.
pub fn name(labels: &mut BTreeMap<String, String>, record: Option<&String>) {
    labels.extend(record.map(|r| (LABEL.to_owned(), r.clone())));
}

/// The plan with the record's rates in its labels, where it names one.
pub fn resolved(plan: &Plan, out: &OutputArgs) -> Result<Plan, Fault> {
    let Some(given) = plan.labels.get(LABEL) else { return Ok(plan.clone()) };
    let network = net_exec::stored(&runs_dir::root(out.runs_dir.as_deref()), given).ok().flatten();
    let mut plan = plan.clone();
    let (run, rates) = match &network {
        Some(record) => {
            let (rates, labels) = of_network(record)?;
            plan.labels.extend(labels);
            (record.id.clone(), rates)
        }
        None => rates_of(given, out, common_path(&plan).as_deref())?,
    };
    let mut add = |label: &str, value: String| plan.labels.insert(label.to_owned(), value);
    add(RUN_LABEL, run);
    for (label, rate) in [(READ_LABEL, rates.read_bytes_per_s), (WRITE_LABEL, rates.write_bytes_per_s)] {
        if let Some(rate) = rate {
            add(label, format!("{rate:.0}"));
        }
    }
    Ok(plan)
}

/// What a network test found, as it limits reads and writes of those that generated load; and labels with its conditions.
fn of_network(record: &NetRecord) -> Result<(Rates, BTreeMap<String, String>), Fault> {
    let ceiling = record
        .usable_ceiling()
        .map_err(|no| Fault::input(format!("--ceiling {}: {}", record.id, clean(&no.why)), no.remedy))?;
    let mut labels = BTreeMap::from([(OF_LABEL.to_owned(), NETWORK.to_owned())]);
    let mut add = |label: &str, text: String| labels.insert(label.to_owned(), clean(&text).into_owned());
    for (label, rate) in [(READ_BETWEEN_LABEL, ceiling.read), (WRITE_BETWEEN_LABEL, ceiling.write)] {
        if let Some(rate) = rate {
            add(label, record.between(rate));
        }
    }
    add(MACHINES_LABEL, record.machines(&ceiling).join(SEPARATOR));
    let qualified = record.findings.iter().filter(|f| f.level == Level::Qualified);
    let mut qualified: Vec<String> = qualified.map(|f| format!("{} {}", f.code, f.name)).collect();
    qualified.sort_unstable();
    qualified.dedup();
    if !qualified.is_empty() {
        add(QUALIFIED_LABEL, qualified.join(SEPARATOR));
    }
    let rates = Rates {
        read_bytes_per_s: ceiling.read.map(|r| r.bytes_per_s),
        write_bytes_per_s: ceiling.write.map(|r| r.bytes_per_s),
    };
    Ok((rates, labels))
}

/// The place of all targets, where it is one.
fn common_path(plan: &Plan) -> Option<PathBuf> {
    let mut places = plan.targets.values().map(|t| match t {
        TargetSpec::Block(b) => Some(b.path.as_str()),
        TargetSpec::Files(f) => Some(f.directory.as_str()),
        _ => None,
    });
    let first = places.next()??;
    places.all(|p| p == Some(first)).then(|| std::path::absolute(first).ok()).flatten()
}

fn rates_of(given: &str, out: &OutputArgs, path: Option<&Path>) -> Result<(String, Rates), Fault> {
    match of_drives(given, out.runs_dir.as_deref())? {
        Recorded::Drives(record) => Ok((record.run.clone(), record.rates_at(path))),
        Recorded::Run(dir) => Ok((dir.id(), best_of(&dir)?)),
    }
}

/// What a name of a record is of.
pub enum Recorded {
    /// A run of `plimsoll drive`, or its JSON.
    Drives(Box<Ceiling>),
    /// Another run.
    Run(RunDir),
}

/// A record of drives, by run or file.
pub fn of_drives(given: &str, runs: Option<&Path>) -> Result<Recorded, Fault> {
    if Path::new(given).is_file() {
        let text = std::fs::read_to_string(given)
            .map_err(|e| Fault::input(format!("--ceiling {given}: {e}"), "Check its permissions."))?;
        let record: Ceiling = serde_json::from_str(&text).map_err(|e| {
            Fault::input(
                format!("--ceiling {given} is not a ceiling record: {e}"),
                "Create one with `plimsoll drive DIR --json > FILE`, or name a run.",
            )
        })?;
        return Ok(Recorded::Drives(Box::new(record)));
    }
    let dir = runs_dir::find(runs, given)?;
    runs_dir::stored_result_judged(&dir)?;
    if dir.plan()?.labels.get(suite::LABEL).is_some_and(|s| s == suite::DRIVE) {
        return Ok(Recorded::Drives(Box::new(Ceiling { run: dir.id(), ..fio::ceiling(&dir)? })));
    }
    Ok(Recorded::Run(dir))
}

/// Of any other run: the highest rates that it measured.
fn best_of(dir: &RunDir) -> Result<Rates, Fault> {
    let summary = dir.summary()?;
    let best = |ops: [&str; 3]| {
        let rates = summary.workloads.iter().filter(|w| w.valid && ops.contains(&w.op.as_str()));
        rates.filter_map(|w| w.bytes_per_s.map(|e| e.value)).reduce(f64::max)
    };
    let rates = Rates { write_bytes_per_s: best(WRITES), read_bytes_per_s: best(READS) };
    if rates == Rates::default() {
        return Err(Fault::input(
            format!("--ceiling {}: the run has no throughput in bytes that may be used", dir.id()),
            "Name a run of `plimsoll drive`, or one that read or wrote data.",
        ));
    }
    Ok(rates)
}
