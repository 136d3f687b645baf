#!/bin/bash
# What a fleet costs, how exactly it starts, and how it does with a crowd.
exec python3 "$(dirname "$0")/fleet.py" "$@"
