"""A result that was measured, and cannot be written to where it was asked for."""

import os
import subprocess

import pytest
from conftest import BIN


@pytest.fixture
def full(tmp_path):
    place = tmp_path / "full"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def short(tmp_path):
    return ["block", tmp_path / "f", "--size", "8MiB", "--bs", "4KiB", "--runtime", "2s", "--quiet"]


def test_a_report_that_finds_no_room_costs_neither_the_result_nor_its_code(plimsoll, full, tmp_path):
    (full / "filler").write_bytes(b"x" * 60000)
    r = plimsoll(*short(tmp_path), "--html", full / "o.html")
    assert "4KiB" in r.out or "4 KiB" in r.out, r.out
    assert "No space left" in r.err and "plimsoll report" in r.err, r.err
    again = plimsoll("report", "last", "--json")
    # Measured: never the code of what was not.
    assert r.code == (6 if again.summary["answered"] else 3), r.err
    assert os.listdir(full) == ["filler"], "a part of a report is none"


def to_full(*args, runs):
    with open("/dev/full", "w") as out:
        done = subprocess.run([str(BIN), *map(str, args)], stdout=out, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"PLIMSOLL_RUNS": str(runs)}, timeout=120)
    return done.returncode, done.stderr


def test_a_full_stdout_costs_no_result(plimsoll, runs, tmp_path):
    code, err = to_full(*short(tmp_path), runs=runs)
    again = plimsoll("report", "last", "--json")
    assert code == (6 if again.summary["answered"] else 3), err
    assert "cannot be written to stdout" in err and "The run itself is stored" in err, err


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["object", "put", "--help"]])
def test_help_that_nobody_gets_is_an_error(runs, args):
    code, err = to_full(*args, runs=runs)
    assert code == 2 and "cannot be written" in err, err
