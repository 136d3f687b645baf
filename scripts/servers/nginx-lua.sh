#!/bin/bash
# A token bucket in Lua, in nginx before an S3 server: nginx-lua.sh BACKEND RATE CAPACITY [COST], for example
#   nginx-lua.sh 127.0.0.1:9000 90 450
# RATE tokens a second, CAPACITY at most; a request takes one, and a refused one (503, SlowDown) takes COST (0). Environment:
# DIR, PORT.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
BACKEND=${1:?backend} RATE=${2:?tokens a second} CAPACITY=${3:?tokens} COST=${4:-0}
MODULES=/usr/lib/nginx/modules
new_dir nginx-lua
PORT=${PORT:-$(free_port)}
mkdir -p "$DIR/t"; chmod -R 777 "$DIR"
cat >"$DIR/bucket.lua" <<L
-- One worker process: what is in it is the whole bucket.
local store = ngx.shared.bucket
ngx.update_time()
local now = ngx.now()
local tokens = store:get("tokens") or $CAPACITY
local at = store:get("at") or now
tokens = math.min($CAPACITY, tokens + $RATE * (now - at))
store:set("at", now)
if tokens < 1 then
  store:set("tokens", tokens - $COST)
  return ngx.exec("@slow")
end
store:set("tokens", tokens - 1)
L
cat >"$DIR/nginx.conf" <<C
load_module $MODULES/ndk_http_module.so; load_module $MODULES/ngx_http_lua_module.so;
pid $DIR/server.pid; error_log $DIR/log error; worker_processes 1; daemon on; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 0; sendfile on; tcp_nodelay on;
  client_body_temp_path $DIR/t; proxy_temp_path $DIR/t; fastcgi_temp_path $DIR/t; uwsgi_temp_path $DIR/t; scgi_temp_path $DIR/t;
  lua_shared_dict bucket 1m;
  upstream s3 { server $BACKEND; keepalive 128; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:$PORT backlog=1024; keepalive_requests 1000000; ignore_invalid_headers off;
    location / {
      access_by_lua_file $DIR/bucket.lua;
      proxy_pass http://s3; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host \$http_host;
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 300s;
    }
    location @slow { default_type application/xml;
      return 503 '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'; }
  }
}
C
nginx -c "$DIR/nginx.conf" -e "$DIR/log"
for _ in $(seq 50); do [ -s "$DIR/server.pid" ] && break; sleep 0.1; done
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "endpoint=http://127.0.0.1:$PORT"
