#!/bin/bash
# A loop device under the kernel's blkio throttle (cgroup v1): blkio.sh READ_IOPS WRITE_IOPS READ_BPS WRITE_BPS [SIZE]
# (0: no limit). Put load into it with:  sh -c 'echo $$ > CGROUP/cgroup.procs; exec CMD'. Environment: DIR.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
SIZE=${5:-256M}
new_dir blkio
head -c "$(numfmt --from=iec "$SIZE")" /dev/urandom >"$DIR/disk.raw"
LOOP=$(losetup --find --show --direct-io=on "$DIR/disk.raw")
CGROUP=/sys/fs/cgroup/blkio/$(basename "$DIR")
mkdir -p "$CGROUP"
cat >"$DIR/undo" <<C
losetup -d $LOOP
for _ in \$(seq 50); do rmdir $CGROUP 2>/dev/null && break; sleep 0.1; done
C
M=$(cat "/sys/block/${LOOP#/dev/}/dev")
echo "$M ${1:-0}" >"$CGROUP/blkio.throttle.read_iops_device"
echo "$M ${2:-0}" >"$CGROUP/blkio.throttle.write_iops_device"
echo "$M ${3:-0}" >"$CGROUP/blkio.throttle.read_bps_device"
echo "$M ${4:-0}" >"$CGROUP/blkio.throttle.write_bps_device"
echo "dir=$DIR"; echo "path=$LOOP"; echo "cgroup=$CGROUP"
