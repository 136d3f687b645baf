#!/bin/bash
# fuzz.sh SECONDS [TARGET...]: each fuzz target, or those named, for that long; as many at once as there are cores.
# Stable Rust: coverage by LLVM's own pass (fuzz-rustc.sh), no sanitizer (the parsers are safe code; a panic, a hang or memory without
# bound is what is looked for). What was found stays in fuzz/artifacts/TARGET, what was learnt in fuzz/corpus/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
EACH=${1:-60}
NAMES=("${@:2}")
# What they depend on is not instrumented, and is that of the tests where these have it with the same features.
RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/fuzz-rustc.sh cargo build --locked -p plimsoll-fuzz --bins >&2
if [ ${#NAMES[@]} = 0 ]; then NAMES=($(cd fuzz/fuzz_targets && ls ./*.rs | sed 's/.*\///; s/\.rs$//')); fi

# one NAME: its log, and beside it a file `ok` where nothing was found.
one() {
  local name=$1 work=fuzz/artifacts/$1 seeds=()
  mkdir -p "fuzz/corpus/$name" "$work"
  rm -f "$work.ok"
  [ -d "fuzz/seeds/$name" ] && seeds=("fuzz/seeds/$name")
  "${CARGO_TARGET_DIR:-target}/debug/$name" -max_total_time="$EACH" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$work/" -print_final_stats=1 "fuzz/corpus/$name" "${seeds[@]}" >"$work.log" 2>&1 && touch "$work.ok"
}

cores=$(nproc)
for name in "${NAMES[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$cores" ]; do wait -n || true; done
  one "$name" &
done
wait

passed=0; failed=0
for name in "${NAMES[@]}"; do
  if [ -e "fuzz/artifacts/$name.ok" ]; then
    passed=$((passed + 1))
    echo "fuzz $name: ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "fuzz/artifacts/$name.log") inputs" >&2
  else
    failed=$((failed + 1))
    echo "fuzz $name: FAILED" >&2
    tail -40 "fuzz/artifacts/$name.log" >&2
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
