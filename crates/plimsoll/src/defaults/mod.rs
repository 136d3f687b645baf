//! Defaults of flags from the user's own file. A flag that is typed comes first, then the environment, then this file, then what is built in.

mod apply;
mod file;
mod keys;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::error::{self, ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

pub use apply::{applied, best};
pub use file::{FlagDefault, allowed, read};
pub use keys::{ConfigKey, keys};

use crate::fault::Fault;

/// Names another file; an empty one, such as /dev/null, is no defaults at all.
const VARIABLE: &str = "PLIMSOLL_CONFIG";

/// Commands that plimsoll starts itself, too: what somebody likes for his own would change the servers of runs without a word.
pub const WITHOUT: [&str; 2] = ["target", "agent"];

/// The file that is read, whether it is there or not. `None`: there is no home to look in.
pub fn path() -> Option<PathBuf> {
    path_by(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
}

fn path_by(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |p: PathBuf| p.is_absolute().then_some(p);
    var(VARIABLE).or_else(|| {
        let home = || var("HOME").and_then(absolute).map(|h| h.join(".config"));
        let config = var("XDG_CONFIG_HOME").and_then(absolute).or_else(home)?;
        Some(config.join("plimsoll").join("config.toml"))
    })
}

/// A file that PLIMSOLL_CONFIG names has to be there: nobody names one that he can do without, and a name with a slip in it would measure with
/// other values and say nothing.
pub fn named_and_missing(file: &Path) -> Result<(), Fault> {
    let is_named = std::env::var_os(VARIABLE).is_some_and(|v| !v.is_empty());
    match std::fs::metadata(file) {
        Err(e) if is_named && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Fault::input(
                format!("{VARIABLE} names {}, and there is no such file", file.display()),
                format!(
                    "Correct {VARIABLE}, or unset it for the usual place (`plimsoll config path`); {VARIABLE}=/dev/null is no defaults."
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// What the file gave to the command that is carried out, as it would be typed.
static USED: OnceLock<Vec<String>> = OnceLock::new();

/// What the file says, for a command line with these words; nothing for a command that takes no defaults.
pub fn of_process(words: &[String], root: &Command) -> Result<Vec<FlagDefault>, Fault> {
    let takes_none =
        words.iter().skip(1).find(|w| !w.starts_with('-')).is_some_and(|w| WITHOUT.contains(&w.as_str()));
    match path().filter(|_| !takes_none) {
        Some(file) => {
            named_and_missing(&file)?;
            read(&file, root)
        }
        None => Ok(Vec::new()),
    }
}

/// Notes which flags of the command have their values from the file.
pub fn note_used(command: &Command, matches: &ArgMatches, all: &[FlagDefault]) {
    let _ = USED.set(used(command, matches, all));
}

fn used(mut command: &Command, mut matches: &ArgMatches, all: &[FlagDefault]) -> Vec<String> {
    let (mut words, mut typed) = (Vec::new(), Vec::new());
    loop {
        for arg in command.get_arguments() {
            let default = arg.get_long().and_then(|flag| best(all, &words, flag));
            if let Some(default) = default
                && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::DefaultValue)
            {
                typed.extend(default.as_typed());
            }
        }
        let Some((name, below)) = matches.subcommand() else { return typed };
        let Some(inside) = command.find_subcommand(name) else { return typed };
        words.push(name.to_owned());
        (command, matches) = (inside, below);
    }
}

/// A value of the file that its flag does not take, in place of the parser's words, which know of no file.
pub fn explained(e: &clap::Error, words: &[String], all: &[FlagDefault]) -> Option<Fault> {
    if !matches!(e.kind(), error::ErrorKind::InvalidValue | error::ErrorKind::ValueValidation) {
        return None;
    }
    let Some(ContextValue::String(arg)) = e.get(ContextKind::InvalidArg) else { return None };
    let flag = arg.split([' ', '=']).next()?.strip_prefix("--")?;
    let typed = |w: &String| w.strip_prefix("--").is_some_and(|w| w.split('=').next() == Some(flag));
    let default = all.iter().find(|d| d.flag == flag).filter(|_| !words.iter().any(typed))?;
    let file = path().map(|p| p.display().to_string()).unwrap_or_default();
    let why = e.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    Some(Fault::input(
        format!("{file}: {}: {why}", default.place()),
        "Correct the value in the file, or type the flag.",
    ))
}

/// What was typed, and what the file gave in place of typing: whoever repeats a run has another file.
pub fn typed() -> Vec<String> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let used = USED.get().cloned().unwrap_or_default();
    // Behind `--` nothing is a flag.
    let at = words.iter().position(|w| w == "--").unwrap_or(words.len());
    words.splice(at..at, used);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_where_xdg_says_unless_another_is_named() {
        let of = |set: &[(&str, &str)]| {
            path_by(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| PathBuf::from(v)))
        };
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.config/plimsoll/config.toml".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]), Some("/c/plimsoll/config.toml".into()));
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]),
            Some("/h/.config/plimsoll/config.toml".into())
        );
        assert_eq!(of(&[("PLIMSOLL_CONFIG", "/x.toml"), ("HOME", "/h")]), Some("/x.toml".into()));
        assert_eq!(of(&[]), None);
    }
}
