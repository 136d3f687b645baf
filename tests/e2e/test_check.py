"""`plimsoll check`: is the storage slower than it was, asked without a trace on it."""

import json
import os
import random
import re
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

import boto3
import pytest
from block_support import MIB, ROOT_ONLY, fill, loop_device, sh
from botocore.client import Config
from conftest import BUSY, CALM, Server, await_calm, cpu_times, end, new_bucket, drop_bucket, shares_since, start_target, wait_until

pytestmark = pytest.mark.measures

# About 100 op/s of a baseline, of which a check may have half: 200 ops in four seconds, enough for a 90th percentile. Four at a time of
# 40 ms each, not by a schedule, from which a machine that is busy with other things may be late.
CLOSED = ["--concurrency", "4", "--warmup", "500ms", "--quiet"]
CHECK = ["--max-load", "50%", "--for", "4s"]
LIMITS = """name = "slow"
kind = "object"
[latency]
base_us = {us}
spread = 0.3
"""


class Wire:
    """Between a client and a server: notes the requests, and holds up or refuses (500) what it is told to."""

    def __init__(self, endpoint):
        self.server = ("127.0.0.1", int(endpoint.rsplit(":", 1)[1]))
        self.requests, self.delay, self.broken = [], 0.0, 0.0
        self.stands_still = threading.Event()
        self.stands_still.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(self.server) as server:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.answer, args=(server, client), daemon=True).start()
            pending = b""
            while data := client.recv(65536):
                pending += data
                while b"\r\n\r\n" in pending:
                    head, pending = pending.split(b"\r\n\r\n", 1)
                    self.requests.append(head.split(b"\r\n")[0].decode())
                    if random.random() < self.broken:
                        client.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
                        continue
                    self.stands_still.wait(60)
                    # Uneven, as storage is: else a median lies between two stalls of this machine.
                    time.sleep(self.delay * random.uniform(0.7, 1.3))
                    server.sendall(head + b"\r\n\r\n")
                if pending and any(r.startswith(("PUT", "POST")) for r in self.requests[-1:]):
                    server.sendall(pending)
                    pending = b""

    @staticmethod
    def answer(server, client):
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            pass


@pytest.fixture
def wire(bucket):
    with Wire(bucket.server.endpoint) as wire:
        yield wire


def put_some(bucket, prefix="data/", n=40, size=4096, **how):
    for i in range(n):
        bucket.client.put_object(Bucket=bucket.name, Key=f"{prefix}{i:04}", Body=os.urandom(size), **how)


def carries(line):
    """Whether times can be held against it, as `check` asks: a machine that is busy with other things may have made them too uneven,
    the 90th percentile before the median."""
    intervals = line["latency_ns"]["response"].get("intervals", {})
    return bool(intervals.get("p50") and (intervals.get("p90") or intervals.get("p99")))


def unless_void(call, *args, **how):
    """What other work on this machine makes void says so (exit code 3), and is made again once it is calmer: nothing follows from it,
    here or anywhere. A machine whose CPU the hypervisor or others take all along has no answer to give; on any other there is one."""
    began = cpu_times()
    for _ in range(5):
        done = call(*args, **how)
        if done.code not in (3, 5) and (args[0] == "check" or carries(done.summary["workloads"][0])):
            return done
        if args[0] == "check":
            assert "UNKNOWN" in done.out, (done.out, done.err)
        await_calm(30)
    stolen, idle = shares_since(began)
    assert stolen > CALM or idle < BUSY, f"void, five times: {done.out[:1000]} ... {done.out[-1000:]}"
    pytest.skip(f"void: {stolen:.0%} of the CPU time was stolen, {idle:.0%} idle, and nothing could be known: {done.out[:200]}")


def baseline(plimsoll, bucket, *flags, endpoint=None, seconds=8):
    """A run that reads what is there."""
    if endpoint is None:
        wire = Wire(bucket.server.endpoint)
        wire.delay, endpoint = 0.04, wire.endpoint
    done = unless_void(
        plimsoll, "object", "get", "--endpoint", endpoint, "--bucket", bucket.name, "--existing", "--prefix", "data/", "--size", "4KiB",
        "--duration", f"{seconds}s", *CLOSED, *flags, "--json", server=bucket.server)
    assert done.code == 0, (done.out[-2000:], done.err)
    return done.summary["id"]


