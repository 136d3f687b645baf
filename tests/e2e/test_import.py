"""`plimsoll import`: files of the real tools, made now where the tool is there; what they print is what is shown, and no more is claimed."""

import datetime
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import held

FIXTURES = Path(__file__).parents[2] / "crates" / "import" / "tests" / "fixtures"


def fio(path, out, **options):
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    job = {"name": "j", "filename": path, "size": "4M", "rw": "randread", "bs": "4k", "ioengine": "psync"}
    job |= {"time_based": 1, "runtime": 1} | options
    flags = [f"--{k}={v}" for k, v in job.items()]
    done = subprocess.run(["fio", "--output-format=json+", *flags], capture_output=True, check=True)
    out.write_bytes(done.stdout)
    return json.loads(done.stdout[done.stdout.index(b"{"):])


def test_a_fresh_fio_file_shows_fios_figures_and_no_interval(plimsoll, tmp_path):
    files = [tmp_path / f"{i}.json" for i in range(2)]
    said = [fio(tmp_path / "data", f)["jobs"][0]["read"] for f in files]
    for f, of in zip(files, said):
        shown = plimsoll("import", f, "--json", "--label", f"cfg={f.stem}", check=True)
        w = shown.workload("read")
        assert w["ops_per_s"] == {"value": of["iops"], "low": None, "high": None, "n_eff": 1.0}
        assert w["bytes_per_s"]["value"] == of["bw_bytes"]
        assert w["latency_ns"]["response"]["p50"] == of["clat_ns"]["percentile"]["50.000000"]
        assert (w["size_bytes"], w["concurrency"], w["load"]) == (4096, 1, "randread")
        source = shown.summary["environment"]["imported"]
        digest = subprocess.run(["sha256sum", f], capture_output=True, text=True, check=True).stdout.split()[0]
        assert (source["tool"], source["file"], source["sha256"]) == ("fio", f.name, digest)
        assert "F80" in shown.codes()
    text = plimsoll("runs", "show", "last", check=True).out
    assert "reports" in text and "without an interval" in " ".join(text.split()), text
    assert plimsoll("runs", "list", check=True).out.count("imported") == 2
    # One file against one is no comparison, however far apart they are.
    told = plimsoll("compare", "cfg=0", "--", "cfg=1")
    assert told.code == 5 and "imported from fio" in " ".join(told.out.split()), told
    page = tmp_path / "page.html"
    plimsoll("report", "last", "-o", page, check=True)
    assert page.stat().st_size > 10_000
    assert plimsoll("analyze", "last", check=True).code == 0


def rows(path, seconds, rate, seed=3):
    """A table as warp 1.3 writes it: a preparation of PUTs, then GETs of which the rate falls to a third at half time, and then
    a tenth are refused. Returns what each kind came to."""
    rng = random.Random(seed)
    start = datetime.datetime(2026, 11, 23, 10, tzinfo=datetime.timezone.utc)

    def at(s):
        whole, ns = divmod(int(s * 1e9), 10**9)
        return f"{(start + datetime.timedelta(seconds=whole)).strftime('%Y-%m-%dT%H:%M:%S')}.{ns:09d}Z"

    lines, counts = [], {"PUT": 0, "ok": 0, "refused": 0}
    for i in range(200):
        lines.append(("PUT", i / 100, 0.009, ""))
    free = [2.5] * 8
    while min(free) < 2.5 + seconds:
        slot = free.index(min(free))
        fallen = free[slot] > 2.5 + seconds / 2
        took = 8 / (rate / 3 if fallen else rate) * rng.uniform(0.8, 1.2)
        refused = fallen and rng.random() < 0.1
        lines.append(("GET", free[slot], took, "Please reduce your request rate." if refused else ""))
        free[slot] += took
    lines.sort(key=lambda row: row[1])
    head = "idx thread op client_id n_objects bytes endpoint file error start first_byte end duration_ns cat"
    with open(path, "w") as f:
        f.write("\t".join(head.split()) + "\n")
        for i, (op, s, took, error) in enumerate(lines):
            first = at(s + took / 2) if op == "GET" else ""
            cells = [i, i % 8, op, "abcd", 1, 65536, "http://s3:9000", f"k{i}", error, at(s), first, at(s + took), int(took * 1e9), 0]
            f.write("\t".join(map(str, cells)) + "\n")
            counts["PUT" if op == "PUT" else "refused" if error else "ok"] += 1
        f.write("# warp get --host=s3:9000 --access-key=AKSECRETSECRET --secret-key verysecretindeed\n")
    return counts


