"""A broker that is somebody else's: nats-server with users of every kind, made by hand. Keys by openssl, tokens as `nsc` makes them."""

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import ROOT, wait_until

# Debian's, and the current one that scripts/install.sh brings.
BROKERS = {"packaged": "/usr/sbin/nats-server", "current": str(ROOT / ".local/brokers/nats-server")}
OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def encoded(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "little")).decode().rstrip("=")


class Key:
    """An Ed25519 key in the broker's own form."""

    def __init__(self, kind, directory):
        self.file = directory / f"{kind}-{time.monotonic_ns()}.pem"
        run("openssl", "genpkey", "-algorithm", "ed25519", "-out", str(self.file))
        raw = run("openssl", "pkey", "-in", str(self.file), "-outform", "DER")[-32:]
        public = run("openssl", "pkey", "-in", str(self.file), "-pubout", "-outform", "DER")[-32:]
        self.public = encoded(bytes([kind]) + public)
        self.seed = encoded(bytes([0x90 | kind >> 5, (kind & 31) << 3]) + raw)

    def token(self, name, subject, nats):
        """A token that this key signs, of the holder of `subject`."""
        plain = lambda d: base64.urlsafe_b64encode(json.dumps(d).encode()).decode().rstrip("=")  # noqa: E731
        claims = {"jti": name, "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": nats | {"version": 2}}
        text = plain({"typ": "JWT", "alg": "ed25519-nkey"}) + "." + plain(claims)
        said = self.file.with_suffix(".said")
        said.write_text(text)
        signature = run("openssl", "pkeyutl", "-sign", "-rawin", "-inkey", str(self.file), "-in", str(said))
        return text + "." + base64.urlsafe_b64encode(signature).decode().rstrip("=")


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, timeout=60).stdout


class Broker:
    """One that was there before; `config` is what its owner says of users."""

    def __init__(self, binary, directory, config, scheme="nats"):
        self.directory = directory
        file = directory / "broker.conf"
        file.write_text(f'listen: "127.0.0.1:-1"\nports_file_dir: "{directory}"\nlog_file: "{directory}/log"\n{config}\n')
        self.process = subprocess.Popen([binary, "-c", str(file)], stderr=subprocess.PIPE, text=True)
        ports = directory / f"nats-server_{self.process.pid}.ports"
        wait_until(lambda: ports.is_file() or self.process.poll() is not None, 30, "the broker")
        assert self.process.poll() is None, self.process.stderr.read() + (directory / "log").read_text()
        wait_until(lambda: "nats" in ports.read_text(), 10, "its port")
        self.port = int(json.loads(ports.read_text())["nats"][0].rsplit(":", 1)[1])
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def end(self):
        self.process.terminate()
        self.process.wait(20)


class Spy:
    """Hears all that is said in its account, as the broker lets anybody there."""

    def __init__(self, port, user, password):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(0.2)
        login = json.dumps({"verbose": False, "user": user, "pass": password})
        self.socket.sendall(f"CONNECT {login}\r\nSUB > 1\r\nPING\r\n".encode())
        self.heard = b""
        wait_until(lambda: b"PONG" in self.listen(), 10, "the spy to be let in")

    def listen(self):
        """All that it has heard."""
        while True:
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                return self.heard
            if not data:
                return self.heard
            self.heard += data
            if data.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")


def binary_of(name):
    found = BROKERS[name] if Path(BROKERS[name]).is_file() else None
    found = found or (shutil.which("nats-server") if name == "packaged" else None)
    if not found:
        pytest.skip(f"there is no {name} nats-server: scripts/install.sh brings it")
    return found


def operator_config(directory):
    """An operator, an account and two users; gives what the server is told, and the users' files of credentials."""
    operator, account = Key(OPERATOR, directory), Key(ACCOUNT, directory)
    of_operator = operator.token("owner", operator.public, {"type": "operator"})
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    of_account = operator.token("bench", account.public, {"type": "account", "limits": limits})
    files = []
    for name in ("conductor", "agent"):
        user = Key(USER, directory)
        token = account.token(name, user.public, {"type": "user", "subs": -1, "data": -1, "payload": -1})
        file = directory / f"{name}.creds"
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        file.chmod(0o600)
        files.append(file)
    return f'operator: "{of_operator}"\nresolver: MEMORY\nresolver_preload: {{ {account.public}: "{of_account}" }}', files
