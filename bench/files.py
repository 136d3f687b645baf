"""The write phases of GoBonnieGo and dperf, and Plimsoll's own of the same work, each against what the kernel counted.

Each tool writes the same bytes to the same directory, in turn. What it says is set beside what /proc/diskstats saw
while it ran: all bytes over the time from the first block of a file to the last sector. A figure above that is one of
memory: GoBonnieGo ends its write phase without an fsync. GOBONNIEGO and DPERF name the other tools' programs.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLIMSOLL = ROOT / "target/release/plimsoll"
UNITS = {"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30}


class Kernel(threading.Thread):
    """Looks at the device's counter of written sectors, and at the directory, every few milliseconds."""

    def __init__(self, directory, wanted):
        super().__init__(daemon=True)
        self.directory, self.wanted = directory, wanted
        number = os.stat(directory).st_dev
        self.device = (os.major(number), os.minor(number))
        self.first = self.last = None
        self.over = threading.Event()

    def written(self):
        for line in Path("/proc/diskstats").read_text().splitlines():
            words = line.split()
            if (int(words[0]), int(words[1])) == self.device:
                return int(words[9]) * 512
        raise SystemExit(f"the file system of {self.directory} is on no device that the kernel counts")

    def has_blocks(self):
        try:
            files = [f for f in Path(self.directory).rglob("*") if f.is_file()]
            return any(f.stat().st_blocks > 128 for f in files)
        except FileNotFoundError:
            return False

    def run(self):
        before = self.written()
        while not self.over.is_set() and self.last is None:
            now = time.monotonic()
            if self.first is None:
                self.first = now if self.has_blocks() else None
            elif self.written() - before >= 0.999 * self.wanted:
                self.last = now
            time.sleep(0.002)

    def rate(self):
        # A tool that does not wait for its data may end, and delete it, before it was ever written.
        return self.wanted / (self.last - self.first) if self.first and self.last else None


def told(command, env=None):
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True)
    if done.returncode not in (0, 3, 5):
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def plimsoll_file(a, d, env):
    out = json.loads(told([PLIMSOLL, "file", d, "--size", f"{a.mib}MiB", "--threads", 2, "--iops-duration", "500ms",
                           "--json", "--format", "gobonniego", "--quiet"], env))
    return out["results"][0]["write_megabytes_per_second"] * 1e6


def gobonniego(a, d, _env):
    out = told([a.gobonniego, "-dir", d, "-size", a.mib / 1024, "-threads", 2, "-iops-duration", "0.5", "-json"])
    return json.loads(out[out.index("{"):])["results"][0]["write_megabytes_per_second"] * 1e6


def plimsoll_drive(a, d, env):
    out = json.loads(told([PLIMSOLL, "drive", d, "-b", "4MiB", "-f", f"{a.mib // 4}MiB", "-i", 4, "--write-only",
                           "--json", "--quiet"], env))
    return out["drives"][0]["alone"]["write_bytes_per_s"]


def dperf(a, d, _env):
    out = told([a.dperf, "-b", "4MiB", "-f", f"{a.mib // 4}MiB", "-i", 4, "--write-only", "-v", d])
    number, unit = re.search(r"│ TotalWRITE .*?│ ([\d.]+) ([KMG]iB/s)", out, re.S).groups()
    return float(number) * UNITS[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=2048, help="bytes that each tool writes, a multiple of 4 MiB x 4")
    parser.add_argument("--dir", default=None, help="where they are written")
    a = parser.parse_args()
    a.gobonniego = os.environ.get("GOBONNIEGO") or shutil.which("gobonniego")
    a.dperf = os.environ.get("DPERF") or shutil.which("dperf")
    tools = {"plimsoll file": plimsoll_file, "plimsoll drive": plimsoll_drive}
    tools |= {"GoBonnieGo": gobonniego} if a.gobonniego else {}
    tools |= {"dperf": dperf} if a.dperf else {}
    seen = {name: [] for name in tools}
    with tempfile.TemporaryDirectory(dir=a.dir or ROOT / "target") as top:
        env = os.environ | {"PLIMSOLL_RUNS": str(Path(top) / "runs")}
        for _ in range(a.rounds):
            for name, tool in tools.items():
                directory = Path(top) / "data"
                directory.mkdir()
                os.sync()
                kernel = Kernel(directory, a.mib << 20)
                kernel.start()
                said = tool(a, directory, env)
                kernel.over.set()
                kernel.join()
                seen[name].append((said, kernel.rate()))
                shutil.rmtree(directory)
    print(f"write {a.mib} MiB to one directory: what the tool says, and what the kernel counted")
    for name, pairs in seen.items():
        said = statistics.median(s for s, _ in pairs) / 1e6
        counted = [k for _, k in pairs if k]
        if counted:
            ratio = statistics.median(s / k for s, k in pairs if k)
            beside = f"kernel {statistics.median(counted) / 1e6:8,.0f} MB/s, {ratio:5.2f}x of it"
        else:
            beside = "the data never reached the device"
        print(f"  {name:16} says {said:8,.0f} MB/s, {beside}")


if __name__ == "__main__":
    main()
