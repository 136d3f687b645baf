"""Runs over a fleet: a broker, agents as processes of their own, one conductor, and what becomes of them when one of them is killed."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import BIN, wait_until

AGENTS = ["lg-1", "lg-2", "lg-3"]
LOAD = ["--size", "4KiB", "--concurrency", "6", "--warmup", "1s"]


class Agent:
    """`plimsoll agent`, with what it says in a file."""

    def __init__(self, name, token, directory, env, *flags):
        self.log = directory / f"{name}.log"
        self.runs = directory / f"runs-of-{name}"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                [str(BIN), "agent", "--join", token, "--name", name, "--runs-dir", str(self.runs), *flags],
                env=env, stdout=subprocess.DEVNULL, stderr=out,
            )

    def said(self):
        return self.log.read_text()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@pytest.fixture
def fleet(plimsoll, state, embedded, tmp_path):
    """A fleet that is up, with agents by name; all of it is gone after the test."""
    up = plimsoll("fleet", "up", "--listen", "127.0.0.1:0", env=state, check=True)
    token = re.search(r"plimsoll-join-\S+", up.out)[0]
    started = {}

    def add(name, *flags, env=None):
        agent = started[name] = Agent(name, token, tmp_path, embedded.env() | (env or {}), *flags)
        wait_until(lambda: f"{name} waits for orders" in agent.said(), 30, f"{name}: {agent.said()}")
        return agent

    yield add
    for agent in started.values():
        agent.end()
    plimsoll("fleet", "down", "--force", env=state)


@pytest.fixture
def three(fleet):
    return {name: fleet(name) for name in AGENTS}


@pytest.fixture
def over(plimsoll, embedded, state):
    """Measures over the fleet."""

    def call(*args, **more):
        return plimsoll(*args, "--fleet", server=embedded, env=state, timeout=180, **more)

    return call


def measured(r):
    """There is a result, of all agents, however noisy the machine was."""
    assert r.code in (0, 3, 5), r.err
    assert all(f["name"] not in ("agent_lost", "too_many_errors") for f in r.summary["findings"]), r.summary["findings"]
    return r


def intervals(runs):
    [run] = [d for d in runs.iterdir() if (d / "env.json").is_file()]
    return run, sorted(f.name for f in (run / "intervals").iterdir())


def test_three_agents_put_as_one(three, over, bucket_here, runs):
    r = measured(over("object", "put", *bucket_here.flags(), *LOAD, "--duration", "4s", "--keep", "--json"))
    assert r.workload("put")["outcomes"]["ok"] > 100, r.err
    assert "3 agents: lg-1, lg-2, lg-3" in r.err, r.err
    run, files = intervals(runs)
    assert files == [f"{name}.zst" for name in AGENTS]
    hosts = json.loads((run / "env.json").read_text())["environment"]["agents"]
    assert [h["agent"] for h in hosts] == AGENTS
    # One machine: the truth is 0.
    for h in hosts:
        assert abs(h["clock"]["offset_ns"]) <= h["clock"]["bound_ns"] < 50_000_000, h
    # Each agent has put its part, and no key was put twice: the bucket has as many objects as were put, warm-up included.
    assert len(bucket_here.keys()) >= r.workload("put")["outcomes"]["ok"]
    own = [list((a.runs / "agents").glob(f"{run.name}.*/frames")) for a in three.values()]
    assert all(len(frames) == 1 and frames[0].stat().st_size > 0 for frames in own), own
    for agent in three.values():
        wait_until(lambda: "done with run" in agent.said(), 10, agent.said())


def test_a_data_set_is_made_by_all_and_read_by_all(three, over, bucket_here):
    get = ["object", "get", *bucket_here.flags(), *LOAD, "--objects", "60", "--duration", "3s", "--verify", "--json"]
    r = measured(over(*get))
    assert r.workload("get")["outcomes"]["ok"] > 100, r.err
    assert not bucket_here.keys(), "what was made for the run is gone"


def test_fewer_are_chosen_by_number_and_by_label(fleet, plimsoll, over, embedded, state, bucket_here, runs):
    fleet("a", "--label", "zone=1")
    fleet("b", "--label", "zone=2")
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s", "--json"]
    measured(over(*put, "--agents", "zone=2"))
    assert intervals(runs)[1] == ["b.zst"]
    many = over(*put, "--agents", "3")
    assert many.code == 2 and "3 agents are wanted, and 2 are free, of a, b" in many.err, many.err
    assert "fix: " in many.err
    none = over(*put, "--agents", "zone=9")
    assert none.code == 2 and "zone=9" in none.err
    # Of the environment, too; and by name where there is none.
    by_name = plimsoll(*put, server=embedded, env=state | {"PLIMSOLL_FLEET": "other"})
    assert by_name.code == 2 and "no fleet other is up" in by_name.err, by_name.err


def test_a_killed_agent_is_named_and_dated_and_the_others_go_on(three, over, background, embedded, state, bucket_here, runs):
    run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", "14s", "--fleet", "--deadman", "3s", "--json",
                     server=embedded, env=state)
    wait_until(lambda: "at work for run" in three["lg-2"].said(), 30, "a run")
    wait_until(lambda: bucket_here.holds(20), 30, "load")
    time.sleep(3)
    three["lg-2"].process.kill()
    out, err = run.communicate(timeout=60)
    summary = json.loads(out)
    assert run.returncode == 3, err
    lost = [f for f in summary["findings"] if f["name"] == "agent_lost"]
    assert len(lost) == 1 and lost[0]["agent"] == "lg-2", summary["findings"]
    said = re.search(r"agent lg-2 is lost: no data from it after ([\d.]+) s of load", err)
    assert said and 1 < float(said[1]) < 9, err
    # The others went on to the end.
    assert {"lg-1.zst", "lg-3.zst"} <= set(intervals(runs)[1])
    assert not bucket_here.keys()


def test_without_their_conductor_agents_stop_by_themselves(three, background, embedded, state, bucket_here, plimsoll, over):
    run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", "10min", "--fleet", "--deadman", "3s",
                     server=embedded, env=state)
    wait_until(lambda: bucket_here.holds(20), 30, "load")
    run.kill()
    run.wait()
    killed = time.monotonic()
    for agent in three.values():
        wait_until(lambda: "nothing was heard of the conductor for 3 s" in agent.said(), 15, agent.said())
        wait_until(lambda: "done with run" in agent.said(), 20, agent.said())
    assert time.monotonic() - killed < 15
    before = len(bucket_here.keys())
    time.sleep(1)
    assert len(bucket_here.keys()) == before, "the load has ended"
    # They are free again, and so is the fleet.
    measured(over("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s", "--json"))
    plimsoll("cleanup", "--all", server=embedded, env=state)


def test_a_broker_that_is_killed_costs_no_op(three, background, embedded, state, bucket_here, tmp_path):
    """Frames that were on their way are asked for again: the record has each op that the storage has."""
    load = ["--size", "1KiB", "--concurrency", "6", "--rate", "300/s", "--max-ops", "3000", "--keep"]
    run = background("object", "put", *bucket_here.flags(), *load, "--fleet", "--json", server=embedded, env=state)
    wait_until(lambda: bucket_here.holds(300), 30, "load")
    note = json.loads((tmp_path / "state/plimsoll/fleets/default/keeper.json").read_text())
    os.kill(note["broker_pid"], signal.SIGKILL)
    out, err = run.communicate(timeout=90)
    assert run.returncode in (0, 3, 5), err
    [put] = [w for w in json.loads(out)["workloads"] if w["op"] == "put"]
    ours = [k for k in bucket_here.keys() if not k.endswith(".plimsoll")]
    assert put["outcomes"] == {"ok": 3000}, err
    assert 3000 <= len(ours) <= 3001, "each op is one object, and a marker may be beside them"
    assert any("the fleet's broker is gone" in a.said() for a in three.values())


def test_an_agent_that_stands_still_is_lost_and_stops_when_it_goes_on(three, background, embedded, state, bucket_here):
    run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", "12s", "--fleet", "--deadman", "3s", "--json",
                     server=embedded, env=state)
    wait_until(lambda: bucket_here.holds(20), 30, "load")
    still = three["lg-3"]
    still.process.send_signal(signal.SIGSTOP)
    out, err = run.communicate(timeout=60)
    still.process.send_signal(signal.SIGCONT)
    assert run.returncode == 3, err
    lost = [f["agent"] for f in json.loads(out)["findings"] if f["name"] == "agent_lost"]
    assert lost == ["lg-3"], err
    # By what it hears then, or by that it hears nothing: whichever comes first.
    wait_until(lambda: "done with run" in still.said(), 20, "the agent to be free")


def test_files_are_each_agents_own_and_gone_again(fleet, over, tmp_path, plimsoll):
    files = tmp_path / "files"
    files.mkdir()
    agent = fleet("a", "--allow-dir", str(files))
    r = measured(over("block", str(files / "x.dat"), "--size", "16MiB", "--bs", "4KiB", "--pattern", "randrw", "--runtime", "2s",
                      "--json"))
    assert {w["op"] for w in r.summary["workloads"]} >= {"read", "write"}, r.err
    assert not list(files.iterdir())
    # What it made stands in a journal of its own.
    assert len(list((agent.runs / "agents").glob("*.a/journal"))) == 1


def test_an_agent_keeps_its_bounds(fleet, over, bucket_here, tmp_path):
    fleet("a", "--allow-endpoint", "https://elsewhere.example.net", "--max-duration", "30s")
    r = over("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s")
    assert r.code == 2 and "agent a: it does not let http://127.0.0.1:" in r.err and "--allow-endpoint" in r.err, r.err
    r = over("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2min")
    assert r.code == 2 and "agent a: it does not work for longer than 30 s" in r.err, r.err
    files = tmp_path / "files"
    files.mkdir()
    r = over("file", str(files), "--size", "4MiB", "--threads", "1")
    assert r.code == 2 and f"agent a: it does not let files be made in {files}" in r.err, r.err
    assert not list(files.iterdir()) and not bucket_here.keys()


def test_flags_of_a_fleet_are_refused_by_name_where_nothing_is_measured(plimsoll):
    for command in (["runs", "list"], ["fleet", "status"]):
        r = plimsoll(*command, "--fleet")
        assert r.code == 2 and "--fleet" in r.err, (command, r.err)
    r = plimsoll("object", "put", "--endpoint", "embedded", "--agents", "3")
    assert r.code == 2 and "--agents is of a fleet, and none is used" in r.err, r.err
    r = plimsoll("object", "put", "--endpoint", "embedded", "--fleet", "--deadman", "1s")
    assert r.code == 2 and "--deadman" in r.err, r.err


def test_a_second_conductor_is_refused_by_name(three, background, embedded, state, bucket_here, over):
    run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", "60s", "--fleet", server=embedded, env=state)
    wait_until(lambda: bucket_here.holds(20), 30, "load")
    second = over("object", "put", *bucket_here.flags(), *LOAD, "--duration", "2s")
    assert second.code == 2 and "in use by plimsoll object put (process " in second.err, second.err
    os.kill(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=40)
    assert run.returncode == 130, err
    assert not bucket_here.keys()


def test_down_leaves_nothing_and_agents_end_when_told(three, plimsoll, state, tmp_path):
    plimsoll("fleet", "down", env=state, check=True)
    assert not list((tmp_path / "state").iterdir())
    for agent in three.values():
        assert agent.process.wait(20) == 0 and "is over" in agent.said(), agent.said()
