"""How agents get onto other machines: over ssh (a real sshd on the loopback), in a Slurm job (two slurmd on this machine), and as a
manifest for Kubernetes, which is held against its schemas."""

import base64
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import BIN, ROOT, Server, end, new_bucket, start_target, wait_until
from nats_support import Broker, binary_of

LOAD = ["--size", "4KiB", "--concurrency", "4", "--warmup", "1s", "--duration", "2s"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# At a broker of others.
AGENTS_LOGIN = {"NATS_USER": "agent", "NATS_PASSWORD": "pass-of-agent"}
USERS = """authorization { users: [
  { user: conductor, password: "pass-of-conductor" }, { user: agent, password: "pass-of-agent" }
] }"""


@pytest.fixture
def sshd(tmp_path, embedded):
    """An sshd of our own, and a configuration for ssh with hosts h1 to h3: all are this machine, with an address and
    a cache each."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
    if not program or not shutil.which("ssh"):
        pytest.skip("there is no sshd: apt-get install openssh-server")
    place = tmp_path / "ssh"
    place.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    shutil.copy(place / "user.pub", place / "authorized")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    port = free_port()
    keys = {k: v for k, v in embedded.env().items() if k.startswith("AWS_")}
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nListenAddress 127.0.0.3\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\nPidFile none\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv XDG_CACHE_HOME PLIMSOLL_RUNS\n"
        + "SetEnv " + " ".join(f"{k}={v}" for k, v in (keys | AGENTS_LOGIN).items()) + "\n"
    )
    log = open(place / "log", "w")
    process = subprocess.Popen([program, "-D", "-e", "-f", str(place / "sshd_config")], stderr=log)
    public = " ".join((place / "host.pub").read_text().split()[:2])
    hosts = "".join(
        f"Host h{n}\n  HostName 127.0.0.{n}\n  SetEnv XDG_CACHE_HOME={tmp_path}/cache{n} PLIMSOLL_RUNS={tmp_path}/runs{n}\n" for n in (1, 2, 3)
    )
    (place / "known").write_text("".join(f"[127.0.0.{n}]:{port} {public}\n" for n in (1, 2, 3)))
    (place / "config").write_text(
        f"{hosts}Host gone\n  HostName 127.0.0.1\n  Port 1\n"
        f"Host *\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {place}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {place}/known\n  StrictHostKeyChecking yes\n"
    )
    reached = ["ssh", "-F", str(place / "config"), "-o", "BatchMode=yes", "h1", "true"]
    wait_until(lambda: subprocess.run(reached, capture_output=True).returncode == 0, 20, "sshd: " + (place / "log").read_text())
    yield str(place / "config")
    process.terminate()
    process.wait(10)
    log.close()


def agents_here(fleet_name):
    """Processes of agents that were started over ssh for this fleet, with their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"agent" in line and f"/agents/{fleet_name}.".encode() in b" ".join(line):
            found.append(line)
    return found


def test_ssh_brings_agents_up_and_takes_them_down(sshd, fleet, plimsoll, embedded, state, bucket_here, tmp_path):
    name = f"ssh{os.getpid()}"
    mine = {"PLIMSOLL_FLEET": name}
    files = tmp_path / "files"
    files.mkdir()
    up = fleet("up", "--listen", "127.0.0.1:0", "--ssh", "h{1...2},h3", "--ssh", "gone", "--ssh-config", sshd, "--allow-dir", files,
               env=mine, timeout=300)
    assert up.code == 0 and "agents are up on 3 of 4 hosts" in up.err, up.err
    assert re.search(r"no agent on gone: .*Connection refused", up.err), up.err
    assert "plimsoll-join-" not in up.out + up.err, "nobody needs the token"
    running = agents_here(name)
    assert len(running) == 3 and all(b"plimsoll-join-" not in b" ".join(line) for line in running), running
    assert all(b"--until-idle" in line for line in running), "where nobody ends them, they end"
    copies = sorted(tmp_path.glob("cache*/plimsoll/plimsoll-*"))
    assert [c.read_bytes() == BIN.read_bytes() for c in copies] == [True] * 3
    assert not list(tmp_path.glob("cache*/plimsoll/agents/*/token")), "it was read, and is gone"
    told = json.loads(fleet("status", "--json", env=mine).ok().out)["agents"]
    assert [(a["name"], a["labels"]["node"], a["labels"]["index"]) for a in told] == [(f"h{n}", f"h{n}", str(n - 1)) for n in (1, 2, 3)]
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--fleet=" + name, "--agents", "node=h2", "--json"]
    r = plimsoll(*put, server=embedded, env=state, timeout=180)
    assert r.code in (0, 3, 5) and r.workload("put")["outcomes"]["ok"] > 20, r.err
    assert len(list((tmp_path / "runs2/agents").iterdir())) == 1, "its own record"
    down = fleet("down", env=mine, timeout=120)
    assert down.code == 0 and "agents on 3 of 3 hosts have ended" in down.err, down.err
    assert not agents_here(name)
    # What is left of it is the binary, which saves the copy the next time.
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("cache*/plimsoll/*"))
    assert left == [str(c.relative_to(tmp_path)) for c in copies]
    before = [c.stat().st_ino for c in copies]
    copies[2].write_bytes(b"not the same any more")
    fleet("up", "--listen", "127.0.0.1:0", "--ssh", "h{1...3}", "--ssh-config", sshd, env=mine, timeout=300).ok()
    assert [c.stat().st_ino == ino for c, ino in zip(copies, before)] == [True, True, False]
    assert copies[2].read_bytes() == BIN.read_bytes()
    # One that hangs is ended all the same.
    [stuck] = [line for line in agents_here(name) if b"h2" in line]
    pid = next(int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit() and cmdline(e) == stuck)
    os.kill(pid, 19)
    fleet("down", env=mine, timeout=180).ok()
    assert not agents_here(name)


