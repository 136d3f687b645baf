//! What a check is held against: a run, one of its lines, and the plan that reads the same again without a trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_index::{IndexedRun, RunFilter};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    BlockOptions, BlockTarget, ControllerSpec, ExistingObjects, ObjectOptions, Pacing, Plan, RunOptions,
    S3Target, SizeDist, Stage, Stop, TargetSpec, Workload, suite,
};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::text::clean;
use plimsoll_model::units::{OpsRate, Size, Span};
use plimsoll_report::number;
use plimsoll_setup::block::{known_size, paths_of_job};
use plimsoll_setup::objects::dataset_prefix;
use plimsoll_store::RunDir;

use super::check::CheckCommand;
use super::runs_filter::found;
use crate::fault::Fault;
use crate::{output, runs_dir};

/// Labels of a check's run: what it was held against, and what share of which rates it was allowed.
pub const AGAINST: &str = "check.against";
const MAX_LOAD: &str = "check.max_load";
const FULL_OPS: &str = "check.full_ops_per_s";
const FULL_BYTES: &str = "check.full_bytes_per_s";

/// Ops that leave everything as it is.
const READS: [OpKind; 4] = [OpKind::Get, OpKind::GetRange, OpKind::Stat, OpKind::Read];
/// Of the baseline's load, where nothing else is asked for.
const DEFAULT_LOAD: f64 = 0.05;
/// Ops in flight at the most, whatever the baseline had: a storage that answers slowly is not to be filled up.
const MOST_IN_FLIGHT: f64 = 64.0;
/// Rates closer than this are one load.
const SAME_LOAD: f64 = 0.05;
const WARMUP: std::time::Duration = std::time::Duration::from_secs(2);

/// The run that a check is held against, and the line of it.
#[derive(Debug)]
pub struct Baseline {
    pub id: String,
    pub line: WorkloadSummary,
    pub kind: OpKind,
    /// As its plan had it.
    workload: Workload,
    target: (String, TargetSpec),
    /// Rates of which a share is allowed: its own, or of a check those that it was a share of.
    pub full_ops_per_s: f64,
    full_bytes_per_s: Option<f64>,
    /// Share that it was itself, where it is a check.
    check_load: Option<f64>,
    /// Share of those rates that is allowed now.
    pub max_load: f64,
}

impl Baseline {
    pub fn find(c: &CheckCommand) -> Result<Self, Fault> {
        let root = runs_dir::root(c.runs_dir.as_deref());
        match c.against.split_once('=') {
            Some((name, value)) if !Path::new(&c.against).exists() => by_label(&root, (name, value), c),
            _ => {
                let dir = runs_dir::find(c.runs_dir.as_deref(), &c.against)?;
                runs_dir::judged(&dir)?;
                Self::of(&dir, c)
            }
        }
    }

    fn of(dir: &RunDir, c: &CheckCommand) -> Result<Self, Fault> {
        // Judged from what was recorded: a summary is a file that anybody may have edited.
        let (plan, summary, id) = (dir.plan()?, plimsoll_run::judged_by_record(dir)?, dir.id());
        let lines: Vec<&WorkloadSummary> = summary.workloads.iter().filter(|w| is_wanted(w, c)).collect();
        let Some(line) = lines.first() else { return Err(no_line(&id, &summary.workloads, c)) };
        if lines.len() > 1 && !c.quiet {
            output::tell(format_args!(
                "plimsoll: run {id} has {} lines of reads; this one is checked: {} (--op and --size choose another)",
                lines.len(),
                what(line)
            ));
        }
        let kind = OpKind::parse(&line.op).ok_or_else(|| Fault::bug(format!("an op '{}'", line.op)))?;
        let workload = workload_of(&plan, line, kind).ok_or_else(|| {
            Fault::input(format!("the plan of run {id} has no {kind}"), "Name another run.")
        })?;
        let (name, target) = plan.target_of(&workload)?;
        let number = |label: &str| plan.labels.get(label)?.parse::<f64>().ok().filter(|v| *v > 0.0);
        let check_load = number(MAX_LOAD).filter(|_| is_check(&plan));
        let own_ops = line.ops_per_s.map_or(0.0, |e| e.value);
        let (full_ops_per_s, full_bytes_per_s) = match check_load {
            Some(_) => (number(FULL_OPS).unwrap_or(own_ops), number(FULL_BYTES)),
            None => (own_ops, line.bytes_per_s.map(|e| e.value).filter(|b| *b > 0.0)),
        };
        let max_load = c.max_load.or(check_load).unwrap_or(DEFAULT_LOAD);
        if let Some(was) = check_load.filter(|was| max_load > was * (1.0 + SAME_LOAD)) {
            return Err(Fault::input(
                format!(
                    "check {id} was made at {} of the full load: its times say nothing of {}",
                    number::percent(was),
                    number::percent(max_load)
                ),
                "Leave out --max-load, or hold the check against the run under full load.",
            ));
        }
        Ok(Self {
            target: (name.to_owned(), target.clone()),
            line: (*line).clone(),
            id,
            kind,
            workload,
            full_ops_per_s,
            full_bytes_per_s,
            check_load,
            max_load,
        })
    }

