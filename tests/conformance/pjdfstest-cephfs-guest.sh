#!/bin/bash
# Runs in the guest: pjdfstest-cephfs-guest.sh HERE OUT PJDFSTEST ADDRESS. Mounts both volumes and
# runs pjdfstest on the first; the other file system that tests ask for is the second.
set -u
here=$1 out=$2 pjdfstest=$3 address=$4
# shellcheck source=pjdfstest.bash
. "$here/pjdfstest.bash"
for volume in first second; do
    mkdir -p "/mnt/$volume" &&
        mount -t nfs -o "$pjdfstest_options,port=2049,mountport=2049" "$address:/$volume" "/mnt/$volume" || exit 1
done
"$here/pjdfstest-run.sh" "$pjdfstest" /mnt/first /mnt/second "$out/weir-cephfs"
