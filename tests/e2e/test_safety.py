"""Every command that writes or removes, among other people's things: before and after, byte by byte.

What is ours is known by its mark on the thing itself. A journal, a name or a place proves nothing: run directories come
from colleagues, too, and are cleaned up by root.
"""

import hashlib
import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from block_support import MIB, ROOT_ONLY, fill, loop_device, measured, mounted, sh, unmount
from conftest import BIN, end, new_bucket, start_target, wait_until

SHORT = ["--json", "--quiet"]
WRITE = ["--pattern", "write", "--size", "1MiB", "--bs", "64KiB", "--runtime", "200ms", "--warmup", "0s", "--buffered", *SHORT]


def facts(path):
    """All that can be told of one thing but the times of access."""
    s = os.lstat(path)
    kind = stat.S_IFMT(s.st_mode)
    told = [oct(s.st_mode), s.st_uid, s.st_gid, s.st_ino, s.st_mtime_ns]
    if kind == stat.S_IFLNK:
        return told + [os.readlink(path)]
    if kind == stat.S_IFREG:
        names = os.listxattr(path)
        told += [s.st_nlink, s.st_size, {n: os.getxattr(path, n) for n in names}]
        return told + [hashlib.sha256(Path(path).read_bytes()).hexdigest()]
    return told


def picture(*tops, times=True):
    """Everything below some directories. `times`: those of directories, too, which tell of things that came and went."""
    all_of = {}
    for top in map(str, tops):
        for root, dirs, files in os.walk(top):
            all_of[root] = facts(root) if times else facts(root)[:3]
            for name in files + [d for d in dirs if os.path.islink(os.path.join(root, d))]:
                all_of[os.path.join(root, name)] = facts(os.path.join(root, name))
    return all_of


def same(before, *tops, times=True):
    after = picture(*tops, times=times)
    changed = {p for p in before if before[p] != after.get(p)}
    assert not changed, {p: (before[p], after.get(p)) for p in changed}
    assert set(after) == set(before), set(after) ^ set(before)


@pytest.fixture
def theirs(tmp_path):
    """A directory full of other people's things, under all the names that ours have, too."""
    outside = tmp_path / "outside"
    outside.mkdir()
    fill(outside / "far", 4096)
    d = tmp_path / "theirs"
    for sub in ["tmp/deep", "buckets/mine/objects", "plimsoll-file", "plimsoll-drive", "data", "sp ace\nnew'line\""]:
        (d / sub).mkdir(parents=True)
        fill(d / sub / "precious", 4096)
    names = ["lock", "disk.raw", "disk.img", "disk.part", "nbd.sock", "plan.toml", "journal", "out.html", "notes",
             "plimsoll-file/bench.0.0", "plimsoll-drive/stream.0.0", "new.plimsoll", ".plimsoll-probe-1", "j.0.0"]
    for name in names:
        fill(d / name, 4096)
    os.setxattr(d / "notes", "user.mine", b"yes")
    (d / "link").symlink_to(outside / "far")
    (d / "dirlink").symlink_to(outside)
    (d / "gone").symlink_to(d / "nowhere")
    os.link(outside / "far", d / "hard")
    os.mkfifo(d / "pipe")
    return d


def refused(r, *words, code=2):
    assert r.code == code, (r.code, r.out[:500], r.err)
    for word in words:
        assert str(word) in r.err, (word, r.err)


# ---- directories of servers


def test_a_server_s_data_directory_is_its_own(plimsoll, theirs, tmp_path):
    before = picture(tmp_path)
    refused(plimsoll("target", "s3", "--listen", "127.0.0.1:0", "--data", theirs), theirs, "not empty")
    refused(plimsoll("target", "block", "--tier", "vultr-hdd", "--size", "8MiB", "--data", theirs), theirs, "not empty")
    same(before, tmp_path)
    for mark in ["plimsoll.s3/1\n", "mine\n", ""]:
        (theirs / ".plimsoll-data").write_text(mark)
        before = picture(tmp_path)
        kind = ["block", "--tier", "vultr-hdd", "--size", "8MiB"]
        refused(plimsoll("target", *kind, "--data", theirs), ".plimsoll-data")
        same(before, tmp_path)
    (theirs / ".plimsoll-data").unlink()
    (theirs / ".plimsoll-data").symlink_to(tmp_path / "outside" / "far")
    before = picture(tmp_path)
    refused(plimsoll("target", "s3", "--listen", "127.0.0.1:0", "--data", theirs), ".plimsoll-data")
    same(before, tmp_path)


