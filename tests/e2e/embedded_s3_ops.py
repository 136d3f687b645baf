"""Every operation of the embedded S3 server, by boto3. Run: python3 tests/e2e/embedded_s3_ops.py"""
import base64
import datetime
import hashlib
import os
import random
import tempfile
import urllib.request
import zlib

from embedded_server import Server, refused

MIB = 1 << 20


def buckets(s3):
    s3.create_bucket(Bucket="bkt")
    refused("BucketAlreadyOwnedByYou", s3.create_bucket, Bucket="bkt")
    s3.create_bucket(Bucket="other.bucket")
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["bkt", "other.bucket"]
    s3.head_bucket(Bucket="bkt")
    refused(404, s3.head_bucket, Bucket="nothing-here")
    assert s3.get_bucket_location(Bucket="bkt")["LocationConstraint"] is None
    assert "Status" not in s3.get_bucket_versioning(Bucket="bkt")
    refused("ObjectLockConfigurationNotFoundError", s3.get_object_lock_configuration, Bucket="bkt")
    s3.put_object(Bucket="other.bucket", Key="k", Body=b"")
    refused("BucketNotEmpty", s3.delete_bucket, Bucket="other.bucket")
    s3.delete_object(Bucket="other.bucket", Key="k")
    s3.delete_bucket(Bucket="other.bucket")
    refused("NoSuchBucket", s3.list_objects_v2, Bucket="other.bucket")
    refused("NoSuchBucket", s3.put_object, Bucket="other.bucket", Key="k", Body=b"")


def objects(s3):
    for size in (0, 1, 4096, 256 * 1024 - 300, 256 * 1024, 256 * 1024 + 1, 5 * MIB + 17):
        body = random.Random(size).randbytes(size)
        put = s3.put_object(Bucket="bkt", Key="o", Body=body, ContentType="text/x", CacheControl="no-store",
                            Metadata={"a": "1", "long-name": "v w"}, StorageClass="STANDARD_IA")
        assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"', (size, put["ETag"])
        got = s3.get_object(Bucket="bkt", Key="o")
        assert got["Body"].read() == body and got["ContentLength"] == size
        assert got["ContentType"] == "text/x" and got["CacheControl"] == "no-store"
        assert got["Metadata"] == {"a": "1", "long-name": "v w"} and got["StorageClass"] == "STANDARD_IA"
        head = s3.head_object(Bucket="bkt", Key="o")
        assert head["ContentLength"] == size and head["ETag"] == put["ETag"] and head["LastModified"]
        if size > 100:
            for text, want in (("bytes=0-9", body[:10]), ("bytes=90-", body[90:]), ("bytes=-7", body[-7:]),
                               (f"bytes=5-{size + 999}", body[5:])):
                part = s3.get_object(Bucket="bkt", Key="o", Range=text)
                assert part["Body"].read() == want, (size, text)
                assert part["ResponseMetadata"]["HTTPStatusCode"] == 206 and part["ContentRange"].endswith(f"/{size}")
            refused("InvalidRange", s3.get_object, Bucket="bkt", Key="o", Range=f"bytes={size}-")
    refused("NoSuchKey", s3.get_object, Bucket="bkt", Key="never")
    refused(404, s3.head_object, Bucket="bkt", Key="never")
    s3.delete_object(Bucket="bkt", Key="never")
    refused("BadDigest", s3.put_object, Bucket="bkt", Key="bad", Body=b"abc",
            ContentMD5=base64.b64encode(hashlib.md5(b"xyz").digest()).decode())
    refused("BadDigest", s3.put_object, Bucket="bkt", Key="bad", Body=b"abc", ChecksumCRC32="AAAAAA==")
    refused("NoSuchKey", s3.get_object, Bucket="bkt", Key="bad")
    s3.put_object(Bucket="bkt", Key="sse", Body=b"x", ServerSideEncryption="AES256")
    assert s3.head_object(Bucket="bkt", Key="sse")["ServerSideEncryption"] == "AES256"
    s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "o"}, {"Key": "sse"}]})


