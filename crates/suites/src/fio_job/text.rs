//! Job files as text: sections, assignments with their lines, includes, comments and `${VAR}`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use super::error::FioError;

/// One `key=value`, or a key alone (fio: a flag that is set).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub key: String,
    pub value: Option<String>,
    pub file: String,
    pub line: u32,
}

impl Assignment {
    fn from_line(text: &str, file: &str, line: u32) -> Self {
        let (key, value) = match text.split_once('=') {
            Some((k, v)) => (k.trim(), Some(v.trim().to_owned())),
            None => (text.trim(), None),
        };
        Self { key: key.to_owned(), value, file: file.to_owned(), line }
    }

    /// From the text of a `--set key=value` flag.
    pub fn from_flag(text: &str) -> Result<Self, FioError> {
        if text.split_once('=').is_none_or(|(k, _)| k.trim().is_empty()) {
            return Err(FioError::at(
                "--set",
                0,
                format!("'{text}' is not key=value"),
                "Write for example --set size=4G.",
            ));
        }
        Ok(Self::from_line(text, "--set", 0))
    }

    pub fn error(&self, problem: impl Into<String>, remedy: impl Into<String>) -> FioError {
        FioError::at(&self.file, self.line, problem, remedy)
    }
}

/// `[name]` and what stands below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub file: String,
    pub line: u32,
    pub assignments: Vec<Assignment>,
}

impl Section {
    /// fio takes every name that begins with `global` as global.
    pub fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// A job file, parsed but not yet understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    pub sections: Vec<Section>,
}

/// Includes nest at most this deep: deeper is a loop.
const MAX_INCLUDES: u32 = 16;

impl JobFile {
    pub fn read(path: &Path) -> Result<Self, FioError> {
        let name = path.display().to_string();
        let text = read_text(path, &name, 0)?;
        Self::parse(&text, &name)
    }

    /// Parses text; `name` is used in errors, and includes are looked up beside it.
    pub fn parse(text: &str, name: &str) -> Result<Self, FioError> {
        let mut file = Self { sections: Vec::new() };
        file.lines(text, name, 0)?;
        Ok(file)
    }

    fn lines(&mut self, text: &str, name: &str, depth: u32) -> Result<(), FioError> {
        for (i, raw) in text.lines().enumerate() {
            let number = i as u32 + 1;
            let line = strip_comment(raw);
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                if depth > 0 {
                    return Err(FioError::at(
                        name,
                        number,
                        "an included file has a section",
                        "Included files hold only key=value lines; move the section to the job file.",
                    ));
                }
                self.open_section(rest, name, number)?;
                continue;
            }
            if let Some(path) = include_path(line) {
                self.include(path, name, number, depth)?;
                continue;
            }
            let Some(section) = self.sections.last_mut() else {
                return Err(FioError::at(
                    name,
                    number,
                    format!("'{line}' is outside of a section"),
                    "Put it below [global] or below a job's [name].",
                ));
            };
            section.assignments.push(Assignment::from_line(line, name, number));
        }
        Ok(())
    }

    fn open_section(&mut self, rest: &str, file: &str, line: u32) -> Result<(), FioError> {
        let name = rest.strip_suffix(']').map(str::trim).filter(|n| !n.is_empty());
        let Some(name) = name else {
            return Err(FioError::at(
                file,
                line,
                format!("'[{rest}' is not a section"),
                "Write [name] on a line of its own.",
            ));
        };
        self.sections.push(Section { name: name.into(), file: file.into(), line, assignments: Vec::new() });
        Ok(())
    }

    fn include(&mut self, path: &str, name: &str, line: u32, depth: u32) -> Result<(), FioError> {
        if depth >= MAX_INCLUDES {
            return Err(FioError::at(
                name,
                line,
                format!("includes are nested more than {MAX_INCLUDES} deep"),
                "Remove the circular include.",
            ));
        }
        // As fio: relative to the working directory first, then to the including file.
        let mut target = Path::new(path).to_owned();
        if !target.exists() {
            target = Path::new(name).parent().map_or(target.clone(), |d| d.join(path));
        }
        let text = read_text(&target, name, line)?;
        self.lines(&text, &target.display().to_string(), depth + 1)
    }
}

