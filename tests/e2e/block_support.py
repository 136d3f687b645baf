"""Devices and files for the block tests: loop devices, a server that fails reads, and what the kernel counted."""

import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
MIB = 1 << 20


def unmount(where, seconds=10):
    """The kernel lets go of a ring's files a moment after its process has gone: until then, the mount is busy. One that
    stays so is detached, so that pytest can remove its directory whatever else happened."""
    deadline = time.monotonic() + seconds
    while True:
        done = subprocess.run(["umount", str(where)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0 or "not mounted" in done.stdout:
            return
        if time.monotonic() > deadline or "busy" not in done.stdout:
            subprocess.run(["umount", "-l", str(where)], check=False)
            return
        time.sleep(0.1)


def sh(*command, check=True):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout.strip()


def fill(path, size):
    """A file of incompressible data, written in full."""
    with open(path, "wb") as f:
        left = size
        while left:
            n = min(left, MIB)
            f.write(os.urandom(n))
            left -= n
        f.flush()
        os.fsync(f.fileno())
    return path


@contextmanager
def loop_device(image, *options):
    device = sh("losetup", "--find", "--show", *options, image)
    try:
        yield device
    finally:
        sh("losetup", "-d", device, check=False)


@contextmanager
def mounted(device, where):
    Path(where).mkdir(exist_ok=True)
    sh("mount", device, where)
    try:
        yield where
    finally:
        unmount(where)


@contextmanager
def failing_file(tmp_path, size, *filters):
    """A file (through FUSE) whose reads or writes fail as nbdkit's filters say."""
    mount = tmp_path / "nbd"
    mount.touch()
    process = subprocess.Popen(
        ["nbdfuse", str(mount), "--command", "nbdkit", "-s", *filters_first(filters), "memory", f"size={size}",
         *filters_last(filters)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 20
        while not (mount.is_file() and mount.stat().st_size == size):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline, "nbdfuse did not come up"
            time.sleep(0.05)
        yield mount
    finally:
        sh("fusermount3", "-u", mount, check=False)
        process.terminate()
        process.wait(10)


@contextmanager
def failing_device(device, size, bad_from, bad_bytes):
    """A device-mapper device whose reads and writes fail in one place (the kernel's `error` target)."""
    name = f"plimsoll-e2e-{os.getpid()}"
    total, first, count = (n // 512 for n in (size, bad_from, bad_bytes))
    table = (f"0 {first} linear {device} 0\n{first} {count} error\n"
             f"{first + count} {total - first - count} linear {device} {first + count}\n")
    done = subprocess.run(["dmsetup", "create", name], input=table, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        pytest.skip(f"no device mapper here: {done.stdout.splitlines()[0] if done.stdout else done.returncode}")
    try:
        yield f"/dev/mapper/{name}"
    finally:
        sh("dmsetup", "remove", "--retry", name, check=False)


def filters_first(filters):
    return [f for f in filters if f.startswith("--")]


def filters_last(filters):
    return [f for f in filters if not f.startswith("--")]


def disk_counters(device):
    """(reads, sectors read, writes, sectors written) of a device since boot."""
    name = Path(device).name
    for line in Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if words[2] == name:
            return int(words[3]), int(words[5]), int(words[7]), int(words[9])
    raise AssertionError(f"{device} is not in /proc/diskstats")


# Findings that come from a busy machine or a short run, not from what is tested. V13: where a busy disk takes tens of
# milliseconds for an op, those that cross an edge of a window of half a second are a tenth of all.
CIRCUMSTANCES = {"V04", "V07", "V13", "V14", "V22", "F60"}


def code_of(summary):
    """The exit code that a run's document asks for: 3 not answered, 5 nothing has a rate, else 0."""
    if not summary["answered"]:
        return 3
    return 5 if all(w["ops_per_s"] is None for w in summary["workloads"]) else 0


def assert_as_kept(plimsoll, r):
    """The exit code is the one of the run that was kept, which is invalid for circumstances at the most."""
    kept = plimsoll("report", "last", "--json").summary
    assert r.code == code_of(kept), (r.code, r.err, kept["verdict"])
    bad = {f["code"] for f in kept["findings"] if f["level"] == "invalid"}
    # An open loop is late where other work has the CPU.
    bad -= CIRCUMSTANCES | {"V05", "V06"}
    assert not bad, [f for f in kept["findings"] if f["code"] in bad]


def assert_drives_ran(plimsoll, r):
    """Of a given amount of work: only a machine that is busy otherwise makes it invalid."""
    kept = plimsoll("report", "last", "--json").summary
    bad = {f["code"] for f in kept["findings"] if f["level"] == "invalid"} - {"V04", "V13", "V14"}
    assert bad <= {"V07", "V22"}, kept["verdict"]
    assert r.code == (3 if bad else 0), (r.code, r.err, kept["verdict"])


def measured(r, *expected):
    """It was measured, and is valid but for circumstances and what is expected."""
    assert r.code == code_of(r.summary), (r.code, r.err, r.summary["verdict"])
    bad = {f["code"] for f in r.summary["findings"] if f["level"] == "invalid"} - CIRCUMSTANCES
    assert bad == set(expected), [f for f in r.summary["findings"] if f["code"] in bad ^ set(expected)]
    return r
