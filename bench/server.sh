#!/bin/bash
# The embedded S3 server against MinIO and versitygw, where they are on PATH: the same client and load, in turn, in one run.
exec python3 "$(dirname "$0")/server.py" "$@"
