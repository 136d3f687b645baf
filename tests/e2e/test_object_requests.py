"""What is on the wire and where it goes: addressing, headers, checksums, certificates, redirects, names, profiles."""

import socket
import subprocess
import threading

import pytest
from conftest import drop_bucket, new_bucket, script_server, start, stop

QUICK = ["--max-ops", "20", "--warmup", "0s", "--concurrency", "4", "--json"]


def all_ok(result, op, count=20):
    assert result.code in (0, 3), result.err
    outcomes = result.workload(op)["outcomes"]
    assert outcomes == {"ok": count}, (outcomes, result.summary["findings"])


def objects_of(bucket, size):
    return [k for k in bucket.keys()
            if bucket.client.head_object(Bucket=bucket.name, Key=k)["ContentLength"] == size]


@pytest.fixture(scope="module")
def domain_minio():
    """Knows its buckets by the host name, too."""
    server = script_server("minio-domain", "minio.sh", MINIO_DOMAIN="localhost")
    yield server
    stop(server.dir)


@pytest.mark.parametrize("op", ["put", "get", "list", "delete", "copy", "multipart"])
def test_virtual_host_addressing(plimsoll, domain_minio, op):
    # `BUCKET.localhost` is this machine (RFC 6761), whatever the resolver says.
    b = new_bucket(domain_minio)
    port = domain_minio.endpoint.rsplit(":", 1)[1]
    flags = ["--endpoint", f"http://localhost:{port}", "--bucket", b.name, "--addressing", "virtual-host"]
    size = ["--size", "11MiB", "--part-size", "5MiB", "--max-ops", "2"] if op == "multipart" else ["--size", "4KiB"]
    objects = ["--objects", "40"] if op not in ("put", "multipart") else []
    result = plimsoll("object", op, *flags, *QUICK[2:], *(size if op == "multipart" else [*size, *QUICK[:2]]), *objects,
                      server=domain_minio)
    all_ok(result, op, 2 if op == "multipart" else 20)
    assert b.keys() == [] and b.uploads() == []
    drop_bucket(b)


def test_virtual_host_needs_a_name(plimsoll, minio):
    result = plimsoll("object", "put", "--endpoint", minio.endpoint, "--bucket", "bkt", "--addressing", "virtual-host",
                      server=minio)
    assert (result.code, result.out) == (2, "") and "path addressing" in result.err, result.err


@pytest.mark.parametrize("checksum,field", [("crc32c", "ChecksumCRC32C"), ("crc64nvme", "ChecksumCRC64NVME")])
def test_checksums_are_stored_and_checked_on_the_way_back(plimsoll, minio_bucket, checksum, field):
    b = minio_bucket
    flags = [*b.flags(), "--checksum", checksum]
    put = plimsoll("object", "put", *flags, "--size", "100KB", "--keep", *QUICK, server=b.server)
    all_ok(put, "put")
    keys = objects_of(b, 100_000)
    assert len(keys) == 20
    head = b.client.head_object(Bucket=b.name, Key=keys[0], ChecksumMode="ENABLED")
    assert head[field], head
    all_ok(plimsoll("object", "get", *flags, "--size", "100KB", "--objects", "5", *QUICK, server=b.server), "get")
    parts = plimsoll("object", "multipart", *flags, "--size", "11MiB", "--part-size", "5MiB", "--max-ops", "2",
                     *QUICK[2:], server=b.server)
    all_ok(parts, "multipart", 2)
    assert plimsoll("cleanup", put.summary["id"], "--kept", server=b.server).code == 0
    assert b.keys() == []


def test_headers_of_uploads_arrive(plimsoll, minio_bucket):
    b = minio_bucket
    put = plimsoll("object", "put", *b.flags(), "--size", "5KB", "--keep", "--storage-class", "REDUCED_REDUNDANCY",
                   "--header", "x-amz-meta-owner: lab 7", "--header", "content-type: text/x-plimsoll", *QUICK,
                   server=b.server)
    all_ok(put, "put")
    head = b.client.head_object(Bucket=b.name, Key=objects_of(b, 5000)[0])
    assert head["StorageClass"] == "REDUCED_REDUNDANCY" and head["ContentType"] == "text/x-plimsoll"
    assert head["Metadata"] == {"owner": "lab 7"}
    assert plimsoll("cleanup", "last", "--kept", server=b.server).code == 0


