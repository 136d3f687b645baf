"""Servers that reject, break, vanish; runs that are stopped and killed."""

import hashlib
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from botocore.exceptions import ClientError
from conftest import (
    BIN, Server, drop_bucket, end, new_bucket, script_server, start, start_target, stop, wait_until,
)

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
    # The server deals 503 to floor(0.3 n) of n uploads. A marker of the run's own would be the first, which is dealt none.
    served = stats(server)
    assert served["faults"]["503"] == 3 * served["in_fault_scope"] // 10 == 1200, served
    assert (ok, throttled) == (2800, 1200), (w["outcomes"], served)
    # Throttled ops are no failures, and no throughput.
    assert "V01" not in result.codes() and "F03" not in result.codes(), result.summary["findings"]
    assert w["ops_per_s"]["value"] < 0.75 * w["attempts_per_s"]


def refused_all(result):
    """Zero throughput, written as a result, with exit code 3."""
    assert result.code == 3, (result.code, result.err)
    w = result.workload("get")
    assert w["outcomes"].get("ok", 0) == 0 and w["outcomes"]["http_403"] > 0, w["outcomes"]
    assert not w["ops_per_s"] or w["ops_per_s"]["value"] == 0
    assert result.summary["valid"] is False
    return w


def test_403_to_all_is_zero_throughput_and_exit_code_3(plimsoll, canned):
    server = canned("--fault", "403=100%")
    refused_all(plimsoll("object", "get", "--endpoint", server.endpoint, "--duration", "1s", "--objects", "1", *CANNED,
                         server=server))


class Denies(http.server.BaseHTTPRequestHandler):
    """Any server that denies everything to everybody: not even the run's marker can be written."""

    protocol_version = "HTTP/1.1"
    code = "AccessDenied"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode() if self.code else b""
        self.send_response(403)
        self.send_header("Content-Length", str(0 if self.command == "HEAD" else len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def log_message(self, *_):
        pass


def denying(code):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Denies", (Denies,), {"code": code}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize("code,exit_code", [
    ("AccessDenied", 3), ("", 3), ("InvalidAccessKeyId", 2), ("SignatureDoesNotMatch", 2), ("ExpiredToken", 2),
    ("RequestTimeTooSkewed", 2),
])
def test_a_server_that_denies_all_is_measured_and_wrong_keys_are_bad_input(plimsoll, code, exit_code):
    server = denying(code)
    try:
        keys = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK"}
        result = plimsoll("object", "get", "--endpoint", f"http://127.0.0.1:{server.server_address[1]}", "--duration",
                          "1s", *CANNED, env=keys)
        if exit_code == 3:
            refused_all(result)
            assert "everything is refused" in result.err, result.err
            assert plimsoll("cleanup", "last", env=keys).code == 0, "nothing was left"
        else:
            assert (result.code, result.out) == (2, ""), result.err
            told = "clock" if code == "RequestTimeTooSkewed" else "AWS_"
            assert "fix: " in result.err and told in result.err, result.err
    finally:
        server.shutdown()


def test_a_server_that_is_not_ready_is_waited_for_aloud(plimsoll, tmp_path):
    """A server that starts answers 503 for a while, here by a limit on listings that is used up."""
    limits = tmp_path / "limits.toml"
    limits.write_text('name="starting"\nkind="object"\n[[limit]]\nunit="ops"\nrate_per_s=0.5\ncapacity=1\nanswer="503"\ncharges=["list"]\nretry_after_s=1\n')
    keys = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "one-secret"}
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), "--no-sync", "--limits",
                                  str(limits), "--bucket", "bucket-one", env=keys)
    try:
        server = Server("starting", facts["endpoint"], "one", "one-secret")
        # Twice: whatever the bucket held, it is empty now.
        for _ in range(2):
            try:
                server.client().list_objects_v2(Bucket="bucket-one")
            except ClientError as e:
                assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        result = plimsoll("object", "put", "--endpoint", server.endpoint, "--bucket", "bucket-one", "--size", "1KiB",
                          "--max-ops", "20", "--keep", "--warmup", "0s", "--json", server=server)
        assert result.workload("put")["outcomes"]["ok"] == 20, result.err
        assert result.err.count("waiting for the server: ") == 1 and "503" in result.err, result.err
    finally:
        end(process)


