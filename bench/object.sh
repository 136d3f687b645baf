#!/bin/bash
# Plimsoll against the canned server, and warp where it is on PATH: the same load, in turn, in one run.
exec python3 "$(dirname "$0")/object.py" "$@"
