"""More than a machine or a plan can take: said before anything is done, and a signal is heard at any time."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import BIN, wait_until


@pytest.mark.parametrize("flags,what", [
    (["--jobs", "100000"], "jobs"),
    (["--jobs", "16000", "--iodepth", "1000"], "concurrency x jobs"),
    (["--bs", "4GiB"], "a size"),
    (["--runtime", "9999d"], "a duration"),
])
def test_what_is_out_of_bounds_is_refused_before_anything_is_done(plimsoll, tmp_path, runs, flags, what):
    file = tmp_path / "f.dat"
    r = plimsoll("block", file, "--size", "64MiB", "--pattern", "randread", *flags)
    assert r.code == 2 and what in r.err and "out of range" in r.err and "Write " in r.err, r.err
    assert not file.exists() and not list(runs.glob("*")), "nothing was begun"


def test_a_signal_is_heard_while_workers_muster(background, tmp_path):
    file = tmp_path / "f.dat"
    run = background("block", file, "--size", "16MiB", "--pattern", "randread", "--bs", "4KiB", "--jobs", "1500", "--warmup", "0s",
                     "--runtime", "5m", "--json")
    threads = Path(f"/proc/{run.pid}/task")
    wait_until(lambda: run.poll() is not None or len(os.listdir(threads)) > 100, what="a hundred threads")
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert not file.exists(), "what it made is removed"


def limited(kib, runs, *args):
    """A run whose files may have so many KiB; the signal that comes with the limit kills who does not ignore it."""
    line = [str(BIN), *map(str, args), "--json", "--quiet", "--runs-dir", str(runs)]
    return subprocess.run(["bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash", *line], capture_output=True, text=True, timeout=60)


def test_a_limit_of_file_sizes_is_an_error_with_its_words(tmp_path, runs):
    file = tmp_path / "f.dat"
    r = limited(4096, runs, "block", file, "--size", "64MiB", "--pattern", "randwrite", "--bs", "4KiB", "--warmup", "0s", "--runtime",
                "1s")
    assert r.returncode > 0, f"killed by signal {-r.returncode}"
    assert "File too large" in r.stderr + r.stdout, r.stderr
    assert not file.exists(), "no empty file stays"


def test_a_write_beyond_the_limit_of_file_sizes_fails_as_an_op(tmp_path, runs):
    file = tmp_path / "f.dat"
    file.write_bytes(os.urandom(16 << 20))
    r = limited(8192, runs, "block", file, "--pattern", "randread", "--bs", "4KiB", "--warmup", "0s", "--runtime", "500ms")
    assert r.returncode in (0, 3), r.stderr
