#!/bin/bash
# Rust's compiler for fuzzing, as cargo calls it for crates of this workspace (RUSTC_WORKSPACE_WRAPPER): they report what they cover, check
# their arithmetic, and are optimised a little. What they depend on is not. A build script runs here and is left alone. (Cargo knows this file by its name:
# after other flags, cargo clean -p each of ours, or another name.)
set -euo pipefail
rustc=$1
shift
for argument in "$@"; do
  case $argument in build_script_*) exec "$rustc" "$@" ;; esac
done
exec "$rustc" "$@" --cfg fuzzing -Copt-level=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks
