"""Fixtures of the end-to-end tests: real servers, fresh buckets, and the built binary.

PLIMSOLL_BIN names the binary (default: target/release/plimsoll). Servers are started once per session by
scripts/servers/*.sh, on free ports, and stopped by the ids of their processes.
"""

import json
import os
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import pytest
from botocore.client import Config
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "scripts" / "servers"
BIN = Path(os.environ.get("PLIMSOLL_BIN", ROOT / "target" / "release" / "plimsoll"))
os.environ["PATH"] += ":" + ":".join(
    [str(Path.home() / "go/bin"), str(ROOT / ".local/tools/links"), "/usr/sbin", "/sbin"]
)


# Share of the CPU time that may be stolen from a machine that is called calm; and from where on nothing that was measured counts.
CALM = 0.03
VOID = 0.10
BEGAN = (0, 0, 0)
# Share of the CPU time that was idle, below which other processes took it: no machine is called calm with less (await_calm).
BUSY = 1 / 3
# No test is begun again after this time (seconds since 1970): whoever runs them has an end of his own.
UNTIL = float(os.environ.get("PLIMSOLL_RETRY_UNTIL", "inf"))


def pytest_configure(config):
    config.addinivalue_line("markers", "measures: its figures are void where the hypervisor takes the CPU (see VOID)")


def pytest_collection_modifyitems(items):
    """The longest file first: the others fit beside it. A measurement from which the CPU was taken says nothing by its failure: it is made
    again when the machine is calm, twice at the most, which is counted and told. What measures nothing is made once."""
    items.sort(key=lambda item: item.path.name != "test_limit_probe.py")
    for item in items:
        if item.get_closest_marker("measures") and not item.get_closest_marker("flaky"):
            item.add_marker(pytest.mark.flaky(reruns=2, condition=once_calm))


def disturbed():
    """Whether the hypervisor, or others on this machine, took the CPU from the test that just ended."""
    stolen, idle = shares_since(BEGAN)
    return stolen > CALM or idle < BUSY


def once_more():
    """Whether there is time to make a test again. Of a real limiter that is all: stalls of the disk disturb it as well, and nobody
    counts those."""
    return time.time() < UNTIL


