//! What `import` does: a file is read to its end before anything of it is kept, and a run that could not be finished is removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::digest;
use plimsoll_import::{ImportError, ImportedRun, Source, SourceForm, warp};
use plimsoll_model::finding::Level;
use plimsoll_model::plan::{
    DataSpec, KeyDist, PLAN_VERSION, Pacing, RunOptions, SizeDist, Stage, Stop, TargetSpec, Workload,
};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::text::clean;
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{Environment, Finding, ImportSource, OpKind, Plan};
use plimsoll_report::Layout;
use plimsoll_store::mark::StageReport;
use plimsoll_store::rundir::ENV_FORMAT;
use plimsoll_store::{EnvFile, ImportedLines, Mark, RunDir, StoreError, StreamWriter};

use super::import::ImportCommand;
use crate::fault::{Exit, Fault};
use crate::{output, plim, runs_dir, signals};

/// Agent of a file of requests: there is one file of intervals.
const AGENT: &str = plimsoll_model::environment::LOCAL_AGENT;
/// Of whatever warp measured: its client is minio-go with its defaults.
const RETRIES: &str = "warp's client repeats refused and failed requests by itself, up to ten times: refusals show as long times, and only \
                       the last answer counts.";
/// Label of every imported run: its tool.
pub const LABEL: &str = "imported";

pub fn import(c: &ImportCommand) -> Result<Exit, Fault> {
    signals::install(signals::ProcessRole::Reader);
    let (mut dirs, mut exit) = (Vec::new(), Exit::Valid);
    for path in &c.files {
        let made = one(path, c).map_err(|f| match dirs.len() {
            0 => f,
            n => Fault {
                remedy: format!("{} The {n} run(s) of the files before it are stored.", f.remedy),
                ..f
            },
        })?;
        for (dir, of_run) in made {
            output::tell(format_args!("plimsoll: {} is run {}", path.display(), dir.id()));
            exit = exit.worse_of(of_run);
            dirs.push(dir);
        }
    }
    match &dirs[..] {
        [one] => output::print_glance(one, &c.output)?,
        several => drop(output::print_runs(several, Layout::default(), &c.output)?),
    }
    Ok(exit)
}

/// A file of another tool that is read while its hash is made.
struct Hashed {
    file: File,
    context: digest::Context,
    bytes: u64,
}

impl Hashed {
    fn open(path: &Path) -> Result<Self, Fault> {
        let broken = |e: std::io::Error| {
            Fault::input(
                format!("{}: it cannot be opened: {e}", path.display()),
                "Check the path and its permissions.",
            )
        };
        // A pipe would be waited for, and a file of requests is read twice.
        if !std::fs::metadata(path).map_err(broken)?.is_file() {
            return Err(Fault::input(
                format!("{}: it is not a regular file", path.display()),
                "Give the file that the tool wrote.",
            ));
        }
        let file = File::open(path).map_err(broken)?;
        Ok(Self { file, context: digest::Context::new(&digest::SHA256), bytes: 0 })
    }

    /// Reads the rest, which no result depends on, and gives length and hash of it all.
    fn finish(mut self) -> std::io::Result<(u64, String)> {
        let mut rest = vec![0; 1 << 16];
        while self.read(&mut rest)? > 0 {}
        let hash = self.context.finish();
        Ok((self.bytes, hash.as_ref().iter().map(|b| format!("{b:02x}")).collect()))
    }
}

impl Read for Hashed {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if signals::was_asked_to_stop() {
            return Err(std::io::Error::other("interrupted"));
        }
        let n = self.file.read(buf)?;
        self.context.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
}

fn interrupted() -> Fault {
    Fault { exit: Exit::Interrupted, ..Fault::input("interrupted", "Nothing of this file was stored.") }
}

/// Looked at wherever a file is not read: what is made of it may take longer than it does.
fn unless_interrupted() -> Result<(), Fault> {
    if signals::was_asked_to_stop() { Err(interrupted()) } else { Ok(()) }
}

/// A packed run of ours is stored as it is.
fn packed(path: &Path, c: &ImportCommand) -> Result<Vec<KeptRun>, Fault> {
    if c.name.is_some() || !c.labels.is_empty() {
        return Err(Fault::input(
            format!(
                "{}: a packed run keeps its own name and labels: they are sealed with it",
                path.display()
            ),
            "Leave out --name and --label for it.",
        ));
    }
    let dir = plim::kept(path, c.output.runs_dir.as_deref())?;
    runs_dir::judged(&dir)?;
    let exit = Exit::of_code(plimsoll_judge::exit_code(&dir.summary()?, false));
    Ok(vec![(dir, exit)])
}

