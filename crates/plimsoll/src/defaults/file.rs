//! Reads the file of defaults. Unknown names are errors, and so is whatever is no matter of taste: keys, and the permission to destroy.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use clap::Command;
use plimsoll_setup::influx::InfluxUrl;
use toml::{Table, Value};

use super::WITHOUT;
use super::keys::is_of_the_parser;
use crate::fault::Fault;
use crate::values;

/// The table for every command that has the flag.
const FOR_ALL: &str = "defaults";
/// Permissions are given each time, and so is the form of a result: two of them would be in each other's way.
const EACH_TIME: [&str; 7] = ["destroy-data", "allow-hooks", "json", "markdown", "csv", "oneline", "dry-run"];
/// Longer than any that was written by hand.
const MOST_BYTES: u64 = 1 << 20;
/// Parts of names that only keys have; what names a file or a variable with a key in it may stand here.
const OF_KEYS: [&str; 6] = ["secret", "password", "passwd", "token", "access-key", "credential"];

/// A default of one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagDefault {
    /// Words of the command whose table it is in; those below it have it, too. Empty: every command.
    pub words: Vec<String>,
    /// Without its dashes.
    pub flag: String,
    /// One, or several of a flag that may be repeated.
    pub values: Vec<String>,
    /// It takes no value: `true` is as if it were typed.
    pub is_switch: bool,
}

impl FlagDefault {
    /// Its place in the file.
    pub fn place(&self) -> String {
        let table = if self.words.is_empty() { FOR_ALL.to_owned() } else { self.words.join(".") };
        format!("{table}.{}", self.flag)
    }

    /// As words of a command line.
    pub fn as_typed(&self) -> Vec<String> {
        if self.is_switch {
            return self.values.iter().filter(|v| *v == "true").map(|_| format!("--{}", self.flag)).collect();
        }
        self.values.iter().flat_map(|v| [format!("--{}", self.flag), v.clone()]).collect()
    }
}

/// What the file says; nothing where there is none.
pub fn read(file: &Path, root: &Command) -> Result<Vec<FlagDefault>, Fault> {
    let text = match text_of(file) {
        Ok(text) => text,
        // A file in the place of a directory above it holds no defaults of ours either.
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(e) => {
            return Err(Fault::input(
                format!("the defaults in {} cannot be read: {e}", file.display()),
                "Check the file, or name another with PLIMSOLL_CONFIG (/dev/null for none).",
            ));
        }
    };
    parsed(&text, root).map_err(|f| Fault { what: format!("{}: {}", file.display(), f.what), ..f })
}

/// Whether the table of a command, and a key in it, would be taken. `key`: with whether its flag takes no value.
pub fn allowed(root: &Command, words: &[String], key: Option<(&str, bool)>) -> Result<(), Fault> {
    let table = if words.is_empty() { FOR_ALL.to_owned() } else { words.join(".") };
    let line = key.map_or(String::new(), |(key, is_switch)| {
        format!("{key} = {}", if is_switch { "true" } else { "1" })
    });
    parsed(&format!("[{table}]\n{line}\n"), root).map(drop)
}

