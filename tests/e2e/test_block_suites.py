"""The file benchmark and the drive test: their figures, corrections, failures, and what they leave behind."""

import json
import re
import signal
import time

import pytest
from block_support import MIB, ROOT_ONLY, assert_as_kept, assert_drives_ran, fill, loop_device, mounted, sh
from conftest import wait_until

FAST = ["--size", "16MiB", "--threads", 2, "--iops-duration", "500ms", "--quiet"]


def test_three_phases_and_nothing_left(plimsoll, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    r = plimsoll("file", d, *FAST, "--runs", 2, "--json")
    assert_as_kept(plimsoll, r)
    ops = {(w["name"], w["op"]): w for w in r.summary["workloads"]}
    assert ops[("write", "write")]["outcomes"]["ok"] == 2 * 16 * MIB // 65536
    assert ops[("read", "read")]["outcomes"]["ok"] == 2 * 16 * MIB // 65536
    iops = [ops[("iops", kind)]["outcomes"]["ok"] for kind in ("read", "write")]
    assert 6 < iops[0] / iops[1] < 13, "nine reads to a write"
    assert list(d.iterdir()) == []


def test_the_original_s_json(plimsoll, tmp_path):
    r = plimsoll("file", tmp_path, *FAST, "--runs", 2, "--json", "--format", "gobonniego")
    assert_as_kept(plimsoll, r)
    out = json.loads(r.out)
    assert out["num_readers_and_writers"] == 2
    assert abs(out["disk_space_used_gib"] - 16 / 1024) < 1e-9
    assert len(out["results"]) == 2
    for run in out["results"]:
        assert run["write_bytes"] == run["read_bytes"] == 16 * MIB
        assert abs(run["write_megabytes_per_second"] - run["write_bytes"] / 1e6 / run["write_seconds"]) < 1e-6
        assert abs(run["iops"] - run["io_operations"] / run["io_seconds"]) < 1e-3
        assert 0.4 < run["io_seconds"] < 2
    assert out["plimsoll"]["corrections"] == ["fsync", "unique", "aligned", "fresh", "cache"]
    kept = json.loads(plimsoll("runs", "show", "last", "--json").ok().out)
    assert [out["plimsoll"][k] for k in ("status", "valid", "answered")] == [kept[k] for k in ("status", "valid", "answered")]
    assert {f["code"] for f in kept["findings"]} <= {f["code"] for f in out["plimsoll"]["findings"]}


def test_one_figure_of_a_phase_has_one_value_everywhere(plimsoll, tmp_path):
    """What the benchmark's own table says of a phase is what the result's table, JSON, CSV and GoBonnieGo's form say of it."""
    r = plimsoll("file", tmp_path, "--size", "128MiB", "--threads", 2, "--iops-duration", "1s", "--runs", 3, "--quiet")
    assert_as_kept(plimsoll, r)
    own = {cells[0]: cells[1:] for cells in (re.split(r"  +", line.strip()) for line in r.out.split("\nCorrected")[0].splitlines())
           if len(cells) == 4 and "-" not in cells[0]}
    assert list(own) == ["run", "1", "2", "3", "all"], r.out
    assert own["run"] == ["write MiB/s", "read MiB/s", "IOPS"]
    shown = plimsoll("runs", "show", "last", "--markdown").out
    cells = {(row[1], row[2]): row for row in (re.split(r" *\| *", line) for line in shown.splitlines()) if len(row) > 5}
    known = [cells["WRITE", "64 KiB"][4], cells["READ", "64 KiB"][4], cells["TOTAL", "512 B"][3]]
    # Of a phase that is void no figure over all runs is shown.
    assert all(said == there or said.startswith("void ") for said, there in zip(own["all"], known, strict=True)), shown
    summary = json.loads(plimsoll("runs", "show", "last", "--json").out)
    lines = {(w["name"], w["op"]): w for w in summary["workloads"]}
    for i, (line, amount) in enumerate([(("write", "write"), 128 * MIB), (("read", "read"), 128 * MIB), (("iops", "total"), None)]):
        each = lines[line]["each_ops_per_s"]
        assert len(each) == 3, lines[line]
        for run, e in enumerate(each):
            value = e["value"] * 65536 / MIB if amount else e["value"]
            said = float(re.match(r"[\d,.]+", own[str(run + 1)][i])[0].replace(",", ""))
            assert abs(said / value - 1) < 0.5 and ("±" in own[str(run + 1)][i] or "(" in own[str(run + 1)][i]), own
        whole = 3 * amount / lines[line]["window_s"] if amount else None
        assert not whole or min(e["value"] for e in each) <= whole / 65536 <= max(e["value"] for e in each), "the fsync counts"
    assert "Each run's own" in shown


def test_corrections_are_named_and_can_be_taken_back(plimsoll, tmp_path):
    r = plimsoll("file", tmp_path, *FAST, "-v")
    assert_as_kept(plimsoll, r)
    assert "fsync" in r.out + r.err and "unique" in r.out + r.err
    r = plimsoll("file", tmp_path, *FAST, "--original", "all", "--json", "--format", "gobonniego")
    assert_as_kept(plimsoll, r)
    assert json.loads(r.out)["plimsoll"]["corrections"] == []


def test_space_is_checked_first(plimsoll, tmp_path):
    r = plimsoll("file", tmp_path, "--size", "100TiB", "--quiet")
    assert r.code == 2
    assert "free" in r.err
    assert list(tmp_path.glob("plimsoll-file*")) == []


def test_ctrl_c_removes_the_files(background, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    run = background("file", d, "--size", "64MiB", "--threads", 2, "--iops-duration", "60s")
    wait_until(lambda: len(list(d.glob("*/*"))) >= 2, what="the files")
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert list(d.iterdir()) == []


def test_a_killed_benchmark_is_cleaned_up(plimsoll, background, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    run = background("file", d, "--size", "64MiB", "--threads", 2, "--iops-duration", "60s")
    wait_until(lambda: len(list(d.glob("*/*"))) >= 2, what="the files")
    run.send_signal(signal.SIGKILL)
    run.wait()
    plimsoll("cleanup", check=True)
    assert list(d.iterdir()) == []


@ROOT_ONLY
def test_drives_alone_and_together_with_the_one_that_fails(plimsoll, tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as f:
        f.truncate(256 * MIB)
    a = tmp_path / "a"
    a.mkdir()
    with loop_device(image) as device:
        sh("mkfs.ext4", "-q", device)
        with mounted(device, tmp_path / "b"):
            r = plimsoll("drive", a, tmp_path / "b", "/proc", "-b", "1MiB", "-f", "16MiB", "-i", 2, "--quiet")
            assert r.code == 3, (r.code, r.err)
            assert "✗" in r.out and "/proc" in r.out
            assert "1 of 3 drives failed; 2 drives at once: write " in r.out, r.out
            assert len(r.out.splitlines()) <= 12 and max(map(len, r.out.splitlines())) <= 100, r.out
            whole = plimsoll("drive", a, tmp_path / "b", "-b", "1MiB", "-f", "16MiB", "-i", 2, "--quiet", "-v")
            assert "TotalWRITE" in whole.out, whole.out
            assert list(a.iterdir()) == []


def test_one_stream_prints_dd_s_lines(plimsoll, tmp_path):
    r = plimsoll("drive", tmp_path, "-i", 1, "-b", "1MiB", "-f", "64MiB", "--quiet")
    assert_drives_ran(plimsoll, r)
    assert r.out.count("64+0 records in") == 2
    assert "67108864 bytes (67 MB, 64 MiB) copied" in r.out


@pytest.mark.parametrize("form", [["--json"], []])
def test_drives_leave_the_report_that_was_asked_for(plimsoll, tmp_path, form):
    drive = tmp_path / "drive"
    drive.mkdir()
    page = tmp_path / "page.html"
    r = plimsoll("drive", drive, "-i", 1, "-b", "1MiB", "-f", "32MiB", "--html", page, "--quiet", *form)
    assert_drives_ran(plimsoll, r)
    assert "plimsoll-data" in page.read_text() and str(page) in r.err, r.err


def test_many_runs_of_the_file_benchmark_are_a_short_table(plimsoll, tmp_path):
    few = ["file", tmp_path, "--size", "4MiB", "--threads", 1, "--iops-duration", "200ms", "--runs", 7, "--quiet"]

    def rows_of(text):
        return [line.split()[0] for line in text.splitlines() if re.match(r" *(\d+|\.\.\.|all)( +\S| *$)", line)]

    short = plimsoll(*few).out
    assert rows_of(short) == ["1", "...", "7", "all"] and "5 more: -v" in short and len(short.splitlines()) <= 12, short
    assert re.match(r"(VALID|VALID !|PARTLY VALID|INVALID).*  .*(write|IOPS)", short), short
    rows = rows_of(plimsoll(*few, "-v").out)
    assert rows[:8] == ["1", "2", "3", "4", "5", "6", "7", "all"], rows


def test_the_ceiling_record(plimsoll, tmp_path):
    r = plimsoll("drive", tmp_path, "-i", 2, "-b", "1MiB", "-f", "32MiB", "--json", "--quiet")
    assert_drives_ran(plimsoll, r)
    record = json.loads(r.out)
    assert record["schema"] == "plimsoll.ceiling/1"
    assert record["drives"][0]["alone"]["write_bytes_per_s"] > 0
    assert record["total"]["read_bytes_per_s"] > 0


def test_a_later_run_is_held_against_the_ceiling(plimsoll, tmp_path):
    r = plimsoll("drive", tmp_path, "-i", 2, "-b", "1MiB", "-f", "32MiB", "--json", "--quiet")
    record = json.loads(r.out)
    file = tmp_path / "ceiling.json"
    file.write_text(r.out)
    for ceiling in (file, record["run"]):
        r = plimsoll("block", tmp_path / "data", "--size", "32MiB", "--pattern", "read", "--bs", "1MiB", "--runtime", "2s",
                     "--warmup", "0s", "--ceiling", ceiling, "--json", "--quiet")
        finding = next(f for f in r.summary["findings"] if f["name"] == "held_against_ceiling")
        reached = r.workload("read")["bytes_per_s"]["value"] / record["drives"][0]["alone"]["read_bytes_per_s"]
        assert abs(finding["measured"] / reached - 1) < 1e-6
        assert f"{reached * 100:.0f} % of the ceiling" in r.summary["verdict"]
        assert r.summary["labels"]["ceiling.run"] == record["run"]
    r = plimsoll("block", tmp_path / "data", "--size", "32MiB", "--ceiling", "no-such-run", "--quiet")
    assert r.code == 2 and "no-such-run" in r.err


def test_a_size_without_a_unit_is_in_gib(plimsoll, tmp_path):
    r = plimsoll("file", tmp_path, "--size", "0.015625", "--threads", 2, "--iops-duration", "500ms", "--quiet", "--json",
                 "--format", "gobonniego")
    assert_as_kept(plimsoll, r)
    assert json.loads(r.out)["results"][0]["write_bytes"] == 16 * MIB
    r = plimsoll("file", tmp_path, "--size", "0", "--quiet")
    assert r.code == 2 and "0.25" in r.err
