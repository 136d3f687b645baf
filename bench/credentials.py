"""Ten minutes of load with tokens of two minutes: no operation may fail. The storage takes each key until it expires, and looks at every
signature and token; who gives the keys is STS by web identity (tests/e2e/cloud.py has both).

    python3 bench/credentials.py [--minutes 10] [--lasts 120] [--rate 100/s]

Prints how many keys were given, how many operations there were, and how they ended. Exit code 1 where one of them failed."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from cloud import WEB_TOKEN, Cloud  # noqa: E402


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--minutes", type=float, default=10)
    args.add_argument("--lasts", type=int, default=120, help="seconds for which keys are taken")
    args.add_argument("--rate", default="100/s")
    a = args.parse_args()
    binary = os.environ.get("PLIMSOLL_BIN", ROOT / "target/release/plimsoll")
    with tempfile.TemporaryDirectory() as home, Cloud(lasts=a.lasts) as cloud:
        token = Path(home, "token")
        token.write_text(WEB_TOKEN)
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "HOME": home, "PLIMSOLL_RUNS": str(Path(home, "runs")), "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": cloud.storage.endpoint,
            "AWS_ENDPOINT_URL_STS": cloud.url, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/bench", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        }
        command = [str(binary), "object", "mixed", "--bucket", "b", "--mix", "put=1,get=1", "--size", "1KiB", "--concurrency", "4",
                   "--rate", a.rate, "--duration", f"{round(a.minutes * 60)}s", "--warmup", "0s", "--json", "--quiet"]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=False)
        result = json.loads(done.stdout)
        outcomes = [w["outcomes"] for w in result["workloads"] if w["op"] != "total"]
        print(f"{len(cloud.issued)} keys of {a.lasts} s in {a.minutes:g} minutes; {outcomes}; exit code {done.returncode}")
        return any(set(o) != {"ok"} for o in outcomes)


if __name__ == "__main__":
    sys.exit(main())
