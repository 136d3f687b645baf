"""A fleet comes up, is one conductor's at a time, and goes down without a trace, however it ends."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest
from conftest import BIN, wait_until

PREFIX = "plimsoll-join-"


def token_of(up):
    """What the line that `fleet up` prints has in it."""
    return re.search(rf"{PREFIX}\S+", up.out)[0]


def note(home, name="default"):
    return json.loads((home / "plimsoll/fleets" / name / "keeper.json").read_text())


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_up_prints_the_line_to_join_with_and_down_leaves_nothing(fleet, home):
    up = fleet("up", "--listen", "127.0.0.1:0").ok()
    assert re.fullmatch(rf"PLIMSOLL_JOIN={PREFIX}\S+ plimsoll agent\n", up.out), up.out
    assert "fleet default is up (nats-server: v2" in up.err and "holds for 12 h" in up.err, up.err
    assert fleet("token").ok().out.strip() == token_of(up)
    told = json.loads(fleet("status", "--json").ok().out)
    assert told["fleet"] == "default" and told["agents"] == [] and told["in_use_by"] is None, told
    assert "0 of 0 agents connected; not in use; token holds for" in fleet("status").ok().out
    pids = note(home)["pid"], note(home)["broker_pid"]
    assert "fleet default is down" in fleet("down").ok().err
    # The lock is the last thing that the keeper lets go of: it ends a moment later.
    assert not list(home.iterdir())
    wait_until(lambda: not any(map(lives, pids)), what="the keeper's end")
    assert fleet("down").code == 2 and fleet("status").code == 2


def test_keys_are_the_users_alone(fleet, home):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    place = home / "plimsoll/fleets/default"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    secrets = [f for f in place.iterdir() if f.suffix in (".seed", ".key", ".conf", ".json")]
    assert len(secrets) >= 6 and all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in secrets)
    with open(f"/proc/{note(home)['pid']}/cmdline") as f:
        assert PREFIX not in f.read(), "the token is on no command line"


def join(background, home, token, name):
    """An agent that is in."""
    agent = background("agent", "--join", token, "--name", name, env={"XDG_RUNTIME_DIR": str(home)})
    line = agent.stderr.readline()
    assert f"{name} waits for orders" in line, line
    return agent


@pytest.mark.parametrize("way", ["environment", "file", "standard input"])
def test_the_token_of_an_agent_is_on_no_command_line(fleet, home, tmp_path, way):
    token = token_of(fleet("up", "--listen", "127.0.0.1:0").ok())
    (tmp_path / "token").write_text(token + "\n")
    join = {"environment": [], "file": ["--join", f"@{tmp_path / 'token'}"], "standard input": ["--join", "-"]}[way]
    env = os.environ | {"XDG_RUNTIME_DIR": str(home)} | ({"PLIMSOLL_JOIN": token} if way == "environment" else {})
    agent = subprocess.Popen(
        [str(BIN), "agent", *join, "--name", "lg-1"],
        env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )
    try:
        if way == "standard input":
            # Nobody ends the input: a line is enough.
            agent.stdin.write(token + "\n")
            agent.stdin.flush()
        line = agent.stderr.readline()
        assert "lg-1 waits for orders" in line, line
        with open(f"/proc/{agent.pid}/cmdline") as f:
            assert PREFIX not in f.read()
    finally:
        agent.terminate()
        agent.communicate(timeout=20)


def test_a_token_file_that_is_not_there_is_named(plimsoll, tmp_path):
    result = plimsoll("agent", "--join", f"@{tmp_path}/none")
    assert result.code == 2 and "no token can be read from" in result.err and f"{tmp_path}/none" in result.err, result.err


def test_status_is_a_roll_call(fleet, home, background):
    token = token_of(fleet("up", "--listen", "127.0.0.1:0").ok())
    agents = {name: join(background, home, token, name) for name in ("lg-1", "lg-2", "lg-3")}
    os.kill(agents["lg-2"].pid, signal.SIGKILL)
    os.kill(agents["lg-3"].pid, signal.SIGSTOP)
    agents["lg-2"].wait(10)
    told = json.loads(fleet("status", "--json").ok().out)["agents"]
    by_name = {a["name"]: a for a in told}
    assert [by_name[n]["state"] for n in agents] == ["free", "gone", "connected, but silent"], told
    assert by_name["lg-1"]["machine"]["cpu_count"] == os.cpu_count() and by_name["lg-1"]["version"], told
    text = fleet("status").ok().out
    assert "2 of 3 agents connected" in text and "lg-2" in text and "gone" in text, text
    taken = fleet("status", env={"PLIMSOLL_FLEET": "none"})
    assert taken.code == 2 and "no fleet none is up" in taken.err, taken.err


def test_two_agents_of_one_name_and_the_end_of_the_fleet(fleet, home, background, plimsoll):
    token = token_of(fleet("up", "--listen", "127.0.0.1:0").ok())
    first = join(background, home, token, "lg-1")
    second = plimsoll("agent", "--join", token, "--name", "lg-1")
    assert second.code == 2 and "another agent is connected under the name lg-1" in second.err, second.err
    fleet("down").ok()
    assert first.wait(10) == 0 and "fleet default is over" in first.stderr.read()
    late = plimsoll("agent", "--join", token, "--name", "lg-2")
    assert late.code == 2 and "nobody listens there" in late.err, late.err


@pytest.mark.parametrize("cut", [slice(0, -5), slice(3, None), slice(0, 20)])
def test_a_token_that_was_cut_is_refused(fleet, plimsoll, cut):
    token = token_of(fleet("up", "--listen", "127.0.0.1:0").ok())
    result = plimsoll("agent", "--join", token[cut])
    assert result.code == 2 and ("cut or changed" in result.err or "no token of a fleet" in result.err), result.err


def test_a_token_of_a_fleet_that_was_started_again_opens_nothing(fleet, plimsoll):
    port = "127.0.0.1:" + str(free_port())
    old = token_of(fleet("up", "--listen", port).ok())
    fleet("down").ok()
    fleet("up", "--listen", port).ok()
    result = plimsoll("agent", "--join", old)
    assert result.code == 2 and "not the certificate of this fleet" in result.err, result.err


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_second_one_of_a_name_is_refused_and_of_another_is_not(fleet):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    again = fleet("up", "--listen", "127.0.0.1:0")
    assert again.code == 2 and "fleet default is up already (process " in again.err, again.err
    assert "plimsoll fleet down --name default" in again.err and again.out == ""
    fleet("up", "--name", "other", "--listen", "127.0.0.1:0").ok()
    fleet("status", env={"PLIMSOLL_FLEET": "other"}).ok()


def test_a_port_that_is_taken_is_named(fleet, home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = fleet("up", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.code == 2 and "address already in use" in result.err and "--listen" in result.err, result.err
    assert not list(home.iterdir()), "what did not start leaves nothing"


def test_roots_of_trust_that_cannot_be_read_are_named(fleet, home, tmp_path):
    """The client library reads them, though a fleet has its own certificate."""
    result = fleet("up", "--listen", "127.0.0.1:0", env={"SSL_CERT_FILE": str(tmp_path / "none.pem")})
    assert result.code == 2 and "none.pem" in result.err and "SSL_CERT_FILE" in result.err, result.err
    assert not list(home.iterdir())


def test_without_a_broker_it_says_what_to_install(fleet, home):
    result = fleet("up", env={"PLIMSOLL_NATS_SERVER": "/nowhere/nats-server"})
    assert result.code == 2 and "apt-get install nats-server" in result.err, result.err
    assert not list(home.iterdir())


def test_a_directory_in_which_no_fleet_was_is_nobodys_to_touch(fleet, home):
    """With somebody's files in it, or behind a link: refused by name, and as it was."""
    fleets = home / "plimsoll/fleets"
    fleets.mkdir(parents=True)
    fleets.chmod(0o700)
    (fleets / "mine/thesis").mkdir(parents=True, mode=0o700)
    (fleets / "mine").chmod(0o700)
    (fleets / "mine/thesis/chapter").write_text("one")
    (fleets / "lnk").symlink_to(fleets / "mine")
    before = sorted(str(p) for p in home.rglob("*"))
    for name in ("mine", "lnk"):
        for command in ("down", "up", "status"):
            result = fleet(command, "--name", name)
            assert result.code == 2 and f"fleets/{name} is not the directory of a fleet" in result.err, result.err
    assert sorted(str(p) for p in home.rglob("*")) == before
    assert (fleets / "mine/thesis/chapter").read_text() == "one"
    shutil.rmtree(fleets / "mine")
    (fleets / "lnk").unlink()


