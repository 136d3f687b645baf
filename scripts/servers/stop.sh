#!/bin/bash
# stop.sh DIR [--keep]: ends what a start script started in DIR, and removes DIR unless told to keep it. A directory that
# no such script made is left alone.
DIR=${1:?usage: stop.sh DIR [--keep]}
if [ ! -f "$DIR/.plimsoll-server" ]; then
  echo "$DIR is no directory of a server's script: nothing is ended or removed" >&2
  exit 2
fi
for f in "$DIR"/*.pid; do
  [ -f "$f" ] || continue
  pid=$(cat "$f")
  kill "$pid" 2>/dev/null
  for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null
  rm -f "$f"
done
[ -f "$DIR/undo" ] && bash "$DIR/undo"
[ "${2:-}" = --keep ] || rm -rf "$DIR"
exit 0
