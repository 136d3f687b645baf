# Where install.sh puts things. Sourced by the other scripts; not run.
export PATH="$PWD/.local/tools/links:$PATH:$HOME/.cargo/bin:$HOME/go/bin:/usr/local/go/bin:/usr/sbin:/sbin"