@pytest.fixture
def named(fleet):
    """A name of a fleet, which is gone after the test with all its agents."""
    name = f"ssh{os.getpid()}"
    yield name
    fleet("down", "--force", env={"PLIMSOLL_FLEET": name}, timeout=180)
    for entry in Path("/proc").iterdir():
        line = cmdline(entry) if entry.name.isdigit() else None
        if line and line in agents_here(name):
            os.kill(int(entry.name), signal.SIGKILL)


def pid_of(line):
    return next(int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit() and cmdline(e) == line)


def test_agents_over_ssh_end_although_the_broker_is_gone(sshd, named, fleet, tmp_path):
    place = tmp_path / "broker"
    place.mkdir()
    broker = Broker(binary_of("packaged"), place, USERS)
    env = {"PLIMSOLL_FLEET": named, "NATS_USER": "conductor", "NATS_PASSWORD": "pass-of-conductor"}
    try:
        fleet("up", "--nats", broker.url, "--ssh", "h{1...2}", "--ssh-config", sshd, env=env, timeout=300).ok()
        running = agents_here(named)
        assert len(running) == 2, running
    finally:
        broker.end()
    down = fleet("down", env=env, timeout=180)
    assert not agents_here(named), down.err
    assert down.code == 2 and "agents on 2 of 2 hosts have ended" in down.err, down.err
    assert not list((tmp_path / "state").iterdir())


def test_a_host_that_does_not_answer_stays_noted(sshd, named, fleet, tmp_path):
    env = {"PLIMSOLL_FLEET": named}
    fleet("up", "--listen", "127.0.0.1:0", "--ssh", "h{1...2}", "--ssh-config", sshd, env=env, timeout=300).ok()
    # It hears nothing, and its host is not to be reached.
    [stuck] = [line for line in agents_here(named) if b"h2" in line]
    pid = pid_of(stuck)
    os.kill(pid, signal.SIGSTOP)
    config = Path(sshd)
    right = config.read_text()
    config.write_text(right.replace("Host h2\n", "Host h2\n  Port 1\n"))
    down = fleet("down", env=env, timeout=180)
    assert down.code == 6 and "agents on 1 of 2 hosts have ended" in down.err, down.err
    assert re.search(rf"agent h2 \(process {pid}\) on h2 may still run: .*Connection refused", down.err), down.err
    assert agents_here(named) == [stuck]
    assert fleet("status", env=env).code == 2, "a note is no fleet"
    # Nor does another fleet of this name lose it.
    fleet("up", "--listen", "127.0.0.1:0", env=env).ok()
    again = fleet("down", env=env, timeout=180)
    assert again.code == 6 and agents_here(named) == [stuck], again.err
    config.write_text(right)
    last = fleet("down", env=env, timeout=180)
    assert last.code == 0 and "agents on 1 of 1 host have ended" in last.err, last.err
    assert not agents_here(named) and not list((tmp_path / "state").iterdir())


