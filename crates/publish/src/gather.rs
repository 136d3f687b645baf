//! What the runs of a campaign bring to its publication beside their figures: limits, costs, machines, hashes, cliffs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use plimsoll_campaign::Campaigned;
use plimsoll_model::cost::CostSummary;
use plimsoll_model::credentials::without_credentials;
use plimsoll_model::environment::HostFacts;
use plimsoll_model::summary::LimitSummary;
use plimsoll_model::{Estimate, RunSummary};
use plimsoll_store::RunDir;

use crate::redact::Redactor;

/// A file of a run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedFile {
    /// From the run's directory.
    pub path: String,
    /// Hexadecimal.
    pub sha256: String,
}

/// A rate over time, of a run in which it fell.
#[derive(Debug, Clone, PartialEq)]
pub struct FallenSeries {
    /// As the run calls its line.
    pub label: String,
    /// Seconds from the run's start to its first point.
    pub start_s: f64,
    /// Seconds between points.
    pub step_s: f64,
    /// Ops a second; `None`: not measured.
    pub ops_per_s: Vec<Option<f64>>,
}

/// One run, as far as a publication needs it.
#[derive(Debug, Clone)]
pub struct PublishedRun {
    /// As the campaign names it.
    pub run: String,
    /// Its directory, where it is still there.
    pub dir: Option<PathBuf>,
    /// What its directory is called among those that go along.
    pub copied_as: String,
    /// Why it could not be read.
    pub gap: Option<String>,
    /// Of its directory: the hash of the list of the hashes of its files.
    pub sha256: String,
    /// What that list has.
    pub files: Vec<HashedFile>,
    /// RFC 3339.
    pub started_at: String,
    /// Of the program that measured, with what it was built from.
    pub version: String,
    /// The command that repeats it alone.
    pub rerun: String,
    /// Limiters that were looked for.
    pub limits: Vec<LimitSummary>,
    /// Where it was given prices.
    pub cost: Option<CostSummary>,
    /// Who measured, by agent.
    pub machines: Vec<(String, HostFacts)>,
    /// What answered, as it calls itself.
    pub servers: Vec<String>,
    /// What makes it void, in words.
    pub void: Vec<(String, String)>,
    /// Where its rate fell.
    pub series: Vec<FallenSeries>,
}

/// Runs whose course is shown; more charts than these nobody looks at.
const MOST_SERIES: usize = 12;
/// Points of one.
const MOST_POINTS: usize = 400;
/// The rate was not one rate.
const NOT_STEADY: &str = "V04";

/// Reads all runs of the campaign, void ones too; `dir_of` knows where each is. Nothing is changed; a run that is gone is named, and its
/// figures stay as the ledger has them.
pub fn gather(
    c: &Campaigned,
    dir_of: &dyn Fn(&str) -> PathBuf,
    redactor: &mut Redactor,
) -> Vec<PublishedRun> {
    let mut runs: BTreeMap<&str, PublishedRun> = BTreeMap::new();
    let mut shown = 0;
    for name in c.state.cells.iter().flat_map(|s| &s.runs).map(|r| r.run.as_str()) {
        if !runs.contains_key(name) {
            runs.insert(name, read(&dir_of(name), name, redactor, &mut shown));
        }
    }
    let mut all: Vec<PublishedRun> = runs.into_values().collect();
    all.sort_by(|a, b| (&a.started_at, &a.run).cmp(&(&b.started_at, &b.run)));
    name_copies(&mut all);
    all
}

/// Runs from elsewhere may have directories of one name: each has its own among the copies.
fn name_copies(runs: &mut [PublishedRun]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        let Some(name) = run.dir.as_ref().and_then(|d| d.file_name()) else { continue };
        let name = name.to_string_lossy().into_owned();
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|n| !taken.contains(n));
        run.copied_as = free.unwrap_or(name);
        taken.insert(run.copied_as.clone());
    }
}

/// As the campaign finds it: by its path from the file, else by its name among the runs.
pub fn dir_of(c: &Campaigned, beside: &Path, name: &str) -> PathBuf {
    let own = c.run_dir(name);
    if own.is_dir() { own } else { beside.join(name) }
}

fn read(path: &Path, name: &str, redactor: &mut Redactor, shown: &mut usize) -> PublishedRun {
    let mut out = PublishedRun::unread(name);
    let opened = RunDir::open(path).and_then(|dir| Ok((dir.summary()?, dir)));
    let (summary, dir) = match opened {
        Ok(both) => both,
        Err(e) => {
            out.gap = Some(e.to_string());
            return out;
        }
    };
    redactor.know_run(&summary);
    if let Ok(plan) = dir.plan() {
        redactor.know_plan(&plan);
    }
    out.take(summary);
    match hashes(path) {
        Ok(files) => {
            out.sha256 = manifest_hash(&files);
            out.files = files;
        }
        Err(e) => out.gap = Some(format!("its files cannot be hashed: {e}")),
    }
    if out.fell() && *shown < MOST_SERIES {
        *shown += 1;
        out.series = series(&dir);
    }
    out.dir = Some(path.to_owned());
    out
}

