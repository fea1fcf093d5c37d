#!/bin/bash
# vdbench-hosts.sh PUBLISHED OUT
#
# Runs the published Vdbench files, unmodified, as they were run: 24 machines, whose workers the
# coordinator starts by ssh, on six volumes. PUBLISHED is the directory with the files, which are not
# part of the project (docs/bench-catalogue.md); the report is written to OUT. Each machine is a
# network namespace with an address of its own, and so are the six addresses of the server; a script
# that enters a namespace stands in for ssh. WEIR is the program; needs root.
set -eu
here=$(dirname "$(realpath -e "$0")")
if [ "${3:-}" != inside ]; then
    exec "$here/../clients/sandbox" "$(realpath -e "$0")" "$(realpath -e "$1")" "$(realpath -m "$2")" inside
fi
published=$1 out=$2 machines=24 volumes=6
: "${WEIR:?the weir program, e.g. WEIR=target/release/weir}"
WEIR=$(realpath -e "$WEIR")
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-vdbench.XXXXXX")
server=''

finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || :
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

# join NAME INTERFACE ADDRESS...: a machine of its own with these addresses.
join() {
    local name=$1 interface=$2
    shift 2
    ip netns add "$name"
    ip link add "$interface" type veth peer name eth0 netns "$name"
    ip link set "$interface" master lan up
    ip -n "$name" link set lo up
    ip -n "$name" link set eth0 up
    for address; do ip -n "$name" addr add "$address/24" dev eth0; done
}

ip link add lan type bridge
ip addr add 10.79.0.254/24 dev lan
ip link set lan up
addresses=() listen=() maps=()
for number in $(seq $volumes); do
    addresses+=("10.79.0.$number")
    listen+=(--nfs "10.79.0.$number:2049")
    maps+=(--map "/mnt/vdb$number:=nfs://10.79.0.$number/vol$number")
done
join server server "${addresses[@]}"
for number in $(seq $machines); do
    join "vdbench-vnet1-$number" "m$number" "10.79.0.$((100 + number))"
done

cat >"$work/ssh" <<'END'
#!/bin/bash
# ssh OPTION... -- [USER@]HOST COMMAND
while [ "$1" != -- ]; do shift; done
exec ip netns exec "${2##*@}" sh -c "exec $3"
END
chmod +x "$work/ssh"

weir() { "$WEIR" --data "$work/data" "$@"; }
ip netns exec server "$WEIR" serve --data "$work/data" "${listen[@]}" >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 300); do
    weir pool list >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || { tail -n 20 "$work/server.log" >&2; exit 1; }
    sleep 0.1
done
weir --output json pool create main --level ultra --size 100TiB --overcommit >/dev/null
for number in $(seq $volumes); do
    weir --output json volume create "vol$number" --pool main --quota 16TiB >/dev/null
    weir --output json export add "vol$number" --network 10.79.0.0/24 --access rw --squash none >/dev/null
done

cd "$published"
weir bench run vnet1-*-workload "${maps[@]}" --ssh "$work/ssh" --worker-program "$WEIR" \
    --scale auto ${VDBENCH:-} --label "24 machines, six volumes" --out "$out" --overwrite
