"""`plimsoll import` of large files: time, and the most memory that it held. A table of requests as warp writes it (ten million by default,
in order, from a seed), and files of many GB that are no result: they are to be refused, in words and in little memory.

    python3 bench/import.py [--requests 10000000] [--gb 5] [--seed 1] [--dir DIR] [--bin target/release/plimsoll]
"""

import argparse
import heapq
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "idx thread op client_id n_objects bytes endpoint file error start first_byte end duration_ns cat".replace(" ", "\t") + "\n"
TAIL = "# warp mixed --host=s3:9000 --concurrent=64 --obj.size=64KiB --full\n"


def at(ns):
    """RFC 3339, as warp has it: of one hour."""
    s, ns = divmod(ns, 10**9)
    return f"2026-11-23T10:{s // 60:02d}:{s % 60:02d}.{ns:09d}Z"


def requests(out, count, seed, threads=64):
    """Of ten minutes: four reads of 64 KiB to a write, each of `threads` one after the other, one in a thousand refused."""
    rng = random.Random(seed)
    mean = 600e9 * threads / count
    free = [(i * 1000, i) for i in range(threads)]
    out.write(HEAD)
    for i in range(count):
        start, thread = free[0]
        took = int(mean * (0.5 + rng.random()))
        op = "PUT" if i % 5 == 0 else "GET"
        error = "Please reduce your request rate." if i % 1000 == 999 else ""
        first = at(start + took // 2) if op == "GET" else ""
        out.write(
            f"{i}\t{thread}\t{op}\tabcd\t1\t65536\thttp://s3:9000\tk{i % 4096}/{i}.rnd\t{error}\t{at(start)}\t{first}\t"
            f"{at(start + took)}\t{took}\t0\n"
        )
        heapq.heapreplace(free, (start + took + 1000, thread))
    out.write(TAIL)


def repeated(path, head, block, gb):
    """A head, then the same again and again."""
    block *= max(1, (8 << 20) // len(block))
    with open(path, "w") as f:
        f.write(head)
        for _ in range(gb * 10**9 // len(block)):
            f.write(block)


def measured(binary, file, runs):
    """Exit code, seconds, MiB held at most, and the first words that it said."""
    began = time.monotonic()
    said = runs / "said"
    with open(said, "w") as err:
        process = subprocess.Popen(
            [binary, "import", file, "--runs-dir", runs, "--json"], stdout=subprocess.DEVNULL, stderr=err
        )
        _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - began, usage.ru_maxrss / 1024, said.read_text()


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--requests", type=int, default=10_000_000)
    args.add_argument("--gb", type=int, default=5)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--dir", type=Path)
    args.add_argument("--bin", type=Path, default=ROOT / "target/release/plimsoll")
    args = args.parse_args()
    row = "7\t0\tGET\tabcd\t1\t65536\thttp://s3:9000\tk/7.rnd\t\t2026-11-23T10:00:00Z\t\t2026-11-23T10:00:01Z\t1000000000\t0\n"
    huge = {
        "the same row of a table of warp": (HEAD, row),
        "a row without an end": (HEAD + '7\t0\tGET\tabcd\t1\t1\th\tf\t"', "x"),
        "JSON of fio with jobs without an end": ('{"fio version" : "fio-3.33", "jobs" : [', '{"jobname" : "j", "read" : {"iops" : 1}},\n'),
        "a table of elbencho without an end": ("ISO date,operation,time ms [last],IOPS [last],MiB/s [last],version,command\n",
                                               "2026-11-23T10:00:00.123+0000,WRITE,10000,51200,200,3.1-2,c\n"),
    }
    with tempfile.TemporaryDirectory(prefix="plimsoll-import-", dir=args.dir) as place:
        place = Path(place)
        runs = place / "runs"
        runs.mkdir()
        table = place / "warp.csv.zst"
        with subprocess.Popen(["zstd", "-q", "-3", "-o", table], stdin=subprocess.PIPE, text=True) as zstd:
            requests(zstd.stdin, args.requests, args.seed)
            zstd.stdin.close()
        code, took, held, said = measured(args.bin, table, runs)
        print(f"{args.requests} requests, {table.stat().st_size >> 20} MiB: exit {code}, {took:.1f} s, "
              f"{args.requests / took / 1e3:.0f} thousand/s, {held:.0f} MiB at most; {said[:200].strip()}")
        table.unlink()
        for name, (head, block) in huge.items() if args.gb else ():
            file = place / "huge"
            repeated(file, head, block, args.gb)
            code, took, held, said = measured(args.bin, file, runs)
            print(f"{args.gb} GB, {name}: exit {code}, {took:.1f} s, {held:.0f} MiB at most; {said[:300].strip()}")
            file.unlink()


if __name__ == "__main__":
    main()
