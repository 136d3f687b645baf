#!/bin/bash
# The page's tests: units, then in a real browser. Ends with `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
cd web
passed=0 failed=0
code=0
log=$(mktemp)
out=$(npx vitest run --reporter=json 2>"$log") || code=$?
read -r p f < <(printf '%s' "$out" | node -e '
  const text = require("fs").readFileSync(0, "utf8");
  const r = JSON.parse(text.slice(text.indexOf("{")));
  console.log(r.numPassedTests, r.numFailedTests);' 2>/dev/null || echo "0 1")
passed=$((passed + p)); failed=$((failed + f))
if [ "$code" != 0 ]; then printf '%s\n' "$out" | tail -40; cat "$log"; [ "$f" -gt 0 ] || failed=$((failed + 1)); fi
rm -f "$log"
if [ -f test/browser.test.mjs ]; then
  code=0
  # One after the other: the second makes the reports that it and the third open.
  out=$(node --test --test-concurrency=1 --test-reporter=tap test/drawn.test.mjs test/browser.test.mjs test/live.test.mjs test/history.test.mjs 2>&1) || code=$?
  p=$(printf '%s\n' "$out" | sed -n 's/^# pass //p'); f=$(printf '%s\n' "$out" | sed -n 's/^# fail //p')
  passed=$((passed + ${p:-0})); failed=$((failed + ${f:-1}))
  # What failed and why stands in the middle of it.
  [ "$code" = 0 ] || { printf '%s\n' "$out" | grep -A25 '^ *not ok' | head -200; printf '%s\n' "$out" | tail -20; }
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
