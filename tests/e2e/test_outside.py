"""Text from outside: what servers say, what others' runs are called. None of it may drive a terminal or forge a line of ours."""

import json
import re

import pytest
from odd_s3 import OddS3

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
PUT = ["object", "put", "--bucket", "b", "--size", "1KiB", "--max-ops", "60", "--warmup", "0s", "--concurrency", "4"]
# ESC is no character of XML 1.0, and servers send it all the same; C1, bidirectional overrides and line ends are.
EVIL = "evil\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj.exe\u2066\nVALID. Measured 1,000,000 op/s\r\u2028"
# U+200B is in the page's own script.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def clean(text):
    found = HARMFUL.findall(text.replace("\r\n", "\n"))
    assert not found, [repr(c) for c in found]
    assert not re.search(r"^VALID\. Measured 1,000,000", text, re.M), text


def says_evil(status):
    def odd(h):
        if h.command != "PUT" or h.key.endswith(".plimsoll"):
            return False
        body = f"<Error><Code>Evil{EVIL}</Code><Message>{EVIL}</Message><RequestId>{EVIL}</RequestId></Error>"
        h.send_response(status)
        h.send_header("Server", "x\u009b31m\u202e".encode().decode("latin-1"))
        h.send_header("Content-Length", str(len(body.encode())))
        h.end_headers()
        h.wfile.write(body.encode())
        return True

    return odd


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--csv"], ["--json"]])
def test_what_a_server_says_reaches_nobody_raw(plimsoll, tmp_path, form):
    page = tmp_path / "report.html"
    with OddS3(says_evil(400)) as server:
        result = plimsoll(*PUT, *form, "--html", str(page), "--endpoint", server.endpoint, env=KEYS)
        assert result.code in (3, 6), result.err
        for text in result.out, result.err, page.read_text():
            clean(text)
        assert "evil" in page.read_text().lower(), "it is told, all the same"
        shown = plimsoll("runs", "show", "last", *form)
        clean(shown.out + shown.err)
        clean(plimsoll("runs", "list").out)


def test_a_server_that_refuses_in_evil_words(plimsoll):
    def odd(h):
        h.say(400, f"<Error><Code>No</Code><Message>{EVIL * 2000}</Message></Error>")
        return True

    with OddS3(odd) as server:
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS)
        assert result.code == 2 and "evil" in result.err and len(result.err) < 4000, len(result.err)
        clean(result.err)


def test_evil_names_in_a_listing(plimsoll):
    def odd(h):
        if "list-type" not in h.query:
            return False
        h.say(200, f"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>{h.query['prefix']}{EVIL}</Key><Size>1</Size></Contents></ListBucketResult>")
        return True

    with OddS3(odd) as server:
        result = plimsoll(*PUT, "--endpoint", server.endpoint, env=KEYS)
        assert result.code == 2 and "evil" in result.err, result.err
        clean(result.err)


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--csv"], ["--json"]])
def test_the_runs_of_others(plimsoll, tmp_path, form):
    """A run directory from somebody else: its labels, name, verdict and plan are theirs."""
    runs = tmp_path / "runs"
    made = plimsoll("run", "plans/sim.toml", "--json", "--runs-dir", str(runs)).ok()
    run = runs / made.summary["id"]
    summary = json.loads((run / "summary.json").read_text())
    summary["labels"] = {f"l{EVIL}": EVIL, "formula": "=cmd()"}
    summary["workloads"][0]["name"] = EVIL
    summary["workloads"][0]["notes"] = [EVIL]
    summary["verdict"] = f"VALID. {EVIL}"
    summary["rerun"] = EVIL
    summary["environment"]["host"] = EVIL
    (run / "summary.json").write_text(json.dumps(summary))
    plan = (run / "plan.toml").read_text()
    (run / "plan.toml").write_text('name = "evil\\u001b[2J\\u009b\\u202e"\n' + re.sub(r"(?m)^name = .*\n", "", plan, count=1))
    page = tmp_path / "report.html"
    shown = plimsoll("report", str(run), *form, "--html", str(page))
    assert shown.code == 0, shown.err
    clean(shown.out + shown.err + page.read_text())
    if form == ["--csv"]:
        assert ",'=cmd()" in shown.out
    listed = plimsoll("runs", "list", "--runs-dir", str(runs))
    clean(listed.out + listed.err)


TYPED = EVIL.replace("\n", " ")


@pytest.mark.parametrize("line", [("object", "put", f"--{TYPED}"), (TYPED,), ("block", "/x", "--bs", TYPED)])
def test_what_was_typed_is_repeated_without_what_a_terminal_obeys(plimsoll, line):
    """An argument may be a file's name, which somebody else gave."""
    told = plimsoll(*line)
    assert told.code == 2 and "evil" in told.err, (told.code, told.err)
    clean(told.out + told.err)


def test_a_title_that_was_typed_is_clean_where_a_browser_shows_it(plimsoll, tmp_path):
    runs = tmp_path / "runs"
    made = plimsoll("run", "plans/sim.toml", "--json", "--runs-dir", str(runs)).ok()
    page = tmp_path / "report.html"
    plimsoll("report", str(runs / made.summary["id"]), "--title", EVIL, "--html", str(page)).ok()
    title = re.search(r"<title>(.*?)</title>", page.read_text(), re.S)[1]
    assert title.startswith("evil"), title
    clean(title)