/// Bounded: what never ends is no file of defaults, and neither is what nobody may ever write to (a pipe, a terminal): no command waits for it.
fn text_of(file: &Path) -> std::io::Result<String> {
    let open = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
    let meta = open.metadata()?;
    if !meta.is_file() && meta.rdev() != fs::metadata("/dev/null")?.rdev() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    let read = open.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_BYTES {
        return Err(std::io::Error::other(format!("it is longer than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

fn parsed(text: &str, root: &Command) -> Result<Vec<FlagDefault>, Fault> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        // The line itself may hold a key.
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        Fault::input(format!("line {line} is no TOML: {}", e.message()), "Correct that line.")
    })?;
    let mut out = Vec::new();
    for (key, value) in &table {
        let Value::Table(below) = value else {
            no_key(key, value, key)?;
            return Err(Fault::input(
                format!("'{key}' stands outside of a table"),
                format!(
                    "Put it below [{FOR_ALL}], for every command that has --{key}, or below a command, for example [object.put]."
                ),
            ));
        };
        if key == FOR_ALL {
            flags(below, &[], root, &mut out)?;
        } else {
            command(key, below, &[], root, &mut out)?;
        }
    }
    Ok(out)
}

fn command(
    name: &str,
    table: &Table,
    above: &[String],
    parent: &Command,
    out: &mut Vec<FlagDefault>,
) -> Result<(), Fault> {
    let words: Vec<String> = above.iter().cloned().chain([name.to_owned()]).collect();
    let Some(command) = parent.find_subcommand(name) else {
        let known: Vec<&str> = parent.get_subcommands().map(Command::get_name).collect();
        let are =
            if known.is_empty() { "it has none".into() } else { format!("there are {}", known.join(", ")) };
        return Err(Fault::input(
            format!("[{}]: there is no such command", words.join(".")),
            format!("Correct the name; {are}."),
        ));
    };
    if WITHOUT.contains(&words[0].as_str()) {
        return Err(Fault::input(
            format!("[{}]: '{}' takes no defaults: runs start it themselves", words.join("."), words[0]),
            "Give its flags each time.",
        ));
    }
    flags(table, &words, command, out)
}

/// A table's flags, and the tables of commands in it.
fn flags(table: &Table, words: &[String], of: &Command, out: &mut Vec<FlagDefault>) -> Result<(), Fault> {
    for (key, value) in table {
        if let Value::Table(below) = value
            && !words.is_empty()
        {
            command(key, below, words, of, out)?;
            continue;
        }
        let place =
            FlagDefault { words: words.to_vec(), flag: key.clone(), values: Vec::new(), is_switch: false }
                .place();
        no_key(key, value, &place)?;
        let Some(is_switch) = known(of, key) else {
            let help = if words.is_empty() {
                "plimsoll COMMAND".into()
            } else {
                format!("plimsoll {}", words.join(" "))
            };
            return Err(Fault::input(
                format!("{place}: there is no flag --{key}"),
                format!("`{help} --help` lists the flags."),
            ));
        };
        if EACH_TIME.contains(&key.as_str()) {
            return Err(Fault::input(
                format!("{place}: --{key} cannot be a default"),
                "Give it with the command: what permits to destroy, or says what is printed, is said each time.",
            ));
        }
        let values = texts(value, is_switch).ok_or_else(|| {
            let form = if is_switch { "true or false" } else { "a text, a number, or a list of these" };
            Fault::input(format!("{place}: its value is none that a flag has"), format!("Write {form}."))
        })?;
        if key == "influx" {
            values
                .iter()
                .filter(|v| v.contains("://"))
                .try_for_each(|url| InfluxUrl::parse(url).map(drop))?;
        }
        out.push(FlagDefault { words: words.to_vec(), flag: key.clone(), values, is_switch });
    }
    Ok(())
}

/// Whether a command, or one below it, has the flag, and whether that takes no value.
fn known(command: &Command, flag: &str) -> Option<bool> {
    let own = command.get_arguments().find(|a| a.get_long() == Some(flag) && !is_of_the_parser(a));
    own.map(|a| !a.get_action().takes_values()).or_else(|| {
        command.get_subcommands().filter(|c| !WITHOUT.contains(&c.get_name())).find_map(|c| known(c, flag))
    })
}

fn texts(value: &Value, is_switch: bool) -> Option<Vec<String>> {
    let one = |v: &Value| match v {
        Value::Boolean(b) if is_switch => Some(b.to_string()),
        Value::String(s) if !is_switch => Some(s.clone()),
        Value::Integer(n) if !is_switch => Some(n.to_string()),
        Value::Float(x) if !is_switch => Some(x.to_string()),
        Value::Datetime(d) if !is_switch => Some(d.to_string()),
        _ => None,
    };
    match value {
        Value::Array(list) if !list.is_empty() => list.iter().map(one).collect(),
        v => one(v).map(|text| vec![text]),
    }
}

/// Keys stand in the environment or in a profile: this file is shown, and its values are stored with runs. None of it is repeated.
fn no_key(key: &str, value: &Value, place: &str) -> Result<(), Fault> {
    let name = key.to_ascii_lowercase().replace('_', "-");
    let names_one =
        OF_KEYS.iter().any(|k| name.contains(k)) && !name.ends_with("-file") && !name.ends_with("-env");
    let mut held = Vec::new();
    strings(value, &mut held);
    let env = |name: &str| std::env::var(name).ok();
    let is_key = |text: &str| values::holds_credential(text) || values::tells_our_secret(text, env);
    if names_one || held.iter().any(|s| is_key(s)) {
        return Err(Fault::input(
            format!("{place} is, or holds, a key, a password or a token"),
            "Take it out of the file: keys are read from the environment or from a profile of the AWS tools, never from here.",
        ));
    }
    Ok(())
}

fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(s) => out.push(s.clone()),
        Value::Array(list) => list.iter().for_each(|v| strings(v, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn told(text: &str) -> String {
        let fault = parsed(text, &Cli::command()).expect_err(text);
        assert!(!fault.remedy.is_empty(), "{text}");
        fault.to_string()
    }

    #[test]
    fn what_is_no_default_is_refused_with_its_place() {
        for (text, why) in [
            ("[object.put]\nconcurency = 4", "object.put.concurency: there is no flag"),
            ("[objekt]\nsize = \"4KiB\"", "[objekt]: there is no such command"),
            ("[object.putt]\nsize = \"4KiB\"", "[object.putt]: there is no such command"),
            ("concurrency = 4", "outside of a table"),
            ("[defaults]\nno-such = 1", "defaults.no-such"),
            ("[block]\ndestroy-data = \"/dev/sdz\"", "cannot be a default"),
            ("[defaults]\njson = true", "cannot be a default"),
            ("[target.s3]\ndata = \"/x\"", "takes no defaults"),
            ("[defaults]\nhelp = true", "defaults.help: there is no flag"),
            ("[object.put]\nkeep = \"yes\"", "true or false"),
            ("[object.put]\nsize = true", "a text, a number"),
            ("[object.put]\nsize = ", "line 2"),
        ] {
            assert!(told(text).contains(why), "{text}: {}", told(text));
        }
    }

    #[test]
    fn no_command_waits_for_a_file_of_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("config.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [&pipe, Path::new("/dev/zero"), dir.path()] {
            let fault = read(file, &Cli::command()).unwrap_err();
            assert!(fault.what.contains("it is no regular file") && !fault.remedy.is_empty(), "{fault}");
            assert!(fault.what.contains(&file.display().to_string()), "{fault}");
        }
        assert_eq!(read(Path::new("/dev/null"), &Cli::command()).unwrap(), []);
    }

    #[test]
    fn keys_are_refused_and_not_repeated() {
        for text in [
            "[object]\nsecret-key = \"geheim123\"",
            "[object]\nAWS_SECRET_ACCESS_KEY = \"geheim123\"",
            "password = \"geheim123\"",
            "[defaults]\nendpoint = \"http://me:geheim123@h\"",
            "[object]\nendpoint = [\"http://a\", \"http://me:geheim123@h\"]",
            "[object]\nsecret-key = geheim123",
            "[object]\nheader = [\"x-auth-token: geheim123\"]",
            "[object]\nheader = \"Authorization: Basic geheim123\"",
            "[defaults]\ninflux = \"http://h/write?db=x&code=geheim123\"",
            "[defaults]\nlabel = [\"tier=a\", \"token=geheim123\"]",
            "[defaults]\nname = \"AKIAGEHEIM1234567890\"",
            "[object]\nendpoint = \"me:geheim123@h:9000\"",
        ] {
            assert!(!told(text).to_lowercase().contains("geheim"), "{text}: {}", told(text));
        }
        let sound = "[defaults]\nobserve-token-file = \"/run/token\"\nobserve-token-env = \"TOKEN\"\nobserve = [\"ssh=root@h:22\", \"minio=http://h:9000\"]\n\
                     influx = \"http://h/write?db=x\"\n[object]\nheader = \"x-amz-meta-owner: me\"";
        assert_eq!(parsed(sound, &Cli::command()).unwrap().len(), 5);
    }

    #[test]
    fn where_no_file_can_be_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config"), b"of somebody else").unwrap();
        for place in ["none/config.toml", "config/plimsoll/config.toml"] {
            assert!(read(&dir.path().join(place), &Cli::command()).unwrap().is_empty(), "{place}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        let told = read(&file, &Cli::command()).unwrap_err().to_string();
        assert!(told.contains("config.toml") && told.contains("longer than"), "{told}");
    }

    #[test]
    fn a_sound_file_is_read() {
        let text = "[defaults]\nruns-dir = \"/r\"\n[object]\nlabel = [\"a=b\", \"c=d\"]\n[object.put]\nconcurrency = 32\nkeep = true";
        let all = parsed(text, &Cli::command()).unwrap();
        let places: Vec<String> = all.iter().map(FlagDefault::place).collect();
        assert_eq!(
            places,
            ["defaults.runs-dir", "object.label", "object.put.concurrency", "object.put.keep"]
        );
        let typed: Vec<String> = all.iter().flat_map(FlagDefault::as_typed).collect();
        assert_eq!(typed.join(" "), "--runs-dir /r --label a=b --label c=d --concurrency 32 --keep");
    }
}
