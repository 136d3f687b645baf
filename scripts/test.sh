#!/bin/bash
# All tests. Each part adds to two counts; a part that cannot even start counts as one failure. The last line is
# `N passed, N failed`, and the exit code says the same.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 INSTA_UPDATE=no INSTA_FORCE_PASS=0
LOGS=$(mktemp -d /tmp/plimsoll-test-XXXXXX)
PASSED=0 FAILED=0 RETRIED=0 VOID=0

say() { echo "== $* ($((SECONDS / 60))m$((SECONDS % 60))s)"; }

# count PASSED FAILED
count() { PASSED=$((PASSED + $1)); FAILED=$((FAILED + $2)); }

# step NAME CMD...: one check, one count.
step() {
  say "$1"
  if "${@:2}"; then count 1 0; else count 0 1; echo "FAILED: $1"; fi
}

# sum FILE PATTERN: adds up the numbers before a word, as in `12 passed`.
sum() { grep -oE "[0-9]+ $2" "$1" | awk '{ n += $1 } END { print n + 0 }'; }

# counted NAME CMD...: a part that prints its own counts, in lines with `N passed` and `N failed`.
counted() {
  local name=$1 log=$LOGS/$1.log code=0
  shift
  say "$name"
  "$@" 2>&1 | tee "$log" | grep -vE '^test .* \.\.\. ok$|^$' || true
  code=${PIPESTATUS[0]}
  local passed failed
  passed=$(grep -E "$SUMMARY" "$log" | sum /dev/stdin passed)
  failed=$(grep -E "$SUMMARY" "$log" | sum /dev/stdin failed)
  local errors; errors=$(grep -E "$SUMMARY" "$log" | sum /dev/stdin 'errors?')
  failed=$((failed + errors))
  VOID=$((VOID + $(grep -cE '^SKIPPED .*: void: ' "$log")))
  RETRIED=$((RETRIED + $(grep -E "$SUMMARY" "$log" | sum /dev/stdin rerun)))
  # It failed without a count (a build error), or passed nothing: that is a failure, too.
  if [ "$failed" = 0 ] && { [ "$code" != 0 ] || [ "$passed" = 0 ]; }; then failed=1; echo "FAILED: $name (exit $code)"; fi
  count "$passed" "$failed"
}

step "web: build" scripts/web.sh build
step "format" cargo fmt --all --check
step "dependencies" scripts/dependencies.py
step "clippy" cargo clippy --workspace --all-targets --locked -q -- -D warnings
# The tests drive the binary that is handed out. It is built beside the unit tests: each of the two waits for itself at its links.
scripts/dist.sh x86_64 >"$LOGS/dist" 2>&1 &
DIST=$!
SUMMARY='^test result:' counted cargo cargo test --workspace --locked --no-fail-fast
dist_built() { wait "$DIST" || { tail -40 "$LOGS/dist"; return 1; }; }
step "build: release" dist_built
SUMMARY='^[0-9]+ passed, [0-9]+ failed$' counted web scripts/web-tests.sh
export PLIMSOLL_BIN=$PWD/target/dist/plimsoll-x86_64
# Three files at a time: most of their time is waiting for a limit. What measures (marked so: its figures are void where others take the
# CPU) comes last, without the others beside it. What measures real limiters says of itself that what fails is tried again (pytestmark); the
# rest of it is tried again where it was disturbed all the same, by the hypervisor, too (conftest.py); how often is told at the end, and what
# stayed void. It comes last of all, so that the time for another try is what is left of ninety minutes: after 80 nothing is tried again.
export PLIMSOLL_RETRY_UNTIL=$(($(date +%s) + 4800 - SECONDS))
e2e() {
  SUMMARY='[0-9]+ (passed|failed|error).* in [0-9.]+' counted "$1" .local/venv/bin/python -m pytest -q --maxfail=25 \
    --dist loadfile --no-loadscope-reorder -rRs -p no:cacheprovider "${@:2}" tests/e2e
}
e2e e2e -n 3 -m "not measures"
SUMMARY='^[0-9]+ passed, [0-9]+ failed$' counted fuzz scripts/fuzz.sh "${FUZZ_SECONDS:-8}"
e2e measured -n 2 -m measures

say "done"
# Once more, where whoever reads the end of a long log looks.
grep -hE '^(FAILED|ERROR) |^test .* FAILED$|^fuzz .*FAILED' "$LOGS"/*.log | sort -u || true
rm -rf "$LOGS"
echo "$RETRIED retried (real limiters, and where CPU time was stolen), $VOID void (stolen in the last try, too)"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
