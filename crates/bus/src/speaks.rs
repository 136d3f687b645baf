//! What a program speaks, told in a form that stays as it is from version to version: so one of another version is named, with its version,
//! instead of being one that says nothing.

use serde::{Deserialize, Serialize};

/// Longer words are nobody's.
const LONGEST: usize = 200;

/// A program and its language. Neither is believed: it is said to a person, and nothing else follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaks {
    /// What two programs have to have in common to work together.
    #[serde(default)]
    pub language: String,
    /// The program's version.
    #[serde(default)]
    pub program: String,
}

impl Speaks {
    /// Whether they cannot work together. Who does not say what it speaks may be older than this question.
    pub fn is_foreign_to(&self, ours: &Self) -> bool {
        !self.language.is_empty() && !ours.language.is_empty() && self.language != ours.language
    }

    /// `plimsoll 0.2.0, which speaks 'fleet 3, plan 1'`.
    pub fn words(&self) -> String {
        format!("plimsoll {}, which speaks '{}'", shown(&self.program), shown(&self.language))
    }
}

/// One line of a known length, whatever was said.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "of an unknown version".to_owned();
    }
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(language: &str, program: &str) -> Speaks {
        Speaks { language: language.into(), program: program.into() }
    }

    #[test]
    fn who_does_not_say_what_it_speaks_is_no_stranger() {
        let ours = speaks("fleet 2", "0.1.0");
        for (other, is_foreign) in [("fleet 2", false), ("fleet 1", true), ("fleet 3", true), ("", false)] {
            assert_eq!(speaks(other, "9").is_foreign_to(&ours), is_foreign, "{other}");
            assert_eq!(ours.is_foreign_to(&speaks(other, "9")), is_foreign, "{other}");
        }
    }

    #[test]
    fn words_are_one_short_line() {
        let words = speaks(&"x\n\u{1b}[2J".repeat(10_000), "").words();
        assert!(words.len() < 400 && !words.contains(['\n', '\u{1b}']), "{words}");
        assert!(words.starts_with("plimsoll of an unknown version, which speaks 'x"), "{words}");
    }
}
