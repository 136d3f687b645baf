"""fio job files: accepted, refused, and their output held against real fio's, field by field."""

import json
import shutil
import subprocess

import pytest
from block_support import assert_as_kept

JOB = """[global]
direct=1
size=32m
bs=4k
ioengine=libaio
runtime=1
time_based=1
; both jobs share this
[readers]
rw=randread
iodepth=4
filename={dir}/shared
[mixed]
stonewall
rw=randrw
rwmixread=70
numjobs=2
group_reporting=1
filename={dir}/shared
"""

VULTR = """[FIOJOB]
filename=/mnt/vbs/fio.raw
size=500G
random_generator=lfsr
buffered=0
direct=1
invalidate=0
ioengine=libaio
rw=randwrite
bs=4k
iodepth=4
numjobs=16
runtime=900
loops=1
time_based=1
"""


@pytest.fixture
def job(tmp_path):
    def write(text, name="job.fio"):
        path = tmp_path / name
        path.write_text(text.replace("{dir}", str(tmp_path)))
        return path

    return write


def test_the_vultr_job_runs_as_it_stands_with_a_smaller_size(plimsoll, job, tmp_path):
    file = job(VULTR)
    sets = ["--set", "size=64m", "--set", "runtime=1", "--set", f"filename={tmp_path}/raw"]
    r = plimsoll("fio", file, *sets, "--eta=never", "--status-interval=5000ms", "--output-format=json+", "--quiet")
    assert_as_kept(plimsoll, r)
    out = r.summary
    assert len(out["jobs"]) == 16
    assert out["jobs"][0]["write"]["total_ios"] > 0
    assert plimsoll("fio", file, "--dry-run", "--quiet").code == 0


def test_unknown_keys(plimsoll, job):
    file = job("[a]\nsize=1m\nzonemode=zbd\n")
    r = plimsoll("fio", file)
    assert r.code == 2
    assert f"{file}:3" in r.err and "zonemode" in r.err
    r = plimsoll("fio", file, "--ignore-unknown", "--dry-run")
    assert r.code == 0, r.err
    assert "zonemode=zbd" in r.err + r.out


@pytest.mark.parametrize("text,word", [
    ("rw=read\n", "outside of a section"),
    ("[a]\nrw=up\nsize=1m\n", ":2"),
    ("[a]\nsize=4x\n", ":2"),
    ("[a]\nrw=read:4k\nsize=1m\n", "gap between sequential blocks"),
    ("[a]\nrw=randread:8\nsize=1m\n", "before a new random place"),
    ("[a]\nrw=randtrim\nsize=1m\n", "trims is not supported"),
    ("[a]\ntime_based\nsize=1m\n", "runtime"),
    ("[a]\nfilename=${NO_SUCH_VARIABLE}/x\nsize=1m\n", "NO_SUCH_VARIABLE"),
])
def test_bad_files_say_where(plimsoll, job, text, word):
    r = plimsoll("fio", job(text))
    assert r.code == 2
    assert word in r.err, r.err


