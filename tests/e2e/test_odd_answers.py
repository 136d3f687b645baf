"""Answers that lie, trickle or never end, and things that are no storage: each is told as what it is, and nothing waits for ever."""

import json
import os
import signal
import time

import pytest
from conftest import Server, wait_until
from odd_s3 import OddS3

KEYS = ("embedded", "embedded-secret")


def at(s3):
    return Server("odd", s3.endpoint, *KEYS, None, None, None)


def flags(s3):
    return ["--endpoint", s3.endpoint, "--bucket", "b", "--size", "1KiB", "--concurrency", "4", "--warmup", "0s", "--json"]


def is_data(h):
    return h.key and not h.key.split("/")[-1].startswith(".plimsoll")


def found(summary, code):
    return [f for f in summary["findings"] if f["code"] == code]


def test_an_error_under_status_200_is_no_put(plimsoll):
    def odd(h):
        if h.command == "PUT" and is_data(h):
            h.fail(200, "InternalError")
            return True

    with OddS3(odd) as s3:
        done = plimsoll("object", "put", *flags(s3), "--duration", "2s", server=at(s3))
    assert done.code == 3 and found(done.summary, "V01"), done.err
    w = done.summary["workloads"][0]
    assert not w["outcomes"].get("ok") and w["outcomes"]["http_5xx"] > 10, w["outcomes"]
    # Wrong from the first to the last: no rate is there that an outage could be held against.
    assert not found(done.summary, "F60") and "outage" not in done.summary["verdict"], done.summary["verdict"]


@pytest.mark.parametrize("how", ["endless", "long"])
def test_a_body_that_goes_on_is_wrong_at_once(plimsoll, how):
    def odd(h):
        if h.command != "GET" or not is_data(h):
            return False
        h.send_response(200)
        if how == "long":
            h.send_header("Content-Length", "2048")
            h.end_headers()
            h.wfile.write(b"x" * 2048)
            return True
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        try:
            while True:
                h.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
        except OSError:
            h.close_connection = True
        return True

    with OddS3(odd) as s3:
        done = plimsoll("object", "get", *flags(s3), "--objects", "20", "--duration", "2s", "--timeout", "20s", server=at(s3))
    w = done.summary["workloads"][0]
    assert done.code == 3 and w["outcomes"].get("protocol", 0) > 10, (w["outcomes"], done.err)
    assert not w["outcomes"].get("timeout") and not w["outcomes"].get("short_body"), w["outcomes"]
    # The client closed the connections of broken answers: the server did not.
    assert not found(done.summary, "F05"), done.summary["findings"]


def test_304_is_named_by_its_status(plimsoll):
    def odd(h):
        if h.command == "GET" and is_data(h):
            h.send_response(304)
            h.end_headers()
            return True

    with OddS3(odd) as s3:
        done = plimsoll("object", "get", *flags(s3), "--objects", "20", "--duration", "2s", server=at(s3))
    assert done.summary["workloads"][0]["outcomes"].get("http_3xx", 0) > 10, done.summary["workloads"][0]["outcomes"]


def test_uploads_that_are_not_there_in_the_end_are_told(plimsoll):
    def odd(h):
        if h.command == "PUT" and is_data(h):
            h.say(200, headers=[("ETag", '"e"')])
            return True

    with OddS3(odd) as s3:
        done = plimsoll("object", "put", *flags(s3), "--duration", "2s", server=at(s3))
        assert found(done.summary, "F68"), (done.summary["findings"], done.err)
        assert not done.summary["valid"]
    with OddS3() as s3:
        done = plimsoll("object", "put", *flags(s3), "--duration", "2s", server=at(s3))
        assert not found(done.summary, "F68"), done.summary["findings"]


def test_a_listing_that_trickles_is_given_up_in_time_and_a_second_signal_ends_it(background):
    slow = []

    def odd(h):
        if h.command == "GET" and not h.key and "list-type" in h.query and len(s3.objects) > 5:
            slow.append(1)
            h.send_response(200)
            h.send_header("Content-Length", "100000000")
            h.end_headers()
            try:
                while True:
                    h.wfile.write(b" ")
                    h.wfile.flush()
                    time.sleep(0.2)
            except OSError:
                h.close_connection = True
            return True

    with OddS3(odd) as s3:
        run = background("object", "put", *flags(s3), "--duration", "2s", "--timeout", "3s", server=at(s3))
        wait_until(lambda: slow, seconds=30, what="the listing of the clean-up")
        time.sleep(4.5)
        # The time-out holds for the whole answer, not for each byte of it.
        assert len(slow) >= 2, slow
        began = time.monotonic()
        for _ in range(2):
            os.kill(run.pid, signal.SIGTERM)
            time.sleep(0.3)
        out, err = run.communicate(timeout=30)
        assert time.monotonic() - began < 4, err
        assert "began to answer but did not finish within 3s" in err, err
        assert json.loads(out)["findings"], out


def test_a_pipe_is_no_storage(plimsoll, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for more in (["--pattern", "randread"], ["--pattern", "randwrite", "--size", "1MiB"]):
        done = plimsoll("block", str(fifo), *more, "--duration", "1s")
        assert done.code == 2 and "neither a regular file nor a block device" in done.err, done.err


def test_a_region_beyond_the_end_of_a_file_is_refused(plimsoll, tmp_path):
    small = tmp_path / "precious.txt"
    small.write_bytes(b"precious\n")
    done = plimsoll("block", str(small), "--size", "1MiB", "--pattern", "randread", "--buffered", "--duration", "1s")
    assert done.code == 2 and "the region ends at 1MiB, the file at 9" in done.err, done.err
    assert small.read_bytes() == b"precious\n"


def test_a_summary_that_was_changed_is_not_believed(plimsoll, tmp_path):
    runs = str(tmp_path / "runs")
    made = plimsoll("run", "plans/sim.toml", "--json", "--runs-dir", runs).ok()
    path = tmp_path / "runs" / made.summary["id"] / "summary.json"
    summary = json.loads(path.read_text())
    first = next(w for w in summary["workloads"] if w["ops_per_s"])
    first["ops_per_s"]["value"] = 123456.0
    path.write_text(json.dumps(summary))
    for form in ([], ["--json"], ["--csv"], ["--markdown"]):
        shown = plimsoll("report", str(path.parent), *form)
        assert "123,456" not in shown.out and "123456" not in shown.out, shown.out
        assert "V23" in shown.out, (form, shown.out)
    again = plimsoll("analyze", made.summary["id"], "--runs-dir", runs, "--json")
    assert not found(json.loads(again.out), "V23"), again.out


def test_one_directory_is_not_two_drives(plimsoll, tmp_path):
    d, link = tmp_path / "d", tmp_path / "dl"
    d.mkdir()
    link.symlink_to(d)
    for other in (link, d / ".." / "d"):
        done = plimsoll("drive", str(d), str(other), "--filesize", "1MiB", "--blocksize", "1MiB")
        assert done.code == 2 and "are the same directory" in done.err, done.err
