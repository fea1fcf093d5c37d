# Sourced after suite.bash, in the sandbox: a cluster of one gateway with etcd and Ceph of its own. The
# engines end with the suite, and the gateway's helper with the sandbox; the caller starts and stops the server.
#
# Not here: pools and volumes, and what happens to several gateways (crates/cluster-lab).

ceph_conf=$work/ceph/ceph.conf

# try FILE COMMAND...: runs it with its output in FILE, and shows that if it fails.
try() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { echo "# $*"; sed 's/^/# /' "$log"; return 1; }
}

# start_engines: three members of etcd, and a Ceph with one OSD.
start_engines() {
    try "$work/etcd.out" "$repository/tests/cluster/etcd.py" up "$work/etcd" &&
        OSDS=1 SIZE=1 try "$work/ceph.out" "$repository/tests/cluster/ceph.py" up "$work/ceph"
}

# stop_engines: ends etcd and Ceph. `finish` removes their files afterwards: a daemon that still runs would
# make some anew meanwhile.
stop_engines() {
    [ ! -d "$work/ceph/run" ] || "$repository/tests/cluster/ceph.py" down "$work/ceph"
    [ ! -e "$work/etcd/net" ] || "$repository/tests/cluster/etcd.py" down "$work/etcd"
}
trap 'stop_engines; finish' EXIT

# make_gateway: a cluster with this machine as its gateway, and the gateway's helper, which puts the
# addresses of the cluster on weir0.
make_gateway() {
    local net helper
    net=$(cat "$work/etcd/net") && mkdir -m 700 "$data" || return 1
    weir gateway init --data "$data" --cluster conformance --gateway one \
        --links 127.0.0.1:7440 --helper-links 127.0.0.1:7441 --helper-socket "$work/helper.sock" \
        --etcd "http://$net.1:2379,http://$net.2:2379,http://$net.3:2379" \
        --interface weir0 --ceph-conf "$ceph_conf" || return 1
    "$WEIR" gateway helper --data "$data" >"$work/helper.log" 2>&1 &
    helper=$!
    for _ in $(seq 300); do
        [ ! -S "$work/helper.sock" ] || return 0
        kill -0 $helper 2>/dev/null || break
        sleep 0.1
    done
    sed 's/^/# /' "$work/helper.log"
    return 1
}

# await_address ADDRESS: returns when the gateway has it.
await_address() {
    for _ in $(seq 300); do
        ! ip -o addr show dev weir0 | grep -q "inet $1/" || return 0
        sleep 0.1
    done
    echo "# the gateway has not got the address $1"
    return 1
}
