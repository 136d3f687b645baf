"""What a run leaves: on servers that lack something, in buckets that keep versions, where objects are locked, and when it is stopped."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.parse
import uuid

import pytest
from block_support import code_of
from conftest import BIN, drop_bucket, new_bucket
from odd_s3 import OddS3

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
PUT = ["object", "put", "--bucket", "b", "--size", "1KiB", "--max-ops", "60", "--warmup", "0s", "--concurrency", "4", "--json"]


def left(result):
    return [f for f in result.summary["findings"] if f["code"] == "F14"]


def refuse(what, status, code):
    """Answers requests whose query has `what` with an error."""

    def odd(h):
        if what not in h.query:
            return False
        h.fail(status, code)
        return True

    return odd


@pytest.mark.parametrize("what,status,code", [
    ("encoding-type", 501, "NotImplemented"), ("encoding-type", 500, "InternalError"), ("encoding-type", 400, "InvalidArgument"),
    ("list-type", 501, "NotImplemented"), ("delete", 501, "NotImplemented"), ("delete", 500, "InternalError"),
    ("delete", 400, "MalformedXML"), ("versioning", 501, "NotImplemented"), ("versioning", 500, "InternalError"),
    ("versioning", 404, "NoSuchKey"), ("uploads", 501, "NotImplemented"), ("uploads", 500, "InternalError"),
])
def test_a_server_that_lacks_something_is_cleaned_all_the_same(plimsoll, what, status, code):
    """The wire decides, not a fake of our own client: what a server without a call answers is its own choice."""
    def odd(h):
        # The first listing, which says that the bucket is there, has the one detail that every server knows.
        first = what == "list-type" and "encoding-type" not in h.query and "max-keys" in h.query
        return not first and refuse(what, status, code)(h)

    with OddS3(odd) as server:
        server.objects["theirs"] = b"x"
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS)
        assert result.code in (0, 3), (result.code, result.err)
        assert result.code != 6 and not left(result), result.err
        assert set(server.objects) == {"theirs"}, list(server.objects)[:5]


@pytest.mark.parametrize("status,code", [(501, "NotImplemented"), (400, "InvalidArgument")])
def test_objects_go_where_unfinished_uploads_cannot_be_listed(plimsoll, status, code):
    with OddS3(refuse("uploads", status, code)) as server:
        flags = ["object", "mixed", "--mix", "put=1,multipart=1", "--part-size", "5MiB", *PUT[2:]]
        result = plimsoll(*flags, "--endpoint", server.endpoint, env=KEYS)
        # Of multipart this server knows nothing either: it is measured as failed, and its objects go.
        objects = [k for k in server.objects if not k.endswith(".plimsoll")]
        assert objects == [], objects[:5]
        if code == "InvalidArgument":
            assert left(result) and "unfinished uploads" in left(result)[0]["text"], result.err


def keep(h):
    """Says that it deletes, and does not."""
    if "delete" in h.query:
        h.say(200, "<DeleteResult/>")
        return True
    return False


def deny(h):
    """Refuses to delete every object whose number ends in 7."""
    if "delete" not in h.query:
        return False
    keys = [k.decode() for k in re.findall(rb"<Key>(.*?)</Key>", h.body)]
    stay = [k for k in keys if re.search(r"7$", k)]
    for k in keys:
        if k not in stay:
            h.s3.objects.pop(k, None)
    rows = "".join(f"<Error><Key>{k}</Key><Code>AccessDenied</Code><Message>locked</Message></Error>" for k in stay)
    h.say(200, f"<DeleteResult>{rows}</DeleteResult>")
    return True


def test_what_cannot_be_removed_is_gone_round_and_told(plimsoll):
    with OddS3(deny, page=10) as server:
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS)
        stayed = [k for k in server.objects if not k.endswith(".plimsoll")]
        assert stayed and all(k.endswith("7") for k in stayed), stayed
        found = left(result)
        assert len(found) == 1 and f"{len(stayed)} objects cannot be removed" in found[0]["text"], found
        assert "locked" in found[0]["text"] and "plimsoll cleanup" in found[0]["text"]
        assert result.code in (6, 3) and (result.code == 3) == (not result.summary["valid"]), result.err
        assert "left behind" in result.err
        again = plimsoll("cleanup", "last", env=KEYS)
        assert again.code == 6 and "cannot be removed" in again.err, (again.code, again.err)
        server.odd = None
        assert plimsoll("cleanup", "last", env=KEYS).code == 0
        assert server.objects == {}


def test_a_run_with_an_answer_that_left_something_ends_with_6(plimsoll):
    """The answer comes first: on a machine that is too busy for one it is 3."""
    with OddS3(deny) as server:
        flags = ["object", "put", "--bucket", "b", "--size", "1KiB", "--warmup", "1s", "--duration", "5s", "--concurrency", "2", "--json",
                 "--endpoint", server.endpoint]
        result = plimsoll(*flags, env=KEYS)
        assert left(result) and result.code == (6 if result.summary["answered"] else 3), result.err


def test_a_refused_option_leaves_no_bucket(plimsoll, minio):
    name = f"refused-{uuid.uuid4().hex[:8]}"
    result = plimsoll("object", "put", "--endpoint", minio.endpoint, "--bucket", name, "--create-bucket", "--storage-class", "NO_SUCH",
                      *PUT[4:], server=minio)
    assert (result.code, result.out) == (2, ""), result.err
    assert name not in [b["Name"] for b in minio.client().list_buckets()["Buckets"]]
    assert "left behind" not in result.err


# Buckets that keep versions.

def versions(client, bucket):
    out = []
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for kind in "Versions", "DeleteMarkers":
            out += [(kind, v["Key"], v["VersionId"]) for v in page.get(kind, [])]
    return sorted(out)


@pytest.fixture
def versioned(minio):
    made = []

    def make(status="Enabled", lock=None):
        client = minio.client()
        name = f"versions-{uuid.uuid4().hex[:8]}"
        client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=bool(lock))
        if not lock:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        # Other people's: versions, a delete marker, and a prefix that begins like ours.
        for i in range(3):
            client.put_object(Bucket=name, Key="theirs", Body=f"{i}".encode())
        client.put_object(Bucket=name, Key="plimsoll/gone", Body=b"x")
        client.delete_object(Bucket=name, Key="plimsoll/gone")
        client.put_object(Bucket=name, Key="plimsoll-theirs", Body=b"x")
        if status == "Suspended":
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Suspended"})
            client.put_object(Bucket=name, Key="theirs", Body=b"null version")
        if lock:
            client.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration={
                "ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": lock}})
        made.append((client, name))
        return client, name

    yield make
    for client, name in made:
        for _, key, version in versions(client, name):
            client.delete_object(Bucket=name, Key=key, VersionId=version, BypassGovernanceRetention=True)
        client.delete_bucket(Bucket=name)


def mixed(minio, name):
    return ["object", "mixed", "--mix", "put=3,get=2,delete=2,multipart=1", "--part-size", "5MiB", "--objects", "30", "--endpoint", minio.endpoint,
            "--bucket", name, "--size", "4KiB", "--max-ops", "200", "--warmup", "0s", "--concurrency", "4", "--json"]


@pytest.mark.parametrize("status", ["Enabled", "Suspended"])
def test_our_versions_and_markers_go_and_nothing_else(plimsoll, minio, versioned, status):
    client, name = versioned(status)
    before = versions(client, name)
    result = plimsoll(*mixed(minio, name), server=minio)
    assert result.code in (0, 3) and not left(result), (result.code, result.err)
    assert "keeps versions" in result.err and status in result.err, result.err
    assert any(f["code"] == "F15" for f in result.summary["findings"])
    assert versions(client, name) == before


def test_a_killed_run_in_a_versioned_bucket_is_cleaned_later(plimsoll, background, minio, versioned):
    client, name = versioned()
    before = versions(client, name)
    run = background("object", "mixed", "--mix", "put=3,delete=1", "--objects", "50", "--endpoint", minio.endpoint, "--bucket", name,
                     "--size", "4KiB", "--duration", "60s", server=minio)
    deadline = time.time() + 30
    while len(versions(client, name)) < len(before) + 60 and time.time() < deadline:
        time.sleep(0.2)
    run.kill()
    run.wait()
    # Somebody deletes our marker in the plain way: its version is still ours.
    marker = next(k for _, k, _ in versions(client, name) if k.endswith(".plimsoll"))
    client.delete_object(Bucket=name, Key=marker)
    done = plimsoll("cleanup", "last", server=minio)
    assert done.code == 0, done.err
    assert versions(client, name) == before


def test_a_prefix_with_versions_of_deleted_objects_is_refused(plimsoll, minio, versioned):
    client, name = versioned()
    client.put_object(Bucket=name, Key="mine/old", Body=b"x")
    client.delete_object(Bucket=name, Key="mine/old")
    before = versions(client, name)
    result = plimsoll(*PUT[:2], "--endpoint", minio.endpoint, "--bucket", name, "--prefix", "mine", *PUT[4:], server=minio)
    assert (result.code, result.out) == (2, "") and "mine/old" in result.err, result.err
    assert versions(client, name) == before


def test_locked_objects_are_told_before_the_run_and_in_its_result(plimsoll, minio, versioned):
    client, name = versioned(lock={"Mode": "GOVERNANCE", "Days": 1})
    before = versions(client, name)
    result = plimsoll(*PUT[:2], "--endpoint", minio.endpoint, "--bucket", name, *PUT[4:], server=minio)
    said = result.err.splitlines()
    warned = next(i for i, line in enumerate(said) if "cannot be removed before" in line)
    ended = next(i for i, line in enumerate(said) if "left behind" in line)
    assert warned < ended and "1 days, GOVERNANCE" in said[warned], result.err
    assert left(result) and "60 versions cannot be removed" in left(result)[0]["text"], result.summary["findings"]
    assert result.code in (3, 6)
    after = versions(client, name)
    assert len(after) == len(before) + 61 and set(before) <= set(after), "no delete marker was put on what is locked"
    assert plimsoll("cleanup", "last", server=minio).code == 6


def test_a_legal_hold_on_one_object_keeps_only_that(plimsoll, background, minio, versioned):
    client, name = versioned(lock={"Mode": "GOVERNANCE", "Days": 1})
    client.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})
    before = versions(client, name)
    kept = plimsoll(*PUT[:2], "--keep", "--endpoint", minio.endpoint, "--bucket", name, *PUT[4:], server=minio)
    held = next(v for v in versions(client, name) if v not in before and not v[1].endswith(".plimsoll"))
    client.put_object_legal_hold(Bucket=name, Key=held[1], VersionId=held[2], LegalHold={"Status": "ON"})
    done = plimsoll("cleanup", "last", "--kept", server=minio)
    assert done.code == 6 and held[1] in done.err, (done.code, done.err, kept.err)
    rest = [v for v in versions(client, name) if v not in before and not v[1].endswith(".plimsoll")]
    assert rest == [held], rest
    client.put_object_legal_hold(Bucket=name, Key=held[1], VersionId=held[2], LegalHold={"Status": "OFF"})
    assert plimsoll("cleanup", "last", server=minio).code == 0
    assert versions(client, name) == before


def test_versitygw_without_versions_is_cleaned(plimsoll, versitygw):
    b = new_bucket(versitygw)
    b.client.put_object(Bucket=b.name, Key="theirs", Body=b"x")
    result = plimsoll(*mixed(versitygw, b.name), server=versitygw)
    assert not left(result), result.err
    assert b.keys() == ["theirs"]
    drop_bucket(b)


# Signals, and what is heard meanwhile.

def slow(seconds):
    def odd(h):
        if "delete" in h.query:
            time.sleep(seconds)
        return False

    return odd


def start(server, runs, *flags, **kw):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))} | KEYS
    return subprocess.Popen([BIN, *flags, "--endpoint", server.endpoint, "--runs-dir", str(runs)], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def test_cleaning_up_is_heard_of(tmp_path):
    with OddS3(slow(0.8), page=10) as server:
        run = start(server, tmp_path, *PUT)
        out, err = run.communicate(timeout=60)
        lines = [line for line in err.splitlines() if line.startswith("cleaning up")]
        assert lines[0] == "cleaning up" and any(re.match(r"cleaning up: \d+ removed", x) for x in lines[1:]), err


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_a_signal_ends_a_run_in_order(tmp_path, name):
    with OddS3() as server:
        # However this test was started itself: under nohup a SIGHUP stays ignored, and that is tested by the next one.
        run = start(server, tmp_path, *PUT[:6], "--warmup", "0s", "--duration", "60s", "--concurrency", "2", "--json",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        while sum(1 for s in server.seen if s[0] == "PUT") < 50:
            time.sleep(0.05)
        run.send_signal(getattr(signal, name))
        out, err = run.communicate(timeout=30)
        assert run.returncode == 130 and json.loads(out)["workloads"][0]["outcomes"]["ok"] >= 40, err
        assert server.objects == {}


def test_nohup_means_what_it_says(tmp_path):
    with OddS3() as server:
        run = start(server, tmp_path, *PUT[:6], "--duration", "3s", "--concurrency", "2", "--json",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while sum(1 for s in server.seen if s[0] == "PUT") < 20:
            time.sleep(0.05)
        run.send_signal(signal.SIGHUP)
        run.communicate(timeout=30)
        assert run.returncode != 130


def test_a_second_ctrl_c_while_it_cleans_up_ends_that_and_not_the_result(tmp_path):
    with OddS3(slow(0.5), page=5) as server:
        run = start(server, tmp_path, *PUT[:6], "--max-ops", "400", "--concurrency", "4", "--warmup", "0s", "--json")
        while not any("delete" in s[2] for s in server.seen):
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        began = time.time()
        out, err = run.communicate(timeout=30)
        # It was measured to its end: the code is that of the result.
        assert run.returncode in (3, 5, 6) and time.time() - began < 8, err
        found = [f for f in json.loads(out)["findings"] if f["code"] == "F14"]
        assert found and "stopped by Ctrl-C" in found[0]["text"], err
        server.odd = None
        again = subprocess.run([BIN, "cleanup", "last", "--runs-dir", str(tmp_path)], env=os.environ | KEYS, capture_output=True, text=True)
        assert again.returncode == 0 and server.objects == {}, again.stderr


def test_a_listing_of_keys_like_ours_that_does_not_end_is_not_followed(plimsoll):
    pages = iter(range(10**6))

    def odd(h):
        # Once the run has put its objects its listing goes on for ever.
        if h.command != "GET" or "list-type" not in h.query or len(h.s3.objects) < 60:
            return False
        page, prefix = next(pages), h.query["prefix"]
        rows = "".join(f"<Contents><Key>{prefix}1KiB/{page:08x}{n:08x}</Key><Size>1</Size></Contents>" for n in range(1000))
        token = f"<NextContinuationToken>{page}</NextContinuationToken>"
        h.say(200, f"<ListBucketResult><IsTruncated>true</IsTruncated>{token}{rows}</ListBucketResult>")
        return True

    with OddS3(odd) as server:
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS, timeout=60)
        found = left(result)
        assert found and "the run sent 60 objects at most" in found[0]["text"], (found, result.err)
        again = plimsoll("cleanup", "last", env=KEYS, timeout=60)
        assert again.code == 6 and "the run sent 60 objects at most" in again.err, again
        server.odd = None
        assert plimsoll("cleanup", "last", env=KEYS).code == 0 and server.objects == {}


def test_a_first_ctrl_c_that_meets_the_cleanup_ends_it_within_seconds(tmp_path):
    with OddS3(slow(0.5), page=5) as server:
        run = start(server, tmp_path, *PUT[:6], "--max-ops", "400", "--concurrency", "4", "--warmup", "0s", "--json")
        while not any("delete" in s[2] for s in server.seen):
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        began = time.time()
        out, err = run.communicate(timeout=60)
        assert time.time() - began < 12, err
        found = [f for f in json.loads(out)["findings"] if f["code"] == "F14"]
        assert found and "stopped by Ctrl-C" in found[0]["text"], err


def refuses(h):
    h.say(429, "<Error><Code>SlowDown</Code><Message>later</Message></Error>", [("Retry-After", "10")])


def hangs(h):
    time.sleep(120)


@pytest.mark.parametrize("does", [refuses, hangs])
def test_a_ctrl_c_that_meets_the_cleanup_does_not_wait_for_the_server(tmp_path, does):
    """Six attempts with the pauses that were asked for, or the whole time-out: 24 to 48 s, whatever the signal said."""
    def odd(h):
        if not ("delete" in h.query or h.command == "DELETE"):
            return False
        does(h)
        return True

    def told_to_stop(run):
        asked = len(server.seen)
        while not any("delete" in s[2] or s[0] == "DELETE" for s in server.seen[asked:]):
            time.sleep(0.02)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        began = time.time()
        out, err = run.communicate(timeout=90)
        assert time.time() - began < 9, err
        return out, err

    with OddS3(odd) as server:
        out, err = told_to_stop(start(server, tmp_path, *PUT))
        found = [f for f in json.loads(out)["findings"] if f["code"] == "F14"]
        assert found and "stopped by Ctrl-C" in found[0]["text"], err
        again = subprocess.Popen([BIN, "cleanup", "last", "--runs-dir", str(tmp_path)], env=os.environ | KEYS, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = told_to_stop(again)
        assert again.returncode == 6 and "stopped by Ctrl-C" in err, err
        server.odd = None
        last = subprocess.run([BIN, "cleanup", "last", "--runs-dir", str(tmp_path)], env=os.environ | KEYS, capture_output=True, text=True)
        assert last.returncode == 0 and server.objects == {}, last.stderr


def test_a_closed_stderr_does_not_end_a_run(tmp_path):
    with OddS3() as server:
        run = start(server, tmp_path, *PUT)
        run.stderr.close()
        out = run.stdout.read()
        run.wait(timeout=30)
        assert json.loads(out)["workloads"][0]["outcomes"]["ok"] == 60 and server.objects == {}


@pytest.mark.parametrize("what", ["--html"])
def test_a_result_is_printed_even_if_its_file_cannot_be_written(plimsoll, tmp_path, what):
    """The directory is there when the run begins, and gone when it ends."""
    place = tmp_path / "gone"
    place.mkdir()

    def odd(h):
        if h.command == "PUT" and place.exists():
            place.rmdir()
        return False

    with OddS3(odd) as server:
        result = plimsoll(*PUT, what, str(place / "report.html"), "--endpoint", server.endpoint, env=KEYS)
        # What was measured counts, and its code; one that would be 0 says that something is missing.
        assert result.summary["workloads"][0]["outcomes"]["ok"] == 60, result.err
        assert result.code == (code_of(result.summary) or 6), (result.code, result.err)
        assert "report.html" in result.err and server.objects == {}


# Servers that mean harm.

def listing(rows, truncated=False, token=""):
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    keys = "".join(f"<Contents><Key>{k}</Key><Size>1</Size></Contents>" for k in rows)
    return f"<ListBucketResult><IsTruncated>{str(truncated).lower()}</IsTruncated>{more}{keys}</ListBucketResult>"


def lie(answer):
    """Lists the truth until something was measured, then what `answer(handler)` says."""

    def odd(h):
        if "list-type" not in h.query or "encoding-type" not in h.query or len(h.s3.objects) < 30:
            return False
        h.say(200, answer(h))
        return True

    return odd


def own_prefix(h):
    return h.query["prefix"]


@pytest.mark.parametrize("answer,told", [
    (lambda h: listing(["theirs", "plimsoll"]), "not under"),
    (lambda h: listing([own_prefix(h) + "1", "theirs"]), "not under"),
    (lambda h: listing([own_prefix(h) + ".plimsoll"], True, "again"), "its listing does not end"),
    (lambda h: listing([], True, uuid.uuid4().hex), "its listing does not end"),
], ids=["foreign", "mixed", "same-token", "new-tokens"])
def test_a_listing_that_lies_removes_nothing_of_others(plimsoll, answer, told):
    with OddS3(lie(answer)) as server:
        server.objects |= {"theirs": b"x", "plimsoll": b"x"}
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS)
        assert {"theirs", "plimsoll"} <= set(server.objects)
        assert left(result) and told in left(result)[0]["text"], (result.err, left(result))
        deleted = [s for s in server.seen if s[0] == "DELETE" and not s[1].startswith("plimsoll/")]
        assert deleted == []
        assert plimsoll("runs", "list").code == 0


def drip(h):
    """An answer without an end, a header line at a time, each soon enough."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\n")
    try:
        for i in range(600):
            h.wfile.write(f"x-drip-{i % 50}: 1\r\n".encode() if i < 50 else b"x")
            h.wfile.flush()
            time.sleep(0.2)
    except OSError:
        pass
    return True


def flood(h):
    """A body that does not end."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        while True:
            h.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
    except OSError:
        return True


def heads(h):
    """A header of a megabyte."""
    try:
        h.wfile.write(b"HTTP/1.1 200 OK\r\nx: " + b"y" * (1 << 20) + b"\r\n\r\n")
    except OSError:
        pass
    return True


@pytest.mark.parametrize("odd", [drip, flood, heads])
def test_an_answer_without_an_end_ends(plimsoll, odd):
    with OddS3(odd) as server:
        began = time.time()
        result = plimsoll(*PUT, "--timeout", "1s", "--endpoint", server.endpoint, env=KEYS)
        assert (result.code, result.out) == (2, "") and "fix: " in result.err, result.err
        assert time.time() - began < 40 and len(result.err) < 2000
