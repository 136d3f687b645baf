"""Faults in a fleet: agents in network namespaces of their own, one run under a cap, one thing that goes wrong in it, and what has to hold
afterwards. test_fleet_faults.py has a few of them, bench/fleet_faults.py draws hundreds from a seed. Needs root (namespaces, tc, tmpfs)."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import boto3
from botocore.client import Config

KINDS = ["agent_killed", "agent_stopped", "agent_slow", "link_cut", "broker_restarted", "conductor_killed", "disk_full", "clock_jump"]
# Ops a second: of all agents by plan, and the server's own cap.
RATE, CAP = 120, 150
CONCURRENCY = 6
DEADMAN_S = 3
# What an agent that was killed may have done and not recorded, in seconds: as the result says it.
TAIL_S = 1.0
KEYS = {"AWS_ACCESS_KEY_ID": "faults", "AWS_SECRET_ACCESS_KEY": "faults-secret", "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}


def possible():
    """Why faults cannot be made here; empty where they can."""
    if os.geteuid() != 0:
        return "network namespaces and tmpfs need root"
    for tool in ("ip", "tc", "nats-server", "mount"):
        if not shutil.which(tool):
            return f"there is no {tool} here"
    name = f"plf-{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return "no network namespace can be made here"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


def ip(*args, check=True):
    subprocess.run(["ip", *map(str, args)], check=check, capture_output=True)


def wait_until(done, seconds, what):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.05)


class Network:
    """A link for each agent, from a namespace of its own to an address of this host's."""

    def __init__(self, names):
        tag = uuid.uuid4().hex[:5]
        self.spaces = {name: f"plf-{tag}-{name}" for name in names}
        self.links = {name: f"pf{tag}{i}" for i, name in enumerate(names)}
        octet = 64 + random.SystemRandom().randrange(128)
        self.host = f"10.{octet}.255.1"
        ip("addr", "add", f"{self.host}/32", "dev", "lo")
        for i, name in enumerate(names):
            space, link = self.spaces[name], self.links[name]
            ip("netns", "add", space)
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("addr", "add", f"10.{octet}.{i}.1/30", "dev", link)
            ip("link", "set", link, "up")
            ip("-n", space, "addr", "add", f"10.{octet}.{i}.2/30", "dev", "eth0")
            for what in ("lo", "eth0"):
                ip("-n", space, "link", "set", what, "up")
            self.route(name, octet, i)
        self.octet = octet

    def route(self, name, octet, i):
        ip("-n", self.spaces[name], "route", "replace", "default", "via", f"10.{octet}.{i}.1")

    def cut(self, name):
        ip("link", "set", self.links[name], "down")

    def mend(self, name):
        ip("link", "set", self.links[name], "up")
        self.route(name, self.octet, list(self.links).index(name))

    def slow(self, name, kbit):
        subprocess.run(["tc", "-n", self.spaces[name], "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", f"{kbit}kbit", "burst",
                        "4kb", "latency", "400ms"], check=True, capture_output=True)

    def fast(self, name):
        subprocess.run(["tc", "-n", self.spaces[name], "qdisc", "del", "dev", "eth0", "root"], check=False, capture_output=True)

    def remove(self):
        for name, link in self.links.items():
            ip("link", "del", link, check=False)
            ip("netns", "del", self.spaces[name], check=False)
        ip("addr", "del", f"{self.host}/32", "dev", "lo", check=False)