def shape(value):
    """Keys and types; numbers are numbers, whether whole or not."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items() if k not in ("plimsoll", "bins", "global options", "job options")}
    if isinstance(value, list):
        return [shape(v) for v in value[:1]]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_every_field_is_there_as_in_fio_on_the_same_job(plimsoll, job, tmp_path):
    file = job(JOB)
    theirs_dir = tmp_path / "theirs"
    theirs_dir.mkdir()
    theirs_job = tmp_path / "theirs.fio"
    theirs_job.write_text(JOB.replace("{dir}", str(theirs_dir)))
    done = subprocess.run(["fio", "--output-format=json+", str(theirs_job)], stdout=subprocess.PIPE, check=True)
    theirs = json.loads(done.stdout[done.stdout.index(b"{"):])
    r = plimsoll("fio", file, "--output-format", "json+", "--quiet")
    assert_as_kept(plimsoll, r)
    ours = r.summary
    assert [j["jobname"] for j in ours["jobs"]] == [j["jobname"] for j in theirs["jobs"]]
    for a, b in zip(ours["jobs"], theirs["jobs"]):
        assert shape(a) == shape(b)
        for key in ("groupid", "error"):
            assert a[key] == b[key]
        for direction in ("read", "write"):
            x, y = a[direction], b[direction]
            assert (x["total_ios"] > 0) == (y["total_ios"] > 0)
            if x["total_ios"]:
                assert x["io_bytes"] == 4096 * x["total_ios"]
                assert abs(x["runtime"] - y["runtime"]) < 300
                assert sum(x["clat_ns"]["bins"].values()) == x["total_ios"]
                assert list(x["clat_ns"]["percentile"]) == list(y["clat_ns"]["percentile"])
    assert ours["global options"] == theirs["global options"]
    mine, real = (j["jobs"][1]["job options"] for j in (ours, theirs))
    assert {k: mine[k] for k in real if k != "filename"} == {k: v for k, v in real.items() if k != "filename"}
    assert set(theirs["disk_util"][0]) == set(ours["disk_util"][0])


def documents(text):
    """fio prints one JSON document after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = decoder.raw_decode(text, at)
        found.append(one)
    return found


STATUS = """[global]
size=4m
bs=4k
direct=1
runtime=3
time_based=1
rate_iops=200
[a]
rw=randread
filename={dir}/f
[b]
stonewall
rw=read
filename={dir}/f
"""


@pytest.mark.parametrize("to_file", [False, True])
def test_status_is_printed_again_and_again(plimsoll, job, tmp_path, to_file):
    file = tmp_path / "out.json"
    r = plimsoll("fio", job(STATUS), "--output-format", "json", "--status-interval", "1s", "--quiet",
                 *(["--output", file] if to_file else []))
    assert_as_kept(plimsoll, r)
    seen = documents(file.read_text() if to_file else r.out)
    assert len(seen) >= 3, "six seconds, a second apart"
    for document in seen:
        assert [j["jobname"] for j in document["jobs"]] == ["a", "b"], "jobs that have not begun are listed as well"
        # What the run was found to be is known at its end.
        assert document.keys() | {"plimsoll"} == seen[-1].keys()
    for name in range(2):
        counts = [d["jobs"][name]["read"]["total_ios"] for d in seen]
        assert counts == sorted(counts) and counts[-1] > 0
    assert seen[0]["jobs"][1]["read"]["total_ios"] == 0 < seen[0]["jobs"][0]["read"]["total_ios"]


DEPTHS = """[global]
direct=1
size=16m
bs=4k
time_based=1
runtime=1
filename={dir}/f
[deep]
ioengine=libaio
rw=randread
iodepth=8
[one]
stonewall
ioengine=psync
rw=randread
[slow]
stonewall
ioengine=libaio
rw=randread
iodepth=16
rate_iops=50
"""


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_latencies_and_depths_hold_together_as_in_fio(plimsoll, job, tmp_path):
    theirs_dir = tmp_path / "theirs"
    theirs_dir.mkdir()
    theirs_job = tmp_path / "theirs.fio"
    theirs_job.write_text(DEPTHS.replace("{dir}", str(theirs_dir)))
    done = subprocess.run(["fio", "--output-format=json", str(theirs_job)], stdout=subprocess.PIPE, check=True)
    theirs = json.loads(done.stdout[done.stdout.index(b"{"):])
    ours = plimsoll("fio", job(DEPTHS), "--output-format", "json", "--quiet").summary
    plain = []
    for a, b in zip(ours["jobs"], theirs["jobs"]):
        where = a["jobname"]
        for j in (a, b):
            x, n = j["read"], j["read"]["total_ios"]
            # A synchronous engine has no submission of its own: fio leaves it at zero.
            assert x["slat_ns"]["N"] in (0, n), where
            assert x["clat_ns"]["N"] == x["lat_ns"]["N"] == n, where
            assert abs(x["slat_ns"]["mean"] + x["clat_ns"]["mean"] - x["lat_ns"]["mean"]) < 0.02 * x["lat_ns"]["mean"] + 500
            for part in ("slat_ns", "clat_ns", "lat_ns"):
                assert x[part]["min"] <= x[part]["mean"] <= x[part]["max"], (where, part)
            assert x["lat_ns"]["max"] >= x["clat_ns"]["max"], where
        # Where nearly all ops are submitted at one depth, it is the same one.
        depth = max(b["iodepth_level"], key=b["iodepth_level"].get)
        # (fio's own share falls where the machine stands still for a while.)
        if b["iodepth_level"][depth] > 90:
            plain.append(where)
            assert a["iodepth_level"][depth] > 90, (where, a["iodepth_level"])
        assert a["latency_depth"] == b["latency_depth"], where
    assert plain, theirs


