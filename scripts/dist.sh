#!/bin/bash
# The binary that is handed out: it starts wherever the C library is glibc 2.28 or newer (RHEL 8, Debian 10, Ubuntu 20.04, Amazon
# Linux 2023), not only where this machine's is. Built on x86-64, for it and for arm64.
#
#   scripts/dist.sh [x86_64|aarch64]...    target/dist/plimsoll-ARCH (default: both)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
GLIBC=2.28
[ $# -gt 0 ] || set -- x86_64 aarch64
say() { echo "dist: $*" >&2; }
die() { say "$*"; exit 2; }

[ "$(uname -m)" = x86_64 ] || die "this runs on x86-64; elsewhere: make build"
[ -x .local/tools/bin/cargo-zigbuild ] || scripts/install.sh dist
export PATH="$PWD/.local/tools/bin:$PATH"
mkdir -p target/dist
for arch in "$@"; do
  target=$arch-unknown-linux-gnu
  # Debian's Rust has its own machine's library only.
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    command -v rustup >/dev/null || die "this Rust can't build for $arch: install rustup, or build for x86_64 only"
    rustup target add "$target" >&2
  fi
  say "$arch, glibc $GLIBC"
  cargo zigbuild --release --locked -p plimsoll --target "$target.$GLIBC"
  cp "target/$target/release/plimsoll" "target/dist/plimsoll-$arch.new"
  mv "target/dist/plimsoll-$arch.new" "target/dist/plimsoll-$arch"
done
