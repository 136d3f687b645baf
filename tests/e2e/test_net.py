"""`plimsoll net`: two machines (network namespaces) with a shaper between them, and agents of a fleet; keys, bounds, and who goes away."""

import json
import os
import re
import signal
import socket
import subprocess
import uuid

import pytest
from conftest import BIN, held, wait_until
from test_fleet import fleet  # noqa: F401  (fixtures)

MBIT = 200
# An MTU of 1500 with timestamps, as a shaper counts: 1448 of 1514 bytes are payload.
PAYLOAD = MBIT * 1e6 / 8 * 1448 / 1514


def sh(line):
    subprocess.run(line.split(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def wire():
    """Two namespaces with a veth pair between them, shaped both ways."""
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "list"], capture_output=True).returncode:
        pytest.skip("network namespaces need root and iproute2")
    tag = uuid.uuid4().hex[:6]
    a, b = f"na{tag}", f"nb{tag}"
    try:
        for name in (a, b):
            sh(f"ip netns add {name}")
        sh(f"ip link add v{a} netns {a} type veth peer name v{b} netns {b}")
        for i, name in enumerate((a, b)):
            sh(f"ip -n {name} link set lo up")
            sh(f"ip -n {name} link set v{name} mtu 1500 up")
            sh(f"ip -n {name} addr add 10.99.0.{i + 1}/24 dev v{name}")
            sh(f"tc -n {name} qdisc add dev v{name} root tbf rate {MBIT}mbit burst 64kb latency 50ms")
        yield ["ip", "netns", "exec", a], ["ip", "netns", "exec", b]
    finally:
        for name in (a, b):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Started:
    """A command whose output is in files, so that it can be looked at while it runs."""

    def __init__(self, tmp_path, *args, before=(), env=None):
        self.files = [tmp_path / f"{uuid.uuid4().hex}.{n}" for n in ("out", "err")]
        with open(self.files[0], "w") as out, open(self.files[1], "w") as err:
            self.process = subprocess.Popen([*before, str(BIN), *map(str, args)], stdout=out, stderr=err,
                                            env=os.environ | {"PLIMSOLL_RUNS": str(tmp_path / "runs")} | (env or {}))

    @property
    def out(self):
        return self.files[0].read_text()

    @property
    def err(self):
        return self.files[1].read_text()

    def ends(self, seconds=60):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it goes on: {self.out}{self.err}") from None

    def says(self, text, seconds=60):
        wait_until(lambda: text in self.err + self.out or self.process.poll() is not None, seconds, text)
        assert text in self.err + self.out, self.err


@pytest.fixture
def start(tmp_path):
    started = []

    def call(*args, **more):
        started.append(Started(tmp_path, *args, **more))
        return started[-1]

    yield call
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


@pytest.fixture
def serve(start):
    """`plimsoll net serve`, with the address and the environment that its line names."""

    def call(*flags, listen="127.0.0.1:0", before=()):
        server = start("net", "serve", "--listen", listen, *flags, before=before)
        wait_until(lambda: "net --to" in server.out or server.process.poll() is not None, 30, server.err)
        key, server.to = re.fullmatch(r"PLIMSOLL_NET_KEY=(\S+) plimsoll net --to (\S+)\n", server.out).groups()
        server.key = {"PLIMSOLL_NET_KEY": key}
        return server

    return call


def carries_data(one):
    """Waits until a command has the threads of a stage that runs."""
    def threads():
        try:
            tasks = [f"/proc/{one.process.pid}/task/{t}/comm" for t in os.listdir(f"/proc/{one.process.pid}/task")]
            return {open(t).read().strip() for t in tasks}
        except OSError:
            return set()
    wait_until(lambda: "net-data" in threads() or one.process.poll() is not None, 60, "a stage")
    assert one.process.poll() is None, one.err


def is_open(to):
    host, port = to.rsplit(":", 1)
    with socket.socket() as s:
        return s.connect_ex((host, int(port))) == 0


