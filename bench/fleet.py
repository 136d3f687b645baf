"""What a fleet costs and how exactly it starts: agents as processes of this machine (a crowd: in few), a broker of their own, no network between.

Start skew of eight agents beside what this machine's own sleep gives in the same run; the time from a command to the first op; what one
agent gives beside no fleet (the null target, ABBA, agent and local run pinned to one CPU, broker and conductor to the other), and what an
agent's threads beside its workers take; and eight agents with a rate each against one bucket under a tier; and what a conductor finds out of clocks whose truth is known, behind relays
that hold up each way by a time of its own. `levels` measures what agents send, and what aggregators between 10,000 of them and their conductor
would cost (crates/fleet/SCALE.md). Needs nats-server. Parts: clock, skew, overhead, beside, tier, crowd, levels."""

import argparse
import base64
import datetime
import hashlib
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from harness import CLIENT_CPU, PLIMSOLL, SERVER_CPU, pinned
from relay import Relay

ROOT = Path(__file__).resolve().parents[1]
# Agents in one process; another build than the one that is made here is named by PLIMSOLL_CROWD.
CROWD = os.environ.get("PLIMSOLL_CROWD", str(ROOT / "target" / "release" / "examples" / "crowd"))
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
    """A fleet that is up, with so many agents, each on CPUs of its own where these are given; `each` may give an agent, by its number, flags
    and a token of its own, made of the fleet's."""

    def __init__(self, agents, directory, cpu=None, keeper_cpu=None, patience=60, each=None):
        self.directory, self.cpu, self.keeper_cpu, self.wanted, self.patience = directory, cpu, keeper_cpu, agents, patience
        self.each = each or (lambda number, token: ([], token))
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
            flags, own = self.each(i, token)
            line = [PLIMSOLL, "agent", "--name", f"lg-{i}", "--runs-dir", self.directory / f"runs-{i}", *flags]
            line = pinned(self.cpu, *line) if self.cpu else list(map(str, line))
            with open(log, "w") as out:
                self.agents.append(subprocess.Popen(line, env=self.env | {"PLIMSOLL_JOIN": own}, stdout=out, stderr=out))
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


