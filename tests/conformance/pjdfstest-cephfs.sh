#!/bin/bash
# pjdfstest-cephfs.sh OUT
#
# Runs pjdfstest in a guest over its NFSv3 client against volumes on CephFS, of a cluster with one
# gateway, one OSD and three members of etcd. Leaves what it printed in OUT/weir-cephfs, and the
# server's log in OUT/weir.log; whether that is good is decided elsewhere (cargo xtask). Needs WEIR
# and PJDFSTEST, the programs. Fails if the run did not come to its end.
set -u
here=$(dirname "$(realpath -e "$0")")
clients=$here/../clients cluster=$here/../cluster
if [ "${1:-}" != inside ]; then
    [ $# -eq 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 64; }
    mkdir -p "$1"
    exec "$clients/sandbox" "$0" inside "$(realpath -e "$1")"
fi
out=$2
PJDFSTEST=$(realpath -e "${PJDFSTEST:?the pjdfstest program}") || exit 1
# shellcheck source=../clients/suite.bash
. "$clients/suite.bash"
# shellcheck source=pjdfstest.bash
. "$here/pjdfstest.bash"
rm -f "$out"/*
address=10.77.0.9

# try FILE COMMAND...: runs it with its output in FILE, and shows that if it fails.
try() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { echo "# $*"; sed 's/^/# /' "$log"; return 1; }
}

# Both last as long as the sandbox.
start_engines() {
    try "$work/etcd.out" "$cluster/etcd.py" up "$work/etcd" &&
        OSDS=1 SIZE=1 try "$work/ceph.out" "$cluster/ceph.py" up "$work/ceph"
}

start_gateway() {
    local net
    net=$(cat "$work/etcd/net") && mkdir -m 700 "$data" || return 1
    weir gateway init --data "$data" --cluster conformance --gateway one \
        --links 127.0.0.1:7440 --helper-links 127.0.0.1:7441 --helper-socket "$work/helper.sock" \
        --etcd "http://$net.1:2379,http://$net.2:2379,http://$net.3:2379" \
        --interface weir0 --ceph-conf "$work/ceph/ceph.conf" || return 1
    "$WEIR" gateway helper --data "$data" >"$work/helper.log" 2>&1 &
    local helper=$!
    for _ in $(seq 300); do
        [ ! -S "$work/helper.sock" ] || break
        kill -0 $helper 2>/dev/null || break
        sleep 0.1
    done
    [ -S "$work/helper.sock" ] || { sed 's/^/# /' "$work/helper.log"; return 1; }
    start_server 0.0.0.0:2049 && weir gateway address add "$address/24" || return 1
    local volume
    for volume in first second; do
        weir pool create $volume --level ultra --size 4TiB --ceph "$work/ceph/ceph.conf" --path /$volume &&
            weir volume create $volume --pool $volume --quota 1TiB --address $address &&
            weir export add $volume --network 10.77.0.0/24 --access rw --squash none || return 1
    done
    for _ in $(seq 300); do
        ! ip -o addr show dev weir0 | grep -q "inet $address/" || return 0
        sleep 0.1
    done
    echo "# the gateway has not got its address"
    return 1
}

add_account && start_engines && start_gateway || exit 1
GUEST_SECONDS=1800 "$clients/guest" "$out" "$here/pjdfstest-cephfs-guest.sh" "$here" "$out" "$PJDFSTEST" $address
code=$?
cp "$work/server.log" "$out/weir.log"
[ $code -eq 0 ] || tail -n 40 "$work/server.log"
exit $code
