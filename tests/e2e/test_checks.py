"""What each check says when there is nothing to check: a server that returns no checksum, ignores what it is asked for, or answers with
less than was promised; a mix in which nothing is read. Unchecked is counted and said, and makes the answer invalid where a check was asked
for. And what a server's way of writing its answers does to small reads."""

import time

import pytest
from conftest import new_bucket
from odd_s3 import OddS3

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
QUICK = ["--bucket", "b", "--size", "2KiB", "--warmup", "0s", "--concurrency", "2", "--json"]
GET = ["object", "get", "--objects", "4", "--max-ops", "40", *QUICK]
PUT = ["object", "put", "--max-ops", "40", *QUICK]
SUM = "x-amz-checksum-crc32c"


class Sums:
    """Answers as a server does that keeps checksums: those that were sent come back, with uploads and downloads."""

    def __init__(self, altered_put=False, altered_get=False, put=True, get=True):
        self.kept, self.puts, self.gets = {}, put, get
        self.altered_put, self.altered_get = altered_put, altered_get

    def __call__(self, h):
        sent = h.headers.get(SUM)
        if h.command == "PUT" and sent:
            h.s3.objects[h.key], self.kept[h.key] = h.body, sent
            headers = [("ETag", '"e"')] + ([(SUM, "AAAAAA==" if self.altered_put else sent)] if self.puts else [])
            h.say(200, headers=headers)
            return True
        if h.command == "GET" and h.key in self.kept:
            body = h.s3.objects[h.key]
            kept = "AAAAAA==" if self.altered_get else self.kept[h.key]
            headers = [(SUM, kept)] if self.get_says(h) else []
            if h.headers.get("Range"):
                first, last = map(int, h.headers["Range"].removeprefix("bytes=").split("-"))
                h.say(206, body[first:last + 1], headers)
            else:
                h.say(200, body, headers)
            return True
        return False

    def get_says(self, h):
        return self.gets


def found(result, code):
    return [f for f in result.summary["findings"] if f["code"] == code]


def run(plimsoll, odd, *args, **how):
    with OddS3(odd, **how) as server:
        return plimsoll(*args, "--endpoint", server.endpoint, env=KEYS)


def test_checksums_that_come_are_checked_and_nothing_is_said(plimsoll):
    for command in GET, PUT:
        r = run(plimsoll, Sums(), *command, "--checksum", "crc32c")
        assert not found(r, "F62") and r.workload(command[1])["outcomes"] == {"ok": 40}, r.summary["findings"]


def test_downloads_without_a_checksum_are_not_checked(plimsoll):
    r = run(plimsoll, Sums(get=False), *GET, "--checksum", "crc32c")
    (f,) = found(r, "F62")
    assert (r.code, f["name"], f["level"], f["measured"]) == (3, "unchecked", "invalid", 40), f
    assert r.workload("get")["valid"] is False


def test_a_checksum_that_does_not_hold_is_damage(plimsoll):
    r = run(plimsoll, Sums(altered_get=True), *GET, "--checksum", "crc32c")
    assert r.code == 7 and r.workload("get")["outcomes"]["checksum_mismatch"] == 40, r.summary["findings"]


def test_parts_of_objects_have_no_checksum(plimsoll):
    """The whole object's checksum comes with a part of it here: it is not that of the bytes, and no damage either."""
    r = run(plimsoll, Sums(), *GET, "--range", "512B", "--checksum", "crc32c")
    (f,) = found(r, "F62")
    assert (r.code, f["level"], f["measured"]) == (3, "invalid", 40), f
    assert r.workload("get-range")["outcomes"] == {"ok": 40}


def test_with_verify_the_bytes_are_known_all_the_same(plimsoll):
    r = run(plimsoll, Sums(get=False), *GET, "--checksum", "crc32c", "--verify")
    (f,) = found(r, "F62")
    assert (f["level"], f["measured"]) == ("qualified", 40) and "--verify compared every byte" in f["text"], f


def test_uploads_of_which_the_server_confirms_no_checksum(plimsoll):
    r = run(plimsoll, Sums(put=False), *PUT, "--checksum", "crc32c")
    (f,) = found(r, "F62")
    assert (r.code, f["name"], f["level"], f["measured"]) == (3, "unchecked_uploads", "invalid", 40), f


