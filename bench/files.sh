#!/bin/bash
# Write phases of Plimsoll, GoBonnieGo and dperf (where GOBONNIEGO and DPERF name them, or on PATH) against what the kernel counted.
exec python3 "$(dirname "$0")/files.py" "$@"
