//! What a conductor in Kubernetes runs, as a script for any POSIX shell.

use super::kubernetes::PORT;
use crate::rerun::quoted;

/// The conductor's script. As the first process of its container it hears a signal only where it says what to do with it: it is passed
/// on to what runs, whose end is waited for, and then the fleet is ended.
pub fn conducting(fleet: &str, agents: u32, command: &[String]) -> String {
    let fleet = quoted(fleet);
    let words = command.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
    format!(
        r#"set -eu
PLIMSOLL_FLEET={fleet}
export PLIMSOLL_FLEET
run= told=no again=no
trap 'told=yes again=yes; [ -z "$run" ] || kill -TERM "$run" 2>/dev/null || true' TERM INT
# In the background, so that the signal is heard while it runs; a signal ends the wait, and not yet what is waited for.
await() {{
  [ "$told" = no ] || exit 130
  "$@" &
  run=$! code=0 again=yes
  while [ "$again" = yes ]; do
    again=no last=0
    wait "$run" || last=$?
    # 127: its end was heard before.
    [ "$last" = 127 ] || code=$last
  done
  run=
  [ "$code" = 0 ] || exit "$code"
}}
plimsoll fleet up --keys /keys/keys --listen 0.0.0.0:{PORT} >/dev/null
trap 'plimsoll fleet down --force' EXIT
await plimsoll fleet wait {agents} --within 15min
await plimsoll {words}
"#
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn script(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        conducting("demo", 2, &words)
    }

    /// A shell that finds this text as `plimsoll`, which notes how it was called.
    fn with_plimsoll(script: &str, text: &str, dir: &std::path::Path) -> Command {
        let file = dir.join("plimsoll");
        let calls = dir.join("calls").display().to_string();
        std::fs::write(&file, format!("#!/bin/sh\necho \"$PLIMSOLL_FLEET $@\" >>{calls}\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = Command::new("sh");
        let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
        command.args(["-c", script]).env("PATH", path).stdout(Stdio::piped());
        command
    }

    #[test]
    fn a_command_keeps_its_words_through_a_shell() {
        let words = ["object", "get", "--label", "it's $(date)", "--endpoint", "http://n{1...4}:9000"];
        let script = script(&words);
        let dir = tempfile::tempdir().unwrap();
        let says = r#"[ "$1" = fleet ] || printf '%s\n' "$@""#;
        let out = with_plimsoll(&script, says, dir.path()).output().unwrap();
        let said = String::from_utf8(out.stdout).unwrap();
        assert_eq!(
            (said.lines().collect::<Vec<_>>(), out.status.code()),
            (words.to_vec(), Some(0)),
            "{script}"
        );
        let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
        let calls: Vec<&str> = calls.lines().collect();
        assert!(
            calls[0].starts_with("demo fleet up --keys") && calls[3] == "demo fleet down --force",
            "{calls:?}"
        );
    }

    #[test]
    fn its_code_is_the_commands_and_the_fleet_ends() {
        let dir = tempfile::tempdir().unwrap();
        let script = script(&["object", "get"]);
        let out = with_plimsoll(&script, r#"[ "$1" = fleet ] || exit 3"#, dir.path()).output().unwrap();
        let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
        assert!(out.status.code() == Some(3) && calls.ends_with("fleet down --force\n"), "{calls}");
    }

    /// As Kubernetes ends a pod: the signal goes to the shell alone, twice here.
    #[test]
    fn a_pod_that_is_ended_ends_its_run_first() {
        let dir = tempfile::tempdir().unwrap();
        let script = script(&["object", "get"]);
        let busy = format!(
            r#"[ "$1" != fleet ] || exit 0
trap 'echo ending >>{0}/calls; sleep 1; echo stored >>{0}/calls; exit 130' TERM
echo on >>{0}/calls
n=0; while [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done"#,
            dir.path().display()
        );
        let mut shell = with_plimsoll(&script, &busy, dir.path()).spawn().unwrap();
        let calls = || std::fs::read_to_string(dir.path().join("calls")).unwrap_or_default();
        for state in ["on\n", "ending\n"] {
            while !calls().contains(state) {
                assert!(shell.try_wait().unwrap().is_none(), "{}", calls());
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let pid = shell.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        }
        assert_eq!(shell.wait().unwrap().code(), Some(130), "{}", calls());
        let calls = calls();
        assert!(calls.ends_with("stored\ndemo fleet down --force\n"), "{calls}");
    }
}
