#!/bin/bash
# nginx limits per connection before an S3 server: nginx-conn.sh BACKEND MODE AMOUNT, for example
#   nginx-conn.sh 127.0.0.1:9000 rate 25     # 25 requests a second of each connection, which has to wait
#   nginx-conn.sh 127.0.0.1:9000 conn 8      # 8 requests at once, of all; 503 with SlowDown beyond
#   nginx-conn.sh 127.0.0.1:9000 bytes 200k  # of each response, 200 KiB a second
# Environment: DIR, PORT.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
BACKEND=${1:?backend} MODE=${2:?rate, conn or bytes} AMOUNT=${3:?amount}
new_dir nginx-conn
PORT=${PORT:-$(free_port)}
mkdir -p "$DIR/t"; chmod -R 777 "$DIR"
BUFFERING=off
case $MODE in
  # Requests of one connection come one after the other: those that wait are delayed, never refused.
  rate) ZONE="limit_req_zone \$connection zone=each:4m rate=${AMOUNT}r/s;" RULE="limit_req zone=each burst=100;" ;;
  conn) ZONE="limit_conn_zone \$server_port zone=all:1m;" RULE="limit_conn all $AMOUNT; limit_conn_status 503;" ;;
  # What is not buffered is passed on as it comes, whatever the rate.
  bytes) ZONE="" RULE="limit_rate $AMOUNT; proxy_max_temp_file_size 0;" BUFFERING=on ;;
  *) echo "MODE is rate, conn or bytes, not $MODE" >&2; exit 2 ;;
esac
cat >"$DIR/nginx.conf" <<C
pid $DIR/server.pid; error_log $DIR/log error; worker_processes 1; daemon on; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 0; sendfile on; tcp_nodelay on;
  client_body_temp_path $DIR/t; proxy_temp_path $DIR/t; fastcgi_temp_path $DIR/t; uwsgi_temp_path $DIR/t; scgi_temp_path $DIR/t;
  $ZONE
  upstream s3 { server $BACKEND; keepalive 128; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:$PORT backlog=1024; keepalive_requests 1000000; ignore_invalid_headers off;
    error_page 503 = @slow;
    location / {
      $RULE
      proxy_pass http://s3; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host \$http_host;
      proxy_buffering $BUFFERING; proxy_request_buffering off; proxy_read_timeout 300s;
    }
    location @slow { default_type application/xml;
      return 503 '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'; }
  }
}
C
nginx -c "$DIR/nginx.conf" -e "$DIR/log"
for _ in $(seq 50); do [ -s "$DIR/server.pid" ] && break; sleep 0.1; done
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=http://127.0.0.1:$PORT"
