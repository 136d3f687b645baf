#!/bin/bash
# haproxy's request rate limit before an S3 server: haproxy.sh BACKEND REQUESTS PERIOD MODE, for example
#   haproxy.sh 127.0.0.1:9000 137 1s counted
# More than REQUESTS in a sliding PERIOD are answered 429 with SlowDown. MODE: `counted`, refused requests count, too (haproxy's
# usual way: a client that insists gets nothing), `spared`, they do not, or `tarpit`, they count and are answered two seconds later.
# Environment: DIR, PORT.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
BACKEND=${1:?backend} REQUESTS=${2:?requests} PERIOD=${3:?period, for example 1s} MODE=${4:?counted, spared or tarpit}
new_dir haproxy
PORT=${PORT:-$(free_port)}
printf '%s' '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>' >"$DIR/slow.xml"
DENY="http-request return status 429 content-type application/xml file $DIR/slow.xml if"
case $MODE in
  counted) RULES="
  stick-table type integer size 1k expire 60s store http_req_rate($PERIOD)
  http-request track-sc0 int(1)
  $DENY { sc_http_req_rate(0) gt $REQUESTS }" ;;
  spared) RULES="
  stick-table type integer size 1k expire 60s store gpc0,gpc0_rate($PERIOD)
  http-request track-sc0 int(1)
  $DENY { sc0_gpc0_rate ge $REQUESTS }
  http-request sc-inc-gpc0(0)" ;;
  tarpit) RULES="
  timeout tarpit 2s
  stick-table type integer size 1k expire 60s store http_req_rate($PERIOD)
  http-request track-sc0 int(1)
  http-request tarpit deny_status 429 if { sc_http_req_rate(0) gt $REQUESTS }" ;;
  *) echo "MODE is counted, spared or tarpit, not $MODE" >&2; exit 2 ;;
esac
cat >"$DIR/haproxy.cfg" <<C
global
  maxconn 4096
  pidfile $DIR/server.pid
defaults
  mode http
  option http-keep-alive
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend s3
  bind 127.0.0.1:$PORT
$RULES
  default_backend storage
backend storage
  http-reuse always
  server s3 $BACKEND
C
haproxy -D -f "$DIR/haproxy.cfg" >"$DIR/log" 2>&1
wait_http "http://127.0.0.1:$PORT/"
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=http://127.0.0.1:$PORT"
