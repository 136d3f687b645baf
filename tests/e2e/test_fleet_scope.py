"""Whose a limit is, asked from several machines: two agents in namespaces of their own, each with an address and a host name."""

import itertools
import json
import os
import re
import subprocess

import pytest
from conftest import BIN, end, start_target, wait_until

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces"), pytest.mark.measures]

PER = """name = "per-{scope}"
kind = "object"
[[limit]]
unit = "ops"
rate_per_s = {rate}
capacity = {rate}
scope = "{scope}"
"""


NTH = itertools.count(1)


def ip(*args):
    done = subprocess.run(["ip", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (args, done.stderr)


@pytest.fixture
def two_machines():
    """Two namespaces that reach 10.213.1.1 here, by links of their own: (names, that address)."""
    # A link of the test before is gone some time after its namespace.
    nth = next(NTH)
    names = [f"plimsoll-{os.getpid()}-{nth}-{i}" for i in (1, 2)]
    try:
        for i, name in enumerate(names, 1):
            here = f"pl{os.getpid() % 100000}h{nth}{i}"
            ip("netns", "add", name)
            ip("link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("addr", "add", f"10.213.{i}.1/24", "dev", here)
            ip("link", "set", here, "up")
            ip("-n", name, "addr", "add", f"10.213.{i}.2/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "route", "add", "default", "via", f"10.213.{i}.1")
        yield names, "10.213.1.1"
    finally:
        # Its end of each link goes with it.
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(("scope", "rate", "all_of_it", "found"), [("client", 50, 100, "client"), ("server", 100, 100, "unknown")])
def test_clients_are_doubled_by_half_of_the_machines_and_all(two_machines, plimsoll, tmp_path, scope, rate, all_of_it, found):
    machines, address = two_machines
    limits = tmp_path / "limits.toml"
    limits.write_text(PER.format(scope=scope, rate=rate))
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(state), "AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "one-secret"}
    server, facts = start_target("s3", "--listen", f"{address}:0", "--data", str(tmp_path / "data"), "--no-sync", "--limits",
                                 str(limits), "--bucket", "first", env=env)
    agents = []
    try:
        up = plimsoll("fleet", "up", "--listen", f"{address}:0", env=env, check=True)
        token = re.search(r"plimsoll-join-\S+", up.out)[0]
        for i, name in enumerate(machines, 1):
            log = tmp_path / f"agent-{i}.log"
            script = f'hostname machine-{i} && exec "{BIN}" agent --name lg-{i} --runs-dir "{tmp_path}/runs-{i}"'
            line = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", script]
            with open(log, "w") as out:
                agents.append(subprocess.Popen(line, env=os.environ | env | {"PLIMSOLL_JOIN": token}, stdout=out, stderr=out))
            wait_until(lambda: "waits for orders" in log.read_text(), 30, log.read_text())
        r = plimsoll("limits", "object", "--fleet", "--endpoint", facts["endpoint"], "--bucket", "first", "--op", "stat",
                     "--probe-scope", "connection,prefix,clients", "--budget", "100s", "--json", env=env, timeout=300)
        assert r.code in (0, 3, 5), r.err
        [limit] = json.loads(r.out)["limits"]
        cap = limit["ops_per_s"]["sustained"]["value"]
        assert abs(cap / all_of_it - 1) < 0.1, limit
        assert limit["scope"] == found, limit
        said = dict(limit["evidence"])["scope: client"]
        assert ("the limit is per this" if scope == "client" else "the limit is wider") in said, said
    finally:
        for agent in agents:
            end(agent)
        plimsoll("fleet", "down", "--force", env=env)
        end(server)


def test_one_machine_is_one_client(plimsoll):
    r = plimsoll("limits", "object", "--endpoint", "embedded", "--probe-scope", "client")
    assert r.code == 2 and "one machine is one client" in r.err and "--fleet" in r.err, r.err
    r = plimsoll("limits", "object", "--endpoint", "embedded", "--probe-scope", "clinet")
    assert r.code == 2 and "'clinet' is none of connection, prefix, bucket, key, client, all" in r.err, r.err