def test_what_somebody_put_into_a_fleets_directory_stays(fleet, home):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    place = home / "plimsoll/fleets/default"
    (place / "thesis").write_text("one")
    result = fleet("down")
    assert result.code == 2 and '"thesis"' in result.err, result.err
    assert sorted(p.name for p in place.iterdir()) == ["lock", "plimsoll-fleet", "thesis"]
    (place / "thesis").unlink()
    fleet("down").ok()
    assert not list(home.iterdir())


@pytest.mark.parametrize("forged", ["pid", "pid and start"])
def test_a_process_that_a_forged_or_old_note_names_is_not_ended(fleet, home, forged):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    true = note(home)
    with open("/proc/sys/kernel/random/boot_id") as f:
        assert true["boot_id"] == f.read().strip() and true["start_ticks"] == started(true["pid"])
    file = home / "plimsoll/fleets/default/keeper.json"
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        false = true | {"pid": stranger.pid}
        file.write_text(json.dumps(false if forged == "pid" else false | {"start_ticks": started(stranger.pid)}))
        result = fleet("down", "--force")
        assert result.code == 2 and f"process {stranger.pid} is not the keeper of fleet default" in result.err, result.err
        assert stranger.poll() is None and lives(true["pid"]) and lives(true["broker_pid"])
    finally:
        stranger.kill()
        stranger.wait()
        file.write_text(json.dumps(true))
    fleet("down").ok()
    assert not lives(true["pid"])


