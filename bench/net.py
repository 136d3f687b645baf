"""`plimsoll net` beside iperf3: on a veth pair under a shaper of 400 Mbit/s (MTU 1500), and on the loopback, in turn, in one run.

Payload at the receiver in both: of iperf3 what its receiver counted. To reach: within 1 % of iperf3 and of the limit less headers. The
loopback has no limit: rate and CPU seconds per GiB at both ends, as ratios. One stream each; iperf3 copies what it receives (and without
a copy: --skip-rx-copy, where it knows that), ours is discarded in the kernel, as bodies of GET are. Needs root, iproute2 and iperf3.

Ours measures both directions and then both at once; what iperf3 has is the first of these, so the test is ended (as with Ctrl-C, which keeps what was
measured) when that one is done. `--seconds 10 --rounds 5` takes under five minutes. The last lines are a table for bench/README.md.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from harness import PLIMSOLL

LIMIT = 400e6
PAYLOAD = LIMIT * 1448 / 1514


def sh(line):
    subprocess.run(line.split(), check=True, capture_output=True)


class Wire:
    """Two namespaces, a veth pair, a token bucket each way."""

    def __enter__(self):
        tag = uuid.uuid4().hex[:6]
        self.names = [f"ba{tag}", f"bb{tag}"]
        a, b = self.names
        for name in self.names:
            sh(f"ip netns add {name}")
        sh(f"ip link add v{a} netns {a} type veth peer name v{b} netns {b}")
        for i, name in enumerate(self.names):
            sh(f"ip -n {name} link set lo up")
            sh(f"ip -n {name} link set v{name} mtu 1500 up")
            sh(f"ip -n {name} addr add 10.98.0.{i + 1}/24 dev v{name}")
            sh(f"tc -n {name} qdisc add dev v{name} root tbf rate {int(LIMIT)} burst 64kb latency 50ms")
        return [["ip", "netns", "exec", name] for name in self.names]

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def listens(there):
    """Whether a server waits on iperf3's port."""
    found = subprocess.run([*there, "ss", "-Hltn", "sport = :5201"], capture_output=True, text=True)
    return bool(found.stdout.strip())


def iperf3(here, there, address, seconds):
    """Payload at the receiver, bytes per second, and CPU seconds per GiB of both ends together."""
    server = subprocess.Popen([*there, "iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 10
    while not listens(there):
        if time.monotonic() > end:
            sys.exit("iperf3's server does not listen")
        time.sleep(0.05)
    done = subprocess.run([*here, "iperf3", "-c", address, "-t", str(seconds), "-O", "1", "-J"], check=True, capture_output=True)
    server.wait(30)
    end = json.loads(done.stdout)["end"]
    rate = end["sum_received"]["bits_per_second"] / 8
    cpu = (end["cpu_utilization_percent"]["host_total"] + end["cpu_utilization_percent"]["remote_total"]) / 100
    return rate, cpu / (rate / 2**30)


def ours(here, there, address, seconds):
    """The same of the first direction, with its interval and what limited it."""
    with tempfile.TemporaryDirectory() as runs:
        server = subprocess.Popen([*there, PLIMSOLL, "net", "serve", "--listen", f"{address}:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        key, to = server.stdout.readline().split(" plimsoll net --to ")
        test = subprocess.Popen(
            [*here, PLIMSOLL, "net", "--to", to.strip(), "--streams", "1", "--warmup", "1s", "--duration", f"{seconds}s", "--json",
             "--runs-dir", runs],
            env=os.environ | {"PLIMSOLL_NET_KEY": key.split("=", 1)[1].strip()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = []
        for line in test.stderr:
            said.append(line)
            if "2 of 3:" in line:
                test.send_signal(signal.SIGINT)
                break
        out, rest = test.communicate(timeout=60)
        server.wait(30)
    stages = json.loads(out)["stages"] if out else []
    if not stages or not stages[0]["lanes"][0].get("bytes_per_s"):
        sys.exit(f"plimsoll net ended with {test.returncode} and no rate: {''.join(said)}{rest}")
    rate = stages[0]["lanes"][0]["bytes_per_s"]
    # Each end of the lane counts the same payload.
    return rate["value"], sum(h["cpu_s_per_gib"] for h in stages[0]["hosts"]), rate, stages[0]["lanes"][0]


def stolen():
    ticks = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return ticks[7], sum(ticks)


def row(what, rows, payload):
    """A line of the table, of all rounds."""
    theirs, mine, their_cpu, my_cpu = zip(*rows)
    mid = statistics.median
    unit, name = (1e9, "Gbit/s") if mid(mine) * 8 > 1e9 else (1e6, "Mbit/s")

    def told(values):
        off = f" ({mid(values) * 8 / payload - 1:+.2%})" if payload else ""
        return f"{mid(values) * 8 / unit:.2f} {name} ({min(values) * 8 / unit:.2f} to {max(values) * 8 / unit:.2f}){off}"

    ratio = mid(m / t for m, t in zip(mine, theirs))
    goal = "none"
    if payload:
        reached = abs(ratio - 1) <= 0.01 and abs(mid(mine) * 8 / payload - 1) <= 0.01
        goal = f"within 1 % of both: {'reached' if reached else '**not reached**'}"
    return f"| {what} | {told(theirs)} | {told(mine)} | {ratio:.3f}x | {mid(m / t for m, t in zip(my_cpu, their_cpu)):.2f}x | {goal} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement on the veth pair; half of it on the loopback")
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    before, begun = stolen(), time.monotonic()
    limited = f"veth, tbf of 400 Mbit/s, MTU 1500: {PAYLOAD * 1e-6:.2f} Mbit/s less headers (1448/1514)"
    table = []
    with Wire() as (here, there):
        paths = ((limited, there, "10.98.0.2", a.seconds, PAYLOAD), ("loopback, one stream", here, "127.0.0.1", max(3, a.seconds // 2), None))
        for what, far, address, seconds, payload in paths:
            rows = []
            for n in range(a.rounds):
                # In turn, and each is the first one in every second round: what changes meanwhile falls on both.
                if n % 2:
                    mine, theirs = ours(here, far, address, seconds), iperf3(here, far, address, seconds)
                else:
                    theirs, mine = iperf3(here, far, address, seconds), ours(here, far, address, seconds)
                rows.append((theirs[0], mine[0], theirs[1], mine[1]))
                half = (mine[2]["high"] - mine[2]["low"]) / 2 / mine[2]["value"]
                print(f"{what.split(':')[0]}: iperf3 {theirs[0] * 8e-6:.2f} Mbit/s, ours {mine[0] * 8e-6:.2f} +-{half:.2%} Mbit/s, CPU s/GiB "
                      f"{theirs[1]:.3f} and {mine[1]:.3f}; limited by {[x['kind'] for x in mine[3]['limited_by']]}", flush=True)
            table.append(row(what, rows, payload))
    after = stolen()
    taken = (after[0] - before[0]) / max(after[1] - before[1], 1)
    iperf_version = subprocess.run(["iperf3", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    build = "a release build" if "release" in PLIMSOLL.parts else f"{PLIMSOLL.parent.name}: NOT a release build"
    print(f"\n{iperf_version}; {build}; {a.rounds} rounds, {time.monotonic() - begun:.0f} s in all; Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"load {os.getloadavg()[0]:.1f}, {taken:.1%} of the CPU time stolen\n")
    print("| path | iperf3: median (least to most) | ours | ratio, median of rounds | CPU per GiB, both ends | goal |\n|---|---|---|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()
