"""`make package`: what is in the Debian package and in the container image, that both can be used, and that nothing is left of the first."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

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
    return out


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_is_installed_used_and_removed_again(packages, tmp_path):
    symbols, deb = sorted(packages.glob("*.deb"))
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


def archived(path):
    """The image's files by name, the one manifest of its index, and a way to its blobs, of which each is what its name says."""
    with tarfile.open(path) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == name.removeprefix("blobs/sha256/")

    def blob(described):
        content = files["blobs/" + described["digest"].replace(":", "/")]
        assert len(content) == described["size"]
        return content

    [described] = json.loads(files["index.json"])["manifests"]
    assert described["platform"]["os"] == "linux" and described["platform"]["architecture"] in ("amd64", "arm64")
    return json.loads(blob(described)), blob


def test_the_image_is_an_archive_whose_parts_are_what_they_say(packages):
    [path] = packages.glob("*.oci.tar")
    manifest, blob = archived(path)
    assert manifest["schemaVersion"] == 2 and manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    config = json.loads(blob(manifest["config"]))
    assert config["config"]["Entrypoint"] == ["plimsoll"] and config["config"]["User"] == "65532:65532"
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in config["config"]["Env"]
    [layer] = manifest["layers"]
    assert layer["mediaType"].endswith("tar+gzip")
    plain = gzip.decompress(blob(layer))
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]}
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = {m.name: m for m in tar}
    assert all(m.isfile() or m.isdir() for m in members.values()), "no links, no devices"
    assert all(not n.startswith("/") and ".." not in n.split("/") for n in members)
    assert members["usr/local/bin/plimsoll"].mode == 0o755
    # Nobody may write to anything but where runs go, and nothing runs as somebody else.
    assert [n for n, m in members.items() if m.uid] == ["runs"] and members["runs"].uid == 65532
    assert not any(m.mode & 0o6000 for m in members.values())
    assert [n for n, m in members.items() if m.mode & 0o002] == ["tmp"]


def test_the_same_binary_makes_the_same_image(packages, tmp_path):
    binary = tmp_path / "plimsoll"
    shutil.copy("/bin/true", binary)
    made = []
    for name, more in [("a", {}), ("b", {"TZ": "Asia/Tokyo", "LC_ALL": "C"}), ("c", {"SOURCE_DATE_EPOCH": "1700000001"})]:
        out = tmp_path / f"{name}.tar"
        env = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"} | more
        subprocess.run([ROOT / "scripts" / "image.py", binary, out, "--version", "1.2.3"], env=env, check=True, timeout=60)
        made.append(out.read_bytes())
    assert made[0] == made[1] and made[0] != made[2]
    missing = subprocess.run([ROOT / "scripts" / "image.py", tmp_path / "none", tmp_path / "d.tar", "--version", "1"], capture_output=True, text=True)
    assert missing.returncode == 2 and "is no file" in missing.stderr and not (tmp_path / "d.tar").exists()


def test_the_image_runs_as_nobody_in_particular(packages, tmp_path):
    """As a container runtime has it: the layer is the root, and the user is the config's. Needs root for that."""
    if os.geteuid() or not shutil.which("chroot"):
        pytest.skip("needs root and chroot")
    [path] = packages.glob("*.oci.tar")
    manifest, blob = archived(path)
    config = json.loads(blob(manifest["config"]))["config"]
    root = tmp_path / "root"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(manifest["layers"][0])))) as tar:
        tar.extractall(root)
    shutil.copy(ROOT / "plans" / "sim.toml", root / "tmp" / "sim.toml")
    inside = [shutil.which("chroot"), f"--userspec={config['User']}", root, "/usr/local/bin/plimsoll"]

    def run(*args):
        env = dict(e.split("=", 1) for e in config["Env"])
        return subprocess.run([*inside, *args], env=env, capture_output=True, text=True, timeout=300)

    version = run("--version")
    assert version.returncode == 0 and version.stdout.startswith("plimsoll "), version
    made = run("run", "/tmp/sim.toml", "-q", "--json")
    assert made.returncode == 0 and json.loads(made.stdout)["valid"], made
    [kept] = [d for d in (root / "runs").iterdir() if d.is_dir() and not d.name.startswith(".")]
    assert kept.stat().st_uid == 65532
