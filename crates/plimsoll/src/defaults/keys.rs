//! Every key that may stand in the file of defaults, from the command line's own definitions: what the reader of the file takes, and no other.

use std::collections::BTreeMap;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

use super::{WITHOUT, allowed};
use crate::fault::Fault;

/// A key, and the flag of the same name that it is a default of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKey {
    pub key: String,
    /// What is written behind it.
    pub value: String,
    /// Commands that have the flag, by their first words.
    pub commands: Vec<String>,
    /// The first sentence of its help.
    pub help: String,
}

/// Keys of the table of a command and of those below it; without words those of `[defaults]`, which are all. `root` is built.
pub fn keys(root: &Command, words: &[String]) -> Result<Vec<ConfigKey>, Fault> {
    allowed(root, words, None)?;
    let mut command = root;
    for word in words {
        command = command.find_subcommand(word).expect("the reader of the file found it");
    }
    let mut found = BTreeMap::new();
    collect(command, words.first().map(String::as_str), &mut found);
    let is_taken = |k: &ConfigKey| allowed(root, words, Some((&k.key, k.value == SWITCH))).is_ok();
    Ok(found.into_values().filter(is_taken).collect())
}

const SWITCH: &str = "true or false";

/// `of`: the first word of the command; none at the root, whose flags are those of all.
fn collect(command: &Command, of: Option<&str>, out: &mut BTreeMap<String, ConfigKey>) {
    let has = |a: &&Arg| !a.is_hide_set() && !is_of_the_parser(a);
    for (arg, flag) in command.get_arguments().filter(has).filter_map(|a| Some((a, a.get_long()?))) {
        let key = out.entry(flag.to_owned()).or_insert_with(|| ConfigKey {
            key: flag.to_owned(),
            value: value_of(arg),
            commands: Vec::new(),
            help: first_sentence(arg.get_help()),
        });
        if let Some(name) = of.filter(|name| !key.commands.iter().any(|c| c == name)) {
            key.commands.push(name.to_owned());
        }
    }
    for below in
        command.get_subcommands().filter(|c| !WITHOUT.contains(&c.get_name()) && c.get_name() != "help")
    {
        collect(below, Some(of.unwrap_or(below.get_name())), out);
    }
}

/// `--help` and `--version` end a command instead of changing it.
pub fn is_of_the_parser(arg: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
}

fn value_of(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return SWITCH.into();
    }
    let shown: Vec<String> = arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
    let one = if shown.is_empty() || arg.is_hide_possible_values_set() || shown.len() > 6 {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    } else {
        shown.join(", ")
    };
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    if is_list { format!("{one}, or a list") } else { one }
}

fn first_sentence(help: Option<&StyledStr>) -> String {
    let text = help.map(ToString::to_string).unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = [". ", "; ", " ["];
    let end = ends.iter().filter_map(|e| line.find(e)).min().unwrap_or(line.len());
    line[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn root() -> Command {
        let mut root = Cli::command();
        root.build();
        root
    }

    fn of(words: &str) -> Vec<ConfigKey> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        keys(&root(), &words).unwrap()
    }

    fn has(keys: &[ConfigKey], key: &str) -> bool {
        keys.iter().any(|k| k.key == key)
    }

    #[test]
    fn what_may_stand_there_is_listed_and_what_is_refused_is_not() {
        let all = of("");
        assert!(all.len() > 100, "{}", all.len());
        for key in ["concurrency", "endpoint", "runs-dir", "quiet", "observe-token-file", "fleet"] {
            assert!(has(&all, key), "{key}");
        }
        for key in ["help", "version", "json", "dry-run", "destroy-data", "allow-hooks"] {
            assert!(!has(&all, key), "{key}");
        }
        let put = of("object put");
        assert!(has(&put, "concurrency") && !has(&put, "iodepth") && put.len() < all.len());
        let size = put.iter().find(|k| k.key == "size").unwrap();
        assert!(size.value.starts_with("SIZE") && size.commands == ["object"], "{size:?}");
        let quiet = all.iter().find(|k| k.key == "quiet").unwrap();
        assert!(quiet.value == SWITCH && quiet.commands.iter().any(|c| c == "block"), "{quiet:?}");
    }

    #[test]
    fn a_command_that_there_is_not_or_that_takes_none_is_refused() {
        for words in ["objekt", "target s3", "object putt"] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert!(keys(&root(), &words).is_err(), "{words:?}");
        }
    }

    /// Each key of the list is taken by the reader as a value of its flag, for the commands that it names.
    #[test]
    fn each_key_reaches_the_flag_of_its_name() {
        let root = root();
        for key in of("") {
            for command in &key.commands {
                let words = [command.clone()];
                let taken = allowed(&root, &words, Some((&key.key, key.value == SWITCH)));
                assert!(taken.is_ok(), "{command}.{}: {taken:?}", key.key);
            }
        }
    }
}