def test_a_public_parser_reads_it(plimsoll, job, tmp_path):
    jsonimport = pytest.importorskip("fio_plot.fiolib.jsonimport")
    jsonparsing = pytest.importorskip("fio_plot.fiolib.jsonparsing")
    file = job("[j]\nrw=randread\niodepth=4\nnumjobs=1\nbs=4k\nsize=16m\ndirect=1\nioengine=libaio\nruntime=1\n"
               "time_based=1\nfilename={dir}/f\n")
    results = tmp_path / "results"
    results.mkdir()
    r = plimsoll("fio", file, "--output-format", "json+", "--output", results / "randread-4-1.json", "--quiet")
    assert_as_kept(plimsoll, r)
    settings = {"input_directory": [str(results)], "rw": "randread", "iodepth": [4], "numjobs": [1], "filter": ["read"],
                "type": ["bw", "iops", "lat"], "graphtype": "bargraph2d_qd"}
    data = jsonimport.import_json_dataset(settings, jsonimport.list_json_files(settings))
    rows = jsonparsing.parse_json_data(settings, data)[0]["data"]
    assert rows[0]["iodepth"] == "4"
    assert float(rows[0]["iops"]) > 0


def test_normal_output_reads_like_fio_s(plimsoll, job):
    r = plimsoll("fio", job(JOB), "--output-format", "normal", "--quiet")
    assert_as_kept(plimsoll, r)
    for line in ("readers: (groupid=0, jobs=1): err= 0", "mixed: (groupid=1, jobs=2)", "clat percentiles",
                 "Run status group 1 (all jobs):", "Disk stats (read/write):"):
        assert line in r.out, r.out


def test_verify_in_a_job_file_reads_back(plimsoll, job):
    r = plimsoll("fio", job("[v]\nrw=write\nsize=8m\nbs=64k\nverify=crc32c\nfilename={dir}/v\n"),
                 "--output-format", "json", "--quiet")
    assert_as_kept(plimsoll, r)
    assert r.summary["jobs"][0]["write"]["total_ios"] == 128
    assert r.summary["jobs"][0]["read"]["total_ios"] == 128


def test_several_files_take_turns(plimsoll, job, tmp_path):
    r = plimsoll("fio", job("[s]\nrw=write\nsize=8m\nbs=64k\nverify=md5\nfilename={dir}/a:{dir}/b\n"), "--keep",
                 "--output-format", "json", "--quiet")
    assert_as_kept(plimsoll, r)
    assert r.summary["jobs"][0]["write"]["total_ios"] == r.summary["jobs"][0]["read"]["total_ios"] == 128
    assert [(tmp_path / f).stat().st_size for f in "ab"] == [4 << 20, 4 << 20], "the size is divided among them"


