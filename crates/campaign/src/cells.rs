//! What a campaign file comes to: a cell for each subject, instance, workload, size and concurrency, each with the plan that measures it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    ControllerSpec, EmbeddedCluster, EmbeddedDisk, FilesTarget, PLAN_VERSION, Pacing, Plan, RunOptions,
    SizeDist, Stage, Stop, TargetSpec, Workload,
};
use plimsoll_model::units::{OpsRate, Size, Span};
use xxhash_rust::xxh3::xxh3_64;

use crate::axes;
use crate::check::{CampaignError, wrong};
use crate::file::{CampaignFile, CampaignLoad, PerMachine, Subject, ThreadCount};
use crate::ledger::UnderWay;

/// Labels that a campaign gives its runs, beside those of the file.
pub const OWN_LABELS: [&str; 5] = ["campaign", "subject", "workload", "instance", "repeat"];
const TARGET: &str = "subject";

/// A place in the matrix: one subject (one of its instances) under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignCell {
    /// Names it in the ledger: subject, instance and workload.
    pub key: String,
    /// Of the subject.
    pub subject: String,
    /// One of several of the subject; empty: it has none.
    pub instance: String,
    /// The workload's name, with its values on those axes that have several.
    pub workload: String,
    /// Of the file and of the subject.
    pub labels: BTreeMap<String, String>,
    /// Where it is on the axes that have several values: those of its subject, those of its workload, then `size`, `concurrency`, `threads`.
    pub axes: Vec<(String, String)>,
    /// What is measured; none of a subject whose runs were made elsewhere.
    pub target: Option<TargetSpec>,
    /// What is done.
    pub work: CellWork,
    /// Of all that decides what is measured: an edited file is told by it.
    pub hash: String,
    campaign: String,
    seed: u64,
    options: RunOptions,
}

/// What measures a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellWork {
    /// One stage.
    Stage(Box<Stage>),
    /// A probe or a search.
    Controller(Box<ControllerSpec>),
    /// The file benchmark.
    Files(FileCell),
    /// Nothing that is measured here: a run that no campaign made says in its own plan what it did.
    Elsewhere,
}

/// The file benchmark of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct FileCell {
    /// Where it is made.
    pub directory: String,
    /// The directory is on a disk that is made for each run.
    pub embedded: Option<Box<EmbeddedDisk>>,
    /// Of each thread's file.
    pub file_bytes: u64,
    /// Of all files, in place of that.
    pub total_bytes: Option<u64>,
    /// Files; absent: one for each core.
    pub threads: Option<u32>,
    /// Write, read and IOPS so many times.
    pub cycles: u32,
    /// Of its third phase.
    pub iops_duration: Span,
    /// Seconds that all of it takes at the least, where whoever knows the disk has said so. Nothing that is measured depends on it.
    pub least_s: Option<f64>,
}

impl FileCell {
    /// All of its files, for so many threads.
    pub fn bytes_of(&self, threads: u32) -> u64 {
        self.total_bytes.unwrap_or_else(|| self.file_bytes.saturating_mul(u64::from(threads)))
    }
}

/// All cells, in the order of the file: subjects, their instances, then workloads.
pub fn expand(file: &CampaignFile) -> Result<Vec<CampaignCell>, CampaignError> {
    let (many, bytes) = count(file);
    if many > MOST_CELLS {
        return Err(wrong(
            "workload",
            format!("{many} cells are more than {MOST_CELLS}"),
            "Split the campaign.",
        ));
    }
    if bytes > MOST_BYTES {
        return Err(wrong(
            "the campaign",
            format!(
                "labels, options, targets, commands, mixes and sizes, once for each of {many} cells, come to {} MiB, more than {} MiB",
                bytes >> 20,
                MOST_BYTES >> 20
            ),
            "Shorten what is long, or split the campaign.",
        ));
    }
    let mut out = Vec::new();
    let mut keys = BTreeSet::new();
    for subject in &file.subjects {
        let mut targets: Vec<(&str, Option<&TargetSpec>)> =
            subject.instances.iter().map(|i| (i.name.as_str(), Some(&i.target))).collect();
        if targets.is_empty() {
            targets.push(("", subject.target.as_ref()));
        }
        for (instance, target) in targets {
            for load in file.workloads.iter().filter(|w| is_for(w, subject)) {
                add((&mut out, &mut keys), file, subject, (instance, target), load)?;
            }
        }
    }
    Ok(out)
}

