"""`plimsoll target cluster`: MinIO in network namespaces; what is put comes back, faults bite, and nothing of it is left, however it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import tomllib
import uuid
from pathlib import Path

import pytest
from conftest import BIN, Result, Server, end, wait_until


def can_make_namespaces():
    name = f"plimsoll-try-{uuid.uuid4().hex[:6]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip") or not can_make_namespaces(),
                       reason="network namespaces need root and iproute2"),
    pytest.mark.skipif(not shutil.which("minio"), reason="needs minio in PATH"),
]


@pytest.fixture
def box(tmp_path):
    """Names and places of one cluster; whatever a test leaves of it goes."""

    class Box:
        name = uuid.uuid4().hex[:6]
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {"TMPDIR": str(tmp_path)}
        dir = tmp_path / f"plimsoll-cluster-{name}"

        def __init__(self):
            self.processes = []

        def start(self, *flags):
            p = subprocess.Popen([str(BIN), "target", "cluster", "--name", self.name, *flags], env=self.env,
                                 stdout=subprocess.PIPE, stderr=open(tmp_path / "err", "w"), text=True)
            self.processes.append(p)
            line = p.stdout.readline()
            assert line, (tmp_path / "err").read_text()
            facts = json.loads(line)
            return p, Server("cluster", facts["endpoint"], facts["access_key"], facts["secret_key"], facts["path"], p.pid)

        @property
        def err(self):
            return (tmp_path / "err").read_text()

        def call(self, *args):
            done = subprocess.run([str(BIN), "target", "cluster", *args], env=self.env, capture_output=True, text=True, timeout=60)
            return Result(done.returncode, done.stdout, done.stderr)

        def left(self):
            """What there is of it: namespaces, interfaces, mounts, its directory, its servers."""
            spaces = [s for s in os.listdir("/run/netns") if s.startswith(f"plimsoll-{self.name}-")] if os.path.exists("/run/netns") else []
            links = [n for n in os.listdir("/sys/class/net") if n.startswith(f"pl-{self.name}")]
            mounts = [m for m in open("/proc/self/mountinfo").read().splitlines() if str(self.dir) in m]
            groups = list(Path("/sys/fs/cgroup").glob(f"**/plimsoll-plimsoll-cluster-{self.name}.*"))
            servers = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.dir).encode() in command:
                    servers.append(pid)
            return spaces + links + mounts + groups + servers + [p for p in [self.dir] if p.exists()]

    box = Box()
    yield box
    for p in box.processes:
        if p.poll() is None:
            p.kill()
        p.wait()
    box.call("stop", "--name", box.name)
    assert not box.left()


def served(r):
    """Each op was answered. How steadily is the machine's matter, which other tests use, too: the figure may be void."""
    outcomes = [w["outcomes"] for w in r.summary["workloads"]]
    assert r.code in (0, 3, 5) and all(set(o) == {"ok"} for o in outcomes), (r.err, outcomes, r.summary["verdict"])


def measure(server, runs, op, *flags):
    done = subprocess.run(
        [str(BIN), "object", op, "--endpoint", server.endpoint, "--bucket", "bench", "--create-bucket", "--size", "64KiB",
         "--concurrency", "4", "--warmup", "0s", "--duration", "3s", "--json", *flags],
        env=server.env() | {"PLIMSOLL_RUNS": str(runs)}, capture_output=True, text=True, timeout=120)
    return Result(done.returncode, done.stdout, done.stderr)


def rate_of(link):
    shown = subprocess.run(["tc", "qdisc", "show", "dev", link], capture_output=True, text=True, check=True).stdout
    return re.search(r"rate (\w+)", shown).group(1)


