"""Objects are what they should be: written by us and read by boto3, and the other way round."""

import hashlib


def prefix_of(bucket):
    keys = [k for k in bucket.keys() if not k.endswith((".plimsoll", "marker", "manifest"))]
    return [k for k in keys if bucket.client.head_object(Bucket=bucket.name, Key=k)["ContentLength"] == 100_000]


def test_objects_that_we_wrote_are_read_by_boto3(plimsoll, bucket):
    # The seed is given: under any seed, one object in 250 or so has two slices of the pool that overlap within zlib's window.
    result = plimsoll(
        "object", "put", *bucket.flags(), "--size", "100KB", "--max-ops", "6", "--warmup", "0s", "--concurrency", "2", "--seed", "5",
        "--signing", "full", "--keep", "--json", server=bucket.server,
    )
    assert result.code in (0, 3), result.err
    keys = prefix_of(bucket)
    assert len(keys) == result.workload("put")["outcomes"]["ok"] == 6
    bodies = [bucket.client.get_object(Bucket=bucket.name, Key=k)["Body"].read() for k in keys]
    assert all(len(b) == 100_000 for b in bodies)
    # No two objects are alike, and no two runs of bytes in one: it must not dedupe or compress away.
    assert len({hashlib.sha256(b).digest() for b in bodies}) == 6
    import zlib

    assert all(len(zlib.compress(b)) > 99_000 for b in bodies)


def test_a_byte_that_boto3_flipped_is_found_and_named(plimsoll, bucket):
    flags = [*bucket.flags(), "--size", "64KiB", "--objects", "4", "--dataset", "flip", "--verify", "--seed", "5",
             "--duration", "500ms", "--warmup", "0s", "--concurrency", "2", "--json"]
    first = plimsoll("object", "get", *flags, server=bucket.server)
    assert first.code in (0, 3), first.err
    assert set(first.workload("get")["outcomes"]) <= {"ok", "cancelled"}
    key = next(k for k in bucket.keys()
               if bucket.client.head_object(Bucket=bucket.name, Key=k)["ContentLength"] == 65536)
    body = bytearray(bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read())
    body[40_000] ^= 0x10
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=bytes(body))
    second = plimsoll("object", "get", *flags, server=bucket.server)
    assert second.code == 7, second.err
    w = second.workload("get")
    assert w["outcomes"].get("verify_mismatch", 0) > 0, w["outcomes"]
    told = second.err + second.out
    assert key in told and "at byte 40000" in told, told[:2000]


def test_other_objects_in_the_bucket_stay(plimsoll, bucket):
    bucket.client.put_object(Bucket=bucket.name, Key="theirs/plimsoll/x", Body=b"keep me")
    bucket.client.put_object(Bucket=bucket.name, Key="plimsoll/readme", Body=b"keep me too")
    plimsoll(
        "object", "mixed", *bucket.flags(), "--mix", "put=1,get=1,delete=1", "--objects", "20", "--size", "1KiB",
        "--duration", "500ms", "--warmup", "0s", "--json", server=bucket.server,
    )
    assert bucket.keys() == ["plimsoll/readme", "theirs/plimsoll/x"]
    assert bucket.client.get_object(Bucket=bucket.name, Key="theirs/plimsoll/x")["Body"].read() == b"keep me"