def test_server_side_encryption_is_asked_for(plimsoll, embedded):
    b = new_bucket(embedded)
    put = plimsoll("object", "put", *b.flags(), "--size", "5KB", "--keep", "--sse", "AES256", *QUICK, server=embedded)
    all_ok(put, "put")
    head = b.client.head_object(Bucket=b.name, Key=objects_of(b, 5000)[0])
    assert head["ServerSideEncryption"] == "AES256"
    assert plimsoll("cleanup", "last", "--kept", server=embedded).code == 0
    drop_bucket(b)


def test_what_was_kept_is_removed_when_it_is_asked_for(plimsoll, minio):
    flags = ["--endpoint", minio.endpoint, "--bucket", "e2e-kept", "--create-bucket"]
    put = plimsoll("object", "put", *flags, "--size", "5KB", "--keep", *QUICK, server=minio)
    all_ok(put, "put")
    client = minio.client()
    count = lambda: client.list_objects_v2(Bucket="e2e-kept")["KeyCount"]  # noqa: E731
    # The objects, the marker that says whose they are, and the bucket's own: it was made by the run.
    assert count() == 22
    alone = plimsoll("cleanup", "last", server=minio)
    assert alone.code == 0 and "--kept" in alone.err and count() == 22, alone.err
    assert "e2e-kept" in plimsoll("cleanup", "last", "--kept", "--dry-run", server=minio).out and count() == 22
    assert plimsoll("cleanup", "last", "--kept", server=minio).code == 0
    assert "e2e-kept" not in [b["Name"] for b in client.list_buckets()["Buckets"]]
    again = plimsoll("cleanup", "last", "--kept", server=minio)
    assert again.code == 0 and "nothing" in again.err, again.err


def test_a_named_data_set_is_uploaded_once(plimsoll, minio_bucket):
    b = minio_bucket
    flags = [*b.flags(), "--size", "4KiB", "--objects", "30", "--dataset", "once", "--seed", "9", *QUICK]
    all_ok(plimsoll("object", "get", *flags, server=b.server), "get")
    made = {k: b.client.head_object(Bucket=b.name, Key=k)["LastModified"] for k in b.keys()}
    assert len([k for k in made if "/datasets/once/" in k]) == len(made) >= 30
    all_ok(plimsoll("object", "get", *flags, "--verify", server=b.server), "get")
    all_ok(plimsoll("object", "stat", *flags, server=b.server), "stat")
    again = {k: b.client.head_object(Bucket=b.name, Key=k)["LastModified"] for k in b.keys()}
    assert again == made, "nothing was written again, and nothing was removed"
    other = [f if f != "30" else "31" for f in flags]
    refused = plimsoll("object", "get", *other, server=b.server)
    assert refused.code == 2 and "objects is 30" in refused.err, refused.err


def test_delete_prepares_what_it_deletes_and_ends_with_it(plimsoll, minio_bucket):
    b = minio_bucket
    for more, op in ([], "delete"), (["--batch", "10"], "delete-batch"):
        result = plimsoll("object", "delete", *b.flags(), "--size", "1KiB", "--objects", "100", "--concurrency", "4",
                          "--json", *more, server=b.server)
        assert result.code in (0, 3, 5), result.err
        outcomes = result.workload(op)["outcomes"]
        assert set(outcomes) == {"ok"} and 0 < outcomes["ok"] <= (100 if op == "delete" else 12), outcomes
        assert b.keys() == []


def test_a_listing_groups_and_pages(plimsoll, embedded):
    b = new_bucket(embedded)
    all_ok(plimsoll("object", "list", *b.flags(), "--size", "1KiB", "--objects", "60", "--prefixes", "6", "--max-keys",
                    "7", "--delimiter", "/", *QUICK, server=embedded), "list")
    drop_bucket(b)


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_a_redirect_is_followed_where_it_is_allowed(plimsoll, canned, ring):
    to = canned()
    server = canned("--fault", "redirect=100%", "--redirect-to", to.endpoint)
    for op in "put", "get":
        flags = ["object", op, "--endpoint", server.endpoint, "--bucket", "b", "--size", "4KiB", "--ring", ring, *QUICK]
        result = plimsoll(*flags, server=server)
        assert result.code == 3 and "--redirect-to" in result.out, (result.code, result.out)
        allowed = plimsoll(*flags, "--redirect-to", to.endpoint, server=server)
        all_ok(allowed, op)
        told = [f for f in allowed.summary["findings"] if f["code"] == "Q12"]
        assert told[0]["measured"] >= 20 and to.endpoint in told[0]["text"], told


