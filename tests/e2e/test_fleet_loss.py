"""What becomes of a run when one of its agents is lost: judged as was asked, and the demo that shows it."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import BIN, ROOT, wait_until
from test_fleet import AGENTS, LOAD, fleet, over, three  # noqa: F401 (fixtures)


def lost(summary):
    return [f for f in summary["findings"] if f["name"] == "agent_lost"]


@pytest.fixture
def with_a_kill(three, background, embedded, state, bucket_here):  # noqa: F811
    """Puts for a time, and kills lg-2 in the middle of it."""

    def call(duration, *flags, kill_after=8):
        run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", duration, "--fleet", "--deadman", "3s",
                         "--json", *flags, server=embedded, env=state)
        wait_until(lambda: bucket_here.holds(20), 60, "load")
        time.sleep(kill_after)
        three["lg-2"].process.kill()
        out, err = run.communicate(timeout=120)
        assert not bucket_here.keys(), "what was made for the run is gone"
        return run.returncode, json.loads(out), err

    return call


def test_a_loss_that_is_taken_leaves_a_result_for_the_time_before(with_a_kill, plimsoll, state):  # noqa: F811
    code, summary, err = with_a_kill("24s", "--on-agent-loss", "continue")
    said = re.search(r"agent lg-2 is lost: no data from it after ([\d.]+) s of load .*the others go on", err)
    assert said, err
    [finding] = lost(summary)
    assert (finding["agent"], finding["level"]) == ("lg-2", "qualified"), finding
    [put] = [w for w in summary["workloads"] if w["op"] == "put"]
    # A second of warm-up, and then until it was lost.
    assert abs(put["window_s"] - (float(said[1]) - 1)) < 0.3, (put["window_s"], err)
    assert "Agent lg-2 was lost" in summary["verdict"], summary["verdict"]
    # Nothing but what a busy machine does to any run stands against it.
    invalid = [f["code"] for f in summary["findings"] if f["level"] == "invalid"]
    assert (code == 0) == (summary["answered"] and not invalid) and "V24" not in invalid, (code, summary["findings"])
    # The run says by itself how it is judged.
    again = json.loads(plimsoll("runs", "show", "last", "--json", env=state).out)
    assert again["workloads"] == summary["workloads"] and lost(again) == lost(summary)
    assert "was lost" in plimsoll("runs", "show", "last", env=state).out


def test_a_run_that_is_not_to_outlast_a_loss_ends_there(with_a_kill):
    began = time.monotonic()
    code, summary, err = with_a_kill("10min", "--on-agent-loss", "stop", kill_after=3)
    assert time.monotonic() - began < 120 and code == 3, err
    assert "is lost" in err and "the run ends" in err, err
    [finding] = lost(summary)
    assert finding["level"] == "invalid" and "ended_by_loss" in {f["name"] for f in summary["findings"]}, summary["findings"]
    [put] = [w for w in summary["workloads"] if w["op"] == "put"]
    assert put["outcomes"]["ok"] > 20 and not put["valid"], "what was measured can be read"


def test_the_flag_is_of_a_fleet_and_has_three_values(plimsoll):
    r = plimsoll("object", "put", "--endpoint", "embedded", "--on-agent-loss", "stop")
    assert r.code == 2 and "--on-agent-loss is of a fleet, and none is used" in r.err, r.err
    r = plimsoll("object", "put", "--endpoint", "embedded", "--fleet", "--on-agent-loss", "perhaps")
    assert r.code == 2 and "continue" in r.err, r.err
    r = plimsoll("object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "b", "--fleet", "--on-agent-loss", "stop", "--dry-run")
    assert r.code == 0 and 'on_agent_loss = "stop"' in r.out, r.out


def processes(word):
    return subprocess.run(["pgrep", "-f", word], stdout=subprocess.PIPE, text=True).stdout.split()


def test_the_demo_shows_a_loss_and_leaves_nothing_but_its_run_and_its_report(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))}
    env |= {"PLIMSOLL_BIN": str(BIN), "DEMO_SECONDS": "18", "DEMO_REPORT": str(tmp_path / "report.html"),
            "PLIMSOLL_RUNS": str(tmp_path / "runs"), "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "100"}
    (tmp_path / "tmp").mkdir()
    done = subprocess.run([str(ROOT / "scripts/demo-fleet.sh")], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=200)
    # 0, unless this machine is so busy that another finding stands against the result.
    assert done.returncode == 0, done.stderr
    assert "agent lg-3 is lost" in done.stderr, done.stderr
    said = " ".join(done.stdout.split())
    assert "Agent lg-3 was lost" in said and "in which all agents were there" in said and "lg-3 lost; clocks" in said, done.stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert not list((tmp_path / "tmp").iterdir()) and not processes(str(tmp_path / "tmp"))


def test_a_demo_that_is_ended_leaves_nothing(tmp_path):
    env = dict(os.environ) | {"PLIMSOLL_BIN": str(BIN), "PLIMSOLL_RUNS": str(tmp_path / "runs"), "TMPDIR": str(tmp_path / "tmp"),
                              "DEMO_REPORT": str(tmp_path / "report.html")}
    (tmp_path / "tmp").mkdir()
    demo = subprocess.Popen([str(ROOT / "scripts/demo-fleet.sh")], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)
    logs = lambda: "".join(p.read_text() for p in (tmp_path / "tmp").glob("*/lg-*"))  # noqa: E731
    wait_until(lambda: "at work for run" in logs(), 60, "a run")
    demo.terminate()
    demo.communicate(timeout=60)
    assert demo.returncode == 143
    wait_until(lambda: not processes(str(tmp_path / "tmp")), 20, "nothing to be left")
    assert not list((tmp_path / "tmp").iterdir())


def test_what_a_lost_agent_made_is_removed_where_it_is_said_to_be(fleet, background, plimsoll, state, runs, tmp_path):  # noqa: F811
    disk = tmp_path / "disk"
    disk.mkdir()
    agents = {name: fleet(name, "--allow-dir", str(disk)) for name in ("lg-1", "lg-2")}
    run = background("file", disk, "--size", "8MiB", "--iops-duration", "8s", "--fleet", "--deadman", "3s", "--on-agent-loss", "continue", env=state)
    wait_until(lambda: len(list(disk.glob("*/bench*"))) >= 2, 60, "files of both agents")
    time.sleep(1)
    agents["lg-2"].process.kill()
    _, err = run.communicate(timeout=120)
    there = re.search(r"on its machine: `plimsoll cleanup (agents/\S+\.lg-2)`", err)
    assert there and [p.name for p in disk.iterdir()] == ["plimsoll-file.lg-2"], (err, list(disk.iterdir()))
    # Here nobody knows what is on that machine, and nobody says that there is nothing.
    again = plimsoll("cleanup", "last", env=state)
    assert again.code == 6 and "left nothing behind that this machine knows of" in again.err and "lg-2" in again.err, again.err
    [record] = tmp_path.rglob(there[1])
    assert plimsoll("cleanup", record, env=state).code == 0 and not list(disk.iterdir()), list(disk.iterdir())


def test_an_agent_that_waits_for_its_token_ends_when_it_is_asked_to():
    for sign in (signal.SIGTERM, signal.SIGINT):
        # Whoever starts the tests in the background of a shell has SIGINT ignored, and so would all that they start.
        agent = subprocess.Popen([BIN, "agent", "--join", "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(0.5)
        agent.send_signal(sign)
        try:
            assert agent.wait(20) != 0
        finally:
            agent.kill()
            agent.stdin.close()
