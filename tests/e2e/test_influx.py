"""Points posted to InfluxDB 1, 2 and 3: each by its own write endpoint, precision and authorization, over TLS with an authority of one's own.
What a real InfluxDB makes of them is in test_history.py; here a server writes down what it is sent."""

import http.server
import ssl
import subprocess
import threading

import pytest
from conftest import ROOT

PLAN = ROOT / "plans" / "sim.toml"


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, self.headers.get("authorization"), body.decode()))
        self.send_response(self.server.answer)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def recorder():
    made = []

    def start(context=None, answer=204):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        server.seen, server.answer = [], answer
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        server.base = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
        return server

    yield start
    for server in made:
        server.shutdown()
        server.server_close()


@pytest.fixture
def run(plimsoll):
    plimsoll("run", PLAN, "-q", check=True)


@pytest.mark.parametrize(
    "path, sent, token, authorization",
    [
        ("/write?db=p", "/write?db=p&precision=ns", "me:pass word", "Basic bWU6cGFzcyB3b3Jk"),
        ("/api/v2/write?org=o&bucket=b", "/api/v2/write?org=o&bucket=b&precision=ns", "t2", "Token t2"),
        ("/api/v3/write_lp?db=p", "/api/v3/write_lp?db=p&precision=nanosecond", "t3", "Bearer t3"),
    ],
)
def test_each_version_has_its_own_endpoint(plimsoll, run, recorder, path, sent, token, authorization):
    server = recorder()
    told = plimsoll("report", "last", "-q", "--influx", server.base + path, env={"INFLUX_TOKEN": token}, check=True)
    assert "points written to InfluxDB" in told.err and token not in told.err + told.out
    assert {(p, a) for p, a, _ in server.seen} == {(sent, authorization)}
    points = "".join(body for *_, body in server.seen).splitlines()
    assert f"{len(points)} points" in told.err
    # Nanoseconds since 1970, whoever reads them.
    assert all(len(p.rsplit(" ", 1)[1]) == 19 for p in points) and any(p.startswith("plimsoll_line,") for p in points)


def test_a_place_that_takes_no_points_is_said_before_anything_is_measured(plimsoll, recorder, tmp_path):
    server = recorder()
    for path, why in [
        ("/api/v3/write_lp?bucket=b", "db="),
        ("/api/v2/write?db=b", "bucket="),
        ("/api/v3/write_lp?db=p&precision=ns", "precision=nanosecond"),
        ("/query?db=p", "no InfluxDB writes points"),
    ]:
        told = plimsoll("run", PLAN, "--influx", server.base + path)
        assert told.code == 2 and why in told.err and "fix:" in told.err, told
    for ca, url, why in [
        (tmp_path / "none.pem", "https://127.0.0.1:1/write?db=p", "none.pem"),
        (PLAN, "https://127.0.0.1:1/write?db=p", "contains no certificate"),
        (PLAN, server.base + "/write?db=p", "without TLS"),
        (PLAN, tmp_path / "points.lp", "is for an address"),
    ]:
        told = plimsoll("run", PLAN, "--influx", url, "--influx-ca-file", ca)
        assert told.code == 2 and why in told.err and "fix:" in told.err, told
    assert not server.seen and plimsoll("runs", "list", "--json").out.strip() in ("", "[]")


def test_tls_is_trusted_by_the_authority_that_is_named(plimsoll, run, recorder, tmp_path):
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=tmp_path, check=True, capture_output=True)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=plimsoll test CA", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *curve, "-subj", "/CN=localhost", "-keyout", "s.key", "-out", "s.csr")
    (tmp_path / "san").write_text("subjectAltName=IP:127.0.0.1")
    openssl("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san", "-out", "s.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "s.pem", tmp_path / "s.key")
    server = recorder(context)
    url = server.base + "/api/v3/write_lp?db=p"
    stranger = plimsoll("report", "last", "-q", "--influx", url)
    assert stranger.code != 0 and "did not take the points" in stranger.err and not server.seen, stranger
    plimsoll("report", "last", "-q", "--influx", url, "--influx-ca-file", tmp_path / "ca.pem", check=True)
    assert server.seen
