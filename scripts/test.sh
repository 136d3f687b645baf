#!/bin/bash
# All tests. Each part adds to two counts; a part that cannot even start counts as one failure. The last line is
# `N passed, N failed`, and the exit code says the same.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 INSTA_UPDATE=no INSTA_FORCE_PASS=0
LOGS=$(mktemp -d /tmp/plimsoll-test-XXXXXX)
PASSED=0 FAILED=0 RETRIED=0

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
  RETRIED=$((RETRIED + $(grep -E "$SUMMARY" "$log" | sum /dev/stdin rerun)))
  # It failed without a count (a build error), or passed nothing: that is a failure, too.
  if [ "$failed" = 0 ] && { [ "$code" != 0 ] || [ "$passed" = 0 ]; }; then failed=1; echo "FAILED: $name (exit $code)"; fi
  count "$passed" "$failed"
}

step "web: build" scripts/web.sh build
step "format" cargo fmt --all --check
step "dependencies" scripts/dependencies.py
step "clippy" cargo clippy --workspace --all-targets --locked -q -- -D warnings
SUMMARY='^test result:' counted cargo cargo test --workspace --locked --no-fail-fast
SUMMARY='^[0-9]+ passed, [0-9]+ failed$' counted web scripts/web-tests.sh
step "build: release" cargo build --release --locked -p plimsoll
# Three files at a time: most of their time is waiting for a limit. The files that measure real limiters say of themselves that
# what fails is tried again (pytestmark); how often that came to pass is told at the end.
SUMMARY='[0-9]+ (passed|failed|error).* in [0-9.]+' counted e2e .local/venv/bin/python -m pytest -q --maxfail=25 \
  -n 3 --dist loadfile --no-loadscope-reorder -rR -p no:cacheprovider tests/e2e
SUMMARY='^[0-9]+ passed, [0-9]+ failed$' counted fuzz scripts/fuzz.sh "${FUZZ_SECONDS:-25}"

say "done"
rm -rf "$LOGS"
echo "$RETRIED retried (tests of real limiters)"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
