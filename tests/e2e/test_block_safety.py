"""What is never written to, and what it takes to write to a device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from block_support import MIB, ROOT_ONLY, fill, loop_device, measured, mounted, sh
from conftest import wait_until

pytestmark = ROOT_ONLY
WRITE = ["--pattern", "write", "--max-ops", 16, "--warmup", "0s", "--json", "--quiet"]


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image"
    with open(path, "wb") as f:
        f.truncate(64 * MIB)
    return path


def free_bytes(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize


def refused(r, *words):
    assert r.code == 2, (r.code, r.out, r.err)
    for word in words:
        assert word in r.err, r.err


def test_a_device_is_written_only_when_it_is_named(plimsoll, image):
    with loop_device(image) as device:
        refused(plimsoll("block", device, *WRITE), f"--destroy-data={device}")
        refused(plimsoll("block", device, "--destroy-data=/dev/null", *WRITE), "another device")
        refused(plimsoll("block", device, "--destroy-data=loop", *WRITE), "another device")
        assert image.stat().st_blocks == 0, "nothing was written"
        r = plimsoll("block", device, f"--destroy-data={device}", *WRITE)
        measured(r)
        assert r.workload("write")["outcomes"] == {"ok": 16}


def test_a_by_id_name_is_the_device_s_name(plimsoll, image, tmp_path):
    with loop_device(image) as device:
        link = tmp_path / "by-path"
        link.symlink_to(device)
        r = plimsoll("block", device, f"--destroy-data={link}", *WRITE)
        measured(r)


def test_a_file_system_is_named_in_the_refusal(plimsoll, image):
    with loop_device(image) as device:
        sh("mkfs.ext4", "-q", device)
        refused(plimsoll("block", device, *WRITE), "ext4")


def test_a_mounted_device_is_refused_whatever_is_named(plimsoll, image, tmp_path):
    with loop_device(image) as device:
        sh("mkfs.ext4", "-q", device)
        with mounted(device, tmp_path / "mnt"):
            refused(plimsoll("block", device, f"--destroy-data={device}", *WRITE), "mounted on")


def test_what_is_mounted_by_another_loop_device_on_the_same_file_is_refused(plimsoll, image, tmp_path):
    with loop_device(image) as device, loop_device(image) as other:
        sh("mkfs.ext4", "-q", other)
        with mounted(other, tmp_path / "mnt"):
            refused(plimsoll("block", device, f"--destroy-data={device}", *WRITE), "on the same file", "mounted on")


def test_a_swap_in_use_is_refused(plimsoll, image):
    image.write_bytes(bytes(64 * MIB))
    with loop_device(image) as device:
        sh("mkswap", device)
        if "swapon failed" in sh("swapon", device, check=False):
            pytest.fail("swapon does not work here")
        try:
            refused(plimsoll("block", device, f"--destroy-data={device}", *WRITE), "swap in use")
        finally:
            sh("swapoff", device)


def test_a_device_that_another_holds_is_refused(plimsoll, image):
    hold = "import os,sys,time; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); print('held', flush=True); time.sleep(60)"
    with loop_device(image) as device:
        holder = subprocess.Popen([sys.executable, "-c", hold, device], stdout=subprocess.PIPE, text=True)
        try:
            assert holder.stdout.readline().strip() == "held"
            refused(plimsoll("block", device, f"--destroy-data={device}", *WRITE), "in use by another")
        finally:
            holder.kill()
            holder.wait()


def test_a_disk_with_a_mounted_partition_is_refused(plimsoll, image, tmp_path):
    table = bytearray(512)
    table[446:462] = bytes([0x80, 0, 0, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (65536).to_bytes(4, "little")
    table[510:512] = b"\x55\xaa"
    with open(image, "r+b") as f:
        f.write(table)
    with loop_device(image, "--partscan") as device:
        refused(plimsoll("block", device, *WRITE), "MBR")
        part = f"{device}p1"
        if not Path(part).exists():
            sh("addpart", device, 1, 2048, 65536)
            wait_until(Path(part).exists, what="the partition's node")
        try:
            sh("mkfs.ext4", "-q", part)
            with mounted(part, tmp_path / "mnt"):
                refused(plimsoll("block", device, f"--destroy-data={device}", *WRITE), "its partition")
                refused(plimsoll("block", part, f"--destroy-data={part}", *WRITE), "mounted on")
        finally:
            sh("delpart", device, 1, check=False)


def test_a_partition_of_a_disk_in_use_is_refused(plimsoll, image, tmp_path):
    with loop_device(image, "--partscan") as device:
        sh("mkfs.ext4", "-q", device)
        part = f"{device}p1"
        sh("addpart", device, 1, 65536, 8192)
        wait_until(Path(part).exists, what="the partition's node")
        try:
            with mounted(device, tmp_path / "mnt"):
                refused(plimsoll("block", part, f"--destroy-data={part}", *WRITE), "is part of")
        finally:
            sh("delpart", device, 1, check=False)


def test_a_file_of_somebody_else_is_never_overwritten(plimsoll, tmp_path):
    file = fill(tmp_path / "precious", MIB)
    before = file.read_bytes()
    refused(plimsoll("block", file, *WRITE), "not created by plimsoll", "--destroy-data")
    assert file.read_bytes() == before
    r = plimsoll("block", file, f"--destroy-data={file}", *WRITE)
    measured(r)
    assert file.read_bytes() != before


def test_a_file_behind_a_loop_device_is_refused(plimsoll, image):
    with loop_device(image):
        refused(plimsoll("block", image, f"--destroy-data={image}", *WRITE), "lies behind /dev/loop")


def test_reading_needs_no_leave(plimsoll, tmp_path):
    image = fill(tmp_path / "image", 16 * MIB)
    with loop_device(image) as device:
        r = plimsoll("block", device, "--pattern", "randread", "--max-ops", 64, "--warmup", "0s", "--json", "--quiet")
        measured(r)
        assert r.workload("read")["outcomes"] == {"ok": 64}


def test_a_file_without_room_is_refused_before_it_takes_any(plimsoll, image, tmp_path):
    """A file system of 64 MiB, and a file of 200: told with what is free as it was, and nothing is left there."""
    with loop_device(image) as device:
        sh("mkfs.ext4", "-q", device)
        with mounted(device, tmp_path / "mnt"):
            free = free_bytes(tmp_path / "mnt")
            r = plimsoll("block", tmp_path / "mnt" / "x", "--size", "200MiB", *WRITE)
            refused(r, "200 MiB are needed", "MiB are free")
            assert " 0 B are free" not in r.err
            assert sorted(p.name for p in (tmp_path / "mnt").iterdir()) == ["lost+found"]
            assert free_bytes(tmp_path / "mnt") == free
