"""Who gives temporary keys, on loopback: STS, the metadata service of an instance, the agent of a container, the portal of SSO. And a
storage that takes such keys until they expire, and looks at every signature (written by the specification, apart from the client)."""

import hashlib
import hmac
import http.server
import json
import re
import secrets
import threading
import time
import urllib.parse

from odd_s3 import OddS3

STATIC = ("AKIASTATIC", "static-secret-of-the-test")
WEB_TOKEN = "web.identity.token-of-the-test"
CONTAINER_TOKEN = "container-token-of-the-test"
SSO_TOKEN = "sso-access-token-of-the-test"


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def signature(handler, body_hash, secret, canonical_path, query):
    """The signature that the headers of this request must have."""
    said = handler.headers["Authorization"]
    scope = re.search(r"Credential=[^/]+/([^, ]+)", said)[1]
    names = re.search(r"SignedHeaders=([^, ]+)", said)[1]
    lines = "".join(f"{n}:{' '.join(handler.headers[n].split())}\n" for n in names.split(";"))
    query = "&".join(sorted(p if "=" in p else p + "=" for p in query.split("&") if p))
    request = f"{handler.command}\n{canonical_path}\n{query}\n{lines}\n{names}\n{body_hash}"
    text = f"AWS4-HMAC-SHA256\n{handler.headers['x-amz-date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_signed(handler, secret, body_hash):
    url = urllib.parse.urlsplit(handler.path)
    return handler.headers["Authorization"].endswith("Signature=" + signature(handler, body_hash, secret, url.path, url.query))


class Cloud:
    """`lasts`: for how many seconds keys are taken. `odd(handler)`: answers in place of what is asked, where it gives true."""

    def __init__(self, lasts=3600):
        self.lasts, self.odd, self.issued, self.asked = lasts, None, {}, []
        outer = self

        class Handler(_Handler):
            cloud = outer

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.storage = OddS3(self.judges)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.storage.__exit__()
        self.http.shutdown()
        self.http.server_close()

    def issue(self):
        """Key, secret, token, expiry: taken until then."""
        keys = ("ASIA" + secrets.token_hex(8).upper(), "secret" + secrets.token_hex(16), "token" + secrets.token_hex(24))
        at = time.time() + self.lasts
        self.issued[keys[0]] = (*keys[1:], at)
        return (*keys, stamp(at))

    def judges(self, handler):
        """The storage's look at a request; true: it was refused."""
        key = re.search(r"Credential=([^/]+)/", handler.headers.get("Authorization", ""))
        known = self.issued.get(key[1] if key else "")
        if not known:
            handler.fail(403, "InvalidAccessKeyId")
        elif handler.headers.get("x-amz-security-token") != known[1]:
            handler.fail(403, "InvalidToken")
        elif not is_signed(handler, known[0], handler.headers["x-amz-content-sha256"]):
            handler.fail(403, "SignatureDoesNotMatch")
        # What expires within this second has expired for nobody yet: stamps have no fractions.
        elif time.time() > known[2]:
            handler.fail(400, "ExpiredToken", "The provided token has expired.")
        else:
            return False
        return True

    def secrets(self):
        """What must not be anywhere."""
        return [STATIC[1], WEB_TOKEN, CONTAINER_TOKEN, SSO_TOKEN] + [v for i in self.issued.values() for v in i[:2]]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body, headers=()):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def any(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.cloud.asked.append((self.command, self.path))
        if self.cloud.odd and self.cloud.odd(self):
            return
        if self.command == "POST":
            return self.sts()
        if self.path == "/latest/api/token":
            seconds = int(self.headers.get("x-aws-ec2-metadata-token-ttl-seconds", 0))
            return self.say(200 if self.command == "PUT" and 0 < seconds <= 21600 else 400, "imds-session-of-the-test")
        if self.path.startswith("/latest/"):
            return self.instance()
        names = ("AccessKeyId", "SecretAccessKey", "Token", "Expiration")
        if self.path == "/v1/credentials" and self.headers.get("Authorization") == CONTAINER_TOKEN:
            return self.say(200, json.dumps(dict(zip(names, self.cloud.issue()))))
        if self.path.startswith("/federation/credentials?") and self.headers.get("x-amz-sso_bearer_token") == SSO_TOKEN:
            key, secret, token, _ = self.cloud.issue()
            expires = int((time.time() + self.cloud.lasts) * 1000)
            role = {"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token, "expiration": expires}
            return self.say(200, json.dumps({"roleCredentials": role}))
        self.say(403, json.dumps({"code": "AccessDenied", "message": "no"}))

    do_GET = do_PUT = do_POST = any

    def instance(self):
        if self.headers.get("x-aws-ec2-metadata-token") != "imds-session-of-the-test":
            return self.say(401, "")
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path == roles:
            return self.say(200, "bench-role")
        if self.path == roles + "bench-role":
            names = ("AccessKeyId", "SecretAccessKey", "Token", "Expiration")
            return self.say(200, json.dumps({"Code": "Success"} | dict(zip(names, self.cloud.issue()))))
        if self.path == "/latest/dynamic/instance-identity/document":
            return self.say(200, json.dumps({
                "accountId": "123456789012", "instanceType": "m7i.large", "region": "eu-west-1", "availabilityZone": "eu-west-1b",
                "imageId": "ami-1", "instanceId": "i-0abc", "privateIp": "10.1.2.3"}))
        self.say(404, "")

    def sts(self):
        form = dict(urllib.parse.parse_qsl(self.body))
        action = form["Action"]
        if action == "AssumeRole":
            hashed = hashlib.sha256(self.body.encode()).hexdigest()
            known = f"Credential={STATIC[0]}/" in self.headers.get("Authorization", "")
            fits = known and form.get("ExternalId") == "ext 1" and is_signed(self, STATIC[1], hashed)
        else:
            fits = form.get("WebIdentityToken") == WEB_TOKEN and "Authorization" not in self.headers
        if not fits:
            said = f"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no: {form.get('WebIdentityToken')}</Message></Error></ErrorResponse>"
            return self.say(403, said)
        key, secret, token, expires = self.cloud.issue()
        self.say(200, f"<{action}Response xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><{action}Result><Credentials>"
                      f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>"
                      f"<Expiration>{expires}</Expiration></Credentials></{action}Result></{action}Response>")
