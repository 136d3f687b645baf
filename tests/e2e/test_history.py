"""Runs after the run: found again among many, handed on as one file, and given to other programs, which read what was meant."""

import csv
import io
import json
import re
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.parse
import urllib.request

import duckdb
import jsonschema
import pandas
import pytest
from conftest import ROOT, end

PLAN = ROOT / "plans" / "sim.toml"
SWEEP = ROOT / "plans" / "sim-sweep.toml"
# https://bencher.dev/bmf.json
BMF = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {n: {"type": "number"} for n in ("value", "lower_value", "upper_value")},
                    "required": ["value"],
                }
            },
        }
    },
}


@pytest.fixture
def two(plimsoll):
    """A run of one line and a sweep, with labels; their ids, oldest first."""
    plimsoll("run", PLAN, "--label", "tier=standard", "-q", check=True)
    plimsoll("run", SWEEP, "--label", "tier=premium", "-q", check=True)
    listed = json.loads(plimsoll("runs", "list", "--json", check=True).out)
    return [r["id"] for r in reversed(listed)]


def ids(result):
    return [r["id"] for r in json.loads(result.ok().out)]


def test_runs_are_found_by_label_op_time_and_how_they_stand(plimsoll, two):
    one, sweep = two
    assert ids(plimsoll("runs", "list", "--json", "--label", "tier=standard")) == [one]
    assert ids(plimsoll("runs", "list", "--json", "--label", "tier=stand")) == []
    assert ids(plimsoll("runs", "list", "--json", "--op", "get,put")) == [sweep, one]
    assert ids(plimsoll("runs", "list", "--json", "--since", "1h")) == [sweep, one]
    assert ids(plimsoll("runs", "list", "--json", "--until", "2020-01-01")) == []
    assert ids(plimsoll("runs", "list", "--json", "--target", "sim", "--label", "tier=premium")) == [sweep]
    assert ids(plimsoll("runs", "list", "--json", "--validity", "running,killed")) == []
    assert len(ids(plimsoll("runs", "list", "--json", "--validity", "valid,partly"))) == 2
    rows = list(csv.DictReader(io.StringIO(plimsoll("runs", "list", "--csv", check=True).out)))
    assert [r["run"] for r in rows] == [sweep, one] and rows[1]["label:tier"] == "standard"
    shown = plimsoll("runs", "list", "--label", "tier=none", check=True)
    assert shown.out == "" and "no such runs" in shown.err
    for bad in (["--since", "yesterday"], ["--label", "tier"], ["--op", "gett"], ["--validity", "good"]):
        assert plimsoll("runs", "list", *bad).code == 2, bad


def test_the_index_is_a_cache_and_nothing_else(plimsoll, two, runs, tmp_path):
    cache = tmp_path / "cache" / "plimsoll"
    [file] = [f for f in cache.iterdir() if f.suffix == ".sqlite"]
    file.write_bytes(b"damaged" * 1000)
    assert ids(plimsoll("runs", "list", "--json")) == two[::-1]
    assert file.read_bytes().startswith(b"SQLite format 3")
    # Where there is no place for it, every run is read, and that is told.
    shutil.rmtree(cache)
    cache.write_text("in the way")
    told = plimsoll("runs", "list", "--json", check=True)
    assert ids(told) == two[::-1] and "read anew" in told.err
    # A run that is gone, and one that was brought along, are known at once.
    cache.unlink()
    shutil.copytree(runs / two[0], runs / "brought-along")
    shutil.rmtree(runs / two[1])
    assert set(ids(plimsoll("runs", "list", "--json"))) == {two[0], "brought-along"}


