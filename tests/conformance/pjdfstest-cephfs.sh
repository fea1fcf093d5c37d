#!/bin/bash
# pjdfstest-cephfs.sh OUT
#
# Runs pjdfstest in a guest over its NFSv3 client against volumes on CephFS, of a cluster with one
# gateway, one OSD and three members of etcd. Leaves what it printed in OUT/weir-cephfs, and the
# server's log in OUT/weir.log; whether that is good is decided elsewhere (cargo xtask). Needs WEIR
# and PJDFSTEST, the programs. Fails if the run did not come to its end.
set -u
here=$(dirname "$(realpath -e "$0")")
clients=$here/../clients
if [ "${1:-}" != inside ]; then
    [ $# -eq 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 64; }
    mkdir -p "$1"
    exec "$clients/sandbox" "$0" inside "$(realpath -e "$1")"
fi
out=$2
PJDFSTEST=$(realpath -e "${PJDFSTEST:?the pjdfstest program}") || exit 1
# shellcheck source=../clients/suite.bash
. "$clients/suite.bash"
# shellcheck source=../cluster/gateway.bash
. "$here/../cluster/gateway.bash"
# shellcheck source=pjdfstest.bash
. "$here/pjdfstest.bash"
rm -f "$out"/*
address=10.77.0.9

start_gateway() {
    make_gateway && start_server 0.0.0.0:2049 && weir gateway address add "$address/24" || return 1
    local volume
    for volume in first second; do
        weir pool create $volume --level ultra --size 4TiB --ceph "$ceph_conf" --path /$volume &&
            weir volume create $volume --pool $volume --quota 1TiB --address $address &&
            weir export add $volume --network 10.77.0.0/24 --access rw --squash none || return 1
    done
    await_address $address
}

add_account && start_engines && start_gateway || exit 1
GUEST_SECONDS=1800 "$clients/guest" "$out" "$here/pjdfstest-cephfs-guest.sh" "$here" "$out" "$PJDFSTEST" $address
code=$?
cp "$work/server.log" "$out/weir.log"
[ $code -eq 0 ] || tail -n 40 "$work/server.log"
exit $code