/// More cells than this are a mistake in the file, not a matrix.
const MOST_CELLS: usize = 10_000;

/// What the file says of a cell, over all cells: a file that is small and has something long in all of them comes to more memory than
/// there is.
const MOST_BYTES: usize = 128 << 20;

/// Cells, and about how many bytes of the file they repeat, before any is made.
fn count(file: &CampaignFile) -> (usize, usize) {
    let common = text_len(&(&file.labels, &file.options));
    let loads: Vec<(&CampaignLoad, usize, usize)> = file
        .workloads
        .iter()
        .map(|w| {
            // Each cell has one of its sizes, and one of its concurrencies.
            let rest = CampaignLoad { sizes: Vec::new(), concurrency: Vec::new(), ..w.clone() };
            (w, text_len(&rest), text_len(&w.sizes))
        })
        .collect();
    let (mut cells, mut bytes) = (0usize, 0usize);
    for s in &file.subjects {
        let own = common
            + text_len(&(&s.name, &s.labels, &s.client, &s.before, &s.after))
            + text_len(&(&s.cluster, &s.observe, &s.abort_if));
        let instances = s.instances.len().max(1);
        let targets: usize = text_len(&s.target) + s.instances.iter().map(text_len).sum::<usize>();
        for (w, rest, sizes) in loads.iter().filter(|(w, ..)| is_for(w, s)) {
            let depths = w.concurrency.len().max(1) * w.file.as_ref().map_or(1, |f| f.thread_counts().len());
            let each = depths.saturating_mul(w.sizes.len().max(1));
            let of_cells = each.saturating_mul(own + rest).saturating_add(depths.saturating_mul(*sizes));
            cells = cells.saturating_add(instances.saturating_mul(each));
            bytes = bytes
                .saturating_add(instances.saturating_mul(of_cells))
                .saturating_add(each.saturating_mul(targets));
        }
    }
    (cells, bytes)
}

/// About what it takes, as the file has it.
fn text_len(what: &impl serde::Serialize) -> usize {
    serde_json::to_string(what).map_or(usize::MAX >> 8, |text| text.len())
}

fn is_for(load: &CampaignLoad, subject: &Subject) -> bool {
    load.only.iter().all(|(k, v)| subject.labels.get(k) == Some(v))
}

fn add(
    (out, keys): (&mut Vec<CampaignCell>, &mut BTreeSet<String>),
    file: &CampaignFile,
    subject: &Subject,
    (instance, target): (&str, Option<&TargetSpec>),
    load: &CampaignLoad,
) -> Result<(), CampaignError> {
    let target = target.map(|t| target_for(subject, t, load)).transpose()?;
    for at in places(load) {
        let name = at.name(load);
        let work = work_of(subject, target.as_ref(), load, &at)?;
        let options = options_of(file, subject);
        // Whoever gave a label knows better than what the servers are made of. Of those that a run brings along it is known, too.
        let brought = || target.as_ref()?.embedded_cluster().map(EmbeddedCluster::labels);
        let mut labels = options.cluster.as_ref().map(|c| c.labels()).or_else(brought).unwrap_or_default();
        labels.extend(file.labels.clone());
        labels.extend(subject.labels.clone());
        let mut cell = CampaignCell {
            key: [subject.name.as_str(), instance, &name].join("/"),
            subject: subject.name.clone(),
            instance: instance.to_owned(),
            workload: name,
            labels,
            axes: [subject.values.clone(), at.axes(load)].concat(),
            target: target.clone(),
            work,
            hash: String::new(),
            campaign: file.name.clone(),
            seed: file.seed,
            options,
        };
        cell.hash = cell.identity(subject);
        if !keys.insert(cell.key.clone()) {
            return Err(wrong(
                format!("workload '{}'", load.name),
                format!("two of its cells would be called '{}'", cell.workload),
                "Leave out what stands twice.",
            ));
        }
        out.push(cell);
    }
    Ok(())
}