@pytest.mark.parametrize("what", ["runs", "lines", "slices", "latency"])
def test_duckdb_and_pandas_read_what_is_exported(plimsoll, two, tmp_path, what):
    made = {}
    for form in ("csv", "jsonl"):
        made[form] = tmp_path / f"{what}.{form}"
        plimsoll("runs", "export", "--what", what, "--format", form, "-o", made[form], check=True)
    read = {
        "pandas csv": pandas.read_csv(made["csv"]),
        "pandas jsonl": pandas.read_json(made["jsonl"], lines=True),
        "duckdb csv": duckdb.sql(f"SELECT * FROM read_csv('{made['csv']}', header = true)").df(),
        "duckdb jsonl": duckdb.sql(f"SELECT * FROM read_json('{made['jsonl']}', format = 'newline_delimited')").df(),
    }
    columns = list(read["pandas csv"].columns)
    for name, frame in read.items():
        assert list(frame.columns) == columns, name
        assert set(frame["run"]) == set(two), name
        assert len(frame) == len(read["pandas csv"]), name
    # Figures say their unit, and are the summary's.
    numbers = [c for c in columns if read["pandas jsonl"][c].dtype == float]
    plain = re.compile(r"_(s|ns|bytes|ops|per_s|low|high|n_eff|gib|fraction|count)$|^(line|stage|count)$|label:")
    assert all(plain.search(c) for c in numbers), numbers
    one = plimsoll("report", two[0], "--json", check=True).summary["workloads"][0]
    mine = read["duckdb jsonl"][read["duckdb jsonl"]["run"] == two[0]]
    if what == "lines":
        row = mine.iloc[0]
        assert row["ops_per_s"] == one["ops_per_s"]["value"] and row["ops_per_s_low"] == one["ops_per_s"]["low"]
        assert row["response_p99_ns"] == one["latency_ns"]["response"]["p99"]
    if what == "slices":
        window = mine[mine["in_window"]]
        assert window["ok_ops"].sum() == one["outcomes"]["ok"]
        assert window["length_s"].sum() == pytest.approx(one["window_s"])
    if what == "latency":
        buckets = mine[mine["clock"] == "response"].set_index("le_ns")["count"]
        assert buckets.is_monotonic_increasing and buckets.iloc[-1] == one["latency_ns"]["response"]["count"]
        p99 = one["latency_ns"]["response"]["p99"]
        bound = min(b for b in buckets.index[:-1] if b >= p99 * 1.001)
        assert buckets[bound] >= 0.99 * buckets.iloc[-1]


def test_an_export_overwrites_nothing(plimsoll, two, tmp_path):
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("a,b\n")
    refused = plimsoll("runs", "export", "-o", theirs)
    assert refused.code == 2 and "fix:" in refused.err and theirs.read_text() == "a,b\n"
    named = plimsoll("runs", "export", two[0], "--label", "tier=premium")
    assert named.code == 2 and "fix:" in named.err


def test_a_packed_run_is_the_run(plimsoll, two, runs, tmp_path):
    one, _ = two
    packed = tmp_path / "one.plim"
    plimsoll("runs", "pack", one, "-o", packed, check=True)
    again = plimsoll("runs", "pack", one, "-o", packed)
    assert again.code == 2 and "fix:" in again.err
    # Every tar opens it.
    done = subprocess.run(["tar", "--zstd", "-tf", packed], capture_output=True, text=True, check=True)
    assert f"{one}/plan.toml" in done.stdout.split()
    # It is read where it is, and nothing of it stays.
    before = sorted(p.name for p in runs.iterdir())
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    of = {"TMPDIR": str(temporary)}
    shown = plimsoll("report", packed, "--json", env=of, check=True).summary
    assert shown == plimsoll("report", one, "--json", check=True).summary
    assert plimsoll("compare", packed, "--", two[1], env=of).code in (2, 3, 5)
    assert sorted(p.name for p in runs.iterdir()) == before and not list(temporary.iterdir())
    # It never takes the place of what is there.
    refused = plimsoll("runs", "unpack", packed)
    assert refused.code == 2 and "is there already" in refused.err and "fix:" in refused.err
    elsewhere = {"PLIMSOLL_RUNS": str(tmp_path / "elsewhere")}
    plimsoll("import", packed, env=elsewhere, check=True)
    assert ids(plimsoll("runs", "list", "--json", env=elsewhere)) == [one]
    plimsoll("runs", "rm", one, env=elsewhere, check=True)
    told = plimsoll("runs", "rm", packed)
    assert told.code == 2 and "runs unpack" in told.err
    labelled = plimsoll("import", packed, "--label", "a=b", env=elsewhere)
    assert labelled.code == 2 and "sealed" in labelled.err