    /// The op and its size: `GET 4 KiB`.
    pub fn what(&self) -> String {
        what(&self.line)
    }

    /// Ops per second that are allowed, of so many bytes each.
    pub fn rate(&self, mean_bytes: Option<f64>) -> f64 {
        let by_bytes =
            self.full_bytes_per_s.zip(mean_bytes.filter(|b| *b > 0.0)).map(|(full, mean)| full / mean);
        self.max_load * by_bytes.map_or(self.full_ops_per_s, |b| b.min(self.full_ops_per_s))
    }

    /// The baseline is a check, and had the same load.
    pub fn is_same_load(&self, rate: f64) -> bool {
        let own = self.line.offered_per_s.or(self.line.ops_per_s.map(|e| e.value));
        self.check_load.is_some() && own.is_some_and(|own| (rate / own - 1.0).abs() <= SAME_LOAD)
    }

    /// Enough that a storage four times as slow still gets the rate; never more than the baseline had in flight.
    fn concurrency(&self, rate: f64) -> u32 {
        let p99_ns = self.line.latency_ns.response.as_ref().and_then(|l| l.p99.or(Some(l.max)));
        let needed = 4.0 * rate * p99_ns.unwrap_or(0) as f64 / 1e9;
        let most = f64::from(self.line.concurrency.max(1)).min(MOST_IN_FLIGHT);
        needed.ceil().clamp(4.0_f64.min(most), most) as u32
    }

    /// What is read, and how, but for its rate: that needs the sizes of what is there.
    pub fn plan(&self, c: &CheckCommand, seed: u64) -> Result<Plan, Fault> {
        let size = self.size();
        let (target, object) = match &self.target.1 {
            TargetSpec::S3(s3) => {
                if c.path.is_some() {
                    return Err(other_kind("a bucket", "--bucket and --prefix"));
                }
                let (s3, existing) = self.bucket(s3, &size, c)?;
                let own = self.workload.object.clone().unwrap_or_default();
                let object = ObjectOptions {
                    objects: c.objects,
                    range: own.range,
                    existing: Some(existing),
                    ..ObjectOptions::default()
                };
                (TargetSpec::S3(s3), Some(object))
            }
            target if target.is_on_files() => {
                if c.bucket.is_some() || c.prefix.is_some() {
                    return Err(other_kind("a file or device", "--path"));
                }
                (TargetSpec::Block(self.file(target, c)?), None)
            }
            _ => {
                return Err(Fault::input(
                    format!("run {} measured no storage that is still there", self.id),
                    "Name a run on a bucket, a file or a device.",
                ));
            }
        };
        let name = format!("check of {} against {}", self.what(), self.id);
        let block = target.is_on_files().then(|| self.block_options());
        let workload = Workload {
            name: self.kind.name().into(),
            target: None,
            mix: BTreeMap::from([(self.kind, 1)]),
            size,
            keys: self.workload.keys,
            concurrency: 1,
            jobs: None,
            pacing: Pacing::Closed,
            stop: Stop { duration: Some(c.time), ..Stop::default() },
            verify: false,
            data: Default::default(),
            object,
            block,
            machines: None,
        };
        Ok(Plan {
            version: plimsoll_model::plan::PLAN_VERSION,
            name: Some(name),
            seed,
            options: RunOptions::default(),
            labels: self.labels(c),
            expect: Vec::new(),
            targets: BTreeMap::from([("storage".to_owned(), target)]),
            stages: vec![Stage {
                name: Some("check".into()),
                warmup: Span(WARMUP),
                workloads: vec![workload],
                cell: None,
            }],
            controller: None,
        })
    }

    /// Puts the rate into the plan, and what follows from it.
    pub fn paced(&self, plan: &mut Plan, rate: f64) {
        let stage = &mut plan.stages[0];
        // Some ops before those that count: the first one opens the connection.
        let some = std::time::Duration::from_secs_f64((3.0 / rate).clamp(0.0, 60.0));
        stage.warmup = Span(WARMUP.max(some));
        stage.workloads[0].pacing = Pacing::Capped(OpsRate(rate));
        stage.workloads[0].concurrency = self.concurrency(rate);
    }

