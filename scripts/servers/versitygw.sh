#!/bin/bash
# versitygw over a directory: an S3 server of another make. Environment: DIR, PORT.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
new_dir versitygw
PORT=${PORT:-$(free_port)}
mkdir -p "$DIR/data" "$DIR/iam"
ROOT_ACCESS_KEY=admin ROOT_SECRET_KEY=adminsecret \
  setsid versitygw --port "127.0.0.1:$PORT" --iam-dir "$DIR/iam" posix "$DIR/data" >"$DIR/log" 2>&1 </dev/null &
echo $! >"$DIR/server.pid"
wait_http "http://127.0.0.1:$PORT/"
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=http://127.0.0.1:$PORT"
echo "access_key=admin"; echo "secret_key=adminsecret"
