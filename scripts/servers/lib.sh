# Shared by the start scripts of servers. Sourced; not run.
#
# Each script keeps everything in one directory, DIR (given, or a new one under /tmp), prints `name=value` lines
# (dir, pid, endpoint, ...) once the server answers, and is stopped with stop.sh DIR, which ends exactly the
# processes whose ids are in DIR/*.pid, and what else DIR/undo says.

# A directory that is given is new, empty, or one of these: stop.sh removes it with all that is in it.
new_dir() {
  DIR=${DIR:-$(mktemp -d "/tmp/plimsoll-$1-XXXXXX")}
  mkdir -p "$DIR"
  if [ ! -f "$DIR/$MARK" ] && [ -n "$(ls -A "$DIR")" ]; then
    echo "$DIR is not empty, and is no directory of a server's script: name another DIR" >&2
    exit 2
  fi
  touch "$DIR/$MARK"
}
MARK=.plimsoll-server

# free_port: a TCP port that nobody listens on now.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# wait_http URL: until something answers, or 20 s.
wait_http() {
  for _ in $(seq 200); do
    curl -s -o /dev/null --max-time 2 ${CURL_FLAGS:-} "$1" && return 0
    sleep 0.1
  done
  echo "no answer from $1; see $DIR/log" >&2
  tail -5 "$DIR/log" >&2
  return 1
}
