//! fio job files: read, checked key by key, and lowered to a plan.
//!
//! The promise is fio's semantics, not its sequence of offsets nor the layout of its verify headers.
//! A key that is not supported is an error with its line; `ignore_unknown` lists it instead.

mod arith;
mod block_size;
mod directions;
mod error;
mod job;
mod keys;
mod lower;
mod probe;
mod suffix;
mod text;
mod value;

pub use error::FioError;
pub use job::{Engine, JobSection, Pattern};
pub use lower::{LowerOptions, Lowered, lower};
pub use probe::{DiskProbe, PathKind, PathProbe};
pub use text::{Assignment, Environ, JobFile, Section};
pub use value::BytesOrPercent;

/// How job files are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParseOptions {
    /// `key=value` pairs that override the key in every job (`--set`).
    pub set: Vec<String>,
    /// List unsupported keys instead of refusing them.
    pub ignore_unknown: bool,
    /// Only these sections run (`--section`); empty: all.
    pub sections: Vec<String>,
}

/// Jobs as they will run, and what was left out on the user's word.
#[derive(Debug, Clone, PartialEq)]
pub struct Jobs {
    pub jobs: Vec<JobSection>,
    /// One line per key that was ignored: place, key and value.
    pub ignored: Vec<String>,
}

/// Everything that `plimsoll fio` takes for its plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FioOptions {
    /// Job files, in order; `-` is standard input.
    pub files: Vec<std::path::PathBuf>,
    pub parse: ParseOptions,
    /// The device or file whose data may be destroyed.
    pub destroy_data: Option<String>,
}

/// A plan made from job files.
#[derive(Debug, Clone, PartialEq)]
pub struct FioPlan {
    pub plan: plimsoll_model::Plan,
    /// What is done otherwise than written, and why.
    pub notes: Vec<String>,
    /// Keys left out with `ignore_unknown`: place, key and value.
    pub ignored: Vec<String>,
}

/// Reads job files and lowers them to a plan, looking at what their paths are at present.
pub fn plan(options: &FioOptions) -> Result<FioPlan, FioError> {
    let jobs = read_files(&options.files, &options.parse)?;
    let names: Vec<String> = options.files.iter().map(|f| f.display().to_string()).collect();
    let lower_options = LowerOptions {
        destroy_data: options.destroy_data.clone(),
        name: Some(format!("fio {}", names.join(" "))),
    };
    let lowered = lower(&jobs.jobs, &lower_options, &DiskProbe)?;
    Ok(FioPlan { plan: lowered.plan, notes: lowered.notes, ignored: jobs.ignored })
}

/// Reads job files from disk; several files run one after the other, as with fio.
pub fn read_files(paths: &[std::path::PathBuf], options: &ParseOptions) -> Result<Jobs, FioError> {
    let mut all = Jobs { jobs: Vec::new(), ignored: Vec::new() };
    for path in paths {
        let file = JobFile::read(path)?;
        let mut jobs = read_jobs(&file, options, &Environ::process())?;
        // fio puts a stonewall between job files.
        if let (false, Some(first)) = (all.jobs.is_empty(), jobs.jobs.first_mut()) {
            first.stonewall = true;
        }
        all.jobs.append(&mut jobs.jobs);
        all.ignored.append(&mut jobs.ignored);
    }
    if all.jobs.is_empty() {
        let name = paths.first().map_or_else(|| "job file".into(), |p| p.display().to_string());
        return Err(FioError::at(
            &name,
            0,
            "it contains no job",
            "Add a section such as [job1] below [global].",
        ));
    }
    Ok(all)
}

/// Turns the sections of one file into jobs: globals first, then the job's own keys, then `--set`.
pub fn read_jobs(file: &JobFile, options: &ParseOptions, env: &Environ) -> Result<Jobs, FioError> {
    let set = options.set.iter().map(|s| Assignment::from_flag(s)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Jobs { jobs: Vec::new(), ignored: Vec::new() };
    let mut global: Vec<&Assignment> = Vec::new();
    for section in &file.sections {
        if section.is_global() {
            global.extend(&section.assignments);
            continue;
        }
        if !options.sections.is_empty() && !options.sections.contains(&section.name) {
            continue;
        }
        let mut job = JobSection::new(&section.name, &section.file, section.line);
        let own: Vec<&Assignment> = section.assignments.iter().collect();
        let mut ignored = Vec::new();
        job.apply_all(&global, &own, &set, env, options.ignore_unknown, &mut ignored)?;
        for line in ignored {
            if !out.ignored.contains(&line) {
                out.ignored.push(line);
            }
        }
        job.check()?;
        out.jobs.push(job);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
