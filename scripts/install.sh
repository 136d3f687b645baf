#!/bin/bash
# Installs what `make test` needs on a Debian 12 machine: packages, Rust, Go, S3 servers to test against, and a
# Python environment under .local. Does nothing for what is there already, so it is quick the second time.
#
#   scripts/install.sh build    only what the build needs (make demo)
#   scripts/install.sh          all of it
set -euo pipefail
cd "$(dirname "$0")/.."
WHAT=${1:-all}
say() { echo "install: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_for COMMAND PACKAGE: notes the package when the command is missing.
PACKAGES=()
apt_for() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || PACKAGES+=("$2"); }

apt_for cc build-essential
apt_for c++ build-essential
apt_for curl curl
apt_for git git
[ -e /etc/ssl/certs/ca-certificates.crt ] || PACKAGES+=(ca-certificates)
if ! command -v node >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then PACKAGES+=(nodejs npm); fi
if [ "$WHAT" = all ]; then
  apt_for python3 python3
  python3 -c 'import venv, ensurepip' 2>/dev/null || PACKAGES+=(python3-venv)
  apt_for openssl openssl
  apt_for chromium chromium
  apt_for fio fio
  apt_for nginx nginx-light
  apt_for tc iproute2
  apt_for qemu-storage-daemon qemu-system-common
  apt_for qemu-img qemu-utils
  apt_for fusermount3 fuse3
  apt_for nbdkit nbdkit
  apt_for nbdfuse libnbd-bin
  apt_for losetup mount
  apt_for mkfs.ext4 e2fsprogs
fi
if [ ${#PACKAGES[@]} -gt 0 ]; then
  say "apt: ${PACKAGES[*]}"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >&2
fi

if ! command -v cargo >/dev/null && [ ! -x "$HOME/.cargo/bin/cargo" ]; then
  say "rust"
  curl -fsSL https://sh.rustup.rs | sh -s -- -y --profile minimal --component rustfmt,clippy >&2
fi
[ "$WHAT" = all ] || exit 0

. scripts/env.sh
if ! command -v go >/dev/null; then
  say "go"
  mkdir -p .local
  curl -fsSL "https://go.dev/dl/go1.25.1.linux-$(dpkg --print-architecture).tar.gz" | tar -C .local -xz
fi
command -v minio >/dev/null || { say "minio (some minutes)"; go install github.com/minio/minio@latest >&2; }
command -v versitygw >/dev/null || { say "versitygw"; go install github.com/versity/versitygw/cmd/versitygw@latest >&2; }

if ! .local/venv/bin/python -c 'import boto3, pytest, fio_plot' 2>/dev/null; then
  say "python: boto3, pytest, fio-plot"
  python3 -m venv .local/venv
  .local/venv/bin/pip install -q boto3 pytest fio-plot >&2
fi
