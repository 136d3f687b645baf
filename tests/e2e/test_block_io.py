"""Block devices and files: patterns, rings, verify, what the kernel counted, failures and interrupts."""

import contextlib
import json
import os
import re
import signal
import time

import pytest
from block_support import (
    MIB, ROOT_ONLY, disk_counters, failing_device, failing_file, fill, loop_device, measured, sh, unmount,
)
from conftest import wait_until

PATTERNS = {
    "read": {"read"}, "write": {"write"}, "randread": {"read"}, "randwrite": {"write"},
    "rw": {"read", "write"}, "randrw": {"read", "write"},
}
SHORT = ["--runtime", "500ms", "--warmup", "0s", "--json", "--quiet"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_moves_bytes(plimsoll, tmp_path, pattern):
    file = tmp_path / "data"
    r = plimsoll("block", file, "--size", "32MiB", "--pattern", pattern, "--iodepth", 4, "--jobs", 2, *SHORT)
    measured(r)
    ops = {w["op"]: w for w in r.summary["workloads"]}
    assert PATTERNS[pattern] <= set(ops)
    for op in PATTERNS[pattern]:
        assert ops[op]["outcomes"]["ok"] > 0
        assert set(ops[op]["outcomes"]) == {"ok"}
        assert ops[op]["latency_ns"]["submission"]["count"] > 0


def test_jobs_that_wait_for_a_processor_count_in_their_own_time(plimsoll, tmp_path):
    """A hundred threads of cached reads: most of what they do is handed over late, and belongs to the window all the same."""
    r = plimsoll("block", tmp_path / "data", "--size", "32MiB", "--pattern", "randread", "--buffered", "--jobs", 100,
                 "--runtime", "4s", "--json")
    assert r.code in (0, 3), r.err
    (told,) = re.findall(r"done: .* in ([\d.]+) s, (\d+) ok", r.err)
    window_s, ok = float(told[0]), int(told[1])
    w = r.workload("read")
    # What the collector saw in its window is what the record holds of it; the record's window may have a slice more.
    assert abs(window_s - w["window_s"]) <= 0.25, (told, w["window_s"])
    assert abs(ok / w["outcomes"]["ok"] - 1) < 0.1, (told, w["outcomes"])


@pytest.mark.parametrize("ring,depth", [("io_uring", 8), ("libaio", 8), ("psync", 1)])
def test_the_three_rings(plimsoll, tmp_path, ring, depth):
    r = plimsoll("block", tmp_path / "data", "--size", "16MiB", "--ring", ring, "--iodepth", depth, *SHORT)
    measured(r)
    assert r.workload("read")["outcomes"]["ok"] > 0
    assert ring in r.summary["environment"]["ring"]


def test_depth_with_psync_is_refused_by_name(plimsoll, tmp_path):
    r = plimsoll("block", tmp_path / "data", "--size", "16MiB", "--ring", "psync", "--iodepth", 8, *SHORT)
    assert r.code == 2
    assert "psync" in r.err and "8 in flight" in r.err, r.err


@ROOT_ONLY
@pytest.mark.parametrize("pattern,at", [("randread", 1), ("randwrite", 3)])
def test_bytes_are_those_that_the_kernel_counted(plimsoll, tmp_path, pattern, at):
    image = fill(tmp_path / "image", 64 * MIB)
    with loop_device(image, "--direct-io=on") as device:
        before = disk_counters(device)
        r = plimsoll("block", device, "--pattern", pattern, "--bs", "16KiB", "--iodepth", 4,
                     f"--destroy-data={device}", "--max-ops", 2000, "--warmup", "0s", "--json", "--quiet")
        after = disk_counters(device)
    measured(r)
    op = "read" if pattern == "randread" else "write"
    assert r.workload(op)["outcomes"] == {"ok": 2000}
    moved = 512 * (after[at] - before[at])
    # Beside the workload both ends of a device are looked at for signatures, and some blocks for their content.
    beside = 3 * MIB if op == "read" else 0
    assert 2000 * 16384 <= moved <= 2000 * 16384 + beside


def test_verify_finds_a_flipped_byte_and_names_it(plimsoll, tmp_path):
    file = tmp_path / "data"
    flags = ["--size", "8MiB", "--bs", "4KiB", "--seed", 7, "--warmup", "0s", "--json", "--quiet", "--keep"]
    plimsoll("block", file, "--pattern", "write", "--loops", 1, *flags)
    good = plimsoll("block", file, "--pattern", "read", "--loops", 1, "--verify", *flags)
    measured(good)
    assert good.workload("read")["outcomes"] == {"ok": 2048}
    with open(file, "r+b") as f:
        f.seek(5 * MIB + 1234)
        byte = f.read(1)
        f.seek(5 * MIB + 1234)
        f.write(bytes([byte[0] ^ 1]))
    bad = plimsoll("block", file, "--pattern", "read", "--loops", 1, "--verify", *flags)
    assert bad.code == 7
    assert bad.workload("read")["outcomes"] == {"ok": 2047, "verify_mismatch": 1}
    assert "V02" in bad.codes()
    finding = next(f for f in bad.summary["findings"] if f["code"] == "V02")
    assert f"{file} at byte {5 * MIB + 1234}" in finding["text"]


def at(file, block):
    with open(file, "rb") as f:
        f.seek(block * 4096)
        return f.read(4096)


def test_what_was_synced_before_a_kill_is_there(plimsoll, background, tmp_path):
    file = tmp_path / "data"
    flags = ["--size", "64MiB", "--bs", "4KiB", "--seed", 11, "--warmup", "0s", "--quiet", "--keep"]
    run = background("block", file, "--pattern", "write", "--fsync", 1, "--rate", "2000/s",
                     "--runtime", "60s", *flags)
    # The file is allocated at once: what was not written yet reads as zeros.
    wait_until(lambda: file.exists() and any(at(file, 120)), what="writes")
    run.send_signal(signal.SIGKILL)
    run.wait()
    blocks = os.stat(file).st_size // 4096
    # Of two in flight at the most, the last may be there in part.
    written = (next((i for i in range(blocks) if not any(at(file, i))), blocks) - 2) * 4096
    assert written > 0
    r = plimsoll("block", file, "--pattern", "read", "--verify", "--no-layout", "--size", f"{written}B",
                 "--bs", "4KiB", "--seed", 11, "--loops", 1, "--warmup", "0s", "--json", "--quiet", "--keep")
    assert r.workload("read")["outcomes"] == {"ok": written // 4096}, r.err


def finding(r, code):
    return next(f for f in r.summary["findings"] if f["code"] == code)


def test_a_lost_overwrite_is_named(plimsoll, tmp_path):
    """The block's stamp is sound and of the same seed; only the record knows that a newer write was acknowledged."""
    file = tmp_path / "data"
    flags = ["--size", "8MiB", "--bs", "4KiB", "--seed", 7, "--loops", 1, "--verify", "--warmup", "0s", "--json",
             "--quiet", "--keep"]
    measured(plimsoll("block", file, "--pattern", "write", *flags))
    before = file.read_bytes()
    measured(plimsoll("block", file, "--pattern", "randwrite", "--iodepth", 8, *flags))
    after = file.read_bytes()
    assert all(before[i:i + 4096] != after[i:i + 4096] for i in range(0, len(after), 4096)), "new data each time"
    good = measured(plimsoll("block", file, "--pattern", "read", *flags))
    assert good.workload("read")["outcomes"] == {"ok": 2048}
    assert "F51" not in good.codes(), "there is a record"
    with open(file, "r+b") as f:
        f.seek(5 * 4096)
        f.write(before[5 * 4096:6 * 4096])
    bad = plimsoll("block", file, "--pattern", "read", *flags)
    assert bad.code == 7
    assert bad.workload("read")["outcomes"] == {"ok": 2047, "verify_mismatch": 1}
    text = finding(bad, "V02")["text"]
    assert f"{file} at byte {5 * 4096}" in text and "lost write" in text, text


def test_what_was_acknowledged_before_a_kill_is_the_newest(plimsoll, background, tmp_path):
    """Overwrites of a small region, killed in the middle: each block must show the last acknowledged write of it."""
    file = tmp_path / "data"
    flags = ["--size", "1MiB", "--bs", "4KiB", "--seed", 11, "--verify", "--warmup", "0s", "--quiet", "--keep"]
    plimsoll("block", file, "--pattern", "write", "--loops", 1, *flags)
    old = file.read_bytes()
    run = background("block", file, "--pattern", "randwrite", "--fsync", 16, "--iodepth", 4, "--runtime", "60s", *flags)
    pages = range(0, len(old), 4096)
    wait_until(lambda: sum(file.read_bytes()[i:i + 4096] != old[i:i + 4096] for i in pages) > 200, what="overwrites")
    run.send_signal(signal.SIGKILL)
    run.wait()
    check = ["block", file, "--pattern", "read", "--loops", 1, "--json", "--no-layout", *flags]
    r = plimsoll(*check)
    assert r.workload("read")["outcomes"] == {"ok": 256}, r.out
    assert "F51" not in r.codes()
    file.write_bytes(old)
    r = plimsoll(*check)
    lost = r.workload("read")["outcomes"]["verify_mismatch"]
    assert lost > 190 and "lost write" in finding(r, "V02")["text"]


def test_what_is_verified_without_a_record_is_said(plimsoll, tmp_path):
    file = tmp_path / "data"
    flags = ["--size", "1MiB", "--loops", 1, "--seed", 3, "--warmup", "0s", "--json", "--quiet", "--keep"]
    plimsoll("block", file, "--pattern", "write", *flags)
    r = measured(plimsoll("block", file, "--pattern", "read", "--verify", *flags))
    assert finding(r, "F51")["level"] == "info"


def test_reads_of_holes_are_invalid(plimsoll, tmp_path):
    file = tmp_path / "sparse"
    with open(file, "wb") as f:
        f.truncate(32 * MIB)
    r = plimsoll("block", file, "--pattern", "randread", *SHORT)
    assert r.code == 3, r.err
    finding = next(f for f in r.summary["findings"] if f["code"] == "V09")
    assert finding["level"] == "invalid" and "never written" in finding["text"]


@ROOT_ONLY
def test_a_device_of_zeros_is_invalid(plimsoll, tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as f:
        f.write(bytes(32 * MIB))
    with loop_device(image) as device:
        r = plimsoll("block", device, "--pattern", "randread", *SHORT)
    assert r.code == 3, r.err
    assert "V09" in r.codes()


def test_reads_from_the_page_cache_are_named(plimsoll, tmp_path):
    file = fill(tmp_path / "data", 16 * MIB)
    file.read_bytes()
    r = plimsoll("block", file, "--pattern", "randread", "--buffered", "--no-invalidate", *SHORT)
    (finding,) = [f for f in r.summary["findings"] if f["name"] == "page_cache_reads"]
    # Some kernels reclaim pages that were not read for a second (DAMON): a part may come from the device all the same.
    assert finding["measured"] > 0.5 and finding["level"] == "qualified", finding


@ROOT_ONLY
def test_a_block_below_the_device_s_alignment_is_an_error(plimsoll, tmp_path):
    image = fill(tmp_path / "image", 16 * MIB)
    with loop_device(image, "--sector-size", "4096") as device:
        r = plimsoll("block", device, "--bs", "512B", *SHORT)
        assert r.code == 2
        assert "512" in r.err and "4KiB" in r.err and "--buffered" in r.err, r.err


def test_direct_where_it_is_refused_is_an_error(plimsoll):
    r = plimsoll("block", "/proc/self/status", "--pattern", "read", *SHORT)
    assert r.code == 2, (r.code, r.err)


def test_eio_is_counted_and_the_run_ends_as_told(plimsoll, tmp_path):
    with failing_file(tmp_path, 32 * MIB, "--filter=error", "error=EIO", "error-pread-rate=10%") as file:
        r = plimsoll("block", file, "--pattern", "randread", "--buffered", "--no-invalidate",
                     "--max-ops", 2000, "--warmup", "0s", "--json", "--quiet")
    outcomes = r.workload("read")["outcomes"]
    assert outcomes["ok"] + outcomes["io_error"] == 2000
    assert outcomes["io_error"] > 0
    assert r.code == 3
    assert "V01" in r.codes()


@ROOT_ONLY
def test_a_device_that_fails_in_one_place(plimsoll, tmp_path):
    image = fill(tmp_path / "image", 32 * MIB)
    with loop_device(image) as loop, failing_device(loop, 32 * MIB, 8 * MIB, 1 * MIB) as device:
        r = plimsoll("block", device, "--pattern", "read", "--bs", "4KiB", "--loops", 1, "--warmup", "0s", "--json",
                     "--quiet")
    assert r.code == 3
    assert r.workload("read")["outcomes"] == {"ok": 8192 - 256, "io_error": 256}
    assert "V01" in r.codes()


@ROOT_ONLY
def test_enospc_is_told_before_and_during(plimsoll, background, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", small)
    try:
        r = plimsoll("block", small / "data", "--size", "64MiB", "--pattern", "write", "--buffered", *SHORT)
        assert r.code == 2
        assert "free" in r.err, r.err
        assert list(small.iterdir()) == [], "nothing is left behind"
        # There is room at the start, and then somebody else takes it. (One file is allocated at once; a set is not.)
        job = tmp_path / "job.fio"
        job.write_text(f"[w]\ndirectory={small}\nnrfiles=2\nsize=6m\nrw=write\nbs=4k\nrate_iops=500\ntime_based=1\nruntime=5\n")
        run = background("fio", job, "--json", "--quiet")
        # Its writes have begun: before, what is lacking would be told, and nothing measured.
        wait_until(lambda: sum(f.stat().st_blocks for f in small.glob("w.*")) > 16, what="the first writes")
        with open(small / "other", "wb", buffering=0) as other, contextlib.suppress(OSError):
            while True:
                other.write(bytes(MIB // 4))
        out, err = run.communicate(timeout=60)
        outcomes = json.loads(out)["workloads"][0]["outcomes"]
        assert outcomes["ok"] > 0 and outcomes["no_space"] > 0, outcomes
        assert run.returncode == 3, err
    finally:
        unmount(small)


def test_ctrl_c_writes_a_result_and_removes_the_file(background, tmp_path):
    file = tmp_path / "data"
    run = background("block", file, "--size", "32MiB", "--pattern", "randread", "--runtime", "60s", "--json")
    wait_until(file.exists, what="the file")
    time.sleep(3)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert json.loads(out)["workloads"][0]["outcomes"]["ok"] > 0
    assert not file.exists(), "what the run made is gone"


def test_a_killed_run_is_cleaned_up_later(plimsoll, background, tmp_path):
    file = tmp_path / "data"
    run = background("block", file, "--size", "32MiB", "--pattern", "randread", "--runtime", "60s")
    wait_until(lambda: file.exists() and file.stat().st_size > 0, what="the file")
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert file.exists()
    plimsoll("cleanup", check=True)
    assert not file.exists()


def test_a_table_of_block_sizes_in_one_command(plimsoll, tmp_path):
    r = plimsoll("block", tmp_path / "data", "--size", "64MiB", "--bs", "4KiB,64KiB,1MiB", "--iodepth", 4,
                 "--jobs", 4, *SHORT)
    measured(r)
    assert [w["size_bytes"] for w in r.summary["workloads"]] == [4096, 65536, 1 << 20]