def once_calm():
    """The same of a test that measures something else: only where it was disturbed."""
    return disturbed() and once_more()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A measurement that failed in its last try, too, with so much stolen that the program itself would call it void: skipped, with
    the share. On any other machine it fails."""
    report = (yield).get_result()
    if report.when != "call" or not report.failed or not item.get_closest_marker("measures"):
        return
    reruns = item.get_closest_marker("flaky").kwargs["reruns"]
    share = stolen_since(BEGAN)
    if share > VOID and (item.execution_count > reruns or time.time() >= UNTIL):
        why = f"void: the hypervisor took {share:.0%} of the CPU time in the last try: {call.excinfo.exconly()[:300]}"
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, why)


def cpu_times():
    """Stolen, idle, and all, of all CPUs, in ticks (proc(5): the eighth figure is stolen time; guest time is in the first two)."""
    with open("/proc/stat") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return ticks[7], ticks[3] + ticks[4], sum(ticks)


def shares_since(before):
    """Of the CPU time: what was stolen, and what was idle."""
    stolen, idle, all_ = (y - x for x, y in zip(before, cpu_times()))
    return stolen / max(all_, 1), idle / max(all_, 1)


def stolen_since(before):
    return shares_since(before)[0]


def held(got, want, rel, less=None):
    """A limiter lets no more through than its rate, and as much. `less`: how far below it may stay, where that is not `rel`. What a
    limiter cannot let through while its CPU is stolen it does not make good: by that share it may be less."""
    least = want * (1 - (less or rel) - stolen_since(BEGAN))
    assert least <= got <= want * (1 + rel), f"{got}, where {want} was set; at least {least}"


def await_calm(seconds):
    """Returns when nothing is stolen and a third is idle, or after so long."""
    deadline = time.monotonic() + seconds
    calm = False
    while not calm and time.monotonic() < deadline:
        before = cpu_times()
        time.sleep(2)
        stolen, idle = shares_since(before)
        calm = stolen < CALM and idle > BUSY


def pytest_runtest_setup(item):
    """Notes when a test begins. Before another try: when the machine is calm, or after half a minute."""
    global BEGAN
    if getattr(item, "execution_count", 1) > 1:
        await_calm(30)
    BEGAN = cpu_times()


@dataclass
class Result:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def summary(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise AssertionError(f"no JSON on stdout ({e})\nexit {self.code}\n{self.out}\n{self.err}") from e

    def workload(self, op):
        found = [w for w in self.summary["workloads"] if w["op"] == op]
        assert found, f"no workload {op}: {[w['op'] for w in self.summary['workloads']]}"
        return found[0]

    def ok(self):
        assert self.code == 0, f"exit {self.code}\n{self.err}\n{self.out[:3000]}"
        return self

    def codes(self):
        return {f["code"] for f in self.summary["findings"]}


@dataclass
class Server:
    """A running S3 server."""

    name: str
    endpoint: str
    access_key: str
    secret_key: str
    dir: str = ""
    pid: int = 0
    process: subprocess.Popen = None

    def env(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))}
        return clean | {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    def client(self):
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 3}),
        )


def start(script, *args, env=None):
    """Runs a start script and reads its name=value lines."""
    done = subprocess.run(
        ["bash", str(SERVERS / script), *args],
        env=os.environ | (env or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def stop(directory):
    subprocess.run(["bash", str(SERVERS / "stop.sh"), directory], check=False, timeout=300)


def script_server(name, script, **env):
    facts = start(script, env=env)
    return Server(
        name, facts["endpoint"], facts["access_key"], facts["secret_key"], facts["dir"], int(facts["pid"])
    )


@pytest.fixture(scope="session")
def minio():
    server = script_server("minio", "minio.sh")
    yield server
    stop(server.dir)


@pytest.fixture(scope="session")
def versitygw():
    server = script_server("versitygw", "versitygw.sh")
    yield server
    stop(server.dir)


def start_target(*args, env=None):
    """Starts `plimsoll target ...` on a free port; its first line on stdout says where it is, as JSON."""
    process = subprocess.Popen(
        [str(BIN), "target", *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | (env or {}),
    )
    facts = {}
    for line in process.stdout:
        if line.startswith("{"):
            facts = json.loads(line)
            break
    assert "endpoint" in facts, f"the server did not start: exit {process.poll()}"
    return process, facts


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory):
    data = tmp_path_factory.mktemp("embedded")
    keys = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded-secret"}
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(data), "--no-sync", env=keys)
    yield Server(
        "embedded", facts["endpoint"], "embedded", "embedded-secret", str(data), process.pid, process
    )
    end(process)


@pytest.fixture
def bucket_here(embedded):
    """A bucket of the embedded server; it is gone after the test."""
    bucket = new_bucket(embedded)
    yield bucket
    drop_bucket(bucket)


@pytest.fixture(params=["minio", "versitygw", "embedded"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def canned():
    """Starts canned servers with the flags given; all are ended after the test."""
    started = []

    def make(*args):
        process, facts = start_target("canned", "--listen", "127.0.0.1:0", *args)
        started.append(process)
        return Server("canned", facts["endpoint"], "canned", "canned-secret", "", process.pid, process)

    yield make
    for process in started:
        end(process)


@dataclass
class Bucket:
    server: Server
    name: str
    client: object = field(repr=False)

    def keys(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return sorted(o["Key"] for p in pages for o in p.get("Contents", []))

    def holds(self, more_than):
        """Whether there are more than so many (below 1,000): asked at once, while a load writes thousands, which are long in listing."""
        listed = self.client.list_objects_v2(Bucket=self.name, MaxKeys=more_than + 1)
        return len(listed.get("Contents", [])) > more_than

    def uploads(self):
        """Unfinished uploads that are there. MinIO lists from memory, and goes on listing one whose completion it
        carried out for a client that was killed in the middle of it: its parts are gone."""
        listed = self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", [])
        return [u for u in listed if self.has_parts(u)]

    def has_parts(self, upload):
        try:
            self.client.list_parts(Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"])
        except ClientError as e:
            assert e.response["Error"]["Code"] == "NoSuchUpload", e
            return False
        return True

    def flags(self):
        return ["--endpoint", self.server.endpoint, "--bucket", self.name]


def new_bucket(server):
    name = f"e2e-{uuid.uuid4().hex[:12]}"
    client = server.client()
    client.create_bucket(Bucket=name)
    return Bucket(server, name, client)


def drop_bucket(bucket):
    for key in bucket.keys():
        bucket.client.delete_object(Bucket=bucket.name, Key=key)
    bucket.client.delete_bucket(Bucket=bucket.name)


@pytest.fixture
def bucket(server):
    b = new_bucket(server)
    yield b
    drop_bucket(b)


@pytest.fixture
def minio_bucket(minio):
    b = new_bucket(minio)
    yield b
    drop_bucket(b)


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def plimsoll(runs):
    """Runs the binary to its end."""

    def call(*args, server=None, env=None, timeout=120, check=False):
        base = server.env() if server else dict(os.environ)
        # What is known of a test's runs goes with them, and nobody's own defaults play a part.
        base |= {"XDG_CACHE_HOME": str(runs.parent / "cache"), "XDG_CONFIG_HOME": str(runs.parent / "config")}
        base |= {"PLIMSOLL_RUNS": str(runs), "COLUMNS": "100"} | (env or {})
        done = subprocess.run(
            [str(BIN), *map(str, args)], env=base, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout
        )
        result = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
        return result.ok() if check else result

    return call


@pytest.fixture
def state(tmp_path):
    """The environment in which this test's fleets keep their state: nobody else's."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(state)}


@pytest.fixture
def home(state):
    """Where that is."""
    return Path(state["XDG_RUNTIME_DIR"])


@pytest.fixture
def fleet(plimsoll, state, home):
    """`plimsoll fleet ...`; what is up at the end is taken down."""

    def call(command, *flags, env=None, **more):
        return plimsoll("fleet", command, *flags, env=state | (env or {}), **more)

    yield call
    for up in home.glob("plimsoll/fleets/*"):
        call("down", "--name", up.name, "--force")


@pytest.fixture
def background(runs):
    """Starts the binary and leaves it running; whatever is left is killed after the test."""
    started = []

    def call(*args, server=None, env=None):
        base = server.env() if server else dict(os.environ)
        base |= {"PLIMSOLL_RUNS": str(runs), "COLUMNS": "100", "XDG_CACHE_HOME": str(runs.parent / "cache")} | (env or {})
        process = subprocess.Popen(
            [str(BIN), *map(str, args)], env=base, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until(true, seconds=30, what="condition"):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")
