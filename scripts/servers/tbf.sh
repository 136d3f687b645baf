#!/bin/bash
# A network namespace whose loopback is limited by tbf: tbf.sh RATE (for example 400mbit; both directions share it).
# Run server and client in it:  ip netns exec NAME CMD. Environment: DIR.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
RATE=${1:?rate, for example 400mbit}
new_dir tbf
NAME=$(basename "$DIR")
ip netns add "$NAME"
echo "ip netns del $NAME" >"$DIR/undo"
ip -n "$NAME" link set lo up
ip netns exec "$NAME" tc qdisc add dev lo root tbf rate "$RATE" burst "${BURST:-256kb}" latency "${LATENCY:-50ms}"
echo "dir=$DIR"; echo "netns=$NAME"
