"""A dozen of the faults of bench/fleet_faults.py, each in a run of its own over three agents, and what has to hold after it: see fleet_trouble.py."""

import json
import signal

import fleet_trouble
import pytest
from conftest import BIN

WHY = fleet_trouble.possible()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "")

# Kind, agent, when, and what else of it.
FAULTS = [
    ("agent_killed", "lg-1", 0.4, {}),
    ("agent_killed", "lg-3", 1.7, {}),
    ("agent_stopped", "lg-2", 0.5, {"for_s": 1.2}),
    ("agent_stopped", "lg-1", 0.3, {"for_s": 5.5}),
    ("agent_slow", "lg-3", 0.2, {"for_s": 3.0, "kbit": 128}),
    ("link_cut", "lg-1", 0.6, {"for_s": 1.0}),
    ("link_cut", "lg-2", 0.3, {"for_s": 6.5}),
    ("broker_restarted", "lg-1", 1.1, {}),
    ("conductor_killed", "lg-1", 0.9, {}),
    ("disk_full", "lg-2", 0.5, {}),
    ("clock_jump", "lg-3", 0.8, {"by_ns": 7_000_000_000}),
    ("clock_jump", "lg-1", 0.5, {"by_ns": -50_000_000}),
]


@pytest.mark.parametrize("kind,agent,after_s,more", FAULTS, ids=[f"{k}-{a}-{i}" for i, (k, a, *_) in enumerate(FAULTS)])
def test_a_fault_costs_no_more_than_is_said(kind, agent, after_s, more):
    out = fleet_trouble.one(BIN, {"kind": kind, "agent": agent, "after_s": after_s} | more)
    assert not out["broken"], json.dumps(out, indent=1)
    # What has to be lost is, and whoever was cut off longer than the deadman delivers what it has.
    if kind == "agent_killed":
        assert out["lost"] == [agent], out
    if kind == "link_cut" and more["for_s"] > 2 * fleet_trouble.DEADMAN_S:
        assert out["lost"] == [agent], out
    if kind == "conductor_killed":
        assert out["tail_ops"] <= fleet_trouble.CONCURRENCY and len(out["collected"]) == 3, out


def test_collect_says_what_it_cannot(plimsoll, tmp_path):
    """A run that is none, one of this machine alone, and one without a fleet that is up."""
    nothing = plimsoll("fleet", "collect", "last")
    assert nothing.code == 2 and "there are no runs yet" in nothing.err, nothing.err
    plan = tmp_path / "plan.toml"
    plan.write_text('version = 1\n[targets.n]\nkind = "null"\n[[stage]]\nwarmup = "0s"\n[[stage.workload]]\nname = "w"\n'
                    'mix = { null = 1 }\npacing = { constant = "100/s" }\nstop = { duration = "1s" }\n')
    plimsoll("run", str(plan))
    alone = plimsoll("fleet", "collect", "last")
    assert alone.code == 2 and "of this machine alone" in alone.err, alone.err


def test_a_second_conductor_does_not_collect_and_a_killed_run_goes_on_with_its_agents():
    scene = fleet_trouble.Scene(BIN)
    try:
        scene.load(30)
        busy = scene.run("fleet", "collect", "last", codes=(2,))
        assert "is still in progress" in busy.stderr, busy.stderr
        second = scene.run("object", "put", "--endpoint", scene.endpoint, "--bucket", "bench", "--size", "1KiB", "--duration", "1s",
                           "--fleet", codes=(2,))
        assert "in use by plimsoll object put" in second.stderr, second.stderr
        scene.conductor.kill()
        scene.conductor.wait()
        run = scene.run_dir()
        alone = scene.run("run", "--resume", run, codes=(2,))
        assert "of 3 agents of a fleet (lg-1, lg-2, lg-3)" in alone.stderr and "--fleet" in alone.stderr, alone.stderr
        # One of them is away: the run does not go on without it.
        scene.agents["lg-2"].signal(signal.SIGSTOP)
        fewer = scene.run("run", "--resume", run, "--fleet", codes=(2,))
        assert "lg-2 took part in it" in fewer.stderr or "agent lg-2" in fewer.stderr, fewer.stderr
        scene.agents["lg-2"].signal(signal.SIGCONT)
        fleet_trouble.wait_until(scene.all_free, 60, "all agents to be free")
        whole = scene.run("run", "--resume", run, "--fleet", "--json", codes=(0, 3, 5), timeout=180)
        summary = json.loads(whole.stdout)
        assert {a["agent"] for a in summary["agents"]} == set(scene.agents), whole.stderr
        assert summary["workloads"][0]["window_s"] > 20, summary["workloads"]
        assert (run / "seal.json").is_file()
        # Nobody said it again: as long as when the run was begun.
        assert f"--deadman={fleet_trouble.DEADMAN_S}s, as the run was begun" in whole.stderr, whole.stderr
    finally:
        assert not scene.close()
