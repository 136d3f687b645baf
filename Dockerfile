# plimsoll in a small image, with the broker that a fleet needs where it conducts. It runs as nobody in particular, and writes to /runs only.
#
#   scripts/dist.sh x86_64 && docker build -t plimsoll:0.1.0 .
#   scripts/dist.sh aarch64 && docker build --build-arg ARCH=aarch64 --platform linux/arm64 -t plimsoll:0.1.0 .
FROM debian:12-slim
ARG ARCH=x86_64
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates nats-server \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o 65532 -g 65532 /runs
COPY --chmod=0755 target/dist/plimsoll-${ARCH} /usr/local/bin/plimsoll
ENV PLIMSOLL_RUNS=/runs HOME=/runs
WORKDIR /runs
USER 65532:65532
ENTRYPOINT ["plimsoll"]