def checksums(s3):
    body = random.Random(1).randbytes(100_000)
    sha = base64.b64encode(hashlib.sha256(body).digest()).decode()
    crc = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
    put = s3.put_object(Bucket="bkt", Key="c", Body=body, ChecksumSHA256=sha)
    assert put["ChecksumSHA256"] == sha
    assert s3.get_object(Bucket="bkt", Key="c", ChecksumMode="ENABLED")["ChecksumSHA256"] == sha
    assert "ChecksumSHA256" not in s3.head_object(Bucket="bkt", Key="c")
    for algorithm in ("CRC32", "SHA1", "SHA256", "CRC32C", "CRC64NVME"):
        try:
            put = s3.put_object(Bucket="bkt", Key="c", Body=body, ChecksumAlgorithm=algorithm)
        except Exception as e:  # botocore needs awscrt for these two
            assert algorithm in ("CRC32C", "CRC64NVME") and "crt" in str(e), e
            continue
        if algorithm == "CRC32":
            assert put["ChecksumCRC32"] == crc
        head = s3.head_object(Bucket="bkt", Key="c", ChecksumMode="ENABLED")
        assert head[f"Checksum{algorithm}"] == put[f"Checksum{algorithm}"]
    # Known values: the check words of both CRCs over "123456789".
    put = s3.put_object(Bucket="bkt", Key="c", Body=b"123456789",
                        ChecksumCRC32C=base64.b64encode(0xE3069283.to_bytes(4, "big")).decode())
    assert put["ChecksumCRC32C"]
    nvme = base64.b64encode(0xAE8B14860A799888.to_bytes(8, "big")).decode()
    assert s3.put_object(Bucket="bkt", Key="c", Body=b"123456789", ChecksumCRC64NVME=nvme)["ChecksumCRC64NVME"] == nvme
    refused("BadDigest", s3.put_object, Bucket="bkt", Key="c", Body=b"12345678", ChecksumCRC64NVME=nvme)
    s3.delete_object(Bucket="bkt", Key="c")


def conditions(s3):
    tag = s3.put_object(Bucket="bkt", Key="if", Body=b"1", IfNoneMatch="*")["ETag"]
    refused("PreconditionFailed", s3.put_object, Bucket="bkt", Key="if", Body=b"2", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, Bucket="bkt", Key="if", Body=b"2", IfMatch='"beef"')
    s3.put_object(Bucket="bkt", Key="if", Body=b"1", IfMatch=tag)
    refused("NoSuchKey", s3.put_object, Bucket="bkt", Key="not-there", Body=b"2", IfMatch=tag)
    refused(304, s3.get_object, Bucket="bkt", Key="if", IfNoneMatch=tag)
    refused(412, s3.get_object, Bucket="bkt", Key="if", IfMatch='"beef"')
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    earlier = later - datetime.timedelta(days=1)
    refused(304, s3.head_object, Bucket="bkt", Key="if", IfModifiedSince=later)
    refused(412, s3.head_object, Bucket="bkt", Key="if", IfUnmodifiedSince=earlier)
    assert s3.get_object(Bucket="bkt", Key="if", IfModifiedSince=earlier)["Body"].read() == b"1"
    s3.delete_object(Bucket="bkt", Key="if")


def xml_can_say(key):
    """XML 1.0 has no way to write most control characters."""
    return "\x01" not in key and "\uffff" not in key


def strange_keys(s3, data):
    keys = ["a", "a/b", "a/b/c", "a/", "..", "../..", "../../etc/passwd", "/", "//", "/lead", ".", "./x", "x/../y",
            "k" * 1024, "ü" * 512, "emoji-\U0001f980", "sp ace", "plus+sign", "per%cent", "%2e%2e", "q?query", "hash#",
            "amp&<>\"'", "ctl\x01\x02\x1f", "nl\n\r\t", "back\\slash", "\u202eRTL", "~tilde", "\uffff", "=eq;semi:colon"]
    before = {os.path.join(r, f) for r, _, fs in os.walk(os.path.dirname(data)) for f in fs if not r.startswith(data)}
    for i, key in enumerate(keys):
        s3.put_object(Bucket="bkt", Key=key, Body=f"{i}".encode())
    for i, key in enumerate(keys):
        assert s3.get_object(Bucket="bkt", Key=key)["Body"].read() == f"{i}".encode(), key
    after = {os.path.join(r, f) for r, _, fs in os.walk(os.path.dirname(data)) for f in fs if not r.startswith(data)}
    assert before == after, after - before
    listed = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket="bkt", PaginationConfig={"PageSize": 3}):
        assert len(page.get("Contents", [])) <= 3
        listed += [o["Key"] for o in page.get("Contents", [])]
    assert listed == sorted(keys, key=str.encode), listed
    refused("KeyTooLongError", s3.put_object, Bucket="bkt", Key="k" * 1025, Body=b"")
    answer = s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": k} for k in keys if xml_can_say(k)]})
    assert "Errors" not in answer, answer
    for key in keys:
        if not xml_can_say(key):
            s3.delete_object(Bucket="bkt", Key=key)
    assert s3.list_objects_v2(Bucket="bkt")["KeyCount"] == 0


