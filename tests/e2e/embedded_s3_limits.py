"""Rate limits of the embedded server: exact counts of refusals, sustained rate, bytes. Run with python3."""
import os
import tempfile
import threading
import time

from embedded_server import Server, refused


def limits(d, text):
    path = os.path.join(d, "limits.toml")
    with open(path, "w") as f:
        f.write('name = "test"\nkind = "object"\n' + text)
    return path


def run(server, seconds, workers, call):
    """Calls until the time is over: (good, refused) after the first second, per second."""
    from botocore.exceptions import ClientError

    counts = {"ok": 0, "refused": 0}
    lock = threading.Lock()
    start = time.monotonic() + 1.0
    end = start + seconds

    def loop(i):
        s3 = server.client()
        while True:
            try:
                call(s3, i)
                kind = "ok"
            except ClientError as e:
                assert e.response["ResponseMetadata"]["HTTPStatusCode"] in (429, 503), e
                kind = "refused"
            now = time.monotonic()
            if now >= end:
                return
            if now >= start:
                with lock:
                    counts[kind] += 1

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return counts["ok"] / seconds, counts["refused"] / seconds


def holds(name, want, upper, measure, attempts=3):
    """The limiter lets no more through than was set, in each attempt; that it lets as much through is seen in one of
    a few, since a machine that is busy with something else may ask too little."""
    seen = []
    for _ in range(attempts):
        rate, refused_rate = measure()
        assert rate <= want * upper, f"{name}: {rate} of {want} per s"
        seen.append(rate)
        if rate >= want * 0.92:
            return rate, refused_rate
    raise AssertionError(f"{name}: {seen}, and never the {want} per s that were set")


def head(s3, _):
    s3.head_bucket(Bucket="bkt")


def main():
    with tempfile.TemporaryDirectory() as d:
        data = os.path.join(d, "data")
        # A bucket that practically never refills: the count of what goes through is exact.
        text = "[[limit]]\nunit='ops'\nrate_per_s=0.001\ncapacity=7\nanswer='503'\ncharges=['head']\nretry_after_s=3\n"
        server = Server(data, "--no-sync", "--limits", limits(d, text))
        s3 = server.client()
        s3.create_bucket(Bucket="bkt")
        s3.put_object(Bucket="bkt", Key="k", Body=b"x")
        for _ in range(7):
            s3.head_object(Bucket="bkt", Key="k")
        e = refused(503, s3.head_object, Bucket="bkt", Key="k")
        assert e.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "3"
        assert s3.get_object(Bucket="bkt", Key="k")["Body"].read() == b"x", "only HEAD is charged"
        server.stop()

        # Two access keys share a server limit, and the sustained rate is the one that was set.
        for answer in ("delay", "429"):
            text = f"[[limit]]\nunit='ops'\nrate_per_s=50\ncapacity=10\nanswer='{answer}'\n"
            server = Server(data, "--no-sync", "--limits", limits(d, text))
            good, bad = holds(answer, 50, 1.03, lambda: run(server, 4, 10, head))
            server.stop()
            assert (bad > 0) == (answer == "429"), (answer, bad)
            print(f"ok {answer}: {good:.2f} of 50 ops/s, {bad:.0f}/s refused", flush=True)

        # Bytes, in both directions.
        body = os.urandom(200_000)
        text = "[[limit]]\nunit='bytes'\nrate_per_s='4 MB'\n"
        server = Server(data, "--no-sync", "--limits", limits(d, text))
        put = lambda c, i: c.put_object(Bucket="bkt", Key=f"k{i}", Body=body)  # noqa: E731
        rate, _ = holds("PUT", 20, 1.08, lambda: run(server, 4, 8, put))
        print(f"ok bytes in: {rate / 5:.2f} of 4 MB/s")
        get = lambda c, i: c.get_object(Bucket="bkt", Key=f"k{i}")["Body"].read()  # noqa: E731
        rate, _ = holds("GET", 20, 1.08, lambda: run(server, 4, 8, get))
        print(f"ok bytes out: {rate / 5:.2f} of 4 MB/s")
        server.stop()

        # A limits file with a mistake is refused with its place.
        bad = limits(d, "[[limit]]\nunit='ops'\nrate_per_s=0\n")
        try:
            Server(data, "--limits", bad)
            raise AssertionError("a rate of 0 was taken")
        except SystemExit:
            print("ok bad limits are refused")


if __name__ == "__main__":
    main()
