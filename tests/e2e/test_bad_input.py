"""Bad input is exit code 2, a message with a remedy on stderr, and nothing on stdout."""

import pytest

CASES = {
    "unknown flag": (["object", "put", "--endpont", "http://h"], ["--endpoint"]),
    "bad size": (["object", "put", "--endpoint", "http://h", "--bucket", "b", "--size", "4k"], ["KiB"]),
    "no endpoint": (["object", "put", "--bucket", "b"], ["--endpoint"]),
    "unreachable endpoint": (
        ["object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "b"], ["127.0.0.1:1"]),
    "unknown host": (
        ["object", "put", "--endpoint", "http://no-such-host.invalid", "--bucket", "b"], ["no-such-host.invalid"]),
    "a range that no object has": (
        ["object", "get", "--endpoint", "http://h", "--bucket", "bkt", "--size", "1KiB", "--range", "4KiB"],
        ["4KiB", "1KiB"]),
    "no such profile": (
        ["object", "put", "--endpoint", "http://h", "--bucket", "bkt", "--profile", "nobody"], ["nobody", "--profile"]),
    "not a bucket": (["object", "put", "--endpoint", "http://h", "--bucket", "b/c"], ["--prefix"]),
    "an op that is none": (["object", "mixed", "--endpoint", "http://h", "--bucket", "bkt", "--mix", "get=1,fetch=1"],
                           ["fetch", "get-range"]),
    "a calibration that is too short": (["calibrate", "--duration", "50ms"], ["--duration 500ms"]),
    "no such key file": (
        ["object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "bkt", "--sse-c-key-file", "/nonexistent.key"],
        ["/nonexistent.key", "openssl rand"]),
    "a promise of an op that is not done": (
        ["object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "bkt", "--expect", "get.ops_per_s > 1"],
        ["no get, only put"]),
    "a duration of nothing": (
        ["object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "bkt", "--duration", "0s"], ["must not be 0"]),
    "no such plan": (["run", "/nonexistent.toml"], ["/nonexistent.toml"]),
    "no such run": (["runs", "show", "nothing"], ["nothing"]),
    "no such directory": (["file", "/nonexistent/dir", "--size", "1MiB"], ["/nonexistent/dir"]),
    "no such device": (["block", "/dev/nonexistent"], ["/dev/nonexistent"]),
    "no such job": (["fio", "/nonexistent.fio"], ["/nonexistent.fio"]),
    "no such tier": (["object", "put", "--endpoint", "embedded", "--tier", "gold"], ["gold", "vultr-standard"]),
    "a bucket's name that is none": (
        ["target", "s3", "--listen", "127.0.0.1:0", "--data", "/nonexistent/d", "--bucket", "tb"], ['"tb"', "3 to 63"]),
    "device without consent": (["block", "/dev/loop0", "--pattern", "write"], []),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name, plimsoll):
    args, told = CASES[name]
    result = plimsoll(*args, env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
    assert result.code == 2, (result.code, result.err)
    assert result.out == ""
    assert "panicked" not in result.err
    for text in told:
        assert text in result.err, result.err


def test_wrong_credentials(plimsoll, server):
    wrong = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": "not-the-secret"}
    result = plimsoll("object", "put", "--endpoint", server.endpoint, "--bucket", "b", server=server, env=wrong)
    assert result.code == 2, (result.code, result.err)
    assert "not-the-secret" not in result.err
    assert "credential" in result.err.lower() or "AWS_SECRET_ACCESS_KEY" in result.err, result.err


def test_no_credentials(plimsoll, minio, tmp_path):
    none = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path)}
    result = plimsoll("object", "put", "--endpoint", minio.endpoint, "--bucket", "b", server=minio, env=none)
    assert result.code == 2 and "AWS_ACCESS_KEY_ID" in result.err, result.err


def test_no_such_bucket(plimsoll, server):
    result = plimsoll("object", "put", "--endpoint", server.endpoint, "--bucket", "never-made", server=server)
    assert result.code == 2 and "never-made" in result.err and "--create-bucket" in result.err, result.err


def test_a_plan_with_an_unknown_key(plimsoll, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text("version = 1\nsed = 3\n")
    result = plimsoll("run", plan)
    assert result.code == 2 and "line 2" in result.err and "sed" in result.err


def test_runs_directory_that_cannot_be_made(plimsoll):
    result = plimsoll("run", "plans/sim.toml", env={"PLIMSOLL_RUNS": "/proc/nope"})
    assert result.code == 2 and "/proc/nope" in result.err
