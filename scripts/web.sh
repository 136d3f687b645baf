#!/bin/bash
# web.sh build|test: the report's page. Built before the binary, which carries it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
[ -f web/package.json ] || { echo "web: there is no web/package.json" >&2; exit 1; }
cd web
# npm ci only when the lock file changed since the last time.
if [ ! -f node_modules/.plimsoll-lock ] || ! cmp -s package-lock.json node_modules/.plimsoll-lock; then
  npm ci --no-audit --no-fund --loglevel=error >&2
  cp package-lock.json node_modules/.plimsoll-lock
fi
case ${1:-build} in
  build) npm run --silent build >&2 ;;
  test) npm test ;;
esac
