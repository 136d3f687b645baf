"""A conductor that does not reach the storage: it stands in a network namespace from which only its agents' connections come in. What a
run needs of a bucket beside the load is asked by an agent then, under the rules that hold for the conductor."""

import itertools
import json
import os
import re
import subprocess

import pytest
from conftest import BIN, Result, wait_until
from test_fleet import Agent, intervals, measured

NUMBERS = itertools.count()
LOAD = ["--size", "4KiB", "--concurrency", "6", "--warmup", "1s"]


def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, text=True)


@pytest.fixture
def apart():
    """A network namespace with one way to here: its name, and its address."""
    # A namespace goes when the last of its sockets has: the next one does not wait for that.
    number = next(NUMBERS)
    name, here, net = f"plim-{os.getpid()}-{number}", f"plv{os.getpid() % 100000}-{number}", (os.getpid() + number) % 250
    made = ip("netns", "add", name)
    if made.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    address = f"10.213.{net}.2"
    for args in (
        ["link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", name],
        ["addr", "add", f"10.213.{net}.1/24", "dev", here],
        ["link", "set", here, "up"],
        ["-n", name, "addr", "add", f"{address}/24", "dev", "eth0"],
        ["-n", name, "link", "set", "eth0", "up"],
        ["-n", name, "link", "set", "lo", "up"],
    ):
        done = ip(*args)
        assert done.returncode == 0, (args, done.stderr)
    yield name, address
    ip("link", "del", here)
    ip("netns", "del", name)


