# Each target works on a fresh Debian 12 machine. `make demo` first; the rest is for those who change the code.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: demo demo-fleet build dist package web test bench lint fuzz install

PLIMSOLL := target/release/plimsoll

# Measures the embedded S3 server under a limit that is known, prints the verdict, leaves report.html.
demo: build
	@scripts/demo.sh

# The same over four agents on this machine, one of which is killed in the middle. Needs nats-server (scripts/install.sh brings it).
demo-fleet: build
	@scripts/demo-fleet.sh

# The page comes before the binary: it is built into it.
build: web
	@source scripts/env.sh && cargo build --release --locked -p plimsoll

# What is handed out: target/dist/plimsoll-x86_64 and -aarch64, for glibc 2.28 and newer.
dist:
	@scripts/install.sh dist
	@scripts/web.sh build
	@scripts/dist.sh

# Of this machine's architecture, in target/package: plimsoll_VERSION_ARCH.deb, its symbols beside it, and a container image (.oci.tar).
package: web
	@scripts/package.sh

web:
	@scripts/install.sh build
	@scripts/web.sh build

# Everything: formatting, lints, unit, property and snapshot tests, web, end to end, fuzz. Last line: N passed, N failed.
test:
	@scripts/install.sh
	@scripts/test.sh

# Long measurements; figures are printed and kept under bench/results.
bench: build
	@scripts/bench.sh

lint:
	@source scripts/env.sh && cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

fuzz:
	@scripts/install.sh build
	@scripts/fuzz.sh $${SECONDS_EACH:-60}

install:
	@scripts/install.sh