impl PublishedRun {
    pub(crate) fn unread(name: &str) -> Self {
        Self {
            run: name.to_owned(),
            dir: None,
            copied_as: String::new(),
            gap: None,
            sha256: String::new(),
            files: Vec::new(),
            started_at: String::new(),
            version: String::new(),
            rerun: String::new(),
            limits: Vec::new(),
            cost: None,
            machines: Vec::new(),
            servers: Vec::new(),
            void: Vec::new(),
            series: Vec::new(),
        }
    }

    fn take(&mut self, s: RunSummary) {
        let env = &s.environment;
        self.started_at = env.started_at.clone();
        self.version =
            [&env.plimsoll_version, &env.commit].map(|t| t.trim().to_owned()).join(" ").trim().to_owned();
        self.machines = env.agent_hosts().into_iter().map(|a| (a.agent, a.machine)).collect();
        let mut servers: Vec<String> = env.servers.values().filter(|s| !s.is_empty()).cloned().collect();
        servers.dedup();
        self.servers = servers;
        let void = s.findings.iter().filter(|f| f.level == plimsoll_model::Level::Invalid);
        self.void = void.map(|f| (f.code.clone(), f.text.clone())).collect();
        self.rerun = s.rerun;
        self.limits = s.limits;
        self.cost = s.cost;
    }

    /// Its rate was seen to fall: a burst that ended, or no one rate at all.
    fn fell(&self) -> bool {
        let ended = |l: &LimitSummary| {
            [&l.ops_per_s, &l.bytes_per_s].into_iter().flatten().any(|b| b.proved && b.burst.is_some())
        };
        self.limits.iter().any(ended) || self.void.iter().any(|(code, _)| code == NOT_STEADY)
    }

    /// Every text of it that may name something of somebody.
    pub fn redact(&mut self, r: &mut Redactor) {
        r.apply(&mut self.run);
        r.apply(&mut self.rerun);
        self.gap.iter_mut().for_each(|t| r.apply(t));
        if r.is_on() && !self.files.is_empty() {
            // Files are named after machines, too; the list is hashed as it is published.
            self.files.iter_mut().for_each(|f| r.apply(&mut f.path));
            self.sha256 = manifest_hash(&self.files);
        }
        self.servers.iter_mut().for_each(|t| r.apply(t));
        self.void.iter_mut().for_each(|(_, t)| r.apply(t));
        self.series.iter_mut().for_each(|s| r.apply(&mut s.label));
        for (agent, machine) in &mut self.machines {
            r.apply(agent);
            r.apply(&mut machine.host);
        }
        for l in &mut self.limits {
            r.apply(&mut l.target);
        }
        if let Some(c) = &mut self.cost {
            r.apply(&mut c.subject);
            r.apply(&mut c.source);
            c.figures.iter_mut().for_each(|f| r.apply(&mut f.formula));
        }
    }
}

fn series(dir: &RunDir) -> Vec<FallenSeries> {
    // Several runs share the page: each has fewer points than one alone.
    let Ok(report) = plimsoll_report::read(dir, MOST_SERIES) else { return Vec::new() };
    let mut page = plimsoll_report::page::page(&[report], plimsoll_report::Layout::default());
    let Some(run) = page.runs.pop() else { return Vec::new() };
    let of = |s: plimsoll_report::page::PageSeries| {
        let mut ops = s.ops_per_s;
        let step = ops.len().div_ceil(MOST_POINTS).max(1);
        if step > 1 {
            ops = ops.chunks(step).map(mean).collect();
        }
        FallenSeries { label: s.label, start_s: s.start_s, step_s: s.step_s * step as f64, ops_per_s: ops }
    };
    run.series.into_iter().take(4).map(of).collect()
}