class Conductor:
    """`plimsoll` in the namespace, without keys of the storage unless they are given."""

    def __init__(self, apart, tmp_path):
        self.name, self.address = apart
        state = tmp_path / "state"
        state.mkdir(mode=0o700, exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))}
        none = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
        self.env = clean | none | {"XDG_RUNTIME_DIR": str(state), "PLIMSOLL_RUNS": str(tmp_path / "runs"), "HOME": str(tmp_path)}
        self.runs = tmp_path / "runs"

    def start(self, *args, env=None):
        return subprocess.Popen(["ip", "netns", "exec", self.name, str(BIN), *args], env=self.env | (env or {}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *args, env=None):
        process = self.start(*args, env=env)
        out, err = process.communicate(timeout=180)
        return Result(process.returncode, out, err)


@pytest.fixture
def conductor(apart, tmp_path):
    return Conductor(apart, tmp_path)


@pytest.fixture
def fleet(conductor, embedded, tmp_path):
    up = conductor("fleet", "up", "--listen", "0.0.0.0:0", "--host", conductor.address).ok()
    token = re.search(r"plimsoll-join-\S+", up.out)[0]
    started = {}

    def add(name, *flags, env=None):
        agent = started[name] = Agent(name, token, tmp_path, env or embedded.env(), *flags)
        wait_until(lambda: f"{name} waits for orders" in agent.said(), 30, f"{name}: {agent.said()}")
        return agent

    yield add
    for agent in started.values():
        agent.end()
    conductor("fleet", "down", "--force")


def keys(server):
    return {k: v for k, v in server.env().items() if k.startswith("AWS_")}


def by_agent(r):
    [found] = [f for f in r.summary["findings"] if f["name"] == "claimed_by_agent"]
    return found["text"]


def test_what_the_conductor_cannot_an_agent_does(fleet, conductor, embedded, bucket_here):
    fleet("lg-1")
    fleet("lg-2")
    # Somebody's, and nobody touches it.
    bucket_here.client.put_object(Bucket=bucket_here.name, Key="theirs/4KiB/0123456789abcdef", Body=b"precious")
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--duration", "3s", "--fleet", "--json"]
    # Without a way to it, although it has keys.
    r = measured(conductor(*put, env=keys(embedded)))
    assert "by agent lg-1, because this machine does not reach it (http://127.0.0.1:" in r.err, r.err
    assert "Connection refused" in by_agent(r) and "agent lg-1" in by_agent(r)
    assert r.workload("put")["outcomes"]["ok"] > 50
    assert r.summary["environment"]["servers"], "the agent told of the server"
    # And without keys; a data set is made, read and removed.
    get = ["object", "get", *bucket_here.flags(), *LOAD, "--objects", "60", "--duration", "2s", "--verify", "--fleet", "--json"]
    r = measured(conductor(*get))
    assert "(no credentials" in by_agent(r) or "credentials" in by_agent(r), by_agent(r)
    assert r.workload("get")["outcomes"]["ok"] > 50
    # What is there already is listed by the agent.
    there = ["--existing", "--prefix", "theirs/", "--size", "8", "--concurrency", "2", "--warmup", "0s", "--duration", "2s"]
    r = measured(conductor("object", "get", *bucket_here.flags(), *there, "--fleet", "--json"))
    assert r.workload("get")["outcomes"]["ok"] > 10 and "existing_objects" in {f["name"] for f in r.summary["findings"]}
    assert bucket_here.keys() == ["theirs/4KiB/0123456789abcdef"]


def test_limits_are_looked_for_and_nothing_stays(fleet, conductor, bucket_here):
    fleet("lg-1")
    fleet("lg-2")
    r = conductor("limits", "object", "--op", "put", *bucket_here.flags(), "--size", "4KiB", "--budget", "40s", "--fleet", "--json")
    assert r.code in (0, 3, 5), r.err
    assert by_agent(r) and not bucket_here.keys()


def test_a_killed_conductor_is_cleaned_up_after_by_an_agent(fleet, conductor, bucket_here, embedded):
    agents = [fleet("lg-1", "--allow-endpoint", embedded.endpoint), fleet("lg-2")]
    bucket_here.client.put_object(Bucket=bucket_here.name, Key="theirs", Body=b"precious")
    run = conductor.start("object", "put", *bucket_here.flags(), *LOAD, "--duration", "10min", "--fleet", "--deadman", "3s")
    wait_until(lambda: bucket_here.holds(20), 40, "load")
    # The namespace's own process: `ip netns exec` becomes it.
    run.kill()
    run.wait()
    for agent in agents:
        wait_until(lambda: "done with run" in agent.said(), 40, agent.said())
    assert len(bucket_here.keys()) > 20
    # By itself it cannot, and says so; by an agent it can.
    alone = conductor("cleanup", "last")
    assert alone.code != 0 and len(bucket_here.keys()) > 20, alone.err
    r = conductor("cleanup", "last", "--fleet")
    assert r.code == 0 and "everything that run" in r.err, r.err
    assert bucket_here.keys() == ["theirs"]


def test_a_killed_run_goes_on_though_its_conductor_does_not_reach_the_storage(fleet, conductor, bucket_here, embedded, tmp_path):
    """What the killed conductor's agents left is removed by agents, too, before the rest is run."""
    agents = [fleet("lg-1"), fleet("lg-2")]
    bucket_here.client.put_object(Bucket=bucket_here.name, Key="theirs", Body=b"precious")
    plan = tmp_path / "plan.toml"
    stage = lambda name, time: (  # noqa: E731
        f'[[stage]]\nname = "{name}"\nwarmup = "0s"\n[[stage.workload]]\nname = "put"\nmix = {{ put = 1 }}\nsize = "4KiB"\n'
        f'concurrency = 4\npacing = {{ constant = "100/s" }}\nstop = {{ duration = "{time}" }}\n'
    )
    # Of few keys, which are listed at once however busy the machine is; and the second stage is long enough to be killed within it.
    plan.write_text(
        f'version = 1\n[targets.t]\nkind = "s3"\nendpoints = ["{embedded.endpoint}"]\nbucket = "{bucket_here.name}"\n'
        + stage("one", "2s") + stage("two", "20s")
    )
    run = conductor.start("run", str(plan), "--fleet", "--deadman", "3s")
    said = []
    for line in run.stderr:
        said.append(line)
        if line.startswith("stage 1/2 done"):
            break
    before = len(bucket_here.keys())
    assert before > 20, said
    wait_until(lambda: len(bucket_here.keys()) > before + 20, 40, "the second stage")
    run.kill()
    run.wait()
    for agent in agents:
        wait_until(lambda: "done with run" in agent.said(), 40, agent.said())
    r = measured(conductor("run", "--resume", "last", "--fleet", "--json"))
    assert r.err.count("by agent lg-1, because this machine does not reach it") >= 1, r.err
    assert bucket_here.keys() == ["theirs"], r.err
    # The stage that was complete is in the result, and was not run again.
    assert len(r.summary["workloads"]) >= 2 and "stage 1/2 done" not in r.err, r.err


def test_another_agent_does_it_where_the_first_cannot_or_is_lost(fleet, conductor, bucket_here, embedded):
    # lg-1 has no keys and its bounds elsewhere: it is passed over for markers, and then the run is refused by its name.
    first = fleet("a-1")
    fleet("a-2")
    run = conductor.start("object", "put", *bucket_here.flags(), *LOAD, "--duration", "8s", "--fleet", "--deadman", "3s", "--json")
    wait_until(lambda: bucket_here.holds(20), 40, "load")
    first.process.kill()
    out, err = run.communicate(timeout=120)
    summary = json.loads(out)
    [by] = [f["text"] for f in summary["findings"] if f["name"] == "claimed_by_agent"]
    assert "agents a-1, a-2" in by, by
    assert not bucket_here.keys(), err


def test_who_asks_the_storage_can_be_chosen(fleet, conductor, bucket_here, embedded):
    fleet("lg-1")
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s", "--json"]
    r = conductor(*put, "--fleet", "--claim-by", "conductor", env=keys(embedded))
    assert r.code == 2 and "Connection refused" in r.err, r.err
    r = conductor(*put, "--claim-by", "agents", env=keys(embedded))
    assert r.code == 2 and "--claim-by is of a fleet" in r.err, r.err
    r = measured(conductor(*put, "--fleet", "--claim-by", "agents", env=keys(embedded)))
    assert "as --claim-by asks" in by_agent(r)
    assert not bucket_here.keys()


def test_an_agent_asks_only_where_it_may(fleet, conductor, bucket_here):
    fleet("lg-1", "--allow-endpoint", "https://elsewhere.example.net")
    r = conductor("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s", "--fleet")
    assert r.code == 2 and "agent lg-1: it does not let http://127.0.0.1:" in r.err and "--allow-endpoint" in r.err, r.err
    assert not bucket_here.keys()


def test_no_secret_is_in_what_the_conductor_keeps(fleet, conductor, bucket_here, embedded):
    fleet("lg-1")
    r = measured(conductor("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s", "--fleet", "--json"))
    run, _ = intervals(conductor.runs)
    kept = [f.read_bytes() for f in run.rglob("*") if f.is_file()]
    assert kept and not any(embedded.secret_key.encode() in text for text in kept)
    assert embedded.secret_key not in r.err + r.out


def test_an_embedded_server_that_agents_do_not_reach_is_refused_by_name(fleet, conductor):
    """Of one machine, and yet not on one network: it is found before there is load, and nothing stays."""
    fleet("lg-1")
    r = conductor("object", "put", "--endpoint", "embedded", *LOAD, "--duration", "2s", "--fleet")
    assert r.code == 2 and "agent lg-1: it does not reach the storage: http://127.0.0.1:" in r.err, r.err
    assert not list(conductor.runs.glob("*/journal")), "no run is left"