def lists(s3):
    keys = [f"d{d}/f{f}" for d in range(3) for f in range(4)] + ["top1", "top2"]
    for k in keys:
        s3.put_object(Bucket="bkt", Key=k, Body=b"x")
    for op, token in (("list_objects", "NextMarker"), ("list_objects_v2", "NextContinuationToken")):
        seen, pages = [], 0
        for page in s3.get_paginator(op).paginate(Bucket="bkt", Delimiter="/", PaginationConfig={"PageSize": 2}):
            pages += 1
            seen += [p["Prefix"] for p in page.get("CommonPrefixes", [])] + [o["Key"] for o in page.get("Contents", [])]
            assert token in page or not page["IsTruncated"]
        assert seen == ["d0/", "d1/", "d2/", "top1", "top2"] and pages == 3, (op, seen, pages)
    page = s3.list_objects_v2(Bucket="bkt", Prefix="d1/", StartAfter="d1/f1", MaxKeys=1)
    assert [o["Key"] for o in page["Contents"]] == ["d1/f2"] and page["IsTruncated"] and page["KeyCount"] == 1
    assert s3.list_objects_v2(Bucket="bkt", MaxKeys=0)["IsTruncated"] is False
    refused("InvalidArgument", s3.list_objects_v2, Bucket="bkt", ContinuationToken="nonsense")
    assert len(s3.list_object_versions(Bucket="bkt")["Versions"]) == len(keys)
    answer = s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": k} for k in keys], "Quiet": True})
    assert "Deleted" not in answer and "Errors" not in answer


def copies(s3):
    body = random.Random(2).randbytes(700_000)
    s3.put_object(Bucket="bkt", Key="from ü", Body=body, ContentType="text/y", Metadata={"m": "1"})
    s3.create_bucket(Bucket="second")
    s3.copy_object(Bucket="second", Key="to", CopySource={"Bucket": "bkt", "Key": "from ü"})
    got = s3.get_object(Bucket="second", Key="to")
    assert got["Body"].read() == body and got["ContentType"] == "text/y" and got["Metadata"] == {"m": "1"}
    s3.copy_object(Bucket="second", Key="to", CopySource="second/to", MetadataDirective="REPLACE", Metadata={"n": "2"})
    assert s3.head_object(Bucket="second", Key="to")["Metadata"] == {"n": "2"}
    refused("InvalidRequest", s3.copy_object, Bucket="second", Key="to", CopySource="second/to")
    refused("NoSuchKey", s3.copy_object, Bucket="second", Key="to", CopySource="second/nothing")
    s3.delete_object(Bucket="second", Key="to")
    s3.delete_bucket(Bucket="second")
    s3.delete_object(Bucket="bkt", Key="from ü")