fn one(path: &Path, c: &ImportCommand) -> Result<Vec<KeptRun>, Fault> {
    if plim::is_packed_file(path) {
        return packed(path, c);
    }
    let shown = clean(&path.display().to_string()).into_owned();
    let told = |e: ImportError| {
        if signals::was_asked_to_stop() {
            return interrupted();
        }
        Fault::input(format!("{shown}: {e}"), e.remedy)
    };
    let read =
        |e: std::io::Error| told(ImportError::new(format!("it cannot be read: {e}"), "Copy it again."));
    let mut file = Hashed::open(path)?;
    let found = Source::open(&mut file).map_err(told)?;
    let form = found.form();
    if form == SourceForm::WarpRequests {
        let survey = warp::survey(found.into_reader()).map_err(told)?;
        let (bytes, sha256) = file.finish().map_err(read)?;
        let from = ImportSource { form: "csv.zst".into(), ..source(path, form, bytes, sha256) };
        let run = kept(c, |dir| requests(dir, path, &survey, from, c).map_err(|e| e.told(&told)))?;
        return Ok(vec![run]);
    }
    let runs = found.lines().map_err(told)?;
    let (bytes, sha256) = file.finish().map_err(read)?;
    let mut kept_runs: Vec<KeptRun> = Vec::new();
    for run in runs {
        let from = ImportSource {
            form: run.form.clone(),
            tool_version: run.tool_version.clone(),
            ..source(path, form, bytes, sha256.clone())
        };
        match kept(c, |dir| figures(dir, path, run, from, c).map_err(Fault::from)) {
            Ok(run) => kept_runs.push(run),
            Err(e) => {
                // All runs of a file, or none.
                kept_runs.into_iter().for_each(|(d, _)| drop(d.remove()));
                return Err(e);
            }
        }
    }
    Ok(kept_runs)
}

fn source(path: &Path, form: SourceForm, bytes: u64, sha256: String) -> ImportSource {
    let file = path.file_name().map(|n| clean(&n.to_string_lossy()).into_owned()).unwrap_or_default();
    ImportSource { tool: form.tool().into(), file, bytes, sha256, ..ImportSource::default() }
}

/// A run, and what a command that measured it would have ended with.
type KeptRun = (RunDir, Exit);

/// A new run directory, filled, sealed and judged; removed again where that fails.
fn kept(c: &ImportCommand, fill: impl FnOnce(&RunDir) -> Result<(), Fault>) -> Result<KeptRun, Fault> {
    let dir = RunDir::create(&runs_dir::root(c.output.runs_dir.as_deref()))?;
    let sealed = |dir: &RunDir| -> Result<Exit, Fault> {
        unless_interrupted()?;
        dir.seal("done")?;
        let summary = plimsoll_run::analyze(dir)?;
        unless_interrupted()?;
        Ok(Exit::of_code(plimsoll_judge::exit_code(&summary, false)))
    };
    match fill(&dir).and_then(|()| sealed(&dir)) {
        Ok(exit) => Ok((dir, exit)),
        Err(e) => {
            let at = dir.path().display().to_string();
            dir.remove().map_err(|left| Fault {
                remedy: format!("{} What was begun of it is still in {at} ({left}).", e.remedy),
                ..e.clone()
            })?;
            Err(e)
        }
    }
}

/// Plan and environment, as a run of ours has them.
fn head(
    dir: &RunDir,
    path: &Path,
    mut plan: Plan,
    environment: Environment,
    c: &ImportCommand,
) -> Result<(), StoreError> {
    if let Some(name) = &c.name {
        plan.name = Some(name.clone());
    }
    let tool = environment.imported.as_ref().map(|i| i.tool.clone()).unwrap_or_default();
    plan.labels.insert(LABEL.into(), tool);
    plan.labels.extend(c.labels.iter().cloned());
    dir.write_plan(&plan)?;
    dir.write_env(&EnvFile {
        format: ENV_FORMAT.into(),
        id: dir.id(),
        environment: Environment { plimsoll_version: env!("CARGO_PKG_VERSION").into(), ..environment },
        rerun: format!("plimsoll import {}", clean(&path.display().to_string())),
        clock_offsets_ns: BTreeMap::new(),
    })
}

