"""`plimsoll audit`: exit codes, the place and remedy of bad input, and JSON."""

import json
import subprocess
from pathlib import Path

from conftest import BIN

SEEDS = Path(__file__).resolve().parents[2] / "crates/audit/seeds"


def audit(*args):
    return subprocess.run([str(BIN), "audit", *map(str, args)], capture_output=True, text=True, timeout=120)


def test_an_audit_says_what_does_not_fit_and_where(tmp_path):
    seed = SEEDS / "000"
    found = audit(seed / "table.md", "--map", seed / "facts.toml", "--json")
    assert found.returncode == 4, found.stderr
    report = json.loads(found.stdout)
    assert report["schema"] == "plimsoll.audit/1" and report["rows"] == 40
    rows = {r["line"]: r for r in report["remarks"] if r["rule"] == "bytes" and r["line"]}
    assert rows[29]["printed"] == "613.7 Objects/s and 2.1 MiB/s" and "-10.3 %" in rows[29]["expected"]

    sound = tmp_path / "sound.csv"
    sound.write_text("Size,IOPS,MiB/s\n4 KiB,1000,3.91\n64 KiB,900,56.3\n")
    assert audit(sound).returncode == 0
    bad = tmp_path / "bad.csv"
    bad.write_text("Size,IOPS,Throughput\n4 KiB,1000,3.91\n")
    refused = audit(bad)
    assert refused.returncode == 2 and "line 2, column 'Throughput'" in refused.stderr and "fix:" in refused.stderr
