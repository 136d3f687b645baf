//! From jobs to a plan: stages by stonewall, a workload per job (or per clone), a target per file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    BlockOptions, BlockTarget, DataSpec, FilesTarget, FioJob, KeyDist, PLAN_VERSION, Pacing, Plan,
    RingChoice, RunOptions, SizeDist, Stage, Stop, TargetSpec, Workload,
};
use plimsoll_model::units::{BytesRate, OpsRate, Size, Span};

use super::block_size::max_bytes;
use super::directions::{self, per_direction_rates};
use super::error::FioError;
use super::job::{JobSection, Pattern, RateProcess};
use super::probe::{PathKind, PathProbe};
use super::value::BytesOrPercent;

/// What the command line adds to the job file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LowerOptions {
    /// The device or file whose data may be destroyed.
    pub destroy_data: Option<String>,
    /// Name of the plan.
    pub name: Option<String>,
}

/// The plan, and what is done otherwise than written.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    pub plan: Plan,
    pub notes: Vec<String>,
}

/// fio repeats its sequence unless told otherwise; so do we, with this seed.
const DEFAULT_SEED: u64 = 0x0089_E6F1;

/// Lowers jobs to a plan that [`Plan::validate`] accepts.
pub fn lower(
    jobs: &[JobSection],
    options: &LowerOptions,
    probe: &dyn PathProbe,
) -> Result<Lowered, FioError> {
    let mut low = Lowering {
        options,
        probe,
        targets: BTreeMap::new(),
        stages: Vec::new(),
        rings_differ: jobs.windows(2).any(|w| w[0].engine != w[1].engine),
        notes: Vec::new(),
        seed: jobs.iter().find_map(|j| j.randseed).unwrap_or(DEFAULT_SEED),
        group: 0,
    };
    for (i, job) in jobs.iter().enumerate() {
        low.add(i, job)?;
    }
    low.close_stage();
    let ring = match jobs.first() {
        Some(j) if !low.rings_differ => j.engine.ring(),
        _ => RingChoice::Auto,
    };
    let unlinked = jobs.iter().filter(|j| j.unlink).count();
    if unlinked > 0 && unlinked < jobs.len() {
        low.notes.push("unlink=1 in some jobs only: the files of all jobs are kept.".into());
    }
    let plan = Plan {
        version: PLAN_VERSION,
        name: options.name.clone(),
        seed: low.seed,
        options: RunOptions { ring, keep: unlinked < jobs.len(), ..RunOptions::default() },
        labels: BTreeMap::new(),
        expect: Vec::new(),
        targets: low.targets,
        stages: low.stages.into_iter().flat_map(Draft::into_stages).collect(),
        controller: None,
    };
    plan.validate()
        .map_err(|e| FioError::at("job file", 0, e.to_string(), "Correct the job that makes it"))?;
    Ok(Lowered { plan, notes: low.notes })
}

/// A stage that is being filled, and the verify passes that follow it.
#[derive(Debug)]
struct Draft {
    stage: Stage,
    verify: Vec<Workload>,
}

impl Draft {
    fn into_stages(self) -> Vec<Stage> {
        let mut out = vec![self.stage];
        if !self.verify.is_empty() {
            let name = out[0].name.as_ref().map(|n| format!("{n} (verify)"));
            out.push(Stage { name, warmup: Span(Duration::ZERO), workloads: self.verify, cell: None });
        }
        out
    }
}

struct Lowering<'a> {
    options: &'a LowerOptions,
    probe: &'a dyn PathProbe,
    targets: BTreeMap<String, TargetSpec>,
    stages: Vec<Draft>,
    rings_differ: bool,
    notes: Vec<String>,
    seed: u64,
    group: u32,
}