def test_a_packed_run_that_was_tampered_with_is_refused(plimsoll, two, runs, tmp_path):
    packed = tmp_path / "one.plim"
    plimsoll("runs", "pack", two[0], "-o", packed, check=True)
    tar = tmp_path / "one.tar"
    subprocess.run(["zstd", "-q", "-d", packed, "-o", tar], check=True)
    evil = tmp_path / "evil.tar"
    with tarfile.open(tar) as old, tarfile.open(evil, "w", format=tarfile.USTAR_FORMAT) as new:
        for member in old:
            content = old.extractfile(member).read()
            if member.name.endswith("env.json"):
                content = content.replace(b"plimsoll run", b"plimsoll RUN")
            new.addfile(member, io.BytesIO(content))
    subprocess.run(["zstd", "-q", evil, "-o", tmp_path / "evil.plim"], check=True)
    elsewhere = tmp_path / "elsewhere"
    for bad in ("evil.plim", "cut.plim"):
        (tmp_path / "cut.plim").write_bytes(packed.read_bytes()[:-20])
        told = plimsoll("runs", "unpack", tmp_path / bad, env={"PLIMSOLL_RUNS": str(elsewhere)})
        assert told.code == 2 and "fix:" in told.err, told
        assert not elsewhere.exists() or not list(elsewhere.iterdir())
    # And what was changed here is not handed on.
    env = runs / two[0] / "env.json"
    env.write_text(env.read_text().replace("plimsoll run", "plimsoll RUN"))
    told = plimsoll("runs", "pack", two[0], "-o", tmp_path / "changed.plim")
    assert told.code == 2 and "changed since it was sealed" in told.err
    assert not (tmp_path / "changed.plim").exists()


def test_metrics_for_bencher_are_its_format_and_hold_no_void_line(plimsoll, two, tmp_path):
    file = tmp_path / "bmf.json"
    shown = plimsoll("report", two[0], "--json", "--bmf", file, check=True).summary
    metrics = json.loads(file.read_text())
    jsonschema.validate(metrics, BMF)
    [(name, measures)] = metrics.items()
    rate = shown["workloads"][0]["ops_per_s"]
    assert measures["throughput"] == {
        "value": rate["value"], "lower_value": rate["low"], "upper_value": rate["high"],
    }
    assert name.startswith("sim: ")
    exported = plimsoll("runs", "export", "--format", "bmf", check=True)
    jsonschema.validate(json.loads(exported.out), BMF)
    # More failed than may: nothing of it is a metric.
    plan = tmp_path / "failing.toml"
    plan.write_text(PLAN.read_text().replace("[[stage]]", "error_rate = 0.5\n[[stage]]", 1))
    failed = plimsoll("run", plan, "-q", "--bmf", tmp_path / "void.json")
    assert failed.code == 3 and "void" in failed.err, failed
    assert json.loads((tmp_path / "void.json").read_text()) == {}


def test_a_job_of_ci_gets_a_line_and_a_page(plimsoll, two, tmp_path):
    line = plimsoll("report", two[0], "--oneline", check=True).out
    assert line.count("\n") == 1 and two[0] in line and line.startswith("VALID"), line
    page, job = tmp_path / "summary.md", tmp_path / "job.md"
    job.write_text("an earlier step\n")
    plimsoll("report", two[0], "-q", "--summary-md", page, "--step-summary",
             env={"GITHUB_STEP_SUMMARY": str(job)}, check=True)
    text = page.read_text()
    assert text.startswith("<!-- made by plimsoll -->\n### VALID") and "<details>" in text, text
    assert job.read_text() == "an earlier step\n" + text
    # Only where it was asked for, and not in vain.
    before = job.read_text()
    plimsoll("report", two[0], env={"GITHUB_STEP_SUMMARY": str(job)}, check=True)
    assert job.read_text() == before
    began = time.monotonic()
    none = plimsoll("run", PLAN, "--step-summary", env={"GITHUB_STEP_SUMMARY": ""})
    assert none.code == 2 and "GITHUB_STEP_SUMMARY" in none.err and time.monotonic() - began < 20
    assert len(ids(plimsoll("runs", "list", "--json"))) == 2, "nothing was measured in vain"


