"""kill -9 in the middle of writes: nothing that was answered is lost, and no object is torn.

Run: python3 tests/e2e/embedded_s3_kill.py
"""
import hashlib
import os
import random
import tempfile
import threading
import time

from embedded_server import Server

KEYS = [f"dir/k{i}" for i in range(6)]
MIB = 1 << 20


def content(key, version):
    """What version N of a key holds; the version can be read off it."""
    r = random.Random(f"{key} {version}")
    size = r.choice([0, 1, 4096, 100_000, 400_000, 2 * MIB])
    return f"{version:08d}".encode() + r.randbytes(size)


def writer(server, keys, state, seed):
    """Overwrites its own keys until the server is gone. state[key] = (version sent, version answered)."""
    s3 = server.client()
    r = random.Random(seed)
    while True:
        key = r.choice(keys)
        version = state[key][0] + 1
        state[key] = (version, state[key][1])
        try:
            if r.random() < 0.2:
                up = s3.create_multipart_upload(Bucket="bkt", Key=key)["UploadId"]
                tag = s3.upload_part(Bucket="bkt", Key=key, UploadId=up, PartNumber=1, Body=content(key, version))["ETag"]
                s3.complete_multipart_upload(Bucket="bkt", Key=key, UploadId=up,
                                             MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
            else:
                s3.put_object(Bucket="bkt", Key=key, Body=content(key, version))
        except Exception:
            return
        state[key] = (version, version)


def check(server, state):
    s3 = server.client()
    listed = {o["Key"]: o for o in s3.list_objects_v2(Bucket="bkt").get("Contents", [])}
    for key, (sent, answered) in state.items():
        if key not in listed:
            assert answered == 0, f"{key}: version {answered} was answered, and is lost"
            continue
        got = s3.get_object(Bucket="bkt", Key=key)
        body = got["Body"].read()
        version = int(body[:8])
        assert answered <= version <= sent, f"{key}: version {version}, but {answered} was answered and {sent} sent"
        assert body == content(key, version), f"{key}: torn"
        assert listed[key]["Size"] == len(body) and listed[key]["ETag"] == got["ETag"]
        if "-" not in got["ETag"]:
            assert got["ETag"].strip('"') == hashlib.md5(body).hexdigest()
        # What is there now is where the next round begins.
        state[key] = (sent, version)


def main():
    with tempfile.TemporaryDirectory() as d:
        data = os.path.join(d, "data")
        state = {key: (0, 0) for key in KEYS}
        server = Server(data)
        server.client().create_bucket(Bucket="bkt")
        written = 0
        for round_no in range(6):
            threads = [threading.Thread(target=writer, args=(server, KEYS[i::3], state, (round_no, i).__hash__()))
                       for i in range(3)]
            for t in threads:
                t.start()
            # Some writes in each round on a disk of any speed, and the kill at no fixed distance from one.
            before = sum(s for s, _ in state.values())
            deadline = time.monotonic() + 30
            time.sleep(0.3 + 0.1 * round_no)
            while sum(s for s, _ in state.values()) < before + 6 and time.monotonic() < deadline:
                time.sleep(0.013)
            server.kill()
            for t in threads:
                t.join()
            server = Server(data)
            check(server, state)
            assert os.listdir(os.path.join(data, "tmp")) == [], "leftovers are removed at the start"
            written = sum(s for s, _ in state.values())
        assert written > 30, f"only {written} writes: the test proves little"
        server.stop()
        print(f"ok: {written} writes, 6 kills, nothing torn, nothing lost")


if __name__ == "__main__":
    main()