def test_a_cluster_serves_has_faults_and_goes(box, runs):
    process, server = box.start("--nodes", "4", "--drives", "1", "--ec", "2", "--link", "500mbit")
    assert server.endpoint.endswith(".{1...4}:9000") and server.secret_key not in box.err, box.err
    wait_until(lambda: "target cluster stop" in box.err, 10, "what to try")
    assert "4 nodes with 4 drives, EC:2" in box.err and "(2 + 2)" in box.err and "--observe 'node=http" in box.err, box.err
    node = server.endpoint.replace("{1...4}", "1")
    hosts = server.endpoint.replace(":9000", ":9100")
    observe = ("--observe", f"minio={server.endpoint}", "--observe", f"node={hosts}", "--observe-every", "1s")
    described = box.dir / "cluster.toml"
    assert f"--cluster {described}" in box.err and 'redundancy = "ec:2+2"' in described.read_text(), box.err
    r = measure(server, runs, "put", "--checksum", "crc32c", *observe, "--cluster", described)
    served(r)
    assert (r.summary["labels"]["ec"], r.summary["labels"]["nodes"]) == ("2+2", "4"), r.summary["labels"]
    written = [t for w in r.summary["servers"]["windows"] for t in w["traffic"] if t["what"] == "between servers"]
    assert written and abs(written[0]["expected"] - 1.5) < 1e-9, r.summary["servers"]["windows"]
    nics = [x for w in r.summary["servers"]["windows"] for x in w["resources"] if x["resource"] == "network in"]
    # Beside other tests a host may not answer twice within so short a window.
    assert nics and all(x["ceiling"] == 500e6 / 8 and x["device"] == "eth0" and x["ceiling_of"] == "cluster.toml" for x in nics), nics
    # Another is refused while this one runs.
    r = box.call("--name", box.name)
    assert r.code == 2 and "is running" in r.err, r.err
    # A link: both of its ends.
    assert box.call("fault", "link:3=20mbit", "--name", box.name).code == 0
    assert rate_of(f"pl-{box.name}-3") == "20Mbit"
    assert box.call("fault", "link:3=good", "--name", box.name).code == 0
    assert rate_of(f"pl-{box.name}-3") == "500Mbit"
    # A node: the others still have their quorum; at the fourth node nobody answers.
    assert box.call("fault", "node:4=down", "--name", box.name).code == 0
    r = measure(Server("", node, server.access_key, server.secret_key), runs, "get", "--checksum", "crc32c", "--objects", "8")
    served(r)
    assert box.call("fault", "node:4=good", "drive:1=down", "drive:1=good", "--name", box.name).code == 0
    for fault, said in [("drive:5", "there are 4 drives"), ("link:1=20", "for example 200mbit"), ("drive:1=5MB/s", "--drive-limit")]:
        r = box.call("fault", fault, "--name", box.name)
        assert r.code == 2 and said in r.err, (fault, r.err)
    end(process)
    assert not box.left()


