#!/bin/bash
# The libnfs tools of the distribution against a server on IPv4 and IPv6 loopback: a client in user
# space with a wire codec and a mount protocol of its own.
set -u
here=$(dirname "$(realpath -e "$0")")
# shellcheck source=suite.bash
. "$here/suite.bash"

port=$((20000 + $$ % 10000))
url() { echo "nfs://$1/$2?version=3&nfsport=$port&mountport=$port"; }

round_trip() {
    nfs-cp "$work/original" "$(url "$1" "files/$1")" && nfs-cat "$(url "$1" "files/$1")" | cmp - "$work/original" &&
        nfs-cp "$(url "$1" "files/$1")" "$work/back-$1" && cmp "$work/original" "$work/back-$1"
}

lists() { nfs-ls "$(url "$1" files/)" | grep -q " $1\$"; }

lists_recursively() { nfs-ls -R "$(url "$1" files/)" | grep -q "$1"; }

absent_file() { refused nfs-cat "$(url "$1" files/absent)"; }

absent_volume() { refused nfs-ls "$(url "$1" absent/)"; }

head -c 5000000 /dev/urandom >"$work/original"
for address in 127.0.0.1 ::1; do
    listen=$address
    [ $address = 127.0.0.1 ] || listen="[$address]"
    start_server "$listen:$port" || exit 1
    if [ $address = 127.0.0.1 ]; then
        weir pool create main --level ultra --size 1TiB || exit 1
        weir volume create files --pool main --quota 100GiB || exit 1
    fi
    check "copies-there-and-back-$address" round_trip "$address"
    check "lists-$address" lists "$address"
    check "lists-recursively-$address" lists_recursively "$address"
    check "misses-an-absent-file-$address" absent_file "$address"
    check "misses-an-absent-volume-$address" absent_volume "$address"
    check "stops-on-request-$address" stop_server TERM
done
exit $failed
