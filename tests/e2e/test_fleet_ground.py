"""Devices and files of several agents: what two of them share is found before anything is written."""

import errno
import os
import subprocess
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from conftest import wait_until
from test_fleet import fleet, measured, over  # noqa: F401

BLOCK = ["--bs", "4KiB", "--pattern", "randwrite", "--runtime", "2s", "--json"]


@pytest.fixture
def loop_device(tmp_path):
    """A loop device over an image of 64 MiB."""
    image = tmp_path / "image"
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield device
    subprocess.run(["umount", device], capture_output=True)
    subprocess.run(["losetup", "--detach", device], check=False)


def content(device):
    with open(device, "rb") as f:
        return f.read(64 << 20).count(0)


def test_one_device_on_two_agents_is_refused_by_name(fleet, over, loop_device):  # noqa: F811
    for name in ("a", "b"):
        fleet(name, "--allow-device", loop_device)
    untouched = content(loop_device)
    r = over("block", loop_device, *BLOCK, "--destroy-data", loop_device)
    assert r.code == 2 and f"agents a and b have the same device ({loop_device}:" in r.err and "--agents" in r.err, r.err
    assert content(loop_device) == untouched, "nothing was written"
    # One of them may have it.
    measured(over("block", loop_device, *BLOCK, "--destroy-data", loop_device, "--agents", "1"))
    assert content(loop_device) < untouched


def test_one_image_on_two_agents_is_refused_by_name(fleet, over, tmp_path):  # noqa: F811
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a", "b"):
        fleet(name, "--allow-dir", str(files))
    r = over("block", str(files / "x.img"), "--size", "16MiB", *BLOCK)
    assert r.code == 2 and "agents a and b have the same file" in r.err, r.err
    assert not list(files.iterdir())


def test_on_a_shared_directory_each_has_one_of_its_own(fleet, over, tmp_path):  # noqa: F811
    files = tmp_path / "files"
    files.mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'version = 1\n[targets.t]\nkind = "files"\ndirectory = "{files}"\nfile_size = "4MiB"\nbuffered = true\n[[stage]]\n'
        'warmup = "0s"\n[[stage.workload]]\nname = "w"\nmix = { read = 1, write = 1 }\njobs = 3\nstop = { duration = "3s" }\n'
    )
    agents = [fleet(name, "--allow-dir", str(files)) for name in ("a", "b")]
    seen = set()

    def look():
        seen.update(str(p.relative_to(files)) for p in files.rglob("*") if p.is_file())

    ended = Event()

    def watch():
        while not ended.wait(0.02):
            look()

    watcher = Thread(target=watch)
    watcher.start()
    r = over("run", str(plan), "--json")
    ended.set()
    watcher.join()
    assert r.code in (0, 3, 5), r.err
    made = {p for p in seen if "/t." in p}
    # Three jobs over two agents: each file is made once, by the agent whose job it is.
    assert len({p.split("/")[0] for p in made}) == 2 and len(made) == 3, made
    assert {p.split("/")[0] for p in made} == {"plimsoll.a", "plimsoll.b"}, made
    assert not list(files.iterdir()), "all of it is gone again"
    for agent in agents:
        wait_until(lambda: "done with run" in agent.said(), 10, agent.said())


def test_what_an_agent_may_not_read_is_told_by_its_name(fleet, over, tmp_path):  # noqa: F811
    """A right that one agent lacks is found at the barrier, before the others write."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    fleet("a", "--allow-dir", str(mine))
    fleet("b", "--allow-dir", str(theirs))
    r = over("block", str(mine / "x.dat"), "--size", "16MiB", *BLOCK)
    assert r.code == 2 and f"agent b: it does not let {mine / 'x.dat'} be used" in r.err, r.err
    assert not list(mine.iterdir()) and not list(theirs.iterdir())


def test_a_device_that_one_agent_lacks_or_has_mounted_is_refused(fleet, over, loop_device, tmp_path):  # noqa: F811
    fleet("a", "--allow-device", loop_device, "--allow-device", "/dev/plimsoll-none")
    r = over("block", "/dev/plimsoll-none", *BLOCK)
    assert r.code == 2 and "agent a: /dev/plimsoll-none does not exist" in r.err, r.err
    made = subprocess.run(["mkfs.ext4", "-q", loop_device], capture_output=True, text=True)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    if made.returncode or subprocess.run(["mount", loop_device, str(mounted)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    r = over("block", loop_device, *BLOCK, "--destroy-data", loop_device)
    assert r.code == 2 and f"is mounted on {mounted}" in r.err, r.err


def test_a_shared_device_is_written_in_ranges_that_are_apart(fleet, over, loop_device):  # noqa: F811
    for name in ("a", "b"):
        fleet(name, "--allow-device", loop_device)
    # A pass of each over its own half, and no byte of the other's.
    once = ["--bs", "64KiB", "--pattern", "write", "--max-bytes", "64MiB", "--jobs", "2", "--json", "--shared", "--verify"]
    r = measured(over("block", loop_device, *once, "--destroy-data", loop_device))
    assert r.workload("write")["outcomes"] == {"ok": 1024}, r.err
    with open(loop_device, "rb") as f:
        blocks = [f.read(64 << 10) for _ in range(1024)]
    assert all(any(b) for b in blocks), "all of it is written, once: " + str(sum(not any(b) for b in blocks))
    # Only one of the two: its half.
    subprocess.run(["blkdiscard", "-z", loop_device], check=True)
    r = measured(over("block", loop_device, *once[:4], "--max-bytes", "8MiB", *once[6:8], "--shared", "--json",
                      "--destroy-data", loop_device))
    with open(loop_device, "rb") as f:
        halves = [f.read(32 << 20), f.read(32 << 20)]
    for half in halves:
        assert any(half[: 4 << 20]) and not any(half[4 << 20 :]), "each begins at its own begin"


def is_anybodys(device):
    """Whether a file system, a RAID or another program could have the device now: what the kernel gives one at a time."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
        return True
    except OSError as e:
        assert e.errno == errno.EBUSY, e
        return False


