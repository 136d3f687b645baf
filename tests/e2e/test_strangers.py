"""What belongs to others and comes near a run: their objects under its prefix, their run directories, their files, and servers that
repeat what they were sent."""

import json
import os
import shutil
import signal
import uuid

import pytest
from conftest import wait_until
from odd_s3 import OddS3

SECRET, TOKEN = "a-secret/key+of=this-test", "a-session/token+of=this-test"
KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
PUT = ["object", "put", "--bucket", "b", "--size", "1KiB", "--max-ops", "60", "--warmup", "0s", "--concurrency", "4"]
JSON = [*PUT, "--json"]


def test_what_others_put_under_the_prefix_of_a_run_stays_and_is_told(plimsoll):
    theirs = {
        "mine/20261122-053127-d0ae/.plimsoll": b"made by plimsoll, run another",
        "mine/20261122-053127-d0ae/1KiB/0123456789abcdef": b"live",
        "mine/report.pdf": b"precious",
    }

    def odd(h):
        # They come while the run is going on.
        if h.command == "PUT" and h.key.startswith("mine/1"):
            h.s3.objects.update(theirs)
        return False

    with OddS3(odd) as server:
        result = plimsoll(*JSON, "--prefix", "mine", "--endpoint", server.endpoint, env=KEYS)
        assert server.objects == theirs, sorted(server.objects)[:5]
        assert "3 objects there do not belong to this run" in result.err, result.err
        assert result.code in (0, 3, 5), result.err


@pytest.mark.parametrize("prefix", ["", "/", "/x", "a//b", "a/../b", "..", "./a", "plimsoll", "plimsoll/", "plimsoll/datasets/x", "a\nb"])
def test_a_prefix_that_is_no_place_of_a_run_is_refused_before_anything_is_asked(plimsoll, prefix):
    with OddS3() as server:
        result = plimsoll(*JSON, "--prefix", prefix, "--endpoint", server.endpoint, env=KEYS)
        assert result.code == 2 and "prefix" in result.err and "fix: " in result.err, (result.code, result.err)
        assert (server.seen, server.objects) == ([], {})


def test_the_second_of_two_runs_on_one_prefix_is_refused_and_neither_loses_anything(plimsoll):
    def odd(h):
        if h.command == "PUT" and h.key == "p/.plimsoll" and h.headers.get("If-None-Match") == "*":
            # The other was a moment quicker.
            h.s3.objects.setdefault("p/.plimsoll", b"made by plimsoll, run another")
            h.fail(412, "PreconditionFailed")
            return True
        return False

    with OddS3(odd) as server:
        result = plimsoll(*JSON, "--prefix", "p", "--endpoint", server.endpoint, env=KEYS)
        assert result.code == 2 and "another run" in result.err, (result.code, result.err)
        assert server.objects == {"p/.plimsoll": b"made by plimsoll, run another"}