def sent_by(link):
    shown = subprocess.run(["tc", "-s", "qdisc", "show", "dev", link], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Sent (\d+) bytes", shown).group(1))


def test_a_link_made_slow_under_load_is_slow_and_not_cut_and_the_run_tells_when(box, runs):
    """What waits for its tokens when the link's bucket is made smaller gets them. (With a bucket of 64 KiB nothing passed any more.)"""
    _, server = box.start("--nodes", "2", "--drives", "1", "--ec", "1", "--link", "200mbit")
    link = f"pl-{box.name}-2"
    hosts = server.endpoint.replace(":9000", ":9100")
    load = subprocess.Popen(
        [str(BIN), "object", "put", "--endpoint", server.endpoint, "--bucket", "bench", "--create-bucket", "--size", "4MiB", "--concurrency", "16",
         "--warmup", "0s", "--duration", "14s", "--timeout", "2m", "--json", "--observe", f"node={hosts}", "--observe-every", "1s",
         "--cluster", str(box.dir / "cluster.toml")],
        env=server.env() | {"PLIMSOLL_RUNS": str(runs)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: sent_by(link) > 40e6, 60, "the load")
        assert box.call("fault", "link:2=50mbit", "--name", box.name).code == 0
        before = sent_by(link)
        # Half of what the line gives meanwhile: beside other tests it has not the machine to itself.
        wait_until(lambda: sent_by(link) - before > 8e6, 30, "what the slow link passes")
        out, err = load.communicate(timeout=180)
    finally:
        load.kill()
        load.wait()
    summary = json.loads(out)
    outcomes = [w["outcomes"] for w in summary["workloads"]]
    assert all(set(o) == {"ok"} for o in outcomes), (outcomes, err)
    changed = [f["text"] for f in summary["findings"] if f["name"] == "line_changed"]
    assert len(changed) == 1 and "eth0 of" in changed[0] and "200Mbit/s until" in changed[0] and "of 50Mbit/s from" in changed[0], summary["findings"]
    bands = [b["what"] for b in summary["servers"]["background"]]
    assert any("at 50Mbit/s, 200Mbit/s before" in what for what in bands), bands


PLAN = """version = 1
[options]
observe_every = "1s"
observe = [{ make = "node", url = "http://embedded:9100" }]
[targets.c]
kind = "s3"
endpoints = ["embedded"]
bucket = "bench"
create_bucket = true
embedded = { cluster = { nodes = 2, drives = 1, link = "300mbit", ec = 1 } }
[[stage]]
[[stage.workload]]
name = "put"
mix = { put = 1 }
size = "64KiB"
concurrency = 4
stop = { duration = "3s" }
"""


def test_a_cluster_tells_what_it_is_made_of(box):
    """What `describe cluster` finds by asking is what its own cluster.toml says: links, quotas, drives and redundancy."""
    _, server = box.start("--nodes", "2", "--drives", "1", "--ec", "1", "--link", "100mbit", "--cpu", "0.5")
    hosts = server.endpoint.replace(":9000", ":9100")
    done = subprocess.run([str(BIN), "describe", "cluster", f"minio={server.endpoint}", f"node={hosts}"],
                          env=box.env | server.env(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "not asked" not in done.stderr, done.stderr
    found, made = (tomllib.loads(text) for text in (done.stdout, (box.dir / "cluster.toml").read_text()))
    for key in ("software", "redundancy", "set_size"):
        assert found[key] == made[key], (key, done.stdout)
    (asked,) = made["node"]
    # Drives of each are somewhere else, so that the nodes are no pattern here.
    assert [n["name"] for n in found["node"]] == [asked["name"].replace("{1...2}", i) for i in "12"], done.stdout
    for node in found["node"]:
        assert (node["cpus"], len(node["drive"])) == (asked["cpus"], 1) and node["cpus"] == 0.5, done.stdout
        assert [(n["name"], n["rate"]) for n in node["nic"]] == [(n["name"], n["rate"]) for n in asked["nic"]], done.stdout


def test_with_tls_clients_and_servers_among_themselves_trust_its_certificate_alone(box, plimsoll):
    process, server = box.start("--nodes", "2", "--drives", "1", "--ec", "1", "--tls")
    assert server.endpoint.startswith("https://")
    ca = box.dir / "certs/CAs/ca.crt"
    put = ["object", "put", "--bucket", "bench", "--create-bucket", "--size", "64KiB", "--concurrency", "2", "--warmup", "0s",
           "--duration", "2s", "--json", "--endpoint", server.endpoint]
    bare = plimsoll(*put, server=server)
    assert bare.code == 2 and "certificate" in bare.err, bare.err
    observed = server.endpoint.replace("https", "minio=https", 1)
    done = plimsoll(*put, "--ca-file", ca, "--observe", observed, server=server)
    line = done.summary["workloads"][0]
    assert line["outcomes"]["ok"] > 0 and sum(line["outcomes"].values()) == line["outcomes"]["ok"], (done.out[-2000:], done.err)
    sources = done.summary["servers"]["sources"]
    assert len(sources) == 2 and all("https" in s["source"] and s["asked"] > s["gaps"] for s in sources), sources
    end(process)
    assert box.left() == []


def test_a_run_brings_a_cluster_of_its_own(plimsoll, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    r = plimsoll("run", plan, "--json", timeout=120)
    served(r)
    assert len(r.workload("put")["per_endpoint"]) == 2
    assert {s["source"].rsplit(":", 1)[1] for s in r.summary["servers"]["sources"]} == {"9100"}, r.summary["servers"]["sources"]
    # Others may have one now: it is looked for by its network.
    network = r.workload("put")["per_endpoint"][0]["endpoint"].split("://")[1].rsplit(".", 1)[0] + "."
    addresses = subprocess.run(["ip", "-o", "-4", "addr"], capture_output=True, text=True, check=True).stdout
    assert network.startswith("10.") and network not in addresses, (network, addresses)
    plan.write_text(PLAN.replace("nodes = 2", "nodes = 20"))
    r = plimsoll("run", plan)
    assert r.code == 2 and "targets.c.embedded.cluster.nodes" in r.err, r.err


def test_killed_it_is_taken_down_by_the_next_and_by_stop(box):
    flags = ("--nodes", "2", "--drives", "1", "--drive-limit", "50MB/s", "--drive-size", "1GiB", "--cpu", "0.9")
    process, server = box.start(*flags)
    assert len([p for p in box.left() if "mnt" in str(p)]) == 2, box.left()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert box.left(), "nothing was left that could be taken down"
    process, again = box.start(*flags)
    assert "was left by a killed cluster" in box.err and again.secret_key != server.secret_key, box.err
    process.send_signal(signal.SIGKILL)
    process.wait()
    r = box.call("stop", "--name", box.name)
    assert r.code == 0 and "is taken down" in r.err, r.err
    assert not box.left()
    r = box.call("stop", "--name", box.name)
    assert r.code == 0 and "there is no cluster" in r.err, r.err


def test_killed_while_it_starts_it_is_taken_down_by_stop(box):
    """At each step that shows from outside: its directory alone, a namespace, a mount, a server."""
    spaces = lambda: os.path.exists("/run/netns") and any(s.startswith(f"plimsoll-{box.name}-") for s in os.listdir("/run/netns"))
    mounts = lambda: str(box.dir) in Path("/proc/self/mountinfo").read_text()
    servers = lambda: any(str(x).isdigit() for x in box.left())
    for step, there in [("directory", box.dir.exists), ("namespace", spaces), ("mount", mounts), ("server", servers)]:
        p = subprocess.Popen([str(BIN), "target", "cluster", "--name", box.name, "--nodes", "2", "--drives", "1", "--drive-limit", "50MB/s",
                              "--drive-size", "1GiB"], env=box.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        box.processes.append(p)
        while not there():
            assert p.poll() is None, f"no {step} was seen"
        p.kill()
        p.wait()
        assert p.stdout.read() == b"", f"{step}: it was ready already"
        r = box.call("stop", "--name", box.name)
        assert r.code == 0 and not box.left(), (step, r.err, box.left())


def test_what_is_somebody_elses_is_refused_and_not_touched(box):
    space, link = f"plimsoll-{box.name}-2", f"pl-{box.name}"
    subprocess.run(["ip", "netns", "add", space], check=True)
    subprocess.run(["ip", "link", "add", "name", link, "type", "bridge"], check=True)
    try:
        r = box.call("--name", box.name)
        assert r.code == 2 and space in r.err and link in r.err and "Nothing of it was touched" in r.err, r.err
        assert not box.dir.exists() and len(box.left()) == 2, box.left()
    finally:
        subprocess.run(["ip", "netns", "del", space], check=True)
        subprocess.run(["ip", "link", "del", "dev", link], check=True)
    box.dir.mkdir()
    (box.dir / "thesis").write_text("mine")
    for args in [("--name", box.name), ("stop", "--name", box.name)]:
        r = box.call(*args)
        assert r.code == 2 and "Nothing in it was touched" in r.err, r.err
    assert (box.dir / "thesis").read_text() == "mine"
    shutil.rmtree(box.dir)


def test_what_is_missing_is_named_with_its_remedy(box, tmp_path):
    for flags, said in [(("--nodes", "1", "--drives", "1"), "2 to 16 drives"), (("--ec", "5"), "Give 0 to 4"), (("--link", "fast"), "200mbit")]:
        r = box.call(*flags)
        assert r.code == 2 and said in r.err, r.err
    tools = tmp_path / "tools"
    tools.mkdir()
    box.env = box.env | {"PATH": str(tools)}
    r = box.call("--name", box.name)
    assert r.code == 2 and "minio is not in PATH" in r.err and "go install" in r.err, r.err
    r = box.call("fault", "node:1", "--name", box.name)
    assert r.code == 2 and "no cluster runs" in r.err, r.err
    # Directories above the build may be closed to others.
    binary = Path(f"/var/tmp/plimsoll-cluster-test-{os.getpid()}")
    binary.write_bytes(BIN.read_bytes())
    binary.chmod(0o755)
    try:
        enter = ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(binary)]
        done = subprocess.run([*enter, "target", "cluster"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
        assert done.returncode == 2 and "take root" in done.stderr, done.stderr
    finally:
        binary.unlink()
