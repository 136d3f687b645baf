#!/bin/bash
# Every benchmark of bench/, one after the other; figures are printed and kept under bench/results/DATE.txt.
# LONG=1 (make bench LONG=1): the run that watches the client's memory takes ten minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
mkdir -p bench/results
OUT=bench/results/$(date -u +%Y%m%d-%H%M%S).txt
{
  echo "# $(date -u +%FT%TZ), $(uname -r), $(nproc) CPUs, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  for b in bench/*.sh; do
    echo "## $b"
    FLAGS=()
    if [ -n "${LONG:-}" ] && [ "$b" = bench/object.sh ]; then FLAGS=(--long); fi
    bash "$b" "${FLAGS[@]}" || echo "FAILED: $b (exit $?)"
  done
} 2>&1 | tee "$OUT"
