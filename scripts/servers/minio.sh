#!/bin/bash
# MinIO over four directories (erasure coded 2+2). Environment: DIR, PORT, CERTS (directory with public.crt and
# private.key: TLS). User and password: minioadmin.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
new_dir minio
PORT=${PORT:-$(free_port)}
mkdir -p "$DIR"/d1 "$DIR"/d2 "$DIR"/d3 "$DIR"/d4
SCHEME=http; FLAGS=()
if [ -n "${CERTS:-}" ]; then SCHEME=https; FLAGS=(--certs-dir "$CERTS"); CURL_FLAGS=-k; fi
# MINIO_CI_CD lets it use plain directories of one file system.
MINIO_CI_CD=1 MINIO_ROOT_USER=minioadmin MINIO_ROOT_PASSWORD=minioadmin MINIO_BROWSER=off \
  setsid minio server "${FLAGS[@]}" --address "127.0.0.1:$PORT" "$DIR/d{1...4}" >"$DIR/log" 2>&1 </dev/null &
echo $! >"$DIR/server.pid"
wait_http "$SCHEME://127.0.0.1:$PORT/minio/health/live"
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=$SCHEME://127.0.0.1:$PORT"
echo "access_key=minioadmin"; echo "secret_key=minioadmin"
