#!/bin/bash
# Makes five loads, one after the other, and asks `weir volume why` for the kind of each: a balanced
# one, which has none, one connection, one file, small requests, and metadata. Shows what the command
# prints, and fails if it names another kind. WEIR is the program. Takes three minutes.
set -eu
# shellcheck source=../clients/suite.bash
. "$(dirname "$(realpath -e "$0")")/../clients/suite.bash"
port=24049

# kind NAME KINDS OPTION...: a load with these options, and the kinds that are expected of it.
kind() {
    local name=$1 expected=$2 running found
    shift 2
    "$WEIR" bench "nfs://127.0.0.1:$port/home" --time 18s --size 64MiB --dir "$name" "$@" >"$work/bench.log" 2>&1 &
    running=$!
    # The kind is that of the last 10 to 15 s.
    sleep 16
    echo "# $name: weir bench nfs://… $*"
    "$WEIR" --data "$data" volume why home | sed -n '/^In the last/,/^$/s/^/#   /p'
    found=$("$WEIR" --data "$data" --output json volume why home | jq -r '.load.kinds | sort | join(" ")')
    wait "$running" || { tail -n 5 "$work/bench.log"; return 1; }
    sleep 16
    check "$name: '$expected'" test "$found" = "$expected"
}

start_server 127.0.0.1:$port
weir pool create fast --level ultra --size 400TiB --overcommit
weir volume create home --pool fast --quota 100TiB
kind balanced '' --rw randread --bs 256KiB --jobs 4 --depth 4 --connections 4 --files 8
kind one-connection one-connection --rw randread --bs 256KiB --jobs 1 --depth 8 --files 8
kind one-file one-file --rw randread --bs 256KiB --jobs 4 --depth 4 --connections 4 --files 1
kind small-requests small-requests --rw randread --bs 4KiB --jobs 4 --depth 4 --connections 4 --files 8
kind metadata metadata-heavy --rw lookup --jobs 4 --depth 4 --connections 4 --files 8
echo "1..5"
exit $failed
