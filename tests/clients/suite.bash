# Sourced by the suites: a server of their own, and results in the form of the Test Anything
# Protocol. Needs WEIR, the program under test. Everything started or written here ends with the
# suite.

set -u
repository=$(realpath -e "$(dirname "${BASH_SOURCE[0]}")/../..")
# shellcheck source=tap.bash
. "$repository/tests/clients/tap.bash"
: "${WEIR:?the weir program to test, e.g. WEIR=target/debug/weir}"
WEIR=$(realpath -e "$WEIR") || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-suite.XXXXXX")
data=$work/data
server=''

finish() {
    # The status of a killed server is not that of the suite.
    [ -z "$server" ] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

# weir COMMAND...: the command line against that server; it prints only complaints.
weir() { "$WEIR" --data "$data" "$@" >/dev/null; }

# start_server ADDRESS:PORT [OPTION...]: serves NFS there; returns when it answers.
start_server() {
    local host=${1%:*} port=${1##*:}
    "$WEIR" serve --data "$data" --nfs "$@" >>"$work/server.log" 2>&1 &
    server=$!
    case $host in 0.0.0.0) host=127.0.0.1 ;; '[::]') host=::1 ;; esac
    host=${host#[} host=${host%]}
    for _ in $(seq 300); do
        if (: <"/dev/tcp/$host/$port") 2>/dev/null && weir pool list 2>/dev/null; then
            return 0
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "# the server does not answer on $1:"
    tail -n 20 "$work/server.log" | sed 's/^/# /'
    return 1
}

# stop_server SIGNAL: ends the server and waits for it; fails unless TERM ended it cleanly.
stop_server() {
    local code=0
    kill "-$1" "$server"
    wait "$server" 2>/dev/null || code=$?
    server=''
    [ "$1" = KILL ] || [ $code -eq 0 ]
}