def test_403_in_mid_run_is_zero_throughput_and_exit_code_3(plimsoll, minio, tmp_path):
    """A user who may list and write the marker, and is then refused each object that is measured."""
    b = new_bucket(minio)
    b.client.put_object(Bucket=b.name, Key="probe", Body=b"x")
    server = start("nginx-limit.sh", minio.endpoint.removeprefix("http://"), "100000", "100000", "503")
    try:
        conf = os.path.join(server["dir"], "nginx.conf")
        text = open(conf).read().replace(
            "location / {", 'location / {\n      set $what "$request_method:$args"; if ($what = "GET:") { return 403; }')
        open(conf, "w").write(text)
        subprocess.run(["kill", "-HUP", server["pid"]], check=True)
        url = f'{server["endpoint"]}/{b.name}/probe'

        def told_to_deny():
            # Without nginx's rule MinIO itself denies an unsigned request: the bodies differ.
            return "nginx" in subprocess.run(["curl", "-s", url], capture_output=True, text=True).stdout

        wait_until(told_to_deny, what="nginx with its new rules")
        result = plimsoll(
            "object", "get", "--endpoint", server["endpoint"], "--bucket", b.name, "--size", "1KiB", "--objects", "4",
            "--duration", "1s", "--warmup", "0s", "--json", server=minio)
        refused_all(result)
        assert "INVALID" in plimsoll("runs", "show", "last").out
        # The marker cannot be read through this server either, and without it nothing is deleted.
        assert "left behind" in result.err, result.err
    finally:
        stop(server["dir"])
        drop_bucket(b)


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
@pytest.mark.parametrize("fault,outcome", [
    ("short=20%", "short_body"), ("reset=20%", "reset"), ("garbage=20%", "protocol"), ("500=20%", "http_5xx"),
    ("429=20%", "http_429"), ("stall=2%", "timeout"),
])
def test_each_kind_of_trouble_has_its_outcome(plimsoll, canned, ring, fault, outcome):
    server = canned("--fault", fault, "--body", "64KiB")
    # So many that time-outs end while others are still issued: those at the end are in no measured window.
    ops = 2000 if outcome == "timeout" else 300
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--max-ops", str(ops), "--objects", "1",
                      # Short only where a time-out is what is looked for: a slow machine must not make others.
                      "--timeout", "500ms" if outcome == "timeout" else "60s", "--dataset", "x", "--ring", ring,
                      "--bucket", "b", "--size", "64KiB", "--warmup", "0s", "--concurrency", "8", "--json",
                      server=server)
    assert result.code in (0, 3), result.err
    outcomes = result.workload("get")["outcomes"]
    assert outcomes.get(outcome, 0) > 0, outcomes
    assert set(outcomes) <= {"ok", outcome}, outcomes
    assert sum(outcomes.values()) == ops, outcomes
    # A limiter's no is no failure; anything else is, and makes a result of so many invalid.
    throttled = outcome == "http_429"
    assert ("V01" in result.codes()) is not throttled and "F03" not in result.codes(), result.summary["findings"]


@pytest.mark.parametrize("fault", ["close=30%", "drop=30%", "chunked=30%", "trickle=5%"])
def test_what_is_no_trouble_is_no_failure(plimsoll, canned, fault):
    server = canned("--fault", fault, "--body", "4KiB")
    result = plimsoll("object", "get", "--endpoint", server.endpoint, "--max-ops", "500", "--objects", "1", *CANNED,
                      server=server)
    outcomes = result.workload("get")["outcomes"]
    assert set(outcomes) <= {"ok", "cancelled"}, outcomes


