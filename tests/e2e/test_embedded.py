"""The embedded server holds its own promises: each embedded_*.py is a script of its own, and a test here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = sorted(p.name for p in HERE.glob("embedded_s3_*.py"))


# Of rates: void where the CPU is stolen. What the others hold holds anywhere.
MEASURES = ["embedded_s3_limits.py"]


@pytest.mark.parametrize("script", [pytest.param(s, marks=[pytest.mark.measures] * (s in MEASURES)) for s in SCRIPTS])
def test_script(script):
    binary = os.environ.get("PLIMSOLL_BIN", str(ROOT / "target" / "release" / "plimsoll"))
    env = dict(os.environ, PLIMSOLL_BIN=binary, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, str(HERE / script)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), "a script that says nothing has tested nothing"
