"""Embedded disks and bounded clients: they hold their limits, and nothing of them is left, however a run ends."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import BIN, end, once_more, start_target, wait_until
from test_campaign import campaign

GROUPS = Path("/sys/fs/cgroup")
# They lie on this machine's disk, whose stalls nobody counts: what fails is tried again, the same.
ON_A_DISK = pytest.mark.flaky(reruns=1, condition=once_more)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and FUSE to mount disks"
)


def mounted(below):
    with open("/proc/self/mountinfo") as f:
        return [line.split()[4] for line in f if str(below) in line.split()[4]]


def groups_of(run):
    return [p for p in GROUPS.glob(f"**/plimsoll-{run}.*") if p.is_dir()]


def things(journal, kind):
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for line in lines if line.get("thing") == kind]


PLAN = """version = 1
[options.client]
memory = "96MiB"
cores = 1.5
[targets.files]
kind = "files"
directory = "embedded"
file_size = "8MiB"
embedded = {{ tier = "azure-premium-256", size = "64MiB" }}
[[stage]]
[[stage.workload]]
name = "read"
mix = {{ read = 1 }}
size = "4KiB"
concurrency = 4
jobs = 1
keys = "uniform"
stop = {{ duration = "{0}" }}
"""


@ON_A_DISK
@pytest.mark.measures
def test_a_disk_and_a_bounded_client_of_a_run(plimsoll, runs, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format("4s"))
    r = plimsoll("run", plan, "--json", timeout=120)
    environment = r.summary["environment"]
    assert environment["memory_limit_bytes"] == 96 << 20 and environment["cpu_quota_cores"] == 1.5, environment
    w = r.workload("read")
    # 1,100 IOPS, of which a tenth of a second's may come at once.
    assert 0.9 * 1100 < w["ops_per_s"]["value"] < 1.05 * 1100, w
    run = r.summary["id"]
    assert json.loads((runs / run / "env.json").read_text())["environment"]["notes"]["client"].startswith("96.0 MiB of memory")
    journal = runs / run / "journal"
    trees = [Path(t["path"]) for t in things(journal, "tree")]
    assert len(trees) == 1 and not trees[0].exists() and not mounted(trees[0])
    assert len(things(journal, "group")) == 2 and not groups_of(run)


@pytest.mark.parametrize("whom", ["the run", "the run and its disk"])
def test_killed_it_is_cleaned_up(plimsoll, background, runs, tmp_path, whom):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format("60s"))
    process = background("run", plan)
    wait_until(lambda: runs.exists() and any(things(j, "group") for j in runs.glob("*/journal")), 60)
    journal = next(runs.glob("*/journal"))
    run = journal.parent.name
    wait_until(lambda: len(groups_of(run)) == 2, 30)
    tree, server = things(journal, "tree")[0]["path"], things(journal, "process")[0]["pid"]
    assert len(mounted(tree)) == 1
    if "disk" in whom:
        os.kill(server, signal.SIGSTOP)
    process.kill()
    # Before the run is waited for: one that is killed in the middle of its I/O ends when that does.
    if "disk" in whom:
        os.kill(server, signal.SIGKILL)
    process.wait()
    # Left alone, a disk takes itself down; one that was killed stays until it is cleaned up.
    wait_until(lambda: not Path(f"/proc/{server}/stat").exists() or " Z " in Path(f"/proc/{server}/stat").read_text(), 30)
    assert bool(mounted(tree)) == ("disk" in whom)
    assert groups_of(run)
    r = plimsoll("cleanup", run, timeout=120)
    assert r.code == 0, (r.out, r.err)
    assert not mounted(tree) and not Path(tree).exists() and not groups_of(run)


def test_a_disk_of_its_own_is_taken_down(tmp_path):
    env = {"TMPDIR": str(tmp_path)}
    flags = ["disk", "--tier", "gce-standard-20", "--credit", "10s", "--size", "64MiB"]
    process, facts = start_target(*flags, env=env)
    place = Path(facts["path"])
    (place / "file").write_bytes(os.urandom(1 << 20))
    end(process)
    assert not mounted(tmp_path) and not list(tmp_path.glob("plimsoll-disk-*"))
    # One that was killed goes when the next is made.
    process, facts = start_target(*flags, env=env)
    process.kill()
    process.wait()
    assert mounted(tmp_path)
    process, facts = start_target(*flags, env=env)
    assert len(mounted(tmp_path)) == 1 and Path(facts["path"]).is_dir()
    end(process)
    assert not mounted(tmp_path) and not list(tmp_path.glob("plimsoll-disk-*"))


def test_without_root_it_is_refused(tmp_path):
    open_dir = Path(f"/var/tmp/plimsoll-e2e-{os.getpid()}")
    open_dir.mkdir(mode=0o777)
    open_dir.chmod(0o777)
    try:
        def as_nobody(*args):
            enter = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(binary), *map(str, args)]
            env = {"PATH": os.environ["PATH"], "PLIMSOLL_RUNS": str(open_dir / "runs"), "TMPDIR": str(open_dir), "HOME": str(open_dir)}
            done = subprocess.run(enter, env=env, capture_output=True, text=True, timeout=60)
            return done.returncode, done.stderr

        # Directories above the build may be closed to others.
        binary = open_dir / "plimsoll"
        os.link(BIN, binary) if os.stat(BIN).st_dev == os.stat(open_dir).st_dev else binary.write_bytes(BIN.read_bytes())
        binary.chmod(0o755)
        code, err = as_nobody("file", open_dir, "--memory", "128MiB", "--size", "1MiB", "--threads", "1", "--iops-duration", "1s")
        assert code == 2 and "128 MiB of memory" in err and "as root" in err, err
        code, err = as_nobody("target", "disk", "--tier", "azure-premium-256", "--size", "64MiB")
        assert code == 2 and "takes root" in err, err
        assert [p.name for p in open_dir.iterdir() if p.name not in ("plimsoll", "runs")] == []
        assert not list((open_dir / "runs").glob("2*"))
    finally:
        subprocess.run(["rm", "-rf", str(open_dir)], check=True)


CREDIT = """target = { kind = "files", directory = "embedded", file_size = "16MiB", embedded = { tier = "gce-standard-20", scale = 4, credit = "4600ms", size = "64MiB" } }
client = { memory = "96MiB" }"""
ROUNDS = '[[workload]]\nname = "2 threads"\nfile = { threads = 2, iops_duration = "1s", cycles = 8 }\n'
CLIFFS = """[published]
source = "Disks"
figure = [{ subject = "d", workload = "2 threads", op = "iops/total", ops_per_s = "162" }]
cliff = [
  { subject = "d", workload = "2 threads", op = "read", after_run = 4, before = "98MB/s", then = "6MB/s" },
  { subject = "d", workload = "2 threads", op = "iops/total", after_run = 4, before = "300", then = "80" },
]
"""


@ON_A_DISK
@pytest.mark.measures
def test_a_credit_that_runs_out_is_dated_within_round_and_phase(plimsoll, runs, tmp_path):
    file = campaign(tmp_path, {"d": CREDIT}, "repeat = { at_least = 1 }", ROUNDS + CLIFFS)
    result = plimsoll("replicate", file, "--json", timeout=300)
    said = json.loads(result.out)
    drops = {c["line"]: c for c in said["comparisons"] if c["figure"] == "cliff_drop"}
    after = {c["line"]: c for c in said["comparisons"] if c["figure"] == "cliff_after_runs"}
    # Four rounds of about 1.15 s of credit each: the fifth's IOPS phase is the first that ends without. A round from which others take the
    # CPU uses less of it.
    assert after["iops/total"]["our_word"] in ("3", "4", "5"), (after, result.err)
    assert abs(drops["iops/total"]["ours"]["value"] - 0.733) < 0.1, drops
    assert drops["read/read"]["ours"]["value"] > 0.7, drops
    assert any(re.search("fall is inside run|before those phases of run", n) for n in said["notes"]), said["notes"]


@ON_A_DISK
@pytest.mark.measures
def test_a_published_comparison_of_disks_is_repeated_in_small(plimsoll, tmp_path):
    """One subject of the template at its own rates, with less to write and three rounds: promised beside measured, and what a month costs."""
    text = plimsoll("campaign", "new", "disks", "--embedded", check=True).out
    small = [("cycles = 10", "cycles = 3"), ("1GiB", "64MiB"), ("5s", "1s"), ("1280MiB", "128MiB"), ("512MiB", "96MiB")]
    small += [("scale = 4", "scale = 1"), ("4400/s", "1100/s")]
    for old, new in small:
        assert old in text
        text = text.replace(old, new)
    head, *blocks = re.split(r"(?m)^(?=\[\[(?:subject|workload)\]\]|\[published\])", text)
    names = ("azure 256GiB", "ten runs")
    kept = [b for b in blocks if b.startswith("[published]") or re.search(r'(?m)^name = "(.*)"', b)[1] in names]
    file = tmp_path / "disks.toml"
    file.write_text(head + "".join(kept))
    shown = plimsoll("replicate", file, "--dry-run", check=True).out
    # 67.1 MB written at 106 MB/s and read at 90, and a second: three times.
    assert "azure 256GiB no cache, ten runs  (a run: 7 s at least)" in shown, shown
    result = plimsoll("replicate", file, "--json", timeout=200)
    said = json.loads(result.out)["comparisons"]
    of = {(c["figure"], c["subject"], c["line"]): c for c in said}
    share = of["share_of_cap", "azure 256GiB no cache", "iops/total"]
    # A tenth of a second's may come at once, and of 16,384 pages those that were read before are in the cache.
    assert 0.9 < share["ours"]["value"] < 1.3 and share["verdict"] != "inconclusive", (share, result.err)
    month = of["month_at_rate", "azure 256GiB no cache", "iops/total"]
    assert "142.56 USD (printed: 1,425.60)" in month["published_word"], month
    assert abs(month["ours"]["value"] / (142.56 * share["ours"]["value"]) - 1) < 1e-6, month