def failed_of(line):
    """`0 of 197 failed`: how many failed, and of how many. Of 200 those count that are of the window."""
    failed, of = (int(n) for n in re.search(r"(\d+) of (\d+) failed", line).groups())
    assert 120 < of <= 200, line
    return failed, of


def words(result):
    lines = result.out.splitlines()
    assert len(lines) == 1, result.out
    return lines[0]


def test_nothing_is_slower_and_the_storage_sees_reads_only(plimsoll, bucket, wire, runs):
    put_some(bucket)
    before = bucket.keys()
    # Slower then than now, by more than a busy machine adds.
    wire.delay = 0.04
    first = baseline(plimsoll, bucket, endpoint=wire.endpoint)
    wire.delay = 0.01
    done = unless_void(plimsoll, "check", "--against", first, *CHECK, server=bucket.server)
    assert done.code == 0, (done.out, done.err)
    line = words(done)
    assert line.startswith("OK       GET 4 KiB of " + wire.endpoint), line
    assert "p50" in line and first in line and failed_of(line)[0] == 0, line
    assert " op/s (50 % of " in line, line
    methods = {r.split()[0] for r in wire.requests}
    assert methods <= {"GET", "HEAD"}, methods
    assert bucket.keys() == before and not bucket.uploads()
    # It is a run like any other, and a check may be held against it.
    checked = max(os.listdir(runs))
    shown = plimsoll("runs", "show", "last", server=bucket.server)
    assert shown.code == 0 and "existing_objects" in shown.out and f"check.against={first}" in shown.out, shown.out
    listed = plimsoll("runs", "list")
    assert "check of GET 4 KiB" in listed.out and "check.max_load" not in listed.out, listed.out
    again = unless_void(plimsoll, "check", "--against", checked, "--for", "3s", "--json", server=bucket.server)
    assert again.code in (0, 4, 5), (again.out, again.err)
    told = again.summary
    assert told["same_load"] and told["max_load"] == 0.5 and 40 < told["offered_per_s"] < 51, told
    assert told["schema"] == "plimsoll.check/1" and os.path.exists(told["summary"]), told
    for t in told["times"]:
        assert t["percentile"] in ("p50", "p90") and t["now_ns"]["low"] <= t["now_ns"]["value"] <= (t["now_ns"]["high"] or 1e18), told
    more = unless_void(plimsoll, "check", "--against", checked, "--max-load", "80%", server=bucket.server)
    assert more.code == 2 and "say nothing of 80 %" in more.err, more.err


def test_slower_storage_is_slower_and_a_failing_one_fails(plimsoll, minio_bucket):
    bucket = minio_bucket
    put_some(bucket)
    with Wire(bucket.server.endpoint) as wire:
        wire.delay = 0.04
        first = baseline(plimsoll, bucket, "--label", "tier=gold", endpoint=wire.endpoint)
        wire.delay = 0.07
        slow = unless_void(plimsoll, "check", "--against", "tier=gold", *CHECK, "--quiet", server=bucket.server)
        assert slow.code == 4 and words(slow).startswith("SLOWER   "), (slow.out, slow.err)
        assert int(re.search(r"p[59]0 (\d+)", slow.out).group(1)) >= 50 and first in slow.out and not slow.err, (slow.out, slow.err)
        wire.delay, wire.broken = 0.04, 0.05
        failing = unless_void(plimsoll, "check", "--against", "tier=gold", *CHECK, "--json", server=bucket.server)
        told = failing.summary
        assert failing.code == 4 and told["verdict"] == "failing" and told["exit_code"] == 4, failing.out
        assert told["failed"] > 0 and " failed (" in told["text"] and sum(told["outcomes"].values()) == told["attempts"], told
        wire.broken = 1.0
        gone = unless_void(plimsoll, "check", "--against", "tier=gold", *CHECK, "--json", server=bucket.server)
        assert gone.code == 4 and gone.summary["verdict"] == "failing" and gone.summary["run"] is None, (gone.out, gone.err)
    # Nothing listens there any more.
    refused = unless_void(plimsoll, "check", "--against", "tier=gold", *CHECK, server=bucket.server)
    assert refused.code == 4 and words(refused).startswith("FAILING  "), (refused.out, refused.err)


