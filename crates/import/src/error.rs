//! What can be wrong with a file of another tool: where, what, and what to do.

/// Why a file cannot be imported. `Display` is place and problem; the remedy is a sentence of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if place.is_empty() { String::new() } else { format!("{place}: ") })]
pub struct ImportError {
    /// Line, row or byte; empty: it is of the file as a whole.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// A sentence: what to do about it.
    pub remedy: String,
}

impl ImportError {
    /// Of the file as a whole.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: String::new(), problem: problem.into(), remedy: remedy.into() }
    }

    /// At a place in it.
    pub fn at(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), ..Self::new(problem, remedy) }
    }

    /// A version of a tool, or of its format, that nobody has looked at: its units may be others.
    pub(crate) fn version(found: &str, known: &str) -> Self {
        let found: String = found.chars().take(60).collect();
        Self::new(
            format!("it is of {found}, and this plimsoll reads {known}"),
            "Its fields may mean something else there. Use a newer plimsoll, or repeat the test with a version that is read.",
        )
    }

    /// The reader failed: the disk, or a compressed stream that is damaged or ends too soon.
    pub(crate) fn reading(place: impl Into<String>, e: &std::io::Error) -> Self {
        let cut = e.kind() == std::io::ErrorKind::UnexpectedEof;
        let (problem, remedy) = if cut {
            ("the compressed data ends in the middle".to_owned(), CUT)
        } else {
            (format!("it cannot be read: {e}"), "Copy the file again from where it was written.")
        };
        Self::at(place, problem, remedy)
    }
}

/// What to do about a file that was cut off.
pub(crate) const CUT: &str =
    "The file is not complete: the tool was killed, or a copy broke off. Copy it again, or repeat the test.";
