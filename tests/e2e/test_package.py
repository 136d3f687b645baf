"""`make package`: what is in the Debian package, that it can be installed and used, and that nothing is left of it."""

import gzip
import os
import shutil
import subprocess

import pytest
from conftest import BIN, ROOT


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    for tool in ("dpkg-deb", "dpkg", "objcopy"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    out = tmp_path_factory.mktemp("packages")
    env = os.environ | {"PLIMSOLL_BIN": str(BIN), "PLIMSOLL_PACKAGES": str(out)}
    subprocess.run([ROOT / "scripts" / "package.sh"], env=env, check=True, timeout=600)
    return sorted(out.glob("*.deb"))


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_is_installed_used_and_removed_again(packages, tmp_path):
    symbols, deb = packages
    assert (field(deb, "Package"), field(symbols, "Package")) == ("plimsoll", "plimsoll-dbgsym")
    assert "libc6 (>= 2." in field(deb, "Depends")
    admin = tmp_path / "root" / "var" / "lib" / "dpkg"
    for directory in ("info", "updates", "triggers"):
        (admin / directory).mkdir(parents=True)
    (admin / "status").touch()
    root = tmp_path / "root"
    # Of this root nothing else is installed: what the package depends on is the machine's.
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless"]

    def files():
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and "var/lib/dpkg" not in str(p))

    assert files() == []
    subprocess.run([*dpkg, "-i", deb, symbols], capture_output=True, check=True)
    here = files()
    binary = root / "usr/bin/plimsoll"
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith(f"plimsoll {field(deb, 'Version')}")
    stripped = subprocess.run(["file", binary], capture_output=True, text=True).stdout if shutil.which("file") else ""
    assert "not stripped" not in stripped
    page = gzip.open(root / "usr/share/man/man1/plimsoll-object-put.1.gz", "rt").read()
    assert ".TH plimsoll-object-put 1" in page
    for completion in (
        "usr/share/bash-completion/completions/plimsoll",
        "usr/share/zsh/vendor-completions/_plimsoll",
        "usr/share/fish/vendor_completions.d/plimsoll.fish",
        "usr/lib/debug/usr/bin/plimsoll.debug",
        "usr/share/doc/plimsoll/copyright",
    ):
        assert completion in here, here
    # It works where it is: a run on a simulated store.
    plan = root / "usr/share/doc/plimsoll/examples/plans/sim.toml"
    env = os.environ | {"PLIMSOLL_RUNS": str(tmp_path / "runs"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([binary, "run", plan, "-q"], env=env, capture_output=True, check=True, timeout=120)
    subprocess.run([*dpkg, "--purge", "plimsoll-dbgsym", "plimsoll"], capture_output=True, check=True)
    assert files() == []
