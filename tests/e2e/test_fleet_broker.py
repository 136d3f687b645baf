"""Fleets on a broker that was there before, and credentials that are sent over it."""

import json
import os
import re
import subprocess

import pytest
from conftest import BIN, wait_until
from nats_support import BROKERS, USER, Broker, Key, Spy, binary_of, operator_config, run

LOAD = ["--size", "4KiB", "--concurrency", "4", "--warmup", "1s", "--duration", "2s", "--json"]
PREFIX = r"plimsoll-join-\S+"
# Two agents of one account, and somebody else in it.
USERS = """accounts {{ BENCH {{ users: [
  {{ user: conductor, password: "pass-of-conductor" }}, {{ user: spy, password: "pass-of-spy" }}, {{ nkey: {key} }}
] }} }}"""


@pytest.fixture(params=list(BROKERS))
def binary(request):
    return binary_of(request.param)


@pytest.fixture
def broker(tmp_path):
    started = []

    def make(binary, config, scheme="nats"):
        place = tmp_path / f"broker-{len(started)}"
        place.mkdir()
        started.append(Broker(binary, place, config, scheme))
        return started[-1]

    yield make
    for one in started:
        one.end()


@pytest.fixture
def agent(tmp_path):
    started = []

    def start(token, name, *flags, env=None):
        log = tmp_path / f"{name}.log"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "NATS_", "PLIMSOLL_"))}
        with open(log, "w") as out:
            words = [str(BIN), "agent", "--name", name, "--runs-dir", str(tmp_path / f"runs-{name}"), *flags]
            started.append(subprocess.Popen(words, env=clean | {"PLIMSOLL_JOIN": token, "HOME": str(tmp_path)} | (env or {}), stderr=out))
        wait_until(lambda: "waits for orders" in log.read_text(), 30, f"{name}: {log.read_text()}")
        started[-1].log = log
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


def findings(r):
    assert r.code in (0, 3, 5), r.err
    return {f["name"]: f["text"] for f in r.summary["findings"]}


def test_with_files_of_credentials(binary, broker, fleet, agent, plimsoll, embedded, state, bucket_here, tmp_path):
    config, (conductor, user) = operator_config(tmp_path)
    there = broker(binary, config)
    up = fleet("up", "--nats", there.url, "--creds", str(conductor)).ok()
    assert "the broker is its owner's" in up.err and "not encrypted" in up.err, up.err
    token = re.search(PREFIX, up.out)[0]
    one = agent(token, "lg-1", "--creds", str(user), env=embedded.env())
    agent(token, "lg-2", env=embedded.env() | {"NATS_CREDS": str(user)})
    fleet("wait", "2").ok()
    text = fleet("status").ok().out
    assert "2 of 2 agents connected" in text and f"broker {there.url} (nats-server: v2" in text and "its owner's" in text, text
    r = plimsoll("object", "put", *bucket_here.flags(), *LOAD, "--fleet", server=embedded, env=state, timeout=180)
    assert there.url in findings(r)["broker_of_others"] and "without encryption" in findings(r)["broker_of_others"]
    assert r.workload("put")["outcomes"]["ok"] > 50
    twin = plimsoll("agent", "--name", "lg-1", "--creds", str(user), env={"PLIMSOLL_JOIN": token})
    assert twin.code == 2 and "another agent has this name" in twin.err, twin.err
    fleet("down").ok()
    assert one.wait(20) == 0 and "fleet default is over" in one.log.read_text()
    assert not list((tmp_path / "state").iterdir())


def test_with_passwords_and_keys_and_credentials_that_nobody_else_reads(
    binary, broker, fleet, agent, plimsoll, embedded, state, bucket_here, tmp_path, runs
):
    """The spy hears all that is said in the account. The agents have no keys of the storage; what they are sent is in no message, file or
    log in clear."""
    key = Key(USER, tmp_path)
    (tmp_path / "agent.nk").write_text(key.seed + "\n")
    there = broker(binary, USERS.format(key=key.public))
    me = {"NATS_USER": "conductor", "NATS_PASSWORD": "pass-of-conductor"}
    up = fleet("up", "--nats", there.url, env=me).ok()
    token = re.search(PREFIX, up.out)[0]
    names = ["lg-1", "lg-2"]
    for name in names:
        agent(token, name, env={"NATS_NKEY": str(tmp_path / "agent.nk"), "AWS_CONFIG_FILE": "/dev/null"})
    fleet("wait", "2", env=me).ok()
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--fleet"]
    none = plimsoll(*put, server=embedded, env=state | me, timeout=180)
    assert none.code == 2 and "agent lg-1: no credentials" in none.err, none.err
    spy = Spy(there.port, "spy", "pass-of-spy")
    r = plimsoll(*put, "--send-credentials", server=embedded, env=state | me, timeout=180)
    assert "credentials were sent to 2 agents" in r.err.lower(), r.err
    assert findings(r)["credentials_sent"] == "Credentials were sent to 2 agents, sealed to each."
    assert r.workload("put")["outcomes"]["ok"] > 50
    heard = spy.listen()
    assert b"entrust" in heard and b"fleet.default.frame.lg-1" in heard, "the spy hears what is said"
    secret = embedded.secret_key.encode()
    assert secret not in heard
    files = [f for top in [runs, *(tmp_path / f"runs-{n}" for n in names)] for f in top.rglob("*") if f.is_file()]
    assert len(files) > 6
    logs = [tmp_path / f"{n}.log" for n in names]
    holding = [f for f in [*files, *logs, *(tmp_path / "state").rglob("*.json")] if secret in f.read_bytes()]
    assert not holding
    fleet("down", env=me).ok()


