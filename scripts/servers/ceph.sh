#!/bin/bash
# Ceph on one machine, of Debian's packages (bookworm: 16.2.15), as root: a monitor, a manager with its page of metrics, four OSDs on files, and an
# object gateway; with a bucket whose objects are kept as three copies, and one whose objects are erasure coded 2+2. Nothing outside of DIR is read or written, and
# all that listens does so on 127.0.0.1. It takes about a minute. Packages:
#   apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-mgr-modules-core ceph-osd radosgw
# Environment: DIR; OSD_SIZE, the most that an OSD's file may grow to (6G); OSDS (4). Prints also `credentials`, a file of the AWS kind that only its owner
# reads (AWS_SHARED_CREDENTIALS_FILE), and `campaign`, a campaign of both layouts to run.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/lib.sh"
OSDS=${OSDS:-4} OSD_SIZE=${OSD_SIZE:-6G}
for tool in ceph ceph-mon ceph-mgr ceph-osd radosgw radosgw-admin ceph-authtool monmaptool curl python3; do
  command -v "$tool" >/dev/null && continue
  echo "$tool is not here: apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-mgr-modules-core ceph-osd radosgw curl python3" >&2
  exit 2
done
if ! { [ "$OSDS" -ge 4 ] && [ "$OSDS" -le 16 ]; } 2>/dev/null; then echo "OSDS is a number from 4 to 16: 2+2 has four shards" >&2; exit 2; fi
OSD_BYTES=$(numfmt --from=iec "$OSD_SIZE") || exit 2
umask 077
new_dir ceph
DIR=$(cd "$DIR" && pwd)
if [ -e "$DIR/ceph.conf" ]; then echo "$DIR has a Ceph of this script already: stop.sh $DIR" >&2; exit 2; fi
# Whatever fails before all of it answers: nothing stays behind but its logs.
trap 'code=$?; [ $code = 0 ] || { bash "$HERE/stop.sh" "$DIR" --keep; echo "Ceph did not start; its logs are $DIR/*.log" >&2; }' EXIT

MON_PORT=$(free_port) RGW_PORT=${PORT:-$(free_port)} MGR_PORT=$(free_port) NODE_PORT=$(free_port)
FSID=$(python3 -c 'import uuid; print(uuid.uuid4())')
cat >"$DIR/ceph.conf" <<C
[global]
fsid = $FSID
mon host = [v2:127.0.0.1:$MON_PORT]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
run dir = $DIR
crash dir = $DIR/crash
admin socket = $DIR/\$name.asok
log file = $DIR/\$name.log
log to stderr = false
mon cluster log file = $DIR/cluster.log
# An OSD is what may fail: all are on one host.
osd crush chooseleaf type = 0
osd pool default size = 3
osd pool default min size = 2
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mgr initial modules = prometheus
[client.admin]
keyring = $DIR/admin.keyring
admin socket =
log file =
[mon]
mon data = $DIR/\$name
mon data avail warn = 1
mon allow pool delete = true
[mgr]
mgr data = $DIR/\$name
[osd]
osd data = $DIR/\$name
osd objectstore = bluestore
bluestore block size = $OSD_BYTES
# As on the drives of the published test, whatever the kernel says of the one below. 512 MiB of memory each.
bluestore debug enforce settings = ssd
bluestore cache autotune = false
bluestore cache size = 134217728
# What is read comes from the drive, and not from what an OSD keeps in memory.
bluestore default buffered read = false
[client.rgw.a]
rgw data = $DIR/rgw
keyring = $DIR/rgw.keyring
rgw frontends = beast endpoint=127.0.0.1:$RGW_PORT
# Work of its own beside the load: not here.
rgw dynamic resharding = false
C
export CEPH_CONF="$DIR/ceph.conf" CEPH_ARGS=
# start NAME COMMAND...: a child in the foreground mode of Ceph's daemons, in a session of its own. stop.sh takes NAMEs in order.
start() {
  local name=$1; shift
  setsid "$@" >"$DIR/$name.out" 2>&1 </dev/null &
  echo $! >"$DIR/$name.pid"
}
# until_true SECONDS WHAT COMMAND...
until_true() {
  local end=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "$what: not in time" >&2; return 1; }
    sleep 0.5
  done
}
quietly() { "$@" >>"$DIR/setup.out" 2>&1 || { echo "failed: $*" >&2; tail -5 "$DIR/setup.out" >&2; return 1; }; }
key_of() { ceph auth get-or-create "$@" 2>>"$DIR/setup.out"; }

quietly ceph-authtool --create-keyring "$DIR/admin.keyring" --gen-key -n client.admin \
  --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
quietly ceph-authtool --create-keyring "$DIR/first.keyring" --gen-key -n mon. --cap mon 'allow *'
quietly ceph-authtool "$DIR/first.keyring" --import-keyring "$DIR/admin.keyring"
quietly monmaptool --create --fsid "$FSID" --addv a "[v2:127.0.0.1:$MON_PORT]" "$DIR/monmap"
quietly ceph-mon --mkfs -i a --monmap "$DIR/monmap" --keyring "$DIR/first.keyring"
start 4-mon ceph-mon -f -i a
until_true 30 "the monitor" ceph --connect-timeout 2 mon stat

