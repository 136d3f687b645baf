"""The embedded server's memory is bounded whatever clients send. Run: python3 tests/e2e/embedded_s3_memory.py"""
import os
import socket
import tempfile
import threading

from embedded_server import Server, refused

MIB = 1 << 20


def big_puts(server, signed):
    """Eight large bodies at once; with `signed`, each is hashed whole for its signature."""
    config = {"addressing_style": "path", "payload_signing_enabled": signed}
    body = os.urandom(64 * MIB)

    def put(i):
        c = server.client(s3=config, request_checksum_calculation="when_required")
        c.put_object(Bucket="bkt", Key=f"big{i}", Body=body)

    threads = [threading.Thread(target=put, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sizes = [o["Size"] for o in server.client().list_objects_v2(Bucket="bkt", Prefix="big")["Contents"]]
    assert sizes == [64 * MIB] * 8, sizes


def endless_heads_and_bodies(server):
    """Clients that never come to an end: heads without end, and documents that promise 50 GB."""
    host, port = server.ready["address"].split(":")
    sockets = []
    for i in range(64):
        s = socket.create_connection((host, int(port)))
        s.settimeout(5)
        try:
            if i % 2:
                s.sendall(b"GET /bkt/k HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"y" * (2 * MIB))
            else:
                s.sendall(b"POST /bkt?delete HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000000\r\n\r\n" + b"<" * (2 * MIB))
        except OSError:
            pass  # refused while we send: as it should be
        sockets.append(s)
    for s in sockets:
        s.close()


def main():
    with tempfile.TemporaryDirectory() as d:
        server = Server(os.path.join(d, "data"), "--no-sync")
        s3 = server.client()
        s3.create_bucket(Bucket="bkt")
        for signed in (False, True):
            big_puts(server, signed)
        endless_heads_and_bodies(server)
        got = s3.get_object(Bucket="bkt", Key="big0")["Body"]
        assert sum(len(p) for p in iter(lambda: got.read(MIB), b"")) == 64 * MIB
        refused("MalformedXML", s3.delete_objects, Bucket="bkt", Delete={"Objects": [{"Key": "k"}] * 1001})
        peak = server.rss_bytes()
        server.stop()
        assert peak < 160 * MIB, f"peak of {peak / MIB:.0f} MiB"
        print(f"ok: 1 GiB in 16 bodies, 64 endless clients, peak resident size {peak / MIB:.0f} MiB")


if __name__ == "__main__":
    main()