def test_a_server_that_became_slow_is_slower(plimsoll, tmp_path):
    """The embedded server, first with answers that take 40 ms, then over the same data with such that take 70."""
    keys = {"AWS_ACCESS_KEY_ID": "first", "AWS_SECRET_ACCESS_KEY": "first-secret-key"}
    data = tmp_path / "data"
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS.format(us=40_000))
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(data), "--limits", str(limits), "--no-sync",
                                  env=keys)
    server = Server("embedded", facts["endpoint"], "first", "first-secret-key", str(data), process.pid, process)
    bucket = new_bucket(server)
    put_some(bucket)
    first = baseline(plimsoll, bucket, endpoint=server.endpoint)
    end(process)
    limits.write_text(LIMITS.format(us=70_000))
    port = server.endpoint.rsplit(":", 1)[1]
    process, _ = start_target("s3", "--listen", f"127.0.0.1:{port}", "--data", str(data), "--limits", str(limits), "--no-sync",
                              env=keys)
    try:
        slow = unless_void(plimsoll, "check", "--against", first, *CHECK, server=server)
        assert slow.code == 4 and words(slow).startswith("SLOWER   "), (slow.out, slow.err)
    finally:
        end(process)


def test_what_cannot_be_checked_is_said(plimsoll, minio_bucket):
    bucket = minio_bucket
    put_some(bucket)
    nothing = plimsoll("check", "--against", "tier=gold", server=bucket.server)
    assert nothing.code == 2 and "No run here has a label" in nothing.err, nothing.err
    first = baseline(plimsoll, bucket, "--label", "tier=gold")
    typo = plimsoll("check", "--against", "tier=glod", server=bucket.server)
    assert typo.code == 2 and "tier=glod" in typo.err and "tier=gold" in typo.err, typo.err
    empty = plimsoll("check", "--against", first, "--prefix", "nothing/", server=bucket.server)
    assert empty.code == 2 and "no object to read under 'nothing/'" in empty.err and "--prefix" in empty.err, empty.err
    bucketless = plimsoll("check", "--against", first, "--bucket", "no-such-bucket-e2e", server=bucket.server)
    assert bucketless.code == 2 and "--bucket" in bucketless.err, bucketless.err
    other = plimsoll("check", "--against", first, "--op", "stat", server=bucket.server)
    assert other.code == 2 and "GET 4 KiB" in other.err, other.err
    path = plimsoll("check", "--against", first, "--path", "/etc/hostname", server=bucket.server)
    assert path.code == 2 and "--bucket and --prefix" in path.err, path.err
    # 1 op/s for three seconds carry no percentile: said at once, with what would do.
    begun = time.monotonic()
    few = plimsoll("check", "--against", first, "--max-load", "1%", "--for", "3s", server=bucket.server)
    assert few.code == 5 and words(few).startswith("UNKNOWN  ") and re.search(r"--for 1\d\ds", few.out), (few.out, few.err)
    assert re.search(r"--max-load [345]\d%", few.out) and time.monotonic() - begun < 3, few.out
    plimsoll("object", "put", *bucket.flags(), "--size", "4KiB", "--duration", "2s", *CLOSED, server=bucket.server)
    puts = plimsoll("check", "--against", "last", server=bucket.server)
    assert puts.code == 2 and "no valid line of reads" in puts.err, puts.err


