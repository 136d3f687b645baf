"""Limits that are known, of other makes: what is measured is what was set. Short versions; the long ones are in bench/."""

import json
import os
import re
import shutil
import subprocess

import conftest
import pytest
from block_support import loop_device, mounted, sh
from conftest import BIN, held, new_bucket, once_more, start, stolen_since, stop

# A real limiter, on a machine that may stand still for seconds: what fails is tried again, the same, and counted.
pytestmark = [pytest.mark.flaky(reruns=1, condition=once_more), pytest.mark.measures]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def rate(result, op):
    """Ok ops over the window: the count itself, so that a wide interval does not widen the check."""
    w = result.workload(op)
    assert w["ops_per_s"], result.summary["verdict"]
    return w["ops_per_s"]["value"]


def test_nginx_limit_req(plimsoll, embedded):
    # Before a server that does not sync: a slow disk must not be the limit.
    b = new_bucket(embedded)
    limit = start("nginx-limit.sh", embedded.endpoint.removeprefix("http://"), "200", "20", "429")

    def measure():
        # Asked for three times as much as it lets through, at times of our own: eight that ask again at once take the CPU from the server
        # behind it, and what the limiter could not pass on then it does not make good.
        r = plimsoll("object", "put", "--endpoint", limit["endpoint"], "--bucket", b.name, "--size", "1KiB", "--rate", "600",
                     "--concurrency", "8", "--warmup", "1s", "--duration", "8s", "--json", server=embedded)
        assert r.workload("put")["outcomes"]["http_429"] > 100
        assert b.keys() == []
        return rate(r, "put")

    try:
        held(measure(), 200, 0.02)
    finally:
        stop(limit["dir"])


@pytest.mark.parametrize("size,ops", [("4KiB", 40.0), ("1MiB", 30.0)])
def test_a_tier_of_the_embedded_server(plimsoll, size, ops):
    """A twentieth of 800 op/s and 600 MiB/s: small objects meet the first, large ones the second."""
    flags = ["object", "put", "--endpoint", "embedded", "--tier", "vultr-standard", "--scale", "0.05", "--no-sync",
             "--size", size, "--concurrency", "16", "--warmup", "3s", "--duration", "8s", "--json"]
    held(rate(plimsoll(*flags), "put"), ops, 0.04)


def test_the_plan_of_a_tier_meets_its_promise(plimsoll, tmp_path):
    r = plimsoll("object", "put", "--endpoint", "embedded", "--tier", "vultr-standard", "--scale", "0.1", "--no-sync",
                 "--size", "4KiB", "--warmup", "3s", "--duration", "8s", "--expect", "put.ops_per_s >= 400", "--json")
    assert r.summary["expectations"][0]["met"] is False, "800 op/s at a tenth do not reach 400"
    assert r.code in (3, 4)


