"""What the object benchmarks share: the canned server, both clients, and the network that they meet in.

Client and server are pinned to a CPU each. They run in a network namespace of their own where that can be made,
with Reno as the congestion control of everybody: a host's BBR paces, which on loopback costs a timer for each 64 KiB.
Plimsoll's own loopback connections use Reno anyway, so that leaving the host's choice to the other tool would flatter us.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLIMSOLL = Path(os.environ.get("PLIMSOLL_BENCH_BINARY", ROOT / "target/release/plimsoll"))
CLIENT_CPU, SERVER_CPU = "0", "1"
KEYS = {"AWS_ACCESS_KEY_ID": "canned", "AWS_SECRET_ACCESS_KEY": "canned-secret", "AWS_REGION": "us-east-1"}
SIZES = {"4KiB": 4096, "1MiB": 1 << 20}
INSIDE = "PLIMSOLL_BENCH_INSIDE"


def own_network():
    """Starts this program again in a network namespace of its own; says so, or why not."""
    if os.environ.get(INSIDE):
        return
    # Only who is not root needs a user namespace for it.
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    enter = ["unshare", *user, "--net", "sh", "-c",
             'ip link set lo up && sysctl -qw net.ipv4.tcp_congestion_control=reno && exec "$@"', "sh"]
    if subprocess.run([*enter, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        print("network: a namespace of its own, Reno for all", flush=True)
        os.environ[INSIDE] = "1"
        os.execvp(enter[0], [*enter, sys.executable, *sys.argv])
    control = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    print(f"network: the host's (no namespace can be made), {control} for the other tool", flush=True)


def pinned(cpu, *command):
    return ["taskset", "-c", cpu, *map(str, command)]


def median(rows):
    return tuple(statistics.median(column) for column in zip(*rows))


class Canned:
    """The canned server on its own CPU."""

    def __init__(self, body="4KiB", certs=None, flags=()):
        tls = ["--tls-cert", certs / "public.crt", "--tls-key", certs / "private.key"] if certs else []
        self.process = subprocess.Popen(
            pinned(SERVER_CPU, PLIMSOLL, "target", "canned", "--listen", "127.0.0.1:0", "--body", body, *tls, *flags),
            stdout=subprocess.PIPE, text=True)
        self.endpoint = json.loads(self.process.stdout.readline())["endpoint"]

    def stats(self):
        """What the server itself counted and timed."""
        with urllib.request.urlopen(f"{self.endpoint}/__stats", timeout=10) as answer:
            return json.load(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Client:
    """One `plimsoll object` run: started here, its summary taken at the end."""

    def __init__(self, server, op, size, seconds, *flags, env=None, concurrency=16, ring="io_uring", warmup="1s"):
        self.op = op
        self.runs = tempfile.TemporaryDirectory()
        objects = ["--objects", "16"] if op == "get" else []
        self.process = subprocess.Popen(
            pinned(CLIENT_CPU, PLIMSOLL, "object", op, "--endpoint", server.endpoint, "--bucket", "bench", "--size",
                   size, "--concurrency", concurrency, "--threads", 1, "--ring", ring, "--duration", f"{seconds}s",
                   "--warmup", warmup, "--signing", "unsigned", "--quiet", "--json", *objects, *flags),
            env=os.environ | KEYS | {"PLIMSOLL_RUNS": self.runs.name} | (env or {}),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        """The workload's part of the summary."""
        out, err = self.process.communicate()
        self.runs.cleanup()
        try:
            return next(w for w in json.loads(out)["workloads"] if w["op"] == self.op)
        except (ValueError, KeyError, StopIteration):
            raise SystemExit(f"no result (exit code {self.process.returncode}):\n{out}{err}") from None


def plimsoll(server, op, size, seconds, ring="io_uring", tls=False, flags=(), wants=None):
    """(op/s, CPU seconds per op) of one run. `wants`: a word of the note that says what was done with bodies."""
    w = Client(server, op, size, seconds, *(["--insecure"] if tls else []), *flags, ring=ring).end()
    notes = " ".join(w["notes"])
    if wants and wants not in notes:
        raise SystemExit(f"bodies were to be {wants}, but: {notes}")
    failed = {k: n for k, n in w["outcomes"].items() if k != "ok" and n}
    if failed:
        raise SystemExit(f"ops failed: {failed}")
    ops = w["ops_per_s"]["value"] if w["ops_per_s"] else w["outcomes"]["ok"] / w["window_s"]
    return ops, w["client"]["cpu_s"] / w["outcomes"]["ok"]


def timed(command, env):
    """Runs it; CPU seconds of the process and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=os.environ | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, cpu


def warp(server, op, size, seconds, tls):
    """warp leaves out about two seconds at both ends of what it measures, so it runs for four more."""
    with tempfile.TemporaryDirectory() as d:
        flags = ["--tls", "--insecure"] if tls else []
        if op == "get":
            flags += ["--objects", "16"]
        host = server.endpoint.split("//")[1]
        done, cpu = timed(
            pinned(CLIENT_CPU, "warp", op, "--host", host, "--access-key", "canned", "--secret-key", "canned-secret",
                   "--bucket", "bench", "--obj.size", size, "--concurrent", 16, "--duration", f"{seconds + 4}s",
                   "--disable-sha256-payload", "--noclear", "--no-color", "--quiet", "--benchdata", f"{d}/out",
                   *flags), {})
        files = list(Path(d).glob("out*.zst"))
        if not files:
            raise SystemExit(f"warp left no result:\n{done.stdout}{done.stderr}")
        raw = json.loads(subprocess.run(["zstd", "-dcq", files[0]], capture_output=True, check=True).stdout)
        part = raw["by_op_type"][op.upper()]
        seconds_measured = part["throughput"]["measure_duration_millis"] / 1000
        return part["throughput"]["ops"] / seconds_measured, cpu / part["total_requests"]


def certificates(directory):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory / "private.key",
                    "-out", directory / "public.crt", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return directory