/// Job files are small: what is larger is something else.
const MAX_BYTES: u64 = 16 << 20;

fn read_text(path: &Path, name: &str, line: u32) -> Result<String, FioError> {
    let cannot = |e: String| {
        let shown = path.display().to_string();
        let what =
            if shown == name { "it cannot be read".to_owned() } else { format!("{shown} cannot be read") };
        FioError::at(name, line, format!("{what}: {e}"), "Give the path of a fio job file")
    };
    // Only a job file itself can be standard input; an include must be a file, and cannot be endless.
    let bytes = if path == Path::new("-") && line == 0 {
        read_limited(std::io::stdin().lock())
    } else {
        match std::fs::metadata(path) {
            Ok(m) if line > 0 && !m.is_file() => return Err(cannot("it is not a regular file".into())),
            _ => std::fs::File::open(path).and_then(read_limited),
        }
    };
    let bytes = bytes.map_err(|e| cannot(e.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(cannot("it is larger than 16 MiB".into()));
    }
    String::from_utf8(bytes).map_err(|_| {
        FioError::at(name, line, format!("{} is not UTF-8 text", path.display()), "Give a fio job file.")
    })
}

fn read_limited(from: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// fio cuts a line at the first `;` or `#`, wherever it stands.
fn strip_comment(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

fn include_path(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    let path = rest.strip_prefix(|c: char| c.is_whitespace() || c == '=')?.trim();
    (!path.is_empty()).then_some(path)
}

/// Where `${VAR}` and fio's `$keywords` get their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environ {
    variables: BTreeMap<String, String>,
    keywords: BTreeMap<String, String>,
}

impl Environ {
    /// The variables of this process, and this machine's page size, memory and number of CPUs.
    pub fn process() -> Self {
        let mut env = Self::from_pairs(std::env::vars_os().filter_map(|(k, v)| {
            // Names and values that are no text cannot be written in a job file.
            Some((k.into_string().ok()?, v.into_string().ok()?))
        }));
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        env.keywords.insert("$ncpus".into(), cpus.to_string());
        env.keywords.insert("$pagesize".into(), rustix::param::page_size().to_string());
        let memory = rustix::system::sysinfo();
        let mib = u64::from(memory.mem_unit) * memory.totalram as u64 / (1 << 20);
        env.keywords.insert("$mb_memory".into(), mib.to_string());
        env
    }

    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: pairs.into_iter().collect(), keywords: BTreeMap::new() }
    }

    #[cfg(test)]
    pub fn with_keyword(mut self, word: &str, value: &str) -> Self {
        self.keywords.insert(word.into(), value.into());
        self
    }

    /// Replaces `${VAR}` and keywords. A variable that is not set is an error: fio puts nothing
    /// in its place, and `filename=${DIR}/x` then means another file than the user meant.
    pub fn expand(&self, a: &Assignment, value: &str) -> Result<String, FioError> {
        let mut out = String::new();
        let mut rest = value;
        while let Some(start) = rest.find("${") {
            let Some(len) = rest[start..].find('}') else { break };
            let name = &rest[start + 2..start + len];
            let found = self.variables.get(name).ok_or_else(|| {
                a.error(
                    format!("the environment has no variable '{name}'"),
                    format!("Set it, for example: {name}=... plimsoll fio ..."),
                )
            })?;
            out.push_str(&rest[..start]);
            out.push_str(found);
            rest = &rest[start + len + 1..];
        }
        out.push_str(rest);
        let mut replaced = false;
        for (word, value) in &self.keywords {
            if out.contains(word.as_str()) {
                out = out.replace(word.as_str(), value);
                replaced = true;
            }
        }
        // fio calculates where a keyword was replaced: size=8*$pagesize.
        let sum = replaced && out.contains(['*', '/', '+', '-']) && !out.starts_with('(');
        if sum && let Ok(v) = super::arith::evaluate(&format!("({out})"), 1024, false) {
            return Ok(format!("{}", v as u64));
        }
        Ok(out)
    }
}
