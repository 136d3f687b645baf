"""Object benchmark against the canned server, in parts:

rate       Plimsoll, and warp where it is on PATH: 4 KiB and 1 MiB, GET and PUT, then the same with TLS; concurrency 16,
           payload unsigned. Both tools take turns, several rounds, and the median is shown: a machine that is shared
           drifts. CPU time is that of the client process, by the kernel's count.
verify     GET 1 MiB with the body discarded in the kernel, copied (for a checksum), and verified (each stamp and byte).
recording  what recording costs: the same load with the recorder off, by the server's own count.
accuracy   open loop against delays that the server knows and times itself: rate, p50 and p99.
memory     resident size of the client at 256 connections, by the kernel's count, over the run.

warp's latencies are not compared: what it prints is averaged over windows. Its op counts are taken from the raw
result (requests and time of the measured part).
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from harness import SIZES, Canned, Client, certificates, median, own_network, plimsoll, warp

PARTS = ("rate", "verify", "recording", "accuracy", "memory")


def line(label, name, size, ops, cpu_per_op, base=None):
    size_bytes = SIZES[size]
    ratio = f"{ops / base[0]:6.2f}x rate {cpu_per_op / base[1]:5.2f}x CPU" if base else ""
    print(f"{label:40} {name:9} {ops:11,.0f} op/s {ops * size_bytes / (1 << 20):9,.1f} MiB/s "
          f"{cpu_per_op * 1e6:8.2f} us/op {cpu_per_op * (1 << 30) / size_bytes:7.3f} CPU-s/GiB  {ratio}", flush=True)


def rate_row(args, size, op, tls, certs):
    with Canned(size, certs if tls else None) as server:
        rows = {name: [] for name in ("io_uring", "epoll", "warp")}
        for _ in range(args.rounds):
            for ring in ("io_uring", "epoll"):
                rows[ring].append(plimsoll(server, op, size, args.seconds, ring, tls))
            if args.warp:
                rows["warp"].append(warp(server, op, size, args.seconds, tls))
    label = f"{op.upper()} {size}{' TLS' if tls else ''}"
    if op == "get" and not tls and size == "1MiB":
        label += " (body discarded in kernel)"
    base = median(rows["warp"]) if rows["warp"] else None
    for name, values in rows.items():
        if values:
            line(label, name, size, *median(values), base if name != "warp" else None)


def rate(args):
    with tempfile.TemporaryDirectory() as d:
        certs = certificates(Path(d))
        for tls in (False, True):
            for size in SIZES:
                for op in ("get", "put"):
                    if not args.only or args.only in f"{op} {size}{' tls' if tls else ''}".lower():
                        rate_row(args, size, op, tls, certs)


def verify(args):
    ways = {
        "discarded in kernel": ((), "discarded"),
        "copied for a checksum": (("--checksum", "crc32c"), None),
        "copied and verified": (("--verify",), None),
    }
    rows = {way: [] for way in ways}
    # The server keeps what the client prepared, and gives it back: what is verified was written by this very client.
    with Canned("1MiB", flags=("--keep", "64MiB")) as server:
        for _ in range(args.rounds):
            for way, (flags, wants) in ways.items():
                rows[way].append(plimsoll(server, "get", "1MiB", args.seconds, flags=flags, wants=wants))
    for way, values in rows.items():
        line(f"GET 1MiB (body {way})", "io_uring", "1MiB", *median(values))


def counted_rate(server, seconds, env):
    """GETs a second as the server counts them, in the middle of a run."""
    client = Client(server, "get", "4KiB", seconds + 3, env=env)
    time.sleep(2)
    first, began = server.stats()["get"], time.monotonic()
    time.sleep(seconds)
    last, ended = server.stats()["get"], time.monotonic()
    # With the recorder off there is no result to read, only an end to wait for.
    client.process.communicate()
    client.runs.cleanup()
    return (last - first) / (ended - began)


def recording(args):
    on, off = [], []
    with Canned() as server:
        for _ in range(max(args.rounds, 3)):
            on.append(counted_rate(server, args.seconds, {}))
            off.append(counted_rate(server, args.seconds, {"PLIMSOLL_BENCH_NO_RECORD": "1"}))
    cost = statistics.median(1 - a / b for a, b in zip(on, off))
    print(f"recording, GET 4KiB: {statistics.median(on):,.0f} op/s with, {statistics.median(off):,.0f} without: "
          f"costs {cost:.1%} (goal: below 5 %: {'reached' if cost < 0.05 else 'NOT REACHED'})", flush=True)


def accuracy(args):
    asked = 2_000
    for delay_ms in (1, 5, 20):
        # A server that never sleeps: its delay is then the whole of what the client should see.
        with Canned(flags=("--delay", f"{delay_ms}ms", "--spin", "1s")) as server:
            w = Client(server, "get", "4KiB", max(args.seconds, 5), "--rate", f"{asked}/s", concurrency=256).end()
            truth = server.stats()["delay_ns"]
        seen = w["latency_ns"]["response"]
        got = w["ops_per_s"]["value"]
        rate_off = got / asked - 1
        parts = [f"rate {got:,.1f}/s of {asked:,} ({rate_off:+.2%}{'' if abs(rate_off) <= 0.005 else ' NOT REACHED'})"]
        # The goals are of p50 and p99; where the machine itself stalls for 1 % of the time, p90 shows what p99 would be.
        for p in ("p50", "p90", "p99"):
            allowed = max(0.01 * truth[p], 50_000)
            ok = "" if abs(seen[p] - truth[p]) <= allowed else " NOT REACHED"
            parts.append(f"{p} {seen[p] / 1e3:,.0f} us, the server's {truth[p] / 1e3:,.0f} "
                         f"({(seen[p] - truth[p]) / 1e3:+,.0f}, {allowed / 1e3:,.0f} allowed{ok})")
        print(f"accuracy, delay {delay_ms} ms: {'; '.join(parts)}", flush=True)


def resident_kib(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(l for l in text.splitlines() if l.startswith("VmRSS:")).split()[1])


def memory(args):
    with Canned("4KiB") as server:
        client = Client(server, "get", "4KiB", args.memory_seconds, concurrency=256)
        sizes = []
        # The first seconds are set-up: objects, connections, buffers.
        time.sleep(3)
        while client.process.poll() is None:
            try:
                sizes.append(resident_kib(client.process.pid) / 1024)
            except (OSError, StopIteration):
                break
            time.sleep(0.5)
        client.end()
    tenth = max(len(sizes) // 10, 1)
    # The last tenth is left out: it holds the analysis after the run.
    body = sizes[:-tenth] if len(sizes) > 2 * tenth else sizes
    first, last = statistics.median(body[:tenth]), statistics.median(body[-tenth:])
    ok = max(sizes) < 100 and last <= first * 1.02 + 1
    print(f"memory, 256 connections, {args.memory_seconds} s: {first:.1f} MiB at first, {last:.1f} at last, "
          f"{max(sizes):.1f} at most, the end included (goal: flat, below 100: {'reached' if ok else 'NOT REACHED'})",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8, help="measured part of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas between [%(default)s]")
    parser.add_argument("--only", default="", help="of the rates, those whose name holds this: 'get 1mib', 'tls'")
    parser.add_argument("--memory-seconds", type=int, default=30, help="length of the memory run [%(default)s]")
    parser.add_argument("--long", action="store_true", help="the memory run takes ten minutes")
    parser.add_argument("--host-network", action="store_true", help="the host's network and congestion control as is")
    args = parser.parse_args()
    unknown = set(args.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if not args.host_network:
        own_network()
    args.only = args.only.lower()
    args.memory_seconds = 600 if args.long else args.memory_seconds
    args.warp = shutil.which("warp") is not None and shutil.which("zstd") is not None
    if not args.warp and "rate" in args.parts:
        print("warp (or zstd) is not on PATH: plimsoll alone")
    for part in args.parts.split(","):
        {"rate": rate, "verify": verify, "recording": recording, "accuracy": accuracy, "memory": memory}[part](args)


if __name__ == "__main__":
    main()
