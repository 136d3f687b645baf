"""Block benchmark: Plimsoll's loop and command, fio, and fio's own t/io_uring where FIO_T_IO_URING names it.

4 KiB random reads of one file, one job at depth 32 on one CPU, first from the page cache (the cost of the client
itself), then direct from the disk. fio runs with registered files and buffers, as Plimsoll does. All take turns,
several rounds, and the median is shown with its ratio to fio: a machine that is shared drifts, and does so for all.

CPU per op is user and system time of the threads that do the I/O over the ops that they did; for fio that is what
it reports itself (usr_cpu and sys_cpu of the job), for t/io_uring that of the whole process.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOP = ROOT / "target/release/examples/random_read"
PLIMSOLL = ROOT / "target/release/plimsoll"
CPU = "1"


def run(*command, env=None):
    """Its output, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["taskset", "-c", CPU, *map(str, command)], env=env, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loop(path, seconds, direct, split):
    words = ["io_uring"] + ["direct"] * direct + ["split"] * split
    r = json.loads(run(LOOP, path, seconds, 32, 4096, *words)[0])
    return r["iops"], r["cpu_ns_per_op"] / 1000


def command(path, seconds, direct):
    with tempfile.TemporaryDirectory() as runs:
        out, _ = run(PLIMSOLL, "block", path, "--pattern", "randread", "--bs", "4KiB", "--iodepth", 32, "--jobs", 1,
                     "--runtime", f"{seconds}s", "--warmup", "0s", "--quiet", "--json",
                     *([] if direct else ["--buffered", "--no-invalidate"]),
                     env=os.environ | {"PLIMSOLL_RUNS": runs})
    w = json.loads(out)["workloads"][0]
    ok = w["outcomes"]["ok"]
    return ok / w["window_s"], w["client"]["cpu_s"] / ok * 1e6


def fio(path, seconds, direct, fixed):
    flags = ["--fixedbufs", "--registerfiles"] if fixed else []
    out, _ = run("fio", "--name=b", f"--filename={path}", "--readonly", "--rw=randread", "--bs=4k", "--iodepth=32",
                 "--ioengine=io_uring", f"--direct={int(direct)}", "--invalidate=0", "--norandommap", "--time_based",
                 f"--runtime={seconds}", "--thread", "--output-format=json", *flags)
    job = json.loads(out[out.index("{"):])["jobs"][0]
    ms, ops = job["read"]["runtime"], job["read"]["total_ios"]
    cpu_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * ms / 1000
    return ops / ms * 1000, cpu_s / ops * 1e6


def t_io_uring(program, path, seconds, direct, batch):
    # It prints the rate of each second; its own batching is given, and its polling modes are off.
    began = time.monotonic()
    out, cpu = run("timeout", "-s", "INT", seconds + 1, program, "-d32", f"-s{batch}", f"-c{batch}", "-b4096", "-p0",
                   "-B1", "-F1", f"-O{int(direct)}", "-n1", f"-r{seconds}", path)
    elapsed = time.monotonic() - began
    rates = [float(n) * {"": 1, "K": 1e3, "M": 1e6}[k] for n, k in re.findall(r"^IOPS=([\d.]+)([KM]?),", out, re.M)]
    if not rates:
        raise SystemExit(f"{program} printed no rate:\n{out}")
    rate = statistics.median(rates)
    # It tells no count of ops: that is its rate over the time that it ran (its start takes a few milliseconds).
    return rate, cpu / (rate * elapsed) * 1e6


def rows_of(args, path, direct):
    rows = {"plimsoll loop": lambda: loop(path, args.seconds, direct, False),
            "plimsoll loop, latency split": lambda: loop(path, args.seconds, direct, True)}
    if PLIMSOLL.exists():
        rows["plimsoll block"] = lambda: command(path, args.seconds, direct)
    if shutil.which("fio"):
        rows["fio io_uring, registered"] = lambda: fio(path, args.seconds, direct, True)
        rows["fio io_uring"] = lambda: fio(path, args.seconds, direct, False)
    if args.t_io_uring:
        for batch in (1, 8, 32):
            rows[f"t/io_uring, batches of {batch}"] = (
                lambda batch=batch: t_io_uring(args.t_io_uring, path, args.seconds, direct, batch))
    return rows


def measure(args, path, direct):
    print("4 KiB random read, depth 32, one job, " + ("direct" if direct else "cached file"))
    rows = rows_of(args, path, direct)
    seen = {name: [] for name in rows}
    for _ in range(args.rounds):
        for name, take in rows.items():
            seen[name].append(take())
    base = seen.get("fio io_uring, registered")
    for name, values in seen.items():
        iops, us = (statistics.median(column) for column in zip(*values))
        ratio = ""
        if base:
            # Each round's tools ran one after the other: the ratio is taken within the round.
            rate = statistics.median(a[0] / b[0] for a, b in zip(values, base))
            cpu = statistics.median(a[1] / b[1] for a, b in zip(values, base))
            ratio = f"{rate:6.2f}x IOPS {cpu:6.2f}x CPU"
        print(f"  {name:30} {iops:10,.0f} IOPS {us:7.2f} us CPU/op  {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="size of the file")
    parser.add_argument("--dir", default=None, help="where the file is made (a file system that takes direct I/O)")
    args = parser.parse_args()
    args.t_io_uring = os.environ.get("FIO_T_IO_URING")
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "plimsoll-engine", "--example", "random_read"],
                   check=True, cwd=ROOT)
    if not shutil.which("fio"):
        print("fio is not on PATH: plimsoll alone")
    with tempfile.TemporaryDirectory(dir=args.dir or ROOT / "target") as d:
        path = Path(d) / "data"
        with open(path, "wb") as f:
            for _ in range(args.mib):
                f.write(os.urandom(1 << 20))
            f.flush()
            os.fsync(f.fileno())
        path.read_bytes()
        measure(args, path, False)
        measure(args, path, True)


if __name__ == "__main__":
    main()