# The monitor knows the manager's modules only once one ran.
quietly ceph config set --force mgr mgr/prometheus/server_addr 127.0.0.1
quietly ceph config set --force mgr mgr/prometheus/server_port "$MGR_PORT"
mkdir "$DIR/mgr.a" "$DIR/crash" "$DIR/rgw"
key_of mgr.a mon 'allow profile mgr' osd 'allow *' mds 'allow *' >"$DIR/mgr.a/keyring"
start 2-mgr ceph-mgr -f -i a

for i in $(seq 0 $((OSDS - 1))); do
  mkdir "$DIR/osd.$i"
  id=$(ceph osd new "$(python3 -c 'import uuid; print(uuid.uuid4())')" 2>>"$DIR/setup.out")
  key_of "osd.$id" mon 'allow profile osd' mgr 'allow profile osd' osd 'allow *' >"$DIR/osd.$id/keyring"
  uuid=$(ceph osd dump -f json 2>/dev/null | python3 -c 'import json, sys; print(next(o["uuid"] for o in json.load(sys.stdin)["osds"] if o["osd"] == int(sys.argv[1])))' "$id")
  quietly ceph-osd --mkfs -i "$id" --osd-uuid "$uuid"
  start "3-osd.$id" ceph-osd -f -i "$id"
done
until_true 60 "$OSDS OSDs" sh -c "ceph osd stat -f json 2>/dev/null | grep -q '\"num_up_osds\":$OSDS,'"

# As many placement groups of each layout, so that both spread alike.
quietly ceph osd erasure-code-profile set ec22 k=2 m=2 crush-failure-domain=osd
quietly ceph osd pool create default.rgw.buckets.data 32 32 replicated
quietly ceph osd pool create ec22.data 32 32 erasure ec22
quietly ceph osd pool application enable default.rgw.buckets.data rgw
quietly ceph osd pool application enable ec22.data rgw
key_of client.rgw.a mon 'allow rw' osd 'allow rwx' mgr 'allow rw' >"$DIR/rgw.keyring"
# The first command of this tool makes the zone that the next two change.
radosgw-admin user create --uid bench --display-name bench 2>>"$DIR/setup.out" | python3 -c '
import json, sys
key = json.load(sys.stdin)["keys"][0]
print("[default]", "aws_access_key_id = " + key["access_key"], "aws_secret_access_key = " + key["secret_key"], sep="\n")' >"$DIR/credentials"
# Indexes, and parts of uploads that go on, are copies in both placements: an erasure coded pool cannot hold them.
quietly radosgw-admin zonegroup placement add --rgw-zonegroup default --placement-id ec22
quietly radosgw-admin zone placement add --rgw-zone default --placement-id ec22 --data-pool ec22.data \
  --index-pool default.rgw.buckets.index --data-extra-pool default.rgw.buckets.non-ec
start 1-rgw radosgw -f -n client.rgw.a
until_true 60 "the gateway" curl -sf -o /dev/null "http://127.0.0.1:$RGW_PORT/"

# make_bucket NAME PLACEMENT: keys go to curl by its standard input, and are in no list of processes.
make_bucket() {
  local body="<CreateBucketConfiguration><LocationConstraint>:$2</LocationConstraint></CreateBucketConfiguration>"
  sed -n 's/^aws_access_key_id = //p; s/^aws_secret_access_key = //p' "$DIR/credentials" | paste -sd: | sed 's/.*/user = "&"/' |
    curl -sS -f --config - --aws-sigv4 aws:amz:us-east-1:s3 -H "x-amz-content-sha256: $(printf %s "$body" | sha256sum | cut -d' ' -f1)" \
      -X PUT --data-binary "$body" "http://127.0.0.1:$RGW_PORT/$1"
}
quietly make_bucket replica3 default-placement
quietly make_bucket ec22 ec22

# It would move placement groups beside the load.
quietly ceph balancer off
until_true 60 "good health" sh -c 'ceph health | grep -q HEALTH_OK'
# The page is as of some seconds ago: until it says so, too.
until_true 90 "the manager's metrics" sh -c "curl -sf http://127.0.0.1:$MGR_PORT/metrics |
  awk '/^ceph_pg_total/ { all += \$2 } /^ceph_pg_clean/ { clean += \$2 } END { exit !(all > 64 && all == clean) }'"
# Processors and drives of the machine, where Debian's exporter is installed.
NODE=
if command -v prometheus-node-exporter >/dev/null; then
  start 0-node prometheus-node-exporter --web.listen-address="127.0.0.1:$NODE_PORT"
  until_true 20 "the exporter" curl -sf -o /dev/null "http://127.0.0.1:$NODE_PORT/metrics"
  NODE="http://127.0.0.1:$NODE_PORT"
fi
sed -e "s|http://FILL-IN-S3|http://127.0.0.1:$RGW_PORT|; s|http://FILL-IN-MGR|http://127.0.0.1:$MGR_PORT|; s|http://FILL-IN-NODE|${NODE:-FILL-IN}|; /FILL-IN/d" \
  "$HERE/ceph-campaign.toml" >"$DIR/campaign.toml"
echo "dir=$DIR"; echo "pids=$(cat "$DIR"/*.pid | paste -sd,)"; echo "endpoint=http://127.0.0.1:$RGW_PORT"
echo "credentials=$DIR/credentials"; echo "buckets=replica3,ec22"
echo "metrics=http://127.0.0.1:$MGR_PORT/metrics"; [ -z "$NODE" ] || echo "node=$NODE"
echo "campaign=$DIR/campaign.toml"