def restart(server):
    start("minio.sh", env={"DIR": server.dir, "PORT": server.endpoint.rsplit(":", 1)[1]})
    server.pid = int(open(os.path.join(server.dir, "server.pid")).read())


@pytest.fixture
def own_minio():
    """One that may be killed."""
    server = script_server("minio", "minio.sh")
    yield server
    stop(server.dir)


def reader(stream):
    """Collects what a process says, and waits for words in it."""
    said = []
    threading.Thread(target=lambda: said.extend(iter(stream.readline, "")), daemon=True).start()
    return lambda words, seconds=60: wait_until(lambda: words in "".join(said), seconds, f"{words!r} in {said}")


PUT_FOR = ["--size", "4KiB", "--warmup", "0s", "--concurrency", "4", "--json"]


def test_a_server_killed_and_restarted_in_mid_run(background, own_minio):
    server = own_minio
    b = new_bucket(server)
    run = background("object", "put", *b.flags(), "--duration", "12s", *PUT_FOR, server=server)
    wait_until(lambda: b.holds(20), what="objects")
    os.kill(server.pid, signal.SIGKILL)
    time.sleep(1)
    restart(server)
    out, err = run.communicate(timeout=120)
    outcomes = json.loads(out)["workloads"][0]["outcomes"]
    # What was in flight is cut off or finds nobody at a second try; what came after found nobody.
    assert outcomes["ok"] > 0 and outcomes.get("no_connection", 0) > 0, (outcomes, err)
    # Failures are far above 0.1 %: a result, but not a valid one.
    assert run.returncode == 3
    # Whether the server was back before the end or not: cleaning up waits for it.
    assert "left behind" not in err and b.keys() == [], (err, b.keys()[:5])


def a_run_whose_server_went_away(background, server):
    """Its bucket, the run, which waits to clean up, and a reader of what it says next."""
    b = new_bucket(server)
    run = background("object", "put", *b.flags(), "--duration", "4s", *PUT_FOR, server=server)
    wait_until(lambda: b.holds(20), what="objects")
    os.kill(server.pid, signal.SIGKILL)
    says = reader(run.stderr)
    says("cleanup is delayed")
    return b, run, says


def test_a_server_that_comes_back_after_the_run_is_cleaned_all_the_same(background, own_minio):
    b, run, says = a_run_whose_server_went_away(background, own_minio)
    restart(own_minio)
    assert run.wait(timeout=120) == 3
    assert b.keys() == []


def test_a_server_that_stays_away_is_told_and_cleanup_finishes_later(background, own_minio, plimsoll):
    b, run, says = a_run_whose_server_went_away(background, own_minio)
    # Nobody has to sit the minute out.
    run.send_signal(signal.SIGINT)
    says("left behind")
    assert run.wait(timeout=60) in (3, 130)
    assert json.loads(run.stdout.read())["workloads"][0]["outcomes"]["ok"] > 0, "the result is written"
    restart(own_minio)
    assert len(b.keys()) > 20
    cleaned = plimsoll("cleanup", "last", server=own_minio)
    assert cleaned.code == 0, cleaned.err
    assert b.keys() == []


def test_ctrl_c_stops_writes_the_result_and_cleans_up(background, minio_bucket, plimsoll):
    b = minio_bucket
    run = background("object", "put", *b.flags(), "--size", "4KiB", "--duration", "60s", "--warmup", "0s", "--json",
                     server=b.server)
    wait_until(lambda: b.holds(50), what="objects")
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
    wait_until(lambda: b.holds(15), what="objects")
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