class Crowd(Fleet):
    """The same with agents in few processes, in equal parts: each with a key, a connection and records of its own, as examples/crowd has it."""

    def __init__(self, agents, directory, processes):
        super().__init__(agents, directory, patience=600)
        self.parts = [agents * i // processes for i in range(processes + 1)]

    def __enter__(self):
        up = self.call("fleet", "up", "--listen", "127.0.0.1:0")
        token = re.search(r"plimsoll-join-\S+", up.stdout)[0]
        # Each connection reads this machine's roots of trust, which the library does not use here: a few ms for each agent, and on these cores
        # seconds for a thousand. So they are one certificate.
        roots = self.directory / "plimsoll" / "fleets" / "default" / "certificate.pem"
        env = self.env | {"PLIMSOLL_JOIN": token, "SSL_CERT_FILE": str(roots)}
        for first, end in zip(self.parts, self.parts[1:]):
            log = open(self.directory / f"crowd-{first}.log", "w")
            self.agents.append(subprocess.Popen([CROWD, str(first), str(end - first), self.directory], env=env,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True))
        for first, part in zip(self.parts, self.agents):
            if "wait for orders" not in part.stdout.readline():
                raise SystemExit(f"not all agents came: {(self.directory / f'crowd-{first}.log').read_text()}")
        return self

    def __exit__(self, *_):
        for part in self.agents:
            part.stdin.close()
        for part in self.agents:
            part.wait(60)
        self.call("fleet", "down", "--force", check=False)


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


def threads_of(pid):
    """Time on a CPU of each thread, nanoseconds: those of the workers, and the others."""
    at_work, beside = {}, {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, ran_ns = (task / "comm").read_text().strip(), int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
        (at_work if name.startswith("worker-") else beside)[f"{task.name} {name}"] = ran_ns
    return at_work, beside


def took_beside(pid, seconds):
    """Of each second of the process's workers, what its other threads took, nanoseconds: they have one CPU, so the workers lack it."""
    before = threads_of(pid)
    time.sleep(seconds)
    after = threads_of(pid)
    spent = [sum(then.get(t, 0) - ns for t, ns in now.items()) for now, then in zip(before, after)]
    return 1e9 * spent[1] / max(sum(spent), 1)


def beside(rounds, seconds):
    """What an agent does beside its workers, as the share of a CPU that they have together, beside what a run without a fleet does: the loss of
    rate of a worker that is never idle. It is counted by the kernel, so that what else the machine does is not in it."""
    plan = PLAN.format(warmup="0s", concurrency=1, seconds=seconds + 4, pacing='"closed"')
    shares = {"agent": [], "alone": []}
    with tempfile.TemporaryDirectory() as base, Fleet(1, Path(base), cpu=CLIENT_CPU, keeper_cpu=SERVER_CPU) as fleet:
        file = Path(base) / "plan.toml"
        file.write_text(plan)
        for i in range(rounds):
            for who in (("agent", "alone") if i % 2 else ("alone", "agent")):
                line = [PLIMSOLL, "run", file, "--json", "--quiet", "--runs-dir", Path(base) / "runs"]
                line = pinned(SERVER_CPU, *line, "--fleet") if who == "agent" else pinned(CLIENT_CPU, *line)
                run = subprocess.Popen(line, env=fleet.env, stdout=subprocess.DEVNULL)
                pid = fleet.agents[0].pid if who == "agent" else run.pid
                while not threads_of(pid)[0]:
                    time.sleep(0.05)
                time.sleep(1)
                shares[who].append(took_beside(pid, seconds))
                run.wait()
    tell = lambda xs: f"mean {statistics.mean(xs) / 1e7:.3f} %, from {min(xs) / 1e7:.3f} to {max(xs) / 1e7:.3f}"  # noqa: E731
    more = [(a - b) / 1e7 for a, b in zip(shares["agent"], shares["alone"])]
    half = 2.0 * statistics.stdev(more) / len(more) ** 0.5 if len(more) > 1 else float("nan")
    print(f"CPU of all threads but the worker, of the CPU that they share, {rounds} pairs of {seconds} s, the null target: an agent {tell(shares['agent'])}; "
          f"a run without a fleet {tell(shares['alone'])}; the agent's less the other's {statistics.mean(more):+.3f} ± {half:.3f} % (two standard errors)")


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


def crowd(agents, seconds, processes):
    """So many agents, each with a connection of its own and all of them in few processes, on the null target at 10 op/s: who joins, when the
    first op is sent, what the conductor takes, and whether its record is what each of them kept, histograms included."""
    if not os.environ.get("PLIMSOLL_CROWD"):
        subprocess.run(["cargo", "build", "-q", "--release", "--locked", "-p", "plimsoll-fleet", "--example", "crowd"], cwd=ROOT, check=True)
    plan = PLAN.format(warmup="0s", concurrency=agents, seconds=seconds, pacing=f'{{ constant = "{10 * agents}/s" }}')
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as base, Crowd(agents, Path(base), processes) as fleet:
        print(f"{agents} agents in {processes} processes joined in {time.monotonic() - began:.1f} s (their starts included)", flush=True)
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


def address_of(token):
    """Where a token of ours has the broker: after the version (1 byte), when it expires (8), pin, conductor's key and secret (32 each) come the
    fleet's name and the addresses, each with its length before it; SHA-256's first four bytes are the last."""
    raw = base64.urlsafe_b64decode(token.removeprefix("plimsoll-join-") + "==")
    at = 1 + 8 + 3 * 32
    name_end = at + 1 + raw[at]
    return raw[:name_end], raw[name_end + 1 : name_end + 1 + raw[name_end]].decode()


def moved(token, address):
    """The token, with another address."""
    head, _ = address_of(token)
    body = head + bytes([len(address)]) + address.encode()
    return "plimsoll-join-" + base64.urlsafe_b64encode(body + hashlib.sha256(body).digest()[:4]).rstrip(b"=").decode()


class Ways:
    """Relays for agents whose clocks are ahead by known times, all drawn from a seed."""

    def __init__(self, seed):
        self.random, self.relays, self.ahead = random.Random(seed), [], {}

    def each(self, number, token):
        relay = Relay(address_of(token)[1], self.random.random())
        self.relays.append(relay)
        up_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.ahead[f"lg-{number}"] = ahead = self.random.randint(-up_ns // 2, 10**12)
        return [f"--clock-ahead={ahead}"], moved(token, relay.address)

    def draw(self):
        """New ways: 0.2 to 20 ms, in a third of the cases all of it on one of the two; jitter of up to half of that."""
        for relay in self.relays:
            ways = [10 ** self.random.uniform(-3.7, -1.7) for _ in range(2)]
            if self.random.random() < 1 / 3:
                ways[self.random.randrange(2)] = 0.0
            relay.there, relay.back = ways
            relay.jitter = self.random.choice([0.0, self.random.uniform(0, 0.5) * sum(ways)])

    def judge(self, name, offset_ns, bound_ns):
        """Error and bound of what was found, nanoseconds."""
        return abs(offset_ns - self.ahead[name]), bound_ns


def clock(calls, runs, seed, agents=8):
    """What a conductor finds out of each agent's clock beside what that clock really is ahead: in roll calls, each over other ways, and in runs,
    in which the ways change while clocks are compared."""
    ways, found = Ways(seed), {"roll call": [], "run": []}
    with tempfile.TemporaryDirectory() as base, Fleet(agents, Path(base), each=ways.each) as fleet:
        for _ in range(calls):
            ways.draw()
            status = json.loads(fleet.call("fleet", "status", "--json").stdout)
            told = [a for a in status["agents"] if a["clock_offset_ns"] is not None]
            found["roll call"] += [ways.judge(a["name"], a["clock_offset_ns"], a["clock_bound_ns"]) for a in told]
        plan = PLAN.format(warmup="0s", concurrency=agents, seconds=25, pacing='{ constant = "400/s" }')
        for _ in range(runs):
            stop = threading.Event()
            changer = threading.Thread(target=lambda: [ways.draw() for _ in iter(lambda: stop.wait(4), True)])
            ways.draw()
            changer.start()
            summary = fleet.run(plan, "--fleet")[0]
            stop.set()
            changer.join()
            found["run"] += [ways.judge(a["agent"], a["clock_offset_ns"], a["clock_bound_ns"]) for a in summary["agents"]]
    for relay in ways.relays:
        relay.close()
    for what, cases in found.items():
        if not cases:
            continue
        ratios = sorted(error / bound for error, bound in cases)
        inside = sum(error <= bound for error, bound in cases)
        bounds = sorted(bound / 1e6 for _, bound in cases)
        print(f"clock offset against the truth, {what}: {len(cases)} cases ({agents} agents behind relays, ways of 0 to 20 ms, unlike, jitter; "
              f"seed {seed}): {inside / len(cases):.2%} inside the bound; error as a share of the bound: median {statistics.median(ratios):.2f}, "
              f"most {ratios[-1]:.3f}; bound: median {statistics.median(bounds):.2f}, most {bounds[-1]:.2f} ms", flush=True)
    subprocess.run(["cargo", "run", "-q", "--release", "--locked", "-p", "plimsoll-fleet", "--example", "clocks", "--", "5000", str(seed)],
                   cwd=ROOT, check=True)


def levels(agents, sites):
    """Own records of four real agents under three loads, and what merging many of them in two levels costs."""
    with tempfile.TemporaryDirectory() as base:
        server = subprocess.Popen(
            [PLIMSOLL, "target", "s3", "--listen", "127.0.0.1:0", "--data", Path(base) / "data", "--no-sync", "--bucket", "bench"],
            env=os.environ | KEYS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            at = ["--endpoint", json.loads(server.stdout.readline())["endpoint"], "--bucket", "bench", "--fleet", "--each", "--warmup", "0s",
                  "--duration", "6s", "--json", "--quiet", "--runs-dir", Path(base) / "runs"]
            with Fleet(4, Path(base)) as fleet:
                loads = {
                    "null": lambda: fleet.run(PLAN.format(warmup="0s", concurrency=4, seconds=6, pacing='"closed"'), "--fleet"),
                    "object": lambda: fleet.call("object", "get", "--size", "64KiB", "--objects", "100", "--concurrency", "16", "--rate", "150/s", *at),
                    "mixed": lambda: fleet.call("object", "mixed", "--size", "64KiB", "--objects", "100", "--concurrency", "16", "--rate", "150/s", *at),
                }
                found, seen = [], set()
                for name, load in loads.items():
                    load()
                    files = [f for f in sorted(Path(base).glob("runs-*/agents/*/frames")) if f not in seen]
                    seen.update(files)
                    found.append(f"{name}={','.join(map(str, files))}")
            subprocess.run(["cargo", "run", "-q", "--release", "--locked", "-p", "plimsoll-fleet", "--example", "levels", "--", str(agents),
                            str(sites), "20", *found], cwd=ROOT, check=True)
        finally:
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="clock,skew,overhead,beside,tier,crowd,levels")
    parser.add_argument("--rounds", type=int, default=10, help="starts, and pairs of runs")
    parser.add_argument("--seconds", type=int, default=5, help="of each run of a pair")
    parser.add_argument("--crowd", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=4, help="in which the agents of the part crowd live")
    parser.add_argument("--calls", type=int, default=100, help="roll calls of the part clock, eight agents each")
    parser.add_argument("--seed", type=int, default=1, help="of the part clock")
    args = parser.parse_args()
    parts = args.parts.split(",")
    if "clock" in parts:
        clock(args.calls, 4, args.seed)
    if "skew" in parts:
        skew(args.rounds, 8)
    if "overhead" in parts:
        overhead(args.rounds, args.seconds)
    if "beside" in parts:
        beside(args.rounds, args.seconds)
    if "tier" in parts:
        tier(40)
    if "crowd" in parts:
        crowd(args.crowd, 30, args.processes)
    if "levels" in parts:
        levels(10_000, 100)


if __name__ == "__main__":
    main()