impl Lowering<'_> {
    fn add(&mut self, index: usize, job: &JobSection) -> Result<(), FioError> {
        if index > 0 && (job.stonewall || job.new_group) {
            self.group += 1;
        }
        if index == 0 || job.stonewall {
            self.close_stage();
            let stage =
                Stage { name: Some(job.name.clone()), warmup: span(0), workloads: Vec::new(), cell: None };
            self.stages.push(Draft { stage, verify: Vec::new() });
        }
        self.take_notes(job);
        self.warmup(job);
        // Clones are workloads of their own, so that each is reported by itself; in a group, or with
        // files that the engine spreads over its workers, they are one workload with several threads.
        let own_files = job.filename.is_empty();
        let merged = own_files && job.nrfiles > 1 || (job.group_reporting && !own_files);
        let (workloads, threads) = if merged { (1, job.numjobs) } else { (job.numjobs, 1) };
        for clone in 0..workloads {
            let target = self.target(job, clone)?;
            for (part, name) in directions::parts(job)? {
                let mut workload = self.workload(&part, clone, workloads, threads, &target)?;
                workload.name.push_str(name);
                let draft = self.stages.last_mut().expect("a stage was opened above");
                if job.verify && job.do_verify && job.pattern == Pattern::Write {
                    draft.verify.push(verify_pass(&workload));
                }
                draft.stage.workloads.push(workload);
            }
        }
        Ok(())
    }

    fn close_stage(&mut self) {
        if self.stages.last().is_some_and(|d| d.stage.workloads.is_empty()) {
            self.stages.pop();
        }
    }

    fn take_notes(&mut self, job: &JobSection) {
        let mut notes: Vec<String> = job.notes.clone();
        if job.randseed.is_some_and(|s| s != self.seed) {
            notes.push(format!("randseed: one seed determines the whole run ({}).", self.seed));
        }
        if job.name == "FIOJOB" && job.filename == ["/mnt/vbs/fio.raw"] && job.numjobs == 16 {
            notes.push(
                "This is the job file of Vultr's article. Its numjobs=16 differs from the article's text, \
                 whose tables were made with 4 jobs: use --set numjobs=4 to compare with them."
                    .into(),
            );
        }
        for n in notes {
            let line = format!("job '{}': {n}", job.name);
            if !self.notes.contains(&line) {
                self.notes.push(line);
            }
        }
    }

    /// A stage has one warm-up: the longest ramp time of its jobs.
    fn warmup(&mut self, job: &JobSection) {
        let draft = self.stages.last_mut().expect("a stage is open");
        let ramp = span(job.ramp_us);
        let first = draft.stage.workloads.is_empty();
        if !first && draft.stage.warmup != ramp {
            self.notes.push(format!(
                "job '{}': jobs that run together have different ramp times; the longest one applies to all.",
                job.name
            ));
        }
        if ramp.0 > draft.stage.warmup.0 {
            draft.stage.warmup = ramp;
        }
    }

    /// Names the target of a clone, making it if there is none like it yet.
    fn target(&mut self, job: &JobSection, clone: u32) -> Result<String, FioError> {
        let (name, spec) = match job.filename.as_slice() {
            [_, ..] => (job.name.clone(), self.named_target(job)?),
            [] if job.nrfiles > 1 => (job.name.clone(), self.files_target(job)?),
            [] => {
                // fio's own naming: job name, clone, number of the file.
                let f = format!("{}.{clone}.0", job.name.replace('/', "_"));
                let name = if job.numjobs > 1 { format!("{}.{clone}", job.name) } else { job.name.clone() };
                (name, TargetSpec::Block(self.file_target(job, &in_directory(job, &f))?))
            }
        };
        let mut unique = name.clone();
        let mut n = 2;
        while self.targets.get(&unique).is_some_and(|t| *t != spec) {
            unique = format!("{name}#{n}");
            n += 1;
        }
        self.targets.insert(unique.clone(), spec);
        Ok(unique)
    }

    /// The files or devices that `filename` names. fio divides a size of the job among them.
    fn named_target(&self, job: &JobSection) -> Result<TargetSpec, FioError> {
        let count = job.filename.len() as u64;
        let mut each = job.clone();
        if let (Some(BytesOrPercent::Bytes(all)), None) = (job.size, job.file_size) {
            let block =
                max_bytes(&job.block.distribution(false)).max(max_bytes(&job.block.distribution(true)));
            each.size =
                Some(BytesOrPercent::Bytes(if count > 1 { all / count / block * block } else { all }));
        }
        let targets: Vec<BlockTarget> = job
            .filename
            .iter()
            .map(|f| self.file_target(&each, &in_directory(job, f)))
            .collect::<Result<_, _>>()?;
        let mut all = targets[0].clone();
        if let Some(other) = targets.iter().find(|t| (t.size, t.offset) != (all.size, all.offset)) {
            return Err(job.error(
                format!("{} and {} have different sizes", all.path, other.path),
                "Add size= (it is divided among them), or write one job for each.",
            ));
        }
        all.layout = targets.iter().any(|t| t.layout);
        all.also = targets[1..].iter().map(|t| t.path.clone()).collect();
        Ok(TargetSpec::Block(all))
    }

    fn file_target(&self, job: &JobSection, path: &Path) -> Result<BlockTarget, FioError> {
        let kind = self.probe.kind(path);
        let (exists, device) = match kind {
            PathKind::Missing => (None, false),
            PathKind::File { size, .. } => (Some(size), false),
            PathKind::BlockDevice { size } => (Some(size), true),
            PathKind::Directory => {
                return Err(job.error(format!("{} is a directory", path.display()), "Name a file in it."));
            }
            PathKind::Other => {
                return Err(job.error(
                    format!("{} is neither a file nor a block device", path.display()),
                    "Name a regular file or a block device.",
                ));
            }
        };
        let whole = job.file_size.map(|(_, max)| max).or(exists);
        let offset = resolve(job, job.offset, whole, "offset")?;
        let size = self.region(job, path, whole, offset)?;
        let fixed = device || matches!(kind, PathKind::File { ours: false, .. });
        let end = offset + size;
        if let Some(have) = exists
            && fixed
            && have < end
            && (device || !job.writes())
        {
            return Err(job.error(
                format!("{} has {have} bytes; offset and size reach to {end}", path.display()),
                "Lower size= or offset=, for example with --set size=1g.",
            ));
        }
        let needs_data = job.reads() || job.overwrite || job.verify;
        Ok(BlockTarget {
            path: path.display().to_string(),
            also: Vec::new(),
            size: Some(Size(size)),
            offset: (offset > 0).then_some(Size(offset)),
            buffered: !job.direct,
            destroy_data: self.options.destroy_data.clone(),
            layout: needs_data && !fixed,
            invalidate: job.invalidate,
            existing: false,
            embedded: None,
        })
    }

    fn files_target(&self, job: &JobSection) -> Result<TargetSpec, FioError> {
        let directory = job.directory.clone().unwrap_or_else(|| ".".into());
        let file_size = match (job.file_size, job.size) {
            (Some((min, max)), _) if min != max => {
                return Err(job.error(
                    "filesize is a range, but all files of a job have the same size here",
                    "Write one filesize, or one job per size.",
                ));
            }
            (Some((_, max)), _) => max,
            (None, Some(BytesOrPercent::Bytes(total))) => total / u64::from(job.nrfiles),
            (None, _) => {
                return Err(job.error("nrfiles needs size= or filesize=", "Add for example size=1g."));
            }
        };
        if resolve(job, job.offset, Some(file_size), "offset")? > 0 {
            return Err(job.error("offset with several files is not supported", "Remove offset or nrfiles."));
        }
        self.holds_a_block(job, file_size)?;
        Ok(TargetSpec::Files(FilesTarget {
            directory,
            stem: Some(job.name.replace('/', "_")),
            files: job.nrfiles,
            file_size: Size(file_size),
            buffered: !job.direct,
            layout: job.reads() || job.overwrite || job.verify,
            invalidate: job.invalidate,
            embedded: None,
        }))
    }

    /// Bytes of the region that the job works on.
    fn region(
        &self,
        job: &JobSection,
        path: &Path,
        whole: Option<u64>,
        offset: u64,
    ) -> Result<u64, FioError> {
        let size = match (job.size, whole) {
            (Some(amount), _) => resolve(job, amount, whole, "size")?,
            (None, Some(have)) if have > offset => have - offset,
            (None, Some(_)) => {
                return Err(
                    job.error(format!("offset is beyond the end of {}", path.display()), "Lower offset=.")
                );
            }
            (None, None) => {
                return Err(job.error(
                    format!("{} does not exist and there is no size", path.display()),
                    "Add size=, for example --set size=1g.",
                ));
            }
        };
        self.holds_a_block(job, size)?;
        Ok(size)
    }

    fn holds_a_block(&self, job: &JobSection, size: u64) -> Result<(), FioError> {
        let largest = max_bytes(&job.block.distribution(false)).max(max_bytes(&job.block.distribution(true)));
        if size < largest {
            return Err(job.error(
                format!("size is {size} bytes, less than a block of {largest}"),
                "Raise size= or lower bs=.",
            ));
        }
        Ok(())
    }

    fn workload(
        &self,
        job: &JobSection,
        clone: u32,
        clones: u32,
        threads: u32,
        target: &str,
    ) -> Result<Workload, FioError> {
        let (read, write) = (job.block.distribution(false), job.block.distribution(true));
        let size = if job.reads() { read.clone() } else { write.clone() };
        let pacing = pacing(job, threads, &read, &write)?;
        let block = BlockOptions {
            fsync: job.fsync,
            fdatasync: job.fdatasync,
            end_fsync: job.end_fsync,
            norandommap: job.norandommap,
            start_delay: start_delay(job, self.seed, clone),
            ring: self.rings_differ.then(|| job.engine.ring()),
            write_size: (job.pattern == Pattern::ReadWrite && read != write).then_some(write),
            offset_align: None,
            fio: Some(FioJob {
                job: job.name.clone(),
                clone,
                group: self.group,
                group_reporting: job.group_reporting,
                options: job.options.clone(),
                global_options: job.global_options.clone(),
                percentiles: job.percentiles.clone(),
                notes: job.notes.clone(),
            }),
            ..BlockOptions::default()
        };
        Ok(Workload {
            name: if clones > 1 { format!("{}.{clone}", job.name) } else { job.name.clone() },
            target: Some(target.to_owned()),
            mix: mix(job),
            size,
            keys: if job.random { job.distribution } else { KeyDist::Sequential },
            concurrency: job.iodepth,
            jobs: Some(threads),
            pacing,
            stop: self.stop(job, threads)?,
            verify: job.verify,
            data: DataSpec {
                compressible: f64::from(job.compress_percent) / 100.0,
                dedupable: f64::from(job.dedupe_percent) / 100.0,
            },
            object: None,
            block: Some(block),
            machines: None,
        })
    }

    fn stop(&self, job: &JobSection, threads: u32) -> Result<Stop, FioError> {
        let duration = job.runtime_us.map(span);
        if job.time_based {
            return Ok(Stop { duration, ..Stop::default() });
        }
        let io_size = match job.io_size {
            None => None,
            Some(amount) => {
                let size = match job.size {
                    Some(BytesOrPercent::Bytes(b)) => Some(b),
                    _ => None,
                };
                let each = resolve(job, amount, size, "io_size")?;
                Some(Size(
                    each.saturating_mul(u64::from(job.loops))
                        .saturating_mul(u64::from(threads))
                        .min(i64::MAX as u64),
                ))
            }
        };
        Ok(match io_size {
            Some(bytes) => Stop { duration, bytes: Some(bytes), ..Stop::default() },
            None => Stop { duration, loops: Some(job.loops), ..Stop::default() },
        })
    }
}