def test_other_sizes_and_archives_are_said(plimsoll, embedded):
    bucket = new_bucket(embedded)
    put_some(bucket)
    first = baseline(plimsoll, bucket)
    put_some(bucket, "cold/", 5, StorageClass="GLACIER")
    cold = plimsoll("check", "--against", first, "--prefix", "cold/", server=embedded)
    assert cold.code == 2 and "5 of them in an archive class" in cold.err, cold.err
    put_some(bucket, "cold/x", 5, size=64 << 10)
    mixed = plimsoll("check", "--against", first, "--prefix", "cold/", *CHECK, "--json", server=embedded)
    # 64 KiB each: the bytes bind, at a sixteenth of the ops.
    assert mixed.code in (3, 5) and mixed.summary["offered_per_s"] < 7, (mixed.out, mixed.err)
    longer = plimsoll("check", "--against", first, "--prefix", "cold/", "--max-load", "100%", "--for", "20s", "--json", server=embedded)
    told = longer.summary
    assert "of 64KiB: none is of that size" in told["text"].replace("64 KiB", "64KiB"), told["text"]
    summary = json.load(open(told["summary"]))
    found = [f for f in summary["findings"] if f["name"] == "existing_objects"]
    assert found and found[0]["level"] == "qualified" and "5 in an archive class" in found[0]["text"], summary["findings"]
    assert summary["workloads"][0]["size_bytes"] == 64 << 10, summary["workloads"][0]
    drop_bucket(bucket)


