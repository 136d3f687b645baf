#!/bin/bash
# A fleet on one machine, in a minute: a broker, four agents as processes, and the embedded S3 server with one limit for all of them
# (80 op/s: a published tier at a tenth). One agent is killed in the middle: what do the others' figures still say? All of it is taken
# down again, whatever happens; the run and report.html stay.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${PLIMSOLL_BIN:-target/release/plimsoll}
seconds=${DEMO_SECONDS:-40}
report=${DEMO_REPORT:-report.html}
# Where install.sh puts the broker, and where Debian does.
PATH=$PATH:$HOME/go/bin:/usr/sbin
here=$(mktemp -d)
# What is up already on this machine is not ours: the fleet has a directory of its own.
export XDG_RUNTIME_DIR=$here/state AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo-secret AWS_REGION=us-east-1
unset PLIMSOLL_FLEET PLIMSOLL_JOIN AWS_PROFILE AWS_SESSION_TOKEN
mkdir -m 700 "$XDG_RUNTIME_DIR"
agents=() killer='' run='' server=''

end() {
  local code=$?
  trap - EXIT
  trap '' INT TERM
  # One after the other: who conducts cleans up with the agents' help, and agents end before their broker.
  [ -z "$killer" ] || kill "$killer" 2>/dev/null || true
  [ -z "$run" ] || { kill "$run" && wait "$run"; } 2>/dev/null || true
  [ ${#agents[@]} -eq 0 ] || kill "${agents[@]}" 2>/dev/null || true
  for pid in ${agents[@]+"${agents[@]}"}; do wait "$pid" 2>/dev/null || true; done
  "$bin" fleet down --force >/dev/null 2>&1 || true
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
  rm -rf "$here"
  exit "$code"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# until_said FILE TEXT: a process says in its log when it is ready.
until_said() {
  for _ in $(seq 300); do
    grep -q "$2" "$1" && return
    sleep 0.1
  done
  echo "demo-fleet: '$2' was not said within 30 s:" >&2
  cat "$1" >&2
  return 1
}

echo "demo-fleet: four agents put to one server that allows 80 op/s; one of them is killed in the middle" >&2
"$bin" target s3 --listen 127.0.0.1:0 --data "$here/data" --bucket demo --tier vultr-standard --scale 0.1 --no-sync \
  >"$here/server" 2>&1 &
server=$!
until_said "$here/server" '"endpoint"'
endpoint=$(sed -n 's/.*"endpoint":"\([^"]*\)".*/\1/p' "$here/server")
"$bin" fleet up --listen 127.0.0.1:0 >/dev/null
PLIMSOLL_JOIN=$("$bin" fleet token)
for n in 1 2 3 4; do
  PLIMSOLL_JOIN=$PLIMSOLL_JOIN "$bin" agent --name "lg-$n" --runs-dir "$here/agent-$n" 2>"$here/lg-$n" &
  agents+=($!)
done
for n in 1 2 3 4; do until_said "$here/lg-$n" "waits for orders"; done
victim=${agents[2]}
# Nobody needs to be told by the shell, too.
disown "$victim"
(
  until_said "$here/lg-3" "at work for run"
  sleep $((seconds * 2 / 3))
  kill -9 "$victim"
) 2>/dev/null &
killer=$!
"$bin" object put --fleet --on-agent-loss continue --deadman 3s --endpoint "$endpoint" --bucket demo \
  --size 4KiB --concurrency 48 --on-throttle backoff --warmup 2s --duration "${seconds}s" --label demo=fleet \
  --html "$report" &
run=$!
code=0
wait "$run" || code=$?
run=''
"$bin" runs show last || true
echo "demo-fleet: open $report in a browser; README.md, \"Many machines\", says how it is done on more than one" >&2
# A busy machine may make the result invalid (3) or open (5): the verdict says so, and the demo has shown it.
case $code in 0 | 3 | 5) ;; *) exit "$code" ;; esac
