"""`--detach`: the load goes on without the command that asked for it, and is waited for, shown and stopped by name."""

import json
import os
import signal
import subprocess

from conftest import BIN, wait_until
from test_fleet import LOAD, fleet, over  # noqa: F401

DETACHED = ["--detach", "--duration", "5s", "--json"]


def conductor_of(plimsoll, env):
    return json.loads(plimsoll("fleet", "status", "--json", env=env).ok().out)["detached"]


def test_it_goes_on_alone_and_its_result_is_waited_for(fleet, over, plimsoll, state, embedded, bucket_here, runs):  # noqa: F811
    fleet("a")
    r = over("object", "put", *bucket_here.flags(), *LOAD, *DETACHED)
    assert r.code == 0, r.err
    run = r.out.strip()
    assert (runs / run).is_dir() and f"run {run} goes on in the background" in r.err and str(runs / run) in r.err, r.err
    told = conductor_of(plimsoll, state)
    assert told["run"] == run and told["goes_on"] and told["directory"] == str(runs / run) and told["log"] in r.err, told
    # Of a session of its own, without a terminal, and without secrets where all users of the machine can read.
    process = told["process"]
    assert os.getsid(process) == process and os.readlink(f"/proc/{process}/fd/2") == told["log"]
    with open(f"/proc/{process}/cmdline") as f:
        assert embedded.env()["AWS_SECRET_ACCESS_KEY"] not in f.read()
    assert f"run {run} (plimsoll object put" in plimsoll("fleet", "status", env=state).ok().out
    # The fleet is its.
    r = over("object", "put", *bucket_here.flags(), *LOAD, *DETACHED)
    assert r.code == 2 and "in use by plimsoll object put" in r.err and r.out == "", r.err
    r = plimsoll("fleet", "down", env=state)
    assert r.code == 2 and "plimsoll fleet stop" in r.err, r.err
    r = plimsoll("fleet", "wait", env=state, timeout=120)
    assert r.code in (0, 3, 5) and r.summary["id"] == run, r.err
    assert f"run {run} ended" in r.err and f"exit code {r.code}" in r.err, r.err
    assert plimsoll("fleet", "wait", env=state).code == r.code, "it may be asked again"
    told = conductor_of(plimsoll, state)
    assert not told["goes_on"] and told["exit_code"] == r.code, told
    assert "not in use" in plimsoll("fleet", "status", env=state).ok().out
    # And what there is of it on the fleet's side goes with the fleet.
    plimsoll("fleet", "down", env=state).ok()
    assert not list(os.scandir(state["XDG_RUNTIME_DIR"]))


def test_it_is_stopped_by_name_and_what_fails_before_the_load_is_told_here(fleet, over, plimsoll, state, bucket_here, runs):  # noqa: F811
    fleet("a")
    assert plimsoll("fleet", "stop", env=state).code == 2 and plimsoll("fleet", "wait", env=state).code == 2
    r = over("object", "put", *bucket_here.flags()[:-2], "--bucket", "none-of-this-name", *LOAD, *DETACHED)
    assert r.code == 2 and r.out == "" and "none-of-this-name" in r.err, r.err
    r = over("object", "put", *bucket_here.flags(), *LOAD, "--detach", "--duration", "10h")
    run = r.out.strip()
    assert r.code == 0 and run, r.err
    r = plimsoll("fleet", "stop", "another-run", env=state)
    assert r.code == 2 and run in r.err, r.err
    r = plimsoll("fleet", "stop", run, env=state, timeout=120)
    assert r.code == 0 and "exit code 130" in r.err and str(runs / run) in r.err, r.err
    r = plimsoll("fleet", "wait", env=state)
    assert r.code == 130 and "put" in r.out, r.err
    assert json.loads((runs / run / "summary.json").read_text())["id"] == run


def test_ctrl_c_ends_it_before_the_load_and_not_after(fleet, over, plimsoll, state, embedded, bucket_here, runs):  # noqa: F811
    """A group of processes of its own, as a shell makes one for each command."""
    agent = fleet("a")
    log = runs.parent / "said"
    with open(log, "w") as said:
        command = subprocess.Popen(
            [str(BIN), "object", "get", *bucket_here.flags(), "--size", "4KiB", "--objects", "200000", "--detach", "--duration", "10h",
             "--fleet", "--runs-dir", str(runs)],
            env=os.environ | embedded.env() | state, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
        )
    wait_until(lambda: "preparing" in log.read_text() or "plimsoll: run" in log.read_text(), 60, "the data set")
    os.killpg(command.pid, signal.SIGINT)
    assert command.wait(60) == 130, log.read_text()
    wait_until(lambda: "not in use" in plimsoll("fleet", "status", env=state).ok().out, 20, "the end")
    r = over("object", "put", *bucket_here.flags(), *LOAD, "--detach", "--duration", "10h", "--deadman", "2s")
    process = conductor_of(plimsoll, state)["process"]
    assert os.getpgid(process) == process, "no terminal's signal reaches it"
    # Killed, it says nothing: the command that waits says what to do.
    os.kill(process, signal.SIGKILL)
    r = plimsoll("fleet", "wait", env=state, timeout=60)
    assert r.code == 3 and "plimsoll fleet collect" in r.err, r.err
    wait_until(lambda: agent.said().count("done with run") == 2, 60, agent.said())
