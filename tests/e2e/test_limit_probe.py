"""`plimsoll limits` on limiters that are known: what it finds is what was set, and it names the right cap.

Low rates, so that a loaded machine does not matter: a limiter holds its rate whatever the CPU does, and a stall of less than
its bucket is made good. Longer probes, with full-size tiers, are in METHODOLOGY.md.
"""

import os
import shutil
import subprocess
import json

import pytest
from conftest import BIN, new_bucket, start, stop

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def limit_of(r):
    assert r.code in (0, 3, 5), r.err
    found = r.summary["limits"]
    assert len(found) == 1, r.summary["verdict"]
    return found[0]


def sustained(limit, unit):
    bucket = limit[f"{unit}_per_s"]
    assert bucket and bucket["sustained"], limit
    return bucket["sustained"]["value"]


def names(r):
    return {f["name"] for f in r.summary["findings"]}


def test_a_tier_has_both_limits(plimsoll):
    """A twentieth of 800 op/s and 600 MiB/s, with the default command: neither has a burst that could prove it."""
    r = plimsoll("limits", "object", "--endpoint", "embedded", "--tier", "vultr-standard", "--scale", "0.05",
                 "--no-sync", "--budget", "60s", "--json")
    limit = limit_of(r)
    assert sustained(limit, "ops") == pytest.approx(40, rel=0.03), r.summary["verdict"]
    assert sustained(limit, "bytes") == pytest.approx(30 * 2**20, rel=0.05), r.summary["verdict"]
    assert limit["binding"] == "both", r.summary["verdict"]
    assert limit["knee_bytes"]["value"] == pytest.approx(786_432, rel=0.07)
    assert "limit_cause" in names(r)


def test_nginx_limits_operations(plimsoll, embedded):
    b = new_bucket(embedded)
    limit = start("nginx-limit.sh", embedded.endpoint.removeprefix("http://"), "100", "20", "429")
    try:
        r = plimsoll("limits", "object", "--endpoint", limit["endpoint"], "--bucket", b.name, "--op", "stat", "--budget",
                     "75s", "--json", server=embedded)
        found = limit_of(r)
        assert sustained(found, "ops") == pytest.approx(100, rel=0.03), r.summary["verdict"]
        assert found["binding"] == "ops" and found["bytes_per_s"] is None, r.summary["verdict"]
        # What refusals cost is asked when time is left; where it was, offered twice the rate, nginx still grants the rate.
        assert not any("refusals cost tokens" in f["text"].lower() for f in r.summary["findings"]), r.summary["verdict"]
    finally:
        stop(limit["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("qemu-storage-daemon"), reason="needs qemu-storage-daemon")
def test_the_burst_law_of_qemu(plimsoll):
    """300/s for 4 s leaks at 100/s: 1,200 tokens, which last 6 s. Large I/O meets the same cap."""
    limits = '{"iops-total":100,"iops-total-max":300,"iops-total-max-length":4}'
    disk = start("qsd.sh", limits, "64M")
    try:
        r = plimsoll("limits", "block", disk["path"], "--no-layout", "--budget", "200s", "--json", timeout=300)
        found = limit_of(r)
        assert sustained(found, "ops") == pytest.approx(100, rel=0.03), r.summary["verdict"]
        capacity = found["ops_per_s"]["capacity"]
        assert capacity and capacity["value"] == pytest.approx(1200, rel=0.1), r.summary["verdict"]
        assert found["ops_per_s"]["burst"]["value"] == pytest.approx(300, rel=0.1)
        assert found["binding"] == "ops", r.summary["verdict"]
    finally:
        stop(disk["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not os.path.isdir("/sys/fs/cgroup/blkio"), reason="needs cgroup v1 blkio")
def test_kernel_blkio_has_both_limits(runs):
    disk = start("blkio.sh", "100", "0", "10000000", "0", "64M")
    try:
        line = [str(BIN), "limits", "block", disk["path"], "--no-layout", "--budget", "120s", "--json", "--quiet",
                "--runs-dir", str(runs)]
        inside = ["sh", "-c", f'echo $$ > {disk["cgroup"]}/cgroup.procs; exec "$@"', "sh", *line]
        done = subprocess.run(inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        summary = json.loads(done.stdout)
        limit = summary["limits"][0]
        assert sustained(limit, "ops") == pytest.approx(100, rel=0.03), summary["verdict"]
        assert sustained(limit, "bytes") == pytest.approx(10_000_000, rel=0.05), summary["verdict"]
        assert limit["binding"] == "both", summary["verdict"]
    finally:
        stop(disk["dir"])


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("tc"), reason="needs iproute2")
def test_a_link_limits_bytes(runs):
    net = start("tbf.sh", "50mbit")
    try:
        done = subprocess.run(
            ["ip", "netns", "exec", net["netns"], str(BIN), "limits", "object", "--endpoint", "embedded", "--no-sync",
             "--budget", "80s", "--json", "--quiet", "--runs-dir", str(runs)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=150)
        summary = json.loads(done.stdout)
        limit = summary["limits"][0]
        # Headers are on the link, too, and not in the figure.
        assert sustained(limit, "bytes") == pytest.approx(6_250_000, rel=0.05), summary["verdict"]
        # Socket buffers of 30 connections hold seconds of such a link: whether it is seen to be held takes a longer probe.
        assert limit["binding"] != "ops" and limit["bytes_per_s"]["capacity"] is None, summary["verdict"]
    finally:
        stop(net["dir"])


def test_plain_minio_has_no_limiter(plimsoll, minio_bucket):
    r = plimsoll("limits", "object", *minio_bucket.flags(), "--concurrency", "4", "--budget", "30s", "--json",
                 server=minio_bucket.server)
    assert limit_of(r)["binding"] in ("none", "latency", "undetermined"), r.summary["verdict"]


CHARGED = """name = "shared"
kind = "object"
[[limit]]
unit = "ops"
rate_per_s = 40
charges = ["get", "head"]
"""


def test_which_ops_share_the_limit(plimsoll, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text(CHARGED)
    r = plimsoll("limits", "object", "--endpoint", "embedded", "--limits", str(limits), "--no-sync", "--op", "get",
                 "--budget", "120s", "--probe-shared", "--json", timeout=240)
    limit = limit_of(r)
    seen = {name.removeprefix("shared with "): text.split(":")[0] for name, text in limit["evidence"]
            if name.startswith("shared with ")}
    assert seen.pop("stat") == "same bucket", limit["evidence"]
    # A server that is busy with unlimited deletes may slow the others: undetermined, then, but never shared.
    assert len(seen) == 3 and "same bucket" not in seen.values(), limit["evidence"]
    assert any(f["name"] == "limit_shared" and "stat: on the same bucket" in f["text"] for f in r.summary["findings"])


def test_questions_that_cannot_be_asked_are_refused(plimsoll, tmp_path):
    disk = tmp_path / "disk"
    disk.write_bytes(os.urandom(1 << 20))
    r = plimsoll("limits", "block", str(disk), "--no-layout", "--probe-scope")
    assert r.code == 2 and "block device has one limit" in r.err
    r = plimsoll("limits", "object", "--endpoint", "embedded", "--probe-scope", "--second-bucket", "other")
    assert r.code == 2 and "plimsoll target s3" in r.err
