"""`plimsoll net` beside iperf3: on a veth pair under a shaper of 400 Mbit/s (MTU 1500), and on the loopback, in turn, in one run.

Payload at the receiver in both: of iperf3 what its receiver counted. To reach: within 1 % of iperf3 and of the limit less headers. The
loopback has no limit: rate and CPU seconds per GiB at both ends, as ratios. One stream each; iperf3 copies what it receives (and without
a copy: --skip-rx-copy, where it knows that), ours is discarded in the kernel, as bodies of GET are. Needs root, iproute2 and iperf3.
"""

import argparse
import json
import os
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


def iperf3(here, there, address, seconds):
    """Payload at the receiver, bytes per second, and CPU seconds per GiB of both ends together."""
    server = subprocess.Popen([*there, "iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL)
    time.sleep(1)
    done = subprocess.run([*here, "iperf3", "-c", address, "-t", str(seconds), "-O", "1", "-J"], check=True, capture_output=True)
    server.wait(30)
    end = json.loads(done.stdout)["end"]
    rate = end["sum_received"]["bits_per_second"] / 8
    cpu = (end["cpu_utilization_percent"]["host_total"] + end["cpu_utilization_percent"]["remote_total"]) / 100
    return rate, cpu / (rate / 2**30)


def ours(here, there, address, seconds):
    with tempfile.TemporaryDirectory() as runs:
        server = subprocess.Popen([*there, PLIMSOLL, "net", "serve", "--listen", f"{address}:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        key, to = server.stdout.readline().split(" plimsoll net --to ")
        done = subprocess.run(
            [*here, PLIMSOLL, "net", "--to", to.strip(), "--streams", "1", "--duration", f"{seconds}s", "--json", "-q",
             "--runs-dir", runs],
            env=os.environ | {"PLIMSOLL_NET_KEY": key.split("=", 1)[1]}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        server.wait(30)
    if done.returncode != 0:
        sys.exit(f"plimsoll net ended with {done.returncode}")
    stage = json.loads(done.stdout)["stages"][0]
    rate = stage["lanes"][0]["bytes_per_s"]
    # Each end of the lane counts the same payload.
    return rate["value"], sum(h["cpu_s_per_gib"] for h in stage["hosts"]), rate, stage["lanes"][0]


def stolen():
    ticks = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return ticks[7], sum(ticks)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    before = stolen()
    with Wire() as (here, there):
        for what, far, address in (("veth, tbf 400 Mbit/s", there, "10.98.0.2"), ("loopback", here, "127.0.0.1")):
            rows = []
            for _ in range(a.rounds):
                theirs = iperf3(here, far, address, a.seconds)
                mine = ours(here, far, address, a.seconds)
                rows.append((theirs[0], mine[0], theirs[1], mine[1]))
                half = (mine[2]["high"] - mine[2]["low"]) / 2 / mine[2]["value"]
                print(f"{what}: iperf3 {theirs[0] * 8e-6:.2f} Mbit/s, ours {mine[0] * 8e-6:.2f} +-{half:.2%} Mbit/s, CPU s/GiB "
                      f"{theirs[1]:.3f} and {mine[1]:.3f}; limited by {[x['kind'] for x in mine[3]['limited_by']]}", flush=True)
            theirs, mine, their_cpu, my_cpu = (statistics.median(c) for c in zip(*rows))
            print(f"{what}, medians of {a.rounds}: ours {mine / theirs:.4f}x iperf3, CPU {my_cpu / their_cpu:.2f}x")
            if what != "loopback":
                print(f"{what}: the limit less headers is {PAYLOAD * 1e-6:.2f} Mbit/s: iperf3 {theirs * 8 / PAYLOAD - 1:+.2%}, "
                      f"ours {mine * 8 / PAYLOAD - 1:+.2%}")
    after = stolen()
    print(f"stolen CPU time: {(after[0] - before[0]) / max(after[1] - before[1], 1):.1%}, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
