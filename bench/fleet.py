"""What a fleet costs and how exactly it starts: agents as processes of this machine, a broker of their own, no network between.

Start skew of eight agents beside what this machine's own sleep gives in the same run; the time from a command to the first op; what one
agent gives beside no fleet (the null target, ABBA, agent and local run pinned to one CPU, broker and conductor to the other); and eight
agents with a rate each against one bucket under a tier. Needs nats-server. Parts: skew, overhead, tier, crowd."""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from harness import CLIENT_CPU, PLIMSOLL, SERVER_CPU, pinned

ROOT = Path(__file__).resolve().parents[1]
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
PLAN = """version = 1
[targets.n]
kind = "null"
[[stage]]
warmup = "{warmup}"
[[stage.workload]]
name = "w"
mix = {{ read = 1 }}
concurrency = {concurrency}
stop = {{ duration = "{seconds}s" }}
pacing = {pacing}
"""


class Fleet:
    """A fleet that is up, with so many agents, each on CPUs of its own where these are given."""

    def __init__(self, agents, directory, cpu=None, keeper_cpu=None, patience=60):
        self.directory, self.cpu, self.keeper_cpu, self.wanted, self.patience = directory, cpu, keeper_cpu, agents, patience
        self.env = os.environ | KEYS | {"XDG_RUNTIME_DIR": str(directory), "PLIMSOLL_RUNS": str(directory / "runs")}
        self.agents = []

    def call(self, *args, cpu=None, check=True):
        line = pinned(cpu, PLIMSOLL, *args) if cpu else [PLIMSOLL, *map(str, args)]
        done = subprocess.run(line, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if check and done.returncode not in (0, 3, 5):
            raise SystemExit(f"{line}: exit {done.returncode}\n{done.stderr}")
        return done

    def __enter__(self):
        up = self.call("fleet", "up", "--listen", "127.0.0.1:0", cpu=self.keeper_cpu)
        token = re.search(r"plimsoll-join-\S+", up.stdout)[0]
        logs = []
        for i in range(self.wanted):
            log = self.directory / f"lg-{i}.log"
            logs.append(log)
            line = [PLIMSOLL, "agent", "--name", f"lg-{i}", "--runs-dir", self.directory / f"runs-{i}"]
            line = pinned(self.cpu, *line) if self.cpu else list(map(str, line))
            with open(log, "w") as out:
                self.agents.append(subprocess.Popen(line, env=self.env | {"PLIMSOLL_JOIN": token}, stdout=out, stderr=out))
        end = time.monotonic() + self.patience
        while not all("waits for orders" in log.read_text() for log in logs):
            if time.monotonic() > end:
                raise SystemExit(f"not all agents came: {[log.read_text() for log in logs]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            agent.terminate()
        for agent in self.agents:
            agent.wait(30)
        self.call("fleet", "down", "--force", check=False)

    def run(self, plan, *flags, cpu=None):
        """Its summary, its directory, and when the command was given."""
        file = self.directory / "plan.toml"
        file.write_text(plan)
        begun = time.time()
        done = self.call("run", file, "--json", "--quiet", "--runs-dir", self.directory / "runs", *flags, cpu=cpu)
        [newest] = sorted((self.directory / "runs").iterdir(), key=lambda d: d.stat().st_mtime)[-1:]
        return json.loads(done.stdout), newest, begun


def sleeps(n):
    """How much later than it was asked to this machine wakes a process, microseconds."""
    late = []
    for _ in range(n):
        until = time.monotonic_ns() + 20_000_000
        time.sleep((until - time.monotonic_ns()) / 1e9)
        late.append((time.monotonic_ns() - until) / 1e3)
    return late


def skew(rounds, agents):
    gone, first, slept, bounds = [], [], [], []
    with tempfile.TemporaryDirectory() as base, Fleet(agents, Path(base)) as fleet:
        plan = PLAN.format(warmup="0s", concurrency=agents, seconds=2, pacing='{ constant = "400/s" }')
        for _ in range(rounds):
            slept += sleeps(agents)
            summary, run, begun = fleet.run(plan, "--fleet")
            mine = summary["agents"]
            gone += [abs(a["start_skew_ns"]) / 1e3 for a in mine]
            bounds += [a["clock_bound_ns"] / 1e3 for a in mine]
            env = json.loads((run / "env.json").read_text())["environment"]
            started = env["started_at"]
            at = datetime.datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
            stage = json.loads((run / "analysis.json").read_text())["spans"][0]
            first.append(at + stage["start_s"] - begun)
    tell = lambda xs: f"median {statistics.median(xs):.0f}, most {max(xs):.0f} us"  # noqa: E731
    print(f"start skew of {agents} agents, {rounds} starts: {tell(gone)}; this machine's own sleep: {tell(slept)}; clock bound: {tell(bounds)}")
    print(f"from the command to the first op, {agents} agents: median {statistics.median(first):.2f} s, most {max(first):.2f} s")


def overhead(pairs, seconds):
    """One agent beside no fleet, on one CPU, as `compare` has it."""
    ours, alone = [], []
    plan = PLAN.format(warmup="1s", concurrency=1, seconds=seconds, pacing='"closed"')
    with tempfile.TemporaryDirectory() as base, Fleet(1, Path(base), cpu=CLIENT_CPU, keeper_cpu=SERVER_CPU) as fleet:
        for i in range(pairs):
            for over in ((True, False) if i % 2 else (False, True)):
                if over:
                    ours.append(fleet.run(plan, "--fleet", cpu=SERVER_CPU)[1])
                else:
                    alone.append(fleet.run(plan, cpu=CLIENT_CPU)[1])
        done = fleet.call("compare", *alone, "--", *ours, check=False)
        print(f"one agent (B) beside no fleet (A), {pairs} pairs of {seconds} s, the null target:")
        print(done.stdout + done.stderr)


def tier(seconds):
    """80 op/s for all, of which each of eight agents offers an eighth and a half more."""
    with tempfile.TemporaryDirectory() as base:
        server = subprocess.Popen(
            [PLIMSOLL, "target", "s3", "--listen", "127.0.0.1:0", "--data", Path(base) / "data", "--no-sync", "--tier", "vultr-standard",
             "--scale", "0.1", "--bucket", "bench"], env=os.environ | KEYS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            endpoint = json.loads(server.stdout.readline())["endpoint"]
            with Fleet(8, Path(base)) as fleet:
                object_put = ["object", "put", "--endpoint", endpoint, "--bucket", "bench", "--size", "4KiB", "--warmup", "2s", "--duration",
                              f"{seconds}s", "--json", "--quiet", "--runs-dir", Path(base) / "runs"]
                for name, flags in (("eight agents, 15 op/s each", ["--rate", "120/s", "--concurrency", "32", "--fleet"]),
                                    ("one machine, 120 op/s", ["--rate", "120/s", "--concurrency", "32"])):
                    summary = json.loads(fleet.call(*object_put, *flags).stdout)
                    [w] = [w for w in summary["workloads"] if w["op"] == "put"]
                    e = w["ops_per_s"]
                    print(f"{name}: {e['value']:.2f} op/s ({e['low']:.2f} to {e['high']:.2f}) of 80; {summary['verdict'].splitlines()[0]}")
        finally:
            server.terminate()
            server.wait()


def crowd(agents, seconds):
    """So many agents, each a process with a connection of its own, on the null target at 10 op/s: who joins, when the first op is sent, what
    the conductor takes, and whether its record is what each of them kept, histograms included."""
    subprocess.run(["cargo", "run", "-q", "--release", "--locked", "-p", "plimsoll-bus", "--example", "crowd", "--", str(agents)], cwd=ROOT, check=True)
    plan = PLAN.format(warmup="0s", concurrency=agents, seconds=seconds, pacing=f'{{ constant = "{10 * agents}/s" }}')
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as base, Fleet(agents, Path(base), patience=600) as fleet:
        print(f"{agents} agents, each a process of its own, joined in {time.monotonic() - began:.1f} s (their starts included)", flush=True)
        file = Path(base) / "plan.toml"
        file.write_text(plan)
        line = [PLIMSOLL, "run", file, "--json", "--quiet", "--runs-dir", Path(base) / "runs", "--fleet"]
        begun, took, resident = time.time(), {}, {}
        with open(Path(base) / "out", "w+") as out:
            conductor = subprocess.Popen([str(x) for x in line], env=fleet.env, stdout=out)
            most = 0
            while conductor.poll() is None:
                try:
                    status = Path(f"/proc/{conductor.pid}/status").read_text()
                    most = max([most, *(int(n) for n in re.findall(r"VmHWM:\s+(\d+) kB", status))])
                    resident[time.time()] = max(int(n) for n in re.findall(r"VmRSS:\s+(\d+) kB", status))
                    fields = Path(f"/proc/{conductor.pid}/stat").read_text().rsplit(")", 1)[1].split()
                    took[time.time()] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                except (FileNotFoundError, ProcessLookupError, ValueError):
                    pass
                time.sleep(0.25)
            out.seek(0)
            summary = json.load(out)
        print(f"exit {conductor.returncode}, {time.time() - begun:.1f} s in all; {summary['verdict'].splitlines()[0]}")
        [run] = (Path(base) / "runs").iterdir()
        env = json.loads((run / "env.json").read_text())["environment"]
        at = datetime.datetime.fromisoformat(env["started_at"].replace("Z", "+00:00")).timestamp()
        spans = json.loads((run / "analysis.json").read_text())["spans"]
        first, last = at + spans[0]["start_s"], at + spans[-1]["end_s"]
        under_load = [(t, cpu) for t, cpu in took.items() if first <= t <= last]
        share = (under_load[-1][1] - under_load[0][1]) / (under_load[-1][0] - under_load[0][0])
        print(f"from the command to the first op {first - begun:.2f} s; conductor under load {share:.2f} cores, "
              f"{max([m for t, m in resident.items() if t <= last]) / 1024:.0f} MiB; {most / 1024:.0f} MiB at most, while it judges")
        [w] = summary["workloads"]
        skews = [abs(a["start_skew_ns"]) / 1e6 for a in summary["agents"]]
        print(f"{w['ops_per_s']['value']:.1f} op/s of {10 * agents}; start skew median {statistics.median(skews):.2f}, most {max(skews):.2f} ms")
        print(held_against_own_records(fleet, run, Path(base)))


def held_against_own_records(fleet, run, base):
    """Slice by slice of each agent: counts and histograms. A slice of before the start, in which nothing was done, is its own record's only."""
    tally = lambda at: [json.loads(line) for line in fleet.call("fleet", "tally", at).stdout.splitlines()]  # noqa: E731
    keyed = lambda ts: {(t["stage"], t["slice"]): t["digest"] for t in ts if t["started"] or t["ok"] or t["failed"]}  # noqa: E731
    of_run, slices, ops, unlike = {}, 0, 0, []
    for t in tally(run):
        of_run.setdefault(t["agent"], []).append(t)
        ops += t["ok"]
    for i in range(fleet.wanted):
        [own] = [d for d in (base / f"runs-{i}").rglob("frames") if d.is_file()]
        kept, had = keyed(tally(own.parent)), keyed(of_run.get(f"lg-{i}", []))
        slices += len(kept)
        unlike += [f"lg-{i} {key}" for key in kept.keys() | had.keys() if kept.get(key) != had.get(key)]
    return (f"{slices} slices, {ops} ops in the record of the run; not as the agent's own record has them: {len(unlike)}"
            + (f", the first {unlike[:3]}" if unlike else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="skew,overhead,tier,crowd")
    parser.add_argument("--rounds", type=int, default=10, help="starts, and pairs of runs")
    parser.add_argument("--seconds", type=int, default=5, help="of each run of a pair")
    parser.add_argument("--crowd", type=int, default=1000)
    args = parser.parse_args()
    parts = args.parts.split(",")
    if "skew" in parts:
        skew(args.rounds, 8)
    if "overhead" in parts:
        overhead(args.rounds, args.seconds)
    if "tier" in parts:
        tier(40)
    if "crowd" in parts:
        crowd(args.crowd, 30)


if __name__ == "__main__":
    main()