    fn labels(&self, c: &CheckCommand) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<String, String> = c.labels.iter().cloned().collect();
        let mut add = |name: &str, value: String| labels.insert(name.to_owned(), value);
        add(suite::LABEL, suite::CHECK.into());
        add(AGAINST, self.id.clone());
        add(MAX_LOAD, self.max_load.to_string());
        add(FULL_OPS, self.full_ops_per_s.to_string());
        if let Some(bytes) = self.full_bytes_per_s {
            add(FULL_BYTES, bytes.to_string());
        }
        labels
    }

    /// Of the line; of a ranged read, whose line may have the range, that of the objects.
    fn size(&self) -> SizeDist {
        if self.kind == OpKind::GetRange {
            return self.workload.size.clone();
        }
        serde_json::from_value(self.line.size.clone()).unwrap_or(SizeDist::Fixed(Size(self.line.size_bytes)))
    }

    fn bucket(
        &self,
        s3: &S3Target,
        size: &SizeDist,
        c: &CheckCommand,
    ) -> Result<(S3Target, ExistingObjects), Fault> {
        if s3.endpoints.iter().any(|e| e == "embedded" || e == "canned") {
            return Err(Fault::input(
                format!("run {} measured a server that it started itself, and that is gone", self.id),
                "Start one that stays with `plimsoll target s3`, and measure it by its endpoint first.",
            ));
        }
        let dataset = self.workload.object.as_ref().and_then(|o| o.dataset.as_ref());
        let prefix = match (&c.prefix, self.workload.existing(), dataset) {
            (Some(given), _, _) => given.clone(),
            (None, Some(existing), _) => existing.prefix.clone(),
            (None, None, Some(name)) => dataset_prefix(name, size),
            (None, None, None) => {
                s3.prefix.as_deref().map(plimsoll_setup::objects::with_slash).unwrap_or_default()
            }
        };
        let target = S3Target {
            bucket: c.bucket.clone().unwrap_or_else(|| s3.bucket.clone()),
            create_bucket: false,
            prefix: None,
            put_headers: BTreeMap::new(),
            on_throttle: Default::default(),
            embedded: None,
            ..s3.clone()
        };
        Ok((target, ExistingObjects { prefix }))
    }

    /// A file or device as it is there. The region is the baseline's where it still fits.
    fn file(&self, target: &TargetSpec, c: &CheckCommand) -> Result<BlockTarget, Fault> {
        if matches!(target, TargetSpec::Block(b) if b.embedded.is_some()) && c.path.is_none() {
            return Err(Fault::input(
                format!("run {} measured a disk that it started itself, and that is gone", self.id),
                "Start one that stays with `plimsoll target block`, and measure its file first; or name a file: --path FILE.",
            ));
        }
        let (all, region, buffered) = match (&c.path, target) {
            (Some(path), t) => (vec![path.clone()], None, is_buffered(t)),
            (None, TargetSpec::Block(b)) => (paths_of_job(&self.target.0, target, 0), Some(b), b.buffered),
            (None, t) => {
                let jobs = self.workload.jobs.unwrap_or(1);
                let all = (0..jobs).flat_map(|job| paths_of_job(&self.target.0, t, job)).collect();
                (all, None, is_buffered(t))
            }
        };
        let there: Vec<&PathBuf> = all.iter().filter(|p| p.exists()).collect();
        let Some(first) = there.first() else {
            let path = all.first().map(|p| p.display().to_string()).unwrap_or_default();
            return Err(Fault::input(
                format!("{} is not there: what a run makes goes when it ends", clean(&path)),
                "Name a file or device that stays: --path FILE.",
            ));
        };
        let fits = |b: &&BlockTarget| {
            let end = b.offset.map_or(0, |o| o.0) + b.size.map_or(0, |s| s.0);
            there.iter().all(|p| known_size(p).is_some_and(|size| size >= end))
        };
        let region = region.filter(fits);
        let text = |p: &Path| p.to_string_lossy().into_owned();
        Ok(BlockTarget {
            path: text(first),
            also: there[1..].iter().map(|p| text(p)).collect(),
            size: region.and_then(|b| b.size),
            offset: region.and_then(|b| b.offset),
            buffered,
            destroy_data: None,
            layout: false,
            invalidate: false,
            existing: true,
            embedded: None,
        })
    }

    fn block_options(&self) -> BlockOptions {
        let own = self.workload.block.clone().unwrap_or_default();
        BlockOptions {
            norandommap: own.norandommap,
            offset_align: own.offset_align,
            ring: own.ring,
            ..BlockOptions::default()
        }
    }
}

