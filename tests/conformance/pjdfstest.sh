#!/bin/bash
# pjdfstest.sh OUT
#
# Runs pjdfstest on ext4 and XFS: on the file system itself, and in a guest over its NFSv3 client
# against Weir and NFS-Ganesha. Leaves what it printed in OUT/{local,ganesha,weir}-{ext4,xfs};
# whether that is good is decided elsewhere (cargo xtask conformance). Needs WEIR and PJDFSTEST,
# the programs. Fails if a run did not come to its end.
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
# shellcheck source=pjdfstest.bash
. "$here/pjdfstest.bash"
disks=/run/disks
rm -f "$out"/*

make_disk() {
    local quiet=-qF
    [ "$1" = ext4 ] || quiet=-qf
    truncate -s 2G "$work/$1.img" && "mkfs.$1" $quiet "$work/$1.img" && mkdir -p "$disks/$1" &&
        mount -t "$1" -o loop "$work/$1.img" "$disks/$1" && mkdir -m 777 "$disks/$1"/{local,ganesha,weir}
}

start_ganesha() {
    mkdir -p "$work/ganesha" /run/rpcbind && rpcbind -w || return 1
    sed "s|@DISKS@|$disks|; s|@STATE@|$work/ganesha|" "$here/ganesha.conf" >"$work/ganesha.conf"
    ganesha.nfsd -F -f "$work/ganesha.conf" -L "$work/ganesha.log" -p "$work/ganesha.pid" &
    local pid=$!
    for _ in $(seq 300); do
        kill -0 $pid 2>/dev/null || break
        ! (: </dev/tcp/127.0.0.1/12049 && : </dev/tcp/127.0.0.1/12050) 2>/dev/null || return 0
        sleep 0.1
    done
    tail -n 20 "$work/ganesha.log"
    return 1
}

start_weir() {
    start_server 0.0.0.0:2049 || return 1
    local fs
    for fs in ext4 xfs; do
        weir pool create $fs --level ultra --size 4TiB --path "$disks/$fs/weir" &&
            weir volume create $fs --pool $fs --quota 1TiB &&
            weir export add $fs --network 10.77.0.0/24 --access rw --squash none || return 1
    done
}

add_account && make_disk ext4 && make_disk xfs || exit 1
for fs in ext4 xfs; do
    other=$disks/xfs
    [ $fs = ext4 ] || other=$disks/ext4
    echo "# the file system alone, $fs"
    "$here/pjdfstest-run.sh" "$PJDFSTEST" "$disks/$fs/local" "$other" "$out/local-$fs" || exit 1
done
start_ganesha && start_weir || exit 1
{ ganesha.nfsd -v | head -n 1; "$PJDFSTEST" --version; "$WEIR" --version; } >"$out/versions"
GUEST_SECONDS=3600 "$clients/guest" "$out" "$here/pjdfstest-guest.sh" "$here" "$out" "$PJDFSTEST"
code=$?
if [ $code -ne 0 ]; then
    tail -n 40 "$work/server.log" "$work/ganesha.log"
fi
cp "$work/server.log" "$out/weir.log"
cp "$work/ganesha.log" "$out/ganesha.log"
exit $code