fn mean(points: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = points.iter().flatten().copied().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The first text in a run directory that looks like a credential, with its line. Records are of numbers, and of names that its plan has, too.
pub fn credential_in(dir: &Path) -> Option<(PathBuf, usize)> {
    let texts = files_of(dir).ok()?.into_iter().filter(|(_, name)| !name.ends_with(".zst"));
    texts.map(|(path, _)| path).find_map(|path| {
        let text = unescaped(&String::from_utf8_lossy(&fs::read(&path).ok()?));
        let clean = without_credentials(&text);
        if clean == text {
            return None;
        }
        let at = clean.bytes().zip(text.bytes()).take_while(|(new, old)| new == old).count();
        Some((path, 1 + text.bytes().take(at).filter(|b| *b == b'\n').count()))
    })
}

/// Letters that JSON and TOML may write as escapes (`\u0070`, `\U00000070`, `\/`), as themselves: a name is no other one for that. What holds
/// a document together stays as it is, and so do its lines.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let digits = |n: usize| escape.get(2..2 + n).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let (code, length) = match escape.as_bytes().get(1) {
            Some(b'u') => (digits(4), 6),
            Some(b'U') => (digits(8), 10),
            Some(b'/') => (Some(u32::from(b'/')), 2),
            _ => (None, 2),
        };
        let letter = code.and_then(char::from_u32).filter(|c| !c.is_control() && !matches!(c, '"' | '\\'));
        let length = if letter.is_some() { length } else { 2.min(escape.len()) };
        // Behind a backslash stands a letter that may have several bytes.
        let length = (length..=escape.len()).find(|n| escape.is_char_boundary(*n)).unwrap_or(escape.len());
        match letter {
            Some(letter) => out.push(letter),
            None => out.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    out + rest
}

/// Deeper than a run directory ever is.
const MOST_DEPTH: usize = 4;

/// Every file of a run, with its path from there, in order; links are not followed.
fn files_of(dir: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut out = Vec::new();
    let mut open = vec![(dir.to_owned(), String::new(), 0)];
    while let Some((path, at, depth)) = open.pop() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let name = format!("{at}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < MOST_DEPTH {
                open.push((entry.path(), name + "/", depth + 1));
            } else if kind.is_file() {
                out.push((entry.path(), name));
            }
        }
    }
    out.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(out)
}

fn hashes(dir: &Path) -> io::Result<Vec<HashedFile>> {
    let hashed = |(at, path): (PathBuf, String)| Ok(HashedFile { sha256: sha256_of(&at)?, path });
    files_of(dir)?.into_iter().map(hashed).collect()
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(hash.finish().as_ref())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Of bytes in memory.
pub fn sha256(bytes: &[u8]) -> String {
    hex(aws_lc_rs::digest::digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// As `sha256sum` would print the list, hashed in turn.
fn manifest_hash(files: &[HashedFile]) -> String {
    let lines: String = files.iter().map(|f| format!("{}  {}\n", f.sha256, f.path)).collect();
    sha256(lines.as_bytes())
}

/// The rate of a limiter that was proved, and nothing else.
pub fn proved(bucket: Option<&plimsoll_model::summary::BucketSummary>) -> Option<Estimate> {
    bucket.filter(|b| b.proved)?.sustained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_directories_of_one_name_have_their_own() {
        let of = |dir: &str| PublishedRun { dir: Some(PathBuf::from(dir)), ..PublishedRun::unread(dir) };
        let mut runs = [of("from-a/run"), of("from-b/run"), of("from-b/run-2"), PublishedRun::unread("gone")];
        name_copies(&mut runs);
        assert_eq!(runs.map(|r| r.copied_as), ["run", "run-2", "run-2-2", ""]);
    }

    #[test]
    fn a_secret_in_escapes_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env.json");
        for (line, secret) in [
            (r#"  "pass\u0077ord": "geheim123","#, true),
            (r#"  "label": {"\u0074oken": "geheim123"}"#, true),
            (r#"  "endpoint": "http:\/\/me:geheim123@h""#, true),
            (r#"  "cmd": "mc alias set a http:\/\/h KEYKEY Sup3rSecret""#, true),
            (r#"  "note": "caf\u00e9 \u0022x\u0022 \\ \n \u00","#, false),
            ("  \"a\": \"\\\u{e9}\", \"b\": \"\\", false),
        ] {
            fs::write(&file, format!("{{\n{line}\n}}\n")).unwrap();
            let found = credential_in(dir.path()).map(|(_, line)| line);
            assert_eq!(found, secret.then_some(2), "{line}");
        }
        assert_eq!(unescaped(r#"a\u0070\/\n\u0022\ud83d\"#), r#"ap/\n\u0022\ud83d\"#);
    }

    #[test]
    fn a_run_is_known_by_all_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("intervals")).unwrap();
        fs::write(dir.path().join("plan.toml"), "abc").unwrap();
        fs::write(dir.path().join("intervals/local"), "").unwrap();
        let files = hashes(dir.path()).unwrap();
        let names: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(names, ["intervals/local", "plan.toml"]);
        // Of the standard's own example.
        assert_eq!(files[1].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let before = manifest_hash(&files);
        fs::write(dir.path().join("plan.toml"), "abd").unwrap();
        assert_ne!(manifest_hash(&hashes(dir.path()).unwrap()), before);
    }
}
