//! What is done on one host over ssh, as scripts for any POSIX shell. The token comes on standard input, and is on no command line.

use std::fs::File;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use plimsoll_model::text::clean;
use serde::{Deserialize, Serialize};

use super::ssh::{Binary, Ssh};
use crate::rerun::quoted;
use crate::signals;

/// A host that says more than this is not listened to.
const MOST_BYTES: u64 = 1 << 20;

/// How long a word over ssh is waited for, and by which signal no longer. A host whose login hangs (a home directory that is not served any
/// more) answers ssh's own signs of life for ever.
#[derive(Debug, Clone, Copy)]
struct Waits {
    most: Duration,
    is_over: fn() -> bool,
}

/// For a look at a host. (A choice: slow logins take some seconds.)
const LOOKING: Waits = Waits { most: Duration::from_secs(60), is_over: signals::was_asked_to_stop };
/// For the copy of the binary: 50 MB at 1 Mbit/s are 7 minutes.
const COPYING: Waits = Waits { most: Duration::from_secs(1800), is_over: signals::was_asked_to_stop };
/// For an agent to be in, which its script waits 60 s for.
const STARTING: Waits = Waits { most: Duration::from_secs(120), is_over: signals::was_asked_to_stop };
/// For an agent to end, which its script waits 35 s for. Whoever has asked for the end wants this done: the next signal ends the wait.
const ENDING: Waits = Waits { most: Duration::from_secs(90), is_over: signals::was_told_not_to_wait };

/// How long an agent stays that has no work: where nobody came to end it, it does not stay for good.
const UNTIL_IDLE: &str = "12h";

/// One of them.
#[derive(Debug)]
pub struct SshHost<'a> {
    pub ssh: &'a Ssh,
    pub host: &'a str,
    /// Of its agent.
    pub name: &'a str,
    pub fleet: &'a str,
}

/// An agent that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub host: String,
    /// The agent's name.
    pub name: String,
    /// Where its log and the note of its process are, on the host.
    place: String,
    /// Of its process there.
    pid: u32,
    /// When that began, in the kernel's ticks.
    start_ticks: u64,
    /// Its systemd unit; empty: it has none.
    unit: String,
    /// The manager of that unit is the user's.
    is_users: bool,
    /// Of ssh, by which the host was reached; none: its own.
    #[serde(default)]
    pub config: Option<PathBuf>,
}

/// Where binaries are kept: by their hash, so that one that is there is the right one. `$hash` is set before.
const FIND: &str = r#"
dir="${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll"
bin="$dir/plimsoll-$hash"
"#;

/// Says `here`, or what machine it is that lacks the binary.
const LOOK: &str = r#"
if [ -x "$bin" ] && [ "$(sha256sum "$bin" 2>/dev/null | cut -d' ' -f1)" = "$hash" ]; then echo here; else echo "lacks $(uname -s) $(uname -m)"; fi
"#;

/// Takes it from standard input, as a whole or not at all.
const TAKE: &str = r#"
set -e
umask 077
mkdir -p "$dir"
new=$(mktemp "$dir/new.XXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
found=$(sha256sum "$new" | cut -d' ' -f1)
if [ "$found" != "$hash" ]; then echo "the copy of plimsoll is not what was sent" >&2; exit 1; fi
chmod 700 "$new"
mv "$new" "$bin"
"#;

/// Starts the agent away from this session: as a unit of systemd where that outlives the session, else by itself. Then waits until it is
/// in, or says why not. `$name`, `$fleet` and the flags as `"$@"` are set before.
const START: &str = r#"
umask 077
IFS= read -r token
mkdir -p "$dir/agents"
place=$(mktemp -d "$dir/agents/$fleet.$name.XXXXXX") || exit 1
# However this ends, the token does not stay.
trap 'rm -f "$place/token"' EXIT
trap 'exit 1' HUP INT TERM
log="$place/log"
# As of an agent that is started by hand after a login.
runs="${PLIMSOLL_RUNS:-$HOME/plimsoll-runs}"
printf '%s\n' "$token" >"$place/token"
unset token
unit=; users=no; pid=
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
  unit="plimsoll-$(basename "$place" | tr . -)"
  if [ "$(id -u)" = 0 ]; then
    systemd-run --quiet --collect --unit="$unit" --working-directory="$place" \
      sh -c 'log=$1; shift; exec "$@" >/dev/null 2>>"$log"' sh "$log" "$bin" agent --join "@$place/token" --name "$name" --runs-dir "$runs" "$@" 2>/dev/null || unit=
  elif [ "$(loginctl show-user "$(id -un)" --property=Linger --value 2>/dev/null)" = yes ]; then
    users=yes
    systemd-run --user --quiet --collect --unit="$unit" --working-directory="$place" \
      sh -c 'log=$1; shift; exec "$@" >/dev/null 2>>"$log"' sh "$log" "$bin" agent --join "@$place/token" --name "$name" --runs-dir "$runs" "$@" 2>/dev/null || unit=
  else
    unit=
  fi
  if [ -n "$unit" ]; then
    how=; [ "$users" = no ] || how=--user
    pid=$(systemctl $how show "$unit" --property=MainPID --value 2>/dev/null)
    # 0 is a unit that has ended already; to kill, it would be this script.
    case "$pid" in 0 | 1 | *[!0-9]*) pid= ;; esac
  fi
