"""A server that stops answering in the middle of a run, and what a person notes meanwhile: told in words, with times and rates."""

import json
import os
import re
import signal
import time

import pytest
from conftest import Server, disturbed, end, new_bucket, start_target, wait_until

pytestmark = pytest.mark.measures

PUT = ["--size", "4KiB", "--concurrency", "4", "--warmup", "0s", "--timeout", "30s", "--rate", "100/s"]


@pytest.fixture
def own_server(tmp_path):
    """An embedded server of this test alone: it is stopped in the middle."""
    keys = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded-secret"}
    data = tmp_path / "data"
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(data), "--no-sync", env=keys)
    yield Server("embedded", facts["endpoint"], "embedded", "embedded-secret", str(data), process.pid, process)
    os.kill(process.pid, signal.SIGCONT)
    end(process)


def test_a_server_that_hangs_is_told_with_times_and_rates(own_server, background, plimsoll):
    b = new_bucket(own_server)
    run = background("object", "put", *b.flags(), *PUT, "--duration", "14s", "--mark-at", "2s=cache flushed", "--json",
                     server=own_server)
    wait_until(lambda: b.holds(20), what="objects")
    time.sleep(4)
    os.kill(own_server.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    noted = plimsoll("mark", "last", "node stopped", server=own_server)
    time.sleep(3)
    os.kill(own_server.pid, signal.SIGCONT)
    # It lasts until the server answers again, which takes its time where the CPU is stolen.
    b.keys()
    length = time.monotonic() - stopped
    out, err = run.communicate(timeout=120)
    assert noted.code == 0, noted.err
    summary = json.loads(out)
    outages = [c for c in summary["claims"] if c["claim"] == "outage"]
    # A server whose CPU is stolen has outages of its own, and true ones: short ones.
    o = max(outages, key=lambda o: o["to_s"] - o["from_s"])
    assert len(outages) == 1 or disturbed(), (summary["verdict"], err)
    assert abs(o["to_s"] - o["from_s"] - length) < 0.5, (o, length)
    assert o["before_per_s"]["low"] <= 100 <= o["before_per_s"]["high"] and o["during_per_s"] < 5, o
    assert re.search("answered (next to )?nothing", o["text"]), o["text"]
    # It is told once: what follows from it is the finding's to say.
    assert summary["verdict"].count(o["text"]) == 1, summary["verdict"]
    finding = [f for f in summary["findings"] if f["code"] == "F60"]
    assert finding and "answered" not in json.dumps(finding), finding
    # Both notes are on the axis; the one that was made at the time is where the outage begins.
    remarks = {r["text"]: r for r in summary["remarks"]}
    assert remarks["cache flushed"]["planned"] and not remarks["node stopped"]["planned"]
    assert abs(remarks["node stopped"]["at_s"] - o["from_s"]) < 1.0, (remarks, o)
    shown = plimsoll("runs", "show", "last")
    assert "node stopped" in shown.out and o["text"].replace("**", "") in " ".join(shown.out.replace("**", "").split())


def test_a_run_without_an_outage_tells_none_and_a_note_needs_a_time_after_the_end(embedded, plimsoll):
    b = new_bucket(embedded)
    done = plimsoll("object", "put", *b.flags(), *PUT, "--duration", "4s", "--json", server=embedded)
    assert not [c for c in done.summary["claims"] if c["claim"] == "outage"], done.summary["verdict"]
    late = plimsoll("mark", "last", "too late")
    assert late.code == 2 and "--at" in late.err, late.err
    assert plimsoll("mark", "last", "in time", "--at", "2s").code == 0
    assert json.loads(plimsoll("runs", "show", "last", "--json").out)["remarks"] == [
        {"at_s": 2.0, "text": "in time", "planned": False}
    ]
    assert plimsoll("mark", "last", "two\nlines", "--at", "2s").code == 2
    b.client.delete_bucket(Bucket=b.name)


def with_a_stop(server, background, who, load, stop_s):
    """The summary of a run of which a process (by its number) is stopped in the midst, and what the run said."""
    b = new_bucket(server)
    run = background("object", "put", *b.flags(), "--size", "4KiB", "--concurrency", "4", "--warmup", "0s", "--duration", load,
                     "--json", server=server)
    wait_until(lambda: b.holds(20), what="objects")
    time.sleep(3)
    os.kill(who(run), signal.SIGSTOP)
    time.sleep(stop_s)
    os.kill(who(run), signal.SIGCONT)
    out, err = run.communicate(timeout=120)
    return json.loads(out), err


def test_a_client_that_was_stopped_is_told_of_the_client_and_is_no_outage(own_server, background):
    summary, err = with_a_stop(own_server, background, lambda run: run.pid, load="12s", stop_s=3)
    # A server whose CPU the hypervisor takes for half a second has an outage, and a true one: not of three seconds.
    outages = [c for c in summary["claims"] if c["claim"] == "outage"]
    assert not [o for o in outages if o["to_s"] - o["from_s"] > 1.5], (summary["verdict"], err)
    assert outages or "ops in flight" not in summary["verdict"], summary["verdict"]
    stopped = [f for f in summary["findings"] if f["name"] == "client_stopped"]
    assert len(stopped) == 1 and stopped[0]["code"] == "V22" and stopped[0]["level"] == "invalid", (summary["findings"], err)
    assert 0.2 < stopped[0]["measured"] < 0.35 and "client itself was stopped for" in stopped[0]["text"], stopped


def test_a_stopped_server_is_told_without_advice_that_denies_it(own_server, background):
    summary, err = with_a_stop(own_server, background, lambda run: own_server.pid, load="10s", stop_s=2)
    outages = [c for c in summary["claims"] if c["claim"] == "outage"]
    assert len(outages) == 1 and 3.9 < outages[0]["in_flight"] <= 4.0, (summary["verdict"], err)
    assert not [f for f in summary["findings"] if f["name"] in ("concurrency_bound", "client_stopped")], summary["findings"]
    # Counted from the load's start, as the run's length is.
    told = outages[0]["from_s"] - outages[0]["load_s"]
    assert f"From {told:.1f} s to" in summary["verdict"], (told, summary["verdict"])