/// Those of the file, with what a subject has of its own. A guard of the file holds for each subject.
fn options_of(file: &CampaignFile, subject: &Subject) -> RunOptions {
    let all = &file.options;
    RunOptions {
        client: subject.client.clone().or_else(|| all.client.clone()),
        cluster: subject.cluster.clone().or_else(|| all.cluster.clone()),
        observe: if subject.observe.is_empty() { all.observe.clone() } else { subject.observe.clone() },
        abort_if: all.abort_if.iter().chain(&subject.abort_if).cloned().collect(),
        ..all.clone()
    }
}

/// One value of each of a workload's lists.
struct Place {
    size: SizeDist,
    depth: u32,
    threads: ThreadCount,
}

/// All of them, sizes turning slowest.
fn places(load: &CampaignLoad) -> Vec<Place> {
    let sizes = if load.sizes.is_empty() { vec![SizeDist::Fixed(Size(4096))] } else { load.sizes.clone() };
    let depths = if load.concurrency.is_empty() { vec![1] } else { load.concurrency.clone() };
    let threads = load.file.as_ref().map_or_else(|| vec![ThreadCount::Fixed(1)], |f| f.thread_counts());
    let mut out = Vec::new();
    for size in &sizes {
        for depth in &depths {
            out.extend(threads.iter().map(|n| Place { size: size.clone(), depth: *depth, threads: *n }));
        }
    }
    out
}

impl Place {
    /// The workload's, with its value on each list that has several.
    fn name(&self, load: &CampaignLoad) -> String {
        let mut name = load.name.clone();
        if load.sizes.len() > 1 {
            name += &format!(" {}", size_text(&self.size));
        }
        if load.concurrency.len() > 1 {
            name += &format!(" x{}", self.depth);
        }
        if load.file.as_ref().is_some_and(|f| f.thread_counts().len() > 1) {
            name += &format!(" {}", self.threads.words());
        }
        name
    }

    fn axes(&self, load: &CampaignLoad) -> Vec<(String, String)> {
        let mut out = load.values.clone();
        let mut add = |axis: &str, value: String| out.push((axis.to_owned(), value));
        if load.sizes.len() > 1 {
            add("size", size_text(&self.size));
        }
        if load.concurrency.len() > 1 {
            add("concurrency", self.depth.to_string());
        }
        if load.file.as_ref().is_some_and(|f| f.thread_counts().len() > 1) {
            add("threads", self.threads.fixed().map_or_else(|| "cores".to_owned(), |n| n.to_string()));
        }
        out
    }
}

/// The target with what is otherwise for this workload.
fn target_for(
    subject: &Subject,
    target: &TargetSpec,
    load: &CampaignLoad,
) -> Result<TargetSpec, CampaignError> {
    if load.target.is_empty() {
        return Ok(target.clone());
    }
    let mut all = serde_json::to_value(target).expect("plain data is always JSON");
    axes::lay_over(&mut all, &load.target);
    serde_json::from_value(all).map_err(|e| {
        wrong(
            format!("workload '{}', target", load.name),
            format!("{e}, laid over the target of subject '{}'", subject.name),
            "It has keys of the subject's target; a workload that does not fit a subject is kept off it with `only`.",
        )
    })
}

/// A value on the axis of threads, as a name has it.
pub(crate) fn threads_text(value: &str) -> String {
    value.parse().map_or(ThreadCount::Each(PerMachine::Cores), ThreadCount::Fixed).words()
}

/// As a table has it.
pub(crate) fn size_text(size: &SizeDist) -> String {
    match size {
        SizeDist::Fixed(s) => s.to_string(),
        SizeDist::Uniform { min, max } => format!("{min} to {max}"),
        SizeDist::Weighted(list) => {
            list.iter().map(|(s, w)| format!("{s} x{w}")).collect::<Vec<_>>().join("+")
        }
        SizeDist::LogNormal { median, sigma, .. } => format!("about {median} (sigma {sigma})"),
    }
}