def test_hosts_that_are_given_up_are_forgotten_by_force(sshd, named, fleet, tmp_path):
    env = {"PLIMSOLL_FLEET": named}
    fleet("up", "--listen", "127.0.0.1:0", "--ssh", "h1", "--ssh-config", sshd, env=env, timeout=300).ok()
    Path(sshd).unlink()
    assert fleet("down", env=env, timeout=180).code == 6
    forced = fleet("down", "--force", env=env, timeout=180)
    assert forced.code == 6 and "agent h1 (process " in forced.err and "forgotten" in forced.err, forced.err
    assert not list((tmp_path / "state").iterdir())


def test_what_an_interrupted_start_had_started_is_ended(sshd, named, fleet, background, state, tmp_path):
    config = Path(sshd)
    config.write_text("Host slow\n  ProxyCommand sleep 20\n" + config.read_text())
    up = background("fleet", "up", "--listen", "127.0.0.1:0", "--name", named, "--ssh", "h1,slow", "--ssh-config", sshd, env=state)
    wait_until(lambda: agents_here(named), 120, "the first agent")
    log = lambda: [p.read_text() for p in tmp_path.glob("cache1/plimsoll/agents/*/log")]
    wait_until(lambda: any("waits for orders" in text for text in log()), 60, "its word")
    time.sleep(1)
    # As a terminal does it: to all that is in the foreground.
    up.send_signal(signal.SIGINT)
    out, err = up.communicate(timeout=180)
    assert not agents_here(named), err
    assert up.returncode == 130 and "interrupted when 1 of 2 agents had started" in err, err
    assert not list((tmp_path / "state").iterdir()), err


def cmdline(entry):
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None


def test_without_one_host_the_fleet_is_not_up(sshd, fleet, tmp_path):
    r = fleet("up", "--listen", "127.0.0.1:0", "--ssh", "gone,me@gone", "--ssh-config", sshd, timeout=120)
    assert r.code == 2 and "no agent came up on any of 2 hosts" in r.err and "Connection refused" in r.err, r.err
    assert not list((tmp_path / "state").iterdir())
    for bad in ("h1,h1", "h{1..2}", "-oProxyCommand=touch${IFS}/tmp/x"):
        r = fleet("up", "--listen", "127.0.0.1:0", f"--ssh={bad}", "--ssh-config", sshd)
        assert r.code == 2 and "--ssh" in r.err, r.err
        assert not list((tmp_path / "state").iterdir())


# Kubernetes.


def manifest_of(plimsoll, *flags, env=None, agents=4):
    image = "registry.example.net/plimsoll:0.1.0"
    return plimsoll("fleet", "manifest", "--agents", agents, "--image", image, *flags, env=env)


CONDUCT = ["--conduct", "--", "object", "get", "--endpoint", "http://s3.storage.svc:9000", "--bucket", "b"]