/// Reads everything back once, in order, checking each stamp: what fio does after a job with verify.
fn verify_pass(w: &Workload) -> Workload {
    let mut v = w.clone();
    v.name = format!("{} (verify)", w.name);
    v.mix = BTreeMap::from([(OpKind::Read, 1)]);
    v.keys = KeyDist::Sequential;
    v.pacing = Pacing::Closed;
    v.stop = Stop { loops: Some(1), ..Stop::default() };
    v.verify = true;
    if let Some(b) = &mut v.block {
        b.start_delay = None;
        (b.fsync, b.fdatasync, b.end_fsync) = (0, 0, false);
    }
    v
}

fn in_directory(job: &JobSection, file: &str) -> PathBuf {
    // Path::join keeps an absolute file name, as fio does for devices.
    job.directory.as_ref().map_or_else(|| PathBuf::from(file), |d| Path::new(d).join(file))
}

fn span(us: u64) -> Span {
    Span(Duration::from_micros(us))
}

fn resolve(job: &JobSection, amount: BytesOrPercent, whole: Option<u64>, key: &str) -> Result<u64, FioError> {
    match (amount, whole) {
        (BytesOrPercent::Bytes(b), _) => Ok(b),
        (BytesOrPercent::Percent(0), _) => Ok(0),
        // Whole sectors, so that direct I/O stays possible.
        (BytesOrPercent::Percent(p), Some(w)) => {
            Ok((u128::from(w) * u128::from(p) / 100) as u64 / 4096 * 4096)
        }
        (BytesOrPercent::Percent(p), None) => Err(job.error(
            format!("{key}={p}% is a share of an unknown size"),
            format!("Write {key} in bytes, or name an existing file or device."),
        )),
    }
}