def test_a_shared_device_is_held_by_another_agent_when_its_holder_is_killed(fleet, over, loop_device):  # noqa: F811
    agents = {name: fleet(name, "--allow-device", loop_device) for name in ("a", "b", "c")}
    written = Path(f"/sys/block/{os.path.basename(loop_device)}/stat")
    before = written.read_text().split()[4]
    results = []
    load = ["--bs", "4KiB", "--pattern", "randwrite", "--rate", "60/s", "--jobs", "3", "--runtime", "9s", "--warmup", "0s", "--json"]
    run = Thread(target=lambda: results.append(over(
        "block", loop_device, *load, "--shared", "--destroy-data", loop_device, "--deadman", "2s", "--on-agent-loss", "continue")))
    run.start()
    try:
        wait_until(lambda: written.read_text().split()[4] != before or results, 60, "load")
        assert not results and not is_anybodys(loop_device), results
        agents["a"].process.kill()
        agents["a"].process.wait(20)
        # Those who stand by look ten times a second.
        wait_until(lambda: not is_anybodys(loop_device), 10, "another agent's claim")
        # What was written since the look before may have been written just after that one: no sooner is known.
        free, last, last_write = [], "", time.monotonic()
        looked = last_write
        while run.is_alive():
            if is_anybodys(loop_device):
                free.append(time.monotonic())
            at, now = time.monotonic(), written.read_text().split()[4]
            if now != last:
                last, last_write = now, looked
            looked = at
            time.sleep(0.02)
    finally:
        run.join()
    [r] = results
    assert r.code in (0, 3, 5), r.err
    assert all(at > last_write for at in free), f"under load, and anybody's: {[at - last_write for at in free]}"
    assert f"holds {loop_device} from now on, in place of a" in r.err, r.err
    assert {f["agent"] for f in r.summary["findings"] if "agent" in f and f["name"] == "agent_lost"} == {"a"}, r.summary["findings"]
    assert is_anybodys(loop_device), "nobody has it after the run"


def test_a_shared_image_that_is_not_there_is_refused(fleet, over, tmp_path):  # noqa: F811
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a", "b"):
        fleet(name, "--allow-dir", str(files))
    image = files / "x.img"
    r = over("block", str(image), "--size", "16MiB", *BLOCK, "--shared")
    assert r.code == 2 and "it is not there" in r.err and "truncate" in r.err, r.err
    with open(image, "wb") as f:
        f.truncate(16 << 20)
    measured(over("block", str(image), "--size", "16MiB", *BLOCK, "--jobs", "2", "--shared", "--destroy-data", str(image)))
    with open(image, "rb") as f:
        data = f.read()
    assert any(data[: 8 << 20]) and any(data[8 << 20 :])
    image.unlink()


def test_who_only_reads_shared_files_reads_what_the_next_agent_wrote(fleet, over, tmp_path):  # noqa: F811
    files = tmp_path / "files"
    files.mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'version = 1\n[targets.t]\nkind = "files"\ndirectory = "{files}"\nfile_size = "4MiB"\nbuffered = true\n[[stage]]\n'
        'warmup = "0s"\n[[stage.workload]]\nname = "w"\nmix = { read = 1 }\njobs = 2\nstop = { duration = "5s" }\n'
    )
    agents = {name: fleet(name, "--allow-dir", str(files)) for name in ("a", "b")}
    opened = {name: set() for name in agents}
    ended = Event()

    def watch():
        while not ended.wait(0.05):
            for name, agent in agents.items():
                fds = Path(f"/proc/{agent.process.pid}/fd")
                for fd in list(fds.iterdir()):
                    try:
                        to = os.readlink(fd)
                    except OSError:
                        continue
                    if "/t." in to and to.startswith(str(files)):
                        opened[name].add(os.path.relpath(to, files))

    watcher = Thread(target=watch)
    watcher.start()
    r = over("run", str(plan), "--json", "--shared")
    ended.set()
    watcher.join()
    measured(r)
    assert opened["a"] == {"plimsoll.a/t.0.0", "plimsoll.b/t.1.0"}, opened
    assert opened["b"] == {"plimsoll.b/t.1.0", "plimsoll.a/t.0.0"}, opened
    assert not list(files.iterdir())
