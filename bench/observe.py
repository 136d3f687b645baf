"""What observing costs: client and server CPU with and without `--observe`, in turn (A B B A), under the same offered load.

A cluster in a box (root, iproute2, MinIO), and `object get` at a fixed rate that all of it can serve, so that both sides do the same work. B asks every node's
MinIO and every host's counters, by default each second: five times as often as a run does by default, so that the cost stands out of the noise; per
answer it is the same. Server CPU is that of the MinIO processes alone, from /proc; their hosts' counters are read by the cluster's own exporter, whose CPU is the
process of `plimsoll target cluster`, and is shown beside. The last lines are a table for bench/README.md.

    python3 bench/observe.py --rounds 4 --seconds 15
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from cluster_box import ClusterBox, cpu_of
from harness import PLIMSOLL

DEFAULT_EVERY_S = 5.0
# Of Student's distribution, 95 %, by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093}


def interval(values):
    """Mean and half of its 95 % interval."""
    n = len(values)
    if n < 2:
        return statistics.fmean(values), math.inf
    near = max((d for d in T95 if d <= n - 1), default=1)
    return statistics.fmean(values), T95[near] * statistics.stdev(values) / math.sqrt(n)


def run(box, args, observed, runs):
    """One run: CPU seconds of client, servers and exporter, with what the run says of its own observing."""
    command = [PLIMSOLL, "object", "get", "--endpoint", box.endpoint, "--bucket", "bench", "--create-bucket", "--size", "64KiB", "--objects", "64",
               "--rate", f"{args.rate}/s", "--concurrency", "16", "--warmup", "1s", "--duration", f"{args.seconds}s", "--json"]
    if observed:
        command += ["--observe", f"minio={box.endpoint}", "--observe", f"node={box.hosts}",
                    "--observe-every", f"{args.every}s"]
    servers, exporter = cpu_of(box.servers), cpu_of([box.process.pid])
    told = tempfile.TemporaryFile()
    process = subprocess.Popen(list(map(str, command)), env=box.env | {"PLIMSOLL_RUNS": runs}, stdout=subprocess.PIPE, stderr=told)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if not out.strip():
        told.seek(0)
        sys.exit(f"the run ended with {process.returncode}: {told.read().decode()[-2000:]}")
    summary = json.loads(out)
    ok = sum(w["outcomes"].get("ok", 0) for w in summary["workloads"])
    bad = sum(n for w in summary["workloads"] for k, n in w["outcomes"].items() if k != "ok")
    sources = (summary.get("servers") or {}).get("sources", [])
    return {"client": used.ru_utime + used.ru_stime, "servers": cpu_of(box.servers) - servers, "exporter": cpu_of([box.process.pid]) - exporter,
            "ok": ok, "bad": bad, "asked": {make: sum(s["asked"] for s in sources if s["source"].startswith(make)) for make in ("minio", "node")},
            "told": sum(s["client_cpu_s"] for s in sources), "bytes": sum(s["bytes"] for s in sources)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4, help="each is A B B A")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--every", type=int, default=1, help="seconds between questions")
    parser.add_argument("--rate", type=int, default=40, help="op/s that are offered")
    parser.add_argument("--nodes", type=int, default=4)
    args = parser.parse_args()
    box = ClusterBox("benchobs", "--nodes", args.nodes, "--drives", 1)
    pairs = []
    try:
        if len(box.servers) != args.nodes:
            sys.exit(f"{len(box.servers)} MinIO processes of {args.nodes} were found below {box.path}")
        with tempfile.TemporaryDirectory() as runs:
            run(box, args, False, runs)
            for _ in range(args.rounds):
                a1, b1, b2, a2 = (run(box, args, observed, runs) for observed in (False, True, True, False))
                pairs += [(a1, b1), (a2, b2)]
                print(json.dumps({"a": [a1, a2], "b": [b1, b2]}), flush=True)
    finally:
        box.stop()
    load = os.getloadavg()[0]
    asked = statistics.fmean(b["asked"]["minio"] + b["asked"]["node"] for _, b in pairs)
    print(f"\n{len(pairs)} pairs of {args.seconds} s at {args.rate} op/s, {asked:.0f} answers of {args.nodes} MinIO servers and {args.nodes} hosts in each; "
          f"load {load:.1f}; {time.strftime('%Y-%m-%d')}\n")
    print("| CPU of | without, s | with, s | for each answer, ms | at the default of 5 s: of one core, each source |")
    print("|---|---|---|---|---|")
    for who, of in (("client", ("minio", "node")), ("servers", ("minio",)), ("exporter", ("node",))):
        each = [1000 * (b[who] - a[who]) / sum(b["asked"][m] for m in of) for a, b in pairs]
        mean, half = interval(each)
        without, with_ = (statistics.fmean(p[i][who] for p in pairs) for i in (0, 1))
        share = 100 * mean / 1000 / DEFAULT_EVERY_S
        print(f"| {who} | {without:.2f} | {with_:.2f} | {mean:.2f} ± {half:.2f} | {share:.3f} ± {100 * half / 1000 / DEFAULT_EVERY_S:.3f} % |")
    told = statistics.fmean(1000 * b["told"] / sum(b["asked"].values()) for _, b in pairs)
    print(f"| client, as the runs say | | | {told:.2f} | {100 * told / 1000 / DEFAULT_EVERY_S:.3f} % |")
    bad = sum(a["bad"] + b["bad"] for a, b in pairs)
    if bad:
        print(f"\n{bad} ops failed or were late: the load was not the same on both sides, and the figures are void.")
        sys.exit(3)


if __name__ == "__main__":
    main()