@pytest.mark.measures
def test_a_shaper_is_found_both_ways(wire, serve, start, tmp_path):
    here, there = wire
    server = serve(listen="10.99.0.2:0", before=there)
    test = start("net", "--to", server.to, "--duration", "3s", "--json", env=server.key, before=here)
    code = test.ends(120)
    assert code == 0, test.err
    assert "peak load: as much as the network carries" in test.err
    record = json.loads(test.out)
    assert record["format"] == "plimsoll.net/1" and record["valid"]
    [forward, backward, both] = record["stages"]
    assert both["pattern"] == "pairs-together" and len(both["lanes"]) == 2
    for lane in (forward["lanes"][0], backward["lanes"][0]):
        rate = lane["bytes_per_s"]
        assert rate["low"] <= rate["value"] <= rate["high"] and rate["n_eff"] > 1, rate
        # Never faster than the shaper lets through; slower where the CPU was taken.
        held(rate["value"], PAYLOAD, 0.02, less=0.10)
        assert lane["path_mtu_bytes"] == 1500
        assert lane["framing"] == {"mss_bytes": 1448, "frame_bytes": 1514, "wire_bytes": 1538}, lane["framing"]
        assert len(lane["slices"]) == lane["streams"] and len(lane["slices"][0]) == 40
        assert lane["idle"]["count"] > 10 and lane["loaded"]["count"] > 10
        assert lane["tcp"][0][-1][1]["acked_bytes"] > 1e6
        assert lane["limited_by"], lane
        # What the interface counted is our payload and its headers.
        load = next(h for h in forward["hosts"] + backward["hosts"] if h["host"] == lane["from"])
        assert load["cpu_s_per_gib"] > 0
    nic = next(i for h in forward["hosts"] for i in h["interfaces"] if h["host"] == 0 and i["name"] != "lo")
    payload = forward["lanes"][0]["bytes_per_s"]["value"]
    assert 0.93 * payload < nic["sent_bytes_per_s"] * 1448 / 1514 < 1.10 * payload, (nic, payload)
    tried = [t["streams"] for t in record["streams_tried"]]
    assert record["asked"]["streams_found"] and tried == [1, 2, 4, 8, 16][: len(tried)] and len(tried) >= 2
    assert server.ends() == 0, server.err
    kept = list((tmp_path / "runs" / "net").iterdir())
    assert [f.stem for f in kept] == [record["id"]]


@pytest.mark.measures
def test_a_cap_holds(serve, start):
    server = serve()
    test = start("net", "--to", server.to, "--duration", "2s", "--streams", "4", "--max-gbps", "0.4", "--json",
                 env=server.key)
    assert test.ends(90) == 0, test.err
    assert "up to 0.800 Gbit/s (no host sends or receives more than 0.4 Gbit/s)" in test.err
    record = json.loads(test.out)
    for stage in record["stages"]:
        for lane in stage["lanes"]:
            held(lane["bytes_per_s"]["value"], 0.4e9 / 8, 0.05, less=0.25)
            assert len(lane["slices"]) == 4


def test_only_who_has_the_key_gets_in_and_only_once(serve, start, tmp_path):
    server = serve()
    other = tmp_path / "key"
    other.write_text("plimsoll-net-" + "ab" * 32 + "\n")
    wrong = start("net", "--to", server.to, "--key", f"@{other}")
    assert wrong.ends() == 2 and "or the key is not the one that it gave" in wrong.err, wrong.err
    server.says("refused 127.0.0.1: it does not have the key")
    host, port = server.to.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100)
        stranger.settimeout(30)
        # Nothing is said to strangers.
        try:
            assert stranger.recv(1) == b""
        except ConnectionResetError:
            pass
    server.says("none of a network test")
    # Who went wrong before took nothing away.
    good = start("net", "--to", server.to, "--duration", "1s", "--streams", "1", "--max-gbps", "0.1", env=server.key)
    assert good.ends(90) == 0, good.err
    assert server.ends() == 0, server.err
    assert not is_open(server.to), "the port is closed with the test"
    late = start("net", "--to", server.to, env=server.key)
    assert late.ends() == 2 and "net serve" in late.err


