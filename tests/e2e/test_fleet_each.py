"""What is asked for once and meant for each agent (--each)."""

import json

from test_fleet import fleet, measured, over, three  # noqa: F401

PUT = ["object", "put", "--size", "1KiB", "--warmup", "0s", "--json"]


def test_a_rate_and_a_number_of_ops_are_each_agents(three, over, bucket_here, runs):  # noqa: F811
    load = [*PUT, *bucket_here.flags(), "--concurrency", "4", "--rate", "40/s", "--max-ops", "120"]
    whole = measured(over(*load, "--keep")).workload("put")
    assert whole["outcomes"] == {"ok": 120} and whole["concurrency"] == 4
    r = measured(over(*load, "--each"))
    each = r.workload("put")
    assert each["outcomes"] == {"ok": 360} and each["concurrency"] == 12, r.err
    said = "4 in flight and 40/s on each of 3 agents, 12 in flight in all"
    assert said in r.err and said in [f["text"].rstrip(".") for f in r.summary["findings"]], r.err
    assert "--each" in r.summary["rerun"]
    assert len({a["agent"] for a in r.summary["agents"]}) == 3
    # It is in the plan, which asks for so many agents wherever it is run.
    plan = next(p for p in sorted(runs.glob("*/plan.toml")) if "each = 3" in p.read_text())
    r = over("run", str(plan), "--agents", "2")
    assert r.code == 2 and "what 3 agents do together" in r.err and "--agents 3" in r.err, r.err
    r = over("run", str(plan), "--each")
    assert r.code == 2 and "Leave out --each" in r.err, r.err


def test_a_dry_run_says_it_and_a_run_on_one_machine_refuses_it(three, over, plimsoll, embedded, bucket_here):  # noqa: F811
    load = [*PUT[:-1], *bucket_here.flags(), "--concurrency", "64"]
    r = over(*load, "--each", "--dry-run")
    assert r.code == 0 and "64 in flight on each of 3 agents, 192 in flight in all" in r.out, r.err
    alone = plimsoll(*load, "--each", server=embedded)
    assert alone.code == 2 and "--each is of a fleet, and none is used" in alone.err, alone.err
    assert not bucket_here.keys()


def test_an_embedded_server_is_started_for_agents_of_this_machine(three, over, runs):  # noqa: F811
    get = ["object", "get", "--endpoint", "embedded", "--size", "4KiB", "--objects", "40", "--concurrency", "6", "--warmup", "0s"]
    r = measured(over(*get, "--duration", "2s", "--verify", "--json"))
    assert r.workload("get")["outcomes"]["ok"] > 50, r.err
    assert len(r.summary["agents"]) == 3
    r = measured(over("object", "put", "--endpoint", "embedded", "--tier", "vultr-standard", "--size", "4KiB", "--concurrency", "6",
                      "--warmup", "0s", "--duration", "2s", "--json"))
    assert r.workload("put")["outcomes"]["ok"] > 20, r.err


def test_each_machine_of_a_fleet_is_calibrated_and_keeps_it(fleet, over, plimsoll, state, tmp_path):  # noqa: F811
    for name in ("lg-1", "lg-2"):
        fleet(name, env={"XDG_STATE_HOME": str(tmp_path / "ceilings")})
    r = over("calibrate", "--duration", "500ms", "--json")
    assert r.code in (0, 5), r.err
    made = r.summary
    # One machine: by one of its agents.
    assert list(made) == ["lg-1"] and made["lg-1"]["ops_per_s"]["null"]["value"] > 1000, made
    status = json.loads(plimsoll("fleet", "status", "--json", env=state).out)
    [one] = [a for a in status["agents"] if a["name"] == "lg-1"]
    # `wide` is there where some ceiling is too wide to be kept.
    narrow = set(made["lg-1"]["ops_per_s"]) - set(made["lg-1"].get("wide", []))
    assert set(one["machine"]["ceiling"]) == narrow, one
    r = over("calibrate", "--each")
    assert r.code == 2 and "--each" in r.err
