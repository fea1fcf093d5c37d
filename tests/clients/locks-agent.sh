#!/bin/bash
# Runs in a guest: locks-agent.sh NAME SERVER FOLDER. Mounts the volume with locks, as a client that
# knows no ports, and then carries out what the driver leaves in FOLDER as NUMBER.ask.
set -u
name=$1 server=$2 folder=$3
hostname "$name"
mkdir -p /run/rpcbind /mnt/nfs
# What the status monitor remembers outlives the guest, as on a machine with a disk.
mkdir -p "$folder/statd/sm" "$folder/statd/sm.bak"
rpcbind -w
sm-notify -P "$folder/statd" -f
rpc.statd -P "$folder/statd" --no-notify
mount -t nfs -o vers=3,proto=tcp,hard "$server:/work" /mnt/nfs || exit 1
echo "agent $name is up"
cd /mnt/nfs || exit 1
number=1
while ! [ -e "$folder/end" ]; do
    if [ -e "$folder/$number.ask" ]; then
        # shellcheck disable=SC1090
        (. "$folder/$number.ask") >"$folder/$number.out" 2>&1
        echo $? >"$folder/$number.part"
        mv "$folder/$number.part" "$folder/$number.code"
        number=$((number + 1))
    fi
    sleep 0.05
done
cd /
pkill -x locker
umount /mnt/nfs
