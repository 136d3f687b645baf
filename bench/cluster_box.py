"""A cluster in a box for the benchmarks: started here, faulted, and taken down in every case. Needs root, iproute2 and MinIO in PATH."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from harness import PLIMSOLL

TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pids):
    """CPU seconds of all threads of these processes."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def servers_of(directory):
    """MinIO processes whose command line has the cluster's directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if command and command[0].endswith(b"minio") and any(directory.encode() in part for part in command):
            found.append(int(pid))
    return found


class ClusterBox:
    def __init__(self, name, *flags):
        self.name = name
        self.process = subprocess.Popen([PLIMSOLL, "target", "cluster", "--name", name, *map(str, flags)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the cluster did not start: try `plimsoll target cluster {' '.join(map(str, flags))}` alone")
        facts = json.loads(line)
        self.endpoint, self.path = facts["endpoint"], Path(facts["path"])
        self.hosts = self.endpoint.replace(":9000", ":9100")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "AWS_ACCESS_KEY_ID": facts["access_key"], "AWS_SECRET_ACCESS_KEY": facts["secret_key"], "AWS_REGION": "us-east-1"}
        self.servers = servers_of(str(self.path))

    def fault(self, *faults):
        subprocess.run([PLIMSOLL, "target", "cluster", "fault", *faults, "--name", self.name], check=True, stderr=subprocess.DEVNULL)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