/// A run of figures.
fn figures(
    dir: &RunDir,
    path: &Path,
    run: ImportedRun,
    from: ImportSource,
    c: &ImportCommand,
) -> Result<(), StoreError> {
    let text = format!(
        "Imported from {}, {} (sha256 {}): these are its own figures, and Plimsoll did not see what they were made of. Where they \
         have no interval, how far another run would lie from them is not known: repeat the test, and import each file.{}",
        from.who(),
        from.file,
        from.sha256,
        if from.tool == "warp" { format!(" {RETRIES}") } else { String::new() }
    );
    let environment = Environment {
        started_at: run.started_at.clone(),
        notes: run.facts.clone(),
        findings: vec![Finding::new("F80", "imported", Level::Qualified, text)],
        imported: Some(from),
        ..Environment::default()
    };
    head(dir, path, plan_of(&run), environment, c)?;
    // An empty record: nothing was seen slice by slice.
    dir.create_intervals(AGENT, warp::GRID_NS)?.finish()?;
    dir.write_imported(&ImportedLines::new(run.lines, run.findings))
}

/// What the lines say of the load, so that reports and comparisons can ask for it as of any run. Nothing is reached by it.
fn plan_of(run: &ImportedRun) -> Plan {
    let workloads = run.lines.iter().filter(|w| w.together == 0).take(1000).map(workload).collect();
    let mut plan = Plan {
        version: PLAN_VERSION,
        name: Some(run.title.clone()),
        seed: 0,
        options: RunOptions::default(),
        labels: BTreeMap::new(),
        expect: Vec::new(),
        targets: BTreeMap::from([(LABEL.to_owned(), TargetSpec::Null)]),
        stages: vec![Stage { name: None, warmup: Span(std::time::Duration::ZERO), workloads, cell: None }],
        controller: None,
    };
    if plan.validate().is_err() {
        // Figures beyond all bounds are told as they are; the plan is then of a bare load.
        plan.stages[0].workloads =
            vec![workload(&WorkloadSummary { concurrency: 1, ..WorkloadSummary::default() })];
    }
    plan
}

fn workload(w: &WorkloadSummary) -> Workload {
    let random = w.load.starts_with("rand");
    Workload {
        name: if w.name.is_empty() { "imported".into() } else { w.name.clone() },
        target: None,
        mix: BTreeMap::from([(OpKind::parse(&w.op).unwrap_or(OpKind::Null), 1)]),
        size: SizeDist::Fixed(Size(w.size_bytes)),
        keys: if random { KeyDist::Uniform } else { KeyDist::Sequential },
        concurrency: w.concurrency.max(1),
        jobs: None,
        pacing: Pacing::Closed,
        stop: Stop::default(),
        verify: false,
        data: DataSpec::default(),
        object: None,
        block: None,
        machines: None,
    }
}

/// What ends the second pass.
enum Broken {
    File(ImportError),
    Store(StoreError),
}

impl From<ImportError> for Broken {
    fn from(e: ImportError) -> Self {
        Self::File(e)
    }
}

