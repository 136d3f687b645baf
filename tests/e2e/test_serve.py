"""Runs in a browser: who may ask, what a run that goes on says, the way to end it, and what Prometheus makes of it."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from conftest import BIN, ROOT, wait_until

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
LOAD = ("object", "put", "--endpoint", "embedded", "--size", "4KiB", "--concurrency", "4", "--warmup", "1s", "--label", f"evil={EVIL}")


class Told:
    """What a process says on stderr, as it says it."""

    def __init__(self, process):
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(iter(process.stderr.readline, "")), daemon=True).start()

    def address(self, what="live"):
        found = []

        def there():
            found[:] = [m.group(1) for line in self.lines if (m := re.search(rf"{what}.* at (https?://\S+)", line))]
            return bool(found)

        wait_until(there, seconds=60, what=f"the address: {self.lines}")
        return urllib.parse.urlsplit(found[0])


@pytest.fixture
def live(background):
    def start(*more, duration="60s"):
        process = background(*LOAD, "--duration", duration, "--live", *more)
        return process, Told(process).address()

    return start


def ask(at, path, method="GET", context=None, **headers):
    """One request; the status, the headers, the text. `Host` is the right one unless it is given."""
    make = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
    connection = make(at.hostname, at.port, timeout=30, **({"context": context} if context else {}))
    connection.putrequest(method, path, skip_host="host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def data_of(page):
    return json.loads(re.search(r'id="plimsoll-data">(.*?)</script>', page, re.S).group(1))


class Events:
    """A connection to the events of a run."""

    def __init__(self, at, after=None):
        self.connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
        self.connection.request("GET", at.path + "/events", headers={"Last-Event-ID": after} if after else {})
        self.answer = self.connection.getresponse()
        assert self.answer.headers["content-type"] == "text/event-stream"

    def next(self):
        """Id and message; None at the end."""
        event = {}
        while line := self.answer.readline().decode():
            line = line.rstrip("\n")
            if not line and "data" in event:
                return event["id"], json.loads(event["data"])
            name, _, value = line.partition(":")
            event[name] = value.lstrip()
        return None

    def close(self):
        self.connection.sock and self.connection.close()


def test_a_run_is_told_while_it_goes_on_and_a_cut_loses_nothing(live, runs):
    # It ends when all has been asked, however long that takes.
    process, at = live(duration="10m")
    events = Events(at)
    place, hello = events.next()
    assert hello["kind"] == "hello" and hello["page"]["schema"] == "plimsoll.page/1"
    seen = [hello["seq"]]
    state = []
    while len(seen) < 8:
        place, message = events.next()
        seen.append(message["seq"])
        state.append(message["kind"])
    assert seen == list(range(seen[0], seen[0] + len(seen))), "numbered without gaps"
    assert {"points", "now"} <= set(state), state
    events.close()
    time.sleep(3)

    # What came meanwhile comes again, from where it was cut.
    again = Events(at, after=place)
    _, message = again.next()
    assert message["seq"] == seen[-1] + 1 and message["kind"] != "hello"
    # Who was never here, or at another start of it, gets all there is.
    late = Events(at, after="another:7")
    _, hello = late.next()
    assert hello["kind"] == "hello"
    points = hello["page"]["runs"][0]["series"][0]["ops_per_s"]
    assert len(points) >= 3 and hello["page"]["runs"][0]["live"]
    late.close()
    process.send_signal(signal.SIGINT)

    last, ended = None, None
    while (event := again.next()) is not None:
        last, ended = (event[1], ended) if event[1]["kind"] == "run" else (last, event[1])
    assert ended["kind"] == "end" and ended["run"] is None, ended
    process.wait(timeout=60)
    # What the page had in the end is what the report has.
    done = subprocess.run([str(BIN), "report", "last", "-o", str(runs / "r.html")], env={**os.environ, "PLIMSOLL_RUNS": str(runs)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert last["run"] == data_of((runs / "r.html").read_text())["runs"][0]


def test_only_our_own_pages_are_answered(live):
    _, at = live()
    port = at.port
    status, headers, page = ask(at, at.path)
    assert status == 200 and data_of(page)["runs"][0]["live"]
    assert "unsafe-inline" not in headers["content-security-policy"].split("script-src")[1].split(";")[0]
    assert headers["x-frame-options"] == "DENY" and "Content-Security-Policy" not in page.split("<body>")[0]
    assert EVIL not in page
    assert ask(at, "/", host=f"localhost:{port}")[0] == 200
    for host in (f"evil.example:{port}", "127.0.0.1:1", f"10.0.0.1:{port}"):
        for path in ("/", at.path, at.path + "/events", "/metrics"):
            assert ask(at, path, host=host)[0] == 403, (host, path)
    for path in ("/runs/..%2f..%2fetc", "/runs/../../etc/passwd", "/runs/%2e%2e", "/runs/no-such-run", "/etc/passwd"):
        assert ask(at, path)[0] == 404, path

    token = re.search(r'name="plimsoll-stop" content="(\w+)"', page).group(1)
    own = f"http://127.0.0.1:{port}"
    for headers in ({}, {"origin": own}, {"x_plimsoll_token": token}, {"origin": own, "x_plimsoll_token": "0" * 32},
                    {"origin": "http://evil.example", "x_plimsoll_token": token}, {"origin": "null", "x_plimsoll_token": token}):
        assert ask(at, at.path + "/stop", "POST", **headers)[0] == 403, headers
    assert ask(at, at.path, "DELETE", origin=own, x_plimsoll_token=token)[0] == 405
    assert data_of(ask(at, at.path)[2])["runs"][0]["live"], "it goes on"


def test_the_stop_button_ends_the_run_as_ctrl_c_does(live, runs):
    process, at = live()
    wait_until(lambda: data_of(ask(at, at.path)[2])["runs"][0]["series"], what="figures")
    token = re.search(r'name="plimsoll-stop" content="(\w+)"', ask(at, at.path)[2]).group(1)
    status, _, said = ask(at, at.path + "/stop", "POST", origin=f"http://127.0.0.1:{at.port}", x_plimsoll_token=token)
    assert status == 202 and "writes its result" in said
    assert process.wait(timeout=60) == 130
    seal = json.loads((runs / at.path.rsplit("/", 1)[1] / "seal.json").read_text())
    assert seal["end"] == "interrupted"


def test_the_list_links_to_reports_that_are_those_of_report(plimsoll, background, runs, tmp_path):
    plimsoll(*LOAD, "--duration", "3s")
    (run,) = [d.name for d in runs.iterdir() if not d.name.startswith(".")]
    at = Told(background("serve", "--listen", "0")).address("runs of")
    wait_until(lambda: f'href="/runs/{run}"' in ask(at, "/")[2], what="the run in the list")
    status, headers, page = ask(at, "/")
    assert status == 200 and "±" in page and EVIL not in page
    served = ask(at, f"/runs/{run}")[2]
    plimsoll("report", run, "-o", tmp_path / "r.html", check=True)
    assert data_of(served) == data_of((tmp_path / "r.html").read_text())
    assert "plimsoll-live" not in served.split("<body>")[0]
    # A run that goes on in another process is shown live, and is stopped where it runs.
    other = background(*LOAD, "--duration", "60s")
    wait_until(lambda: ">running</td>" in ask(at, "/")[2], seconds=60, what="the run that goes on in the list")
    going = next(d.name for d in runs.iterdir() if d.name != run and not d.name.startswith("."))
    wait_until(lambda: data_of(ask(at, f"/runs/{going}")[2])["runs"][0]["series"], what="its figures")
    live = ask(at, f"/runs/{going}")[2]
    assert 'name="plimsoll-live"' in live and 'name="plimsoll-stop"' not in live
    # Killed, it is what it recorded, and nothing is written into its directory.
    other.kill()
    other.wait()
    wait_until(lambda: "killed before its end" in ask(at, f"/runs/{going}")[2], seconds=60, what="the killed run")
    assert not (runs / going / "summary.json").exists()


def api(at, path, status=200, **headers):
    """An answer of the API; it is waited for while the runs are read for the first time."""
    answers = []

    def answered():
        answers[:] = [ask(at, path, **headers)]
        return answers[0][0] != 503

    wait_until(answered, seconds=60, what=path)
    got, said, text = answers[0]
    assert got == status and said["content-type"].startswith("application/json"), (got, text)
    return json.loads(text)


def test_a_list_has_the_course_of_each_rate(plimsoll, background):
    run = plimsoll("run", ROOT / "plans" / "sim.toml", "--json", check=True).summary
    at = Told(background("serve", "--listen", "0")).address("runs of")
    # The list is there first.
    wait_until(lambda: any(r["course"] for r in api(at, "/api/runs")["runs"]), seconds=60, what="the course of its rate")
    (listed,) = api(at, "/api/runs")["runs"]
    course, line = listed["course"], run["workloads"][0]
    assert course["of"] is None and len(course["ops_per_s"]) == 32, course
    assert abs(course["seconds"] - line["window_s"]) < 0.3, (course, line["window_s"])
    mean = sum(course["ops_per_s"]) / 32
    assert abs(mean / line["ops_per_s"]["value"] - 1) < 0.01, (mean, line["ops_per_s"])


def test_the_history_is_filtered_pivoted_compared_and_followed_over_time(plimsoll, background, runs):
    for tier in ("gold", "gold", "tin"):
        plimsoll("object", "put", "--endpoint", "embedded", "--size", "4KiB", "--concurrency", "2", "--warmup", "0s", "--duration", "2s", "--label", f"tier={tier}",
                 "--label", f"evil={EVIL}")
    ids = sorted(d.name for d in runs.iterdir() if re.match(r"\d{8}-", d.name))
    at = Told(background("serve", "--listen", "0")).address("runs of")
    wait_until(lambda: api(at, "/api/runs")["all"] == 3, seconds=60, what="three runs")
    all_ = api(at, "/api/runs")
    assert [r["id"] for r in all_["runs"]] == ids[::-1] and all_["labels"]["tier"] == ["gold", "tin"] and all_["ops"] == ["put"]
    assert all_["runs"][0]["labels"]["evil"] == EVIL, "a label is given as it is, and the page makes text of it"
    gold = api(at, "/api/runs?label=tier%3Dgold")
    assert (gold["found"], [r["id"] for r in gold["runs"]]) == (2, ids[1::-1])
    assert api(at, "/api/runs?op=get")["found"] == 0
    # What the CLI says of the same runs.
    lines = [json.loads(line) for line in plimsoll("runs", "export", "--what", "lines", "--format", "jsonl", "--label", "tier=tin").out.splitlines()]
    (cell,) = [row[0] for row, name in zip(*(api(at, "/api/pivot?rows=label:tier")[k] for k in ("cells", "rows"))) if name == "tin"]
    assert cell["runs"] == [ids[2]] and len(lines) == 1
    if cell["figure"]:
        assert abs(cell["figure"]["value"] - float(lines[0]["ops_per_s"])) <= 1e-6 * cell["figure"]["value"]
    two = api(at, f"/api/compare?a={ids[0]}&b={ids[2]}")
    assert [r["side"] for r in two["runs"]] == ["a", "b"] and {r["outcome"] for r in two["rows"]} <= {"undetermined"}
    # Of plans and machines the page is told what the command tells.
    told = plimsoll("compare", ids[0], "--", ids[2], "--json")
    assert two["not_known"] is None
    if told.out:
        said = [f["text"] for f in json.loads(told.out)["findings"] if f["code"] in ("F41", "F99")]
        assert said and said == [f["text"] for f in two["findings"] if f["code"] in ("F41", "F99")], (said, two["findings"])
    trend = api(at, "/api/trend")
    assert trend["said"].startswith("Undetermined:") and trend["steps"] == [] and len(trend["points"]) + trend["left_out"] == 3
    # The page has the same list, filtered, without a script.
    page = ask(at, "/?label=tier%3Dtin")[2]
    assert f'href="/runs/{ids[2]}"' in page and f'href="/runs/{ids[0]}"' not in page and EVIL not in page
    for bad, says in (("op=%zz", "damaged"), ("label=x", "NAME=VALUE"), ("nonsense=1", "no condition"), ("op=" + "x" * 9000, "bytes"), ("op=a&" * 50, "more than 40"),
                      ("a=no-such-run", "no run no-such-run")):
        assert says in api(at, f"/api/compare?{bad}", status=400)["error"], bad
        assert ask(at, f"/?{bad}")[0] == (200 if bad.startswith("a=") else 400)


def test_data_is_given_to_nobody_elses_page(background, runs):
    runs.mkdir()
    at = Told(background("serve", "--listen", "0")).address("runs of")
    for path in ("/api/runs", "/api/pivot", "/api/compare", "/api/trend"):
        assert ask(at, path, host=f"evil.example:{at.port}")[0] == 403, path
        for origin in ("http://evil.example", "null", f"http://localhost:{at.port}"):
            assert ask(at, path, origin=origin)[0] == 403, (path, origin)
        api(at, path, origin=f"http://127.0.0.1:{at.port}")
        assert ask(at, path, "POST")[0] == 403, path


def test_strangers_who_say_nothing_keep_nobody_out(live):
    process, at = live(duration="30s")
    descriptors = lambda: len(os.listdir(f"/proc/{process.pid}/fd"))
    before = descriptors()
    strangers = []
    try:
        for i in range(600):
            s = socket.create_connection(("127.0.0.1", at.port), timeout=120)
            strangers.append(s)
            if i % 3 == 0:
                s.sendall(b"GET / HTTP/1.1\r\nHost:")
        # Half of them have a place; who asks is answered once they have lost it.
        connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=120)
        connection.request("GET", at.path)
        assert connection.getresponse().status == 200
        assert descriptors() < before + 512 + 40
        # Each was let go, by the server.
        for s in strangers:
            try:
                while s.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    finally:
        for s in strangers:
            s.close()
    assert process.wait(timeout=120) in (0, 3), "the run went on to its end"


def test_beyond_this_machine_there_is_tls_and_a_token(background, runs):
    runs.mkdir()
    told = Told(background("serve", "--listen", "0.0.0.0:0", "--name", "bench.example"))
    shown = told.address("runs of")
    token = shown.query.removeprefix("token=")
    assert shown.scheme == "https" and len(token) == 32
    assert any("SHA-256" in line for line in told.lines)
    at = urllib.parse.urlsplit(f"https://127.0.0.1:{shown.port}/")
    context = ssl._create_unverified_context()
    refused = ask(at, "/", context=context)
    # Whoever may not ask keeps no place of those who may.
    assert refused[0] == 401 and refused[1]["connection"] == "close"
    assert ask(at, "/metrics", context=context, authorization="Bearer wrong")[0] == 401
    assert ask(at, "/?token=wrong", context=context)[0] == 401
    status, headers, _ = ask(at, f"/?token={token}", context=context)
    cookie = headers["set-cookie"]
    assert status == 303 and headers["location"] == "/" and token not in cookie
    assert all(word in cookie for word in ("HttpOnly", "Secure", "SameSite=Strict"))
    assert ask(at, "/", context=context, cookie=cookie.split(";")[0])[0] == 200
    # Opened again with the cookie, the token leaves the address, too.
    again = ask(at, f"/runs/x?token={token}", context=context, cookie=cookie.split(";")[0])
    assert again[0] == 303 and again[1]["location"] == "/runs/x"
    assert ask(at, "/metrics", context=context, authorization=f"Bearer {token}")[0] == 200
    assert ask(at, "/", context=context, cookie=cookie.split(";")[0], host=f"evil.example:{shown.port}")[0] == 403
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(at._replace(scheme="http"), "/")


def test_an_address_that_is_taken_is_told_before_anything_is_measured(plimsoll, runs):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("serve", "--listen", port), (*LOAD, "--duration", "2s", f"--live={port}")):
            done = plimsoll(*command)
            assert done.code == 2 and f"127.0.0.1:{port}" in done.err and "fix:" in done.err, done.err
    assert not runs.exists() or not list(runs.iterdir())
    done = plimsoll("runs", "list", "--live")
    assert done.code == 2 and "--live" in done.err, done.err


def test_prometheus_reads_what_is_given_out(live, tmp_path):
    prometheus, promtool = shutil.which("prometheus"), shutil.which("promtool")
    assert prometheus and promtool, "prometheus is missing: scripts/install.sh installs it"
    _, at = live()
    wait_until(lambda: "plimsoll_response_seconds_count" in ask(at, "/metrics")[2], what="figures")
    status, headers, text = ask(at, "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "quantile" not in text

    port = socket.create_server(("127.0.0.1", 0))
    web = port.getsockname()[1]
    port.close()
    (tmp_path / "p.yml").write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [
        {"job_name": "plimsoll", "static_configs": [{"targets": [f"127.0.0.1:{at.port}"]}]}]}))
    server = subprocess.Popen([prometheus, f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
                               f"--web.listen-address=127.0.0.1:{web}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def value(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{web}/api/v1/query?query={urllib.parse.quote(query)}", timeout=5) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:
                return None
            return float(found[0]["value"][1]) if found else None

        wait_until(lambda: (value('rate(plimsoll_ops_total{outcome="ok"}[10s])') or 0) > 10, seconds=60, what="a rate")
        p99 = value("histogram_quantile(0.99, sum by (le) (plimsoll_response_seconds_bucket))")
        assert p99 and 1e-5 < p99 < 10, p99
        assert value("plimsoll_run_running") == 1
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


def test_half_a_handshake_keeps_no_place(background, runs):
    runs.mkdir()
    told = Told(background("serve", "--listen", "0.0.0.0:0", "--token-file", str(token_file(runs))))
    at = told.address("runs of")
    strangers = [socket.create_connection(("127.0.0.1", at.port), timeout=120) for _ in range(40)]
    for s in strangers[::2]:
        s.sendall(bytes([22, 3, 1, 2, 0, 1]))
    at = urllib.parse.urlsplit(f"https://127.0.0.1:{at.port}/")
    context = ssl._create_unverified_context()
    assert ask(at, "/metrics", context=context, authorization=f"Bearer {TOKEN}")[0] == 200
    for s in strangers:
        try:
            while s.recv(4096):
                pass
        except ConnectionResetError:
            pass
        s.close()


TOKEN = "0123456789abcdef"


def token_file(runs):
    path = runs.parent / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


def test_a_reader_in_a_browser(runs):
    node = shutil.which("node")
    if not node or not Path(CHROMIUM).exists() or not (ROOT / "web/node_modules/playwright-core").is_dir():
        pytest.skip("needs node, playwright-core and a Chromium")
    done = subprocess.run([node, "--test", "--test-timeout=300000", "test/served.test.mjs"], cwd=ROOT / "web", capture_output=True, text=True, timeout=1000,
                          env={**os.environ, "PLIMSOLL_BIN": str(BIN), "PLIMSOLL_RUNS": str(runs), "CHROMIUM": CHROMIUM})
    assert done.returncode == 0, done.stdout[-6000:]