fn work_of(
    subject: &Subject,
    target: Option<&TargetSpec>,
    load: &CampaignLoad,
    at: &Place,
) -> Result<CellWork, CampaignError> {
    if let Some(f) = &load.file {
        let files = match target {
            Some(TargetSpec::Files(f)) => f.clone(),
            // Told by the check; a subject that was brought along needs none.
            _ => FilesTarget {
                directory: String::new(),
                stem: None,
                files: 1,
                file_size: Size(0),
                buffered: false,
                layout: true,
                invalidate: true,
                embedded: None,
            },
        };
        return Ok(CellWork::Files(FileCell {
            directory: files.directory,
            embedded: files.embedded,
            file_bytes: files.file_size.0.saturating_mul(u64::from(files.files)),
            total_bytes: f.total.map(|t| t.0),
            threads: at.threads.fixed(),
            cycles: f.cycles,
            iops_duration: f.iops_duration,
            least_s: None,
        }));
    }
    let template = Box::new(stage_of(subject, load, &at.size, at.depth)?);
    let controller = match (&load.limits, &load.speedtest, &load.watch) {
        (Some(l), ..) => ControllerSpec::Limits {
            template,
            budget: l.budget,
            probe_shared: l.probe_shared,
            probe_scope: l.probe_scope.clone(),
            scope_targets: BTreeMap::new(),
        },
        (None, Some(s), _) => ControllerSpec::Saturation {
            template,
            then: Vec::new(),
            max_concurrency: s.max_concurrency,
            p99_ceiling: s.p99_ceiling,
            drain: s.drain,
            load_points: Vec::new(),
            budget: Some(s.budget),
        },
        (None, None, Some(w)) => ControllerSpec::Watch { template, duration: w.duration },
        (None, None, None) => return Ok(CellWork::Stage(template)),
    };
    Ok(CellWork::Controller(Box::new(controller)))
}

fn stage_of(
    subject: &Subject,
    load: &CampaignLoad,
    size: &SizeDist,
    depth: u32,
) -> Result<Stage, CampaignError> {
    let pacing = match (load.of_promised, subject.promised.ops_per_s) {
        (None, _) => load.pacing.clone(),
        (Some(share), Some(promised)) => Pacing::Constant(OpsRate(promised.0 * share)),
        // Nothing is paced where nothing is measured.
        (Some(_), None) if subject.is_brought() => Pacing::Closed,
        (Some(_), None) => {
            return Err(wrong(
                format!("workload '{}'", load.name),
                format!("of_promised needs to know what '{}' promises", subject.name),
                "Write promised = { ops_per_s = \"800/s\" } at the subject.",
            ));
        }
    };
    // A search sets the ends of its own stages; so do a probe and a watch.
    let is_plain = load.limits.is_none() && load.speedtest.is_none() && load.watch.is_none();
    let duration = load.duration.or(is_plain.then_some(Stop::DEFAULT));
    Ok(Stage {
        name: None,
        warmup: load.warmup,
        workloads: vec![Workload {
            name: line_name(load),
            target: None,
            mix: load.mix.clone(),
            size: size.clone(),
            keys: load.keys,
            concurrency: depth,
            jobs: load.jobs,
            pacing,
            stop: Stop { duration, ..Stop::default() },
            verify: load.verify,
            data: Default::default(),
            object: load.object.clone(),
            block: load.block.clone(),
            machines: None,
        }],
        cell: None,
    })
}

/// As the commands name their lines: by the op, where there is one.
fn line_name(load: &CampaignLoad) -> String {
    let ops: Vec<&OpKind> = load.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| k).collect();
    match &ops[..] {
        [one] => one.name().to_owned(),
        _ => "mixed".to_owned(),
    }
}

fn labels_itself(axis: &str) -> bool {
    matches!(axis, "size" | "concurrency")
}

impl UnderWay {
    /// Whether labels of a run are those of this run of this campaign: a directory of its name may be anybody's.
    pub fn is_of(&self, labels: &BTreeMap<String, String>, campaign: &str) -> bool {
        let repeat = (u64::from(self.repeat) + 1).to_string();
        // No part of a key has a slash in it.
        let parts: Vec<&str> = self.cell.split('/').collect();
        let [subject, instance, workload] = parts[..] else { return false };
        // What has no instance has no label for it from the campaign.
        let own = [campaign, subject, workload, instance, &repeat];
        OWN_LABELS
            .iter()
            .zip(own)
            .all(|(name, value)| value.is_empty() || labels.get(*name).is_some_and(|own| own == value))
    }
}