def killed(plimsoll, background, runs, server, *flags, env=KEYS):
    """The directory of a run that was killed while it had objects."""
    process = background(*PUT[:6], "--duration", "60s", *flags, "--endpoint", server.endpoint, env=env)
    wait_until(lambda: len(server.objects) > 20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return next(p for p in runs.iterdir() if p.name.startswith("2"))


def test_a_strangers_run_directory_sends_nothing_anywhere_unless_its_endpoint_is_named(plimsoll, background, runs, tmp_path):
    with OddS3() as server:
        run = killed(plimsoll, background, runs, server)
        theirs = tmp_path / "theirs"
        shutil.copytree(run, theirs)
        before, asked = dict(server.objects), len(server.seen)
        for flags in ([], ["--endpoint", "http://127.0.0.1:1"]):
            result = plimsoll("cleanup", theirs, *flags, env=KEYS)
            assert result.code == 2 and server.endpoint in result.err, (result.code, result.err)
            assert (server.objects, len(server.seen)) == (before, asked)
        # A key file that only the plan names is not read, whatever is confirmed.
        plan = (theirs / "plan.toml").read_text()
        key = tmp_path / "sse.key"
        key.write_text("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
        line = next(l for l in plan.splitlines() if l.startswith("bucket"))
        (theirs / "plan.toml").write_text(plan.replace(line, f'{line}\nsse_c_key_file = "{key}"'))
        result = plimsoll("cleanup", theirs, "--endpoint", server.endpoint, env=KEYS)
        assert result.code == 2 and str(key) in result.err, (result.code, result.err)
        assert (server.objects, len(server.seen)) == (before, asked)
        (theirs / "plan.toml").write_text(plan)
        result = plimsoll("cleanup", theirs, "--endpoint", server.endpoint, env=KEYS)
        assert (result.code, server.objects) == (0, {}), result.err


def test_a_run_of_ones_own_is_cleaned_up_without_being_asked(plimsoll, background, runs):
    with OddS3() as server:
        killed(plimsoll, background, runs, server)
        result = plimsoll("cleanup", "last", env=KEYS)
        assert (result.code, server.objects) == (0, {}), result.err
        assert server.endpoint in result.err


def test_a_secret_that_a_server_repeats_is_shown_and_kept_nowhere(plimsoll, runs):
    def odd(h):
        if h.command != "PUT" or h.key.endswith(".plimsoll"):
            return False
        said = f"{h.headers['x-amz-security-token']} {h.headers['authorization']}"
        body = f"<Error><Code>InternalError</Code><Message>bad: {said}</Message></Error>"
        h.say(500, body, [("X", "y")])
        return True

    with OddS3(odd) as server:
        result = plimsoll(*JSON, "--endpoint", server.endpoint, env=KEYS | {"AWS_SESSION_TOKEN": TOKEN})
        seen = result.out + result.err
        for path in runs.rglob("*"):
            seen += path.read_text(errors="replace") if path.is_file() and path.suffix != ".zst" else ""
        assert "bad: " in seen and "secret left out" in seen
        assert TOKEN not in seen and SECRET not in seen
        signature = seen.split("Signature=")[1:]
        assert all(s.startswith("(secret left out)") for s in signature), signature[:2]


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_a_key_with_a_line_end_is_refused_before_it_is_sent(plimsoll, name):
    with OddS3() as server:
        result = plimsoll(*JSON, "--endpoint", server.endpoint, env=KEYS | {name: "key-1\r\nx-evil: 1"})
        assert result.code == 2 and "fix: " in result.err and "x-evil" not in result.err, (result.code, result.err)
        assert server.seen == []


def test_a_report_overwrites_a_report_and_nothing_else(plimsoll, tmp_path):
    with OddS3() as server:
        plimsoll(*JSON, "--endpoint", server.endpoint, env=KEYS)
    letter, page = tmp_path / "letter.txt", tmp_path / "page.html"
    letter.write_text("dear Alice")
    (tmp_path / "link").symlink_to(letter)
    os.link(letter, tmp_path / "second")
    for name in ("letter.txt", "link", "second"):
        result = plimsoll("report", "last", "-o", tmp_path / name)
        assert result.code == 2 and "fix: " in result.err, (result.code, result.err)
        assert letter.read_text() == "dear Alice"
    for _ in range(2):
        assert plimsoll("report", "last", "-o", page).code == 0
        assert 'content="plimsoll' in page.read_text()
    page.write_text("")
    assert plimsoll("report", "last", "-o", page).code == 0


def test_a_directory_with_the_names_of_a_run_is_not_removed(plimsoll, tmp_path):
    fake = tmp_path / "fake"
    (fake / "intervals").mkdir(parents=True)
    (fake / "plan.toml").write_text('[package]\nname = "x"\n')
    (fake / "env.json").write_text(json.dumps({"mine": uuid.uuid4().hex}))
    (fake / "intervals/foreign.zst").write_bytes(b"my precious data")
    result = plimsoll("runs", "rm", fake)
    assert result.code == 2, (result.code, result.err)
    assert (fake / "intervals/foreign.zst").read_bytes() == b"my precious data" and (fake / "env.json").exists()
