//! Network namespaces and interfaces that a run makes, by the programs of iproute2: known by the run's mark in the alias of the
//! interface (of a namespace, of its loopback), and removed by it alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_store::{Journal, Thing};

use crate::error::SetupError;

/// Where iproute2 keeps the names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// Where the kernel lists interfaces.
const INTERFACES: &str = "/sys/class/net";
/// Beside PATH: where administrators' programs are, which the path of others often lacks.
const ADMIN_PLACES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program in PATH, or where administrators' programs are.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(ADMIN_PLACES.map(PathBuf::from));
    let is_program = |p: &PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    places.map(|dir| dir.join(name)).find(is_program)
}

/// Runs `ip` or `tc` with these words; what it printed. An error has the command and its own message.
pub fn call(tool: &str, words: &[&str]) -> Result<String, String> {
    let found = program(tool).ok_or_else(|| format!("{tool} is not installed"))?;
    let done = Command::new(found).args(words).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said: String = said.trim().chars().take(300).collect();
    Err(format!("{tool} {}: {said}", words.join(" ")))
}

/// Whether there is an interface of this name.
pub fn is_link(name: &str) -> bool {
    Path::new(INTERFACES).join(name).exists()
}

/// The file by which a namespace is entered.
pub fn namespace_file(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// Makes a namespace with the run's mark in it, noted before. There must be none of its name.
pub fn make_namespace(name: &str, journal: &mut Journal) -> Result<(), SetupError> {
    let run = journal.mark().to_owned();
    make(
        journal,
        Thing::Namespace { name: name.to_owned() },
        Steps {
            add: || call("ip", &["netns", "add", name]),
            mark: || call("ip", &["-n", name, "link", "set", "dev", "lo", "alias", &mark(&run), "up"]),
            undo: || call("ip", &["netns", "del", name]),
        },
    )
}

/// Makes an interface (`kind`: the words of `ip link add` behind its name) with the run's mark on it, noted before. There must be none of its name.
pub fn make_link(name: &str, kind: &[&str], journal: &mut Journal) -> Result<(), SetupError> {
    let run = journal.mark().to_owned();
    make(
        journal,
        Thing::Link { name: name.to_owned() },
        Steps {
            add: || call("ip", &[&["link", "add", "name", name], kind].concat()),
            mark: || call("ip", &["link", "set", "dev", name, "alias", &mark(&run)]),
            undo: || call("ip", &["link", "del", "dev", name]),
        },
    )
}

/// How a thing comes to be: made, which fails where there is one of its name; marked; and taken back where it cannot be marked.
struct Steps<A, M, U> {
    add: A,
    mark: M,
    undo: U,
}

/// What was not made, or is gone again, is struck out: whatever has its name by then is somebody else's.
fn make<A, M, U>(journal: &mut Journal, thing: Thing, steps: Steps<A, M, U>) -> Result<(), SetupError>
where
    A: FnOnce() -> Result<String, String>,
    M: FnOnce() -> Result<String, String>,
    U: FnOnce() -> Result<String, String>,
{
    let id = journal.creating(thing)?;
    let (why, is_gone) = match (steps.add)() {
        Err(why) => (why, true),
        Ok(_) => match (steps.mark)() {
            Ok(_) => return Ok(()),
            Err(why) => (why, (steps.undo)().is_ok()),
        },
    };
    if is_gone {
        journal.removed(id)?;
    }
    Err(SetupError::input(
        why,
        "Run it as root, where network namespaces can be made; a container often may not",
    ))
}

/// Removes the interface of the run with this mark. One that is not there is fine; any other stays, and the reason is given.
pub fn remove_link(name: &str, run: &str) -> Result<(), String> {
    if !is_link(name) {
        return Ok(());
    }
    let is_its = alias(&["-j", "link", "show", "dev", name])? == mark(run);
    if !is_its && !is_untouched(&["-j", "addr", "show", "dev", name]) {
        return Err("it does not carry this run's mark".into());
    }
    gone(call("ip", &["link", "del", "dev", name]), || is_link(name))
}

/// Removes the namespace of the run with this mark, and with it the interfaces in it.
pub fn remove_namespace(name: &str, run: &str) -> Result<(), String> {
    let is_there = || namespace_file(name).exists();
    if !is_there() {
        return Ok(());
    }
    let is_its = alias(&["-n", name, "-j", "link", "show", "dev", "lo"])? == mark(run);
    let is_empty = || {
        let nobody = call("ip", &["netns", "pids", name]).is_ok_and(|pids| pids.trim().is_empty());
        nobody && is_untouched(&["-n", name, "-j", "addr", "show"])
    };
    if !is_its && !is_empty() {
        return Err("it does not carry this run's mark".into());
    }
    gone(call("ip", &["netns", "del", name]), is_there)
}

/// It may have gone by itself meanwhile.
fn gone(done: Result<String, String>, is_there: impl Fn() -> bool) -> Result<(), String> {
    match done {
        Err(e) if is_there() => Err(e),
        _ => Ok(()),
    }
}

fn mark(run: &str) -> String {
    format!("plimsoll {run}")
}

/// Whether the one interface that `ip` shows is as it was made: without an alias, an address or a master, and down. Who was killed before
/// the mark was on it left it so, and nobody loses anything by it.
fn is_untouched(words: &[&str]) -> bool {
    call("ip", words).is_ok_and(|text| is_untouched_in(&text))
}

fn is_untouched_in(text: &str) -> bool {
    let Ok(shown) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let Some([one]) = shown.as_array().map(Vec::as_slice) else { return false };
    let none = |what: &str| one[what].as_str().is_none_or(str::is_empty);
    let addresses = one["addr_info"].as_array().is_some_and(|all| !all.is_empty());
    let is_up = one["flags"].as_array().is_none_or(|flags| flags.iter().any(|f| f == "UP"));
    none("ifalias") && none("master") && !addresses && !is_up
}

/// The alias of the one interface that `ip` shows; empty where it has none.
fn alias(words: &[&str]) -> Result<String, String> {
    alias_in(&call("ip", words)?)
}

fn alias_in(text: &str) -> Result<String, String> {
    let shown: serde_json::Value =
        serde_json::from_str(text).map_err(|e| format!("what ip shows of it is not understood: {e}"))?;
    Ok(shown[0]["ifalias"].as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_or_marked_is_not_untouched() {
        let new = r#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK"],"operstate":"DOWN","addr_info":[]}]"#;
        assert!(is_untouched_in(new));
        for (from, to) in [
            ("\"LOOPBACK\"", "\"LOOPBACK\",\"UP\""),
            ("\"addr_info\":[]", "\"addr_info\":[{\"local\":\"10.0.0.1\"}]"),
            ("\"operstate\"", "\"ifalias\":\"plimsoll r.01\",\"operstate\""),
            ("\"operstate\"", "\"master\":\"br0\",\"operstate\""),
            ("]}]", "]},{\"ifname\":\"eth0\",\"flags\":[]}]"),
            ("\"flags\"", "\"other\""),
            ("[{", "{"),
        ] {
            assert!(!is_untouched_in(&new.replacen(from, to, 1)), "{to}");
        }
    }

    #[test]
    fn the_alias_is_read_where_there_is_one() {
        let with = r#"[{"ifindex":1,"ifname":"lo","ifalias":"plimsoll r.01"}]"#;
        assert_eq!(alias_in(with).unwrap(), mark("r.01"));
        assert_eq!(alias_in(r#"[{"ifname":"lo"}]"#).unwrap(), "");
        assert!(alias_in("lo: no JSON").is_err());
    }

    #[test]
    fn what_was_not_made_or_is_gone_again_is_struck_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let done = |ok: bool| move || if ok { Ok(String::new()) } else { Err("File exists".to_owned()) };
        let mut made = |add, mark, undo| {
            let thing = Thing::Link { name: "pl-x".into() };
            let steps = Steps { add: done(add), mark: done(mark), undo: done(undo) };
            let told = make(&mut journal, thing, steps).map_err(|e| e.to_string());
            (told.is_ok(), journal.pending().len())
        };
        assert_eq!(made(false, true, true), (false, 0), "of its name was another");
        assert_eq!(made(true, false, true), (false, 0), "taken back");
        assert_eq!(made(true, true, true), (true, 1));
        assert_eq!(made(true, false, false), (false, 2), "what is there without a mark is told of");
    }

    #[test]
    fn what_is_not_there_is_gone_and_loopback_is_nobodys() {
        assert_eq!(remove_link("pl-none-0", "r.01"), Ok(()));
        assert_eq!(remove_namespace("plimsoll-none-0", "r.01"), Ok(()));
        if program("ip").is_some() {
            assert!(remove_link("lo", "r.01").unwrap_err().contains("mark"));
        }
    }
}
