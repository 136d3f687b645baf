#!/usr/bin/env python3
"""image.py BINARY OUT.tar: a container image with plimsoll as an OCI archive, without a daemon and without a registry.

In it are the binary, the shared libraries that it asks for, this machine's certificate authorities and a user without rights, and nothing
else: no shell, no package manager. `podman load -i OUT.tar`, `skopeo copy oci-archive:OUT.tar ...` and `ctr image import OUT.tar` read it. The same
files give the same bytes: times are SOURCE_DATE_EPOCH's (0 where that is not set), owners and order are fixed.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

BINARY = "usr/local/bin/plimsoll"
# Nobody in particular: the user that `plimsoll fleet manifest` asks for, too.
USER = 65532
RUNS = "runs"
AUTHORITIES = [Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt")]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def die(what):
    print(f"image: {what}", file=sys.stderr)
    sys.exit(2)


def libraries(binary):
    """Where the loader finds each library, and the loader itself: name in the image to file."""
    done = subprocess.run(["ldd", binary], capture_output=True, text=True)
    if "statically linked" in done.stdout + done.stderr or "not a dynamic executable" in done.stdout + done.stderr:
        return {}
    if done.returncode:
        die(f"ldd does not read {binary}: {done.stderr.strip()}")
    found = {}
    for line in done.stdout.splitlines():
        if "not found" in line:
            die(f"a library is missing here: {line.strip()}")
        at = re.search(r"(/\S+) \(0x", line)
        if at:
            # By the name that is asked for; the file itself may be behind links.
            found[at.group(1).lstrip("/")] = Path(at.group(1)).resolve()
    return found


class Layer:
    """A tar whose bytes depend on what is in it alone."""

    def __init__(self, epoch):
        self.epoch, self.out, self.folders = epoch, io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.out, mode="w", format=tarfile.USTAR_FORMAT)

    def entry(self, name, mode, owner=0):
        info = tarfile.TarInfo(name)
        info.mtime, info.mode, info.uid, info.gid = self.epoch, mode, owner, owner
        return info

    def folder(self, name, mode=0o755, owner=0):
        above = str(Path(name).parent)
        if above != ".":
            self.folder(above)
        if name not in self.folders:
            self.folders.add(name)
            info = self.entry(name, mode, owner)
            info.type = tarfile.DIRTYPE
            self.tar.addfile(info)

    def file(self, name, content, mode=0o644):
        if "/" in name:
            self.folder(str(Path(name).parent))
        info = self.entry(name, mode)
        info.size = len(content)
        self.tar.addfile(info, io.BytesIO(content))

    def bytes(self):
        self.tar.close()
        return self.out.getvalue()


def layer(binary, epoch):
    out = Layer(epoch)
    # Its own folders first: a file's parents are made with rights of all.
    out.folder("tmp", 0o1777)
    out.folder(RUNS, 0o755, USER)
    out.file("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nplimsoll:x:{USER}:{USER}:plimsoll:/{RUNS}:/sbin/nologin\n".encode())
    out.file("etc/group", f"root:x:0:\nplimsoll:x:{USER}:\n".encode())
    # Names are looked up as everywhere: the hosts file, then DNS.
    out.file("etc/nsswitch.conf", b"hosts: files dns\n")
    authorities = next((f for f in AUTHORITIES if f.is_file()), None)
    if authorities is None:
        print("image: no certificate authorities on this machine (ca-certificates): https will need --ca-file", file=sys.stderr)
    else:
        out.file("etc/ssl/certs/ca-certificates.crt", authorities.read_bytes())
    for name, path in sorted(libraries(binary).items()):
        out.file(name, path.read_bytes(), 0o755)
    out.file(BINARY, binary.read_bytes(), 0o755)
    return out.bytes()


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def compact(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def image(binary, version, epoch, architecture):
    """Name to content of the archive's files."""
    plain = layer(binary, epoch)
    packed = gzip.compress(plain, 9, mtime=0)
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {
        "org.opencontainers.image.title": "plimsoll",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    config = compact({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", f"PLIMSOLL_RUNS=/{RUNS}", f"HOME=/{RUNS}"],
            "Entrypoint": ["plimsoll"],
            "WorkingDir": f"/{RUNS}",
            "Labels": about,
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(plain)]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    })

    def described(media, content, **more):
        return {"mediaType": f"application/vnd.oci.image.{media}", "digest": digest(content), "size": len(content), **more}

    manifest = compact({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", packed)],
        "annotations": about,
    })
    index = compact({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described(
            "manifest.v1+json",
            manifest,
            platform={"architecture": architecture, "os": "linux"},
            annotations={"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"localhost/plimsoll:{version}"},
        )],
    })
    blobs = {f"blobs/sha256/{hashlib.sha256(b).hexdigest()}": b for b in (config, packed, manifest)}
    return {"oci-layout": compact({"imageLayoutVersion": "1.0.0"}), "index.json": index, **blobs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path, help="plimsoll, stripped, for this machine's architecture")
    parser.add_argument("out", type=Path, help="the archive; one that is there is replaced")
    parser.add_argument("--version", required=True)
    args = parser.parse_args()
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        die(f"no name is known for the architecture {platform.machine()}")
    if not args.binary.is_file():
        die(f"{args.binary} is no file: build it first")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    whole = Layer(epoch)
    for name, content in sorted(image(args.binary, args.version, epoch, architecture).items()):
        whole.file(name, content)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    half = args.out.with_suffix(".half")
    half.write_bytes(whole.bytes())
    half.replace(args.out)
    print(f"image: {args.out} ({args.out.stat().st_size >> 10} KiB)", file=sys.stderr)


if __name__ == "__main__":
    main()
