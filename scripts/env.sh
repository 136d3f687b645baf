# Where install.sh puts things. Sourced by the other scripts; not run.
export PATH="$PATH:$HOME/.cargo/bin:$PWD/.local/go/bin:$HOME/go/bin:/usr/local/go/bin:/usr/sbin:/sbin"
