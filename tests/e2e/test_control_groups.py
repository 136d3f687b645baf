"""What the kernel's control groups give the client: a CPU quota, or little memory. Version 1, where the kernel has it; version 2 is
tested on recorded trees."""

import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from conftest import BIN, Result, new_bucket

TOP = Path("/sys/fs/cgroup")


@pytest.fixture
def group():
    """Makes a group of a controller, and takes it down when nothing runs in it."""
    made = []

    def call(controller, **limits):
        if os.geteuid() != 0 or not (TOP / controller / "cgroup.procs").exists():
            pytest.skip(f"needs root and the {controller} controller of cgroup v1")
        path = TOP / controller / f"plimsoll-test-{uuid.uuid4().hex[:8]}"
        path.mkdir()
        made.append(path)
        for name, value in limits.items():
            (path / f"{controller}.{name}").write_text(str(value))
        return path

    yield call
    for path in made:
        deadline = time.monotonic() + 10
        while (path / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        path.rmdir()


@pytest.fixture
def inside(runs):
    """Runs the binary inside a group."""

    def call(path, *args, server=None):
        base = server.env() if server else dict(os.environ)
        base |= {"PLIMSOLL_RUNS": str(runs)}
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(path), str(BIN), *map(str, args)]
        done = subprocess.run(enter, env=base, capture_output=True, timeout=120)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


def quota(result):
    found = [f for f in result.summary["findings"] if f["code"] == "V07"]
    assert [f["name"] for f in found] == ["cpu_quota"], result.summary["findings"]
    assert found[0]["level"] == "invalid" and found[0]["measured"] >= 0.5, found
    return found[0]["text"]


def test_a_client_at_a_fiftieth_of_a_core_is_what_was_measured(group, inside, embedded):
    # A server beside other tests on the same cores may answer no more than a tenth of a core asks for (1,160 op/s were seen beside two
    # busy loops on two cores): then the quota stops the client in 5 % of its periods, and is not what was measured. A fiftieth is
    # always what holds it; more in flight keep a server busy that gets its turns late.
    g = group("cpu", cfs_quota_us=2000)
    b = new_bucket(embedded)
    r = inside(g, "object", "get", "--endpoint", embedded.endpoint, "--bucket", b.name, "--size", "4KiB", "--objects", "20",
               "--concurrency", "32", "--warmup", "1s", "--duration", "4s", "--json", server=embedded)
    assert r.code == 3, (r.err, (g / "cpu.stat").read_text(), r.out)
    text = quota(r)
    assert "0.020 cores" in text and "ther processes" not in r.summary["verdict"], r.summary["verdict"]
    assert r.summary["environment"]["cpu_quota_cores"] == 0.02
    shown = inside(g, "runs", "show", "last")
    assert "client's CPU quota" in shown.out and "this machine's processor" not in shown.out, shown.out


def test_a_quota_is_named_for_files_too(group, inside, tmp_path):
    # Little enough to be what stops it beside other tests on the same cores, too.
    g = group("cpu", cfs_quota_us=2000)
    r = inside(g, "block", tmp_path / "b.dat", "--size", "16MiB", "--buffered", "--warmup", "0s", "--runtime", "3s", "--json")
    assert r.code == 3, r.err
    quota(r)


def test_files_are_twice_the_memory_of_the_group(group, inside, tmp_path):
    g = group("memory", limit_in_bytes=300 << 20)
    r = inside(g, "file", tmp_path, "--threads", "2", "--dry-run")
    assert r.code == 0, r.err
    assert 'file_size = "300MiB"' in r.out, r.out
    assert "the memory limit of its control group" in r.err, r.err