def test_the_documented_verdict_is_what_is_printed(plimsoll):
    """docs/verdict.md shows a run on a simulated clock: the same for everybody but for its name."""
    page = (ROOT / "docs" / "verdict.md").read_text()
    shown = page.split("```text\n")[1].split("```")[0]
    printed = plimsoll("run", ROOT / "plans" / "sim-bucket.toml", "-q").out
    assert re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", printed).strip() == shown.strip()


@pytest.fixture
def influx(tmp_path):
    """Debian's InfluxDB on a free port, with a database."""
    if not shutil.which("influxd"):
        pytest.skip("influxdb is not installed")
    ports = []
    for _ in range(2):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
    config = tmp_path / "influx.conf"
    config.write_text(f"""reporting-disabled = true
bind-address = "127.0.0.1:{ports[0]}"
[meta]
dir = "{tmp_path}/influx/meta"
[data]
dir = "{tmp_path}/influx/data"
wal-dir = "{tmp_path}/influx/wal"
[http]
bind-address = "127.0.0.1:{ports[1]}"
""")
    server = subprocess.Popen(["influxd", "-config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{ports[1]}"

    def ask(query):
        data = urllib.parse.urlencode({"db": "p", "q": query}).encode()
        with urllib.request.urlopen(f"{base}/query", data, timeout=10) as answer:
            return json.load(answer)["results"][0]

    deadline = time.monotonic() + 60
    while True:
        try:
            ask("CREATE DATABASE p")
            break
        except OSError:
            assert server.poll() is None and time.monotonic() < deadline, "influxd did not start"
            time.sleep(0.2)
    yield base, ask
    end(server)


def values(result):
    [series] = result["series"]
    return [dict(zip(series["columns"], row)) for row in series["values"]]


def test_influxdb_takes_the_points_and_has_the_summarys_figures(plimsoll, two, influx, tmp_path):
    base, ask = influx
    url = f"{base}/write?db=p"
    told = plimsoll("report", two[0], "-q", "--json", "--influx", url, check=True)
    assert "points written" in told.err
    line = told.summary["workloads"][0]
    [got] = values(ask(f"SELECT * FROM plimsoll_line WHERE run = '{two[0]}'"))
    assert got["ops_per_s"] == line["ops_per_s"]["value"] and got["ok_ops"] == line["outcomes"]["ok"]
    assert got["label_tier"] == "standard" and got["valid"] == "true"
    [all_] = values(ask("SELECT ops FROM plimsoll_latency WHERE clock = 'response' AND le_ns = '+Inf'"))
    assert all_["ops"] == line["latency_ns"]["response"]["count"]
    keys = ask("SHOW FIELD KEYS FROM plimsoll_slice")
    names = [v[0] for v in keys["series"][0]["values"]]
    assert "ok_ops" in names and not [n for n in names if "p9" in n or "p5" in n], "no percentile to be averaged"
    count = "SELECT sum(ok_ops) FROM plimsoll_slice"
    [before] = values(ask(count))
    # Written again, points replace themselves.
    plimsoll("report", two[0], "-q", "--influx", url, check=True)
    [after] = values(ask(count))
    assert before == after
    # The file is the same points.
    file = tmp_path / "points.lp"
    plimsoll("report", two[0], "-q", "--influx", file, check=True)
    lines = [x for x in file.read_text().splitlines() if not x.startswith("#")]
    assert f"{len(lines)} points written" in told.err
    # A database that is not there is told, with what is kept; keys are not for addresses.
    none = plimsoll("run", PLAN, "-q", "--influx", f"{base}/write?db=none")
    assert none.code == 6 and "not found" in none.err and "The run itself is stored" in none.err, none
    secret = plimsoll("run", PLAN, "--influx", f"{base}/write?db=p&u=me&p=geheim")
    assert secret.code == 2 and "geheim" not in secret.err and "INFLUX_TOKEN" in secret.err
