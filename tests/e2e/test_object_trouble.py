"""Servers that reject, break, vanish; runs that are stopped and killed."""

import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest
from conftest import BIN, new_bucket, script_server, start, stop, wait_until

CANNED = ["--bucket", "b", "--size", "4KiB", "--warmup", "0s", "--concurrency", "8", "--json"]


def stats(server):
    return json.load(urllib.request.urlopen(server.endpoint + "/__stats"))


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_503_on_30_percent_is_counted_exactly(plimsoll, canned, ring):
    server = canned("--fault", "503=30%", "--delay", "5ms")
    result = plimsoll("object", "put", "--endpoint", server.endpoint, "--max-ops", "4000", "--ring", ring, *CANNED,
                      server=server)
    w = result.workload("put")
    ok, throttled = w["outcomes"]["ok"], w["outcomes"].get("http_503", 0)
    # The server deals 503 to exactly floor(0.3 n) of n requests for objects; the marker is one more of them.
    served = stats(server)
    faults = sum(v for k, v in _flat(served) if k.endswith("503"))
    assert throttled + _marker_throttled(faults, throttled) == faults, (w["outcomes"], served)
    assert abs(throttled - 0.3 * (ok + throttled)) <= 2, w["outcomes"]
    # Throttled ops are no failures, and no throughput.
    assert result.code == 0, (result.code, result.summary["verdict"])
    assert w["ops_per_s"]["value"] < 0.75 * w["attempts_per_s"]


def _flat(value, name=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from _flat(v, f"{name}.{k}")
    elif isinstance(value, (int, float)):
        yield name, value


def _marker_throttled(faults, seen):
    """The run's own marker and cleanup requests may meet a fault or two of the server's count."""
    return faults - seen if 0 <= faults - seen <= 3 else 0


def test_403_to_all_is_zero_throughput_and_exit_code_3(plimsoll, canned):
    server = canned("--fault", "403=100%")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--duration", "1s", "--objects", "1", *CANNED,
                      server=server)
    # Refused at the first touch is bad input (2); refused in the run is an invalid result (3).
    assert result.code in (2, 3), result.err
    if result.code == 3:
        w = result.workload("get")
        assert w["outcomes"]["ok"] == 0 and w["outcomes"]["http_403"] > 0
        assert not w["ops_per_s"] or w["ops_per_s"]["value"] == 0


def test_403_in_mid_run_is_zero_throughput_and_exit_code_3(plimsoll, minio, tmp_path):
    """A user who may list and write the marker, and is then refused each object that is measured."""
    b = new_bucket(minio)
    server = start("nginx-limit.sh", minio.endpoint.removeprefix("http://"), "100000", "100000", "503")
    try:
        conf = os.path.join(server["dir"], "nginx.conf")
        text = open(conf).read().replace(
            "location / {", 'location / {\n      set $what "$request_method:$args"; if ($what = "GET:") { return 403; }')
        open(conf, "w").write(text)
        subprocess.run(["kill", "-HUP", server["pid"]], check=True)
        time.sleep(0.5)
        result = plimsoll(
            "object", "get", "--endpoint", server["endpoint"], "--bucket", b.name, "--size", "1KiB", "--objects", "4",
            "--duration", "1s", "--warmup", "0s", "--json", server=minio)
        assert result.code == 3, (result.code, result.err)
        w = result.workload("get")
        assert w["outcomes"]["ok"] == 0 and w["outcomes"]["http_403"] > 0, w["outcomes"]
        assert not w["ops_per_s"] or w["ops_per_s"]["value"] == 0
        assert "INVALID" in plimsoll("runs", "show", "last").out
    finally:
        stop(server["dir"])
        plimsoll("cleanup", "last", server=minio)


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
@pytest.mark.parametrize("fault,outcome", [
    ("short=20%", "short_body"), ("reset=20%", "short_body"), ("garbage=20%", "protocol"), ("500=20%", "http_5xx"),
    ("429=20%", "http_429"), ("stall=2%", "timeout"),
])
def test_each_kind_of_trouble_has_its_outcome(plimsoll, canned, ring, fault, outcome):
    server = canned("--fault", fault, "--body", "64KiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--max-ops", "300", "--objects", "1",
                      "--timeout", "500ms", "--dataset", "x", "--ring", ring, "--bucket", "b", "--size", "64KiB",
                      "--warmup", "0s", "--concurrency", "8", "--json", server=server)
    assert result.code in (0, 2, 3), result.err
    if result.code == 2:
        pytest.fail(f"preparing did not survive: {result.err}")
    outcomes = result.workload("get")["outcomes"]
    assert outcomes.get(outcome, 0) > 0, outcomes
    assert set(outcomes) <= {"ok", "cancelled", outcome, "reset"}, outcomes


@pytest.mark.parametrize("fault", ["close=30%", "drop=30%", "chunked=30%", "trickle=5%"])
def test_what_is_no_trouble_is_no_failure(plimsoll, canned, fault):
    server = canned("--fault", fault, "--body", "4KiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--max-ops", "500", "--objects", "1", *CANNED,
                      server=server)
    outcomes = result.workload("get")["outcomes"]
    assert set(outcomes) <= {"ok", "cancelled"}, outcomes


