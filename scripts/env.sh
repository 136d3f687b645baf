# Where install.sh puts things. Sourced by the other scripts; not run.
export PATH="$PWD/.local/tools/links:$PATH:$HOME/.cargo/bin:$HOME/go/bin:/usr/local/go/bin:/usr/sbin:/sbin"
# A Node of its own brings its own roots of trust; the machine's count too (some networks have a proxy with one).
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
fi
