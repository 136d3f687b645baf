"""Object benchmark: Plimsoll, and warp where it is on PATH, against the canned server.

Client and server are pinned to a CPU each; concurrency 16, payload unsigned, 4 KiB and 1 MiB, GET and PUT, then the
same with TLS, and GET with the body copied to the client (asked for by a checksum; the canned body carries no stamps,
so what verifying costs on top is not in this table). Both tools take turns, several rounds, and the median is
shown: a machine that is shared drifts. CPU time is that of the client process, by the kernel's count.

warp's latencies are not compared: what it prints is averaged over windows. Its op counts are taken from the raw
result (requests and time of the measured part).
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLIMSOLL = ROOT / "target/release/plimsoll"
CLIENT_CPU, SERVER_CPU = "0", "1"
KEYS = {"AWS_ACCESS_KEY_ID": "canned", "AWS_SECRET_ACCESS_KEY": "canned-secret", "AWS_REGION": "us-east-1"}


def pinned(cpu, *command):
    return ["taskset", "-c", cpu, *map(str, command)]


class Canned:
    """The canned server on its own CPU."""

    def __init__(self, body, certs=None):
        flags = ["--tls-cert", certs / "public.crt", "--tls-key", certs / "private.key"] if certs else []
        self.process = subprocess.Popen(
            pinned(SERVER_CPU, PLIMSOLL, "target", "canned", "--listen", "127.0.0.1:0", "--body", body, *flags),
            stdout=subprocess.PIPE, text=True)
        self.endpoint = json.loads(self.process.stdout.readline())["endpoint"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def timed(command, env):
    """Runs it; CPU seconds of the process and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=os.environ | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, cpu


def plimsoll(server, op, size, seconds, ring, tls, verify):
    with tempfile.TemporaryDirectory() as runs:
        flags = ["--insecure"] if tls else []
        if op == "get":
            flags += ["--objects", "16"] + (["--checksum", "crc32c"] if verify else [])
        done, _ = timed(
            pinned(CLIENT_CPU, PLIMSOLL, "object", op, "--endpoint", server.endpoint, "--bucket", "bench", "--size", size,
                   "--concurrency", 16, "--threads", 1, "--ring", ring, "--duration", f"{seconds}s", "--warmup", "1s",
                   "--signing", "unsigned", "--quiet", "--json", *flags),
            KEYS | {"PLIMSOLL_RUNS": runs})
        summary = json.loads(done.stdout)
        w = next(w for w in summary["workloads"] if w["op"] == op)
        notes = " ".join(w["notes"])
        if verify and "discarded" in notes:
            raise SystemExit(f"the body was to be copied, but: {notes}")
        ops = w["ops_per_s"]["value"] if w["ops_per_s"] else w["outcomes"]["ok"] / w["window_s"]
        return ops, w["client"]["cpu_s"] / w["outcomes"]["ok"]


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


def median(rows):
    return tuple(statistics.median(column) for column in zip(*rows))


def measure(args, size, op, tls, certs, verify=False):
    size_bytes = {"4KiB": 4096, "1MiB": 1 << 20}[size]
    with Canned(size, certs if tls else None) as server:
        rows = {name: [] for name in ("io_uring", "epoll", "warp")}
        for _ in range(args.rounds):
            for ring in ("io_uring", "epoll"):
                rows[ring].append(plimsoll(server, op, size, args.seconds, ring, tls, verify))
            if args.warp and not verify:
                rows["warp"].append(warp(server, op, size, args.seconds, tls))
    label = f"{op.upper()} {size}{' TLS' if tls else ''}"
    if op == "get":
        label += " (body copied)" if verify else ("" if tls else " (body discarded in kernel)")
    base = median(rows["warp"]) if rows["warp"] else None
    for name, values in rows.items():
        if not values:
            continue
        ops, cpu_per_op = median(values)
        cpu_gib = cpu_per_op * (1 << 30) / size_bytes
        ratio = f"{ops / base[0]:6.2f}x rate {cpu_per_op / base[1]:5.2f}x CPU" if base and name != "warp" else ""
        print(f"{label:36} {name:9} {ops:11,.0f} op/s {ops * size_bytes / (1 << 20):9,.1f} MiB/s "
              f"{cpu_per_op * 1e6:8.1f} us/op {cpu_gib:7.3f} CPU-s/GiB  {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.warp = shutil.which("warp") is not None and shutil.which("zstd") is not None
    if not args.warp:
        print("warp (or zstd) is not on PATH: plimsoll alone")
    with tempfile.TemporaryDirectory() as d:
        certs = certificates(Path(d))
        for tls in (False, True):
            for size in ("4KiB", "1MiB"):
                for op in ("get", "put"):
                    measure(args, size, op, tls, certs)
        measure(args, "1MiB", "get", False, certs, verify=True)


if __name__ == "__main__":
    main()