fn is_check(plan: &Plan) -> bool {
    plan.labels.get(suite::LABEL).is_some_and(|s| s == suite::CHECK)
}

fn is_buffered(target: &TargetSpec) -> bool {
    match target {
        TargetSpec::Block(b) => b.buffered,
        TargetSpec::Files(f) => f.buffered,
        _ => false,
    }
}

fn other_kind(measured: &str, options: &str) -> Fault {
    Fault::input(
        format!("the baseline measured {measured}"),
        format!("Name another one with {options}, or name another baseline."),
    )
}

/// `GET 4 KiB`; of a stat the op alone.
fn what(w: &WorkloadSummary) -> String {
    let op = w.op.to_uppercase();
    if w.bytes_per_s.is_some() { format!("{op} {}", number::size(w.size_bytes)) } else { op }
}

fn is_wanted(w: &WorkloadSummary, c: &CheckCommand) -> bool {
    let reads = OpKind::parse(&w.op).is_some_and(|k| READS.contains(&k) && c.op.is_none_or(|op| op == k));
    let usable = w.valid && !w.is_total() && w.ops_per_s.is_some_and(|e| e.value > 0.0);
    reads && usable && c.size.is_none_or(|s| s.0 == w.size_bytes)
}

fn no_line(id: &str, lines: &[WorkloadSummary], c: &CheckCommand) -> Fault {
    let asked = match (c.op, c.size) {
        (None, None) => "of reads".to_owned(),
        (op, size) => {
            let words = [op.map(|o| o.to_string()), size.map(|s| number::size(s.0))];
            format!("of {}", words.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
    };
    let mut has: Vec<String> = lines
        .iter()
        .map(|w| format!("{}{}", clean(&what(w)), if w.valid { "" } else { " (invalid)" }))
        .collect();
    has.dedup();
    has.truncate(8);
    let has = if has.is_empty() { "it has no lines".into() } else { format!("it has {}", has.join(", ")) };
    Fault::input(
        format!("run {id} has no valid line {asked}: {has}"),
        "Name a run that measured get, get-range, stat or read, or another --op or --size.",
    )
}

/// The newest run with a label that can be held against. The index knows which have it: of thousands only that one is read.
fn by_label(root: &Path, (name, value): (&str, &str), c: &CheckCommand) -> Result<Baseline, Fault> {
    let label = (name.to_owned(), value.to_owned());
    let finished = |r: &&IndexedRun| r.answered.is_some();
    let labelled = found(root, &RunFilter { labels: vec![label], ..RunFilter::default() })?;
    let mut why = None;
    for run in labelled.iter().rev().filter(finished) {
        let dir = RunDir::open(&run.entry.path)?;
        match Baseline::of(&dir, c) {
            Ok(found) => return Ok(found),
            Err(e) => why = why.or(Some(e)),
        }
    }
    if let Some(e) = why {
        return Err(Fault {
            what: format!(
                "no run with the label {name}={value} can be held against; of the newest: {}",
                e.what
            ),
            ..e
        });
    }
    let mut known: Vec<String> = found(root, &RunFilter::default())?
        .iter()
        .map(|r| &r.entry)
        .flat_map(|r| r.labels.iter().filter(|(k, _)| !suite::is_own_label(&r.labels, k)))
        .map(|(k, v)| clean(&format!("{k}={v}")).into_owned())
        .collect();
    known.sort();
    known.dedup();
    known.truncate(12);
    let remedy = match known.len() {
        0 => "No run here has a label: give one with --label NAME=VALUE when you measure.".to_owned(),
        _ => format!("Labels that there are: {}.", known.join(", ")),
    };
    Err(Fault::input(format!("no finished run in {} has the label {name}={value}", root.display()), remedy))
}

/// The workload of a plan that a line is of.
fn workload_of(plan: &Plan, line: &WorkloadSummary, kind: OpKind) -> Option<Workload> {
    let templates = plan.controller.iter().flat_map(ControllerSpec::templates);
    let all: Vec<&Workload> = plan.stages.iter().chain(templates).flat_map(|s| &s.workloads).collect();
    let does = |w: &&&Workload| w.mix.get(&kind).is_some_and(|n| *n > 0);
    let is_named = |w: &&&Workload| line.name.contains(&w.name);
    let sized = |w: &&&Workload| w.size.mean_bytes() == line.size_bytes;
    let best = all.iter().filter(does).find(|w| is_named(w) && sized(w));
    let named = || all.iter().filter(does).find(is_named);
    let any = || all.iter().find(does);
    // Cells of a sweep have ops that its template does not name.
    let found =
        best.or_else(named).or_else(any).or_else(|| all.first().filter(|_| plan.controller.is_some()));
    found.map(|w| (**w).clone())
}
