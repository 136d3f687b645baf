"""Starts embedded servers for the embedded_*.py tests, by the built binary.

PLIMSOLL_BIN names the binary (default: target/release/plimsoll). PLIMSOLL_SERVE, if set, is a command that takes the
same arguments as `plimsoll target`, and is used in its place (the crate has one: cargo run --example serve).
"""
import atexit
import json
import os
import shlex
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PLIMSOLL_BIN", os.path.join(ROOT, "target", "release", "plimsoll"))


def command():
    if os.environ.get("PLIMSOLL_SERVE"):
        return shlex.split(os.environ["PLIMSOLL_SERVE"])
    return [BIN, "target"]


class Server:
    """An embedded S3 server over a directory, in a process of its own."""

    def __init__(self, data, *args):
        env = dict(os.environ, AWS_ACCESS_KEY_ID="first", AWS_SECRET_ACCESS_KEY="first-secret-key")
        line = [*command(), "s3", "--listen", "127.0.0.1:0", "--data", data, *args]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=env)
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the server did not start")
        self.ready = json.loads(line)
        self.endpoint = self.ready["endpoint"]

    def keys(self, which="first"):
        return which, which + "-secret-key"

    def client(self, which="first", retries=0, **config):
        import boto3
        from botocore.config import Config

        access, secret = self.keys(which)
        settings = dict(retries={"max_attempts": retries}, s3={"addressing_style": "path"}, max_pool_connections=32)
        settings.update(config)
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=access,
            aws_secret_access_key=secret,
            region_name=self.ready["region"],
            verify=self.ready.get("ca_file"),
            config=Config(**settings),
        )

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(("VmHWM",)):
                    return int(line.split()[1]) * 1024
        return 0


def refused(code, call, **args):
    """The call fails with this S3 error code or HTTP status."""
    from botocore.exceptions import ClientError

    try:
        call(**args)
    except ClientError as e:
        got = e.response["Error"].get("Code"), e.response["ResponseMetadata"]["HTTPStatusCode"]
        assert code in got, f"{code} expected, got {got}: {e}"
        return e
    raise AssertionError(f"{code} expected, but the call went through: {args}")