def test_keys_that_may_only_list_and_read_will_do(plimsoll, minio_bucket, minio):
    bucket = minio_bucket
    put_some(bucket)
    first = baseline(plimsoll, bucket)
    reads = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::{bucket.name}/data/*"]}
    lists = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [f"arn:aws:s3:::{bucket.name}"],
             "Condition": {"StringLike": {"s3:prefix": ["data/*"]}}}
    sts = boto3.client("sts", endpoint_url=minio.endpoint, aws_access_key_id=minio.access_key,
                       aws_secret_access_key=minio.secret_key, region_name="us-east-1", config=Config(retries={"max_attempts": 2}))

    def keys(*statements):
        policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        made = sts.assume_role(RoleArn="arn:aws:iam::000000000000:role/x", RoleSessionName="check", Policy=policy)["Credentials"]
        return {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
                "AWS_SESSION_TOKEN": made["SessionToken"]}

    done = plimsoll("check", "--against", first, *CHECK, server=minio, env=keys(reads, lists))
    assert done.code in (0, 3, 4, 5) and (done.code == 3 or failed_of(done.out)[0] == 0), (done.out, done.err)
    blind = plimsoll("check", "--against", first, *CHECK, server=minio, env=keys(lists))
    assert blind.code == 2 and "may list" in blind.err and "not read" in blind.err, blind.err
    unlisted = plimsoll("check", "--against", first, *CHECK, server=minio, env=keys(reads))
    assert unlisted.code == 2 and "cannot be listed" in unlisted.err, unlisted.err


def test_a_plan_with_existing_objects_is_a_plan(plimsoll, minio_bucket, tmp_path):
    bucket = minio_bucket
    put_some(bucket)
    flags = ["object", "stat", *bucket.flags(), "--existing", "--prefix", "data/", "--objects", "10", "--duration", "2s", *CLOSED]
    plan = plimsoll(*flags, "--dry-run", server=bucket.server, check=True)
    assert "only listed and read" in plan.out and "at most 10 objects" in plan.out, plan.out
    (tmp_path / "plan.toml").write_text(plan.out)
    done = plimsoll("run", tmp_path / "plan.toml", "--json", server=bucket.server)
    assert done.code in (0, 3) and set(done.workload("stat")["outcomes"]) == {"ok"}, done.out[-1500:]
    assert any("Read were 10 objects" in f["text"] for f in done.summary["findings"]), done.summary["findings"]
    assert done.codes().isdisjoint({"F14"}) and len(bucket.keys()) == 40
    wrong = plimsoll("object", "copy", *bucket.flags(), "--existing", server=bucket.server)
    assert wrong.code == 2 and "copy does not leave existing objects" in wrong.err, wrong.err


def test_killed_in_the_middle_nothing_is_left(plimsoll, background, minio_bucket, runs):
    bucket = minio_bucket
    put_some(bucket)
    before = bucket.keys()
    first = baseline(plimsoll, bucket)
    for how in (signal.SIGKILL, signal.SIGINT):
        known = set(os.listdir(runs))
        process = background("check", "--against", first, "--max-load", "50%", "--for", "60s", server=bucket.server)
        wait_until(lambda: set(os.listdir(runs)) - known, what="a run")
        time.sleep(4)
        process.send_signal(how)
        out, err = process.communicate(timeout=30)
        assert process.returncode == (130 if how == signal.SIGINT else -9), (out, err)
        made = (set(os.listdir(runs)) - known).pop()
        left = plimsoll("cleanup", made, server=bucket.server)
        assert left.code == 0 and "left nothing behind" in left.err, (left.out, left.err)
        assert bucket.keys() == before
    assert len(out.splitlines()) == 1, out


def file_baseline(plimsoll, path, *flags):
    """A run that carries an interval of its percentiles. Beside other work reads of memory are slow in bursts, of which eight seconds
    hold too few for one, and a longer run holds some in any case: a time without them is waited for, by short runs."""
    for seconds in [8] * 10 + [32] * 2:
        done = plimsoll(
            "block", path, "--pattern", "randread", "--bs", "4KiB", "--iodepth", "4", "--runtime", f"{seconds}s", "--rate", "100/s",
            "--warmup", "500ms", "--no-layout", "--quiet", "--json", *flags, timeout=seconds + 120)
        if done.code == 0 and carries(done.summary["workloads"][0]):
            return done.summary["id"]
        await_calm(10)
    raise AssertionError(f"no baseline: exit {done.code}, {done.out[:1000]} ... {done.err}")


@pytest.fixture
def even():
    """A directory in memory: what is asked here is not how even this machine's disk is, which stands still as it likes."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="plimsoll-e2e-") as path:
        yield Path(path)


def test_a_file_is_read_and_stays_as_it_is(plimsoll, even):
    path = fill(even / "theirs", 16 * MIB)
    first = file_baseline(plimsoll, path)
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(os.listdir(even)))
    path.chmod(0o400)
    # Its owner holds a lock on it: that is no reason not to look, and the check takes none.
    import fcntl
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = plimsoll("check", "--against", first, *CHECK, "--json")
    assert done.code in (0, 3, 4, 5) and done.summary["attempts"] > 120 and done.summary["failed"] == 0, (done.out, done.err)
    assert done.summary["place"] == str(path) and done.summary["op"] == "read", done.summary
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(os.listdir(even))) == before
    path.unlink()
    gone = plimsoll("check", "--against", first, *CHECK)
    assert gone.code == 2 and "--path" in gone.err, gone.err
    assert not path.exists(), "it was made"
    other = fill(even / "other", 4 * MIB)
    named = plimsoll("check", "--against", first, "--path", other, *CHECK)
    assert named.code in (0, 3, 4, 5) and str(other) in named.out, (named.out, named.err)


def test_a_baseline_that_carries_nothing_is_refused_before_any_load(plimsoll, even, runs):
    """Too short for an interval of a percentile: whatever is measured now could not be held against it."""
    path = fill(even / "theirs", 4 * MIB)
    for _ in range(5):
        # Of 80 ops eight lie beyond a 90th percentile: ten are the least.
        short = plimsoll("block", path, "--pattern", "randread", "--bs", "4KiB", "--iodepth", "4", "--rate", "100/s", "--runtime", "800ms",
                         "--warmup", "0s", "--no-layout", "--quiet", "--json")
        if short.code == 0:
            break
    else:
        pytest.skip("no run of less than a second is valid on this machine now")
    assert not short.summary["workloads"][0]["latency_ns"]["response"].get("intervals", {}).get("p90"), short.summary["workloads"][0]
    before = sorted(os.listdir(runs))
    began = time.monotonic()
    done = plimsoll("check", "--against", short.summary["id"], "--max-load", "100%", "--for", "20s")
    assert done.code == 5 and words(done).startswith("UNKNOWN  ") and "carry no interval" in done.out, (done.out, done.err)
    assert sorted(os.listdir(runs)) == before and time.monotonic() - began < 10, "it measured"


def test_a_summary_that_was_edited_is_not_believed(plimsoll, even, runs):
    """A check's load is a share of what was recorded, and not of what stands in a file that anybody may write to."""
    first = file_baseline(plimsoll, fill(even / "theirs", 4 * MIB))
    path = os.path.join(runs, first, "summary.json")
    with open(path) as f:
        summary = json.load(f)
    for line in summary["workloads"]:
        for rate in ("ops_per_s", "bytes_per_s"):
            line[rate] = {k: v * 1000 if k != "n_eff" else v for k, v in line[rate].items()}
    with open(path, "w") as f:
        json.dump(summary, f)
    # 1 op/s for two seconds is too little for an answer; 1,000 op/s would be enough, and be sent.
    done = plimsoll("check", "--against", first, "--max-load", "1%", "--for", "2s", "--json")
    assert done.code == 5 and done.summary["run"] is None, (done.out, done.err)
    assert 0.5 < done.summary["offered_per_s"] < 2, done.summary


def test_what_is_neither_a_file_nor_a_device_is_not_even_opened(plimsoll, even):
    """A pipe would wait for its writer for ever; a tape would go back to its start."""
    first = file_baseline(plimsoll, fill(even / "theirs", 4 * MIB))
    pipe = even / "pipe"
    os.mkfifo(pipe)
    (even / "link").symlink_to(pipe)
    for path in (pipe, even / "link", "/dev/tty", "/dev/null", even):
        began = time.monotonic()
        done = plimsoll("check", "--against", first, "--path", path, *CHECK, timeout=30)
        assert done.code == 2 and "neither a regular file nor a block device" in done.err, (path, done.out, done.err)
        assert time.monotonic() - began < 10


def test_what_a_stall_kept_back_is_not_made_up_for(plimsoll, minio_bucket):
    """The storage stands still for some seconds: afterwards it gets its share of the load, and no more; and that it stood still is told."""
    bucket = minio_bucket
    put_some(bucket)
    with Wire(bucket.server.endpoint) as wire:
        wire.delay = 0.04
        first = baseline(plimsoll, bucket, endpoint=wire.endpoint)
        wire.requests.clear()
        done = []

        def check():
            done.append(plimsoll("check", "--against", first, "--max-load", "50%", "--for", "14s", "--quiet", server=bucket.server))

        checking = threading.Thread(target=check)
        checking.start()
        wait_until(lambda: len(wire.requests) > 200, what="a check at work")
        wire.stands_still.clear()
        time.sleep(5)
        before = len(wire.requests)
        wire.stands_still.set()
        time.sleep(1)
        # 50 a second are allowed, and the few that were in flight when it stood still.
        sent = len(wire.requests) - before
        checking.join()
        assert sent <= 50 * 1.5 + 16, sent
    assert done[0].code in (3, 4), (done[0].out, done[0].err)
    assert done[0].code == 3 or words(done[0]).startswith("SLOWER   "), done[0].out


@ROOT_ONLY
def test_a_mounted_device_is_read(plimsoll, even):
    image = fill(even / "image", 32 * MIB)
    with loop_device(image) as device:
        first = file_baseline(plimsoll, device)
        written = lambda: int(open(f"/sys/block/{os.path.basename(device)}/stat").read().split()[4])  # noqa: E731
        before = written()
        done = plimsoll("check", "--against", first, *CHECK)
        assert done.code in (0, 3, 4, 5) and f"READ 4 KiB of {device}: " in done.out, (done.out, done.err)
        assert written() == before, "it wrote"
        sh("blockdev", "--setro", device)
        try:
            again = plimsoll("check", "--against", first, *CHECK)
        finally:
            # The number of the device is given out again.
            sh("blockdev", "--setrw", device)
        assert again.code in (0, 3, 4, 5), (again.out, again.err)
