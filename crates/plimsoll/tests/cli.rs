//! The binary as a user meets it: exit codes, and which stream carries what.

use assert_cmd::Command;

fn plimsoll(line: &str) -> assert_cmd::assert::Assert {
    let mut c = Command::cargo_bin("plimsoll").expect("the binary is built with its tests");
    for v in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "PLIMSOLL_RUNS"] {
        c.env_remove(v);
    }
    c.args(line.split_whitespace()).assert()
}

#[test]
fn bad_input_is_exit_code_2_and_says_nothing_on_stdout() {
    for (line, told) in [
        ("object put --endpont http://h --bucket b", "--endpoint"),
        ("object put --endpoint http://h --bucket b --size 4k", "KiB"),
        ("object put --endpoint http://h --bucket b --duration 30", "30s, 30m or 30ms?"),
        ("object put --bucket b", "--endpoint"),
        ("object mixed --endpoint http://h --bucket b --mix get", "get=1"),
        ("object put --endpoint http://h --bucket b --secret-key x", "unexpected argument"),
        ("run /nowhere/plan.toml", "cannot be read"),
        ("nonsense", "unrecognized"),
    ] {
        let out = plimsoll(line).code(2).get_output().clone();
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(err.contains(told), "{line}: {err}");
        assert!(out.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_plan_with_an_unknown_key_names_line_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.toml");
    std::fs::write(&path, "version = 1\nsed = 7\n").unwrap();
    let out = plimsoll(&format!("run {}", path.display())).code(2).get_output().clone();
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(err.contains("line 2") && err.contains("sed") && err.contains("fix:"), "{err}");
}

#[test]
fn a_dry_run_prints_a_plan_that_runs_dry_too() {
    let out = plimsoll("object put --endpoint http://h --bucket b --dry-run").code(0).get_output().clone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.toml");
    std::fs::write(&path, &out.stdout).unwrap();
    let again = plimsoll(&format!("run {} --dry-run", path.display())).code(0).get_output().clone();
    assert_eq!(String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&out.stdout));
}
