#!/bin/bash
# package.sh: under target/package the Debian packages plimsoll_VERSION_ARCH.deb with the stripped binary, man pages and completions, and
# plimsoll-dbgsym_VERSION_ARCH.deb with its symbols; and plimsoll_VERSION_ARCH.oci.tar, a container image with the same binary (image.py). PLIMSOLL_BIN: a binary that was built before, with or without symbols (default: one is built).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
OUT=${PLIMSOLL_PACKAGES:-target/package}
say() { echo "package: $*" >&2; }
die() { say "$*"; exit 2; }
for tool in dpkg-deb objcopy objdump strip python3; do
  command -v "$tool" >/dev/null || die "$tool is missing: apt-get install dpkg binutils python3"
done

VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
ARCH=$(dpkg --print-architecture)
if [ -z "${PLIMSOLL_BIN:-}" ]; then
  # The released code, with names and lines: these go into a package of their own.
  cargo build --profile profiling --locked -p plimsoll
  PLIMSOLL_BIN=target/profiling/plimsoll
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root symbols=$work/symbols
doc=$root/usr/share/doc/plimsoll
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$doc/examples" \
  "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
  "$root/usr/share/fish/vendor_completions.d" "$symbols/DEBIAN" "$symbols/usr/lib/debug/usr/bin"

objcopy --only-keep-debug --compress-debug-sections "$PLIMSOLL_BIN" "$symbols/usr/lib/debug/usr/bin/plimsoll.debug"
strip -o "$root/usr/bin/plimsoll" "$PLIMSOLL_BIN"
objcopy --add-gnu-debuglink="$symbols/usr/lib/debug/usr/bin/plimsoll.debug" "$root/usr/bin/plimsoll"
bin=$root/usr/bin/plimsoll

# Nobody's own defaults are printed into a page.
export PLIMSOLL_CONFIG=/dev/null
"$bin" man --out "$root/usr/share/man/man1" 2>/dev/null
gzip -9n "$root"/usr/share/man/man1/*.1
"$bin" completions bash >"$root/usr/share/bash-completion/completions/plimsoll"
"$bin" completions zsh >"$root/usr/share/zsh/vendor-completions/_plimsoll"
"$bin" completions fish >"$root/usr/share/fish/vendor_completions.d/plimsoll.fish"
cp README.md METHODOLOGY.md GLOSSARY.md BIAS.md "$doc/"
cp -r plans prices "$doc/examples/"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
cat >"$doc/copyright" <<EOF
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the authors of plimsoll
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0. Crates that are built in, with their licences: DEPENDENCIES.md of the sources.
EOF

# The oldest C library that has all that the binary asks for.
libc=$(objdump -T "$bin" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -1)
control() {
  cat <<EOF
Package: $1
Version: $VERSION
Architecture: $ARCH
Maintainer: the authors of plimsoll <plimsoll@localhost>
Installed-Size: $(du -sk "$2" | cut -f1)
Section: $3
Priority: optional
$4
EOF
}
control plimsoll "$root" admin "Depends: libc6 (>= $libc), libgcc-s1
Suggests: nats-server, openssh-client, qemu-system-common, iproute2
Description: storage benchmark that says what limits
 Measures S3 buckets, block devices and directories, alone or from many
 machines; finds caps, bursts and knees, with an interval for each figure." >"$root/DEBIAN/control"
control plimsoll-dbgsym "$symbols" debug "Depends: plimsoll (= $VERSION)
Description: symbols of plimsoll
 For a debugger or a profiler." >"$symbols/DEBIAN/control"
for dir in "$root" "$symbols"; do
  find "$dir" -type d -exec chmod 755 {} + && find "$dir" -type f -exec chmod 644 {} +
  (cd "$dir" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
done
chmod 755 "$bin"

mkdir -p "$OUT"
for pair in "root plimsoll" "symbols plimsoll-dbgsym"; do
  read -r dir name <<<"$pair"
  dpkg-deb --root-owner-group --build "$work/$dir" "$work/$name.deb" >/dev/null
  mv "$work/$name.deb" "$OUT/${name}_${VERSION}_$ARCH.deb"
  say "$OUT/${name}_${VERSION}_$ARCH.deb ($(du -k "$OUT/${name}_${VERSION}_$ARCH.deb" | cut -f1) KiB)"
done
scripts/image.py "$bin" "$OUT/plimsoll_${VERSION}_$ARCH.oci.tar" --version "$VERSION"
