#!/bin/bash
# Rust's compiler for fuzzing, as cargo calls it for crates of this workspace (RUSTC_WORKSPACE_WRAPPER): they report what they cover, check
# their arithmetic, and are optimised a little. What they depend on is taken as `cargo test` built it. A build script runs here and is left alone.
set -euo pipefail
rustc=$1
shift
for argument in "$@"; do
  case $argument in build_script_*) exec "$rustc" "$@" ;; esac
done
exec "$rustc" "$@" --cfg fuzzing -Copt-level=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks
