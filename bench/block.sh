#!/bin/bash
# Plimsoll against fio, where it is on PATH, on one cached file and on the disk: the same load, in turn, in one run.
exec python3 "$(dirname "$0")/block.py" "$@"
