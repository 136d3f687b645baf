//! What is wrong with a job file: where, what, and what to write instead.

/// An error with its place. Line 0 means the file as a whole, or a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}. {remedy}", place(file, *line))]
pub struct FioError {
    pub file: String,
    pub line: u32,
    pub problem: String,
    pub remedy: String,
}

fn place(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

impl FioError {
    pub fn at(file: &str, line: u32, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.into(), line, problem: problem.into(), remedy: remedy.into() }
    }
}
