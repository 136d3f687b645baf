"""A signal ends whatever a run waits for: a server that is silent, a pipe that nobody writes to."""

import os
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import BIN, Server, end, new_bucket, start_target, wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s" * 16}


@pytest.fixture
def silent():
    """Takes connections and answers nothing, as a server that is stopped."""
    listener = socket.create_server(("127.0.0.1", 0))
    yield Server("silent", f"http://127.0.0.1:{listener.getsockname()[1]}", "k", "s" * 16)
    listener.close()


def ended_at_once(run, sign, code, most=3.0):
    begun = time.monotonic()
    run.send_signal(sign)
    _, err = run.communicate(timeout=60)
    assert run.returncode == code, err
    assert time.monotonic() - begun < most, err
    return err


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_request_before_the_load_is_broken_off(background, silent, runs, name, scheme):
    endpoint = silent.endpoint.replace("http:", f"{scheme}:")
    run = background("object", "put", "--endpoint", endpoint, "--bucket", "b", "--duration", "5s", server=silent)
    wait_until(lambda: runs.exists() and any(runs.iterdir()), what="the run")
    time.sleep(1)
    err = ended_at_once(run, getattr(signal, name), 130)
    assert "interrupted before anything was measured" in err, err
    assert not [d for d in runs.iterdir() if not d.name.startswith(".")], "a run that never began leaves nothing"


def test_a_stopped_server_is_waited_for_with_a_word_and_not_twice(background, plimsoll, tmp_path):
    process, facts = start_target("s3", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "d"), env=KEYS)
    b = new_bucket(Server("embedded", facts["endpoint"], "k", "s" * 16))
    try:
        run = background("object", "put", *b.flags(), "--size", "4KiB", "--duration", "60s", "--warmup", "0s", server=b.server)
        wait_until(lambda: b.holds(50), what="objects")
        time.sleep(1)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        time.sleep(1.5)
        begun = time.monotonic()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        assert time.monotonic() - begun < 5, err
        assert run.returncode == 130 and "ok" in out and "for at most 5 s" in err, (out, err)
        os.kill(process.pid, signal.SIGCONT)
        assert "left behind" in err and plimsoll("cleanup", "last", server=b.server).code == 0
        assert b.keys() == []
    finally:
        os.kill(process.pid, signal.SIGCONT)
        end(process)


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "ff")
    return tmp_path / "ff"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("where", ["key", "settings"])
def test_a_pipe_without_a_writer_does_not_outlast_a_signal(background, silent, pipe, name, where):
    flags = ["--sse-c-key-file", pipe] if where == "key" else []
    env = {"AWS_CONFIG_FILE": str(pipe)} if where == "settings" else {}
    run = background("object", "put", "--endpoint", silent.endpoint, "--bucket", "b", "--duration", "5s", *flags,
                     server=silent, env=env)
    time.sleep(1.5)
    assert run.poll() is None, "it waits for the writer"
    run.send_signal(getattr(signal, name))
    # Before a run exists the signal's own action ends the program.
    assert run.wait(timeout=5) in (130, -getattr(signal, name))


def test_a_server_that_waits_for_its_certificate_ends_by_a_signal(background, pipe, tmp_path):
    server = background("target", "s3", "--listen", "127.0.0.1:0", "--data", tmp_path / "d", "--tls-cert", pipe,
                        "--tls-key", pipe)
    time.sleep(1.5)
    assert server.poll() is None, "it waits for the writer"
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=5) == -signal.SIGTERM


def test_a_file_of_defaults_that_is_a_pipe_is_not_waited_for(plimsoll, pipe):
    for file in (pipe, "/dev/zero"):
        told = plimsoll("runs", "list", env={"PLIMSOLL_CONFIG": str(file)}, timeout=20)
        assert told.code == 2 and f"{file} cannot be read: it is no regular file" in told.err and "fix:" in told.err, told
    assert plimsoll("runs", "list", env={"PLIMSOLL_CONFIG": "/dev/null"}, timeout=20).code == 0


def test_a_report_does_not_wait_for_the_reader_of_a_pipe(plimsoll, pipe, tmp_path, runs):
    plimsoll("block", tmp_path / "f", "--size", "8MiB", "--runtime", "1s", "--quiet")
    told = plimsoll("report", "last", "-o", pipe, timeout=20)
    assert told.code == 2 and f"{pipe} cannot be written: it is a named pipe" in told.err and "fix:" in told.err, told
    # What a shell gives is a pipe as well, with a reader.
    for line in ("report last -o /dev/stdout | cat", "report last -o >(cat) | cat"):
        done = subprocess.run(["bash", "-c", f"{BIN} {line}; wait"], env=os.environ | {"PLIMSOLL_RUNS": str(runs)},
                              capture_output=True, text=True, timeout=20)
        assert "</html>" in done.stdout, (line, done)


def test_a_pipe_with_a_writer_is_read(plimsoll, pipe, embedded):
    b = new_bucket(embedded)
    writer = threading.Thread(target=lambda: pipe.write_text("[default]\nregion = eu-test-1\n"))
    writer.start()
    env = {"AWS_CONFIG_FILE": str(pipe), "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    try:
        r = plimsoll("object", "put", *b.flags(), "--duration", "2s", "--warmup", "0s", "--size", "4KiB", server=b.server, env=env,
                     timeout=30)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{BIN} did not read the pipe") from None
    finally:
        if writer.is_alive():
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(timeout=5)
    assert r.code in (0, 3), r.err