@ROOT_ONLY
@pytest.mark.parametrize("kind, name", [("s3", "tmp"), ("block", "disk.raw"), ("block", "disk.part"), ("block", "disk.img"), ("disk", "mnt")])
@pytest.mark.parametrize("way", ["file", "link"])
def test_what_others_put_into_a_server_s_directory_since_survives(plimsoll, tmp_path, kind, name, way):
    data, precious = tmp_path / "data", tmp_path / "precious"
    data.mkdir()
    fill(precious, 8 * MIB)
    (data / ".plimsoll-data").write_text(f"plimsoll.{kind}/1\n")
    if way == "link":
        (data / name).symlink_to(precious)
    else:
        shutil.copy(precious, data / name)
    before = picture(tmp_path, times=False)
    flags = {"s3": ["--listen", "127.0.0.1:0"], "block": ["--tier", "vultr-hdd", "--size", "8MiB"],
             "disk": ["--tier", "vultr-nvme", "--size", "16MiB"]}
    refused(plimsoll("target", kind, *flags[kind], "--data", data), data / name, "was not made by this server", "fix: ")
    same(before, tmp_path, times=False)


def test_a_plan_s_data_directory_is_asked_the_same(plimsoll, theirs, tmp_path):
    plan = tmp_path / "plan.toml"
    r = plimsoll("object", "put", "--endpoint", "embedded", "--max-ops", 5, "--size", "1KiB", "--dry-run")
    assert r.code == 0, r.err
    text = r.out
    assert "embedded" in text
    name = [line for line in text.splitlines() if line.startswith("[targets.")][0].strip("[]")
    plan.write_text(text + f"\n[{name}.embedded]\ndata = \"{theirs}\"\n" if f"[{name}.embedded]" not in text
                    else text.replace(f"[{name}.embedded]", f"[{name}.embedded]\ndata = \"{theirs}\""))
    before = picture(theirs, tmp_path / "outside")
    refused(plimsoll("run", plan, *SHORT), "not empty")
    same(before, theirs, tmp_path / "outside")


def test_a_server_takes_its_directory_again_and_a_second_server_does_not(plimsoll, tmp_path):
    data = tmp_path / "data"
    keys = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "a-secret-of-mine"}
    for _ in range(2):
        process, told = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(data), "--bucket", "bkt", env=keys)
        try:
            assert "a-secret-of-mine" not in json.dumps(told) and "secret_key" not in told, told
            refused(plimsoll("target", "s3", "--listen", "127.0.0.1:0", "--data", data), "in use by another server")
        finally:
            end(process)
    clean = {k: "" for k in keys}
    process, told = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(data), env=clean)
    end(process)
    assert told["access_key"] and told["secret_key"], "keys that were made are told"


# ---- files


def test_no_file_of_theirs_is_written(plimsoll, theirs, tmp_path):
    before = picture(theirs, tmp_path / "outside")
    for name in ["notes", "disk.img", "link", "hard", "dirlink/far"]:
        refused(plimsoll("block", theirs / name, *WRITE), "not created by plimsoll")
    refused(plimsoll("block", theirs / "pipe", *WRITE), "neither a regular file")
    refused(plimsoll("block", theirs / "gone", *WRITE), "is a symbolic link to")
    refused(plimsoll("block", theirs / "data", *WRITE), "is a directory")
    refused(plimsoll("block", theirs / "notes", "--destroy-data=/dev/null", *WRITE), "not created by plimsoll")
    same(before, theirs, tmp_path / "outside")


def test_suites_leave_what_is_theirs(plimsoll, theirs, tmp_path):
    job = tmp_path / "job.fio"
    job.write_text(f"[j]\ndirectory={theirs}\nrw=write\nsize=1m\nbs=64k\n")
    before = picture(theirs)
    refused(plimsoll("file", theirs, "--size", "4MiB", "--threads", 1, *SHORT), "not created by plimsoll")
    refused(plimsoll("fio", job), "not created by plimsoll")
    same(before, theirs)
    r = plimsoll("drive", theirs, "--filesize", "4MiB", "--blocksize", "1MiB", "--ioperdrive", 1)
    assert r.code == 2, (r.code, r.err)
    same(before, theirs)


def test_a_run_beside_their_things_leaves_nothing_and_takes_nothing(plimsoll, theirs, tmp_path):
    before = picture(theirs, tmp_path / "outside", times=False)
    for name in ["plimsoll-file", "plimsoll-drive"]:
        shutil.move(theirs / name, tmp_path / f"moved-{name}")
    before = picture(theirs, tmp_path / "outside", times=False)
    measured(plimsoll("block", theirs / "mine", *WRITE))
    same(before, theirs, tmp_path / "outside", times=False)
    r = plimsoll("file", theirs, "--size", "4MiB", "--threads", 1, "--iops-duration", "500ms")
    assert r.code in (0, 3), (r.code, r.err)
    same(before, theirs, tmp_path / "outside", times=False)


