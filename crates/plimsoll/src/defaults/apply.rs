//! Puts defaults into the command line's own definitions: what is typed, or in the environment, comes before them as before any default.

use clap::Command;
use clap::builder::OsStr;

use super::{FlagDefault, WITHOUT};

/// Of the defaults for a flag the one in the table that is nearest to the command.
pub fn best<'a>(all: &'a [FlagDefault], words: &[String], flag: &str) -> Option<&'a FlagDefault> {
    let fits = |d: &&FlagDefault| d.flag == flag && words.starts_with(&d.words);
    all.iter().filter(fits).max_by_key(|d| d.words.len())
}

/// The command line with these defaults.
pub fn applied(root: Command, all: &[FlagDefault]) -> Command {
    if all.is_empty() { root } else { below(root, &[], all) }
}

fn below(mut command: Command, words: &[String], all: &[FlagDefault]) -> Command {
    let flags: Vec<(String, String)> = command
        .get_arguments()
        .filter_map(|a| Some((a.get_id().to_string(), a.get_long()?.to_owned())))
        .collect();
    for (id, flag) in flags {
        let Some(default) = best(all, words, &flag) else { continue };
        // The parser keeps texts for as long as the program runs; there are few.
        let values: Vec<OsStr> = default.values.iter().map(|v| OsStr::from(&*v.clone().leak())).collect();
        command = command.mut_arg(id, |a| a.default_values(values).required(false));
    }
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        if words.is_empty() && WITHOUT.contains(&name.as_str()) {
            continue;
        }
        let inside: Vec<String> = words.iter().cloned().chain([name.clone()]).collect();
        command = command.mut_subcommand(name, |c| below(c, &inside, all));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::args::ArgsContext;
    use crate::cli::{self, Cli};

    fn default(words: &[&str], flag: &str, values: &[&str]) -> FlagDefault {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        FlagDefault { words: owned(words), flag: flag.into(), values: owned(values), is_switch: false }
    }

    fn concurrency(line: &str, all: &[FlagDefault]) -> u32 {
        let matches = applied(Cli::command(), all).try_get_matches_from(line.split(' ')).unwrap();
        let cli = Cli::from_arg_matches(&matches).unwrap();
        let cli::Command::Object(c) = &cli.command else { panic!("{cli:?}") };
        c.plan(&ArgsContext::with(None, 7)).unwrap().stages[0].workloads[0].concurrency
    }

    #[test]
    fn what_is_typed_comes_first_and_the_nearest_table_next() {
        let all = [
            default(&[], "concurrency", &["5"]),
            default(&["object"], "concurrency", &["6"]),
            default(&["object", "put"], "concurrency", &["7"]),
            default(&["object", "put"], "size", &["4KiB"]),
        ];
        let line = "plimsoll object put --endpoint http://h --bucket b";
        assert_eq!(concurrency(line, &all), 7);
        assert_eq!(concurrency(&format!("{line} --concurrency 9"), &all), 9);
        assert_eq!(concurrency(line, &all[1..2]), 6);
        assert_eq!(concurrency(line, &all[..1]), 5);
        applied(Cli::command(), &all).debug_assert();
    }
}