fn mix(job: &JobSection) -> BTreeMap<OpKind, u32> {
    match job.pattern {
        Pattern::Read => BTreeMap::from([(OpKind::Read, 1)]),
        Pattern::Write => BTreeMap::from([(OpKind::Write, 1)]),
        Pattern::ReadWrite => {
            let rates = per_direction_rates(job);
            if let (Some(r), Some(w)) = (rates[0], rates[1]) {
                // Each direction keeps its own rate in fio, whatever rwmixread says.
                let common = gcd(r, w).max(1);
                let (r, w) = (r / common, w / common);
                let shrink = (r.max(w) / 1_000_000).max(1);
                return BTreeMap::from([
                    (OpKind::Read, (r / shrink).max(1) as u32),
                    (OpKind::Write, (w / shrink).max(1) as u32),
                ]);
            }
            BTreeMap::from([(OpKind::Read, job.mix_read), (OpKind::Write, 100 - job.mix_read)])
                .into_iter()
                .filter(|(_, weight)| *weight > 0)
                .collect()
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn pacing(job: &JobSection, threads: u32, read: &SizeDist, write: &SizeDist) -> Result<Pacing, FioError> {
    let rates = per_direction_rates(job);
    let total_ops = match job.pattern {
        Pattern::Read => rates[0],
        Pattern::Write => rates[1],
        Pattern::ReadWrite => match rates {
            [Some(r), Some(w)] => Some(r.saturating_add(w)),
            // With a rate for one direction only, the other is a workload of its own.
            _ => None,
        },
    };
    let Some(total_ops) = total_ops else {
        if job.rate_process == RateProcess::Poisson {
            return Err(job.error("rate_process=poisson has no rate", "Add rate_iops= or rate=."));
        }
        return Ok(Pacing::Closed);
    };
    let ops = OpsRate(total_ops as f64 / 1e6 * f64::from(threads));
    if job.rate_process == RateProcess::Poisson {
        return Ok(Pacing::Poisson(ops));
    }
    // A rate of bytes stays one where sizes vary: the mean of draws is not the mean of the law.
    let direction = usize::from(job.pattern == Pattern::Write);
    let sizes = if direction == 1 { write } else { read };
    match (job.pattern, job.rate_bytes[direction], sizes) {
        (Pattern::ReadWrite, ..) | (_, None, _) => Ok(Pacing::Constant(ops)),
        (_, Some(b), _) => Ok(Pacing::Bytes(BytesRate(b as f64 * f64::from(threads)))),
    }
}

/// A range of delays gives each clone its own, drawn from the seed.
fn start_delay(job: &JobSection, seed: u64, clone: u32) -> Option<Span> {
    let (from, to) = job.start_delay_us;
    if to == 0 {
        return None;
    }
    let mut x = seed.wrapping_add(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(u64::from(clone) + 1));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let spread = to - from;
    Some(span(from + if spread == 0 { 0 } else { (x ^ (x >> 31)) % (spread + 1) }))
}