def test_a_key_on_the_command_line_and_a_public_address_are_refused(start):
    for args, text in [
        (["--to", "127.0.0.1:9", "--key", "plimsoll-net-" + "ab" * 32], "open to all users"),
        (["--to", "203.0.113.9:9", "--key", "-"], "public address"),
        (["--to", "127.0.0.1:9"], "the key of the test is missing"),
        (["--duration", "1s"], "between which machines is not said"),
        (["--to", "127.0.0.1:9", "--pattern", "ring"], "is no pattern"),
        (["--to", "127.0.0.1:9", "--duration", "1ms"], "--duration is between"),
        (["--to", "127.0.0.1:9", "--max-gbps", "-1"], ""),
    ]:
        env = {"PLIMSOLL_NET_KEY": ""}
        key = "plimsoll-net-" + "cd" * 32
        r = subprocess.run([str(BIN), "net", *args], input=key, text=True, capture_output=True,
                           env=os.environ | env, timeout=60)
        assert r.returncode == 2 and text in r.stderr, (args, r.returncode, r.stderr)
        assert "cdcd" not in r.stderr
    public = start("net", "serve", "--listen", "203.0.113.9:0")
    assert public.ends() == 2 and "public address" in public.err


def test_a_machine_that_is_killed_is_told_of_on_the_other(serve, start, tmp_path):
    server = serve()
    test = start("net", "--to", server.to, "--duration", "40s", "--streams", "1", "--max-gbps", "0.1", env=server.key)
    carries_data(test)
    server.process.kill()
    assert test.ends() == 2 and f"{server.to} is gone" in test.err, test.err
    assert not (tmp_path / "runs" / "net").exists()
    server = serve()
    test = start("net", "--to", server.to, "--duration", "40s", "--streams", "1", "--max-gbps", "0.1", env=server.key)
    carries_data(server)
    test.process.kill()
    assert server.ends() in (0, 5), server.err
    assert not is_open(server.to)


def test_ctrl_c_keeps_what_was_measured(serve, start, tmp_path):
    server = serve()
    test = start("net", "--to", server.to, "--duration", "2s", "--streams", "1", "--max-gbps", "0.1", env=server.key)
    test.says("2 of 3")
    test.process.send_signal(signal.SIGINT)
    assert test.ends() == 130, test.err
    assert "interrupted" in test.out
    [kept] = (tmp_path / "runs" / "net").iterdir()
    record = json.loads(kept.read_text())
    assert record["interrupted"] and not record["valid"] and len(record["stages"]) == 1
    assert server.ends() in (0, 5), server.err
    waiting = serve()
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.ends() == 130


@pytest.fixture
def over_net(plimsoll, state):  # noqa: F811
    def call(*args, **more):
        return plimsoll("net", *args, "--fleet", env=state, timeout=240, **more)

    return call


SHORT = ["--duration", "1s", "--streams", "1", "--max-gbps", "0.05"]


def listening(pid):
    """Ports that a process listens on."""
    own = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                found.append(words[1])
    return found


def test_agents_measure_each_pair_and_all_at_once(fleet, over_net, plimsoll, runs):  # noqa: F811
    agents = {name: fleet(name) for name in ("n1", "n2")} | {"s1": fleet("s1", "--role", "server")}
    r = over_net(*SHORT, "--pattern", "pairs,in,out,all-to-all,storage", "--json")
    assert r.code == 0, r.err
    assert "3 hosts" in r.err and "peak load: up to 0.150 Gbit/s" in r.err, r.err
    record = json.loads(r.out)
    assert [(h["name"], h["role"]) for h in record["hosts"]] == [("n1", "client"), ("n2", "client"), ("s1", "server")]
    pairs = {(lane["from"], lane["to"]): lane for s in record["stages"] if s["pattern"] == "pairs" for lane in s["lanes"]}
    assert set(pairs) == {(a, b) for a in range(3) for b in range(3) if a != b}
    assert all(lane["bytes_per_s"]["value"] > 0 for lane in pairs.values())
    count = {p: sum(s["pattern"] == p for s in record["stages"]) for p in ("in", "out", "all-to-all", "to-servers")}
    assert count == {"in": 3, "out": 3, "all-to-all": 1, "to-servers": 1}
    assert [tuple(lane[k] for k in ("from", "to")) for s in record["stages"] if s["pattern"] == "to-servers"
            for lane in s["lanes"]] == [(0, 2), (1, 2)]
    for agent in agents.values():
        wait_until(lambda: "done with run" in agent.said(), 10, agent.said())
        assert not listening(agent.process.pid), "the port of a stage is gone"
    # It is a record like others: listed, shown, and taken away.
    assert record["id"] in plimsoll("runs", "list").ok().out
    shown = plimsoll("runs", "show", record["id"]).ok().out
    assert "Pairs, one pair at a time, one direction" in shown and "to s1" in shown, shown
    assert "| n1 |" in plimsoll("report", record["id"], "--markdown").ok().out
    page = runs.parent / "net.html"
    plimsoll("report", record["id"], "-o", page).ok()
    assert page.read_text().count("color-mix(in srgb") == 6, "a heat map of the pairs"
    plimsoll("runs", "rm", record["id"]).ok()
    assert not list((runs / "net").iterdir())