def test_uploads_of_which_the_server_confirms_another_checksum(plimsoll):
    r = run(plimsoll, Sums(altered_put=True), *PUT, "--checksum", "crc32c")
    w = r.workload("put")
    assert r.code == 3 and w["outcomes"]["checksum_mismatch"] == 40 and not w["outcomes"]["ok"], w["outcomes"]


@pytest.mark.parametrize("name", ["minio", "versitygw", "embedded"])
def test_real_servers_confirm_uploads(plimsoll, request, name):
    server = request.getfixturevalue(name)
    b = new_bucket(server)
    r = plimsoll("object", "put", *b.flags(), "--checksum", "crc32c", "--size", "4KiB", "--max-ops", "20", "--warmup", "0s", "--json",
                 server=server)
    assert r.workload("put")["outcomes"] == {"ok": 20} and not found(r, "F62"), r.summary["findings"]


def test_parts_without_an_etag_cannot_be_completed(plimsoll):
    def odd(h):
        if "uploads" in h.query and h.command == "POST":
            h.say(200, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
        elif "uploadId" in h.query and h.command == "PUT":
            h.say(200)
        elif "uploadId" in h.query and h.command == "POST":
            h.say(200, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
        elif "uploadId" in h.query:
            h.say(204)
        else:
            return False
        return True

    r = run(plimsoll, odd, "object", "multipart", "--bucket", "b", "--size", "6MiB", "--part-size", "5MiB", "--max-ops", "2",
            "--warmup", "0s", "--concurrency", "1", "--json")
    assert r.code == 3 and not r.workload("multipart")["outcomes"]["ok"], r.workload("multipart")["outcomes"]
    assert any("no ETag" in f["text"] + str(f.get("evidence")) for f in found(r, "V01")), r.summary["findings"]


@pytest.mark.parametrize("promised", [True, False])
def test_a_body_that_ends_early_is_no_answer(plimsoll, promised):
    """With a length in the head, and without one, when the end of the connection is the end of the body."""

    def odd(h):
        if h.command != "GET" or h.key not in h.s3.objects or h.key.endswith(".plimsoll") or h.query:
            return False
        body = h.s3.objects[h.key]
        if len(body) != 2048:
            return False
        h.send_response(200)
        if promised:
            h.send_header("Content-Length", str(len(body)))
        h.send_header("Connection", "close")
        h.end_headers()
        h.wfile.write(body[:-1])
        h.close_connection = True
        return True

    r = run(plimsoll, odd, *GET)
    assert r.code == 3 and r.workload("get")["outcomes"] == {"ok": 0, "short_body": 40}, r.workload("get")["outcomes"]


def test_a_mix_without_reads_verifies_nothing(plimsoll, embedded):
    b = new_bucket(embedded)
    mixed = ["object", "mixed", *b.flags(), "--objects", "10", "--size", "1KiB", "--duration", "1s", "--warmup", "0s", "--verify", "--json"]
    r = plimsoll(*mixed, "--mix", "put=1,delete=1", server=embedded)
    (f,) = found(r, "F64")
    assert (r.code, f["name"], f["level"]) == (3, "nothing_verified", "invalid"), f
    assert not found(plimsoll(*mixed, "--mix", "put=1,get=1", server=embedded), "F64")


def test_writes_alone_are_not_verified_yet(plimsoll, tmp_path):
    block = ["block", tmp_path / "f", "--size", "1MiB", "--buffered", "--verify", "--keep", "--warmup", "0s", "--runtime", "500ms",
             "--seed", "7", "--json"]
    r = plimsoll(*block, "--pattern", "write")
    (f,) = found(r, "F64")
    assert (f["level"], f["name"]) == ("info", "nothing_verified") and "nothing was read back" in f["text"], f
    assert not found(plimsoll(*block, "--pattern", "randread"), "F64")


SSE = [*PUT, "--sse", "AES256"]


def test_encryption_that_nobody_speaks_of(plimsoll):
    r = run(plimsoll, None, *SSE)
    (f,) = found(r, "Q11")
    assert "AES256" in f["text"] and "does not mention it" in f["text"] and "most likely the storage without it" in f["text"], f


def test_encryption_that_cannot_be_asked_about(plimsoll, canned):
    def odd(h):
        return h.command == "HEAD" and h.key and not h.say(501)

    server = canned()
    for r in run(plimsoll, odd, *SSE), plimsoll(*SSE, "--endpoint", server.endpoint, server=server):
        (f,) = found(r, "Q11")
        assert "is not known" in f["text"] and "most likely" not in f["text"], f


def says(encryption):
    def odd(h):
        if h.command == "HEAD" and h.key in h.s3.objects:
            h.say(200, h.s3.objects[h.key], headers=[("x-amz-server-side-encryption", encryption)])
            return True
        return False

    return odd


def test_encryption_that_is_confirmed_or_another(plimsoll):
    assert not found(run(plimsoll, says("AES256"), *SSE), "Q11")
    (f,) = found(run(plimsoll, says("aws:kms"), *SSE), "Q11")
    assert "says aws:kms" in f["text"], f


@pytest.mark.parametrize("listed", [False, True])
def test_a_bucket_that_may_not_be_asked_about_versions(plimsoll, listed):
    """Keys that may put, get, list and delete are usual; those that may ask about versions are not. The answers show it all the same."""

    def odd(h):
        if "versioning" in h.query or "object-lock" in h.query or "versions" in h.query and not listed:
            h.fail(403, "AccessDenied")
        elif "versions" in h.query:
            rows = "".join(f"<Version><Key>{k}</Key><VersionId>v1</VersionId></Version>" for k in sorted(h.s3.objects)
                           if k.startswith(h.query.get("prefix", "")))
            h.say(200, f"<ListVersionsResult><IsTruncated>false</IsTruncated>{rows}</ListVersionsResult>")
        elif h.command == "PUT" and h.key:
            h.s3.objects[h.key] = h.body
            h.say(200, headers=[("ETag", '"e"'), ("x-amz-version-id", "v1")])
        elif h.command == "GET" and h.key in h.s3.objects:
            h.say(200, h.s3.objects[h.key], headers=[("x-amz-version-id", "v1")])
        else:
            return False
        return True

    r = run(plimsoll, odd, *PUT)
    (f,) = found(r, "F15")
    assert "keeps versions" in f["text"] and "according to its answers" in f["text"] and "keeps versions" in r.err, f
    if listed:
        assert f["level"] == "info" and not found(r, "F14"), r.summary["findings"]
    else:
        # Whatever else is wrong with so short a run: what stays is in its result.
        (left,) = found(r, "F14")
        assert f["level"] == "qualified" and "ListBucketVersions" in left["text"] + str(left.get("evidence")) + r.err, left


SMALL = ["object", "get", "--objects", "4", "--duration", "2s", *QUICK]


def test_a_floor_of_delayed_acknowledgements_is_named(plimsoll):
    """Head and body in two writes with Nagle's algorithm on: the body waits for an acknowledgement, which the client's kernel delays."""
    r = run(plimsoll, None, *SMALL, nagle=True)
    response = r.workload("get")["latency_ns"]["response"]
    assert 38e6 < response["p50"] < 50e6, response
    (f,) = found(r, "F63")
    assert f["level"] == "qualified" and 38 <= f["measured"] < 50 and "TCP_NODELAY" in f["text"], f


def test_a_server_that_is_slow_by_itself_is_not_that_floor(plimsoll):
    """Without Nagle's algorithm; with 42 ms before an answer in one piece; and with a body that comes 60 ms late."""

    def late(before=0.0, between=0.0):
        def odd(h):
            if h.command != "GET" or len(h.s3.objects.get(h.key, b"")) != 2048:
                return False
            body = h.s3.objects[h.key]
            time.sleep(before)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            if between:
                h.wfile.write(head)
                time.sleep(between)
                h.wfile.write(body)
            else:
                h.wfile.write(head + body)
            return True

        return odd

    for odd in None, late(before=0.042), late(between=0.060):
        r = run(plimsoll, odd, *SMALL)
        assert not found(r, "F63") and r.workload("get")["outcomes"]["ok"] > 10, (r.summary["findings"], r.workload("get"))