def test_an_old_file_of_requests_is_judged_as_a_run_is(plimsoll, tmp_path):
    table = tmp_path / "warp.csv"
    counts = rows(table, seconds=40, rate=900)
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", "--rm", table], check=True)
        table = tmp_path / "warp.csv.zst"
    r = plimsoll("import", table, "--json")
    assert r.code == 3, (r.code, r.err)
    get, put = r.workload("get"), r.workload("put")
    # Of the window: without the slices that the stage begins and ends in.
    for shown, true in [(get["outcomes"]["ok"], "ok"), (get["outcomes"]["http_503"], "refused"), (put["outcomes"]["ok"], "PUT")]:
        assert 0.9 * counts[true] <= shown <= counts[true], (true, shown, counts)
    assert put["name"] == "put" and get["name"] == "get", "the preparation is a stage of its own"
    assert get["concurrency"] == 8 and get["size_bytes"] == 65536
    # Of two levels there is no one rate: the fall is dated, and told to be a limiter's by its refusals.
    assert not get["valid"] and "V04" in r.codes(), r.codes()
    text = plimsoll("runs", "show", "last", check=True).out
    assert re.search(r"Fall at 22\.[3-7] s: (89\d|90\d)[.\d]* to 2[67]\d[.\d]* per second; throttle proved", text), text
    assert get["littles_law"]["error"] == pytest.approx(0, abs=0.01)
    held(get["littles_law"]["in_flight"], 8, 0.05)
    stored = "".join(p.read_text(errors="replace") for p in tmp_path.rglob("*.json"))
    assert "AKSECRET" not in stored and "verysecret" not in stored and "verysecret" not in r.out
    again = plimsoll("analyze", "last", "--json")
    assert again.workload("get")["ops_per_s"] == get["ops_per_s"]


def test_the_recorded_file_of_warp_shows_warps_figures(plimsoll):
    r = plimsoll("import", FIXTURES / "warp-mixed.csv.zst", "--json", check=True)
    # As warp printed them for this file, of the time in which all of its threads were at work.
    for op, printed in {"get": 55.90, "put": 20.04, "stat": 37.50, "delete": 10.57, "total": 122.12}.items():
        e = r.workload(op)["ops_per_s"]
        assert e["low"] <= printed <= e["high"], (op, printed, e)


def test_warp_itself(plimsoll, minio, tmp_path):
    if not shutil.which("warp"):
        pytest.skip("warp is not installed")
    out = tmp_path / "w"
    flags = {"host": minio.endpoint.split("//")[1], "access-key": minio.access_key, "secret-key": minio.secret_key}
    flags |= {"duration": "4s", "objects": 40, "obj.size": "64KiB", "concurrent": 4, "benchdata": out}
    done = subprocess.run(
        ["warp", "get", "--full", "--no-color", *(f"--{k}={v}" for k, v in flags.items())], capture_output=True, text=True
    )
    file = Path(f"{out}.csv.zst")
    assert file.exists(), done
    r = plimsoll("import", file, "--json")
    assert r.code in (0, 3), r  # four seconds may be too few for an answer
    printed = re.search(r"GET.*?Average: [\d.]+ \S+, ([\d.]+) obj/s", done.stdout, re.S)
    get = r.workload("get")
    assert get["concurrency"] == 4 and get["size_bytes"] == 65536
    if printed:
        held(get["ops_per_s"]["value"], float(printed[1]), 0.25)


BAD = {
    "empty.json": (b"", "it is empty"),
    "other.txt": (b"hello\n" * 1000, "not the result of a tool that is known here"),
    "newer.json": (b'{"fio version": "fio-9.1", "jobs": []}', "fio '9.1'"),
    "nothing.json": (b'{"fio version": "fio-3.33", "jobs": []}', "measured nothing"),
    "cut.json": ((FIXTURES / "fio.json").read_bytes()[:4000], "the JSON ends in the middle"),
    "cut.csv.zst": ((FIXTURES / "warp-mixed.csv.zst").read_bytes()[:9000], "ends in the middle"),
    "odd.csv": (b"idx\tthread\top\tbytes\n", "no column 'n_objects'"),
    "failed.json": (b'{"start": {"version": "iperf 3.12", "connected": []}, "error": "unable to connect"}', "unable to connect"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_told_and_leaves_nothing(plimsoll, runs, tmp_path, name):
    content, said = BAD[name]
    file = tmp_path / name
    file.write_bytes(content)
    told = plimsoll("import", file)
    assert told.code == 2 and said in told.err and "fix:" in told.err, told
    assert not runs.exists() or os.listdir(runs) == []


def test_an_invalid_result_is_stored_and_said_so_by_the_exit_code(plimsoll, tmp_path):
    file = tmp_path / "failed.json"
    document = json.loads((FIXTURES / "fio.json").read_text())
    document["jobs"] = [job | {"error": 5} for job in document["jobs"]]
    file.write_text(json.dumps(document))
    told = plimsoll("import", file, "--json")
    assert told.code == 3 and "V01" in told.codes(), told
    # Of several the worst.
    assert plimsoll("import", file, FIXTURES / "iperf3.json").code == 3
    assert len(json.loads(plimsoll("runs", "list", "--json", check=True).out)) == 3


def test_a_file_is_one_test_however_often_it_is_imported(plimsoll):
    for _ in range(2):
        plimsoll("import", FIXTURES / "fio.json", check=True)
    ids = [r["id"] for r in json.loads(plimsoll("runs", "list", "--json", check=True).out)]
    told = plimsoll("compare", ids[0], "--", ids[1])
    assert told.code == 2 and "the same file" in told.err, told
    plimsoll("runs", "rm", *ids, check=True)
    assert json.loads(plimsoll("runs", "list", "--json", check=True).out) == []