@pytest.mark.parametrize(
    "flags",
    [
        CONDUCT,
        ["--namespace", "bench", "--credentials", "s3-keys", *CONDUCT],
        ["--pvc", "fast,100GiB", *CONDUCT],
        ["--pvc", "fast,100GiB", "--block", *CONDUCT],
        ["--host-network", *CONDUCT],
    ],
    ids=["plain", "namespace", "claim", "device", "host-network"],
)
def test_a_manifest_is_what_kubernetes_takes(plimsoll, state, flags):
    validate = pytest.importorskip("kubernetes_validate", reason="scripts/pins/tests.txt names it")
    yaml = pytest.importorskip("yaml")
    r = manifest_of(plimsoll, *flags, env=state)
    assert r.code == 0, r.err
    documents = list(yaml.safe_load_all(r.out))
    for document in documents:
        for version in ("1.27", validate.latest_version()):
            validate.validate(document, version, strict=True)
    assert [d["kind"] for d in documents] == ["Secret", "Secret", "Job", "Service", "Job"]
    agents, conductor = documents[2], documents[4]
    assert agents["spec"]["completionMode"] == "Indexed" and agents["spec"]["completions"] == agents["spec"]["parallelism"] == 4
    for job in (agents, conductor):
        is_restricted(job["spec"]["template"]["spec"], "--host-network" in flags and job is agents)
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"], "Guaranteed"
    namespaces = {d["metadata"].get("namespace") for d in documents}
    assert namespaces == ({"bench"} if "--namespace" in flags else {None})
    [anti] = agents["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = agents["spec"]["template"]["metadata"]["labels"]
    assert anti["topologyKey"] == "kubernetes.io/hostname" and anti["labelSelector"]["matchLabels"].items() <= labels.items()
    text = json.dumps(agents)
    assert "plimsoll-join-" not in text, "the token is in the secret only"
    assert ("/dev/plimsoll" in text) == ("--block" in flags) and ("fast" in text) == ("--pvc" in flags)


def is_restricted(pod, host_network):
    """What PodSecurity `restricted` asks for."""
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod.get("hostNetwork", False) == host_network and pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False and own["capabilities"] == {"drop": ["ALL"]}
    kinds = {k for v in pod["volumes"] for k in v if k != "name"}
    assert kinds <= {"emptyDir", "secret", "ephemeral"}


def test_what_a_manifest_runs_runs(plimsoll, state, tmp_path, embedded, bucket_here):
    """The conductor's script and the agents' command, here instead of in pods."""
    yaml = pytest.importorskip("yaml")
    put = ["object", "put", *bucket_here.flags(), *LOAD]
    documents = list(yaml.safe_load_all(manifest_of(plimsoll, "--conduct", "--", *put, env=state, agents=2).ok().out))
    token, keys = documents[0]["stringData"]["token"], documents[1]["stringData"]["keys"]
    (tmp_path / "keys").write_text(keys)
    port = free_port()
    script = documents[4]["spec"]["template"]["spec"]["containers"][0]["command"][2]
    script = script.replace("$$(", "$(").replace("/keys/keys", str(tmp_path / "keys")).replace("0.0.0.0:4222", f"127.0.0.1:{port}")
    path = tmp_path / "bin"
    path.mkdir()
    (path / "plimsoll").symlink_to(BIN)
    env = embedded.env() | state | {"PATH": f"{path}:{os.environ['PATH']}", "PLIMSOLL_RUNS": str(tmp_path / "runs")}
    conductor = subprocess.Popen(["sh", "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    agents = []
    try:
        wait_until(lambda: list((tmp_path / "state").glob("plimsoll/fleets/*/keeper.json")), 30, "the fleet")
        own = plimsoll("fleet", "token", env=state).ok().out.strip()
        # The token of the manifest names the service; all else in it is this fleet's.
        assert body(token)[9:41] == body(own)[9:41], "the pin of the certificate"
        words = documents[2]["spec"]["template"]["spec"]["containers"][0]["command"][1:]
        for n in (0, 1):
            mine = [w.replace("$(AGENT_NAME)", f"agent-{n}").replace("/runs", str(tmp_path / f"runs{n}")) for w in words]
            extra = {"PLIMSOLL_JOIN": own, "JOB_COMPLETION_INDEX": str(n), "PLIMSOLL_NODE": f"node{n}"}
            agents.append(subprocess.Popen([str(BIN), *mine], env=env | extra, stderr=subprocess.DEVNULL))
        out, err = conductor.communicate(timeout=120)
        assert conductor.returncode in (0, 3, 5) and "2 agents: agent-0, agent-1" in err, err
        assert [a.wait(20) for a in agents] == [0, 0]
        assert not list((tmp_path / "state").iterdir())
    finally:
        for process in [conductor, *agents]:
            if process.poll() is None:
                process.kill()
                process.wait()


def body(token):
    text = token.removeprefix("plimsoll-join-")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_a_manifest_that_cannot_be_is_refused(plimsoll, fleet, state):
    none = manifest_of(plimsoll, env=state)
    assert none.code == 2 and "no fleet default is up" in none.err, none.err
    for flags, why in [
        (["--pvc", "fast", *CONDUCT], "fast,100GiB"),
        (["--block", *CONDUCT], "--pvc"),
        (["--conduct"], "COMMAND"),
        (["--conduct", "--", "object", "gett"], "cannot be read"),
        (["--conduct", "--", "runs", "list"], "measures nothing"),
    ]:
        r = manifest_of(plimsoll, *flags, env=state)
        assert r.code == 2 and why in r.err, (flags, r.err)
    fleet("up", "--listen", "127.0.0.1:0").ok()
    here = manifest_of(plimsoll, env=state).ok().out
    assert fleet("token").ok().out.strip() in here and "conductor" not in here


# Slurm.


def test_a_partition_that_would_be_a_command_is_refused(plimsoll):
    job = ["fleet", "slurm", "--nodes", 2, "--", "object", "get", "--endpoint", "http://n1:9000", "--bucket", "b"]
    for bad in ("x\ntouch /tmp/y #", "a b", "$(id)", ""):
        r = plimsoll(*job[:4], f"--partition={bad}", *job[4:])
        assert r.code == 2 and "--partition" in r.err and not r.out, (bad, r.err)
    assert "#SBATCH --partition=fast,gpu-2\n" in plimsoll(*job[:4], "--partition", "fast,gpu-2", *job[4:]).ok().out


class Cluster:
    """A controller and two nodes on this machine, each node with a host name and a network of its own."""

    def __init__(self, place):
        self.place, self.processes = place, []
        number = os.getpid() % 200
        self.names = [f"pls{os.getpid() % 10000}n{n}" for n in (1, 2)]
        self.bridge, self.net = f"pls{os.getpid() % 10000}b", f"10.78.{number}"
        self.env = {"SLURM_CONF": str(place / "slurm.conf")}

    def up(self):
        self.network()
        (self.place / "key").write_bytes(os.urandom(1024))
        (self.place / "key").chmod(0o400)
        sockets = [f"--{what}={self.place}/munge.{what}" for what in ("socket", "pid-file", "log-file", "seed-file")]
        self.start("munge", ["munged", "-F", "--force", f"--key-file={self.place}/key", "--num-threads=2", *sockets])
        wait_until(lambda: (self.place / "munge.socket").exists(), 20, self.logs())
        first = free_port()
        nodes = "".join(
            f"NodeName=n{n} NodeAddr={self.net}.1{n} CPUs={os.cpu_count()} RealMemory=1000 State=UNKNOWN\n" for n in (1, 2)
        )
        (self.place / "slurm.conf").write_text(
            f"ClusterName=test\nSlurmctldHost=ctl({self.net}.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthInfo=socket={self.place}/munge.socket\nStateSaveLocation={self.place}/saved\nSlurmdSpoolDir={self.place}/spool.%n\n"
            f"SlurmctldPidFile={self.place}/ctl.pid\nSlurmdPidFile={self.place}/%n.pid\n"
            f"SlurmctldPort={first}\nSlurmdPort={free_port()}\n"
            "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n"
            "JobAcctGatherType=jobacct_gather/none\nSelectType=select/linear\nReturnToService=2\nSlurmdParameters=config_overrides\n"
            f"{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        )
        (self.place / "saved").mkdir()
        self.start("ctl", ["unshare", "--uts", "sh", "-c", "hostname ctl; exec slurmctld -D"])
        for n, name in zip((1, 2), self.names):
            inside = ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "sh", "-c", f"hostname n{n}; exec slurmd -D -N n{n}"]
            self.start(f"n{n}", inside)
        wait_until(lambda: self.run("sinfo", "-h", "-o", "%t %D").split() == ["idle", "2"] or self.has_ended(), 60, self.logs())

    def network(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True, capture_output=True)

        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.net}.1/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for n, name in zip((1, 2), self.names):
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", name, "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"{self.net}.1{n}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def start(self, name, words):
        log = open(self.place / f"{name}.out", "w")
        self.processes.append(subprocess.Popen(words, env=os.environ | self.env, stdout=log, stderr=log))
        log.close()

    def has_ended(self):
        return any(p.poll() is not None for p in self.processes)

    def run(self, *words, **more):
        return subprocess.run(words, env=os.environ | self.env | more, capture_output=True, text=True, timeout=60).stdout

    def logs(self):
        return "\n".join(f.read_text()[-2000:] for f in self.place.glob("*.out"))

    def down(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("slurmd in a namespace of its own needs root")
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}: apt-get install slurmctld slurmd slurm-client munge")
    # munged wants directories that nobody else can write to, all the way.
    place = Path("/run") / f"plimsoll-slurm-{os.getpid()}"
    place.mkdir(mode=0o755)
    cluster = Cluster(place)
    try:
        try:
            cluster.up()
        except subprocess.CalledProcessError as e:
            pytest.skip(f"no network namespaces here: {e.stderr.decode()}")
        if cluster.has_ended():
            pytest.skip(f"slurm does not run here: {cluster.logs()[-1000:]}")
        yield cluster
    finally:
        cluster.down()
        shutil.rmtree(place)


@pytest.fixture
def bucket_of_all(slurm, tmp_path):
    """On a server that both nodes reach."""
    keys = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded-secret"}
    data = tmp_path / "data"
    data.mkdir()
    process, facts = start_target("s3", "--listen", f"{slurm.net}.1:0", "--data", str(data), "--no-sync", env=keys)
    server = Server("embedded", facts["endpoint"], "embedded", "embedded-secret", str(data), process.pid, process)
    yield new_bucket(server)
    end(process)


def submitted(slurm, plimsoll, bucket, tmp_path, *command):
    """The number of a job that does this on two nodes, and its output."""
    script = tmp_path / "job.sh"
    script.write_text(plimsoll("fleet", "slurm", "--nodes", "2", "--time", "10min", "--", *command).ok().out)
    assert "plimsoll-join-" not in script.read_text()
    env = {k: v for k, v in bucket.server.env().items() if k.startswith("AWS_")}
    log = tmp_path / "job.log"
    said = slurm.run("sbatch", f"--output={log}", f"--chdir={tmp_path}", "--parsable", str(script), **env, PLIMSOLL=str(BIN))
    assert said.strip().isdigit(), said
    return said.strip(), log


def ended(slurm, job):
    state = re.search(r"JobState=(\S+)", slurm.run("scontrol", "show", "job", job))
    return state and state[1] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")


def test_a_job_of_two_nodes_measures_as_one(slurm, plimsoll, bucket_of_all, tmp_path):
    put = ["object", "put", *bucket_of_all.flags(), *LOAD]
    job, log = submitted(slurm, plimsoll, bucket_of_all, tmp_path, *put)
    wait_until(lambda: ended(slurm, job), 180, "the job's end: " + (log.read_text() if log.exists() else slurm.logs()))
    said = log.read_text()
    exit_code = re.search(r"ExitCode=(\d+):", slurm.run("scontrol", "show", "job", job))[1]
    assert exit_code in ("0", "3", "5") and "2 agents: n1, n2" in said, said
    # It left this machine's loopback, and was said before it began.
    assert f"load on {slurm.net}.1 from 2 agents: at most 4 ops in flight" in said, said
    assert "plimsoll-join-" not in said, "a job's output is for many to read"
    [run] = [d for d in (tmp_path / "plimsoll-runs").iterdir() if (d / "env.json").is_file()]
    hosts = json.loads((run / "env.json").read_text())["environment"]["agents"]
    assert [(h["agent"], h["host"]) for h in hosts] == [("n1", "n1"), ("n2", "n2")]
    assert sorted(f.name for f in (run / "intervals").iterdir()) == ["n1.zst", "n2.zst"]
    assert not bucket_of_all.keys()
    assert not [p for p in Path("/tmp").glob(f"plimsoll-{job}-*")], "the fleet's keys are gone"


def test_a_job_whose_time_is_over_is_stored_and_leaves_nothing(slurm, plimsoll, bucket_of_all, tmp_path):
    put = ["object", "put", *bucket_of_all.flags(), "--size", "4KiB", "--concurrency", "4", "--duration", "20min"]
    job, log = submitted(slurm, plimsoll, bucket_of_all, tmp_path, *put)
    wait_until(lambda: bucket_of_all.holds(20) or ended(slurm, job), 120, "load")
    time.sleep(2)
    # As Slurm does two minutes before the end.
    slurm.run("scancel", "--batch", "--signal=TERM", job)
    wait_until(lambda: ended(slurm, job), 120, "the job's end: " + log.read_text())
    exit_code = re.search(r"ExitCode=(\d+):", slurm.run("scontrol", "show", "job", job))[1]
    assert exit_code == "130", log.read_text()
    [run] = [d for d in (tmp_path / "plimsoll-runs").iterdir() if (d / "env.json").is_file()]
    assert (run / "seal.json").is_file() and not bucket_of_all.keys()


def test_the_image_is_of_nobody_in_particular_and_has_what_a_fleet_needs(plimsoll, state):
    """No image is built here: what can be read of it is held against what the manifest and scripts/dist.sh say."""
    steps = re.sub(r"\\\n", " ", "\n".join(l for l in (ROOT / "Dockerfile").read_text().splitlines() if not l.startswith("#")))
    words = [line.split(None, 1) for line in steps.splitlines() if line.strip()]
    known = {"FROM", "ARG", "RUN", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT"}
    assert {w[0] for w in words} <= known and words[0][0] == "FROM" and ":" in words[0][1]
    told = dict(words)
    assert told["USER"].split(":")[0].isdigit() and told["USER"] != "0:0"
    yaml = pytest.importorskip("yaml")
    agents = list(yaml.safe_load_all(manifest_of(plimsoll, *CONDUCT, env=state).ok().out))[2]
    assert agents["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == int(told["USER"].split(":")[0])
    assert "nats-server" in told["RUN"] and "ca-certificates" in told["RUN"]
    assert "target/dist/plimsoll-${ARCH}" in told["COPY"] and "target/dist/plimsoll-$arch" in (ROOT / "scripts/dist.sh").read_text()
    assert "!target/dist/plimsoll-*" in (ROOT / ".dockerignore").read_text(), "the context has the binary, and no secrets of the tree"


def test_a_host_is_observed_over_ssh(sshd, plimsoll, tmp_path):
    """/proc of a host as a source, nothing installed there; a host that asks for a password is a gap and no wait, and nothing stays behind."""
    r = plimsoll(
        "block", tmp_path / "image", "--size", "16MiB", "--runtime", "20s", "--warmup", "0s", "--json", "--observe", "ssh=h1", "--observe",
        "ssh=gone", "--observe-ssh-config", sshd, "--observe-every", "4s",
    )
    assert r.code in (0, 3), r.err
    here, gone = r.summary["servers"]["sources"]
    assert here["source"] == "ssh h1" and here["asked"] > 3 and here["gaps"] == 0 and abs(here["clock_ahead_s"]) < 60, json.dumps(here)
    assert gone["gaps"] == gone["asked"] and "the run goes on without it" in r.err
    (window,) = r.summary["servers"]["windows"]
    cpu = next(u for u in window["resources"] if u["resource"] == "cpu")
    assert cpu["host"] == "h1" and 0 < cpu["share"] <= 1
    left = ["pgrep", "-f", "while read -r go"]
    wait_until(lambda: subprocess.run(left, capture_output=True).returncode == 1, 20, "the loop is still on the host")