def started(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[19])


@pytest.mark.parametrize("name", ["a.b", "../x", "", "a b"])
def test_a_name_that_is_none(fleet, name):
    result = fleet("up", "--name", name)
    assert result.code == 2 and "cannot be the name of a fleet" in result.err, result.err


def test_a_killed_keeper_takes_its_broker_with_it_and_makes_room(fleet, home):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    first = note(home)
    os.kill(first["pid"], signal.SIGKILL)
    wait_until(lambda: not lives(first["pid"]) and not lives(first["broker_pid"]), what="the broker's end")
    assert fleet("status").code == 2
    fleet("up", "--listen", "127.0.0.1:0").ok()
    assert note(home)["pid"] != first["pid"]
    os.kill(note(home)["pid"], signal.SIGKILL)
    wait_until(lambda: not lives(note(home)["pid"]), what="the keeper's end")
    assert "was not up any more" in fleet("down").ok().err
    assert not list(home.iterdir())


def test_a_killed_broker_comes_back_at_its_port(fleet, home):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    first = note(home)
    os.kill(first["broker_pid"], signal.SIGKILL)
    wait_until(lambda: note(home)["broker_pid"] != first["broker_pid"], what="another broker")
    fleet("status").ok()
    assert note(home)["local"] == first["local"]


def test_a_new_token_is_another_and_an_expired_one_is_said_to_be(fleet):
    nobody = fleet("up", "--listen", "127.0.0.1:0", "--token-for", "0s")
    assert nobody.code == 2 and "lets nobody join" in nobody.err
    old = token_of(fleet("up", "--listen", "127.0.0.1:0", "--token-for", "1s").ok())
    wait_until(lambda: fleet("token").code == 2, what="the end of the token")
    assert "has expired" in fleet("token").err and "token expired" in fleet("status").ok().out
    new = fleet("token", "--for", "1h").ok().out.strip()
    assert new != old and new.startswith(PREFIX)
    # A line that can be copied.
    raw = base64.urlsafe_b64decode(new.removeprefix(PREFIX) + "==")
    assert len(raw) < 220


def test_sigterm_is_as_good_as_down(fleet, home):
    fleet("up", "--listen", "127.0.0.1:0").ok()
    pids = note(home)["pid"], note(home)["broker_pid"]
    os.kill(pids[0], signal.SIGTERM)
    wait_until(lambda: not any(map(lives, pids)) and not list(home.iterdir()), what="the end")


def test_it_needs_no_broker_in_path(fleet, home):
    """Debian keeps it in /usr/sbin, where users do not look."""
    if not shutil.which("nats-server", path="/usr/sbin"):
        pytest.skip("nats-server is not from Debian here")
    fleet("up", "--listen", "127.0.0.1:0", env={"PATH": "/bin"}).ok()
