"""A campaign that waits: for a machine at rest, for a time of day; and one whose disk fills up."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

from block_support import ROOT_ONLY, sh, unmount
from conftest import wait_until
from test_campaign import NULL, SIM, campaign, done, ledger

SHORT = '[[workload]]\nname = "put"\nmix = { put = 1 }\nduration = "{}"\nwarmup = "100ms"\n'


def test_a_machine_that_does_not_come_to_rest_is_remarked(plimsoll, runs, tmp_path):
    file = campaign(tmp_path, {"a": NULL}, "repeat = { at_least = 1 }", SHORT.replace("{}", "500ms"))
    plan = plimsoll("campaign", "run", file, "--wait-for-rest", "2s", "--dry-run", check=True).out
    assert "at most 2s are waited" in plan, plan
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        result = plimsoll("campaign", "run", file, "--wait-for-rest", "2s")
    finally:
        for p in spin:
            p.kill()
            p.wait()
    # On a machine that is busy otherwise the null target's run is void; it is made, and remarked, all the same.
    assert result.code in (0, 3), result.err
    assert "in vain: others use" in result.err and "begun without rest" in result.out, result.out + result.err
    entries = ledger(runs)
    run = next(e["run"] for e in entries if e["entry"] == "done")
    assert run["remark"].startswith("begun without rest, after it was waited 2s for: others use"), run
    assert next(e for e in entries if e["entry"] == "under")["waited_s"] >= 2


def test_a_time_of_day_is_waited_for_and_ctrl_c_loses_nothing(plimsoll, background, runs, tmp_path):
    due = datetime.now(timezone.utc) + timedelta(hours=6)
    times = f'times = ["{due:%H:%M}", "{due + timedelta(hours=12):%H:%M}"]\ntime_zone = "UTC"\n'
    head = "repeat = { at_least = 2 }\n"
    file = campaign(tmp_path, {"a": SIM}, times + head)
    begun = runs / "campaigns/t/ledger.jsonl"
    for command in ("run", "resume"):
        process = background("campaign", command, file)
        said = process.stderr.readline()
        while "waiting until then" not in said:
            assert said, f"exit {process.wait()}"
            said = process.stderr.readline()
        assert f"{due:%Y-%m-%d %H:%M} +00:00" in said, said
        status = plimsoll("campaign", "status", file, check=True).out
        # In the first half of a minute that rounds to six hours.
        assert re.search(rf"next due: {due:%Y-%m-%d %H:%M} \+00:00 \(in (5 h 5\d min|6 h 0 min)\)", status), status
        assert f"block 1 of its repeats, at {due:%H:%M}" in status, status
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
    assert all(json.loads(line) for line in begun.read_text().splitlines())
    assert done(runs) == {} and ledger(runs)[-1]["entry"] == "ended"
    # Without the times it goes on at once.
    file.write_text(file.read_text().replace(times, ""))
    told = plimsoll("campaign", "resume", file)
    assert told.code == 2 and "times: nothing was" in told.err, told.err
    plimsoll("campaign", "resume", file, "--accept-changes", check=True)
    assert done(runs) == {"a//put 4KiB": 2, "a//put 1MiB": 2}


@contextlib.contextmanager
def small_disk(where, size):
    where.mkdir()
    sh("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", where)
    try:
        yield
    finally:
        unmount(where)


@ROOT_ONLY
def test_a_disk_that_is_nearly_full_ends_a_session_before_a_run(plimsoll, runs, tmp_path):
    ballast, once = runs / "ballast", tmp_path / "once"
    fills = f'before = ["test -e {once} || {{ touch {once}; head -c 40M /dev/zero > {ballast}; }}"]\n{SIM}'
    file = campaign(tmp_path, {"a": SIM, "b": fills}, 'repeat = { at_least = 1 }\norder = "as-written"')
    with small_disk(runs, "96M"):
        full = plimsoll("campaign", "run", file, "--allow-hooks")
        assert full.code == 2 and "MiB free, too little to record a run: free some space" in full.err, full.err
        assert "What was measured is kept" in full.err and "campaign resume" in full.err
        assert done(runs) == {"a//put 4KiB": 1, "a//put 1MiB": 1}
        ballast.unlink()
        plimsoll("campaign", "resume", file, "--allow-hooks", check=True)
        assert done(runs) == {f"{s}//put {n}": 1 for s in "ab" for n in ("4KiB", "1MiB")}


@ROOT_ONLY
def test_a_disk_that_fills_up_in_a_run_costs_that_run_alone(plimsoll, background, runs, tmp_path):
    file = campaign(tmp_path, {"a": NULL}, "repeat = { at_least = 2 }", SHORT.replace("{}", "3s"))
    with small_disk(runs, "80M"):
        process = background("campaign", "run", file, "-q")
        begun = lambda n: (runs / "campaigns/t/ledger.jsonl").exists() and sum(e["entry"] == "under" for e in ledger(runs)) == n
        wait_until(lambda: begun(2), 60, "the second run")
        time.sleep(0.5)
        ballast = runs / "ballast"
        with open(ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(bytes(1 << 20)):
                pass
        with open(ballast, "ab", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(bytes(4096)):
                pass
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2 and "space" in err and "campaign resume" in err, err
        assert done(runs) == {"a//put": 1}
        assert "1 run done, 1 to go" in plimsoll("campaign", "status", file, check=True).out
        ballast.unlink()
        # The null target's own runs may be void on a machine that is busy otherwise.
        assert plimsoll("campaign", "resume", file).code in (0, 3)
        assert done(runs) == {"a//put": 2}
        kept = [e["run"]["run"] for e in ledger(runs) if e["entry"] == "done"]
        assert all((runs / run / "summary.json").exists() for run in kept) and len(set(kept)) == 2
