#!/bin/bash
# nginx limit_req before an S3 server: nginx-limit.sh BACKEND OPS_PER_S BURST STATUS, for example
#   nginx-limit.sh 127.0.0.1:9000 200 20 503
# Rejects with SlowDown and Retry-After: 1. Environment: DIR, PORT, TLS (directory with server.pem, server.key and
# ca.pem: TLS, for clients whose certificate that CA has signed).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
BACKEND=${1:?backend} RATE=${2:?ops/s} BURST=${3:?burst} STATUS=${4:-503}
new_dir nginx
PORT=${PORT:-$(free_port)}
mkdir -p "$DIR/t"; chmod -R 777 "$DIR"
SCHEME=http; SSL=""; VERIFY=""
if [ -n "${TLS:-}" ]; then
  SCHEME=https; SSL=ssl
  VERIFY="ssl_certificate $TLS/server.pem; ssl_certificate_key $TLS/server.key; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_client_certificate $TLS/ca.pem; ssl_verify_client on;"
fi
cat >"$DIR/nginx.conf" <<C
pid $DIR/server.pid; error_log $DIR/log error; worker_processes 1; daemon on; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 0; sendfile on; tcp_nodelay on;
  client_body_temp_path $DIR/t; proxy_temp_path $DIR/t; fastcgi_temp_path $DIR/t; uwsgi_temp_path $DIR/t; scgi_temp_path $DIR/t;
  limit_req_zone \$server_port zone=all:1m rate=${RATE}r/s;
  upstream s3 { server $BACKEND; keepalive 128; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:$PORT $SSL backlog=1024; $VERIFY keepalive_requests 1000000; ignore_invalid_headers off;
    error_page $STATUS = @slow;
    location / {
      limit_req zone=all burst=$BURST nodelay; limit_req_status $STATUS;
      proxy_pass http://s3; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host \$http_host;
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 300s;
    }
    location @slow { default_type application/xml; add_header Retry-After 1 always;
      return $STATUS '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'; }
  }
}
C
nginx -c "$DIR/nginx.conf" -e "$DIR/log"
for _ in $(seq 50); do [ -s "$DIR/server.pid" ] && break; sleep 0.1; done
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=$SCHEME://127.0.0.1:$PORT"
