//! One job: every supported key with its type, filled from global, own and overriding assignments.

use std::collections::BTreeMap;

use plimsoll_model::plan::{KeyDist, RingChoice};

use super::block_size::BlockSizes;
use super::error::FioError;
use super::keys;
use super::text::{Assignment, Environ};
use super::value::{BytesOrPercent, Reader};

/// What `rw=` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Read,
    Write,
    ReadWrite,
}

/// I/O engines that are supported, and the ring that does their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Libaio,
    IoUring,
    Psync,
}

impl Engine {
    pub fn ring(self) -> RingChoice {
        match self {
            Self::Libaio => RingChoice::Libaio,
            Self::IoUring => RingChoice::IoUring,
            Self::Psync => RingChoice::Psync,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateProcess {
    Linear,
    Poisson,
}

/// A job with fio's defaults for what was not written.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSection {
    pub name: String,
    pub file: String,
    pub line: u32,
    pub pattern: Pattern,
    pub random: bool,
    pub mix_read: u32,
    pub block: BlockSizes,
    pub size: Option<BytesOrPercent>,
    pub io_size: Option<BytesOrPercent>,
    pub file_size: Option<(u64, u64)>,
    /// One or several; none: fio's own names in the directory.
    pub filename: Vec<String>,
    pub directory: Option<String>,
    pub nrfiles: u32,
    pub offset: BytesOrPercent,
    pub iodepth: u32,
    pub numjobs: u32,
    pub direct: bool,
    pub invalidate: bool,
    /// fio's default on Linux is psync.
    pub engine: Engine,
    pub runtime_us: Option<u64>,
    pub time_based: bool,
    pub ramp_us: u64,
    pub loops: u32,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    pub norandommap: bool,
    pub distribution: KeyDist,
    pub randseed: Option<u64>,
    /// Bytes per second of reads and of writes, per clone.
    pub rate_bytes: [Option<u64>; 2],
    pub rate_iops: [Option<u64>; 2],
    pub rate_process: RateProcess,
    pub fsync: u32,
    pub fdatasync: u32,
    pub end_fsync: bool,
    pub verify: bool,
    pub do_verify: bool,
    pub unlink: bool,
    pub overwrite: bool,
    pub compress_percent: u32,
    pub dedupe_percent: u32,
    pub percentiles: Vec<f64>,
    /// Microseconds, from and to.
    pub start_delay_us: (u64, u64),
    pub kb_base: u64,
    /// As written, by canonical name, for reports in fio's format.
    pub options: BTreeMap<String, String>,
    pub global_options: BTreeMap<String, String>,
    pub notes: Vec<String>,
}

impl JobSection {
    pub fn new(name: &str, file: &str, line: u32) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            line,
            pattern: Pattern::Read,
            random: false,
            mix_read: 50,
            block: BlockSizes::default(),
            size: None,
            io_size: None,
            file_size: None,
            filename: Vec::new(),
            directory: None,
            nrfiles: 1,
            offset: BytesOrPercent::Bytes(0),
            iodepth: 1,
            numjobs: 1,
            direct: false,
            invalidate: true,
            engine: Engine::Psync,
            runtime_us: None,
            time_based: false,
            ramp_us: 0,
            loops: 1,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            norandommap: false,
            distribution: KeyDist::Uniform,
            randseed: None,
            rate_bytes: [None; 2],
            rate_iops: [None; 2],
            rate_process: RateProcess::Linear,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            verify: false,
            do_verify: true,
            unlink: false,
            overwrite: false,
            compress_percent: 0,
            dedupe_percent: 0,
            percentiles: Vec::new(),
            start_delay_us: (0, 0),
            kb_base: 1024,
            options: BTreeMap::new(),
            global_options: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    pub fn reads(&self) -> bool {
        matches!(self.pattern, Pattern::Read | Pattern::ReadWrite)
    }

    pub fn writes(&self) -> bool {
        matches!(self.pattern, Pattern::Write | Pattern::ReadWrite)
    }

    pub fn error(&self, problem: impl Into<String>, remedy: impl Into<String>) -> FioError {
        let problem: String = problem.into();
        FioError::at(&self.file, self.line, format!("job '{}': {problem}", self.name), remedy)
    }

    /// Applies globals, own keys and overrides in that order.
    pub fn apply_all(
        &mut self,
        global: &[&Assignment],
        own: &[&Assignment],
        set: &[Assignment],
        env: &Environ,
        ignore_unknown: bool,
        ignored: &mut Vec<String>,
    ) -> Result<(), FioError> {
        // kb_base turns the meaning of suffixes, so it comes first, as fio's priority order has it.
        let everything = || global.iter().copied().chain(own.iter().copied()).chain(set);
        for a in everything().filter(|a| a.key == "kb_base") {
            self.kb_base = match env.expand(a, a.value.as_deref().unwrap_or(""))?.trim() {
                "1000" => 1000,
                "1024" => 1024,
                other => {
                    return Err(a.error(format!("kb_base={other} is unknown"), "Write 1000 or 1024."));
                }
            };
        }
        for (i, a) in everything().enumerate() {
            let text = env.expand(a, a.value.as_deref().unwrap_or(""))?;
            let key = keys::canonical(&a.key);
            let known = match self.apply(key, a, &text) {
                Ok(known) => known,
                // A value that is not supported is as unknown as a key.
                Err(e) if ignore_unknown && e.problem.ends_with("is not supported") => false,
                Err(e) => return Err(e),
            };
            if known {
                let map = if i < global.len() { &mut self.global_options } else { &mut self.options };
                map.insert(key.to_owned(), text);
            } else if ignore_unknown {
                ignored.push(ignored_line(a));
            } else {
                return Err(unknown(a));
            }
        }
        Ok(())
    }

    /// Applies one key; `false` when there is no such key here.
    fn apply(&mut self, key: &str, a: &Assignment, text: &str) -> Result<bool, FioError> {
        let r = Reader { at: a, text, kb_base: self.kb_base };
        let known = self.apply_shape(key, &r)? || self.apply_file(key, &r)? || self.apply_course(key, &r)?;
        Ok(known || keys::is_neutral(key))
    }

    /// Keys that say what each I/O is like.
    fn apply_shape(&mut self, key: &str, r: &Reader<'_>) -> Result<bool, FioError> {
        match key {
            "rw" => (self.pattern, self.random) = pattern(r)?,
            "rwmixread" => self.mix_read = r.int(0, 100)? as u32,
            "rwmixwrite" => self.mix_read = 100 - r.int(0, 100)? as u32,
            "bs" => self.block.set_fixed(r)?,
            "bsrange" => self.block.set_range(r)?,
            "bssplit" => self.block.set_split(r)?,
            "iodepth" => self.iodepth = r.u32(1)?,
            "direct" => self.direct = r.flag()?,
            "buffered" => self.direct = !r.flag()?,
            "norandommap" => self.norandommap = r.flag()?,
            "random_generator" => {
                // The promise is that each block is hit once, not the order of a generator.
                r.word(&[("tausworthe", ()), ("lfsr", ()), ("tausworthe64", ())])?;
            }
            "random_distribution" => self.distribution = distribution(r)?,
            "randseed" => self.randseed = Some(r.int(0, u64::MAX)?),
            "refill_buffers" => {
                r.flag()?;
            }
            "buffer_compress_percentage" => self.compress_percent = r.int(0, 100)? as u32,
            "dedupe_percentage" => self.dedupe_percent = r.int(0, 100)? as u32,
            "verify" => self.verify = verify(r)?,
            "do_verify" => self.do_verify = r.flag()?,
            "verify_fatal" => {
                if r.flag()? {
                    self.notes.push(
                        "verify_fatal: a mismatch makes the run fail at its end, not immediately.".into(),
                    );
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Keys that say on what.
    fn apply_file(&mut self, key: &str, r: &Reader<'_>) -> Result<bool, FioError> {
        match key {
            "size" => self.size = Some(r.amount()?),
            "io_size" => self.io_size = Some(r.amount()?),
            "filesize" => {
                let (a, b) = r.text.split_once('-').unwrap_or((r.text, r.text));
                let (a, b) = (r.size(a)?, r.size(b)?);
                self.file_size = Some((a.min(b), a.max(b)));
            }
            "filename" => self.filename = filenames(r)?,
            "directory" => {
                if r.text.contains(':') {
                    return r.fail("lists several directories", "Write one job per directory.");
                }
                self.directory = Some(r.text.to_owned());
            }
            "nrfiles" => self.nrfiles = r.u32(1)?,
            "offset" => self.offset = r.amount()?,
            "invalidate" => self.invalidate = r.flag()?,
            "ioengine" => self.engine = engine(r)?,
            "unlink" => self.unlink = r.flag()?,
            "overwrite" => self.overwrite = r.flag()?,
            "name" => self.name = r.text.to_owned(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Keys that say when, how fast and how long.
    fn apply_course(&mut self, key: &str, r: &Reader<'_>) -> Result<bool, FioError> {
        const SECOND_US: u64 = 1_000_000;
        match key {
            "numjobs" => self.numjobs = r.int(1, 4096)? as u32,
            "runtime" => {
                let us = r.time_us(r.text, SECOND_US)?;
                self.runtime_us = (us > 0).then_some(us);
            }
            "time_based" => self.time_based = r.flag()?,
            "ramp_time" => self.ramp_us = r.time_us(r.text, SECOND_US)?,
            "loops" => self.loops = r.u32(1)?,
            "stonewall" => self.stonewall = r.flag()?,
            "new_group" => self.new_group = r.flag()?,
            "group_reporting" => self.group_reporting = r.flag()?,
            "rate" => self.rate_bytes = r.directions(|r, t| r.size(t))?.map(above_zero),
            "rate_iops" => self.rate_iops = r.directions(|r, t| r.size(t))?.map(above_zero),
            "rate_process" => {
                self.rate_process =
                    r.word(&[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)])?;
            }
            "fsync" => self.fsync = r.u32(0)?,
            "fdatasync" => self.fdatasync = r.u32(0)?,
            "end_fsync" => self.end_fsync = r.flag()?,
            "percentile_list" => self.percentiles = r.float_list(0.0, 100.0)?,
            "startdelay" => {
                let (a, b) = r.text.split_once('-').unwrap_or((r.text, r.text));
                let (a, b) = (r.time_us(a, SECOND_US)?, r.time_us(b, SECOND_US)?);
                self.start_delay_us = (a.min(b), a.max(b));
            }
            "kb_base" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What no single key can say.
    pub fn check(&mut self) -> Result<(), FioError> {
        if self.time_based && self.runtime_us.is_none() {
            return Err(self.error("time_based has no runtime", "Add runtime=60."));
        }
        if self.rate_bytes.iter().any(Option::is_some) && self.rate_iops.iter().any(Option::is_some) {
            return Err(self.error("rate and rate_iops are mutually exclusive", "Keep one of them."));
        }
        if self.engine == Engine::Psync && self.iodepth > 1 {
            self.notes.push(format!(
                "iodepth={} with a synchronous ioengine: one I/O is in flight at a time, as with fio.",
                self.iodepth
            ));
            self.iodepth = 1;
        }
        let named = self.filename.len() as u32;
        if named > 0 && self.nrfiles > 1 && self.nrfiles != named {
            return Err(self.error(
                format!("filename names {named} files, but nrfiles asks for {}", self.nrfiles),
                "Remove nrfiles, or use directory in place of filename.",
            ));
        }
        Ok(())
    }
}

fn above_zero(v: Option<u64>) -> Option<u64> {
    v.filter(|n| *n > 0)
}

fn ignored_line(a: &Assignment) -> String {
    let value = a.value.as_deref().map_or(String::new(), |v| format!("={v}"));
    if a.line == 0 {
        format!("{} {}{value}", a.file, a.key)
    } else {
        format!("{}:{} {}{value}", a.file, a.line, a.key)
    }
}

fn unknown(a: &Assignment) -> FioError {
    let hint = match keys::nearest(&a.key) {
        Some(near) => format!("Did you mean {near}? Otherwise r"),
        None => "R".to_owned(),
    };
    a.error(
        format!("key '{}' is not supported", a.key),
        format!("{hint}emove it, or run with --ignore-unknown, which lists what was ignored"),
    )
}

fn pattern(r: &Reader<'_>) -> Result<(Pattern, bool), FioError> {
    use Pattern::{Read, ReadWrite, Write};
    if let Some((pattern, more)) = r.text.split_once(':') {
        let (what, remedy) = if pattern.trim().starts_with("rand") {
            ("a number of I/Os before a new random place", "Leave out the number")
        } else {
            ("a gap between sequential blocks", "Leave out the gap")
        };
        return r.fail(
            format!("{what} (':{more}') is not supported"),
            format!("{remedy}: rw={}.", pattern.trim()),
        );
    }
    if r.text.contains("trim") {
        return r.fail(
            "a pattern that trims is not supported",
            "Use read, write, rw or their random forms; blkdiscard trims a device before a run.",
        );
    }
    r.word(&[
        ("read", (Read, false)),
        ("write", (Write, false)),
        ("randread", (Read, true)),
        ("randwrite", (Write, true)),
        ("rw", (ReadWrite, false)),
        ("readwrite", (ReadWrite, false)),
        ("randrw", (ReadWrite, true)),
    ])
}

fn engine(r: &Reader<'_>) -> Result<Engine, FioError> {
    r.word(&[
        ("libaio", Engine::Libaio),
        ("io_uring", Engine::IoUring),
        ("psync", Engine::Psync),
        ("sync", Engine::Psync),
        ("pvsync", Engine::Psync),
        ("pvsync2", Engine::Psync),
        ("vsync", Engine::Psync),
    ])
}

fn verify(r: &Reader<'_>) -> Result<bool, FioError> {
    // Every kind checks our stamp (offset, seed, checksum): the promise is the check, not the header.
    r.word(&[
        ("0", false),
        ("none", false),
        ("stamp", true),
        ("md5", true),
        ("crc32c", true),
        ("crc32c-intel", true),
        ("meta", true),
    ])
}

/// `random`, `zipf:1.2`, `pareto:0.9`. fio's zipf default is 1.1, its pareto 0.2.
fn distribution(r: &Reader<'_>) -> Result<KeyDist, FioError> {
    let (name, parameter) = r.text.split_once(':').unwrap_or((r.text, ""));
    let theta = |default: f64, max: f64| match parameter.trim() {
        "" => Ok(default),
        p => match p.parse::<f64>() {
            Ok(v) if v > 0.0 && v < max => Ok(v),
            _ => r.fail(
                format!("'{p}' is not a parameter of this distribution"),
                "Write for example zipf:1.2.",
            ),
        },
    };
    match name.trim() {
        "random" => Ok(KeyDist::Uniform),
        "zipf" => match theta(1.1, 100.0)? {
            1.0 => r.fail("zipf with exponent 1 is not supported (nor by fio)", "Write 0.99 or 1.01."),
            t => Ok(KeyDist::Zipf(t)),
        },
        "pareto" => Ok(KeyDist::Pareto(theta(0.2, 1.0)?)),
        _ => {
            r.fail("this distribution is not supported", "Supported here: random, zipf:THETA, pareto:THETA.")
        }
    }
}

/// File names; fio separates several by colons, and `\:` is a colon in a name.
fn filenames(r: &Reader<'_>) -> Result<Vec<String>, FioError> {
    let plain = r.text.replace("\\:", "\u{0}");
    let names: Vec<String> = plain.split(':').map(|n| n.trim().replace('\u{0}', ":")).collect();
    if names.iter().any(String::is_empty) {
        return r.fail("has an empty name", "Name a file or a block device, several with colons in between.");
    }
    if let Some(twice) = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)) {
        return r.fail(format!("names {} twice", twice.1), "Name each file once.");
    }
    Ok(names)
}
