"""Known limits, measured: the kernel's throttle on a loop device, and QEMU's throttle group."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from block_support import MIB, ROOT_ONLY, disk_counters, fill, loop_device
from conftest import BIN, held, once_more, wait_until

BLKIO = Path("/sys/fs/cgroup/blkio")

# A real limiter, on a machine that may stand still for seconds: what fails is tried again, the same, and counted.
pytestmark = [pytest.mark.flaky(reruns=1, condition=once_more), pytest.mark.measures]


@pytest.fixture
def throttled(tmp_path, runs):
    """Runs the binary under a blkio limit on a full loop device."""
    if not (BLKIO / "blkio.throttle.read_iops_device").exists():
        pytest.skip("there is no cgroup v1 blkio controller here")
    group = BLKIO / f"plimsoll-e2e-{os.getpid()}"
    image = fill(tmp_path / "image", 256 * MIB)
    with loop_device(image, "--direct-io=on") as device:
        number = Path(f"/sys/class/block/{Path(device).name}/dev").read_text().strip()
        group.mkdir()
        try:

            def run(limits, *args):
                for name, value in limits.items():
                    (group / f"blkio.throttle.{name}_device").write_text(f"{number} {value}")
                command = [str(BIN), "block", device, *map(str, args), "--json", "--quiet"]
                join = f"echo $$ > {group}/cgroup.procs; exec \"$@\""
                before = disk_counters(device)
                done = subprocess.run(["sh", "-c", join, "sh", *command], stdout=subprocess.PIPE, timeout=120,
                                      env=os.environ | {"PLIMSOLL_RUNS": str(runs)}, check=False)
                after = disk_counters(device)
                (group / "blkio.throttle.read_iops_device").write_text(f"{number} 0")
                (group / "blkio.throttle.read_bps_device").write_text(f"{number} 0")
                return json.loads(done.stdout), [b - a for a, b in zip(before, after)]

            yield run
        finally:
            wait_until(lambda: not (group / "cgroup.procs").read_text(), what="the group to empty")
            group.rmdir()


def within_a_hundredth(throttled, limits, field, limit, *args):
    summary, moved = throttled(limits, *args, "--runtime", "10s", "--warmup", "2s")
    rate = summary["workloads"][0][field]["value"]
    held(rate, limit, 0.01)
    return moved


@ROOT_ONLY
def test_500_reads_a_second(throttled):
    within_a_hundredth(throttled, {"read_iops": 500}, "ops_per_s", 500, "--pattern", "randread", "--iodepth", 8)


@ROOT_ONLY
def test_100_megabytes_a_second(throttled):
    within_a_hundredth(throttled, {"read_bps": 100_000_000}, "bytes_per_s", 100e6,
                       "--pattern", "read", "--bs", "256KiB", "--iodepth", 8)


@pytest.mark.skipif(not shutil.which("qemu-storage-daemon"), reason="qemu-storage-daemon is not installed")
@ROOT_ONLY
def test_qemu_s_throttle_group(plimsoll, tmp_path):
    image = fill(tmp_path / "disk.raw", 256 * MIB)
    export = tmp_path / "fuse.img"
    export.touch()
    limits = {"iops-total": 500, "bps-total": 100 * MIB}
    process = subprocess.Popen([
        "qemu-storage-daemon",
        "--object", json.dumps({"qom-type": "throttle-group", "id": "tg0", "limits": limits}),
        "--blockdev", f"driver=file,filename={image},node-name=file0,aio=threads,cache.direct=on",
        "--blockdev", "driver=raw,node-name=raw0,file=file0",
        "--blockdev", "driver=throttle,node-name=thr0,throttle-group=tg0,file=raw0",
        "--export", f"type=fuse,id=f0,node-name=thr0,mountpoint={export},writable=on",
    ])
    try:
        wait_until(lambda: export.stat().st_size == 256 * MIB, what="the export")
        # The group's bucket lets the first second run ahead.
        r = plimsoll("block", export, "--pattern", "randread", "--iodepth", 8, "--runtime", "10s", "--warmup", "3s",
                     "--json", "--quiet")
        rate = r.workload("read")["ops_per_s"]
        held(rate["value"], 500, 0.01)
        assert "V09" not in r.codes()
    finally:
        process.terminate()
        process.wait(20)
