"""What limited the servers, case by case, on clusters in a box whose ceilings are known: what is named, beside what was done to them.

Each case starts a cluster (root, iproute2, MinIO), limits or breaks one part of it on purpose, and runs one load with `--observe`; some have a twin that is
as busy and not bound by it, and some are run again with the ceiling half as high again. A row has what the run named and whether that is the truth; the
exit code is 1 where one is not. About 25 minutes; nothing else should run beside it. The last lines are tables for bench/README.md.

    python3 bench/servers.py
    python3 bench/servers.py --only links,broken
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from cluster_box import ClusterBox
from harness import PLIMSOLL

MB = 1e6
NODES = 4
# Of a full frame of 1514 bytes.
PAYLOAD = 1448 / 1514


class Case:
    """One run, and what it says of its servers."""

    def __init__(self, box, runs, op, size, seconds, *flags, observe=("minio", "node"), cluster=True, concurrency=16, objects=None, during=None):
        command = [PLIMSOLL, "object", op, "--endpoint", box.endpoint, "--bucket", "bench", "--create-bucket", "--size", size,
                   "--concurrency", concurrency, "--warmup", "3s", "--duration", f"{seconds}s", "--observe-every", "1s", "--json", "--quiet", *flags]
        for make in observe:
            command += ["--observe", f"{make}={box.endpoint if make == 'minio' else box.hosts}"]
        if cluster:
            command += ["--cluster", box.path / "cluster.toml"]
        if objects:
            command += ["--objects", objects]
        process = subprocess.Popen(list(map(str, command)), env=box.env | {"PLIMSOLL_RUNS": runs}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if during:
            time.sleep(seconds / 2)
            during()
        out, err = process.communicate()
        if not out.strip():
            sys.exit(f"the run ended with {process.returncode}: {err[-2000:]}")
        self.summary = json.loads(out)
        self.line = next(w for w in self.summary["workloads"] if w["op"] == op)
        servers = self.summary.get("servers") or {"windows": [], "sources": [], "not_observed": []}
        self.not_observed = servers["not_observed"]
        self.window = servers["windows"][0] if servers["windows"] else {"resources": []}
        self.limit = self.window.get("limit") or {"verdict": "", "resource": "", "at_ceiling": [], "text": ""}
        self.findings = self.summary["findings"] + self.line.get("findings", [])
        self.gaps = sum(s["gaps"] for s in servers["sources"]), sum(s["asked"] for s in servers["sources"])
        # Payload between the first and the last reading: what the servers' own counters stand beside.
        self.payload = self.window.get("clients_wrote_per_s", 0.0) + self.window.get("clients_read_per_s", 0.0)

    def ops(self):
        rate = self.line["ops_per_s"]
        return rate["value"] if rate else self.line["outcomes"].get("ok", 0) / self.line["window_s"]

    def only(self, resource, name):
        """One kind was at its ceiling, and of that kind this one alone."""
        return self.limit["verdict"] == "one" and self.limit["resource"] == resource and f"{name}: 1 of" in self.named().replace(", in", "").replace(", out", "")

    def codes(self):
        return sorted({f["code"] for f in self.findings})

    def finding(self, code):
        return next((f["text"] for f in self.findings if f["code"] == code), "")

    def named(self):
        """In the verdict's own words, and in those of the servers' resources."""
        full = "; ".join(self.limit["at_ceiling"]) or f"none of what was seen ({self.limit['verdict'] or 'no ceiling known'})"
        return full

    def traffic(self, what):
        return next((t for t in self.window.get("traffic", []) if t["what"] == what), None)


class Book:
    """Rows, and how many of them are not as they should be."""

    def __init__(self):
        self.rows, self.wrong = [], 0

    def add(self, case, what, truth, said, right, more=""):
        self.rows.append((what, truth, said, "yes" if right else "**no**", more))
        self.wrong += not right
        print(f"{'ok ' if right else 'NOT'} {what}: truth {truth}; said: {said}{'; ' + more if more else ''}", flush=True)
        if case is not None:
            print(f"    {' '.join(case.codes())}; gaps {case.gaps[0]} of {case.gaps[1]}; {case.limit['text']}", flush=True)
            if not right:
                for f in case.findings:
                    print(f"      {f['code']} {f['text']}", flush=True)

    def table(self):
        print("\n| case | what was done | what was named | right | beside it |\n|---|---|---|---|---|")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


def percent(x):
    return f"{100 * x:.1f} %"


def links(book, runs):
    """The links as ceiling at three parities: rate against the arithmetic, what is named, amplification of large objects."""
    link = 200e6 / 8
    for ec in (2, 3, 4):
        data = 8 - ec
        # METHODOLOGY.md, "A cluster in a box".
        put = NODES * link / (1 + 8 / data * (NODES - 1) / NODES) * PAYLOAD
        get = NODES * link / (1 + (NODES - 1) / NODES) * PAYLOAD
        with ClusterBox("benchlnk", "--nodes", NODES, "--drives", 2, "--ec", ec, "--link", "200mbit") as box:
            # With more in flight uploads take longer than servers wait for them. Of few downloads some node has nothing to read at any time, so
            # there are many, smaller ones: each of 64 at once takes 20 s, and 64 of 64 MiB would take more than a client waits.
            for op, arithmetic, way, size, objects, slots in (("put", put, "network in", 64, None, 8), ("get", get, "network out", 16, 192, 64)):
                c = Case(box, runs, op, f"{size}MiB", 90, "--timeout", "120s", objects=objects, concurrency=slots)
                wrote = c.traffic("written to drives")
                more = f"{c.payload / MB:.1f} MB/s of {arithmetic / MB:.1f}: {percent(c.payload / arithmetic)}"
                if op == "put" and wrote and wrote["per_byte"]:
                    more += f"; {wrote['per_byte']:.3f} written for each byte, {wrote['expected']:.3f} expected"
                # GET: of few objects some nodes hold more of what is read, and their links are full before those of others.
                least, full = (0.97, NODES) if op == "put" else (0.90, 1)
                right = c.limit["verdict"] == "one" and c.limit["resource"] == way and c.limit["full"] >= full and c.payload / arithmetic > least
                if op == "put":
                    right = right and wrote and abs(wrote["per_byte"] / wrote["expected"] - 1) < 0.03
                book.add(c, f"links of 200 Mbit/s, EC:{ec}, {op.upper()} {size} MiB", f"{way}, {'4 of 4' if op == 'put' else 'the fullest'}", c.named(), right, more)


def raised(book, runs):
    """What is named is raised by half: the rate has to follow."""
    for name, part, resource, seconds, at, half_more in (("links", "link", "network in", 30, "100mbit", "150mbit"),
                                                         ("drives", "drive", "drive", 40, "10MB/s", "15MB/s")):
        limit = "--link" if part == "link" else "--drive-limit"
        with ClusterBox("benchrai", "--nodes", NODES, "--drives", 1, "--ec", 2, limit, at) as box:
            a = Case(box, runs, "put", "4MiB", seconds)
            box.fault(*(f"{part}:{n}={half_more}" for n in range(1, NODES + 1)))
            b = Case(box, runs, "put", "4MiB", seconds, cluster=False)
        book.add(a, f"{name} raised by half", f"{resource}; rate x 1.5", f"{a.named()}; rate x {b.ops() / a.ops():.2f}",
                 a.limit["resource"] == resource and 1.3 < b.ops() / a.ops() < 1.7)
    rates = []
    for cpu in (0.2, 0.3):
        with ClusterBox("benchrai", "--nodes", NODES, "--drives", 1, "--ec", 2, "--cpu", cpu) as box:
            c = Case(box, runs, "get", "64KiB", 30, objects=64)
            rates.append(c.ops())
            if cpu == 0.2:
                a = c
    book.add(a, "quotas of 0.2 cores raised by half", "cpu; rate x 1.5 or more", f"{a.named()}; rate x {rates[1] / rates[0]:.2f}",
             a.limit["resource"] == "cpu" and rates[1] / rates[0] > 1.3)


def twins(book, runs):
    """As busy as what binds, and not bound by it: the load is offered at 90 % of what was reached, and met."""
    for name, flags, op, size, seconds, resource in (
            ("links", ("--link", "100mbit"), "put", "4MiB", 40, "network in"),
            ("drives", ("--drive-limit", "10MB/s"), "put", "4MiB", 40, "drive"),
            ("quotas", ("--cpu", "0.2"), "get", "64KiB", 30, "cpu")):
        with ClusterBox("benchtwn", "--nodes", NODES, "--drives", 1, "--ec", 2, *flags) as box:
            bound = Case(box, runs, op, size, seconds, objects=64 if op == "get" else None)
            free = Case(box, runs, op, size, seconds, "--rate", f"{0.9 * bound.ops():.2f}/s", concurrency=64, objects=64 if op == "get" else None)
        share = max((r["share"] or 0.0 for r in free.window["resources"] if r["resource"] == resource), default=0.0)
        # What the table says of a resource is a fact; what bounds the rate is said by the verdict.
        blamed = free.limit["verdict"] != "none" and free.limit["text"] in free.summary["verdict"]
        offered = 0.9 * bound.ops()
        book.add(free, f"{name}, load of 90 % offered and met", f"{resource} busy, does not bind", f"{'blamed' if blamed else 'not blamed'} in the verdict",
                 not blamed and share > 0.75 and free.ops() > 0.95 * offered and bound.limit["resource"] == resource,
                 f"{resource} at {percent(share)}; {free.ops():.1f} of {offered:.1f} op/s")


def broken(book, runs):
    """One part that is slower than the others, or gone: by name."""
    with ClusterBox("benchbrk", "--nodes", NODES, "--drives", 1, "--ec", 2, "--drive-limit", "20MB/s") as box:
        box.fault("drive:2=4MB/s")
        for cluster in (True, False):
            c = Case(box, runs, "put", "4MiB", 40, cluster=cluster)
            book.add(c, f"one drive of four at a fifth{'' if cluster else ', without cluster.toml'}", "drive of node 2", c.named(),
                     c.only("drive", "drive2 of 10.213.0.2") and "slower" in c.finding("F77"), c.finding("F77"))
    with ClusterBox("benchbrk", "--nodes", NODES, "--drives", 1, "--ec", 2, "--link", "200mbit") as box:
        box.fault("link:3=30mbit")
        for cluster in (True, False):
            c = Case(box, runs, "put", "4MiB", 40, cluster=cluster)
            book.add(c, f"one link of four at 15 %{'' if cluster else ', without cluster.toml'}", "link of node 3", c.named(),
                     c.only("network in", "eth0 of 10.213.0.3") and ("slower" in c.finding("F77")) == cluster, c.finding("F77"))
        box.fault("link:3=good")
        c = Case(box, runs, "get", "64KiB", 40, objects=64, during=lambda: box.fault("node:4=down"))
        outage = next((x["text"] for x in c.summary["claims"] if x["claim"] == "outage" and "10.213.0.4" in x["text"]), "")
        book.add(c, "one server of four goes down in the middle", "node 4", outage or c.named(), "10.213.0.4" in outage, c.finding("F71"))


def several(book, runs):
    """Two ceilings at once, none, and the one that binds not observed."""
    # PUT brings (1 + 2 x 3/4) D/4 into each node and D/2 to each drive: links of 100 Mbit/s carry 19.1 MB/s of payload, and drives of 9.6 MB/s as much.
    with ClusterBox("benchtwo", "--nodes", NODES, "--drives", 1, "--ec", 2, "--link", "100mbit", "--drive-limit", "9.6MB/s") as box:
        # In series, each waits for the other in turn: many in flight keep both full.
        c = Case(box, runs, "put", "4MiB", 90, concurrency=64)
        kinds = {a.split(":")[0] for a in c.limit["at_ceiling"]}
        book.add(c, "links and drives at their ceilings at once", "both, and neither is said to bind", c.named(),
                 kinds == {"network in", "drive"} and c.limit["verdict"] == "several")
    with ClusterBox("benchtwo", "--nodes", NODES, "--drives", 1, "--ec", 2, "--link", "200mbit") as box:
        c = Case(box, runs, "get", "64KiB", 30, concurrency=1, objects=64)
        book.add(c, "one in flight", "none", c.named(), c.limit["verdict"] == "none")
    with ClusterBox("benchtwo", "--nodes", NODES, "--drives", 1, "--ec", 2, "--drive-limit", "10MB/s") as box:
        c = Case(box, runs, "put", "4MiB", 40, observe=("minio",))
        book.add(c, "drives at their ceiling, of which nobody tells", "none; drives not observed", f"{c.named()}; not observed: {', '.join(c.not_observed)}",
                 c.limit["verdict"] != "one" and any("drives" in n for n in c.not_observed))


def healing(book, runs):
    """A drive that is replaced by an empty one, and heals while it is measured."""
    with ClusterBox("benchhea", "--nodes", NODES, "--drives", 1, "--ec", 2, "--link", "200mbit") as box:
        Case(box, runs, "put", "1MiB", 40, observe=(), cluster=False)
        drive = box.path / "n2-d1" / "data"
        for entry in drive.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        # A server looks at its drives each 10 s.
        time.sleep(5)
        c = Case(box, runs, "get", "64KiB", 60, objects=64)
        book.add(c, "a drive replaced by an empty one", "healing, or a drive offline", c.finding("F71"), "heal" in c.finding("F71") or "offline" in c.finding("F71"),
                 "; ".join(f"{b['what']} {b['start_s']:.0f} to {b['end_s']:.0f} s" for b in c.summary["servers"]["background"]))


CASES = {"links": links, "raised": raised, "twins": twins, "broken": broken, "several": several, "healing": healing}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="of " + ", ".join(CASES))
    args = parser.parse_args()
    unknown = [n for n in args.only.split(",") if n not in CASES]
    if unknown:
        parser.error(f"no case is called {', '.join(unknown)}: {', '.join(CASES)}")
    book = Book()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as runs:
        for name in args.only.split(","):
            CASES[name](book, runs)
    book.table()
    print(f"\n{len(book.rows) - book.wrong} of {len(book.rows)} as they are; load {os.getloadavg()[0]:.1f}; {time.strftime('%Y-%m-%d')}")
    sys.exit(1 if book.wrong else 0)


if __name__ == "__main__":
    main()
