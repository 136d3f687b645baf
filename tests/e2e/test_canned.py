"""The canned server as the benchmarks use it: bodies that it keeps can be verified, and its delays are what it says."""

import json
import urllib.request

import pytest

WORK = ["--bucket", "b", "--size", "200KiB", "--warmup", "0s", "--concurrency", "4", "--objects", "4", "--json"]


def stats(server):
    return json.load(urllib.request.urlopen(server.endpoint + "/__stats"))


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_what_is_kept_is_verified_and_cleaned_up(plimsoll, canned, ring):
    server = canned("--keep", "16MiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--verify", "--max-ops", "200", "--ring", ring,
                      *WORK, server=server)
    w = result.workload("get")
    assert w["outcomes"]["ok"] >= 200 and sum(w["outcomes"].values()) == w["outcomes"]["ok"], w["outcomes"]
    # What was prepared is gone again: nothing is left to list.
    page = urllib.request.urlopen(server.endpoint + "/b?list-type=2&prefix=").read().decode()
    assert "<KeyCount>0</KeyCount>" in page, page


def test_a_body_that_nobody_wrote_is_no_verified_body(plimsoll, canned):
    server = canned("--body", "200KiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--verify", "--max-ops", "50", *WORK,
                      server=server)
    assert result.code == 7, result.err
    w = result.workload("get")
    assert w["outcomes"]["ok"] == 0 and w["outcomes"]["verify_mismatch"] >= 50, w["outcomes"]


def test_the_server_tells_the_delays_that_it_applied(plimsoll, canned):
    server = canned("--delay", "5ms", "--body", "200KiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--duration", "2s", *WORK, server=server)
    told = stats(server)["delay_ns"]
    assert told["count"] >= 100 and 5_000_000 <= told["p50"] <= told["p99"] <= told["max"], told
    # The client cannot have seen less than what the server waited; its histogram has three digits.
    assert result.workload("get")["latency_ns"]["response"]["p50"] >= 4_990_000
