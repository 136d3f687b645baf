//! `plimsoll config`: the file of defaults, and where the value of each flag comes from.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, Subcommand};
use plimsoll_report::table::Table;
use plimsoll_setup::influx::InfluxUrl;

use crate::cli::Cli;
use crate::defaults::{self, ConfigKey, FlagDefault};
use crate::fault::{Exit, Fault};
use crate::{output, values};

/// In place of what is, or holds, a key.
const HIDDEN: &str = "(not shown)";

pub const CONFIG_EXAMPLES: &str = "\
Examples:
  plimsoll config path
  plimsoll config show
  plimsoll config show object put --concurrency 8
  plimsoll config keys
  plimsoll config keys object put

The file is $XDG_CONFIG_HOME/plimsoll/config.toml (~/.config/plimsoll/config.toml), or what PLIMSOLL_CONFIG names:

  [defaults]                  # every command that has the flag
  runs-dir = \"/data/runs\"
  [object]                    # all commands below `object`
  endpoint = \"http://10.0.0.1:9000\"
  label = [\"site=lab\"]
  [object.put]
  concurrency = 32

A flag that is typed comes first, then the environment, then the file. Unknown names are errors. Keys, passwords and tokens \
are refused, and so is what permits to destroy data. What the file gave to a run is in the command that repeats it.";

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Show each default, or where each flag of a command has its value from
    Show(ShowConfigArgs),
    /// List every key that may stand in the file, with the flag that it is a default of
    Keys(ConfigKeysArgs),
    /// Print where the file is
    Path,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  plimsoll config show\n  plimsoll config show object put --concurrency 8"
)]
pub struct ShowConfigArgs {
    /// Command with its flags [default: what the file says]
    #[arg(value_name = "COMMAND", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  plimsoll config keys\n  plimsoll config keys object put")]
pub struct ConfigKeysArgs {
    /// Command whose table is meant, for example `object put` [default: every command, which is the table `defaults`]
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub words: Vec<String>,
}

pub fn config(c: &ConfigCommand) -> Result<Exit, Fault> {
    if let ConfigCommand::Keys(k) = c {
        let mut root = Cli::command();
        root.build();
        output::print(&of_keys(&k.words, &defaults::keys(&root, &k.words)?))?;
        return Ok(Exit::Valid);
    }
    let path = defaults::path().ok_or_else(|| {
        Fault::input(
            "there is no place for a file of defaults: HOME is not set",
            "Name one with PLIMSOLL_CONFIG.",
        )
    })?;
    let ConfigCommand::Show(show) = c else {
        output::print(&format!("{}\n", path.display()))?;
        return Ok(Exit::Valid);
    };
    let mut root = Cli::command();
    root.build();
    let all = defaults::read(&path, &root)?;
    let there = if path.exists() { "" } else { " (not there)" };
    output::tell(format_args!("plimsoll: defaults of {}{there}", path.display()));
    output::print(&if show.words.is_empty() { of_file(&all) } else { of_command(&show.words, &all)? })?;
    Ok(Exit::Valid)
}

/// Commands that a row names; of more, how many.
const COMMANDS_SHOWN: usize = 5;

/// A table for a command says what each flag is, that for all which commands have it.
fn of_keys(words: &[String], keys: &[ConfigKey]) -> String {
    let place = if words.is_empty() { "[defaults]".to_owned() } else { format!("[{}]", words.join(".")) };
    let last = if words.is_empty() { "commands" } else { "what it is" };
    let mut table = Table::new(&format!("Keys of {place}"), 1, &["key", "flag", "value", last]);
    for k in keys {
        let commands = match k.commands.len().checked_sub(COMMANDS_SHOWN) {
            None | Some(0) => k.commands.join(", "),
            Some(more) => format!("{} and {more} more", k.commands[..COMMANDS_SHOWN].join(", ")),
        };
        let last = if words.is_empty() { commands } else { k.help.clone() };
        table.push(vec![k.key.clone(), format!("--{}", k.key), k.value.clone(), last]);
    }
    table.plain(usize::MAX)
}

fn of_file(all: &[FlagDefault]) -> String {
    let mut table = Table::new("Defaults", 1, &["flag", "of", "value"]);
    for d in all {
        let of = if d.words.is_empty() {
            "every command".into()
        } else {
            format!("plimsoll {}", d.words.join(" "))
        };
        table.push(vec![format!("--{}", d.flag), of, d.values.join(", ")]);
    }
    if all.is_empty() { String::new() } else { table.plain(usize::MAX) }
}

/// What is typed is taken as the command itself would; what it lacks besides is no matter here.
fn of_command(words: &[String], all: &[FlagDefault]) -> Result<String, Fault> {
    let command = defaults::applied(Cli::command(), all);
    let line: Vec<String> = ["plimsoll".to_owned()].into_iter().chain(words.iter().cloned()).collect();
    // Where errors are ignored, a value that is refused takes all others with it.
    if let Err(e) = command.clone().try_get_matches_from(&line)
        && !only_lacks(&e)
    {
        return Err(defaults::explained(&e, &line, all).unwrap_or_else(|| refused(&e)));
    }
    let command = command.ignore_errors(true);
    let matches = command.clone().try_get_matches_from(&line).map_err(|e| refused(&e))?;
    let mut built = command;
    built.build();
    let (mut at, mut matches, mut path) = (&built, &matches, Vec::new());
    while let Some((name, below)) = matches.subcommand() {
        at = at.find_subcommand(name).expect("the parser found it");
        matches = below;
        path.push(name.to_owned());
    }
    if path.is_empty() {
        return Err(Fault::input(
            format!("'{}' is no command", words[0]),
            "`plimsoll --help` lists the commands.",
        ));
    }
    let mut table =
        Table::new(&format!("Flags of plimsoll {}", path.join(" ")), 1, &["flag", "value", "from"]);
    for arg in at.get_arguments().filter(|a| !["help", "version"].contains(&a.get_id().as_str())) {
        let Some(flag) = arg.get_long() else { continue };
        let id = arg.get_id().as_str();
        let value = if arg.is_hide_env_values_set() { HIDDEN.into() } else { shown(matches, id) };
        table.push(vec![format!("--{flag}"), value, from(matches, arg, defaults::best(all, &path, flag))]);
    }
    Ok(table.plain(usize::MAX))
}

/// Nothing is wrong with what is there.
fn only_lacks(e: &clap::Error) -> bool {
    use clap::error::ErrorKind as K;
    matches!(
        e.kind(),
        K::MissingRequiredArgument
            | K::MissingSubcommand
            | K::DisplayHelp
            | K::DisplayVersion
            | K::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// What the parser says of the line, or of a variable of the environment: it names the flag.
fn refused(e: &clap::Error) -> Fault {
    let text = e.render().to_string();
    let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    Fault::input(
        format!("in the command: {what}"),
        "`plimsoll --help` lists the commands, and `plimsoll COMMAND --help` what each flag takes.",
    )
}

fn shown(matches: &ArgMatches, id: &str) -> String {
    let raw = matches.try_get_raw(id).ok().flatten();
    // What the command itself would refuse is not shown either, and neither is a key that another's variable holds.
    let one = |v: &std::ffi::OsStr| {
        let text = v.to_string_lossy().into_owned();
        let has_query = text.contains("://") && text.contains('?') && InfluxUrl::parse(&text).is_err();
        let is_ours = values::tells_our_secret(&text, |name| std::env::var(name).ok());
        if has_query || is_ours || values::holds_credential(&text) { HIDDEN.to_owned() } else { text }
    };
    raw.map_or(String::new(), |all| all.map(one).collect::<Vec<_>>().join(", "))
}

fn from(matches: &ArgMatches, arg: &clap::Arg, default: Option<&FlagDefault>) -> String {
    match matches.value_source(arg.get_id().as_str()) {
        Some(ValueSource::CommandLine) => "flag".into(),
        Some(ValueSource::EnvVariable) => {
            let name = arg.get_env().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            format!("environment ({name})")
        }
        Some(ValueSource::DefaultValue) => match default {
            Some(d) => format!("file ({})", d.place()),
            None => "built-in".into(),
        },
        _ => "not set".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_shown_with_where_it_is_from() {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let all = [FlagDefault {
            words: own(&["object"]),
            flag: "bucket".into(),
            values: own(&["lab"]),
            is_switch: false,
        }];
        let text = of_command(&own(&["object", "put", "--concurrency", "8"]), &all).unwrap();
        let row = |flag: &str| {
            let line = text.lines().find(|l| l.trim_start().starts_with(&format!("{flag} "))).expect(flag);
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("--concurrency"), "8 flag");
        assert_eq!(row("--bucket"), "lab file (object.bucket)");
        assert!(row("--ring").ends_with("auto built-in"), "{}", row("--ring"));
        assert!(row("--rate").ends_with("not set"), "{}", row("--rate"));
        assert!(of_command(&own(&["no-such"]), &all).is_err());
        for (words, place) in [
            (&["object", "put", "--concurrency", "x"][..], "'--concurrency <N>'"),
            (&["object", "put", "--concurency", "8"], "'--concurency'"),
            (&["object", "put", "--ring", "x"], "'--ring <"),
        ] {
            let fault = of_command(&own(words), &all).unwrap_err();
            assert!(fault.what.starts_with("in the command: ") && fault.what.contains(place), "{fault}");
        }
        let wrong = FlagDefault { flag: "concurrency".into(), values: own(&["x"]), ..all[0].clone() };
        let fault = of_command(&own(&["object", "put"]), &[wrong]).unwrap_err();
        assert!(fault.what.contains(": object.concurrency: "), "{fault}");
        let keys = [
            "object",
            "put",
            "--endpoint",
            "http://h/?sig=geheim",
            "--bucket",
            "me:geheim@h",
            "--header",
            "x-auth-token: geheim",
        ];
        let text = of_command(&own(&keys), &all).unwrap();
        assert!(!text.contains("geheim") && text.matches(HIDDEN).count() >= 3, "{text}");
    }
}