def block_rate(plimsoll, path, *flags):
    return plimsoll("block", path, "--pattern", "randread", "--no-layout", "--warmup", "2s", "--runtime", "6s",
                    "--json", *flags)


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("qemu-storage-daemon"), reason="needs qemu-storage-daemon")
@pytest.mark.parametrize("limits,flags,ops", [
    ('{"iops-total":200}', ["--bs", "4KiB", "--iodepth", "4"], 200.0),
    ('{"bps-total":20971520}', ["--bs", "1MiB", "--iodepth", "4"], 20.0),
])
def test_qemu_throttle_group(plimsoll, limits, flags, ops):
    disk = start("qsd.sh", limits, "64M")
    try:
        held(rate(block_rate(plimsoll, disk["path"], *flags), "read"), ops, 0.02)
    finally:
        stop(disk["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("qemu-storage-daemon"), reason="needs qemu-storage-daemon")
@pytest.mark.parametrize("op", ["READ", "WRITE"])
def test_a_block_sweep_says_which_cap_binds(plimsoll, op):
    """300 IOPS and 20 MiB/s: below 70 KB operations bind, which one concurrency does not tell from latency."""
    disk = start("qsd.sh", '{"iops-total":300,"bps-total":20971520}', "64M")
    try:
        r = plimsoll("block", "sweep", disk["path"], "--patterns", f"rand{op.lower()}", "--bs", "4KiB,16KiB,256KiB,1MiB",
                     "--iodepth", "8", "--no-layout", f"--destroy-data={disk['path']}", "--warmup", "2s", "--runtime", "5s",
                     env={"COLUMNS": "120"})
        stolen = stolen_since(conftest.BEGAN)
    finally:
        stop(disk["dir"])
    assert r.code in (0, 3, 5), r.err
    lines = [line for line in r.out.splitlines() if line.startswith(("IO type", op))]
    assert len(lines) == 5, r.out
    expected = ["ops or latency"] * 2 + ["bytes"] * 2
    if "Bound by" in lines[0]:
        at = lines[0].index("Bound by")
        bound = [re.split("  +", line[at:])[0] for line in lines[1:]]
        for word, right, line in zip(bound, expected, lines[1:]):
            assert word == right or (word == "" and "INVALID" in line), r.out
    else:
        # The hypervisor took too much from one of the sizes or more: then nothing may be said, and nothing is.
        assert stolen > 0.1 and "INVALID" in r.out, r.out


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("qemu-storage-daemon"), reason="needs qemu-storage-daemon")
def test_a_promise_on_drives_is_held_against_what_they_did(plimsoll, tmp_path):
    """A given amount of work over its time: no interval, and none is needed. At 50 MiB/s, which takes no CPU time to speak of: half
    of it is kept, twice as much is not."""
    disk = start("qsd.sh", '{"bps-total":52428800}', "128M")
    try:
        sh("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", disk["path"])
        with loop_device(disk["path"]) as device, mounted(device, tmp_path / "drive") as drive:
            def of(promise):
                return plimsoll("drive", drive, "-i", 1, "-b", "1MiB", "-f", "64MiB", "--quiet", "--label", "disk=a",
                                "--expect", promise)
            met = of("write.bytes_per_s >= 25MiB/s")
            assert (met.code, "promise      met:" in met.out) == (0, True), (met.code, met.out, met.err)
            missed = of("read.bytes_per_s >= 100MiB/s")
            assert (missed.code, "NOT met:" in missed.out) == (4, True), (missed.code, missed.out, missed.err)
            assert plimsoll("runs", "show", "last", "--json").summary["labels"]["disk"] == "a"
            unknown = of("put.bytes_per_s >= 1MB/s")
            assert unknown.code == 2 and "no put" in unknown.err, unknown.err
    finally:
        stop(disk["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not os.path.isdir("/sys/fs/cgroup/blkio"), reason="needs cgroup v1 blkio")
@pytest.mark.parametrize("limits,flags,ops", [
    (["300", "0", "0", "0"], ["--bs", "4KiB", "--iodepth", "4"], 300.0),
    (["0", "0", "20971520", "0"], ["--bs", "64KiB", "--iodepth", "4"], 320.0),
])
def test_kernel_blkio_throttle(runs, limits, flags, ops):
    disk = start("blkio.sh", *limits, "64M")
    try:
        line = [str(BIN), "block", disk["path"], "--pattern", "randread", "--no-layout", "--warmup", "2s", "--runtime",
                "6s", "--json", "--quiet", "--runs-dir", str(runs), *flags]
        inside = ["sh", "-c", f'echo $$ > {disk["cgroup"]}/cgroup.procs; exec "$@"', "sh", *line]

        def measure():
            done = subprocess.run(inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
            return json.loads(done.stdout)["workloads"][0]["ops_per_s"]["value"]

        # What a stall of this machine costs blkio does not make good: a little less is no fault of anyone's.
        held(measure(), ops, 0.02, less=0.05)
    finally:
        stop(disk["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("tc"), reason="needs iproute2")
def test_tbf_on_a_link(runs):
    net = start("tbf.sh", "100mbit")
    inside = ["ip", "netns", "exec", net["netns"]]
    server = None
    try:
        server = subprocess.Popen([*inside, str(BIN), "target", "canned", "--listen", "127.0.0.1:0", "--body", "1MiB"],
                                  stdout=subprocess.PIPE, text=True)
        endpoint = json.loads(server.stdout.readline())["endpoint"]
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}

        def measure():
            done = subprocess.run(
                [*inside, str(BIN), "object", "get", "--endpoint", endpoint, "--bucket", "b", "--size", "1MiB", "--objects",
                 "2", "--concurrency", "4", "--warmup", "1s", "--duration", "8s", "--json", "--quiet", "--runs-dir", str(runs)],
                env=os.environ | keys, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=90)
            return json.loads(done.stdout)["workloads"][0]["bytes_per_s"]["value"]

        held(measure(), 12_500_000, 0.03)
    finally:
        if server:
            server.terminate()
            server.wait(10)
        stop(net["dir"])


def test_no_limiter_is_found_on_plain_minio(plimsoll, minio_bucket):
    r = plimsoll("object", "put", *minio_bucket.flags(), "--size", "1KiB", "--concurrency", "4", "--warmup", "1s",
                 "--duration", "8s", "--json", server=minio_bucket.server)
    assert not any(limit["binding"] in ("ops", "bytes") for limit in r.summary["limits"]), r.summary["limits"]