SECRET = "hunter2-do-not-tell"


@pytest.mark.parametrize("flags", [
    ["--header", f"Authorization: {SECRET}"], ["--header", f"Cookie: a={SECRET}"], ["--header", f"X-Amz-Security-Token: {SECRET}"],
    ["--header", f"x-api-key: {SECRET}"], ["--header", f"X-Amz-Server-Side-Encryption-Customer-Key: {SECRET}"],
    ["--redirect-to", f"http://user:{SECRET}@127.0.0.1:1"],
    ["--endpoint", f"http://user:{SECRET}@127.0.0.1:1"], ["--endpoint", f"http://127.0.0.1:1/?X-Amz-Signature={SECRET}"],
])
def test_secrets_of_a_command_line_are_refused_and_nowhere_written(plimsoll, tmp_path, flags):
    runs = tmp_path / "runs"
    more = [] if "--endpoint" in flags else ["--endpoint", "http://127.0.0.1:1"]
    for dry in [], ["--dry-run"]:
        result = plimsoll("object", "put", *flags, *more, "--bucket", "b", "--size", "4KiB", *dry, "--runs-dir", str(runs),
                          env={"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
        assert (result.code, result.out) == (2, "") and "fix: " in result.err, result.err
        assert SECRET not in result.err, result.err
    assert not runs.exists() or list(runs.iterdir()) == []


@pytest.mark.parametrize("line", [
    f'put_headers = {{ authorization = "{SECRET}" }}', f'put_headers = {{ cookie = "{SECRET}" }}',
    f'redirects_to = ["http://u:{SECRET}@h"]',
])
def test_secrets_of_a_plan_are_refused(plimsoll, tmp_path, line):
    plan = tmp_path / "plan.toml"
    plan.write_text('version = 1\n[targets.t]\nkind = "s3"\nendpoints = ["http://127.0.0.1:1"]\nbucket = "b"\n' + line +
                    '\n[[stage]]\n[[stage.workload]]\nname = "w"\nmix = { put = 1 }\n')
    result = plimsoll("run", str(plan), env={"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
    assert (result.code, result.out) == (2, "") and SECRET not in result.err, result.err


def test_a_url_with_a_password_in_the_environment_is_not_repeated(plimsoll):
    result = plimsoll("object", "put", "--bucket", "b", "--size", "4KiB",
                      env={"AWS_ENDPOINT_URL": f"http://u:{SECRET}@127.0.0.1:1", "AWS_ACCESS_KEY_ID": "k",
                           "AWS_SECRET_ACCESS_KEY": "s"})
    assert (result.code, result.out) == (2, "") and SECRET not in result.err, result.err


def test_a_name_with_an_address_where_nobody_listens(plimsoll, minio_bucket):
    """`localhost` may stand for ::1 as well: this server listens on IPv4 only."""
    b = minio_bucket
    port = b.server.endpoint.rsplit(":", 1)[1]
    result = plimsoll("object", "put", "--endpoint", f"http://localhost:{port}", "--bucket", b.name, "--size", "1KiB",
                      "--no-keep-alive", *QUICK, server=b.server)
    all_ok(result, "put")


class NeverContinues(threading.Thread):
    """Takes a PUT and never says `100 Continue`, as HTTP/1.0 servers and some proxies do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bodies = []

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rwb")
        while line := stream.readline():
            length, expects = 0, False
            while (header := stream.readline().lower()) not in (b"\r\n", b""):
                length = int(header.split(b":")[1]) if header.startswith(b"content-length:") else length
                expects |= header.startswith(b"expect:")
            body = stream.read(length)
            if expects:
                self.bodies.append(len(body))
            # Named so that a run leaves no marker here: what is looked at is the body.
            stream.write(b"HTTP/1.1 200 OK\r\nServer: PlimsollCanned\r\nContent-Length: 0\r\n\r\n")
            stream.flush()


@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_a_body_does_not_wait_for_ever_for_100_continue(plimsoll, ring):
    server = NeverContinues()
    server.start()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    result = plimsoll("object", "put", "--endpoint", f"http://127.0.0.1:{server.port}", "--bucket", "b", "--size",
                      "100KB", "--expect-continue", "--ring", ring, "--max-ops", "4", "--warmup", "0s",
                      "--concurrency", "4", "--json", env=keys)
    all_ok(result, "put", 4)
    assert server.bodies == [100_000] * 4


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    d = tmp_path_factory.mktemp("certs")
    run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, capture_output=True)  # noqa: E731
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=test ca", "-addext", "basicConstraints=critical,CA:TRUE")
    (d / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in "server", "client":
        run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "r.csr", "-subj", f"/CN={name}")
        run("x509", "-req", "-in", "r.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            f"{name}.pem", "-days", "2", "-extfile", "ext")
    return d


@pytest.fixture(scope="module")
def strict_tls(certificates, embedded):
    """nginx that speaks only to those whose certificate its CA has signed."""
    server = start("nginx-limit.sh", embedded.endpoint.removeprefix("http://"), "100000", "100000", "503",
                   env={"TLS": str(certificates)})
    yield server
    stop(server["dir"])


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("ring", ["io_uring", "epoll"])
def test_tls_with_a_client_certificate(plimsoll, embedded, strict_tls, certificates, version, ring):
    b = new_bucket(embedded)
    flags = ["object", "mixed", "--mix", "put=1,get=1", "--endpoint", strict_tls["endpoint"], "--bucket", b.name,
             "--objects", "10", "--size", "100KB", "--ca-file", certificates / "ca.pem", "--tls-version", version,
             "--ring", ring, *QUICK]
    good = plimsoll(*flags, "--client-cert", certificates / "client.pem", "--client-key", certificates / "client.key",
                    server=embedded)
    assert good.code in (0, 3), good.err
    assert sum(good.workload(op)["outcomes"]["ok"] for op in ("put", "get")) == 20
    without = plimsoll(*flags, server=embedded)
    assert (without.code, without.out) == (2, "") and "fix: " in without.err, without.err
    assert b.keys() == []
    drop_bucket(b)


def test_the_endpoint_of_the_profile(plimsoll, minio_bucket, tmp_path):
    """Endpoint, region and keys by profile; a services section; and the environment before them."""
    b = minio_bucket
    config, keys = tmp_path / "config", tmp_path / "credentials"
    config.write_text(f"[profile lab]\nregion = us-east-1\nservices = here\n[services here]\ns3 =\n"
                      f"  endpoint_url = {b.server.endpoint}\n[profile wrong]\nendpoint_url = http://127.0.0.1:1\n")
    keys.write_text(f"[lab]\naws_access_key_id = {b.server.access_key}\naws_secret_access_key = {b.server.secret_key}\n"
                    f"[wrong]\naws_access_key_id = x\naws_secret_access_key = y\n")
    files = {"AWS_CONFIG_FILE": str(config), "AWS_SHARED_CREDENTIALS_FILE": str(keys)}
    flags = ["object", "put", "--bucket", b.name, "--size", "1KiB", *QUICK]
    lab = plimsoll(*flags, "--profile", "lab", env=files | {"AWS_ACCESS_KEY_ID": "no", "AWS_SECRET_ACCESS_KEY": "no"})
    all_ok(lab, "put")
    assert f"--endpoint {b.server.endpoint}" in lab.summary["rerun"], "what repeats it says where it was"
    all_ok(plimsoll(*flags, env=files | {"AWS_PROFILE": "lab"}), "put")
    wrong = plimsoll(*flags, "--profile", "wrong", env=files)
    assert wrong.code == 2 and "127.0.0.1:1" in wrong.err, wrong.err
    all_ok(plimsoll(*flags, env=files | {"AWS_PROFILE": "wrong", "AWS_ENDPOINT_URL": b.server.endpoint,
                                         "AWS_ACCESS_KEY_ID": b.server.access_key,
                                         "AWS_SECRET_ACCESS_KEY": b.server.secret_key}), "put")
    nowhere = {"AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(keys)}
    all_ok(plimsoll(*flags, "--profile", "lab", "--endpoint", b.server.endpoint, env=nowhere), "put")
    missing = plimsoll(*flags, "--profile", "nobody", "--endpoint", b.server.endpoint, env=files)
    assert missing.code == 2 and "nobody" in missing.err and "fix: " in missing.err, missing.err
