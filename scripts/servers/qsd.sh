#!/bin/bash
# QEMU's storage daemon with a throttle group, as a plain file by FUSE: qsd.sh LIMITS-JSON [SIZE], for example
#   qsd.sh '{"iops-total":500}' 256M
# The disk is filled first: reads of holes would pass the throttle. Open the file with direct I/O: read-ahead of
# buffered reads passes it too. Environment: DIR.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
LIMITS=${1:?limits as JSON} SIZE=${2:-256M}
new_dir qsd
[ -f "$DIR/disk.raw" ] || head -c "$(numfmt --from=iec "$SIZE")" /dev/urandom >"$DIR/disk.raw"
touch "$DIR/disk.img"
qemu-storage-daemon --pidfile "$DIR/server.pid" --daemonize \
  --object "{\"qom-type\":\"throttle-group\",\"id\":\"tg0\",\"limits\":$LIMITS}" \
  --blockdev "driver=file,filename=$DIR/disk.raw,node-name=file0,aio=${AIO:-threads},cache.direct=on" \
  --blockdev driver=raw,node-name=raw0,file=file0 \
  --blockdev driver=throttle,node-name=thr0,throttle-group=tg0,file=raw0 \
  --export "type=fuse,id=f0,node-name=thr0,mountpoint=$DIR/disk.img,writable=on"
echo "dir=$DIR"; echo "pid=$(cat "$DIR/server.pid")"; echo "path=$DIR/disk.img"