impl From<StoreError> for Broken {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

impl Broken {
    fn told(self, told: &impl Fn(ImportError) -> Fault) -> Fault {
        match self {
            Self::File(e) => told(e),
            Self::Store(e) => e.into(),
        }
    }
}

/// A full run, from a file of requests.
fn requests(
    dir: &RunDir,
    path: &Path,
    survey: &warp::Survey,
    from: ImportSource,
    c: &ImportCommand,
) -> Result<(), Broken> {
    let title = format!("warp: {}", survey.kinds.keys().map(|k| k.name()).collect::<Vec<_>>().join(", "));
    let environment = Environment {
        started_at: survey.started_at(),
        ring: "warp".into(),
        notes: facts(survey),
        findings: requests_findings(survey, &from),
        imported: Some(from.clone()),
        ..Environment::default()
    };
    head(dir, path, survey.plan(&title), environment, c)?;
    let mut record = dir.create_intervals(AGENT, warp::GRID_NS)?;
    let mut file = Hashed::open(path).map_err(|f| ImportError::new(f.what, f.remedy))?;
    let mut last = None;
    let again = Source::open(&mut file)?;
    warp::replay::<Broken>(again.into_reader(), survey, |what| {
        // Between two rows there may be an hour of slices.
        if signals::was_asked_to_stop() {
            return Err(ImportError::new("interrupted", "Import it again.").into());
        }
        match what {
            warp::Replayed::Begin(stage) => {
                if let Some(before) = last.replace(stage) {
                    end(&mut record, survey, before)?;
                }
                begin(&mut record, survey, stage)?;
            }
            warp::Replayed::Slice(stage, interval) => record.interval(stage as u32, interval)?,
        }
        Ok(())
    })?;
    if let Some(stage) = last {
        end(&mut record, survey, stage)?;
    }
    record.finish()?;
    let (_, hash) = file.finish().map_err(|e| ImportError::new(e.to_string(), "Copy it again."))?;
    if hash != from.sha256 {
        return Err(ImportError::new("it was changed while it was read", "Import it again.").into());
    }
    Ok(())
}

/// Nanoseconds since the first request.
fn at(survey: &warp::Survey, ns: i64) -> u64 {
    (ns - survey.start_ns()).max(0) as u64
}

fn begin(record: &mut StreamWriter, survey: &warp::Survey, number: usize) -> Result<(), StoreError> {
    let (stage, at_ns) = (number as u32, at(survey, survey.stages[number].start_ns));
    record.mark(&Mark::StageStart {
        stage,
        at_ns,
        spec: Box::new(survey.stage_spec(number)),
        endpoints: vec![survey.endpoints.iter().map(|e| clean(e).into_owned()).collect()],
        workers: survey.threads,
        ring: "warp".into(),
        slots: survey.threads,
    })?;
    record.mark(&Mark::WarmupEnd { stage, at_ns })
}

fn end(record: &mut StreamWriter, survey: &warp::Survey, number: usize) -> Result<(), StoreError> {
    let (stage, span) = (number as u32, &survey.stages[number]);
    record.mark(&Mark::StopRequested {
        stage,
        at_ns: at(survey, span.last_start_ns),
        reason: "duration".into(),
    })?;
    let at_ns = at(survey, span.end_ns);
    record.mark(&Mark::StageEnd { stage, at_ns })?;
    let of_stage = |(outcome, (kind, said)): (&String, &(OpKind, String))| {
        span.kinds.contains(kind).then(|| (outcome.clone(), kind.name().to_owned(), said.clone()))
    };
    let report = StageReport {
        notes: vec![survey.notes(number)],
        failures: survey.errors.iter().filter_map(of_stage).collect(),
        ring: "warp".into(),
        ..StageReport::default()
    };
    record.mark(&Mark::StageReport { stage, at_ns, report: Box::new(report) })
}

fn facts(survey: &warp::Survey) -> BTreeMap<String, String> {
    let mut out = BTreeMap::from([
        ("requests".to_owned(), survey.requests.to_string()),
        ("warp threads".to_owned(), survey.threads.to_string()),
    ]);
    if survey.clients > 0 {
        out.insert("warp clients".into(), survey.clients.to_string());
    }
    if !survey.command.is_empty() {
        out.insert("command of warp".into(), clean(&survey.command).into_owned());
    }
    out
}

fn requests_findings(survey: &warp::Survey, from: &ImportSource) -> Vec<Finding> {
    let text = format!(
        "Imported from warp, {} (sha256 {}): {} requests in slices of 100 ms, judged as a run of ours is. What the client and the \
         server were doing is not in the file, so that a limit of theirs cannot be told from one of the storage. {RETRIES}",
        from.file, from.sha256, survey.requests
    );
    let mut out = vec![Finding::new("F80", "imported", Level::Qualified, text)];
    if survey.clients > 1 {
        let text = format!(
            "The times are of {} clients' own clocks, as warp has them: what differs between clients by less than their clocks do is \
             not known.",
            survey.clients
        );
        out.push(Finding::new("F91", "imported_clocks", Level::Info, text));
    }
    if !survey.unknown.is_empty() {
        let which: Vec<String> = survey.unknown.iter().map(|(op, n)| format!("{n} {op}")).collect();
        let text = format!("Requests of kinds that Plimsoll has not were left out: {}.", which.join(", "));
        out.push(Finding::new("F92", "imported_unknown", Level::Qualified, text));
    }
    out
}
