#!/bin/bash
# Locks between two machines: two guests with the Linux kernel's client, each of which knows the
# server by another address, and finds it by port 111. Contention, waiting, ranges, the crash of a
# client, and the crash of the server.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=suite.bash
. "$here/suite.bash"

export WEIR_RPCBIND=serve WEIR_GRACE_PERIOD_SECS=20
start_server 0.0.0.0:2049 || exit 1
weir pool create main --level ultra --size 4TiB || exit 1
weir volume create work --pool main --quota 1TiB || exit 1
weir export add work --network 10.77.0.0/16 --access rw --squash none || exit 1

declare -A guest
mkdir -p "$work/share"
cc -O2 -Wall -Wextra -o "$work/share/locker" "$here/locker.c" || exit 1

# boot NAME NUMBER: boots a guest and waits until it has the volume mounted.
boot() {
    local folder=$work/share/$1
    mkdir -p "$folder"
    rm -f "$folder"/*.ask "$folder"/*.out "$folder"/*.code "$folder/log"
    GUEST_NUMBER=$2 GUEST_MEMORY=512M "$here/guest" "$work/share" "$here/locks-agent.sh" "$1" "10.77.$2.1" "$folder" \
        >"$folder/log" 2>&1 &
    guest[$1]=$!
    for _ in $(seq 1200); do
        ! grep -q "agent $1 is up" "$folder/log" || return 0
        kill -0 "${guest[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$folder/log"
    return 1
}

# on NAME COMMANDS: runs them in the guest; prints what they print and returns as they do.
on() {
    local folder=$work/share/$1 number=1
    while [ -e "$folder/$number.ask" ]; do number=$((number + 1)); done
    printf '%s\n' "$2" >"$folder/part"
    mv "$folder/part" "$folder/$number.ask"
    for _ in $(seq 1800); do
        if [ -e "$folder/$number.code" ]; then
            cat "$folder/$number.out"
            return "$(cat "$folder/$number.code")"
        fi
        sleep 0.1
    done
    echo "no answer from $1 to: $2"
    return 99
}

# hold NAME LABEL HOW KIND START LENGTH: starts a process that asks for a lock on `file`.
hold() { on "$1" "nohup $work/share/locker file $3 $4 $5 $6 >/run/$2 2>&1 & echo \$! >/run/$2.pid"; }

# says NAME LABEL WORDS [SECONDS]: that process says so, in time, and nothing else before.
says() { on "$1" "for _ in \$(seq $((${4:-60} * 10))); do [ -s /run/$2 ] && break; sleep 0.1; done; cat /run/$2; grep -qx '$3' /run/$2"; }

# silent NAME LABEL: that process has said nothing yet.
silent() { on "$1" "! [ -s /run/$2 ] && kill -0 \$(cat /run/$2.pid)"; }

drop() { on "$1" "kill \$(cat /run/$2.pid)"; }

# asks NAME WORDS HOW KIND START LENGTH: a process asks, says so, and ends.
asks() {
    local words
    words=$(on "$1" "rm -f /run/ask; $work/share/locker file $3 $4 $5 $6 >/run/ask & for _ in \$(seq 900); do [ -s /run/ask ] && break; sleep 0.1; done
        kill \$! 2>/dev/null; cat /run/ask")
    echo "$1 was told: $words"
    [ "$words" = "$2" ]
}

# metric NAME: its value now.
metric() {
    exec 5<>/dev/tcp/127.0.0.1/7437
    printf 'GET /metrics HTTP/1.0\r\nHost: weir\r\nAuthorization: Bearer %s\r\n\r\n' "$(cat "$data/api.token")" >&5
    awk -v name="$1" '$1 == name { print $2 }' <&5
    exec 5>&-
}

# becomes NAME VALUE: the metric does, in time.
becomes() {
    for _ in $(seq 600); do
        [ "$(metric "$1")" != "$2" ] || return 0
        sleep 0.1
    done
    echo "$1 is $(metric "$1"), not $2"
    return 1
}

contention() {
    hold one a try write 0 100 && says one a locked && asks two refused try write 50 10 &&
        asks two refused try read 99 1 && asks two 'write 0 100' test write 0 0
}

ranges() {
    hold two b try write 100 100 && says two b locked && asks one refused try write 199 1 &&
        asks one 'write 100 100' test read 150 100 && asks two free test write 200 0 && hold two far try write 9000000000000000000 0 &&
        says two far locked && asks one refused try write 9100000000000000000 1 && drop two far && drop two b
}

shared() {
    hold one r1 try read 1000 10 && hold two r2 try read 1000 10 && says one r1 locked && says two r2 locked &&
        asks two refused try write 1005 1 && drop one r1 && drop two r2
}

# Woken by GRANTED: the client itself asks again only after 30 seconds.
waiting() {
    local before
    before=$(metric weir_lock_callbacks_total)
    hold two w wait write 0 10 && becomes weir_locks_waiting 1 && silent two w && drop one a && says two w locked 25 &&
        [ "$(metric weir_lock_callbacks_total)" -gt "$before" ] && asks one refused try write 5 1
}

cancelled() {
    hold one c wait write 0 10 && becomes weir_locks_waiting 1 && drop one c && becomes weir_locks_waiting 0 && drop two w &&
        asks two free test write 0 0
}

whole_file_locks() {
    on one 'nohup flock file2 sleep 1000 >/dev/null 2>&1 & echo $! >/run/flock.pid' &&
        on two 'for _ in $(seq 600); do flock -n file2 true || exit 0; sleep 0.1; done; exit 1' && on one 'kill $(cat /run/flock.pid); pkill -x sleep; true' && on two 'flock -w 60 file2 true'
}

client_crash() {
    hold two d try write 0 0 && says two d locked && hold one e wait write 0 10 && becomes weir_locks_waiting 1 &&
        kill "${guest[two]}" && ! wait "${guest[two]}" && sleep 5 && silent one e && boot two 1 && says one e locked
}

# The server is killed while guest one holds a lock and guest two waits for it.
server_crash() {
    hold two f wait write 0 10 && becomes weir_locks_waiting 1 && stop_server KILL && start_server 0.0.0.0:2049 &&
        [ "$(metric weir_lock_grace)" = 1 ] && becomes weir_locks_held 1 && [ "$(metric weir_lock_grace)" = 1 ] &&
        asks two refused try write 0 10
}

goes_on() {
    becomes weir_lock_grace 0 && on one 'kill -0 $(cat /run/e.pid)' && silent two f && asks two refused try write 5 1 &&
        drop one e && says two f locked && drop two f && becomes weir_locks_held 0
}

check two-clients-mount-with-locks eval 'boot one 0 && boot two 1'
check a-lock-is-seen-by-another-client contention
check locks-are-on-ranges ranges
check readers-share shared
check who-waits-is-woken waiting
check who-gives-up-waits-no-more cancelled
check flock-is-a-lock-too whole_file_locks
check a-crashed-client-loses-its-locks-when-it-is-back client_crash
check locks-are-reclaimed-after-a-crash-of-the-server server_crash
check programs-go-on-after-the-grace-period goes_on
touch "$work"/share/{one,two}/end
for name in one two; do
    check "guest-$name-unmounts" wait "${guest[$name]}"
done
check stops stop_server TERM
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
    for name in one two; do sed "s/^/# $name: /" "$work/share/$name/log" | tail -n 20; done
fi
exit $failed
