#!/bin/bash
# Runs in the guest: pjdfstest-guest.sh HERE OUT PJDFSTEST. Mounts both volumes of both servers,
# and runs pjdfstest on each; a volume's other file system is its neighbour.
set -u
here=$1 out=$2 pjdfstest=$3
# shellcheck source=pjdfstest.bash
. "$here/pjdfstest.bash"

# mount_export SERVER FS PORT MOUNTPORT PATH
mount_export() {
    mkdir -p "/mnt/$1/$2" && mount -t nfs -o "$pjdfstest_options,port=$3,mountport=$4" "10.77.0.1:$5" "/mnt/$1/$2"
}

failed=0
for fs in ext4 xfs; do
    mount_export ganesha $fs 12049 12050 "/run/disks/$fs/ganesha" && mount_export weir $fs 2049 2049 "/$fs" || exit 1
done
uname -r >"$out/client"
for server in ganesha weir; do
    for fs in ext4 xfs; do
        other=/mnt/$server/xfs
        [ $fs = ext4 ] || other=/mnt/$server/ext4
        echo "# over NFSv3, $server on $fs"
        "$here/pjdfstest-run.sh" "$pjdfstest" "/mnt/$server/$fs" $other "$out/$server-$fs" || failed=1
    done
done
exit $failed