@ROOT_ONLY
def test_a_kept_file_that_became_somebody_s_is_not_overwritten(plimsoll, tmp_path):
    kept = tmp_path / "kept"
    first = measured(plimsoll("block", kept, "--keep", *WRITE)).summary["id"]
    measured(plimsoll("block", kept, "--keep", *WRITE))
    copy, second = tmp_path / "copy", tmp_path / "second"
    sh("cp", "-a", kept, copy)
    os.link(kept, second)
    before = picture(tmp_path / "copy"), facts(kept), facts(copy)
    refused(plimsoll("block", copy, *WRITE), "copy")
    refused(plimsoll("block", kept, *WRITE), "2 names")
    assert before == (picture(tmp_path / "copy"), facts(kept), facts(copy))
    second.unlink()
    sh("mkfs.ext4", "-q", "-F", kept)
    now = facts(kept)
    refused(plimsoll("block", kept, *WRITE), "created by plimsoll", "ext4", "--destroy-data")
    r = plimsoll("cleanup", first, "--kept")
    assert r.code != 0 and "ext4" in r.err, (r.code, r.err)
    assert facts(kept) == now
    # In the place of a file of ours, with its attribute, and often with its number.
    kept.unlink()
    sh("cp", "-a", copy, kept)
    now = facts(kept)
    refused(plimsoll("block", kept, *WRITE), "--destroy-data")
    r = plimsoll("cleanup", first, "--kept")
    assert r.code != 0 and str(kept) in r.err, (r.code, r.err)
    assert facts(kept) == now


@ROOT_ONLY
def test_a_sidecar_is_no_way_to_other_files(plimsoll, theirs, tmp_path):
    where = tmp_path / "ramfs"
    where.mkdir()
    sh("mount", "-t", "ramfs", "none", where)
    try:
        precious = fill(where / "precious", 4096)
        for way in ["link", "file"]:
            sidecar = where / "new.plimsoll"
            sidecar.symlink_to(precious) if way == "link" else shutil.copy(precious, sidecar)
            before = picture(where, times=False)
            refused(plimsoll("block", where / "new", *WRITE), "in the way")
            same(before, where, times=False)
            sidecar.unlink()
        first = measured(plimsoll("block", where / "new", "--keep", *WRITE)).summary["id"]
        assert (where / "new.plimsoll").exists(), "this file system has no attributes"
        measured(plimsoll("block", where / "new", "--keep", *WRITE))
        plimsoll("cleanup", first, "--kept", check=True)
        assert sorted(p.name for p in where.iterdir()) == ["precious"]
    finally:
        unmount(where)


# ---- two runs on one thing


def hold(plimsoll, background, runs, *args):
    process = background(*args)
    wait_until(lambda: "running" in plimsoll("runs", "list").out, what="the first run")
    return process


LONG = ["--runtime", "30s", "--warmup", "0s", "--size", "1MiB", "--bs", "64KiB", "--buffered", *SHORT]


def open_files(pid):
    """What a process has open just now. What it closes meanwhile is none."""
    fds, names = f"/proc/{pid}/fd", []
    for n in os.listdir(fds):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"{fds}/{n}"))
    return names


@pytest.mark.parametrize("first", ["randread", "randwrite"])
@pytest.mark.parametrize("second", ["randread", "randwrite"])
def test_two_runs_on_one_file_are_one_too_many(plimsoll, background, runs, tmp_path, first, second):
    file = tmp_path / "f"
    measured(plimsoll("block", file, "--keep", *WRITE))
    process = hold(plimsoll, background, runs, "block", file, "--keep", "--pattern", first, *LONG)
    wait_until(lambda: str(file) in open_files(process.pid), what="the file is held")
    link = tmp_path / "link"
    link.symlink_to(file)
    refused(plimsoll("block", link, "--keep", "--pattern", second, *LONG), "another run is using it")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


