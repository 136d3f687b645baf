"""What binds in a cluster in a box, against what was built to bind: each ceiling, each fault, each parity (root, iproute2, MinIO, and for
drives with a limit FUSE).

Each case has a cluster of its own, `plimsoll target cluster`, whose truth is its flags, and one run of `plimsoll object` that observes servers and hosts. A ceiling is
then raised by half in a cluster of its own: what binds is what lets more through. The last lines are tables for bench/README.md.

    python3 bench/box.py                        # about 20 minutes
    python3 bench/box.py --only drives,parity
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from harness import PLIMSOLL
from observe import Box


@dataclass
class Case:
    """What is built, what is asked of it, and what has to be named."""

    name: str
    flags: list
    op: list
    binds: str
    who: str = ""
    faults: list = field(default_factory=list)
    raised: list = field(default_factory=list)
    seconds: int = 20
    observed: tuple = ("minio", "node")


PUT_4M = ["put", "--size", "4MiB", "--concurrency", "16"]
GET_4M = ["get", "--size", "4MiB", "--concurrency", "16", "--objects", "32"]
PUT_64K = ["put", "--size", "64KiB", "--concurrency", "32"]
ONE_DRIVE = ["--drives", "1", "--ec", "2"]
CASES = [
    Case("links, in", [*ONE_DRIVE, "--link", "100mbit"], PUT_4M, "network in", "4 of 4", raised=["--link", "150mbit"]),
    Case("links, out", [*ONE_DRIVE, "--link", "100mbit"], GET_4M, "network out", "", raised=["--link", "150mbit"]),
    Case("drives", [*ONE_DRIVE, "--drive-limit", "8MB/s"], PUT_4M, "drive", "", raised=["--drive-limit", "12MB/s"]),
    Case("CPU quota", [*ONE_DRIVE, "--cpu", "0.2"], PUT_64K, "cpu", "", raised=["--cpu", "0.3"]),
    Case("one slow drive", [*ONE_DRIVE, "--drive-limit", "40MB/s"], PUT_4M, "drive", "s2", faults=["drive:2=4MB/s"]),
    Case("one slow link", [*ONE_DRIVE, "--link", "200mbit"], PUT_4M, "network in", "s3", faults=["link:3=40mbit"]),
    Case("links, hosts not observed", [*ONE_DRIVE, "--link", "100mbit"], PUT_4M, "", observed=("minio",)),
    Case("nothing", ONE_DRIVE, ["put", "--size", "64KiB", "--concurrency", "1"], ""),
]


def run(box, case, runs):
    """One run of a case: its summary."""
    sources = {"minio": box.endpoint, "node": box.endpoint.replace(":9000", ":9100")}
    command = [PLIMSOLL, "object", *case.op, "--endpoint", box.endpoint, "--bucket", "bench", "--create-bucket", "--warmup", "5s", "--duration",
               f"{case.seconds}s", "--cluster", f"{box.path}/cluster.toml", "--observe-every", "1s", "--json"]
    for make in case.observed:
        command += ["--observe", f"{make}={sources[make]}"]
    done = subprocess.run(list(map(str, command)), env=box.env | {"PLIMSOLL_RUNS": runs}, capture_output=True, text=True)
    if not done.stdout.strip():
        sys.exit(f"{case.name}: the run ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def built(case, flags, runs):
    box = Box(4, *flags, name="benchbox")
    try:
        if case.faults:
            subprocess.run([PLIMSOLL, "target", "cluster", "fault", *case.faults, "--name", "benchbox"], check=True, capture_output=True)
        return run(box, case, runs)
    finally:
        box.stop()


def window_of(summary):
    windows = (summary.get("servers") or {}).get("windows") or [{}]
    return windows[0]


def payload(summary):
    """Bytes per second of clients between the first and the last reading of the servers, and what the run says of its whole window."""
    w = window_of(summary)
    rate = next((x["bytes_per_s"] for x in summary["workloads"] if x.get("bytes_per_s")), None)
    return w.get("clients_read_per_s", 0) + w.get("clients_wrote_per_s", 0), rate


def mib(value):
    return f"{value / 2**20:.3g}"


def ceilings(args, runs):
    rows = []
    for case in CASES:
        if args.only and not any(o in case.name for o in args.only.split(",")):
            continue
        said = built(case, case.flags, runs)
        w = window_of(said)
        limit = w.get("limit") or {}
        named = limit.get("resource", "") if limit.get("verdict") == "one" else ""
        at = "; ".join(limit.get("at_ceiling", []))
        right = named == case.binds and case.who in at
        base, _ = payload(said)
        more = ""
        if case.raised:
            raised, _ = payload(built(case, [*case.flags, *case.raised], runs))
            more = f"{mib(raised)} MiB/s: x{raised / base:.2f}"
        rows.append(f"| {case.name} | {' '.join(case.op[:3]).replace(' --size', '')} | {at or limit.get('text', 'no ceiling is known')} | {limit.get('share', 0):.0%} "
                    f"| {mib(base)} MiB/s | {more} | {'right' if right else 'WRONG'} |")
        print(rows[-1], flush=True)
    if rows:
        print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n| built | op | named | of its ceiling | payload | ceiling raised by half | |\n|---|---|---|---|---|---|---|")
        print("\n".join(rows))


def parity(args, runs):
    rows = []
    for ec in (2, 3, 4):
        for op in (["put", "--size", "64MiB", "--concurrency", "8"], ["get", "--size", "64MiB", "--concurrency", "8", "--objects", "16"]):
            case = Case(f"EC:{ec}", ["--drives", "2", "--ec", str(ec), "--link", "200mbit"], op, "", seconds=args.seconds)
            w = window_of(built(case, case.flags, runs))
            moved = w.get("clients_read_per_s", 0) + w.get("clients_wrote_per_s", 0)
            for t in w.get("traffic", []):
                part = f"{t['per_byte'] / t['expected'] - 1:+.1%}" if t["per_byte"] and t["expected"] else ""
                number = lambda x: "" if x is None else f"{x:.3f}"
                rows.append(f"| {ec} | {op[0].upper()} | {moved * 8 / 1e6:.1f} | {(w.get('limit') or {}).get('resource', '')} | {t['what']} ({t['counted_by']}) "
                            f"| {number(t['per_byte'])} | {number(t['expected'])} | {part} |")
                print(rows[-1], flush=True)
    print("\n| EC | op | payload, Mbit/s | limited by | bytes | for each payload byte | by arithmetic | |\n|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name has one of these words; `parity` for the table of EC:2 to EC:4")
    parser.add_argument("--seconds", type=int, default=75, help="of a run of a parity")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as runs:
        ceilings(args, runs)
        if not args.only or "parity" in args.only:
            parity(args, runs)
