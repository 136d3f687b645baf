"""Encryption on the server's side: SSE-S3, SSE-KMS (one key, given to MinIO) and SSE-C, with every op that carries it; and
servers that ignore what uploads ask for."""

import base64
import os
import subprocess

import pytest
from conftest import drop_bucket, new_bucket, script_server, stop

KEY = "bench-key"
QUICK = ["--warmup", "0s", "--concurrency", "4", "--json"]
OPS = {
    "put": ["put", "--size", "5KB", "--max-ops", "20"],
    "get": ["get", "--size", "5KB", "--objects", "5", "--max-ops", "20", "--verify"],
    "get-range": ["get", "--size", "20KB", "--range", "3KB", "--objects", "5", "--max-ops", "20"],
    "stat": ["stat", "--size", "5KB", "--objects", "5", "--max-ops", "20"],
    "copy": ["copy", "--size", "5KB", "--objects", "5", "--max-ops", "20"],
    "multipart": ["multipart", "--size", "11MiB", "--part-size", "5MiB", "--max-ops", "2"],
}


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    d = tmp_path_factory.mktemp("ca")
    run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, capture_output=True)  # noqa: E731
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=plimsoll test CA",
        "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "private.key", "-out", "s.csr")
    (d / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    run("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "san", "-out", "public.crt")
    return d


@pytest.fixture(scope="module")
def keeper(ca):
    """MinIO with TLS (SSE-C wants it) and a key of its own for SSE-S3 and SSE-KMS."""
    master = base64.b64encode(os.urandom(32)).decode()
    server = script_server("minio-kms", "minio.sh", CERTS=str(ca), MINIO_KMS_SECRET_KEY=f"{KEY}:{master}")
    server.env_ca = str(ca / "ca.pem")
    yield server
    stop(server.dir)


@pytest.fixture
def kept(keeper, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", keeper.env_ca)
    b = new_bucket(keeper)
    yield b
    drop_bucket(b)


@pytest.fixture
def key_file(tmp_path):
    file = tmp_path / "customer.key"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


def flags(bucket):
    return [*bucket.flags(), "--ca-file", bucket.server.env_ca]


def all_ok(result, op):
    assert result.code in (0, 3), result.err
    outcomes = result.workload(op)["outcomes"]
    assert outcomes == {"ok": 2 if op == "multipart" else 20}, (outcomes, result.summary["findings"])
    assert "Q11" not in result.codes(), result.summary["findings"]


def data_keys(bucket):
    return [k for k in bucket.keys() if not k.endswith("/.plimsoll")]


METHODS = {
    "sse-s3": (["--sse", "AES256"], "AES256"),
    "sse-kms": (["--sse", "aws:kms"], "aws:kms"),
    "sse-kms with a key": (["--sse", "aws:kms", "--sse-kms-key-id", KEY], "aws:kms"),
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("method", METHODS)
def test_the_server_encrypts(plimsoll, kept, method, op):
    asked, said = METHODS[method]
    result = plimsoll("object", *OPS[op], *flags(kept), *asked, "--keep", *QUICK, server=kept.server)
    all_ok(result, op)
    heads = [kept.client.head_object(Bucket=kept.name, Key=k) for k in data_keys(kept)]
    assert heads and {h["ServerSideEncryption"] for h in heads} == {said}
    if said == "aws:kms":
        assert all(h["SSEKMSKeyId"].endswith(KEY) for h in heads)
    assert plimsoll("cleanup", "last", "--kept", server=kept.server).code == 0
    assert kept.keys() == [] and kept.uploads() == []


@pytest.mark.parametrize("op", OPS)
def test_with_the_customers_key(plimsoll, kept, key_file, op, runs):
    result = plimsoll("object", *OPS[op], *flags(kept), "--sse-c-key-file", key_file, "--keep", *QUICK,
                      server=kept.server)
    all_ok(result, op)
    secret = key_file.read_text().strip()
    assert secret not in result.out + result.err
    stored = [f for f in runs.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]
    assert stored == [], "the key is nowhere in the run"
    raw = base64.b64decode(secret)
    keys = data_keys(kept)
    assert keys
    for k in keys:
        got = kept.client.head_object(Bucket=kept.name, Key=k, SSECustomerAlgorithm="AES256", SSECustomerKey=raw)
        assert got["SSECustomerAlgorithm"] == "AES256"
    with pytest.raises(kept.client.exceptions.ClientError):
        kept.client.get_object(Bucket=kept.name, Key=keys[0])
    assert plimsoll("cleanup", "last", "--kept", server=kept.server).code == 0
    assert kept.keys() == [] and kept.uploads() == []


def test_a_key_on_the_command_line_is_refused(plimsoll, minio_bucket, key_file):
    secret = key_file.read_text().strip()
    result = plimsoll("object", "put", *minio_bucket.flags(), "--header",
                      f"x-amz-server-side-encryption-customer-key: {secret}", server=minio_bucket.server)
    assert (result.code, result.out) == (2, "")
    assert "--sse-c-key-file" in result.err and secret not in result.err, result.err


@pytest.mark.parametrize("asked,told", [
    (["--sse", "aws:kms", "--sse-kms-key-id", "no-such-key"], "KeyNotFound"),
    (["--storage-class", "NO_SUCH_CLASS"], "InvalidStorageClass"),
])
def test_what_the_server_refuses_is_told_in_its_words(plimsoll, kept, asked, told):
    result = plimsoll("object", "put", *flags(kept), *asked, *OPS["put"][1:], *QUICK, server=kept.server)
    assert (result.code, result.out) == (2, "")
    assert told in result.err and "x-amz-s" in result.err, result.err
    assert kept.keys() == []


def test_what_a_server_ignores_is_told(plimsoll, versitygw):
    """This server takes the headers, answers 200, and neither encrypts nor moves anything to a colder class."""
    b = new_bucket(versitygw)
    result = plimsoll("object", "put", *b.flags(), *OPS["put"][1:], "--sse", "aws:kms", "--storage-class", "GLACIER",
                      *QUICK, server=versitygw)
    assert result.workload("put")["outcomes"] == {"ok": 20}
    said = [f["text"] for f in result.summary["findings"] if f["code"] == "Q11"]
    assert len(said) == 1 and "aws:kms" in said[0] and "GLACIER" in said[0], result.summary["findings"]
    drop_bucket(b)


def test_a_data_set_is_of_one_kind(plimsoll, kept):
    get = ["object", *OPS["get"], *flags(kept), "--dataset", "kind", *QUICK]
    all_ok(plimsoll(*get, "--sse", "aws:kms", server=kept.server), "get")
    other = plimsoll(*get, server=kept.server)
    assert other.code == 2 and "aws:kms" in other.err, other.err
