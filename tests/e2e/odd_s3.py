"""A small S3 server of the tests, whose every answer can be replaced: for servers that lack something, lie, or mean harm."""

import http.server
import re
import threading
import urllib.parse
from xml.sax.saxutils import escape


class OddS3:
    """Keeps objects in a dictionary. `odd(handler)` sees each request first: true when it has answered it. `nagle`: head and body,
    which are written apart, are sent as the kernel likes."""

    def __init__(self, odd=None, tls=None, page=1000, nagle=False):
        self.objects, self.uploads, self.seen = {}, {}, []
        self.odd, self.page = odd, page
        outer = self

        class Handler(_Handler):
            s3 = outer
            disable_nagle_algorithm = not nagle

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", headers=()):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def fail(self, status, code, message="no"):
        self.say(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>")

    def any(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.key = urllib.parse.unquote(url.path).removeprefix("/b").removeprefix("/")
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.s3.seen.append((self.command, self.key, self.query))
        if self.s3.odd and self.s3.odd(self):
            return
        self.bucket() if not self.key else self.object()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = any

    def bucket(self):
        q, s3 = self.query, self.s3
        if "delete" in q:
            for key in re.findall(rb"<Key>(.*?)</Key>", self.body, re.S):
                s3.objects.pop(key.decode().replace("&amp;", "&"), None)
            self.say(200, "<DeleteResult/>")
        elif "uploads" in q:
            rows = "".join(f"<Upload><Key>{escape(k)}</Key><UploadId>{i}</UploadId></Upload>" for i, k in s3.uploads.items())
            self.say(200, f"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{rows}</ListMultipartUploadsResult>")
        elif "versioning" in q:
            self.say(200, "<VersioningConfiguration/>")
        elif "versions" in q or "object-lock" in q:
            self.fail(501, "NotImplemented")
        elif self.command == "GET":
            self.list()
        else:
            self.say(200)

    def list(self):
        q, s3 = self.query, self.s3
        after = q.get("continuation-token") or q.get("marker") or ""
        keys = sorted(k for k in list(s3.objects) if k.startswith(q.get("prefix", "")) and k > after)
        page = keys[: s3.page]
        encode = urllib.parse.quote if q.get("encoding-type") == "url" else escape
        rows = "".join(f"<Contents><Key>{encode(k)}</Key><Size>1</Size></Contents>" for k in page)
        more = len(keys) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more and "list-type" in q else ""
        kind = "<EncodingType>url</EncodingType>" if q.get("encoding-type") == "url" else ""
        self.say(200, f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{kind}{token}{rows}</ListBucketResult>")

    def object(self):
        s3 = self.s3
        if self.command == "PUT":
            s3.objects[self.key] = self.body
            self.say(200, headers=[("ETag", '"e"')])
        elif self.command == "DELETE":
            s3.objects.pop(self.key, None)
            self.say(204)
        elif self.key not in s3.objects:
            self.fail(404, "NoSuchKey")
        else:
            self.say(200, s3.objects[self.key])
