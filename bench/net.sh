#!/bin/bash
# `plimsoll net` beside iperf3: under a shaper and on the loopback, in turn, in one run. Skipped where namespaces cannot be made.
if [ "$(id -u)" != 0 ] || ! command -v iperf3 >/dev/null; then echo "skipped: needs root and iperf3"; exit 0; fi
exec python3 "$(dirname "$0")/net.py" "$@"