class Agent:
    """`plimsoll agent` in its namespace; it can be killed and started again under its name."""

    def __init__(self, scene, name, *flags):
        self.scene, self.name, self.flags = scene, name, flags
        self.runs = scene.dir / f"runs-of-{name}"
        self.runs.mkdir(exist_ok=True)
        self.starts = 0
        self.start()

    def start(self):
        self.starts += 1
        self.log = self.scene.dir / f"{self.name}.{self.starts}.log"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.scene.net.spaces[self.name], str(self.scene.binary), "agent", "--join", f"@{self.scene.token}",
                 "--name", self.name, "--runs-dir", str(self.runs), *self.flags],
                env=self.scene.env, stdout=subprocess.DEVNULL, stderr=out)

    def said(self):
        return self.log.read_text()

    def ready(self):
        wait_until(lambda: f"{self.name} waits for orders" in self.said(), 60, self.said)

    def signal(self, what):
        if self.process.poll() is None:
            self.process.send_signal(what)

    def end(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Scene:
    """A server under a cap, a fleet with agents, and one run of it; all of it is gone at the end."""

    def __init__(self, binary, names=("lg-1", "lg-2", "lg-3"), flags=None):
        self.binary = Path(binary)
        self.dir = Path(tempfile.mkdtemp(prefix="plf-"))
        self.runs = self.dir / "runs"
        self.token = self.dir / "token"
        state = self.dir / "state"
        state.mkdir(mode=0o700)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))}
        self.env = clean | KEYS | {"XDG_RUNTIME_DIR": str(state), "PLIMSOLL_RUNS": str(self.runs), "TMPDIR": str(self.dir)}
        self.mounts, self.agents, self.server = [], {}, None
        self.net = Network(names)
        try:
            self.start(names, flags or {})
        except BaseException:
            self.close()
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    def start(self, names, flags):
        limits = self.dir / "limits.toml"
        limits.write_text(f"name='cap'\nkind='object'\ndescription='a cap'\n[[limit]]\nunit='ops'\nrate_per_s={CAP}\ncapacity={CAP // 5}\nscope='server'\nanswer='delay'\ncharges=['put']\n")
        self.server = subprocess.Popen(
            [str(self.binary), "target", "s3", "--listen", f"{self.net.host}:0", "--data", str(self.dir / "data"), "--no-sync", "--bucket",
             "bench", "--limits", str(limits)], env=self.env, stdout=subprocess.PIPE, text=True)
        self.endpoint = json.loads(self.server.stdout.readline())["endpoint"]
        self.client = boto3.client("s3", endpoint_url=self.endpoint, aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
                                   aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1",
                                   config=Config(s3={"addressing_style": "path"}))
        up = self.run("fleet", "up", "--listen", f"{self.net.host}:0")
        self.token.write_text(re.search(r"plimsoll-join-\S+", up.stdout)[0] + "\n")
        self.keeper = json.loads((self.dir / "state/plimsoll/fleets/default/keeper.json").read_text())
        for name in names:
            if "tmpfs" in flags.get(name, ()):
                self.small_disk(name)
            self.agents[name] = Agent(self, name, *[f for f in flags.get(name, ()) if f != "tmpfs"])
        for agent in self.agents.values():
            agent.ready()

    def small_disk(self, name):
        """Its own record does not fit."""
        at = self.dir / f"runs-of-{name}"
        at.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20k", "none", str(at)], check=True)
        self.mounts.append(at)

    def run(self, *args, timeout=120, codes=(0,)):
        done = subprocess.run([str(self.binary), *map(str, args)], env=self.env, capture_output=True, text=True, timeout=timeout)
        assert done.returncode in codes, f"{args}: exit {done.returncode}\n{done.stderr}\n{done.stdout[:2000]}"
        return done

    def load(self, seconds):
        """The run, in the background."""
        self.out, self.err = self.dir / "run.out", self.dir / "run.err"
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.conductor = subprocess.Popen(
                [str(self.binary), "object", "put", "--endpoint", self.endpoint, "--bucket", "bench", "--size", "1KiB", "--concurrency",
                 str(CONCURRENCY), "--rate", f"{RATE}/s", "--warmup", "0s", "--duration", f"{seconds:.1f}s", "--timeout", "5s", "--keep",
                 "--fleet", "--deadman", f"{DEADMAN_S}s", "--on-agent-loss", "continue", "--json"],
                env=self.env, stdout=out, stderr=err)
        wait_until(lambda: self.conductor.poll() is not None or len(self.keys()) > 20, 60, "load")
        assert self.conductor.poll() is None, self.err.read_text()

    def keys(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="bench")
        return [o["Key"] for p in pages for o in p.get("Contents", []) if not o["Key"].endswith(".plimsoll")]

    def run_dir(self):
        found = [d for d in self.runs.iterdir() if (d / "env.json").is_file()]
        assert len(found) == 1, found
        return found[0]

    def tally(self, path):
        lines = self.run("fleet", "tally", path).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def all_free(self):
        status = json.loads(self.run("fleet", "status", "--json").stdout)
        return len(status["agents"]) == len(self.agents) and all(a["state"] == "free" for a in status["agents"])

    def close(self):
        for agent in self.agents.values():
            agent.end()
        subprocess.run([str(self.binary), "fleet", "down", "--force"], env=self.env, capture_output=True, timeout=60)
        if self.server:
            self.server.terminate()
            self.server.wait()
        left = self.processes()
        for at in self.mounts:
            subprocess.run(["umount", str(at)], check=False)
        self.net.remove()
        return left

    def processes(self):
        """Processes that know this scene's directory, beside those that are ended by whoever started them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                known = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if str(self.dir).encode() in known and int(pid) != os.getpid() and state != "Z":
                found.append(int(pid))
        return found


def draw(kind, rng, longest_s):
    """What goes wrong, to whom, when, and for how long."""
    span = lambda: round(min(longest_s, max(1.0, 60 ** rng.random())), 2)
    fault = {"kind": kind, "agent": rng.choice(["lg-1", "lg-2", "lg-3"]), "after_s": round(rng.uniform(0.1, 2.0), 2)}
    if kind in ("agent_stopped", "link_cut", "agent_slow"):
        fault["for_s"] = span()
    if kind == "agent_slow":
        fault["kbit"] = rng.choice([64, 128, 256, 512])
    if kind == "clock_jump":
        fault["by_ns"] = rng.choice([-1, 1]) * rng.randrange(20_000_000, 20_000_000_000)
    return fault


def inject(scene, fault):
    """Does it, waits for it to be over, and mends what can be mended."""
    victim, kind = scene.agents[fault["agent"]], fault["kind"]
    time.sleep(fault["after_s"])
    lasts = lambda: time.sleep(fault["for_s"])
    if kind == "agent_killed":
        victim.process.kill()
        victim.process.wait()
    elif kind == "agent_stopped":
        victim.signal(signal.SIGSTOP)
        lasts()
        victim.signal(signal.SIGCONT)
    elif kind == "agent_slow":
        scene.net.slow(victim.name, fault["kbit"])
        lasts()
        scene.net.fast(victim.name)
    elif kind == "link_cut":
        scene.net.cut(victim.name)
        lasts()
        scene.net.mend(victim.name)
    elif kind == "broker_restarted":
        os.kill(scene.keeper["broker_pid"], signal.SIGKILL)
    elif kind == "conductor_killed":
        scene.conductor.kill()
        scene.conductor.wait()


def one(binary, fault, seconds=6.0):
    """A run with a fault in it: what came out, with a list of what did not hold."""
    flags = {}
    if fault["kind"] == "disk_full":
        flags = {fault["agent"]: ["tmpfs"]}
    if fault["kind"] == "clock_jump":
        flags = {fault["agent"]: [f"--clock-jump={fault['by_ns']}", "--clock-jump-after", f"{3 + fault['after_s']:.2f}s"]}
    out = dict(fault)
    try:
        scene = Scene(binary, flags=flags)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError) as e:
        return out | {"broken": [f"the fleet did not come up: {type(e).__name__}: {e}"]}
    broken = []
    try:
        scene.load(seconds)
        if fault["kind"] in ("disk_full", "clock_jump"):
            time.sleep(fault["after_s"])
        else:
            inject(scene, fault)
        judge(scene, fault, out, broken)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError) as e:
        broken.append(f"{type(e).__name__}: {e}")
        out["run"] = scene.err.read_text()[-1500:] if hasattr(scene, "err") else ""
        out["agents"] = {a.name: a.said()[-600:] for a in scene.agents.values()}
    finally:
        left = scene.close()
    if left:
        broken.append(f"processes are left: {left}")
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    temporary = [p.name for p in scene.dir.glob("plimsoll-*")]
    if temporary:
        broken.append(f"temporary files are left: {temporary}")
    out["broken"] = broken
    if broken and os.environ.get("PLIMSOLL_KEEP_TROUBLE"):
        out["dir"] = str(scene.dir)
    else:
        shutil.rmtree(scene.dir, ignore_errors=True)
    return out


def judge(scene, fault, out, broken):
    def holds(what, told):
        if not what:
            broken.append(told)

    kind, victim = fault["kind"], scene.agents[fault["agent"]]
    code = scene.conductor.wait(180)
    holds(code in ((-9,) if kind == "conductor_killed" else (0, 3, 5)), f"the run ended with {code}: {scene.err.read_text()[-800:]}")
    if kind == "disk_full":
        holds(os.statvfs(victim.runs).f_bavail == 0, "its disk did not fill up")
    if kind == "agent_killed":
        victim.start()
        victim.ready()
    wait_until(scene.all_free, 60, lambda: "all agents to be free: " + scene.run("fleet", "status").stdout)
    run = scene.run_dir()
    # No load goes on.
    before = len(scene.keys())
    time.sleep(0.7)
    stored = len(scene.keys())
    holds(stored == before, f"load goes on: {before} objects, then {stored}")
    # What agents kept, which had been lost, or whose conductor had been, and that it is asked for once.
    collected = scene.run("fleet", "collect", run, "--json", codes=(0, 3, 5))
    again = scene.run("fleet", "collect", run, "--json", codes=(0, 3, 5))
    holds("came that the run did not have" not in re.sub(r"agent \S+: 0 slices[^\n]*", "", again.stderr), f"not all came at once: {again.stderr}")
    out["collected"] = [line for line in collected.stderr.splitlines() if "slices" in line or "has all" in line]
    holds(json.loads(collected.stdout)["workloads"] == json.loads(again.stdout)["workloads"], "it is judged otherwise the second time")
    # A run directory that can be read.
    shown = scene.run("runs", "show", run, "--json", codes=(0, 3, 5))
    findings = {(f["name"], f.get("agent")) for f in json.loads(shown.stdout)["findings"]}
    holds(("damaged_file", None) not in findings and ("altered", None) not in findings, f"damaged: {findings}")
    files = sorted(p.name for p in (run / "intervals").iterdir())
    holds(files == sorted(f"{name}.zst" for name in scene.agents), f"files of the run: {files}")
    # The record is the union of what came and of what each agent has.
    record = scene.tally(run)
    lost = {agent for name, agent in findings if name == "agent_lost"}
    out["lost"] = sorted(lost)
    for name, agent in scene.agents.items():
        had = {(t["stage"], t["slice"]): t for t in record if t["agent"] == name}
        first = min((at for _, at in had), default=0)
        own = [t for d in (agent.runs / "agents").glob(f"{run.name}.{name}*") for t in scene.tally(d)]
        # What was counted before the start is of the first slice.
        lacks = [t for t in own if t["slice"] >= first and not is_in(t, had.get((t["stage"], t["slice"])))]
        holds(not lacks, f"{name}: slices of its own record are not in the run's: {lacks[:3]} of {len(lacks)}")
    # The server's own count.
    ok, failed = sum(t["ok"] for t in record), sum(t["failed"] for t in record)
    killed = 1 if kind == "agent_killed" else 0
    share = RATE / len(scene.agents)
    bound = killed * (TAIL_S * share + CONCURRENCY) + failed + (CONCURRENCY if lost or kind == "conductor_killed" else 0)
    out |= {"stored": stored, "recorded_ok": ok, "recorded_failed": failed, "tail_ops": stored - ok, "bound_ops": bound, "code": code}
    out["tail_s"] = round(max(0, stored - ok - failed) / share, 3) if killed else None
    holds(0 <= stored - ok <= bound, f"{stored} objects are stored and {ok} recorded ({failed} failed); at most {bound:.0f} may lack")
    holds(ok > 20, f"only {ok} ops were recorded")
    # Nothing is left of it.
    scene.run("cleanup", run, "--kept", codes=(0,))
    left = scene.client.list_objects_v2(Bucket="bench").get("KeyCount", 0)
    holds(left == 0, f"{left} objects are left after the cleanup")


def is_in(own, had):
    return had is not None and had["workers"] >= own["workers"] and had["started"] >= own["started"] and had["ok"] >= own["ok"]