fi
if [ -z "$unit" ]; then
  command -v setsid >/dev/null 2>&1 && away=setsid || away=
  (cd "$place" && exec $away nohup "$bin" agent --join "@$place/token" --name "$name" --runs-dir "$runs" "$@") </dev/null >/dev/null 2>>"$log" &
  pid=$!
fi
n=0
while [ $n -lt 600 ]; do
  if [ -n "$pid" ] && grep -q 'waits for orders' "$log" 2>/dev/null; then
    ticks=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f20)
    trap '' PIPE
    printf 'started %s %s %s %s %s\n' "$pid" "$ticks" "${unit:--}" "$users" "$place" && exit 0
    # Nobody hears it any more, and so nobody would end the agent.
    break
  fi
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null || break
  n=$((n + 1))
  sleep 0.1
done
[ -z "$unit" ] || systemctl $how stop "$unit" 2>/dev/null
[ -z "$pid" ] || kill "$pid" 2>/dev/null
if [ -s "$log" ]; then cat "$log" >&2; else echo "the agent ended without a word" >&2; fi
rm -rf "$place"
exit 1
"#;

/// Ends the process of `$pid` if it is the one that was started (`$ticks`), waits for that, and removes its place if it is one of ours.
const END: &str = r#"
same() { [ "$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f20)" = "$ticks" ] && [ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -c1)" != Z ]; }
n=0
while same; do
  [ $n -ne 20 ] || kill -TERM "$pid"
  [ $n -ne 300 ] || kill -KILL "$pid"
  [ $n -lt 350 ] || { echo "process $pid does not end" >&2; exit 1; }
  n=$((n + 1))
  sleep 0.1
done
case "$place" in */plimsoll/agents/*) rm -f "$place/log" "$place/token" "$place/nohup.out"; rmdir "$place" 2>/dev/null || true ;; esac
rmdir "${place%/*}" 2>/dev/null || true
"#;

impl SshHost<'_> {
    /// The binary, if it lacks it, and the agent. What is wrong is told in words.
    pub fn start(
        &self,
        binary: &Binary,
        token: &str,
        flags: &[String],
        number: usize,
    ) -> Result<Started, String> {
        let set = format!("hash={}\n", binary.hash);
        let mut look = self.ssh.command(self.host, &shell(&format!("{set}{FIND}{LOOK}"), &[]));
        look.stdin(Stdio::null());
        let looked = said(heard(look, None, LOOKING))?;
        if let Some(machine) = looked.trim().strip_prefix("lacks ") {
            let ours = uname();
            if machine != ours {
                return Err(format!(
                    "it is {machine}, and this binary is for {ours}: start plimsoll agent there by hand"
                ));
            }
            let sent = File::open(&binary.path).map_err(|e| format!("this program cannot be read: {e}"))?;
            let mut take = self.ssh.command(self.host, &shell(&format!("{set}{FIND}{TAKE}"), &[]));
            take.stdin(sent);
            said(heard(take, None, COPYING))?;
        }
        let set = format!("{set}name={}\nfleet={}\n", quoted(self.name), quoted(self.fleet));
        let mut all = vec![
            "--label".to_owned(),
            format!("node={}", label(self.host)),
            "--label".into(),
            format!("index={number}"),
            "--until-idle".into(),
            UNTIL_IDLE.into(),
        ];
        all.extend_from_slice(flags);
        let mut command = self.ssh.command(self.host, &shell(&format!("{set}{FIND}{START}"), &all));
        command.stdin(Stdio::piped());
        let text = said(heard(command, Some(token), STARTING))?;
        self.started(&text).ok_or_else(|| format!("it did not say what it started: {}", clean(text.trim())))
    }

    fn started(&self, text: &str) -> Option<Started> {
        let line = text.lines().find_map(|l| l.strip_prefix("started "))?;
        let mut words = line.splitn(5, ' ');
        Some(Started {
            host: self.host.to_owned(),
            name: self.name.to_owned(),
            pid: words.next()?.parse().ok()?,
            start_ticks: words.next()?.parse().ok()?,
            unit: words.next().filter(|u| *u != "-").unwrap_or_default().to_owned(),
            is_users: words.next()? == "yes",
            place: words.next()?.to_owned(),
            config: None,
        })
    }
}

impl Started {
    /// Of its process, there.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended, as the fleet's last word has it do; ends it where it did not hear that.
    pub fn end(&self, ssh: &Ssh) -> Result<(), String> {
        let set = format!("pid={}\nticks={}\nplace={}\n", self.pid, self.start_ticks, quoted(&self.place));
        let mut command = ssh.command(&self.host, &shell(&format!("{set}{END}"), &[]));
        command.stdin(Stdio::null());
        said(heard(command, None, ENDING)).map(drop)
    }
}

/// A script as one word for whatever shell the user has there.
fn shell(script: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|w| quoted(w)).collect();
    format!("exec sh -c {} sh {}", quoted(script), words.join(" "))
}

/// A host as the value of a label: without its user.
fn label(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, h)| h)
}

/// What a command says, and how it ends; one that says more than [`MOST_BYTES`], or takes too long, is ended. `line`: for its standard
/// input, where that is a pipe.
fn heard(mut command: Command, line: Option<&str>, waits: Waits) -> std::io::Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let (Some(line), Some(mut stdin)) = (line, child.stdin.take()) {
        // Where it has ended already, its own words say why.
        let _ = writeln!(stdin, "{line}");
    }
    let (out, err, pid) = (child.stdout.take(), child.stderr.take(), child.id());
    std::thread::scope(|scope| {
        let stderr = scope.spawn(move || bounded(err, pid));
        let stdout = scope.spawn(move || bounded(out, pid));
        let status = ended(&mut child, waits);
        let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        Ok(Output { status: status?, stdout, stderr })
    })
}

/// How it ended by itself; one that is waited for no longer is killed, with what it started in its group.
fn ended(child: &mut Child, waits: Waits) -> std::io::Result<ExitStatus> {
    const LOOK: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let why = match ((waits.is_over)(), begun.elapsed() > waits.most) {
            (true, _) => {
                std::io::Error::new(std::io::ErrorKind::Interrupted, "it was not waited for any more")
            }
            (_, true) => {
                let text = format!(
                    "nothing came of it within {} s: look at what its login does",
                    waits.most.as_secs()
                );
                std::io::Error::new(std::io::ErrorKind::TimedOut, text)
            }
            _ => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        if let Ok(pid) = libc::pid_t::try_from(child.id()) {
            // SAFETY: the number is of a child that is waited for only after this; where it leads no group, nobody is meant.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
        child.kill()?;
        child.wait()?;
        return Err(why);
    }
}

/// What comes, up to the bound; there the process ends, which is our child that nobody has waited for yet.
fn bounded(from: Option<impl Read>, pid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read until then is what there is.
    let _ = from.map(|from| from.take(MOST_BYTES).read_to_end(&mut bytes));
    if bytes.len() as u64 >= MOST_BYTES
        && let Ok(pid) = libc::pid_t::try_from(pid)
    {
        // SAFETY: the number is of a child that is waited for only after this, so it is nobody else's.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    bytes
}

/// What it said, or its last words.
fn said(output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no ssh on this machine (apt-get install openssh-client)".to_owned()
        }
        std::io::ErrorKind::Interrupted | std::io::ErrorKind::TimedOut => e.to_string(),
        _ => format!("ssh cannot be started: {e}"),
    })?;
    if [&output.stdout, &output.stderr].iter().any(|text| text.len() as u64 >= MOST_BYTES) {
        return Err("it says more than 1 MiB: look at what its login writes".to_owned());
    }
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let err = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = err.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    Err(if last.is_empty() { format!("ssh ended with {}", output.status) } else { clean(&last).into_owned() })
}

/// As `uname -s -m` has it.
fn uname() -> String {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    format!("{} {}", text("/proc/sys/kernel/ostype"), std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn scripts_are_read_by_a_plain_shell() {
        for script in [LOOK, TAKE, START, END] {
            let read = Command::new("sh").args(["-n", "-c", &format!("{FIND}{script}")]).output().unwrap();
            assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        }
    }

    #[test]
    fn a_process_that_is_another_by_now_is_left_alone() {
        let mut other = Command::new("sleep").arg("100").spawn().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("plimsoll/agents/x");
        std::fs::create_dir_all(&place).unwrap();
        let set = format!("pid={}\nticks=1\nplace={}\n", other.id(), place.display());
        let ran = Command::new("sh").args(["-c", &format!("{set}{END}")]).output().unwrap();
        assert!(ran.status.success() && other.try_wait().unwrap().is_none() && !place.exists());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn one_that_talks_without_end_is_not_heard_out() {
        for code in ["exec yes", "exec yes >&2"] {
            let mut command = Command::new("sh");
            command.args(["-c", code]);
            let e = said(heard(command, None, LOOKING)).unwrap_err();
            assert!(e.contains("more than 1 MiB"), "{e}");
        }
    }

    /// Also what it has started, which holds its pipes.
    #[test]
    fn one_that_never_ends_is_waited_for_no_longer_than_is_said() {
        let hung = |waits: Waits| {
            let mut command = Command::new("sh");
            command.args(["-c", "sleep 1000 & sleep 1000"]).process_group(0);
            said(heard(command, None, waits)).unwrap_err()
        };
        let e = hung(Waits { most: Duration::from_millis(50), is_over: || false });
        assert!(e.contains("nothing came of it within"), "{e}");
        assert!(hung(Waits { most: Duration::MAX, is_over: || true }).contains("not waited for any more"));
    }

    /// A systemd whose unit ended at once: it has no process any more.
    #[test]
    fn a_unit_that_ended_at_once_says_why_and_leaves_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let program = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::write(path(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o700)).unwrap();
        };
        program("systemd-run", r#"for w; do case "$w" in */log) echo "no such flag" >"$w" ;; esac; done"#);
        program(
            "systemctl",
            &format!(r#"echo "$@" >>{}/asked; [ "$1" = stop ] || echo 0"#, dir.path().display()),
        );
        program("loginctl", "echo yes");
        std::fs::create_dir(path("run")).unwrap();
        let run = path("run").display().to_string();
        let script = format!("hash=h\nname=a\nfleet=f\n{FIND}{START}").replace("/run/systemd/system", &run);
        let mut command = Command::new("sh");
        let paths = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        command.args(["-c", &script]).env("PATH", paths).env("XDG_CACHE_HOME", path("cache"));
        // Its own group: what it is a test of would end this one.
        command.stdin(Stdio::piped()).process_group(0);
        let e = said(heard(command, Some("secret"), STARTING)).unwrap_err();
        assert_eq!(e, "no such flag");
        let asked = std::fs::read_to_string(path("asked")).unwrap();
        assert!(asked.contains("stop") && asked.contains("plimsoll-f-a-"), "{asked}");
        assert_eq!(std::fs::read_dir(path("cache/plimsoll/agents")).unwrap().count(), 0, "nothing stays");
    }

    #[test]
    fn an_agent_that_nobody_hears_of_is_ended() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("plimsoll")).unwrap();
        let pid = path("pid");
        let agent = format!(
            "#!/bin/sh\necho $$ >{0}.new; mv {0}.new {0}\necho waits for orders >&2\nexec sleep 300\n",
            pid.display()
        );
        std::fs::write(path("plimsoll/plimsoll-h"), agent).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path("plimsoll/plimsoll-h"), mode).unwrap();
        let script =
            format!("hash=h\nname=a\nfleet=f\n{FIND}{START}").replace("/run/systemd/system", "/none");
        let start = |hears: bool| {
            let mut command = Command::new("sh");
            command.args(["-c", &script]).env("XDG_CACHE_HOME", dir.path());
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let stdout = child.stdout.take().filter(|_| hears);
            writeln!(child.stdin.take().unwrap(), "secret").unwrap();
            let said = stdout.map(|s| String::from_utf8(bounded(Some(s), child.id())).unwrap());
            (child.wait().unwrap().success(), said.unwrap_or_default())
        };
        let stat = || format!("/proc/{}/stat", std::fs::read_to_string(&pid).unwrap().trim());
        let is_there = || {
            std::fs::read_to_string(stat()).is_ok_and(|s| !s.rsplit(") ").next().unwrap().starts_with('Z'))
        };
        let (ok, _) = start(false);
        assert!(!ok);
        while is_there() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(std::fs::read_dir(path("plimsoll/agents")).unwrap().count(), 0);
        let (ok, said) = start(true);
        assert!(ok && said.starts_with("started ") && is_there(), "{said}");
        let there = said.trim().rsplit(' ').next().unwrap();
        assert!(!std::path::Path::new(there).join("token").exists());
        let number = std::fs::read_to_string(&pid).unwrap();
        assert!(Command::new("kill").arg(number.trim()).status().unwrap().success());
    }

    #[test]
    fn what_was_started_is_read_and_last_words_are_cleaned() {
        let ssh_words = |code: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", code]);
            said(heard(command, None, LOOKING))
        };
        assert_eq!(ssh_words("echo x").unwrap(), "x\n");
        let e = ssh_words("printf 'a\\nb\\033[31m\\n' >&2; exit 255").unwrap_err();
        assert!(e.starts_with("a; b") && !e.contains('\u{1b}'), "{e:?}");
        assert_eq!(uname(), {
            let said = Command::new("uname").args(["-s", "-m"]).output().unwrap();
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        });
    }
}