def multipart(s3):
    parts = [random.Random(i).randbytes(5 * MIB) for i in range(2)] + [b"the last"]
    up = s3.create_multipart_upload(Bucket="bkt", Key="m/p", ContentType="text/z", Metadata={"k": "v"})["UploadId"]
    tags = {}
    for n in (3, 1, 2):
        tags[n] = s3.upload_part(Bucket="bkt", Key="m/p", UploadId=up, PartNumber=n, Body=parts[n - 1])["ETag"]
    assert [u["UploadId"] for u in s3.list_multipart_uploads(Bucket="bkt")["Uploads"]] == [up]
    listed = s3.list_parts(Bucket="bkt", Key="m/p", UploadId=up, MaxParts=2)
    assert [p["PartNumber"] for p in listed["Parts"]] == [1, 2] and listed["IsTruncated"]
    listed = s3.list_parts(Bucket="bkt", Key="m/p", UploadId=up, PartNumberMarker=listed["NextPartNumberMarker"])
    assert [p["Size"] for p in listed["Parts"]] == [8]
    named = [{"PartNumber": n, "ETag": tags[n]} for n in (1, 2, 3)]
    wrong = [dict(named[0], ETag='"beef"')] + named[1:]
    finish = dict(Bucket="bkt", Key="m/p", UploadId=up)
    refused("InvalidPart", s3.complete_multipart_upload, MultipartUpload={"Parts": wrong}, **finish)
    refused("InvalidPartOrder", s3.complete_multipart_upload, MultipartUpload={"Parts": named[::-1]}, **finish)
    refused("EntityTooSmall", s3.complete_multipart_upload,
            MultipartUpload={"Parts": [named[2], {"PartNumber": 4, "ETag": s3.upload_part(
                Bucket="bkt", Key="m/p", UploadId=up, PartNumber=4, Body=b"x")["ETag"]}]}, **finish)
    done = s3.complete_multipart_upload(MultipartUpload={"Parts": named}, **finish)
    want = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest() + "-3"
    assert done["ETag"] == f'"{want}"', done["ETag"]
    got = s3.get_object(Bucket="bkt", Key="m/p")
    assert got["Body"].read() == b"".join(parts) and got["ContentType"] == "text/z" and got["Metadata"] == {"k": "v"}
    part = s3.get_object(Bucket="bkt", Key="m/p", PartNumber=3)
    assert part["Body"].read() == b"the last" and part["PartsCount"] == 3
    refused("NoSuchUpload", s3.upload_part, PartNumber=1, Body=b"", **finish)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bkt")
    up = s3.create_multipart_upload(Bucket="bkt", Key="copy")["UploadId"]
    tag = s3.upload_part_copy(Bucket="bkt", Key="copy", UploadId=up, PartNumber=1, CopySource="bkt/m/p",
                              CopySourceRange="bytes=5-14")["CopyPartResult"]["ETag"]
    s3.complete_multipart_upload(Bucket="bkt", Key="copy", UploadId=up,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
    assert s3.get_object(Bucket="bkt", Key="copy")["Body"].read() == b"".join(parts)[5:15]
    up = s3.create_multipart_upload(Bucket="bkt", Key="gone")["UploadId"]
    s3.abort_multipart_upload(Bucket="bkt", Key="gone", UploadId=up)
    refused("NoSuchUpload", s3.list_parts, Bucket="bkt", Key="gone", UploadId=up)
    refused("NoSuchUpload", s3.abort_multipart_upload, Bucket="bkt", Key="gone", UploadId="../../buckets")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "f")
        with open(path, "wb") as f:
            f.write(os.urandom(20 * MIB + 3))
        s3.upload_file(path, "bkt", "file")
        s3.download_file("bkt", "file", path + "2")
        assert open(path, "rb").read() == open(path + "2", "rb").read()
    s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": k} for k in ("m/p", "copy", "file")]})


def signatures(server, s3):
    import boto3
    from botocore.config import Config

    s3.put_object(Bucket="bkt", Key="s", Body=b"signed")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "bkt", "Key": "s"}, ExpiresIn=60)
    assert urllib.request.urlopen(url).read() == b"signed"
    for access, secret, code in (("first", "wrong", "SignatureDoesNotMatch"), ("nobody", "x", "InvalidAccessKeyId")):
        c = boto3.client("s3", endpoint_url=server.endpoint, aws_access_key_id=access, aws_secret_access_key=secret,
                         region_name="us-east-1", config=Config(s3={"addressing_style": "path"}))
        refused(code, c.get_object, Bucket="bkt", Key="s")
    # All three ways to send a body: hashed, unsigned, and in signed chunks with a trailer.
    for config in ({"payload_signing_enabled": True}, {"payload_signing_enabled": False}):
        c = server.client(s3={"addressing_style": "path", **config}, request_checksum_calculation="when_required")
        c.put_object(Bucket="bkt", Key="s", Body=b"y" * 300_000)
        assert c.get_object(Bucket="bkt", Key="s")["Body"].read() == b"y" * 300_000
    s3.delete_object(Bucket="bkt", Key="s")


def main():
    with tempfile.TemporaryDirectory() as d:
        data = os.path.join(d, "data")
        server = Server(data)
        try:
            s3 = server.client()
            for step in (buckets, objects, checksums, conditions, lists, copies, multipart):
                step(s3)
                print("ok", step.__name__, flush=True)
            strange_keys(s3, data)
            print("ok strange_keys")
            signatures(server, s3)
            print("ok signatures")
            assert s3.list_objects_v2(Bucket="bkt")["KeyCount"] == 0
            s3.delete_bucket(Bucket="bkt")
            left = [f for r, _, fs in os.walk(data) for f in fs]
            assert left == [".plimsoll-data"], left
        finally:
            server.stop()


if __name__ == "__main__":
    main()