@ROOT_ONLY
def test_two_runs_on_one_device_are_one_too_many(plimsoll, background, runs, tmp_path):
    image = fill(tmp_path / "image", 8 * MIB)
    with loop_device(image) as device:
        read = ["--pattern", "randread", "--bs", "4KiB", "--runtime", "30s", "--warmup", "0s", *SHORT]
        process = hold(plimsoll, background, runs, "block", device, *read)
        wait_until(lambda: plimsoll("block", device, *read, "--max-ops", 1).code == 2, what="the device is held")
        refused(plimsoll("block", device, *read, "--max-ops", 1), "another run is using it")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_two_runs_in_one_directory_are_one_too_many(plimsoll, background, runs, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    suite = ["file", d, "--size", "4MiB", "--threads", 1]
    process = hold(plimsoll, background, runs, *suite, "--iops-duration", "30s")
    wait_until((d / "plimsoll-file" / "bench.0.0").exists, what="its file")
    refused(plimsoll(*suite), "another run is using it")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert list(d.iterdir()) == []


# ---- cleanup of run directories that may be anybody's


def hostile(tmp_path, plimsoll, things, form=2, mark=None):
    """A run directory from a colleague, whose journal says that these things are its own."""
    plimsoll("run", Path(__file__).parents[2] / "plans" / "sim.toml", "--quiet", check=False)
    run = max((tmp_path / "runs").glob("2*"), key=lambda p: p.stat().st_mtime)
    mark = mark or f"{run.name}.{uuid.uuid4().hex}"
    head = {"entry": "header", "format": f"plimsoll.journal/{form}"} | ({"mark": mark} if form > 1 else {})
    lines = [head] + [{"entry": "created", "id": i, **t} for i, t in enumerate(things)]
    (run / "journal").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run, mark


@pytest.mark.parametrize("form", [1, 2])
def test_a_hostile_journal_removes_nothing(plimsoll, theirs, tmp_path, form):
    victim = subprocess.Popen(["sleep", "100"])
    ticks = int(Path(f"/proc/{victim.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    empty = theirs / "empty"
    empty.mkdir()
    things = [
        {"thing": "tree", "path": str(theirs)},
        {"thing": "tree", "path": str(theirs / "data") + "/../data"},
        {"thing": "tree", "path": str(theirs / "dirlink")},
        {"thing": "tree", "path": "/"},
        {"thing": "tree", "path": ""},
        {"thing": "directory", "path": str(empty)},
        {"thing": "file", "path": str(theirs / "notes")},
        {"thing": "file", "path": str(theirs / "link")},
        {"thing": "file", "path": str(theirs / "pipe")},
        {"thing": "file", "path": str(theirs / "sp ace\nnew'line\"" / "precious")},
        {"thing": "process", "pid": victim.pid, "start_ticks": ticks, "boot_id": boot},
    ]
    run, mark = hostile(tmp_path, plimsoll, things, form)
    # Marks that anybody could have left, as far as they can be left without being the owner's own doing.
    (theirs / "notes.plimsoll").write_text(f"plimsoll 2 1 2 3 {mark}\n")
    os.setxattr(theirs / "notes", "user.plimsoll", f"2 1 2 3 {mark}".encode())
    (theirs / "data" / ".plimsoll-made").write_text(f"plimsoll 2 1 2 3 {mark}\n")
    before = picture(theirs, tmp_path / "outside")
    try:
        r = plimsoll("cleanup", run)
        assert r.code != 0, r.err
        for name in [str(theirs), "notes", "pipe", "empty", f"process {victim.pid}"]:
            assert name in r.err, (name, r.err)
        same(before, theirs, tmp_path / "outside")
        assert victim.poll() is None
        r = plimsoll("cleanup", run, "--kept")
        same(before, theirs, tmp_path / "outside")
        assert plimsoll("runs", "rm", run).code == 2 and (run / "journal").exists()
        plimsoll("run", "--resume", run)
        same(before, theirs, tmp_path / "outside")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_files_of_a_hostile_run_directory_are_not_written_through_links(plimsoll, theirs, tmp_path):
    run, _ = hostile(tmp_path, plimsoll, [])
    names = ["journal", "plan.new", "env.new", "analysis.new", "summary.new", "seal.new"]
    for name in names:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(theirs / "notes")
    before = picture(theirs)
    for args in (["analyze"], ["runs", "show"], ["report"], ["cleanup"], ["run", "--resume"]):
        plimsoll(*args, run)
        same(before, theirs)
    stream = next((run / "intervals").glob("*.zst"))
    real = tmp_path / "stream"
    shutil.move(stream, real)
    stream.symlink_to(real)
    (run / "seal.json").unlink(missing_ok=True)
    (run / "journal").unlink(missing_ok=True)
    before = facts(real)
    plimsoll("run", "--resume", run)
    assert facts(real) == before


def test_runs_rm_removes_a_run_or_nothing(plimsoll, theirs, tmp_path, runs):
    run, _ = hostile(tmp_path, plimsoll, [])
    before = picture(runs)
    refused(plimsoll("runs", "rm", ""), "name of the run is empty")
    same(before, runs)
    longer = runs / f"{run.name}-2"
    shutil.copytree(run, longer)
    (longer / "mine.txt").write_text("mine")
    before = picture(runs)
    refused(plimsoll("runs", "rm", longer.name), "mine.txt")
    refused(plimsoll("runs", "rm", run.name[:-1]), "2 runs begin with")
    (longer / "mine.txt").unlink()
    shutil.rmtree(longer / "samples", ignore_errors=True)
    (longer / "samples").symlink_to(theirs)
    fill(theirs / "theirs.zst", 100)
    before = picture(theirs, longer)
    refused(plimsoll("runs", "rm", longer), "samples")
    same(before, theirs, longer)
    (run / "plan.new").write_text("half")
    plimsoll("runs", "rm", run.name, check=True)
    assert not run.exists() and longer.exists()


@ROOT_ONLY
def test_what_is_mounted_in_a_tree_of_ours_stays(plimsoll, background, theirs, tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    env = {"TMPDIR": str(temp)}
    process = background("object", "put", "--endpoint", "embedded", "--size", "1KiB", "--duration", "60s", *SHORT, env=env)
    wait_until(lambda: list(temp.glob("plimsoll-*/data/buckets")), what="the server's data")
    tree = next(temp.glob("plimsoll-*"))
    process.kill()
    process.wait()
    (tree / "mnt").mkdir()
    sh("mount", "--bind", theirs, tree / "mnt")
    try:
        before = picture(theirs, tmp_path / "outside")
        r = plimsoll("cleanup", "last", env=env)
        assert r.code != 0 and "a file system is mounted on" in r.err, r.err
        same(before, theirs, tmp_path / "outside")
        assert (tree / "data" / "buckets").exists(), "nothing of it went"
    finally:
        unmount(tree / "mnt")
    plimsoll("cleanup", "last", env=env, check=True)
    assert not tree.exists() and list(temp.iterdir()) == []


@ROOT_ONLY
def test_a_mark_that_anybody_could_have_left_is_none(plimsoll, background, tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    env = {"TMPDIR": str(temp)}
    process = background("object", "put", "--endpoint", "embedded", "--size", "1KiB", "--duration", "60s", *SHORT, env=env)
    wait_until(lambda: list(temp.glob("plimsoll-*/data/buckets")), what="the server's data")
    tree = next(temp.glob("plimsoll-*"))
    process.kill()
    process.wait()
    mark, moved = tree / ".plimsoll-made", temp / "moved"

    def stays(*words):
        before = picture(temp)
        r = plimsoll("cleanup", "last", env=env)
        assert r.code != 0 and str(tree) in r.err and all(w in r.err for w in words), (r.code, r.err)
        same(before, temp)

    os.chown(mark, 65534, 65534)
    stays("not made by its owner")
    os.chown(mark, 0, 0)
    os.link(mark, temp / "second")
    stays("not made by its owner")
    (temp / "second").unlink()
    tree.rename(moved)
    sh("cp", "-a", moved, tree)
    stays("names another directory")
    shutil.rmtree(tree)
    tree.symlink_to(moved)
    stays()
    tree.unlink()
    moved.rename(tree)
    plimsoll("cleanup", "last", env=env, check=True)
    assert list(temp.iterdir()) == []


# ---- killed


KILLED = {
    "block": ["block", "{d}/new", "--pattern", "randwrite", "--verify", *LONG],
    "file": ["file", "{d}", "--size", "4MiB", "--threads", "2", "--iops-duration", "30s"],
    "drive": ["drive", "{d}", "--filesize", "64MiB", "--blocksize", "64KiB", "--ioperdrive", "2"],
    "embedded": ["object", "mixed", "--endpoint", "embedded", "--size", "1KiB", "--duration", "30s", *SHORT],
}


@pytest.mark.parametrize("what", KILLED)
def test_a_killed_run_leaves_nothing_that_cleanup_does_not_name_and_remove(plimsoll, background, tmp_path, runs, what):
    d, temp = tmp_path / "d", tmp_path / "temp"
    d.mkdir()
    temp.mkdir()
    fill(d / "precious", 4096)
    before = picture(d, temp, times=False)
    env = {"TMPDIR": str(temp)}
    for wait in (0.3, 1.0):
        process = background(*[a.format(d=d) for a in KILLED[what]], env=env)
        wait_until(lambda: "running" in plimsoll("runs", "list").out or process.poll() is not None, what="the run")
        time.sleep(wait)
        process.kill()
        process.communicate()
        listed = plimsoll("cleanup", "last", "--dry-run", env=env)
        left = [p for p in picture(d, temp, times=False) if p not in before]
        named = [line for line in listed.out.splitlines() if line]
        for path in left:
            assert any(path == n or path.startswith(n + "/") or path.startswith(n) for n in named), (path, named)
        r = plimsoll("cleanup", "last", env=env)
        assert r.code == 0, (r.code, r.err)
        same(before, d, temp, times=False)
        assert not (runs / ".written").exists() or list((runs / ".written").iterdir()) == []


def test_what_is_not_a_run_leaves_nothing_in_the_temporary_directory(plimsoll, background, tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    env = {"TMPDIR": str(temp), "XDG_STATE_HOME": str(tmp_path / "state")}
    process = background("calibrate", "--duration", "5s", env=env)
    wait_until(lambda: "running" in plimsoll("runs", "list").out, what="the first measurement")
    process.kill()
    process.communicate()
    assert list(temp.iterdir()) == []
    assert "calibrate" in plimsoll("runs", "list").out, "what is left has a name"
    plimsoll("runs", "rm", "last", check=True)


@ROOT_ONLY
def test_a_killed_disk_takes_its_daemon_and_its_mount_along(tmp_path):
    data = tmp_path / "disk"
    process, told = start_target("block", "--tier", "vultr-hdd", "--size", "8MiB", "--data", str(data))
    daemon = Path("/proc") / str(told["pid"])
    assert daemon.exists() and told["path"] in Path("/proc/mounts").read_text()
    process.kill()
    process.wait()
    wait_until(lambda: not daemon.exists(), what="the end of the daemon")
    assert told["path"] not in Path("/proc/mounts").read_text()


@ROOT_ONLY
def test_what_a_killed_disk_left_goes_when_the_next_is_made(tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    env = {"TMPDIR": str(temp)}
    # Somebody's own, under such a name.
    theirs = temp / "plimsoll-block-0123456789abcdef"
    (theirs / "disk").mkdir(parents=True)
    (theirs / "disk" / "disk.raw").write_bytes(b"precious")
    first, told = start_target("block", "--tier", "vultr-hdd", "--size", "8MiB", env=env)
    running, _ = start_target("block", "--tier", "vultr-hdd", "--size", "8MiB", env=env)
    used = Path(told["path"]).parents[1]
    assert used.parent == temp and len(list(temp.iterdir())) == 3, "one that runs is not taken for one that was left"
    first.kill()
    first.wait()
    wait_until(lambda: told["path"] not in Path("/proc/mounts").read_text(), what="the end of the mount")
    assert used.exists()
    third, _ = start_target("block", "--tier", "vultr-hdd", "--size", "8MiB", env=env)
    assert not used.exists() and len(list(temp.iterdir())) == 3
    end(running)
    end(third)
    assert list(temp.iterdir()) == [theirs] and (theirs / "disk" / "disk.raw").read_bytes() == b"precious"


@ROOT_ONLY
def test_a_volume_of_a_run_has_its_tier_s_limits_and_goes_with_it(plimsoll, background, tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    volume = ("block", "embedded", "--tier", "vultr-hdd", "--scale", "0.4", "--burst-scale", "0.05", "--size", "16MiB")
    load = ("--pattern", "randrw", "--bs", "4KiB", "--iodepth", "4", "--jobs", "4")
    env = {"TMPDIR": str(temp)}
    done = plimsoll(*volume, *load, "--warmup", "4s", "--runtime", "3s", "--json", env=env, check=True)
    result = json.loads(done.out)
    total = next(w for w in result["workloads"] if w["op"] == "total")
    # 3 s of burst at 300 are over by then.
    assert 190 < total["ops_per_s"]["value"] < 212, total["ops_per_s"]
    assert '"iops-total":200' in result["environment"]["notes"]["limits of device"]
    assert result["environment"]["devices"]["embedded"]["file_system"].startswith("fuse")
    assert list(temp.iterdir()) == [] and str(temp) not in Path("/proc/mounts").read_text()
    for more, said in [
        (("--tier", "vultr-standard", "--size", "16MiB"), "object tier"),
        (("--tier", "vultr-hdd", "--size", "100KB"), "multiple of 4,096"),
        (("--tier", "vultr-hdd", "--buffered"), "direct I/O only"),
        (("--scale", "0.5"), "a tier or a file of limits"),
    ]:
        refused(plimsoll("block", "embedded", *more, env=env), said)
    refused(plimsoll("block", tmp_path / "x", "--size", "16MiB", "--tier", "vultr-hdd", env=env), "Write `embedded`")
    assert list(temp.iterdir()) == []

    process = background(*volume, *load, "--runtime", "60s", env=env)
    wait_until(lambda: str(temp) in Path("/proc/mounts").read_text(), what="the mount of the volume")
    process.kill()
    process.wait()
    wait_until(lambda: str(temp) not in Path("/proc/mounts").read_text(), what="the end of the mount")
    plimsoll("cleanup", "last", env=env, check=True)
    assert list(temp.iterdir()) == []


def test_the_embedded_server_speaks_https_to_its_own_run(plimsoll, tmp_path):
    temp = tmp_path / "temp"
    temp.mkdir()
    object_ = ("object", "get", "--endpoint", "embedded", "--size", "64KiB", "--objects", "8", "--max-ops", "50", "--warmup", "0s", "--tls")
    for more in ((), ("--data", tmp_path / "data")):
        # Too few ops for a rate: what they are is known all the same.
        done = plimsoll(*object_, *more, "--json", env={"TMPDIR": str(temp)})
        outcomes = json.loads(done.out)["workloads"][0]["outcomes"]
        assert outcomes["ok"] == 50, outcomes
        # Nobody trusts it by leaving the check out.
        assert "certificate_unchecked" not in done.out and list(temp.iterdir()) == []
    refused(plimsoll(*object_[:2], "--endpoint", "http://127.0.0.1:9", "--bucket", "b", "--tls"), "--tls")


# ---- files that a user names for a result


@pytest.fixture
def some_run(plimsoll, runs):
    plimsoll("run", Path(__file__).parents[2] / "plans" / "sim.toml", "--quiet")
    return next(p for p in runs.glob("2*"))


def test_a_report_goes_to_a_file_and_nowhere_else(plimsoll, some_run, theirs, tmp_path):
    before = picture(theirs, some_run)
    for flag in (["-o"], ["--html"]):
        refused(plimsoll("report", some_run, *flag, theirs / "data"), "directory")
        refused(plimsoll("report", some_run, *flag, theirs / "no" / "such.html"), "no")
        for own in ("plan.toml", "journal", "summary.json", f"intervals/{next((some_run / 'intervals').iterdir()).name}"):
            refused(plimsoll("report", some_run, *flag, some_run / own), "file of a run")
    same(before, theirs, some_run)
    out = tmp_path / "out.html"
    out.write_text("a letter")
    refused(plimsoll("report", some_run, "-o", out), "not a result that plimsoll wrote")
    out.write_text("")
    for _ in range(2):
        plimsoll("report", some_run, "-o", out, check=True)
        assert "<html" in out.read_text()
    r = plimsoll("report", some_run, "-o", "/dev/stdout", check=True)
    assert "<html" in r.out


@ROOT_ONLY
def test_a_report_does_not_go_to_a_device(plimsoll, some_run, tmp_path):
    image = fill(tmp_path / "image", MIB)
    before = facts(image)
    job = tmp_path / "job.fio"
    job.write_text(f"[j]\nfilename={tmp_path / 'x'}\nrw=write\nsize=1m\nbs=64k\n")
    with loop_device(image) as device:
        refused(plimsoll("report", some_run, "-o", device), "block device")
        for more in ([], ["--status-interval", "1s"]):
            fio = ["fio", job, "--output-format", "json", "--output", device]
            refused(plimsoll(*fio, *more), "block device")
        refused(plimsoll("run", some_run / "plan.toml", "--html", device), "block device")
        process = subprocess.run([BIN, "target", "canned", "--listen", "127.0.0.1:0", "--tls-self-signed", device],
                                 capture_output=True, timeout=20)
        assert process.returncode == 2, process.stderr
    assert facts(image)[6:] == before[6:]


def test_the_scripts_of_servers_end_and_remove_only_what_they_made(theirs):
    (theirs / "x.pid").write_text(str(os.getpid()))
    scripts = Path(__file__).parents[2] / "scripts" / "servers"
    before = picture(theirs)
    for command, env in ((["stop.sh", theirs], {}), (["minio.sh"], {"DIR": str(theirs)})):
        line = ["bash", scripts / command[0], *command[1:]]
        r = subprocess.run(list(map(str, line)), env=os.environ | env, capture_output=True, text=True, timeout=60)
        assert r.returncode == 2 and str(theirs) in r.stderr, (r.returncode, r.stderr)
        same(before, theirs)


# ---- buckets


def things_in(bucket):
    """Every object with its content and facts, and every upload."""
    all_of = {}
    for key in bucket.keys():
        o = bucket.client.get_object(Bucket=bucket.name, Key=key)
        body = hashlib.sha256(o["Body"].read()).hexdigest()
        all_of[key] = (body, o["ETag"], o["LastModified"], o["Metadata"], o["ContentType"])
    return all_of, sorted((u["Key"], u["UploadId"]) for u in bucket.uploads())


@pytest.fixture
def full_bucket(bucket):
    c, name = bucket.client, bucket.name
    for key in ["a", "data/README.md", "plimsoll/other/.plimsoll", "plimsoll/x", "z/1", "sp ace/\"q'", "data/.plimsoll"]:
        c.put_object(Bucket=name, Key=key, Body=os.urandom(100), Metadata={"mine": "yes"}, ContentType="text/x-mine")
    c.create_multipart_upload(Bucket=name, Key="data/upload")
    yield bucket
    for u in bucket.uploads():
        c.abort_multipart_upload(Bucket=name, Key=u["Key"], UploadId=u["UploadId"])


def test_runs_leave_a_bucket_as_it_was(plimsoll, full_bucket):
    before = things_in(full_bucket)
    for op in (["put"], ["delete"], ["mixed", "--mix", "get=40,put=30,delete=30"], ["multipart"]):
        size = "5MiB" if op == ["multipart"] else "1KiB"
        r = plimsoll("object", *op, *full_bucket.flags(), "--size", size, "--max-ops", 20, "--warmup", "0s", *SHORT,
                     server=full_bucket.server)
        assert r.code in (0, 3, 5), (r.code, r.err)
        assert things_in(full_bucket) == before


def test_a_hostile_journal_removes_nothing_of_a_bucket(plimsoll, full_bucket, tmp_path, runs):
    b = full_bucket
    r = plimsoll("object", "put", *b.flags(), "--size", "1KiB", "--max-ops", 5, "--warmup", "0s", *SHORT, server=b.server)
    assert r.code in (0, 3, 5), r.err
    run = next(runs.glob("2*"))
    target = [line for line in (run / "plan.toml").read_text().splitlines() if line.startswith("[targets.")][0]
    target = target.removeprefix("[targets.").rstrip("]")
    mark = f"{run.name}.{uuid.uuid4().hex}"
    ours = f"made by plimsoll, run {mark}; all under this prefix goes when the run is cleaned up\n"
    readme = "of theirs\n"
    b.client.put_object(Bucket=b.name, Key="data/README.md", Body=readme)
    upload = b.uploads()[0]
    empty = new_bucket(b.server)
    things = [
        {"thing": "prefix", "prefix": "data/", "marker": "data/README.md", "content": readme},
        {"thing": "prefix", "prefix": "", "marker": "a", "content": ""},
        {"thing": "prefix", "prefix": "plimsoll/", "marker": "plimsoll/other/.plimsoll", "content": ours},
        {"thing": "prefix", "prefix": "z/", "marker": "z/.plimsoll", "content": ours},
        {"thing": "prefix", "prefix": "data/", "marker": "data/.plimsoll", "content": ours},
        {"thing": "upload", "key": upload["Key"], "upload_id": upload["UploadId"]},
        {"thing": "bucket"},
    ]
    before = things_in(b)
    for bucket in (b.name, empty.name):
        head = {"entry": "header", "format": "plimsoll.journal/2", "mark": mark}
        plan = (run / "plan.toml").read_text().replace(b.name, bucket)
        (run / "plan.toml").write_text(plan)
        entries = [{"entry": "created", "id": i, "target": target, "bucket": bucket, **t} for i, t in enumerate(things)]
        (run / "journal").write_text("".join(json.dumps(line) + "\n" for line in [head, *entries]))
        r = plimsoll("cleanup", run, server=b.server)
        assert r.code != 0, r.err
        assert things_in(b) == before
    empty.client.head_bucket(Bucket=empty.name)
    empty.client.delete_bucket(Bucket=empty.name)


def test_a_bucket_of_ours_goes_with_the_run_and_one_with_something_in_it_stays(plimsoll, minio):
    name = f"e2e-{uuid.uuid4().hex[:12]}"
    client = minio.client()
    flags = ["--endpoint", minio.endpoint, "--bucket", name, "--create-bucket"]
    r = plimsoll("object", "put", *flags, "--size", "1KiB", "--max-ops", 5, "--warmup", "0s", *SHORT, server=minio)
    assert r.code in (0, 3, 5), r.err
    assert name not in [b["Name"] for b in client.list_buckets()["Buckets"]]

    kept = f"e2e-{uuid.uuid4().hex[:12]}"
    flags[3] = kept
    r = plimsoll("object", "put", *flags, "--keep", "--size", "1KiB", "--max-ops", 5, "--warmup", "0s", *SHORT, server=minio)
    run = r.summary["id"]
    client.put_object(Bucket=kept, Key="theirs", Body=b"theirs")
    r = plimsoll("cleanup", run, "--kept", server=minio)
    assert r.code != 0 and "other objects" in r.err, (r.code, r.err)
    listed = {o["Key"] for o in client.list_objects_v2(Bucket=kept)["Contents"]}
    assert "theirs" in listed and not any(k.startswith("plimsoll/") for k in listed), listed
    client.delete_object(Bucket=kept, Key="theirs")
    plimsoll("cleanup", run, "--kept", server=minio, check=True)
    assert kept not in [b["Name"] for b in client.list_buckets()["Buckets"]]