impl CampaignCell {
    /// Of runs that no campaign made.
    pub(crate) fn elsewhere(
        campaign: &str,
        subject: &str,
        labels: BTreeMap<String, String>,
        workload: &str,
    ) -> Self {
        Self {
            key: [subject, "", workload].join("/"),
            subject: subject.to_owned(),
            instance: String::new(),
            workload: workload.to_owned(),
            labels,
            axes: Vec::new(),
            target: None,
            work: CellWork::Elsewhere,
            hash: String::new(),
            campaign: campaign.to_owned(),
            seed: 0,
            options: RunOptions::default(),
        }
    }

    /// The plan of one run of it, with data of its own: no run writes what an earlier one wrote. `None` for the file benchmark, whose
    /// plan is made where its directory is, and for subjects that are not measured here. `fresh`: beside the file's seed.
    pub fn plan(&self, repeat: u32, fresh: u64) -> Option<Plan> {
        let target = self.target.clone()?;
        let mut plan = Plan {
            version: PLAN_VERSION,
            name: Some(self.title()),
            seed: self.run_seed(repeat, fresh),
            options: self.options.clone(),
            labels: self.run_labels(repeat),
            expect: Vec::new(),
            targets: BTreeMap::from([(TARGET.to_owned(), target)]),
            stages: Vec::new(),
            controller: None,
        };
        match &self.work {
            CellWork::Stage(stage) => plan.stages.push((**stage).clone()),
            CellWork::Controller(controller) => plan.controller = Some((**controller).clone()),
            CellWork::Files(_) | CellWork::Elsewhere => return None,
        }
        Some(plan)
    }

    /// Of one run: reproducible from the file's seed, and of no other run.
    pub fn run_seed(&self, repeat: u32, fresh: u64) -> u64 {
        xxh3_64(format!("{}/{fresh}/{}/{repeat}", self.seed, self.key).as_bytes()) % 1_000_000_000
    }

    /// For people.
    pub fn title(&self) -> String {
        let of = if self.instance.is_empty() { String::new() } else { format!(" {}", self.instance) };
        format!("{}: {}{of}, {}", self.campaign, self.subject, self.workload)
    }

    /// Of one run of it: what the file says, and which cell it is.
    pub fn run_labels(&self, repeat: u32) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        // `size` and `concurrency` are in the run itself, and may be labels of the subject.
        for (axis, value) in self.axes.iter().filter(|(axis, _)| !labels_itself(axis)) {
            labels.insert(axis.clone(), value.clone());
        }
        let own = [&self.campaign, &self.subject, &self.workload, &self.instance, &(repeat + 1).to_string()];
        for (name, value) in OWN_LABELS.iter().zip(own) {
            if !value.is_empty() {
                labels.insert((*name).to_owned(), value.clone());
            }
        }
        labels
    }

    /// How the run behaves, beside its work.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    fn identity(&self, subject: &Subject) -> String {
        let of = (&self.target, &self.options, &subject.before, &subject.after);
        let work = match &self.work {
            CellWork::Stage(stage) => serde_json::to_string(stage),
            CellWork::Controller(c) => serde_json::to_string(c),
            // As it was written before there were totals and cycles: what has none is what it was.
            CellWork::Files(f) => Ok(format!(
                "FileCell {{ directory: {:?}, file_bytes: {}, threads: {:?}, iops_duration: {:?} }}{}",
                f.directory,
                if f.total_bytes.is_some() { 0 } else { f.file_bytes },
                f.threads,
                f.iops_duration,
                match (f.total_bytes, f.cycles) {
                    (None, 1) => String::new(),
                    more => format!("{more:?}"),
                }
            )),
            CellWork::Elsewhere => Ok(String::new()),
        };
        let text = serde_json::to_string(&of).and_then(|of| Ok(of + &work?));
        format!("{:016x}", xxh3_64(text.expect("plain data is always JSON").as_bytes()))
    }
}
