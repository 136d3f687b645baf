"""A campaign of 200 cells, killed ten times (SIGKILL) at random moments and taken up again: how many runs were made again, and whether
one is lost. On the null target, so that it measures the bookkeeping and no storage.

    python3 bench/campaign.py [--kills 10] [--seed 1] [--sizes 40] [--repeats 1] [--bin target/release/plimsoll]
"""

import argparse
import json
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def entries(runs):
    ledger = runs / "campaigns/kills/ledger.jsonl"
    out = []
    for line in ledger.read_text().splitlines() if ledger.exists() else []:
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:
            pass
    return out


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--kills", type=int, default=10)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--bin", type=Path, default=ROOT / "target/release/plimsoll")
    args.add_argument("--sizes", type=int, default=40, help="cells: five subjects, each with so many sizes")
    args.add_argument("--repeats", type=int, default=1)
    args = args.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="plimsoll-campaign-") as place:
        place = Path(place)
        runs, file = place / "runs", place / "kills.toml"
        sizes = ", ".join(f'"{n}KiB"' for n in range(4, 4 * args.sizes + 4, 4))
        runs.mkdir()
        file.write_text(
            f'version = 1\nname = "kills"\nrepeat = {{ at_least = {args.repeats} }}\n'
            + "".join(f'[[subject]]\nname = "s{i}"\ntarget = {{ kind = "null" }}\n' for i in range(5))
            + f'[[workload]]\nname = "put"\nmix = {{ put = 1 }}\nsizes = [{sizes}]\nduration = "300ms"\nwarmup = "0s"\n'
        )
        began, kills, verb = time.monotonic(), 0, "run"
        # Spread over the campaign: after so many more runs, and a random part of the next.
        while True:
            command = [args.bin, "campaign", verb, file, "--runs-dir", runs, "-q"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            until = sum(e["entry"] == "done" for e in entries(runs)) + rng.randint(5, 25)
            while kills < args.kills and process.poll() is None:
                if sum(e["entry"] == "done" for e in entries(runs)) >= until:
                    time.sleep(rng.uniform(0, 1.0))
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                    break
                time.sleep(0.02)
            _, said = process.communicate()
            if process.returncode not in (0, 3, -signal.SIGKILL):
                raise SystemExit(f"exit {process.returncode}:\n{said.decode()}")
            if process.returncode >= 0:
                break
            verb = "resume"
        took = time.monotonic() - began
        all_ = entries(runs)
        done = Counter(e["cell"] for e in all_ if e["entry"] == "done")
        begun = sum(e["entry"] == "under" for e in all_)
        names = [e["run"]["run"] for e in all_ if e["entry"] == "done"]
        each, cells = args.repeats, 5 * args.sizes
        lost = sum(max(0, each - n) for n in done.values()) + each * (cells - len(done))
        print(f"{len(done)} cells, {sum(done.values())} runs that count, {begun} begun, {kills} kills, {took:.0f} s")
        print(f"made again: {begun - sum(done.values())}; lost: {lost}; counted twice: {len(names) - len(set(names))}")
        if lost or len(names) != len(set(names)) or begun - sum(done.values()) > kills or set(done.values()) != {each}:
            raise SystemExit("a run was lost, or made again without need")


if __name__ == "__main__":
    main()