def test_what_an_agent_does_not_allow_is_not_done(fleet, over_net):  # noqa: F811
    fleet("n1")
    r = over_net(*SHORT)
    assert r.code == 2 and "one agent only, n1" in r.err, r.err
    fleet("n2", "--allow-net", "none")
    r = over_net(*SHORT)
    assert r.code == 2 and "n2: network tests are not allowed on it" in r.err, r.err


def test_a_server_generates_no_load(fleet, plimsoll, state, embedded):  # noqa: F811
    fleet("s1", "--role", "server")
    r = plimsoll("object", "stat", "--endpoint", embedded.endpoint, "--bucket", "b", "--duration", "1s", "--fleet",
                 server=embedded, env=state)
    assert r.code == 2 and "every agent is a server" in r.err, r.err


def test_an_agent_that_is_killed_is_named(fleet, over_net, start, state, tmp_path):  # noqa: F811
    agents = {name: fleet(name) for name in ("n1", "n2")}
    test = start("net", "--fleet", "--deadman", "3s", "--duration", "3s", "--streams", "1", "--max-gbps", "0.05", env=state)
    test.says("2 of 3")
    agents["n2"].process.kill()
    assert test.ends(90) == 3, test.err
    assert "agent n2 is gone" in test.out.replace("\n  ", " "), test.out
    [kept] = (tmp_path / "runs" / "net").iterdir()
    assert len(json.loads(kept.read_text())["stages"]) == 1


def test_a_run_is_held_against_the_network(serve, start, plimsoll, runs):
    server = serve()
    test = start("net", "--to", server.to, "--duration", "1s", "--streams", "1", "--json", "--runs-dir", str(runs),
                 env=server.key)
    assert test.ends(90) == 0, test.err
    record = json.loads(test.out)
    put = ["object", "put", "--endpoint", "embedded", "--size", "64KiB", "--duration", "2s", "--json", "--ceiling"]
    r = plimsoll(*put, record["id"])
    assert r.code == 2 and "within one machine (N08)" in r.err, r.err
    # The same, as if the two had been two machines: a record is a file.
    record["hosts"][1] |= {"boot_id": "another", "host": "another"}
    record["findings"] = [f for f in record["findings"] if f["code"] not in ("N06", "N08")]
    for stage in record["stages"]:
        for lane in stage["lanes"]:
            lane["limited_by"] = []
    file = runs.parent / "ceiling.json"

    def said(change):
        file.write_text(json.dumps(record | change))
        [finding] = [f for f in plimsoll(*put, file).summary["findings"] if f["name"] == "held_against_ceiling"]
        return finding

    finding = said({})
    names = ", ".join(h["name"] for h in record["hosts"])
    assert f"of what the network carries between {names} (pairs)" in finding["text"] and record["id"] in finding["text"]
    elsewhere = [record["hosts"][0] | {"host": "elsewhere"}, record["hosts"][1]]
    finding = said({"hosts": elsewhere})
    assert finding["level"] == "qualified" and "which the network test did not measure" in finding["text"], finding
    file.write_text(json.dumps(record | {"interrupted": True}))
    r = plimsoll(*put, file)
    assert r.code == 2 and "interrupted" in r.err, r.err