def test_an_agent_may_refuse_credentials(broker, fleet, plimsoll, agent, embedded, state, bucket_here):
    token = re.search(PREFIX, fleet("up", "--listen", "127.0.0.1:0").ok().out)[0]
    agent(token, "lg-1", "--refuse-credentials", env=embedded.env())
    put = ["object", "put", *bucket_here.flags(), *LOAD, "--fleet"]
    r = plimsoll(*put, "--send-credentials", server=embedded, env=state)
    assert r.code == 2 and "agent lg-1 takes no credentials" in r.err and "--refuse-credentials" in r.err, r.err
    assert json.loads(fleet("status", "--json").ok().out)["agents"][0]["takes_credentials"] is False
    assert "credentials_sent" not in findings(plimsoll(*put, server=embedded, env=state, timeout=180))


def test_who_is_not_let_in_is_told(broker, fleet, tmp_path, binary):
    there = broker(binary, USERS.format(key=Key(USER, tmp_path).public))
    wrong = fleet("up", "--nats", there.url, env={"NATS_USER": "conductor", "NATS_PASSWORD": "hunter2"})
    assert wrong.code == 2 and "does not let us in (user conductor)" in wrong.err and "hunter2" not in wrong.err, wrong.err
    half = fleet("up", "--nats", there.url, env={"NATS_USER": "conductor"})
    assert half.code == 2 and "NATS_PASSWORD is not" in half.err, half.err
    shown = fleet("up", "--nats", there.url.replace("//", "//conductor:hunter2@"))
    assert shown.code == 2 and "NATS_PASSWORD" in shown.err and "hunter2" not in shown.err, shown.err
    nobody = fleet("up", "--nats", "nats://127.0.0.1:1")
    assert nobody.code == 2 and "nobody listens there" in nobody.err, nobody.err
    assert not list((tmp_path / "state").iterdir())


def test_a_user_who_may_not_speak_as_a_fleet_is_told_what_it_needs(broker, fleet, tmp_path, binary):
    users = 'authorization { users: [ { user: me, password: p, permissions: { publish: "other.>", subscribe: "fleet.>" } } ] }'
    there = broker(binary, users)
    r = fleet("up", "--nats", there.url, env={"NATS_USER": "me", "NATS_PASSWORD": "p"}, timeout=60)
    assert r.code == 2 and "does not let us do what a fleet needs" in r.err and "fleet.>" in r.err, r.err
    assert not list((tmp_path / "state").iterdir())


def test_an_authority_is_pinned_by_the_token(broker, fleet, agent, plimsoll, tmp_path, binary):
    place = tmp_path / "pki"
    place.mkdir()
    for name in ("ca", "other"):
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-keyout", f"{place}/{name}.key", "-out", f"{place}/{name}.pem", "-subj", f"/CN={name}")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{place}/server.key",
        "-out", f"{place}/server.csr", "-subj", "/CN=broker")
    (place / "ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    run("openssl", "x509", "-req", "-in", f"{place}/server.csr", "-CA", f"{place}/ca.pem", "-CAkey", f"{place}/ca.key", "-days", "30",
        "-CAcreateserial", "-extfile", f"{place}/ext", "-out", f"{place}/server.pem")
    chain = place / "chain.pem"
    chain.write_text((place / "server.pem").read_text() + (place / "ca.pem").read_text())
    there = broker(binary, f'tls {{ cert_file: "{chain}", key_file: "{place}/server.key" }}', "tls")
    for flags in (["--ca", f"{place}/other.pem"], []):
        r = fleet("up", "--nats", there.url, *flags)
        assert r.code == 2 and "--ca" in r.err, r.err
    up = fleet("up", "--nats", there.url, "--ca", f"{place}/ca.pem").ok()
    assert "not encrypted" not in up.err
    agent(re.search(PREFIX, up.out)[0], "lg-1")
    status = json.loads(fleet("status", "--json").ok().out)
    assert status["broker_of_others"] == there.url and [a["name"] for a in status["agents"]] == ["lg-1"], status
    assert status["agents"][0]["clock_bound_ns"] < 500_000_000