def test_a_rate_for_one_direction_does_not_hold_the_other(plimsoll, job):
    text = ("[m]\nrw=randrw\nbs=4k\nsize=16m\niodepth=4\nioengine=io_uring\nrate_iops=,100\ntime_based=1\nruntime=2\n"
            "filename={dir}/m\n")
    r = plimsoll("fio", job(text), "--output-format", "json", "--quiet")
    assert_as_kept(plimsoll, r)
    [only] = r.summary["jobs"]
    # An open loop of two seconds begins 200; those that a busy machine leaves in flight are cut off.
    assert 150 <= only["write"]["total_ios"] <= 200
    assert only["read"]["total_ios"] > 0 and only["job options"]["rate_iops"] == ",100"
    r = plimsoll("fio", job(text.replace("time_based=1\nruntime=2\n", "")), "--quiet")
    assert r.code == 2 and "only one direction" in r.err and "time_based" in r.err


def test_blocks_of_many_sizes_over_each_other_verify(plimsoll, job):
    text = ("[m]\nrw=randrw\nbssplit=512/50:4k/30:64k/20\nsize=4m\niodepth=8\nioengine=io_uring\nverify=md5\nnorandommap=1\n"
            "numjobs=2\ntime_based=1\nruntime=2\nfilename={dir}/m\n")
    r = plimsoll("fio", job(text), "--output-format", "json", "--quiet")
    assert_as_kept(plimsoll, r)
    assert [j["error"] for j in r.summary["jobs"]] == [0, 0]


def test_a_mistyped_directory_is_not_made(plimsoll, job, tmp_path):
    missing = tmp_path / "no"
    for command in (["block", missing / "x", "--size", "1MiB"],
                    ["fio", job(f"[a]\ndirectory={missing}\nsize=1m\nrw=write\n")],
                    ["file", missing, "--size", "1MiB"], ["drive", missing]):
        r = plimsoll(*command, "--quiet")
        assert r.code == 2 and "fix: " in r.err and str(missing) in r.err, (command, r.err)
    assert not missing.exists()


@pytest.mark.parametrize("ring", ["psync", "epoll"])
def test_a_ring_that_does_not_fit_says_what_does(plimsoll, tmp_path, ring):
    r = plimsoll("block", tmp_path / "f", "--size", "1MiB", "--ring", ring, "--iodepth", 4, "--quiet")
    assert r.code == 2 and "fix: Use " in r.err, r.err


def test_what_makes_a_result_void_is_told_beside_a_document(plimsoll, job, tmp_path):
    """Readers of fio's JSON pass over what is ours in it: an exit code 3 without a word explains nothing."""
    # A single slice: never a rate.
    text = "[short]\nrw=randread\nbs=4k\nsize=8m\ntime_based=1\nruntime=120ms\nfilename={dir}/v\n"
    r = plimsoll("fio", job(text), "--output-format", "json+", "--output", tmp_path / "o.json", "--quiet")
    ours = json.loads((tmp_path / "o.json").read_text())["plimsoll"]
    void = [f["code"] for f in ours["findings"] if f["level"] == "invalid"]
    assert r.code == 3 and void and not ours["valid"], r.err
    assert all(f"[INVALID {code}]" in r.err for code in void), r.err


def test_a_job_s_files_stay_and_are_named(plimsoll, job, tmp_path):
    text = "[w]\nrw=write\nbs=64k\nsize=8m\nfilename={dir}/f.dat\n"
    r = plimsoll("fio", job(text))
    assert f"kept, as fio does: {tmp_path}/f.dat; `plimsoll cleanup" in r.err, r.err
    r = plimsoll("cleanup", "last")
    assert r.code == 0 and "left nothing behind" not in r.err and (tmp_path / "f.dat").exists(), r.err
    assert f"kept, as fio does: {tmp_path}/f.dat" in r.err and "--kept` removes it" in r.err, r.err
    r = plimsoll("cleanup", "last", "--kept")
    assert r.code == 0 and not (tmp_path / "f.dat").exists(), r.err
    assert "left nothing behind" in plimsoll("cleanup", "last").err
    assert plimsoll("fio", job(text), "--quiet").err == ""