def test_kill_9_of_the_embedded_server_leaves_no_torn_object(background, plimsoll, tmp_path):
    """Sixteen uploads in flight when it dies: what is listed afterwards is whole, and nothing else is left."""
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s" * 16}
    flags = ["--data", str(tmp_path / "data")]
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", *flags, env=keys)
    server = Server("embedded", facts["endpoint"], "k", "s" * 16)
    b = new_bucket(server)
    run = background("object", "put", *b.flags(), "--size", "100KB..3MB", "--signing", "full", "--concurrency", "16",
                     "--warmup", "0s", "--duration", "60s", server=server)
    wait_until(lambda: b.holds(40), what="objects")
    process.kill()
    process.wait()
    run.kill()
    run.wait()
    address = facts["endpoint"].removeprefix("http://")
    process, _ = start_target("s3", "--listen", address, *flags, env=keys)
    try:
        listed = b.client.list_objects_v2(Bucket=b.name)["Contents"]
        assert len(listed) > 40
        for o in listed:
            got = b.client.get_object(Bucket=b.name, Key=o["Key"])
            body = got["Body"].read()
            assert len(body) == o["Size"] == got["ContentLength"], o
            assert hashlib.md5(body).hexdigest() == o["ETag"].strip('"'), f"{o['Key']} is torn"
        assert os.listdir(tmp_path / "data" / "tmp") == []
        cleaned = plimsoll("cleanup", "last", server=server)
        assert cleaned.code == 0 and b.keys() == [], cleaned.err
    finally:
        end(process)


def test_a_second_ctrl_c_waits_for_nothing_and_the_result_is_written(background, canned, plimsoll):
    server = canned("--fault", "stall=100%")
    run = background("object", "put", "--endpoint", server.endpoint, "--bucket", "b", "--duration", "60s", "--warmup", "0s",
                     "--timeout", "60s", server=server)
    says = reader(run.stderr)
    says("plimsoll: run ")
    time.sleep(1.5)
    run.send_signal(signal.SIGINT)
    says("stopping")
    says("for at most 5 s; press Ctrl-C again to abandon them")
    again = time.monotonic()
    run.send_signal(signal.SIGINT)
    # Its ops may take 60 s: it did not wait for them.
    assert run.wait(timeout=15) == 130
    assert time.monotonic() - again < 3
    assert "PUT" in run.stdout.read().upper() and plimsoll("runs", "show", "last").code == 0, "the result is written"


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
    assert "Q13" in insecure.codes(), insecure.summary["findings"]


def test_throttled_runs_back_off_when_asked(plimsoll, embedded):
    b = new_bucket(embedded)
    limit = start("nginx-limit.sh", b.server.endpoint.removeprefix("http://"), "50", "10", "503")
    try:
        flags = ["object", "put", "--endpoint", limit["endpoint"], "--bucket", b.name, "--size", "1KiB", "--duration",
                 "4s", "--warmup", "0s", "--concurrency", "4", "--json"]
        record = plimsoll(*flags, server=b.server).workload("put")
        backoff = plimsoll(*flags, "--on-throttle", "backoff", server=b.server).workload("put")
        # Each of 4 slots waits a second after each no: at most five of them in 4 s.
        assert backoff["outcomes"].get("http_503", 0) <= 20, backoff["outcomes"]
        assert record["outcomes"]["http_503"] > backoff["outcomes"].get("http_503", 0)
        # The limiter lets no more through than its burst and its rate; how much less, the machine decides.
        assert 50 <= record["outcomes"]["ok"] <= 10 + 50 * 4 * 1.05, record["outcomes"]
    finally:
        stop(limit["dir"])


def test_retry_after_is_obeyed_to_the_second(plimsoll, canned):
    """Every answer is a 503 with Retry-After: 2. Eight slots that wait in between can ask but twice in 3 s."""
    server = canned("--fault", "503=100%", "--retry-after", "2")
    flags = ["object", "get", "--endpoint", server.endpoint, "--duration", "3s", *CANNED]
    backoff = plimsoll(*flags, "--on-throttle", "backoff", server=server).workload("get")["outcomes"]
    assert backoff["ok"] == 0 and 8 <= backoff["http_503"] <= 16, backoff
    pause = plimsoll(*flags, "--on-throttle", "pause", server=server).workload("get")["outcomes"]
    record = plimsoll(*flags, server=server).workload("get")["outcomes"]
    assert 16 < pause["http_503"] < record["http_503"], (pause, record)


