"""TLS with a CA made on the spot: boto3 trusts that CA, and only that. Run: python3 tests/e2e/embedded_s3_tls.py"""
import os
import tempfile

from embedded_server import Server


def main():
    import boto3
    from botocore.exceptions import SSLError

    with tempfile.TemporaryDirectory() as d:
        ca = os.path.join(d, "ca.pem")
        server = Server(os.path.join(d, "data"), "--no-sync", "--tls-self-signed", ca)
        assert server.endpoint.startswith("https://") and server.ready["ca_file"] == ca
        s3 = server.client()
        s3.create_bucket(Bucket="bkt")
        body = os.urandom(3_000_000)
        s3.put_object(Bucket="bkt", Key="k", Body=body)
        assert s3.get_object(Bucket="bkt", Key="k")["Body"].read() == body
        try:
            boto3.client("s3", endpoint_url=server.endpoint, aws_access_key_id="x", aws_secret_access_key="y",
                         region_name="us-east-1").list_buckets()
            raise AssertionError("a stranger's CA was trusted")
        except SSLError:
            pass
        server.stop()
        print("ok tls")


if __name__ == "__main__":
    main()
