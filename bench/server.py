"""The embedded S3 server against MinIO and versitygw: PUT and GET at 4 KiB, 1 MiB and 64 MiB.

Each server has one directory of the same file system, one after the other in turn, and the same client (Plimsoll,
whose GET bodies are discarded in the kernel, so that it is the server's work that is timed). Client and server are
pinned to a CPU each, in a network namespace of their own with Reno (harness.py says why). PUT is compared at the same
durability: MinIO syncs what it acknowledges, and so does ours against it; versitygw does not, and against it ours runs
with --no-sync. GET is of objects that were just written, so that all are read from the page cache where the server uses it.
Medians of several rounds, and the ratio of ours to each.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from harness import PLIMSOLL, SERVER_CPU, Client, median, own_network, pinned

# Size, bytes, ops in flight. Sixteen objects are read.
SIZES = {"4KiB": (4096, 16), "1MiB": (1 << 20, 16), "64MiB": (64 << 20, 4)}
KEYS = {"AWS_ACCESS_KEY_ID": "benchadmin", "AWS_SECRET_ACCESS_KEY": "benchsecret", "AWS_REGION": "us-east-1"}


class Server:
    """A server over a directory of its own, pinned to its CPU; answers when it is entered."""

    def __init__(self, name, command, env, port):
        self.name, self.endpoint = name, f"http://127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(pinned(SERVER_CPU, *command), env=os.environ | KEYS | env,
                                        stdout=self.log, stderr=self.log)

    def __enter__(self):
        for _ in range(200):
            try:
                urllib.request.urlopen(self.endpoint, timeout=2)
                return self
            except urllib.error.HTTPError:
                return self
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.name} does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def ours(data, port, sync):
    flags = [] if sync else ["--no-sync"]
    return Server("embedded", [PLIMSOLL, "target", "s3", "--listen", f"127.0.0.1:{port}", "--data", data, *flags], {},
                  port)


def minio(data, port):
    env = {"MINIO_CI_CD": "1", "MINIO_BROWSER": "off", "MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"],
           "MINIO_ROOT_PASSWORD": KEYS["AWS_SECRET_ACCESS_KEY"]}
    return Server("minio", ["minio", "server", "--quiet", "--address", f"127.0.0.1:{port}", data], env, port)


def versitygw(data, port):
    iam = data.with_name("iam")
    iam.mkdir()
    env = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    return Server("versitygw",
                  ["versitygw", "--port", f"127.0.0.1:{port}", "--iam-dir", iam, "posix", data], env, port)


def measured(server, op, size, seconds):
    """Ops a second of one run, and what the client's CPU was busy with (a share of 1)."""
    _, concurrency = SIZES[size]
    w = Client(server, op, size, seconds, "--create-bucket", env=KEYS, concurrency=concurrency, ring="epoll").end()
    failed = {k: n for k, n in w["outcomes"].items() if k != "ok" and n}
    if failed:
        raise SystemExit(f"{server.name}: ops failed: {failed}")
    # Without an interval (few ops of 64 MiB in a slice) the count over the window is the rate.
    rate = w["ops_per_s"]["value"] if w["ops_per_s"] else w["outcomes"]["ok"] / w["window_s"]
    return rate, w["client"]["cpu_s"] / w["window_s"]


def pair(args, op, size, rival, sync):
    """Ours and a rival, in turn; their median rates."""
    makers = {"embedded": lambda d, p: ours(d, p, sync), rival.__name__: rival}
    rows = {name: [] for name in makers}
    for n in range(args.rounds):
        for i, (name, make) in enumerate(makers.items()):
            with tempfile.TemporaryDirectory(dir=args.directory, prefix="plimsoll-bench-") as d:
                data = Path(d) / "data"
                data.mkdir()
                # What the round before wrote is not written back during this one.
                os.sync()
                with make(data, 20_000 + 2 * n + i) as server:
                    rows[name].append(measured(server, op, size, args.seconds))
    size_bytes = SIZES[size][0]
    (mine, _), (theirs, _) = median(rows["embedded"]), median(rows[rival.__name__])
    durability = "" if op == "get" else (", synced" if sync else ", not synced")
    for name, values in rows.items():
        rate, cpu = median(values)
        print(f"{op.upper()} {size}{durability:13} {name:10} {rate:11,.1f} op/s {rate * size_bytes / (1 << 20):9,.1f} MiB/s"
              f"  client's CPU {cpu:4.0%}", flush=True)
    print(f"{op.upper()} {size}{durability}: {mine / theirs:.2f}x of {rival.__name__} "
          f"(goal: 1x: {'reached' if mine >= theirs else 'NOT REACHED'})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="measured part of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="those whose name holds this: 'get 1mib', 'minio'")
    parser.add_argument("--directory", default="/var/tmp", help="where the data goes [%(default)s]")
    args = parser.parse_args()
    own_network()
    for rival, sync in ((minio, True), (versitygw, False)):
        if not shutil.which(rival.__name__):
            print(f"{rival.__name__} is not on PATH: left out")
            continue
        for size in SIZES:
            for op in ("put", "get"):
                if args.only.lower() in f"{op} {size} {rival.__name__}".lower():
                    pair(args, op, size, rival, sync)


if __name__ == "__main__":
    main()
