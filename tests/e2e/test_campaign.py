"""`plimsoll campaign`: a matrix from one file. Killed, edited, with commands that hang: nothing is lost, and it says what is."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from conftest import BIN, wait_until

SIM = 'target = { kind = "sim", base = "5ms", spread = 0.1 }'
NULL = 'target = { kind = "null" }'


def campaign(tmp_path, subjects, head="", workloads=None, name="t"):
    """A file with these subjects (name: lines)."""
    text = f'version = 1\nname = "{name}"\n{head}\n'
    for subject, lines in subjects.items():
        text += f'[[subject]]\nname = "{subject}"\n{lines}\n'
    text += workloads or '[[workload]]\nname = "put"\nmix = { put = 1 }\nsizes = ["4KiB", "1MiB"]\nconcurrency = [4]\nduration = "10s"\nwarmup = "1s"\n'
    file = tmp_path / "c.toml"
    file.write_text(text)
    return file


def ledger(runs, name="t"):
    lines = (runs / "campaigns" / name / "ledger.jsonl").read_text().splitlines()
    out = []
    for line in lines:
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return out


def done(runs, name="t"):
    """How often each cell was measured."""
    out = {}
    for e in ledger(runs, name):
        if e["entry"] == "done":
            out[e["cell"]] = out.get(e["cell"], 0) + 1
    return out


def test_a_matrix_on_the_virtual_clock_and_its_table(plimsoll, runs, tmp_path):
    caps = "ops = { sustained_per_s = 200, capacity = 1 }"
    slow = SIM.replace("spread = 0.1", caps)
    file = campaign(tmp_path, {"fast": SIM + '\nlabels = { tier = "fast" }', "slow": slow + '\npromised = { ops_per_s = "200/s" }'}, "repeat = { at_least = 2 }")
    plan = plimsoll("campaign", "run", file, "--dry-run", check=True)
    assert "4 cells" in plan.out and "8 runs to go" in plan.out
    assert not runs.exists()
    result = plimsoll("campaign", "run", file, "--json", timeout=300, check=True)
    rows = {(r["subject"], r["workload"]): r for r in json.loads(result.out)["rows"]}
    assert set(rows) == {(s, f"put {n}") for s in ("fast", "slow") for n in ("4KiB", "1MiB")}
    for (subject, _), row in rows.items():
        rate = row["ops_per_s"]
        assert row["interval_of"] == "runs" and len(row["runs"]) == 2 and not row["void"], row
        if subject == "slow":
            assert abs(rate["value"] - 200) < 2 and row["promised"]["ops_per_s"] == "200/s"
        else:
            assert 700 < rate["value"] < 900 and rate["low"] < rate["value"] < rate["high"]
    # Each run is one as any other, and says which cell it is of.
    shown = json.loads(plimsoll("runs", "list", "--json", check=True).out)
    labels = [r["labels"] for r in shown]
    assert len(labels) == 8 and all(x["campaign"] == "t" for x in labels)
    assert {x["tier"] for x in labels if x["subject"] == "fast"} == {"fast"}
    # A line for each run, on stderr.
    assert len(re.findall(r"^plimsoll: \d+/8  (fast|slow), put", result.err, re.M)) == 8, result.err
    table = plimsoll("campaign", "status", file, check=True).out
    assert "8 runs done, 0 to go" in table and "200/s" in table, table
    again = plimsoll("campaign", "run", file)
    assert again.code == 2 and "was begun here before" in again.err and "another name" in again.err


def test_killed_twice_it_goes_on_and_two_at_once_are_refused(plimsoll, background, runs, tmp_path):
    work = '[[workload]]\nname = "put"\nmix = { put = 1 }\nduration = "700ms"\nwarmup = "100ms"\n'
    file = campaign(tmp_path, {"a": NULL, "b": NULL}, "repeat = { at_least = 3 }", work)
    process = background("campaign", "run", file, "-q")
    wait_until(lambda: (runs / "campaigns/t/ledger.jsonl").exists() and len(done(runs)) > 0, 60, "a first run")
    second = plimsoll("campaign", "resume", file)
    assert second.code == 2 and "another plimsoll works on campaign 't'" in second.err, second.err
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    before = sum(done(runs).values())
    process = background("campaign", "resume", file, "-q")
    wait_until(lambda: sum(done(runs).values()) > before, 60, "another run")
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    # A line that was being written when the power went.
    with open(runs / "campaigns/t/ledger.jsonl", "a") as f:
        f.write('{"entry":"do')
    status = plimsoll("campaign", "status", file, check=True)
    assert "to go" in status.out
    # The null target measures this machine, which may be what binds: then its runs are void, and count all the same.
    end = plimsoll("campaign", "resume", file, "--json")
    assert end.code in (0, 3), end.err
    assert done(runs) == {"a//put": 3, "b//put": 3}
    assert json.loads(end.out)["to_go"] == 0
    begun = sum(e["entry"] == "under" for e in ledger(runs))
    assert begun <= 6 + 2


def test_commands_are_shown_first_and_end_with_all_that_they_started(plimsoll, runs, tmp_path):
    pid, mark = tmp_path / "pid", tmp_path / "mark"
    hooks = f'before = ["echo $PLIMSOLL_SUBJECT >> {mark}"]\nafter = ["echo off >> {mark}"]\n{SIM}'
    hangs = f'before = ["sleep 1000 & echo $! > {pid}; wait"]\nhook_limit = "1s"\n{SIM}'
    file = campaign(tmp_path, {"a": hooks, "b": hangs}, 'repeat = { at_least = 1 }\norder = "by-subject"')
    seen = plimsoll("campaign", "run", file)
    assert seen.code == 2 and "--allow-hooks" in seen.err and "a, before, at most 1m: echo" in seen.err, seen.err
    assert not mark.exists()
    result = plimsoll("campaign", "run", file, "--allow-hooks")
    assert result.code == 5, result.err
    assert "took longer than 1 s" in result.err and "campaign resume" in result.err
    assert mark.read_text() == "a\noff\n"
    assert done(runs) == {"a//put 4KiB": 1, "a//put 1MiB": 1}
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), 30, "the end of what it started")
    file.write_text(file.read_text().replace("sleep 1000 &", "sleep 0 &"))
    # Whoever allows everything in advance has not seen this one.
    unseen = plimsoll("campaign", "resume", file, "-q", "--allow-hooks", "--accept-changes")
    assert unseen.code == 2 and "b, before, at most 1s: sleep 0 &" in unseen.err and "same command again" in unseen.err, unseen.err
    edited = plimsoll("campaign", "resume", file, "--allow-hooks")
    assert edited.code == 2 and "subject 'b'.before" in edited.err, edited.err
    plimsoll("campaign", "resume", file, "--allow-hooks", "--accept-changes", check=True)
    assert sum(done(runs).values()) == 4


def test_an_edit_is_named_and_what_is_unchanged_is_kept(plimsoll, runs, tmp_path):
    file = campaign(tmp_path, {"a": SIM}, "repeat = { at_least = 1 }")
    plimsoll("campaign", "run", file, check=True)
    file.write_text("# a remark\n" + file.read_text())
    plimsoll("campaign", "resume", file, check=True)
    file.write_text(file.read_text().replace('"1MiB"', '"2MiB"'))
    refused = plimsoll("campaign", "resume", file)
    assert refused.code == 2 and "cell added: a//put 2MiB" in refused.err and "cell gone: a//put 1MiB" in refused.err
    assert sum(done(runs).values()) == 2
    plimsoll("campaign", "resume", file, "--accept-changes", check=True)
    assert done(runs) == {"a//put 4KiB": 1, "a//put 1MiB": 1, "a//put 2MiB": 1}
    table = plimsoll("campaign", "status", file, "--json", check=True)
    assert {r["workload"] for r in json.loads(table.out)["rows"]} == {"put 4KiB", "put 2MiB"}


def test_budgets_and_subjects_that_are_gone(plimsoll, runs, tmp_path):
    small = campaign(tmp_path, {"a": NULL}, 'repeat = { at_least = 1 }\nbudget = { time = "10s" }')
    told = plimsoll("campaign", "run", small, "--dry-run")
    assert told.code == 2 and "too small to measure each cell once: that takes 22 s" in told.err, told.err
    gone = 'target = { kind = "s3", endpoints = ["http://127.0.0.1:9"], bucket = "x" }'
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    file = campaign(tmp_path, {"gone": gone, "a": SIM}, "repeat = { at_least = 1 }")
    result = plimsoll("campaign", "run", file, env=keys)
    assert result.code == 5 and "gone: " in result.err and "127.0.0.1:9" in result.err, result.err
    assert done(runs) == {"a//put 4KiB": 1, "a//put 1MiB": 1}
    unbounded = campaign(tmp_path, {"s": gone}, 'budget = { bytes = "1GiB" }', name="u")
    told = plimsoll("campaign", "run", unbounded, env=keys)
    assert told.code == 2 and "cannot be bounded" in told.err and "promises" in told.err, told.err


def test_what_a_killed_run_took_is_spent(plimsoll, background, runs, tmp_path):
    """Time, payload and ops of its record, and of the moment after that: no kill is free."""
    load = '[[workload]]\nname = "put"\nmix = { put = 1 }\npacing = { constant = "200/s" }\nsizes = ["4KiB"]\nconcurrency = [4]\nduration = "30s"\nwarmup = "0s"\n'
    file = campaign(tmp_path, {"a": NULL}, 'repeat = { at_least = 1 }\nbudget = { time = "36s" }', load)
    process = background("campaign", "run", file)
    wait_until(lambda: (runs / "campaigns/t/ledger.jsonl").exists() and any(e["entry"] == "under" for e in ledger(runs)), 60, "a run")
    wait_until(lambda: any(p.stat().st_size for p in runs.glob("*/intervals/*")), 60, "its record")
    time.sleep(8)
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = plimsoll("campaign", "resume", file)
    assert again.code == 5 and "the budget is used up (time: 36s)" in again.err, again.err
    (dropped,) = [e for e in ledger(runs) if e["entry"] == "dropped"]
    assert 5 < dropped["took_s"] < 30 and 1000 <= dropped["requests"] <= 200 * dropped["took_s"] + 500, dropped
    status = plimsoll("campaign", "status", file, check=True).out
    assert re.search(r"spent: \d+ s, about \S+ MiB of payload, [12],\d{3} ops\n", status) and "1 run was cut short" in status, status


def test_resume_finds_the_runs_where_run_was_told_to_put_them(tmp_path):
    """From any directory, without a flag; another one may be named."""
    mark, there, here = tmp_path / "mark", tmp_path / "there", tmp_path / "here"
    here.mkdir()
    file = campaign(tmp_path, {"a": SIM, "b": f'before = ["test -e {mark}"]\n{SIM}'}, "repeat = { at_least = 1 }")
    env = {k: v for k, v in os.environ.items() if k != "PLIMSOLL_RUNS"} | {"XDG_STATE_HOME": str(tmp_path / "state")}

    def call(*args):
        return subprocess.run([BIN, "campaign", *map(str, args)], env=env, cwd=here, capture_output=True, text=True, timeout=300)

    begun = call("run", file, "--allow-hooks", "--runs-dir", there)
    assert begun.returncode == 5, begun.stderr
    elsewhere = call("resume", file, "--allow-hooks", "--runs-dir", tmp_path / "new")
    assert elsewhere.returncode == 2 and "was not begun here" in elsewhere.stderr, elsewhere.stderr
    mark.touch()
    shown = call("status", file)
    assert shown.returncode == 0 and "2 to go" in shown.stdout and f"with its runs in {there}" in shown.stderr, shown
    ended = call("resume", file, "--allow-hooks")
    assert ended.returncode == 0 and sum(done(there).values()) == 4, ended.stderr
    assert not list(here.iterdir())
    # A fleet that is named now, and one that is not to be used.
    both = call("resume", file, "--allow-hooks", "--here", "--fleet=lab")
    assert both.returncode == 2 and "fleet 'lab' is named" in both.stderr, both.stderr
    # What is noted of a campaign whose runs are gone helps nobody.
    shutil.rmtree(there)
    assert call("resume", file).returncode == 2


def test_runs_that_were_brought_along_stand_beside_ours(plimsoll, runs, tmp_path):
    first = campaign(tmp_path, {"a": SIM}, "repeat = { at_least = 2 }", name="there")
    plimsoll("campaign", "run", first, env={"PLIMSOLL_RUNS": str(tmp_path / "there")}, check=True)
    dirs = sorted(p.name for p in (tmp_path / "there").iterdir() if (p / "plan.toml").exists())
    brought = ", ".join(f'"there/{d}"' for d in dirs)
    file = campaign(tmp_path, {"theirs": f"runs = [{brought}]", "ours": SIM}, "repeat = { at_least = 2 }")
    result = json.loads(plimsoll("campaign", "run", file, "--json", check=True).out)
    rows = {(r["subject"], r["workload"]): r for r in result["rows"]}
    assert len(rows) == 4
    for size in ("4KiB", "1MiB"):
        theirs, ours = (rows[(s, f"put {size}")]["ops_per_s"]["value"] for s in ("theirs", "ours"))
        assert abs(theirs / ours - 1) < 0.05
    assert sum(done(runs).values()) == 4


def test_templates_are_written_once_and_say_what_is_to_be_filled_in(plimsoll, tmp_path):
    for name in ("object-tiers", "cluster-speed", "gateway-cluster", "block-tiers", "disks"):
        file = tmp_path / f"{name}.toml"
        plimsoll("campaign", "new", name, "-o", file, check=True)
        told = plimsoll("campaign", "run", file, "--dry-run")
        assert told.code == 2 and "FILL-IN still stands there" in told.err, told.err
        again = plimsoll("campaign", "new", name, "--embedded", "-o", file)
        assert again.code == 2 and "never overwritten" in again.err
        small = tmp_path / f"{name}-small.toml"
        plimsoll("campaign", "new", name, "--embedded", "-o", small, check=True)
        plimsoll("campaign", "run", small, "--dry-run", check=True)