def test_a_watch_backs_off_from_who_refuses_and_says_so(plimsoll, embedded):
    """50 a second get through: of a load that goes on at once a thousand a second are refused."""
    b = new_bucket(embedded)
    limit = start("nginx-limit.sh", b.server.endpoint.removeprefix("http://"), "50", "10", "429")
    try:
        flags = ["--endpoint", limit["endpoint"], "--bucket", b.name, "--op", "put", "--size", "1KiB", "--warmup", "0s", "--json"]
        watch = ["watch", "object", *flags, "--concurrency", "4"]
        r = plimsoll(*watch, "--for", "6s", server=b.server)
        w = r.workload("put")
        # Each of 4 slots waits a second after each no: at most seven of them in 6 s.
        assert 4 <= w["outcomes"]["http_429"] <= 28, w["outcomes"]
        assert w["outcomes"]["ok"] >= 10 and w["client"]["held_back"] > 0.5 and w["client"]["paused_s"] > 6, w
        refused, seen = w["outcomes"]["http_429"], w["outcomes"]["http_429"] + w["outcomes"]["ok"]
        assert f"({refused} of {seen} attempts" in r.summary["verdict"] and "held back" in r.summary["verdict"], r.summary["verdict"]
        # What is offered in open loop and not sent, hundreds of ops, is the limiter's doing; the client was late with none, or with
        # some where others took its processor.
        r = plimsoll(*watch, "--for", "6s", "--rate", "200", server=b.server)
        assert r.workload("put")["outcomes"]["http_429"] <= 28 and r.workload("put")["client"]["late_ops"] < 40, r.workload("put")
        assert [f["name"] for f in r.summary["findings"] if f["code"] == "V05"] == ["held_back"], r.summary["findings"]
        # Who asks for it has each refusal recorded at once.
        r = plimsoll(*watch, "--for", "3s", "--on-throttle", "record", server=b.server)
        assert r.workload("put")["outcomes"]["http_429"] > 100 and "held back" not in r.summary["verdict"], r.summary["verdict"]
        # At most 64 in flight, in steps of a second and half: none is asked twice by one slot within a second.
        r = plimsoll("speedtest", "object", *flags, "--max-concurrency", "8", "--budget", "20s", server=b.server)
        refused = sum(w["outcomes"].get("http_429", 0) for w in r.summary["workloads"])
        assert 8 <= refused <= 20 * 8, refused
        # What a bucket still held at the start may make the first step the fastest (V19): then that is the answer.
        assert "V19" in r.codes() or "held back" in r.summary["verdict"] and "a limiter refused attempts" in r.summary["verdict"], r.summary["verdict"]
        assert "limiter refuse" in r.summary["verdict"], r.summary["verdict"]
        again = plimsoll("analyze", r.summary["id"], "--json").summary
        assert again["verdict"] == r.summary["verdict"]
    finally:
        stop(limit["dir"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_disk_that_is_full_of_trace_does_not_cost_the_result(plimsoll, embedded, tmp_path):
    b = new_bucket(embedded)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=True)
    try:
        result = plimsoll("object", "put", *b.flags(), "--size", "1KiB", "--max-ops", "8000", "--warmup", "0s", "--json",
                          "--trace", small / "trace.csv", server=embedded)
        assert result.code in (0, 3), result.err
        assert result.workload("put")["outcomes"] == {"ok": 8000}
        told = [f["text"] for f in result.summary["findings"] if f["code"] == "F13"]
        assert len(told) == 1 and "trace.csv" in told[0] and "No space left" in told[0], result.summary["findings"]
        assert told[0] in result.err, result.err
        assert b.keys() == []
    finally:
        subprocess.run(["umount", small], check=True)
        drop_bucket(b)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_what_is_sent_again_after_a_broken_connection_is_sent_whole(plimsoll, tmp_path):
    """A server whose disk is full answers before it has the body, and closes: the next request meets a connection that is gone. Sent
    again it was a head without a body, for which client and server waited until the time-out."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", small], check=True)
    keys = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "one-secret"}
    try:
        process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(small / "data"), "--bucket", "bucket-one",
                                      env=keys)
        try:
            server = Server("full", facts["endpoint"], "one", "one-secret")
            result = plimsoll("object", "put", "--endpoint", server.endpoint, "--bucket", "bucket-one", "--size", "1MiB",
                              "--concurrency", "4", "--duration", "2s", "--warmup", "0s", "--timeout", "20s", "--json",
                              server=server)
            w = result.workload("put")
            assert w["outcomes"]["no_space"] > 50, (w["outcomes"], result.err)
            # None of them waits for its time-out, in the window (four in flight would be fewer) or after it.
            assert w["tail_s"] < 10 and "V13" not in result.codes(), (w["tail_s"], result.summary["findings"])
        finally:
            end(process)
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_killed_sweep_is_shown_and_goes_on_in_its_own_count(plimsoll, background, minio_bucket):
    b = minio_bucket
    run = background("object", "sweep", *b.flags(), "--ops", "put,get", "--sizes", "4KB,64KB", "--objects", "10",
                     "--duration", "2s", "--warmup", "0s", "--concurrency", "2", server=b.server)
    says = reader(run.stderr)
    says("stage 2/4 done")
    run.kill()
    run.wait()
    shown = plimsoll("runs", "show", "last", "--json")
    assert shown.code == 0 and "F11" in shown.codes(), shown.err
    assert len(shown.summary["workloads"]) >= 2
    assert "clean up" in plimsoll("runs", "list").out
    resumed = plimsoll("run", "--resume", "last", server=b.server)
    assert "stage 3/4 done" in resumed.err and "stage 4/4 done" in resumed.err, resumed.err
    assert "stage 5" not in resumed.err and b.keys() == [], resumed.err


def test_each_endpoint_is_reached_before_the_start(plimsoll, minio_bucket, embedded):
    """One that is not there, and one that is another server: neither may turn a part of the ops into failures."""
    b = minio_bucket
    flags = ["object", "put", *b.flags(), "--size", "1KiB", "--max-ops", "20"]
    for other, told in ("http://127.0.0.1:1", "127.0.0.1:1"), (embedded.endpoint, embedded.endpoint):
        result = plimsoll(*flags, "--endpoint", other, server=b.server)
        assert (result.code, result.out) == (2, "") and told in result.err, result.err
        assert b.keys() == []


def test_a_server_that_is_silent_is_asked_once(plimsoll):
    """It takes connections and never answers."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        def take():
            while True:
                try:
                    asked.append(silent.accept()[0])
                except OSError:
                    return
        threading.Thread(target=take, daemon=True).start()
        port = silent.getsockname()[1]
        result = plimsoll("object", "put", "--endpoint", f"http://127.0.0.1:{port}", "--bucket", "bkt", "--timeout",
                          "1s", "--concurrency", "16", env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
        silent.shutdown(socket.SHUT_RDWR)
    assert (result.code, result.out) == (2, "") and "did not answer within 1s" in result.err, result.err
    assert len(asked) == 1


def test_a_server_that_closes_each_connection_is_named(plimsoll, versitygw):
    b = new_bucket(versitygw)
    result = plimsoll("object", "put", *b.flags(), "--size", "1KiB", "--max-ops", "400", "--warmup", "0s",
                      "--concurrency", "4", "--json", server=versitygw)
    assert result.workload("put")["outcomes"] == {"ok": 400}
    assert "F05" in result.codes(), result.summary["findings"]
    drop_bucket(b)


def test_the_binary_is_there():
    assert BIN.exists()
