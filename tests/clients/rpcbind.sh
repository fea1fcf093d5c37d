#!/bin/bash
# Port 111: our own portmapper and registrations with the machine's rpcbind, as the usual tools
# (rpcinfo, showmount) see them.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=suite.bash
. "$here/suite.bash"

rpcbind=''

# start_rpcbind: the machine's own; returns when it answers.
start_rpcbind() {
    rpcbind -f >>"$work/rpcbind.log" 2>&1 &
    rpcbind=$!
    for _ in $(seq 600); do
        ! rpcinfo -p 127.0.0.1 >/dev/null 2>&1 || return 0
        kill -0 "$rpcbind" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/rpcbind.log"
    return 1
}

stop_rpcbind() {
    kill "$rpcbind" && wait "$rpcbind"
    rpcbind=''
}

# registered PROGRAM VERSION PROTOCOL: the port that rpcinfo lists.
registered() { rpcinfo -p 127.0.0.1 | awk -v p="$1" -v v="$2" -v t="$3" '$1 == p && $2 == v && $3 == t { print $4 }'; }

lists() {
    [ "$(registered 100003 3 tcp)" = "$1" ] && [ "$(registered 100005 3 tcp)" = "$1" ] && [ "$(registered 100005 3 udp)" = "$1" ] &&
        [ -z "$(registered 100003 3 udp)" ]
}

# Over TCP and UDP, by version 2 and by versions 3 and 4.
answers() {
    rpcinfo -t 127.0.0.1 100005 3 && rpcinfo -u 127.0.0.1 100005 3 && rpcinfo -T tcp 127.0.0.1 100005 3 &&
        rpcinfo -T udp 127.0.0.1 100005 3 && rpcinfo -t 127.0.0.1 100003 3 && refused rpcinfo -t 127.0.0.1 100099 1
}

# From the address that was asked, also where it is not the first.
answers_from_a_second_address() {
    ip addr add 10.77.0.9/24 dev weir0 && rpcinfo -u 10.77.0.9 100005 3 && rpcinfo -T tcp 10.77.0.9 100005 3
}

shows_exports() { showmount -e 127.0.0.1 | grep -q '^/work '; }

# Not even this machine's root takes away what is ours.
keeps_registrations() {
    rpcinfo -d 100003 3
    lists 2049
}

# complains WORDS COMMAND...: it fails and says so.
complains() {
    local words=$1
    shift
    refused "$@" 2>"$work/complaint"
    cat "$work/complaint"
    grep -q -e "$words" "$work/complaint"
}

second_server() { timeout 60 "$WEIR" serve --data "$work/second" --nfs 127.0.0.1:3049 --api none --rpcbind "$1"; }

export WEIR_RPCBIND=serve
start_server 0.0.0.0:2049 || exit 1
weir pool create main --level ultra --size 4TiB || exit 1
weir volume create work --pool main --quota 1TiB || exit 1
check serves-a-portmapper lists 2049
check answers-over-tcp-and-udp answers
check answers-from-the-address-asked answers_from_a_second_address
check shows-its-exports shows_exports
check keeps-its-registrations keeps_registrations
check says-that-port-111-is-taken complains 'use --rpcbind register' second_server serve
check stops stop_server TERM

check says-that-no-rpcbind-answers complains 'rpcbind serve' second_server register
check starts-rpcbind start_rpcbind
export WEIR_RPCBIND=register
start_server 0.0.0.0:2049 || exit 1
check registers lists 2049
check is-found-by-the-machines-rpcbind answers
check leaves-alone-what-another-serves complains 'registered on port 2049 by another' second_server register
check still-registered lists 2049
stop_server KILL
check leaves-its-registrations-when-killed lists 2049
start_server 0.0.0.0:2050 || exit 1
check replaces-what-is-stale lists 2050
check unregisters-at-a-stop stop_server TERM
check nothing-is-left lists ''
check stops-rpcbind stop_rpcbind
exit $failed
