"""What the servers did meanwhile: real exporters and a real MinIO under load, and sources that are none."""

import http.server
import shutil
import socket
import subprocess
import threading
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "crates" / "observe" / "tests" / "pages"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def node_exporter():
    exporter = shutil.which("prometheus-node-exporter")
    assert exporter, "prometheus-node-exporter is missing: scripts/install.sh installs it"
    port = free_port()
    process = subprocess.Popen(
        [exporter, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(10)


@contextmanager
def pages(answer):
    """A small server; `answer(path, headers)` gives status and an iterable of parts of the body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, parts = answer(self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for part in parts:
                    self.wfile.write(part)
            except OSError:
                pass

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def named(summary, name):
    return [f for f in summary["findings"] if f["name"] == name]


def test_minio_and_its_host_under_load(plimsoll, minio_bucket, node_exporter, runs):
    """Processor time, requests and drives by who has them; MinIO's token is made of the keys, and in no file."""
    r = plimsoll(
        "object", "put", "--endpoint", minio_bucket.server.endpoint, "--bucket", minio_bucket.name, "--size", "64KiB",
        "--concurrency", "4", "--warmup", "1s", "--duration", "8s", "--observe", f"node={node_exporter}",
        "--observe", f"minio={minio_bucket.server.endpoint}", "--observe-every", "1s", "--json", server=minio_bucket.server,
    )
    assert r.code in (0, 3), r.err
    servers = r.summary["servers"]
    assert [s["gaps"] for s in servers["sources"]] == [0, 0], servers["sources"]
    assert all(s["asked"] >= 5 and s["client_cpu_s"] > 0 for s in servers["sources"])
    (window,) = servers["windows"]
    kinds = {u["resource"] for u in window["resources"]}
    assert {"cpu", "drive"} <= kinds, kinds
    cpu = next(u for u in window["resources"] if u["resource"] == "cpu")
    assert 0 < cpu["share"] <= 1 and cpu["ceiling"] >= 1
    (minio,) = [d for d in window["daemons"] if d["kind"] == "minio"]
    assert minio["cores"] > 0.01 and minio["cpu_s_per_gib"] > 0 and minio["rss_bytes"] > 1e7
    (put,) = [q for q in window["requests"] if q["op"] == "put"]
    assert abs(put["servers"] - put["ours"]) <= put["uncertain_by"] + 0.02 * put["ours"], put
    assert not named(r.summary, "requests_not_counted") and not named(r.summary, "load_of_others")
    assert (runs / r.summary["id"] / "samples" / "observed-0.zst").stat().st_size > 1000
    shown = plimsoll("runs", "show", r.summary["id"])
    # What is not observed depends on which interfaces this host has meanwhile.
    for part in ["Servers' resources", "Servers' daemons", "What observing cost"]:
        assert part in shown.out, shown.out[-3000:]


def load(plimsoll, tmp_path, *observe, seconds=4):
    return plimsoll(
        "block", tmp_path / "image", "--size", "16MiB", "--runtime", f"{seconds}s", "--warmup", "0s", "--json", *observe,
    )


def test_sources_that_are_none_do_not_end_a_run(plimsoll, tmp_path):
    """Wrong token, no metrics page, a page that never ends, nobody there: each is told, with its reason, and a hostile label is harmless."""

    def endless():
        yield b"# TYPE a counter\n"
        while True:
            yield b"a{x=\"1\"} 1\n" * 10000

    def answer(path, headers):
        if path.startswith("/refused"):
            return 403, [b"no\n"]
        if path.startswith("/endless"):
            return 200, endless()
        if path.startswith("/html"):
            return 200, [b"<!DOCTYPE html><title>\x1b[31mhello</title>"]
        return 200, [b'node_network_transmit_bytes_total{device="\x1b[2Jeth0"} %d\n' % time.monotonic_ns()]

    with pages(answer) as base:
        gone = free_port()
        sources = [f"minio={base}/refused", f"metrics={base}/endless", f"metrics={base}/html", f"node=http://127.0.0.1:{gone}", f"metrics={base}/odd"]
        flags = [x for s in sources for x in ("--observe", s)]
        r = load(plimsoll, tmp_path, *flags, "--observe-every", "1s", seconds=5)
    assert r.code in (0, 3), r.err
    gaps = [s["gaps"] == s["asked"] for s in r.summary["servers"]["sources"]]
    assert gaps == [True, True, True, True, False], r.summary["servers"]["sources"]
    said = " ".join(f["text"] for f in named(r.summary, "source_gaps"))
    for part in ["admin:Prometheus", "longer than", "no metrics page", "onnection refused"]:
        assert part in said, said
    assert "\x1b" not in r.out and "\x1b" not in r.err
    assert "the run goes on without it" in r.err


def test_a_source_that_takes_connections_and_never_answers_is_told(plimsoll, tmp_path):
    """Its port is open: nothing is refused, and nothing comes. Told while it runs, and in the short result."""
    with socket.socket() as quiet:
        quiet.bind(("127.0.0.1", 0))
        quiet.listen()
        name = f"node=http://127.0.0.1:{quiet.getsockname()[1]}"
        flags = ["--size", "16MiB", "--runtime", "3s", "--warmup", "0s", "--observe", name, "--observe-every", "10s"]
        r = plimsoll("block", tmp_path / "image", *flags)
    assert "no answer within 3 s so far; the run goes on without it" in r.err, r.err
    assert "no answer    node http://127.0.0.1:" in r.out, r.out
    said = named(plimsoll("report", "last", "--json").summary, "too_few_readings")[0]["text"]
    assert "No observed source answered" in said and "longer" not in said, said


def test_a_source_that_dies_is_a_gap_and_a_token_is_sent_and_not_kept(plimsoll, tmp_path, runs):
    seen = []

    def answer(path, headers):
        seen.append(headers.get("Authorization"))
        if len(seen) > 3:
            return 500, [b"gone\n"]
        return 200, [(PAGES / "ceph-exporter.txt").read_bytes()]

    token = tmp_path / "token"
    token.write_text("hunter2-hunter2-hunter2\n")
    with pages(answer) as base:
        r = load(plimsoll, tmp_path, "--observe", f"ceph={base}", "--observe-every", "1s", "--observe-token-file", token)
    assert r.code in (0, 3), r.err
    assert set(seen) == {"Bearer hunter2-hunter2-hunter2"}
    (source,) = r.summary["servers"]["sources"]
    assert 0 < source["gaps"] < source["asked"] and source["resolution_s"] == 5
    assert named(r.summary, "source_gaps") and named(r.summary, "too_few_readings")
    kept = b"".join(p.read_bytes() for p in runs.rglob("*") if p.is_file() and p.suffix != ".zst")
    assert b"hunter2" not in kept and "hunter2" not in r.out + r.err


def test_a_ceph_cluster_whose_counters_move_with_the_load(plimsoll, tmp_path):
    """Recorded pages of an exporter and a manager, the one with counters that grow, the other with a drive that is down."""
    began = time.monotonic()

    def answer(path, headers):
        # The exporter's counters are made each 5 s, as the real one's are.
        t = int((time.monotonic() - began) / 5) * 5
        if path == "/mgr":
            return 200, [(PAGES / "ceph-mgr.txt").read_bytes()]
        page = (
            f'ceph_exporter_cpu_total{{ceph_daemon="osd.3",mode="user"}} {100 + 0.5 * t}\n'
            f'ceph_exporter_resident_size{{ceph_daemon="osd.3"}} 262144\n'
            f'ceph_exporter_cpu_total{{ceph_daemon="osd.4",mode="kernel"}} {7 + 0.25 * t}\n'
        )
        return 200, [page.encode()]

    with pages(answer) as base:
        r = load(plimsoll, tmp_path, "--observe", f"ceph={base}/exporter", "--observe", f"ceph={base}/mgr", "--observe-every", "1s", seconds=18)
    assert r.code in (0, 3), r.err
    (window,) = r.summary["servers"]["windows"]
    (osd,) = [d for d in window["daemons"] if d["kind"] == "osd"]
    assert osd["daemons"] == 2 and osd["rss_bytes"] == 1 << 30
    assert 0.5 <= osd["cores"] <= 1.1, osd
    (unrest,) = named(r.summary, "not_at_rest")
    assert unrest["level"] != "info"
    for part in ["osd.1 down", "scrubbing deep", "degraded", "OSD_DOWN"]:
        assert part in unrest["text"], unrest["text"]


def test_what_cannot_be_asked_is_refused_before_anything_is_made(plimsoll, tmp_path, runs):
    for source, why in [
        ("disk=http://s1", "none of node"),
        ("node=http://user:hunter2@s1:9100", "user name or password"),
        ("minio=http://s1:9000?token=hunter2", "has a query"),
    ]:
        r = load(plimsoll, tmp_path, "--observe", source)
        assert r.code == 2 and why in r.err and "hunter2" not in r.err, r.err
    dry = plimsoll(
        "block", tmp_path / "image", "--size", "16MiB", "--dry-run", "--observe", "node=http://s{1...3}:9100"
    )
    assert dry.code == 0 and "each 5 s it is asked what the servers do: node http://s1:9100, node http://s2:9100" in dry.out, dry.out
    assert not runs.exists() or not list(runs.iterdir())


def test_a_cluster_is_described_kept_and_labels_the_run(plimsoll, minio_bucket, node_exporter, runs, tmp_path):
    """What MinIO and its host say becomes a file, a run keeps it and is labelled by it, and nobody's edits are overwritten."""
    server, file = minio_bucket.server, tmp_path / "cluster.toml"
    sources = [f"minio={server.endpoint}", f"node={node_exporter}"]
    told = plimsoll("describe", "cluster", *sources, "-o", file, server=server)
    assert told.code == 0, told.err
    found = tomllib.loads(file.read_text())
    assert (found["version"], found["software"]) == (1, "minio") and found["software_version"]
    (node,) = found["node"]
    assert node["cpus"] >= 1 and node["drive"][0]["path"] and node["memory"]
    again = plimsoll("describe", "cluster", *sources, "-o", file, server=server)
    assert again.code == 2 and "may have been edited" in again.err
    refused = plimsoll("describe", "cluster", sources[0], env={"AWS_ACCESS_KEY_ID": "no", "AWS_SECRET_ACCESS_KEY": "body-at-all"})
    assert refused.code == 2 and "admin:ServerInfo" in refused.err and "body-at-all" not in refused.err, refused.err
    # Four times the node, by hand: the file is what counts.
    text = file.read_text().replace('"127.0.0.1"', '"s{1...4}"')
    file.write_text(text)
    work = ("object", "put", "--endpoint", server.endpoint, "--bucket", minio_bucket.name, "--size", "64KiB", "--warmup", "0s")
    r = plimsoll(*work, "--duration", "2s", "--cluster", file, "--json", server=server)
    assert r.code in (0, 3, 5), r.err
    assert r.summary["labels"]["nodes"] == "4"
    assert "[[options.cluster.node]]" in (runs / r.summary["id"] / "plan.toml").read_text()
    file.write_text("sets = 8\n" + text)
    bad = plimsoll(*work, "--cluster", file, server=server)
    assert bad.code == 2 and "unknown field `sets`" in bad.err and "line 1" in bad.err, bad.err


def test_a_guard_ends_the_run_and_what_was_measured_stands(plimsoll, node_exporter, tmp_path):
    """A workload that is too slow, and a host that is too busy: exit code 8, and figures of the time until then."""
    put = ("object", "put", "--endpoint", "embedded", "--size", "4KiB", "--warmup", "0s", "--duration", "50s", "--json")
    for guard, observe in [("put.p99 > 1us for 3s", ()), ("server.cpu > 0.1 % for 3s", ("--observe", f"node={node_exporter}", "--observe-every", "1s"))]:
        r = plimsoll(*put, *observe, "--abort-if", guard)
        assert r.code == 8, (guard, r.err)
        (stopped,) = named(r.summary, "stopped_by_guard")
        assert f"--abort-if '{guard}'" in stopped["text"] and stopped["level"] == "qualified"
        (line,) = r.summary["workloads"]
        assert line["outcomes"]["ok"] > 0 and 1 < line["window_s"] < 49
        assert "the run ends" in r.err
    for guard, why in [("server.cpu > 90 %", "no server is observed"), ("other.p99 > 50ms", "no workload or op 'other'"), ("cpu", "no '>'")]:
        r = plimsoll(*put, "--abort-if", guard)
        assert r.code == 2 and why in r.err, r.err
    with pages(lambda path, headers: (200, [(PAGES / "ceph-mgr.txt").read_bytes()])) as base:
        r = load(plimsoll, tmp_path, "--observe", f"ceph={base}", "--abort-if", "server.cpu > 90 %")
    assert r.code == 2 and "none of the sources that answered tells of that" in r.err, r.err
