"""fleet_faults.py [--faults 200] [--seed 1] [--longest 60] [--kind KIND]: draws faults from a seed, each in a run of its own over three
agents in network namespaces, and holds what is left against the agents' own records and the server's count (tests/e2e/fleet_trouble.py).
Prints a table by kind, and writes all of it to bench/results/fleet-faults-SEED.json. Needs root, nats-server and boto3; a fault takes
10 to 30 s, and as long as it lasts."""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from fleet_trouble import KINDS, draw, one, possible  # noqa: E402

BINARY = os.environ.get("PLIMSOLL_BENCH_BINARY", ROOT / "target/release/plimsoll")


def table(rows):
    print(f"\n{'fault':18} {'runs':>5} {'lost':>5} {'failed':>6}  {'most unrecorded':>16}")
    for kind in KINDS:
        mine = [r for r in rows if r["kind"] == kind]
        if mine:
            tails = [r["tail_s"] for r in mine if r.get("tail_s") is not None]
            tail = f"{max(tails):.2f} s" if tails else "-"
            lost = sum(bool(r.get("lost")) for r in mine)
            print(f"{kind:18} {len(mine):5} {lost:5} {sum(bool(r['broken']) for r in mine):6}  {tail:>16}")
    print(f"{'all':18} {len(rows):5} {'':5} {sum(bool(r['broken']) for r in rows):6}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=60.0, help="seconds that a fault lasts at most")
    parser.add_argument("--kind", choices=KINDS)
    args = parser.parse_args()
    if why := possible():
        sys.exit(f"no faults can be made here: {why}")
    rng = random.Random(args.seed)
    kinds = [args.kind] if args.kind else KINDS
    results = ROOT / "bench/results"
    results.mkdir(exist_ok=True)
    rows, begun = [], time.monotonic()
    for i in range(args.faults):
        # Each kind as often as any other; what it is like is drawn.
        row = one(BINARY, draw(kinds[i % len(kinds)], rng, args.longest))
        rows.append(row)
        state = "; ".join(row["broken"]) or "holds"
        print(f"{i + 1:4} {time.monotonic() - begun:6.0f} s  {row['kind']:17} {row['agent']} for {row.get('for_s', '-')} s: {state[:1500]}", flush=True)
        text = json.dumps({"seed": args.seed, "faults": rows}, indent=1)
        (results / f"fleet-faults-{args.seed}.json").write_text(text + "\n")
    table(rows)
    sys.exit(1 if any(r["broken"] for r in rows) else 0)


if __name__ == "__main__":
    main()
