"""The binary that is handed out (scripts/dist.sh): small, without symbols, and it starts on the systems of the last years."""

import re
import subprocess

import pytest
from conftest import ROOT

DIST = ROOT / "target/dist"
# RHEL 8's; Debian 10 and Ubuntu 20.04 have 2.28 and 2.31, Amazon Linux 2023 has 2.34.
OLDEST_GLIBC = (2, 28)
# What glibc brings; an older system need not have anything else.
OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2"}


def readelf(binary, *flags):
    return subprocess.run(["readelf", "--wide", *flags, binary], stdout=subprocess.PIPE, text=True, check=True).stdout


def built():
    """The one for this machine, always; the other where `make dist` built it."""
    return sorted({DIST / "plimsoll-x86_64", *DIST.glob("plimsoll-*")})


@pytest.fixture(params=built(), ids=lambda path: path.name)
def binary(request):
    assert request.param.exists(), "scripts/dist.sh makes it"
    return request.param


def test_it_starts_on_older_systems(binary):
    wanted = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)", readelf(binary, "--version-info"))}
    assert wanted, "it is linked with glibc"
    assert max(wanted) <= OLDEST_GLIBC, sorted(wanted)[-3:]
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(binary, "--dynamic")))
    loader = {n for n in needed if n.startswith("ld-linux")}
    assert needed - loader <= OF_GLIBC, needed


def test_it_carries_no_symbols(binary):
    """They are four fifths of the size."""
    sections = readelf(binary, "--section-headers")
    assert ".text" in sections and ".symtab" not in sections and ".debug_" not in sections, sections
    # 38 MB with fleets, campaigns and imports, of which the code is 29; nobody should have to wait for much more.
    assert binary.stat().st_size < 48 << 20