def test_a_server_killed_and_restarted_in_mid_run(background, minio):
    server = script_server("minio", "minio.sh")
    try:
        b = new_bucket(server)
        run = background("object", "put", *b.flags(), "--size", "4KiB", "--duration", "8s", "--warmup", "0s",
                         "--concurrency", "4", "--json", server=server)
        wait_until(lambda: len(b.keys()) > 20, what="objects")
        os.kill(server.pid, signal.SIGKILL)
        time.sleep(1)
        start("minio.sh", env={"DIR": server.dir, "PORT": server.endpoint.rsplit(":", 1)[1]})
        out, err = run.communicate(timeout=60)
        summary = json.loads(out)
        outcomes = summary["workloads"][0]["outcomes"]
        assert outcomes["ok"] > 0 and outcomes.get("reset", 0) > 0, (outcomes, err)
        # Failures are far above 0.1 %: a result, but not a valid one.
        assert run.returncode == 3
        # It came back and went on: ops succeeded after the restart, so the last listing finds nothing left.
        assert b.keys() == []
    finally:
        stop(server.dir)


def _started(runs):
    return runs.exists() and any(runs.iterdir())


def test_ctrl_c_stops_writes_the_result_and_cleans_up(background, minio_bucket, plimsoll):
    b = minio_bucket
    run = background("object", "put", *b.flags(), "--size", "4KiB", "--duration", "60s", "--warmup", "0s", "--json",
                     server=b.server)
    wait_until(lambda: len(b.keys()) > 50, what="objects")
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert json.loads(out)["workloads"][0]["outcomes"]["ok"] > 50
    assert b.keys() == []
    assert plimsoll("runs", "show", "last", "--json").code == 0


def test_kill_9_leaves_a_readable_run_and_cleanup_restores_the_bucket(background, minio_bucket, plimsoll):
    b = minio_bucket
    b.client.put_object(Bucket=b.name, Key="before", Body=b"was here")
    run = background("object", "mixed", *b.flags(), "--mix", "put=3,get=1,multipart=1", "--size", "6MiB",
                     "--part-size", "5MiB", "--objects", "5", "--duration", "60s", "--warmup", "0s", server=b.server)
    wait_until(lambda: len(b.keys()) > 15, what="objects")
    time.sleep(2)
    run.kill()
    run.wait()
    assert len(b.keys()) > 1
    analyzed = plimsoll("analyze", "last", "--json")
    assert analyzed.code in (0, 3, 5), analyzed.err
    assert analyzed.workload("put")["outcomes"]["ok"] > 0
    assert "killed" in plimsoll("runs", "list").out
    assert plimsoll("runs", "rm", "last").code == 2, "a run with things to clean up must not be removed"
    cleaned = plimsoll("cleanup", "last", server=b.server)
    assert cleaned.code == 0, cleaned.err
    assert b.keys() == ["before"] and b.uploads() == []
    assert plimsoll("runs", "rm", "last").code == 0


def test_a_second_ctrl_c_aborts(background, canned):
    server = canned("--delay", "20s")
    run = background("object", "put", "--endpoint", server.endpoint, "--bucket", "b", "--duration", "60s",
                     "--timeout", "60s", server=server)
    time.sleep(1.5)
    run.send_signal(signal.SIGINT)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=5) == 130


@pytest.fixture(scope="module")
def tls_minio(tmp_path_factory):
    d = tmp_path_factory.mktemp("tls")
    run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, capture_output=True)  # noqa: E731
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=test ca", "-addext", "basicConstraints=critical,CA:TRUE")
    run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "private.key", "-out", "s.csr", "-subj", "/CN=localhost")
    (d / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "public.crt",
        "-days", "2", "-extfile", "ext")
    server = script_server("minio-tls", "minio.sh", CERTS=str(d))
    server.ca = d / "ca.pem"
    yield server
    stop(server.dir)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_tls_with_a_private_ca(plimsoll, tls_minio, version, ring):
    result = plimsoll(
        "object", "mixed", "--mix", "put=1,get=1", "--endpoint", tls_minio.endpoint, "--bucket", "tls",
        "--create-bucket", "--objects", "10", "--size", "100KB", "--ca-file", tls_minio.ca, "--tls-version", version,
        "--ring", ring, "--duration", "1s", "--warmup", "0s", "--concurrency", "4", "--json", server=tls_minio)
    for op in ("put", "get"):
        outcomes = result.workload(op)["outcomes"]
        assert outcomes["ok"] > 0 and set(outcomes) <= {"ok", "cancelled"}, outcomes


def test_tls_of_an_unknown_ca_is_refused_with_a_remedy(plimsoll, tls_minio):
    result = plimsoll("object", "put", "--endpoint", tls_minio.endpoint, "--bucket", "tls", server=tls_minio)
    assert result.code == 2 and "ca-file" in result.err, result.err
    assert result.out == ""
    insecure = plimsoll("object", "put", "--endpoint", tls_minio.endpoint, "--bucket", "tls2", "--create-bucket",
                        "--insecure", "--max-ops", "20", "--warmup", "0s", "--json", server=tls_minio)
    assert insecure.workload("put")["outcomes"]["ok"] == 20


def test_throttled_runs_back_off_when_asked(plimsoll, minio_bucket):
    b = minio_bucket
    limit = start("nginx-limit.sh", b.server.endpoint.removeprefix("http://"), "50", "10", "503")
    try:
        flags = ["object", "put", "--endpoint", limit["endpoint"], "--bucket", b.name, "--size", "1KiB", "--duration",
                 "4s", "--warmup", "0s", "--concurrency", "4", "--json"]
        record = plimsoll(*flags, server=b.server).workload("put")
        backoff = plimsoll(*flags, "--on-throttle", "backoff", server=b.server).workload("put")
        assert record["outcomes"]["http_503"] > 5 * backoff["outcomes"].get("http_503", 0)
        assert record["ops_per_s"]["value"] == pytest.approx(50, rel=0.25)
    finally:
        stop(limit["dir"])


def test_the_binary_is_there():
    assert BIN.exists()
