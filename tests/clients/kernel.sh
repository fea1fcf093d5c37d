#!/bin/bash
# The Linux kernel's NFSv3 client, in a guest, against a server here: everyday work, compared with
# what the same commands do on a local file system, through restarts and a crash of the server.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=suite.bash
. "$here/suite.bash"

# A user of this machine in thirty groups, whom nobody outside of the sandbox knows.
cp /etc/passwd /etc/group "$work"
echo 'weir-member:x:5005:5005::/:/bin/false' >>"$work/passwd"
for group in $(seq 8001 8030); do echo "weir-$group:x:$group:weir-member"; done >>"$work/group"
mount --bind "$work/passwd" /etc/passwd || exit 1
mount --bind "$work/group" /etc/group || exit 1
export WEIR_MANAGE_GIDS=true

start_server 0.0.0.0:2049 || exit 1
weir pool create main --level ultra --size 4TiB || exit 1
weir volume create work --pool main --quota 1TiB || exit 1
# Small volumes with rates that no quota of theirs would buy.
weir pool create side --level ultra --size 4TiB --qos manual || exit 1
weir volume create small --pool side --quota 64MiB --throughput 100MiB/s || exit 1
for volume in public readonly closed; do
    weir volume create $volume --pool side --quota 1GiB --throughput 100MiB/s || exit 1
done
guests=10.77.0.0/24
weir export add work --network $guests --access rw --squash none || exit 1
weir export add small --network $guests --access rw --squash none || exit 1
weir export add public --network $guests --access rw --squash root || exit 1
weir export add readonly --network $guests --access ro --squash none || exit 1

# The guest asks for what only this side can do by a line of its output.
mkfifo "$work/lines"
mkdir "$work/share"
"$here/guest" "$work/share" "$here/kernel-cases.sh" "$repository" >"$work/lines" &
guest=$!
while IFS= read -r line; do
    case $line in
    @terminate) check stops-cleanly-under-load stop_server TERM ;;
    @kill) stop_server KILL ;;
    @start) start_server 0.0.0.0:2049 || failed=1 ;;
    @quota) weir volume resize work 2TiB || failed=1 ;;
    'not ok'*) failed=1; echo "$line" ;;
    *) echo "$line" ;;
    esac
done <"$work/lines"
wait $guest || { echo "not ok - the guest ended with code $?"; failed=1; }
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
fi
exit $failed
