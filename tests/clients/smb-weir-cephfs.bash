# The SMB suites' server as a gateway of Weir, with the volume of each share in one pool on CephFS. Both
# are of one machine: a Ceph with one OSD, three members of etcd, one gateway. Clients use the address of
# the volumes. The suite sees the files by Ceph's own client, ceph-fuse.

# shellcheck source=smb-weir.bash
. "$repository/tests/clients/smb-weir.bash"
# shellcheck source=../cluster/gateway.bash
. "$repository/tests/cluster/gateway.bash"

smb_host=10.77.0.9
smb_known=$repository/tests/conformance/smb-cephfs-known.tsv
smb_slow=3
# Not in the suite's folder, which is removed while this is mounted.
cephfs=/run/cephfs

share_dir() { echo "$cephfs/main/volumes/$(smb_volume "$1")/root"; }

prepare() {
    start_engines && make_gateway && mkdir $cephfs && try "$work/fuse.out" ceph-fuse -c "$ceph_conf" $cephfs
}

make_pool() {
    weir gateway address add $smb_host/24 && await_volumes &&
        weir pool create main --level ultra --size 100TiB --ceph "$ceph_conf" --path /main
}

await_volumes() { await_address $smb_host; }
